#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the service survives a libvirtd that is stopped, resumed and killed, a few times;
# tests/soak/libvirtd.sh does so as often as it is told. Tests that guests whose QEMU hangs, more of them than
# libvirtd answers requests of one connection at a time, disturb no other guest.

load functions.sh
load daemon-functions.sh

hung=(h1 h2 h3 h4 h5 h6) healthy=(a1 m1 z1)

setup_file() {
	root_setup_file libvirtd virsh setpriv
	[ -z "$root_missing" ] || return 0
	daemon_new
}

teardown_file() {
	local guest
	if [ -n "${dir-}" ]; then
		for guest in "${hung[@]}" "${healthy[@]}"; do
			kill -KILL "$(guest_pid "$guest")" 2>/dev/null || true
		done
		daemon_stop KILL
	fi
	root_teardown_file
}

guest_pid() { # NAME
	cat "$embed_root/s/run/libvirt/qemu/run/$1.pid"
}

# Small guests without a system; hung ones get a balloon, whose statistics come from QEMU.
guest_create() { # NAME
	cat >"$dir/$1.xml" <<-XML
		<domain type='qemu'><name>$1</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
		  <os><type arch='x86_64' machine='pc'>hvm</type></os>
		  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <controller type='usb' model='none'/><memballoon model='virtio'/></devices></domain>
	XML
	as_nobody virsh -q -c qemu:///session create "$dir/$1.xml"
}

guests_new() {
	local guest
	for guest in "${hung[@]}" "${healthy[@]}"; do
		guest_create "$guest"
	done
	for guest in "${hung[@]}"; do
		stop_and_wait "$(guest_pid "$guest")"
	done
}

# Checks that the healthy guests have a row, and the hung ones a reason that says what was asked.
told_apart() { # COLUMN
	local guest
	for guest in "${healthy[@]}"; do
		grep -qx "$guest" <<<"$(field "$1")"
		refute grep -q "$guest: " <<<"$err"
	done
	for guest in "${hung[@]}"; do
		grep -Eq "$guest: (timed out after .* while (reading|waiting)|its QEMU has not answered|cannot read)" <<<"$err"
	done
}

measured() { # FILE: the healthy guests have been
	local guest
	for guest in "${healthy[@]}"; do
		grep -q "^virt_wss_working_set_bytes{.*domain=\"$guest\"" "$1" || return 1
	done
}

setup() {
	root_setup
	virt_wss=$dir/virt-wss
	daemon_start
	wss_as=("${nobody[@]}")
}

@test "the service survives what happens to libvirtd, and is connected again within 5 s" {
	timeout -k 5 300 "$WSS_SRCDIR/tests/soak/libvirtd.sh" 4 2 3>&-
}

@test "guests whose QEMU hangs do not disturb the others, however many they are" {
	local command guest pids=()
	guests_new
	wss -c qemu:///session sample --all --window 200ms --deadline 8s --output csv
	[ "$status" = 3 ]
	told_apart domain
	for command in methods balloon; do
		"${wss_as[@]}" timeout 60 "$virt_wss" -c qemu:///session $command --output csv \
			>"$BATS_TEST_TMPDIR/$command.out" 2>"$BATS_TEST_TMPDIR/$command.err" 3>&- &
		pids+=($!)
	done
	for command in methods balloon; do
		status=0
		wait "${pids[0]}" || status=$?
		pids=("${pids[@]:1}")
		out=$(cat "$BATS_TEST_TMPDIR/$command.out")
		err=$(cat "$BATS_TEST_TMPDIR/$command.err")
		echo "$command -> $status: $err"
		[ "$status" = 3 ]
		told_apart domain
	done
	"${wss_as[@]}" "$virt_wss" -c qemu:///session serve --no-store --period 1s --window 200ms --boot 1ms \
		--textfile "$dir/run/metrics" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 30 measured "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err"; kill -KILL $wss_pid; false; }
	rm "$dir/run/metrics"
	wait_until 30 measured "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err"; kill -KILL $wss_pid; false; }
	kill -TERM $wss_pid
	wss_wait
	[ "$status" = 143 ]
	for guest in "${hung[@]}"; do
		kill -CONT "$(guest_pid "$guest")"
	done
	wss -c qemu:///session sample --all --window 200ms --output csv
	[ "$status" = 0 ]
	[ "$(field domain | wc -l)" = 9 ]
}

# SECONDS that libvirt takes for its capabilities, as often as it is asked.
sample_slowly() {
	wss_as=("${nobody[@]}" env LD_PRELOAD="$dir/hang.so" WSS_HANG=virConnectGetCapabilities: WSS_HANG_SECONDS="$1")
	wss -c qemu:///session sample --all --window 200ms --deadline "$2" --output csv
}

@test "a libvirt that is slow to say its capabilities is asked once, for however many guests" {
	[ -e "$WSS_BUILDDIR/tests/tools/hang.so" ] || skip "no tests/tools/hang.so"
	install -m 755 "$WSS_BUILDDIR/tests/tools/hang.so" "$dir"
	sample_slowly 3 12s
	[ "$status" = 0 ]
	[ "$(field domain | wc -l)" = 9 ]
	sample_slowly 20 4s
	[ "$status" = 1 ]
	[ "$(grep -c 'timed out after 4.00 s while asking libvirt for its capabilities' <<<"$err")" = 9 ]
	refute grep -q 'another host' <<<"$err"
}
