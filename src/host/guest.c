/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/guest.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "host/devices.h"
#include "host/procfile.h"
#include "kvm/kvm.h"

/* QEMU 7.2, migration/dirtyrate.c, MAX_FETCH_DIRTYRATE_TIME_SEC */
#define LONGEST_CALCULATION_S 60

/* Bounds of the age at which a guest's report about itself is too old. Reports carry whole seconds and may be late. */
#define REPORT_MIN_AGE_S 10
#define REPORT_MAX_AGE_S 600
/* Largest share of a guest that its kernel keeps free, in thousandths. */
#define WATERMARK_PERMILLE 75

struct wss_guest *wss_guest_new(const struct wss_guest_ops *ops, void *source,
				const struct wss_deadline *deadline)
{
	struct wss_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->ops = ops;
	guest->source = source;
	guest->deadline = deadline;
	guest->state = WSS_GUEST_OTHER;
	guest->process = (struct wss_process)WSS_PROCESS_INIT;
	guest->ram = (struct wss_ram)WSS_RAM_INIT;
	return guest;
}

/*
 * Finds RAM in which all NUMA cells are one block, as for machine types up to 5.0 without memory backing, which QEMU
 * gives the cells' sizes only.
 */
static int find_undivided(const struct wss_guest *guest, struct wss_ram *ret_ram,
			  struct wss_error *err)
{
	const struct wss_domxml *config = &guest->config;
	uint64_t sizes[1 + WSS_MEMORY_DEVICES_MAX] = {config->initial_bytes};

	if (config->n_devices >= config->n_blocks)
		return wss_error_set(err, WSS_ERR_FAILED, "no NUMA cell has memory");
	memcpy(sizes + 1, config->block_bytes + (config->n_blocks - config->n_devices),
	       config->n_devices * sizeof(sizes[0]));
	return wss_ram_find(&guest->process, sizes, 1 + config->n_devices, ret_ram, err);
}

bool wss_guest_kernel_vm(struct wss_guest *guest)
{
	/* The process of a captured machine is none of this kernel's. */
	if (!guest->kernel_vm && guest->kvm && guest->process.pidfd >= 0 &&
	    wss_kvm.probe(NULL) == 0)
		wss_kvm.open(guest->process.pid, guest->vm, &guest->kernel_vm, NULL);
	return guest->kernel_vm;
}

int wss_guest_slots(const struct wss_guest *guest, struct wss_kvm_slots *ret_slots,
		    struct wss_error *err)
{
	return wss_kvm.slots(guest->kernel_vm, ret_slots, err);
}

/* Finds RAM by what the kernel knows: the memory of all slots that the guest can write to, but for video memory. */
static int find_in_slots(struct wss_guest *guest, struct wss_ram *ret_ram, struct wss_error *err)
{
	wss_cleanup(wss_kvm_slots_free) struct wss_kvm_slots slots = {.n_slots = 0};
	wss_auto_free struct wss_range *ranges = NULL;
	size_t n = 0;

	if (wss_guest_slots(guest, &slots, err) < 0)
		return -1;
	ranges = calloc(slots.n_slots + 1, sizeof(*ranges));
	if (!ranges)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < slots.n_slots; i++) {
		uint64_t start = slots.slots[i].host_address;

		if (wss_kvm_slot_is_ram(&slots, &slots.slots[i]))
			ranges[n++] =
				(struct wss_range){start, start + (slots.slots[i].n_pages << 12)};
	}
	return wss_ram_find_at(&guest->process, ranges, n, ret_ram, err);
}

/*
 * By the sizes that the inventory knows, which tell RAM from the memory of devices; else by the slots.
 */
static int find_in_process(struct wss_guest *guest, struct wss_ram *ret_ram, struct wss_error *err)
{
	const struct wss_domxml *config = &guest->config;
	struct wss_error why = WSS_ERROR_INIT;

	if (wss_ram_find(&guest->process, config->block_bytes, config->n_blocks, ret_ram, &why) ==
		    0 ||
	    (config->n_cells && config->backing == WSS_BACKING_ANON &&
	     find_undivided(guest, ret_ram, NULL) == 0))
		return 0;
	if (why.code != WSS_ERR_NO_MEMORY && wss_guest_kernel_vm(guest))
		return find_in_slots(guest, ret_ram, err);
	return wss_error_set(err, why.code, "%s", why.text);
}

/*
 * Finds the guest's RAM. Returns -1 only when out of memory; other failures are recorded in
 * ram_error.
 */
static int find_ram(struct wss_guest *guest, struct wss_error *err)
{
	wss_ram_free(&guest->ram);
	wss_error_clear(&guest->ram_error);
	guest->ram_known = find_in_process(guest, &guest->ram, &guest->ram_error) == 0;
	if (guest->ram_error.code != WSS_ERR_NO_MEMORY)
		return 0;
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "%s", guest->ram_error.text);
}

/* Memory that the inventory does not know to stay on the host: QEMU may have options that it has not. */
static void see_kept_memory(const struct wss_process *process, struct wss_domxml *config)
{
	struct wss_kept_memory kept;

	if (wss_kept_memory_read(process, &kept) < 0)
		return;
	config->hugepages |= kept.hugetlb_bytes != 0;
	/* Less than all RAM may be buffers of QEMU's own. */
	config->locked |= config->initial_bytes && kept.locked_bytes >= config->initial_bytes;
}

/* A program in QEMU's place may have added options, on the command line or in a file, that the inventory has not. */
static void see_options(const struct wss_process *process, struct wss_domxml *config)
{
	wss_auto_free char *cmdline = NULL;
	size_t len;

	if (wss_root_read(&process->proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len) == 0)
		wss_devices_in_options(cmdline, len, config);
	if (!config->launch_security[0] && wss_process_has_encryption(process) > 0)
		strcpy(config->launch_security, "its process has /dev/sev or a guest_memfd open");
}

/*
 * What the inventory does not know: a device that was added behind its back, by a monitor or a file of options. One
 * that cannot be seen may be there.
 */
static void see_passthrough(const struct wss_process *process, struct wss_domxml *config)
{
	char *hazard = config->dirty_log_hazard;
	int has;

	if (config->hostdevs)
		return;
	has = wss_process_count_passthrough(process);
	if (has > (int)config->unpinning_hostdevs)
		config->hostdevs = 1;
	if (has && !hazard[0])
		strcpy(hazard,
		       has > 0 ? "an open VFIO or vDPA device (QEMU aborts if it cannot log its writes)"
			       : "QEMU's descriptors cannot be read: one may be a VFIO device, whose writes it "
				 "cannot log");
}

void wss_domxml_see_process(struct wss_domxml *config, const struct wss_process *process)
{
	if (process->proc.dirfd < 0)
		return;
	see_options(process, config);
	see_passthrough(process, config);
	see_kept_memory(process, config);
}

int wss_guest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	uint64_t before = guest->config.maximum_bytes;
	size_t n_before = guest->config.n_blocks;

	if (guest->ops->refresh(guest, err) < 0)
		return -1;
	wss_domxml_see_process(&guest->config, &guest->process);
	if (guest->process.proc.dirfd >= 0 &&
	    (guest->config.maximum_bytes != before || guest->config.n_blocks != n_before))
		return find_ram(guest, err);
	return 0;
}

int wss_guest_check_ready(struct wss_guest *guest, struct wss_error *err)
{
	if (wss_guest_refresh(guest, err) < 0)
		return -1;
	if (guest->state != WSS_GUEST_RUNNING)
		return wss_error_set(err, WSS_ERR_FAILED, "the guest is %s, not running",
				     guest->state_text);
	if (guest->job[0])
		return wss_error_set(err, WSS_ERR_BUSY, "the guest has a job running (%s)",
				     guest->job);
	return 0;
}

int wss_guest_attach(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err)
{
	if (guest->process.proc.dirfd >= 0)
		return 0;
	if (guest->ops->attach(guest, host, err) < 0) {
		/* Released, because otherwise the next call would take the guest as attached. */
		wss_guest_detach(guest);
		return -1;
	}
	wss_domxml_see_process(&guest->config, &guest->process);
	if (find_ram(guest, err) < 0) {
		wss_guest_detach(guest);
		return -1;
	}
	return 0;
}

void wss_guest_detach(struct wss_guest *guest)
{
	wss_kvm.close(guest->kernel_vm);
	guest->kernel_vm = NULL;
	wss_ram_free(&guest->ram);
	guest->ram_known = false;
	wss_process_release(&guest->process);
}

int wss_guest_read_memory(struct wss_guest *guest, const struct wss_host *host,
			  struct wss_smaps *ret_smaps, struct wss_error *err)
{
	bool was_attached = guest->process.proc.dirfd >= 0;
	int r;

	if (wss_guest_attach(guest, host, err) < 0)
		return -1;
	r = guest->ram_known
		    ? wss_smaps_read(&guest->process, &guest->ram, ret_smaps, err)
		    : wss_error_set(err, guest->ram_error.code, "%s", guest->ram_error.text);
	if (!was_attached)
		wss_guest_detach(guest);
	return r;
}

bool wss_balloon_report_is_current(const struct wss_domxml *config, struct wss_amount update_s)
{
	uint64_t limit_s = REPORT_MAX_AGE_S;

	if (config->balloon_period_s && config->balloon_period_s < REPORT_MAX_AGE_S / 2)
		limit_s = wss_u64_max(2 * config->balloon_period_s, REPORT_MIN_AGE_S);
	return update_s.known && update_s.value && update_s.value <= (uint64_t)WSS_TIME_MAX_S &&
	       (uint64_t)wss_clock_age_seconds((int64_t)update_s.value) <= limit_s;
}

struct wss_amount wss_balloon_managed_of(const struct wss_domxml *config,
					 struct wss_amount actual_bytes)
{
	/* With autodeflate, Linux includes the balloon's memory in its total. */
	return config->balloon_autodeflate && actual_bytes.value < config->initial_bytes
		       ? wss_amount_of(config->initial_bytes)
		       : actual_bytes;
}

static uint64_t kept_free_bytes(const struct wss_balloon_stats *stats)
{
	uint64_t loose = wss_u64_add(stats->free_bytes.value, stats->cache_bytes.value), kept;

	if (!stats->usable_bytes.known || !stats->free_bytes.known || !stats->cache_bytes.known ||
	    !stats->actual_bytes.known || loose <= stats->usable_bytes.value)
		return 0;
	kept = (loose - stats->usable_bytes.value) / 2;
	return wss_u64_min(kept,
			   wss_u64_max(stats->actual_bytes.value, stats->managed_bytes.value) /
				   1000 * WATERMARK_PERMILLE);
}

uint64_t wss_balloon_stats_reserve(const struct wss_balloon_stats *stats,
				   struct wss_amount managed_of_bytes)
{
	uint64_t unmanaged = 0;

	if (stats->managed_bytes.known && managed_of_bytes.known)
		unmanaged = wss_u64_sub(managed_of_bytes.value, stats->managed_bytes.value);
	return wss_u64_add(unmanaged, kept_free_bytes(stats));
}

uint64_t wss_dirty_log_left_s(uint64_t start_s, uint64_t length_s)
{
	uint64_t now_s = (wss_clock_now_ns() - wss_clock_suspended_ns()) / WSS_NS_PER_S;

	if (start_s > now_s || now_s - start_s >= length_s || length_s > LONGEST_CALCULATION_S)
		return 0;
	return start_s + length_s - now_s;
}

/* Linux's figure of page cache includes tmpfs, which cannot go, and its usable one leaves reserves out. */
static void take_memory_in_use(struct wss_guest *guest, const struct wss_balloon_stats *stats)
{
	uint64_t usable = stats->usable_bytes.value;

	if (!stats->usable_bytes.known || !stats->actual_bytes.known ||
	    usable > stats->actual_bytes.value)
		return;
	guest->unreclaimable_bytes = wss_amount_of(stats->actual_bytes.value - usable);
	guest->reserve_bytes = wss_amount_of(wss_balloon_stats_reserve(
		stats, wss_balloon_managed_of(&guest->config, stats->actual_bytes)));
	if (stats->free_bytes.known && stats->cache_bytes.known)
		guest->cache_bytes = wss_amount_of(wss_u64_min(
			stats->cache_bytes.value, wss_u64_sub(usable, stats->free_bytes.value)));
}

void wss_balloon_report_take(struct wss_guest *guest, const struct wss_balloon_stats *stats)
{
	guest->unreclaimable_bytes = guest->cache_bytes = guest->reserve_bytes =
		(struct wss_amount){0};
	if (wss_balloon_report_is_current(&guest->config, stats->update_s))
		take_memory_in_use(guest, stats);
}

void wss_guest_free(struct wss_guest *guest)
{
	if (!guest)
		return;
	wss_guest_detach(guest);
	if (guest->ops->release)
		guest->ops->release(guest);
	free(guest);
}
