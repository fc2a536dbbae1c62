# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of virt-wss on a fake QEMU that holds memory and touches a known
# part of it. $virt_wss is the program that they run.
# shellcheck disable=SC2034,SC2154

# shellcheck source-path=SCRIPTDIR source=functions.sh
. "$WSS_SRCDIR/tests/shell/functions.sh"

uuid=1f0c7f4e-5c0e-4b5e-9d0a-2f6a4f1f2b3c

fake_setup() {
	fake=$WSS_BUILDDIR/tests/qmp/fake-qmp
	[ -x "$fake" ] || skip "no tests/qmp/fake-qmp"
	socket=$(mktemp -u "${TMPDIR:-/tmp}/wss-qmp.XXXXXX")
	fake_pid=''
}

fake_teardown() {
	# SIGKILL also ends a process that is stopped.
	[ -z "$fake_pid" ] || { kill -KILL "$fake_pid"; wait "$fake_pid"; } 2>/dev/null || true
	rm -f "$socket"
}

fake_ready_or_gone() { # -> fake_says
	contents fake_says "$BATS_TEST_TMPDIR/fake"
	[[ $fake_says == ready* ]] || ! kill -0 "$fake_pid"
}

# Starts a fake QEMU with 128 MiB that touches 32 of them; stdin has more of its script.
fake_start() { # [UUID IN ITS COMMAND LINE [MORE OF IT]]
	{
		printf '%s\n' 'ram 128 32 memfd' 'set kvm off' 'set name fake1' "set uuid $uuid"
		cat
	} >"$BATS_TEST_TMPDIR/script"
	# An earlier server may have written "ready" to this file.
	: >"$BATS_TEST_TMPDIR/fake"
	"$fake" "$socket" "$BATS_TEST_TMPDIR/script" -uuid "${1:-$uuid}" "${@:2}" \
		>"$BATS_TEST_TMPDIR/fake" 2>&1 3>&- &
	fake_pid=$!
	wait_until 300 fake_ready_or_gone
	[[ $fake_says == ready* ]] || { echo "$fake_says"; return 1; }
}

wss() { # ARGUMENT...: on the fake guest
	run_wss --qmp "$socket" "$@"
}

# Whether the figure is good, or degraded only because the fake QEMU got too little CPU time, as on a busy machine.
good_or_starved() {
	[ "$(field quality)" = ok ] || [[ $(field notes) =~ ^${embed_slowed}[^\;]*(\;[ ]starting[ ]the[ ]window[ ]took[ ]longer[^\;]*)?$ ]]
}

# Samples the fake guest in longer and longer windows, until one has seen it touch all of its 32 MiB; none may see more.
measured_32_mib() { # ARGUMENT...
	local window bytes
	for window in 200ms 2s 20s 120s; do
		wss sample --window $window --output csv "$@"
		[ "$status" = 0 ] || return 1
		bytes=$(field wss_bytes)
		[ "$bytes" -le $((32 << 20)) ] || return 1
		[ "$bytes" != $((32 << 20)) ] || return 0
	done
	return 1
}
