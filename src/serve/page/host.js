// SPDX-License-Identifier: LGPL-2.1-or-later
// The host at a glance, and the table of its guests.

const firstWindow = (guest) => guest.next_seconds ? `the first one begins in ${durationText(guest.next_seconds)}` : "the first one is due";
// Why there was no window yet that shows a working set.
const notMeasured = (guest) => guest.why || (guest.kind === "canary" ? `only a short first window yet: the next one, in ${durationText(guest.next_seconds)}, shows the working set`
	: `no window yet: ${firstWindow(guest)}`);
const measured = (guest) => guest.sample && guest.sample.wss_bytes !== undefined;
const why = (guest) => guest.why || (measured(guest) ? "the last window did not show it" : notMeasured(guest));
const memory = (guest, name) => guest.sample && guest.sample.memory ? guest.sample.memory[name] : undefined;
const advised = (guest, name) => guest.recommendation ? guest.recommendation[name] : undefined;

// By the status of the recommendation.
const ADVICE_REASONS = {
	ok: "the history does not show it",
	"too early": "too early: a recommendation needs 10 windows",
	unknown: "no recommendation: the history has no window of this guest, or only such that see writes alone",
	"opted out": "no recommendation: its policy opts out",
	"no size": "no size: what the guest cannot give up is unknown without balloon statistics",
	failed: "no recommendation: its policy or its history could not be read",
};

function adviceReason(guest) {
	const advice = guest.recommendation;
	return advice ? ADVICE_REASONS[advice.status] || "no recommendation"
		: "the history of this guest has not been read yet, or nothing is stored (--no-store)";
}

function coldOf(guest, age) {
	const found = guest.cold ? guest.cold.ages.find((one) => one.age === age) : undefined;
	return found && found.high_bytes === undefined ? undefined : found;
}

const coldReason = (guest) => guest.cold ? `the guest has been watched for ${durationText(guest.cold.since_seconds)} only`
	: guest.sample
	? "no window has shown which pages this guest touches: the method, or the host's kernel, does not" : why(guest);

// For how long what holds the host or a guest has done so.
const forText = (held) => held.held_seconds === undefined ? "" : `, for ${durationText(held.held_seconds)}`;

// Of a guest: a word, its class, and what it means.
function stateOf(guest, held) {
	if (guest.state === "refused")
		return ["refused", "bad", guest.why || "the budget covers no window"];
	if (guest.state === "left out")
		return ["left out", "off", guest.why || "its policy opts out"];
	if (guest.state === "paused")
		return ["paused", "off", guest.why || "it is paused"];
	if (guest.state === "stopped")
		return ["stopped", "bad", guest.why];
	if (guest.stale)
		return ["stale", "warn", `the last window was ${durationText(guest.sample_age_seconds)} ago${guest.why ? `: ${guest.why}` : ""}`];
	if (held)
		return ["on hold", "warn", held];
	if (guest.why)
		return ["not measured", "warn", guest.why + forText(guest)];
	if (!measured(guest))
		return ["new", "off", notMeasured(guest)];
	if (guest.sample.quality !== "ok")
		return [guest.sample.quality, "warn", (guest.sample.notes || []).join("; ")];
	return ["ok", "", guest.state];
}

// --- the host ---

function tile(name, value, note) {
	return el("div", { class: "tile" }, el("dt", { text: name }), el("dd", {}, value), note ? el("dd", { class: "note", text: note }) : null);
}

function sumFigure(sum) {
	return figure(sum && sum.bytes, bytesText, "not known of any guest yet");
}

// A sum of bounds is one; of upper and lower ones only the sum of what was surely touched is.
function sumOfWorkingSets(sum) {
	if (!sum)
		return sumFigure(sum);
	return sum.high_bytes === undefined ? bounded(sum.low_bytes, "at least") :
		bounded(sum.bytes, sum.low_bytes === sum.high_bytes ? "exact" : "at most");
}

const ofGuests = (sum, total) => sum ? `${sum.guests} of ${plural(total, "guest")}` : "";

function troublesOf(host, guests) {
	const words = guests.map((guest) => stateOf(guest)[0]);
	const count = (state) => words.filter((word) => word === state).length;
	const text = [["stale", host.guests.stale], ["refused", host.guests.refused], ["left out", host.guests.left_out],
		["paused", host.guests.paused], ["stopped", host.guests.stopped], ["not measured yet", count("new")],
		// With the figures of an earlier window, if there are any.
		["failing", count("not measured")]].filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(", ");
	return text || (guests.length ? "none stale or refused" : "");
}

function hostTiles(host, list) {
	const guests = host.guests, totals = host.totals, of = host.memory_bytes;
	const part = (sum) => sum && of ? `${shareText(sum.bytes / of)} of the host, ` : "";
	return el("dl", { class: "tiles" },
		tile("Guests measured", el("span", { text: `${guests.measured} of ${guests.total}` }), troublesOf(host, list)),
		tile("Working set", sumOfWorkingSets(totals.wss), part(totals.wss) + ofGuests(totals.wss, guests.total)),
		tile("Recommended", sumFigure(totals.recommended), part(totals.recommended) + ofGuests(totals.recommended, guests.total)),
		tile("Reclaimable", sumFigure(totals.reclaimable), part(totals.reclaimable) + ofGuests(totals.reclaimable, guests.total)));
}

function hostBars(host) {
	const rows = [["Maximum", host.totals.maximum, "maximum"], ["Balloon", host.totals.balloon, "balloon"],
		["Resident", host.totals.rss, "rss"], ["Recommended", host.totals.recommended, "recommended"], ["Working set", host.totals.wss, ""]];
	const most = Math.max(host.memory_bytes || 0, ...rows.map(([, sum]) => sum ? sum.bytes : 0));
	const node = el("div", { class: "bars" });
	for (const [name, sum, kind] of rows)
		node.append(el("div", { text: name }), track([[sum ? sum.bytes / most : 0, `fill ${kind}`], ...(host.memory_bytes ? [[host.memory_bytes / most, "mark"]] : [])]),
			el("div", { class: "value" }, sum === host.totals.wss ? sumOfWorkingSets(sum) : sumFigure(sum)));
	return el("div", {}, node, el("p", { class: "quiet" },
		"Sums over all guests. The mark is the memory of the host: ", figure(host.memory_bytes, bytesText, "the kernel does not report it"), "."));
}

function notices(host, failure) {
	const list = [];
	if (failure)
		list.push(el("p", { class: "notice bad", text: `The service does not answer: ${failure}. The figures are the last ones that it sent.` }));
	if (host && host.libvirt_up === false)
		list.push(el("p", { class: "notice bad", text: "libvirt does not answer. Nothing is measured until it does; the figures are the last ones." }));
	if (host && host.state === "starting")
		list.push(el("p", { class: "notice", text: `The service started ${durationText(host.since_seconds)} ago and has not listed the guests yet.` }));
	if (host && host.held)
		list.push(el("p", { class: "notice", text: `Measuring is paused: ${visible(host.held)}${forText(host)}.` }));
	return list;
}

function emptyHost(host) {
	if (host.state === "starting")
		return el("div", { class: "empty" }, el("p", { text: "The guests appear here once libvirt has listed them." }));
	return el("div", { class: "empty" },
		el("p", { text: "No guest runs on this host, so there is nothing to measure." }),
		el("p", {}, "Start one, for example with ", el("code", { text: "virsh start DOMAIN" }),
			": it appears here within seconds, and its first figures once it has been up for two minutes (--boot)."),
		el("p", {}, "If guests do run, ", el("code", { text: "virsh list" }),
			" may show them under another URI: name it with ", el("code", { text: "virt-wss -c URI serve" }), "."));
}

// --- the guests ---

// key: for sorting; null: unknown, which is always last.
const COLUMNS = [
	{ id: "name", title: "Guest", key: (g) => g.domain.toLocaleLowerCase() },
	{ id: "state", title: "State", key: (g) => stateOf(g)[0] },
	{ id: "wss", title: "Working set", number: true, key: (g) => wssOf(g.sample) },
	{ id: "trend", title: "24 hours", class: "c1" },
	{ id: "rss", title: "Resident", number: true, class: "c2", key: (g) => memory(g, "rss_bytes") },
	{ id: "balloon", title: "Balloon", number: true, class: "c1", key: (g) => memory(g, "balloon_bytes") },
	{ id: "recommended", title: "Recom\u00admended", number: true, key: (g) => advised(g, "recommended_bytes") },
	{ id: "reclaimable", title: "Reclaimable", number: true, class: "c1", key: (g) => advised(g, "reclaimable_bytes") },
	{ id: "cold", title: "Idle 10 min", number: true, class: "c2", key: (g) => (coldOf(g, "10m") || {}).high_bytes },
	{ id: "cost", title: "Cost", number: true, class: "c2", key: (g) => g.spent.vcpu_share },
	{ id: "age", title: "Age", number: true, class: "c1", key: (g) => g.sample_age_seconds },
];

function wssCell(guest) {
	const sample = guest.sample, wss = wssOf(sample);
	const balloon = memory(guest, "balloon_bytes"), maximum = memory(guest, "maximum_bytes"), of = maximum || balloon;
	if (wss === undefined || !of)
		return [bounded(wss, boundOf(sample), why(guest))];
	const shown = bounded(wss, boundOf(sample));
	if (guest.coarse_why)
		shown.title += `. Not measured by 4 KiB: ${visible(guest.coarse_why)}`;
	return [shown, track([[(balloon || of) / of, "fill balloon soft"], [wss / of, "fill"]],
		`${boundOf(sample) === "exact" ? "" : `${boundOf(sample)} `}${shareText(wss / of)} of the maximum of ${bytesText(of)}${balloon ? `, balloon ${bytesText(balloon)}` : ""}`)];
}

function coldText(one) {
	return one.low_bytes === one.high_bytes ? bytesText(one.high_bytes) : `${bytesText(one.low_bytes)} \u2013 ${bytesText(one.high_bytes)}`;
}

// The bound of what is beyond a recommendation.
const restOf = (guest) => advised(guest, "bound") === "at most" ? "at least" : "exact";

// Nothing of a guest that keeps its memory on the host, with the reason.
function reclaimable(guest) {
	const unseen = guest.recommendation && guest.recommendation.status === "ok" ? "its next window shows whether the host gets memory back" : adviceReason(guest);
	const node = bounded(advised(guest, "reclaimable_bytes"), guest.blocked_why ? "exact" : restOf(guest), unseen);
	if (guest.blocked_why)
		node.title = visible(guest.blocked_why);
	return node;
}

// Returns the content of each cell but the name's.
function cells(guest, view) {
	const [word, kind, meaning] = stateOf(guest, view.held), cold = coldOf(guest, "10m");
	return {
		state: [el("span", { class: `state ${kind}`, text: word, title: visible(meaning) }),
			...(measured(guest) || meaning === word ? [] : [el("div", { class: "reason", text: visible(meaning), title: visible(meaning) })])],
		wss: wssCell(guest),
		rss: [figure(memory(guest, "rss_bytes"), bytesText, why(guest))],
		balloon: [figure(memory(guest, "balloon_bytes"), bytesText, why(guest))],
		recommended: [bounded(advised(guest, "recommended_bytes"), advised(guest, "bound"), adviceReason(guest))],
		reclaimable: [reclaimable(guest)],
		cold: [figure(cold, cold ? () => `\u2264 ${bytesText(cold.high_bytes)}` : null, coldReason(guest))],
		cost: [figure(guest.spent.vcpu_share, shareText, notMeasured(guest))],
		age: [figure(guest.sample_age_seconds, durationText, notMeasured(guest))],
	};
}

class Table {
	constructor(open) {
		this.open = open;
		this.rows = new Map(); // by UUID
		this.sort = { id: "wss", down: true };
		this.body = el("tbody");
		this.count = el("p", { class: "quiet", role: "status" });
		this.filter = el("input", { type: "search", placeholder: "Filter by name or state", "aria-label": "Filter guests by name or state",
			oninput: () => this.arrange() });
		this.heads = COLUMNS.map((column) => el("th", { scope: "col", class: [column.number && "number", column.class].filter(Boolean).join(" ") || null },
			column.key ? el("button", { type: "button", text: column.title, onclick: () => this.sortBy(column) }) : document.createTextNode(column.title)));
		this.table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Guests" },
			el("table", { id: "guests" }, el("thead", {}, el("tr", {}, ...this.heads)), this.body));
		this.node = el("section", { class: "card" }, el("div", { class: "tools" }, el("h2", { text: "Guests" }), this.count, this.filter), this.table);
	}

	sortBy(column) {
		const same = this.sort.id === column.id;
		this.sort = { id: column.id, down: same ? !this.sort.down : Boolean(column.number) };
		this.arrange();
	}

	rowOf(guest) {
		const name = el("button", { type: "button" }), row = el("tr", {}, el("td", { class: "name" }, name));
		const made = { row, name, cells: {}, guest };
		for (const column of COLUMNS.slice(1)) {
			made.cells[column.id] = el("td", { class: [column.number && "number", column.class].filter(Boolean).join(" ") || null });
			row.append(made.cells[column.id]);
		}
		row.addEventListener("click", () => this.open(guest.uuid));
		this.rows.set(guest.uuid, made);
		return made;
	}

	update(guests, view) {
		const listed = new Set(guests.map((guest) => guest.uuid));
		for (const [uuid, made] of this.rows)
			if (!listed.has(uuid)) {
				made.row.remove();
				this.rows.delete(uuid);
			}
		for (const guest of guests) {
			const made = this.rows.get(guest.uuid) || this.rowOf(guest), name = visible(guest.domain);
			made.guest = guest;
			if (made.name.textContent !== name) {
				made.name.textContent = name;
				made.name.title = name;
			}
			for (const [id, content] of Object.entries(cells(guest, view)))
				made.cells[id].replaceChildren(...content);
		}
		this.view = view;
		if (this.latest)
			this.trends(this.latest);
		this.arrange();
	}

	trends(trends) {
		// On the first day the axis begins with the first half hour in which any guest was measured.
		const known = Object.values(trends.wss_bytes).map((values) => values.findIndex((value) => value !== null)).filter((i) => i >= 0);
		const first = known.length ? Math.min(46, ...known) : 0;
		const span = first <= 1 ? "24 hours" : durationExact((48 - first) * trends.step_seconds).replace(" h", " hours");
		this.heads[COLUMNS.findIndex((one) => one.id === "trend")].textContent = span;
		for (const [uuid, made] of this.rows) {
			const values = trends.wss_bytes[uuid];
			made.cells.trend.replaceChildren(values ? sparkline(first <= 1 ? values : values.slice(first), trends.bounds[uuid], span)
				: figure(undefined, null, notMeasured(made.guest)));
		}
		this.latest = trends;
	}

	// Sorts and filters the rows; moves none that is at its place.
	arrange() {
		const column = COLUMNS.find((one) => one.id === this.sort.id), down = this.sort.down ? -1 : 1;
		const wanted = this.filter.value.trim().toLocaleLowerCase();
		const keyed = [...this.rows.values()].map((made) => ({ made, key: column.key(made.guest) }));
		const unknown = (key) => key === undefined || key === null;
		keyed.sort((a, b) => unknown(a.key) - unknown(b.key) || (a.key < b.key ? -down : a.key > b.key ? down : 0) ||
			(a.made.guest.domain < b.made.guest.domain ? -1 : 1));
		let shown = 0;
		keyed.forEach(({ made }, i) => {
			const text = `${visible(made.guest.domain)} ${stateOf(made.guest, this.view.held)[0]} ${made.guest.uuid}`.toLocaleLowerCase();
			made.row.hidden = !text.includes(wanted);
			shown += !made.row.hidden;
			if (this.body.children[i] !== made.row)
				this.body.insertBefore(made.row, this.body.children[i] || null);
		});
		this.heads.forEach((head, i) => COLUMNS[i].id === this.sort.id ?
			head.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
		this.count.textContent = wanted ? `${shown} of ${plural(keyed.length, "guest")}` : "";
	}
}
