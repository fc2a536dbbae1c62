#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that 100 samples in a row in one process leave nothing behind.

load functions.sh

setup_file() {
	root_setup_file
	[ -z "$root_missing" ] || return 0
	embed_guest_start soak args="wss.map=96 wss.touch=64 wss.rate=200000"
	embed_guest_wait_ready soak
	wss_100_samples
}

teardown_file() {
	root_teardown_file
}

# Records "kB of anonymous memory, descriptors, children" of the tool several times a
# second. The memory is read last, because a process that ends loses it first: if it
# still has memory, it had its descriptors before.
watch_tool() { # PID
	local anon others
	while others="$(find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l) $(wc -w <"/proc/$1/task/$1/children")" &&
		anon=$(awk '/^RssAnon:/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [ -n "$anon" ]; do
		echo "$anon $others"
		timeout 0.1 tail --pid="$1" -f /dev/null || true
	done 2>/dev/null
}

wss_100_samples() {
	find "/proc/$(embed_guest_pid soak)/fd" -mindepth 1 | wc -l >"$BATS_FILE_TMPDIR/guest-fds"
	# On a busy machine arming often takes long, which is not tested here.
	"$virt_wss" sample soak --count 100 --window 100ms --max-stall 30s --output csv \
		>"$BATS_FILE_TMPDIR/out" 2>"$BATS_FILE_TMPDIR/err" 3>&- &
	pid=$!
	watch_tool $pid >"$BATS_FILE_TMPDIR/watched"
	status=0
	wait $pid || status=$?
	echo $status >"$BATS_FILE_TMPDIR/status"
}

# Prints the largest value of a column over a part of the run, given in tenths.
largest() { # COLUMN FROM TO
	part "$@" | sort -n | tail -n 1
}

smallest() { # COLUMN FROM TO
	part "$@" | sort -n | head -n 1
}

# Leaves out the last reading, during which the tool may have been closing its files.
part() { # COLUMN FROM TO
	awk -v column="$1" -v from="$2" -v to="$3" '
		{ value[NR] = $column }
		END {
			n = NR - 1
			for (i = int(n * from / 10) + 1; i <= n * to / 10; i++)
				print value[i] + 0
		}' "$BATS_FILE_TMPDIR/watched"
}

# On a busy machine a guest may get little CPU within a window, or none and touch nothing: that must be
# reported, and no other failure may occur.
@test "100 samples are all measured, or of a guest that did not run" {
	cat "$BATS_FILE_TMPDIR/err"
	out=$(cat "$BATS_FILE_TMPDIR/out")
	measured=$(field quality | grep -c '^ok$') || true
	starved=$(field error | grep -c '^the guest touched nothing at all within the window') || true
	slowed=$(paste -d' ' <(field quality) <(field notes) | grep -cE "^degraded $embed_slowed") || true
	echo "# measured: $measured, in which the guest ran little: $slowed, not at all: $starved" >&3
	[ $((measured + slowed + starved)) = 100 ]
	[ "$measured" -gt 0 ]
	[ "$(cat "$BATS_FILE_TMPDIR/status")" = $((starved > 0)) ]
	[ "$(wc -l <"$BATS_FILE_TMPDIR/watched")" -ge 10 ]
}

@test "the tool's anonymous memory stays under 16 MiB and does not grow" {
	early=$(largest 1 1 3)
	late=$(largest 1 9 10)
	echo "# anonymous memory in kB after 10 to 30 samples: $early, at the end: $late" >&3
	[ "$late" -gt 0 ]
	[ "$(largest 1 0 10)" -lt 16384 ]
	[ "$late" -le $((early + 256)) ]
}

# Some are open only for a moment, so the smallest number must not grow.
@test "the tool's descriptors and children do not grow in number" {
	echo "# descriptors after 10 to 30 samples: $(smallest 2 1 3), at the end: $(smallest 2 9 10)" >&3
	[ "$(smallest 2 9 10)" -gt 3 ]
	[ "$(smallest 2 9 10)" -le "$(smallest 2 1 3)" ]
	[ "$(smallest 3 9 10)" -le "$(smallest 3 1 3)" ]
}

@test "the guest runs, with the descriptors that it had" {
	[ "$(embed_process_state soak)" != T ]
	embed_guest_alive soak
	[ "$(find "/proc/$(embed_guest_pid soak)/fd" -mindepth 1 | wc -l)" -le \
		$(($(cat "$BATS_FILE_TMPDIR/guest-fds") + 1)) ]
}

@test "no process of the tool is left" {
	refute pgrep -f "$virt_wss sample soak"
}
