#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the periodic round on a real guest, its history on disks that fill up or cannot
# be written, and a round that is killed.

load functions.sh

setup_file() {
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	embed_guest_start web1 args="wss.map=64 wss.touch=32 wss.rate=200000" define=1
	embed_guest_wait_ready web1
	embed_guest_wait_state web1 touching
}

teardown_file() {
	root_teardown_file
}

setup() {
	root_setup
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
}

teardown() {
	! mountpoint -q "$BATS_TEST_TMPDIR/disk" || umount "$BATS_TEST_TMPDIR/disk"
}

disk() { # SIZE: a tmpfs of that size -> VIRT_WSS_HISTORY on it
	mkdir -p "$BATS_TEST_TMPDIR/disk"
	mount -t tmpfs -o "size=$1,mode=755" none "$BATS_TEST_TMPDIR/disk" || skip "cannot mount a tmpfs"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/disk/history.db
}

stored() { # samples in the history
	sqlite3 -readonly "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM sample'
}

intact() {
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'PRAGMA integrity_check')" = ok ]
}

# On a busy machine a window may fail or be degraded, which does not count as a sample. -> good: those that are not
round_is_good() {
	rm -f "$VIRT_WSS_HISTORY"*
	wss sample --all --store --publish --persistent --window 600ms --count 20 --output csv
	good=$(field quality | grep -cx ok)
	[ "$status" = 0 ] && [ "$good" -ge 10 ]
}

@test "a round stores and publishes, with --persistent also in the configuration" {
	wait_until 60 round_is_good
	[ "$(stored)" = 20 ]
	intact
	wss list web1 --output csv
	[ "$(field samples)" = "$good" ]
	[ "$(field confidence)" = low ]
	[ "$(field p50_bytes)" -gt $((32 << 20)) ]
	[ "$(field peak_bytes)" -ge "$(field p95_bytes)" ]
	embed_virsh metadata web1 --uri urn:virt-wss:profile:1 --config | grep -q '<peak unit'
}

@test "windows with expensive reading also show growth, and a user is shown the next step" {
	wss sample web1 --method refs --store --window 1s --count 12 --interval 1s --output csv
	[ "$status" = 0 ]
	[ "$(field method | sort -u)" = refs ]
	wss recommend web1 --minimum 1MiB --output csv
	# 32 MiB in a short loop, and the activity of its kernel. It has no balloon that could say what else it holds.
	[ "$(field status)" = "no size" ]
	[ "$(field need_bytes)" -gt $((32 << 20)) ]
	[ -z "$(field grown_bytes)" ]
	script -qec "$(printf '%q ' "$virt_wss" sample web1 --store --window 1s)" /dev/null \
		</dev/null >"$BATS_TEST_TMPDIR/terminal"
	cat "$BATS_TEST_TMPDIR/terminal"
	grep -E '^virt-wss: web1: no size: its working set of 3[0-9.]+ MiB asks for [34][0-9.]+ MiB with headroom, but' \
		"$BATS_TEST_TMPDIR/terminal"
}

@test "a profile that has just been published is not written again" {
	wss sample web1 --publish --window 1s
	before=$(embed_virsh metadata web1 --uri urn:virt-wss:profile:1)
	wss sample --all --store --publish --window 1s
	[ "$status" = 0 ]
	[ "$(embed_virsh metadata web1 --uri urn:virt-wss:profile:1)" = "$before" ]
	wss sample web1 --publish --window 1s
	[ "$(embed_virsh metadata web1 --uri urn:virt-wss:profile:1)" != "$before" ]
}

@test "the policy's period is obeyed" {
	wss policy set web1 --period 1h
	wss sample --all --store --window 1s
	[ "$(stored)" = 1 ]
	wss sample --all --store --window 1s
	[ "$status" = 0 ]
	[ "$(stored)" = 1 ]
	# A guest that is named is measured.
	wss sample web1 --store --window 1s
	[ "$(stored)" = 2 ]
	wss policy set web1 --period none
	embed_virsh dumpxml web1 --inactive | grep -c 'urn:virt-wss:policy' | grep -qx 0
}

@test "a full disk loses the sample, never the file" {
	disk 300k
	full=0
	for ((i = 0; i < 40 && full < 3; i++)); do
		wss sample web1 --store --window 200ms --max-stall 30s --count 20 --output csv
		[ "$status" = 0 ] || { full=$((full + 1)); [ "$status" = 1 ]; [[ $err == *'No space left on device'* ]]; }
		intact
	done
	[ "$full" = 3 ]
	before=$(stored)
	[ "$before" -gt 0 ]
	# It continues when there is room again.
	mount -o remount,size=10m "$BATS_TEST_TMPDIR/disk"
	wss sample web1 --store --window 2s
	[ "$status" = 0 ]
	[ "$(stored)" = $((before + 1)) ]
	intact
}

@test "a disk without any room gives one clear line" {
	disk 16k
	head -c 12k /dev/zero >"$BATS_TEST_TMPDIR/disk/fill" || true
	wss sample web1 --store --window 2s
	[ "$status" = 1 ]
	one_line_error 'history.*No space left on device'
}

@test "a history on a full disk can be read, and what balloons took is given back" {
	disk 10m
	wss sample web1 --store --window 1s --count 12
	[ "$status" = 0 ]
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon
		(uuid, name, time, original_bytes, from_bytes, to_bytes, reason)
		VALUES ('a1b2c3d4-0000-4000-8000-00000000aaaa', 'gone', 1, 5, 5, 4, 'test')"
	# sqlite3 has removed the log and its index, and there is no room to create new ones.
	[ ! -e "$VIRT_WSS_HISTORY-shm" ]
	mount -o "remount,size=$(du -sk "$BATS_TEST_TMPDIR/disk" | cut -f1)k" "$BATS_TEST_TMPDIR/disk"
	wss sample web1 --store --window 2s
	[ "$status" = 1 ]
	one_line_error 'history'
	wss recommend web1 --output csv
	[ "$status" = 0 ]
	[ "$(field samples)" = 12 ]
	wss balloon --restore
	[[ $err != *"cannot open"* && $err != *"I/O"* ]]
	mount -o remount,size=10m "$BATS_TEST_TMPDIR/disk"
	intact
}

@test "a history on a read-only disk can be read, and the error says that it cannot be written" {
	disk 10m
	wss sample web1 --store --window 2s
	mount -o remount,ro "$BATS_TEST_TMPDIR/disk"
	wss sample web1 --store --window 2s
	[ "$status" = 1 ]
	one_line_error 'history.*(read-only|Read-only)'
	[ "$(stored)" = 1 ]
}

@test "the host's memory is its kernel's total, hot-plugged memory included" {
	local meminfo=$BATS_TEST_TMPDIR/meminfo
	# A total that differs from the sum over the NUMA nodes' files.
	sed 's/^MemTotal:.*/MemTotal:       9437184 kB/' /proc/meminfo >"$meminfo"
	# shellcheck disable=SC2016
	wss_as=(unshare -m sh -c 'mount --bind "$0" /proc/meminfo && exec "$@"' "$meminfo")
	wss recommend --output json
	wss_as=()
	[ "$status" = 0 ]
	grep -q '"host_bytes": 9663676416,' <<<"$out"
}

@test "killed at any moment: the history is intact, and the guest runs" {
	RANDOM=$BATS_TEST_NUMBER
	for ((i = 0; i < 15; i++)); do
		"$virt_wss" sample web1 --store --publish --window 20ms --count 30 >/dev/null 2>&1 3>&- &
		pid=$!
		sleep "0.$((RANDOM % 9))"
		kill -KILL $pid 2>/dev/null || true
		wait $pid || true
		[ ! -s "$VIRT_WSS_HISTORY" ] || intact
	done
	embed_guest_alive web1
	wss sample web1 --store --window 2s
	[ "$status" = 0 ]
	[ "$(stored)" -ge 1 ]
}
