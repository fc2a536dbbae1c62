/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guests that libvirt manages.
 *
 * Calls that do not wait for a guest's QEMU (XML, state) are made on the connection itself, all others
 * (job, statistics, also with NOWAIT) on side connections, so that one blocked guest does not delay another
 * (conn-call.c). A libvirt call cannot be cut short, so none is started once the guest's deadline
 * (base/deadline.h) has passed, except calls that restore something.
 */
#include "host/conn-private.h"
#include "host/domain-stats.h"

#include <inttypes.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/deadline.h"
#include "host/inventory.h"
#include "host/jobs.h"
#include "host/lifecycle.h"
#include "host/process-find.h"
#include "qmp/qmp.h"

_Static_assert(WSS_DOMXML_NO_OWNER == WSS_UID_ANY, "no owner in the XML stands for any user");

struct domain_source {
	struct wss_conn *conn;
	virDomainPtr dom;
	struct wss_watch *watch; /* NULL: libvirt sends no events */
};

static void set_state(struct wss_guest *guest, enum wss_guest_state state, const char *text)
{
	guest->state = state;
	snprintf(guest->state_text, sizeof(guest->state_text), "%s", text);
}

static void set_paused(struct wss_guest *guest, int reason)
{
	switch (reason) {
	case VIR_DOMAIN_PAUSED_MIGRATION:
	case VIR_DOMAIN_PAUSED_POSTCOPY:
	case VIR_DOMAIN_PAUSED_STARTING_UP:
		set_state(guest, WSS_GUEST_INCOMING, "migrating or starting up");
		break;
	case VIR_DOMAIN_PAUSED_SAVE:
	case VIR_DOMAIN_PAUSED_DUMP:
	case VIR_DOMAIN_PAUSED_SNAPSHOT:
		set_state(guest, WSS_GUEST_PAUSED, "paused (saving)");
		break;
	case VIR_DOMAIN_PAUSED_IOERROR:
		set_state(guest, WSS_GUEST_PAUSED, "paused (I/O error)");
		break;
	default:
		set_state(guest, WSS_GUEST_PAUSED, "paused");
		break;
	}
}

/*
 * A saved or migrated guest keeps its balloon's size when it resumes. A libvirtd that was started since
 * does not know why a guest is off.
 */
static void set_shutoff(struct wss_guest *guest, virDomainPtr dom, int reason)
{
	bool moved = reason == VIR_DOMAIN_SHUTOFF_MIGRATED, saved;

	saved = reason == VIR_DOMAIN_SHUTOFF_SAVED || virDomainHasManagedSaveImage(dom, 0) == 1;
	guest->kept = moved || saved || reason == VIR_DOMAIN_SHUTOFF_UNKNOWN;
	set_state(guest, WSS_GUEST_SHUTOFF,
		  moved	  ? "on another host"
		  : saved ? "saved"
			  : "shut off");
}

static int refresh_state(struct wss_guest *guest, virDomainPtr dom, struct wss_error *err)
{
	int state, reason;

	guest->kept = false;
	if (virDomainGetState(dom, &state, &reason, 0) < 0)
		return wss_conn_error(err, "cannot read the domain's state");
	switch (state) {
	case VIR_DOMAIN_RUNNING:
	case VIR_DOMAIN_BLOCKED:
		if (reason == VIR_DOMAIN_RUNNING_POSTCOPY)
			set_state(guest, WSS_GUEST_INCOMING, "in post-copy migration");
		else
			set_state(guest, WSS_GUEST_RUNNING, "running");
		break;
	case VIR_DOMAIN_PAUSED:
		set_paused(guest, reason);
		break;
	case VIR_DOMAIN_SHUTOFF:
		set_shutoff(guest, dom, reason);
		break;
	case VIR_DOMAIN_SHUTDOWN:
		set_state(guest, WSS_GUEST_OTHER, "shutting down");
		break;
	case VIR_DOMAIN_CRASHED:
		set_state(guest, WSS_GUEST_PAUSED, "crashed");
		break;
	case VIR_DOMAIN_PMSUSPENDED:
		set_state(guest, WSS_GUEST_PAUSED, "suspended by its power management");
		break;
	default:
		set_state(guest, WSS_GUEST_OTHER, "in an unknown state");
		break;
	}
	return 0;
}

static int refresh_job(struct wss_guest *guest, virDomainPtr dom, struct wss_error *err)
{
	guest->job[0] = '\0';
	return guest->state == WSS_GUEST_RUNNING
		       ? wss_jobs_find(dom, &guest->config, guest->deadline, guest->job, err)
		       : 0;
}

/* Balloon figures are optional: without them the sample lacks a column. */
static void refresh_balloon(struct wss_guest *guest, virDomainPtr dom)
{
	guest->balloon_bytes.known = guest->unreclaimable_bytes.known = guest->cache_bytes.known =
		guest->reserve_bytes.known = false;
	if (guest->state != WSS_GUEST_SHUTOFF)
		wss_domain_read_balloon(dom, guest);
}

/* Before a call that may hang. */
static int call_begin(struct wss_guest *guest, const char *step, struct wss_conn_call *ret_call,
		      struct wss_error *err)
{
	struct domain_source *source = guest->source;

	return wss_conn_call_begin(source->conn, source->dom, WSS_CALL_NEEDS_QEMU, guest->deadline,
				   step, ret_call, err);
}

static int domain_balloon_stats(struct wss_guest *guest, struct wss_balloon_stats *ret_stats,
				struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "reading the balloon's statistics", &call, err) < 0)
		return -1;
	return wss_domain_balloon_stats(call.dom, ret_stats, err);
}

static int domain_disk_reads(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (guest->config.unseen_reads)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"a process other than QEMU reads files or a disk for the guest");
	if (call_begin(guest, "reading the disks' statistics", &call, err) < 0)
		return -1;
	return wss_domain_disk_reads(call.dom, ret_bytes, err);
}

static int domain_balloon_size(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "reading the size of the balloon", &call, err) < 0)
		return -1;
	return wss_domain_balloon_size(call.dom, ret_bytes, err);
}

static int domain_set_balloon(struct wss_guest *guest, uint64_t bytes, struct wss_error *err)
{
	struct domain_source *source = guest->source;
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	/* It may give memory back, for which it is never too late; a QEMU that is stopped obeys when it goes on. */
	if (wss_conn_call_begin(source->conn, source->dom, WSS_CALL_NEEDS_TURN, NULL,
				"setting the balloon", &call, err) < 0)
		return -1;
	if (virDomainSetMemoryFlags(call.dom, (unsigned long)(bytes / 1024),
				    VIR_DOMAIN_AFFECT_LIVE) < 0)
		return wss_conn_error(err, "cannot set the balloon");
	return 0;
}

/* A libvirt call cannot be cut short, so none is started once the guest's deadline has passed. */
static int in_time(const struct wss_guest *guest, const char *step, struct wss_error *err)
{
	wss_deadline_step(guest->deadline, step);
	return wss_deadline_check(guest->deadline, err);
}

/* Memory and devices may be plugged or unplugged between two windows. */
static int refresh_config(struct wss_guest *guest, virDomainPtr dom, struct wss_error *err)
{
	char *xml = virDomainGetXMLDesc(dom, 0);
	int r = xml ? wss_domxml_parse(xml, &guest->config, err)
		    : wss_conn_error(err, "cannot read the domain's XML");

	free(xml);
	guest->kvm = r == 0 && !strcmp(guest->config.type, "kvm");
	return r;
}

static int refresh_state_and_config(struct wss_guest *guest, virDomainPtr dom,
				    struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (in_time(guest, "reading the domain's XML", err) < 0 ||
	    refresh_config(guest, dom, err) < 0 ||
	    in_time(guest, "reading the domain's state", err) < 0 ||
	    refresh_state(guest, dom, err) < 0 ||
	    call_begin(guest, "reading the domain's jobs", &call, err) < 0 ||
	    refresh_job(guest, call.dom, err) < 0 ||
	    in_time(guest, "reading the balloon's statistics", err) < 0)
		return -1;
	refresh_balloon(guest, call.dom);
	return 0;
}

static int domain_refresh(struct wss_guest *guest, struct wss_error *err)
{
	struct domain_source *source = guest->source;
	struct wss_watch *watch = source->watch;

	/* Cleared before the state is read, so that no later event is lost. */
	if (watch)
		wss_watch_forget(watch);
	if (refresh_state_and_config(guest, source->dom, err) < 0) {
		/* In that case a transient domain is gone for good. */
		guest->kept = watch && watch->kept;
		guest->ended = watch && watch->ended;
		return -1;
	}
	if (watch && guest->state != WSS_GUEST_SHUTOFF)
		watch->kept = watch->ended = false;
	return 0;
}

static struct wss_disturbance domain_disturbed(struct wss_guest *guest)
{
	struct domain_source *source = guest->source;

	return source->watch ? wss_watch_disturbance(source->watch)
			     : (struct wss_disturbance){.stopped = false};
}

static int domain_kvm_counts(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			     struct wss_error *err)
{
	struct domain_source *source = guest->source;
	wss_auto_call struct wss_conn_call call = {.conn = NULL};
	qmp_auto struct qmp *qmp = NULL;

	if (call_begin(guest, "reading KVM's counters", &call, err) < 0)
		return -1;
	if (wss_domain_kvm_counts(call.dom, ret_counts, err) == 0)
		return 0;
	if (err->code != WSS_ERR_UNSUPPORTED || !source->conn->allow_monitor)
		return -1;
	wss_error_clear(err);
	if (wss_monitor_open(call.dom, guest->deadline, &qmp, err) < 0)
		return -1;
	return wss_kvm_counts_qmp(qmp, ret_counts, err);
}

static int domain_dirty_log_start(struct wss_guest *guest, unsigned seconds, struct wss_error *err)
{
#if LIBVIR_VERSION_NUMBER >= 8001000
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "starting the dirty log", &call, err) < 0)
		return -1;
	if (virDomainStartDirtyRateCalc(call.dom, (int)seconds,
					VIR_DOMAIN_DIRTYRATE_MODE_DIRTY_BITMAP) < 0)
		return wss_conn_error(err, "cannot start the dirty log");
	return 0;
#else
	(void)guest;
	(void)seconds;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "this build's libvirt cannot start the dirty log (needs 8.1)");
#endif
}

static int domain_page_sampling_start(struct wss_guest *guest, unsigned seconds,
				      unsigned *ret_per_gib, struct wss_error *err)
{
#if LIBVIR_VERSION_NUMBER >= 7002000
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "starting to sample pages", &call, err) < 0)
		return -1;
	/* libvirt leaves the number of samples to QEMU. */
	*ret_per_gib = 512;
	if (virDomainStartDirtyRateCalc(call.dom, (int)seconds, 0) < 0)
		return wss_conn_error(err, "cannot sample pages");
	return 0;
#else
	(void)guest;
	(void)seconds;
	(void)ret_per_gib;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "this build's libvirt cannot sample pages (needs 7.2)");
#endif
}

static int domain_dirty_log_query(struct wss_guest *guest, struct wss_dirty_log *ret_log,
				  struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "reading the state of the dirty log", &call, err) < 0)
		return -1;
	return wss_domain_dirty_log(call.dom, ret_log, err);
}

/*
 * Returns the user that the guest's QEMU runs as. Where libvirt runs as root, the DAC label
 * states the user. A libvirt of another user can only start QEMU as that user, who owns the
 * directory of its state. WSS_UID_ANY if neither is known.
 */
static uid_t qemu_owner(const struct wss_conn *conn, const struct wss_domxml *config,
			const struct wss_host *host)
{
	const char *run_dir = conn->uri.run_dir + strspn(conn->uri.run_dir, "/");
	bool has_label = config->owner != WSS_DOMXML_NO_OWNER;
	struct stat st;

	if (has_label || (conn->uri.kind != WSS_URI_SESSION && conn->uri.kind != WSS_URI_EMBED) ||
	    conn->uri.own_socket || conn->uri.has_server)
		return config->owner;
	return *run_dir && fstatat(host->root.dirfd, run_dir, &st, 0) == 0 ? st.st_uid
									   : WSS_UID_ANY;
}

int wss_conn_process(struct wss_conn *conn, const struct wss_host *host,
		     const struct wss_domxml *config, const struct wss_deadline *deadline,
		     struct wss_process *ret_process, struct wss_error *err)
{
	int r = conn->qemu_driver ? wss_conn_check_locality(conn, host, deadline, err)
				  : wss_error_set(err, WSS_ERR_UNSUPPORTED,
						  "libvirt's driver '%s' runs no QEMU guests",
						  virConnectGetType(conn->vir));

	if (r < 0)
		return -1;
	return wss_process_attach(&host->root, conn->uri.run_dir, config->name, config->uuid,
				  qemu_owner(conn, config, host), ret_process, err);
}

static int domain_attach(struct wss_guest *guest, const struct wss_host *host,
			 struct wss_error *err)
{
	struct domain_source *source = guest->source;

	return wss_conn_process(source->conn, host, &guest->config, guest->deadline,
				&guest->process, err);
}

static int domain_publish(struct wss_guest *guest, const char *xml, bool persistent,
			  struct wss_error *err)
{
	struct domain_source *source = guest->source;
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (wss_conn_call_begin(source->conn, source->dom, WSS_CALL_NEEDS_TURN, guest->deadline,
				"writing the domain's metadata", &call, err) < 0)
		return -1;
	return wss_conn_store(call.dom, WSS_PROFILE_NAMESPACE, WSS_PROFILE_PREFIX, xml, persistent,
			      err);
}

static int domain_ask_for_statistics(struct wss_guest *guest, unsigned seconds,
				     struct wss_error *err)
{
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (call_begin(guest, "turning on its balloon's statistics", &call, err) < 0)
		return -1;
	if (virDomainSetMemoryStatsPeriod(call.dom, (int)seconds, VIR_DOMAIN_AFFECT_LIVE) < 0)
		return wss_conn_error(err, "cannot turn on its balloon's statistics");
	return 0;
}

static int domain_metadata(struct wss_guest *guest, const char *namespace_uri, char **ret_xml,
			   struct wss_error *err)
{
	struct domain_source *source = guest->source;

	if (in_time(guest, "reading the domain's metadata", err) < 0)
		return -1;
	return wss_conn_element(source->dom, namespace_uri, ret_xml, err);
}

/* Calls nothing that waits for libvirt, which may hang by now. */
static void domain_release(struct wss_guest *guest)
{
	struct domain_source *source = guest->source;

	if (!source)
		return;
	wss_watch_end(source->watch);
	virDomainFree(source->dom);
	free(source);
}

static const struct wss_guest_ops domain_ops = {
	.refresh = domain_refresh,
	.kvm_counts = domain_kvm_counts,
	.dirty_log_start = domain_dirty_log_start,
	.dirty_log_query = domain_dirty_log_query,
	.page_sampling_start = domain_page_sampling_start,
	.attach = domain_attach,
	.disturbed = domain_disturbed,
	.publish = domain_publish,
	.ask_for_statistics = domain_ask_for_statistics,
	.balloon_stats = domain_balloon_stats,
	.disk_reads = domain_disk_reads,
	.balloon_size = domain_balloon_size,
	.set_balloon = domain_set_balloon,
	.metadata = domain_metadata,
	.release = domain_release,
};

int wss_conn_guest(struct wss_conn *conn, const struct wss_domain_ref *ref,
		   const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		   struct wss_error *err)
{
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, ref, err);
	struct domain_source *source;
	struct wss_guest *guest;

	if (!dom)
		return -1;
	source = calloc(1, sizeof(*source));
	guest = source ? wss_guest_new(&domain_ops, source, deadline) : NULL;
	if (!guest) {
		free(source);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	source->conn = conn;
	source->dom = wss_steal_ptr(dom);
	guest->foreign = !conn->qemu_driver;
	if (wss_watch_begin(conn->lifecycle, conn->vir, source->dom, &source->watch) < 0) {
		wss_guest_free(guest);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (domain_refresh(guest, err) < 0) {
		wss_guest_free(guest);
		return -1;
	}
	*ret_guest = guest;
	return 0;
}
