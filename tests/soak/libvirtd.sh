#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libvirtd.sh STOPS KILLS: runs the service over 60 invented guests of a libvirtd of its own, stops and resumes
# that libvirtd STOPS times and kills it KILLS times, and checks that the service survives and is
# connected again. Prints each recovery, on a busy machine of the time that it has for that; the last line is "N stops, N kills,
# N crashes, longest recovery N ms". The exit status is 1 after a crash or without a recovery. VIRT_WSS is the program to try;
# its seed is printed.
set -u

: "${WSS_BUILDDIR:?}"
# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "$(dirname "$0")/../../scripts/embed.sh"
stops=$1 kills=$2
guests=60
hang_ms=300000 # what takes longer hangs
RANDOM=${WSS_SEED:-$$}
echo "seed ${WSS_SEED:-$$}"
dir=$(mktemp -d /tmp/wss-libvirtd.XXXXXX) || exit 1
chown 65534:65534 "$dir"
mkdir -m 700 "$dir/run" "$dir/config" "$dir/cache" && chown 65534:65534 "$dir"/*
install -m 755 "${VIRT_WSS:-$WSS_BUILDDIR/virt-wss}" "$dir/virt-wss"
nobody=(env -u LIBVIRT_DEFAULT_URI HOME="$dir" XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config"
	XDG_CACHE_HOME="$dir/cache" setpriv --reuid=65534 --regid=65534 --clear-groups)
socket=$dir/run/libvirt/libvirt-sock
daemon='' service='' crashes=0 lost=0 longest=0

# shellcheck disable=SC2317
cleanup() {
	[ -z "$service" ] || kill -KILL "$service" 2>/dev/null
	[ -z "$daemon" ] || { kill -CONT "$daemon"; kill -KILL "$daemon"; } 2>/dev/null
	wait 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

pause() { # MS
	read -rt "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))" <> <(:)
}

wait_ms() { # MS COMMAND...
	local end
	fair_clock
	end=$((fair_ms + $1))
	shift
	until "$@"; do
		fair_clock
		[ $fair_ms -lt $end ] || return 1
		pause 20
	done
	return 0
}

answers() {
	"${nobody[@]}" timeout 100 virsh -q -c "$uri" version >/dev/null 2>&1
}

daemon_start() {
	"${nobody[@]}" libvirtd >/dev/null 2>&1 &
	daemon=$!
}

service_start() {
	"${nobody[@]}" "$dir/virt-wss" -c "$uri" serve --no-store --period 1s --window 200ms --boot 1ms \
		>"$dir/out" 2>"$dir/err" &
	service=$!
}

# A line in its log for each time that libvirt was lost, and that it answers again.
times_lost() {
	grep -c 'error:' "$dir/err"
}

is_connected() {
	[ "$(times_lost)" = "$(grep -c 'libvirt answers again' "$dir/err")" ]
}

has_ended() {
	! kill -0 "$service" 2>/dev/null
}

check_service() {
	has_ended || return 0
	wait "$service"
	echo "round $1: the service ended with status $?: $(tail -n 1 "$dir/err")"
	crashes=$((crashes + 1))
	service_start
}

# libvirtd itself may crash as it goes on after a stop.
daemon_crashed() {
	kill -0 "$daemon" 2>/dev/null && return 1
	wait "$daemon"
	echo "libvirtd ended by itself with status $?"
	rm -f "$dir/run/libvirt/"*.pid
	daemon_start
	wait_ms $hang_ms answers
}

has_recovered() {
	! daemon_crashed || { fair_clock; start=$fair_ms; }
	is_connected || has_ended
}

recover() { # ROUND
	local start
	fair_clock
	start=$fair_ms
	if ! wait_ms $hang_ms has_recovered; then
		echo "$1: not connected"
		lost=$((lost + 1))
	fi
	fair_clock
	start=$((fair_ms - start))
	echo "$1: connected after $start ms"
	[ $start -le $longest ] || longest=$start
	check_service "$1"
}

{
	echo '<node>'
	for ((i = 0; i < guests; i++)); do
		printf '<domain type="test"><name>g%d</name><uuid>11111111-2222-3333-4444-%012d</uuid>' $i $i
		echo '<memory unit="GiB">4</memory><os><type>hvm</type></os></domain>'
	done
	echo '</node>'
} >"$dir/node.xml"
chmod 644 "$dir/node.xml"
uri="test+unix://$dir/node.xml?socket=$socket"
daemon_start
wait_ms $hang_ms answers || { echo 'libvirtd does not answer' >&2; exit 1; }
service_start
pause 1500
for ((round = 1; round <= stops; round++)); do
	kill -STOP "$daemon"
	# Shorter than libvirt's keepalive waits for an answer, or about as long.
	if [ $((round % 2)) = 1 ]; then pause $((500 + RANDOM % 3000)); else pause $((9000 + RANDOM % 6000)); fi
	kill -CONT "$daemon"
	recover "stop $round"
	pause $((300 + RANDOM % 700))
	check_service "stop $round"
done
for ((round = 1; round <= kills; round++)); do
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	pause $((RANDOM % 2000))
	rm -f "$dir/run/libvirt/"*.pid
	daemon_start
	wait_ms $hang_ms answers
	recover "kill $round"
	pause $((300 + RANDOM % 700))
	check_service "kill $round"
done
kill -TERM "$service"
wait_ms $hang_ms has_ended || { echo 'it does not end'; crashes=$((crashes + 1)); }
service=''
echo "$stops stops, $kills kills, $crashes crashes, longest recovery $longest ms"
[ $crashes = 0 ] && [ $lost = 0 ]
