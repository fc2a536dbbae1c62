#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What balloon says of real guests: one that may be shrunk, one whose statistics are off,
# one without a balloon. Then --apply on a guest that has a balloon and no driver for it, so
# that it never gives memory back.

load functions.sh

uuid_of() { # NAME
	embed_virsh domuuid "$1" | tr -d '[:space:]'
}

# A guest with a balloon device, for which it loads no driver.
start_with_balloon() { # NAME MEMBALLOON
	embed_guest_start "$1" args="wss.map=64 wss.touch=32 wss.balloon=0" define=only
	embed_virsh dumpxml "$1" --inactive | sed "s|<memballoon model='none'/>|$2|" \
		>"$embed_root/$1.new.xml"
	embed_virsh define "$embed_root/$1.new.xml" >/dev/null
	embed_virsh start "$1" >/dev/null
	embed_guest_wait_ready "$1"
}

setup_file() {
	root_setup_file
	export VIRT_WSS_HISTORY=$BATS_FILE_TMPDIR/history.db
	type=qemu memory=512 args=''
	embed_guest_start none args="wss.map=64 wss.touch=32"
	embed_guest_wait_ready none
	start_with_balloon auto "<memballoon model='virtio' autodeflate='on'/>"
	start_with_balloon plain "<memballoon model='virtio'/>"
}

teardown_file() {
	root_teardown_file
}

@test "too early without a history" {
	wss balloon auto --output csv
	[ "$status" = 0 ]
	[ "$(field action)" = refused ]
	[[ $(field reason) == *"too early"* ]]
}

@test "who may be shrunk, from what to what, and who may not" {
	for name in auto plain none; do
		"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 20 $((100 << 20)) 60 "$(uuid_of $name)"
	done
	before=$(embed_virsh dommemstat auto | grep actual)
	wss balloon --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = $'auto\nnone\nplain' ]
	[ "$(field action)" = $'shrink\nrefused\nrefused' ]
	[ "$(field from_bytes | head -n 1)" = $((512 << 20)) ]
	[ "$(field to_bytes | head -n 1)" = $((256 << 20)) ]
	[[ $(field reason) == *"no balloon device"*"no statistics"* ]]
	[[ $(field hint | tail -n 1) == "virsh dommemstat $(uuid_of plain) --period 5 --live" ]]
	[ "$(embed_virsh dommemstat auto | grep actual)" = "$before" ]
}

@test "a maximum is no leave to take what the guest needs" {
	history=$BATS_TEST_TMPDIR/grown.db
	for bytes in $((350 << 20)) $((100 << 20)); do
		"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $bytes 3 "$(uuid_of auto)"
	done
	wss policy set auto --maximum 300MiB
	wss balloon auto --output csv --history "$history"
	[ "$(field action)" = shrink ]
	[ "$(field to_bytes)" -ge $((420 << 20)) ]
	wss policy clear auto
}

# By the curve: the largest window is of 385 MiB.
@test "a set that still rises at the end of its windows leaves less to take" {
	history=$BATS_TEST_TMPDIR/rising.db
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((350 << 20)) 3 "$(uuid_of auto)"
	wss balloon auto --output csv --history "$history" --headroom 0
	[ "$(field to_bytes)" -lt $((390 << 20)) ]
	wss balloon auto --output csv --history "$history" --headroom 0 --target-loss 0.001 --fault-cost 10s
	[ "$(field action)" = shrink ]
	[ "$(field to_bytes)" -ge $((420 << 20)) ]
	[[ $(field reason) == *"miss-rate curve"* ]]
}

@test "a paused guest, and one that opted out" {
	embed_virsh suspend auto >/dev/null
	wss balloon auto --output csv
	[[ $(field reason) == *"not run"* ]]
	embed_virsh resume auto >/dev/null
	wss policy set auto --opt-out yes
	wss balloon auto
	[ "$status" = 5 ]
	wss policy clear auto
}

journal() { # SQL condition: how many steps
	sqlite3 "$VIRT_WSS_HISTORY" "PRAGMA busy_timeout = 10000; SELECT count(*) FROM balloon WHERE $1" | tail -n 1
}

has_steps() {
	[ "$(journal "$1")" -gt 0 ]
}

none_left() {
	[ "$(journal 'done = 0')" = 0 ]
}

# Windows of the very kind that --apply takes, so that its own go on with them.
fresh_history() {
	rm -f "$VIRT_WSS_HISTORY"*
	wss sample auto --store --window 300ms --count 15
	[ "$status" = 0 ]
}

@test "a guest that never gives memory back gets all of it back, and is left alone" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	fresh_history
	status=0
	timeout -k 5 90 "$virt_wss" balloon auto --apply --period 2s --window 300ms \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 1 ]
	grep -q 'auto: shrinks to 48[0-9] MiB' "$BATS_TEST_TMPDIR/err"
	grep -q 'does not give memory back' "$BATS_TEST_TMPDIR/err"
	has_steps 'done = 1'
	none_left
	embed_guest_alive auto
}

@test "a guest that is refused is not touched by --apply" {
	wss balloon none plain --apply --period 2s --window 300ms
	[ "$status" = 5 ]
	[[ $err == *"no balloon device"* && $err == *"no statistics"* || $err == *"too early"* ]]
}

@test "stopped, it gives back what it took" {
	fresh_history
	"$virt_wss" balloon auto --apply --period 2s --window 300ms 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 30 has_steps 'done = 0'
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 143 ]
	none_left
	grep -q 'auto: gives back to 512 MiB' "$BATS_TEST_TMPDIR/err"
}

@test "killed, its watchdog gives back what it took" {
	fresh_history
	"$virt_wss" balloon auto --apply --period 2s --window 300ms 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 30 has_steps 'done = 0'
	kill -KILL $pid
	wait $pid || true
	wait_until 60 none_left
	cat "$BATS_TEST_TMPDIR/err"
	grep -q 'auto: given back to 512 MiB' "$BATS_TEST_TMPDIR/err"
	embed_guest_alive auto
}

@test "unfinished steps: refused until they are given back" {
	fresh_history
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason)
		VALUES ('$(uuid_of auto)', 'auto', 1, $((512 << 20)), $((512 << 20)), $((400 << 20)), 'test'),
		('a1b2c3d4-0000-4000-8000-00000000aaaa', 'gone', 1, 5, 5, 4, 'test')"
	# Through another connection, to which its UUID means nothing, none of it is done.
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET uri = 'qemu:///embed?root=/elsewhere' WHERE name = 'gone'"
	wss balloon gone --restore
	[ "$status" = 1 ]
	[[ $err == *"gone: not known here: its memory was taken through 'qemu:///embed?root=/elsewhere'"* ]]
	[ "$(journal 'done = 0')" = 2 ]
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET uri = NULL WHERE name = 'gone'"
	# It had more than it could have now.
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET original_bytes = $((600 << 20)) WHERE name = 'auto'"
	wss balloon auto --apply --period 2s --window 300ms
	[ "$status" = 1 ]
	[[ $err == *"unfinished steps"* ]]
	wss balloon --restore
	[ "$status" = 0 ]
	none_left
}
