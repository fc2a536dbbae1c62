// SPDX-License-Identifier: LGPL-2.1-or-later
// All that is known of one guest.

function facts(list) {
	const node = el("dl", { class: "facts" });
	for (const [name, value] of list)
		node.append(el("dt", { text: name }), el("dd", {}, value));
	return node;
}

const card = (title, kind, ...children) => el("section", { class: `card ${kind}` }, el("h3", { text: title }), ...children);
const none = (text) => el("p", { class: "quiet", text });

function factsCard(guest, held) {
	const sample = guest.sample || {}, [word, kind, meaning] = stateOf(guest, held);
	const bounds = sample.quality === "ok" && sample.wss_low_bytes !== undefined && sample.wss_low_bytes !== sample.wss_high_bytes
		? ` (${bytesText(sample.wss_low_bytes)} to ${bytesText(sample.wss_high_bytes)})` : "";
	const text = (value) => el("span", { text: value });
	const notes = (sample.notes || []).map((note) => el("li", { text: visible(note) }));
	return card("Now", "", facts([
		["State", el("span", {}, el("span", { class: `state ${kind}`, text: word }), meaning && meaning !== word ? `: ${visible(meaning)}` : "")],
		["Working set", el("span", {}, bounded(wssOf(sample), boundOf(sample), why(guest)), bounds)],
		...(guest.coarse_why ? [["Not by 4 KiB", text(visible(guest.coarse_why))]] : []),
		["Written", figure(sample.written_bytes, bytesText, measured(guest) ? "this method does not tell writes from reads here" : notMeasured(guest))],
		["Resident", figure(memory(guest, "rss_bytes"), bytesText, why(guest))],
		["Balloon", figure(memory(guest, "balloon_bytes"), bytesText, why(guest))],
		["Maximum", figure(memory(guest, "maximum_bytes"), bytesText, why(guest))],
		["Swapped by host", figure(memory(guest, "swap_bytes"), bytesText, why(guest))],
		["Last window", guest.sample ? text(`${durationText(guest.sample_age_seconds)} ago: ${durationText(sample.window_seconds)} by ${sample.method}, ${guest.kind === "canary" ? "short" : guest.kind}` +
			(sample.granularity_bytes ? `, ${bytesTick(sample.granularity_bytes)} granularity` : "")) : figure(undefined, null, why(guest))],
		["UUID", text(guest.uuid)],
	]), notes.length ? el("ul", { class: "why" }, ...notes) : null);
}

function adviceCard(guest) {
	const advice = guest.recommendation || {}, size = advice.recommended_bytes;
	const percentiles = [["p50", "Median"], ["p95", "95th percentile"], ["p99", "99th percentile"], ["peak", "Peak"]]
		.map(([id, name]) => [name, bounded(advice[`${id}_bytes`], advice.bound, adviceReason(guest))]);
	return card("Recommendation", "",
		el("p", { class: "big" }, bounded(size, advice.bound, adviceReason(guest))),
		size === undefined ? none(adviceReason(guest)) : null,
		el("ul", { class: "why" }, ...[...(advice.why || []), ...(guest.blocked_why ? [guest.blocked_why] : [])].map((line) => el("li", { text: visible(line) }))),
		facts([["Confidence", figure(advice.confidence, String, adviceReason(guest))],
			["Reclaimable", reclaimable(guest)], ...percentiles,
			["Windows", figure(advice.windows, (n) => `${n.toLocaleString()} since ${timeText(Date.parse(advice.since) / 1000)}`, adviceReason(guest))],
			["Computed", figure(advice.age_seconds, (seconds) => `${durationText(seconds)} ago`, adviceReason(guest))]]));
}

function coldCard(guest) {
	const cold = guest.cold;
	if (!cold)
		return card("Coldness", "", none(`Unknown: ${visible(coldReason(guest))}.`));
	const names = { "2m": "2 minutes", "10m": "10 minutes", "1h": "1 hour", "24h": "24 hours" };
	const node = el("div", { class: "bars" });
	for (const one of cold.ages) {
		const known = one.high_bytes !== undefined;
		node.append(el("div", { text: names[one.age] || "Never touched" }),
			track(known ? [[one.high_bytes / cold.held_bytes, "fill soft"], [one.low_bytes / cold.held_bytes, "fill"]] : []),
			el("div", { class: "value" }, known ? el("span", { text: coldText(one), title: `${shareText(one.observed)} of that time was observed` })
				: figure(undefined, null, `the guest has been watched for ${durationText(cold.since_seconds)} only`)));
	}
	return card("Coldness: idle for at least", "", node,
		none(`Of ${bytesText(cold.held_bytes)} that the host holds, watched for ${durationText(cold.since_seconds)}, by ${bytesTick(cold.granularity_bytes)}. ` +
			"Solid: surely idle; pale: at most. A further " + `${bytesText(cold.absent_bytes)} was never touched, or taken by the balloon.`));
}

function costCard(guest, host) {
	const spent = guest.spent, budget = host.budget, share = spent.vcpu_share;
	const used = share === undefined ? undefined : share / budget.vcpu_share;
	return card("Cost of measuring", "", facts([
		["vCPU time", el("span", {}, figure(share, shareText, notMeasured(guest)), ` of a budget of ${shareText(budget.vcpu_share)}`)],
		["Budget spent", el("span", {}, figure(used, shareText, notMeasured(guest)), track([[used || 0, "fill"]], used === undefined ? undefined : `${shareText(used)} of the budget is spent`))],
		["Longest stall", el("span", {}, figure(spent.windows ? spent.longest_stall_seconds : undefined, durationText, notMeasured(guest)), `, limit ${durationText(budget.stall_seconds)}`)],
		["Windows", el("span", { text: `${spent.windows.toLocaleString()}, ${spent.dearer_windows} cost more than predicted` })],
		["Period", el("span", { text: `${durationText(guest.period_seconds)}; the next window in ${durationText(guest.next_seconds)}` })],
	]));
}

class Detail {
	constructor(dialog) {
		this.dialog = dialog;
		this.range = "recent";
		dialog.addEventListener("close", () => this.closed());
		// The backdrop is outside of all that the dialog contains.
		dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
	}

	// get: returns a promise of the guest's history.
	open(guest, host, get) {
		this.guest = guest;
		this.host = host;
		this.get = get;
		this.history = null;
		this.draw();
		if (!this.dialog.open)
			this.dialog.showModal();
		this.dialog.scrollTop = 0;
		chartsDraw();
		this.load();
	}

	load() {
		const guest = this.guest;
		this.get(guest.uuid).then((history) => [history, null], (error) => [null, error.message]).then(([history, failure]) => {
			if (this.guest !== guest && (!this.guest || this.guest.uuid !== guest.uuid))
				return;
			this.history = history;
			this.failure = failure;
			this.drawPast();
		});
	}

	closed() {
		// The event comes later than the call; another guest may have been opened.
		if (this.dialog.open)
			return;
		const own = this.guest && location.hash.toLowerCase() === `#${this.guest.uuid}`;
		chartsForget(this.dialog);
		this.guest = null;
		this.dialog.replaceChildren();
		if (own)
			history.replaceState(null, "", location.pathname + location.search);
	}

	// The same guest's newer figures. Charts stay: they move slowly, and a reader may be pointing at one.
	update(guest, host) {
		if (!guest) {
			this.body.querySelector(".gone").hidden = false;
			return;
		}
		this.guest = guest;
		this.host = host;
		this.cards.replaceChildren(...this.figures());
	}

	figures() {
		return [factsCard(this.guest, this.host.held), adviceCard(this.guest), coldCard(this.guest), costCard(this.guest, this.host)];
	}

	draw() {
		const curve = this.guest.sample && this.guest.sample.curve;
		chartsForget(this.dialog);
		this.past = el("div");
		this.cards = el("div", { class: "detail-body" });
		this.cards.append(...this.figures());
		this.body = el("div", {},
			el("p", { class: "notice gone", hidden: true, text: "This guest runs no longer. These are its last figures." }),
			el("div", { class: "detail-body" },
				card("Working set over time", "wide", this.past),
				card("Growth curve: memory touched within a time", "wide", curve && curve.some((point) => point.seconds > 0) ? growthChart(curve)
					: none(guestHasNoCurve(this.guest)))),
			this.cards);
		this.dialog.replaceChildren(el("div", { class: "detail-head" }, el("h2", { id: "detail-title", text: visible(this.guest.domain) }),
			el("button", { type: "button", class: "plain", text: "Close", autofocus: true, onclick: () => this.dialog.close() })), this.body);
		this.past.replaceChildren(none("Loading\u2026"));
	}

	drawPast() {
		const past = this.history || {}, days = past.days && past.days.days.length;
		const pick = (range, name, has) => el("button", { type: "button", class: "plain", text: name, "aria-pressed": String(this.range === range), disabled: !has,
			onclick: () => {
				this.range = range;
				this.drawPast();
				this.past.querySelector("[aria-pressed=true]").focus();
			} });
		if (!past.recent && days)
			this.range = "days";
		else if (!days)
			this.range = "recent";
		chartsForget(this.past);
		const shown = past[this.range], notes = [];
		// Of the series with the largest pages: a line may have several.
		if (shown && Math.max(...shown.series.map((series) => series.granularity_bytes || 0)) > 4096)
			notes.push("Upper limits: windows count pages larger than 4 KiB as a whole.");
		if (past.degraded_windows && this.range === "recent")
			notes.push(`Without ${plural(past.degraded_windows, "degraded window")}, whose figures may be wrong.`);
		if (!past.recent && !days) {
			this.past.replaceChildren(none(this.failure ? `Unknown: ${this.failure}` : "No good window in the last 24 hours, and no days are stored."), ...notes.map(none));
			return;
		}
		this.past.replaceChildren(el("div", { class: "choice" }, pick("recent", "24 hours", past.recent), pick("days", "90 days", days)),
			this.range === "days" ? daysChart(past.days)
				: recentChart(past.recent, advised(this.guest, "recommended_bytes"), Date.parse(past.time) / 1000), ...notes.map(none));
		chartsDraw();
	}
}

function guestHasNoCurve(guest) {
	return guest.sample ? "The last window has no growth curve: it was too short, or its method sees only its end." : `Unknown: ${why(guest)}.`;
}
