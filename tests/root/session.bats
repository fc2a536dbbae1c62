#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests a libvirtd of an ordinary user (qemu:///session) and its guest, measured by
# that user: other clients use the daemon, too, and it dies or hangs within a window.

load functions.sh
load daemon-functions.sh

setup_file() {
	root_setup_file libvirtd gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	daemon_new
	embed_guest_dir=$dir type=qemu memory=256 args='wss.map=96 wss.touch=64 wss.rate=200000' \
		embed_guest_xml plain | sed "s|$embed_root/plain.console|$dir/console|" >"$dir/plain.xml"
	as_nobody virsh -q -c qemu:///session create "$dir/plain.xml"
	ln -s "$dir/console" "$(embed_console plain)"
	mkdir -p "$embed_root/run/qemu"
	cp "$dir/run/libvirt/qemu/run/plain.pid" "$embed_root/run/qemu/"
	embed_guest_wait_ready plain
	embed_guest_wait_state plain touching
}

setup() {
	root_setup
	virt_wss=$dir/virt-wss
	daemon_start
	wss_as=("${nobody[@]}")
}

teardown_file() {
	[ -z "${dir-}" ] || daemon_stop KILL
	root_teardown_file
}

@test "a session guest is measured by its user, who is not root" {
	wss_whole plain -c qemu:///session sample
	[ "$status" = 0 ]
	[ "$(field domain)" = plain ]
	within_percent "$(field wss_bytes)" $((64 << 20)) 10
}

@test "other clients are served meanwhile" {
	clock_begin
	wss_start -c qemu:///session sample --window 600s
	as_nobody timeout 300 virsh -q -c qemu:///session domstats plain
	kill -0 "$wss_pid"
	run_a_while "$(embed_guest_pid plain)"
	pass 604
	clock_end
	wss_wait
	[ "$status" = 0 ]
}

@test "another user's process that claims the guest's UUID does not prevent its measurement" {
	local pid_file=$dir/run/libvirt/qemu/run/plain.pid uuid pids=() file
	uuid=$(as_nobody virsh -q -c qemu:///session domuuid plain)
	install -m 755 "$(readlink -f "$(command -v perl)")" "$embed_root/qemu-perl"
	for _ in {1..20}; do
		setpriv --reuid=65533 --regid=65533 --clear-groups "$embed_root/qemu-perl" \
			-e 'sleep 600' -- -uuid "$uuid" 3>&- &
		pids+=($!)
	done
	file=$(cat "$pid_file")
	wait_until 10 grep -qF "$uuid" "/proc/${pids[19]}/cmdline"
	echo "${pids[0]}" >"$pid_file"
	wss_whole plain -c qemu:///session sample
	echo "$file" >"$pid_file"
	kill "${pids[@]}"
	[ "$status" = 0 ]
	within_percent "$(field wss_bytes)" $((64 << 20)) 10
}

# A whole sample, of a window within which libvirtd ends.
whole_without_daemon() { # SIGNAL OPTION...
	local within=(daemon_stop "$1")
	shift
	wss_whole plain -c qemu:///session sample plain "$@"
}

@test "libvirtd stopped within the window: the sample does not fail" {
	whole_without_daemon TERM
	[ "$status" = 0 ]
	within_percent "$(field wss_bytes)" $((64 << 20)) 10
	embed_guest_alive plain
}

# For a session libvirt starts another daemon, where the profile is then.
@test "libvirtd killed within the window: it publishes, or fails with a message" {
	whole_without_daemon KILL --publish
	within_percent "$(field wss_bytes)" $((64 << 20)) 10
	embed_guest_alive plain
	if [ "$status" = 0 ]; then
		wss -c qemu:///session list --output csv
		grep -q '^plain,' <<<"$out"
	else
		[ "$status" = 1 ] || [ "$status" = 4 ]
		grep -Eq 'plain: cannot (read|write)' <<<"$err"
	fi
}

@test "virt-wss does not hang if libvirtd hangs" {
	kill -STOP "$(daemon_pid)"
	wss -c qemu:///session sample plain --window 500ms
	kill -CONT "$(daemon_pid)"
	[ "$status" = 4 ]
	embed_guest_alive plain
}

@test "virt-wss does not hang if libvirtd hangs within the window" {
	local within=(kill -STOP "$(daemon_pid)")
	wss_whole plain -c qemu:///session sample plain
	kill -CONT "$(daemon_pid)"
	[ "$status" = 0 ]
	embed_guest_alive plain
}

@test "QEMU stopped by a signal: exit 1, not a small working set" {
	stop_and_wait "$(embed_guest_pid plain)"
	wss -c qemu:///session sample plain --window 500ms
	kill -CONT "$(embed_guest_pid plain)"
	[ "$status" = 1 ]
	one_line_error plain
	[[ $out != *ok* ]]
	embed_guest_alive plain
}

@test "QEMU stopped by a signal within the window: exit 1, or degraded" {
	clock_begin
	wss_start -c qemu:///session sample plain --window 600s --output csv
	stop_and_wait "$(embed_guest_pid plain)"
	pass 604
	clock_end
	wss_wait
	kill -CONT "$(embed_guest_pid plain)"
	[ "$status" = 1 ] || [ "$(field quality)" = degraded ]
	embed_guest_alive plain
}
