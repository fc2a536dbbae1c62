/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A QEMU whose command line names a QMP socket is asked there for what the kernel does not know: whether the guest is
 * paused, which devices it has, and the dirty log for windows by 4 KiB. QEMU serves one client of a socket at a time,
 * and its manager, such as Proxmox VE, may be another: each connection lasts for a few questions only, and no longer than the
 * inventory says. If another client
 * never leaves the socket, as with Incus, the guest is measured without these answers.
 */
#include "host/kvmguest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/qmpguest.h"
#include "host/qmppeer.h"
#include "host/stopped.h"
#include "host/vms.h"
#include "kvm/kvm.h"
#include "qmp/dirtyrate.h"
#include "qmp/qmp.h"
#include "qmp/query.h"

/* KVM_MEM_GUEST_MEMFD of linux/kvm.h (Linux 6.8): memory that the host may not be able to map. */
#define MEMORY_OF_GUEST 4

/* QEMU greets at once unless another client is connected. */
#define MONITOR_MS 500
/* A monitor that is shared is tried so often, with such pauses, in which its other client gets its turn. */
#define MONITOR_TRIES 4
#define MONITOR_PAUSE_MS 150

struct kvmguest {
	const struct wss_root *root;
	struct wss_inventory_guest found;
};

static void kvmguest_release(struct wss_guest *guest)
{
	free(guest->source);
}

/*
 * Connects to QEMU's monitor for a few questions. The process at the other end must be that of the VM. deadline is for
 * the connection, which has to be closed before that goes.
 */
static int monitor_connect(struct wss_guest *guest, struct wss_deadline *deadline,
			   struct qmp **ret_qmp, struct wss_error *err)
{
	const struct kvmguest *source = guest->source;
	const struct wss_inventory_guest *found = &source->found;
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	/* What the process claims, which may not be what the guest is known by. */
	const char *uuid = found->vm.has_uuid && found->own_uuid[0] ? found->own_uuid : NULL;
	struct qmp_peer peer;
	struct qmp *qmp;

	limits.deadline = guest->deadline;
	if (found->monitor_ms) {
		*deadline = (struct wss_deadline){.cancel = wss_deadline_cancel(guest->deadline)};
		wss_deadline_allow(deadline, found->monitor_ms * WSS_NS_PER_MS);
		wss_deadline_run(deadline, 0);
		limits.deadline = deadline;
	}
	/* Who connects to a QEMU that is stopped is in its manager's way. */
	if (wss_stopped_check(source->root, &guest->process, limits.deadline, err) < 0)
		return -1;
	if (qmp_open_unix(found->monitor, MONITOR_MS, &limits, &qmp, err) < 0)
		return -1;
	if (qmp_peer(qmp, &peer, err) == 0 && peer.pid != guest->process.pid)
		wss_error_set(err, WSS_ERR_FAILED, "process %d answers there", peer.pid);
	else if (wss_qmppeer_check(&guest->process, &peer, uuid, err) == 0) {
		*ret_qmp = qmp;
		return 0;
	}
	qmp_close(qmp);
	return -1;
}

/*
 * Whether to try again after that error: another client was there first, or QEMU is slow to answer on a busy host. Lets the
 * other client have its turn.
 */
static bool monitor_try_again(const struct wss_guest *guest, int tries, const struct wss_error *err)
{
	const struct kvmguest *source = guest->source;

	return source->found.monitor_ms && tries < MONITOR_TRIES &&
	       (err->code == WSS_ERR_CONNECT || err->code == WSS_ERR_TIMEOUT) &&
	       wss_deadline_check(guest->deadline, NULL) == 0 &&
	       wss_cancel_sleep_until_ns(wss_deadline_cancel(guest->deadline),
					 wss_clock_now_ns() + MONITOR_PAUSE_MS * WSS_NS_PER_MS) ==
		       0;
}

static int monitor_open(struct wss_guest *guest, struct wss_deadline *deadline,
			struct qmp **ret_qmp, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	int tries = 1;

	while (monitor_connect(guest, deadline, ret_qmp, &why) < 0) {
		if (!monitor_try_again(guest, tries++, &why))
			return wss_error_set(err, why.code, "QEMU's monitor: %s", why.text);
		wss_error_clear(&why);
	}
	return 0;
}

static int read_state(struct wss_guest *guest, struct qmp *qmp, void *unused, struct wss_error *err)
{
	const char *device = ((const struct kvmguest *)guest->source)->found.balloon_device;
	struct qmp_balloon_report report = {.update_s = 0};
	struct wss_balloon_stats stats;

	(void)unused;
	if (wss_qmpguest_read_state(guest, qmp, err) < 0)
		return -1;
	/* Without its report the guest is measured all the same. */
	if (device)
		qmp_query_balloon_report(qmp, device, MONITOR_MS, &report, NULL);
	stats = (struct wss_balloon_stats){.actual_bytes = guest->balloon_bytes,
					   .usable_bytes = report.usable_bytes,
					   .free_bytes = report.free_bytes,
					   .cache_bytes = report.cache_bytes,
					   .managed_bytes = report.managed_bytes,
					   .update_s = wss_amount_of(report.update_s)};
	wss_balloon_report_take(guest, &stats);
	return 0;
}

static int read_devices(struct wss_guest *guest, struct qmp *qmp, void *unused,
			struct wss_error *err)
{
	(void)unused;
	(void)err;
	wss_qmpguest_read_devices(guest, qmp);
	return 0;
}

static int read_dirty_log(struct wss_guest *guest, struct qmp *qmp, void *ret_log,
			  struct wss_error *err)
{
	(void)guest;
	return wss_qmpguest_dirty_log(qmp, ret_log, err);
}

/* What the answers say counts only if all came in time. */
static int monitor_read(struct wss_guest *guest,
			int (*read)(struct wss_guest *guest, struct qmp *qmp, void *opaque,
				    struct wss_error *err),
			void *opaque, struct wss_error *err)
{
	const struct kvmguest *source = guest->source;
	struct wss_error why = WSS_ERROR_INIT;
	int r = -1;

	for (int tries = 1; r < 0; tries++) {
		struct wss_deadline deadline;
		struct qmp *qmp = NULL;

		wss_error_clear(&why);
		r = monitor_connect(guest, &deadline, &qmp, &why);
		if (r == 0)
			r = read(guest, qmp, opaque, &why);
		qmp_close(qmp);
		if (r == 0 && source->found.monitor_ms)
			r = wss_deadline_check(&deadline, &why);
		if (r < 0 && !monitor_try_again(guest, tries, &why))
			return wss_error_set(err, why.code, "%s", why.text);
	}
	return 0;
}

/*
 * Without an answer the guest counts as running, and as one whose dirty log must be left alone; as one with a job if
 * most of its memory has its writes logged, which a migration does. (QEMU always logs those to video memory.)
 */
static void ask_monitor(struct wss_guest *guest, bool is_logged)
{
	const struct kvmguest *source = guest->source;
	const struct wss_balloon_stats nothing = {.update_s = {.known = false}};
	struct wss_error err = WSS_ERROR_INIT;

	strcpy(guest->config.dirty_log_hazard,
	       "the kernel alone (only QEMU's monitor starts it, and this guest's is not known: "
	       "QEMU's option -qmp unix:FILE,server=on,wait=off makes one)");
	guest->state = WSS_GUEST_RUNNING;
	strcpy(guest->state_text, "running");
	strcpy(guest->job, is_logged ? "its writes are logged, as for a migration" : "");
	/* The slots have the same size whatever the balloon takes. */
	guest->balloon_bytes = (struct wss_amount){.known = false};
	wss_balloon_report_take(guest, &nothing);
	guest->config.dirty_log_unasked = false;
	if (!source->found.monitor[0] || guest->process.proc.dirfd < 0)
		return;
	if (monitor_read(guest, read_state, NULL, &err) == 0 &&
	    monitor_read(guest, read_devices, NULL, &err) == 0)
		return;
	guest->config.hostdevs = guest->config.shmems = 0;
	guest->config.dirty_log_unasked = err.code == WSS_ERR_TIMEOUT;
	snprintf(guest->config.dirty_log_hazard, sizeof(guest->config.dirty_log_hazard),
		 "QEMU's monitor (%.150s)", err.text);
}

static int kvmguest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	wss_cleanup(wss_kvm_slots_free) struct wss_kvm_slots slots = {.n_slots = 0};
	struct wss_domxml *config = &guest->config;
	uint64_t ram_bytes = 0;
	bool is_logged;

	if (!guest->kernel_vm)
		return 0;
	if (wss_guest_slots(guest, &slots, err) < 0)
		return err && err->code == WSS_ERR_GONE
			       ? wss_error_set(err, WSS_ERR_GONE, "the guest has ended")
			       : -1;
	for (size_t i = 0; i < slots.n_slots; i++) {
		if (wss_kvm_slot_is_ram(&slots, &slots.slots[i]))
			ram_bytes += slots.slots[i].n_pages << 12;
		if (slots.slots[i].flags & MEMORY_OF_GUEST)
			strcpy(config->launch_security, "its memory is a guest_memfd");
	}
	is_logged = wss_kvm_slots_are_logged(&slots);
	/* While all is logged, video memory cannot be told from RAM. */
	if (!is_logged)
		config->current_bytes = config->initial_bytes = config->maximum_bytes = ram_bytes;
	ask_monitor(guest, is_logged);
	return 0;
}

/* The kernel's counters of a VM are a source of their own (measure/counters.h). */
static int kvmguest_kvm_counts(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			       struct wss_error *err)
{
	(void)guest;
	(void)ret_counts;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "BPF cannot read them");
}

static int kvmguest_dirty_log_start(struct wss_guest *guest, unsigned seconds,
				    struct wss_error *err)
{
	struct wss_deadline deadline;
	struct qmp *qmp;
	int r;

	if (monitor_open(guest, &deadline, &qmp, err) < 0)
		return -1;
	r = qmp_start_dirty_bitmap(qmp, seconds, MONITOR_MS, err);
	qmp_close(qmp);
	return r;
}

static int kvmguest_dirty_log_query(struct wss_guest *guest, struct wss_dirty_log *ret_log,
				    struct wss_error *err)
{
	const struct kvmguest *source = guest->source;
	struct wss_error why = WSS_ERROR_INIT;

	*ret_log = (struct wss_dirty_log){.measuring = false};
	if (!source->found.monitor[0] || monitor_read(guest, read_dirty_log, ret_log, &why) == 0)
		return 0;
	return wss_error_set(err, why.code, "QEMU's monitor: %s", why.text);
}

static int kvmguest_attach(struct wss_guest *guest, const struct wss_host *host,
			   struct wss_error *err)
{
	const struct kvmguest *source = guest->source;
	struct wss_process process;

	if (source->found.state != WSS_INVENTORY_RUNNING)
		return wss_error_set(err, WSS_ERR_FAILED, "the guest is %s, not running",
				     guest->state_text);
	if (wss_process_hold(&host->root, source->found.vm.pid, NULL, &process, err) < 0)
		return -1;
	if (process.start_ticks != source->found.vm.start_ticks) {
		wss_process_release(&process);
		return wss_error_set(err, WSS_ERR_GONE, "the guest has ended");
	}
	/* Found again while the process is held, so that it cannot be another one's. */
	if (wss_kvm.open(process.pid, guest->vm, &guest->kernel_vm, err) < 0) {
		wss_process_release(&process);
		return -1;
	}
	guest->process = process;
	/* What is seen (wss_domxml_see_process()) is all that is known about encryption. */
	guest->config.security_unseen = wss_process_has_encryption(&process) < 0;
	if (guest->config.security_unseen)
		strcpy(guest->config.launch_security,
		       "the descriptors of its process cannot be read");
	return kvmguest_refresh(guest, err);
}

static const struct wss_guest_ops kvmguest_ops = {
	.refresh = kvmguest_refresh,
	.kvm_counts = kvmguest_kvm_counts,
	.dirty_log_start = kvmguest_dirty_log_start,
	.dirty_log_query = kvmguest_dirty_log_query,
	.attach = kvmguest_attach,
	.release = kvmguest_release,
};

static void describe(struct wss_guest *guest, const struct wss_inventory_guest *found)
{
	const struct wss_vm *vm = &found->vm;
	struct wss_domxml *config = &guest->config;

	strcpy(config->name, found->name);
	strcpy(config->uuid, found->uuid);
	strcpy(config->type, "kvm");
	config->has_balloon = found->has_balloon;
	config->balloon_statistics = found->balloon_period_s > 0;
	config->balloon_period_s = found->balloon_period_s;
	guest->balloon_owner = found->balloon_owner;
	guest->kvm = true;
	if (found->state != WSS_INVENTORY_RUNNING) {
		config->vcpus = 1;
		config->maximum_bytes = config->current_bytes = config->initial_bytes =
			found->memory_bytes.value;
		config->owner = WSS_DOMXML_NO_OWNER;
		guest->state = WSS_GUEST_SHUTOFF;
		strcpy(guest->state_text,
		       found->state == WSS_INVENTORY_TEMPLATE ? "a template" : "shut off");
		return;
	}
	config->vcpus = vm->n_vcpus;
	config->maximum_bytes = config->current_bytes = config->initial_bytes = vm->memory_bytes;
	config->owner = vm->user;
	config->balloon_unseen = found->balloon_unseen;
	guest->vm = vm->vm;
	guest->shares_process = vm->shares_process;
	guest->state = WSS_GUEST_RUNNING;
	strcpy(guest->state_text, "running");
}

int wss_kvmguest_open(const struct wss_inventory_ops *inventory, const struct wss_root *root,
		      const struct wss_domain_ref *ref, const struct wss_deadline *deadline,
		      struct wss_guest **ret_guest, struct wss_error *err)
{
	wss_auto_free struct wss_inventory_guest *guests = NULL;
	const struct wss_inventory_guest *found;
	struct kvmguest *source;
	size_t n = 0;

	if (wss_inventory_list(inventory, root, &guests, &n, err) < 0)
		return -1;
	found = wss_inventory_pick(guests, n, ref->uuid ? ref->uuid : ref->name, err);
	if (!found)
		return -1;
	if (found->state == WSS_INVENTORY_UNKNOWN)
		return wss_error_set(err, WSS_ERR_FAILED, "it is unknown whether it runs: %s",
				     found->why);
	source = calloc(1, sizeof(*source));
	*ret_guest = source ? wss_guest_new(&kvmguest_ops, source, deadline) : NULL;
	if (!*ret_guest) {
		free(source);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	source->root = root;
	source->found = *found;
	(*ret_guest)->aliases[0] = source->found.own_name;
	(*ret_guest)->aliases[1] = inventory->ids_last ? source->found.id : NULL;
	describe(*ret_guest, found);
	return 0;
}
