#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests samples of a guest that touches 64 of 256 MiB and is kept from running for a part of the window, in
# every way that neither QEMU nor libvirt notices, and of guests that only compete for the CPU.

load functions.sh
load standstill-functions.sh

setup_file() {
	root_setup_file perl gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	embed_guest_start web1 args="wss.map=256 wss.touch=64"
	embed_guest_wait_ready web1
	embed_guest_wait_state web1 touching
}

setup() {
	root_setup
	guest=web1
	pid=$(embed_guest_pid web1)
	hogs=()
}

teardown() {
	hogs_end
	groups_leave
}

guest_lives() {
	embed_guest_alive web1
}

teardown_file() {
	root_teardown_file
}

@test "stopped by a signal" {
	is_seen_everywhere signal "stopped by a signal"
}

@test "stopped by a tracer" {
	is_seen_everywhere tracer "stopped by a tracer"
}

@test "frozen by version 2 of its cgroup, or a group above it" {
	mount=$(unified)
	[ -n "$mount" ] || skip "no cgroup version 2"
	group_enter "$mount"
	is_seen_everywhere freezer "frozen by its cgroup"
	mkdir "$group/inner"
	echo "$pid" >"$group/inner/cgroup.procs"
	sample_with_stops freezer 200 200
	is_degraded "frozen by its cgroup"
	echo "$pid" >"$group/cgroup.procs"
	rmdir "$group/inner"
}

@test "frozen by version 1 of its cgroup" {
	mount=$(legacy freezer)
	[ -n "$mount" ] || skip "no freezer of cgroup version 1"
	group_enter "$mount" freezer
	is_seen_everywhere freezer "frozen by its cgroup"
}

stop_by_move() { echo "$pid" >"$group/cgroup.procs"; }
stopped_by_move() { stopped_by_freezer; }
go_on_by_move() { echo "$pid" >"$group_home/cgroup.procs"; }

@test "moved into a group that is frozen" {
	mount=$(unified)
	[ -n "$mount" ] || skip "no cgroup version 2"
	group_enter "$mount"
	echo "$pid" >"$group_home/cgroup.procs"
	stop_by_freezer
	sample_with_stops move 200 200
	is_degraded "frozen by its cgroup"
}

limit_group_enter() {
	mount=$(legacy cpu)
	controller=cpu
	if [ -z "$mount" ]; then
		mount=$(unified) controller=''
		[ -n "$mount" ] || skip "no CPU controller"
		echo +cpu >"$mount/cgroup.subtree_control" || skip "the CPU controller cannot be used here"
	fi
	group_enter "$mount" "$controller"
}

@test "throttled to nearly nothing" {
	limit_group_enter
	sample_with_limit limit
	is_degraded "throttled by a CPU limit" 20
	guest_lives
}

# Its vCPU alone, so that QEMU answers.
@test "migrate-estimate refuses windows in which the guest was frozen" {
	mount=$(legacy freezer)
	[ -n "$mount" ] || skip "no freezer of cgroup version 1"
	vcpu=$(grep -l '^CPU 0/TCG' "/proc/$pid/task"/*/comm | cut -d/ -f5)
	group_enter "$mount" freezer
	echo "$pid" >"$group_home/cgroup.procs"
	echo "$vcpu" >"$group/tasks"
	# The window ends once the guest is frozen.
	clock_begin
	wss_start migrate-estimate web1 --bandwidth 1GiB/s --window 10s
	stop_by_freezer
	pass 14
	wss_wait
	clock_end
	[ "$status" = 1 ]
	[ -z "$out" ]
	one_line_error 'web1: the guest was (.* and )?frozen by its cgroup for about [0-9]+ %.* of the window$'
	# What is known from the windows before the stop is kept, and the reason for the others named.
	go_on_by_freezer
	wss_launch migrate-estimate web1 --bandwidth 1GiB/s --window 5s
	wait_until 30 sampling
	stop_by_freezer
	wss_wait
	[ "$status" = 0 ]
	grep -Eq 'writes were .*: the guest was (.* and )?frozen by its cgroup for about [0-9]+ %.* of the window$' <<<"$err"
	go_on_by_freezer
	guest_lives
	wss migrate-estimate web1 --bandwidth 1GiB/s --window 2s
	[ "$status" = 0 ]
	refute grep -q frozen <<<"$err"
}

sampling() {
	grep -q 'its writes are sampled' "$BATS_TEST_TMPDIR/err" || ! kill -0 "$wss_pid" 2>/dev/null
}

# Whether a sample says of the guest that it was kept from running. On a busy machine others may starve it, which is no fault.
is_kept() {
	wss sample "$1" --window 3s --output csv
	[ "$status" = 0 ] || [[ $err == *"touched nothing at all within the window"* ]] || return 0
	[[ $out$err =~ "the guest was "(.*" % and ")?(stopped|frozen|throttled|blocked|paused|suspended) ]]
}

is_ok() {
	refute is_kept "$1" || { kept=1; return 0; }
	[ "$(field quality)" = ok ]
}

# Each of N samples tells of no standstill, and so many are ok.
is_healthy() { # GUEST N
	local i kept=''
	for ((i = 0; i < $2; i++)); do
		wait_until 60 is_ok "$1"
		[ -z "$kept" ]
	done
}

@test "a guest whose quota is half a CPU, in short or long periods, is healthy" {
	limit_group_enter
	for period in 100000 1000000; do
		go_on_by_limit
		limit_to $((period / 2)) "$period"
		is_healthy web1 1
	done
	go_on_by_limit
}

@test "a busy guest that competes for the CPU is healthy, and so is an idle one" {
	hogs_start
	is_healthy web1 3
	hogs_end
	root_new
	embed_guest_start idle1 args="wss.map=256 wss.touch=64 wss.idle=3600"
	embed_guest_wait_ready idle1
	is_healthy idle1 3
}
