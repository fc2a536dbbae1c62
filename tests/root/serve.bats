#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests serve on a real guest: what it stores and tells, also after it was killed, and that the guest
# goes on whatever happens to it.

load functions.sh

setup_file() {
	root_setup_file sqlite3
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
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	metrics=$BATS_TEST_TMPDIR/metrics
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

begin() { # OPTION...: in the background -> pid
	"$virt_wss" serve --textfile "$metrics" --period 3s --window 1500ms --boot 1s --max-stall 10s \
		--budget 100% --max-pressure 0 "$@" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
}

metric() { # NAME: its value for web1
	sed -n "s/^virt_wss_$1{domain=\"web1\"[^}]*} //p" "$metrics" 2>/dev/null
}

has_windows() { # N
	local windows
	windows=$(metric windows_total)
	[ "${windows:-0}" -ge "$1" ]
}

has_set() {
	[ "$(metric working_set_bytes)" -ge $((32 << 20)) ]
}

# Samples are stored together, every five seconds.
has_stored() { # N
	[ "$(stored)" -ge "$1" ]
}

stored() {
	sqlite3 -readonly "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM sample'
}

@test "the set of a guest is in the metrics and in the history" {
	begin
	wait_until 90 has_windows 3
	# A busy machine may have windows with less.
	wait_until 90 has_set
	[ "$(metric working_set_bytes)" -lt $((128 << 20)) ]
	grep -q '^virt_wss_domain_info{domain="web1",uuid="[-0-9a-f]*"} 1$' "$metrics"
	grep -q '^virt_wss_working_set_within_bytes{domain="web1"' "$metrics"
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	pid=''
	[ "$status" = 143 ]
	# The canary is not stored.
	[ "$(stored)" -ge 2 ]
	embed_guest_alive web1
}

@test "killed, it leaves the guest as it was, and the next one goes on" {
	begin
	wait_until 90 has_windows 2
	kill -KILL $pid
	wait $pid || true
	before=$(stored)
	embed_guest_alive web1
	rm "$metrics"
	begin
	wait_until 90 has_stored $((before + 1))
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'PRAGMA integrity_check')" = ok ]
}

@test "a guest that has just started is left alone" {
	begin --boot 20h
	wait_until 60 grep -q '^virt_wss_state{domain="web1",.*} 1$' "$metrics"
	# Longer than the period.
	for _ in 1 2; do
		before=$(stat -c %i "$metrics")
		wait_until 30 eval "[ \"\$(stat -c %i '$metrics')\" != $before ]"
	done
	[ "$(metric windows_total)" = 0 ]
}

profile_is_published() {
	grep -q 'urn:virt-wss:profile:1' "$embed_root/run/qemu/web1.xml"
}

# The profile of a hung libvirt call is not published, and costs no window.
@test "the guest's profile is published, whatever kills the service, and by the next one if libvirt hung" {
	local shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	! profile_is_published || embed_virsh metadata web1 --uri urn:virt-wss:profile:1 --remove --live
	wss list web1
	[[ $err == *"no profile has been published yet"* ]]
	WSS_HANG=virDomainSetMetadata:web1 WSS_HANG_FILE=$BATS_TEST_TMPDIR/hangs LD_PRELOAD=$shim begin
	wait_until 90 test -e "$BATS_TEST_TMPDIR/hangs"
	before=$(metric windows_total)
	wait_until 90 has_windows $((before + 2))
	kill -KILL $pid
	wait $pid || true
	if profile_is_published; then false; fi
	rm "$metrics"
	begin --no-publish
	wait_until 90 has_windows 4
	if profile_is_published; then false; fi
	kill -KILL $pid
	wait $pid || true
	begin
	wait_until 90 profile_is_published
	kill -KILL $pid
	wait $pid || true
	pid=''
	wss list web1 --output csv
	[ "$status" = 0 ]
	[ "$(field method)" = refs ]
	awk -v window="$(field window_seconds)" 'BEGIN { exit !(window >= 1.5) }'
	[ "$(field current_bytes)" -ge $((32 << 20)) ]
	embed_guest_alive web1
}
