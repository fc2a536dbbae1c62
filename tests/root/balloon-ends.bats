#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the end of balloon --apply on guests whose balloons move: when killed together with its
# watchdog, when another QEMU does not answer, and when the guest ends.

load balloon-functions.sh

@test "killed with its watchdog: refuses the guest until --restore has given memory back" {
	apply web1
	wait_until 120 taken_at_least web1 40
	[ "$(watchdog_pid | wc -w)" = 1 ]
	kill_with_watchdog
	for words in "" --apply; do
		# shellcheck disable=SC2086
		wss balloon web1 $words
		[ "$status" = 5 ]
		[[ $err == *"web1: to allow this, run: virt-wss balloon --restore web1"* ]]
	done
	wss balloon web1 --output csv
	[ "$(field action)" = refused ]
	[[ $(field reason) == *"unfinished"* ]]
	[ -z "$(field to_bytes)" ]
	taken_at_least web1 40
	wss balloon web2 --restore
	[ "$status" = 0 ]
	refute none_left
	wss balloon --restore
	[ "$status" = 0 ]
	[[ $err == *"web1: restored to 512 MiB"* ]]
	none_left
	wait_until 20 taken_is web1 0
}

@test "without its watchdog it takes no more memory, and gives it back" {
	apply web1
	wait_until 120 taken_at_least web1 20
	kill -KILL "$(watchdog_pid)"
	apply_end
	[ "$status" = 1 ]
	said 'web1: the watchdog has died'
	said 'web1: restored to 512 MiB'
	none_left
	wait_until 20 taken_is web1 0
}

@test "a QEMU that does not answer delays neither the other guest nor the end" {
	apply web1 web2
	wait_until 120 taken_at_least web1 40
	wait_until 120 taken_at_least web2 40
	stopped=$(embed_guest_pid web1)
	kill -STOP "$stopped"
	steps=$(journal "name = 'web2'")
	wait_until 60 eval "[ \$(journal \"name = 'web2'\") -gt $((steps + 2)) ]"
	kill -TERM "$apply_pid"
	wait_until 30 eval "! kill -0 $apply_pid 2>/dev/null"
	apply_end
	[ "$status" = 143 ]
	wait_until 20 taken_is web2 0
	[ "$(journal "done = 0 AND name = 'web2'")" = 0 ]
	[ "$(journal "done = 0 AND name = 'web1'")" -ge 1 ]
	kill -CONT "$stopped"
	# The watchdog has not given up.
	wait_until 120 none_left
	wait_until 20 taken_is web1 0
}

@test "a guest that ends while it is shrunk leaves nothing unfinished" {
	apply web1 web2
	wait_until 120 taken_at_least web1 40
	kill -KILL "$(embed_guest_pid web1)"
	wait_until 60 eval "[ \"\$(journal \"done = 0 AND name = 'web1'\")\" = 0 ]"
	[ "$(journal "done = 0 AND name = 'web2'")" -ge 1 ]
	kill -TERM "$apply_pid"
	apply_end
	none_left
	wait_until 20 taken_is web2 0
}
