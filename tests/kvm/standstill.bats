#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Windows for a part of which a guest under real KVM cannot run, and of one whose vCPU only touches now and then.

bats_require_minimum_version 1.5.0
load "functions.sh"
load "../root/standstill-functions.sh"

setup_file() {
	kvm_setup_file || return 1
	[ -n "$root_missing" ] || clock_make
}

teardown() {
	[ -z "${root_missing-}" ] || return 0
	hogs_end
	[ -z "${storage-}" ] || fsfreeze --unfreeze "$storage" 2>/dev/null || true
	groups_leave
	kvm_guests_end
	[ -z "${storage-}" ] || umount "$storage"
	! mountpoint -q "$embed_root/debug" || umount "$embed_root/debug"
}

# It touches its pages again in each pass, so that it touches all of them in any part of a window.
start() { # TOUCH [backing=…]
	guest=web$BATS_TEST_NUMBER
	hogs=()
	kvm_debugfs
	kvm_guest_start "$guest" touch="$1" "${@:2}"
	pid=$(embed_guest_pid "$guest")
}

guest_lives() {
	[ "$(embed_process_state "$guest")" != T ] || return 1
	wait_until 30 guest_goes_on
}

# Other tests at the same time may starve it, but nothing stops it any more.
guest_goes_on() {
	guest_is_ok || [[ $(field notes) =~ $embed_slowed ]]
}

guest_is_ok() {
	wss "${inventory[@]}" sample "$guest" --window 1s --output csv
	[ "$(field quality)" = ok ]
}

@test "stopped by a signal or a tracer" {
	start 'pages=16384 order=random access=modify'
	is_seen_everywhere signal "stopped by a signal"
	is_seen_everywhere tracer "stopped by a tracer"
}

@test "frozen by its cgroup" {
	start 'pages=16384 order=random access=modify rate=4000'
	mount=$(unified)
	[ -n "$mount" ] || skip "no cgroup version 2"
	group_enter "$mount"
	is_seen_everywhere freezer "frozen by its cgroup"
	groups_leave
	mount=$(legacy freezer)
	[ -n "$mount" ] || skip "no freezer of cgroup version 1"
	group_enter "$mount" freezer
	is_seen_everywhere freezer "frozen by its cgroup"
}

@test "throttled to nearly nothing" {
	start 'pages=16384 order=random access=modify'
	mount=$(legacy cpu)
	[ -n "$mount" ] || skip "no CPU controller of cgroup version 1"
	group_enter "$mount" cpu
	sample_with_limit limit
	is_degraded "throttled by a CPU limit" 20
	guest_lives
}

# Whether the file system of a guest's memory can be held -> storage
storage_make() {
	truncate -s 700M "$BATS_TEST_TMPDIR/disk" && mkfs.ext4 -q "$BATS_TEST_TMPDIR/disk" || return 1
	mkdir -p "$embed_root/storage"
	mount -o loop "$BATS_TEST_TMPDIR/disk" "$embed_root/storage" 2>/dev/null || return 1
	storage=$embed_root/storage
}

# Each page that it writes to has been written to the disk at the beginning of a stop, and waits for the file system then.
@test "blocked by its storage" {
	storage_make || skip "no loop device that can be mounted"
	echo "memory_backing_dir = \"$storage\"" >>"$embed_root/etc/qemu.conf"
	start 'pages=4096 order=random access=modify' backing=file
	is_seen_everywhere storage "blocked on the host's memory or storage"
	sed -i '/^memory_backing_dir/d' "$embed_root/etc/qemu.conf"
}

# Its vCPU alone, so that QEMU answers, with the least weight beside a busy process on its CPU.
@test "starved by another process" {
	start 'pages=16384 order=random access=modify'
	mount=$(legacy cpu)
	[ -n "$mount" ] || skip "no CPU controller of cgroup version 1"
	vcpu=$(grep -l '^CPU 0/KVM' "/proc/$pid/task"/*/comm | cut -d/ -f5)
	hogs_start 1
	taskset -cp 0 "${hogs[0]}"
	taskset -cp 0 "$vcpu"
	group_enter "$mount" cpu
	echo "$pid" >"$group_home/cgroup.procs"
	echo "$vcpu" >"$group/tasks"
	echo 2 >"$group/cpu.shares"
	wss sample "$guest" --window 3s --output csv
	# In so little time it may touch nothing at all.
	[ "$(field quality)" != ok ]
	has_share "starved of CPU time by other processes" 50 100
	# Those before tell of windows that are too short to tell themselves.
	wss sample "$guest" --window 200ms --count 12 --output csv --columns quality
	[ "$(grep -c 'the guest was starved of CPU time by other processes' <<<"$err")" -ge 8 ]
	groups_leave
	hogs_end
	guest_lives
}

@test "a guest that competes for the CPU is healthy" {
	start 'pages=16384 order=random access=modify'
	hogs_start
	for _ in 1 2 3; do
		wait_until 30 guest_is_ok
	done
}

# Of a guest without libvirt, whose inventory tells of no pause.
start_other() { # TOUCH
	guest=other
	hogs=()
	inventory=(-c kvm:///)
	kvm_qemu_start "$guest" "$1" -m 512 -machine pc -name "$guest,debug-threads=on"
	pid=$(embed_guest_pid "$guest")
}

stop_by_pause() { qmp_ask "$embed_root/other.other" stop >/dev/null; }
stopped_by_pause() { true; }
go_on_by_pause() { qmp_ask "$embed_root/other.other" cont >/dev/null; }

@test "paused and resumed within the window, where no inventory tells" {
	start_other 'pages=16384 order=random access=modify'
	sample_with_stops pause 200 200
	is_degraded "paused, or kept waiting by QEMU"
	guest_lives
}

# QEMU's main loop holds its lock while it opens a FIFO that nobody reads. The guest goes on until it reports, by its serial
# port.
stop_by_main_loop() {
	mkfifo "$embed_root/fifo"
	qmp_ask "$embed_root/other.other" '{"execute":"pmemsave","arguments":{"val":0,"size":4096,"filename":"'"$embed_root/fifo"'"}}' \
		>/dev/null 3>&- &
	client=$!
}
stopped_by_main_loop() { vcpu_stat wchan | grep -q '^futex_'; }
go_on_by_main_loop() {
	cat "$embed_root/fifo" >/dev/null
	wait "$client"
	rm "$embed_root/fifo"
}

@test "kept waiting by QEMU's main loop" {
	start_other 'pages=16384 order=random access=modify report=1'
	sample_with_stops main_loop 60 200
	is_degraded "paused, or kept waiting by QEMU"
}

# Its processor halts at once, for ever; under TCG it sleeps as one that is kept.
@test "a guest that is idle is not kept waiting" {
	local accelerator
	guest=idle
	hogs=()
	head -c 65536 /dev/zero | tr '\0' '\364' >"$BATS_TEST_TMPDIR/halt.rom"
	mkdir -p "$embed_root/run/qemu"
	for accelerator in kvm tcg; do
		qemu-system-x86_64 -name "$guest,debug-threads=on" -accel $accelerator -m 64 -machine pc -nodefaults -display none \
			-bios "$BATS_TEST_TMPDIR/halt.rom" -qmp "unix:$embed_root/idle.qmp,server=on,wait=off" \
			-daemonize -pidfile "$embed_root/run/qemu/idle.pid" 3>&-
		pid=$(embed_guest_pid idle)
		wss --qmp "$embed_root/idle.qmp" sample --window 2s --output csv
		[[ $err$out != *"kept waiting"* ]]
		# Its window has been judged, which names a cause if there is one.
		[ "$status" = 0 ] || [[ $err == *"touched nothing at all within the window: it did not run, or needs a longer window" ]]
		kill -KILL "$pid"
		wait_until 10 eval "! kill -0 $pid 2>/dev/null"
	done
}
