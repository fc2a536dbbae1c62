// SPDX-License-Identifier: LGPL-2.1-or-later
// Figures as text, and elements. Text enters the page as textContent only.

const UNKNOWN = "\u2013";
const NS = "http://www.w3.org/2000/svg";

// Three significant digits: "62.3 MiB".
function bytesText(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let i = 0, value = bytes;
	while (Math.abs(value) >= 999.5 && i < units.length - 1) {
		value /= 1024;
		i++;
	}
	const digits = i === 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
	return `${value.toFixed(digits)} ${units[i]}`;
}

// Of an axis, where values are round.
function bytesTick(bytes) {
	const text = bytesText(bytes);
	return bytes === 0 ? "0" : text.replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 ");
}

function durationText(seconds) {
	const part = (value, unit) => `${value >= 9.95 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")} ${unit}`;
	if (seconds === 0)
		return "0 s";
	if (seconds < 1e-3)
		return part(seconds * 1e6, "\u00b5s");
	if (seconds < 1)
		return part(seconds * 1e3, "ms");
	if (seconds < 120)
		return part(seconds, "s");
	if (seconds < 7200)
		return part(seconds / 60, "min");
	if (seconds < 172800)
		return part(seconds / 3600, "h");
	return part(seconds / 86400, "d");
}

// For an axis, and wherever times are told apart: not rounded to whole units.
function durationExact(seconds) {
	const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"]];
	const [size, unit] = seconds === 0 ? [1, "s"] : units.find(([one]) => seconds >= one * (one > 1 ? 2 : 1)) || units[5];
	return `${Number((seconds / size).toFixed(2))} ${unit}`;
}

function shareText(share) {
	const percent = share * 100;
	if (percent === 0)
		return "0 %";
	return `${percent < 0.01 ? "<0.01" : percent < 1 ? percent.toFixed(2) : percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

const timeText = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const dayText = (seconds) => new Date(seconds * 1000).toLocaleDateString([], { dateStyle: "medium" });
const timesText = (from, to) => new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" })
	.formatRange(from * 1000, to * 1000);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// Characters that a browser would act on or not show, such as those that turn the direction of text.
const visible = (text) => String(text).replace(
	/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
	(c) => `\u2039U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u203a`);

// Makes an element: attributes, "text" for its text, then children.
function el(tag, attributes, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === undefined || value === null || value === false)
			continue;
		if (name === "text")
			node.textContent = value;
		else if (name.startsWith("on"))
			node.addEventListener(name.slice(2), value);
		else
			node.setAttribute(name, value === true ? "" : value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

// Shows a figure, or a dash with the reason why it is not known.
function figure(value, format, reason) {
	if (value === undefined || value === null)
		return el("span", { class: "unknown", title: reason || "not known", text: UNKNOWN });
	return el("span", { text: format(value), title: format === bytesText ? `${value.toLocaleString()} bytes` : undefined });
}

// Shows a figure with its bound, as "<= 144 MiB": "at most", "at least" or "exact".
const SIGNS = { "at most": "\u2264 ", "at least": "\u2265 " };
const SIGN_TITLES = { "at most": "an upper limit: windows count pages larger than 4 KiB as a whole", "at least": "a lower limit" };
function bounded(value, bound, reason) {
	const node = figure(value, bytesText, reason);
	if (value === undefined || value === null || !SIGNS[bound])
		return node;
	node.textContent = SIGNS[bound] + node.textContent;
	node.title += `, ${SIGN_TITLES[bound]}`;
	return node;
}

// What may be shown as a sample's working set: a degraded one shows only what was touched at least.
const wssOf = (sample) => sample && (sample.quality === "degraded" ? sample.wss_low_bytes : sample.wss_bytes);

// Its bound.
function boundOf(sample) {
	const { quality, wss_bytes: wss, wss_low_bytes: low, wss_high_bytes: high } = sample || {};
	return quality === "degraded" ? "at least" : low === high ? "exact" : wss === high ? "at most" : "at least";
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A horizontal bar of parts [share 0 to 1, class], the longest first.
function track(parts, label) {
	const node = el("div", { class: "track", role: label ? "img" : undefined, "aria-label": label });
	for (const [share, kind] of parts) {
		const fill = el("div", { class: kind });
		if (kind === "mark")
			fill.style.left = `calc(${100 * Math.min(1, share)}% - 2px)`;
		else
			fill.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
		node.append(fill);
	}
	return node;
}

// bound: of the values; span: the time that they are from.
function sparkline(values, bound, span) {
	const svg = document.createElementNS(NS, "svg");
	const known = values.filter((v) => v !== null), most = Math.max(...known, 1);
	svg.setAttribute("class", "spark");
	svg.setAttribute("viewBox", `0 0 ${values.length - 1} 20`);
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("role", "img");
	svg.setAttribute("aria-label", known.length ? `working set in the last ${span}: ${bytesText(Math.min(...known))} to ${bytesText(most)}${SIGNS[bound] ? `, ${SIGN_TITLES[bound]}` : ""}`
		: `no working set in the last ${span}`);
	let points = [];
	const end = () => {
		if (!points.length)
			return;
		const line = document.createElementNS(NS, "polyline");
		// A single point is a short line.
		if (points.length === 1)
			points.unshift([Math.max(0, points[0][0] - 0.6), points[0][1]]);
		line.setAttribute("points", points.map((p) => p.join(",")).join(" "));
		svg.append(line);
		points = [];
	};
	values.forEach((value, i) => value === null ? end() : points.push([i, 19 - 18 * value / most]));
	end();
	return svg;
}
