#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs a fixed part of make check-faults, and tests that it fails when a check is
# removed.

setup() {
	[ -e "$WSS_BUILDDIR/tests/tools/inject.so" ] || skip "no tests/tools/inject.so"
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	command -v xmllint >/dev/null || skip "needs libxml2-utils"
	# gcov allocates memory when the process ends, and crashes if it gets none.
	! grep -q '^SANITIZE_CFLAGS = .*--coverage' "$WSS_BUILDDIR/Makefile" || skip "gcov needs its memory"
}

faults() { # OPTION... of run: status
	status=0
	"$WSS_SRCDIR/tests/faults/run" "$@" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- || status=$?
	cat "$BATS_TEST_TMPDIR/out"
}

@test "a failure of any call ends well" {
	faults --quick --most 6
	[ "$status" = 0 ]
	# A minimum, to make sure that the cases really run.
	awk '$1 == "all:" { exit !($2 >= 100 && $2 == $5) }' "$BATS_TEST_TMPDIR/out"
	grep -q ', 0 failed$' "$BATS_TEST_TMPDIR/out"
}

@test "fails if the check of an allocation is removed" {
	faults --only '^methods csv$' --class alloc
	[ "$status" = 0 ]
	VIRT_WSS_FAULT=short-list faults --only '^methods csv$' --class alloc
	[ "$status" = 1 ]
	grep -q 'its output differs without a word' "$BATS_TEST_TMPDIR/out"
	grep -q '1 failed$' "$BATS_TEST_TMPDIR/out"
}

@test "fails if the check of a write is removed" {
	faults --only '^recording: mark$'
	[ "$status" = 0 ]
	VIRT_WSS_FAULT=lost-writes faults --only '^recording: mark$'
	[ "$status" = 1 ]
	grep -q 'what it left is wrong' "$BATS_TEST_TMPDIR/out"
}
