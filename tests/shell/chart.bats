#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The picture of the growth curve, as a browser shows it: chart.js looks at its axes, its
# curves and its texts there.

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	export HOME=$BATS_TEST_TMPDIR
	draw=$WSS_BUILDDIR/tests/unit/draw-chart
}

browse() { # OPTION... URL: what is then in the page; 0=dark, 1=light
	timeout -k 5 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--no-first-run --user-data-dir="$BATS_TEST_TMPDIR/profile" "$@" 2>"$BATS_TEST_TMPDIR/browser"
}

# What chart.js says of the picture.
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

# The page of the picture alone: a browser puts its complaints into it.
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
	# The third one's sizes are not known.
	[[ $seen == "curves 5; references 8; back rgb(255, 255, 255)" ]]
}

@test "a short range has ticks, too" {
	local svg=$BATS_TEST_TMPDIR/short.svg seen
	"$draw" 1 30 300 >"$svg"
	seen=$(look "$svg")
	echo "$seen"
	[[ $seen == curves* ]]
	# In which there is no decade, nor twice or five times one.
	"$draw" 1 210 400 >"$svg"
	"$WSS_SRCDIR/tests/tools/svg-check" "$svg" 800 light
	for tick in 250 300 350 400; do
		grep -q ">$tick ms<" "$svg"
	done
}

@test "wide letters and many figures stay in the picture" {
	local svg=$BATS_TEST_TMPDIR/wide.svg width scheme
	for width in 800 1600; do
		for scheme in light dark; do
			"$draw" 6 1 40000 "$(printf 'W\303\234%.0s' {1..60})" >"$svg"
			"$WSS_SRCDIR/tests/tools/svg-check" "$svg" $width $scheme
			"$draw" 1 1 40000 "$(printf 'M%.0s' {1..200})" >"$svg"
			"$WSS_SRCDIR/tests/tools/svg-check" "$svg" $width $scheme
		done
	done
}

@test "dark" {
	local svg=$BATS_TEST_TMPDIR/dark.svg seen
	"$draw" 8 1 10000 >"$svg"
	seen=$(look "$svg" --blink-settings=preferredColorScheme=0)
	echo "$seen"
	[[ $seen == curves* ]]
	[[ $seen == *"back rgb(22, 25, 29)" ]]
}

@test "what looks at the picture finds what is wrong with it" {
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
