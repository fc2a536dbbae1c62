/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The init, and only program, of the test guest: it touches a known set of pages forever and
 * reports on the console exactly how large that set was.
 *
 * The kernel command line sets everything (README.md describes each key):
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
 *   wss.draw=K          of the file, pages drawn at random by the K-th power [0]
 *   wss.cold=MiB        of the disk, read once into the page cache    [0]
 *   wss.lazy=1          memory is there when it is first touched      [0]
 *   wss.balloon=0       do not load virtio_balloon                    [1]
 *   wss.interval=SECONDS  between reports                             [1]
 *   wss.gap=1           report the longest time from one touch to the next [0]
 */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

static int control_fd = -1;
static bool balloon_loaded;

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void sleep_until_ms(uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

void say(const char *fmt, ...)
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

_Noreturn void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
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
	/* From here on only panics may still print between our lines. */
	klogctl(8, NULL, 1);
}

/* All modules are in /modules; a built-in one is not an error. */
static void load_modules(const char *driver)
{
	const char *const names[] = {"virtio_ring",	      "virtio",	    "virtio_pci_legacy_dev",
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

/*
 * Finds a balloon among the PCI devices by virtio's vendor ID and its legacy or modern device
 * ID.
 */
static bool has_balloon_device(void)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	bool found = false;
	struct dirent *entry;

	while (dir && !found && (entry = readdir(dir))) {
		char path[300], id[2][16] = {"", ""};

		for (int i = 0; i < 2; i++) {
			int fd;

			snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", entry->d_name,
				 i ? "device" : "vendor");
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0 || read(fd, id[i], sizeof(id[i]) - 1) < 0)
				id[i][0] = '\0';
			close(fd);
		}
		found = !strcmp(id[0], "0x1af4\n") &&
			(!strcmp(id[1], "0x1002\n") || !strcmp(id[1], "0x1045\n"));
	}
	if (dir)
		closedir(dir);
	return found;
}

static int open_disk(void)
{
	uint64_t size, pages = (conf.file_on_disk ? conf.file_pages : 0) + conf.cold_pages;
	int fd;

	load_modules("virtio_blk");
	fd = open("/dev/vda", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size) < 0)
		fail("no disk at /dev/vda");
	if (size < pages * PAGE)
		fail("/dev/vda is smaller than wss.file and wss.cold");
	return fd;
}

static void open_file(void)
{
	static unsigned char page[PAGE];

	if (conf.file_on_disk) {
		file_fd = open_disk();
		/* Read-ahead would put pages into the cache that were not requested. */
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
 * Fills the part after that of wss.file. The descriptor stays open, because the last close
 * would empty the cache.
 */
static void fill_cache(void)
{
	static unsigned char block[256 * PAGE];
	int fd = open_disk();
	off_t at = (off_t)((conf.file_on_disk ? conf.file_pages : 0) * PAGE);

	for (uint64_t left = conf.cold_pages * PAGE; left;) {
		ssize_t n = pread(fd, block, left < sizeof(block) ? left : sizeof(block), at);

		if (n <= 0)
			fail("cold file: %s", strerror(errno));
		at += n;
		left -= (uint64_t)n;
	}
}

static char vmstat_text[16384];

static void read_vmstat(void)
{
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, vmstat_text, sizeof(vmstat_text) - 1);

	close(fd);
	vmstat_text[n < 0 ? 0 : n] = '\0';
}

/* Returns a counter; 0 if this kernel does not have it. */
static unsigned long long vmstat(const char *name)
{
	size_t len = strlen(name);

	for (char *line = vmstat_text; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	return 0;
}

struct totals {
	uint64_t touches, loops; /* since the start */
	uint64_t phase_loops;	 /* in this phase */
	unsigned int phase;	 /* number of phases begun, without the idle time */
};

static void report(struct totals *t, bool idle, uint64_t interval_ms)
{
	uint64_t pages = 0, file_pages = 0, loops = UINT64_MAX, passes, gap_ns = 0;
	struct sysinfo info;

	for (unsigned int i = 0; !idle && i < nr_workers; i++) {
		struct worker *w = &workers[i];
		uint64_t touches, distinct;

		if (!w->pages)
			continue;
		distinct = count_touched(w, &touches);
		pages += distinct;
		if (w->is_file)
			file_pages = distinct;
		if (w->touches / w->pages < loops)
			loops = w->touches / w->pages;
		if (w->gap_ns > gap_ns)
			gap_ns = w->gap_ns;
		t->touches += touches;
	}
	if (loops == UINT64_MAX)
		loops = t->phase_loops;
	passes = loops - t->phase_loops;
	t->phase_loops = loops;
	t->loops += passes;
	sysinfo(&info);
	read_vmstat();
	say("time_ms=%llu interval_ms=%llu phase=%u state=%s mapped_bytes=%llu "
	    "touched_bytes=%llu touched_pages=%llu file_pages=%llu balloon_bytes=%llu "
	    "free_bytes=%llu cache_bytes=%llu read_bytes=%llu oom_kills=%llu gap_us=%llu passes=%llu loops=%llu touches=%llu",
	    (unsigned long long)now_ms(), (unsigned long long)interval_ms, t->phase,
	    idle ? "idle" : "touching", (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(pages * PAGE), (unsigned long long)pages,
	    (unsigned long long)file_pages,
	    (vmstat("balloon_inflate") - vmstat("balloon_deflate")) * PAGE,
	    (unsigned long long)info.freeram * info.mem_unit,
	    (vmstat("nr_active_file") + vmstat("nr_inactive_file")) * PAGE, vmstat("pgpgin") * 1024,
	    vmstat("oom_kill"), (unsigned long long)gap_ns / 1000, (unsigned long long)passes,
	    (unsigned long long)t->loops, (unsigned long long)t->touches);
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

/* Whether a complete line has arrived. The newest one counts. */
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
 * Runs one phase. Seconds of 0 never end, except by a line on the control terminal; then that
 * is in *phase, and true is returned. Phase 0 is the idle time at the start.
 */
static bool run_phase(struct totals *t, struct phase *phase, uint64_t file_pages)
{
	uint64_t began = now_ms();
	uint64_t end = phase->seconds ? began + phase->seconds * 1000 : UINT64_MAX;
	bool idle = !phase->pages && !file_pages;

	share_out(phase);
	t->phase_loops = 0;
	say("phase phase=%u time_ms=%llu state=%s set_bytes=%llu table_bytes=%llu seconds=%llu",
	    t->phase, (unsigned long long)began, idle ? "idle" : "touching",
	    (unsigned long long)((phase->pages + file_pages) * PAGE),
	    (unsigned long long)(table_pages(phase) * PAGE), (unsigned long long)phase->seconds);
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

/* A phase from the control terminal stays until the next line there, and ends the list. */
static _Noreturn void run_controlled(struct totals *t, struct phase phase)
{
	for (;;) {
		t->phase++;
		phase.seconds = 0;
		run_phase(t, &phase, conf.file_pages);
	}
}

int main(void)
{
	struct totals t = {0};
	struct sysinfo info;

	mount_all();
	read_cmdline();
	balloon_loaded = conf.balloon && has_balloon_device();
	if (balloon_loaded)
		load_modules("virtio_balloon");
	if (conf.file_pages)
		open_file();
	if (conf.cold_pages)
		fill_cache();
	populate();
	if (conf.control[0])
		open_control();
	start_workers();
	sysinfo(&info);
	say("ready time_ms=%llu ram_bytes=%llu mapped_bytes=%llu file_bytes=%llu balloon=%d",
	    (unsigned long long)now_ms(), (unsigned long long)info.totalram * info.mem_unit,
	    (unsigned long long)(conf.map_pages * PAGE),
	    (unsigned long long)(conf.file_pages * PAGE), balloon_loaded);
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
