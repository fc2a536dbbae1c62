#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later

load functions.sh

@test "the demo measures a real guest within 10 % and cleans up" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	"$WSS_SRCDIR/scripts/demo" "$virt_wss" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ $status = 0 ]
	grep -q '^difference' "$BATS_TEST_TMPDIR/out"
	refute grep -ls "^$pid " /tmp/wss.*/owner
}
