#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Working sets of guests under real KVM, whose truth is known to the page.

bats_require_minimum_version 1.5.0
load "functions.sh"

# One window, as CSV in $out.
measure() { # ARGUMENT...
	wss sample --window 2s --output csv "$@"
	[ "$status" = 0 ] && [ "$(field quality | sort -u)" = ok ]
}

@test "pages of 4 KiB: exact, whatever the order and the access" {
	local order access bytes
	for order in linear random; do
		for access in read write modify; do
			kvm_guest_start "$order-$access" touch="pages=5000 stride=3 order=$order access=$access"
		done
		measure --all
		[ "$(field wss_bytes | wc -l)" = 3 ]
		for bytes in $(field wss_bytes); do
			kvm_exact "$bytes" 5000
		done
		kvm_guests_end
	done
}

@test "two virtual CPUs touch one set" {
	kvm_guest_start two vcpus=2 touch='pages=16384 order=random access=modify'
	measure two
	kvm_exact "$(field wss_bytes)" 16384
}

@test "huge pages: native is an upper bound, 4k exact" {
	kvm_guest_start huge backing=anonymous touch='pages=4096 stride=8 order=random'
	measure huge
	[ "$(field granularity_bytes)" = 2097152 ]
	# 4096 pages, eight apart, lie in 64 blocks of 2 MiB; the program in one more.
	[ "$(field wss_high_bytes)" -ge $((64 * 2097152)) ]
	[ "$(field wss_high_bytes)" -le $((65 * 2097152 + 4096 * kvm_own_pages)) ]
	measure --granularity 4k huge
	[ "$(field granularity_bytes)" = 4096 ]
	kvm_exact "$(field wss_bytes)" 4096
	measure huge
	[ "$(field granularity_bytes)" = 2097152 ]
}

@test "the set of a phase, not of the phase before" {
	kvm_guest_start phases touch='pages=20000 seconds=2; pages=3000 first=40000'
	wait_until 20 grep -q '^ring3: phase=1' "$(embed_console phases)"
	measure phases
	kvm_exact "$(field wss_bytes)" 3000
}

@test "hugetlb: 4k is exact, and the pages stay huge" {
	kvm_hugetlb 40 || skip "the host does not have 40 free huge pages of 2 MiB"
	kvm_guest_start hugetlb backing=hugetlb memory=64 touch='pages=3000 stride=2 access=write'
	measure --granularity 4k hugetlb
	kvm_exact "$(field wss_bytes)" 3000
	measure hugetlb
	[ "$(field granularity_bytes)" = 2097152 ]
}

log_is_on() {
	[ "$(kvm_gauge killed pages_2m)" = 0 ]
}

# The whole set is mapped by 4 KiB: the window is under way.
set_is_back() {
	[ "$(kvm_gauge killed pages_4k)" -ge 4096 ]
}

native_again() {
	measure killed && [ "$(field granularity_bytes)" = 2097152 ]
}

@test "kill -9 at any stage of a window at 4k leaves the guest running, and measurable" {
	local stage
	kvm_gauges
	kvm_guest_start killed backing=anonymous touch='pages=4096 order=random access=modify'
	for stage in log_is_on armed set_is_back; do
		wss_launch sample --window 5s --granularity 4k killed
		[ $stage != set_is_back ] || wait_until 30 armed
		wait_until 30 "$stage"
		# It has not ended by itself.
		kill -KILL "$wss_pid"
		wss_wait
		[ "$status" = 137 ]
		kvm_guest_runs killed
		# Nobody waits for the calculation any more: QEMU ends it, and KVM maps huge pages again.
		wait_until 40 native_again
	done
	measure --granularity 4k killed
	kvm_exact "$(field wss_bytes)" 4096
}
