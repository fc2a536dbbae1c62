#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests what the processes of serve may do as root. That what is left suffices to measure a guest of another user
# is tested in qmp.bats.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v curl >/dev/null || skip "needs curl"
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	cat err
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

begin() { # OPTION... -> pid
	"$virt_wss" -c test:///default serve --no-store --textfile metrics "$@" 2>err 3>&- &
	pid=$!
	wait_until 30 [ -s metrics ]
	wait_until 30 grep -qx 'virt_wss_libvirt_up 1' metrics
}

mask() { # NUMBER...: of capabilities -> as in /proc/PID/status
	local cap sum=0
	for cap; do
		sum=$((sum | 1 << cap))
	done
	printf '%016x' $sum
}

has() { # PID FIELD VALUE
	local value
	value=$(sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status")
	[ "$value" = "$3" ] || { echo "$2 of $1: $value instead of $3"; return 1; }
}

child() {
	tr -d ' ' <"/proc/$pid/task/$pid/children"
}

# Whether there is a confined process that is not this one.
confined_but() { # PID
	local now
	now=$(child)
	[ -n "$now" ] && [ "$now" != "$1" ] && has "$now" Seccomp 2 && has "$now" CapBnd "$(mask)"
}

# CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_PERFMON, CAP_BPF; then CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP,
# CAP_SYS_CHROOT
measuring="1 19 38 39"
starting="5 6 7 8 18"

@test "the process that measures has the capabilities for that alone" {
	local thread
	begin
	# A worker that is idle ends.
	for thread in "/proc/$pid/task/"*; do
		thread=$pid/task/${thread##*/}
		# shellcheck disable=SC2086
		for set in CapEff CapPrm CapBnd; do
			has "$thread" $set "$(mask $measuring)" || [ ! -e "/proc/$thread" ]
		done
		has "$thread" CapInh "$(mask)" || [ ! -e "/proc/$thread" ]
		has "$thread" CapAmb "$(mask)" || [ ! -e "/proc/$thread" ]
		has "$thread" NoNewPrivs 1 || [ ! -e "/proc/$thread" ]
	done
}

@test "with HTTP it may start the process that speaks it, which then has no rights" {
	local set first
	begin --listen unix:socket
	wait_until 30 curl -sSf --unix-socket socket -o body http://localhost/metrics
	# shellcheck disable=SC2086
	has "$pid" CapEff "$(mask $measuring)"
	# shellcheck disable=SC2086
	for set in CapPrm CapBnd; do
		has "$pid" $set "$(mask $measuring $starting)"
	done
	has "$pid" NoNewPrivs 1
	first=$(child)
	for set in CapEff CapPrm CapBnd CapInh CapAmb; do
		has "$first" $set "$(mask)"
	done
	has "$first" NoNewPrivs 1
	has "$first" Seccomp 2
	[[ $(sed -n 's/^Uid:[[:space:]]*//p' "/proc/$first/status") == "$(id -u nobody)"* ]]
	# Again, with what is left.
	kill -KILL "$first"
	wait_until 30 confined_but "$first"
}

@test "where libvirt runs within it, or may be started by it, it keeps its rights" {
	"$virt_wss" -c "qemu:///embed?root=$PWD/none" serve --no-store --textfile metrics 2>err 3>&- &
	pid=$!
	wait_until 30 [ -s metrics ]
	has "$pid" NoNewPrivs 0
	has "$pid" CapEff "$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/$$/status)"
}

@test "it ends a process of another user" {
	begin --listen unix:socket
	wait_until 30 curl -sSf --unix-socket socket -o body http://localhost/metrics
	# One that does not notice by itself that the service ends.
	kill -STOP "$(child)"
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
}
