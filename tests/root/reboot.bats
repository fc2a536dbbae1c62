#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the service notices a guest that reboots within its QEMU: libvirt tells it, and nothing else shows it.

load functions.sh
load daemon-functions.sh

setup_file() {
	root_setup_file libvirtd curl
	[ -z "$root_missing" ] || return 0
	daemon_new
	embed_guest_dir=$dir type=qemu memory=128 args='wss.map=32 wss.touch=8 wss.rate=200000' embed_guest_xml web1 |
		sed -e "s|$embed_root/web1.console|$dir/console|" -e "s|<on_reboot>destroy|<on_reboot>restart|" \
			>"$dir/web1.xml"
	as_nobody virsh -q -c qemu:///session define "$dir/web1.xml"
	as_nobody virsh -q -c qemu:///session start web1
	ln -s "$dir/console" "$(embed_console web1)"
	embed_guest_wait_ready web1
}

teardown_file() {
	[ -z "${dir-}" ] || as_nobody virsh -q -c qemu:///session destroy web1 || true
	[ -z "${dir-}" ] || daemon_stop KILL
	root_teardown_file
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

has() { # LINE, a regular expression
	curl -sSf --unix-socket "$dir/run/socket" http://localhost/metrics >page && grep -qx "$1" page
}

windows() {
	has '.*' || true
	sed -n 's/^virt_wss_windows_total{domain="web1".*} //p' page 2>/dev/null | grep . || echo 0
}

has_windows() { # N
	[ "$(windows)" -ge "$1" ]
}

qemu_pid() {
	cat "$dir/run/libvirt/qemu/run/web1.pid"
}

@test "a guest that was reset is left alone while it boots, and is measured again" {
	local before qemu start
	cd "$BATS_TEST_TMPDIR" || return 1
	as_nobody true
	"${nobody[@]}" "$dir/virt-wss" -c qemu:///session serve --no-store --method refs --period 2s --window 1s \
		--boot 15s --max-stall 10s --budget 100% --max-pressure 0 --listen "unix:$dir/run/socket" 2>err 3>&- &
	pid=$!
	wait_until 90 has_windows 2
	qemu=$(qemu_pid)
	start=$EPOCHSECONDS
	as_nobody virsh -q -c qemu:///session reset web1
	wait_until 10 has 'virt_wss_state{domain="web1",.*} 1'
	grep -q 'web1: has rebooted' err
	before=$(windows)
	# One that was open may come to its end while it boots, but not two.
	wait_until 60 has_windows $((before + 2))
	[ $((EPOCHSECONDS - start)) -ge 14 ]
	[ "$(qemu_pid)" = "$qemu" ]
	has 'virt_wss_state{domain="web1",.*} 0'
}
