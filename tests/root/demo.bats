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

# Ctrl-C reaches the whole process group.
@test "demo --serve shows guests at the address that it prints, and ends all of it on Ctrl-C" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v curl >/dev/null || skip "needs curl"
	cd "$BATS_TEST_TMPDIR" || return 1
	# A background job ignores it otherwise.
	setsid env --default-signal=INT "$WSS_SRCDIR/scripts/demo-serve" "$virt_wss" >out 2>&1 3>&- &
	pid=$!
	wait_until 300 grep -q '^http://127' out || { cat out; false; }
	url=$(grep '^http://127' out)
	# Within 10 % of what it said, and what an idle guest touches.
	all_measured() {
		curl -sSf "${url}metrics" >metrics &&
			[ "$(sed -nE 's/^virt_wss_working_set_bytes\{domain="(small|medium|large)".*\} /\1 /p' metrics |
				awk 'BEGIN { mib["small"] = 16; mib["medium"] = 48; mib["large"] = 96 }
					{ off = $2 / 1048576 - mib[$1]; n += off > -0.1 * mib[$1] && off < 0.1 * mib[$1] + 4 }
					END { print n }')" = 3 ]
	}
	wait_until 120 all_measured || { cat out metrics; false; }
	kill -INT -- "-$pid"
	status=0
	wait $pid || status=$?
	[ $status = 130 ]
	refute curl -sS "${url}metrics"
	refute grep -ls "^$pid " /tmp/wss.*/owner
	refute pgrep -s "$pid"
}
