#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# -c kvm:///: every VM of the host on real KVM, whoever manages it, by the kernel's word alone.

bats_require_minimum_version 1.5.0
load "functions.sh"

teardown() {
	kvm_vmms_end
}

vms() { # ARGUMENT...
	wss -c kvm:/// "$@" --output csv
	out=${out//$'\r'/}
}

exact() { # DOMAIN PAGES
	kvm_sample_exact "$2" -c kvm:/// sample "$1"
}

@test "a VMM that is not QEMU, one that has forked, and two VMs in a process: exact" {
	local forked pair
	small_start tiny 3000
	exact "tiny-$small_pid" 3000
	small_start forker 700 fork
	forked=$small_pid
	exact "$forked" 700
	small_start pair 1000 2000
	# Other tests' guests may run on this host, too.
	vms list --columns domain
	mapfile -t pair < <(grep "^pair-$small_pid\." <<<"$out")
	[ ${#pair[@]} = 2 ]
	# Which of them is the larger is not known.
	vms list "${pair[@]}" --columns memory_bytes
	[ "$(field memory_bytes | head -n 1)" -lt $((2000 * 4096)) ] || pair=("${pair[1]}" "${pair[0]}")
	exact "${pair[0]}" 1000
	exact "${pair[1]}" 2000
	# Each VM once, also that of which a child has the descriptor, too.
	vms list --columns pid,memory_bytes
	[ "$(grep -c "^$forked," <<<"$out")" = 1 ]
	[ "$(grep -c "^$small_pid," <<<"$out")" = 2 ]
}

twice_ready() {
	[ "$(cat "$BATS_TEST_TMPDIR"/out.* | grep -c ready)" = 2 ]
}

@test "a VMM that executes another program has another VM, and what was measured of the first one ends" {
	small_start runner 700 exec 900
	exact "$small_pid" 700
	wss_start -c kvm:/// record "$small_pid" -o "$BATS_TEST_TMPDIR/runner.rec" --until-stopped --interval 300ms
	wait_until 30 test -s "$BATS_TEST_TMPDIR/runner.rec"
	kill -USR2 "$small_pid"
	wait_until 20 twice_ready
	wss_wait
	[[ $err =~ "the VM is gone"|"the guest has ended" ]]
	exact "$small_pid" 900
	vms list --columns pid
	[ "$(grep -cx "$small_pid" <<<"$out")" = 1 ]
}

@test "names and UUIDs are those of the process if it can be believed" {
	local uuid=6e1b2f3a-0000-4000-8000-00000000abcd
	kvm_qemu_start real 'pages=4096 access=modify' -m 64 -machine pc -uuid "$uuid"
	vms list real --columns domain,uuid,user,believed
	[ "$(tail -n 1 <<<"$out")" = "real,$uuid,root,1" ]
	vms list "$uuid" --columns domain
	[ "$(tail -n 1 <<<"$out")" = real ]

	# The same claims by a user's program that is named like QEMU.
	chmod 755 "$BATS_TEST_TMPDIR"
	cp "$WSS_BUILDDIR/tests/tools/small-vmm" "$BATS_TEST_TMPDIR/qemu-system-x86_64"
	mknod -m 666 "$BATS_TEST_TMPDIR/kvm" c 10 232
	small_run unshare -m sh -c 'mount --bind "$0" /dev/kvm && exec "$@"' "$BATS_TEST_TMPDIR/kvm" \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$BATS_TEST_TMPDIR/qemu-system-x86_64" 100 -name real -uuid "$uuid"
	# A user may call a cgroup below his own so.
	group_enter user.slice/x:/qemu.slice/1.scope "$small_pid"
	vms list real real@nobody --columns domain,user,manager,believed
	[ "$status" = 0 ]
	[ "$(tail -n 2 <<<"$out")" = "real,root,,1"$'\n'"real@nobody,nobody,unknown,0" ]
	vms list "$uuid" --columns domain
	[ "$(tail -n 1 <<<"$out")" = real ]

	# In a container, even by its root.
	small_run unshare -f -p --kill-child --mount-proc \
		"$BATS_TEST_TMPDIR/qemu-system-x86_64" 100 -name real -uuid "$uuid"
	vms list real real@root --columns domain,believed
	[ "$status" = 0 ]
	[ "$(tail -n 2 <<<"$out")" = real,1$'\n'real@root,0 ]

	# By root's, so that either may be the true one.
	small_start qemu-system-x86_64 200 -name real
	vms list --columns domain,believed
	refute grep -q '^real,' <<<"$out"
	grep -qx "qemu-system-x86_64-$small_pid,0" <<<"$out"
	grep -qx "qemu-system-x86_64-$(embed_guest_pid real),0" <<<"$out"
	vms list real
	[ "$status" = 1 ] && [[ $err == *"real: matches two guests, 'qemu-system-x86_64-"*"' and 'qemu-system-x86_64-"*"': choose one with --uuid UUID" ]]
}

@test "without CAP_SYS_PTRACE the error names it, and no guest is taken for another's" {
	small_start tiny 300
	wss_as=(setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace)
	for command in list "sample tiny"; do
		# shellcheck disable=SC2086
		wss -c kvm:/// $command
		[ "$status" = 5 ]
		[[ $err =~ "cannot read /proc/"[0-9]+"/exe, which says what runs a VM: ".*CAP_SYS_PTRACE ]]
	done
}

@test "for root on a host without libvirt all VMs are the default" {
	local host=$BATS_TEST_TMPDIR/host file
	small_start tiny 300
	mkdir -p "$host/run"
	for file in /proc /sys /etc; do
		ln -s "$file" "$host$file"
	done
	unset LIBVIRT_DEFAULT_URI
	VIRT_WSS_SYSROOT=$host wss list --output csv --columns domain
	[ "$status" = 0 ]
	grep -q "^tiny-$small_pid" <<<"$out"
	mkdir "$host/run/libvirt"
	VIRT_WSS_SYSROOT=$host wss list --output csv --columns domain
	[ "$status" = 4 ] && [[ $err =~ libvirt ]]
}

@test "QEMU's RAM is found by the kernel's slots: two cells, memory that is shared and that is not" {
	kvm_qemu_start two-cells 'pages=8192 order=random access=modify' -machine q35 -m 256 -smp 2 \
		-object memory-backend-memfd,id=a,size=128M -object memory-backend-ram,id=b,size=128M \
		-numa node,memdev=a,cpus=0 -numa node,memdev=b,cpus=1
	exact two-cells 8192
	vms methods two-cells
	[ "$status" = 0 ] && grep -q '^two-cells,mmu,1' <<<"$out"
}

@test "a guest that is paused is known by its QMP socket" {
	kvm_qemu_start halted 'pages=4096 access=modify' -m 256 -machine pc
	qmp_ask "$embed_root/halted.qmp" '{"execute": "stop"}'
	vms sample halted --window 500ms
	[ "$status" = 1 ]
	[[ $err == *"the guest is paused, not running"* ]]
}

@test "a guest whose writes are logged is left alone, although nobody can be asked why" {
	kvm_qemu_start moving 'pages=4096 access=modify' -m 256 -machine pc
	# Its last monitor is the one that virt-wss asks.
	monitor_take "$embed_root/moving.other"
	vms sample moving --window 500ms
	[ "$status" = 0 ]
	qmp_ask "$embed_root/moving.qmp" '{"execute": "calc-dirty-rate", "arguments": {"calc-time": 10, "mode": "dirty-bitmap"}}'
	vms sample moving --window 500ms
	[ "$status" = 1 ] && [[ $err == *"a job running (its writes are logged, as for a migration)"* ]]
}

# Records a guest in windows of half a second until it has touched so many pages in all of them -> the file NAME.rec
record() { # DOMAIN NAME PAGES OPTION...
	local domain=$1 name=$2 pages=$3
	shift 3
	wait_until 60 recording_begins "$name" -c kvm:/// record "$domain" -o "$BATS_TEST_TMPDIR/$name.rec" --interval 500ms \
		--until-stopped "$@"
	recording_end "$name" "$pages"
}

# A QEMU that is slow to answer is left alone. On a busy machine any is.
recording_begins() { # NAME ARGUMENT...
	local name=$1
	shift
	wss_start "$@"
	wait_until 60 has_window_or_ended "$name"
	! grep -q 'no reply within' "$BATS_TEST_TMPDIR/err" || { wss_wait; return 1; }
}

has_window_or_ended() { # NAME
	has_pages "$1" 1 || ! kill -0 "$wss_pid" 2>/dev/null
}

recording_end() { # NAME PAGES
	[ -n "$wss_pid" ]
	wait_until 60 has_pages "$1" "$2"
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 0 ]
}

has_pages() { # NAME PAGES
	[ "$(reported "$1" regions reference_bytes 2>/dev/null | awk '{ n += $1 } END { print int(n / 4096) }')" -ge "$2" ]
}

# The values of a field in a table of a report, of the rows where KEY is VALUE; first the report is made.
reported() { # NAME TABLE FIELD
	"$virt_wss" report "$BATS_TEST_TMPDIR/$1.rec" --output json | python3 -c 'import json, sys
for row in json.load(sys.stdin)[sys.argv[1]]:
    print(row[sys.argv[2]])' "$2" "$3"
}

@test "a recording of a VMM that is not QEMU has its pages at their addresses" {
	small_start tiny 3000
	record "$small_pid" tiny 3000
	[ "$(reported tiny regions start_address)" = 0x0$'\n'0x100000000 ]
	[ "$(reported tiny regions length_bytes)" = 1048576$'\n'$((3000 * 4096)) ]
	[ "$(reported tiny regions reference_bytes | tail -n 1)" = $((3000 * 4096)) ]
}

@test "a recording of QEMU with two cells and a DIMM has their pages at their addresses" {
	local pages
	# The first set lies on both cells, the second on the DIMM, at 4 GiB.
	kvm_qemu_start dimm 'pages=3000 first=31000 seconds=1 order=random; pages=2000 first=786432 seconds=1 access=modify' \
		-machine q35 -m 256,slots=1,maxmem=1G -smp 2 \
		-object memory-backend-memfd,id=a,size=128M -object memory-backend-ram,id=b,size=128M \
		-numa node,memdev=a,cpus=0 -numa node,memdev=b,cpus=1 \
		-object memory-backend-ram,id=c,size=64M -device pc-dimm,memdev=c,node=1
	record dimm dimm 5000 --granularity 4k
	[ "$(reported dimm regions start_address | xargs)" = "0x0 0x100000 0x8000000 0x100000000" ]
	[ "$(reported dimm regions length_bytes | xargs)" = "1048576 $((127 << 20)) $((128 << 20)) $((64 << 20))" ]
	[ "$(reported dimm regions reference_bytes | tail -n 1)" = $((2000 * 4096)) ]
	pages=$(reported dimm regions reference_bytes | awk '{ n += $1 } END { print n }')
	kvm_exact "$pages" 5000
}

has_intervals() { # N KIND
	[ "$("$virt_wss" report "$BATS_TEST_TMPDIR/plug.rec" --output csv --columns kind 2>/dev/null | grep -c "$2")" -ge "$1" ]
}

@test "the windows of a recording that lack memory which was plugged after it began are degraded" {
	kvm_qemu_start plug 'pages=3000 first=31000 seconds=1; pages=500 first=786432 seconds=1' \
		-machine q35,memory-backend=m -m 256,slots=1,maxmem=1G -object memory-backend-memfd,id=m,size=256M \
		-object memory-backend-memfd,id=c,size=64M
	wss_start -c kvm:/// record plug -o "$BATS_TEST_TMPDIR/plug.rec" --until-stopped --interval 400ms --granularity native
	wait_until 30 has_intervals 1 window
	qmp_ask "$embed_root/plug.other" '{"execute": "device_add", "arguments": {"driver": "pc-dimm", "id": "d", "memdev": "c"}}'
	# The first of them may be the one in which it was plugged.
	wait_until 30 has_intervals 3 degraded
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 0 ]
}

@test "recordings by libvirt and by the kernel have the same addresses" {
	kvm_guest_start both cells=128 memory=256 touch='pages=3000 first=31000 order=random access=modify'
	record both kernel 3000
	wss_start record both -o "$BATS_TEST_TMPDIR/libvirt.rec" --interval 500ms --until-stopped
	recording_end libvirt 3000
	[ "$(reported libvirt nodes node | xargs)" = "0 1" ]
	wss diff "$BATS_TEST_TMPDIR/kernel.rec" "$BATS_TEST_TMPDIR/libvirt.rec" --output json
	echo "$out"
	[ "$status" = 0 ]
}

# Root of a host whose policies are $1, in one file.
policy_host() { # TEXT
	local host=$BATS_TEST_TMPDIR/host file
	mkdir -p "$host/etc/virt-wss/policy.d"
	for file in /proc /sys /run; do
		[ -e "$host$file" ] || ln -s "$file" "$host$file"
	done
	echo "$1" >"$host/etc/virt-wss/policy.d/1.conf"
	export VIRT_WSS_SYSROOT=$host
}

@test "policies of guests without libvirt are files, by name or UUID" {
	local name uuid memory service
	small_start tiny 300
	name=tiny-$small_pid
	vms list "$name" --columns uuid
	uuid=$(tail -n 1 <<<"$out")
	policy_host "[$uuid]"$'\nminimum = 1MiB\n[other]\nopt-out = yes'
	vms policy get "$name" --columns domain,opt_out,minimum_bytes
	[ "$status" = 0 ]
	[ "$(tail -n 1 <<<"$out")" = "$name,0,1048576" ]
	wait_until 60 kvm_stores_enough vms sample "$name" --history "$BATS_TEST_TMPDIR/h.db"
	# What the guest holds is not known, nor whether it has a balloon.
	vms recommend "$name" --history "$BATS_TEST_TMPDIR/h.db" --columns domain,status
	[ "$status" = 0 ]
	[ "$(tail -n 1 <<<"$out")" = "$name,no size" ]
	# All guests, for the sum over the host, which libvirt is not asked about.
	memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE)))
	wss -c kvm:/// recommend --history "$BATS_TEST_TMPDIR/h.db" --output json
	grep -q "\"host_bytes\": $memory\b" <<<"$out"
	wss -c kvm:/// recommend --host --history "$BATS_TEST_TMPDIR/h.db" --output json
	grep -q "\"host_bytes\": $memory\b" <<<"$out"
	wss -c kvm:/// recommend "$name" --history "$BATS_TEST_TMPDIR/h.db"
	[ "$status" = 0 ]
	[[ $err == *": only libvirt can ask for them"* ]]
	vms methods "$name" --config --columns setting,blocks,reason
	[ "$status" = 0 ]
	[ "$(tail -n 1 <<<"$out")" = "unknown balloon,,without libvirt there is no domain XML that says whether it has a balloon" ]
	vms balloon "$name" --history "$BATS_TEST_TMPDIR/h.db" --columns action,reason
	[ "$(tail -n 1 <<<"$out")" = "refused,its balloon cannot be set without libvirt" ]
	# A mistyped name, or suffix, protects nobody.
	policy_host "[$name-]"$'\nopt-out = yes'
	echo >"$BATS_TEST_TMPDIR/host/etc/virt-wss/policy.d/2.cnf"
	wss -c kvm:/// policy get
	[[ $err == *"1.conf:2: [$name-] is no guest that runs: its settings are for nobody"* ]]
	[[ $err == *"2.cnf is not read: its name does not end in .conf"* ]]
	wss -c kvm:/// policy get "$name"
	[[ $err != *"[$name-]"* ]]
	"$WSS_BUILDDIR/virt-wss" -c kvm:/// serve --no-store --textfile "$BATS_TEST_TMPDIR/metrics" --window 200ms --period 1s \
		--boot 1s --budget 20% 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	service=$!
	small_pids+=" $service"
	wait_until 60 grep -qF "1.conf:2: [$name-] is no guest that runs: its settings are for nobody" "$BATS_TEST_TMPDIR/err"
	kill "$service"
	rm "$BATS_TEST_TMPDIR/host/etc/virt-wss/policy.d/2.cnf"
	policy_host "[$name]"$'\nopt-out = yes'
	vms sample "$name" --window 200ms
	[ "$status" = 5 ]
	[[ $err =~ "its policy opts out" ]]
	vms recommend "$name" --history "$BATS_TEST_TMPDIR/h.db" --columns status
	[ "$(tail -n 1 <<<"$out")" = "opted out" ]
	policy_host 'opt-out = yes'
	vms sample "$name" --window 200ms
	[ "$status" = 1 ]
	[[ $err =~ "policy in ".*"1.conf:1: the section of a guest is missing" ]]
	wss -c kvm:/// policy set "$name" --opt-out no
	[ "$status" = 5 ] && [[ $err =~ policy\.d ]]
}

@test "a guest that is named by its QMP socket is recorded, its policy obeyed, and its balloon left alone" {
	local socket=$embed_root/lone.qmp
	kvm_qemu_start lone 'pages=3000 order=random access=modify' -machine pc,memory-backend=m -m 256 \
		-object memory-backend-memfd,id=m,size=256M
	wss_start --qmp "$socket" record -o "$BATS_TEST_TMPDIR/lone.rec" --interval 500ms --until-stopped
	recording_end lone 3000
	kvm_exact "$(reported lone regions reference_bytes | awk '{ n += $1 } END { print n }')" 3000
	wss --qmp "$socket" balloon
	[ "$status" = 2 ]
	[[ $err =~ "known by its socket alone" ]]
	policy_host $'[lone]\nopt-out = yes'
	wss --qmp "$socket" sample --window 200ms
	[ "$status" = 5 ]
	[[ $err =~ "its policy opts out" ]]
}

has_series() { # REGULAR-EXPRESSION
	curl -s --unix-socket "$BATS_TEST_TMPDIR/http" http://localhost/metrics | grep -q "^$1"
}

served() { # NAME
	has_series "virt_wss_windows_total{domain=\"$1\",uuid=\"[0-9a-f-]\{36\}\"} [1-9]"
}

@test "serve measures guests that have no UUID, each for itself" {
	local first
	small_start tiny 300
	first=$small_pid
	small_start tiny 600
	"$WSS_BUILDDIR/virt-wss" -c kvm:/// serve --listen "unix:$BATS_TEST_TMPDIR/http" --history "$BATS_TEST_TMPDIR/h.db" \
		--window 500ms --period 1s --boot 1s --budget 20% --max-pressure 0 --max-stall 5s 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	small_pids+=" $!"
	wait_until 60 served "tiny-$first"
	wait_until 60 served "tiny-$small_pid"
	# After full windows, when the profiles of other guests are published.
	wait_until 60 has_series "virt_wss_working_set_bytes{domain=\"tiny-$small_pid\""
	refute grep published "$BATS_TEST_TMPDIR/err"
	# What its slots have is no balloon's size.
	refute has_series "virt_wss_balloon_bytes{domain=\"tiny-$small_pid\""
}

# Whether the service knows that no more memory than that is untouched since it watches the guest, and, if exact, that no less is.
aged() { # exact|most NAME BYTES
	curl -s --unix-socket "$BATS_TEST_TMPDIR/http" http://localhost/metrics |
		awk -v exact="$1" -v name="$2" -v most="$3" '$0 ~ "^virt_wss_cold_bytes.domain=\"" name "\"" && /never/ { bytes[/high/ ? "high" : "low"] = $2 }
			END { exit !("high" in bytes && bytes["high"] <= most && (exact != "exact" || bytes["low"] == bytes["high"])) }'
}

# Runs the service until that is so of both guests -> ran: seconds
serve_once() { # exact|most GUEST BYTES GUEST BYTES
	local begun=$SECONDS
	"$virt_wss" -c kvm:/// serve --continuous --listen "unix:$BATS_TEST_TMPDIR/http" --period 4s --window 1s \
		--boot 1s --max-pressure 0 --max-stall 5s --budget 100% 3>&- &
	wss_pid=$!
	small_pids+=" $wss_pid"
	wait_until 60 aged "$1" "$2" "$3"
	wait_until 60 aged "$1" "$4" "$5"
	kill "$wss_pid"
	wait "$wss_pid" || true
	ran=$((SECONDS - begun + 1))
}

# A figure of a guest's memory that was never touched since it is watched.
cold() { # GUEST COLUMN
	"$virt_wss" cold "$1" --output csv --columns "idle,$2" | tr -d '\r' | sed -n 's/^never,//p'
}

@test "serve knows the ages of each page of any guest, and keeps them over its own restart" {
	local tiny
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	kvm_qemu_start cold 'pages=9000 seconds=2; pages=3000 first=40000 order=random' -m 512 -machine pc,memory-backend=m \
		-object memory-backend-memfd,id=m,size=512M
	small_start tiny 3000
	tiny=tiny-$small_pid
	wait_until 20 grep -q '^ring3: phase=1' "$(embed_console cold)"
	serve_once exact cold $(((512 << 20) - 3000 * 4096)) "$tiny" $((4 * 4096))
	kvm_exact $(($(cold cold held_bytes) - $(cold cold low_bytes))) 3000
	[ "$(cold cold high_bytes)" = "$(cold cold low_bytes)" ]
	# Private memory: its pages, one of its program, and four of tables, which the processor alone reads.
	[ "$(cold "$tiny" held_bytes)" = $((3005 * 4096)) ]
	[ "$(cold "$tiny" low_bytes)" = $((4 * 4096)) ]
	# What was touched while no service ran, nobody knows.
	serve_once most cold $(((512 << 20) - 3000 * 4096)) "$tiny" $((4 * 4096))
	kvm_exact $(($(cold cold held_bytes) - $(cold cold high_bytes))) 3000
	[ "$(cold "$tiny" high_bytes)" = $((4 * 4096)) ]
	[ "$(cold "$tiny" low_bytes)" = 0 ]
	# They have been watched for longer than the second service ran.
	[ "$(cold cold watched_seconds | cut -d . -f 1)" -gt "$ran" ]
	[ "$(cold "$tiny" watched_seconds | cut -d . -f 1)" -gt "$ran" ]
}
