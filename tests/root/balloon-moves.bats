#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# balloon --apply on guests whose balloons move: what the host gets back, what the journal says,
# and how each need of the guest gives it back.

load balloon-functions.sh

# What a guest touches to free memory is none of its set.
no_step_within_a_window() {
	awk '/: a window begins$/ { open = 1; windows++ }
		/: the window is over$/ { open = 0 }
		/: (shrinks|grows) to / && open { within++ }
		END { printf "# %d windows, steps within them: %d\n", windows, within; exit within || windows < 3 }' \
		"$BATS_TEST_TMPDIR/apply" >&3
}

@test "in steps to the floor: the host has it, the journal says so, stopped it is given back" {
	before=$(rss_mib web1)
	apply web1
	wait_until 120 said 'web1: at its floor'
	after=$(rss_mib web1)
	echo "# host RSS $before MiB before, $after MiB at the floor, $(journal 1) steps" >&3
	[ "$((before - after))" -ge 150 ]
	[ "$(journal 'done = 0')" -ge 10 ]
	# From size to size, each at most 5 % below the one before, none below the floor.
	[ "$(journal "original_bytes <> $((assigned * mib))")" = 0 ]
	[ "$(journal "to_bytes < $((floor * mib)) OR to_bytes < from_bytes * 0.95 - $mib")" = 0 ]
	no_step_within_a_window
	kill -TERM "$apply_pid"
	apply_end
	[ "$status" = 143 ]
	none_left
	wait_until 20 taken_is web1 0
	[ "$(most_taken web1)" -le $((assigned - floor)) ]
	[ "$(most_taken web1)" -ge 150 ]
	no_oom web1
}

@test "a guest that needs more has its memory back, the controller goes on or leaves it" {
	apply web1
	wait_until 120 said 'web1: at its floor'
	touch_mib web1 192
	wait_until 20 taken_is web1 0
	grep -E 'gives all memory back \(512 MiB\): (the guest|the working set)' "$BATS_TEST_TMPDIR/apply"
	no_oom web1
	kill -TERM "$apply_pid" 2>/dev/null || true
	apply_end
	none_left
}

@test "killed as the guest doubles its set: the watchdog gives the memory back" {
	apply web1
	wait_until 120 taken_at_least web1 60
	kill -KILL "$apply_pid"
	touch_mib web1 64
	wait_until 60 none_left
	wait_until 20 taken_is web1 0
	no_oom web1
}
