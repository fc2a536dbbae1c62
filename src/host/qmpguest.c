/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: QEMU serves one client of a socket at a time, and whoever manages the guest is one. So each question is a
 * connection of its own, which is closed with its answer: none is open while a window runs. Once the process is held, the one
 * that answers must be it. Events between two connections are lost. That a guest of KVM was paused within a window is known by
 * its threads (standstill.h); another one is asked now and then. That it was reset is not known.
 */
#include "host/qmpguest.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "host/devices.h"
#include "host/procfile.h"
#include "host/qmppeer.h"
#include "host/stopped.h"
#include "qmp/dirtyrate.h"
#include "qmp/qmp.h"
#include "qmp/query.h"

#define TIMEOUT_MS 5000
/* For what a sample can do without. */
#define BRIEF_MS 500
/* Time that a process takes to end after its sockets are closed. */
#define END_MS 1000
/* Pages to be sampled of a guest, and the least number in a GiB, which is QEMU's default. */
#define SAMPLES_WANTED 4096
#define SAMPLES_PER_GIB_LEAST 512
/* Memory backends without a memory device among which the RAM's are looked for. */
#define BACKENDS_MAX 16

struct qmpguest {
	const struct wss_root *root;
	/* Since the last refresh: whether it was seen paused, and for how long, by what was seen at asked_ns and later. */
	bool stopped, stopped_now;
	uint64_t asked_ns, paused_ns;
	char path[];
};

static int qmpguest_add_block(struct wss_domxml *config, uint64_t bytes, struct wss_error *err)
{
	if (config->n_blocks == WSS_RAM_BLOCKS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "QEMU lists more than %d blocks of RAM",
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
	config->pmems = 0;
	for (size_t i = 0; i < n; i++) {
		if (!device_is_ram(&devices[i])) {
			config->pmems++;
			continue;
		}
		if (config->n_devices == WSS_MEMORY_DEVICES_MAX)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "QEMU lists more than %d memory devices",
					     WSS_MEMORY_DEVICES_MAX);
		config->devices[config->n_devices++] =
			(struct wss_memory_device){devices[i].gpa, devices[i].max_bytes, -1};
		config->maximum_bytes += devices[i].size_bytes;
		if (devices[i].max_bytes &&
		    qmpguest_add_block(config, devices[i].max_bytes, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether a memory device of any kind has this backend: "/objects/ID". */
static bool backend_is_claimed(const struct qmp_memdev *backend,
			       const struct qmp_memory_device *devices, size_t n)
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
static unsigned ways_to_sum(const uint64_t *sizes, unsigned at, unsigned n, uint64_t bytes,
			    uint32_t taken, uint32_t *ret_taken)
{
	unsigned found = 0;

	if (!bytes) {
		*ret_taken = taken;
		return 1;
	}
	for (unsigned i = at; i < n && found < 2; i++)
		if (sizes[i] <= bytes && (i == at || sizes[i] != sizes[i - 1]))
			found += ways_to_sum(sizes, i + 1, n, bytes - sizes[i], taken | 1U << i,
					     ret_taken);
	return found;
}

/*
 * Adds the blocks of -m: one for each NUMA node that has a backend of its own, else a single one.
 * QEMU does not say which backends those are. Others, which no memory device has either, belong to ivshmem or to a
 * device that was unplugged, so those that make up -m are looked for. If there are several ways, there are no blocks.
 */
static int add_base_blocks(struct qmp *qmp, uint64_t base_bytes,
			   const struct qmp_memory_device *devices, size_t n_devices,
			   struct wss_domxml *config, struct wss_error *err)
{
	wss_auto_free struct qmp_memdev *backends = NULL;
	uint64_t sizes[BACKENDS_MAX];
	unsigned n = 0, ways;
	uint32_t taken = 0;
	size_t n_backends = 0;

	if (qmp_query_memdev(qmp, TIMEOUT_MS, &backends, &n_backends, err) < 0)
		return -1;
	for (size_t i = 0; i < n_backends && n <= BACKENDS_MAX; i++)
		if (backends[i].size_bytes &&
		    !backend_is_claimed(&backends[i], devices, n_devices)) {
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
static int qmpguest_read_memory(struct qmp *qmp, struct wss_domxml *config, struct wss_error *err)
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
	if (size.base_bytes &&
	    add_base_blocks(qmp, size.base_bytes, devices, n_devices, config, err) < 0)
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
		snprintf(guest->config.dirty_log_hazard, sizeof(guest->config.dirty_log_hazard),
			 "%.60s (%.120s)", what, why);
}

static void check_models(struct wss_guest *guest, const struct qmp_model *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *hazard = wss_device_model_hazard(list[i].name);

		guest->config.hostdevs += wss_device_model_pins(list[i].name);
		guest->config.unpinning_hostdevs += wss_device_model_is_unpinning(list[i].name);
		guest->config.shmems += wss_device_model_shares(list[i].name);
		if (hazard)
			set_hazard(guest, list[i].name, hazard);
	}
}

/*
 * The machine may make devices that no list has, and memory of its own, such as SGX's. An inventory other than QMP's does
 * not know its type.
 */
static void check_machine(struct wss_guest *guest, struct qmp *qmp)
{
	struct qmp_machine machine = {.max_ram_below_4g_bytes = 0};
	const char *type = guest->config.machine, *hazard;

	if (!*type && qmp_query_machine(qmp, TIMEOUT_MS, &machine, NULL) == 0)
		type = machine.type;
	hazard = wss_machine_hazard(type);
	if (hazard)
		set_hazard(guest, type, hazard);
	if (guest->config.pmems)
		set_hazard(guest, "memory that is not RAM", wss_device_model_hazard("nvdimm"));
}

/* What QMP does not report may be a device that pins the guest's memory, or has memory of its own. */
static void set_unseen(struct wss_guest *guest, const char *what)
{
	guest->config.hostdevs++;
	set_hazard(guest, what, "QMP does not report them");
}

/*
 * Whether QEMU has options in a file of which that is not known: the files of Proxmox VE's package qemu-server, for guests of
 * machine type q35 and for USB, have devices only (pve-q35-4.0.cfg, pve-usb.cfg in its sources), which QMP lists.
 */
static bool has_options_in_file(const char *cmdline, size_t len)
{
	static const char known[] = "/usr/share/qemu-server/pve-";
	const char *end = cmdline + len;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *next = arg + strlen(arg) + 1;

		if (*arg == '-' && !strcmp(arg + strspn(arg, "-"), "readconfig") &&
		    (next >= end || strncmp(next, known, sizeof(known) - 1) != 0 ||
		     strchr(next + sizeof(known) - 1, '/')))
			return true;
	}
	return false;
}

/* Whether an argument has this key: not as a part of a name or path. */
static bool has_key(const char *cmdline, size_t len, const char *key)
{
	const char *end = cmdline + len;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1)
		for (const char *at = arg; (at = strstr(at, key)); at++)
			if (at == arg || strchr(",\"", at[-1]))
				return true;
	return false;
}

/* Checks what QMP does not report: the dirty ring, and options in a file of their own. */
static void check_options(struct wss_guest *guest)
{
	static const char ring[] = "dirty-ring", size[] = "dirty-ring-size";
	wss_auto_free char *text = NULL;
	size_t len;

	if (guest->process.proc.dirfd < 0 ||
	    wss_root_read(&guest->process.proc, "cmdline", WSS_CMDLINE_MAX, &text, &len) < 0) {
		set_hazard(guest, "the command line", "it cannot be read");
		return;
	}
	if (has_key(text, len, size))
		set_hazard(guest, ring, "it takes the place of the dirty log");
	if (has_options_in_file(text, len))
		set_hazard(guest, "-readconfig", "the file may switch the dirty ring on");
}

/*
 * Determines which devices pin the guest's memory, and whether the dirty log would make QEMU
 * abort. As with domain XML, a device that is not known to survive it counts as dangerous.
 * Devices may be hot-plugged at any time, and QEMU may have been started with a file of options:
 * QMP knows them all.
 */
void wss_qmpguest_read_devices(struct wss_guest *guest, struct qmp *qmp)
{
	static const char *const places[] = {"/machine/peripheral", "/machine/peripheral-anon"};
	wss_auto_free struct qmp_model *backends = NULL;
	size_t n = 0;

	guest->config.dirty_log_hazard[0] = '\0';
	guest->config.hostdevs = guest->config.unpinning_hostdevs = guest->config.shmems = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		wss_auto_free struct qmp_model *devices = NULL;

		if (qmp_query_children(qmp, places[i], TIMEOUT_MS, &devices, &n, NULL) == 0)
			check_models(guest, devices, n);
		else
			set_unseen(guest, "devices");
	}
	if (qmp_query_network(qmp, TIMEOUT_MS, &backends, &n, NULL) == 0)
		check_models(guest, backends, n);
	else
		set_unseen(guest, "network backends");
	check_machine(guest, qmp);
	check_options(guest);
}

/* Whether the process has ended, or does so within wait_ms. */
static bool pidfd_ends(int pidfd, int wait_ms)
{
	return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, wait_ms) == 1;
}

static bool peer_ends(const struct qmp *qmp, int wait_ms)
{
	wss_auto_close int pidfd = -1;
	struct qmp_peer peer;

	if (qmp_peer(qmp, &peer, NULL) < 0)
		return false;
	pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	return pidfd < 0 ? errno == ESRCH : pidfd_ends(pidfd, wait_ms);
}

/* If QEMU has ended or is about to, that is why nobody answers or a process cannot be read. Returns -1. */
static int qmpguest_failed(const struct wss_guest *guest, const struct qmp *qmp,
			   struct wss_error *err)
{
	int wait_ms =
		err && (err->code == WSS_ERR_GONE || err->code == WSS_ERR_CONNECT) ? END_MS : 0;

	if (err && (guest->process.pidfd >= 0 ? pidfd_ends(guest->process.pidfd, wait_ms)
					      : qmp && peer_ends(qmp, wait_ms)))
		wss_error_set(err, WSS_ERR_GONE, "the guest has ended");
	return -1;
}

static const char *guest_uuid(const struct wss_guest *guest)
{
	return guest->config.uuid[0] ? guest->config.uuid : NULL;
}

/* Checks that the process that is held answers. */
static int qmpguest_check(const struct wss_guest *guest, const struct qmp *qmp,
			  struct wss_error *err)
{
	struct qmp_peer peer;

	if (guest->process.proc.dirfd < 0)
		return 0;
	if (qmp_peer(qmp, &peer, err) < 0)
		return -1;
	if (peer.pid != guest->process.pid)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "process %d answers there instead of %d, the guest's",
				     peer.pid, guest->process.pid);
	return wss_qmppeer_check(&guest->process, &peer, guest_uuid(guest), err);
}

/* A process that cannot be seen may answer. */
static int qmpguest_check_listener(const struct qmp_peer *peer, void *opaque, struct wss_error *err)
{
	const struct wss_guest *guest = opaque;
	const struct qmpguest *source = guest->source;
	struct wss_process process = WSS_PROCESS_INIT;
	int r;

	if (wss_process_hold(source->root, peer->pid, NULL, &process, NULL) < 0)
		return 0;
	r = wss_stopped_check(source->root, &process, guest->deadline, err);
	wss_process_release(&process);
	return r;
}

/* Who connects to a QEMU that is stopped would only wait, and be in the way of its other clients. */
static int qmpguest_check_process(const struct wss_guest *guest, unsigned timeout_ms,
				  struct wss_error *err)
{
	const struct qmpguest *source = guest->source;
	struct wss_deadline deadline = {.cancel = wss_deadline_cancel(guest->deadline)};

	if (guest->process.proc.dirfd < 0)
		return 0;
	wss_deadline_allow(&deadline, timeout_ms * WSS_NS_PER_MS);
	wss_deadline_run(&deadline, 0);
	return wss_stopped_check(source->root, &guest->process, &deadline, err);
}

static int qmpguest_connect(struct wss_guest *guest, unsigned timeout_ms, struct qmp **ret_qmp,
			    struct wss_error *err)
{
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	struct qmp *qmp;

	limits.deadline = guest->deadline;
	if (qmpguest_check_process(guest, timeout_ms, err) < 0)
		return -1;
	if (guest->process.proc.dirfd < 0) {
		limits.check_peer = qmpguest_check_listener;
		limits.check_opaque = guest;
	}
	if (qmp_open_unix(((const struct qmpguest *)guest->source)->path, timeout_ms, &limits, &qmp,
			  err) < 0)
		return qmpguest_failed(guest, NULL, err);
	if (qmpguest_check(guest, qmp, err) < 0) {
		qmpguest_failed(guest, qmp, err);
		qmp_close(qmp);
		return -1;
	}
	*ret_qmp = qmp;
	return 0;
}

int wss_qmpguest_read_state(struct wss_guest *guest, struct qmp *qmp, struct wss_error *err)
{
	struct qmp_status status;
	struct qmp_migration migration;
	struct qmp_balloon balloon;

	if (qmp_query_status(qmp, TIMEOUT_MS, &status, err) < 0 ||
	    qmp_query_migrate(qmp, TIMEOUT_MS, &migration, err) < 0 ||
	    qmp_query_balloon(qmp, TIMEOUT_MS, &balloon, err) < 0)
		return -1;
	snprintf(guest->state_text, sizeof(guest->state_text), "%s", status.state);
	guest->state = status.running			    ? WSS_GUEST_RUNNING
		       : !strcmp(status.state, "inmigrate") ? WSS_GUEST_INCOMING
		       : !strcmp(status.state, "paused")    ? WSS_GUEST_PAUSED
							    : WSS_GUEST_OTHER;
	snprintf(guest->job, sizeof(guest->job), "%s", migration.in_progress ? "migration" : "");
	guest->balloon_bytes.known = true;
	/* Without a balloon device the guest has all of its memory. */
	guest->balloon_bytes.value =
		balloon.present ? balloon.actual_bytes : guest->config.maximum_bytes;
	return 0;
}

static int read_state(struct wss_guest *guest, struct qmp *qmp, struct wss_error *err)
{
	if (qmpguest_read_memory(qmp, &guest->config, err) < 0 ||
	    wss_qmpguest_read_state(guest, qmp, err) < 0)
		return -1;
	if (guest->kvm)
		wss_qmpguest_read_devices(guest, qmp);
	return 0;
}

static int qmpguest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	struct qmpguest *source = guest->source;
	qmp_auto struct qmp *qmp = NULL;

	source->stopped = source->stopped_now = false;
	source->paused_ns = 0;
	source->asked_ns = wss_clock_now_ns();
	if (qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0)
		return -1;
	return read_state(guest, qmp, err) < 0 ? qmpguest_failed(guest, qmp, err) : 0;
}

static int qmpguest_kvm_counts(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			       struct wss_error *err)
{
	qmp_auto struct qmp *qmp = NULL;

	return qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0
		       ? -1
		       : wss_kvm_counts_qmp(qmp, ret_counts, err);
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
	const char *uuid = guest_uuid(guest);
	qmp_auto struct qmp *qmp = NULL;
	struct qmp_peer peer;

	if (qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0 || qmp_peer(qmp, &peer, err) < 0)
		return -1;
	if (wss_qmppeer_hold(&host->root, &peer, uuid, &guest->process, err) < 0 ||
	    read_state(guest, qmp, err) < 0)
		return qmpguest_failed(guest, qmp, err);
	/* The answer came while the process was held, so it is from that process. */
	if (wss_qmppeer_check(&guest->process, &peer, uuid, err) < 0)
		return qmpguest_failed(guest, qmp, err);
	if (!uuid)
		read_uuid(guest);
	return 0;
}

static int qmpguest_dirty_log_start(struct wss_guest *guest, unsigned seconds,
				    struct wss_error *err)
{
	qmp_auto struct qmp *qmp = NULL;

	return qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0
		       ? -1
		       : qmp_start_dirty_bitmap(qmp, seconds, TIMEOUT_MS, err);
}

/* Samples enough pages for an error of a few percent, even of a small guest. */
static int qmpguest_page_sampling_start(struct wss_guest *guest, unsigned seconds,
					unsigned *ret_per_gib, struct wss_error *err)
{
	uint64_t gib = guest->config.maximum_bytes / WSS_GIB + 1;
	qmp_auto struct qmp *qmp = NULL;

	*ret_per_gib = (unsigned)wss_u64_max(SAMPLES_PER_GIB_LEAST, SAMPLES_WANTED / gib);
	return qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0
		       ? -1
		       : qmp_start_page_sampling(qmp, seconds, *ret_per_gib, TIMEOUT_MS, err);
}

int wss_qmpguest_dirty_log(struct qmp *qmp, struct wss_dirty_log *ret_log, struct wss_error *err)
{
	struct qmp_dirty_rate rate;

	if (qmp_query_dirty_rate(qmp, TIMEOUT_MS, &rate, err) < 0)
		return -1;
	*ret_log = (struct wss_dirty_log){.measuring = rate.measuring,
					  .bitmap = rate.bitmap,
					  .mib_per_s = {rate.measured, rate.mib_per_s}};
	if (rate.measuring)
		ret_log->left_s = wss_dirty_log_left_s(rate.start_s, rate.length_s);
	return 0;
}

static int qmpguest_dirty_log_query(struct wss_guest *guest, struct wss_dirty_log *ret_log,
				    struct wss_error *err)
{
	qmp_auto struct qmp *qmp = NULL;

	return qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0
		       ? -1
		       : wss_qmpguest_dirty_log(qmp, ret_log, err);
}

/* As in standstill.h, the time between two answers counts by half for each; a guest of KVM is asked at the end only. */
static void qmpguest_ask_status(struct wss_guest *guest)
{
	struct qmpguest *source = guest->source;
	qmp_auto struct qmp *qmp = NULL;
	struct qmp_status status;
	uint64_t now_ns, half_ns;

	if (qmpguest_connect(guest, BRIEF_MS, &qmp, NULL) < 0 ||
	    qmp_query_status(qmp, BRIEF_MS, &status, NULL) < 0)
		return;
	now_ns = wss_clock_now_ns();
	half_ns = guest->kvm ? 1 : (now_ns - source->asked_ns) / 2;
	source->paused_ns += source->stopped_now * half_ns + !status.running * half_ns;
	source->asked_ns = now_ns;
	source->stopped_now = !status.running;
	source->stopped |= source->stopped_now;
}

static void qmpguest_look(struct wss_guest *guest)
{
	if (!guest->kvm)
		qmpguest_ask_status(guest);
}

static struct wss_disturbance qmpguest_disturbed(struct wss_guest *guest)
{
	const struct qmpguest *source = guest->source;

	qmpguest_ask_status(guest);
	return (struct wss_disturbance){.stopped = source->stopped, .paused_ns = source->paused_ns};
}

static void qmpguest_release(struct wss_guest *guest)
{
	free(guest->source);
}

static const struct wss_guest_ops qmp_guest_ops = {
	.refresh = qmpguest_refresh,
	.kvm_counts = qmpguest_kvm_counts,
	.dirty_log_start = qmpguest_dirty_log_start,
	.dirty_log_query = qmpguest_dirty_log_query,
	.page_sampling_start = qmpguest_page_sampling_start,
	.attach = qmpguest_attach,
	.disturbed = qmpguest_disturbed,
	.look = qmpguest_look,
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

static int describe_guest(struct wss_guest *guest, struct qmp *qmp, struct wss_error *err)
{
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
		snprintf(config->name, sizeof(config->name), "%s",
			 ((const struct qmpguest *)guest->source)->path);
	wss_text_sanitize(config->name);
	guest->kvm = kvm.enabled;
	snprintf(config->type, sizeof(config->type), "%s", kvm.enabled ? "kvm" : "qemu");
	config->vcpus = 1;
	if (read_machine(qmp, config, err) < 0 ||
	    (kvm.enabled && read_security(qmp, config, err) < 0))
		return -1;
	return read_state(guest, qmp, err);
}

int wss_qmpguest_open(const struct wss_root *root, const char *socket_path,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err)
{
	struct qmpguest *source = calloc(1, sizeof(*source) + strlen(socket_path) + 1);
	struct wss_guest *guest = source ? wss_guest_new(&qmp_guest_ops, source, deadline) : NULL;
	qmp_auto struct qmp *qmp = NULL;

	if (!guest) {
		free(source);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	source->root = root;
	strcpy(source->path, socket_path);
	if (qmpguest_connect(guest, TIMEOUT_MS, &qmp, err) < 0) {
		wss_guest_free(guest);
		return -1;
	}
	if (describe_guest(guest, qmp, err) < 0) {
		qmpguest_failed(guest, qmp, err);
		wss_guest_free(guest);
		return -1;
	}
	*ret_guest = guest;
	return 0;
}
