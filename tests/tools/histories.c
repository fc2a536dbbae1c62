/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "histories.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define HOUR 3600
/* Windows in an hour; its largest counts. */
#define WINDOWS 4
#define MIB 1048576.0

const char *histories_kind_name(enum histories_kind kind)
{
	static const char *const names[] = {"steady",  "daily",	 "weekly",  "growth", "leak",
					    "peaks",   "boots",	 "resizes", "gaps",   "walk",
					    "bursts",  "mixed",	 "office",  "night",  "backup",
					    "closing", "starved"};

	return names[kind];
}

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double between(uint64_t *state, double low, double high)
{
	return low + (high - low) * uniform(state);
}

static double normal(uint64_t *state)
{
	double u = uniform(state), v = uniform(state);

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* The features of a guest; those that are 0 are absent. */
struct guest {
	double base_mib, noise;
	double daily, phase_h, width_h; /* share on top at the peak of a day */
	double weekend;			/* share that weekends lack */
	double growth;			/* share a day */
	double leak, leak_h;		/* share a day, until it is started again */
	double peak_chance, peak;	/* an hour; share on top */
	double boot_chance, boot;
	double resize_chance;
	double gap_chance, gap_h;
	double walk;
	double batch, batch_from_h,
		batch_h;	    /* share on top, when it begins each day, how long it takes */
	bool (*has_batch)(int day); /* NULL: each day */
	bool starved;
	double burst; /* share on top of half the hours at least, rarely several times that */
};

static bool day_is_sunday(int day)
{
	return day % 7 == 6;
}

static bool day_is_closing(int day)
{
	return day == 0 || day == HISTORIES_HOURS / 24 - 1;
}

static void batch_add(struct guest *guest, uint64_t *state, double from_h,
		      bool (*has_batch)(int day))
{
	guest->batch = between(state, 0.5, 2);
	guest->batch_from_h = from_h;
	guest->batch_h = between(state, 1, 4);
	guest->has_batch = has_batch;
}

static void guest_add(struct guest *guest, enum histories_kind kind, uint64_t *state)
{
	switch (kind) {
	case HISTORIES_DAILY:
		guest->daily = between(state, 0.15, 0.8);
		guest->phase_h = between(state, 0, 24);
		guest->width_h = between(state, 4, 14);
		break;
	case HISTORIES_WEEKLY:
		guest->weekend = between(state, 0.1, 0.4);
		guest->daily = between(state, 0, 0.3);
		guest->phase_h = between(state, 8, 16);
		guest->width_h = between(state, 6, 12);
		break;
	case HISTORIES_GROWTH:
		guest->growth = between(state, 0.003, 0.03);
		break;
	case HISTORIES_LEAK:
		guest->leak = between(state, 0.02, 0.15);
		guest->leak_h = between(state, 72, 400);
		break;
	case HISTORIES_PEAKS:
		guest->peak_chance = 1 / between(state, 72, 336);
		guest->peak = between(state, 0.2, 1.2);
		break;
	case HISTORIES_BOOTS:
		guest->boot_chance = 1 / between(state, 96, 336);
		guest->boot = between(state, 0.1, 0.7);
		guest->gap_h = between(state, 1, 12);
		break;
	case HISTORIES_RESIZES:
		guest->resize_chance = 1 / between(state, 120, 400);
		break;
	case HISTORIES_GAPS:
		guest->gap_chance = 1 / between(state, 24, 168);
		guest->gap_h = between(state, 1, 48);
		break;
	case HISTORIES_WALK:
		guest->walk = between(state, 0.002, 0.015);
		break;
	case HISTORIES_BURSTS:
		guest->burst = between(state, 0.03, 0.12);
		break;
	case HISTORIES_OFFICE:
		guest->weekend = between(state, 0.4, 0.6);
		guest->daily = between(state, 0.6, 1.5);
		guest->phase_h = 13;
		guest->width_h = 11;
		break;
	case HISTORIES_NIGHT:
		batch_add(guest, state, 1, NULL);
		break;
	case HISTORIES_BACKUP:
		batch_add(guest, state, 2, day_is_sunday);
		break;
	case HISTORIES_CLOSING:
		batch_add(guest, state, 16, day_is_closing);
		break;
	case HISTORIES_STARVED:
		guest->daily = between(state, 0.3, 0.8);
		guest->phase_h = between(state, 0, 24);
		guest->width_h = 10;
		guest->starved = true;
		break;
	default:
		break;
	}
}

static bool has_batch_at(const struct guest *guest, int hour)
{
	double since = hour % 24 - guest->batch_from_h;

	return guest->batch > 0 && since >= 0 && since < guest->batch_h &&
	       (!guest->has_batch || guest->has_batch(hour / 24));
}

static struct guest guest_make(enum histories_kind kind, uint64_t *state)
{
	struct guest guest = {.base_mib = exp(between(state, log(256), log(32768))),
			      .noise = between(state, 0.005, 0.06)};

	guest_add(&guest, kind, state);
	if (kind == HISTORIES_MIXED)
		for (int i = 0; i < 3; i++)
			guest_add(&guest, (enum histories_kind)(uniform(state) * HISTORIES_MIXED),
				  state);
	return guest;
}

/* The part of the daily peak at an hour: a bump of that width. */
static double daily_part(const struct guest *guest, double hour)
{
	double away = fabs(fmod(hour - guest->phase_h + 36, 24) - 12);

	if (guest->width_h <= 0 || away > guest->width_h / 2)
		return 0;
	return 0.5 + 0.5 * cos(2 * M_PI * away / guest->width_h);
}

size_t histories_make(uint64_t seed, enum histories_kind kind,
		      struct wss_backtest_hour hours[HISTORIES_HOURS])
{
	uint64_t state = seed * 0x2545f4914f6cdd1d + (uint64_t)kind + 1;
	struct guest guest = guest_make(kind, &state);
	double level = 1, leaked = 0, leak_age = 0, walk = 0, largest = 0;
	int away = 0;
	bool booted = false;
	size_t n = 0;

	for (int h = 0; h < HISTORIES_HOURS; h++) {
		double set = level, most = 0;
		bool peak = uniform(&state) < guest.peak_chance;

		if (!away && uniform(&state) < guest.gap_chance)
			away = 1 + (int)(guest.gap_h * uniform(&state));
		if (!away && uniform(&state) < guest.boot_chance) {
			away = 1 + (int)guest.gap_h;
			booted = true;
			leaked = leak_age = 0;
		}
		if (uniform(&state) < guest.resize_chance)
			level *= between(&state, 0.6, 1.6);
		leaked += guest.leak / 24;
		if (guest.leak_h > 0 && ++leak_age > guest.leak_h)
			leaked = leak_age = 0;
		walk += guest.walk * normal(&state) - 0.002 * walk;
		if (away) {
			away--;
			continue;
		}
		set *= (1 + guest.daily * daily_part(&guest, h % 24)) * (1 + leaked) *
		       (1 + guest.growth * h / 24) * exp(walk);
		if (h / 24 % 7 >= 5)
			set *= 1 - guest.weekend;
		if (guest.burst > 0)
			set *= exp(guest.burst * fabs(normal(&state)) * 1.5);
		if (has_batch_at(&guest, h))
			set *= 1 + guest.batch;
		if (peak)
			set *= 1 + guest.peak * between(&state, 0.5, 1);
		if (booted)
			set *= 1 + guest.boot;
		booted = false;
		for (int i = 0; i < WINDOWS; i++)
			most = fmax(most, set * (1 + guest.noise * normal(&state)));
		largest = fmax(largest, most);
		hours[n++] = (struct wss_backtest_hour){
			.start = HISTORIES_START + (time_t)h * HOUR,
			.need_bytes = (uint64_t)(fmax(most, 0.05) * guest.base_mib * MIB),
		};
	}
	for (size_t i = 0; i < n; i++)
		hours[i].assigned_bytes =
			(uint64_t)(largest * guest.base_mib * MIB *
				   (guest.starved ? 0.8 : 1.3 + (double)(seed % 7) / 4));
	for (size_t i = 0; guest.starved && i < n; i++)
		if (hours[i].need_bytes > hours[i].assigned_bytes)
			hours[i].need_bytes = hours[i].assigned_bytes;
	return n;
}

static struct wss_sample sample_of(const struct wss_backtest_hour *hour, uint64_t granularity_bytes)
{
	struct wss_sample sample = {
		.wall = hour->start + 1800,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(granularity_bytes),
		.requested_window_ns = 4000000000,
		.window_ns = wss_amount_of(4000000000),
		.wss_bytes = wss_amount_of(hour->need_bytes),
		.memory = {.maximum_bytes = wss_amount_of(hour->assigned_bytes),
			   .unreclaimable_bytes = wss_amount_of(1 << 20)},
	};

	for (double t = 0.01; t < 4; t *= 1.5)
		wss_sample_curve_add(&sample, (uint64_t)(t * 1e9),
				     (uint64_t)((double)hour->need_bytes * (1 - exp(-t / 0.3))));
	wss_sample_curve_add(&sample, sample.requested_window_ns, hour->need_bytes);
	return sample;
}

int histories_store(struct wss_history *history, const char *uuid, const char *name,
		    const struct wss_backtest_hour *hours, size_t n, uint64_t granularity_bytes,
		    struct wss_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct wss_sample sample = sample_of(&hours[i], granularity_bytes);

		snprintf(sample.domain, sizeof(sample.domain), "%s", name);
		snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
		if (wss_history_add(history, &sample, err) < 0)
			return -1;
	}
	return 0;
}
