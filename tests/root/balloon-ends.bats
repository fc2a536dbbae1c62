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
		[[ $err == *"web1: unless another virt-wss controls its balloon now,"*": to allow this, run: virt-wss balloon --restore web1"* ]]
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

qemu_sockets() { # PID
	find "/proc/$1/fd" -lname 'socket:*' | wc -l
}

# Keeps others from this libvirt, which admits one process at a time, for as long as the file hold exists.
libvirt_hold() {
	: >"$BATS_TEST_TMPDIR/hold"
	perl -MFcntl -e 'open(my $f, "+>>", $ARGV[0]) or die; my $lock = pack("s s x4 q q i", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die;
		rename("$ARGV[1]", "$ARGV[1].held"); select(undef, undef, undef, 0.1) while -e "$ARGV[1].held"' \
		"$embed_root/run/qemu/driver.pid" "$BATS_TEST_TMPDIR/hold" 3>&- &
	wait_until 20 [ -e "$BATS_TEST_TMPDIR/hold.held" ]
}

# The pipe is filled once the reader has stopped.
@test "a reader of the messages that stalls keeps neither --apply nor its watchdog from giving memory back" {
	for signal in TERM KILL; do
		mkfifo "$BATS_TEST_TMPDIR/messages.$signal"
		cat "$BATS_TEST_TMPDIR/messages.$signal" >"$BATS_TEST_TMPDIR/apply" 3>&- &
		reader_pid=$!
		"${wss_as[@]}" "$virt_wss" balloon --apply --period 3s --window 300ms --pause 1s web1 \
			2>"$BATS_TEST_TMPDIR/messages.$signal" 3>&- &
		apply_pid=$!
		wait_until 120 taken_at_least web1 60
		kill -STOP "$reader_pid"
		refute timeout 300 dd if=/dev/zero of="$BATS_TEST_TMPDIR/messages.$signal" oflag=nonblock bs=1 count=100000
		kill -"$signal" "$apply_pid"
		wait_until 60 none_left
		wait_until 20 taken_is web1 0
		kill -KILL "$reader_pid"
		wait "$apply_pid" || true
	done
}

# The watchdog's command must not reach a QEMU that is stopped: libvirt then connects to its monitor again while an answer
# to the controller waits there, may take that for its own, and kills the guest. libvirtd would stay connected.
@test "a QEMU that does not answer delays neither the other guest nor the end" {
	local stopped steps sockets
	apply web1 web2
	wait_until 120 taken_at_least web1 40
	wait_until 120 taken_at_least web2 40
	stopped=$(embed_guest_pid web1) watchdog=$(watchdog_pid)
	sockets=$(qemu_sockets "$stopped")
	kill -STOP "$stopped"
	steps=$(journal "name = 'web2'")
	wait_until 60 eval "[ \$(journal \"name = 'web2'\") -gt $((steps + 2)) ]"
	kill -STOP "$watchdog"
	kill -TERM "$apply_pid"
	wait_until 30 eval "! kill -0 $apply_pid 2>/dev/null"
	apply_end
	[ "$status" = 143 ]
	libvirt_hold
	kill -CONT "$watchdog"
	wait_until 20 taken_is web2 0
	[ "$(journal "done = 0 AND name = 'web2'")" = 0 ]
	[ "$(journal "done = 0 AND name = 'web1'")" -ge 1 ]
	wait_until 60 said 'cannot connect to libvirt'
	kill -CONT "$stopped"
	wait_until 60 eval "[ \$(qemu_sockets $stopped) -lt $sockets ]"
	# The watchdog has not given up.
	rm "$BATS_TEST_TMPDIR/hold.held"
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
