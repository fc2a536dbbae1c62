#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# virt-wss, QEMU and libvirtd end at any moment of a window on real KVM: guests run on as they were, and virt-wss
# says who ended.

bats_require_minimum_version 1.5.0
load "functions.sh"
load "../root/daemon-functions.sh"

setup_file() {
	kvm_setup_file || return 1
	[ -n "$root_missing" ] || clock_make
}

teardown() {
	[ -z "${root_missing-}" ] || return 0
	[ -z "${wss_pid-}" ] || kill -KILL "$wss_pid" 2>/dev/null || true
	[ -z "${dir-}" ] || wait_until 20 daemons_end
	kvm_guests_end
	! mountpoint -q "$embed_root/debug" || umount "$embed_root/debug"
}

# All of this file's libvirtds, also one that virt-wss has started instead of the one that was killed, and that has no
# pid file yet. True once there are none.
daemons_end() {
	local pids
	pids=$(grep -lszxF "XDG_RUNTIME_DIR=$dir/run" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || { kill -KILL $pids 2>/dev/null; false; }
}

pause_ms() { # MS
	sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
}

now_ms() {
	echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# A busy machine may not let the guest run within the window.
ended_by_itself() {
	[ "$status" = 0 ] || [[ $err == *"touched nothing at all"* ]]
}

# Measures the guest without a disturbance -> arm_ms, run_ms: how long it takes until its window is armed, and to its end.
calibrate() { # ARGUMENT...
	local began
	began=$(now_ms)
	wss_start "$@"
	arm_ms=$(($(now_ms) - began))
	wss_wait
	ended_by_itself
	run_ms=$(($(now_ms) - began))
}

# Starts a window, and returns at one of five moments: two of its preparation, as calibrated, three in the window.
moment() { # 1-5 ARGUMENT...
	local n=$1
	shift
	wss_launch "$@"
	if [ "$n" -le 2 ]; then
		pause_ms $((arm_ms * n / 3))
	else
		wait_until 30 armed
		pause_ms $(((n - 3) * 200))
	fi
}

# Programs of BPF that no process holds, but a link or a pin does. One whose process has just ended goes in a moment.
no_program_is_left() {
	local ids used
	ids=$(bpftool prog list | awk '/ name (list_vms|count_vm|walk_vm) / { print int($1) }' | sort)
	used=$(cat /proc/[0-9]*/fdinfo/* 2>/dev/null | awk '/^prog_id:/ { print $2 }' | sort -u)
	[ -z "$(comm -23 <(echo "$ids") <(echo "$used"))" ]
}

# On huge pages again, which KVM does not map while it logs what a guest writes. A busy machine may not let it run in a window.
guest_is_as_before() { # SAMPLE ARGUMENT...
	wss "$@" --window 100ms --output csv
	[ "$status" = 0 ] && [ "$(field quality)" = ok ] && [ "$(field granularity_bytes)" = 2097152 ]
}

@test "virt-wss ended by KILL, TERM or INT at twenty moments" {
	local i kind signals=(KILL TERM INT) codes=(137 143 130) signal guest window
	kvm_qemu_start held 'pages=4096 order=random access=modify' -m 256 -machine pc
	guest=(--qmp "$embed_root/held.qmp" sample)
	for kind in native 4k; do
		window=("${guest[@]}" --window 300ms --granularity "$kind")
		calibrate "${window[@]}"
		for i in {1..10}; do
			signal=$((i % 3))
			while
				wss_launch "${window[@]}"
				pause_ms $((run_ms * i / 11))
				kill "-${signals[signal]}" "$wss_pid" || true
				wss_wait
				[ "$status" != "${codes[signal]}" ]
			do
				# It had ended by itself: the machine was busier when it was calibrated.
				ended_by_itself
				run_ms=$((run_ms * 3 / 4))
			done
			kvm_guest_runs held
			# QEMU ends the log of a window by 4 KiB by itself.
			wait_until 30 guest_is_as_before "${guest[@]}"
		done
	done
	wait_until 10 no_program_is_left
	kvm_sample_exact 4096 "${guest[@]}" --granularity 4k
}

short_start() { # WINDOW
	rm -f "$(embed_console short)"
	kvm_qemu_start short 'pages=4096 access=modify' -m 64 -machine pc
	# QEMU removes the file with it before it has ended.
	short_pid=$(embed_guest_pid short)
	guest=(--qmp "$embed_root/short.qmp" sample --window "$1" --output csv)
}

short_end() { # HOW
	if [ "$1" = quit ]; then
		qmp_ask "$embed_root/short.other" quit >/dev/null
	else
		kill "-$1" "$short_pid"
	fi
}

# QEMU (7.2, also without virt-wss) may wait for ever in monitor_cleanup(), for a command that it got while it was
# told to end. In the window it gets none.
short_ends() { # MOMENT
	[ "$1" -gt 2 ] || timeout 10 tail --pid="$short_pid" -f /dev/null || kill -KILL "$short_pid"
	wait_until 10 short_is_gone
}

short_is_gone() {
	! kill -0 "$short_pid" 2>/dev/null
}

@test "QEMU ended by KILL, TERM or quit at five moments" {
	local i how guest
	short_start 1s
	calibrate "${guest[@]}"
	# It ends with QEMU.
	guest+=(--window 1h)
	for how in KILL TERM quit; do
		for i in {1..5}; do
			moment "$i" "${guest[@]}"
			short_end "$how"
			wss_wait
			# It may not have connected by then.
			if [ "$i" -gt 2 ] || [ "$status" != 4 ]; then
				[ "$status" = 1 ]
				# Told to end, QEMU may answer nothing any more.
				[[ $err =~ "the guest "(has ended|ended within the window)$ ]] ||
					{ [ "$how" != KILL ] && [ "$i" -le 2 ] && [[ $err =~ "no reply within 5000 ms"$ ]]; }
			fi
			short_ends "$i"
			short_start 1h
		done
	done
	wait_until 10 no_program_is_left
}

@test "QEMU stopped at five moments goes on, and virt-wss ends in time" {
	local i guest pid
	short_start 1s
	pid=$(embed_guest_pid short)
	calibrate "${guest[@]}"
	for i in {1..5}; do
		if [ "$i" -le 2 ]; then
			# As long as it may take until QEMU is stopped.
			moment "$i" "${guest[@]}" --window 10s --deadline 1s
			stop_and_wait "$pid"
		else
			clock_begin
			moment "$i" "${guest[@]}" --window 600s --deadline 1s
			stop_and_wait "$pid"
			pass 604
			clock_end
		fi
		wss_wait
		kill -CONT "$pid"
		case $status in
		0) [ "$(field quality)" = degraded ] && [[ $(field notes) == *"stopped by a signal"* ]] ;;
		1) [[ $err =~ ("stopped by a signal"|"timed out after 1.00 s") ]] ;;
		*) [ "$i" -le 2 ] && [ "$status" = 4 ] ;;
		esac
		kvm_guest_runs short
	done
	wait_until 30 short_is_ok
}

short_is_ok() {
	wss "${guest[@]}"
	kvm_samples_are_ok
}

# The guests of an ordinary user's libvirtd need a /dev/kvm that is open to that user, whatever the host's is. virt-wss
# needs three capabilities: two for the recorder, and one for KVM's counters in debugfs, without which it asks libvirt.
as_nobody() { # COMMAND...
	local caps=+bpf,+perfmon,+dac_read_search
	# shellcheck disable=SC2016
	nobody=(env HOME="$dir" XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config" XDG_CACHE_HOME="$dir/cache"
		unshare -m sh -c 'mount --bind "$0" /dev/kvm && exec "$@"' "$dir/kvm"
		setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="$caps" --ambient-caps="$caps")
	"${nobody[@]}" "$@"
}

web_create() {
	cp "$kvm_rom" "$dir/rom"
	chmod 644 "$dir/rom"
	cat >"$dir/web.xml" <<-XML
		<domain type='kvm'><name>web</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
		  <sysinfo type='fwcfg'><entry name='opt/virt-wss/guest'>pages=4096 order=random access=modify</entry></sysinfo>
		  <os><type arch='x86_64' machine='pc'>hvm</type><loader type='rom'>$dir/rom</loader></os>
		  <cpu mode='host-passthrough'><feature policy='disable' name='arch-capabilities'/></cpu>
		$(embed_root=$dir embed_devices_xml web)
		</domain>
	XML
	as_nobody virsh -q -c qemu:///session create "$dir/web.xml"
	mkdir -p "$embed_root/run/qemu"
	cp "$dir/run/libvirt/qemu/run/web.pid" "$embed_root/run/qemu/"
	wait_until 30 grep -q '^ring3: all pages touched' "$dir/web.console"
}

@test "libvirtd killed at five moments: the guest runs on, and a window that was armed gives its sample" {
	local i guest=(-c qemu:///session sample web --window 1s --output csv)
	command -v libvirtd >/dev/null || skip "needs libvirtd"
	mkdir -p "$embed_root/s"
	mknod -m 666 "$embed_root/s/kvm" c 10 232
	dir=$embed_root/s
	daemon_new
	web_create
	virt_wss=$dir/virt-wss
	wss_as=("${nobody[@]}")
	kvm_debugfs
	calibrate "${guest[@]}"
	for i in {1..5}; do
		[ "$i" -le 2 ] || clock_begin
		moment "$i" "${guest[@]}" --window $((i > 2 ? 600 : 1))s
		kill -KILL "$(daemon_pid)"
		if [ "$i" -gt 2 ]; then
			run_a_while "$(embed_guest_pid web)"
			pass 604
			clock_end
		fi
		wss_wait
		if [ "$i" -le 2 ]; then
			[ "$status" = 0 ] || [ "$status" = 1 ] || [ "$status" = 4 ]
		else
			kvm_samples_are_ok
		fi
		kvm_guest_runs web
		daemon_start
	done
	wait_until 10 no_program_is_left
	guest_is_as_before "${guest[@]:0:4}"
}

samples_writes() {
	grep -q 'its writes are sampled' "$BATS_TEST_TMPDIR/err" || ! kill -0 "$wss_pid" 2>/dev/null
}

@test "migrate-estimate ends when QEMU stops to answer, and keeps what it has measured" {
	local pid
	kvm_guest_start mute touch='pages=8192 order=random access=modify'
	pid=$(embed_guest_pid mute)
	# Others must not starve it: a window in which it could not run is not kept, and then another one has to.
	find "/proc/$pid/task" -mindepth 1 -maxdepth 1 -printf "%f\n" | xargs renice -n -10 -p >/dev/null
	# From the beginning, and once the window is over.
	stop_and_wait "$pid"
	wss migrate-estimate mute --bandwidth 1GiB/s --window 1s
	[ "$status" = 1 ]
	[ "$(grep -c '^virt-wss: ' <<<"$err")" = 1 ]
	grep -q "^virt-wss: error: mute: its QEMU process is stopped by a signal (SIGSTOP): kill -CONT $pid resumes it" <<<"$err"
	kill -CONT "$pid"
	for _ in {1..8}; do
		wss_launch migrate-estimate mute --bandwidth 1GiB/s --window 4s --output json
		wait_until 60 samples_writes
		kill -STOP "$pid"
		wss_wait
		kill -CONT "$pid"
		[ "$status" != 0 ] || break
	done
	[ "$status" = 0 ]
	grep -q '"domain": "mute"' <<<"$out"
	# Before libvirt is called, or within the call.
	grep -qE 'warning: mute: writes were not sampled, so that only their upper bound is known: (its QEMU process is stopped by a signal|timed out after 30.0 s while)' <<<"$err"
	kvm_guest_runs mute
}
