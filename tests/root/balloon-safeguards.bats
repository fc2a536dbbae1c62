#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the watchdog and the history, which give guests their memory back if balloon --apply
# cannot, when one of them is gone or busy.

load balloon-functions.sh

@test "at its floor, without its watchdog: gives memory back, although no step is due" {
	apply web1
	wait_until 120 said 'web1: at its floor'
	kill -KILL "$(watchdog_pid)"
	apply_end
	[ "$status" = 1 ]
	said 'web1: the watchdog has died'
	none_left
	wait_until 20 taken_is web1 0
}

@test "the history is removed: memory that nobody could restore later is given back" {
	apply web1
	wait_until 120 taken_at_least web1 40
	rm "$VIRT_WSS_HISTORY"
	apply_end
	[ "$status" = 1 ]
	said 'web1: the history was removed'
	wait_until 20 taken_is web1 0
}

# Holds the write lock until its input ends.
hold_history() {
	mkfifo "$BATS_TEST_TMPDIR/hold"
	sqlite3 -cmd '.timeout 10000' "$VIRT_WSS_HISTORY" <"$BATS_TEST_TMPDIR/hold" 3>&- &
	exec 9>"$BATS_TEST_TMPDIR/hold"
	printf '%s\n' 'BEGIN IMMEDIATE;' ".shell touch $BATS_TEST_TMPDIR/held" >&9
	wait_until 20 test -e "$BATS_TEST_TMPDIR/held"
}

@test "a history that another process keeps busy delays steps, but no guest in need" {
	apply web1 web2
	wait_until 120 taken_at_least web2 40
	# Enough has been taken to show the guest's need, however slowly that grows, and there
	# are still steps to put off.
	wait_until 120 taken_at_least web1 160
	hold_history
	# From then on a window always waits for it.
	wait_until 60 said 'history .*: cannot write to it: database is locked'
	wait_until 60 said 'web1: put off: history'
	refute said 'web1: restored to'
	touch_mib web1 192
	wait_until 20 taken_is web1 0
	said 'web1: restored to 512 MiB: the guest'
	exec 9>&-
	kill -TERM "$apply_pid"
	apply_end
	[ "$status" = 143 ]
	none_left
	wait_until 20 taken_is web2 0
}

@test "a history that is locked at the end: memory is back, and what stays open is said with its command" {
	apply web1
	wait_until 120 taken_at_least web1 40
	hold_history
	kill -TERM "$apply_pid"
	wait_until 40 taken_is web1 0
	apply_end
	said 'web1: restored to 512 MiB'
	said 'web1: its steps stay open in the journal: history .*database is locked'
	command=$(sed -n 's/.*web1: when the history can be written again, run: virt-wss \(.*\)/\1/p' "$BATS_TEST_TMPDIR/apply")
	[ -n "$command" ]
	exec 9>&-
	# It lists them until then.
	refute none_left
	eval "\"$virt_wss\" $command"
	none_left
	taken_is web1 0
}

# Windows are so rare that a step meets the disk first. The other guest then finds the journal busy.
@test "a disk that hangs while a step is journaled keeps no guest from being looked at" {
	[ -e "$WSS_BUILDDIR/tests/tools/slow.so" ] || skip "needs slow.so"
	export WSS_SLOW=write,sync:120 WSS_SLOW_DIR=$BATS_TEST_TMPDIR WSS_SLOW_NAME='history.db*' WSS_SLOW_WHEN=$BATS_TEST_TMPDIR/slow
	wss_as=(env LD_PRELOAD="$WSS_BUILDDIR/tests/tools/slow.so")
	apply web1 web2 --period 60s
	wait_until 120 taken_at_least web1 40
	wait_until 120 taken_at_least web2 40
	: >"$WSS_SLOW_WHEN"
	wait_until 60 said "put off: the history's disk does not answer"
	# It waits for the disk, too, before it closes the journal.
	watchdog=$(watchdog_pid)
	kill -TERM "$apply_pid"
	wait_until 40 taken_is web1 0
	wait_until 40 taken_is web2 0
}
