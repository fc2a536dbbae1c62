#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests --qmp SOCKET with a fake QEMU that holds memory and touches a known part of it,
# or misbehaves. Needs neither QEMU nor root.

load fake-guest.sh

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	fake_setup
}

teardown() {
	fake_teardown
}

# Whether it ended with one line, and the fake QEMU is still alive.
refused() { # STATUS REGULAR-EXPRESSION
	[ "$status" = "$1" ] && [[ $err != *$'\n'* && $err =~ $2 ]] && kill -0 "$fake_pid"
}

# Whether what runs as $pid has said that, or has ended.
says_or_ends() { # TEXT
	grep -q "$1" "$BATS_TEST_TMPDIR/err" || ! kill -0 "$pid" 2>/dev/null
}

has_touched_all() {
	awk '/^Referenced:/ { kib += $2 } END { exit kib < 32 * 1024 }' "/proc/$fake_pid/smaps"
}

@test "the growth curve is drawn as text and as a picture" {
	fake_start </dev/null
	# 32 MiB at the end, drawn as the longest bar, once a window is long enough for the guest to touch them.
	for to in 1 10 100; do
		wss profile --method refs --from 10ms --to ${to}s --plot "$BATS_TEST_TMPDIR/growth.svg"
		[ "$status" = 0 ]
		! grep -qE "^ +$to(\.0+)? s +32(\.0)? MiB .*#{30}" <<<"$out" || break
	done
	grep -qE "^ +$to(\.0+)? s +32(\.0)? MiB .*#{30}" <<<"$out"
	xmllint --noout "$BATS_TEST_TMPDIR/growth.svg"
	grep -q 'time since measuring began' "$BATS_TEST_TMPDIR/growth.svg"
	# The curve begins with the first look, which may be late.
	grep -qE '>([0-9]+ ms|[0-9.]+ s)<' "$BATS_TEST_TMPDIR/growth.svg"
	grep -q 'balloon 128 MiB' "$BATS_TEST_TMPDIR/growth.svg"
	wss profile --method refs --to 500ms --repeat 2 --output csv
	[ "$status" = 0 ]
	[ "$(tail -n 1 <<<"$out" | cut -d, -f1,9)" = "fake1,2" ]
	[ "$(tail -n 1 <<<"$out" | cut -d, -f8)" = "" ]
	[ "$(field degraded_windows | sort -u)" = 0 ] || [[ $err =~ $embed_slowed ]]
	# A guest that was stopped within the window does not count as idle.
	"$WSS_BUILDDIR/virt-wss" --debug --qmp "$socket" profile --method refs --to 10s >"$BATS_TEST_TMPDIR/out" \
		2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 300 says_or_ends armed
	# Stopped before it has touched anything, it would be refused.
	wait_until 300 has_touched_all
	kill -0 $pid
	kill -STOP "$fake_pid"
	wait $pid
	kill -CONT "$fake_pid"
	grep -q '(refs, 4 KiB granularity, degraded' "$BATS_TEST_TMPDIR/out"
	grep -q 'note: the guest was stopped by a signal for about' "$BATS_TEST_TMPDIR/err"
	wss profile --from 2s --to 1s
	[ "$status" = 2 ]
	wss profile --to 200ms --plot /does/not/exist.svg
	[ "$status" = 1 ] && [ "$(wc -l <<<"$err")" = 1 ]
}

@test "a QEMU that is stopped is said to be, by whatever asks it, and answers when it goes on" {
	fake_start </dev/null
	kill -STOP "$fake_pid"
	wss sample --window 200ms
	refused 1 "its QEMU process is stopped by a signal \(SIGSTOP\): kill -CONT $fake_pid resumes it"
	wss methods
	grep -q "stopped by a signal (SIGSTOP)" <<<"$err"
	kill -CONT "$fake_pid"
	wss sample --window 200ms --method refs
	[ "$status" = 0 ]
}

@test "4 KiB granularity on huge pages is for KVM guests only" {
	fake_start </dev/null
	wss sample --window 200ms --granularity 4k --method mmu
	refused 5 'KVM'
	wss sample --window 200ms --granularity 3k
	[ "$status" = 2 ]
}

# -> host, with KVM, which has mapped 10 pages of 4 KiB for the fake guest, if that runs.
invent_kvm() {
	local name
	host=$BATS_TEST_TMPDIR/host
	mkdir -p "$host/sys/module/kvm_intel/parameters" "$host/sys/kernel/debug/kvm/$fake_pid-3"
	ln -sfn /proc "$host/proc"
	echo Y >"$host/sys/module/kvm_intel/parameters/ept"
	for name in pages_4k=10 pages_2m=0 pages_1g=0; do
		echo "${name#*=}" >"$host/sys/kernel/debug/kvm/$fake_pid-3/${name%=*}"
	done
}

# Samples a guest at 4 KiB on an invented host with KVM, where KVM has mapped 10 pages of 4
# KiB; the guest has these devices and this network, in QEMU's terms.
fine_sample() { # QOM-LIST INFO-NETWORK [QEMU-OPTION]
	fake_start "$uuid" "${@:3}" <<-EOF
		set kvm on
		${fine_script-}
		on qom-list
		return [{"name": "a", "type": "child<$1>"}]
		on human-monitor-command
		return "n: index=0,type=$2,fd=3\\r\\n"
		on calc-dirty-rate
		return {}
		on query-dirty-rate
		return {"status": "unstarted", "mode": "page-sampling"}
		on query-dirty-rate
		return {"status": "measuring", "mode": "dirty-bitmap"}
		on query-dirty-rate
		return {"status": "measured", "mode": "dirty-bitmap"}
	EOF
	invent_kvm
	VIRT_WSS_SYSROOT=$host wss --debug sample --method mmu --granularity 4k --recorder counters \
		--window 100ms --output csv
}

@test "4 KiB granularity requires devices that are known to survive the dirty log" {
	local refusal
	fine_sample virtio-net-pci tap
	[ "$status" = 0 ]
	[ "$(field granularity_bytes)" = 4096 ]
	grep -q 'dirty log on' <<<"$err"
	for refusal in "vfio-pci tap" "virtio-net-pci vhost-user" \
		"virtio-net-pci tap kvm,dirty-ring-size=4096"; do
		teardown
		# shellcheck disable=SC2086
		fine_sample $refusal
		[ "$status" = 5 ]
		grep -qE 'the dirty log is not safe with (vfio-pci|vhost-user|dirty-ring) \(it ' <<<"$err"
		kill -0 "$fake_pid"
	done
	# What the machine itself brings is in no list of devices.
	for refusal in 'on qom-get|return "nitro-enclave-machine"|nitro-enclave (virt-wss does not know it)' \
		'on query-memory-devices|return [{"type": "sgx-epc", "data": {"memaddr": 0, "size": 4096}}]|memory that is not RAM (memory beside'; do
		teardown
		fine_script=$(cut -d'|' -f1-2 <<<"$refusal" | tr '|' '\n') fine_sample virtio-net-pci tap
		[ "$status" = 5 ]
		grep -qF "the dirty log is not safe with ${refusal##*|}" <<<"$err"
	done
}

# Whether methods refuses mmu for this guest with that reason.
methods_refuse_mmu() { # REGULAR-EXPRESSION [QEMU-OPTION...], script on stdin
	fake_start "$uuid" "${@:2}"
	invent_kvm
	VIRT_WSS_SYSROOT=$host wss methods
	[ "$status" = 0 ]
	kill "$fake_pid"
	grep -qE "mmu +no .*$1" <<<"$out"
}

# Incus and LXD hand all options to QEMU in a file.
@test "an encrypted guest is not measured, wherever its QEMU has its options from" {
	printf '%s\n' '[machine]' '  memory-encryption = "sev0"' '[object "sev0"]' '  qom-type = "sev-guest"' \
		>"$BATS_TEST_TMPDIR/qemu.conf"
	methods_refuse_mmu 'is confidential \(confidential-guest-support=sev0\)' -readconfig "$BATS_TEST_TMPDIR/qemu.conf" \
		<<<'set kvm on'
	methods_refuse_mmu 'is confidential \(confidential-guest-support=tdx0\)' \
		-machine '{"type": "q35", "confidential-guest-support": "tdx0"}' <<<'set kvm on'
	# QEMU 2.12 to 5.2.
	methods_refuse_mmu 'is confidential \(confidential-guest-support=sev1\)' <<-EOF
		set kvm on
		on qom-get confidential-guest-support
		error GenericError Property not found
		on qom-get memory-encryption
		return "sev1"
	EOF
	# QEMU that does not say.
	methods_refuse_mmu 'may be confidential \(.*not found' <<-EOF
		set kvm on
		on qom-get confidential-guest-support
		error GenericError Property not found
	EOF
	methods_refuse_mmu 'may be confidential \(.*an integer instead of' <<-EOF
		set kvm on
		on qom-get confidential-guest-support
		return 5
	EOF
	methods_refuse_mmu confidential <<<'set kvm on' && return 1
	grep -qE 'mmu +yes' <<<"$out"
}

# Samples a guest on an invented host with KVM; QEMU has this device, and none on its command line.
native_sample() { # SCRIPT-LINE...
	fake_start < <(printf '%s\n' 'set kvm on' "$@")
	invent_kvm
	VIRT_WSS_SYSROOT=$host wss sample --method mmu --recorder counters --window 100ms --output json
	[ "$status" = 0 ]
	kill "$fake_pid"
}

@test "devices with memory of their own count also if no option names them" {
	local list note='memory of assigned or shared devices is counted as well'
	native_sample 'on human-monitor-command' 'return ""'
	[[ $out != *"$note"* ]]
	for list in 'return [{"name": "a", "type": "child<vfio-pci>"}]' 'return [{"name": "a", "type": "child<ivshmem-plain>"}]' \
		'error GenericError no'; do
		native_sample 'on human-monitor-command' 'return ""' 'on qom-list' "$list"
		[[ $out == *"$note"* ]]
	done
	native_sample 'on human-monitor-command' 'return "n: index=0,type=vhost-vdpa,vhostdev=/dev/vhost-vdpa-0\r\n"'
	[[ $out == *"$note"* ]]
}

@test "the BPF recorder is for KVM guests; auto works without it" {
	fake_start </dev/null
	wss sample --window 200ms --recorder bpf
	refused 5 'recorder'
	wss sample --window 200ms --recorder auto --output csv
	[ "$status" = 0 ]
	[ -z "$(field recorder)" ] && [ -z "$(field written_bytes)" ]
}

@test "both granularities are in one answer" {
	fake_start </dev/null
	wss sample --window 2s --granularity both --count 2 --output csv
	[ "$status" = 0 ]
	[ "$(wc -l <<<"$out")" = 3 ]
	measured_32_mib --granularity both
	[ "$(field native_window_seconds)" != "" ]
	[ "$(field native_wss_bytes)" -gt 0 ]
	[ "$(field native_wss_bytes)" -le $((32 << 20)) ]
	# On 4 KiB pages two windows differ only by the guest's activity: that is not bloat.
	[ "$(field granularity_bytes)" = 4096 ]
	[ -z "$(field huge_page_bloat)" ]
	wss sample --window 200ms --output csv
	[[ $out != *native* ]]
}

@test "the memory that the fake guest touches is measured" {
	fake_start </dev/null
	measured_32_mib --method refs
	[ "$(field domain)" = fake1 ]
	[ "$(field method)" = refs ]
	[ "$(field rss_bytes)" -ge $((128 << 20)) ]
}

# A script's answers to query-memdev: ID=MIB...
backends() {
	local backend list=''
	for backend; do
		list+=", {\"id\": \"${backend%=*}\", \"size\": $((${backend#*=} << 20)), \"share\": true}"
	done
	printf 'on query-memdev\nreturn [%s]\n' "${list#, }"
}

# and to query-memory-devices, one device: TYPE ID MIB
memory_device() {
	printf 'on query-memory-devices\nreturn [{"type": "%s", "data": {"memdev": "/objects/%s", "memaddr": 4294967296, "size": %s, "max-size": %s}}]\n' \
		"$1" "$2" $(($3 << 20)) $(($4 << 20))
	printf 'on query-memory-size-summary\nreturn {"base-memory": %s, "plugged-memory": %s}\n' $((128 << 20)) $(($3 << 20))
}

measured_128_mib() {
	measured_32_mib --method refs
	good_or_starved
	[ "$(field maximum_bytes)" = $((128 << 20)) ]
	kill "$fake_pid"
}

@test "memory backends that are not RAM do not count" {
	# ivshmem, or the backend of a device that was unplugged, with and without QEMU's word on the machine's backend.
	fake_start < <(backends iv=64 pc.ram=128 left=128; printf 'on qom-get memory-backend\nreturn "/objects/pc.ram"\n')
	measured_128_mib
	fake_start < <(backends iv=4 pc.ram=128)
	measured_128_mib
	# NVDIMM, which QEMU counts as plugged; virtio-mem that has given the guest nothing yet.
	fake_start < <(backends pc.ram=128 nv=64; memory_device nvdimm nv 64 64)
	measured_128_mib
	fake_start < <(backends pc.ram=128 pm=64; memory_device virtio-pmem pm 64 64)
	measured_128_mib
	# Two ways to make up the RAM: nothing is guessed.
	fake_start < <(backends a=64 b=64 left=128)
	wss sample --method refs --window 200ms
	refused 5 'guest RAM: its size is unknown'
}

@test "methods and mmu explain why mmu cannot measure a TCG guest" {
	fake_start </dev/null
	wss methods
	[ "$status" = 0 ]
	[[ $out == *mmu*KVM* ]]
	wss sample --method mmu
	refused 5 KVM
}

@test "refs refuses a KVM guest" {
	fake_start <<<'set kvm on'
	wss sample --method refs
	refused 5 'KVM|refs'
}

@test "--publish is refused without libvirt" {
	fake_start </dev/null
	wss sample --window 100ms --publish
	refused 2 libvirt
}

@test "a guest that is paused or waits for a migration fails" {
	fake_start <<<'set status paused'
	wss sample --window 100ms
	refused 1 paused
	kill "$fake_pid"
	wait "$fake_pid" || true
	rm -f "$socket"
	fake_start <<<'set status inmigrate'
	wss sample --window 100ms
	refused 1 'migrat|incoming'
}

@test "another UUID on the command line: not the guest, not touched" {
	fake_start 00000000-1111-2222-3333-444444444444 </dev/null
	wss sample --window 100ms
	refused 1 'belongs to the guest 00000000-1111-2222-3333-444444444444'
}

# As Proxmox VE starts it.
@test "a guest whose UUID comes from -smbios" {
	local other=00000000-1111-2222-3333-444444444444 none=00000000-0000-0000-0000-000000000000 answer
	for answer in "$uuid" $none; do
		fake_start $other -smbios "type=1,uuid=$uuid,manufacturer=x" <<<"set uuid $answer"
		wss sample --window 100ms --output csv
		[ "$status" = 0 ]
		[ "$(field uuid)" = "$uuid" ]
		kill "$fake_pid"
	done
}

@test "no UUID, and not QEMU: not the guest, not touched" {
	local none=00000000-0000-0000-0000-000000000000
	fake_start $none -qmp "unix:$socket,server=on,wait=off" <<<"set uuid $none"
	wss sample --window 100ms
	refused 1 'is not QEMU, and the guest has no UUID'
}

@test "a path that is not a socket is refused" {
	local what
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	: >"$BATS_TEST_TMPDIR/file"
	ln -s nothing "$BATS_TEST_TMPDIR/link"
	for what in "$BATS_TEST_TMPDIR"/{fifo,file,link,none} "$BATS_TEST_TMPDIR" /dev/null /dev/zero; do
		socket=$what
		wss sample --window 100ms
		[ "$status" = 4 ]
		[ "$(wc -l <<<"$err")" = 1 ]
	done
	socket=$BATS_TEST_TMPDIR/socket
}

@test "a server without a greeting is refused" {
	fake_start <<<$'connect\nhang'
	wss sample --window 100ms
	refused 4 "$socket|greeting|answer"
}

@test "a query that is never answered ends at the deadline" {
	fake_start <<<$'on query-status\nhang'
	wss sample --window 100ms
	refused 1 'query-status'
}

# Each answer comes well before its own timeout, but all of them together exceed the
# deadline.
@test "a QEMU that answers too slowly: the guest's deadline covers all queries" {
	fake_start <<<$'on *\ndelay 400\ndefault'
	for words in "sample --window 100ms" "sample --window 100ms --count 5" \
		"sample --window 100ms --granularity both" "profile --to 100ms"; do
		# shellcheck disable=SC2086
		wss $words --deadline 1s
		refused 1 'timed out after 1.00 s'
		[[ $out != *fake1*,ok,* ]]
		# The connection is gone: the fake serves one client at a time.
		[ "$(awk '{ sub(/.*\) /, ""); print $1 }' "/proc/$fake_pid/stat")" != T ]
	done
}

@test "a QEMU that answers slowly is measured" {
	fake_start <<<$'on *\ndelay 20\ndefault'
	wss sample --window 100ms --output csv
	[ "$status" = 0 ]
	good_or_starved
}

@test "a reply of 100 MiB is refused" {
	fake_start <<<$'on query-memory-size-summary\nhuge 100'
	(
		ulimit -v 700000
		wss sample --window 100ms
		refused 1 'large|long|MiB'
	)
}

@test "garbage is refused" {
	fake_start <<<$'on query-status\nline {"return": \\xff\\xfe]'
	wss sample --window 100ms
	refused 1 '.'
}

@test "endless events end at the deadline" {
	fake_start <<<$'on query-status\nflood'
	wss sample --window 100ms
	refused 1 '.'
}

@test "a socket that closes is an error" {
	fake_start <<<$'on query-status\nclose'
	wss sample --window 100ms
	refused 1 'the peer closed the connection$'
}

# A dying QEMU closes its sockets before its process is seen to have ended. By an invented clock it may take any time for that.
@test "QEMU that ends before the window is named, not the closed connection" {
	local n default shim=$WSS_BUILDDIR/tests/tools/hang.so
	for n in 1 2 3 4; do
		default=$(printf 'on query-status\ndefault\n%.0s' $(seq 2 "$n"))
		fake_start <<<"$default"$'\non query-status\nend 200'
		clock_new "$BATS_TEST_TMPDIR/clock" 1
		WSS_CLOCK=$BATS_TEST_TMPDIR/clock WSS_CLOCK_PACE=1 LD_PRELOAD=$shim wss sample --window 100ms
		[ "$status" = 1 ]
		[ "$err" = "virt-wss: error: $socket: the guest has ended" ]
		wait "$fake_pid"
		fake_pid=''
	done
}

@test "QEMU that dies within the window is an error" {
	fake_start </dev/null
	"$WSS_BUILDDIR/virt-wss" --debug --qmp "$socket" sample --window 3600s \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 300 says_or_ends armed
	grep -q armed "$BATS_TEST_TMPDIR/err"
	kill -KILL "$fake_pid"
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ $status = 1 ]
}

# Asks as a manager's daemon does: connects, waits for the greeting, asks a question, closes. The limit only ends what hangs.
poll_qmp() {
	timeout 300 perl -MIO::Socket::UNIX -e '
		$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "connect: $!";
		<$s> =~ /QMP/ or die "no greeting";
		for (qw(qmp_capabilities query-status)) {
			print $s "{\"execute\": \"$_\"}\n"; $s->flush;
			<$s> =~ /return/ or die "no answer";
		}' "$socket"
}

has_no_socket() {
	[ -z "$(find "/proc/$pid/fd" -lname 'socket:*')" ]
}

# Runs it, and asks once it has said TEXT.
answered_beside() { # TEXT WORD...
	local text=$1
	shift
	"$virt_wss" --debug --qmp "$socket" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 300 grep -q "$text" "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
	for _ in 1 2 3; do
		poll_qmp
	done
	kill -0 $pid
	# All its own connections are answered and closed, long before its window ends.
	wait_until 30 has_no_socket
	kill -INT $pid
	wait $pid || [ $? = 130 ]
}

@test "nothing holds the socket while a window runs or between two" {
	fake_start </dev/null
	answered_beside 'armed' sample --window 600s
	answered_beside 'armed' sample --window 2s --count 2 --interval 600s
	answered_beside 'armed' profile --from 1s --to 600s
}

@test "a guest is measured beside a manager that asks all the time" {
	fake_start </dev/null
	(while :; do poll_qmp || echo failed >"$BATS_TEST_TMPDIR/failed"; done) 3>&- &
	poller=$!
	wss sample --window 300ms --count 5 --output csv
	kill $poller
	wait $poller || true
	[ "$status" = 0 ]
	[ "$(field quality | grep -c .)" = 5 ]
	[ ! -e "$BATS_TEST_TMPDIR/failed" ]
}

@test "another process at the socket is not taken for the guest" {
	fake_start </dev/null
	"$virt_wss" --debug --qmp "$socket" sample --window 2s --count 2 >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 300 grep -q armed "$BATS_TEST_TMPDIR/err"
	first=$fake_pid
	rm "$socket"
	fake_start </dev/null
	wait $pid || true
	kill -KILL "$first"
	cat "$BATS_TEST_TMPDIR/err"
	grep -q "process $fake_pid answers there instead of $first, the guest's" "$BATS_TEST_TMPDIR/err"
}
