#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon --apply with a libvirtd while other things happen: it dies and is
# started again, and a guest is saved.

load functions.sh
load daemon-functions.sh
load balloon-functions.sh
load balloon-daemon-functions.sh

@test "libvirtd is killed: the memory is given back at once through the next one" {
	apply web1
	wait_until 120 taken_at_least web1 40
	# The next client, the watchdog, starts another libvirtd.
	kill -KILL "$(daemon_pid)"
	wait_until 20 taken_is web1 0
	wait_until 20 none_left
	apply_end
	[ "$status" = 4 ]
}

@test "libvirtd is killed during a squeeze: the memory is given back at once through the next one" {
	squeeze web1
	wait_until 120 taken_at_least web1 60
	kill -KILL "$(daemon_pid)"
	wait_until 20 taken_is web1 0
	wait_until 20 none_left
	apply_end
	[ "$status" = 4 ]
}

# Stopped as by Ctrl-Z.
@test "a stopped controller: its watchdog gives the memory back, and the guest is then left alone" {
	apply web1
	wait_until 120 taken_at_least web1 40
	kill -STOP "$apply_pid"
	wait_until 60 taken_is web1 0
	wait_until 20 none_left
	said 'no sign of life from the controller'
	kill -CONT "$apply_pid"
	apply_end
	[ "$status" = 1 ]
	said 'web1: somebody else set its balloon (now 512 MiB): left alone'
	none_left
	taken_is web1 0
}

@test "a stopped squeeze: its watchdog gives the memory back, and no edge is made of that" {
	squeeze web1
	wait_until 120 taken_at_least web1 60
	kill -STOP "$apply_pid"
	wait_until 60 taken_is web1 0
	wait_until 20 none_left
	kill -CONT "$apply_pid"
	apply_end
	[ "$status" = 1 ]
	said 'web1: somebody else set its balloon (now 512 MiB): left alone'
	none_left
	taken_is web1 0
}

@test "a guest that is saved while it is shrunk gets all memory back when it runs again" {
	apply web1
	wait_until 120 taken_at_least web1 40
	as_nobody virsh -q -c qemu:///session managedsave web1
	apply_end
	[ "$status" = 1 ]
	said 'web1: the guest is not running any more, and its balloon stays shrunk where it resumes'
	wss balloon --restore
	[ "$status" = 1 ]
	[[ $err == *"web1: the guest is saved, so its balloon stays shrunk"* ]]
	refute none_left
	as_nobody virsh -q -c qemu:///session start web1
	wait_until 60 none_left
	wait_until 20 taken_is web1 0
}
