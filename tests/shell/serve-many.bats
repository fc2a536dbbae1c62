#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the service over 500 invented guests, one of which hangs, in periods of six seconds.

load functions.sh

bench=$WSS_BUILDDIR/tests/unit/bench-serve
shim=$WSS_BUILDDIR/tests/tools/hang.so

setup() {
	[ -x "$bench" ] || skip "needs tests/unit/bench-serve"
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
}

# The figure of a line "WHAT  VALUE of MOST UNIT: PART": its last field.
part() { # WHAT
	sed -n "s/^$1 .*: //p" <<<"$output"
}

at_most() { # MOST VALUE
	[ -n "$2" ] && awk -v most="$1" -v value="$2" 'BEGIN { exit !(value <= most) }'
}

@test "one of 500 guests hangs: the others are fresh within 1.5 periods, in 64 MiB" {
	# Periods of a clock that waits for who computes: the order of the windows decides, not the machine.
	clock_new "$BATS_TEST_TMPDIR/clock" 1000000
	run timeout -k 5 1800 env WSS_CLOCK="$BATS_TEST_TMPDIR/clock" WSS_CLOCK_PACE=2 LD_PRELOAD="$shim" "$bench" 500 6 1.5
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"499 of 499 have a sample"* ]]
	# Sanitizers and gcov need memory of their own.
	! grep -q '^SANITIZE_CFLAGS = *$' "$WSS_BUILDDIR/Makefile" ||
		at_most 1 "$(part 'largest resident set')"
	at_most 1 "$(part 'oldest sample')"
}
