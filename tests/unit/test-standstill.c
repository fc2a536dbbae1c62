/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "host/standstill.h"

#define PID "4711"
#define V1 "9:freezer:/machine/guest\n3:cpu,cpuacct:/machine/guest\n1:name=systemd:/\n"

static struct wss_root root;
static struct wss_process process;
static char *tree;

static int set_up(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	tree = make_tree();
	process = (struct wss_process)WSS_PROCESS_INIT;
	put_text(tree, "proc/" PID "/stat", "");
	assert_int_equal(wss_root_open(tree, &root, &err), 0);
	process.proc.dirfd = wss_root_openat(&root, "proc/" PID, O_PATH | O_DIRECTORY);
	assert_true(process.proc.dirfd >= 0);
	return 0;
}

static int tear_down(void **unused)
{
	wss_process_release(&process);
	wss_root_close(&root);
	remove_tree(tree);
	return 0;
}

static void put_counters(int tid, uint64_t run_ms, uint64_t wait_ms, unsigned slices)
{
	char path[PATH_MAX], text[96];

	snprintf(text, sizeof(text), "%llu %llu %u\n", (unsigned long long)(run_ms * WSS_NS_PER_MS),
		 (unsigned long long)(wait_ms * WSS_NS_PER_MS), slices);
	put_text(tree, make_path(path, "proc/" PID "/task/%d/schedstat", tid), text);
}

static void put_thread(int tid, const char *name, char state, uint64_t run_ms, uint64_t wait_ms,
		       const char *cgroups)
{
	char path[PATH_MAX], text[128];

	put_text(tree, make_path(path, "proc/" PID "/task/%d/comm", tid), name);
	snprintf(text, sizeof(text), "%d (%.*s) %c 1 1 1\n", tid, (int)strcspn(name, "\n"), name,
		 state);
	put_text(tree, make_path(path, "proc/" PID "/task/%d/stat", tid), text);
	put_counters(tid, run_ms, wait_ms, 9);
	put_text(tree, make_path(path, "proc/" PID "/task/%d/cgroup", tid), cgroups);
}

static enum wss_standstill_cause now(void)
{
	return wss_standstill_now(&root, &process);
}

/* The vCPU's thread decides: QEMU's main thread may sleep in any group. */
TEST(test_frozen)
{
	put_thread(4711, "qemu-system-x86\n", 'S', 9, 9, "0::/other\n");
	put_thread(4712, "CPU 0/KVM\n", 'S', 1, 1, "4:cpu:/x\n0::/machine/guest/vcpu0\n");
	put_text(tree, "sys/fs/cgroup/machine/guest/vcpu0/cgroup.events",
		 "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/other/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_text(tree, "sys/fs/cgroup/machine/guest/vcpu0/cgroup.events",
		 "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	/* A thread that runs is not frozen yet. */
	put_thread(4712, "CPU 0/KVM\n", 'R', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_thread(4712, "CPU 0/KVM\n", 't', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_TRACER);
	put_thread(4712, "CPU 0/KVM\n", 'T', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_SIGNAL);
}

TEST(test_frozen_in_a_hybrid_hierarchy)
{
	put_thread(4712, "CPU 0/TCG\n", 'S', 1, 1, "9:freezer:/x\n0::/guest\n");
	put_text(tree, "sys/fs/cgroup/unified/guest/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	put_text(tree, "sys/fs/cgroup/unified/guest/cgroup.events", "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/freezer/x/freezer.state", "FROZEN\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	put_text(tree, "sys/fs/cgroup/freezer/x/freezer.state", "THAWED\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
}

/* Time wanted and got, in a second of which the thread got run_ms in many slices and waited for wait_ms. */
static uint64_t lost_ms(char state, uint64_t run_ms, uint64_t wait_ms,
			enum wss_standstill_cause *ret_cause)
{
	struct wss_standstill standstill = {.n = 0};
	uint64_t start_ns = 50 * WSS_NS_PER_S;

	put_thread(4712, "CPU 0/KVM\n", 'R', 1000, 1000, V1);
	wss_standstill_begin(&standstill, &root, &process, false, start_ns);
	put_thread(4712, "CPU 0/KVM\n", state, 1000 + run_ms, 1000 + wait_ms, V1);
	if (run_ms)
		put_counters(4712, 1000 + run_ms, 1000 + wait_ms, 1000);
	wss_standstill_look_at_all(&standstill, start_ns + WSS_NS_PER_S);
	return wss_standstill_lost_ns(&standstill, ret_cause) / WSS_NS_PER_MS;
}

/* Only a limit that has taken effect tells throttling from competition. */
TEST(test_throttled)
{
	enum wss_standstill_cause cause;

	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/guest/cpu.stat",
		 "nr_periods 0\nnr_throttled 0\n");
	assert_int_equal(lost_ms('R', 10, 990, &cause), 0);
	assert_int_equal(cause, WSS_STANDSTILL_NONE);
	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/cpu.stat",
		 "nr_periods 7\nnr_throttled 5\n");
	assert_int_equal(lost_ms('R', 10, 990, &cause), 990);
	assert_int_equal(cause, WSS_STANDSTILL_LIMIT);
	/* The kernel has not counted the wait yet; or counts one that began before. */
	assert_int_equal(lost_ms('R', 0, 0, &cause), 1000);
	assert_int_equal(lost_ms('S', 5, 7000, &cause), 1000);
	/* It sleeps, runs a tenth of the time that it wants to, or wanted little. */
	assert_int_equal(lost_ms('S', 0, 0, &cause), 0);
	assert_int_equal(lost_ms('R', 100, 880, &cause), 0);
	assert_int_equal(lost_ms('S', 1, 30, &cause), 0);
}

/* Looks at 3 s in which the only vCPU of four that is not idle gets run_ms of each second, in so many slices, and waits. */
static uint64_t starved_ms(uint64_t run_ms, uint64_t wait_ms, unsigned slices)
{
	struct wss_standstill standstill = {.n = 0};
	enum wss_standstill_cause cause;

	for (int i = 0; i < 4; i++)
		put_thread(4712 + i, "CPU 0/KVM\n", i == 2 ? 'R' : 'S', 0, 0, V1);
	put_counters(4714, 0, 0, 0);
	wss_standstill_begin(&standstill, &root, &process, false, WSS_NS_PER_S);
	for (unsigned s = 1; s <= 3; s++) {
		put_counters(4714, s * run_ms, s * wait_ms, s * slices);
		wss_standstill_look(&standstill, (1 + s) * WSS_NS_PER_S);
	}
	wss_standstill_lost_ns(&standstill, &cause);
	assert_int_equal(cause, standstill.lost_ns[WSS_STANDSTILL_STARVED] ? WSS_STANDSTILL_STARVED
									   : WSS_STANDSTILL_NONE);
	return standstill.lost_ns[WSS_STANDSTILL_STARVED] / WSS_NS_PER_MS;
}

/* Figures of Linux 6.18, of threads beside one or eight busy ones on their CPU, which has a tick. */
TEST(test_starved_by_others)
{
	/* cpu.shares 2, SCHED_IDLE, nice 19 */
	assert_int_equal(starved_ms(4, 996, 1), 2988);
	assert_int_equal(starved_ms(4, 950, 2), 2850);
	assert_int_equal(starved_ms(0, 0, 0), 3000);
	put_text(tree, "sys/devices/system/cpu/nohz_full", "2-7\n");
	assert_int_equal(starved_ms(0, 0, 0), 0);
	put_text(tree, "sys/devices/system/cpu/nohz_full", "(null)\n");
	assert_int_equal(starved_ms(14, 980, 5), 2940);
	/* An equal of one, of eight, of fifteen others; one that wakes 1000 times a second beside eight. */
	assert_int_equal(starved_ms(460, 540, 130), 0);
	assert_int_equal(starved_ms(78, 920, 27), 0);
	assert_int_equal(starved_ms(62, 938, 20), 0);
	assert_int_equal(starved_ms(8, 990, 228), 0);
}

/*
 * Windows of 100 ms, 50 ms apart, of a vCPU that gets run_ms of each 50 ms in slices and waits. Returns the number of those
 * of which it lost more than half, of n.
 */
static unsigned short_windows_lost(unsigned n, uint64_t run_ms, uint64_t wait_ms, unsigned slices,
				   enum wss_standstill_cause *ret_cause)
{
	struct wss_standstill standstill = {.n = 0};
	unsigned lost = 0, steps = 0;

	put_thread(4712, "CPU 0/KVM\n", 'R', 0, 0, V1);
	*ret_cause = WSS_STANDSTILL_NONE;
	for (unsigned i = 0; i < n; i++) {
		enum wss_standstill_cause cause;

		put_counters(4712, steps * run_ms, steps * wait_ms, steps * slices);
		wss_standstill_begin(&standstill, &root, &process, false,
				     WSS_NS_PER_S + steps * 50 * WSS_NS_PER_MS);
		steps += 2;
		put_counters(4712, steps * run_ms, steps * wait_ms, steps * slices);
		wss_standstill_look_at_all(&standstill, WSS_NS_PER_S + steps * 50 * WSS_NS_PER_MS);
		if (wss_standstill_lost_ns(&standstill, &cause) > 50 * WSS_NS_PER_MS) {
			lost++;
			*ret_cause = cause;
		}
		steps++;
	}
	return lost;
}

/* None is long enough to be judged by itself: the first 250 ms are not known, all others are. */
TEST(test_short_windows)
{
	enum wss_standstill_cause cause;

	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/guest/cpu.stat",
		 "nr_periods 0\nnr_throttled 0\n");
	assert_int_equal(short_windows_lost(1, 1, 49, 1, &cause), 0);
	assert_int_equal(short_windows_lost(20, 1, 49, 1, &cause), 19);
	assert_int_equal(cause, WSS_STANDSTILL_STARVED);
	/* It competes, or is idle. */
	assert_int_equal(short_windows_lost(20, 20, 30, 10, &cause), 0);
	assert_int_equal(short_windows_lost(20, 0, 1, 1, &cause), 0);
	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/guest/cpu.stat",
		 "nr_periods 7\nnr_throttled 5\n");
	assert_in_range(short_windows_lost(20, 1, 49, 1, &cause), 17, 18);
	assert_int_equal(cause, WSS_STANDSTILL_LIMIT);
	assert_int_equal(short_windows_lost(20, 20, 30, 10, &cause), 0);
}

/* As many vCPUs as are looked at, throttled from 1010 to 1490 ms: all counters are read at each look. */
TEST(test_vcpus_throttled_for_less_than_their_turns)
{
	struct wss_standstill standstill = {.n = 0};
	enum wss_standstill_cause cause;
	uint64_t lost_ms;

	put_text(tree, "sys/fs/cgroup/cpu/guest/cpu.stat", "nr_throttled 4\n");
	for (uint64_t ms = 0; ms <= 2000; ms += 100) {
		bool after = ms > 1490, within = ms > 1010 && !after;
		uint64_t run_ms = within  ? 1010
				  : after ? ms - 480
					  : ms,
			 now_ns = WSS_NS_PER_S + ms * WSS_NS_PER_MS;

		for (int i = 0; i < WSS_STANDSTILL_THREADS_MAX; i++)
			put_thread(4720 + i, "CPU 0/KVM\n", 'R', run_ms, after ? 480 : 0,
				   "3:cpu:/guest\n");
		if (ms)
			wss_standstill_look(&standstill, now_ns);
		else
			wss_standstill_begin(&standstill, &root, &process, false, now_ns);
	}
	lost_ms = wss_standstill_lost_ns(&standstill, &cause) / WSS_NS_PER_MS;
	assert_true(lost_ms >= 200 && lost_ms <= 480);
	assert_int_equal(cause, WSS_STANDSTILL_LIMIT);
}

/*
 * Time that counts as lost in 9 s of looks 100 ms apart, if each of so many vCPUs runs for run_ms at the
 * beginning of each period.
 * The kernel counts a wait when it ends.
 */
static uint64_t vcpus_lost_ms(int vcpus, unsigned run_ms, unsigned period_ms)
{
	struct wss_standstill standstill = {.n = 0};
	enum wss_standstill_cause cause;

	for (unsigned ms = 0; ms <= 9000; ms += 100) {
		unsigned n = ms / period_ms, within_ms = ms % period_ms;

		for (int i = 0; i < vcpus; i++)
			put_thread(4720 + i, "CPU 0/KVM\n", 'R',
				   n * run_ms + (within_ms < run_ms ? within_ms : run_ms),
				   n * (period_ms - run_ms), "3:cpu:/guest\n0::/guest\n");
		if (ms)
			wss_standstill_look(&standstill, WSS_NS_PER_S + ms * WSS_NS_PER_MS);
		else
			wss_standstill_begin(&standstill, &root, &process, false, WSS_NS_PER_S);
	}
	return wss_standstill_lost_ns(&standstill, &cause) / WSS_NS_PER_MS;
}

static uint64_t lost_to_quota_ms(unsigned run_ms, unsigned period_ms)
{
	return vcpus_lost_ms(1, run_ms, period_ms);
}

/* A quota is healthy, also one whose period is long, or which had to wait longer for its turn. */
TEST(test_quota)
{
	static const char *const files[] = {"cpu/guest/cpu.cfs_period_us", "guest/cpu.max"};
	static const char *const texts[] = {"1000000\n", "500000 1000000\n"};
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		put_text(tree,
			 make_path(path, "sys/fs/cgroup/%s",
				   i ? "guest/cpu.stat" : "cpu/guest/cpu.stat"),
			 "nr_throttled 4\n");
		assert_int_equal(lost_to_quota_ms(40, 230), 0);
		assert_true(lost_to_quota_ms(10, 300) > 5000);
		put_text(tree, make_path(path, "sys/fs/cgroup/%s", files[i]), texts[i]);
		assert_int_equal(lost_to_quota_ms(500, 1000), 0);
		assert_int_equal(lost_to_quota_ms(200, 1000), 0);
		assert_true(lost_to_quota_ms(10, 3000) > 7000);
		remove_tree(strdup(make_path(path, "%s/sys", tree)));
	}
}

/* Busy vCPUs share a quota, of 400 ms here: the more there are, the less each gets. */
TEST(test_vcpus_share_a_quota)
{
	put_text(tree, "sys/fs/cgroup/cpu/guest/cpu.stat", "nr_throttled 4\n");
	put_text(tree, "sys/fs/cgroup/cpu/guest/cpu.cfs_period_us", "1000000\n");
	for (int vcpus = 1; vcpus <= 8; vcpus *= 2)
		assert_int_equal(vcpus_lost_ms(vcpus, 400 / (unsigned)vcpus, 1000), 0);
	/* A quota of 10 ms, shared or for each. */
	assert_true(vcpus_lost_ms(4, 2, 1000) > 5000);
	assert_true(vcpus_lost_ms(4, 10, 1000) > 5000);
	put_text(tree, "sys/fs/cgroup/cpu/guest/cpu.cfs_period_us", "100000\n");
	assert_int_equal(vcpus_lost_ms(4, 10, 100), 0);
	assert_true(vcpus_lost_ms(4, 1, 100) > 5000);
}

/*
 * Time that counts as blocked in 4 s of looks 100 ms apart at two vCPUs, one of them idle. The other is in this state,
 * in which it got no CPU, from 1 to 3 s, and else sleeps in this other state while it is looked at, in as many slices.
 */
static uint64_t blocked_by(enum wss_standstill_cause by, char within, char without, unsigned slices,
			   enum wss_standstill_cause *ret_cause)
{
	struct wss_standstill standstill = {.n = 0};
	unsigned n = 0;

	for (unsigned ms = 0; ms <= 4000; ms += 100) {
		bool blocked = ms >= 1000 && ms < 3000;

		put_thread(4720, "CPU 0/KVM\n", 'S', 7, 0, "0::/guest\n");
		put_thread(4721, "CPU 1/KVM\n", blocked ? within : without, 0, 0, "0::/guest\n");
		n += blocked ? 0 : slices;
		put_counters(4721, n, 0, n);
		if (ms)
			wss_standstill_look(&standstill, WSS_NS_PER_S + ms * WSS_NS_PER_MS);
		else
			wss_standstill_begin(&standstill, &root, &process,
					     by == WSS_STANDSTILL_KEPT, WSS_NS_PER_S);
	}
	wss_standstill_lost_ns(&standstill, ret_cause);
	return standstill.lost_ns[by] / WSS_NS_PER_MS;
}

static uint64_t blocked_ms(char within, char without, unsigned slices,
			   enum wss_standstill_cause *ret_cause)
{
	return blocked_by(WSS_STANDSTILL_BLOCKED, within, without, slices, ret_cause);
}

/* A fault that waits for its cgroup's limit, a disk or a server is no idle vCPU. */
TEST(test_blocked)
{
	enum wss_standstill_cause cause;
	uint64_t ms = blocked_ms('D', 'S', 60, &cause);

	assert_true(ms >= 1900 && ms <= 2100);
	assert_int_equal(cause, WSS_STANDSTILL_BLOCKED);
	/* An idle guest, one that is seen in state D at each look but goes on between them, and one that is idle then. */
	assert_int_equal(blocked_ms('S', 'S', 1, &cause), 0);
	assert_int_equal(cause, WSS_STANDSTILL_NONE);
	assert_true(blocked_ms('S', 'D', 20, &cause) == 0);
	/* So slow a disk that it has a few page-ins between two looks, and nothing else: it stands still all the time. */
	ms = blocked_ms('D', 'D', 3, &cause);
	assert_true(ms >= 3900 && ms <= 4000);
}

/* Who holds the lock that it waits for may be throttled. */
TEST(test_blocked_for_less_than_a_turn)
{
	enum wss_standstill_cause cause;

	put_text(tree, "sys/fs/cgroup/guest/cpu.stat", "nr_throttled 4\n");
	put_text(tree, "sys/fs/cgroup/guest/cpu.max", "400000 2000000\n");
	assert_int_equal(blocked_ms('D', 'S', 60, &cause), 0);
	put_text(tree, "sys/fs/cgroup/guest/cpu.max", "400000 1000000\n");
	assert_in_range(blocked_ms('D', 'S', 60, &cause), 1900, 2100);
	assert_int_equal(cause, WSS_STANDSTILL_BLOCKED);
}

/* Its cgroup is frozen, which a thread in state D may be, too. */
TEST(test_frozen_is_not_blocked)
{
	enum wss_standstill_cause cause;

	put_text(tree, "sys/fs/cgroup/guest/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(blocked_ms('D', 'S', 60, &cause), 0);
	assert_int_equal(cause, WSS_STANDSTILL_FREEZER);
}

/* Whoever serves a userfaultfd lets vCPUs sleep as if they were idle. */
TEST(test_blocked_on_a_userfaultfd)
{
	enum wss_standstill_cause cause;

	put_text(tree, "proc/" PID "/task/4721/wchan", "kvm_vcpu_block");
	assert_int_equal(blocked_ms('S', 'R', 60, &cause), 0);
	put_text(tree, "proc/" PID "/task/4721/wchan", "handle_userfault");
	assert_true(blocked_ms('S', 'R', 60, &cause) >= 1900);
	assert_int_equal(cause, WSS_STANDSTILL_BLOCKED);
}

/* A vCPU that waits for another thread of QEMU could not run; one that is idle under KVM, or under TCG, could. */
TEST(test_kept_by_qemu)
{
	static const char *const names[] = {"futex_do_wait", "futex_wait_queue",
					    "futex_wait_queue_me"};
	static const char usual[] = "qemu-system-x86_64\0-name\0guest=irqchip=off";
	static const char emulated[] = "qemu-system-x86_64\0-machine\0pc,kernel_irqchip=off";
	enum wss_standstill_cause cause;
	uint64_t ms;

	put_bytes(tree, "proc/" PID "/cmdline", usual, sizeof(usual));
	put_text(tree, "proc/" PID "/task/4720/wchan", "kvm_vcpu_block");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put_text(tree, "proc/" PID "/task/4721/wchan", names[i]);
		ms = blocked_by(WSS_STANDSTILL_KEPT, 'S', 'R', 60, &cause);
		assert_true(ms >= 1900 && ms <= 2100);
		assert_int_equal(cause, WSS_STANDSTILL_KEPT);
	}
	/* It takes QEMU's lock again and again, but goes on. */
	assert_int_equal(blocked_by(WSS_STANDSTILL_KEPT, 'R', 'S', 20, &cause), 0);
	assert_int_equal(blocked_ms('S', 'R', 60, &cause), 0);
	assert_int_equal(cause, WSS_STANDSTILL_NONE);
	put_text(tree, "proc/" PID "/task/4721/wchan", "kvm_vcpu_block");
	assert_int_equal(blocked_by(WSS_STANDSTILL_KEPT, 'S', 'R', 60, &cause), 0);
	/* QEMU itself halts an idle vCPU. */
	put_text(tree, "proc/" PID "/task/4721/wchan", names[0]);
	put_bytes(tree, "proc/" PID "/cmdline", emulated, sizeof(emulated));
	assert_int_equal(blocked_by(WSS_STANDSTILL_KEPT, 'S', 'R', 60, &cause), 0);
}

/* A single page-in of a guest that is idle else may fall on a look. */
TEST(test_seen_in_state_d_once)
{
	struct wss_standstill standstill = {.n = 0};
	enum wss_standstill_cause cause;

	put_thread(4721, "CPU 0/KVM\n", 'S', 0, 0, "0::/guest\n");
	wss_standstill_begin(&standstill, &root, &process, false, WSS_NS_PER_S);
	for (unsigned i = 1; i <= 9; i++) {
		put_thread(4721, "CPU 0/KVM\n", i == 5 ? 'D' : 'S', 0, 0, "0::/guest\n");
		put_counters(4721, 2 * i, 0, 2 * i);
		wss_standstill_look(&standstill, WSS_NS_PER_S + i * 100 * WSS_NS_PER_MS);
	}
	assert_int_equal(wss_standstill_lost_ns(&standstill, &cause), 0);
}

/* The only vCPU of many that is stopped shows in some windows, whichever it is. */
TEST(test_many_vcpus_take_turns)
{
	for (int stopped = 0; stopped < 9; stopped++) {
		struct wss_standstill standstill = {.n = 0};
		unsigned n = 0;

		for (int i = 0; i < 9; i++)
			put_thread(4720 + i, "CPU 0/KVM\n", i == stopped ? 'T' : 'S', 100, 1, "");
		for (uint64_t ms = 0; ms < 9; ms++) {
			enum wss_standstill_cause cause;
			uint64_t now_ns = WSS_NS_PER_S + ms * WSS_NS_PER_MS;

			wss_standstill_begin(&standstill, &root, &process, false, now_ns);
			for (unsigned look = 1; look <= 2 * WSS_STANDSTILL_THREADS_MAX; look++)
				wss_standstill_look(&standstill, now_ns + look * WSS_NS_PER_S);
			n += wss_standstill_lost_ns(&standstill, &cause) > 0;
		}
		assert_int_equal(n, WSS_STANDSTILL_THREADS_MAX);
	}
}

/* Without names the thread that ran most is the vCPU; a guest has several, and a vanished one is no stop. */
TEST(test_threads)
{
	struct wss_standstill standstill = {.n = 0};
	enum wss_standstill_cause cause;
	char path[PATH_MAX], full[PATH_MAX];

	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_thread(4711, "qemu-system-x86\n", 'S', 9, 9, "");
	put_thread(4712, "qemu-system-x86\n", 'T', 99, 9, "");
	assert_int_equal(now(), WSS_STANDSTILL_SIGNAL);
	for (int i = 0; i < 9; i++)
		put_thread(4720 + i, "CPU 0/KVM\n", 'S', 1, 1, "");
	wss_standstill_begin(&standstill, &root, &process, false, WSS_NS_PER_S);
	assert_int_equal(standstill.n, WSS_STANDSTILL_THREADS_MAX);
	assert_int_equal(standstill.now, WSS_STANDSTILL_NONE);
	make_path(full, "%s/%s", tree,
		  make_path(path, "proc/" PID "/task/%d", (int)standstill.threads[0].tid));
	remove_tree(strdup(full));
	wss_standstill_look_at_all(&standstill, 2 * WSS_NS_PER_S);
	assert_int_equal(wss_standstill_lost_ns(&standstill, &cause), 0);
	wss_standstill_begin(&standstill, &root, &process, false, 3 * WSS_NS_PER_S);
	assert_int_equal(standstill.n, WSS_STANDSTILL_THREADS_MAX);
}

/* A window whose threads could not be found still has its end, and looks for them again. */
TEST(test_no_threads)
{
	struct wss_standstill standstill = {.n = 0};
	uint64_t now_ns = WSS_NS_PER_S;

	wss_standstill_begin(&standstill, &root, &process, false, now_ns);
	for (int i = 0; i < 3; i++) {
		assert_true(wss_standstill_next_ns(&standstill, WSS_NS_PER_S) > now_ns);
		now_ns += WSS_NS_PER_S / 10;
		wss_standstill_look(&standstill, now_ns);
	}
	assert_int_equal(standstill.n, 0);
	put_thread(4712, "CPU 0/KVM\n", 'T', 1, 1, "");
	wss_standstill_look(&standstill, now_ns += WSS_NS_PER_S / 10);
	wss_standstill_look(&standstill, now_ns += WSS_NS_PER_S / 10);
	assert_int_equal(standstill.now, WSS_STANDSTILL_SIGNAL);
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
