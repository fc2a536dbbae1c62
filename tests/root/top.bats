#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests top without a service on a real guest, which it leaves alone for two minutes after its start.

load functions.sh

setup_file() {
	root_setup_file tmux
	[ -z "$root_missing" ] || return 0
	embed_guest_start web1 args="wss.map=64 wss.touch=32 wss.rate=200000" define=1
	embed_guest_wait_ready web1
	embed_guest_wait_state web1 touching
}

teardown_file() {
	root_teardown_file
}

setup() {
	root_setup
	cd "$BATS_TEST_TMPDIR" || return 1
	unset TMUX
}

teardown() {
	in_tmux kill-server 2>/dev/null || true
}

in_tmux() {
	tmux -S "$PWD/tmux" -f /dev/null "$@"
}

shows() { # RE
	in_tmux capture-pane -p -t top >screen && grep -qE -e "$1" screen
}

@test "a guest is measured within the budget, and is as it was afterwards" {
	in_tmux new-session -d -s top -x 150 -y 24 "'$virt_wss' top -d 1 2>err; echo ended \$?; exec cat"
	wait_until 60 shows '^web1 '
	grep -q '^no service: measuring within 0.5% of CPU time' screen
	wait_until 400 shows '^web1 +M? +[<>]?=? ?[0-9.]+ MiB ' || { cat screen; false; }
	cat screen
	in_tmux send-keys -t top q
	wait_until 60 shows '^ended 0$' || { cat screen; false; }
	embed_guest_alive web1
}
