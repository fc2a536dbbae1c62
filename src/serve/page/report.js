// SPDX-License-Identifier: LGPL-2.1-or-later
// A file made by "virt-wss report --html": one recording.

function simpleTable(label, heads, rows) {
	return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", {},
		el("thead", {}, el("tr", {}, ...heads.map(([name, number]) => el("th", { scope: "col", class: number ? "number" : null, text: name })))),
		el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) => el("td", { class: heads[i][1] ? "number" : null }, cell)))))));
}

// Steps, with a line at each mark: each window's size from its start to its end; nothing is known of gaps.
// how: the kind of the written figures.
function windowsChart(intervals, marks, how) {
	const xs = [], outstanding = [], reference = [], written = [];
	for (const one of intervals) {
		const known = one.kind === "window";
		for (const x of [one.start_seconds, one.end_seconds]) {
			xs.push(xs.length && x <= xs[xs.length - 1] ? xs[xs.length - 1] + 1e-6 : x);
			outstanding.push(known && one.outstanding_bytes !== undefined ? one.outstanding_bytes : null);
			reference.push(known && one.reference_bytes !== undefined ? one.reference_bytes : null);
			written.push(known && one.written_bytes !== undefined ? one.written_bytes : null);
		}
	}
	const known = outstanding.filter((v) => v !== null);
	const lines = { wss: outstanding, rss: reference };
	if (written.some((v) => v !== null))
		lines.balloon = written;
	return chart(xs, lines, null, {
		names: { wss: "outstanding set", rss: "reference set", balloon: how && how !== "exact" ? `written (${how})` : "written" }, marks: marks.map((one) => one.seconds), xLabel: "time since the start of the recording", xText: durationExact,
		xAxis: { values: (_, ticks) => ticks.map((v) => v === null ? null : durationExact(v)) },
		label: known.length ? `Outstanding set: ${bytesText(Math.min(...known))} to ${bytesText(Math.max(...known))}` : "No window",
	});
}

function reportTiles(view) {
	const size = (name) => figure(view[`${name}_bytes`], bytesText, "the recording does not show it");
	return el("dl", { class: "tiles" },
		tile("Peak", size("peak"), view.peak_at_seconds === undefined ? "" : `at ${durationExact(view.peak_at_seconds)}`),
		tile("Steady", size("steady"), view.steady_since_seconds === undefined ? "" : `since ${durationExact(view.steady_since_seconds)}`),
		tile("Reference set", size("reference"), "touched at least once"),
		tile("Persistent", size("persistent"), "from the start to the end"),
		tile("Transient", size("transient"), "came and went"),
		tile("Written", size("written"), view.written || ""));
}

function recordingFacts(recording, view) {
	const text = (value) => figure(value, (v) => visible(v), "the recording does not say");
	return facts([["Domain", text(recording.domain)], ["UUID", text(recording.uuid)], ["Host", text(recording.host)],
		["Recorded", figure(recording.time, (time) => timeText(Date.parse(time) / 1000), "the recording does not say")],
		["Length", figure(recording.duration_seconds, durationText)],
		["Shown", el("span", { text: `${durationExact(view.from_seconds)} to ${durationExact(view.to_seconds)}: ${plural(view.windows, "window")}` +
			(view.gap_seconds ? `, ${durationText(view.gap_seconds)} in gaps` : "") })],
		["Method", el("span", { text: `${recording.method || UNKNOWN}, ${bytesTick(recording.granularity_bytes || 4096)} granularity` })],
		["Memory", figure(recording.memory_bytes, bytesText, "the recording does not say")],
		["Made by", text(recording.tool && `virt-wss ${recording.tool}`)]]);
}

function showReport(report) {
	const recording = report.recording, view = report.viewport, name = visible(recording.domain || "a guest");
	const time = [["From"], ["To"]], span = (one) => [durationExact(one.start_seconds), durationExact(one.end_seconds)];
	document.title = `${name} \u2013 recording \u2013 virt-wss`;
	$("title").textContent = `Recording of ${name}`;
	$("updated").textContent = recording.time ? timeText(Date.parse(recording.time) / 1000) : "";
	$("content").replaceChildren(...[
		recording.whole === false ? el("p", { class: "notice", text: "Part of the recording could not be read: these are the figures of the rest." }) : null,
		recording.ended === false ? el("p", { class: "notice", text: "The recording has no end: its writer was killed, or still records." }) : null,
		card("Working set", "", reportTiles(view)),
		card("Over time", "", report.intervals.length ? windowsChart(report.intervals, report.marks, view.written) : none("The recording has no window.")),
		card("Phases", "", simpleTable("Phases", [...time, ["Windows", true], ["Median", true]],
			report.phases.map((one) => [...span(one), String(one.windows), figure(one.median_bytes, bytesText)]))),
		report.marks.length ? card("Marks", "", simpleTable("Marks", [["Number"], ["At"], ["Text"]],
			report.marks.map((one, i) => [String(i + 1), durationExact(one.seconds), visible(one.text)]))) : null,
		card("Regions of guest memory", "", simpleTable("Regions",
			[["Region"], ["Node", true], ["Size", true], ["Peak", true], ["Reference set", true], ["Persistent", true], ["Transient", true]],
			report.regions.map((one) => [visible(one.region), figure(one.node, String), ...["length", "peak", "reference", "persistent", "transient"]
				.map((part) => figure(one[`${part}_bytes`], bytesText))]))),
		card("Recording", "", recordingFacts(recording, view)),
	].filter(Boolean));
	chartsDraw();
	document.body.dataset.ready = "yes";
}
