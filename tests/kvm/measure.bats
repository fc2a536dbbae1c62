#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Working sets of guests under real KVM, whose truth is known to the page.

bats_require_minimum_version 1.5.0
load "functions.sh"

# One window without the recorder, as CSV in $out.
measure() { # ARGUMENT...
	wss sample --window 2s --recorder counters --output csv "$@"
	[ "$status" = 0 ] && [ "$(field quality | sort -u)" = ok ]
}

@test "pages of 4 KiB: exact, whatever the order and the access" {
	local order access
	for order in linear random; do
		for access in read write modify; do
			kvm_guest_start "$order-$access" touch="pages=5000 stride=3 order=$order access=$access"
		done
		measure --all
		field wss_bytes | while read -r bytes; do kvm_exact "$bytes" 5000; done
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
	kvm_hugetlb 40 || skip "the host has not 40 free huge pages of 2 MiB"
	kvm_guest_start hugetlb backing=hugetlb memory=64 touch='pages=3000 stride=2 access=write'
	measure --granularity 4k hugetlb
	kvm_exact "$(field wss_bytes)" 3000
	measure hugetlb
	[ "$(field granularity_bytes)" = 2097152 ]
}

# What clear_refs, the dirty log and a lock leave behind when their owner is killed.
@test "kill -9 at any point of a window at 4k leaves the guest running, and measurable" {
	local pid pages=4096 delay
	kvm_guest_start killed backing=anonymous touch="pages=$pages order=random access=modify"
	for delay in 0.1 0.3 0.5 0.8 1.1 1.5; do
		"$virt_wss" sample --window 1s --recorder counters --granularity 4k killed >/dev/null 2>&1 3>&- &
		pid=$!
		sleep "$delay"
		kill -KILL $pid 2>/dev/null || true
		wait $pid || true
		! sed 's/.*) //' /proc/"$(embed_guest_pid killed)"/task/*/stat | grep -q '^[TtZ]'
	done
	# QEMU ends a calculation that nobody waits for, and KVM goes back to huge pages.
	wait_until 20 native_again
	measure --granularity 4k killed
	kvm_exact "$(field wss_bytes)" $pages
}

native_again() {
	measure killed && [ "$(field granularity_bytes)" = 2097152 ]
}
