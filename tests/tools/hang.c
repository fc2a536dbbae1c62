/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hangs libvirt calls in a program that loads this by LD_PRELOAD, as only tests do.
 *
 * WSS_HANG=FUNCTION:DOMAIN hangs a function for one domain, or for those that fnmatch(3) finds, FUNCTION: for any. The
 * first WSS_HANG_AFTER of these calls pass. A call that hangs creates the file WSS_HANG_FILE first. With
 * WSS_HANG_SECONDS it only takes that long, and others wait for it, as for a slow libvirtd. WSS_HANG_CALLS=FILE gets a
 * line for each call of that function, whether it hangs or not: the domain's name.
 *
 * With WSS_CLOCK=FILE the program and its children (not that of HTTP) have an invented clock instead of CLOCK_BOOTTIME, which deadlines,
 * periods and sleeps go by. FILE is 15 digits, a line feed, and eight bytes of zero. The clock goes on while no thread of
 * the program is ready to run, so that computing takes no time, however slow the machine is, until it has reached the
 * seconds of those digits, which a test may raise at any time; the bytes are its nanoseconds so far. It is
 * WSS_CLOCK_PACE times as fast as the real one, 10 by default.
 */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libvirt/libvirt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* --- the clock --- */

#define NS_PER_MS 1000000ULL
#define NS_PER_S (1000 * NS_PER_MS)
#define TICK_NS (5 * NS_PER_MS)
/* It begins late enough for guests to have booted long before. */
#define CLOCK_FROM_NS (1000000 * NS_PER_S)

static struct {
	char limit[16];
	_Atomic uint64_t now_ns;
} * shared; /* NULL: the real clock */

static uint64_t clock_now_ns(void)
{
	return CLOCK_FROM_NS + shared->now_ns;
}

/* Whether a thread other than this one runs, could do so, or waits for a disk. */
static bool others_are_ready(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool ready = !tasks;

	while (!ready && (task = readdir(tasks))) {
		char path[64], text[256];
		const char *state;
		ssize_t n;
		int fd;

		if (!isdigit(task->d_name[0]) || atoi(task->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", task->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		state = strrchr(text, ')');
		ready = state && (state[2] == 'R' || state[2] == 'D');
	}
	if (tasks)
		closedir(tasks);
	return ready;
}

static void *clock_tick(void *unused)
{
	const char *pace = getenv("WSS_CLOCK_PACE");
	uint64_t step_ns = TICK_NS * (uint64_t)(pace ? atoi(pace) : 10);
	const struct timespec tick = {.tv_nsec = TICK_NS};

	for (;;) {
		uint64_t limit_ns = strtoull(shared->limit, NULL, 10) * NS_PER_S;

		if (shared->now_ns < limit_ns && !others_are_ready())
			shared->now_ns = shared->now_ns + step_ns < limit_ns
						 ? shared->now_ns + step_ns
						 : limit_ns;
		nanosleep(&tick, NULL);
	}
	return unused;
}

static void clock_begin(void)
{
	pthread_t ticker;

	/* Children only read it. */
	if (!getenv("WSS_CLOCK_GOES") && (setenv("WSS_CLOCK_GOES", "1", 1) < 0 ||
					  pthread_create(&ticker, NULL, clock_tick, NULL) != 0))
		abort();
}

/* Before the program can confine itself. */
__attribute__((constructor)) static void clock_map(void)
{
	const char *path = getenv("WSS_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		shared = map;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ts)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (id != CLOCK_BOOTTIME || !shared)
		return REAL(clock_gettime)(id, ts);
	pthread_once(&once, clock_begin);
	ts->tv_sec = (time_t)(clock_now_ns() / NS_PER_S);
	ts->tv_nsec = (long)(clock_now_ns() % NS_PER_S);
	return 0;
}

/* Waits in many short waits, and then looks at the clock. */
EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	uint64_t until_ns;
	int r;

	if (!shared || n == 0 || !timeout || (!timeout->tv_sec && !timeout->tv_nsec))
		return REAL(ppoll)(fds, n, timeout, mask);
	until_ns =
		clock_now_ns() + (uint64_t)timeout->tv_sec * NS_PER_S + (uint64_t)timeout->tv_nsec;
	do
		r = REAL(ppoll)(fds, n, &tick, mask);
	while (r == 0 && clock_now_ns() < until_ns);
	return r;
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * (long)NS_PER_MS};

	if (!shared || n == 0 || ms <= 0)
		return REAL(poll)(fds, n, ms);
	return ppoll(fds, n, &timeout, NULL);
}

static void clock_sleep_until(uint64_t when_ns)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};

	while (clock_now_ns() < when_ns)
		nanosleep(&tick, NULL);
}

EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *ts,
			   struct timespec *left)
{
	if (id != CLOCK_BOOTTIME || !shared || !(flags & TIMER_ABSTIME))
		return REAL(clock_nanosleep)(id, flags, ts, left);
	clock_sleep_until((uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec);
	return 0;
}

/* --- libvirt --- */

static void hang(void)
{
	const char *file = getenv("WSS_HANG_FILE"), *seconds = getenv("WSS_HANG_SECONDS");
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (file)
		close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (seconds) {
		pthread_mutex_lock(&lock);
		if (shared)
			clock_sleep_until(clock_now_ns() + strtoull(seconds, NULL, 10) * NS_PER_S);
		else
			sleep((unsigned)atoi(seconds));
		pthread_mutex_unlock(&lock);
	}
	while (!seconds)
		pause();
}

static void note_call(const char *domain)
{
	const char *file = getenv("WSS_HANG_CALLS");
	int fd = file ? open(file, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s\n", domain);
	close(fd);
}

static void hang_if_wanted(const char *function, const char *domain)
{
	const char *wanted = getenv("WSS_HANG"), *after = getenv("WSS_HANG_AFTER");
	static atomic_int calls;
	size_t len = strlen(function);

	if (!wanted || strncmp(wanted, function, len) != 0 || wanted[len] != ':')
		return;
	note_call(domain ? domain : "");
	if (wanted[len + 1] && (!domain || fnmatch(wanted + len + 1, domain, 0) != 0))
		return;
	if (atomic_fetch_add(&calls, 1) >= (after ? atoi(after) : 0))
		hang();
}

EXPORT char *virDomainGetXMLDesc(virDomainPtr dom, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainGetXMLDesc)(dom, flags);
}

EXPORT int virDomainGetInfo(virDomainPtr dom, virDomainInfoPtr info)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainGetInfo)(dom, info);
}

EXPORT int virDomainSetMetadata(virDomainPtr dom, int type, const char *metadata, const char *key,
				const char *uri, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainSetMetadata)(dom, type, metadata, key, uri, flags);
}

EXPORT int virDomainGetJobInfo(virDomainPtr dom, virDomainJobInfoPtr info)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainGetJobInfo)(dom, info);
}

EXPORT int virDomainListGetStats(virDomainPtr *doms, unsigned stats,
				 virDomainStatsRecordPtr **records, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(doms[0]));
	return REAL(virDomainListGetStats)(doms, stats, records, flags);
}

EXPORT int virDomainSetMemoryFlags(virDomainPtr dom, unsigned long memory, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainSetMemoryFlags)(dom, memory, flags);
}

EXPORT int virConnectListAllDomains(virConnectPtr conn, virDomainPtr **doms, unsigned flags)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectListAllDomains)(conn, doms, flags);
}

EXPORT int virNodeGetMemoryStats(virConnectPtr conn, int cell, virNodeMemoryStatsPtr stats, int *n,
				 unsigned flags)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virNodeGetMemoryStats)(conn, cell, stats, n, flags);
}

EXPORT const char *virConnectGetType(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetType)(conn);
}

EXPORT char *virConnectGetCapabilities(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetCapabilities)(conn);
}

EXPORT char *virConnectGetHostname(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetHostname)(conn);
}

EXPORT int virConnectClose(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectClose)(conn);
}
