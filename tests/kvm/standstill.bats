#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Windows for a part of which a guest under real KVM cannot run, and of one whose vCPU only touches now and then.

bats_require_minimum_version 1.5.0
load "functions.sh"
load "../root/standstill-functions.sh"

teardown() {
	[ -z "${root_missing-}" ] || return 0
	hogs_end
	groups_leave
	kvm_guests_end
	umount "$embed_root/debug"
}

# It touches its pages anew in each pass, so that it touches all of them in any part of a window.
start() { # TOUCH
	guest=web$BATS_TEST_NUMBER
	hogs=()
	kvm_debugfs
	kvm_guest_start "$guest" touch="$1"
	pid=$(embed_guest_pid "$guest")
}

guest_lives() {
	[ "$(embed_process_state "$guest")" != T ] || return 1
	wait_until 30 guest_is_ok
}

# Other tests at the same time may keep it from running in one window.
guest_is_ok() {
	wss sample "$guest" --window 1s --output csv
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
	is_seen_everywhere limit "throttled by a CPU limit"
}

@test "a guest that competes for the CPU is healthy" {
	start 'pages=16384 order=random access=modify'
	hogs_start
	for _ in 1 2 3; do
		guest_lives
	done
}
