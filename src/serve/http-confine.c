/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/root.h"

/* Memory that serving may take, on top of what the process has at its start. */
#define DATA_MAX_BYTES (64UL << 20)

/* --- rights --- */

/*
 * An empty directory that no longer has a name: nothing can be created in it. The process has
 * no descriptor of another directory by which it could leave.
 */
static int root_enter_empty(void)
{
	char path[] = "/tmp/virt-wss-XXXXXX", run_path[] = "/run/virt-wss-XXXXXX";
	const char *made = mkdtemp(path);

	if (!made)
		made = mkdtemp(run_path);
	if (!made || chdir(made) < 0) {
		if (made)
			rmdir(made);
		return -1;
	}
	rmdir(made);
	return chroot(".") < 0 || chdir("/") < 0 ? -1 : 0;
}

static int bounding_set_empty(void)
{
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -1;
	return 0;
}

static int user_become(uid_t uid, gid_t gid)
{
	if (geteuid() == 0 && setgroups(0, NULL) < 0)
		return -1;
	return setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -1 : 0;
}

static int capabilities_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)syscall(SYS_capset, &header, none);
}

static bool capabilities_are_gone(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (data[i].effective || data[i].permitted || data[i].inheritable)
			return false;
	return true;
}

/* --- resources --- */

static void limit(int resource, rlim_t value)
{
	struct rlimit old;

	if (getrlimit(resource, &old) < 0)
		return;
	if (value > old.rlim_max)
		value = old.rlim_max;
	setrlimit(resource, &(struct rlimit){value, value});
}

/*
 * Memory that the process may write to, in bytes, as RLIMIT_DATA counts it (proc(5), statm);
 * 0: not known. An absolute limit would end a program with sanitizers.
 */
static rlim_t data_now(void)
{
	struct wss_root root;
	char line[256];
	unsigned long pages;
	bool known = false;

	if (wss_root_open("/", &root, NULL) < 0)
		return 0;
	if (wss_root_read_line(&root, "proc/self/statm", line, sizeof(line)) == 0)
		known = sscanf(line, "%*u %*u %*u %*u %*u %lu", &pages) == 1;
	wss_root_close(&root);
	return known ? (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) : 0;
}

static void resources_limit(unsigned max_fds)
{
	rlim_t data = data_now();

	if (data)
		limit(RLIMIT_DATA, data + DATA_MAX_BYTES);
	limit(RLIMIT_NOFILE, max_fds);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_CORE, 0);
}

int wss_http_confine(uid_t uid, gid_t gid, unsigned max_fds, struct wss_error *err)
{
	bool root = geteuid() == 0;

	resources_limit(max_fds);
	if (root)
		root_enter_empty();
	/* A sandbox may withhold CAP_SETPCAP; no_new_privs makes the set useless anyway.
	 */
	if (bounding_set_empty() < 0 && errno != EPERM)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot empty the bounding set");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || user_become(uid, gid) < 0 ||
	    capabilities_drop() < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot give up privileges");
	if (!capabilities_are_gone() || (root && (setuid(0) == 0 || geteuid() != uid)))
		return wss_error_set(err, WSS_ERR_FAILED, "privileges are not gone");
	/* Both are reset when the user changes. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "prctl");
	return 0;
}

/* --- system calls --- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCHITECTURE AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define ALLOW(name)                                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* Calls of our loop, of libmicrohttpd, and of libc for memory and locks. None opens a file or a
 * connection, or runs a program. */
static struct sock_filter filter[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	RETURN(SECCOMP_RET_ERRNO | EPERM),
	LOAD(nr),
	/* sockets */
	ALLOW(accept4),
	ALLOW(recvfrom),
	ALLOW(recvmsg),
	ALLOW(sendto),
	ALLOW(sendmsg),
	ALLOW(read),
	ALLOW(write),
	ALLOW(writev),
	ALLOW(shutdown),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(getsockname),
	ALLOW(fcntl),
	ALLOW(close),
	/* waiting */
	ALLOW(ppoll),
	ALLOW(epoll_ctl),
	ALLOW(epoll_pwait),
	ALLOW(futex),
	ALLOW(restart_syscall),
	ALLOW(clock_gettime),
	ALLOW(gettimeofday),
	/* pages and memory */
	ALLOW(munmap),
	ALLOW(mprotect),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(fstat),
	ALLOW(getrandom),
	/* the end */
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(tgkill),
	ALLOW(exit),
	ALLOW(exit_group),
#ifdef __NR_mmap
	ALLOW(mmap),
#endif
#ifdef __NR_mmap2
	ALLOW(mmap2),
#endif
#ifdef __NR_newfstatat
	ALLOW(newfstatat),
#endif
#ifdef __NR_statx
	ALLOW(statx),
#endif
#ifdef __NR_poll
	ALLOW(poll),
#endif
#ifdef __NR_epoll_wait
	ALLOW(epoll_wait),
#endif
#ifdef __NR_time
	ALLOW(time),
#endif
#ifdef __i386__
	ALLOW(socketcall),
	ALLOW(fcntl64),
	ALLOW(fstat64),
	ALLOW(fstatat64),
	ALLOW(clock_gettime64),
	ALLOW(ppoll_time64),
	ALLOW(futex_time64),
	ALLOW(sigreturn),
#endif
	RETURN(SECCOMP_RET_ERRNO | EPERM),
};

void wss_http_confine_calls(void)
{
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
void wss_http_confine_calls(void)
{
}
#endif
