#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the page of the service in headless Chromium, with invented figures: tests/page/page.js has the cases.
# Each also fails if the page causes an error in the console, or asks anybody but its service for something.

load page-functions.sh

uplot=$WSS_SRCDIR/third-party/uplot

@test "uPlot is as its authors published it" {
	(cd "$uplot" && sha256sum --check --quiet SHA256SUMS)
	[ "$(wc -l <"$uplot/SHA256SUMS")" = 3 ]
	grep -q 'MIT License' "$uplot/LICENSE"
	grep -q 'third-party/uplot' "$WSS_SRCDIR/README.md"
}

@test "the page takes text as text only" {
	run grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://' \
		"$WSS_SRCDIR"/src/serve/page/*.{js,html,css}
	echo "$output"
	[ "$(grep -vc 'http://www.w3.org/2000/svg' <<<"$output")" = 0 ]
	# No style or script but those of the policy's hashes.
	run grep -nE ' style=| on[a-z]+=' "$WSS_SRCDIR/src/serve/page/page.html"
	[ "$status" = 1 ]
}

@test "the policy names what is in the page" {
	local page=page.html part
	node -e '
		const { spawn } = require("child_process"), fs = require("fs"), http = require("http");
		const server = spawn(process.argv[1], ["."], { stdio: ["pipe", "pipe", "inherit"] });
		server.stdout.once("data", (bytes) => http.get(String(bytes).split("\n")[0], (answer) => {
			fs.writeFileSync("head.json", JSON.stringify(answer.headers));
			answer.pipe(fs.createWriteStream("page.html")).on("finish", () => server.kill());
		}));' "$WSS_BUILDDIR/tests/tools/page-server"
	for part in "default-src 'none'" "script-src 'sha256-" "style-src 'sha256-" "connect-src 'self'" "frame-ancestors 'none'" "base-uri 'none'"; do
		grep -qF "$part" head.json
	done
	run grep -c "unsafe" head.json
	[ "$output" = 0 ]
	node -e '
		const page = require("fs").readFileSync("page.html", "utf8"), policy = JSON.parse(require("fs").readFileSync("head.json"))["content-security-policy"];
		for (const [name, pattern] of [["style", /<style>([^]*?)<\/style>/], ["script", /<script>([^]*?)<\/script>/]]) {
			const digest = require("crypto").createHash("sha256").update(pattern.exec(page)[1]).digest("base64");
			if (!policy.includes(`${name}-src \x27sha256-${digest}\x27`))
				throw new Error(`${name}: ${digest} is not in ${policy}`);
		}'
	[ "$(grep -c uPlot "$page")" -gt 10 ]
}

@test "the invented figures are what a service answers" {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "needs python3-jsonschema"
	look schema "$WSS_SRCDIR/tests/tools/api-check" "$WSS_SRCDIR/docs/http-api.schema.json"
}

@test "the host and its guests" {
	look content
}

@test "the host says how many guests are not measured" {
	look tile
}

@test "one guest" {
	look detail
}

@test "a guest that has just been measured for the first time" {
	look young
}

@test "a host whose guests are measured for the first day" {
	look first
}

@test "the chart of a day ends now" {
	look day
}

@test "an address names a guest" {
	look address
}

@test "an address that names no running guest" {
	look missing
}

@test "the growth curve fills its axis" {
	look growth
}

@test "sorting" {
	look sorting
}

@test "filtering" {
	look filter
}

@test "the keyboard does it all" {
	look keyboard
}

@test "hostile names" {
	look hostile
}

@test "faults are found" {
	look faults
}
