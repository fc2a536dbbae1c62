// SPDX-License-Identifier: LGPL-2.1-or-later
// Invents what a service answers about a host, from a fixed sequence of pseudo-random numbers.
"use strict";
const fs = require("fs");
const path = require("path");

const MIB = 2 ** 20, GIB = 2 ** 30;

function randomOf(seed) {
	let state = seed;
	return () => {
		state = (state * 1664525 + 1013904223) >>> 0;
		return state / 2 ** 32;
	};
}

const uuidOf = (i) => `0f1e2d3c-0000-4000-8000-${String(i).padStart(12, "0")}`;
const pages = (bytes) => Math.round(bytes / 4096) * 4096;
const isoOf = (ms) => new Date(ms).toISOString().replace(/\.\d+Z/, "Z");

const SERIES = [{ method: "mmu", observes: "accesses", granularity_bytes: 4096, window_seconds: 4 }];
const COARSE = [{ method: "mmu", observes: "accesses", granularity_bytes: 2 * MIB, window_seconds: 0.2 }, { ...SERIES[0], granularity_bytes: 2 * MIB }];

function curveOf(wss, window) {
	const points = [];
	for (let t = 0.001; t < window; t *= 1.35)
		points.push({ seconds: Number(t.toFixed(6)), bytes: pages(wss * (1 - Math.exp(-t * 2.5)) / (1 - Math.exp(-window * 2.5))) });
	points.push({ seconds: window, bytes: wss });
	return points;
}

const STEPS = [[120, "2m", 0.62], [600, "10m", 0.5], [3600, "1h", 0.38], [86400, "24h", 0.21], [undefined, "never", 0.17]];

function coldOf(rss, watched) {
	return {
		age_seconds: 12, since_seconds: watched, held_bytes: pages(rss * 0.95), absent_bytes: pages(rss * 0.12), granularity_bytes: 4096,
		ages: STEPS.map(([seconds, age, share]) => ({ age, ...(seconds ? { seconds } : {}), observed: 0.97,
			...(seconds > watched ? {} : { low_bytes: pages(rss * share * 0.85), high_bytes: pages(rss * share) }) })),
	};
}

// A guest that is measured, and its past. coarse: only bounds are known.
function guestOf(i, name, random, now) {
	const maximum = [1, 2, 4, 8, 16][Math.floor(random() * 5)] * GIB, balloon = random() < 0.3 ? maximum * 0.75 : maximum;
	const rss = pages(balloon * (0.5 + 0.45 * random())), wss = pages(rss * (0.1 + 0.6 * random())), coarse = i % 7 === 3;
	const low = coarse ? pages(wss * 0.3) : wss, recommended = Math.ceil(wss * 1.35 / MIB) * MIB;
	const recent = { start_seconds: Math.floor(now / 1000 / 300) * 300 - 287 * 300, step_seconds: 300, series: coarse ? COARSE : SERIES,
		of_series: [], wss_bytes: [], low_bytes: [], high_bytes: [], balloon_bytes: [], rss_bytes: [], maximum_bytes: [] };
	for (let slot = 0; slot < 288; slot++) {
		const gap = slot > 130 && slot < 139, day = 1 + 0.35 * Math.sin(slot / 288 * 2 * Math.PI) + 0.12 * random();
		const value = slot === 287 ? wss : pages(wss * day / 1.15);
		const put = (key, bytes) => recent[key].push(gap ? null : bytes);
		recent.of_series.push(gap ? null : coarse && slot < 60 ? 0 : coarse ? 1 : 0);
		put("wss_bytes", coarse && slot < 60 ? pages(value / 3) : value);
		put("low_bytes", coarse ? pages(value * 0.3) : value);
		put("high_bytes", value);
		put("balloon_bytes", slot < 100 ? maximum : balloon);
		put("rss_bytes", pages(rss * (0.9 + 0.1 * slot / 287)));
		put("maximum_bytes", maximum);
	}
	const days = { series: SERIES, days: [] };
	for (let d = 40; d >= 0; d--)
		days.days.push({ start_seconds: Math.floor(now / 864e5) * 86400 - d * 86400, of_series: 0, windows: 1440, p50_bytes: pages(wss * (0.6 + 0.1 * random())),
			p95_bytes: pages(wss * (0.9 + 0.15 * random())), max_bytes: pages(wss * 1.3) });
	// Of the newest series only.
	const comparable = recent.wss_bytes.map((v, slot) => recent.of_series[slot] === recent.of_series[287] ? v : null);
	const trend = Array.from({ length: 48 }, (_, k) => comparable.slice(k * 6, k * 6 + 6).reduce((most, v) => v === null ? most : Math.max(most === null ? 0 : most, v), null));
	const guest = {
		domain: name, uuid: uuidOf(i), state: "waiting", vcpus: 1 + i % 8, period_seconds: 60, next_seconds: Number((random() * 60).toFixed(1)),
		spent: { windows: 1440, dearer_windows: 0, vcpu_seconds: 20.5, vcpu_share: Number((0.0001 + 0.004 * random()).toFixed(6)), cpu_seconds: 2.8,
			longest_stall_seconds: Number((0.001 + 0.01 * random()).toFixed(4)), since_seconds: 86512.2 },
		...(coarse ? {} : { cold: coldOf(rss, 90061) }),
		recommendation: { status: "ok", age_seconds: 124.1, confidence: "medium", windows: 10080, since: isoOf(now - 7 * 864e5), bound: coarse ? "at most" : "exact", p50_bytes: pages(wss * 0.8), p95_bytes: wss,
			p99_bytes: pages(wss * 1.05), peak_bytes: pages(wss * 1.12), recommended_bytes: recommended, reclaimable_bytes: Math.max(0, rss - recommended),
			why: ["4.00 GiB -> 2.00 GiB would free 1.50 GiB on the host; medium confidence: 10080 windows in 7 days", "windows of 4 s by mmu at 4 KiB granularity"] },
		...(coarse ? { coarse: "unsupported", coarse_why: "4 KiB granularity: device 'x' is not known to survive the dirty log" } : {}),
		kind: "coarse", sample_age_seconds: Number((random() * 60).toFixed(1)), stale: false,
		sample: { domain: name, uuid: uuidOf(i), time: isoOf(now - 30000), quality: "ok", method: "mmu", observes: "accesses",
			granularity_bytes: coarse ? 2 * MIB : 4096, window_seconds: 4.002, wss_bytes: wss, wss_low_bytes: low, wss_high_bytes: wss,
			memory: { maximum_bytes: maximum, balloon_bytes: balloon, rss_bytes: rss, swap_bytes: 0 },
			curve: curveOf(wss, 4.002).map((p) => coarse ? { ...p, low_bytes: pages(p.bytes * 0.3), high_bytes: p.bytes } : p),
			notes: coarse ? ["the host maps this guest by 2 MiB: the working set is between its bounds"] : [] },
	};
	return { guest, trend, history: { schema: "virt-wss/history-of-guest/1", time: isoOf(now), uuid: uuidOf(i), recent, days } };
}

// Makes guest i one of a rarer kind.
const KINDS = {
	refused: (guest) => {
		for (const member of ["sample", "kind", "stale", "sample_age_seconds", "cold", "recommendation"])
			delete guest[member];
		Object.assign(guest, { state: "refused", why: "a window would stall it for about 41.0 ms, over the limit of 20.0 ms", period_seconds: 3600,
			spent: { windows: 0, dearer_windows: 0, vcpu_seconds: 0, cpu_seconds: 0, longest_stall_seconds: 0, since_seconds: 731.2 } });
	},
	"left out": (guest) => {
		KINDS.refused(guest);
		Object.assign(guest, { state: "left out", why: "its policy opts out of being measured" });
	},
	new: (guest) => {
		KINDS.refused(guest);
		guest.state = "waiting";
		delete guest.why;
	},
	failing: (guest) => {
		KINDS.new(guest);
		guest.why = "cannot read its memory map: permission denied";
	},
	stale: (guest) => Object.assign(guest, { stale: true, sample_age_seconds: 731.5, why: "cannot read its state: libvirt does not answer" }),
	// Only its first, short window was taken.
	canary: (guest) => {
		for (const member of ["wss_bytes", "wss_low_bytes", "wss_high_bytes", "curve"])
			delete guest.sample[member];
		guest.kind = "canary";
		guest.sample.window_seconds = 0.2;
		delete guest.recommendation;
	},
	blocked: (guest) => {
		guest.blocked_why = "its memory cannot be reclaimed: locked memory";
		guest.recommendation.reclaimable_bytes = 0;
	},
	early: (guest) => {
		guest.recommendation = { status: "too early", age_seconds: 3.1, confidence: "none", windows: 4, since: guest.recommendation.since, why: ["too early: 4 of 10 windows"] };
	},
	unsized: (guest) => {
		guest.recommendation = { status: "unknown", age_seconds: 3.1, why: [] };
	},
};

function sumOf(guests, get) {
	const known = guests.map(get).filter((v) => v !== undefined);
	return known.length ? { bytes: known.reduce((a, b) => a + b, 0), guests: known.length } : undefined;
}

function hostOf(guests, now, more) {
	const of = (key) => sumOf(guests, (g) => g.sample && g.sample.memory[key]), advice = (key) => sumOf(guests, (g) => g.recommendation && g.recommendation[key]);
	const bounds = (key) => (sumOf(guests, (g) => g.sample && g.sample[key]) || {}).bytes;
	const wss = sumOf(guests, (g) => g.sample && g.sample.wss_bytes);
	const totals = { wss: wss && { ...wss, low_bytes: bounds("wss_low_bytes"), high_bytes: bounds("wss_high_bytes") }, balloon: of("balloon_bytes"), maximum: of("maximum_bytes"), rss: of("rss_bytes"), swap: of("swap_bytes"),
		recommended: advice("recommended_bytes"), reclaimable: advice("reclaimable_bytes") };
	const count = (test) => guests.filter(test).length;
	return {
		schema: "virt-wss/host/1", time: isoOf(now), host: "node7.example", version: "0.1.0", libvirt_up: true, memory_bytes: 128 * GIB,
		guests: { total: guests.length, measured: count((g) => g.sample && g.sample.wss_bytes !== undefined), stale: count((g) => g.stale), refused: count((g) => g.state === "refused"), left_out: count((g) => g.state === "left out"), paused: count((g) => g.state === "paused"), stopped: count((g) => g.state === "stopped") },
		totals: JSON.parse(JSON.stringify(totals)), budget: { vcpu_share: 0.005, stall_seconds: 0.02 },
		spent: { windows: 1440 * guests.length, dearer_windows: 2, vcpu_seconds: 210.4, cpu_seconds: 28.1, ...(guests.length ? { longest_stall_seconds: 0.0113 } : {}), since_seconds: 86512.2 },
		...more,
	};
}

// Leaves a history's last slots.
function shorten(history, slots) {
	const recent = history.recent;
	recent.start_seconds += (recent.wss_bytes.length - slots) * recent.step_seconds;
	for (const key of Object.keys(recent))
		if (key === "of_series" || key.endsWith("_bytes"))
			recent[key] = recent[key].slice(-slots);
	delete history.days;
}

/*
 * Writes the answers about a host into a directory, and returns its guests. options: n, names (of the first guests),
 * kinds { index: name of KINDS }, host (more of the host), held, slots (only so many of the past's last ones, and no days).
 */
function write(directory, options) {
	const now = Date.now(), random = randomOf(options.seed || 42), roles = ["web", "db", "cache", "build", "mail", "ci", "proxy", "queue"];
	const made = Array.from({ length: options.n }, (_, i) => guestOf(i, (options.names || [])[i] || `${roles[i % roles.length]}${1 + Math.floor(i / roles.length)}`, random, now));
	for (const [i, kind] of Object.entries(options.kinds || {}))
		KINDS[kind](made[i].guest);
	if (options.slots)
		made.forEach((one) => {
			shorten(one.history, options.slots);
			one.trend = one.trend.map((value, i) => i < 48 - Math.ceil(options.slots / 6) ? null : value);
		});
	const guests = made.map((one) => one.guest), held = options.held ? { held: options.held, held_seconds: 90 } : {};
	const put = (name, value) => fs.writeFileSync(path.join(directory, `${name}.json`), `${JSON.stringify(value)}\n`);
	for (const name of fs.readdirSync(directory))
		fs.rmSync(path.join(directory, name));
	put("host", hostOf(guests, now, { ...held, ...options.host }));
	put("guests", { schema: "virt-wss/guests/1", time: isoOf(now), ...held, guests });
	// Its trend is of windows that count large pages as a whole, though the last one does not.
	const trendOfBounds = made.find((one) => one.guest.sample && !one.guest.coarse);
	put("trends", { schema: "virt-wss/trends/1", time: isoOf(now), start_seconds: Math.floor(now / 1000) - 86400, step_seconds: 1800,
		wss_bytes: Object.fromEntries(made.filter((one) => one.guest.sample).map((one) => [one.guest.uuid, one.trend])),
		bounds: Object.fromEntries(made.filter((one) => one.guest.sample).map((one) => [one.guest.uuid, one.guest.coarse || one === trendOfBounds ? "at most" : "exact"])) });
	for (const one of made)
		if (one.guest.sample)
			put(one.guest.uuid, one.history);
	return guests;
}

module.exports = { write };
