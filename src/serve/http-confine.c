/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/root.h"
#include "serve/http-child.h"

/*
 * Memory that serving may take, on top of what the process has at its start: of its own, and with the pages that are
 * still being sent. The latter also limits what RLIMIT_DATA does not count: shared memory, stacks and page tables.
 */
#define DATA_MAX_BYTES (128UL << 20)
#define ADDRESSES_MAX_BYTES (1UL << 30)

/* --- rights --- */

/*
 * An empty directory that no longer has a name: nothing can be created in it. The process has
 * no descriptor of another directory by which it could leave.
 */
static int root_enter_empty(struct wss_error *err)
{
	char path[] = "/tmp/virt-wss-XXXXXX", run_path[] = "/run/virt-wss-XXXXXX";
	const char *made = mkdtemp(path);
	int r;

	if (!made)
		made = mkdtemp(run_path);
	if (!made)
		return wss_error_errno(
			err, WSS_ERR_FAILED, errno,
			"cannot make an empty directory in /tmp or /run to be confined to");
	r = chdir(made);
	rmdir(made);
	if (r < 0 || chroot(".") < 0 || chdir("/") < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot be confined to an empty root directory");
	return 0;
}

static int capabilities_drop(uid_t uid, gid_t gid, bool root, struct wss_error *err)
{
	bool may_bound;
	int r;

	/* A sandbox may withhold CAP_SETPCAP; no_new_privs makes the bounding set useless anyway. */
	may_bound = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
	capng_clear(CAPNG_SELECT_ALL);
	if (may_bound && (r = capng_apply(CAPNG_SELECT_BOUNDS)) < 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "cannot empty the bounding set of capabilities (%d)", r);
	if (root)
		r = capng_change_id((int)uid, (int)gid, CAPNG_DROP_SUPP_GRP);
	else
		r = capng_apply(CAPNG_SELECT_CAPS);
	if (r < 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "cannot give up privileges (libcap-ng: %d)", r);
	capng_get_caps_process();
	if (capng_have_capabilities(CAPNG_SELECT_CAPS) != CAPNG_NONE ||
	    (root && (setuid(0) == 0 || geteuid() != uid)))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "capabilities are left after all were given up");
	return 0;
}

/* --- resources --- */

static int limit(int resource, rlim_t value)
{
	struct rlimit old;

	if (getrlimit(resource, &old) < 0)
		return -1;
	if (value > old.rlim_max)
		value = old.rlim_max;
	return setrlimit(resource, &(struct rlimit){value, value});
}

/*
 * What the process has mapped, in bytes, and may write to, as RLIMIT_AS and RLIMIT_DATA count it (proc(5), statm). An
 * absolute limit would end a program with sanitizers.
 */
static bool memory_now(rlim_t *ret_addresses, rlim_t *ret_data)
{
	const rlim_t page = (rlim_t)sysconf(_SC_PAGESIZE);
	unsigned long addresses, data;
	struct wss_root root;
	char line[256];
	bool known = false;

	if (wss_root_open("/", &root, NULL) < 0)
		return false;
	if (wss_root_read_line(&root, "proc/self/statm", line, sizeof(line)) == 0)
		known = sscanf(line, "%lu %*u %*u %*u %*u %lu", &addresses, &data) == 2;
	wss_root_close(&root);
	if (known) {
		*ret_addresses = addresses * page;
		*ret_data = data * page;
	}
	return known;
}

/*
 * Where memory is short, for the service and this process together or the whole host, the kernel ends this process
 * first. A sandbox may refuse that.
 */
static void memory_yield(void)
{
	static const char most[] = "1000";
	wss_auto_close int fd = -1;
	struct wss_root root;

	if (wss_root_open("/", &root, NULL) < 0)
		return;
	fd = wss_root_openat(&root, "proc/self/oom_score_adj", O_WRONLY);
	if (fd >= 0 && write(fd, most, sizeof(most) - 1) < 0)
		wss_debug("HTTP: cannot set oom_score_adj: %s", strerror(errno));
	wss_root_close(&root);
}

static int resources_limit(unsigned max_fds, struct wss_error *err)
{
	rlim_t addresses, data;

	if (!memory_now(&addresses, &data))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "cannot limit its memory: /proc/self/statm is not readable");
	if (limit(RLIMIT_DATA, data + DATA_MAX_BYTES) < 0 ||
	    limit(RLIMIT_AS, addresses + ADDRESSES_MAX_BYTES) < 0 ||
	    limit(RLIMIT_NOFILE, max_fds) < 0 || limit(RLIMIT_NPROC, 0) < 0 ||
	    limit(RLIMIT_CORE, 0) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot limit its resources");
	return 0;
}

int wss_http_confine(uid_t uid, gid_t gid, unsigned max_fds, struct wss_error *err)
{
	bool root = geteuid() == 0;

	memory_yield();
	if (resources_limit(max_fds, err) < 0)
		return -1;
	capng_get_caps_process();
	/* A sandbox may withhold it, as our unit does. */
	if (root && capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_CHROOT) &&
	    root_enter_empty(err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot set no_new_privs");
	if (capabilities_drop(uid, gid, root, err) < 0)
		return -1;
	/* Both are reset when the user changes. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return wss_error_errno(
			err, WSS_ERR_FAILED, errno,
			"cannot keep others from tracing it, or end with the service");
	return 0;
}

/* --- system calls --- */

/*
 * Calls of our loop, of libmicrohttpd, and of libc for memory and locks. None opens a file or a connection, or runs a
 * program. libseccomp ignores those that an architecture lacks.
 */
static const int allowed[] = {
	/* sockets */
	SCMP_SYS(accept4),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(close),
	/* waiting */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(ppoll_time64),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(futex),
	SCMP_SYS(futex_time64),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_gettime64),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	/* pages and memory */
	SCMP_SYS(mmap),
	SCMP_SYS(mmap2),
	SCMP_SYS(munmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(newfstatat),
	SCMP_SYS(fstatat64),
	SCMP_SYS(statx),
	SCMP_SYS(getrandom),
	/* the end */
	SCMP_SYS(sigreturn),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Adds the calls that depend on their arguments. Returns 0 or a negative errno. */
static int filter_add_conditions(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp by_tcp = SCMP_A1(SCMP_CMP_EQ, IPPROTO_TCP, 0);
	const struct {
		int call;
		unsigned n;
		struct scmp_arg_cmp args[2];
	} rules[] = {
		{SCMP_SYS(setsockopt), 2, {by_tcp, SCMP_A2(SCMP_CMP_EQ, TCP_NODELAY, 0)}},
		{SCMP_SYS(setsockopt), 2, {by_tcp, SCMP_A2(SCMP_CMP_EQ, TCP_CORK, 0)}},
		/* Others could send a descriptor back, under another number. */
		{SCMP_SYS(recvmsg), 1, {SCMP_A0(SCMP_CMP_EQ, WSS_HTTP_CHANNEL, 0)}},
		/* abort() */
		{SCMP_SYS(tgkill), 1, {SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)}},
	};
	/* F_SETFL and others would change the open file; a duplicate would have another number. */
	static const unsigned commands[] = {F_GETFD, F_SETFD, F_GETFL, F_GET_SEALS};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct scmp_arg_cmp command = SCMP_A1(SCMP_CMP_EQ, commands[i], 0);

		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, &command);
		if (r == 0)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl64), 1,
						   &command);
	}
	for (size_t i = 0; r == 0 && i < sizeof(rules) / sizeof(rules[0]); i++)
		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n,
					   rules[i].args);
	return r;
}

/* A second filter, as the strictest of them decides: no call changes a shared socket. Returns 0 or a negative errno. */
static int filter_add_shared(scmp_filter_ctx filter, int last_listener)
{
	int r = 0;

	for (int fd = 0; r == 0 && fd <= last_listener; fd++) {
		/* The kernel looks at 32 bits of a descriptor only. */
		const struct scmp_arg_cmp shared =
			SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)fd);

		r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(shutdown), 1,
					   &shared);
		if (r == 0)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM),
						   SCMP_SYS(setsockopt), 1, &shared);
	}
	return r;
}

int wss_http_confine_calls(int last_listener, struct wss_error *err)
{
	scmp_filter_ctx calls = seccomp_init(SCMP_ACT_ERRNO(EPERM)),
			shared = seccomp_init(SCMP_ACT_ALLOW);
	int r = calls && shared ? 0 : -ENOMEM;

	/* The errno of the kernel, instead of ECANCELED for any. */
	if (r == 0)
		r = seccomp_attr_set(shared, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (r == 0)
		r = seccomp_attr_set(calls, SCMP_FLTATR_API_SYSRAWRC, 1);
	for (size_t i = 0; r == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		r = seccomp_rule_add(calls, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r == 0)
		r = filter_add_conditions(calls);
	if (r == 0)
		r = filter_add_shared(shared, last_listener);
	if (r == 0)
		r = seccomp_load(shared);
	if (r == 0)
		r = seccomp_load(calls);
	seccomp_release(calls);
	seccomp_release(shared);
	return r < 0 ? wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot filter its system calls")
		     : 0;
}
