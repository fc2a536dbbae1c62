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
 *   wss.phases=MiB:S,…  sizes in turn, S seconds each; S=0 stays      [none]
 *   wss.threads=N       the set is divided among N threads            [1]
 *   wss.idle=SECONDS    touch nothing for so long after "ready"       [0]
 *   wss.file=mem:MiB|disk:MiB  a file read as well, in the page cache [none]
 *   wss.balloon=1       load virtio_balloon                           [0]
 *   wss.interval=SECONDS  between reports                             [1]
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
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

#define PAGE 4096ull
#define MIB_PAGES 256ull
#define MAX_PHASES 32
#define MAX_THREADS 64

enum mode { MODE_READ, MODE_WRITE, MODE_RMW };
enum order { ORDER_SEQ, ORDER_RANDOM, ORDER_STRIDE };

struct phase {
	uint64_t pages;
	uint64_t seconds; /* 0: for ever */
};

static struct {
	uint64_t map_pages, touch_pages, stride, rate, threads, idle, interval;
	uint64_t file_pages;
	bool file_on_disk, balloon;
	enum mode mode;
	enum order order;
	struct phase phases[MAX_PHASES];
	unsigned int nr_phases;
} conf = {.map_pages = 64 * MIB_PAGES, .touch_pages = UINT64_MAX, .mode = MODE_RMW,
	  .stride = 1, .threads = 1, .interval = 1};

/* One share of the set. The owner changes it only between "go" and "parked". */
struct worker {
	bool is_file;
	uint64_t first, pages; /* its share: indices in the set, or file pages */
	uint64_t rate, began_ms;
	uint64_t mask, lcg; /* the permutation: power of two above pages, state */
	uint64_t touches;   /* in this phase */
	uint64_t counted;   /* of these, reported already */
	uint64_t next;      /* sequential cursor within the share */
};

static struct worker workers[MAX_THREADS + 1];
static unsigned int nr_workers;
static pthread_barrier_t go, parked;
static atomic_bool stop;
static unsigned char *area;
static int file_fd = -1;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
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

static void parse_phases(const char *key, char *text)
{
	while (*text) {
		struct phase *p = &conf.phases[conf.nr_phases];

		if (conf.nr_phases == MAX_PHASES)
			fail("more than %d phases", MAX_PHASES);
		p->pages = number(key, text, &text) * MIB_PAGES;
		if (*text++ != ':')
			fail("%s wants MiB:seconds,MiB:seconds", key);
		p->seconds = number(key, text, &text);
		conf.nr_phases++;
		if (*text && *text++ != ',')
			fail("%s wants MiB:seconds,MiB:seconds", key);
	}
}

static void parse_mode(const char *text)
{
	if (!strcmp(text, "read"))
		conf.mode = MODE_READ;
	else if (!strcmp(text, "write"))
		conf.mode = MODE_WRITE;
	else if (!strcmp(text, "rmw"))
		conf.mode = MODE_RMW;
	else
		fail("bad value for wss.mode: %s", text);
}

static void parse_order(const char *key, const char *text)
{
	if (!strcmp(text, "seq")) {
		conf.order = ORDER_SEQ;
	} else if (!strcmp(text, "random")) {
		conf.order = ORDER_RANDOM;
	} else if (!strncmp(text, "stride:", 7)) {
		conf.order = ORDER_STRIDE;
		conf.stride = number(key, text + 7, NULL);
		if (!conf.stride)
			fail("a stride of 0");
	} else {
		fail("bad value for %s: %s", key, text);
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
		parse_mode(value);
	else if (!strcmp(key, "wss.order"))
		parse_order(key, value);
	else if (!strcmp(key, "wss.rate"))
		conf.rate = number(key, value, NULL);
	else if (!strcmp(key, "wss.phases"))
		parse_phases(key, value);
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
	else
		fail("unknown key %s", key);
}

static void check_conf(void)
{
	uint64_t most = conf.map_pages / conf.stride;
	struct sysinfo info;

	if (conf.touch_pages == UINT64_MAX)
		conf.touch_pages = most;
	if (!conf.nr_phases)
		conf.phases[conf.nr_phases++] = (struct phase){conf.touch_pages, 0};
	for (unsigned int i = 0; i < conf.nr_phases; i++) {
		if (conf.phases[i].pages > most)
			fail("phase %u touches more than the %llu pages there are", i + 1,
			     (unsigned long long)most);
	}
	if (!conf.threads || conf.threads > MAX_THREADS || !conf.interval)
		fail("wss.threads is 1 to %d, wss.interval at least 1", MAX_THREADS);
	sysinfo(&info);
	if ((conf.map_pages + conf.file_pages) * PAGE > info.freeram * info.mem_unit / 10 * 9)
		fail("%llu MiB do not fit into the free memory",
		     (unsigned long long)((conf.map_pages + conf.file_pages) / MIB_PAGES));
}

static void read_cmdline(void)
{
	char text[4096], *save, *word;
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

	if (conf.order == ORDER_RANDOM) {
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
	volatile uint64_t *word = (void *)(area + index * conf.stride * PAGE);

	if (w->is_file) {
		if (pread(file_fd, page, PAGE, (off_t)(index * PAGE)) != (ssize_t)PAGE)
			fail("file: %s", strerror(errno));
	} else if (conf.mode == MODE_READ) {
		(void)*word;
	} else if (conf.mode == MODE_WRITE) {
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

static void touch_until_stopped(struct worker *w)
{
	if (!w->pages)
		return;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (!w->rate || w->touches < touches_due(w))
			touch(w);
		else /* Short sleeps, so that a stop is seen soon at any rate. */
			sleep_until_ms(now_ms() + 5);
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
	uint64_t pages = 0, file_pages = 0, loops = UINT64_MAX, passes;

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
		t->touches += count;
		w->counted = w->touches;
	}
	if (loops == UINT64_MAX)
		loops = t->phase_loops;
	passes = loops - t->phase_loops;
	t->phase_loops = loops;
	t->loops += passes;
	say("time_ms=%llu interval_ms=%llu phase=%u state=%s mapped_bytes=%llu "
	    "touched_bytes=%llu touched_pages=%llu file_pages=%llu passes=%llu loops=%llu "
	    "touches=%llu",
	    (unsigned long long)now_ms(), (unsigned long long)interval_ms, t->phase,
	    idle ? "idle" : "touching", (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(pages * PAGE), (unsigned long long)pages,
	    (unsigned long long)file_pages, (unsigned long long)passes,
	    (unsigned long long)t->loops, (unsigned long long)t->touches);
}

/* One phase: @seconds of 0 never ends. Phase 0 is the idle time at the start. */
static void run_phase(struct totals *t, uint64_t pages, uint64_t file_pages, uint64_t seconds)
{
	uint64_t began = now_ms(), end = seconds ? began + seconds * 1000 : UINT64_MAX;
	bool idle = !pages && !file_pages;

	share_out(pages);
	t->phase_loops = 0;
	say("phase phase=%u time_ms=%llu state=%s set_bytes=%llu seconds=%llu", t->phase,
	    (unsigned long long)began, idle ? "idle" : "touching",
	    (unsigned long long)((pages + file_pages) * PAGE), (unsigned long long)seconds);
	while (began < end) {
		uint64_t until = began + conf.interval * 1000;

		if (until > end)
			until = end;
		if (idle)
			sleep_until_ms(until);
		else
			run_until_ms(until);
		report(t, idle, now_ms() - began);
		began = now_ms();
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
	start_workers();
	sysinfo(&info);
	say("ready time_ms=%llu ram_bytes=%llu mapped_bytes=%llu file_bytes=%llu balloon=%d",
	    (unsigned long long)now_ms(), (unsigned long long)info.totalram * info.mem_unit,
	    (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(conf.file_pages * PAGE), conf.balloon);
	if (conf.idle)
		run_phase(&t, 0, 0, conf.idle);
	for (unsigned int i = 0;; i = (i + 1) % conf.nr_phases) {
		t.phase++;
		run_phase(&t, conf.phases[i].pages, conf.file_pages, conf.phases[i].seconds);
	}
}
