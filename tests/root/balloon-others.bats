#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon --apply and squeeze on a guest whose balloon somebody else sets, and each kind of end after
# that.

load functions.sh
load daemon-functions.sh
load balloon-functions.sh
load balloon-daemon-functions.sh

@test "an administrator sets the balloon, lower or higher: the guest keeps that and is left alone" {
	refill_web1
	apply web1
	wait_until 120 taken_at_least web1 60
	setmem 220
	apply_end
	[ "$status" = 1 ]
	said 'web1: somebody else set its balloon (now .*): left alone'
	none_left
	keeps 220
	refill_web1
	apply web1
	wait_until 120 taken_at_least web1 60
	setmem 500
	apply_end
	[ "$status" = 1 ]
	said 'web1: somebody else set its balloon (now .*): left alone'
	none_left
	keeps 500
}

@test "an administrator sets the balloon, and --apply or squeeze is stopped at once" {
	for size in 220 500; do
		for command in apply squeeze; do
			refill_web1
			$command web1
			wait_until 120 taken_at_least web1 60
			setmem $size
			kill -TERM "$apply_pid"
			apply_end
			[ "$status" = 143 ]
			wait_until 20 none_left
			keeps $size
		done
	done
}

@test "an administrator sets the balloon, and --apply is killed: neither watchdog nor --restore undo that" {
	for size in 220 500; do
		refill_web1
		apply web1
		wait_until 120 taken_at_least web1 60
		setmem $size
		kill -KILL "$apply_pid"
		wait_until 60 none_left
		keeps $size
		said 'web1: somebody else set its balloon (now .*): nothing given back'
	done
	refill_web1
	apply web1
	wait_until 120 taken_at_least web1 60
	kill_with_watchdog
	setmem 300
	wait_until 20 taken_is web1 $(((assigned - 300) * mib))
	wss balloon --restore
	[ "$status" = 0 ]
	[[ $err == *"web1: somebody else set its balloon (now 300 MiB): nothing given back"* ]]
	none_left
	keeps 300
}
