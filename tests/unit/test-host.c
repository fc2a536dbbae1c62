/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "base/units.h"
#include "host/host.h"

#define DMI "sys/class/dmi/id/product_uuid"
#define SMAPS_HEAD "55d0a7a00000-55d0a7a20000 r--p 00000000 fe:01 1 /usr/bin/x\nRss: 4 kB\n"

static struct wss_host opened(const char *tree)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_host host;

	if (wss_host_open(tree, &host, &err) < 0)
		fail_msg("%s", err.text);
	wss_host_close(&host);
	assert_int_equal(host.root.dirfd, -1);
	return host;
}

/* If nothing can be read, everything is unknown, not "no". */
TEST(test_empty)
{
	char *tree = make_tree();
	struct wss_host host = opened(tree);

	assert_string_equal(host.release, "");
	assert_int_equal(host.version, 0);
	assert_int_equal(host.soft_dirty, WSS_UNKNOWN);
	assert_int_equal(host.tdp_mmu, WSS_UNKNOWN);
	assert_int_equal(host.two_dim_paging, WSS_UNKNOWN);
	assert_false(host.kvm_debugfs);
	assert_string_equal(host.uuid, "");
	assert_string_equal(host.machine_id, "");
	assert_string_equal(host.name, "");
	assert_int_equal(host.page_bytes, sysconf(_SC_PAGESIZE));
	assert_int_equal(host.huge_page_bytes, host.page_bytes * host.page_bytes / 8);
	remove_tree(tree);
}

TEST(test_huge_pages)
{
	char *tree = make_tree();

	put_text(tree, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n");
	assert_int_equal(opened(tree).huge_page_bytes, 512 * WSS_MIB);
	/* No page at all would be divided by. */
	put_text(tree, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "0\n");
	assert_int_equal(opened(tree).huge_page_bytes,
			 sysconf(_SC_PAGESIZE) * sysconf(_SC_PAGESIZE) / 8);
	remove_tree(tree);
}

TEST(test_no_sysroot)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_host host;

	assert_int_equal(wss_host_open("/does/not/exist", &host, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "/does/not/exist");
}

TEST(test_versions)
{
	static const struct {
		const char *release;
		unsigned version;
	} table[] = {
		{"6.1.0-40-amd64\n", WSS_KERNEL_VERSION(6, 1)},
		{"5.15.0-91-generic\n", WSS_KERNEL_VERSION(5, 15)},
		{"5.19.0-rc1+\n", WSS_KERNEL_VERSION(5, 19)},
		{"5.14.0-362.8.1.el9_3.x86_64\n", WSS_KERNEL_VERSION(5, 14)},
		{"6.12-arch\n", WSS_KERNEL_VERSION(6, 12)},
		{"10.0.1\n", WSS_KERNEL_VERSION(10, 0)},
		/* Must not be mistaken for a new version. */
		{"6\n", 0},
		{"linux\n", 0},
		{"\n", 0},
		{"4294967295.4294967295\n", 0},
		{"1.1000\n", 0},
	};
	char *tree = make_tree();

	assert_true(WSS_KERNEL_VERSION(5, 4) < WSS_KERNEL_VERSION(5, 19));
	assert_true(WSS_KERNEL_VERSION(6, 1) > WSS_KERNEL_VERSION(5, 19));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		put_text(tree, "proc/sys/kernel/osrelease", table[i].release);
		assert_int_equal(opened(tree).version, table[i].version);
	}
	put_text(tree, "proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
	put_text(tree, "proc/sys/kernel/hostname", "node7\n");
	assert_string_equal(opened(tree).release, "6.1.0-40-amd64");
	assert_string_equal(opened(tree).name, "node7");
	remove_tree(tree);
}

TEST(test_soft_dirty)
{
	char *tree = make_tree();

	put_text(tree, "proc/self/smaps", SMAPS_HEAD "VmFlags: rd mr mw me sd \n");
	assert_int_equal(opened(tree).soft_dirty, WSS_YES);
	/* Some mappings may have been cleared. */
	put_text(tree, "proc/self/smaps",
		 SMAPS_HEAD "VmFlags: rd mr mw me \n" SMAPS_HEAD "VmFlags: rd sd\n");
	assert_int_equal(opened(tree).soft_dirty, WSS_YES);
	put_text(tree, "proc/self/smaps", SMAPS_HEAD "VmFlags: rd mr mw me \n");
	assert_int_equal(opened(tree).soft_dirty, WSS_NO);
	/* A file of that name is not a flag. */
	put_text(tree, "proc/self/smaps",
		 "55d0a7a00000-55d0a7a20000 r--p 00000000 fe:01 1 /usr/bin/a sd\n"
		 "VmFlags: rd mr\n");
	assert_int_equal(opened(tree).soft_dirty, WSS_NO);
	/* A kernel without flags in smaps leaves it unknown. */
	put_text(tree, "proc/self/smaps", SMAPS_HEAD);
	assert_int_equal(opened(tree).soft_dirty, WSS_UNKNOWN);
	remove_tree(tree);
}

TEST(test_kvm)
{
	char *tree = make_tree();
	struct wss_host host;

	put_text(tree, "sys/module/kvm/parameters/tdp_mmu", "Y\n");
	put_text(tree, "sys/module/kvm_intel/parameters/ept", "Y\n");
	host = opened(tree);
	assert_int_equal(host.tdp_mmu, WSS_YES);
	assert_int_equal(host.two_dim_paging, WSS_YES);
	put_text(tree, "sys/module/kvm/parameters/tdp_mmu", "N\n");
	put_text(tree, "sys/module/kvm_intel/parameters/ept", "N\n");
	host = opened(tree);
	assert_int_equal(host.tdp_mmu, WSS_NO);
	assert_int_equal(host.two_dim_paging, WSS_NO);
	assert_false(host.kvm_debugfs);
	put_text(tree, "sys/kernel/debug/kvm/pages_4k", "0\n");
	assert_true(opened(tree).kvm_debugfs);
	remove_tree(tree);

	tree = make_tree();
	put_text(tree, "sys/module/kvm_amd/parameters/npt", "1\n");
	assert_int_equal(opened(tree).two_dim_paging, WSS_YES);
	put_text(tree, "sys/module/kvm_amd/parameters/npt", "0\n");
	assert_int_equal(opened(tree).two_dim_paging, WSS_NO);
	remove_tree(tree);
}

TEST(test_uuids)
{
	static const struct {
		const char *text;
		const char *uuid;
	} table[] = {
		{"A1B2C3D4-0000-4000-8000-00000000AAAA\n", UUID_A},
		{UUID_A, UUID_A},
		{"a1b2c3d40000400080000000"
		 "0000aaaa\n",
		 UUID_A},
		/* Values used by firmware that has no UUID. */
		{"00000000-0000-0000-0000-000000000000\n", ""},
		{"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF\n", ""},
		{"Not Settable\n", ""},
		{"a1b2c3d4\n", ""},
		{UUID_A "0\n", ""},
		{"\n", ""},
	};
	char *tree = make_tree();

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		put_text(tree, DMI, table[i].text);
		put_text(tree, "etc/machine-id", table[i].text);
		assert_string_equal(opened(tree).uuid, table[i].uuid);
		assert_string_equal(opened(tree).machine_id, table[i].uuid);
	}
	remove_tree(tree);
}

/* The kernel on which this test runs. */
TEST(test_real)
{
	struct wss_host host = opened("/");

	assert_true(host.version > WSS_KERNEL_VERSION(3, 0));
	assert_string_not_equal(host.release, "");
	assert_int_not_equal(host.soft_dirty, WSS_UNKNOWN);
}

int main(void)
{
	return tests_run();
}
