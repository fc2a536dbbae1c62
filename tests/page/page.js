// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * node page.js CASE SERVER PICTURES [MORE...]: opens the page of the service in Chromium, with invented figures,
 * and checks one thing. Exit status 1 with the faults if it is wrong. PICTURES is a directory for screenshots.
 */
"use strict";
const assert = require("assert");
const { spawn, execFileSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const { Browser, Tab } = require("./browser.js");
const fleet = require("./fleet.js");

const [name, serverPath, pictures, ...more] = process.argv.slice(2);
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "page-data-"));

class Server {
	constructor() {
		this.process = spawn(serverPath, [directory], { stdio: ["pipe", "pipe", "inherit"] });
		this.lines = [];
		this.heard = () => {};
		let rest = "";
		this.process.stdout.on("data", (bytes) => {
			const parts = (rest + bytes).split("\n");
			rest = parts.pop();
			this.lines.push(...parts);
			this.heard();
		});
	}

	async line() {
		while (!this.lines.length)
			await new Promise((resolve) => { this.heard = resolve; });
		return this.lines.shift();
	}

	async start() {
		this.url = await this.line();
		assert.strictEqual(await this.line(), "ready");
	}

	// Of a guest's past.
	answer(uuid) {
		return JSON.parse(fs.readFileSync(path.join(directory, `${uuid}.json`)));
	}

	async renew() {
		this.process.stdin.write("\n");
		assert.strictEqual(await this.line(), "ready");
	}
}

let browser, server;

// Opens the page with these figures; all that it did is looked at when the case ends.
const tabs = [];
async function open(options, look = {}, fragment = "") {
	const guests = fleet.write(directory, options);
	if (server) {
		await server.renew();
	} else {
		server = new Server();
		await server.start();
	}
	const tab = await Tab.open(browser, `${server.url}${fragment}`, look);
	tab.guests = guests;
	tabs.push(tab);
	return tab;
}

const NAMES = "[...document.querySelectorAll('#guests tbody tr:not([hidden]) td.name')].map((cell) => cell.textContent)";
const HEAD = (title) => `[...document.querySelectorAll('#guests th button')].find((one) => one.textContent.replace("\\u00ad", "") === ${JSON.stringify(title)})`;
const TEXT = "document.body.innerText";
const DETAIL = "document.getElementById('detail')";
const opened = `${DETAIL}.open && ${DETAIL}.querySelectorAll('canvas').length === 2`;
// The chart of the working set over time: its axis, and where its ticks are.
const CHART = "charts.find((one) => /^Working set/.test(one.place.getAttribute('aria-label')))";
const RECENT = `(({ scales: { x: { min, max } }, data }) => ({ min, max, xs: [...data[0]] }))(${CHART}.plot)`;
const TICKS = `((plot) => {
	const at = plot.axes[0]._splits.map((v) => plot.valToPos(v, "x"));
	const texts = timeTicks(null, plot.axes[0]._splits, 0, 0, 3600).flatMap((text) => text.split("\\n"));
	plot.ctx.save();
	plot.ctx.font = CHART_FONT;
	const widest = Math.max(...texts.map((text) => plot.ctx.measureText(text).width));
	plot.ctx.restore();
	return { ticks: at.length, apart: Math.min(...at.slice(1).map((x, i) => x - at[i])), widest,
		right: plot.width - plot.bbox.left / devicePixelRatio - at[at.length - 1] };
})(${CHART}.plot)`;
// Pixels in the colour of what is recommended: over the past, and to the right of it.
const RECOMMENDED = `(({ ctx, bbox, series }) => {
	const wanted = /#(..)(..)(..)/.exec(colour("recommended")).slice(1).map((part) => parseInt(part, 16));
	const { width, height, data } = ctx.getImageData(0, 0, ctx.canvas.width, ctx.canvas.height);
	const found = { inside: 0, beside: 0 };
	for (let i = 0; i < width * height; i++)
		if (wanted.every((part, k) => Math.abs(data[4 * i + k] - part) < 3) && data[4 * i + 3] > 250)
			found[i % width < bbox.left + bbox.width ? "inside" : "beside"]++;
	return { lines: series.slice(1).filter((one) => one.label && one.width).map((one) => one.label), ...found };
})(${CHART}.plot)`;
// The numbers of three marks, the second of which is close to the first.
const NUMBERS = `(({ bbox }) => {
	const said = [], nothing = () => undefined;
	const ctx = { save: nothing, restore: nothing, setLineDash: nothing, beginPath: nothing, moveTo: nothing, lineTo: nothing, stroke: nothing,
		fillText: (text) => said.push(text) };
	marksDraw({ ctx, bbox, valToPos: (pixels) => bbox.left + pixels * devicePixelRatio }, [10, 20, 100]);
	return said.join(" ");
})(charts[0].plot)`;
const KINDS = { 4: "refused", 5: "left out", 6: "new", 7: "stale", 8: "early" };

const cases = {
	async content() {
		const tab = await open({ n: 12, kinds: { ...KINDS, 9: "unsized" } });
		const text = await tab.run(TEXT);
		for (const part of ["virt-wss on node7.example", "10 of 12", "128 GiB", "web1", "db1", "refused", "left out", "stale"])
			if (part !== "10 of 12")
				assert(text.includes(part), `no "${part}" in ${text}`);
		assert(/\b9 of 12\b/.test(text), text.slice(0, 300));
		assert(text.includes("1 stale, 1 refused, 1 left out, 1 not measured yet"), text.slice(0, 300));
		// A figure that is not known is a dash that says why, and no 0.
		const row = await tab.run(`[...document.querySelectorAll('#guests tbody tr')].find((row) => row.innerText.includes("mail1")).innerText`);
		assert(row.includes("\u2013") && !/\b0 B\b/.test(row), row);
		const reasons = await tab.run("[...document.querySelectorAll('.unknown')].map((one) => one.title)");
		assert(reasons.length > 5 && reasons.every((reason) => reason.length > 5), reasons.join("\n"));
		assert(reasons.some((reason) => reason.includes("over the limit of 20.0 ms")));
		assert(reasons.some((reason) => reason.includes("a recommendation needs 10 windows")));
		assert(reasons.some((reason) => reason.includes("no recommendation: the history has no window of this guest")));
		assert(!reasons.some((reason) => reason.startsWith("recommendation:")), reasons.join("\n"));
		await tab.until("document.querySelectorAll('svg.spark polyline').length >= 9");
		// An upper limit shows everywhere that it is one, and an exact figure that it is none.
		const rows = await tab.run("[...document.querySelectorAll('#guests tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText).join(' | '))");
		const limits = rows.filter((row) => /\u2264 [0-9.]+ [MG]iB.* \u2264 [0-9.]+ [MG]iB.* \u2265 /s.test(row));
		assert(limits.length === 2 && rows.filter((row) => row.split(" | ")[2].startsWith("\u2264")).length === 2, rows.join("\n"));
		assert(await tab.run("document.querySelectorAll('#guests span[title*=\"not known to survive\"]').length") === 2);
		assert(await tab.run("document.querySelectorAll('svg.spark[aria-label*=\"upper limit\"]').length") === 3);
	},

	async detail() {
		const tab = await open({ n: 12, kinds: KINDS });
		await tab.run("document.querySelector('#guests td.name button').click()");
		await tab.until(opened);
		const text = await tab.run(`${DETAIL}.innerText`);
		for (const part of ["Working set over time", "Growth curve", "Recommendation", "Coldness", "Cost of measuring", "would free", "confidence", "10 minutes",
			"limit 20 ms", "of a budget of 0.50 %", "Longest stall", "Computed", "2.1 min ago"])
			assert(text.toLowerCase().includes(part.toLowerCase()), `no "${part}" in ${text}`);
		const label = await tab.run(`${DETAIL}.querySelector('.chart').getAttribute('aria-label')`);
		assert(/^Working set in the last 24 hours: [0-9.]+ [MG]iB to [0-9.]+ [MG]iB$/.test(label), label);
		// What is recommended now is no line over the past: it stands to the right of it.
		const legend = await tab.run(`${DETAIL}.querySelector('.legend').textContent`);
		assert(/recommended now: [0-9.]+ [MG]iB$/.test(legend), legend);
		const { lines, inside, beside } = await tab.run(RECOMMENDED);
		assert.deepStrictEqual(lines, ["working set", "balloon", "resident", "maximum"]);
		assert(inside === 0 && beside > 10, `${inside} pixels over the past, ${beside} beside it`);
		// Ninety days, and back.
		await tab.run(`[...${DETAIL}.querySelectorAll('button')].find((one) => one.textContent === "90 days").click()`);
		assert(/by day, 41 days/.test(await tab.run(`${DETAIL}.querySelector('.chart').getAttribute('aria-label')`)));
		await tab.run(`${DETAIL}.close()`);
		await tab.until("!document.querySelector('canvas')");
		assert.strictEqual(await tab.run("location.hash"), "");
		// A guest of which nothing is known.
		await tab.run(`[...document.querySelectorAll('td.name button')].find((one) => one.textContent === "mail1").click()`);
		await tab.until(`${DETAIL}.innerText.includes("no such guest, or nothing is known of its past yet")`);
		const refused = await tab.run(`${DETAIL}.innerText`);
		assert(refused.includes("a window would stall it for about 41.0 ms"), refused);
		assert(!/\b0 B\b/.test(refused), refused);
		assert(!refused.includes("which pages this guest touches"), refused);
		await tab.run(`${DETAIL}.close()`);
		// A guest without a sample has not been measured; one whose windows do not show single pages has.
		const cards = `[...${DETAIL}.querySelectorAll('.card')]`;
		for (const [name, says] of [["proxy1", /^no window yet: the first one begins in [0-9.]+ (s|min)$/],
			["build1", /^no window has shown which pages this guest touches: the method, or the host's/]]) {
			const names = "[...document.querySelectorAll('td.name button')]";
			const button = `${names}.find((one) => one.textContent === "${name}")`;
			await tab.run(`${button}.click()`);
			await tab.until(`${DETAIL}.open && ${DETAIL}.querySelector('h2').textContent === "${name}"`);
			const reason = await tab.run(`${button}.closest("tr").children[8].firstChild.title`);
			assert(says.test(reason), reason);
			const text = await tab.run(`${cards}.find((one) => one.innerText.startsWith("Coldness")).innerText`);
			assert(text.includes(`Unknown: ${reason}.`), text);
			await tab.run(`${DETAIL}.close()`);
		}
		// It was asked for, and is not there.
		tab.faults = tab.faults.filter((fault) => !fault.includes("404"));
	},

	// The tile says why guests are not measured, or that all is well.
	async tile() {
		const note = "document.querySelector('.tile').innerText";
		const tab = await open({ n: 3, kinds: { 0: "failing", 1: "failing", 2: "new" } });
		assert.strictEqual(await tab.run(note), "Guests measured\n0 of 3\n1 not measured yet, 2 failing");
		const well = await open({ n: 3 });
		assert.strictEqual(await well.run(note), "Guests measured\n3 of 3\nnone stale or refused");
		// The reason is there to read, without a pointer.
		const cells = await tab.run("[...document.querySelectorAll('#guests tbody tr')].map((row) => row.cells[1].innerText)");
		assert.strictEqual(cells.filter((text) => text === "not measured\ncannot read its memory map: permission denied").length, 2, cells.join("\n"));
		assert.strictEqual(cells.filter((text) => /^new\nno window yet: the first one begins in /.test(text)).length, 1, cells.join("\n"));
		const empty = await open({ n: 0 });
		assert.strictEqual(await empty.run(note), "Guests measured\n0 of 0");
	},

	// The first windows of a guest are drawn within an hour, and not within years. It ends now, at the newest of them.
	async young() {
		const looks = { "": {}, "-phone": { width: 390, height: 844, locale: "en-US" }, "-dark": { dark: true } };
		for (const [kind, look] of Object.entries(looks))
			for (const slots of [1, 3]) {
				const tab = await open({ n: 1, slots }, look);
				await tab.run("document.querySelector('#guests td.name button').click()");
				await tab.until(opened);
				const { min, max, xs } = await tab.run(RECENT), { time } = server.answer(tab.guests[0].uuid);
				assert.strictEqual(max - min, 3600, `${slots} slots`);
				assert.strictEqual(max, Date.parse(time) / 1000);
				assert.strictEqual(xs.length, slots);
				// Each in the middle of its slot; of the newest only a part has passed.
				const newest = Math.floor(max / 300) * 300;
				assert.deepStrictEqual(xs, [newest - 450, newest - 150, (newest + max) / 2].slice(-slots));
				const { ticks, apart, right, widest } = await tab.run(TICKS);
				assert(ticks >= 2 && apart > widest + 4, `${kind}: ticks of ${widest} pixels every ${apart}`);
				assert(right >= widest / 2, `${kind}: the last tick is cut`);
				await tab.picture(path.join(pictures, `young${kind}-${slots}.png`));
			}
	},

	// On the first day the small chart fills its cell, too, and its head says how long that is.
	async first() {
		for (const [look, kind] of [[{}, ""], [{ dark: true }, "-dark"]])
			for (const [slots, span] of [[1, "60 min"], [36, "3 hours"], [288, "24 hours"]]) {
				const tab = await open({ n: 6, slots, kinds: { 1: "canary", 2: "blocked", 3: "failing", 4: "new" } }, look);
				await tab.until("document.querySelectorAll('svg.spark polyline').length >= 3");
				const heads = await tab.run("[...document.querySelectorAll('#guests th')].map((head) => head.textContent)");
				assert(heads.includes(span), heads.join(", "));
				const { from, to, width } = await tab.run(`((svg) => {
					const xs = [...svg.querySelectorAll("polyline")].flatMap((line) => line.getAttribute("points").split(" ").map((point) => Number(point.split(",")[0])));
					return { from: Math.min(...xs), to: Math.max(...xs), width: svg.viewBox.baseVal.width };
				})([...document.querySelectorAll('svg.spark')].find((svg) => svg.querySelector("polyline")))`);
				assert(to === width && from <= (slots === 1 ? 0.5 : 0), `${slots} slots: from ${from} to ${to} of ${width}`);
				await tab.picture(path.join(pictures, `first${kind}-${slots}.png`));
			}
		const tab = tabs[tabs.length - 1];
		const row = (name) => tab.run(`[...[...document.querySelectorAll('#guests tbody tr')].find((one) => one.cells[0].innerText === "${name}").cells]
			.map((cell) => \`\${cell.innerText} [\${[...cell.querySelectorAll("[title]")].map((one) => one.title).join("; ")}]\`)`);
		// A short window is no working set, but shows the memory.
		const canary = await row("db1");
		assert(/^new\nonly a short first window yet: the next one, in /.test(canary[1]), canary[1]);
		assert(canary[2].startsWith("\u2013") && /^[0-9.]+ [MG]iB/.test(canary[4]), canary.join("\n"));
		assert(/^0 B \[its memory cannot be reclaimed: locked memory\]$/.test((await row("cache1"))[7]), (await row("cache1"))[7]);
	},

	// The axis of a guest that has been measured all day is a day at most, and ends now; the reader may choose a part.
	async day() {
		const tab = await open({ n: 1 });
		await tab.run("document.querySelector('#guests td.name button').click()");
		await tab.until(opened);
		const { min, max, xs } = await tab.run(RECENT), { time } = server.answer(tab.guests[0].uuid);
		assert.strictEqual(max, Date.parse(time) / 1000);
		assert(max - min <= 86400 && max - min > 86000, `${max - min} s`);
		assert(min <= xs[0] && xs[xs.length - 1] <= max);
		await tab.run(`${CHART}.plot.setScale("x", { min: ${xs[10]}, max: ${xs[20]} })`);
		await tab.until(`${CHART}.plot.scales.x.min === ${xs[10]} && ${CHART}.plot.scales.x.max === ${xs[20]}`);
		// What the line below the chart says is the slot.
		await tab.run(`${CHART}.plot.setCursor({ left: 10, top: 10 })`);
		const readout = `${DETAIL}.querySelector('.readout').textContent`;
		await tab.until(`/:\\d\\d\\s?\u2013\\s?\\d+:\\d\\d: working set/.test(${readout})`);
	},

	async address() {
		const tab = await open({ n: 3 }, {}, "#0f1e2d3c-0000-4000-8000-000000000002");
		await tab.until(opened);
		assert.strictEqual(await tab.run(`${DETAIL}.querySelector('h2').textContent`), "cache1");
	},

	// An address that names no running guest: the page says so until another guest is opened.
	async missing() {
		const said = "document.getElementById('missing').innerText", text = "No running guest has this UUID.";
		const tab = await open({ n: 3 }, {}, "#0f1e2d3c-0000-4000-8000-000000000007");
		await tab.until(`${said} === ${JSON.stringify(text)}`);
		assert.strictEqual(await tab.run("document.getElementById('missing').getAttribute('role')"), "status");
		assert(!await tab.run(`${DETAIL}.open`));
		await tab.picture(path.join(pictures, "missing.png"));
		await tab.run("document.querySelector('#guests td.name button').click()");
		await tab.until(opened);
		assert.strictEqual(await tab.run(said), "");
		// An address that is typed while a guest is shown; a UUID may be in capitals.
		await tab.run("location.hash = '#nonsense'");
		await tab.until(`!${DETAIL}.open && ${said} === ${JSON.stringify(text)}`);
		await tab.until("!document.querySelector('canvas')");
		assert.strictEqual(await tab.run("location.hash"), "#nonsense");
		await tab.run("location.hash = '#0F1E2D3C-0000-4000-8000-000000000001'");
		await tab.until(`${opened} && ${said} === ""`);
		await tab.run(`${DETAIL}.close()`);
		await tab.until("location.hash === ''");
		// It is opened when it has been started.
		await tab.run("location.hash = '#0f1e2d3c-0000-4000-8000-000000000003'");
		await tab.until(`${said} === ${JSON.stringify(text)}`);
		fleet.write(directory, { n: 4 });
		await server.renew();
		await tab.until(`${opened} && ${said} === ""`);
		// A service that has not listed the guests yet knows nothing of it.
		const starting = { n: 0, host: { state: "starting", since_seconds: 3.2, libvirt_up: undefined } };
		const early = await open(starting, {}, "#0f1e2d3c-0000-4000-8000-000000000001");
		assert.strictEqual(await early.run(said), "");
		fleet.write(directory, { n: 2 });
		await server.renew();
		await early.until(opened);
	},

	// The growth curve's axis ends with the curve, and begins with a tick.
	async growth() {
		const tab = await open({ n: 1 });
		await tab.run("document.querySelector('#guests td.name button').click()");
		await tab.until(opened);
		const growth = "charts.find((one) => /^Growth/.test(one.place.getAttribute('aria-label'))).plot";
		const { min, max, values } = await tab.run(`(({ scales: { x: { min, max } }, axes }) =>
			({ min, max, values: axes[0]._values }))(${growth})`);
		assert.deepStrictEqual([min, max], [0.001, 4.002]);
		assert.deepStrictEqual(values.filter((value) => value !== null),
			["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms", "500 ms", "1 s", "2 s", "4 s"]);
		// On a phone there is room for fewer, but none of them is left out for no reason.
		await tab.size(390, 844);
		await tab.until(`${growth}.width < 390`);
		const { at, shown, space } = await tab.run(`((plot) => ({ shown: plot.axes[0]._values, space: plot.axes[0]._space,
			at: plot.axes[0]._splits.map((v) => plot.valToPos(v, "x")) }))(${growth})`);
		const labelled = at.filter((_, i) => shown[i] !== null);
		assert(labelled.slice(1).every((x, i) => x - labelled[i] >= space), shown.join());
		assert(["1 ms", "10 ms", "100 ms", "1 s"].every((one) => shown.includes(one)), shown.join());
		const ranges = [[0.0013, 2], [0.05, 0.2], [0.9, 1.1], [1, 60], [3, 3]];
		assert.deepStrictEqual(await tab.run(`${JSON.stringify(ranges)}.map(([a, b]) => logRange(null, a, b))`),
			[[0.001, 2], [0.05, 0.2], [0.9, 1.1], [1, 60], [3, 10]]);
	},

	async sorting() {
		const tab = await open({ n: 20, kinds: KINDS }), keys = new Map(tab.guests.map((guest) => [guest.domain, guest.sample && guest.sample.wss_bytes]));
		const down = await tab.run(NAMES), sizes = down.map((one) => keys.get(one));
		assert.strictEqual(down.length, 20);
		const known = sizes.filter((v) => v !== undefined);
		// The largest first, and unknown ones last, in both directions.
		assert.deepStrictEqual(known, [...known].sort((a, b) => b - a));
		assert(sizes.slice(known.length).every((v) => v === undefined));
		await tab.run(`${HEAD("Working set")}.click()`);
		const up = (await tab.run(NAMES)).map((one) => keys.get(one));
		assert.deepStrictEqual(up.slice(0, known.length), [...known].reverse());
		assert(up.slice(known.length).every((v) => v === undefined));
		assert.strictEqual(await tab.run(`${HEAD("Working set")}.closest("th").getAttribute("aria-sort")`), "ascending");
		await tab.run(`${HEAD("Guest")}.click()`);
		const names = await tab.run(NAMES);
		assert.deepStrictEqual(names, [...names].sort());
		for (const title of ["State", "Resident", "Balloon", "Recommended", "Reclaimable", "Idle 10 min", "Cost", "Age"]) {
			await tab.run(`${HEAD(title)}.click()`);
			assert.strictEqual((await tab.run(NAMES)).length, 20, title);
		}
	},

	async filter() {
		const tab = await open({ n: 40, kinds: KINDS });
		await tab.run("document.querySelector('input[type=search]').focus()");
		await tab.type("DB");
		assert.deepStrictEqual((await tab.run(NAMES)).sort(), ["db1", "db2", "db3", "db4", "db5"]);
		assert((await tab.run(TEXT)).includes("5 of 40 guests"));
		await tab.run("document.querySelector('input[type=search]').select()");
		await tab.type("refused");
		assert.deepStrictEqual(await tab.run(NAMES), ["mail1"]);
		await tab.run("document.querySelector('input[type=search]').select()");
		await tab.type("nothing like it");
		assert.deepStrictEqual(await tab.run(NAMES), []);
	},

	async keyboard() {
		const tab = await open({ n: 3 }), focus = "document.activeElement";
		const reach = async (condition) => {
			for (let i = 0; i < 40 && !await tab.run(condition); i++)
				await tab.key("Tab");
			assert(await tab.run(condition), `not reached: ${condition}`);
		};
		await reach(`${focus}.id === "theme"`);
		await tab.key("Enter");
		assert.strictEqual(await tab.run("document.documentElement.dataset.theme"), "light");
		await tab.key("Enter");
		assert.strictEqual(await tab.run("document.documentElement.dataset.theme"), "dark");
		await reach(`${focus}.type === "search"`);
		await reach(`${focus} === ${HEAD("Guest")}`);
		await tab.key("Enter");
		assert.strictEqual(await tab.run(`${HEAD("Guest")}.closest("th").getAttribute("aria-sort")`), "ascending");
		await reach(`${focus}.closest("td.name") && ${focus}.textContent === "cache1"`);
		assert(await tab.run(`getComputedStyle(${focus}).outlineStyle !== "none"`), "the focus is not seen");
		await tab.key("Enter");
		await tab.until(opened);
		assert(await tab.run(`${DETAIL}.contains(${focus})`));
		await tab.key("Escape");
		await tab.until(`!${DETAIL}.open`);
		assert.strictEqual(await tab.run(`${focus}.textContent`), "cache1");
		// Newer figures leave the focus where it is.
		await tab.run("window.before = document.activeElement; true");
		await server.renew();
		const asked = tab.requests.length;
		while (tab.requests.length < asked + 2)
			await new Promise((resolve) => setTimeout(resolve, 100));
		assert(await tab.run("window.before === document.activeElement"));
	},

	async hostile() {
		const names = ["<img src=x onerror=alert(1)>", "</script><script>document.title='bad'</script>", "a\u202egpj.exe", "\"quotes' & <b>bold</b>", "M".repeat(200),
			"\u0645\u0631\u062d\u0628\u0627", "javascript:alert(1)", "__proto__", "x\u200b\u2066y"];
		const tab = await open({ n: 10, names, held: "<b>held</b>\u202e" });
		await tab.run("window.alert = () => { window.alerted = true; }; true");
		const shown = await tab.run(NAMES);
		for (const one of [names[0], names[1], names[3], names[4], names[5], names[6], names[7], "a\u2039U+202E\u203agpj.exe", "x\u2039U+200B\u203a\u2039U+2066\u203ay"])
			assert(shown.includes(one), `no ${one} in ${shown}`);
		assert.strictEqual(await tab.run("document.querySelectorAll('main img, main b, main script').length"), 0);
		assert(!/[\u202a-\u202e]/.test(await tab.run(TEXT)));
		assert(await tab.run("document.documentElement.scrollWidth <= innerWidth"), "a long name makes the page wider than the window");
		for (const one of [names[0], names[4]]) {
			await tab.run(`[...document.querySelectorAll('td.name button')].find((b) => b.textContent === ${JSON.stringify(one)}).click()`);
			await tab.until(opened);
			assert.strictEqual(await tab.run(`${DETAIL}.querySelector('h2').textContent`), one);
			assert(await tab.run(`${DETAIL}.scrollWidth <= ${DETAIL}.clientWidth`), "a long name makes the dialog scroll sideways");
			await tab.picture(path.join(pictures, `hostile-${one.length}.png`), false);
			await tab.run(`${DETAIL}.close()`);
		}
		assert.strictEqual(await tab.run("window.alerted === undefined && document.title.includes('node7')"), true);
		await tab.picture(path.join(pictures, "hostile.png"));
	},

	async empty() {
		const tab = await open({ n: 0 });
		const text = await tab.run(TEXT);
		for (const part of ["No guest runs on this host", "virsh start DOMAIN", "virt-wss -c URI serve", "0 of 0"])
			assert(text.includes(part), `no "${part}" in ${text}`);
		await tab.picture(path.join(pictures, "empty.png"));
		// The first guest appears without a reload.
		fleet.write(directory, { n: 1 });
		await server.renew();
		await tab.until(`document.querySelector('#guests td.name') && document.querySelector('#guests td.name').textContent === "web1"`);
	},

	async starting() {
		const tab = await open({ n: 0, host: { state: "starting", since_seconds: 3.2, libvirt_up: undefined } });
		const text = await tab.run(TEXT);
		assert(/The service started 3(\.2)?\ss ago and has not listed the guests yet/.test(text), text);
		assert(!text.includes("No guest runs"), text);
		assert(!text.includes("does not answer"), text);
		fleet.write(directory, { n: 0 });
		await server.renew();
		await tab.until(`${TEXT}.includes("No guest runs on this host")`);
	},

	async troubles() {
		const tab = await open({ n: 4, held: "/run/virt-wss/hold exists", host: { libvirt_up: false } });
		const text = await tab.run(TEXT);
		assert(/Measuring is paused: \/run\/virt-wss\/hold exists, for 90\ss\./.test(text), text);
		assert(text.includes("libvirt does not answer"), text);
		assert.strictEqual(await tab.run("[...document.querySelectorAll('#guests .state')].filter((one) => one.textContent === 'on hold').length"), 4);
		await tab.picture(path.join(pictures, "held.png"));
		// The service ends: its last figures stay, and the page says so.
		server.process.kill("SIGKILL");
		await tab.until(`${TEXT}.includes("The service does not answer")`);
		assert.strictEqual((await tab.run(NAMES)).length, 4);
		tab.faults = tab.faults.filter((fault) => !/ERR_(CONNECTION|EMPTY)/.test(fault));
	},

	// In processor time, because on a busy machine everything takes longer: what 200 guests take is compared with
	// what 10 take.
	async many() {
		const spent = async (tab) => (await tab.send("Performance.getMetrics")).metrics
			.filter((one) => ["LayoutDuration", "RecalcStyleDuration", "ScriptDuration"].includes(one.name)).reduce((sum, one) => sum + one.value * 1000, 0);
		const measure = async (n) => {
			const tab = await open({ n });
			await tab.until("document.querySelectorAll('svg.spark').length > 0");
			assert.strictEqual((await tab.run(NAMES)).length, n);
			await tab.send("Performance.enable", { timeDomain: "threadTicks" });
			const before = await spent(tab);
			for (let i = 0; i < 20; i++)
				await tab.run(`${HEAD(i % 2 ? "Guest" : "Resident")}.click(); document.body.offsetHeight`);
			return (await spent(tab) - before) / 20;
		};
		const few = await measure(10), many = await measure(200);
		console.log(`sorting 10 guests takes ${few.toFixed(1)} ms, 200 ${many.toFixed(1)} ms`);
		// Linear would be 20 times; what is below two frames is nothing in any case.
		assert(many < Math.max(32, 40 * few), "sorting 200 guests takes more than twice as long for each");
		await tabs[1].picture(path.join(pictures, "many.png"));
	},

	async axe() {
		const source = fs.readFileSync(more[0], "utf8");
		for (const dark of [false, true])
			for (const [kind, fragment, options] of [["table", "", { n: 12, kinds: KINDS, held: "a test" }], ["empty", "", { n: 0 }], ["detail", "#0f1e2d3c-0000-4000-8000-000000000002", { n: 12, kinds: KINDS }],
				["coarse", "#0f1e2d3c-0000-4000-8000-000000000003", { n: 4 }]]) {
				const tab = await open(options, { dark }, fragment);
				if (fragment)
					await tab.until(opened);
				await tab.run(`${source}; true`);
				const found = await tab.run(`axe.run(document, { resultTypes: ["violations", "incomplete"] }).then((r) =>
					r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 150) + " " + n.failureSummary).join("; ")))`);
				assert.deepStrictEqual(found, [], `${kind}, ${dark ? "dark" : "light"}`);
				assert(await tab.run("axe.run(document).then((r) => r.passes.length > 15)"));
			}
		// It finds faults.
		const planted = await tabs[0].run(`document.querySelector("main").append(document.createElement("button"));
			document.querySelector("h1").style.color = getComputedStyle(document.body).backgroundColor;
			axe.run(document).then((r) => r.violations.map((v) => v.id).sort())`);
		assert.deepStrictEqual(planted, ["button-name", "color-contrast"]);
	},

	async pictures() {
		for (const [kind, width, height, dark] of [["light", 1400, 1000, false], ["dark", 1400, 1000, true], ["phone", 390, 844, false], ["phone-dark", 390, 844, true]]) {
			const names = [undefined, undefined, "a-guest-with-a-long-name.example"];
			const tab = await open({ n: 12, names, kinds: { ...KINDS, 9: "failing" } }, { width, height, dark });
			await tab.until("document.querySelectorAll('svg.spark').length > 0");
			assert(await tab.run("document.documentElement.scrollWidth <= innerWidth"), `${kind}: the page is wider than the window`);
			// The state is a word at any width, and the table does not scroll sideways.
			const states = await tab.run(`[...document.querySelectorAll('td .state')].map((one) => [one.innerText,
				parseFloat(getComputedStyle(one).fontSize) >= 11 && one.getBoundingClientRect().width > 20])`);
			assert(states.length === 12 && states.every(([word, seen]) => word && seen), states.join("\n"));
			const [content, room] = await tab.run(`((one) => [one.scrollWidth, one.clientWidth])(
				document.querySelector('.scroll'))`);
			assert(content <= room, `${kind}: the table of ${content} pixels scrolls sideways in ${room}`);
			await tab.picture(path.join(pictures, `${kind}.png`));
			for (const guest of [0, 3]) {
				await tab.run(`[...document.querySelectorAll('td.name button')].find((b) => b.textContent === ${JSON.stringify(tab.guests[guest].domain)}).click()`);
				await tab.until(opened);
				assert(await tab.run(`${DETAIL}.scrollWidth <= ${DETAIL}.clientWidth`), `${kind}: the dialog scrolls sideways`);
				// All of it, not only what fits.
				await tab.size(width, await tab.run(`Math.ceil(${DETAIL}.scrollHeight / 0.93)`));
				await tab.picture(path.join(pictures, `${kind}-guest${guest}.png`), false);
				await tab.size(width, height);
				await tab.run(`${DETAIL}.close()`);
			}
		}
	},

	// A file of "report --html", of a recording with writes: more[0]; opened as a file, which may ask for nothing.
	async report() {
		for (const [kind, width, dark] of [["light", 1200, false], ["dark", 1200, true], ["phone", 390, false]]) {
			const tab = await Tab.open(browser, `file://${more[0]}`, { width, dark });
			tabs.push(tab);
			const text = await tab.run(TEXT);
			for (const part of more.slice(1))
				assert(text.toLowerCase().includes(part.toLowerCase()), `no "${part}" in ${text}`);
			assert.strictEqual(await tab.run("document.querySelectorAll('canvas').length"), 1);
			assert.strictEqual(await tab.run("document.querySelector('.legend').textContent"), "outstanding setreference setwritten");
			assert.strictEqual(await tab.run(NUMBERS), "1 3");
			assert(await tab.run("document.documentElement.scrollWidth <= innerWidth"), `${kind}: wider than the window`);
			await tab.picture(path.join(pictures, `report-${kind}.png`));
		}
	},

	// What the checks above look for is found: a fault in the page, and a request to elsewhere.
	async faults() {
		const tab = await open({ n: 1 });
		await tab.run("setTimeout(() => { throw new Error('planted'); }); true");
		await tab.run("fetch('http://192.0.2.1/').catch(() => {}); true");
		await tab.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=1>'); true");
		while (!tab.faults.some((f) => f.includes("planted")) || !tab.faults.some((f) => f.includes("Content Security Policy directive: \"connect-src")) ||
			!tab.faults.some((f) => f.includes("script-src")))
			await new Promise((resolve) => setTimeout(resolve, 50));
		tab.faults = [];
		tab.requests = [];
	},

	async schema() {
		fleet.write(directory, { n: 12, kinds: KINDS, held: "a test" });
		execFileSync(more[0], [more[1], ...fs.readdirSync(directory).map((one) => path.join(directory, one))], { stdio: "inherit" });
		fleet.write(directory, { n: 0 });
		execFileSync(more[0], [more[1], ...["host", "guests", "trends"].map((one) => path.join(directory, `${one}.json`))], { stdio: "inherit" });
	},
};

function check(tab) {
	const own = server ? server.url.replace(/\/$/, "") : "file:";
	assert.deepStrictEqual(tab.faults, []);
	const foreign = tab.requests.filter((url) => !url.startsWith(own) && !url.startsWith("data:") && url !== "about:blank");
	assert.deepStrictEqual(foreign, [], "requests to elsewhere");
}

async function main() {
	let status = 0;
	browser = new Browser();
	try {
		await cases[name]();
		tabs.forEach(check);
	} catch (error) {
		console.log(error.stack);
		tabs.forEach((tab) => tab.faults.forEach((fault) => console.log(fault)));
		status = 1;
	}
	await browser.end();
	if (server)
		server.process.kill("SIGKILL");
	fs.rmSync(directory, { recursive: true, force: true });
	process.exit(status);
}

main();
