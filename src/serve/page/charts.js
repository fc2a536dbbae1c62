// SPDX-License-Identifier: LGPL-2.1-or-later
// Charts, drawn by uPlot. All of them have sizes on the left.

const CHART_HEIGHT = 270;
const CHART_FONT = "12px system-ui, sans-serif";
const RECOMMENDED_LENGTH = 27; // three dashes
const MARK_NUMBER_DISTANCE = 26; // in pixels, at least
const SIZE_STEPS = Array.from({ length: 40 }, (_, i) => 4096 * 2 ** i);
const charts = [];

// Indices at which windows of another kind begin: a line must not join them, because they do not compare.
const breaksOf = (kinds) => kinds.flatMap((kind, i) => i > 0 && kind !== null && kinds[i - 1] !== null && kind !== kinds[i - 1] ? [i] : []);

const LINES = {
	wss: { name: "working set", width: 2 },
	balloon: { name: "balloon", dash: [8, 5], width: 1.5 },
	rss: { name: "resident", width: 1.5 },
	maximum: { name: "maximum", dash: [2, 4], width: 1.5 },
	recommended: { name: "recommended now", dash: [6, 4], width: 2 },
	p50: { name: "median", colour: "rss", width: 1.5 },
	peak: { name: "largest", colour: "balloon", dash: [8, 5], width: 1.5 },
};

function axes(options) {
	const common = () => ({
		stroke: () => colour("quiet"), grid: { stroke: () => colour("line"), width: 1 },
		ticks: { stroke: () => colour("line"), width: 1 }, font: CHART_FONT, labelFont: CHART_FONT, labelSize: 18,
	});
	return [
		{ ...common(), label: options.xLabel, ...options.xAxis },
		{ ...common(), label: "memory", size: 72, incrs: SIZE_STEPS, space: 34,
			values: (_, ticks) => ticks.map((v) => v === null ? null : bytesTick(v)) },
	];
}

/*
 * Draws lines { kind: values } over xs into a new element; range: { low, high } of the working set. options:
 * xLabel, xText(x, index) for the line below the chart, right (room there, in pixels), breaks (see breaksOf()), time (the
 * x axis is one), xAxis, xRange, log, names of the kinds, marks (on the x axis), recommended (in bytes: what that
 * is now, which no line over the past may show), label (what it is, for readers without the picture).
 */
function chart(xs, lines, range, options) {
	const kinds = Object.keys(lines), nameOf = (kind) => options.names ? options.names[kind] : LINES[kind].name;
	const readout = el("p", { class: "readout", "aria-hidden": "true" });
	const place = el("div", { class: "chart", role: "img", "aria-label": options.label });
	const legend = el("p", { class: "legend" }, ...kinds.map((kind) => el("span", { class: `key ${LINES[kind].colour || kind}`, text: nameOf(kind) })),
		range ? el("span", { class: "key range", text: "low to high bound" }) : null,
		recommendedKey(options.recommended));
	const node = el("div", {}, legend, place, readout), advice = options.recommended;
	const data = [xs, ...kinds.map((kind) => lines[kind]), ...(range ? [range.low, range.high] : [])];
	const series = kinds.map((kind) => ({
		label: nameOf(kind), stroke: () => colour(LINES[kind].colour || kind), width: LINES[kind].width,
		dash: LINES[kind].dash, points: { size: 4, show: (u, i) => isolated(u.data[i]) },
		gaps: (u, i, from, to, gaps) => [...gaps, ...(options.breaks || []).map((at) =>
			[at - 1, at].map((j) => Math.round(u.valToPos(xs[j], "x", true))))].sort((a, b) => a[0] - b[0]),
	}));
	const hidden = { stroke: "transparent", width: 0, points: { show: false } };
	const say = (u) => {
		const i = u.cursor.idx;
		readout.textContent = i === null || i === undefined ? "" : `${options.xText(xs[i], i)}: ` + kinds
			.map((kind) => `${nameOf(kind)} ${lines[kind][i] === null || lines[kind][i] === undefined ? UNKNOWN : bytesText(lines[kind][i])}`).join(", ");
	};
	const draw = () => new uPlot({
		width: Math.max(240, place.clientWidth), height: CHART_HEIGHT, legend: { show: false },
		padding: [options.marks && options.marks.length ? 18 : null, options.right || null, null, null],
		cursor: { y: false, points: { size: 7 } }, hooks: {
			setCursor: [say], draw: [(u) => marksDraw(u, options.marks || []), (u) => recommendedDraw(u, advice)],
		},
		scales: {
			x: { time: Boolean(options.time), distr: options.log ? 3 : 1, range: options.xRange },
			y: { range: (u, min, max) => [0, uPlot.rangeNum(0, Math.max(max || 1, advice || 0),
				{ min: {}, max: { pad: 0.08, soft: 0, mode: 1 } })[1] || 1] },
		},
		axes: axes(options),
		series: [{}, ...series, ...(range ? [hidden, hidden] : [])],
		bands: range ? [{ series: [kinds.length + 2, kinds.length + 1], fill: () => colour("wss-soft") }] : [],
	}, data, place);
	charts.push({ place, draw, plot: null });
	return node;
}

// Vertical lines at these values of x, with their numbers where there is room.
function marksDraw(u, marks) {
	const { ctx, bbox } = u;
	let numbered = -Infinity;
	ctx.save();
	ctx.fillStyle = colour("quiet");
	ctx.font = CHART_FONT.replace(/^[0-9]+/, (size) => size * devicePixelRatio);
	ctx.textAlign = "center";
	ctx.strokeStyle = colour("quiet");
	ctx.lineWidth = 1;
	ctx.setLineDash([3, 3]);
	for (const [i, mark] of marks.entries()) {
		const x = Math.round(u.valToPos(mark, "x", true)) + 0.5;
		if (x < bbox.left || x > bbox.left + bbox.width)
			continue;
		ctx.beginPath();
		ctx.moveTo(x, bbox.top);
		ctx.lineTo(x, bbox.top + bbox.height);
		ctx.stroke();
		if (x - numbered < MARK_NUMBER_DISTANCE * devicePixelRatio)
			continue;
		ctx.fillText(String(i + 1), x, bbox.top - 4 * devicePixelRatio);
		numbered = x;
	}
	ctx.restore();
}

function recommendedKey(bytes) {
	const text = () => `${LINES.recommended.name}: ${bytesText(bytes)}`;
	return bytes === undefined ? null : el("span", { class: "key recommended", text: text() });
}

// A short line to the right of what is past, at what is recommended now.
function recommendedDraw(u, bytes) {
	if (bytes === undefined)
		return;
	const { ctx, bbox } = u, y = Math.round(u.valToPos(bytes, "y", true)), right = bbox.left + bbox.width;
	ctx.save();
	ctx.strokeStyle = colour("recommended");
	ctx.lineWidth = LINES.recommended.width * devicePixelRatio;
	ctx.setLineDash(LINES.recommended.dash.map((length) => length * devicePixelRatio));
	ctx.beginPath();
	ctx.moveTo(right + devicePixelRatio, y);
	ctx.lineTo(right + RECOMMENDED_LENGTH * devicePixelRatio, y);
	ctx.stroke();
	ctx.restore();
}

// Whether a series has points without a neighbour, which a line alone would not show.
function isolated(values) {
	return values.some((v, i) => v !== null && v !== undefined && (values[i - 1] === null || values[i - 1] === undefined) &&
		(values[i + 1] === null || values[i + 1] === undefined));
}

// Draws what has been made, once it is in the page and has a width; again after that, for other colours.
function chartsDraw(again) {
	for (const one of charts) {
		if (one.plot && !again)
			continue;
		if (one.plot)
			one.plot.destroy();
		one.plot = one.place.isConnected ? one.draw() : null;
	}
}

function chartsForget(within) {
	for (let i = charts.length; i-- > 0;)
		if (within.contains(charts[i].place)) {
			if (charts[i].plot)
				charts[i].plot.destroy();
			charts.splice(i, 1);
		}
}

let chartsWidth = 0;
addEventListener("resize", () => {
	if (chartsWidth === innerWidth)
		return;
	chartsWidth = innerWidth;
	for (const one of charts)
		if (one.plot)
			one.plot.setSize({ width: Math.max(240, one.place.clientWidth), height: CHART_HEIGHT });
});

// --- the charts of a guest ---

// Local time on an axis: the date where a day begins, and at the first tick.
function timeTicks(_, ticks, __, ___, step) {
	const date = (seconds) => new Date(seconds * 1000);
	const days = ticks.map((v) => date(v).toLocaleDateString([], { day: "numeric", month: "short" }));
	return ticks.map((v, i) => {
		const day = i === 0 || days[i] !== days[i - 1];
		if (step >= 86400)
			return days[i];
		return date(v).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) + (day ? `\n${days[i]}` : "");
	});
}

// The width of a time on an axis, which depends on the language: "07:10" or "07:10 AM".
function timeWidth() {
	const context = document.createElement("canvas").getContext("2d");
	context.font = CHART_FONT;
	const noonAndMidnight = [0, 1, 2].map((i) => 1669593600 + i * 43200);
	return Math.ceil(Math.max(...timeTicks(null, noonAndMidnight, 0, 0, 3600).flatMap((text) => text.split("\n"))
		.map((text) => context.measureText(text).width)));
}

// Returns the range of a time axis: from first to last, or the part that the reader has chosen.
function timeAxis(xs, first, last) {
	const width = timeWidth(), whole = (min, max) => xs.length === 1 || min === xs[0] && max === xs[xs.length - 1];
	return {
		time: true, xAxis: { values: timeTicks, space: width + 10 }, right: Math.max(32, Math.ceil(width / 2) + 2),
		xRange: (_, min, max) => whole(min, max) ? [first, last] : [min, max],
	};
}

/*
 * recommended: in bytes, or undefined; time: of the figures, in seconds. A value stands in the middle of its slot, that
 * of the newest in the middle of the part that has passed. The axis ends at that time, and is at least an hour long.
 */
function recentChart(recent, recommended, time) {
	const starts = recent.wss_bytes.map((_, i) => recent.start_seconds + i * recent.step_seconds);
	const newest = starts[starts.length - 1], now = time >= newest ? time : newest + recent.step_seconds;
	const ends = starts.map((start) => Math.min(start + recent.step_seconds, now));
	const xs = starts.map((start, i) => (start + ends[i]) / 2);
	const known = (name) => recent[name].some((v) => v !== null);
	const lines = { wss: recent.wss_bytes };
	for (const kind of ["balloon", "rss", "maximum"])
		if (known(`${kind}_bytes`))
			lines[kind] = recent[`${kind}_bytes`];
	const bounded = recent.low_bytes.some((low, i) => low !== null && low !== recent.high_bytes[i]);
	const measured = recent.wss_bytes.filter((v) => v !== null);
	return chart(xs, lines, bounded ? { low: recent.low_bytes, high: recent.high_bytes } : null, {
		...timeAxis(xs, Math.max(now - 86400, Math.min(starts[0], now - 3600)), now),
		xLabel: "local time", xText: (_, i) => timesText(starts[i], ends[i]), breaks: breaksOf(recent.of_series),
		recommended,
		label: `Working set in the last 24 hours: ${bytesText(Math.min(...measured))} to ${bytesText(Math.max(...measured))}`,
	});
}

function daysChart(days) {
	const list = days.days, xs = list.map((day) => day.start_seconds);
	const pick = (name) => list.map((day) => day[name]);
	return chart(xs, { wss: pick("p95_bytes"), p50: pick("p50_bytes"), peak: pick("max_bytes") }, null, {
		...timeAxis(xs, Math.min(xs[0], xs[xs.length - 1] - 2 * 86400), xs[xs.length - 1]),
		xLabel: "day", xText: dayText, breaks: breaksOf(list.map((day) => day.of_series)),
		label: `Working set by day, ${plural(list.length, "day")}: 95th percentile up to ${bytesText(Math.max(...list.map((day) => day.p95_bytes)))}`,
	});
}

// A logarithmic axis that ends with the last value, not with the next power of ten. It begins with a tick.
function logRange(_, min, max) {
	const power = 10 ** Math.floor(Math.log10(min) + 1e-9), low = Math.floor(min / power + 1e-9) * power;
	return [Number(low.toPrecision(1)), min < max ? max : 10 * power];
}

// Which ticks of a logarithmic axis have a label: powers of ten first, then others that have room between them. uPlot's
// own choice on a horizontal axis is powers of ten only, of which a short axis may have none.
function logLabels(u, ticks, _, space) {
	const kept = new Map();
	for (const digit of "152374689")
		for (const tick of ticks) {
			const at = u.valToPos(tick, "x");
			const room = [...kept.values()].every((other) => Math.abs(at - other) >= space);
			if (room && tick.toExponential(2)[0] === digit)
				kept.set(tick, at);
		}
	return ticks.map((tick) => kept.has(tick) ? tick : null);
}

function growthChart(curve) {
	const points = curve.filter((point) => point.seconds > 0), xs = points.map((point) => point.seconds);
	const bounded = points.some((point) => point.high_bytes !== undefined && point.low_bytes !== point.high_bytes);
	const last = points[points.length - 1];
	return chart(xs, { wss: points.map((point) => point.bytes) }, bounded ? {
		low: points.map((point) => point.low_bytes === undefined ? point.bytes : point.low_bytes),
		high: points.map((point) => point.high_bytes === undefined ? point.bytes : point.high_bytes),
	} : null, {
		log: true, xRange: logRange, xLabel: "time since measuring began (logarithmic)", xText: durationText,
		xAxis: { values: (_, ticks) => ticks.map((v) => v === null ? null : durationExact(v)), space: 46,
			filter: logLabels },
		label: `Growth curve: ${bytesText(last.bytes)} touched within ${durationText(last.seconds)}`,
	});
}
