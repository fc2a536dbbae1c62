#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What balloon says of real guests: one that may be shrunk, one whose statistics are off,
# one without a balloon. It changes none of them.

load functions.sh

uuid_of() { # NAME
	embed_virsh domuuid "$1" | tr -d '[:space:]'
}

# A guest with a balloon device, whose driver the test guest need not have.
start_with_balloon() { # NAME MEMBALLOON
	embed_guest_start "$1" args="wss.map=64 wss.touch=32" define=only
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
