// SPDX-License-Identifier: LGPL-2.1-or-later
// What the page shows, and when it asks again.

const POLL_MS = 10000;
const TRENDS_MS = 60000;
const NO_SUCH_GUEST = "No running guest has this UUID.";

const $ = (id) => document.getElementById(id);

// --- light and dark ---

const THEMES = { automatic: null, light: "light", dark: "dark" };
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

// A browser may refuse to keep anything.
const remembered = {
	get: () => { try { return localStorage.getItem("theme"); } catch (e) { return null; } },
	set: (value) => { try { localStorage.setItem("theme", value); } catch (e) { /* until the page is closed */ } },
};
let theme = remembered.get() in THEMES ? remembered.get() : "automatic";

function themeApply() {
	const chosen = THEMES[theme] || (prefersDark.matches ? "dark" : "light");
	document.documentElement.dataset.theme = chosen;
	$("theme").textContent = `Theme: ${theme}`;
	chartsDraw(true);
}

prefersDark.addEventListener("change", themeApply);
$("theme").addEventListener("click", () => {
	const names = Object.keys(THEMES);
	theme = names[(names.indexOf(theme) + 1) % names.length];
	remembered.set(theme);
	themeApply();
});

// --- the service ---

async function ask(path) {
	const answer = await fetch(path, { cache: "no-store" });
	if (!answer.ok)
		throw new Error((await answer.text()).trim() || `status ${answer.status}`);
	return answer.json();
}

class Page {
	constructor() {
		this.detail = new Detail($("detail"));
		this.table = new Table((uuid) => this.show(uuid));
		this.glance = el("section", { class: "card" });
		this.guests = [];
		this.trendsAt = -Infinity;
		this.shown = false;
		addEventListener("hashchange", () => this.follow());
	}

	show(uuid) {
		history.replaceState(null, "", `#${uuid}`);
		this.follow();
	}

	named() {
		const wanted = location.hash.toLowerCase();
		return this.guests.find((one) => `#${one.uuid}` === wanted);
	}

	// Opens the guest that the address names, or says that there is none.
	follow() {
		const guest = this.named(), listed = this.host && this.host.state !== "starting";
		this.missing = Boolean(listed && location.hash && !guest);
		// Nothing can be read behind the dialog.
		if (this.missing && this.detail.guest)
			this.detail.dialog.close();
		$("missing").replaceChildren(...(this.missing ? [el("p", { class: "notice", text: NO_SUCH_GUEST })] : []));
		if (guest && (!this.detail.guest || this.detail.guest.uuid !== guest.uuid))
			this.detail.open(guest, this.host, (uuid) => ask(`api/v1/history/${encodeURIComponent(uuid)}`));
	}

	async poll() {
		let failure = null;
		try {
			const [host, guests] = await Promise.all([ask("api/v1/host"), ask("api/v1/guests")]);
			this.host = host;
			this.guests = guests.guests;
			this.draw();
			if (performance.now() - this.trendsAt >= TRENDS_MS)
				await this.trends();
		} catch (error) {
			failure = error.message;
		}
		$("notices").replaceChildren(...notices(this.host, failure));
		document.body.dataset.ready = failure ? "failed" : "yes";
	}

	async trends() {
		// Until the service has rendered them there are none.
		const trends = await ask("api/v1/trends").catch(() => null);
		if (!trends)
			return;
		this.trendsAt = performance.now();
		this.table.trends(trends);
	}

	draw() {
		const host = this.host, name = visible(host.host || "this host");
		document.title = `${name} \u2013 virt-wss`;
		$("title").textContent = `virt-wss on ${name}`;
		$("updated").textContent = `Version ${host.version}. Figures of ${new Date(host.time).toLocaleTimeString()}`;
		this.glance.replaceChildren(el("h2", { text: "Host" }), hostTiles(host, this.guests),
			host.guests.total ? hostBars(host) : "");
		if (this.guests.length)
			this.table.update(this.guests, { held: host.held });
		// Only when it changes: what is moved loses the focus.
		const kind = this.guests.length ? "guests" : host.state || "empty";
		if (this.kind !== kind) {
			this.kind = kind;
			$("content").replaceChildren(this.glance, this.guests.length ? this.table.node : el("section", { class: "card" }, el("h2", { text: "Guests" }), emptyHost(host)));
		}
		if (this.detail.guest)
			this.detail.update(this.guests.find((guest) => guest.uuid === this.detail.guest.uuid), host);
		// A guest that was missing may have been started, and a service that has just started has listed none.
		if (!this.shown || this.missing && this.named())
			this.follow();
		this.shown = this.shown || host.state !== "starting";
	}

	async run() {
		for (;;) {
			if (!document.hidden)
				await this.poll();
			await new Promise((resolve) => setTimeout(resolve, POLL_MS));
		}
	}
}

// --- a page of the service, or a file ---

const embedded = $("data").textContent.trim();
themeApply();
if (embedded)
	showReport(JSON.parse(embedded));
else
	new Page().run();
