#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Working sets of guests under real KVM, whose truth is known to the page.

bats_require_minimum_version 1.5.0
load "functions.sh"

@test "pages of 4 KiB: exact, whatever the order and the access" {
	local order access
	for order in linear random; do
		for access in read write modify; do
			kvm_guest_start "$order-$access" touch="pages=5000 stride=3 order=$order access=$access"
		done
		kvm_sample_exact 5000 sample --all
		[ "$(field wss_bytes | wc -l)" = 3 ]
		kvm_guests_end
	done
}

@test "two virtual CPUs touch one set" {
	kvm_guest_start two vcpus=2 touch='pages=16384 order=random access=modify'
	kvm_sample_exact 16384 sample two
}

# On a busy machine it may run too little in one window.
is_native() { # GUEST
	wss sample "$1" --window 1s --output csv
	kvm_samples_are_ok && [ "$(field granularity_bytes)" = 2097152 ]
}

# 4096 pages, eight apart, lie in 64 blocks of 2 MiB; the program in one more.
is_bounded() { # GUEST
	is_native "$1" && [ "$(field wss_high_bytes)" -ge $((64 * 2097152)) ] &&
		[ "$(field wss_high_bytes)" -le $((65 * 2097152 + 4096 * kvm_own_pages)) ]
}

@test "huge pages: native is an upper bound, 4k exact" {
	kvm_guest_start huge backing=anonymous touch='pages=4096 stride=8 order=random'
	wait_until 30 is_bounded huge
	kvm_sample_exact 4096 sample --granularity 4k huge
	[ "$(field granularity_bytes)" = 4096 ]
	wait_until 30 is_native huge
}

@test "the set of a phase, not of the phase before" {
	kvm_guest_start phases touch='pages=20000 seconds=1; pages=3000 first=40000'
	wait_until 20 grep -q '^ring3: phase=1' "$(embed_console phases)"
	kvm_sample_exact 3000 sample phases
}

@test "a window that is stopped leaves the dirty log on for seconds, which the next one says" {
	kvm_guest_start huge backing=anonymous touch='pages=4096 stride=8'
	wss_start sample huge --granularity 4k --window 25s
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 130 ]
	wss sample huge --granularity 4k --window 1s
	[ "$status" = 1 ]
	[[ $err =~ "is running for the guest, for "(1?[0-9]|2[0-7])" s more" ]]
}

@test "hugetlb: 4k is exact, and the pages stay huge" {
	kvm_hugetlb 40 || skip "the host does not have 40 free huge pages of 2 MiB"
	kvm_guest_start hugetlb backing=hugetlb memory=64 touch='pages=3000 stride=2 access=write'
	kvm_sample_exact 3000 sample --granularity 4k hugetlb
	wait_until 30 is_native hugetlb
}

@test "two virtual CPUs on huge pages and on hugetlb: 4k is exact" {
	kvm_guest_start anonymous vcpus=2 backing=anonymous touch='pages=5000 stride=2 order=random access=modify'
	kvm_sample_exact 5000 sample --granularity 4k anonymous
	[ "$(field granularity_bytes)" = 4096 ]
	kvm_guests_end
	kvm_hugetlb 40 || skip "the host does not have 40 free huge pages of 2 MiB"
	kvm_guest_start hugetlb vcpus=2 backing=hugetlb memory=64 touch='pages=5000 order=random access=modify'
	kvm_sample_exact 5000 sample --granularity 4k hugetlb
	[ "$(field granularity_bytes)" = 4096 ]
}

# Counts the windows of its recording so far that have the first set, the second, parts of both, and more than there is, and the
# pages of all -> counts
count_sets() { # NAME
	counts=$(report_columns "$1" kind,outstanding_bytes | awk -F, -v own="$kvm_own_pages" '$1 == "window" {
		pages = $2 / 4096
		if (pages >= 3000 && pages <= 3000 + own) first++
		else if (pages >= 4000 && pages <= 4000 + own) second++
		else if (pages > 7000 + own) wrong++
		else between++
	}
	END { print first + 0, second + 0, between + 0, wrong + 0 }')
	counts+=" $("$virt_wss" report "$BATS_TEST_TMPDIR/$1.rec" --output json |
		sed -n 's/.*"reference_bytes": \([0-9]*\).*/\1/p' | awk '$1 > most { most = $1 } END { print most / 4096 }')"
	echo "$counts"
}

has_sets() { # NAME
	local first second all
	count_sets "$1"
	read -r first second _ _ all <<<"$counts"
	[ "$first" -ge 2 ] && [ "$second" -ge 2 ] && [ "$all" -ge 7000 ]
}

# A window may see the end of one phase and the start of the next, and on a busy machine a part of a set. A recording goes on
# until enough windows have all of theirs; none may have more.
@test "a recording has the set of each window, and of all, on either size of the host's pages" {
	local backing wrong all
	for backing in memfd anonymous; do
		# Two sets that share no page.
		kvm_guest_start "$backing" backing="$backing" touch='pages=3000 seconds=2 order=random; pages=4000 first=20000 seconds=2'
		wss_start record "$backing" -o "$BATS_TEST_TMPDIR/$backing.rec" --until-stopped --interval 500ms
		wait_until 60 has_sets "$backing"
		kill -INT "$wss_pid"
		wss_wait
		[ "$status" = 0 ]
		count_sets "$backing"
		read -r _ _ _ wrong all <<<"$counts"
		[ "$wrong" = 0 ]
		[ "$all" -le $((7000 + kvm_own_pages)) ]
		kvm_guests_end
	done
}

# QEMU's calculation outlasts the recording by up to four seconds.
@test "a sample at 4 KiB right after a recording waits" {
	kvm_guest_start again backing=anonymous touch='pages=4096 stride=8 order=random'
	wss record again -o "$BATS_TEST_TMPDIR/again.rec" --for 2s --interval 1s --window 500ms
	[ "$status" = 0 ]
	wss sample again --window 4s --granularity 4k --output csv
	[ "$status" = 0 ]
	[ "$(field granularity_bytes)" = 4096 ]
}

report_columns() { # NAME COLUMNS
	"$virt_wss" report "$BATS_TEST_TMPDIR/$1.rec" --output csv --columns "$2" | tr -d '\r'
}

# How near it comes depends on what else the machine does, which may also starve the guest in some: the least of several
# windows is printed.
@test "the stall of a window is predicted" {
	kvm_guest_start mapped touch='pages=65536 order=random access=modify'
	wss sample mapped --window 200ms --count 8 --output csv --columns arm_seconds,predicted_stall_seconds
	paste <(field arm_seconds) <(field predicted_stall_seconds) | awk '
		NF != 2 { next }
		!n++ || $1 < measured { measured = $1 }
		n == 1 || $2 < predicted { predicted = $2 }
		END { print "# measured / predicted:", measured / predicted; exit !n || measured <= 0 || predicted <= 0 }' >&3
}
