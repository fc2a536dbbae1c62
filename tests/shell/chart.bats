#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the picture of the growth curve as a browser shows it: chart.js examines its
# axes, curves and texts there.

load svg-texts.sh

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	export HOME=$BATS_TEST_TMPDIR
	draw=$WSS_BUILDDIR/tests/unit/draw-chart
}

browse() { # OPTION... URL: what is then in the page; 0=dark, 1=light
	timeout -k 5 300 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--no-first-run --user-data-dir="$BATS_TEST_TMPDIR/profile" "$@" 2>"$BATS_TEST_TMPDIR/browser"
}

# Prints chart.js' report on the picture.
look() { # SVG [OPTION...]
	local svg=$1
	shift
	{
		printf '<!DOCTYPE html><meta charset="utf-8"><body>'
		grep -v '^<?xml' "$svg"
		printf '<script>'
		cat "$WSS_SRCDIR/tests/shell/chart.js"
		printf '</script></body>'
	} >"$BATS_TEST_TMPDIR/page.html"
	browse --dump-dom "$@" "file://$BATS_TEST_TMPDIR/page.html" |
		tr '\n' ' ' | sed -n 's/.*>RESULT \(.*\) END<.*/\1/p'
}

# Opens a page with only the picture, into which a browser would insert its complaints.
opens() { # SVG
	local page
	page=$(browse --dump-dom "file://$1")
	[[ $page == *"touched at least once"* ]] && [[ $page != *parsererror* ]] &&
		[[ $page != *"error on line"* ]]
}

@test "the picture of one guest" {
	local svg=$BATS_TEST_TMPDIR/one.svg seen
	"$draw" 1 1 40000 >"$svg"
	xmllint --noout "$svg"
	opens "$svg"
	seen=$(look "$svg")
	echo "$seen"
	[[ $seen == "curves 1; references 2; back rgb(255, 255, 255)" ]]
}

@test "several guests, each with its own lines" {
	local svg=$BATS_TEST_TMPDIR/many.svg seen
	"$draw" 5 1 40000 >"$svg"
	xmllint --noout "$svg"
	opens "$svg"
	seen=$(look "$svg")
	echo "$seen"
	# The sizes of the third guest are unknown.
	[[ $seen == "curves 5; references 8; back rgb(255, 255, 255)" ]]
}

@test "the picture states what was measured, where, when, and what is shaded" {
	local svg=$BATS_TEST_TMPDIR/said.svg
	"$draw" 1 1 40000 >"$svg"
	says "$svg" 'small source: host1.example, 2026-11-20 18:00:00 UTC, 40 s, mean of 2 windows' \
		'legend: web1 (mmu, 4 KiB granularity, knee 62.3 MiB at 726 ms)' \
		'label: time since measuring began (logarithmic)' 'tick: 40 s' \
		'legend: upper bound: faults slow the guest'
	grep -q '<path class="bounds s0"' "$svg"
	lacks "$svg" 'smallest to largest window'
	"$draw" 2 1 40000 >"$svg"
	says "$svg" 'legend: smallest to largest window' 'legend: RSS' 'legend: balloon' 'legend: knee'
	grep -q '<path class="band s1"' "$svg"
}

@test "a set that is only bounded is shaded from the low to the high bound" {
	local svg=$BATS_TEST_TMPDIR/bounded.svg seen
	"$draw" 1 1 40000 "" bounded >"$svg"
	seen=$(look "$svg")
	echo "$seen"
	[[ $seen == "curves 1; references 2; back rgb(255, 255, 255)" ]]
	says "$svg" 'legend: between the low and the high bound' \
		'legend: web1 (mmu, 2 MiB granularity, knee <= 62.3 MiB at 726 ms)'
	grep -q '<path class="curve bound s0"' "$svg"
	# A factor of 32 throughout, and a step of the axis is a factor of 4: 2.5 steps.
	grep -o '<path class="bounds s0"[^>]*' "$svg" | grep -oE '[ML][0-9.]+ [0-9.]+' | tr -d ML |
		awk '{ if (!($1 in y)) y[$1] = $2; else height[$1] = $2 - y[$1] }
			END { for (x in height) if (height[x] < 100) bad = 1; exit bad || length(height) < 30 }'
	"$draw" 1 1 40000 "" bounded text >"$BATS_TEST_TMPDIR/text"
	cat "$BATS_TEST_TMPDIR/text"
	grep -E '^ +40\.0 s +2\.00 MiB -64\.0 MiB +[|]#-{40,}$' "$BATS_TEST_TMPDIR/text"
	awk 'length($0) > 80 { bad = 1 } END { exit bad }' "$BATS_TEST_TMPDIR/text"
}

@test "times and sizes without data take no room" {
	local svg=$BATS_TEST_TMPDIR/late.svg seen
	"$draw" 1 1 40000 "" late >"$svg"
	seen=$(look "$svg")
	echo "$seen"
	[[ $seen == curves* ]]
	lacks "$svg" '^tick: ((1|10|100) ms|[0-9.]+ KiB|4 GiB)$'
	says "$svg" 'tick: 307 ms' 'tick: 40 s'
	# The curve goes from edge to edge, including those of the axes.
	grep -o '<path class="curve s0"[^>]*' "$svg" | grep -oE '[ML][0-9.]+' | tr -d ML |
		awk 'NR == 1 { from = $1 } { to = $1 } END { exit !(from < 93 && to > 919) }'
}

@test "a short range has ticks, too" {
	local svg=$BATS_TEST_TMPDIR/short.svg seen
	"$draw" 1 30 300 >"$svg"
	seen=$(look "$svg")
	echo "$seen"
	[[ $seen == curves* ]]
	# A range without a decade, and without twice or five times one.
	"$draw" 1 210 400 >"$svg"
	"$WSS_SRCDIR/tests/tools/svg-check" "$svg" 800 light
	for tick in 250 300 350 400; do
		grep -q ">$tick ms<" "$svg"
	done
}

@test "wide letters and many figures stay inside the picture" {
	local svg=$BATS_TEST_TMPDIR/wide.svg width scheme
	while read -r width scheme; do
		"$draw" 6 1 40000 "$(printf 'W\303\234%.0s' {1..60})" >"$svg"
		"$WSS_SRCDIR/tests/tools/svg-check" "$svg" "$width" "$scheme" </dev/null
		"$draw" 1 1 40000 "$(printf 'M%.0s' {1..200})" >"$svg"
		"$WSS_SRCDIR/tests/tools/svg-check" "$svg" "$width" "$scheme" </dev/null
	done <<-'EOF'
		800 light
		1600 dark
	EOF
	"$draw" 16 1 40000 >"$svg"
	"$WSS_SRCDIR/tests/tools/svg-check" "$svg" 800 light
	says "$svg" 'legend: and 5 more'
}

@test "dark colours have enough contrast" {
	local svg=$BATS_TEST_TMPDIR/dark.svg seen
	"$draw" 8 1 10000 >"$svg"
	seen=$(look "$svg" --blink-settings=preferredColorScheme=0)
	echo "$seen"
	[[ $seen == curves* ]]
	[[ $seen == *"back rgb(22, 25, 29)" ]]
}

@test "the checker finds faults of a picture" {
	local svg=$BATS_TEST_TMPDIR/bad.svg seen
	"$draw" 1 1 40000 >"$svg"
	sed 's/>100 ms</>100</' "$svg" >"$svg.unit"
	seen=$(look "$svg.unit")
	[[ $seen == *"without a unit"* ]]
	sed 's/\(class="curve s0" d="\)M[0-9.]* [0-9.]*/\1M500.0 10.0/' "$svg" >"$svg.curve"
	seen=$(look "$svg.curve")
	[[ $seen == *"out of the axes"* ]]
	sed 's/<\/svg>//' "$svg" >"$svg.torn.svg"
	if opens "$svg.torn.svg"; then
		false
	fi
}
