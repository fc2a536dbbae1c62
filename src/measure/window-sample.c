/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/window-sample.h"

#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "host/vmm-cgroup.h"

/* A guest may be throttled or blocked, or the host suspended, for this part of a window. */
#define LOST_PART 20

/*
 * smaps takes this long for each page of 4 KiB that is resident: 7.5 ms a GiB (Linux 6.18, 2.6 GHz), under the
 * process's mmap_lock.
 */
#define WALK_NS_PER_PAGE 29

static bool walk_is_due(const struct wss_window_facts *facts)
{
	const struct wss_window_memory *kept = facts->options->memory;
	uint64_t read_ns = kept ? kept->read_ns : facts->memory.read_ns;

	return !read_ns || wss_clock_now_ns() - read_ns >= facts->options->memory_age_ns;
}

uint64_t wss_window_predict_memory_ns(const struct wss_window_facts *facts)
{
	uint64_t rss;

	if (!facts->guest->ram_known || !walk_is_due(facts) ||
	    wss_resident_read(&facts->guest->process, &rss, NULL, NULL) < 0)
		return 0;
	return rss / 4096 * WALK_NS_PER_PAGE;
}

static int sample_walk(struct wss_window_facts *facts, struct wss_sample *sample,
		       struct wss_error *err)
{
	uint64_t start_ns = wss_clock_now_ns();
	const struct wss_guest *guest = facts->guest;
	struct wss_smaps smaps;

	if (wss_smaps_read(&guest->process, &guest->ram, &smaps, err) < 0)
		return -1;
	sample->memory.rss_bytes = wss_amount_of(smaps.guest.rss);
	sample->memory.pss_bytes = wss_amount_of(smaps.guest.pss);
	sample->memory.swap_bytes = wss_amount_of(smaps.guest.swap);
	sample->memory.huge_bytes = wss_amount_of(smaps.guest.huge);
	sample->memory.qemu_bytes = wss_amount_of(smaps.qemu.rss);
	sample->cost.memory_ns = wss_clock_now_ns() - start_ns;
	facts->memory.read_ns = start_ns;
	if (facts->options->memory)
		*facts->options->memory = (struct wss_window_memory){start_ns, smaps.qemu.rss};
	return 0;
}

/* What the kernel keeps as sums: no page table is walked. */
static int sample_read_sums(const struct wss_window_facts *facts,
			    const struct wss_vmm_cgroup *cgroup, struct wss_sample *sample,
			    struct wss_error *err)
{
	const struct wss_ram *ram = &facts->guest->ram;
	uint64_t qemu_bytes = facts->options->memory->qemu_bytes;
	struct wss_process_memory memory;

	if (wss_process_memory_read(&facts->guest->process, &memory, err) < 0)
		return -1;
	sample->memory.rss_bytes = wss_amount_of(
		wss_u64_min(wss_u64_sub(memory.rss_bytes, qemu_bytes), ram->total_bytes));
	sample->memory.qemu_bytes = wss_amount_of(qemu_bytes);
	sample->memory.swap_bytes =
		ram->all_shared ? cgroup->swap_bytes : wss_amount_of(memory.swap_bytes);
	sample->memory.huge_bytes = cgroup->huge_bytes;
	sample->memory.huge_bytes.value += memory.hugetlb_bytes;
	return 0;
}

static void sample_read_memory(struct wss_window_facts *facts, struct wss_sample *sample)
{
	struct wss_error why = WSS_ERROR_INIT;
	const struct wss_guest *guest = facts->guest;
	bool walk = walk_is_due(facts);
	struct wss_vmm_cgroup cgroup;

	if (!walk && !facts->options->memory) {
		struct wss_amount balloon_bytes = sample->memory.balloon_bytes,
				  unreclaimable_bytes = sample->memory.unreclaimable_bytes,
				  cache_bytes = sample->memory.cache_bytes,
				  reserve_bytes = sample->memory.reserve_bytes;

		sample->memory = facts->memory.figures.memory;
		sample->memory.balloon_bytes = balloon_bytes;
		sample->memory.unreclaimable_bytes = unreclaimable_bytes;
		sample->memory.cache_bytes = cache_bytes;
		sample->memory.reserve_bytes = reserve_bytes;
		return;
	}
	if (!guest->ram_known) {
		wss_sample_note(sample, "memory figures are absent: %s", guest->ram_error.text);
		return;
	}
	cgroup = wss_vmm_cgroup_read(&facts->host->root, &guest->process.proc);
	if ((walk ? sample_walk(facts, sample, &why)
		  : sample_read_sums(facts, &cgroup, sample, &why)) < 0) {
		wss_sample_note(sample, "memory figures are absent: %s", why.text);
		return;
	}
	facts->memory.figures.memory = sample->memory;
}

void wss_window_describe(const struct wss_guest *guest, const struct wss_tracker_ops *ops,
			 const struct wss_window_options *options, struct wss_sample *ret_sample)
{
	*ret_sample = (struct wss_sample){
		.wall = wss_clock_wall_seconds(),
		.method = ops ? ops->name : NULL,
		.observes = ops ? ops->observes : WSS_OBSERVES_ACCESSES,
		.requested_window_ns = options->track.window_ns,
	};
	memcpy(ret_sample->domain, guest->config.name, sizeof(ret_sample->domain));
	memcpy(ret_sample->uuid, guest->config.uuid, sizeof(ret_sample->uuid));
	ret_sample->memory.maximum_bytes = wss_amount_of(guest->config.maximum_bytes);
	ret_sample->memory.balloon_bytes = guest->balloon_bytes;
	ret_sample->memory.unreclaimable_bytes = guest->unreclaimable_bytes;
	ret_sample->memory.cache_bytes = guest->cache_bytes;
	ret_sample->memory.reserve_bytes = guest->reserve_bytes;
}

static void fill_reading(const struct wss_window_facts *facts, const struct wss_reading *reading,
			 uint64_t end_ns, struct wss_sample *sample)
{
	const struct wss_tracker_ops *ops = facts->tracker->ops;

	sample->granularity_bytes = wss_amount_of(reading->granularity_bytes);
	sample->window_ns = wss_amount_of(end_ns - facts->start_ns);
	sample->wss_bytes = wss_amount_of(reading->wss_bytes);
	sample->low_bytes = wss_amount_of(reading->low_bytes);
	sample->high_bytes = wss_amount_of(reading->high_bytes);
	sample->cost.arm_ns = wss_amount_of(facts->armed.end_ns - facts->armed.start_ns);
	sample->cost.read_ns = wss_amount_of(reading->span.end_ns - reading->span.start_ns);
	sample->cost.faults = reading->faults;
	sample->cost.predicted_stall_ns =
		(struct wss_amount){facts->predicted.stall_ns != 0, facts->predicted.stall_ns};
	sample->cost.predicted_faults = facts->predicted.faults;
	sample->cost.user_ns = wss_amount_of(facts->cpu.user_ns);
	sample->cost.system_ns = wss_amount_of(facts->cpu.system_ns);
	sample->n_curve = facts->curve.n_curve;
	memcpy(sample->curve, facts->curve.curve, sample->n_curve * sizeof(sample->curve[0]));
	if (ops->explain)
		ops->explain(facts->tracker, sample);
}

/*
 * Whether the guest may have touched more than the figure says, and not just the few pages
 * that two vCPUs fault on at once.
 */
static bool sample_is_too_low(const struct wss_sample *sample)
{
	uint64_t wss = sample->wss_bytes.value, high = sample->high_bytes.value;

	return high > wss && high - wss > wss / 100;
}

bool wss_window_stood_still(const struct wss_window_facts *facts, uint64_t end_ns,
			    char ret_text[WSS_STOOD_STILL_LEN])
{
	struct wss_standstill standstill = facts->standstill;
	uint64_t suspended_ns = wss_u64_sub(wss_clock_suspended_ns(), facts->suspended_ns);
	uint64_t window_ns = wss_u64_max(end_ns - facts->start_ns, 1), lost_ns;
	enum wss_standstill_cause cause;
	unsigned n = 0;
	int len = 0;

	/* Less is how long it took to read two clocks. */
	if (suspended_ns > window_ns / LOST_PART)
		standstill.lost_ns[WSS_STANDSTILL_SUSPEND] = suspended_ns;
	if (standstill.lost_ns[WSS_STANDSTILL_LIMIT] <= window_ns / LOST_PART)
		standstill.lost_ns[WSS_STANDSTILL_LIMIT] = 0;
	if (standstill.lost_ns[WSS_STANDSTILL_BLOCKED] <= window_ns / LOST_PART)
		standstill.lost_ns[WSS_STANDSTILL_BLOCKED] = 0;
	if (standstill.lost_ns[WSS_STANDSTILL_KEPT] <= window_ns / LOST_PART)
		standstill.lost_ns[WSS_STANDSTILL_KEPT] = 0;
	/* A busy host is no fault as long as the guest gets its turn most of the time. */
	if (standstill.lost_ns[WSS_STANDSTILL_STARVED] <= window_ns / 2)
		standstill.lost_ns[WSS_STANDSTILL_STARVED] = 0;
	/* The same time, known exactly. */
	if (facts->disturbance.stopped) {
		standstill.lost_ns[WSS_STANDSTILL_PAUSE] =
			wss_u64_max(facts->disturbance.paused_ns, 1);
		standstill.lost_ns[WSS_STANDSTILL_KEPT] =
			wss_u64_sub(standstill.lost_ns[WSS_STANDSTILL_KEPT],
				    standstill.lost_ns[WSS_STANDSTILL_PAUSE]);
	}
	for (; n < 2 && (lost_ns = wss_standstill_lost_ns(&standstill, &cause)); n++) {
		double percent = 100 * (double)wss_u64_min(lost_ns, window_ns) / (double)window_ns;

		len += snprintf(ret_text + len, (size_t)(WSS_STOOD_STILL_LEN - len),
				"%s%s for about %.*f %%", n ? " and " : "",
				wss_standstill_text(cause), percent < 1 ? 1 : 0, percent);
		standstill.lost_ns[cause] = 0;
	}
	if (n)
		snprintf(ret_text + len, (size_t)(WSS_STOOD_STILL_LEN - len), " of the window");
	return n;
}

static void sample_judge(const struct wss_window_facts *facts, uint64_t end_ns,
			 struct wss_sample *sample)
{
	char limit[16], text[WSS_STOOD_STILL_LEN];

	if (facts->slipped)
		wss_sample_degrade(sample, "the guest could not be paused for the whole time: "
					   "the window is not exact");
	sample->stood_still = wss_window_stood_still(facts, end_ns, text);
	if (sample->stood_still)
		wss_sample_degrade(
			sample, "the guest was %s: the figure has only what it touched in the rest",
			text);
	if (facts->disturbance.reset)
		wss_sample_degrade(sample,
				   "the guest was reset within the window: the figure has what "
				   "it touched before and while it boots");
	/* A method that has degraded it has said why. A guest must not be sized by such a figure. */
	if (sample->quality == WSS_QUALITY_OK && sample_is_too_low(sample))
		wss_sample_degrade(sample, "the figure is a lower bound: the guest may have "
					   "touched more");
	if (facts->guest->process.intruder)
		wss_sample_note(
			sample,
			"another user's process has locked the guest's clear_refs, too: if it "
			"writes there, the figure is too low");
	if (facts->cut)
		wss_sample_degrade(sample, "the window was cut short: preparing it took too long");
	if (facts->armed.end_ns - facts->armed.start_ns > facts->options->track.max_stall_ns) {
		wss_duration_format(facts->options->track.max_stall_ns, limit, sizeof(limit));
		wss_sample_note(
			sample,
			"starting the window took longer than the limit of %s for one stall",
			limit);
	}
}

void wss_window_sample_begin(struct wss_window_facts *facts, struct wss_sample *ret_sample)
{
	wss_window_describe(facts->guest, facts->tracker->ops, facts->options, ret_sample);
	sample_read_memory(facts, ret_sample);
}

void wss_window_sample(const struct wss_window_facts *facts, const struct wss_reading *reading,
		       uint64_t end_ns, struct wss_sample *sample)
{
	fill_reading(facts, reading, end_ns, sample);
	sample_judge(facts, end_ns, sample);
}
