/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <pthread.h>

#include "host/cputime.h"
#include "host/guest.h"
#include "host/process-find.h"
#include "host/process.h"
#include "host/procfile.h"
#include "host/stopped.h"

/* A tree with the child's executable, and the real "/". */
struct state {
	struct wss_root root;
	char *tree;
	char qemu[PATH_MAX];
};

static struct state host;

static int set_up(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_root_open("/", &host.root, &err), 0);
	host.tree = make_tree();
	copy_self(host.tree, "qemu-system-test");
	make_path(host.qemu, "%s/qemu-system-test", host.tree);
	return 0;
}

static int tear_down(void **unused)
{
	wss_root_close(&host.root);
	remove_tree(host.tree);
	return 0;
}

static void release(struct wss_process *process)
{
	wss_process_release(process);
}

#define AUTO_PROCESS wss_cleanup(release) struct wss_process

static void test_hold(void **unused)
{
	pid_t pid = start_qemu(host.qemu, "A1B2C3D4-0000-4000-8000-00000000AAAA", "-incoming");
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	char c = 0;

	/* UUIDs are compared in any case. */
	assert_int_equal(wss_process_hold(&host.root, pid, UUID_A, &process, &err), 0);
	assert_int_equal(err.code, WSS_OK);
	assert_int_equal(process.pid, pid);
	assert_true(process.start_ticks > 0);
	assert_true(wss_process_alive(&process));
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_not_equal(c, 'T');

	assert_int_equal(wss_process_signal(&process, SIGSTOP), 0);
	waitpid(pid, NULL, WUNTRACED);
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_equal(c, 'T');
	assert_true(wss_process_alive(&process));
	assert_int_equal(wss_process_signal(&process, SIGCONT), 0);
	waitpid(pid, NULL, WCONTINUED);
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_not_equal(c, 'T');
	end_child(pid);
}

/* --- processes that are stopped --- */

static struct {
	uint64_t now_ns, continue_ns; /* when the child is continued; 0: never */
	pid_t child;
} stopping;

static uint64_t stopping_now_ns(void *unused)
{
	return stopping.now_ns;
}

static void stopping_sleep(void *unused, uint64_t when_ns)
{
	stopping.now_ns = when_ns;
	if (!stopping.continue_ns || when_ns < stopping.continue_ns)
		return;
	kill(stopping.child, SIGCONT);
	waitpid(stopping.child, NULL, WCONTINUED);
}

static void test_stopped(void **unused)
{
	static const struct wss_clock_source source = {.now_ns = stopping_now_ns,
						       .sleep_until_ns = stopping_sleep};
	pid_t pid = start_qemu(host.qemu, UUID_A, NULL);
	struct wss_deadline deadline = {.cancel = NULL};
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	stopping.child = pid;
	stopping.now_ns = WSS_NS_PER_S;
	wss_clock_inject(&source);
	assert_int_equal(wss_process_hold(&host.root, pid, UUID_A, &process, &err), 0);
	assert_int_equal(wss_stopped_check(&host.root, &process, NULL, &err), 0);
	assert_int_equal(stopping.now_ns, WSS_NS_PER_S);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	assert_int_equal(wss_stopped_check(&host.root, &process, NULL, &err), -1);
	assert_error(&err, WSS_ERR_STOPPED, "its QEMU process is stopped by a signal (SIGSTOP)");
	assert_int_equal(stopping.now_ns, WSS_NS_PER_S + WSS_STOPPED_NS);
	/* No longer than the caller has time. */
	wss_deadline_allow(&deadline, WSS_NS_PER_S / 10);
	wss_deadline_run(&deadline, 0);
	assert_int_equal(wss_stopped_check(&host.root, &process, &deadline, &err), -1);
	assert_int_equal(stopping.now_ns, WSS_NS_PER_S + WSS_STOPPED_NS + WSS_NS_PER_S / 10);
	/* Windows with --pause stop a guest for moments. */
	stopping.continue_ns = stopping.now_ns + WSS_NS_PER_S / 2;
	wss_error_clear(&err);
	assert_int_equal(wss_stopped_check(&host.root, &process, NULL, &err), 0);
	assert_int_equal(err.code, WSS_OK);
	wss_clock_inject(NULL);
	stopping.continue_ns = 0;
	end_child(pid);
	/* Nothing is known of one that has ended: who asks it finds out. */
	assert_int_equal(wss_stopped_check(&host.root, &process, NULL, &err), 0);
}

/* The state of a process that its cgroup has frozen is that of one that waits. */
static void test_frozen(void **unused)
{
	char *tree = make_tree();
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	static const struct wss_clock_source source = {.now_ns = stopping_now_ns,
						       .sleep_until_ns = stopping_sleep};
	struct wss_root root;

	put_text(tree, "proc/42/cmdline", "qemu");
	put_text(tree, "proc/42/stat",
		 "42 (qemu) S 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0");
	put_text(tree, "proc/42/cgroup", "4:freezer,cpu:/one\n0::/machine/two\n");
	put_text(tree, "sys/fs/cgroup/machine/two/cgroup.events", "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/freezer,cpu/one/freezer.state", "THAWED\n");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_process_hold(&root, 42, NULL, &process, &err), 0);
	wss_clock_inject(&source);
	assert_int_equal(wss_stopped_check(&root, &process, NULL, &err), 0);
	put_text(tree, "sys/fs/cgroup/machine/two/cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(wss_stopped_check(&root, &process, NULL, &err), -1);
	assert_error(&err, WSS_ERR_STOPPED, "its QEMU process, 42, is frozen by its cgroup");
	put_text(tree, "sys/fs/cgroup/machine/two/cgroup.events", "populated 1\nfrozen 0\n");
	put_text(tree, "sys/fs/cgroup/freezer,cpu/one/freezer.state", "FROZEN\n");
	assert_int_equal(wss_stopped_check(&root, &process, NULL, &err), -1);
	put_text(tree, "proc/42/stat",
		 "42 (qemu) t 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0");
	assert_int_equal(wss_stopped_check(&root, &process, NULL, &err), -1);
	assert_error(&err, WSS_ERR_STOPPED, "42, is stopped by a debugger or another tracer");
	wss_clock_inject(NULL);
	wss_root_close(&root);
	remove_tree(tree);
}

static void test_hold_without_uuid(void **unused)
{
	pid_t pid = start_qemu(host.qemu, NULL, NULL);
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_process_hold(&host.root, pid, UUID_A, &process, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "qemu-system-tes");
	assert_int_equal(process.pidfd, -1);
	assert_int_equal(process.proc.dirfd, -1);
	wss_error_clear(&err);
	assert_int_equal(wss_process_hold(&host.root, pid, NULL, &process, &err), 0);
	end_child(pid);
}

static void test_hold_refuses(void **unused)
{
	pid_t pid = start_qemu(host.qemu, UUID_B, NULL);
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	/* The process of another guest: the message names that guest. */
	assert_int_equal(wss_process_hold(&host.root, pid, UUID_A, &process, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, UUID_B);
	wss_error_clear(&err);
	assert_int_equal(wss_process_hold(&host.root, 0, UUID_A, &process, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, NULL);
	assert_int_equal(wss_process_hold(&host.root, -1, UUID_A, &process, NULL), -1);
	assert_int_equal(wss_process_hold(&host.root, INT_MAX, UUID_A, &process, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	/* A zombie is no longer a guest. */
	make_zombie(pid);
	assert_int_equal(wss_process_hold(&host.root, pid, UUID_B, &process, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	assert_int_equal(process.pidfd, -1);
	waitpid(pid, NULL, 0);
	assert_int_equal(wss_process_hold(&host.root, pid, UUID_B, &process, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
}

/* Whoever added such a device, and however, QEMU has it open. */
static void test_passthrough(void **unused)
{
	static const struct {
		const char *target;
		bool pins;
	} table[] = {
		{"/dev/vfio/12", true},	      {"/dev/vfio/devices/vfio0", true},
		{"/dev/vhost-vdpa-0", true},  {"anon_inode:[vfio-device]", true},
		{"/dev/vhost-net", false},    {"/dev/kvm", false},
		{"anon_inode:kvm-vm", false}, {"/srv/dev/vfio/image", false},
	};
	char tree[] = "/tmp/test-process-XXXXXX", path[PATH_MAX];
	struct wss_process process = WSS_PROCESS_INIT;

	assert_non_null(mkdtemp(tree));
	process.proc.dirfd = open(tree, O_PATH | O_DIRECTORY);
	/* What cannot be read may be there. */
	assert_int_equal(wss_process_count_passthrough(&process), -1);
	assert_int_equal(mkdir(make_path(path, "%s/fd", tree), 0700), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		make_path(path, "%s/fd/9", tree);
		assert_int_equal(symlink(table[i].target, path), 0);
		assert_int_equal(wss_process_count_passthrough(&process), table[i].pins);
		unlink(path);
	}
	/* Each group counts, and what comes with it does not. */
	for (int fd = 3; fd < 8; fd++) {
		static const char *const open[] = {"/dev/vfio/vfio", "/dev/vfio/3",
						   "anon_inode:[vfio-device]",
						   "anon_inode:[vfio-device]", "/dev/vfio/41"};

		assert_int_equal(symlink(open[fd - 3], make_path(path, "%s/fd/%d", tree, fd)), 0);
		assert_int_equal(wss_process_count_passthrough(&process), fd < 7 ? 1 : 2);
	}
	for (int fd = 3; fd < 8; fd++)
		unlink(make_path(path, "%s/fd/%d", tree, fd));
	close(process.proc.dirfd);
	rmdir(make_path(path, "%s/fd", tree));
	rmdir(tree);
}

/* A script in QEMU's place may add options that no inventory has, also in a file. */
static void test_options_of_another_program(void **unused)
{
	static const struct {
		const char *cmdline; /* a line feed stands for the end of an argument */
		const char *open;    /* file that the process has open */
		const char *security;
		unsigned hostdevs, shmems;
	} table[] = {
		{"qemu\n-machine\nq35,confidential-guest-support=sev0\n", "/dev/kvm",
		 "confidential-guest-support", 0, 0},
		{"qemu\n-M\nq35,confidential_guest_support=pv0\n", "/dev/kvm",
		 "confidential_guest_support", 0, 0},
		{"qemu\n-readconfig\n/f\n", "/dev/sev",
		 "its process has /dev/sev or a guest_memfd open", 0, 0},
		{"qemu\n-readconfig\n/f\n", "anon_inode:[kvm-gmem]",
		 "its process has /dev/sev or a guest_memfd open", 0, 0},
		{"qemu\n-readconfig\n/f\n", "/dev/vfio/7", "", 1, 0},
		{"qemu\n-device\nvfio-pci-nohotplug,host=01:00.0\n", "/dev/kvm", "", 1, 0},
		/* Those of s390x pin nothing, and explain a group each. */
		{"qemu\n-device\n{\"driver\":\"vfio-ap\",\"sysfsdev\":\"/sys/bus/mdev/devices/1\"}\n",
		 "/dev/vfio/7", "", 0, 0},
		{"qemu\n-device\nvfio-ccw,sysfsdev=/sys/bus/mdev/devices/1\n",
		 "/dev/vfio/devices/vfio0", "", 0, 0},
		{"qemu\n-device\nvfio-ccw-new,sysfsdev=/sys/bus/mdev/devices/1\n", "/dev/vfio/7",
		 "", 1, 0},
		{"qemu\n-netdev\n{\"type\":\"vhost-vdpa\"}\n", "/dev/kvm", "", 1, 0},
		{"qemu\n-device\nivshmem-doorbell,chardev=c\n", "/dev/kvm", "", 0, 1},
		{"qemu\n-device\nid=a,driver=vfio-pci,host=01:00.0\n", "/dev/kvm", "", 1, 0},
		{"qemu\n--netdev\nid=n,type=vhost-vdpa\n", "/dev/kvm", "", 1, 0},
		{"qemu\n-object\n{\"qom-type\": \"x\", \"id\": \"m\", \"memory-encryption\" : \"s\"}\n",
		 "/dev/kvm", "memory-encryption", 0, 0},
		/* Names and paths that only look like it. */
		{"qemu\n-id\nvfio-9\n-pidfile\nivshmem-1\n", "/dev/kvm", "", 0, 0},
		{"qemu\n-netdev\ntap,id=vhost-vdpa,ifname=vfio-web\n", "/dev/kvm", "", 0, 0},
		{"qemu\n-device\n{\"driver\":\"virtio-net-pci\",\"id\":\"vfio-web\"}\n", "/dev/kvm",
		 "", 0, 0},
		{"qemu\n-drive\nid=ivshmem,file=vfio-web.img,serial=memory-encryption\n",
		 "/dev/kvm", "", 0, 0},
		{"qemu\n--name\nmemory-encryption=vfio-web\n", "/dev/kvm", "", 0, 0},
		{"qemu\n-name\nguest=vfio,debug-threads=on\n", "/dev/vhost-net", "", 0, 0},
		{"qemu\n-drive\nfile=/srv/vfio/ivshmem-vfio.img\n--append\nvfio-pci.ids=1:2\n",
		 "/srv/dev/sev", "", 0, 0},
	};
	struct wss_process process = WSS_PROCESS_INIT;
	char *tree = make_tree(), path[PATH_MAX];

	process.proc.dirfd = open(tree, O_PATH | O_DIRECTORY);
	assert_int_equal(mkdir(make_path(path, "%s/fd", tree), 0700), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_domxml config = {.hostdevs = 0};
		char cmdline[128];
		size_t len = strlen(table[i].cmdline);
		int fd = open(make_path(path, "%s/cmdline", tree),
			      O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

		for (size_t k = 0; k <= len; k++)
			cmdline[k] = table[i].cmdline[k] == '\n' ? '\0' : table[i].cmdline[k];
		assert_int_equal(write(fd, cmdline, len), len);
		close(fd);
		assert_int_equal(symlink(table[i].open, make_path(path, "%s/fd/9", tree)), 0);
		/* Each window looks again. */
		for (int n = 0; n < 2; n++)
			wss_domxml_see_process(&config, &process);
		if (strcmp(config.launch_security, table[i].security) != 0 ||
		    config.hostdevs != table[i].hostdevs || config.shmems != table[i].shmems)
			fail_msg("case %zu: '%s', %u, %u", i, config.launch_security,
				 config.hostdevs, config.shmems);
		unlink(path);
	}
	wss_process_release(&process);
	remove_tree(tree);
}

static void *wait_for_end(void *fd)
{
	char c;

	prctl(PR_SET_NAME, "x) S 1 (\ny");
	if (write(((int *)fd)[1], &(pid_t){gettid()}, sizeof(pid_t)) < 0)
		return NULL;
	while (read(((int *)fd)[0], &c, 1) < 0)
		;
	return NULL;
}

/* A thread's ID is not a process; a name with ')' and newlines causes no confusion. */
static void test_thread(void **unused)
{
	int to[2], from[2], fds[2];
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	pthread_t thread;
	pid_t tid;
	char c;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	fds[0] = to[0];
	fds[1] = from[1];
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, fds), 0);
	assert_int_equal(read(from[0], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(wss_process_hold(&host.root, tid, NULL, &process, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, NULL);
	prctl(PR_SET_NAME, "a) Z 7 (\nb");
	wss_error_clear(&err);
	assert_int_equal(wss_process_hold(&host.root, getpid(), NULL, &process, &err), 0);
	/* This thread runs, the other sleeps. */
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_equal(c, 'R');
	assert_int_equal(write(to[1], "", 1), 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

/* Asserts that everything that uses the held process reports that it has gone. */
static void assert_gone(const struct wss_process *process, int clear_refs, int smaps)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t value;
	char c = 0;
	int r;

	assert_false(wss_process_alive(process));
	assert_int_equal(wss_process_signal(process, 0), -ESRCH);
	assert_int_equal(wss_process_state(process, &c), -ESRCH);
	/* Opened before: */
	assert_int_equal(write(clear_refs, "1\n", 2), -1);
	assert_int_equal(errno, ESRCH);
	assert_true(read(smaps, &c, 1) <= 0);
	/* Opened after: */
	r = wss_root_openat(&process->proc, "clear_refs", O_WRONLY);
	assert_true(r == -ENOENT || r == -ESRCH);
	assert_int_equal(wss_process_error(process, r, "clear_refs", &err), -1);
	assert_error(&err, WSS_ERR_GONE, "has exited");
	r = wss_root_read_u64(&process->proc, "oom_score", &value);
	assert_true(r == -ENOENT || r == -ESRCH);
}

static void test_gone(void **unused)
{
	pid_t pid = start_qemu(host.qemu, UUID_A, NULL);
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	int clear_refs, smaps;

	assert_int_equal(wss_process_hold(&host.root, pid, UUID_A, &process, NULL), 0);
	clear_refs = wss_root_openat(&process.proc, "clear_refs", O_WRONLY);
	smaps = wss_root_openat(&process.proc, "smaps", O_RDONLY);
	assert_true(clear_refs >= 0 && smaps >= 0);
	/* As a zombie, */
	make_zombie(pid);
	assert_false(wss_process_alive(&process));
	assert_int_equal(wss_process_state(&process, &(char){0}), -ESRCH);
	assert_int_equal(read(smaps, &(char){0}, 1), 0);
	/* And again once it is reaped. */
	waitpid(pid, NULL, 0);
	assert_gone(&process, clear_refs, smaps);
	close(clear_refs);
	close(smaps);
}

/* Makes the next process of this pid namespace get this pid. */
static bool set_next_pid(pid_t pid)
{
	wss_auto_close int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", pid - 1);

	return fd >= 0 && write(fd, text, (size_t)len) == len;
}

/* Returns the Referenced figure of /proc/PID/smaps_rollup, in KiB. */
static unsigned long referenced_kib(const struct wss_process *process)
{
	wss_auto_free char *text = NULL;
	const char *at;

	assert_int_equal(wss_root_read(&process->proc, "smaps_rollup", 1 << 16, &text, NULL), 0);
	at = strstr(text, "\nReferenced:");
	assert_non_null(at);
	return strtoul(at + strlen("\nReferenced:"), NULL, 10);
}

/* Runs in a pid namespace, in which the pid of a held process is given to another one. */
static void reuse_in_namespace(void)
{
	AUTO_PROCESS old = WSS_PROCESS_INIT;
	AUTO_PROCESS new = WSS_PROCESS_INIT;
	int clear_refs, smaps;
	unsigned long before;
	pid_t first, second;

	first = start_qemu(host.qemu, UUID_A, NULL);
	assert_int_equal(wss_process_hold(&host.root, first, UUID_A, &old, NULL), 0);
	clear_refs = wss_root_openat(&old.proc, "clear_refs", O_WRONLY);
	smaps = wss_root_openat(&old.proc, "smaps", O_RDONLY);
	end_child(first);
	assert_true(set_next_pid(first));
	second = start_qemu(host.qemu, UUID_B, NULL);
	assert_int_equal(second, first);

	assert_int_equal(wss_process_hold(&host.root, second, UUID_B, &new, NULL), 0);
	before = referenced_kib(&new);
	assert_true(before > 0);
	assert_gone(&old, clear_refs, smaps);
	/* None of it reached the new owner of the pid. */
	assert_int_equal(wss_process_signal(&old, SIGKILL), -ESRCH);
	assert_true(wss_process_alive(&new));
	assert_true(referenced_kib(&new) >= before);
	/* And the new one is not mistaken for the old one because of its pid. */
	wss_process_release(&old);
	assert_int_equal(wss_process_hold(&host.root, second, UUID_A, &old, NULL), -1);
	close(clear_refs);
	close(smaps);
	end_child(second);
}

/*
 * Runs test() as the first process of a new pid namespace with its own /proc. Skips the
 * calling test if that is not permitted.
 */
static void run_in_pid_namespace(void (*test)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t init;

		/* A failure here must end this child, not return into the runner. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 ||
		    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		init = fork();
		if (init == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (mount("proc", "/proc", "proc", 0, NULL) < 0 || !set_next_pid(1000))
				_exit(77);
			/* The handle of the parent's mount would still show the old /proc. */
			wss_root_close(&host.root);
			if (wss_root_open("/", &host.root, NULL) < 0)
				_exit(1);
			test();
			_exit(0);
		}
		waitpid(init, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("# a pid namespace with its own /proc cannot be made here\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_pid_reuse(void **unused)
{
	run_in_pid_namespace(reuse_in_namespace);
}

static void test_find(void **unused)
{
	char exe[PATH_MAX], part[64], uuid[40];
	struct wss_error err = WSS_ERROR_INIT;
	pid_t real, second, fake, found = 0;

	/* A UUID of this test alone: processes of another test may still be about to end. */
	snprintf(uuid, sizeof(uuid), "a1b2c3d4-0000-4000-8000-%012d", getpid());
	real = start_qemu(host.qemu, uuid, NULL);
	/* The same arguments in a program that is not QEMU do not count. */
	copy_self(host.tree, "harmless");
	fake = start_qemu(make_path(exe, "%s/harmless", host.tree), uuid, NULL);
	assert_int_equal(wss_process_find(&host.root, uuid, WSS_UID_ANY, &found, &err), 0);
	assert_int_equal(found, real);
	uuid[0] = 'b';
	assert_int_equal(wss_process_find(&host.root, uuid, WSS_UID_ANY, &found, &err), -1);
	assert_error(&err, WSS_ERR_GONE, uuid);
	uuid[0] = 'a';

	second = start_qemu(host.qemu, uuid, NULL);
	wss_error_clear(&err);
	found = 0;
	assert_int_equal(wss_process_find(&host.root, uuid, WSS_UID_ANY, &found, &err), -1);
	snprintf(part, sizeof(part), " %d", real);
	assert_error(&err, WSS_ERR_FAILED, part);
	snprintf(part, sizeof(part), " %d", second);
	assert_error(&err, WSS_ERR_FAILED, part);
	assert_int_equal(found, 0);

	/* A zombie does not count. */
	make_zombie(second);
	assert_int_equal(wss_process_find(&host.root, uuid, WSS_UID_ANY, &found, NULL), 0);
	assert_int_equal(found, real);
	waitpid(second, NULL, 0);
	end_child(real);
	assert_int_equal(wss_process_find(&host.root, uuid, WSS_UID_ANY, &found, &err), -1);
	snprintf(part, sizeof(part), ": process %d has it, but is not named like QEMU", fake);
	assert_error(&err, WSS_ERR_GONE, part);
	end_child(fake);
}

/* A captured machine: proc/PID with a command line, an executable and a parent. */
static void put_process_of(const char *tree, int pid, int parent, const char *uuid, const char *exe,
			   const char *ns_pids, const char *uids)
{
	char path[PATH_MAX], text[512];
	size_t len;

	len = (size_t)snprintf(text, sizeof(text), "qemu%c-name%cx%c-uuid%c%s%c-m%c512", 0, 0, 0, 0,
			       uuid, 0, 0);
	put_bytes(tree, make_path(path, "proc/%d/cmdline", pid), text, len + 1);
	snprintf(text, sizeof(text),
		 "%d (qemu) S %d 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 3 0 %d 100 200\n", pid,
		 parent, pid * 10);
	put_text(tree, make_path(path, "proc/%d/stat", pid), text);
	snprintf(text, sizeof(text), "Name:\tqemu\nPid:\t%d\nUid:\t%s\nNSpid:\t%s\nThreads:\t3\n",
		 pid, uids, ns_pids);
	put_text(tree, make_path(path, "proc/%d/status", pid), text);
	if (exe)
		assert_int_equal(symlink(exe, make_path(path, "%s/proc/%d/exe", tree, pid)), 0);
}

static void put_process(const char *tree, int pid, int parent, const char *uuid, const char *exe,
			const char *ns_pids)
{
	put_process_of(tree, pid, parent, uuid, exe, ns_pids, "107\t107\t107\t107");
}

/* A process of a captured machine is never taken for one of this host. */
static void test_captured(void **unused)
{
	char *tree = make_tree();
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_root root;
	char c = 0, path[PATH_MAX];

	put_process(tree, 1, 0, UUID_A, "/usr/bin/qemu-system-x86_64", "1");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_process_hold(&root, 1, UUID_A, &process, NULL), 0);
	assert_int_equal(process.pidfd, -1);
	assert_int_equal(process.start_ticks, 10);
	assert_true(wss_process_alive(&process));
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_equal(c, 'S');
	assert_int_equal(wss_process_signal(&process, 0), -ESRCH);
	/* Stopped only when all threads are. */
	put_text(tree, "proc/1/task/1/stat", "1 (a) T 0 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1\n");
	put_text(tree, "proc/1/task/2/stat", "2 (b) D 0 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1\n");
	put_text(tree, "proc/1/task/3/stat", "3 (c) Z 0 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1\n");
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_equal(c, 'D');
	put_text(tree, "proc/1/task/2/stat", "2 (b) t 0 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1\n");
	assert_int_equal(wss_process_state(&process, &c), 0);
	assert_int_equal(c, 't');
	/* A stat that cannot be read is an error, not a guess. */
	put_text(tree, "proc/1/stat", "1 (a");
	wss_process_release(&process);
	assert_int_equal(wss_process_hold(&root, 1, UUID_A, &process, NULL), -1);
	unlink(make_path(path, "%s/proc/1/stat", tree));
	assert_int_equal(wss_process_hold(&root, 1, UUID_A, &process, NULL), -1);
	wss_root_close(&root);
	remove_tree(tree);
}

#define UUID_WRAPPED "a1b2c3d4-0000-4000-8000-00000000cccc"

/* Proxmox VE names a guest by -smbios, and the last option counts. */
static void test_command_line_uuid(void **unused)
{
	static const struct {
		const char *arguments; /* with blanks for NUL */
		const char *uuid;
	} table[] = {
		{"qemu -uuid " UUID_A, UUID_A},
		{"qemu --uuid " UUID_A " -m 1", UUID_A},
		{"qemu -uuid " UUID_A " -uuid " UUID_B, UUID_B},
		{"qemu -smbios type=1,uuid=" UUID_A, UUID_A},
		{"qemu --smbios type=1,manufacturer=x,uuid=" UUID_A ",serial=y -m 1", UUID_A},
		{"qemu -smbios uuid=" UUID_A ",type=1", UUID_A},
		{"qemu -smbios type=1,uuid=" UUID_A " -uuid " UUID_B, UUID_B},
		{"qemu -uuid " UUID_B " -smbios type=1,uuid=" UUID_A " -smbios type=1,serial=5",
		 UUID_A},
		{"qemu -smbios type=11,uuid=" UUID_A, ""},
		{"qemu -smbios type=0,version=uuid=" UUID_A, ""},
		{"qemu -smbios type=1,uuid=" UUID_A "0", ""},
		{"qemu -smbios type=1,uuid=" UUID_A ",version=1,,uuid=" UUID_B, UUID_A},
		{"qemu -device " UUID_A " -uuid", ""},
		{"qemu -uuid 5", ""},
		{"qemu -uuid 00000000-0000-0000-0000-000000000000", ""},
		{"-smbios", ""},
	};
	char text[256], uuid[WSS_UUID_TEXT_MAX];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t len = strlen(table[i].arguments) + 1;

		strcpy(text, table[i].arguments);
		for (size_t j = 0; j < len; j++)
			if (text[j] == ' ')
				text[j] = '\0';
		assert_int_equal(wss_procfile_uuid(text, len, uuid), table[i].uuid[0] != '\0');
		assert_string_equal(uuid, table[i].uuid);
	}
}

/* What a guest reported some periods ago says nothing about it now. */
static void test_balloon_report(void **unused)
{
	const uint64_t mib = 1 << 20, now = (uint64_t)wss_clock_wall_seconds();
	struct wss_guest guest = {.config = {.balloon_period_s = 2}};
	struct wss_balloon_stats stats = {.actual_bytes = {true, 512 * mib},
					  .usable_bytes = {true, 300 * mib},
					  .free_bytes = {true, 100 * mib},
					  .cache_bytes = {true, 250 * mib},
					  .managed_bytes = {true, 500 * mib},
					  .update_s = {true, now}};

	wss_balloon_report_take(&guest, &stats);
	assert_int_equal(guest.unreclaimable_bytes.value, 212 * mib);
	/* Free memory and cache that the kernel keeps is no cache to give up, but half of it a reserve. */
	assert_int_equal(guest.cache_bytes.value, 200 * mib);
	assert_int_equal(guest.reserve_bytes.value, (12 + 25) * mib);
	stats.update_s.value = now - 60;
	wss_balloon_report_take(&guest, &stats);
	assert_false(guest.unreclaimable_bytes.known || guest.cache_bytes.known ||
		     guest.reserve_bytes.known);
	stats.update_s.value = now;
	stats.usable_bytes.value = 513 * mib;
	wss_balloon_report_take(&guest, &stats);
	assert_false(guest.unreclaimable_bytes.known);
}

/* The path begins after the second colon; what a user calls a cgroup may look like a whole line. */
static void test_cgroup(void **unused)
{
	static const char cgroups[] =
		"9:name=systemd:/\n2:cpuacct:/qemu.slice/100.scope\n0::/user.slice/x:/lxc.payload\n";

	assert_string_equal(wss_procfile_cgroup(cgroups, "/user.slice/"), "x:/lxc.payload\n");
	assert_int_equal(*wss_procfile_cgroup(cgroups, "/qemu.slice/100.scope"), '\n');
	assert_null(wss_procfile_cgroup(cgroups, "/lxc.payload"));
	assert_null(wss_procfile_cgroup(cgroups, "/slice"));
	assert_null(wss_procfile_cgroup("", "/"));
	assert_null(wss_procfile_cgroup("0", "/"));
}

/* QEMU obeys the last -uuid; children before exec are not a second guest. */
static void test_find_captured(void **unused)
{
	char *tree = make_tree();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_root root;
	pid_t pid = 0;
	static const char twice[] = "qemu\0-uuid\0" UUID_A "\0-uuid\0" UUID_B;
	static const char at_end[] = "qemu\0-uuid";

	put_process(tree, 100, 1, UUID_A, "/usr/libexec/qemu-kvm (deleted)", "100");
	put_process(tree, 101, 100, UUID_A, "/usr/libexec/qemu-kvm (deleted)", "101");
	put_process(tree, 102, 1, UUID_A, "/usr/bin/python3", "102");
	put_process(tree, 103, 1, UUID_A, NULL, "103");
	put_process(tree, 104, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "104");
	put_bytes(tree, "proc/104/cmdline", twice, sizeof(twice));
	put_process(tree, 105, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "105");
	put_bytes(tree, "proc/105/cmdline", at_end, sizeof(at_end));
	put_text(tree, "proc/106x/cmdline", "x");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_process_find(&root, UUID_A, WSS_UID_ANY, &pid, &err), 0);
	assert_int_equal(pid, 100);
	pid = 0;
	assert_int_equal(wss_process_find(&root, "A1B2C3D4-0000-4000-8000-00000000AAAA",
					  WSS_UID_ANY, &pid, &err),
			 0);
	assert_int_equal(pid, 100);
	assert_int_equal(wss_process_find(&root, UUID_B, WSS_UID_ANY, &pid, &err), 0);
	assert_int_equal(pid, 104);
	/* Nor is QEMU dropped as the child of a wrapper that passes its options on. */
	put_process(tree, 110, 1, UUID_WRAPPED, "/opt/qemu-wrapper", "110");
	put_process(tree, 111, 110, UUID_WRAPPED, "/usr/bin/qemu-system-x86_64", "111");
	assert_int_equal(wss_process_find(&root, UUID_WRAPPED, WSS_UID_ANY, &pid, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "several processes claim to be the guest " UUID_WRAPPED);
	wss_error_clear(&err);
	for (int i = 200; i < 230; i++)
		put_process(tree, i, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "1");
	assert_int_equal(wss_process_find(&root, UUID_A, WSS_UID_ANY, &pid, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "...");
	wss_root_close(&root);
	remove_tree(tree);
}

#define STATUS(pid, uuid)                                                                        \
	"<domstatus state='running' pid='" pid "'><domain type='qemu'><name>g</name><uuid>" uuid \
	"</uuid></domain></domstatus>"

static uid_t attach_owner = WSS_UID_ANY;

static void unlink_text(const char *tree, const char *name)
{
	char path[PATH_MAX];

	assert_int_equal(unlink(make_path(path, "%s/%s", tree, name)), 0);
}

/* Attaches guest g to the processes in tree; returns the pid, 0 on failure. */
static pid_t attach(const char *tree, const char *run_dir, const char *name, const char *uuid,
		    struct wss_error *err)
{
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_root root;
	int r;

	wss_error_clear(err);
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	r = wss_process_attach(&root, run_dir, name, uuid, attach_owner, &process, err);
	wss_root_close(&root);
	assert_int_equal(r == 0, err->code == WSS_OK);
	return r == 0 ? process.pid : 0;
}

/*
 * Of several programs named like QEMU that claim the guest's UUID, only its user's process
 * counts.
 */
/* Processes that /proc hides are not gone. */
static void test_find_hidden(void **unused)
{
	static const struct {
		const char *options, *hides;
	} table[] = {
		{"rw,relatime,hidepid=2", "hidepid=2,"},
		{"rw,hidepid=invisible,gid=4", "hidepid=invisible,"},
		{"rw,hidepid=0", NULL},
		{"rw,hidepid=off", NULL},
		{"rw", NULL},
	};
	char *tree = make_tree(), mounts[200];
	struct wss_root root;
	pid_t pid;

	put_process(tree, 200, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "200");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;

		snprintf(mounts, sizeof(mounts),
			 "x /x proc hidepid=2 0 0\nproc /proc proc %s 0 0\n", table[i].options);
		put_text(tree, "proc/self/mounts", mounts);
		assert_int_equal(wss_process_find(&root, UUID_B, WSS_UID_ANY, &pid, &err), -1);
		assert_error(&err, table[i].hides ? WSS_ERR_UNSUPPORTED : WSS_ERR_GONE,
			     table[i].hides);
	}
	/* Root sees them all, whatever the option. */
	put_text(tree, "proc/self/mounts", "proc /proc proc rw,hidepid=2 0 0\n");
	put_process(tree, 1, 0, UUID_A, "/sbin/init", "1");
	{
		struct wss_error err = WSS_ERROR_INIT;

		assert_int_equal(wss_process_find(&root, UUID_B, WSS_UID_ANY, &pid, &err), -1);
		assert_error(&err, WSS_ERR_GONE, NULL);
	}
	wss_root_close(&root);
	remove_tree(tree);
}

static void test_find_owner(void **unused)
{
	static const char *const others[] = {"1000 1000 1000 1000",
					     "107 107 107 1000",
					     "1000 107 107 107",
					     "107 0 0 0",
					     "1070 1070 1070 1070",
					     "",
					     "nobody"};
	char *tree = make_tree();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_root root;
	pid_t pid = 0;
	int i;

	for (i = 0; i < 32; i++)
		put_process_of(tree, 300 + i, 1, UUID_A, "/home/x/qemu-system-x86_64", "1",
			       others[i % (int)(sizeof(others) / sizeof(others[0]))]);
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	assert_int_equal(wss_process_find(&root, UUID_A, 107, &pid, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "as user 107");
	wss_error_clear(&err);
	put_process(tree, 900, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "900");
	assert_int_equal(wss_process_find(&root, UUID_A, 107, &pid, &err), 0);
	assert_int_equal(pid, 900);
	/* If the user is unknown, there are several. */
	assert_int_equal(wss_process_find(&root, UUID_A, WSS_UID_ANY, &pid, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "several processes");
	/* Two processes of the right user are still two. */
	wss_error_clear(&err);
	put_process(tree, 901, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "901");
	assert_int_equal(wss_process_find(&root, UUID_A, 107, &pid, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "900");
	wss_root_close(&root);
	remove_tree(tree);
}

/* QEMU may have any name: what it has open, or libvirt's files, say that it is one. */
static void test_find_of_another_name(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	char *tree = make_tree(), path[PATH_MAX];

	put_process(tree, 300, 1, UUID_A, "/opt/vmm", "300");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_GONE, "process 300 has it");
	assert_int_equal(mkdir(make_path(path, "%s/proc/300/fd", tree), 0700), 0);
	assert_int_equal(
		symlink("/tmp/anon_inode:kvm-vm", make_path(path, "%s/proc/300/fd/3", tree)), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_int_equal(symlink("anon_inode:kvm-vm", make_path(path, "%s/proc/300/fd/4", tree)),
			 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 300);
	/* One without KVM, of a libvirt in another pid namespace. */
	put_process(tree, 301, 1, UUID_B, "/opt/vmm", "301 17");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_B, &err), 0);
	put_text(tree, "run/q/g.pid", "17");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_B, &err), 301);
	remove_tree(tree);
}

/* A pid file that names another user's process is ignored. */
static void test_attach_owner(void **unused)
{
	char *tree = make_tree();
	struct wss_error err = WSS_ERROR_INIT;

	attach_owner = 107;
	put_process_of(tree, 300, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "300",
		       "1000 1000 1000 1000");
	put_text(tree, "run/q/g.pid", "300");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "as user 107");
	unlink_text(tree, "run/q/g.pid");
	put_text(tree, "run/q/g.xml", STATUS("300", UUID_A));
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	put_process(tree, 301, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "301");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 301);
	put_text(tree, "run/q/g.pid", "301");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 301);
	attach_owner = WSS_UID_ANY;
	remove_tree(tree);
}

/* In a directory that others can write to, their files are ignored. */
static void test_attach_forged_file(void **unused)
{
	char *tree = make_tree(), path[PATH_MAX];
	struct wss_error err = WSS_ERROR_INIT;

	if (geteuid() != 0) {
		print_message("# files of another user can be made by root only\n");
		skip();
	}
	/* Only a file can lead to 300. */
	put_process(tree, 300, 1, UUID_A, "/opt/vmm", "300");
	put_text(tree, "run/q/g.pid", "300");
	assert_int_equal(chown(make_path(path, "%s/run/q/g.pid", tree), 65534, 65534), 0);
	assert_int_equal(chmod(make_path(path, "%s/run/q", tree), 01777), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_GONE, UUID_A);
	unlink_text(tree, "run/q/g.pid");
	put_text(tree, "run/q/g.xml", STATUS("300", UUID_A));
	assert_int_equal(chown(make_path(path, "%s/run/q/g.xml", tree), 65534, 65534), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	/* A session's files and their directory belong to its user. */
	assert_int_equal(chown(make_path(path, "%s/run/q", tree), 65534, 65534), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 300);
	remove_tree(tree);
}

static void test_attach_pid_file(void **unused)
{
	static const char *const bad[] = {"",		"\n",	 "0",	    "-300",
					  "abc",	"300x",	 "300 301", "99999999999999999999",
					  "4294967596", "0x12c", "+300"};
	char *tree = make_tree();
	wss_auto_free char *big = calloc(1, 1 << 20);
	struct wss_error err = WSS_ERROR_INIT;
	char pid_file[PATH_MAX], path[PATH_MAX];

	/* The executable of 300 is not QEMU, so only a file can lead there. */
	put_process(tree, 300, 1, UUID_A, "/opt/vmm", "300");
	put_process(tree, 301, 1, UUID_B, "/usr/bin/qemu-system-x86_64", "301");
	make_path(pid_file, "%s/run/q/g.pid", tree);
	put_text(tree, "run/q/g.pid", "300");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 300);
	put_text(tree, "run/q/g.pid", "300\n");
	assert_int_equal(attach(tree, "//run/q/", "g", UUID_A, &err), 300);
	/* Files that contain no pid. */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_text(tree, "run/q/g.pid", bad[i]);
		assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
		assert_error(&err, WSS_ERR_GONE, UUID_A);
	}
	memset(big, '3', (1 << 20) - 1);
	put_text(tree, "run/q/g.pid", big);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	/* A link, a FIFO or a directory is ignored, wherever it leads. */
	put_text(tree, "run/q/other", "300");
	unlink(pid_file);
	assert_int_equal(symlink("other", pid_file), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	unlink(pid_file);
	assert_int_equal(mkfifo(pid_file, 0600), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	unlink(pid_file);
	assert_int_equal(mkdir(pid_file, 0700), 0);
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	rmdir(pid_file);
	/* Without a pid file, the status file is used if it has this guest's UUID. */
	put_text(tree, "run/q/g.xml", STATUS("300", UUID_A));
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 300);
	put_text(tree, "run/q/g.xml", STATUS("300", UUID_B));
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	put_text(tree, "run/q/g.xml", "<domstatus");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	/* The pid of another guest, and a missing directory, lead to the search. */
	put_text(tree, "run/q/g.pid", "300");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_B, &err), 301);
	assert_int_equal(attach(tree, "/run/nothing", "g", UUID_B, &err), 301);
	assert_int_equal(attach(tree, make_path(path, "/%4000d", 0), "g", UUID_B, &err), 301);
	remove_tree(tree);
}

/* No name leads out of the directory; impossible names lead straight to the search. */
static void test_attach_name(void **unused)
{
	static const char *const names[] = {"../g", "sub/g", "/run/g", "..", ".", "", "./g"};
	char *tree = make_tree();
	struct wss_error err = WSS_ERROR_INIT;
	char longest[2 * NAME_MAX];

	put_process(tree, 300, 1, UUID_A, "/opt/vmm", "300");
	put_text(tree, "run/g.pid", "300");
	put_text(tree, "run/.pid", "300");
	put_text(tree, "run/q/g.pid", "1");
	put_text(tree, "run/q/.pid", "300");
	put_text(tree, "run/q/..pid", "300");
	put_text(tree, "run/q/...pid", "300");
	put_text(tree, "run/q/sub/g.pid", "300");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(attach(tree, "/run/q", names[i], UUID_A, &err), 0);
	memset(longest, 'g', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(attach(tree, "/run/q", longest, UUID_A, &err), 0);
	put_process(tree, 301, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "301");
	assert_int_equal(attach(tree, "/run/q", "../g", UUID_A, &err), 301);
	assert_int_equal(attach(tree, "/run/q", longest, UUID_A, &err), 301);
	remove_tree(tree);
}

/* A pid of another namespace belongs to another process here, or to none. */
static void test_attach_namespace(void **unused)
{
	char *tree = make_tree();
	struct wss_error err = WSS_ERROR_INIT;

	put_process(tree, 42, 1, UUID_B, "/usr/bin/qemu-system-x86_64", "42");
	put_process(tree, 5000, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "5000 42");
	put_text(tree, "run/q/g.pid", "42");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 5000);
	/* Another process shows the same UUID, and the recorded pid decides. */
	put_process(tree, 6000, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "6000 142");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 5000);
	put_process(tree, 6000, 1, UUID_A, NULL, "6000");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 5000);
	/* Unless that pid matches neither. */
	put_text(tree, "run/q/g.pid", "43");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "5000");
	assert_error(&err, WSS_ERR_FAILED, "6000");
	put_process(tree, 7000, 1, UUID_A, "/usr/bin/qemu-system-x86_64", "7000 42");
	put_text(tree, "run/q/g.pid", "42");
	assert_int_equal(attach(tree, "/run/q", "g", UUID_A, &err), 0);
	assert_error(&err, WSS_ERR_FAILED, "7000");
	remove_tree(tree);
}

/*
 * A child has another pid in its namespace than here; the pid that it records there still
 * leads to it.
 */
static void test_attach_real_namespace(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	char run_dir[PATH_MAX], c;
	int out[2], status;
	pid_t maker;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	maker = fork();
	if (maker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		if (fork() == 0)
			exec_qemu(host.qemu, UUID_A, NULL, out[1]);
		close(out[1]);
		pause();
		_exit(0);
	}
	close(out[1]);
	if (read(out[0], &c, 1) != 1) {
		waitpid(maker, &status, 0);
		close(out[0]);
		print_message("# a pid namespace cannot be made here\n");
		skip();
	}
	close(out[0]);
	/* Pid 1 here is not the guest. */
	put_text(host.tree, "ns/g.pid", "1");
	assert_int_equal(wss_process_attach(&host.root, make_path(run_dir, "%s/ns", host.tree), "g",
					    UUID_A, geteuid(), &process, &err),
			 0);
	assert_int_not_equal(process.pid, 1);
	assert_true(process.pid > 1);
	assert_true(wss_process_alive(&process));
	assert_int_equal(wss_process_signal(&process, SIGKILL), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = process.pidfd, .events = POLLIN}, 1, 300000),
			 1);
	assert_false(wss_process_alive(&process));
	end_child(maker);
}

/* Runs as nobody if we are root; root's processes are then another user's. */
static int as_nobody(pid_t pid)
{
	struct wss_error err = WSS_ERROR_INIT;
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	wss_auto_free char *text = NULL;
	int r;

	/* Everybody may read the command line of others, but not their memory map. */
	if (wss_process_hold(&host.root, pid, NULL, &process, &err) < 0)
		return err.code == WSS_ERR_UNSUPPORTED ? 0 : 1;
	r = wss_root_read(&process.proc, "smaps", 1 << 20, &text, NULL);
	if (r >= 0)
		return 2;
	wss_process_error(&process, r, "smaps", &err);
	return err.code == WSS_ERR_UNSUPPORTED ? 0 : 3;
}

static void test_no_permission(void **unused)
{
	pid_t child, qemu = 1;
	int status;

	if (geteuid() != 0) {
		assert_int_equal(as_nobody(qemu), 0);
		return;
	}
	qemu = start_qemu(host.qemu, UUID_A, NULL);
	child = fork();
	if (child == 0)
		_exit(setgid(65534) < 0 || setuid(65534) < 0 ? 4 : as_nobody(qemu));
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	end_child(qemu);
}

static void test_release(void **unused)
{
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	wss_process_release(&process);
	assert_int_equal(wss_process_hold(&host.root, getpid(), NULL, &process, &err), 0);
	assert_true(fcntl(process.pidfd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(process.proc.dirfd, F_GETFD) & FD_CLOEXEC);
	wss_process_release(&process);
	assert_int_equal(process.pidfd, -1);
	wss_process_release(&process);
}

static void put_thread(int tid, unsigned user, unsigned system)
{
	char path[64], text[200];

	snprintf(path, sizeof(path), "q/task/%d/stat", tid);
	snprintf(text, sizeof(text), "%d (CPU 0) S 1 1 1 0 -1 0 0 0 0 0 %u %u 0 0 20 0 1 0 77 0\n",
		 tid, user, system);
	put_text(host.tree, path, text);
}

/* Shares of two virtual CPUs: a second is sysconf(_SC_CLK_TCK) ticks. */
static void test_cpu_time(void **state)
{
	unsigned second = (unsigned)sysconf(_SC_CLK_TCK);
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_cputime before, after;
	struct wss_cputime_shares shares;
	struct wss_error err = WSS_ERROR_INIT;
	char path[PATH_MAX], text[200];

	put_thread(11, 5, 5);
	put_thread(12, second, 0);
	snprintf(text, sizeof(text), "11 (a) b) S 1 1 1 0 -1 0 0 0 0 0 %u 10 0 0 20 0 2 0 77 0\n",
		 second);
	put_text(host.tree, "q/stat", text);
	make_path(path, "%s/q", host.tree);
	assert_int_equal(wss_root_open(path, &process.proc, &err), 0);
	assert_int_equal(wss_cputime_read(&process, &before, &err), 0);
	assert_int_equal(before.n, 2);
	assert_int_equal(before.ticks, second + 10);
	after = before;
	after.read_ns = before.read_ns + 2 * WSS_NS_PER_S;
	for (size_t i = 0; i < 2; i++)
		after.threads[i].ticks += after.threads[i].tid == 12 ? second : second / 2;
	after.ticks += second + second / 2;
	shares = wss_cputime_compare(&before, &after, 2);
	assert_true(shares.busiest > 0.49 && shares.busiest < 0.51);
	assert_true(shares.mean > 0.36 && shares.mean < 0.39);
	/* More time than there was, a new thread, and no time at all. */
	after.ticks += 100 * second;
	after.threads[0].tid = 13;
	shares = wss_cputime_compare(&before, &after, 2);
	assert_true(shares.mean == 1 && shares.busiest > 0.2 && shares.busiest <= 1);
	shares = wss_cputime_compare(&before, &before, 2);
	assert_true(shares.mean == 0 && shares.busiest == 0);
	put_text(host.tree, "q/stat", "11 (a) S nonsense");
	assert_int_equal(wss_cputime_read(&process, &after, &err), -1);
	wss_root_close(&process.proc);
}

static int read_state(const char *text, char *ret_state)
{
	struct wss_root root;
	int r;

	put_text(host.tree, "p/stat", text);
	assert_int_equal(wss_root_open(host.tree, &root, NULL), 0);
	r = wss_procfile_read_state(&root, "p/stat", ret_state);
	wss_root_close(&root);
	return r;
}

static void assert_state(const char *text, char expected)
{
	char state = '?';

	assert_int_equal(read_state(text, &state), 0);
	assert_int_equal(state, expected);
}

static void test_read_state(void **unused)
{
	static const char *const malformed[] = {
		"",	     "\n",	   "12",	  "12 (qemu",
		"12 (qemu)", "12 (qemu) ", "12 qemu S 1", "12 (qemu)S 1 1",
	};
	struct wss_root root;
	char text[512], state = '?';

	assert_state("12 (qemu) S 1 12 12 0\n", 'S');
	assert_state("12 (qemu) t", 't');
	assert_state("12 (a) T (b) Z) R 1 12\n", 'R');
	assert_state("12 (two words) D 1 12\n", 'D');
	assert_state("12 () I 1 12\n", 'I');
	assert_state("12 (a\n) Z) T 1 12\n", 'T');
	/* The longest that the kernel writes: 64 bytes of name, each of them escaped. */
	snprintf(text, sizeof(text), "4194304 (%0*d) T 1 12 %0*d\n", 128, 0, 300, 0);
	assert_state(text, 'T');
	for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++)
		assert_int_equal(read_state(malformed[i], &state), -EINVAL);
	/* Longer than any line of the kernel's: an error, and no wrong state. */
	snprintf(text, sizeof(text), "12 (%0*d) T 1 12\n", 300, 0);
	assert_int_equal(read_state(text, &state), -EINVAL);
	assert_int_equal(wss_root_open(host.tree, &root, NULL), 0);
	assert_int_equal(wss_procfile_read_state(&root, "none/stat", &state), -ENOENT);
	assert_int_equal(wss_procfile_read_state(&root, "p", &state), -EISDIR);
	wss_root_close(&root);
	assert_int_equal(state, '?');
}

int main(int argc, char **argv)
{
	const struct CMUnitTest captured[] = {
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_read_state),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_balloon_report),
		cmocka_unit_test(test_find_captured),
		cmocka_unit_test(test_find_of_another_name),
		cmocka_unit_test(test_find_hidden),
		cmocka_unit_test(test_find_owner),
		cmocka_unit_test(test_attach_owner),
		cmocka_unit_test(test_attach_forged_file),
		cmocka_unit_test(test_attach_pid_file),
		cmocka_unit_test(test_attach_name),
		cmocka_unit_test(test_attach_namespace),
		cmocka_unit_test(test_find),
	};
	const struct CMUnitTest live[] = {
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_hold_without_uuid),
		cmocka_unit_test(test_passthrough),
		cmocka_unit_test(test_options_of_another_program),
		cmocka_unit_test(test_command_line_uuid),
		cmocka_unit_test(test_hold_refuses),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_attach_real_namespace),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_cpu_time),
	};
	const struct CMUnitTest skipped[] = {cmocka_unit_test(test_needs_pidfd)};
	int failed;

	if (argc > 1 && !strcmp(argv[1], PLAY_QEMU))
		return play_qemu();
	failed = cmocka_run_group_tests(captured, set_up, tear_down);
	failed += have_pidfd() ? cmocka_run_group_tests(live, set_up, tear_down)
			       : cmocka_run_group_tests(skipped, NULL, NULL);
	return failed;
}
