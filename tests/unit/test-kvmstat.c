/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <linux/kvm.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "base/units.h"
#include "host/kvmstat.h"

#define KVM "sys/kernel/debug/kvm/"

static void put_counters(const char *tree, const char *vm, const char *const *names,
			 const char *const *values)
{
	char path[PATH_MAX];

	for (; *names; names++, values++)
		put_text(tree, make_path(path, KVM "%s/%s", vm, *names), *values);
}

static const char *const names[] = {"pages_4k",	  "pages_2m",	"pages_1g", "pf_fixed",
				    "nested_run", "guest_mode", NULL};
static const char *const values[] = {"4518\n", "37\n", "2\n", "9000\n", "5\n", "1\n"};

static int open_in(const char *tree, pid_t pid, struct wss_kvm_debugfs **ret, struct wss_error *err)
{
	struct wss_root root;
	int r;

	wss_error_clear(err);
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	r = wss_kvm_debugfs_open(&root, pid, ret, err);
	wss_root_close(&root);
	return r;
}

TEST(test_read)
{
	char *tree = make_tree(), path[PATH_MAX], moved[PATH_MAX];
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs = NULL;
	struct wss_kvm_counts counts;

	put_counters(tree, "123-11", names, values);
	/* Others that merely look similar. */
	put_text(tree, KVM "12-11/pages_4k", "1");
	put_text(tree, KVM "1234-11/pages_4k", "1");
	put_text(tree, KVM "123-/pages_4k", "1");
	put_text(tree, KVM "123-x/pages_4k", "1");
	put_text(tree, KVM "pages_4k", "1");
	assert_int_equal(open_in(tree, 123, &debugfs, &err), 0);
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), 0);
	assert_int_equal(counts.pages_4k, 4518);
	assert_int_equal(counts.pages_2m, 37);
	assert_int_equal(counts.pages_1g, 2);
	assert_true(counts.has_pf_fixed);
	assert_int_equal(counts.pf_fixed, 9000);
	assert_true(counts.has_nested);
	assert_int_equal(counts.nested_run, 5);
	assert_int_equal(counts.guest_mode, 1);
	assert_int_equal(wss_kvm_counts_entries(&counts), 4557);
	/* Each read gets the current value. */
	put_text(tree, KVM "123-11/pages_4k", "4519\n");
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), 0);
	assert_int_equal(counts.pages_4k, 4519);
	/* A later VM of the same name is not read through this handle. */
	make_path(path, "%s/" KVM "123-11", tree);
	make_path(moved, "%s/moved", tree);
	assert_int_equal(rename(path, moved), 0);
	put_counters(tree, "123-11", names, values);
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), 0);
	assert_int_equal(counts.pages_4k, 4519);
	put_text(tree, "moved/pages_2m", "what?\n");
	counts.pages_4k = 1;
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "pages_2m");
	assert_int_equal(counts.pages_4k, 1);
	/* A missing optional counter that existed before means that the VM has gone. */
	put_text(tree, "moved/pages_2m", "1\n");
	unlink(make_path(path, "%s/moved/pf_fixed", tree));
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_kvm_debugfs_close(debugfs);
	wss_kvm_debugfs_close(NULL);
	remove_tree(tree);
}

TEST(test_kernels)
{
	char *tree = make_tree(), path[PATH_MAX];
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs = NULL;
	struct wss_kvm_counts counts;

	/* Each optional counter may be missing. */
	put_counters(tree, "123-11", names, values);
	unlink(make_path(path, "%s/" KVM "123-11/pf_fixed", tree));
	unlink(make_path(path, "%s/" KVM "123-11/guest_mode", tree));
	assert_int_equal(open_in(tree, 123, &debugfs, &err), 0);
	assert_int_equal(wss_kvm_debugfs_read(debugfs, &counts, &err), 0);
	assert_int_equal(counts.pages_1g, 2);
	assert_false(counts.has_pf_fixed);
	assert_false(counts.has_nested);
	assert_false(counts.has_guest_mode);
	wss_kvm_debugfs_close(debugfs);
	/* Linux 5.10 has none of pages_*. */
	debugfs = NULL;
	unlink(make_path(path, "%s/" KVM "123-11/pages_2m", tree));
	assert_int_equal(open_in(tree, 123, &debugfs, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "pages_2m (Linux before 5.15?)");
	assert_null(debugfs);
	remove_tree(tree);
}

/* Counters that a locked-down kernel refuses: the others are still read. */
static int read_locked_down(const char *tree)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs = NULL;
	struct wss_kvm_counts counts;

	if (geteuid() == 0 && setuid(65534) < 0)
		return 1;
	if (open_in(tree, 123, &debugfs, &err) < 0 ||
	    wss_kvm_debugfs_read(debugfs, &counts, &err) < 0)
		return 2;
	return counts.pages_4k != 4518 || counts.has_pf_fixed || counts.has_nested ||
	       !counts.has_guest_mode || counts.guest_mode != 1;
}

TEST(test_locked_down)
{
	char *tree = make_tree(), path[PATH_MAX];
	int status;
	pid_t child;

	put_counters(tree, "123-11", names, values);
	chmod(tree, 0755);
	chmod(make_path(path, "%s/" KVM "123-11/pf_fixed", tree), 0);
	chmod(make_path(path, "%s/" KVM "123-11/nested_run", tree), 0);
	child = fork();
	if (child == 0)
		_exit(read_locked_down(tree));
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	remove_tree(tree);
}

TEST(test_refuses)
{
	char *tree = make_tree(), path[PATH_MAX];
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs = NULL;

	assert_int_equal(open_in(tree, 123, &debugfs, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "debugfs is not mounted");
	put_counters(tree, "124-11", names, values);
	assert_int_equal(open_in(tree, 123, &debugfs, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "no KVM guest");
	put_counters(tree, "123-11", names, values);
	put_counters(tree, "123-12", names, values);
	assert_int_equal(open_in(tree, 123, &debugfs, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "2 virtual machines");
	/* A file where the directory should be. */
	put_text(tree, KVM "125-1", "");
	assert_int_equal(open_in(tree, 125, &debugfs, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "125-1");
	if (geteuid() == 0) {
		pid_t child = fork();
		int status;

		assert_int_equal(chmod(make_path(path, "%s", tree), 0755), 0);
		assert_int_equal(chmod(make_path(path, "%s/sys/kernel/debug", tree), 0700), 0);
		if (child == 0)
			_exit(setuid(65534) < 0 || open_in(tree, 124, &debugfs, &err) == 0 ||
			      err.code != WSS_ERR_UNSUPPORTED);
		waitpid(child, &status, 0);
		assert_int_equal(status, 0);
	}
	assert_null(debugfs);
	remove_tree(tree);
}

static bool is_locked_down(void)
{
	wss_auto_free char *text = NULL;
	struct wss_root root = {.dirfd = -1};
	bool locked = false;

	/* Without lockdown, the file or the mount is missing. */
	if (mount("securityfs", "/mnt", "securityfs", 0, NULL) == 0 &&
	    wss_root_open("/mnt", &root, NULL) == 0 &&
	    wss_root_read(&root, "lockdown", 4096, &text, NULL) == 0)
		locked = !strstr(text, "[none]");
	wss_root_close(&root);
	return locked;
}

/* Runs in a mount namespace of its own with a real VM without a vCPU. Returns 0, or 77 to skip. */
static int real_vm(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs = NULL;
	struct wss_kvm_counts counts;
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm;

	if (kvm < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) < 0)
		return 77;
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		return 77;
	if (open_in("/", getpid(), &debugfs, &err) < 0 ||
	    wss_kvm_debugfs_read(debugfs, &counts, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	/* pf_fixed and nested_run are closed where the kernel is locked down. */
	if (wss_kvm_counts_entries(&counts) || counts.has_pf_fixed != counts.has_nested ||
	    counts.has_pf_fixed == is_locked_down())
		return 2;
	/* The test must not keep the VM from being destroyed. */
	close(vm);
	if (wss_kvm_debugfs_read(debugfs, &counts, &err) == 0 || err.code != WSS_ERR_GONE)
		return 3;
	wss_kvm_debugfs_close(debugfs);
	return open_in("/", getpid(), &debugfs, &err) == 0 ? 4 : 0;
}

TEST(test_real_vm)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(real_vm());
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("# no /dev/kvm, or debugfs cannot be mounted\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	return tests_run();
}
