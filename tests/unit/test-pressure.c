/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signs of memory pressure, what they ask for, and the counters of QEMU's cgroup. */
#include "hosttest.h"

#include <stddef.h>

#include "history/pressure.h"
#include "host/vmm-cgroup.h"

#define MIB (1ULL << 20)
#define HALF WSS_PRESSURE_HALF_LIFE_S

static struct wss_pressure_counts counts_of(uint64_t value)
{
	struct wss_amount amount = wss_amount_of(value);

	return (struct wss_pressure_counts){amount, amount, amount, amount, amount};
}

static void add(struct wss_pressure *pressure, time_t time,
		const struct wss_pressure_counts *counts, uint64_t had_mib)
{
	assert_int_equal(wss_pressure_add(pressure, time, counts, had_mib * MIB), 0);
}

/* Each counter is a sign of its own, from its threshold on. */
TEST(test_kinds)
{
	static const struct {
		size_t offset;
		uint64_t least; /* within 100 s */
		unsigned kind;
	} rows[] = {
		{offsetof(struct wss_pressure_counts, swap_in_bytes), MIB, WSS_PRESSURE_SWAP_IN},
		/* m s / (1 + m s) = 1 % with s = 100 us. */
		{offsetof(struct wss_pressure_counts, major_faults), 10102, WSS_PRESSURE_FAULTS},
		{offsetof(struct wss_pressure_counts, oom_kills), 1, WSS_PRESSURE_OOM},
		{offsetof(struct wss_pressure_counts, stall_us), 1000000, WSS_PRESSURE_STALL},
		{offsetof(struct wss_pressure_counts, refaults), 10102, WSS_PRESSURE_REFAULTS},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint64_t less = 0; less < 2; less++) {
			struct wss_pressure pressure = {.n = 0};
			struct wss_pressure_counts counts = counts_of(5);
			struct wss_amount *one =
				(struct wss_amount *)((char *)&counts + rows[i].offset);

			add(&pressure, 1000, &counts, 100);
			assert_false(pressure.watched);
			one->value += rows[i].least - less;
			add(&pressure, 1100, &counts, 100);
			assert_true(pressure.watched);
			assert_int_equal(pressure.n, !less);
			if (!less)
				assert_int_equal(pressure.events[0].kinds, rows[i].kind);
			wss_pressure_free(&pressure);
		}
}

/* A counter that begins again, or is unknown for a while, is no sign; nor is the same time twice. */
TEST(test_resets)
{
	struct wss_pressure pressure = {.n = 0};
	struct wss_pressure_counts counts = counts_of(100), none = {.oom_kills = {.known = false}};

	add(&pressure, 1000, &counts, 100);
	counts = counts_of(0);
	add(&pressure, 1100, &counts, 100);
	add(&pressure, 1200, &none, 100);
	counts = counts_of(1ULL << 40);
	add(&pressure, 1300, &counts, 100);
	assert_int_equal(pressure.n, 0);
	counts = counts_of(1ULL << 41);
	add(&pressure, 1300, &counts, 100);
	assert_int_equal(pressure.n, 0);
	add(&pressure, 1400, &counts, 100);
	assert_int_equal(pressure.n, 1);
	/* Signs of one hour are one event, with the largest size that was too little. */
	counts = counts_of(1ULL << 42);
	add(&pressure, 1500, &counts, 300);
	counts = counts_of(1ULL << 43);
	add(&pressure, 1600, &counts, 200);
	assert_int_equal(pressure.n, 1);
	assert_int_equal(pressure.events[0].time, 1600);
	assert_int_equal(pressure.events[0].had_bytes, 300 * MIB);
	counts = counts_of(1ULL << 44);
	add(&pressure, 3700, &counts, 200);
	assert_int_equal(pressure.n, 2);
	wss_pressure_free(&pressure);
}

static struct wss_amount floor_of(unsigned kinds, uint64_t had_mib, uint64_t size_mib, time_t age)
{
	struct wss_pressure_event event = {
		.time = 1000, .kinds = kinds, .had_bytes = had_mib * MIB};
	struct wss_pressure pressure = {.n = 1, .events = &event};

	return wss_pressure_floor(&pressure, size_mib * MIB, 1000 + age, NULL);
}

TEST(test_floor)
{
	/* What it had, and a fifth more; what that adds halves. */
	assert_int_equal(floor_of(WSS_PRESSURE_SWAP_IN, 1000, 1000, 1).value / MIB, 1199);
	assert_int_equal(floor_of(WSS_PRESSURE_SWAP_IN, 1000, 1000, HALF).value / MIB, 1100);
	assert_int_equal(floor_of(WSS_PRESSURE_SWAP_IN, 1500, 1000, HALF).value / MIB, 1400);
	/* Three quarters of the half-life later it is less than a twentieth. */
	assert_false(floor_of(WSS_PRESSURE_SWAP_IN, 1000, 1000, HALF * 3).known);
	assert_false(floor_of(WSS_PRESSURE_SWAP_IN, 1500, 1000, WSS_PRESSURE_SPAN_S).known);
	/* It had less than is recommended, or much more. */
	assert_false(floor_of(WSS_PRESSURE_SWAP_IN, 700, 1000, 1).known);
	assert_false(floor_of(WSS_PRESSURE_FAULTS, 1501, 1000, 1).known);
	assert_int_equal(floor_of(WSS_PRESSURE_OOM, 9000, 1000, 1).value / MIB, 1799);
	/* Nothing is known of what is still to come. */
	assert_true(floor_of(WSS_PRESSURE_SWAP_IN, 1000, 1000, 0).known);
	assert_false(floor_of(WSS_PRESSURE_SWAP_IN, 1000, 1000, -1).known);
}

TEST(test_names)
{
	char text[WSS_PRESSURE_TEXT_MAX];

	wss_pressure_format(31, text);
	assert_string_equal(text, "swap-in, major faults, OOM kill, stalls, refaults");
	wss_pressure_format(0, text);
	assert_string_equal(text, "");
}

/* --- the cgroup --- */

static char *tree;

static struct wss_vmm_cgroup cgroup_read(const char *cgroup)
{
	struct wss_root root, proc;
	struct wss_vmm_cgroup counts;
	char path[PATH_MAX];

	put_text(tree, "proc/7/cgroup", cgroup);
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_root_open(make_path(path, "%s/proc/7", tree), &proc, NULL), 0);
	counts = wss_vmm_cgroup_read(&root, &proc);
	wss_root_close(&proc);
	wss_root_close(&root);
	return counts;
}

#define SCOPE "machine.slice/machine-qemu\\x2d1\\x2dweb1.scope"

TEST(test_cgroup)
{
	struct wss_vmm_cgroup counts;

	tree = make_tree();
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.events",
		 "low 9\nhigh 8\nmax 7\noom 6\noom_kill 5\noom_group_kill 4\n");
	put_text(
		tree, "sys/fs/cgroup/" SCOPE "/memory.pressure",
		"some avg10=0.00 avg60=1.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
	put_text(
		tree, "sys/fs/cgroup/" SCOPE "/memory.stat",
		"anon 5\nanon_thp 2097152\nfile_thp 0\nshmem_thp 4194304\nworkingset_refault_anon 30\nworkingset_refault_file 12\n");
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.swap.current", "8192\n");
	counts = cgroup_read("0::/" SCOPE "/libvirt/emulator\n");
	assert_true(counts.oom_kills.known && counts.oom_kills.value == 5);
	assert_true(counts.stall_us.known && counts.stall_us.value == 1234);
	assert_true(counts.refaults.known && counts.refaults.value == 42);
	assert_true(counts.huge_bytes.known && counts.huge_bytes.value == 6 * 1048576);
	assert_true(counts.swap_bytes.known && counts.swap_bytes.value == 8192);
	/* With both versions mounted, only the line of version 2 counts. */
	assert_true(cgroup_read("4:memory:/x\n0::/" SCOPE "\n").oom_kills.known);
	assert_false(cgroup_read("4:memory:/" SCOPE "\n").oom_kills.known);
	/* One that QEMU may share, one that is gone, one of another namespace. */
	assert_false(cgroup_read("0::/user.slice\n").oom_kills.known);
	assert_false(cgroup_read("0::/\n").oom_kills.known);
	assert_false(cgroup_read("").oom_kills.known);
	assert_false(cgroup_read("0::/machine.slice/machine-qemu-gone.scope\n").oom_kills.known);
	assert_false(cgroup_read("0::/../" SCOPE "\n").oom_kills.known);
	/* A partition of guests that is named like one. */
	put_text(tree, "sys/fs/cgroup/machine.slice/machine-qemu\\x2dtest.slice/memory.events",
		 "oom_kill 99\n");
	assert_false(cgroup_read("0::/machine.slice/machine-qemu\\x2dtest.slice/vm.scope\n")
			     .oom_kills.known);
	put_text(tree, "sys/fs/cgroup/machine/qemu-test.partition/memory.events", "oom_kill 99\n");
	assert_false(cgroup_read("0::/machine/qemu-test.partition/vm\n").oom_kills.known);
	/* A kernel without PSI and with an older list. */
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.pressure", "");
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.stat", "workingset_refault 30\n");
	counts = cgroup_read("0::/" SCOPE "\n");
	assert_true(counts.oom_kills.known);
	assert_false(counts.stall_us.known);
	assert_false(counts.refaults.known);
	assert_false(counts.huge_bytes.known);
	remove_tree(tree);
}

int main(void)
{
	return tests_run();
}
