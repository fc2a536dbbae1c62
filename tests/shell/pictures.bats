#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The pictures of recordings and of miss rates, as a browser shows them: small and large, light
# and dark.

load live-recording.sh

virt_wss=$WSS_BUILDDIR/virt-wss
mkrecording=$WSS_BUILDDIR/tests/tools/mkrecording
svg_check=$WSS_SRCDIR/tests/tools/svg-check

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Shows PICTURE in all ways; what it has is in PICTURE.has.
shown() { # PICTURE
	local width scheme
	for width in 800 1600; do
		for scheme in light dark; do
			echo "$1 at $width, $scheme:"
			"$svg_check" "$1" $width $scheme >"$1.has" || { cat "$1.has"; return 1; }
			grep -q "^size $width " "$1.has"
			cp "$1.has" "$1.$scheme"
		done
	done
	! diff <(grep '^back' "$1.light") <(grep '^back' "$1.dark")
}

has() { # PICTURE NAME LEAST
	local n
	n=$(sed -n "s/^$2 //p" "$1.has")
	echo "$1: $2 ${n:-0}"
	[ "${n:-0}" -ge "$3" ]
}

@test "the checker finds what is wrong" {
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

@test "report --plot: axes, legend, curves, gaps, marks that crowd" {
	"$mkrecording" r --phases 4096:5,16384:8,2048:7 --windows 60 --mark-every 2 --gap-every 9 \
		--domain 'a <guest> & "its" name that is much longer than what a picture has room for' >said
	"$virt_wss" report r --viewport 5s:20s --plot r.svg >table
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
	has r.svg rect.view 1
	has r.svg line.reference 30
	# Curves stay inside of the axes.
	grep -oE 'class="curve [^>]*' r.svg | grep -oE '[ML][0-9.]+ [0-9.]+' | tr -d ML |
		awk '$1 < 92 || $1 > 936 || $2 < 92 || $2 > 452 { bad = 1 } END { exit bad || NR < 20 }'
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

@test "names of any letters, marks behind the end" {
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
	# One second is recorded; read while it goes on, the marks are behind that.
	wait_until 20 marked_late "$(printf 'W%.0s' {1..255})"
	"$virt_wss" mark live "$(printf '日%.0s' {1..85})"
	"$virt_wss" report live --plot r.svg >table
	exec 4>&-
	wait
	shown r.svg
	grep -q '>1: .*W\.\.\.<' r.svg
	# None of the lines is right of the axes.
	sed -nE 's/.*<line class="reference" x1="([0-9.]+)".*/\1/p' r.svg |
		awk '$1 > 936.1 { bad = 1 } END { exit bad }'
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
}

@test "heatmap --plot: holes are named" {
	"$mkrecording" r --ram $((8 << 30)) --device $((1 << 30)) --phases 400000:20 --runs 300 >said
	"$virt_wss" heatmap r --plot h.svg
	shown h.svg
	[ "$(grep -c 'no memory for 1 GiB' h.svg)" = 2 ]
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

@test "recommend --plot: many guests, and names that are wide" {
	local i name uuid
	echo '<node>' >node.xml
	for ((i = 1; i <= 14; i++)); do
		name=$i$(printf 'W%.0s' {1..80})
		uuid=11111111-2222-3333-4444-$(printf '%012d' $i)
		printf '%s' "<domain type='test'><name>$name</name><uuid>$uuid</uuid><memory unit='GiB'>4" \
			"</memory><os><type>hvm</type></os></domain>" >$i.xml
		echo "<domain file='$PWD/$i.xml'/>" >>node.xml
		"$WSS_BUILDDIR/tests/unit/make-history" history.db 12 $((i * 300 << 20)) 300 "$uuid"
	done
	echo '</node>' >>node.xml
	"$virt_wss" -c "test://$PWD/node.xml" recommend --history history.db --plot m.svg >table
	shown m.svg
	has m.svg text.legend 12
	has m.svg line.reference 1
	grep -q '>and 3 more<' m.svg
	[ "$(grep -c 'W\.\.\. (recommended' m.svg)" = 11 ]
}
