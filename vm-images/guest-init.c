// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The init, and only program, of the test guest: it touches a known set of
 * pages for ever and says on the console, exactly, which set that was.
 *
 * Everything is set on the kernel command line (README.md says more):
 *   wss.map=MiB         mapped and written once at start              [64]
 *   wss.touch=MiB       touched in each pass, at most wss.map         [wss.map]
 *   wss.mode=read|write|rmw                                           [rmw]
 *   wss.order=seq|random|stride:N                                     [seq]
 *   wss.rate=PAGES      touches a second at most, 0 is full speed     [0]
 *   wss.phases=MiB:S[:MODE[:ORDER]],…  sizes in turn, S seconds each; S=0 stays
 *                                                                     [none]
 *   wss.control=TTY     a line there, written as one of these phases, is the next
 *                       phase, from the end of the interval on        [none]
 *   wss.threads=N       the set is divided among N threads            [1]
 *   wss.idle=SECONDS    touch nothing for so long after "ready"       [0]
 *   wss.file=mem:MiB|disk:MiB  a file read as well, in the page cache [none]
 *   wss.balloon=1       load virtio_balloon                           [0]
 *   wss.interval=SECONDS  between reports                             [1]
 *   wss.gap=1           report the longest time from one touch to the next [0]
 *
 * Why the counts are exact: every thread walks its share of the set in one
 * fixed cyclic order ("random" is a fixed permutation), and all threads stand
 * still while an interval is counted. k touches in a cycle of n pages have
 * then touched min(k, n) different ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

#define PAGE 4096ull
#define MIB_PAGES 256ull
#define MAX_PHASES 32
#define MAX_THREADS 64

enum mode { MODE_READ, MODE_WRITE, MODE_RMW };
enum order { ORDER_SEQ, ORDER_RANDOM, ORDER_STRIDE };

/* How a set is touched. */
struct way {
	enum mode mode;
	enum order order;
	uint64_t stride; /* 1 unless ORDER_STRIDE */
};

struct phase {
	uint64_t pages;
	uint64_t seconds; /* 0: for ever */
	struct way way;
};

static struct {
	uint64_t map_pages, touch_pages, rate, threads, idle, interval;
	uint64_t file_pages;
	bool file_on_disk, balloon, gap;
	struct way way;
	struct phase phases[MAX_PHASES];
	unsigned int nr_phases;
	const char *phases_text; /* until everything that they may refer to is known */
	char control[32];
} conf = {.map_pages = 64 * MIB_PAGES, .touch_pages = UINT64_MAX,
	  .way = {.mode = MODE_RMW, .stride = 1}, .threads = 1, .interval = 1};

/* Of the phase under way; changes only while all workers stand still. */
static struct way way;

/* One share of the set. The owner changes it only between "go" and "parked". */
struct worker {
	bool is_file;
	uint64_t first, pages; /* its share: indices in the set, or file pages */
	uint64_t rate, began_ms;
	uint64_t mask, lcg; /* the permutation: power of two above pages, state */
	uint64_t touches;   /* in this phase */
	uint64_t counted;   /* of these, reported already */
	uint64_t next;      /* sequential cursor within the share */
	uint64_t gap_ns;    /* longest in this interval, with wss.gap */
};

static struct worker workers[MAX_THREADS + 1];
static unsigned int nr_workers;
static pthread_barrier_t go, parked;
static atomic_bool stop;
static unsigned char *area;
static int file_fd = -1, control_fd = -1;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void sleep_until_ms(uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* One write() a line, so that nothing is printed in the middle of it. */
__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = snprintf(line, sizeof(line), "wss-guest: ");
	n += vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		return;
}

/* A guest that cannot do what it was told must not look like one that does. */
#define fail(...)                                                                             \
	do {                                                                                  \
		say("error " __VA_ARGS__);                                                    \
		power_off();                                                                  \
	} while (0)

static _Noreturn void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static uint64_t number(const char *key, const char *text, char **ret_end)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno || value > UINT32_MAX ||
	    (!ret_end && *end))
		fail("bad value for %s: %s", key, text);
	if (ret_end)
		*ret_end = end;
	return value;
}

static enum mode parse_mode(const char *key, const char *text)
{
	if (!strcmp(text, "read"))
		return MODE_READ;
	if (!strcmp(text, "write"))
		return MODE_WRITE;
	if (!strcmp(text, "rmw"))
		return MODE_RMW;
	fail("bad value for %s: %s", key, text);
}

static void parse_order(const char *key, const char *text, struct way *ret_way)
{
	ret_way->stride = 1;
	if (!strcmp(text, "seq")) {
		ret_way->order = ORDER_SEQ;
	} else if (!strcmp(text, "random")) {
		ret_way->order = ORDER_RANDOM;
	} else if (!strncmp(text, "stride:", 7)) {
		ret_way->order = ORDER_STRIDE;
		ret_way->stride = number(key, text + 7, NULL);
		if (!ret_way->stride)
			fail("a stride of 0");
	} else {
		fail("bad value for %s: %s", key, text);
	}
}

/* "MiB:S[:MODE[:ORDER]]"; with a stride of its own, MiB is what the set is spread over. */
static struct phase parse_phase(const char *key, char *text)
{
	struct phase phase = {.way = conf.way};
	char *order = NULL;

	phase.pages = number(key, text, &text) * MIB_PAGES;
	if (*text++ != ':')
		fail("%s wants MiB:seconds", key);
	phase.seconds = number(key, text, &text);
	if (*text == ':') {
		order = strchr(++text, ':');
		if (order)
			*order++ = '\0';
		phase.way.mode = parse_mode(key, text);
	} else if (*text) {
		fail("%s wants MiB:seconds", key);
	}
	if (order) {
		parse_order(key, order, &phase.way);
		phase.pages /= phase.way.stride;
	}
	if (phase.pages > conf.map_pages / phase.way.stride)
		fail("%s touches more than the %llu pages there are", key,
		     (unsigned long long)(conf.map_pages / phase.way.stride));
	return phase;
}

static void parse_phases(const char *key, const char *text)
{
	char copy[1024], *save, *word;

	if (strlen(text) >= sizeof(copy))
		fail("%s is too long", key);
	strcpy(copy, text);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (conf.nr_phases == MAX_PHASES)
			fail("more than %d phases", MAX_PHASES);
		conf.phases[conf.nr_phases++] = parse_phase(key, word);
	}
}

static void parse_file(const char *key, const char *text)
{
	conf.file_on_disk = !strncmp(text, "disk:", 5);
	if (!conf.file_on_disk && strncmp(text, "mem:", 4) != 0)
		fail("bad value for %s: %s", key, text);
	conf.file_pages = number(key, strchr(text, ':') + 1, NULL) * MIB_PAGES;
}

static void parse_key(const char *key, char *value)
{
	if (!strcmp(key, "wss.map"))
		conf.map_pages = number(key, value, NULL) * MIB_PAGES;
	else if (!strcmp(key, "wss.touch"))
		conf.touch_pages = number(key, value, NULL) * MIB_PAGES;
	else if (!strcmp(key, "wss.mode"))
		conf.way.mode = parse_mode(key, value);
	else if (!strcmp(key, "wss.order"))
		parse_order(key, value, &conf.way);
	else if (!strcmp(key, "wss.rate"))
		conf.rate = number(key, value, NULL);
	else if (!strcmp(key, "wss.phases"))
		conf.phases_text = value;
	else if (!strcmp(key, "wss.control"))
		snprintf(conf.control, sizeof(conf.control), "%s", value);
	else if (!strcmp(key, "wss.threads"))
		conf.threads = number(key, value, NULL);
	else if (!strcmp(key, "wss.idle"))
		conf.idle = number(key, value, NULL);
	else if (!strcmp(key, "wss.file"))
		parse_file(key, value);
	else if (!strcmp(key, "wss.balloon"))
		conf.balloon = number(key, value, NULL);
	else if (!strcmp(key, "wss.interval"))
		conf.interval = number(key, value, NULL);
	else if (!strcmp(key, "wss.gap"))
		conf.gap = number(key, value, NULL);
	else
		fail("unknown key %s", key);
}

static void check_conf(void)
{
	uint64_t most = conf.map_pages / conf.way.stride;
	struct sysinfo info;

	if (conf.touch_pages == UINT64_MAX)
		conf.touch_pages = most;
	if (conf.touch_pages > most)
		fail("wss.touch is more than the %llu pages there are",
		     (unsigned long long)most);
	if (conf.phases_text)
		parse_phases("wss.phases", conf.phases_text);
	if (!conf.nr_phases)
		conf.phases[conf.nr_phases++] = (struct phase){conf.touch_pages, 0, conf.way};
	if (!conf.threads || conf.threads > MAX_THREADS || !conf.interval)
		fail("wss.threads is 1 to %d, wss.interval at least 1", MAX_THREADS);
	sysinfo(&info);
	if ((conf.map_pages + conf.file_pages) * PAGE > info.freeram * info.mem_unit / 10 * 9)
		fail("%llu MiB do not fit into the free memory",
		     (unsigned long long)((conf.map_pages + conf.file_pages) / MIB_PAGES));
}

static void read_cmdline(void)
{
	static char text[4096]; /* phases_text stays in it */
	char *save, *word;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		fail("cannot read /proc/cmdline");
	close(fd);
	text[n] = '\0';
	for (word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(word, '=');

		if (strncmp(word, "wss.", 4) != 0)
			continue;
		if (!value)
			fail("%s has no value", word);
		*value++ = '\0';
		parse_key(word, value);
	}
}

static void mount_all(void)
{
	static const char *const dirs[] = {"/proc", "/dev", "/sys", "/tmp"};
	static const char *const types[] = {"proc", "devtmpfs", "sysfs", "tmpfs"};
	int fd;

	for (int i = 0; i < 4; i++) {
		mkdir(dirs[i], 0755);
		mount(types[i], dirs[i], types[i], 0, i == 3 ? "size=100%" : NULL);
	}
	fd = open("/dev/console", O_RDWR | O_NOCTTY);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	/* Only panics may still come between our lines. */
	klogctl(8, NULL, 1);
}

/* The modules lie flat in /modules; one that is built in is not an error. */
static void load_modules(const char *driver)
{
	const char *const names[] = {"virtio_ring", "virtio", "virtio_pci_legacy_dev",
				     "virtio_pci_modern_dev", "virtio_pci", driver};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/modules/%s.ko", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			fail("cannot load %s: %s", names[i], strerror(errno));
		close(fd);
	}
}

static void open_file(void)
{
	static unsigned char page[PAGE];
	uint64_t size;

	if (conf.file_on_disk) {
		load_modules("virtio_blk");
		file_fd = open("/dev/vda", O_RDONLY | O_CLOEXEC);
		if (file_fd < 0 || ioctl(file_fd, BLKGETSIZE64, &size) < 0)
			fail("no disk at /dev/vda");
		if (size < conf.file_pages * PAGE)
			fail("/dev/vda is smaller than wss.file");
		/* Read-ahead would put pages into the cache that nobody asked for. */
		posix_fadvise(file_fd, 0, 0, POSIX_FADV_RANDOM);
	} else {
		file_fd = open("/tmp/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	}
	for (uint64_t i = 0; i < conf.file_pages; i++) {
		off_t at = (off_t)(i * PAGE);

		memcpy(page, &i, sizeof(i));
		if ((conf.file_on_disk ? pread(file_fd, page, PAGE, at)
				       : pwrite(file_fd, page, PAGE, at)) != (ssize_t)PAGE)
			fail("file: %s", strerror(errno));
	}
}

/*
 * Each page gets contents of its own, so that neither the zero page nor KSM
 * stands in for any. Small pages, so that a touch is of 4 KiB in the guest.
 */
static void populate(void)
{
	size_t size = conf.map_pages * PAGE;

	area = mmap(NULL, size ? size : PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		fail("cannot map %zu bytes", size);
	madvise(area, size, MADV_NOHUGEPAGE);
	for (uint64_t i = 0; i < conf.map_pages; i++)
		*(volatile uint64_t *)(area + i * PAGE) = i + 1;
}

/* The next index of the share, in an order that returns after w->pages steps. */
static uint64_t next_index(struct worker *w)
{
	uint64_t index;

	if (way.order == ORDER_RANDOM) {
		/* Full period by Hull and Dobell: multiplier 1 mod 4, odd increment. */
		do {
			w->lcg = (w->lcg * 1664525 + 1013904223) & w->mask;
		} while (w->lcg >= w->pages);
		return w->lcg;
	}
	index = w->next;
	w->next = index + 1 == w->pages ? 0 : index + 1;
	return index;
}

static void touch(struct worker *w)
{
	static __thread unsigned char page[PAGE];
	uint64_t index = w->first + next_index(w);
	volatile uint64_t *word = (void *)(area + index * way.stride * PAGE);

	if (w->is_file) {
		if (pread(file_fd, page, PAGE, (off_t)(index * PAGE)) != (ssize_t)PAGE)
			fail("file: %s", strerror(errno));
	} else if (way.mode == MODE_READ) {
		(void)*word;
	} else if (way.mode == MODE_WRITE) {
		*word = w->touches;
	} else {
		*word = *word + 1;
	}
	w->touches++;
}

/* Touches that the rate allows by now. What a stall of a second or more left out stays out. */
static uint64_t touches_due(struct worker *w)
{
	uint64_t due = (now_ms() - w->began_ms) * w->rate / 1000;

	if (due > w->touches + w->rate) {
		w->began_ms += (due - w->touches) * 1000 / w->rate;
		due = w->touches + 1;
	}
	return due;
}

/* A pause by the rate is a gap like any other: meant for full speed. */
static void note_gap(struct worker *w, uint64_t *last_ns)
{
	uint64_t now = now_ns();

	if (now - *last_ns > w->gap_ns)
		w->gap_ns = now - *last_ns;
	*last_ns = now;
}

static void touch_until_stopped(struct worker *w)
{
	uint64_t last_ns = now_ns();

	if (!w->pages)
		return;
	w->gap_ns = 0;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (!w->rate || w->touches < touches_due(w))
			touch(w);
		else /* Short sleeps, so that a stop is seen soon at any rate. */
			sleep_until_ms(now_ms() + 5);
		if (conf.gap)
			note_gap(w, &last_ns);
	}
}

static void *work(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&go);
		touch_until_stopped(arg);
		pthread_barrier_wait(&parked);
	}
	return NULL;
}

static void share_out(uint64_t pages)
{
	for (unsigned int i = 0; i < nr_workers; i++) {
		struct worker *w = &workers[i];
		uint64_t first = pages * i / conf.threads;

		*w = (struct worker){.first = first,
				     .pages = pages * (i + 1) / conf.threads - first};
		if (i == conf.threads)
			*w = (struct worker){.is_file = true, .pages = conf.file_pages};
		w->rate = conf.rate;
		if (!w->is_file)
			w->rate = (conf.rate + conf.threads - 1) / conf.threads;
		w->began_ms = now_ms();
		w->mask = 1;
		while (w->mask < w->pages)
			w->mask <<= 1;
		w->mask--;
	}
}

/* Let the workers run until then, and stand still again when it returns. */
static void run_until_ms(uint64_t ms)
{
	atomic_store(&stop, false);
	pthread_barrier_wait(&go);
	sleep_until_ms(ms);
	atomic_store(&stop, true);
	pthread_barrier_wait(&parked);
}

struct totals {
	uint64_t touches, loops; /* since the start */
	uint64_t phase_loops;    /* in this phase */
	unsigned int phase;      /* phases begun, the idle time apart */
};

static void report(struct totals *t, bool idle, uint64_t interval_ms)
{
	uint64_t pages = 0, file_pages = 0, loops = UINT64_MAX, passes, gap_ns = 0;

	for (unsigned int i = 0; !idle && i < nr_workers; i++) {
		struct worker *w = &workers[i];
		uint64_t count = w->touches - w->counted;
		uint64_t distinct = count < w->pages ? count : w->pages;

		if (!w->pages)
			continue;
		pages += distinct;
		if (w->is_file)
			file_pages = distinct;
		if (w->touches / w->pages < loops)
			loops = w->touches / w->pages;
		if (w->gap_ns > gap_ns)
			gap_ns = w->gap_ns;
		t->touches += count;
		w->counted = w->touches;
	}
	if (loops == UINT64_MAX)
		loops = t->phase_loops;
	passes = loops - t->phase_loops;
	t->phase_loops = loops;
	t->loops += passes;
	say("time_ms=%llu interval_ms=%llu phase=%u state=%s mapped_bytes=%llu "
	    "touched_bytes=%llu touched_pages=%llu file_pages=%llu gap_us=%llu passes=%llu "
	    "loops=%llu touches=%llu",
	    (unsigned long long)now_ms(), (unsigned long long)interval_ms, t->phase,
	    idle ? "idle" : "touching", (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(pages * PAGE), (unsigned long long)pages,
	    (unsigned long long)file_pages, (unsigned long long)gap_ns / 1000,
	    (unsigned long long)passes,
	    (unsigned long long)t->loops, (unsigned long long)t->touches);
}

/* Last-level page tables of the guest that a pass over the set walks: one for 2 MiB. */
static uint64_t table_pages(const struct phase *phase)
{
	uint64_t tables = 0, last = UINT64_MAX;

	for (uint64_t i = 0; i < phase->pages; i++) {
		uint64_t table = (uintptr_t)(area + i * phase->way.stride * PAGE) >> 21;

		tables += table != last;
		last = table;
	}
	return tables;
}

static void open_control(void)
{
	struct termios raw;
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", conf.control);
	control_fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (control_fd < 0 || tcgetattr(control_fd, &raw) < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	cfmakeraw(&raw);
	tcsetattr(control_fd, TCSANOW, &raw);
}

/* Has a whole line come? The newest one counts. */
static bool read_control(struct phase *ret_phase)
{
	static char line[128];
	static size_t len;
	bool found = false;
	char c;

	while (control_fd >= 0 && read(control_fd, &c, 1) == 1) {
		if (c != '\n' && len < sizeof(line) - 1) {
			line[len++] = c;
			continue;
		}
		line[len] = '\0';
		len = 0;
		*ret_phase = parse_phase("wss.control", line);
		found = true;
	}
	return found;
}

/*
 * One phase: seconds of 0 never ends, but by a line on the control terminal; then that
 * is in *phase, and true is returned. Phase 0 is the idle time at the start.
 */
static bool run_phase(struct totals *t, struct phase *phase, uint64_t file_pages)
{
	uint64_t began = now_ms();
	uint64_t end = phase->seconds ? began + phase->seconds * 1000 : UINT64_MAX;
	bool idle = !phase->pages && !file_pages;

	way = phase->way;
	share_out(phase->pages);
	t->phase_loops = 0;
	say("phase phase=%u time_ms=%llu state=%s set_bytes=%llu table_bytes=%llu seconds=%llu",
	    t->phase, (unsigned long long)began, idle ? "idle" : "touching",
	    (unsigned long long)((phase->pages + file_pages) * PAGE),
	    (unsigned long long)(table_pages(phase) * PAGE),
	    (unsigned long long)phase->seconds);
	while (began < end) {
		uint64_t until = began + conf.interval * 1000;

		if (until > end)
			until = end;
		if (idle)
			sleep_until_ms(until);
		else
			run_until_ms(until);
		report(t, idle, now_ms() - began);
		if (read_control(phase))
			return true;
		began = now_ms();
	}
	return false;
}

/* What came by the control terminal stays until the next line there: the list is left. */
static _Noreturn void run_controlled(struct totals *t, struct phase phase)
{
	for (;;) {
		t->phase++;
		phase.seconds = 0;
		run_phase(t, &phase, conf.file_pages);
	}
}

static void start_workers(void)
{
	nr_workers = (unsigned int)conf.threads + (conf.file_pages ? 1 : 0);
	pthread_barrier_init(&go, NULL, nr_workers + 1);
	pthread_barrier_init(&parked, NULL, nr_workers + 1);
	for (unsigned int i = 0; i < nr_workers; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &workers[i]) != 0)
			fail("cannot start thread %u", i);
	}
}

int main(void)
{
	struct totals t = {0};
	struct sysinfo info;

	mount_all();
	read_cmdline();
	check_conf();
	if (conf.balloon)
		load_modules("virtio_balloon");
	if (conf.file_pages)
		open_file();
	populate();
	if (conf.control[0])
		open_control();
	start_workers();
	sysinfo(&info);
	say("ready time_ms=%llu ram_bytes=%llu mapped_bytes=%llu file_bytes=%llu balloon=%d",
	    (unsigned long long)now_ms(), (unsigned long long)info.totalram * info.mem_unit,
	    (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(conf.file_pages * PAGE), conf.balloon);
	if (conf.idle) {
		struct phase rest = {0, conf.idle, conf.way};

		if (run_phase(&t, &rest, 0))
			run_controlled(&t, rest);
	}
	for (unsigned int i = 0;; i = (i + 1) % conf.nr_phases) {
		struct phase phase = conf.phases[i];

		t.phase++;
		if (run_phase(&t, &phase, conf.file_pages))
			run_controlled(&t, phase);
	}
}
