#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A part of make check-faults on a real guest with a balloon: after calls of virt-wss
# have failed, the guest runs, is not paused, and has its memory.

load balloon-functions.sh

setup_file() {
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	start_with_balloon web1
}

setup() {
	root_setup
	[ -e "$WSS_BUILDDIR/tests/tools/inject.so" ] || skip "no tests/tools/inject.so"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	state=$BATS_TEST_TMPDIR/state
}

# Makes virt-wss fail the N-th call of a class, and each EVERY-th call after it.
inject() { # CLASS N [EVERY]
	truncate -s 0 "$state"
	truncate -s 4096 "$state"
	wss_as=(env WSS_INJECT="$1:$2${3:+/$3}" WSS_INJECT_STATE="$state" WSS_INJECT_DIR="$BATS_TEST_TMPDIR"
		ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"
		LD_PRELOAD="$WSS_BUILDDIR/tests/tools/inject.so")
}

inject_nothing() {
	wss_as=()
}

state_number() { # INDEX: 0 how many calls there were, 1 how many of them were failed
	od -A n -t u8 -j $(($1 * 8)) -N 8 "$state" | tr -d ' '
}

# Whether no thread is stopped or traced, and QEMU runs the guest.
guest_runs() {
	local pid
	pid=$(embed_guest_pid web1)
	refute grep -qE '^[0-9]+ \(.*\) [TtZX]' /proc/"$pid"/task/*/stat
	grep -q '^TracerPid:.0$' "/proc/$pid/status"
	embed_guest_alive web1
}

ended_well() {
	[ "$status" = 0 ] || { [ "$status" = 1 ] && [ -n "$err" ]; }
	refute grep -qE 'Sanitizer|runtime error' <<<"$err"
}

# How many calls undisturbed runs make, at least: a run that waits for the machine makes more.
calls_of() { # CLASS COMMAND...: -> calls
	local class=$1 i n
	shift
	calls=''
	for i in 1 2 3; do
		inject "$class" 0
		"$@"
		[ "$status" = 0 ] || return 1
		n=$(state_number 0)
		[ -n "$calls" ] && [ "$calls" -le "$n" ] || calls=$n
	done
}

# A few calls of each class, spread evenly over those that an undisturbed run makes.
each_of() { # N CLASS COMMAND...: runs the command with each failed
	local n=$1 class=$2 calls i at
	shift 2
	calls_of "$class" "$@"
	[ "$calls" -gt "$n" ]
	for ((i = 0; i < n; i++)); do
		at=$((1 + (2 * i + 1) * calls / (2 * n)))
		while
			inject "$class" $at
			"$@"
			ended_well
			guest_runs
			taken_is web1 0
			[ "$(state_number 1)" = 0 ]
		do
			# This run waited less for the machine than those before, and made fewer calls.
			at=$((at * 3 / 4))
			[ $at -gt 0 ]
		done
	done
	inject_nothing
}

# Accepts any arming time, because the machine may be under load.
sample() { # OPTION...
	wss sample web1 --window 200ms --max-stall 10s "$@"
}

@test "sample --store: whichever call fails, the guest continues to run" {
	each_of 6 alloc sample --store
	each_of 3 library sample --store
	sample --store
	[ "$status" = 0 ]
}

@test "sample --pause: whichever call fails, the guest continues to run" {
	each_of 5 alloc sample --pause
}

# Restores a guest that a killed controller has shrunk, according to the journal.
shrunk_restore() {
	local uuid
	uuid=$(embed_virsh domuuid web1 | tr -d '[:space:]')
	embed_virsh setmem web1 $((384 << 10)) --live
	wait_until 20 taken_at_least web1 120
	[ -e "$VIRT_WSS_HISTORY" ] || "$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 "$mib" 60 "$uuid"
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET done = 1;
		INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
		VALUES ('$uuid', 'web1', 1, $((512 * mib)), $((512 * mib)), $((384 * mib)), 'test', '$LIBVIRT_DEFAULT_URI')"
	wss balloon --restore
	restored=$status
	if [ "$status" != 0 ]; then
		refute none_left
		inject_nothing
		wss balloon --restore
		[ "$status" = 0 ]
		status=$restored
	fi
	none_left
	wait_until 20 taken_is web1 0
}

@test "--restore: whichever call fails, the next run gives back the rest" {
	each_of 2 alloc shrunk_restore
}

can_be_ended() {
	! kill -0 "$apply_pid" 2>/dev/null
}

@test "--apply continues if each 40th allocation fails, and gives everything back" {
	refill web1
	wait_until 60 wss_store --window 200ms --max-stall 10s web1
	inject alloc 0
	apply web1 --max-stall 10s
	# A failure before it has begun ends it like any other command.
	wait_until 60 said 'a window begins'
	kill -TERM "$apply_pid"
	apply_end
	begun=$(state_number 0)
	inject alloc "$begun" 40
	apply web1 --max-stall 10s
	wait_until 120 taken_at_least web1 60
	kill -0 "$apply_pid"
	[ "$(state_number 1)" -ge 3 ]
	kill -TERM "$apply_pid"
	wait_until 30 can_be_ended
	apply_end
	apply_pid=
	[ "$status" = 143 ]
	wait_until 60 none_left
	wait_until 20 taken_is web1 0
	guest_runs
}
