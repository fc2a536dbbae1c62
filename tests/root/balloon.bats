#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon on real guests: one that may be shrunk, one without statistics, one without a
# loaded driver, one from which the host would reclaim nothing, one without a balloon. Then
# --apply, also on a guest that has nothing to give.

load functions.sh

uuid_of() { # NAME
	embed_virsh domuuid "$1" | tr -d '[:space:]'
}

cold="wss.map=128 wss.touch=32 wss.rate=20000 wss.cold=310"

# Starts a guest with a balloon device and its driver.
start_with_balloon() { # NAME MEMBALLOON KERNEL-ARGUMENTS
	local devices="$2<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
	devices+="<source file='$embed_root/disk.img'/><target dev='vda' bus='virtio'/><readonly/></disk>"
	truncate -s 350M "$embed_root/disk.img"
	embed_guest_start "$1" args="$3" define=only
	embed_virsh dumpxml "$1" --inactive | sed "s|<memballoon model='none'/>|$devices|" \
		>"$embed_root/$1.new.xml"
	embed_virsh define "$embed_root/$1.new.xml" >/dev/null
	embed_virsh start "$1" >/dev/null
	embed_guest_wait_ready "$1" 180 || { tail -n 5 "$(embed_console "$1")"; return 1; }
}

setup_file() {
	root_setup_file
	[ -z "$root_missing" ] || return 0
	export VIRT_WSS_HISTORY=$BATS_FILE_TMPDIR/history.db
	type=qemu memory=512 args=''
	start_with_balloon plain "<memballoon model='virtio'/>" "wss.map=64 wss.touch=32 wss.rate=20000"
	start_with_balloon auto "<memballoon model='virtio' autodeflate='on'/>" "$cold"
	start_with_balloon driverless \
		"<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>" \
		"wss.map=64 wss.touch=32 wss.rate=20000 wss.balloon=0"
	start_with_balloon empty \
		"<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>" \
		"wss.map=64 wss.touch=32 wss.rate=20000"
	embed_guest_start none args="wss.map=64 wss.touch=32 wss.rate=20000"
	embed_guest_wait_ready none 180
}

teardown_file() {
	root_teardown_file
}

@test "it is too early without a history" {
	wss balloon auto --output csv
	[ "$status" = 5 ]
	[ "$(field action)" = refused ]
	[[ $(field reason) == *"too early"* ]]
}

refused_for() { # NAME REASON
	wss balloon "$1" --output csv
	[[ $(field action) == refused && $(field reason) == *"$2"* ]]
}

# Statistics alone would not lift it.
@test "a refusal for want of new windows gives no hint about statistics" {
	history=$BATS_TEST_TMPDIR/old.db
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 5 $((100 << 20)) 60 "$(uuid_of plain)"
	wss balloon plain --output csv --history "$history"
	[[ $(field reason) == *"too early"* ]]
	[ -z "$(field hint)" ]
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((100 << 20)) 60 "$(uuid_of plain)"
	sqlite3 "$history" 'UPDATE sample SET time = time - 3000'
	wss balloon plain --history "$history"
	[[ $out == *"last measured"*" ago"* ]]
	[[ $err != *dommemstat* ]]
}

# The driver of plain has reported once, when it was loaded.
@test "the table shows which guests may be shrunk, to which size, and why others may not" {
	for name in auto plain none; do
		"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 20 $((100 << 20)) 60 "$(uuid_of $name)"
	done
	wait_until 90 refused_for plain "no balloon statistics"
	before=$(embed_virsh dommemstat auto | grep actual)
	wss balloon auto none plain --output csv
	[ "$status" = 3 ]
	[ "$(field domain)" = $'auto\nnone\nplain' ]
	[ "$(field action)" = $'shrink\nrefused\nrefused' ]
	[ "$(field from_bytes | head -n 1)" = $((512 << 20)) ]
	[ "$(field to_bytes | head -n 1)" = $((256 << 20)) ]
	[ "$(field host_gain_bytes | head -n 1)" -gt $((128 << 20)) ]
	[[ $(field reason) == *"no balloon device"* ]]
	[[ $(field hint | tail -n 1) == "virsh dommemstat $(uuid_of plain) --period 5 --live" ]]
	[ "$(embed_virsh dommemstat auto | grep actual)" = "$before" ]
	wss balloon plain
	[[ $err == *"plain: to allow this, run: virsh dommemstat"* ]]
	# Only on a terminal does it add the next step.
	wss balloon auto
	[ -z "$err" ]
	script -qec "$(printf '%q ' "$virt_wss" balloon auto)" /dev/null </dev/null >"$BATS_TEST_TMPDIR/terminal"
	cat "$BATS_TEST_TMPDIR/terminal"
	grep -Eq '^virt-wss: auto: --apply would shrink it from 512 MiB to 256 MiB and free [0-9.]+ MiB on the host' \
		"$BATS_TEST_TMPDIR/terminal"
}

@test "a guest without its driver does not answer, and no shrink is offered" {
	history=$BATS_TEST_TMPDIR/driverless.db
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((100 << 20)) 60 "$(uuid_of driverless)"
	wss balloon driverless --output csv --history "$history"
	[ "$(field action)" = refused ]
	[[ $(field reason) == "driver does not answer" ]]
	[ -z "$(field to_bytes)" ]
	[[ $(field hint) == *driver* ]]
	wss balloon driverless --history "$history"
	[[ $err$out != *"statistics"* ]]
	wss balloon driverless --apply --period 2s --window 300ms --max-stall 5s --history "$history"
	[ "$status" = 5 ]
	[[ $err == *"does not answer"* ]]
}

# Its driver is not asked for, as it would not help.
@test "a guest from which the host would reclaim nothing gets no hint" {
	: >"$BATS_TEST_TMPDIR/options"
	embed_guest_start hidden args="wss.map=64 wss.touch=32 wss.rate=20000 wss.balloon=0" define=only
	embed_virsh dumpxml hidden --inactive | sed -e "s|<memballoon model='none'/>|<memballoon model='virtio'/>|" \
		-e "s|</devices>|&<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'>\
<arg value='-readconfig'/><arg value='$BATS_TEST_TMPDIR/options'/></commandline>|" >"$BATS_TEST_TMPDIR/hidden.xml"
	embed_virsh define "$BATS_TEST_TMPDIR/hidden.xml" >/dev/null
	embed_virsh start hidden >/dev/null
	wss balloon hidden --output csv
	embed_guest_alive hidden
	[ "$(field action)" = refused ]
	[[ $(field reason) == *"may be encrypted, so pinned"* ]]
	[ -z "$(field hint)" ]
}

# Its QEMU has an option that is then taken out of libvirt's state, as if it had never known.
@test "memory that was locked behind libvirt's back is seen by recommend as by balloon" {
	history=$BATS_TEST_TMPDIR/locked.db
	embed_guest_start locked args="wss.map=64 wss.touch=32 wss.rate=20000" define=only
	embed_virsh dumpxml locked --inactive | sed -e "s|<memballoon model='none'/>|<memballoon model='virtio'/>|" \
		-e "s|</devices>|&<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'>\
<arg value='-overcommit'/><arg value='mem-lock=on'/></commandline>|" >"$BATS_TEST_TMPDIR/locked.xml"
	embed_virsh define "$BATS_TEST_TMPDIR/locked.xml" >/dev/null
	# Otherwise its limit is that of this shell.
	echo 'clear_emulator_capabilities = 0' >>"$embed_root/etc/qemu.conf"
	embed_virsh start locked >/dev/null
	sed -i /clear_emulator_capabilities/d "$embed_root/etc/qemu.conf"
	embed_guest_wait_ready locked 180 || { tail -n 5 "$(embed_console locked)"; return 1; }
	sed -i "/<qemu:arg value='-overcommit'/d; /<qemu:arg value='mem-lock=on'/d" "$embed_root/run/qemu/locked.xml"
	refute grep -q mem-lock <(embed_virsh dumpxml locked)
	grep VmLck "/proc/$(embed_guest_pid locked)/status"
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((32 << 20)) 60 "$(uuid_of locked)"
	wss balloon locked --output csv --history "$history"
	[[ $(field action) == refused && $(field reason) == *"locked"* ]]
	wss recommend locked --output json --history "$history"
	[ "$status" = 0 ]
	[[ $out == *'"locked memory"'* ]]
	wss recommend locked --output csv --history "$history"
	[ "$(field reclaimable_bytes)" = 0 ]
	wss recommend locked --history "$history"
	[[ $out$err == *"its memory cannot be reclaimed: locked memory"* ]]
	kill "$(embed_guest_pid locked)"
}

@test "a guest that has not touched its memory is not shrunk without a gain" {
	history=$BATS_TEST_TMPDIR/empty.db
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((100 << 20)) 60 "$(uuid_of empty)"
	wss balloon empty --output csv --history "$history"
	[ "$status" = 0 ]
	[ "$(field action)" = none ]
	[ "$(field reason)" = "would free under 25.6 MiB" ]
	[ "$(field host_gain_bytes)" -lt $((26 << 20)) ]
	[ -z "$(field to_bytes)" ]
	"$virt_wss" balloon empty --apply --period 2s --window 300ms --max-stall 5s \
		--history "$history" --debug 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 60 grep -q 'empty: the host would reclaim too little' "$BATS_TEST_TMPDIR/err"
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 143 ]
	grep -q 'empty: would free .*; the minimum is 25.6 MiB' "$BATS_TEST_TMPDIR/err"
	refute grep -q 'empty: balloon .* -> ' "$BATS_TEST_TMPDIR/err"
}

# The driver has reported once, when it was loaded, which counts for a minute.
says_nothing() { # NAME
	local update
	update=$(embed_virsh dommemstat "$1" | awk '$1 == "last_update" { print $2 }')
	[ $(($(date +%s) - ${update:-0})) -gt 61 ]
}

@test "a policy's maximum does not take away memory that the guest needs" {
	wait_until 90 says_nothing auto
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

# According to the curve: the largest window has 385 MiB.
@test "a set that still grows at the end of its windows leaves less to take" {
	wait_until 90 says_nothing auto
	history=$BATS_TEST_TMPDIR/rising.db
	"$WSS_BUILDDIR/tests/unit/make-history" "$history" 20 $((350 << 20)) 3 "$(uuid_of auto)"
	wss balloon auto --output csv --history "$history" --headroom 0
	[ "$(field to_bytes)" -lt $((390 << 20)) ]
}

@test "a paused guest and one that opted out are refused" {
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

# Stores windows of the same kind as those that --apply takes, so that its own windows
# continue the series.
fresh_history() { # NAME
	rm -f "$VIRT_WSS_HISTORY"*
	wait_until 60 wss_store --window 300ms --max-stall 5s "$1"
}

offered() { # NAME
	wss balloon "$1" --output csv
	[ "$(field action)" = shrink ]
}

# Most of its memory is written and idle, which nobody can know without statistics.
@test "a guest that never gives memory up gets all of it back, and is left alone" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	start_with_balloon full "<memballoon model='virtio' autodeflate='on'/>" "wss.map=380 wss.touch=32 wss.rate=20000"
	fresh_history full
	wait_until 90 offered full
	status=0
	timeout -k 5 600 "$virt_wss" balloon full --apply --pause 1s --period 2s --window 300ms --max-stall 5s \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 1 ]
	grep -q 'full: balloon 512 MiB -> 48[0-9] MiB' "$BATS_TEST_TMPDIR/err"
	grep -q 'does not release memory' "$BATS_TEST_TMPDIR/err"
	has_steps 'done = 1'
	none_left
	embed_guest_alive full
}

@test "--apply does not touch a guest that is refused" {
	wss balloon none plain --apply --period 2s --window 300ms --max-stall 5s
	[ "$status" = 5 ]
	[[ $err == *"no balloon device"* && $err == *"no balloon statistics"* || $err == *"too early"* ]]
}

@test "--apply gives back what it took when it is stopped" {
	fresh_history auto
	"$virt_wss" balloon auto --apply --period 2s --window 300ms --max-stall 5s 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 30 has_steps 'done = 0'
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 143 ]
	none_left
	grep -q 'auto: restored to 512 MiB' "$BATS_TEST_TMPDIR/err"
}

@test "the watchdog gives back what --apply took when that is killed" {
	fresh_history auto
	"$virt_wss" balloon auto --apply --period 2s --window 300ms --max-stall 5s 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 30 has_steps 'done = 0'
	kill -KILL $pid
	wait $pid || true
	wait_until 60 none_left
	cat "$BATS_TEST_TMPDIR/err"
	grep -q 'auto: restored to 512 MiB' "$BATS_TEST_TMPDIR/err"
	embed_guest_alive auto
}

@test "a guest with unfinished steps is refused until they are restored" {
	fresh_history auto
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason)
		VALUES ('$(uuid_of auto)', 'auto', 1, $((512 << 20)), $((512 << 20)), $((400 << 20)), 'test'),
		('a1b2c3d4-0000-4000-8000-00000000aaaa', 'gone', 1, 5, 5, 4, 'test')"
	# Through another connection, which does not know its UUID, nothing is restored.
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET uri = 'qemu:///embed?root=/elsewhere' WHERE name = 'gone'"
	wss balloon gone --restore
	[ "$status" = 1 ]
	[[ $err == *"gone: not known here: its balloon was set through 'qemu:///embed?root=/elsewhere', so restore it there"* ]]
	[ "$(journal 'done = 0')" = 2 ]
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET uri = NULL WHERE name = 'gone'"
	# Its old size was larger than it can have now.
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET original_bytes = $((600 << 20)) WHERE name = 'auto'"
	wss balloon auto --output csv
	[ "$status" = 5 ]
	[ "$(field action)" = refused ]
	[ "$(field hint)" = "virt-wss balloon --restore auto" ]
	wss balloon auto --apply --period 2s --window 300ms --max-stall 5s
	[ "$status" = 5 ]
	[[ $err == *"auto: refused: $(field reason)"* ]]
	wss balloon --restore
	[ "$status" = 3 ]
	[[ $err == *"gone: libvirt does not know it now"* ]]
	[ "$(journal 'done = 0')" = 1 ]
	wss balloon --forget gone
	[ "$status" = 0 ]
	none_left
}
