/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/target.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "host/inventories.h"
#include "host/inventory.h"
#include "host/kvmguest.h"
#include "host/qmpguest.h"
#include "measure/policy-element.h"
#include "measure/policy-file.h"

struct wss_hypervisor {
	atomic_int references;
	struct wss_host host;
	const struct wss_guest_source *source;
	void *opaque; /* passed to the source */
	/* Of this host; NULL: the source is another one. */
	const struct wss_inventory_ops *inventory;
};

static int libvirt_list(void *opaque, bool inactive_too, struct wss_conn_domain **ret_domains,
			size_t *ret_n, struct wss_error *err)
{
	return wss_conn_list(opaque, inactive_too, ret_domains, ret_n, err);
}

static int libvirt_open(void *opaque, const struct wss_domain_ref *ref,
			const struct wss_deadline *deadline, struct wss_guest **ret_guest,
			struct wss_error *err)
{
	return wss_conn_guest(opaque, ref, deadline, ret_guest, err);
}

static const char *libvirt_uri(void *opaque)
{
	return wss_conn_uri(opaque);
}

static void libvirt_follow_reboots(void *opaque)
{
	wss_conn_follow_reboots(opaque);
}

static bool libvirt_next_reboot(void *opaque, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	return wss_conn_next_reboot(opaque, ret_uuid);
}

static void libvirt_close(void *opaque)
{
	wss_conn_close(opaque);
}

static const struct wss_guest_source libvirt_source = {
	.list = libvirt_list,
	.open = libvirt_open,
	.uri = libvirt_uri,
	.follow_reboots = libvirt_follow_reboots,
	.next_reboot = libvirt_next_reboot,
	.close = libvirt_close,
};

/* Names the guest after its socket. */
static int qmp_open(void *opaque, const struct wss_domain_ref *ref,
		    const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		    struct wss_error *err)
{
	const struct wss_hypervisor *hypervisor = opaque;

	return wss_qmpguest_open(&hypervisor->host.root, ref->name, deadline, ret_guest, err);
}

static const struct wss_guest_source qmp_source = {.open = qmp_open, .has_no_inventory = true};

/* An inventory of this host. */
static int local_list(void *opaque, bool inactive_too, struct wss_conn_domain **ret_domains,
		      size_t *ret_n, struct wss_error *err)
{
	const struct wss_hypervisor *hypervisor = opaque;

	return wss_inventory_domains(hypervisor->inventory, &hypervisor->host.root, inactive_too,
				     ret_domains, ret_n, err);
}

static int local_open(void *opaque, const struct wss_domain_ref *ref,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err)
{
	const struct wss_hypervisor *hypervisor = opaque;

	return wss_kvmguest_open(hypervisor->inventory, &hypervisor->host.root, ref, deadline,
				 ret_guest, err);
}

static const char *local_uri(void *opaque)
{
	return ((const struct wss_hypervisor *)opaque)->inventory->uri;
}

static const struct wss_guest_source local_source = {
	.list = local_list,
	.open = local_open,
	.uri = local_uri,
	.has_no_inventory = true,
};

int wss_hypervisor_new(const struct wss_host *host, const struct wss_guest_source *source,
		       void *opaque, struct wss_hypervisor **ret_hypervisor, struct wss_error *err)
{
	struct wss_hypervisor *hypervisor = calloc(1, sizeof(*hypervisor));
	struct wss_host taken = *host;

	if (!hypervisor) {
		if (source->close)
			source->close(opaque);
		wss_host_close(&taken);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	*hypervisor = (struct wss_hypervisor){
		.references = 1, .host = taken, .source = source, .opaque = opaque};
	*ret_hypervisor = hypervisor;
	return 0;
}

int wss_hypervisor_open(const struct wss_hypervisor_options *options,
			struct wss_hypervisor **ret_hypervisor, struct wss_error *err)
{
	const struct wss_inventory_ops *inventory =
		options->qmp ? NULL : wss_inventory_find(options->uri);
	struct wss_conn *conn = NULL;
	struct wss_host host;

	if (wss_host_open(wss_test_sysroot(), &host, err) < 0)
		return -1;
	if (options->qmp || inventory) {
		if (wss_hypervisor_new(&host, options->qmp ? &qmp_source : &local_source, NULL,
				       ret_hypervisor, err) < 0)
			return -1;
		(*ret_hypervisor)->opaque = *ret_hypervisor;
		(*ret_hypervisor)->inventory = inventory;
		return 0;
	}
	if ((options->reader ? wss_conn_open_reader : wss_conn_open)(options->uri, &conn, err) <
	    0) {
		wss_host_close(&host);
		return -1;
	}
	if (options->allow_monitor)
		wss_conn_allow_monitor(conn);
	return wss_hypervisor_new(&host, &libvirt_source, conn, ret_hypervisor, err);
}

struct wss_hypervisor *wss_hypervisor_ref(struct wss_hypervisor *hypervisor)
{
	atomic_fetch_add(&hypervisor->references, 1);
	return hypervisor;
}

void wss_hypervisor_unref(struct wss_hypervisor *hypervisor)
{
	if (!hypervisor || atomic_fetch_sub(&hypervisor->references, 1) != 1)
		return;
	if (hypervisor->source->close)
		hypervisor->source->close(hypervisor->opaque);
	wss_host_close(&hypervisor->host);
	free(hypervisor);
}

const struct wss_host *wss_hypervisor_host(const struct wss_hypervisor *hypervisor)
{
	return &hypervisor->host;
}

struct wss_conn *wss_hypervisor_conn(const struct wss_hypervisor *hypervisor)
{
	return hypervisor->source == &libvirt_source ? hypervisor->opaque : NULL;
}

const char *wss_hypervisor_uri(const struct wss_hypervisor *hypervisor)
{
	return hypervisor->source->uri ? hypervisor->source->uri(hypervisor->opaque) : "";
}

bool wss_hypervisor_has_inventory(const struct wss_hypervisor *hypervisor)
{
	return !hypervisor->source->has_no_inventory;
}

int wss_hypervisor_list(const struct wss_hypervisor *hypervisor, bool inactive_too,
			struct wss_conn_domain **ret_domains, size_t *ret_n, struct wss_error *err)
{
	if (!hypervisor->source->list)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guests of this host cannot be listed");
	return hypervisor->source->list(hypervisor->opaque, inactive_too, ret_domains, ret_n, err);
}

int wss_hypervisor_guest(const struct wss_hypervisor *hypervisor, const struct wss_domain_ref *ref,
			 const struct wss_deadline *deadline, struct wss_guest **ret_guest,
			 struct wss_error *err)
{
	return hypervisor->source->open(hypervisor->opaque, ref, deadline, ret_guest, err);
}

void wss_hypervisor_follow_reboots(const struct wss_hypervisor *hypervisor)
{
	if (hypervisor->source->follow_reboots)
		hypervisor->source->follow_reboots(hypervisor->opaque);
}

bool wss_hypervisor_next_reboot(const struct wss_hypervisor *hypervisor,
				char ret_uuid[WSS_UUID_TEXT_MAX])
{
	return hypervisor->source->follow_reboots &&
	       hypervisor->source->next_reboot(hypervisor->opaque, ret_uuid);
}

bool wss_hypervisor_alive(const struct wss_hypervisor *hypervisor)
{
	struct wss_conn *conn = wss_hypervisor_conn(hypervisor);

	return !conn || wss_conn_alive(conn);
}

struct wss_target *wss_target_new(struct wss_hypervisor *hypervisor,
				  const struct wss_domain_ref *ref, uint64_t deadline_ns,
				  const struct wss_cancel *cancel, struct wss_error *err)
{
	struct wss_target *target = calloc(1, sizeof(*target));

	if (!target) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	target->hypervisor = wss_hypervisor_ref(hypervisor);
	target->cancel.fd = -1;
	target->name = strdup(ref->name);
	target->uuid = ref->uuid ? strdup(ref->uuid) : NULL;
	target->deadline.cancel = &target->cancel;
	wss_deadline_allow(&target->deadline, deadline_ns);
	if (!target->name || !target->uuid != !ref->uuid)
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (wss_cancel_open(&target->cancel, cancel, err) == 0)
		return target;
	wss_target_free(target);
	return NULL;
}

void wss_target_free(struct wss_target *target)
{
	if (!target)
		return;
	wss_guest_free(target->guest);
	if (target->release_data)
		target->release_data(target->data);
	wss_cancel_close(&target->cancel);
	free(target->name);
	free(target->uuid);
	wss_hypervisor_unref(target->hypervisor);
	free(target);
}

/* The operator's decision comes first; an unreadable policy is not consent. */
static int guest_read_policy(struct wss_guest *guest, struct wss_policy *ret_policy,
			     struct wss_error *err)
{
	struct wss_policy policy = {.opt_out = false};
	wss_auto_free char *xml = NULL;

	if (!guest->ops->metadata) {
		if (wss_policy_file_read(guest, &policy, err) < 0)
			return -1;
	} else if (guest->ops->metadata(guest, WSS_POLICY_NAMESPACE, &xml, err) < 0 ||
		   (xml && wss_policy_read(xml, &policy, err) < 0)) {
		return -1;
	}
	*ret_policy = policy;
	if (!policy.opt_out)
		return 0;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "left alone: its policy opts out");
}

int wss_target_read_policy(struct wss_target *target, struct wss_error *err)
{
	return guest_read_policy(target->guest, &target->policy, err);
}

void wss_target_charge(struct wss_target *target)
{
	atomic_fetch_add(&target->cpu_ns, wss_clock_take_thread_ns());
}

void wss_target_open(struct wss_target *target)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_guest *guest = NULL;

	wss_error_clear(&target->error);
	wss_deadline_run(&target->deadline, 0);
	if (wss_hypervisor_guest(target->hypervisor, &ref, &target->deadline, &guest,
				 &target->error) == 0 &&
	    guest_read_policy(guest, &target->policy, &target->error) < 0) {
		wss_guest_free(guest);
		guest = NULL;
	}
	target->guest = guest;
	wss_deadline_pause(&target->deadline);
}

const char *wss_target_name(const struct wss_target *target)
{
	return target->guest ? target->guest->config.name : target->name;
}

bool wss_target_is_left_out(const struct wss_target *target)
{
	if (target->guest)
		return target->guest->state == WSS_GUEST_SHUTOFF;
	return target->error.code == WSS_ERR_GONE || target->policy.opt_out;
}
