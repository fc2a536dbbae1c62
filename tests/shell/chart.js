// SPDX-License-Identifier: LGPL-2.1-or-later
// Examines the page's only <svg> as laid out by the browser, and writes its faults, or "fine",
// into <pre id="result">.
"use strict";
const wrong = [];
const svg = document.querySelector("svg");
const all = (selector) => [...svg.querySelectorAll(selector)];
const number = (node, name) => parseFloat(node.getAttribute(name));
const expect = (good, what) => { if (!good) wrong.push(what); };

// Position and value of each tick: "100 ms" in ns, "64 MiB" in bytes.
function ticks(anchor, along, units) {
	return all(`text.tick[text-anchor=${anchor}]`).map((node) => {
		const m = node.textContent.match(/^([0-9.]+) ([A-Za-z]+)$/);
		expect(m && units[m[2]], `a tick without a unit: ${node.textContent}`);
		return { at: number(node, along), value: m ? m[1] * units[m[2]] : NaN };
	}).sort((a, b) => a.value - b.value);
}

// On a logarithmic axis equal ratios are equal distances.
function expectLogarithmic(list, name) {
	expect(list.length >= 2, `${name}: ${list.length} ticks`);
	const scale = list.slice(1).map((t, i) => (t.at - list[i].at) / Math.log(t.value / list[i].value));
	for (const s of scale)
		expect(Math.abs(s - scale[0]) < 1.5, `${name} is not logarithmic: ${scale}`);
}

function expectInside(box, node) {
	const b = node.getBBox();
	const m = node.getCTM(), root = svg.getCTM();
	const turned = node.hasAttribute("transform");
	const x = turned ? number({ getAttribute: () => m.e - root.e }, "") / root.a : b.x;
	const right = turned ? x + b.height : b.x + b.width;
	expect(x >= 0 && right <= box.width && (turned || (b.y >= 0 && b.y + b.height <= box.height)),
		`text runs out of the picture: ${node.textContent}`);
}

function expectApart(nodes, what) {
	const boxes = nodes.map((node) => node.getBBox());
	boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
		expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y + 3 ||
			b.y + b.height <= a.y + 3, `${what} overlap`);
	}));
}

// Rises from left to right, and stays between the axes.
function expectGrowth(path, frame) {
	const points = path.getAttribute("d").match(/[ML][0-9.]+ [0-9.]+/g)
		.map((p) => p.slice(1).split(" ").map(Number));
	expect(points.length >= 8, `a curve of ${points.length} points`);
	points.forEach(([x, y], i) => {
		expect(x >= frame.left - 0.1 && x <= frame.right + 0.1 && y >= frame.top - 0.1 &&
			y <= frame.bottom + 0.1, `a point out of the axes: ${x} ${y}`);
		if (i > 0)
			expect(x > points[i - 1][0] && y <= points[i - 1][1] + 0.05, `it falls at ${x}`);
	});
	expect(points[0][1] > points[points.length - 1][1] + 20, "a curve that does not grow");
}

function expectLegible() {
	const back = getComputedStyle(svg.querySelector(".back")).fill;
	const level = (colour) => colour.match(/[0-9.]+/g).slice(0, 3)
		.map((c) => (c / 255) ** 2.2).reduce((sum, c, i) => sum + c * [0.21, 0.72, 0.07][i], 0);
	const contrast = (colour) => {
		const [low, high] = [level(back), level(colour)].sort((a, b) => a - b);
		return (high + 0.05) / (low + 0.05);
	};
	// WCAG 2: 4.5 for text, 3 for everything else that carries meaning.
	for (const node of all("text"))
		expect(contrast(getComputedStyle(node).fill) >= 4.5, `pale text: ${node.textContent}`);
	for (const node of all("path.curve, line.axis, line.reference, line.mark"))
		expect(contrast(getComputedStyle(node).stroke) >= 3,
			`pale line ${node.getAttribute("class")} on ${back}`);
}

function look() {
	const box = svg.viewBox.baseVal;
	const axes = all("line.axis").map((l) => ["x1", "y1", "x2", "y2"].map((k) => number(l, k)));
	expect(axes.length === 2, `${axes.length} axes`);
	const xs = axes.flatMap((a) => [a[0], a[2]]), ys = axes.flatMap((a) => [a[1], a[3]]);
	const frame = { left: Math.min(...xs), right: Math.max(...xs),
		top: Math.min(...ys), bottom: Math.max(...ys) };
	expectLogarithmic(ticks("middle", "x", { us: 1e3, ms: 1e6, s: 1e9 }), "time");
	expectLogarithmic(ticks("end", "y", { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3,
		TiB: 1024 ** 4 }), "size");
	expect(all("text.label").length === 2, "not both axes have a label");
	all("text").forEach((node) => expectInside(box, node));
	expectApart(all("text.tick[text-anchor=middle]"), "times");
	expectApart(all("text.tick[text-anchor=end]"), "sizes");
	expectApart(all("text.legend, text.title, text.small"), "texts");
	expect(all("path.curve").length > 0, "no curve");
	all("path.curve").forEach((path) => expectGrowth(path, frame));
	for (const line of all("line.reference:not(.key)"))
		expect(number(line, "y1") >= frame.top && number(line, "y1") <= frame.bottom,
			"a reference line out of the axes");
	expectLegible();
	wrong.push(`curves ${all("path.curve").length}`, `references ${all("line.reference:not(.key)").length}`,
		`back ${getComputedStyle(svg.querySelector(".back")).fill}`);
}

const result = document.createElement("pre");
result.id = "result";
try {
	look();
} catch (error) {
	wrong.unshift(`exception ${error.stack}`);
}
result.textContent = "RESULT " + wrong.join("; ") + " END";
document.body.append(result);
