/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/qmpguest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/units.h"
#include "dirtyrate.h"
#include "host/devices.h"
#include "host/procfile.h"
#include "host/qmppeer.h"
#include "qmp.h"
#include "query.h"

#define TIMEOUT_MS 5000
/* Pages to be sampled of a guest, and the least number in a GiB, which is QEMU's default. */
#define SAMPLES_WANTED 4096
#define SAMPLES_PER_GIB_LEAST 512
/* Memory backends without a memory device among which the RAM's are looked for. */
#define BACKENDS_MAX 16

static int qmpguest_add_block(struct wss_domxml *config, uint64_t bytes, struct wss_error *err)
{
	if (config->n_blocks == WSS_RAM_BLOCKS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QEMU lists more than %d blocks of RAM",
				     WSS_RAM_BLOCKS_MAX);
	config->block_bytes[config->n_blocks++] = bytes;
	return 0;
}

/* RAM only: the guest maps NVDIMM and virtio-pmem devices, but they are not its RAM. */
static bool device_is_ram(const struct qmp_memory_device *device)
{
	return !strcmp(device->type, "dimm") || !strcmp(device->type, "virtio-mem");
}

static int qmpguest_add_devices(const struct qmp_memory_device *devices, size_t n,
				struct wss_domxml *config, struct wss_error *err)
{
	config->n_devices = 0;
	for (size_t i = 0; i < n; i++) {
		if (!device_is_ram(&devices[i]))
			continue;
		if (config->n_devices == WSS_MEMORY_DEVICES_MAX)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "QEMU lists more than %d memory devices",
					     WSS_MEMORY_DEVICES_MAX);
		config->devices[config->n_devices++] =
			(struct wss_memory_device){ devices[i].gpa, devices[i].max_bytes, -1 };
		config->maximum_bytes += devices[i].size_bytes;
		if (devices[i].max_bytes && qmpguest_add_block(config, devices[i].max_bytes, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether a memory device of any kind has this backend: "/objects/ID". */
static bool backend_is_claimed(const struct qmp_memdev *backend, const struct qmp_memory_device *devices, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *id = strrchr(devices[i].memdev, '/');

		if (backend->id[0] && !strcmp(id ? id + 1 : devices[i].memdev, backend->id))
			return true;
	}
	return false;
}

static int compare_descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/*
 * In how many ways some of the sizes, from sizes[at] on, make up bytes; 2 stands for more. Equal
 * sizes are one. *ret_taken is the last way found, a bit for each size.
 */
static unsigned ways_to_sum(const uint64_t *sizes, unsigned at, unsigned n, uint64_t bytes, uint32_t taken,
			    uint32_t *ret_taken)
{
	unsigned found = 0;

	if (!bytes) {
		*ret_taken = taken;
		return 1;
	}
	for (unsigned i = at; i < n && found < 2; i++)
		if (sizes[i] <= bytes && (i == at || sizes[i] != sizes[i - 1]))
			found += ways_to_sum(sizes, i + 1, n, bytes - sizes[i], taken | 1U << i, ret_taken);
	return found;
}

/*
 * Adds the blocks of -m: one for each NUMA node that has a backend of its own, else a single one.
 * QEMU does not say which backends those are. Others, which no memory device has either, belong to ivshmem or to a
 * device that was unplugged, so those that make up -m are looked for. If there are several ways, there are no blocks.
 */
static int add_base_blocks(struct qmp *qmp, uint64_t base_bytes, const struct qmp_memory_device *devices,
			   size_t n_devices, struct wss_domxml *config, struct wss_error *err)
{
	wss_auto_free struct qmp_memdev *backends = NULL;
	uint64_t sizes[BACKENDS_MAX];
	unsigned n = 0, ways;
	uint32_t taken = 0;
	size_t n_backends = 0;

	if (qmp_query_memdev(qmp, TIMEOUT_MS, &backends, &n_backends, err) < 0)
		return -1;
	for (size_t i = 0; i < n_backends && n <= BACKENDS_MAX; i++)
		if (backends[i].size_bytes && !backend_is_claimed(&backends[i], devices, n_devices)) {
			if (n < BACKENDS_MAX)
				sizes[n] = backends[i].size_bytes;
			n++;
		}
	if (!n || qmp_machine_has_backend(qmp, TIMEOUT_MS))
		return qmpguest_add_block(config, base_bytes, err);
	if (n > BACKENDS_MAX)
		return 0;
	qsort(sizes, n, sizeof(sizes[0]), compare_descending);
	ways = ways_to_sum(sizes, 0, n, base_bytes, 0, &taken);
	/* Before QEMU 5.0, RAM without NUMA nodes had no backend. */
	if (!ways)
		return qmpguest_add_block(config, base_bytes, err);
	for (unsigned i = 0; i < n && ways == 1; i++)
		if ((taken >> i & 1) && qmpguest_add_block(config, sizes[i], err) < 0)
			return -1;
	return 0;
}

/* Memory can be hot-plugged or unplugged between two windows. */
static int qmpguest_read_memory(struct qmp *qmp, struct wss_domxml *config,
				struct wss_error *err)
{
	wss_auto_free struct qmp_memory_device *devices = NULL;
	struct qmp_memory_size size;
	size_t n_devices = 0;
	bool known;

	if (qmp_query_memory_size(qmp, TIMEOUT_MS, &size, err) < 0 ||
	    qmp_query_memory_devices(qmp, TIMEOUT_MS, &devices, &n_devices, err) < 0)
		return -1;
	config->maximum_bytes = config->initial_bytes = size.base_bytes;
	config->n_blocks = 0;
	if (size.base_bytes && add_base_blocks(qmp, size.base_bytes, devices, n_devices, config, err) < 0)
		return -1;
	known = config->n_blocks > 0;
	if (qmpguest_add_devices(devices, n_devices, config, err) < 0)
		return -1;
	if (!known)
		config->n_blocks = 0;
	config->current_bytes = config->maximum_bytes;
	return 0;
}

static void set_hazard(struct wss_guest *guest, const char *what, const char *why)
{
	if (!guest->config.dirty_log_hazard[0])
		snprintf(guest->config.dirty_log_hazard,
			 sizeof(guest->config.dirty_log_hazard), "%.60s (%.120s)", what, why);
}

static void check_models(struct wss_guest *guest, const struct qmp_model *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *hazard = wss_device_model_hazard(list[i].name);

		guest->config.hostdevs += wss_device_model_pins(list[i].name);
		guest->config.shmems += wss_device_model_shares(list[i].name);
		if (hazard)
			set_hazard(guest, list[i].name, hazard);
	}
}

/* What QMP does not report may be a device that pins the guest's memory, or has memory of its own. */
static void set_unseen(struct wss_guest *guest, const char *what)
{
	guest->config.hostdevs++;
	set_hazard(guest, what, "QMP does not report them");
}

/* Checks what QMP does not report: the dirty ring, and options in a file of their own. */
static void check_options(struct wss_guest *guest)
{
	static const char *const hazards[][2] = {
		{"dirty-ring", "it takes the place of the dirty log"},
		{"-readconfig", "the file may switch the dirty ring on"},
	};
	wss_auto_free char *text = NULL;
	size_t len;

	if (guest->process.proc.dirfd < 0 ||
	    wss_root_read(&guest->process.proc, "cmdline", WSS_CMDLINE_MAX, &text, &len) < 0) {
		set_hazard(guest, "the command line", "it cannot be read");
		return;
	}
	for (size_t i = 0; i < sizeof(hazards) / sizeof(hazards[0]); i++)
		if (memmem(text, len, hazards[i][0], strlen(hazards[i][0])))
			set_hazard(guest, hazards[i][0], hazards[i][1]);
	wss_devices_in_options(text, len, &guest->config);
}

/*
 * Determines which devices pin the guest's memory, and whether the dirty log would make QEMU
 * abort. As with domain XML, a device that is not known to survive it counts as dangerous.
 * Devices may be hot-plugged at any time, and QEMU may have been started with a file of options:
 * QMP knows them all.
 */
static void read_devices(struct wss_guest *guest)
{
	static const char *const places[] = {"/machine/peripheral",
					     "/machine/peripheral-anon"};
	wss_auto_free struct qmp_model *backends = NULL;
	size_t n = 0;

	guest->config.dirty_log_hazard[0] = '\0';
	guest->config.hostdevs = guest->config.shmems = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		wss_auto_free struct qmp_model *devices = NULL;

		if (qmp_query_children(guest->source, places[i], TIMEOUT_MS, &devices, &n, NULL) == 0)
			check_models(guest, devices, n);
		else
			set_unseen(guest, "devices");
	}
	if (qmp_query_network(guest->source, TIMEOUT_MS, &backends, &n, NULL) == 0)
		check_models(guest, backends, n);
	else
		set_unseen(guest, "network backends");
	check_options(guest);
}

static int qmpguest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	struct qmp *qmp = guest->source;
	struct qmp_status status;
	struct qmp_migration migration;
	struct qmp_balloon balloon;

	if (qmpguest_read_memory(qmp, &guest->config, err) < 0 ||
	    qmp_query_status(qmp, TIMEOUT_MS, &status, err) < 0 ||
	    qmp_query_migrate(qmp, TIMEOUT_MS, &migration, err) < 0 ||
	    qmp_query_balloon(qmp, TIMEOUT_MS, &balloon, err) < 0)
		return -1;
	snprintf(guest->state_text, sizeof(guest->state_text), "%s", status.state);
	guest->state = status.running			   ? WSS_GUEST_RUNNING
		       : !strcmp(status.state, "inmigrate") ? WSS_GUEST_INCOMING
		       : !strcmp(status.state, "paused")    ? WSS_GUEST_PAUSED
							    : WSS_GUEST_OTHER;
	snprintf(guest->job, sizeof(guest->job), "%s", migration.in_progress ? "migration" : "");
	guest->balloon_bytes.known = true;
	/* Without a balloon device the guest has all of its memory. */
	guest->balloon_bytes.value = balloon.present ? balloon.actual_bytes : guest->config.maximum_bytes;
	if (guest->kvm)
		read_devices(guest);
	return 0;
}

static int qmpguest_kvm_counts(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			       struct wss_error *err)
{
	return wss_kvm_counts_qmp(guest->source, ret_counts, err);
}

/* The UUID that a manager gave the guest on QEMU's command line, where QMP does not know it. */
static void read_uuid(struct wss_guest *guest)
{
	wss_auto_free char *text = NULL;
	size_t len;

	if (wss_root_read(&guest->process.proc, "cmdline", WSS_CMDLINE_MAX, &text, &len) < 0 ||
	    !wss_procfile_uuid(text, len, guest->config.uuid))
		return;
	for (char *at = guest->config.uuid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
}

static int qmpguest_attach(struct wss_guest *guest, const struct wss_host *host,
			   struct wss_error *err)
{
	const char *uuid = guest->config.uuid[0] ? guest->config.uuid : NULL;
	struct qmp_peer peer;

	if (qmp_peer(guest->source, &peer, err) < 0 ||
	    wss_qmppeer_hold(&host->root, &peer, uuid, &guest->process, err) < 0 ||
	    qmpguest_refresh(guest, err) < 0)
		return -1;
	if (!uuid)
		read_uuid(guest);
	/* The answer came while the process was held, so it is from that process. */
	return wss_qmppeer_check(&guest->process, &peer, uuid, err);
}

static int qmpguest_dirty_log_start(struct wss_guest *guest, unsigned seconds,
				    struct wss_error *err)
{
	return qmp_start_dirty_bitmap(guest->source, seconds, TIMEOUT_MS, err);
}

/* Samples enough pages for an error of a few percent, even of a small guest. */
static int qmpguest_page_sampling_start(struct wss_guest *guest, unsigned seconds,
					unsigned *ret_per_gib, struct wss_error *err)
{
	uint64_t gib = guest->config.maximum_bytes / WSS_GIB + 1;

	*ret_per_gib = (unsigned)wss_u64_max(SAMPLES_PER_GIB_LEAST, SAMPLES_WANTED / gib);
	return qmp_start_page_sampling(guest->source, seconds, *ret_per_gib, TIMEOUT_MS, err);
}

static int qmpguest_dirty_log_query(struct wss_guest *guest, struct wss_dirty_log *ret_log,
				    struct wss_error *err)
{
	struct qmp_dirty_rate rate;

	if (qmp_query_dirty_rate(guest->source, TIMEOUT_MS, &rate, err) < 0)
		return -1;
	*ret_log = (struct wss_dirty_log){ .measuring = rate.measuring,
					   .bitmap = rate.bitmap,
					   .mib_per_s = { rate.measured, rate.mib_per_s } };
	return 0;
}

static struct wss_disturbance qmpguest_disturbed(struct wss_guest *guest)
{
	struct qmp_stops stops = qmp_stops_seen(guest->source);

	return (struct wss_disturbance){ stops.stopped, stops.stopped_us * 1000, stops.reset };
}

static int qmpguest_publish(struct wss_guest *guest, const char *xml, bool persistent,
			    struct wss_error *err)
{
	(void)guest;
	(void)xml;
	(void)persistent;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "not published: a guest without libvirt has no inventory");
}

static int qmpguest_metadata(struct wss_guest *guest, const char *namespace_uri,
			     char **ret_xml, struct wss_error *err)
{
	(void)guest;
	(void)namespace_uri;
	(void)err;
	*ret_xml = NULL;
	return 0;
}

static void qmpguest_release(struct wss_guest *guest)
{
	qmp_close(guest->source);
}

static const struct wss_guest_ops qmp_guest_ops = {
	.refresh = qmpguest_refresh,
	.kvm_counts = qmpguest_kvm_counts,
	.dirty_log_start = qmpguest_dirty_log_start,
	.dirty_log_query = qmpguest_dirty_log_query,
	.page_sampling_start = qmpguest_page_sampling_start,
	.attach = qmpguest_attach,
	.disturbed = qmpguest_disturbed,
	.publish = qmpguest_publish,
	.metadata = qmpguest_metadata,
	.release = qmpguest_release,
};

/*
 * Reads the machine type if QEMU reports it; it only decides the layout of the memory. A moved
 * hole below 4 GiB makes the layout unknown as well.
 */
static int read_machine(struct qmp *qmp, struct wss_domxml *config, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	struct qmp_machine machine;

	if (qmp_query_machine(qmp, TIMEOUT_MS, &machine, &why) < 0)
		return why.code == WSS_ERR_NO_MEMORY ? wss_error_set(err, why.code, "%s", why.text)
						     : 0;
	snprintf(config->machine, sizeof(config->machine), "%s", machine.type);
	config->max_ram_below_4g_bytes = machine.max_ram_below_4g_bytes;
	return 0;
}

/* Encrypted memory cannot be measured: where QEMU does not say, the guest counts as encrypted. */
static int read_security(struct qmp *qmp, struct wss_domxml *config, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	char id[QMP_NAME_MAX];

	if (qmp_query_confidential(qmp, TIMEOUT_MS, id, &why) == 0) {
		if (id[0])
			snprintf(config->launch_security, sizeof(config->launch_security),
				 "confidential-guest-support=%.80s", id);
		return 0;
	}
	if (why.code == WSS_ERR_NO_MEMORY)
		return wss_error_set(err, why.code, "%s", why.text);
	config->security_unseen = true;
	snprintf(config->launch_security, sizeof(config->launch_security), "%.120s", why.text);
	return 0;
}

static int describe_guest(struct wss_guest *guest, const char *socket_path,
			  struct wss_error *err)
{
	struct qmp *qmp = guest->source;
	struct wss_domxml *config = &guest->config;
	struct qmp_kvm kvm;

	if (qmp_query_kvm(qmp, TIMEOUT_MS, &kvm, err) < 0 ||
	    qmp_query_uuid(qmp, TIMEOUT_MS, config->uuid, err) < 0 ||
	    qmp_query_name(qmp, TIMEOUT_MS, config->name, err) < 0)
		return -1;
	/* QEMU's value for "no UUID". */
	if (!strcmp(config->uuid, "00000000-0000-0000-0000-000000000000"))
		config->uuid[0] = '\0';
	if (!config->name[0])
		snprintf(config->name, sizeof(config->name), "%s", socket_path);
	wss_text_sanitize(config->name);
	guest->kvm = kvm.enabled;
	snprintf(config->type, sizeof(config->type), "%s", kvm.enabled ? "kvm" : "qemu");
	config->vcpus = 1;
	if (read_machine(qmp, config, err) < 0 || (kvm.enabled && read_security(qmp, config, err) < 0))
		return -1;
	return qmpguest_refresh(guest, err);
}

int wss_qmpguest_open(const char *socket_path, const struct wss_deadline *deadline,
		      struct wss_guest **ret_guest, struct wss_error *err)
{
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	struct wss_guest *guest;
	struct qmp *qmp;

	limits.deadline = deadline;
	if (qmp_open_unix(socket_path, TIMEOUT_MS, &limits, &qmp, err) < 0)
		return -1;
	guest = wss_guest_new(&qmp_guest_ops, qmp, deadline);
	if (!guest) {
		qmp_close(qmp);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (describe_guest(guest, socket_path, err) < 0) {
		wss_guest_free(guest);
		return -1;
	}
	*ret_guest = guest;
	return 0;
}
