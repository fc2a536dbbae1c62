/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tests of src/measure: a child process that stands for a guest's QEMU, a source
 * of guests that answers as the test wants, a method that measures nothing, and a clock on
 * which a window of an hour takes no time.
 */
#pragma once

#include "hosttest.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <time.h>

#include "base/deadline.h"
#include "base/stop.h"
#include "base/units.h"
#include "host/guest.h"
#include "host/procfile.h"
#include "measure/sample.h"
#include "measure/tracker.h"

/*
 * The child's "guest RAM", mapped as QEMU does: with a guard page behind it, and not inherited
 * by forks.
 */
#define FAKE_RAM (8 * WSS_MIB)
#define FAKE_PAGE ((unsigned long)sysconf(_SC_PAGESIZE))
/* In place of a number of pages: lock all of it. */
#define FAKE_LOCK UINT32_MAX

struct fake {
	struct wss_guest *guest;
	pid_t child;
	int socket; /* to the child */

	/* Answers of the source; each refresh is counted before it is answered. */
	enum wss_guest_state state;
	bool job;
	struct wss_disturbance disturbance;
	bool attach_fails;
	enum wss_error_code refresh_fails; /* WSS_OK: refresh succeeds */
	bool has_counts;
	enum wss_error_code counts_fail; /* WSS_OK: they can be read, if the guest has any */
	struct wss_kvm_counts counts;
	unsigned faults_each; /* added to pf_fixed after each reading */
	struct wss_dirty_log log;
	/* number of starts, and the length of the last one */
	unsigned log_starts, log_seconds;
	unsigned refreshes;
	void (*on_refresh)(struct fake *fake); /* may change all of the above */

	/* Behaviour of the method, and the requests that it got. */
	uint64_t predict_ns, begin_ns, poll_ns, wss_bytes;
	struct wss_amount predict_faults;
	uint64_t unsure_bytes; /* by which the high bound is above wss_bytes */
	enum wss_error_code begin_fails, poll_fails;
	unsigned opens, begins, polls, closes;
	char state_in_begin, state_in_poll;  /* of the child */
	uint64_t close_deadline_ns;	     /* deadline of the last close */
	unsigned settle_steps, spoilt_times; /* remaining, for careful_method */
	bool is_idle;			     /* the guest touches nothing */
	bool is_last_poll_gone;		     /* the child is killed within each poll */
};

/* Touches as many pages as requested, answers, and ends when the pipe is closed. */
static inline void fake_child(int fd)
{
	char *ram = mmap(NULL, FAKE_RAM + FAKE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t pages = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ram == MAP_FAILED || mprotect(ram, FAKE_RAM, PROT_READ | PROT_WRITE) < 0 ||
	    madvise(ram, FAKE_RAM, MADV_NOHUGEPAGE) < 0 ||
	    madvise(ram, FAKE_RAM, MADV_DONTFORK) < 0)
		_exit(1);
	memset(ram, 1, FAKE_RAM);
	do {
		if (pages == FAKE_LOCK) {
			syscall(SYS_mlock, ram,
				FAKE_RAM); /* the sanitizers' mlock() does nothing */
			pages = 0;
		}
		/* Flushes the TLB: a cached entry would set no accessed bit. */
		mprotect(ram, FAKE_RAM, PROT_READ);
		mprotect(ram, FAKE_RAM, PROT_READ | PROT_WRITE);
		for (uint32_t i = 0; i < pages; i++)
			((volatile char *)ram)[i * FAKE_PAGE]++;
		if (write(fd, "", 1) != 1)
			break;
	} while (read(fd, &pages, sizeof(pages)) == sizeof(pages));
	_exit(0);
}

/* Waits for cond; the deadline of five minutes only ends what hangs. */
#define wait_until(cond)                                                \
	do {                                                            \
		struct timespec tick_ = {.tv_nsec = 1000000};           \
		int left_ = 300000;                                     \
                                                                        \
		while (!(cond)) {                                       \
			if (!left_--)                                   \
				fail_msg("never came true: %s", #cond); \
			nanosleep(&tick_, NULL);                        \
		}                                                       \
	} while (0)

static inline char child_state(pid_t child)
{
	const struct wss_root root = {.dirfd = AT_FDCWD};
	char path[64], state = '?';

	wss_procfile_read_state(&root, make_path(path, "/proc/%d/stat", (int)child), &state);
	return state;
}

/* Until it sleeps again: on a clock that jumps, it would have been ready to run for long, in vain. */
static inline void fake_wait(const struct fake *fake)
{
	char c;

	assert_int_equal(read(fake->socket, &c, 1), 1);
	wait_until(child_state(fake->child) == 'S');
}

static inline void fake_touch(const struct fake *fake, uint32_t pages)
{
	assert_int_equal(write(fake->socket, &pages, sizeof(pages)), sizeof(pages));
	fake_wait(fake);
}

static inline void fake_kill(const struct fake *fake)
{
	siginfo_t info;

	kill(fake->child, SIGKILL);
	/* Waits until it is a zombie, because only then is its end visible everywhere. */
	assert_int_equal(waitid(P_PID, (id_t)fake->child, &info, WEXITED | WNOWAIT), 0);
}

/* Does the same, and frees its pid. */
static inline void fake_end(struct fake *fake)
{
	end_child(fake->child);
	fake->child = 0;
}

static inline char fake_state(const struct fake *fake)
{
	char state = '?';

	wss_process_state(&fake->guest->process, &state);
	return state;
}

static inline int fake_error(enum wss_error_code code, const char *what, struct wss_error *err)
{
	return code == WSS_OK ? 0 : wss_error_set(err, code, "%s fails", what);
}

static inline int fake_refresh(struct wss_guest *guest, struct wss_error *err)
{
	struct fake *fake = guest->source;

	if (wss_deadline_check(guest->deadline, err) < 0)
		return -1;
	fake->refreshes++;
	if (fake->on_refresh)
		fake->on_refresh(fake);
	guest->state = fake->state;
	strcpy(guest->job, fake->job ? "backup" : "");
	snprintf(guest->state_text, sizeof(guest->state_text), "state %d", (int)fake->state);
	return fake_error(fake->refresh_fails, "refresh", err);
}

static inline int fake_counts(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			      struct wss_error *err)
{
	struct fake *fake = guest->source;

	if (!fake->has_counts)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no counters here");
	*ret_counts = fake->counts;
	fake->counts.pf_fixed += fake->faults_each;
	return fake_error(fake->counts_fail, "kvm_counts", err);
}

static inline int fake_log_start(struct wss_guest *guest, unsigned seconds, struct wss_error *err)
{
	struct fake *fake = guest->source;

	(void)err;
	assert_in_range(seconds, 1, 60);
	assert_false(fake->log.measuring);
	fake->log_starts++;
	fake->log_seconds = seconds;
	fake->log = (struct wss_dirty_log){.measuring = true, .bitmap = true};
	return 0;
}

static inline int fake_log_query(struct wss_guest *guest, struct wss_dirty_log *ret_log,
				 struct wss_error *err)
{
	(void)err;
	*ret_log = ((struct fake *)guest->source)->log;
	return 0;
}

static inline int fake_attach(struct wss_guest *guest, const struct wss_host *host,
			      struct wss_error *err)
{
	struct fake *fake = guest->source;

	(void)host;
	if (hold_child(fake->child, &guest->process, err) < 0)
		return -1;
	return fake->attach_fails ? wss_error_set(err, WSS_ERR_UNSUPPORTED, "attach fails") : 0;
}

static inline struct wss_disturbance fake_disturbed(struct wss_guest *guest)
{
	return ((struct fake *)guest->source)->disturbance;
}

static inline struct fake *fake_new(const char *name)
{
	static const struct wss_guest_ops ops = {
		.refresh = fake_refresh,
		.kvm_counts = fake_counts,
		.dirty_log_start = fake_log_start,
		.dirty_log_query = fake_log_query,
		.attach = fake_attach,
		.disturbed = fake_disturbed,
	};
	struct fake *fake = calloc(1, sizeof(*fake));
	struct wss_domxml *config;
	int fds[2];

	assert_non_null(fake);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fake->child = fork();
	assert_true(fake->child >= 0);
	if (fake->child == 0) {
		close(fds[0]);
		fake_child(fds[1]);
	}
	close(fds[1]);
	fake->socket = fds[0];
	fake_wait(fake);
	fake->guest = wss_guest_new(&ops, fake, NULL);
	assert_non_null(fake->guest);
	fake->state = WSS_GUEST_RUNNING;
	fake->begin_ns = WSS_NS_PER_MS;
	fake->wss_bytes = WSS_MIB;
	config = &fake->guest->config;
	snprintf(config->name, sizeof(config->name), "%s", name);
	snprintf(config->uuid, sizeof(config->uuid), UUID_A);
	snprintf(config->type, sizeof(config->type), "qemu");
	config->maximum_bytes = config->current_bytes = config->block_bytes[0] = FAKE_RAM;
	config->n_blocks = 1;
	return fake;
}

static inline void fake_make_kvm(struct fake *fake)
{
	fake->guest->kvm = true;
	snprintf(fake->guest->config.type, sizeof(fake->guest->config.type), "kvm");
}

static inline void fake_free(struct fake *fake)
{
	close(fake->socket);
	if (fake->child)
		end_child(fake->child);
	wss_guest_free(fake->guest);
	free(fake);
}

/* A clock that advances only when somebody waits for it, and a little each time it is read. */
static struct {
	uint64_t now_ns;
	uint64_t suspended_ns;
	uint64_t event_ns; /* 0: none */
	void (*event)(void *opaque);
	void *opaque;
} virtual_clock;

static inline uint64_t virtual_now_ns(void *unused)
{
	(void)unused;
	return virtual_clock.now_ns += 1000;
}

static inline uint64_t virtual_suspended_ns(void *unused)
{
	(void)unused;
	return virtual_clock.suspended_ns;
}

static inline void virtual_sleep_until_ns(void *unused, uint64_t when_ns)
{
	(void)unused;
	if (virtual_clock.event_ns && when_ns >= virtual_clock.event_ns) {
		if (virtual_clock.now_ns < virtual_clock.event_ns)
			virtual_clock.now_ns = virtual_clock.event_ns;
		virtual_clock.event_ns = 0;
		virtual_clock.event(virtual_clock.opaque);
	}
	if (!wss_stop_requested() && virtual_clock.now_ns < when_ns)
		virtual_clock.now_ns = when_ns;
}

/* Time starts at 1000 s. */
static inline void virtual_clock_start(void)
{
	static const struct wss_clock_source source = {.now_ns = virtual_now_ns,
						       .sleep_until_ns = virtual_sleep_until_ns,
						       .suspended_ns = virtual_suspended_ns};

	virtual_clock.now_ns = 1000 * WSS_NS_PER_S;
	virtual_clock.event_ns = virtual_clock.suspended_ns = 0;
	wss_clock_inject(&source);
}

/* Calls event after that time has passed. */
static inline void virtual_clock_at(uint64_t after_ns, void (*event)(void *opaque), void *opaque)
{
	virtual_clock.event_ns = virtual_clock.now_ns + after_ns;
	virtual_clock.event = event;
	virtual_clock.opaque = opaque;
}

/* The method that measures nothing. */
struct null_tracker {
	struct wss_tracker base;
	struct fake *fake;
	uint64_t bytes;
};

static inline struct fake *null_fake(struct wss_tracker *tracker)
{
	return ((struct null_tracker *)tracker)->fake;
}

static inline int null_probe(const struct wss_host *host, struct wss_guest *guest,
			     struct wss_error *err)
{
	(void)host;
	(void)guest;
	(void)err;
	return 0;
}

extern const struct wss_tracker_ops null_method, dear_method, online_method, careful_method;

static inline int null_open(const struct wss_host *host, struct wss_guest *guest,
			    const struct wss_track_options *options,
			    struct wss_tracker **ret_tracker, struct wss_error *err)
{
	struct null_tracker *null = calloc(1, sizeof(*null));

	(void)host;
	(void)options;
	(void)err;
	assert_non_null(null);
	assert_true(guest->process.clear_refs >= 0);
	null->base.ops = &null_method;
	null->fake = guest->source;
	null->fake->opens++;
	*ret_tracker = &null->base;
	return 0;
}

static inline int dear_open(const struct wss_host *host, struct wss_guest *guest,
			    const struct wss_track_options *options,
			    struct wss_tracker **ret_tracker, struct wss_error *err)
{
	null_open(host, guest, options, ret_tracker, err);
	(*ret_tracker)->ops = &dear_method;
	return 0;
}

static inline int online_open(const struct wss_host *host, struct wss_guest *guest,
			      const struct wss_track_options *options,
			      struct wss_tracker **ret_tracker, struct wss_error *err)
{
	null_open(host, guest, options, ret_tracker, err);
	(*ret_tracker)->ops = &online_method;
	return 0;
}

static inline int careful_open(const struct wss_host *host, struct wss_guest *guest,
			       const struct wss_track_options *options,
			       struct wss_tracker **ret_tracker, struct wss_error *err)
{
	null_open(host, guest, options, ret_tracker, err);
	(*ret_tracker)->ops = &careful_method;
	return 0;
}

static inline bool careful_spoilt(const struct wss_tracker *tracker)
{
	struct fake *fake = ((const struct null_tracker *)tracker)->fake;

	if (!fake->spoilt_times)
		return false;
	fake->spoilt_times--;
	return true;
}

static inline bool careful_settle(struct wss_tracker *tracker, struct wss_sample *sample)
{
	struct fake *fake = null_fake(tracker);

	if (fake->settle_steps) {
		fake->settle_steps--;
		return false;
	}
	wss_sample_note(sample, "settled");
	return true;
}

static inline int null_predict(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
			       struct wss_error *err)
{
	(void)err;
	ret_prediction->stall_ns = null_fake(tracker)->predict_ns;
	ret_prediction->faults = null_fake(tracker)->predict_faults;
	return 0;
}

static inline int null_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	(void)tracker;
	(void)err;
	return 0;
}

static inline int online_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	(void)tracker;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "QEMU has to answer");
}

static inline int null_begin(struct wss_tracker *tracker, struct wss_span *ret_span,
			     struct wss_error *err)
{
	struct fake *fake = null_fake(tracker);

	fake->begins++;
	fake->state_in_begin = fake_state(fake);
	((struct null_tracker *)tracker)->bytes = 0;
	ret_span->start_ns = wss_clock_now_ns();
	virtual_clock.now_ns += fake->begin_ns;
	ret_span->end_ns = wss_clock_now_ns();
	return fake_error(fake->begin_fails, "begin", err);
}

/* The set grows by a page with each poll, on top of what the test sets. */
static inline int null_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
			    struct wss_error *err)
{
	struct null_tracker *null = (struct null_tracker *)tracker;
	struct fake *fake = null->fake;
	uint64_t start_ns = wss_clock_now_ns();

	fake->polls++;
	fake->state_in_poll = fake_state(fake);
	null->bytes += FAKE_PAGE;
	virtual_clock.now_ns += fake->poll_ns;
	*ret_reading = (struct wss_reading){
		.span = {start_ns, wss_clock_now_ns()},
		.wss_bytes = fake->wss_bytes + null->bytes,
		.low_bytes = fake->wss_bytes + null->bytes,
		.high_bytes = fake->wss_bytes + null->bytes + fake->unsure_bytes,
		.granularity_bytes = FAKE_PAGE,
	};
	if (fake->is_idle)
		ret_reading->wss_bytes = ret_reading->low_bytes = ret_reading->high_bytes = 0;
	if (fake->is_last_poll_gone)
		fake_kill(fake);
	return fake_error(fake->poll_fails, "poll", err);
}

static inline void null_close(struct wss_tracker *tracker)
{
	if (tracker) {
		null_fake(tracker)->closes++;
		null_fake(tracker)->close_deadline_ns =
			wss_deadline_at_ns(null_fake(tracker)->guest->deadline);
	}
	free(tracker);
}

#define NULL_METHOD                                                                               \
	.summary = "measures nothing", .observes = WSS_OBSERVES_ACCESSES, .granularity = "4 KiB", \
	.probe = null_probe, .predict = null_predict, .begin = null_begin, .poll = null_poll,     \
	.close = null_close

const struct wss_tracker_ops null_method = {
	NULL_METHOD,
	.name = "null",
	.cheap_poll = true,
	.open = null_open,
	.check_stopped = null_check_stopped,
};

/* Like refs: polls are expensive. */
const struct wss_tracker_ops dear_method = {
	NULL_METHOD,
	.name = "dear",
	.cheap_poll = false,
	.open = dear_open,
	.check_stopped = null_check_stopped,
};

/* Like mmu without debugfs: a poll needs QEMU's answer. */
const struct wss_tracker_ops online_method = {
	NULL_METHOD,
	.name = "online",
	.cheap_poll = true,
	.open = online_open,
	.check_stopped = online_check_stopped,
};

/* Like mmu at 4 KiB: a window may have to begin again, and has to settle after its end. */
const struct wss_tracker_ops careful_method = {
	NULL_METHOD,
	.name = "careful",
	.cheap_poll = true,
	.open = careful_open,
	.spoilt = careful_spoilt,
	.settle = careful_settle,
	.check_stopped = null_check_stopped,
};

/* Counts the descriptors that this process has open. */
static inline unsigned count_fds(void)
{
	wss_auto_dir DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n;
}

/* Whether one of the sample's notes contains this text. */
static inline bool has_note(const struct wss_sample *sample, const char *part)
{
	for (size_t i = 0; i < sample->n_notes; i++)
		if (strstr(sample->notes[i], part))
			return true;
	return false;
}
