/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "host/vmm-cgroup.h"

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
	put_text(
		tree, "sys/fs/cgroup/" SCOPE "/memory.stat",
		"anon 5\nanon_thp 2097152\nfile_thp 0\nshmem_thp 4194304\nworkingset_refault_anon 30\nworkingset_refault_file 12\n");
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.swap.current", "8192\n");
	counts = cgroup_read("0::/" SCOPE "/libvirt/emulator\n");
	assert_true(counts.huge_bytes.known && counts.huge_bytes.value == 6 * 1048576);
	assert_true(counts.swap_bytes.known && counts.swap_bytes.value == 8192);
	/* With both versions mounted, only the line of version 2 counts. */
	assert_true(cgroup_read("4:memory:/x\n0::/" SCOPE "\n").swap_bytes.known);
	assert_false(cgroup_read("4:memory:/" SCOPE "\n").swap_bytes.known);
	/* One that QEMU may share, one that is gone, one of another namespace. */
	assert_false(cgroup_read("0::/user.slice\n").swap_bytes.known);
	assert_false(cgroup_read("0::/\n").swap_bytes.known);
	assert_false(cgroup_read("").swap_bytes.known);
	assert_false(cgroup_read("0::/machine.slice/machine-qemu-gone.scope\n").swap_bytes.known);
	assert_false(cgroup_read("0::/../" SCOPE "\n").swap_bytes.known);
	/* A partition of guests that is named like one. */
	put_text(tree,
		 "sys/fs/cgroup/machine.slice/machine-qemu\\x2dtest.slice/memory.swap.current",
		 "99\n");
	assert_false(cgroup_read("0::/machine.slice/machine-qemu\\x2dtest.slice/vm.scope\n")
			     .swap_bytes.known);
	put_text(tree, "sys/fs/cgroup/machine/qemu-test.partition/memory.swap.current", "99\n");
	assert_false(cgroup_read("0::/machine/qemu-test.partition/vm\n").swap_bytes.known);
	/* A kernel with an older list. */
	put_text(tree, "sys/fs/cgroup/" SCOPE "/memory.stat", "workingset_refault 30\n");
	counts = cgroup_read("0::/" SCOPE "\n");
	assert_true(counts.swap_bytes.known);
	assert_false(counts.huge_bytes.known);
	remove_tree(tree);
}

int main(void)
{
	return tests_run();
}
