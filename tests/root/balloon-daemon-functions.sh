# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of balloon --apply on a guest of libvirtd, web1, after the other functions.
# shellcheck disable=SC2034,SC2154

setup_file() {
	root_setup_file sqlite3 libvirtd
	[ -z "$root_missing" ] || return 0
	daemon_new
	# Memory that the guest has touched and freed: when it gives that up, the host gets it.
	local args='wss.map=380 wss.lazy=1 wss.rate=200000 wss.phases=380:0 wss.control=ttyS1'
	mkfifo -m 666 "$dir/control".{in,out}
	embed_guest_dir=$dir type=qemu memory=$assigned args="$args" \
		embed_guest_xml web1 | sed "s|$embed_root/web1.console|$dir/console|
		s|<memballoon model='none'/>|<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>\
			<serial type='pipe'><source path='$dir/control'/><target port='1'/></serial>|" \
		>"$dir/web1.xml"
	as_nobody virsh -q -c qemu:///session define "$dir/web1.xml"
	ln -s "$dir/console" "$(embed_console web1)"
	ln -s "$dir/control.in" "$embed_root/web1.control.in"
	as_nobody virsh -q -c qemu:///session start web1
	embed_guest_wait_ready web1
	wait_until 60 has_reported web1
	refill_web1
}

# Afterwards the guest has all its memory, and the host has memory of it to reclaim.
refill_web1() {
	setmem "$assigned"
	wait_until 20 taken_is web1 0
	touch_all web1 380
	touch_mib web1 32
}

teardown_file() {
	[ -z "${dir-}" ] || as_nobody virsh -q -c qemu:///session destroy web1 || true
	[ -z "${dir-}" ] || daemon_stop KILL
	root_teardown_file
}

setmem() { # MIB
	as_nobody virsh -q -c qemu:///session setmem web1 "$1M" --live
}

# Also when all who might set it have ended, and the guest has reported once more.
keeps() { # MIB
	wait_until 20 taken_is web1 $(((assigned - $1) * mib))
	wait_until 60 nobody_balloons
	embed_guest_alive web1
	taken_is web1 $(((assigned - $1) * mib))
}

nobody_balloons() {
	refute pgrep -f "^$dir/virt-wss " >/dev/null
}

setup() {
	root_setup
	virt_wss=$dir/virt-wss
	daemon_start
	wss_as=("${nobody[@]}")
	export LIBVIRT_DEFAULT_URI=qemu:///session VIRT_WSS_HISTORY=$dir/run/history.db
	rm -f "$VIRT_WSS_HISTORY"*
	setmem "$assigned"
	wait_until 20 taken_is web1 0
	wait_until 60 wss_store --window 300ms --max-stall 5s web1
}
