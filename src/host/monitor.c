/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QMP through libvirt's monitor passthrough: the last resort, because it taints the domain
 * (custom-monitor) permanently.
 */
#include "host/conn-private.h"

#include <libvirt/libvirt-qemu.h>

#include "qmp/qmp.h"

static int monitor_execute(void *opaque, const char *command, uint64_t deadline_ns,
			   size_t reply_bytes, char **ret_reply, struct wss_error *err)
{
	/* Not used: libvirt itself gives up on a busy monitor, and keepalive on a dead libvirtd. */
	(void)deadline_ns;
	(void)reply_bytes;
	if (virDomainQemuMonitorCommand(opaque, command, ret_reply, 0) < 0)
		return wss_conn_error(err, "the monitor command failed");
	return 0;
}

static const struct qmp_transport_ops monitor_ops = {
	.name = "libvirt's monitor",
	.execute = monitor_execute,
};

int wss_monitor_open(virDomainPtr dom, const struct wss_deadline *deadline, struct qmp **ret_qmp,
		     struct wss_error *err)
{
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;

	limits.deadline = deadline;
	return qmp_open_transport(&monitor_ops, dom, &limits, ret_qmp, err);
}
