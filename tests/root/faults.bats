#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests failures of a guest: one clear line, the right exit code, and an unchanged guest. The
# guest "good" lives through all tests.

load functions.sh

setup_file() {
	root_setup_file gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	embed_guest_start good args="wss.map=96 wss.touch=64 wss.rate=200000"
	embed_guest_start paused args="wss.map=64" paused=1
	embed_guest_start off args="wss.map=64" define=only
	embed_guest_wait_ready good
}

teardown_file() {
	root_teardown_file
}

good_runs() {
	[ "$(embed_process_state good)" != T ] && embed_guest_alive good
}

# Starts a guest under a name of its own, because libvirt takes some time to notice
# that a killed guest is gone.
start_victim() { # NAME
	embed_guest_start "$1" args="wss.map=96 wss.touch=64 wss.rate=200000"
	embed_guest_wait_ready "$1"
}

victim_gone() {
	[ ! -e "/proc/$victim/exe" ]
}

@test "an unknown domain exits 1" {
	wss sample nobody --window 1s
	[ "$status" = 1 ]
	one_line_error 'nobody'
}

@test "a domain that is shut off exits 1" {
	wss sample off --window 1s
	[ "$status" = 1 ]
	one_line_error 'off.*not running'
}

@test "a paused guest exits 1 and stays paused" {
	wss sample paused --window 1s
	[ "$status" = 1 ]
	one_line_error 'paused'
	[ "$(embed_virsh domstate paused)" = paused ]
}

@test "several domains with a bad one: the others are measured, exit 3" {
	wss_whole good sample nobody good off paused
	[ "$status" = 3 ]
	good_row=$(field domain | grep -n '^good$' | cut -d: -f1)
	[ "$(field wss_bytes | sed -n "${good_row}p")" -gt $((32 << 20)) ]
	[ "$(field quality | sed -n "${good_row}p")" = ok ]
	[ "$(field quality | grep -c failed)" = 3 ]
}

@test "several domains, all bad: exit 1" {
	wss sample nobody off --window 1s
	[ "$status" = 1 ]
}

@test "no DOMAIN means every running domain" {
	for words in "" --all; do
		# shellcheck disable=SC2086
		wss sample $words --window 2s --output csv
		# A paused guest is not running: it is reported, but does not count as missing.
		[ "$status" = 0 ]
		[ "$(field domain)" = good ]
		[[ $err == *"paused: not measured: it is paused"* ]]
	done
}

@test "SIGINT within the window exits 130 at once, SIGTERM 143, and the guest runs" {
	for signal in INT TERM; do
		wss_start sample good --window 24h
		kill -"$signal" "$wss_pid"
		wss_wait
		[ "$status" = $((128 + $(kill -l "$signal"))) ]
		one_line_error 'interrupted'
		good_runs
	done
}

@test "SIGINT with --pause resumes the guest" {
	wss_start sample good --window 60s --pause
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 130 ]
	good_runs
}

# The moments of kill -9 are spread over a sample that pauses often.
@test "kill -9 with --pause resumes the guest" {
	for delay in 0.001 0.01 0.03 0.1 0.3; do
		wss_start sample good --window 10ms --count 1000 --pause
		timeout "$delay" tail --pid="$wss_pid" -f /dev/null || true
		kill -KILL "$wss_pid"
		wss_wait
		[ "$status" = 137 ]
		wait_until 3 good_runs
	done
}

@test "a guest that is killed within the window exits 1 long before the window ends" {
	start_victim victim1
	wss_start sample victim1 --window 24h
	victim=$(embed_guest_pid victim1)
	kill -KILL "$victim"
	wss_wait
	[ "$status" = 1 ]
	one_line_error 'victim1'
	wait_until 10 victim_gone
}

@test "a guest is killed while others are measured: they are measured, exit 3" {
	start_victim victim2
	clock_begin
	wss_start sample good victim2 --window 600s --output csv
	kill -KILL "$(embed_guest_pid victim2)"
	run_a_while "$(embed_guest_pid good)"
	pass 604
	clock_end
	wss_wait
	[ "$status" = 3 ]
	good_row=$(field domain | grep -n '^good$' | cut -d: -f1)
	[ "$(field quality | sed -n "${good_row}p")" = ok ]
}

@test "arming that takes longer than --max-stall is reported" {
	wss sample good --window 500ms --max-stall 1us --output json
	[ "$status" = 0 ] || [ "$status" = 5 ]
	grep -q 'limit of 1 us for one stall' <<<"$out$err"
	good_runs
}

@test "without root: one line, exit 4 or 5" {
	wss_as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	install -m 755 "$virt_wss" "$embed_root/virt-wss"
	virt_wss=$embed_root/virt-wss
	chmod 755 "$embed_root"
	wss sample good --window 500ms
	[ "$status" = 4 ] || [ "$status" = 5 ]
	one_line_error 'virt-wss: error: .*'
	good_runs
}
