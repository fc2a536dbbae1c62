/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/guest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"

/* Bounds of the age at which a guest's report about itself is too old. Reports carry whole seconds and may be late. */
#define REPORT_MIN_AGE_S 10
#define REPORT_MAX_AGE_S 600

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
static int find_undivided(const struct wss_guest *guest, struct wss_ram *ret_ram, struct wss_error *err)
{
	const struct wss_domxml *config = &guest->config;
	uint64_t sizes[1 + WSS_MEMORY_DEVICES_MAX] = { config->initial_bytes };

	if (config->n_devices >= config->n_blocks)
		return wss_error_set(err, WSS_ERR_FAILED, "no NUMA cell has memory");
	memcpy(sizes + 1, config->block_bytes + (config->n_blocks - config->n_devices),
	       config->n_devices * sizeof(sizes[0]));
	return wss_ram_find(&guest->process, sizes, 1 + config->n_devices, ret_ram, err);
}

/*
 * Finds the guest's RAM. Returns -1 only when out of memory; other failures are recorded in
 * ram_error.
 */
static int find_ram(struct wss_guest *guest, struct wss_error *err)
{
	wss_ram_free(&guest->ram);
	guest->ram = (struct wss_ram)WSS_RAM_INIT;
	wss_error_clear(&guest->ram_error);
	guest->ram_known = wss_ram_find(&guest->process, guest->config.block_bytes,
					guest->config.n_blocks, &guest->ram,
					&guest->ram_error) == 0;
	if (!guest->ram_known && guest->config.n_cells && guest->config.backing == WSS_BACKING_ANON)
		guest->ram_known = find_undivided(guest, &guest->ram, NULL) == 0;
	if (guest->ram_error.code != WSS_ERR_NO_MEMORY)
		return 0;
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "%s", guest->ram_error.text);
}

/* Memory that the inventory does not know to stay on the host: QEMU may have options that it has not. */
static void see_kept_memory(struct wss_guest *guest)
{
	struct wss_domxml *config = &guest->config;
	struct wss_kept_memory kept;

	if (guest->process.proc.dirfd < 0 || wss_kept_memory_read(&guest->process, &kept) < 0)
		return;
	config->hugepages |= kept.hugetlb_bytes != 0;
	/* Less than all RAM may be buffers of QEMU's own. */
	config->locked |= config->initial_bytes && kept.locked_bytes >= config->initial_bytes;
}

/*
 * What the inventory does not know: a device that was added behind its back, by a monitor or a file of options. One
 * that cannot be seen may be there.
 */
static void see_passthrough(struct wss_guest *guest)
{
	char *hazard = guest->config.dirty_log_hazard;
	int has;

	if (guest->config.hostdevs || guest->process.proc.dirfd < 0)
		return;
	has = wss_process_has_passthrough(&guest->process);
	if (has > 0)
		guest->config.hostdevs = 1;
	if (has && !hazard[0])
		strcpy(hazard, has > 0 ? "an open VFIO or vDPA device (QEMU aborts if it cannot log its writes)"
				       : "QEMU's descriptors cannot be read: one may be a VFIO device, whose writes it "
					 "cannot log");
}

static void see_process(struct wss_guest *guest)
{
	see_passthrough(guest);
	see_kept_memory(guest);
}

int wss_guest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	uint64_t before = guest->config.maximum_bytes;
	size_t n_before = guest->config.n_blocks;

	if (guest->ops->refresh(guest, err) < 0)
		return -1;
	see_process(guest);
	if (guest->process.proc.dirfd >= 0 && (guest->config.maximum_bytes != before ||
						guest->config.n_blocks != n_before))
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
		/*
		 * Released, because otherwise the next call would take the guest as attached.
		 */
		wss_process_release(&guest->process);
		return -1;
	}
	see_process(guest);
	if (find_ram(guest, err) < 0) {
		wss_process_release(&guest->process);
		return -1;
	}
	return 0;
}

void wss_guest_detach(struct wss_guest *guest)
{
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
	r = guest->ram_known ? wss_smaps_read(&guest->process, &guest->ram, ret_smaps, err)
			     : wss_error_set(err, guest->ram_error.code, "%s",
					     guest->ram_error.text);
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

void wss_guest_free(struct wss_guest *guest)
{
	if (!guest)
		return;
	wss_guest_detach(guest);
	if (guest->ops->release)
		guest->ops->release(guest);
	free(guest);
}
