#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A fixed part of make check-faults, and that it fails when a check is taken out.

setup() {
	[ -e "$WSS_BUILDDIR/tests/tools/inject.so" ] || skip "no tests/tools/inject.so"
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	command -v xmllint >/dev/null || skip "needs libxml2-utils"
	# As the process ends gcov allocates memory, and crashes where it gets none.
	! grep -q '^SANITIZE_CFLAGS = .*--coverage' "$WSS_BUILDDIR/Makefile" || skip "gcov needs its memory"
}

faults() { # OPTION... of run: status
	status=0
	"$WSS_SRCDIR/tests/faults/run" "$@" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- || status=$?
	cat "$BATS_TEST_TMPDIR/out"
}

@test "calls that fail end well" {
	faults --quick --most 6
	[ "$status" = 0 ]
	# So many that the cases are really run.
	awk '$1 == "all:" { exit !($2 >= 100 && $2 == $5) }' "$BATS_TEST_TMPDIR/out"
	grep -q ', 0 failed$' "$BATS_TEST_TMPDIR/out"
}

@test "without the check of an allocation it fails" {
	faults --only '^methods csv$' --class alloc
	[ "$status" = 0 ]
	VIRT_WSS_FAULT=short-list faults --only '^methods csv$' --class alloc
	[ "$status" = 1 ]
	grep -q 'its output differs without a word' "$BATS_TEST_TMPDIR/out"
	grep -q '1 failed$' "$BATS_TEST_TMPDIR/out"
}

@test "without the check of a write it fails" {
	faults --only '^recording: mark$'
	[ "$status" = 0 ]
	VIRT_WSS_FAULT=lost-writes faults --only '^recording: mark$'
	[ "$status" = 1 ]
	grep -q 'what it left is wrong' "$BATS_TEST_TMPDIR/out"
}
