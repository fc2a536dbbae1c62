#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the service survives a libvirtd that is stopped, resumed and killed, a few times;
# tests/soak/libvirtd.sh does so as often as it is told. Tests that guests whose QEMU hangs, more of them than
# libvirtd answers requests of one connection at a time, disturb no other guest: QEMUs that somebody has stopped, which
# are seen to be, and such as wait for a file, like one on storage that hangs, which nobody sees.

load functions.sh
load daemon-functions.sh

hung=(h1 h2 h3 h4 h5 h6) healthy=(a1 m1 z1)

setup_file() {
	root_setup_file libvirtd virsh setpriv gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	daemon_new
}

teardown_file() {
	local guest
	if [ -n "${dir-}" ]; then
		for guest in "${hung[@]}" "${healthy[@]}"; do
			kill -KILL "$(guest_pid "$guest")" 2>/dev/null || true
		done
		daemon_stop KILL
	fi
	root_teardown_file
}

guest_pid() { # NAME
	cat "$embed_root/s/run/libvirt/qemu/run/$1.pid"
}

# Small guests without a system, with a balloon, whose statistics come from QEMU, and with a monitor that libvirt does not have.
guest_create() { # NAME
	cat >"$dir/$1.xml" <<-XML
		<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
		  <name>$1</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
		  <os><type arch='x86_64' machine='pc'>hvm</type></os>
		  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <controller type='usb' model='none'/><memballoon model='virtio'/></devices>
		  <qemu:commandline><qemu:arg value='-qmp'/>
		    <qemu:arg value='unix:$dir/run/$1.qmp,server=on,wait=off'/></qemu:commandline></domain>
	XML
	as_nobody virsh -q -c qemu:///session create "$dir/$1.xml"
}

# Those of an earlier test still run.
guests_create() {
	local guest
	for guest in "${hung[@]}" "${healthy[@]}"; do
		[ -e "$embed_root/s/run/libvirt/qemu/run/$guest.pid" ] || guest_create "$guest"
	done
}

guests_stop() {
	local guest
	for guest in "${hung[@]}"; do
		stop_and_wait "$(guest_pid "$guest")"
	done
}

waits_for_reader() { # PID
	[ "$(cat "/proc/$1/wchan")" = wait_for_partner ]
}

# Has QEMU's main thread wait in open(2), with all its locks.
guest_block() { # NAME
	local client
	rm -f "$dir/run/$1.fifo"
	mkfifo -m 666 "$dir/run/$1.fifo"
	# shellcheck disable=SC2016
	perl -MIO::Socket::UNIX -e '
		my $qmp = IO::Socket::UNIX->new($ARGV[0]) or die "no socket";
		my $line = <$qmp>;
		print $qmp qq({"execute": "qmp_capabilities"}\n);
		$line = <$qmp>;
		print $qmp qq({"execute": "memsave", "arguments": {"val": 0, "size": 1, "filename": "$ARGV[1]"}}\n);
		$qmp->flush;
		$line = <$qmp>' "$dir/run/$1.qmp" "$dir/run/$1.fifo" 3>&- &
	client=$!
	wait_until 30 waits_for_reader "$(guest_pid "$1")"
	kill "$client"
}

guests_block() {
	local guest
	for guest in "${hung[@]}"; do
		guest_block "$guest"
	done
}

guests_go_on() {
	local guest
	for guest in "${hung[@]}"; do
		kill -CONT "$(guest_pid "$guest" 2>/dev/null)" 2>/dev/null || true
		[ ! -p "$dir/run/$guest.fifo" ] || timeout 300 cat "$dir/run/$guest.fifo" >/dev/null
		rm -f "$dir/run/$guest.fifo"
	done
}

# Checks that the healthy guests have a row, and the hung ones a reason.
told_apart() { # COLUMN REASON
	local guest
	for guest in "${healthy[@]}"; do
		grep -qx "$guest" <<<"$(field "$1")"
		refute grep -q "$guest: " <<<"$err"
	done
	for guest in "${hung[@]}"; do
		grep -Eq "$guest: ($2)" <<<"$err"
	done
}

measured() { # FILE: the healthy guests have been
	local guest
	for guest in "${healthy[@]}"; do
		grep -q "^virt_wss_working_set_bytes{.*domain=\"$guest\"" "$1" || return 1
	done
}

setup() {
	root_setup
	virt_wss=$dir/virt-wss
	daemon_start
	wss_as=("${nobody[@]}")
}

teardown() {
	local guest
	[ -z "${wss_pid-}" ] || kill -KILL "$wss_pid" 2>/dev/null || true
	guests_go_on
}

@test "the service survives what happens to libvirtd, and is connected again" {
	"$WSS_SRCDIR/tests/soak/libvirtd.sh" 4 2 3>&-
}

@test "guests whose QEMU hangs do not disturb the others, however many they are" {
	local command pids=() why='timed out after .* while (reading|waiting)|its QEMU has not answered|cannot read'
	guests_create
	guests_block
	wss -c qemu:///session sample --all --window 1s --deadline 30s --output csv
	[ "$status" = 3 ]
	told_apart domain "$why"
	for command in methods balloon; do
		"${wss_as[@]}" timeout 500 "$virt_wss" -c qemu:///session $command --output csv \
			>"$BATS_TEST_TMPDIR/$command.out" 2>"$BATS_TEST_TMPDIR/$command.err" 3>&- &
		pids+=($!)
	done
	for command in methods balloon; do
		status=0
		wait "${pids[0]}" || status=$?
		pids=("${pids[@]:1}")
		out=$(cat "$BATS_TEST_TMPDIR/$command.out")
		err=$(cat "$BATS_TEST_TMPDIR/$command.err")
		echo "$command -> $status: $err"
		[ "$status" = 3 ]
		told_apart domain "$why"
	done
	"${wss_as[@]}" "$virt_wss" -c qemu:///session serve --no-store --period 1s --window 200ms --boot 1ms \
		--max-pressure 0 --max-stall 5s --textfile "$dir/run/metrics" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 30 measured "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err"; kill -KILL $wss_pid; false; }
	rm "$dir/run/metrics"
	wait_until 30 measured "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err"; kill -KILL $wss_pid; false; }
	kill -TERM $wss_pid
	wss_wait
	[ "$status" = 143 ]
	guests_go_on
	wss -c qemu:///session sample --all --window 2s --output csv
	[ "$status" = 0 ]
	[ "$(field domain | wc -l)" = 9 ]
}

windows_of() { # FILE GUEST
	sed -nE 's/^virt_wss_windows_total\{.*domain="'"$2"'".*\} ([0-9]+)$/\1/p' "$1" 2>/dev/null
}

measured_often() { # FILE
	local guest n
	for guest in "${healthy[@]}"; do
		n=$(windows_of "$1" "$guest")
		[ "${n:-0}" -ge 6 ] || return 1
	done
}

# A call that waits for a QEMU that somebody has stopped takes one of libvirtd's threads for as long.
@test "guests whose QEMU is stopped are not called, and the others are measured in their periods" {
	local command guest calls=$dir/run/calls hold=$dir/run/hold why='its QEMU process is stopped by a signal \(SIGSTOP\): kill -CONT [0-9]+ resumes it'
	[ -e "$WSS_BUILDDIR/tests/tools/hang.so" ] || skip "no tests/tools/hang.so"
	install -m 755 "$WSS_BUILDDIR/tests/tools/hang.so" "$dir"
	guests_create
	guests_stop
	wss_as=("${nobody[@]}" env LD_PRELOAD="$dir/hang.so" WSS_HANG=virDomainGetJobInfo:- WSS_HANG_CALLS="$calls")
	for command in 'sample --all --window 1s' methods balloon; do
		# shellcheck disable=SC2086
		wss -c qemu:///session $command --output csv
		[ "$status" = 3 ]
		told_apart domain "$why"
	done
	wss -c qemu:///session squeeze "${hung[0]}" --dry-run --output csv
	[ "$status" = 1 ]
	grep -Eq "${hung[0]}: $why" <<<"$err"
	"${wss_as[@]}" "$virt_wss" -c qemu:///session serve --no-store --period 1s --window 200ms --boot 1ms \
		--max-pressure 0 --max-stall 5s --textfile "$dir/run/metrics" --hold-file "$hold" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 60 measured_often "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err" "$dir/run/metrics"; false; }
	# Nobody is being looked at then.
	touch "$hold"
	wait_until 60 grep -qx "virt_wss_guests{state=\"stopped\"} ${#hung[@]}" "$dir/run/metrics"
	for guest in "${hung[@]}"; do
		refute grep -x "$guest" "$calls"
	done
	for guest in "${healthy[@]}"; do
		grep -qx "$guest" "$calls"
	done
	# What needs no answer of QEMU's is done.
	wss -c qemu:///session policy set "${hung[0]}" --headroom 10
	[ "$status" = 0 ]
	rm "$hold"
	guests_go_on
	healthy=("${healthy[@]}" "${hung[@]}")
	wait_until 60 measured_often "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err" "$dir/run/metrics"; false; }
	kill -TERM $wss_pid
	wss_wait
	[ "$status" = 143 ]
	wss -c qemu:///session policy clear "${hung[0]}"
}

windows_noted() { # FILE -> windows_before
	local guest
	declare -gA windows_before=()
	for guest in "${healthy[@]}"; do
		windows_before[$guest]=$(windows_of "$1" "$guest")
	done
}

measured_further() { # FILE
	local guest n
	for guest in "${healthy[@]}"; do
		n=$(windows_of "$1" "$guest")
		[ "${n:-0}" -ge $((windows_before[$guest] + 6)) ] || return 1
	done
}

# Starts the service with calls that take an hour from when the file slow exists.
serve_slowly() { # CALLS DIRECTORY NAME
	[ -e "$WSS_BUILDDIR/tests/tools/slow.so" ] || skip "no tests/tools/slow.so"
	install -m 755 "$WSS_BUILDDIR/tests/tools/slow.so" "$dir"
	rm -f "$dir/run/slow" "$dir/run/metrics"
	slowly=(env LD_PRELOAD="$dir/slow.so" WSS_SLOW="$1:3600" WSS_SLOW_DIR="$2" WSS_SLOW_NAME="$3" WSS_SLOW_WHEN="$dir/run/slow")
	"${nobody[@]}" "${slowly[@]}" "$virt_wss" -c qemu:///session serve --no-store --period 1s --window 200ms --boot 1ms \
		--max-pressure 0 --max-stall 5s --textfile "$dir/run/metrics" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 60 measured_often "$dir/run/metrics"
	as_nobody touch "$dir/run/slow"
}

# Windows go on while a call is slow, and the service ends.
slowness_passes() {
	wait_until 60 test -s "$dir/run/slow"
	windows_noted "$dir/run/metrics"
	wait_until 60 measured_further "$dir/run/metrics" || { cat "$BATS_TEST_TMPDIR/err" "$dir/run/metrics" "$dir/run/slow"; false; }
	kill -TERM $wss_pid
	wss_wait
	[ "$status" = 143 ]
}

@test "a guest whose files in /proc take an hour to be read stops no window of the others" {
	local slowly call
	guests_create
	for call in open read; do
		serve_slowly $call "/proc/$(guest_pid h1)" '*'
		slowness_passes
	done
	wss_as=("${nobody[@]}" "${slowly[@]}")
	wss -c qemu:///session sample --all --window 1s --deadline 5s --output csv
	[ "$status" = 3 ]
	grep -q 'h1: timed out after 5.00 s' <<<"$err"
	hung=()
	told_apart domain
}

# Those that the others have are open.
@test "new connections that take an hour stop no window of guests that need none" {
	local slowly
	guests_create
	serve_slowly connect "$dir/run/libvirt" '*'
	guests_block
	slowness_passes
}

# What the service has throughout two seconds: what comes and goes meanwhile does not count.
service_counts() { # MOMENT -> threads, sockets
	local i n
	threads=9999 sockets=9999
	for ((i = 0; i < 20; i++)); do
		n=$(find "/proc/$wss_pid/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
		[ "$n" -ge "$threads" ] || threads=$n
		n=$(find "/proc/$wss_pid/fd" -lname "socket:*" 2>/dev/null | wc -l)
		[ "$n" -ge "$sockets" ] || sockets=$n
		sleep 0.1
	done
	echo "$1: $threads threads, $sockets sockets"
}

has_grown() {
	service_counts during
	[ "$sockets" -ge $((sockets_before + 2)) ]
}

# To what it was before the burst, or to less.
has_shrunk() {
	service_counts after
	[ "$threads" -le "$threads_before" ] && [ "$sockets" -le "$sockets_before" ]
}

# Idle connections and threads are gone: three figures in a row are the same.
is_steady() {
	local then="${threads-} ${sockets-}"
	service_counts before
	[ "$threads $sockets" = "$then" ] || steady=0
	[ $((++steady)) -ge 3 ]
}

# How many connections are in use depends on how many windows coincide, so the service is held when they are counted.
# libvirt's events tell of a pause however short it is; its state, which is asked before and after, does not.
@test "a guest that virsh suspends and resumes within one window: degraded, with the share" {
	local seconds share
	[ -e "$embed_root/s/run/libvirt/qemu/run/a1.pid" ] || guest_create a1
	for seconds in 300 0; do
		clock_begin
		wss_start -c qemu:///session sample a1 --window 600s --output csv
		as_nobody virsh -q -c qemu:///session suspend a1
		[ "$seconds" = 0 ] || pass "$seconds"
		as_nobody virsh -q -c qemu:///session resume a1
		pass $((604 - seconds))
		clock_end
		wss_wait
		[ "$status" = 0 ]
		[ "$(field quality)" = degraded ]
		share=$(sed -nE 's/.*the guest was (.* % and )?paused for about ([0-9.]+) %.*/\2/p' <<<"$out$err" | head -n 1)
		echo "share $share"
		# In percent of the window, of which the commands take next to nothing.
		awk -v share="$share" -v least=$((seconds / 6)) 'BEGIN { exit !(share != "" && share >= least - 2 && share <= least + 10) }'
	done
}

# The pause of a minute, after which idle ones are closed, is a second here.
@test "after a burst of guests that hang, and another libvirtd, the service is as small as before" {
	local daemon steady=0 hold=$dir/run/hold
	guests_create
	"${wss_as[@]}" env VIRT_WSS_FAULT=short-idle "$virt_wss" -c qemu:///session serve --no-store --period 1s \
		--window 200ms --boot 1ms --max-pressure 0 --max-stall 5s --textfile "$dir/run/metrics" --hold-file "$hold" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 30 measured "$dir/run/metrics"
	touch "$hold"
	wait_until 60 is_steady
	threads_before=$threads sockets_before=$sockets
	rm "$hold"
	guests_block
	wait_until 30 has_grown
	touch "$hold"
	guests_go_on
	wait_until 60 has_shrunk
	# The service starts another one as soon as it is gone.
	daemon=$(daemon_pid)
	kill -KILL "$daemon"
	wait_until 20 eval "! kill -0 $daemon 2>/dev/null"
	daemon_start
	rm "$dir/run/metrics" "$hold"
	wait_until 30 measured "$dir/run/metrics"
	touch "$hold"
	wait_until 60 has_shrunk
	rm "$hold"
	kill -TERM $wss_pid
	wss_wait
	[ "$status" = 143 ]
}

# SECONDS that libvirt takes for its capabilities, as often as it is asked.
sample_slowly() {
	wss_as=("${nobody[@]}" env LD_PRELOAD="$dir/hang.so" WSS_HANG=virConnectGetCapabilities: WSS_HANG_SECONDS="$1")
	wss -c qemu:///session sample --all --window 2s --deadline "$2" --output csv
}

@test "a libvirt that is slow to say its capabilities is asked once, for however many guests" {
	[ -e "$WSS_BUILDDIR/tests/tools/hang.so" ] || skip "no tests/tools/hang.so"
	install -m 755 "$WSS_BUILDDIR/tests/tools/hang.so" "$dir"
	sample_slowly 3 40s
	[ "$status" = 0 ]
	[ "$(field domain | wc -l)" = 9 ]
	sample_slowly 20 4s
	[ "$status" = 1 ]
	[ "$(grep -c 'timed out after 4.00 s while asking libvirt for its capabilities' <<<"$err")" = 9 ]
	refute grep -q 'another host' <<<"$err"
}
