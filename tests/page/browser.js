// SPDX-License-Identifier: LGPL-2.1-or-later
// Drives headless Chromium by the DevTools protocol over a pipe. Needs nothing but node.
"use strict";
const { spawn } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

// A busy machine is slow; what takes longer than this hangs.
const PATIENCE_MS = 300000;

class Browser {
	constructor() {
		this.profile = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
		this.process = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
			"--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe", `--user-data-dir=${this.profile}`, "about:blank"],
		{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env: { ...process.env, HOME: this.profile } });
		this.next = 1;
		this.waiting = new Map();
		this.listeners = [];
		let rest = "";
		this.process.stdio[4].on("data", (bytes) => {
			const parts = (rest + bytes).split("\0");
			rest = parts.pop();
			parts.forEach((part) => this.take(JSON.parse(part)));
		});
		this.process.on("exit", () => this.waiting.forEach(({ reject }) => reject(new Error("chromium ended"))));
	}

	take(message) {
		const waiting = this.waiting.get(message.id);
		if (!waiting)
			return this.listeners.forEach((listener) => listener(message));
		this.waiting.delete(message.id);
		if (message.error)
			waiting.reject(new Error(JSON.stringify(message.error)));
		else
			waiting.resolve(message.result);
	}

	send(method, params = {}, sessionId = undefined) {
		const id = this.next++;
		this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
		return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
	}

	async end() {
		const ended = new Promise((resolve) => this.process.on("exit", resolve));
		this.send("Browser.close").catch(() => {});
		await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 10000))]);
		this.process.kill("SIGKILL");
		fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
	}
}

class Tab {
	// options: width, height, dark, locale
	static async open(browser, url, options = {}) {
		const tab = new Tab();
		const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
		const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
		tab.send = (method, params) => browser.send(method, params, sessionId);
		tab.faults = [];
		tab.requests = [];
		browser.listeners.push((message) => message.sessionId === sessionId && tab.hear(message));
		for (const domain of ["Page", "Runtime", "Log", "Network"])
			await tab.send(`${domain}.enable`);
		await tab.size(options.width || 1400, options.height || 1000);
		await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: options.dark ? "dark" : "light" },
			{ name: "prefers-reduced-motion", value: "reduce" }] });
		await tab.send("Emulation.setTimezoneOverride", { timezoneId: "Europe/Berlin" });
		await tab.send("Emulation.setLocaleOverride", { locale: options.locale || "en-GB" });
		await tab.send("Page.navigate", { url });
		await tab.until("document.body && document.body.dataset.ready");
		return tab;
	}

	hear({ method, params }) {
		if (method === "Runtime.exceptionThrown")
			this.faults.push(`exception: ${params.exceptionDetails.exception ? params.exceptionDetails.exception.description : params.exceptionDetails.text}`);
		else if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type))
			this.faults.push(`console: ${params.args.map((arg) => arg.value || arg.description).join(" ")}`);
		else if (method === "Log.entryAdded" && params.entry.level !== "info" && params.entry.level !== "verbose")
			this.faults.push(`log: ${params.entry.text} ${params.entry.url || ""}`);
		else if (method === "Network.requestWillBeSent")
			this.requests.push(params.request.url);
	}

	size(width, height) {
		return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
	}

	// Returns the value of an expression in the page.
	async run(expression) {
		const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true, userGesture: true });
		if (exceptionDetails)
			throw new Error(`${expression.slice(0, 200)}: ${exceptionDetails.exception ? exceptionDetails.exception.description : exceptionDetails.text}`);
		return result.value;
	}

	// Waits until an expression is true.
	async until(expression) {
		const end = Date.now() + PATIENCE_MS;
		while (!await this.run(expression)) {
			if (Date.now() > end)
				throw new Error(`never: ${expression}\n${this.faults.join("\n")}`);
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}

	async key(key, code = key) {
		const text = key === "Enter" ? "\r" : undefined;
		const codes = { Enter: 13, Tab: 9, Escape: 27 };
		await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code, text, windowsVirtualKeyCode: codes[key] });
		await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code, windowsVirtualKeyCode: codes[key] });
	}

	type(text) {
		return this.send("Input.insertText", { text });
	}

	async picture(file, full = true) {
		const height = full ? await this.run("Math.min(4000, document.documentElement.scrollHeight)") : undefined;
		const width = await this.run("innerWidth");
		const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: full,
			...(full ? { clip: { x: 0, y: 0, width, height, scale: 1 } } : {}) });
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, Buffer.from(data, "base64"));
	}
}

module.exports = { Browser, Tab, PATIENCE_MS };
