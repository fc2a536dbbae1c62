#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Follows the calls of a round that measures, stores and publishes: they go down through the
# rooms and return. The program is built by clang so that its functions report each call to
# tests/tools/walk.c. The compiler refuses includes that climb; this test also finds function
# pointers that do.

load functions.sh
load ../shell/folders.sh

setup_file() {
	root_setup_file addr2line
	[ -z "$root_missing" ] || return 0
	nm "$WSS_BUILDDIR/clang/virt-wss" 2>/dev/null | grep -q ' U __cyg_profile_func_enter' ||
		root_missing="needs clang/virt-wss, built with -finstrument-functions"
	[ -z "$root_missing" ] || return 0
	embed_guest_start web1 args="wss.map=64 wss.touch=32 wss.rate=200000" define=1
	embed_guest_wait_ready web1
}

teardown_file() {
	root_teardown_file
}

setup() {
	root_setup
	virt_wss=$WSS_BUILDDIR/clang/virt-wss
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
}

# Prints "BOTTOM CALLER FUNCTION CALLS" for each pair of functions, by address.
edges() {
	od -A n -v -w32 -t u8 "$BATS_TEST_TMPDIR/walk" | awk '$4 > 0'
}

# Prints "ADDRESS FUNCTION ROOM" for each function.
names() {
	edges | awk '{ print $1; print $2; print $3 }' | sort -u | grep -vx 0 >"$BATS_TEST_TMPDIR/addresses"
	awk '{ printf "0x%x\n", $1 }' "$BATS_TEST_TMPDIR/addresses" | addr2line -f -e "$virt_wss" | paste - - |
		sed -E 's#\t.*/rooms/[a-z]+/qmp/[^/]+$# qmp#; s#\t.*/rooms/[a-z]+/([a-z]+)/[^/]+$# src/\1#; s#\t.*/(src|src/[a-z]+|qmp)/[^/]+$# \1#' | paste -d ' ' "$BATS_TEST_TMPDIR/addresses" -
}

# Prints "THREAD CALLER CALLER'S-ROOM FUNCTION FUNCTION'S-ROOM CALLS"; the thread is named
# after its first function.
calls() {
	names >"$BATS_TEST_TMPDIR/names"
	edges | awk 'NR == FNR { name[$1] = $2; folder[$1] = $3; next }
		$2 in name { print name[$1], name[$2], folder[$2], name[$3], folder[$3], $4 }
		' "$BATS_TEST_TMPDIR/names" -
}

# Prints those calls that go to a room which the caller's room may not use.
climbs() { # CALLS
	local folder
	for folder in $(cd "$WSS_SRCDIR" && folders); do
		echo "$folder $(allowed "$folder")"
	done | awk 'NR == FNR { for (i = 2; i <= NF; i++) may[$1 " " $i]; next }
		$3 == "src" { next }
		{ to = $5; sub(/^src\//, "", to) }
		!(($3 " " to) in may)' - "$1"
}

@test "a round calls down through the rooms, and climbs only to report to its caller" {
	truncate -s 2M "$BATS_TEST_TMPDIR/walk"
	WSS_WALK=$BATS_TEST_TMPDIR/walk LD_PRELOAD=$WSS_BUILDDIR/tests/tools/walk.so \
		wss sample --all --store --publish --window 2s --count 2
	[ "$status" = 0 ]
	calls >"$BATS_TEST_TMPDIR/calls"
	# The whole way was seen: each room that a sample passes, in the threads that measure and in main.
	for pair in 'src/measure src/host' 'src/host src/base' 'src/measure src/base'; do
		grep -qE "^thread_run [^ ]+ ${pair% *} [^ ]+ ${pair#* } " "$BATS_TEST_TMPDIR/calls"
	done
	for pair in 'src/cmd src/measure' 'src/cmd src/history' 'src/history src/base' 'src/cmd src/sizing'; do
		grep -qE "^main [^ ]+ ${pair% *} [^ ]+ ${pair#* } " "$BATS_TEST_TMPDIR/calls"
	done
	# Every function has a room.
	run awk 'NF != 6 || $3 !~ /^(src|qmp)/ || $5 !~ /^(src|qmp)/' "$BATS_TEST_TMPDIR/calls"
	echo "$output"
	[ -z "$output" ]
	climbs "$BATS_TEST_TMPDIR/calls" >"$BATS_TEST_TMPDIR/climbs"
	# A thread begins in base/, and so does each piece of work of a worker. The main thread reports to the
	# caller through the round's events, and a report asks the functions of its columns.
	run grep -vE '^[^ ]+ (thread_run|runner_work) src/base |^main (round_(tell_[a-z]+|remove)|entry_[a-z]+) src/measure sample_on_[a-z_]+ src/cmd |^main wss_column_value src/show sample_get_[a-z_]+ src/history ' \
		"$BATS_TEST_TMPDIR/climbs"
	echo "$output"
	[ -z "$output" ]
	grep -q ' sample_on_sample src/cmd ' "$BATS_TEST_TMPDIR/climbs"
	awk '{ n[$1] += $6 } END { printf "# %d calls in threads, %d in main\n", n["thread_run"], n["main"] }' \
		"$BATS_TEST_TMPDIR/calls" >&3
}
