/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include "measure/selftest.h"

#define SMAPS "55d0a7a00000-55d0a7a20000 r--p 00000000 fe:01 1 /usr/bin/x\nVmFlags: rd mr"

/* Makes a host with an invented kernel. */
static struct wss_host host_of(const char *release, bool soft_dirty)
{
	char *tree = make_tree();
	struct wss_host host;

	put_text(tree, "proc/sys/kernel/osrelease", release);
	put_text(tree, "proc/self/smaps", soft_dirty ? SMAPS " sd\n" : SMAPS "\n");
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	wss_host_close(&host);
	remove_tree(tree);
	return host;
}

/* Judges with the test switch: returns 0, or -1 with the reason in err. */
static int zap_safe(const struct wss_host *host, const struct wss_guest *guest, const char *fault,
		    struct wss_error *err)
{
	int r;

	wss_error_clear(err);
	setenv("VIRT_WSS_FAULT", fault, 1);
	r = wss_selftest_zap_safe(host, guest, err);
	unsetenv("VIRT_WSS_FAULT");
	return r;
}

/* The real test on this kernel: safe, or impossible, but never a lost write on a new kernel. */
TEST(test_real)
{
	struct wss_error err = WSS_ERROR_INIT;
	unsigned fds = count_fds();
	struct wss_host host;
	int r = wss_selftest_run(&err);

	assert_int_equal(wss_host_open("/", &host, NULL), 0);
	if (host.version >= WSS_KERNEL_VERSION(5, 19))
		assert_true(r == 0 || err.code == WSS_ERR_UNSUPPORTED);
	print_message("# %s\n", r == 0 ? "safe" : err.text);
	assert_int_equal(r == 0, err.code == WSS_OK);
	wss_host_close(&host);
	assert_int_equal(count_fds(), fds);
	/* No child process is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(test_switches)
{
	struct wss_error err = WSS_ERROR_INIT;

	setenv("VIRT_WSS_FAULT", "selftest-fails", 1);
	assert_int_equal(wss_selftest_run(&err), -1);
	assert_error(&err, WSS_ERR_FAILED, "lost a write");
	setenv("VIRT_WSS_FAULT", "skip-zap,selftest-cannot", 1);
	assert_int_equal(wss_selftest_run(&err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "cannot be run");
	unsetenv("VIRT_WSS_FAULT");
}

/* On an old kernel that write-protects, only the test can decide. */
TEST(test_old_kernel)
{
	const struct wss_host old = host_of("5.15.0-91-generic\n", true);
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(zap_safe(&old, NULL, "selftest-fails", &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "5.15.0-91-generic");
	assert_error(&err, WSS_ERR_UNSUPPORTED, "lost a write");
	/* The message says what would help. */
	assert_error(&err, WSS_ERR_UNSUPPORTED, "memfd");
	assert_int_equal(zap_safe(&old, NULL, "selftest-cannot", &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "cannot be run");
	/* Backports: if the test passes, the version does not matter. */
	if (wss_selftest_run(NULL) == 0)
		assert_int_equal(zap_safe(&old, NULL, "", &err), 0);
}

TEST(test_no_need)
{
	const struct wss_host without = host_of("5.15.0\n", false);
	const struct wss_host first = host_of("5.19.0\n", true);
	const struct wss_host newer = host_of("6.12.1\n", true);
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(zap_safe(&without, NULL, "selftest-fails", &err), 0);
	assert_int_equal(zap_safe(&first, NULL, "selftest-fails", &err), 0);
	assert_int_equal(zap_safe(&newer, NULL, "selftest-fails", &err), 0);
}

/* An unknown kernel never counts as safe. */
TEST(test_unknown_host)
{
	struct wss_host unknown = host_of("linux\n", true);
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(zap_safe(&unknown, NULL, "selftest-fails", &err), -1);
	unknown.version = WSS_KERNEL_VERSION(5, 18);
	unknown.soft_dirty = WSS_UNKNOWN;
	assert_int_equal(zap_safe(&unknown, NULL, "selftest-fails", &err), -1);
	unknown.release[0] = '\0';
	assert_int_equal(zap_safe(&unknown, NULL, "selftest-fails", &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "(unknown)");
}

/* Opens the guest of a captured QEMU with one block of RAM, found or not. */
static void open_captured(const char *name, bool find_ram, struct wss_guest *ret_guest)
{
	const uint64_t block = (!strcmp(name, "hugetlb") ? 128 : 512) * WSS_MIB;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_root root;
	char path[PATH_MAX];

	*ret_guest = (struct wss_guest){.process = WSS_PROCESS_INIT, .ram = WSS_RAM_INIT};
	assert_int_equal(
		wss_root_open(make_path(path, "%s/qemu-7.2/%s", WSS_FIXTURES, name), &root, NULL),
		0);
	assert_int_equal(wss_process_hold(&root, 4242, NULL, &ret_guest->process, &err), 0);
	wss_root_close(&root);
	if (find_ram && wss_ram_find(&ret_guest->process, &block, 1, &ret_guest->ram, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	ret_guest->ram_known = find_ram;
}

static void close_captured(struct wss_guest *guest)
{
	wss_ram_free(&guest->ram);
	wss_process_release(&guest->process);
}

/* RAM that is never copied may be zapped whatever the test finds; private RAM may not. */
TEST(test_backings)
{
	static const struct {
		const char *fixture;
		bool allowed;
	} table[] = {
		{"memfd", true},
		{"shared", true},
		{"hugetlb", true},
		{"anon", false},
	};
	const struct wss_host old = host_of("5.15.0\n", true);

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_guest guest;
		int r;

		open_captured(table[i].fixture, true, &guest);
		/* The configuration in the XML is not decisive. */
		guest.config.shared = guest.config.hugepages = !table[i].allowed;
		r = zap_safe(&old, &guest, "selftest-fails", &err);
		if ((r == 0) != table[i].allowed)
			fail_msg("%s: %d %s", table[i].fixture, r, err.text);
		close_captured(&guest);
	}
}

TEST(test_ram_not_found)
{
	const struct wss_host old = host_of("5.15.0\n", true);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_guest guest;

	open_captured("memfd", false, &guest);
	guest.config.shared = true;
	assert_int_equal(zap_safe(&old, &guest, "selftest-fails", &err), -1);
	close_captured(&guest);
}

int main(void)
{
	return tests_run();
}
