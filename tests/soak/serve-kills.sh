#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# serve-kills.sh [KILLS]: kills the service with SIGKILL at random moments, by default 300 times, while it measures
# a fake guest in windows that follow each other (tests/faults/serve-windows.c); every fifth time its disk is full from
# some write on, until it is killed. Within a second of each kill the guest runs, unstopped, untraced and unlocked;
# the history is whole and has lost no sample that was there; and the ages can be read. The last line is "N
# kills, N samples, N failures"; the exit status is 1 after a failure. WSS_SEED repeats the moments of a run.
set -u

: "${WSS_BUILDDIR:?}"
kills=${1:-300}
moments_ms=8000 # more than samples wait for others before they are stored (WSS_ARCHIVE_DELAY_NS)
RANDOM=${WSS_SEED:-$$}
echo "seed ${WSS_SEED:-$$}"
source=$(cd "$(dirname "$0")/../.." && pwd)
export WSS_SRCDIR=$source
# shellcheck source-path=SCRIPTDIR source=../shell/kvm-guest.sh
. "$source/tests/shell/kvm-guest.sh"
dir=$(mktemp -d /tmp/wss-serve-kills.XXXXXX) || exit 1
kvm_guest_pid='' service='' failures=0 before=0

# shellcheck disable=SC2317
cleanup() {
	[ -z "$service" ] || kill -KILL "$service" 2>/dev/null
	[ -z "$kvm_guest_pid" ] || kill -KILL "$kvm_guest_pid" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

pause() { # MS
	read -rt "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))" <> <(:)
}

service_start() { # FULL-FROM: from this write on the disk is full; 0: never
	local inject=()
	[ "$1" = 0 ] || {
		: >"$dir/state"
		truncate -s 4096 "$dir/state"
		inject=(env "LD_PRELOAD=$WSS_BUILDDIR/tests/tools/inject.so" "WSS_INJECT=io:$1/1:ENOSPC"
			"WSS_INJECT_STATE=$dir/state" "WSS_INJECT_DIR=$dir/work")
	}
	(cd "$dir/work" && VIRT_WSS_SYSROOT=$dir/host exec ${inject[@]+"${inject[@]}"} \
		"$WSS_BUILDDIR/tests/faults/serve-windows" endless "$dir/guest" "$kvm_guest_uuid" "unix:$dir/http" \
		>"$dir/out" 2>"$dir/err") &
	service=$!
}

# A watchdog that was forked just before the kill has first to be scheduled, and until then holds what it inherited.
guest_at_rest_soon() {
	local end=$((${EPOCHREALTIME/./} + 1000000)) why
	until why=$(kvm_guest_at_rest); do
		[ "${EPOCHREALTIME/./}" -lt $end ] || { echo "$why"; return 1; }
		pause 10
	done
}

samples() {
	if [ -e "$dir/work/h.db" ]; then sqlite3 "$dir/work/h.db" 'SELECT count(*) FROM sample'; else echo 0; fi
}

whole() {
	[ ! -e "$dir/work/h.db" ] || [ "$(sqlite3 "$dir/work/h.db" 'PRAGMA integrity_check')" = ok ] ||
		{ echo 'the history is damaged'; return 1; }
	[ "$(samples)" -ge "$before" ] || { echo "samples are lost: $(samples) of $before"; return 1; }
	[ -z "$(ls "$dir/work/ages" 2>/dev/null)" ] ||
		VIRT_WSS_SYSROOT=$dir/host "$WSS_BUILDDIR/virt-wss" cold --history "$dir/work/h.db" >/dev/null ||
		{ echo 'the ages cannot be read'; return 1; }
}

mkdir "$dir/work"
kvm_guest_start || exit 1
for ((round = 1; round <= kills; round++)); do
	full=0
	[ $((round % 5)) != 0 ] || full=$((1 + RANDOM % 120))
	service_start $full
	pause $((RANDOM % moments_ms))
	if ! kill -0 "$service" 2>/dev/null && [ $full = 0 ]; then
		echo "round $round: the service had ended: $(tail -n 1 "$dir/err")"
		failures=$((failures + 1))
	fi
	kill -KILL "$service" 2>/dev/null
	wait "$service" 2>/dev/null
	service=''
	if ! why=$(guest_at_rest_soon && whole); then
		echo "round $round: $why"
		failures=$((failures + 1))
	fi
	before=$(samples)
done
echo "$kills kills, $before samples, $failures failures"
[ $failures = 0 ] && [ "$before" -gt 0 ]
