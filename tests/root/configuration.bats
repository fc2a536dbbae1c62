#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests on a real QEMU what methods --config says: the command takes effect at once, QEMU starts with the element,
# and then nothing is left to change.

load functions.sh

# Replaces the guest's balloon in its definition, and starts it.
start_with_balloon() { # MEMBALLOON
	embed_virsh dumpxml plain --inactive | element=$1 perl -0pe \
		's|<memballoon[^>]*/>\n|$ENV{element}\n| or s|<memballoon.*</memballoon>|$ENV{element}|s' >"$embed_root/plain.new.xml"
	embed_virsh define "$embed_root/plain.new.xml" >/dev/null
	embed_virsh start plain >/dev/null
	embed_guest_wait_ready plain 180
}

setup_file() {
	root_setup_file
	[ -z "$root_missing" ] || return 0
	type=qemu memory=512 args=''
	embed_guest_start plain args="wss.map=64 wss.touch=32 wss.rate=20000" define=only
	start_with_balloon "<memballoon model='virtio'/>"
}

teardown_file() {
	root_teardown_file
}

settings() { # -> the guest's settings, one per line
	wss methods --config plain --output csv >&2
	field setting
}

is_off() {
	[ "$(embed_virsh domstate plain)" = "shut off" ]
}

gain_is_known() {
	wss methods --config plain --output csv
	[[ $(field gain_bytes | head -n 1) =~ ^[0-9]+$ ]]
}

@test "the command switches the statistics on, and the gain of free page reporting gets known" {
	[ "$(settings)" = $'no free page reporting\nno balloon statistics\nno autodeflate' ]
	wss methods --config plain --output csv
	read -r -a words <<<"$(field command | sed -n 2p)"
	[ "${words[0]}" = virsh ]
	embed_virsh "${words[@]:1}"
	[ "$(settings)" = $'no free page reporting\nno autodeflate' ]
	wait_until 60 gain_is_known
	wss methods --config plain --output csv
	[ "$(field gain_is_bound | head -n 1)" = 1 ]
	# Of 512 MiB it uses some, and has been given none of it that it did not touch.
	[ "$(field gain_bytes | head -n 1)" -gt 0 ]
	[ "$(field gain_bytes | head -n 1)" -lt $((512 << 20)) ]
}

@test "QEMU starts with the element, and then nothing is to be changed" {
	wss methods --config plain --output csv
	element=$(field element | head -n 1)
	# virsh may crash after it has succeeded, and then fails the second time.
	embed_virsh destroy plain >/dev/null || true
	wait_until 60 is_off
	start_with_balloon "$element"
	tr '\0' '\n' <"/proc/$(cat "$embed_root/run/qemu/plain.pid")/cmdline" | grep -E 'virtio-balloon.*"deflate-on-oom":true.*"free-page-reporting":true|free-page-reporting=on'
	wss methods --config plain --output csv
	[ -z "$(field setting)" ]
	[[ $out == *"nothing to change"* ]]
}
