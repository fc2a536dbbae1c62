#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon --apply on guests whose balloons move: the memory that the host reclaims, the
# journal, and that each kind of need gives memory back.

load balloon-functions.sh

# Memory that a guest touches in order to free some is not part of its working set.
no_step_within_a_window() {
	awk '/: a window begins$/ { open = 1; windows++ }
		/: the window is over$/ { open = 0 }
		/: (shrinks|grows) to / && open { within++ }
		END { printf "# %d windows, steps within them: %d\n", windows, within; exit within || windows < 3 }' \
		"$BATS_TEST_TMPDIR/apply" >&3
}

@test "shrinks to the floor in journaled steps, the host gets the memory, and a stop gives it back" {
	before=$(rss_mib web1)
	apply web1
	wait_until 120 said 'web1: at its floor'
	after=$(rss_mib web1)
	echo "# host RSS $before MiB before, $after MiB at the floor, $(journal 1) steps" >&3
	[ "$((before - after))" -ge 150 ]
	[ "$(journal 'done = 0')" -ge 10 ]
	# Each size is at most 5 % below the previous one, and none is below the floor.
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

@test "a guest that needs more gets its memory back, and the controller continues or leaves it alone" {
	apply web1
	wait_until 120 said 'web1: at its floor'
	touch_mib web1 192
	wait_until 20 taken_is web1 0
	grep -E 'restored to 512 MiB: (the guest|the working set)' "$BATS_TEST_TMPDIR/apply"
	no_oom web1
	kill -TERM "$apply_pid" 2>/dev/null || true
	apply_end
	none_left
}

@test "killed while the guest doubles its set: the watchdog gives the memory back" {
	apply web1
	wait_until 120 taken_at_least web1 60
	kill -KILL "$apply_pid"
	touch_mib web1 64
	wait_until 60 none_left
	wait_until 20 taken_is web1 0
	no_oom web1
}
