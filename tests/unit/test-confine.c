/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Confining the HTTP process: a step that fails is an error, and what is not needed cannot be called afterwards. */
#include "hosttest.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdarg.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../divert.h"
#include "serve/http-child.h"
#include "serve/http-confine.h"

#define MAX_FDS 64
#define NOBODY 65534
#define RESULT 50
#define LISTENER (WSS_HTTP_CHANNEL + 1)

/* The step that fails, and for setrlimit() and prctl() which one. */
static const char *failing;
static int failing_what;

static bool fails(const char *call, int what)
{
	if (strcmp(failing, call) != 0 || what != failing_what)
		return false;
	errno = EPERM;
	return true;
}

static __typeof__(&setrlimit) real_setrlimit;
static int fake_setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	return fails("setrlimit", (int)what) ? -1 : real_setrlimit(what, limit);
}

static __typeof__(&prctl) real_prctl;
static int fake_prctl(int what, ...)
{
	unsigned long args[4];
	va_list list;

	va_start(list, what);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(list, unsigned long);
	va_end(list);
	return fails("prctl", what) ? -1 : real_prctl(what, args[0], args[1], args[2], args[3]);
}

static __typeof__(&mkdtemp) real_mkdtemp;
static char *fake_mkdtemp(char *template)
{
	return fails("mkdtemp", 0) ? NULL : real_mkdtemp(template);
}

static __typeof__(&chdir) real_chdir;
static int fake_chdir(const char *path)
{
	return fails("chdir", 0) ? -1 : real_chdir(path);
}

static __typeof__(&chroot) real_chroot;
static int fake_chroot(const char *path)
{
	return fails("chroot", 0) ? -1 : real_chroot(path);
}

static __typeof__(&capng_apply) real_apply;
static int fake_apply(capng_select_t set)
{
	return fails("capng_apply", (int)set) ? -5 : real_apply(set);
}

static __typeof__(&capng_change_id) real_change_id;
static int fake_change_id(int uid, int gid, capng_flags_t flags)
{
	return fails("capng_change_id", 0) ? -6 : real_change_id(uid, gid, flags);
}

/* Says that it has done it, and has not. */
static __typeof__(&capng_clear) real_clear;
static void fake_clear(capng_select_t set)
{
	if (!fails("capng_clear", 0))
		real_clear(set);
}

static __typeof__(&seccomp_load) real_load;
static int fake_load(const scmp_filter_ctx filter)
{
	return fails("seccomp_load", 0) ? -ENOSYS : real_load(filter);
}

static __typeof__(&seccomp_rule_add_array) real_rule;
static int fake_rule(scmp_filter_ctx filter, uint32_t action, int call, unsigned n,
		     const struct scmp_arg_cmp *args)
{
	return fails("seccomp_rule", 0) ? -EINVAL : real_rule(filter, action, call, n, args);
}

static int confine(struct wss_error *err)
{
	divert(setrlimit, fake_setrlimit, &real_setrlimit);
	divert(prctl, fake_prctl, &real_prctl);
	divert(mkdtemp, fake_mkdtemp, &real_mkdtemp);
	divert(chdir, fake_chdir, &real_chdir);
	divert(chroot, fake_chroot, &real_chroot);
	divert(capng_apply, fake_apply, &real_apply);
	divert(capng_change_id, fake_change_id, &real_change_id);
	divert(capng_clear, fake_clear, &real_clear);
	divert(seccomp_load, fake_load, &real_load);
	divert(seccomp_rule_add_array, fake_rule, &real_rule);
	return wss_http_confine(NOBODY, NOBODY, MAX_FDS, err) < 0
		       ? -1
		       : wss_http_confine_calls(LISTENER, err);
}

/* Runs fn in a process of its own, and returns what it says: nothing, or what is wrong. */
static const char *child_says(void (*fn)(struct wss_error *err))
{
	static struct wss_error err;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		fds[1] = dup2(fds[1], RESULT);
		err = (struct wss_error)WSS_ERROR_INIT;
		fn(&err);
		/* Not by _exit(), before which AddressSanitizer makes calls that the filter refuses. */
		syscall(SYS_exit_group,
			(long)(write(fds[1], &err, sizeof(err)) != (ssize_t)sizeof(err)));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &err, sizeof(err)), sizeof(err));
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return err.text;
}

static void run_failing(struct wss_error *err)
{
	if (confine(err) == 0)
		wss_error_set(err, WSS_ERR_FAILED, "it goes on");
}

TEST(test_a_step_that_fails_is_an_error)
{
	static const struct {
		const char *call;
		int what;
		bool as_root; /* the step is root's only */
		const char *text;
	} steps[] = {
		{"setrlimit", RLIMIT_DATA, false, "cannot limit its resources"},
		{"setrlimit", RLIMIT_AS, false, "cannot limit its resources"},
		{"setrlimit", RLIMIT_NOFILE, false, "cannot limit its resources"},
		{"setrlimit", RLIMIT_NPROC, false, "cannot limit its resources"},
		{"setrlimit", RLIMIT_CORE, false, "cannot limit its resources"},
		{"mkdtemp", 0, true, "cannot make an empty directory in /tmp or /run"},
		{"chdir", 0, true, "cannot be confined to an empty root directory"},
		{"chroot", 0, true, "cannot be confined to an empty root directory"},
		{"prctl", PR_SET_NO_NEW_PRIVS, false, "cannot set no_new_privs"},
		{"capng_apply", CAPNG_SELECT_BOUNDS, true, "cannot empty the bounding set"},
		{"capng_change_id", 0, true, "cannot give up privileges"},
		{"capng_clear", 0, true, "capabilities are left after all were given up"},
		{"prctl", PR_SET_DUMPABLE, false, "cannot keep others from tracing it"},
		{"prctl", PR_SET_PDEATHSIG, false, "cannot keep others from tracing it"},
		{"seccomp_rule", 0, false, "cannot filter its system calls"},
		{"seccomp_load", 0, false,
		 "cannot filter its system calls: Function not implemented"},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const char *said;

		if (steps[i].as_root && geteuid() != 0)
			continue;
		failing = steps[i].call;
		failing_what = steps[i].what;
		said = child_says(run_failing);
		if (!strstr(said, steps[i].text))
			fail_msg("%s %d: '%s'", failing, failing_what, said);
	}
}

static void calls_must_fail(struct wss_error *err)
{
	static struct sock_filter drop = {6, 0, 0, 0};
	const struct sock_fprog program = {1, &drop};
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct msghdr message = {.msg_iovlen = 0};
	int sockets[2];

	failing = "";
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0 ||
	    dup2(sockets[0], WSS_HTTP_CHANNEL) < 0 || dup2(sockets[0], LISTENER) < 0) {
		wss_error_set(err, WSS_ERR_FAILED, "sockets");
		return;
	}
	if (confine(err) < 0)
		return;
#define MUST_FAIL(call)                                                             \
	do {                                                                        \
		errno = 0;                                                          \
		if ((call) != -1 || errno != EPERM)                                 \
			wss_error_set(err, WSS_ERR_FAILED, "%s: %d", #call, errno); \
	} while (0)
	MUST_FAIL(socket(AF_INET, SOCK_STREAM, 0));
	MUST_FAIL(open("/", O_RDONLY));
	MUST_FAIL(kill(getppid(), 0));
	MUST_FAIL((int)syscall(SYS_tgkill, getppid(), getppid(), 0));
	/* Whatever changes the open file that is shared with the service. */
	for (int fd = WSS_HTTP_CHANNEL; fd <= LISTENER; fd++) {
		MUST_FAIL(shutdown(fd, SHUT_RD));
		MUST_FAIL(shutdown(fd, SHUT_RDWR));
		/* The kernel ignores the upper half. */
		MUST_FAIL((int)syscall(SYS_shutdown, 1UL << 32 | (unsigned long)fd, SHUT_RDWR));
		MUST_FAIL(listen(fd, 0));
		MUST_FAIL(bind(fd, &none, sizeof(none)));
		MUST_FAIL(connect(fd, &none, sizeof(none)));
		MUST_FAIL(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
		MUST_FAIL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &program, sizeof(program)));
		MUST_FAIL(setsockopt(fd, IPPROTO_TCP, 1, &fd, sizeof(fd)));
		MUST_FAIL(fcntl(fd, F_SETFL, 0));
		MUST_FAIL(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
		MUST_FAIL(fcntl(fd, F_SETOWN, getpid()));
		MUST_FAIL(ioctl(fd, 0x5421 /* FIONBIO */, &fd));
		/* Under another number the checks above would not know it. */
		MUST_FAIL(dup(fd));
		MUST_FAIL(dup2(fd, 40));
		MUST_FAIL(fcntl(fd, F_DUPFD, 40));
	}
	MUST_FAIL(setsockopt(sockets[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	MUST_FAIL((int)recvmsg(sockets[1], &message, MSG_DONTWAIT));
	/* What it needs. */
	if (shutdown(sockets[1], SHUT_RDWR) < 0 || fcntl(LISTENER, F_GETFL) < 0)
		wss_error_set(err, WSS_ERR_FAILED, "it cannot work: %s", strerror(errno));
}

TEST(test_what_is_shared_cannot_be_changed)
{
	assert_string_equal(child_says(calls_must_fail), "");
}

static void memory_must_end(struct wss_error *err)
{
	/* Most of these do not count as data. */
	static const int kinds[] = {MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_GROWSDOWN};
	const size_t piece = 64 << 20;

	failing = "";
	if (confine(err) < 0)
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t mapped = 0;

		while (mapped < 4UL << 30 &&
		       mmap(NULL, piece, PROT_READ | PROT_WRITE,
			    kinds[i] | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
			mapped += piece;
		if (mapped > 2UL << 30 || (i == 0 && mapped < piece))
			wss_error_set(err, WSS_ERR_FAILED, "kind %zu: %zu MiB", i, mapped >> 20);
	}
}

TEST(test_memory_of_all_kinds_is_limited)
{
	assert_string_equal(child_says(memory_must_end), "");
}

int main(void)
{
	return tests_run();
}
