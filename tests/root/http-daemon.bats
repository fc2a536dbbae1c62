#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that scrapes are answered while libvirtd is stopped, by a service of an ordinary user.

load functions.sh
load daemon-functions.sh

setup_file() {
	root_setup_file libvirtd curl
	[ -z "$root_missing" ] || return 0
	daemon_new
	embed_guest_dir=$dir type=qemu memory=128 args='wss.map=32 wss.touch=8 wss.rate=200000' embed_guest_xml web1 |
		sed "s|$embed_root/web1.console|$dir/console|" >"$dir/web1.xml"
	as_nobody virsh -q -c qemu:///session define "$dir/web1.xml"
	as_nobody virsh -q -c qemu:///session start web1
	ln -s "$dir/console" "$(embed_console web1)"
	embed_guest_wait_ready web1
}

teardown_file() {
	[ -z "${dir-}" ] || as_nobody virsh -q -c qemu:///session destroy web1 || true
	[ -z "${dir-}" ] || daemon_stop KILL
	root_teardown_file
}

setup() {
	root_setup
	cd "$BATS_TEST_TMPDIR" || return 1
	as_nobody true
	daemon_start
	"${nobody[@]}" "$dir/virt-wss" -c qemu:///session serve --no-store --method refs --period 3s --window 1s \
		--boot 1s --max-stall 10s --max-pressure 0 --budget 100% --listen "unix:$dir/run/socket" 2>err 3>&- &
	pid=$!
}

teardown() {
	kill -CONT "$(daemon_pid)" 2>/dev/null || true
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

has() { # LINE, a regular expression
	curl -sSf --unix-socket "$dir/run/socket" http://localhost/metrics >page && grep -qx "$1" page
}

age() { # -> of web1's sample, in whole seconds
	sed -n 's/^virt_wss_sample_age_seconds{domain="web1".*} \([0-9]*\).*/\1/p' page
}

is_old() {
	has 'virt_wss_libvirt_up 0' && [ "$(age)" -ge 10 ]
}

# Checks that 20 clients are all answered.
answers_all() {
	local requests bad p50 p99 max
	read -r requests bad p50 p99 max < <("$WSS_SRCDIR/tests/tools/http-client" scrape "unix:$dir/run/socket" 20 100)
	echo "# $requests requests, $bad bad, p50 $p50 ms, p99 $p99 ms, max $max ms" >&3
	[ "$requests" = 2000 ]
	[ "$bad" = 0 ]
}

@test "while libvirtd is stopped scrapes are answered from what was measured" {
	local child
	# The first window is a short trial, which is no working set.
	wait_until 90 has 'virt_wss_working_set_bytes{domain="web1".*} [1-9].*'
	child=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
	kill -STOP "$(daemon_pid)"
	answers_all
	# The service notices, and what it has measured stays, with its age.
	wait_until 120 is_old
	grep -q '^virt_wss_working_set_bytes{domain="web1"' page
	[ "$(tr -d ' ' <"/proc/$pid/task/$pid/children")" = "$child" ]
}

page_time() { # -> when the page was rendered, in whole seconds since 1970
	sed -n 's/^virt_wss_page_timestamp_seconds \([0-9]*\).*/\1/p' page
}

# Stops libvirtd and lets it go on. Whether the page that shows it back was rendered out of turn.
is_back_out_of_turn() {
	local before
	kill -STOP "$(daemon_pid)"
	wait_until 60 has 'virt_wss_libvirt_up 0'
	before=$(page_time)
	kill -CONT "$(daemon_pid)"
	wait_until 30 has 'virt_wss_libvirt_up 1'
	echo "after $(($(page_time) - before)) s"
	[ $(($(page_time) - before)) -lt 4 ]
}

# Regularly, they are rendered every five seconds, and never sooner; on a busy machine sometimes later.
@test "the pages show at once that libvirtd is back" {
	wait_until 90 has 'virt_wss_libvirt_up 1'
	wait_until 60 is_back_out_of_turn
}

@test "the HTTP process of an ordinary user is confined, too" {
	local child set
	wait_until 90 has 'virt_wss_libvirt_up 1'
	child=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
	cat "/proc/$child/status"
	for set in CapInh CapPrm CapEff CapAmb; do
		grep -qx "$set:[[:space:]]*0*" "/proc/$child/status"
	done
	grep -qx 'NoNewPrivs:[[:space:]]*1' "/proc/$child/status"
	grep -qx 'Seccomp:[[:space:]]*2' "/proc/$child/status"
	run as_nobody ls "/proc/$child/fd/"
	[ "$status" != 0 ]
	kill -KILL "$child"
	wait_until 30 has 'virt_wss_http_starts_total 2'
}
