#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the pictures of recordings and of miss rates as a browser shows them: small and
# large, light and dark.

load live-recording.sh
load svg-texts.sh

virt_wss=$WSS_BUILDDIR/virt-wss
mkrecording=$WSS_BUILDDIR/tests/tools/mkrecording
svg_check=$WSS_SRCDIR/tests/tools/svg-check

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Opens PICTURE narrow and light, wide and dark, and lists its content in PICTURE.has.
shown() { # PICTURE
	local width scheme
	while read -r width scheme; do
		echo "$1 at $width, $scheme:"
		"$svg_check" "$1" "$width" "$scheme" </dev/null >"$1.has" ||
			{ cat "$1.has"; return 1; }
		grep -q "^size $width " "$1.has"
		cp "$1.has" "$1.$scheme"
	done <<-'EOF'
		800 light
		1600 dark
	EOF
	! diff <(grep '^back' "$1.light") <(grep '^back' "$1.dark") >/dev/null
}

has() { # PICTURE NAME LEAST
	local n
	n=$(sed -n "s/^$2 //p" "$1.has")
	echo "$1: $2 ${n:-0}"
	[ "${n:-0}" -ge "$3" ]
}

@test "the checker finds faults" {
	cat >bad.svg <<-'SVG'
		<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50"><rect class="back" width="100"
		height="50" fill="#fff"/><text x="5" y="20" font-size="9">one</text>
		<text x="9" y="22" font-size="9">two</text><text x="5" y="45" font-size="9" fill="#ddd">pale</text>
		<text x="95" y="45" font-size="9">outside</text></svg>
	SVG
	run "$svg_check" bad.svg 800 light
	[ "$status" = 1 ]
	[[ $output == *"overlap: one | two"* && $output == *"hard to read: pale"* &&
		$output == *"outside: outside"* ]]
	echo '<svg xmlns="http://www.w3.org/2000/svg"><text>' >bad.svg
	run "$svg_check" bad.svg 800 light
	[ "$status" = 1 ]
	[[ $output == *"not well formed"* ]]
}

@test "report --plot: axes, legend, curves, gaps, and marks that crowd" {
	"$mkrecording" r --phases 4096:5,16384:8,2048:7 --windows 60 --mark-every 2 --gap-every 9 \
		--domain 'a <guest> & "its" name that is much longer than what a picture has room for' >said
	"$virt_wss" report r --plot r.svg >table
	shown r.svg
	has r.svg line.axis 3
	has r.svg line.grid 4
	has r.svg text.tick 8
	has r.svg text.label 2
	has r.svg text.legend 4
	has r.svg text.title 1
	has r.svg path.curve.s0 3
	has r.svg path.curve.s1 3
	has r.svg path.curve.s2 3
	has r.svg rect.gap 6
	says r.svg 'legend: touched in window' 'legend: touched ever' 'legend: written in window' \
		'legend: not observed' 'tick: 0 s' 'tick: 67 s'
	texts r.svg | grep '^title: Memory touched by a .*…$'
	inside r.svg
	# With this many marks, none crosses the curves.
	has r.svg line.mark 30
	[ "$(longest_mark r.svg)" -lt 20 ]
}

# Whether the curves stay inside the axes.
inside() { # PICTURE
	grep -oE '<path class="curve [^>]*' "$1" | grep -oE '[ML][0-9.]+ [0-9.]+' | tr -d ML |
		awk -v box="$(box "$1")" 'BEGIN { split(box, b) }
			$1 < b[1] - .1 || $1 > b[2] + .1 || $2 < b[3] - .1 || $2 > b[4] + .1 { bad = 1 }
			END { exit bad || NR < 4 }'
}

# Prints the ends of the plot: left, right, top, bottom.
box() { # PICTURE
	sed -nE 's/^<line class="axis" x1="([0-9.]+)" y1="([0-9.]+)" x2="([0-9.]+)" y2="([0-9.]+)".*/\1 \2 \3 \4/p' "$1" |
		awk '$2 == $4 && $3 - $1 > 100 { left = $1; right = $3; bottom = $2 }
			$1 == $3 && $4 - $2 > 100 && !top { top = $2 }
			END { print left, right, top, bottom }'
}

# Height of the tallest mark, in units of the picture.
longest_mark() { # PICTURE
	sed -nE 's/^<line class="mark[^"]*" .*y1="([0-9]+)[0-9.]*" .*y2="([0-9]+)[0-9.]*".*/\1 \2/p' "$1" |
		awk '$2 - $1 > n { n = $2 - $1 } END { print n + 0 }'
}

@test "pictures of a recording state when, how and how long it was made" {
	"$mkrecording" r --windows 12 --phases 100:12 --host 'host1.example <&>' >said
	"$virt_wss" report r --plot r.svg >table
	grep -q '^web1, recorded on host1.example <&> for 12.* from 2026-11-20T18:00:00Z by mmu$' table
	"$virt_wss" report r --output json | grep -q '"host": *"host1.example <&>"'
	"$virt_wss" heatmap r --plot h.svg
	says r.svg 'small source: host1.example <&>, 2026-11-20 18:00:00 UTC, 12 s, mmu, 4 KiB granularity'
	[ "$(texts r.svg | grep ^small.source)" = "$(texts h.svg | grep ^small.source)" ]
	# If the host is unknown, only the rest is shown.
	"$mkrecording" s --windows 12 --phases 100:12 >said
	"$virt_wss" report s --plot s.svg >table
	says s.svg 'small source: 2026-11-20 18:00:00 UTC, 12 s, mmu, 4 KiB granularity'
	"$mkrecording" t --windows 4 --phases 100:4 --host "$(printf 'W%.0s' {1..200})" >said
	"$virt_wss" report t --plot t.svg >table
	shown t.svg
	texts t.svg | grep '^small source: WWW*…, 2026-11-20 18:00:00 UTC'
}

@test "report --viewport --plot draws only that time" {
	local left right
	"$mkrecording" r --phases 4096:5,16384:8,2048:7 --windows 60 --mark-every 5 --gap-every 9 >said
	"$virt_wss" report r --viewport 16s:24.5s --plot r.svg >table
	shown r.svg
	inside r.svg
	says r.svg 'tick: 16 s' 'tick: 20 s' 'tick: 24.5 s' 'small: 4: 21.5 s, mark 20' 'small: 4'
	texts r.svg | grep ', shown: 16 s to 24.5 s$'
	lacks r.svg '^tick: (0|25|30|67) s|mark (5|10|15|25|30)$'
	read -r left right _ <<<"$(box r.svg)"
	# The curve goes from one edge to the other.
	grep -oE '<path class="curve s0"[^>]*' r.svg | grep -oE '[ML][0-9.]+' | tr -d ML |
		awk -v left="$left" -v right="$right" '
			$1 < left + .2 { l = 1 } $1 > right - .2 { r = 1 } END { exit !(l && r) }'
	# Few marks go through the plot.
	[ "$(longest_mark r.svg)" -gt 300 ]
	# Large sets outside the viewport do not shrink the curves.
	"$virt_wss" report r --viewport 1s:4s --plot r.svg >table
	says r.svg 'tick: 1 s' 'tick: 4 s' 'tick: 20 MiB'
	lacks r.svg '^tick: (64|80) MiB'
}

@test "report --plot: one window, and a thousand" {
	"$mkrecording" one --windows 1 --phases 100:1 >said
	"$virt_wss" report one --plot one.svg >table
	shown one.svg
	"$mkrecording" many --windows 3000 --phases 4096:50,16384:80,1:70 --mark-every 100 >said
	"$virt_wss" report many --plot many.svg >table
	shown many.svg
	[ "$(stat -c %s many.svg)" -lt 300000 ]
}

marked_late() { # TEXT
	"$virt_wss" mark live "$1" 2>when && grep -q 'marked at [1-9][0-9.]* s' when
}

@test "names in any script, and marks after the end" {
	local name
	for name in "$(printf 'W%.0s' {1..200})" "$(printf '日%.0s' {1..80})" \
		production-namespace_machine-template-of-a-cluster-worker-00042; do
		"$mkrecording" r --windows 4 --phases 100:4 --domain "$name" >said
		"$virt_wss" report r --plot r.svg >table
		shown r.svg
		"$virt_wss" heatmap r --plot h.svg
		shown h.svg
	done
	start_live --windows 1
	# The recording continues after one second of windows, so the marks lie behind its end.
	wait_until 300 marked_late "$(printf 'W%.0s' {1..255})"
	"$virt_wss" mark live "$(printf '日%.0s' {1..85})"
	"$virt_wss" report live --plot r.svg >table
	exec 4>&-
	wait
	shown r.svg
	# Marks after the last complete window are not in the picture.
	says r.svg 'tick: 1 s'
	lacks r.svg 日
	sed -nE 's/^<line class="mark[^"]*" x1="([0-9.]+)".*/\1/p' r.svg |
		awk -v box="$(box r.svg)" 'BEGIN { split(box, b) } $1 > b[2] + .1 { bad = 1 } END { exit bad }'
}

@test "heatmap --plot: 64 MiB" {
	"$mkrecording" r --ram $((64 << 20)) --phases 1024:5,4096:8,512:7 --gap-every 9 --runs 20 >said
	"$virt_wss" heatmap r --plot h.svg
	shown h.svg
	has h.svg line.axis 4
	has h.svg text.tick 8
	has h.svg text.legend 1
	has h.svg rect.h0 20
	has h.svg rect.h7 20
	has h.svg rect.gap 2
	says h.svg 'tick: 0 B' 'tick: 64 MiB' 'tick: 22 s'
}

@test "heatmap --plot: nothing shines through between cells, and marks do not hide them" {
	local top
	"$mkrecording" r --ram $((64 << 20)) --phases 1024:5,4096:8,512:7 --windows 150 --runs 200 \
		--mark-every 40 >said
	"$virt_wss" heatmap r --plot h.svg
	for width in 777 1600; do
		"$svg_check" h.svg $width light >h.has
		grep '^seams' h.has
		grep -qx 'seams 0' h.has
	done
	grep -qx 'line.mark 3' h.has
	says h.svg 'small: 1' 'small: 3: 119.5 s, mark 120'
	top=$(box h.svg | cut -d ' ' -f 3)
	sed -nE 's/^<line class="mark" .*y2="([0-9.]+)".*/\1/p' h.svg |
		awk -v top="$top" '$1 > top { bad = 1 } END { exit bad || NR != 3 }'
}

@test "heatmap --plot: NUMA nodes and memory devices" {
	"$mkrecording" r --ram $((16 << 30)) --nodes 4 --device $((4 << 30)) --phases 400000:20 >said
	"$virt_wss" heatmap r --plot h.svg
	shown h.svg
	says h.svg 'small region: node 0' 'small region: node 1' 'small region: node 2' \
		'small region: node 3' 'small region: dimm7 (node 3)' 'tick: 22 GiB'
	# With one node there are no names to tell apart.
	"$mkrecording" s --ram $((16 << 30)) --phases 400000:20 >said
	"$virt_wss" heatmap s --plot s.svg
	lacks s.svg region
}

@test "heatmap --plot: holes are named" {
	"$mkrecording" r --ram $((8 << 30)) --device $((1 << 30)) --phases 400000:20 --runs 300 >said
	"$virt_wss" heatmap r --plot h.svg
	shown h.svg
	[ "$(grep -c 'hole of 1 GiB: no memory' h.svg)" = 2 ]
	has h.svg line.reference 4
}

@test "heatmap --plot: 1 TiB" {
	"$mkrecording" r --ram $((1 << 40)) --nodes 8 --windows 300 --runs 1000 \
		--phases $((50 << 18)):100,$((200 << 18)):100,$((20 << 18)):100 >said
	"$virt_wss" heatmap r --plot h.svg
	shown h.svg
	has h.svg text.tick 15
	has h.svg rect.h7 20
	[ "$(stat -c %s h.svg)" -lt 2000000 ]
}
