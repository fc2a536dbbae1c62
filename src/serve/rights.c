/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/rights.h"

#include <cap-ng.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/privilege.h"

#define BIT(cap) (1ULL << (cap))
#define MEASURING (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_BPF) | BIT(CAP_PERFMON))
#define HTTP \
	(BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_CHROOT) | BIT(CAP_KILL))

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
	uint64_t keep = MEASURING | (http ? HTTP : 0), permitted = 0;
	capng_select_t which = CAPNG_SELECT_CAPS;
	int r;

	if (geteuid() != 0 || libvirt_is_ours(uri))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot set no_new_privs");
	capng_get_caps_process();
	/* A sandbox may withhold CAP_SETPCAP: it has limited the bounding set itself. */
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP))
		which = CAPNG_SELECT_ALL;
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++)
		permitted |= capng_have_capability(CAPNG_PERMITTED, cap) ? BIT(cap) : 0;
	capng_clear(CAPNG_SELECT_ALL);
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (keep & BIT(cap))
			capng_update(CAPNG_ADD, CAPNG_BOUNDING_SET, cap);
		if (keep & permitted & BIT(cap))
			capng_update(CAPNG_ADD,
				     CAPNG_PERMITTED | (MEASURING & BIT(cap) ? CAPNG_EFFECTIVE : 0),
				     cap);
	}
	r = capng_apply(which);
	return r < 0 ? wss_error_set(err, WSS_ERR_FAILED,
				     "cannot give up capabilities (libcap-ng: %d)", r)
		     : 0;
}

void wss_rights_kill(int pidfd, int signal)
{
	bool raise;

	capng_get_caps_process();
	raise = !capng_have_capability(CAPNG_EFFECTIVE, CAP_KILL) &&
		capng_have_capability(CAPNG_PERMITTED, CAP_KILL);
	if (raise) {
		capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_KILL);
		capng_apply(CAPNG_SELECT_CAPS);
	}
	syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
	if (raise) {
		capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, CAP_KILL);
		capng_apply(CAPNG_SELECT_CAPS);
	}
}
