/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of some systems that we build on. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define BIT(cap) (1ULL << (cap))
#define MEASURING                                                                             \
	(BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_BPF) | BIT(CAP_PERFMON))
#define HTTP                                                                                  \
	(BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_CHROOT) |         \
	 BIT(CAP_KILL))

struct capabilities {
	uint64_t effective, permitted;
};

static int capabilities_get(struct capabilities *ret)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	ret->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	ret->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

static int capabilities_set(const struct capabilities *set)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = (uint32_t)(set->effective & UINT32_MAX),
		 .permitted = (uint32_t)(set->permitted & UINT32_MAX)},
		{.effective = (uint32_t)(set->effective >> 32),
		 .permitted = (uint32_t)(set->permitted >> 32)},
	};

	return (int)syscall(SYS_capset, &header, data);
}

static int bounding_set_limit(uint64_t keep)
{
	for (unsigned cap = 0; cap < 64; cap++)
		if (!(keep & BIT(cap)) &&
		    prctl(PR_CAPBSET_DROP, (unsigned long)cap, 0, 0, 0) < 0)
			/* A sandbox may withhold CAP_SETPCAP: it has limited the set itself.
			 */
			return errno == EINVAL || errno == EPERM ? 0 : -1;
	return 0;
}

/*
 * A driver that runs in this process needs the rights of a libvirtd, and so does a daemon of
 * the session, which libvirt starts as our child.
 */
static bool libvirt_is_ours(const char *uri)
{
	const char *path;

	if (!uri || !*uri)
		uri = getenv("LIBVIRT_DEFAULT_URI");
	path = uri ? strstr(uri, ":///") : NULL;
	if (!path || memchr(uri, '+', (size_t)(path - uri)))
		return false;
	return !strncmp(path, ":///embed", 9) || !strncmp(path, ":///session", 11);
}

int wss_rights_limit(const char *uri, bool http, struct wss_error *err)
{
	uint64_t keep = MEASURING | (http ? HTTP : 0);
	struct capabilities set;

	if (geteuid() != 0 || libvirt_is_ours(uri))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || bounding_set_limit(keep) < 0 ||
	    capabilities_get(&set) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot give up capabilities");
	set.permitted &= keep;
	set.effective &= MEASURING;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (capabilities_set(&set) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot give up capabilities");
	return 0;
}

void wss_rights_kill(pid_t pid, int signal)
{
	struct capabilities set, raised;
	bool is_known = capabilities_get(&set) == 0;

	raised = set;
	if (is_known) {
		raised.effective |= set.permitted & BIT(CAP_KILL);
		capabilities_set(&raised);
	}
	kill(pid, signal);
	if (is_known)
		capabilities_set(&set);
}
