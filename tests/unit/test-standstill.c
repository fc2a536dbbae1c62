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

	(void)unused;
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
	(void)unused;
	wss_process_release(&process);
	wss_root_close(&root);
	remove_tree(tree);
	return 0;
}

static void put_thread(int tid, const char *name, char state, uint64_t run_ms, uint64_t wait_ms, const char *cgroups)
{
	char path[PATH_MAX], text[128];

	put_text(tree, make_path(path, "proc/" PID "/task/%d/comm", tid), name);
	snprintf(text, sizeof(text), "%d (%.*s) %c 1 1 1\n", tid, (int)strcspn(name, "\n"), name, state);
	put_text(tree, make_path(path, "proc/" PID "/task/%d/stat", tid), text);
	snprintf(text, sizeof(text), "%llu %llu 9\n", (unsigned long long)(run_ms * WSS_NS_PER_MS),
		 (unsigned long long)(wait_ms * WSS_NS_PER_MS));
	put_text(tree, make_path(path, "proc/" PID "/task/%d/schedstat", tid), text);
	put_text(tree, make_path(path, "proc/" PID "/task/%d/cgroup", tid), cgroups);
}

static enum wss_standstill_cause now(void)
{
	return wss_standstill_now(&root, &process);
}

/* The vCPU's thread decides: QEMU's main thread may sleep in any group. */
static void test_frozen(void **unused)
{
	(void)unused;
	put_thread(4711, "qemu-system-x86\n", 'S', 9, 9, "0::/other\n");
	put_thread(4712, "CPU 0/KVM\n", 'S', 1, 1, "4:cpu:/x\n0::/machine/guest/vcpu0\n");
	put_text(tree, "sys/fs/cgroup/machine/guest/vcpu0/cgroup.events", "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/other/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_text(tree, "sys/fs/cgroup/machine/guest/vcpu0/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	/* A thread that runs is not frozen yet. */
	put_thread(4712, "CPU 0/KVM\n", 'R', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_thread(4712, "CPU 0/KVM\n", 't', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_TRACER);
	put_thread(4712, "CPU 0/KVM\n", 'T', 1, 1, "0::/machine/guest/vcpu0\n");
	assert_int_equal(now(), WSS_STANDSTILL_SIGNAL);
}

static void test_frozen_in_a_hybrid_hierarchy(void **unused)
{
	(void)unused;
	put_thread(4712, "CPU 0/TCG\n", 'S', 1, 1, "9:freezer:/x\n0::/guest\n");
	put_text(tree, "sys/fs/cgroup/unified/guest/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	put_text(tree, "sys/fs/cgroup/unified/guest/cgroup.events", "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/freezer/x/freezer.state", "FROZEN\n");
	assert_int_equal(now(), WSS_STANDSTILL_FREEZER);
	put_text(tree, "sys/fs/cgroup/freezer/x/freezer.state", "THAWED\n");
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
}

/* Time wanted and got, in a second of which the thread got run_ms and waited for wait_ms. */
static uint64_t lost_ms(char state, uint64_t run_ms, uint64_t wait_ms, enum wss_standstill_cause *ret_cause)
{
	struct wss_standstill standstill = { .n = 0 };
	uint64_t start_ns = 50 * WSS_NS_PER_S;

	put_thread(4712, "CPU 0/KVM\n", 'R', 1000, 1000, V1);
	wss_standstill_begin(&standstill, &root, &process, start_ns);
	put_thread(4712, "CPU 0/KVM\n", state, 1000 + run_ms, 1000 + wait_ms, V1);
	wss_standstill_look_at_all(&standstill, start_ns + WSS_NS_PER_S);
	return wss_standstill_lost_ns(&standstill, ret_cause) / WSS_NS_PER_MS;
}

/* Only a limit that has taken effect tells throttling from competition. */
static void test_throttled(void **unused)
{
	enum wss_standstill_cause cause;

	(void)unused;
	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/guest/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
	assert_int_equal(lost_ms('R', 10, 990, &cause), 0);
	assert_int_equal(cause, WSS_STANDSTILL_NONE);
	put_text(tree, "sys/fs/cgroup/cpu,cpuacct/machine/cpu.stat", "nr_periods 7\nnr_throttled 5\n");
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

/* The only vCPU of many that is stopped shows in some windows, whichever it is. */
static void test_many_vcpus_take_turns(void **unused)
{
	(void)unused;
	for (int stopped = 0; stopped < 9; stopped++) {
		struct wss_standstill standstill = { .n = 0 };
		unsigned n = 0;

		for (int i = 0; i < 9; i++)
			put_thread(4720 + i, "CPU 0/KVM\n", i == stopped ? 'T' : 'R', 100, 1, "");
		for (uint64_t ms = 0; ms < 9; ms++) {
			enum wss_standstill_cause cause;
			uint64_t now_ns = WSS_NS_PER_S + ms * WSS_NS_PER_MS;

			wss_standstill_begin(&standstill, &root, &process, now_ns);
			for (unsigned look = 1; look <= 2 * WSS_STANDSTILL_THREADS_MAX; look++)
				wss_standstill_look(&standstill, now_ns + look * WSS_NS_PER_S);
			n += wss_standstill_lost_ns(&standstill, &cause) > 0;
		}
		assert_int_equal(n, WSS_STANDSTILL_THREADS_MAX);
	}
}

/* Without names the thread that ran most is the vCPU; a guest has several, and a vanished one is no stop. */
static void test_threads(void **unused)
{
	struct wss_standstill standstill = { .n = 0 };
	enum wss_standstill_cause cause;
	char path[PATH_MAX], full[PATH_MAX];

	(void)unused;
	assert_int_equal(now(), WSS_STANDSTILL_NONE);
	put_thread(4711, "qemu-system-x86\n", 'S', 9, 9, "");
	put_thread(4712, "qemu-system-x86\n", 'T', 99, 9, "");
	assert_int_equal(now(), WSS_STANDSTILL_SIGNAL);
	for (int i = 0; i < 9; i++)
		put_thread(4720 + i, "CPU 0/KVM\n", 'S', 1, 1, "");
	wss_standstill_begin(&standstill, &root, &process, WSS_NS_PER_S);
	assert_int_equal(standstill.n, WSS_STANDSTILL_THREADS_MAX);
	assert_int_equal(standstill.now, WSS_STANDSTILL_NONE);
	make_path(full, "%s/%s", tree, make_path(path, "proc/" PID "/task/%d", (int)standstill.threads[0].tid));
	remove_tree(strdup(full));
	wss_standstill_look_at_all(&standstill, 2 * WSS_NS_PER_S);
	assert_int_equal(wss_standstill_lost_ns(&standstill, &cause), 0);
	wss_standstill_begin(&standstill, &root, &process, 3 * WSS_NS_PER_S);
	assert_int_equal(standstill.n, WSS_STANDSTILL_THREADS_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_frozen),
		TEST(test_frozen_in_a_hybrid_hierarchy),
		TEST(test_throttled),
		TEST(test_threads),
		TEST(test_many_vcpus_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
