#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# -c proxmox:///: guests of real KVM in the shape of Proxmox VE's: its configurations, pid files and QMP sockets, in a /run
# and an /etc of the test's own; QEMU with its arguments; its cgroups; and a pvestatd that asks each guest.

bats_require_minimum_version 1.5.0
load "functions.sh"

uuid=0b1f0c7e-1111-4222-8333-944444444444

setup() {
	root_setup
	proxmox_host
}

teardown() {
	kvm_vmms_end
	[ -z "${namespace_pid-}" ] || kill -KILL "$namespace_pid"
}

# Makes the host -> host: its root, namespace_pid, in_host: a command that runs others there
proxmox_host() {
	local file
	host=$BATS_TEST_TMPDIR/host
	mkdir -p "$host/etc/pve/nodes/pve1/qemu-server"
	ln -s nodes/pve1/qemu-server "$host/etc/pve/qemu-server"
	for file in /proc /run /sys; do
		ln -s "$file" "$host$file"
	done
	unshare -m sh -c 'mount -t tmpfs -o mode=755 none /run && mkdir /run/qemu-server && echo ready && exec sleep infinity' \
		>"$BATS_TEST_TMPDIR/namespace" 3>&- &
	namespace_pid=$!
	wait_until 10 grep -q ready "$BATS_TEST_TMPDIR/namespace"
	in_host=(nsenter "--mount=/proc/$namespace_pid/ns/mnt")
	wss_as=("${in_host[@]}")
	unset LIBVIRT_DEFAULT_URI
	export VIRT_WSS_SYSROOT=$host
}

config() { # VMID [LINE...]
	local vmid=$1
	shift
	printf '%s\n' "$@" >"$host/etc/pve/qemu-server/$vmid.conf"
}

# Starts a guest with the options that Proxmox VE gives QEMU, in its cgroup, and waits until it has touched its 6000 pages
# -> qemu_pid, socket
proxmox_start() { # VMID NAME [MACHINE [QEMU-OPTION...]]
	local machine=${3:-pc} bus=pci.0
	[ "$machine" = pc ] || bus=pcie.0
	socket=/var/run/qemu-server/$1.qmp
	"${in_host[@]}" env "LD_PRELOAD=$WSS_BUILDDIR/tests/tools/drop-id.so" /usr/bin/kvm -id "$1" -name "$2,debug-threads=on" -no-shutdown \
		-chardev "socket,id=qmp,path=$socket,server=on,wait=off" -mon chardev=qmp,mode=control \
		-pidfile "/var/run/qemu-server/$1.pid" -daemonize -smbios "type=1,uuid=$uuid" \
		-nodefaults -display none -accel kvm -cpu host,-arch-capabilities -m 256 -machine "type=$machine" -bios "$kvm_rom" \
		-serial "file:$(embed_console "$1")" -device "virtio-balloon-pci,id=balloon0,bus=$bus,addr=0x3" "${@:4}" \
		-fw_cfg "name=opt/virt-wss/guest,string=pages=6000 order=random access=modify" 3>&- || return 1
	qemu_pid=$("${in_host[@]}" cat "/run/qemu-server/$1.pid")
	small_pids+=" $qemu_pid"
	group_enter "qemu.slice/$1.scope" "$qemu_pid"
	wait_until 30 grep -q '^ring3: all pages touched' "$(embed_console "$1")"
}

csv() { # ARGUMENT...
	wss "$@" --output csv
	out=${out//$'\r'/}
}

pve() { # ARGUMENT...
	csv -c proxmox:/// "$@"
}

row() { # N: of the table in $out
	sed -n "$(($1 + 1))p" <<<"$out"
}

@test "list has VMID, name, memory, balloon, shares and tags of the guests, running or not; sample is exact" {
	config 100 '# the web server' 'name: web' 'memory: 256' 'balloon: 128' 'shares: 2000' 'tags: prod;www' "smbios1: uuid=$uuid" \
		'[before]' 'name: old' 'memory: 4096' 'balloon: 0'
	config 101 'memory: current=1024' 'balloon: 0'
	config 102 'name: db'
	proxmox_start 100 web
	pve list --columns id,domain,uuid,state,pid,memory_bytes,balloon_minimum_bytes,balloon_shares,tags
	[ "$status" = 0 ]
	[ "$(wc -l <<<"$out")" = 4 ]
	[[ "$(row 1)" == 102,db,*,off,,$((512 << 20)),,, ]]
	[[ "$(row 2)" == 101,vm101,*,off,,$((1024 << 20)),,, ]]
	[ "$(row 3)" = "100,web,$uuid,running,$qemu_pid,$((256 << 20)),$((128 << 20)),2000,prod;www" ]
	kvm_sample_exact 6000 -c proxmox:/// sample --granularity 4k
	[ "$(field domain)" = web ]
	[ "$(field granularity_bytes)" = 4096 ]
	pve sample 100 "$uuid" web --window 2s
	[ "$status" = 0 ]
	[ "$(wc -l <<<"$out")" = 2 ]
	pve sample 101
	[ "$status" = 1 ]
	[[ $err =~ "shut off" ]]
	pve sample 103
	[ "$status" = 1 ]
	[[ $err =~ "103: no such VM" ]]
}

@test "a process that pretends to be VM 100 is not believed, whether the true one runs or not" {
	config 100 'name: web' "smbios1: uuid=$uuid"
	small_start kvm 300 -id 100 -name web -smbios "type=1,uuid=$uuid"
	"${in_host[@]}" sh -c 'echo "$1" >/run/qemu-server/100.pid' sh "$small_pid"
	pve list --columns id,domain,state,pid,details
	[ "$status" = 0 ]
	[[ "$(row 1)" == '100,web,unknown,,"'"/run/qemu-server/100.pid names process $small_pid, which is neither /usr/bin/kvm"* ]]
	pve sample 100 --window 200ms
	[ "$status" = 1 ]
	[[ $err =~ "it is unknown whether it runs" ]]
	# As what it is.
	kvm_sample_exact 300 -c kvm:/// sample "$small_pid"
	proxmox_start 100 web
	pve list 100 --columns uuid,state,pid
	[ "$(row 1)" = "$uuid,running,$qemu_pid" ]
	kvm_sample_exact 6000 -c proxmox:/// sample 100 --granularity 4k
}

@test "windows by 4 KiB of a guest of machine type q35, which has options in a file; but not of any file" {
	config 100 'name: web' 'machine: q35'
	config 101 'name: db' 'machine: q35'
	proxmox_start 100 web q35 -readconfig /usr/share/qemu-server/pve-q35-4.0.cfg
	kvm_sample_exact 6000 -c proxmox:/// sample 100 --granularity 4k
	proxmox_start 101 db q35 -readconfig /usr/share/qemu-server/pve-/../../../../etc/q35.cfg
	pve sample 101 --window 1s --granularity 4k
	[ "$status" = 5 ]
	[[ $err == *"-readconfig (the file may switch the dirty ring on)"* ]]
}

@test "guests with the same name or UUID are told apart by their VMIDs" {
	local uuids
	config 100 'name: web' "smbios1: uuid=$uuid"
	config 101 'name: web' "smbios1: uuid=$uuid"
	proxmox_start 100 web
	pve list --columns domain,uuid
	[ "$(cut -d , -f 1 <<<"$out" | tail -n 2 | xargs)" = "web:100 web:101" ]
	uuids=$(field uuid | sort -u)
	[ "$(wc -l <<<"$uuids")" = 2 ]
	refute grep -q "$uuid" <<<"$uuids"
	pve sample 100 --window 2s
	[ "$status" = 0 ]
	[ "$(field domain)" = web:100 ]
	pve sample web
	[ "$status" = 1 ]
	[[ $err == *"web: matches two guests, 'web:100' and 'web:101': choose one with --uuid UUID" ]]
	# The one that runs is what its process says, so that its monitor is still asked.
	kvm_sample_exact 6000 -c proxmox:/// sample 100 --granularity 4k
	ask stop
	pve sample 100 --window 1s
	[ "$status" = 1 ]
	[[ $err =~ "the guest is paused, not running" ]]
}

@test "recommend: guests that are off need nothing, one that is paused what it has; templates are left out" {
	local sum
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	config 100 'name: web' 'memory: 256'
	config 101 'name: off' 'memory: 1024'
	config 102 'name: image' 'memory: 1024' 'template: 1'
	proxmox_start 100 web
	pve list --columns domain,state
	[ "$(tail -n +2 <<<"$out" | sort | xargs)" = "image,template off,off web,running" ]
	pve sample 102
	[ "$status" = 1 ]
	[[ $err =~ "a template, not running" ]]
	wait_until 60 kvm_stores_enough pve sample 100 --granularity native
	pve recommend --columns domain,state
	[ "$status" = 0 ]
	[ "$(grep , <<<"$out" | sed 1d | xargs)" = "off,shut off web,running" ]
	wss -c proxmox:/// recommend --output json
	# shellcheck disable=SC2016
	sum='import json, sys; h = json.load(sys.stdin)["host"]; print(h["guests"], h["assigned_bytes"] >> 20, h["needed_bytes"] >> 20)'
	[ "$(python3 -c "$sum" <<<"$out")" = "1 255 255" ]
	ask stop
	pve recommend --columns domain,state
	[ "$(grep , <<<"$out" | sed 1d | xargs)" = "off,shut off web,paused" ]
	wss -c proxmox:/// check
	[ "$status" = 0 ]
	[[ $out =~ paused ]]
}

ask() { # COMMAND
	# shellcheck disable=SC2016
	"${in_host[@]}" bash -c '. "$WSS_SRCDIR/tests/root/functions.sh"; qmp_ask "$@"' bash "$socket" "$1" >/dev/null
}

# Does what pvestatd does every 10 s, twenty times a second: asks for status and balloon by a connection of its own
# (vmstatus() of PVE/QemuServer.pm). Notes each that was answered, and for how long QEMU kept it waiting for its greeting, in ms.
pvestatd_start() { # SOCKET
	"${in_host[@]}" /usr/bin/python3 -c 'import json, socket, sys, time
while True:
    begin = time.monotonic()
    client = socket.socket(socket.AF_UNIX)
    # With a time-out it would fail at once where another one waits already.
    client.connect(sys.argv[1])
    client.settimeout(300)
    stream = client.makefile("rw")
    stream.readline()
    waited = time.monotonic() - begin
    for command in ("qmp_capabilities", "query-status", "query-blockstats", "query-machines", "query-version", "query-balloon"):
        stream.write(json.dumps({"execute": command}) + "\n")
        stream.flush()
        while "event" in json.loads(stream.readline()):
            pass
    client.close()
    print(int(waited * 1000), flush=True)
    time.sleep(0.05)' "$1" >"$BATS_TEST_TMPDIR/polls" 2>&1 3>&- &
	pvestatd_pid=$!
	small_pids+=" $pvestatd_pid"
	wait_until 10 test -s "$BATS_TEST_TMPDIR/polls"
}

polls() {
	wc -l <"$BATS_TEST_TMPDIR/polls"
}

has_polls() { # N
	[ "$(polls)" -ge "$1" ]
}

# Begins a window, in which QEMU answers pvestatd as ever, as virt-wss has let its socket go. Its log outlasts the window.
window_leaves_qemu() {
	wss_start -c proxmox:/// sample 100 --window 40s --granularity 4k
	# The first may have been answered before.
	wait_until 10 has_polls $(($(polls) + 5))
	# A QEMU that is slow to answer virt-wss is let go.
	kill -INT "$wss_pid" 2>/dev/null || true
	wss_wait
	[ "$status" = 130 ]
}

migration_cancelled() {
	# shellcheck disable=SC2016
	"${in_host[@]}" bash -c '. "$WSS_SRCDIR/tests/root/functions.sh"; qmp_ask "$@"' bash "$socket" query-migrate | grep -q cancelled
}

# As many as it takes: QEMU may be busy with pvestatd, and virt-wss lets it go after 180 ms.
windows_are_exact() {
	pve sample 100 --window 2s --granularity 4k --count 3
	[ "$status" = 0 ] && [ "$(field granularity_bytes | sort -u)" = 4096 ] && kvm_exact "$(field wss_bytes | tail -n 1)" 6000 || return 1
	pve methods 100
	[ "$status" = 0 ] || return 1
	pve profile 100 --to 1s --granularity 4k
	[ "$status" = 0 ]
}

@test "windows by 4 KiB through the QMP socket leave it to pvestatd" {
	config 100 'name: web' 'memory: 256'
	proxmox_start 100 web
	pvestatd_start "$socket"
	wait_until 60 window_leaves_qemu
	wait_until 60 windows_are_exact
	kill -0 "$pvestatd_pid"
	echo "# of $(polls) polls the longest waited $(sort -n "$BATS_TEST_TMPDIR/polls" | tail -n 1) ms" >&3
	kill "$pvestatd_pid"
	# Paused, which the kernel does not know.
	ask stop
	pve sample 100 --window 1s
	[ "$status" = 1 ]
	[[ $err =~ "the guest is paused, not running" ]]
	ask cont
	# Migrating, slowly.
	ask '{"execute": "migrate-set-parameters", "arguments": {"max-bandwidth": 4096}}'
	ask '{"execute": "migrate", "arguments": {"uri": "exec:cat >/dev/null"}}'
	pve sample 100 --window 1s
	[ "$status" = 1 ]
	[[ $err =~ "a job running" ]]
	ask migrate_cancel
	wait_until 20 migration_cancelled
	# Another client that never goes away: by what KVM maps.
	monitor_take "$socket"
	pve sample 100 --window 1s
	[ "$status" = 0 ]
	[ "$(field granularity_bytes)" = 2097152 ]
	pve sample 100 --window 1s --granularity 4k
	# It may be free again the next time: a failure, not something that is unsupported.
	[ "$status" = 1 ]
	[[ $err =~ "QEMU's monitor" ]]
}

# Writes the host's only file of policies.
policies() { # TEXT
	mkdir -p "$host/etc/virt-wss/policy.d"
	echo "$1" >"$host/etc/virt-wss/policy.d/1.conf"
}

@test "policies by name or VMID; the balloon is Proxmox VE's; advice, check and history" {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	config 100 'name: web' 'memory: 256' 'balloon: 128'
	config 101 'name: web'
	proxmox_start 100 web
	policies $'[100]\nminimum = 64MiB\n[web]\nheadroom = 30%'
	pve policy get 100 --columns domain,minimum_bytes,headroom_percent
	[ "$status" = 0 ]
	[ "$(row 1)" = web:100,$((64 << 20)),30 ]
	wait_until 60 kvm_stores_enough pve sample 100
	csv history web:100 --columns domain,uuid
	[ "$status" = 0 ]
	[ "$(row 1)" = "web:100,$uuid" ]
	csv history 100 --columns domain,uuid
	[ "$status" = 0 ]
	[ "$(row 1)" = "web:100,$uuid" ]
	pve recommend 100 --columns domain,status
	[ "$status" = 0 ]
	[[ "$(row 1)" == "web:100,no size" ]]
	wss -c proxmox:/// recommend
	[ "$status" = 0 ]
	grep -q '^virt-wss: web:100: no size without balloon statistics, .*: the balloon driver in a guest reports them' <<<"$err"
	pve balloon 100 --columns action,reason
	[[ "$(row 1)" == "refused,"*"Proxmox VE's pvestatd sets its balloon, by its minimum and shares"* ]]
	# No hint follows, because nothing in the guest would allow it.
	wss -c proxmox:/// balloon 100
	[ "$status" = 5 ]
	refute grep -q "to allow this" <<<"$out$err"
	wss balloon 100 --apply
	[ "$status" = 5 ]
	[[ $err =~ "refused: Proxmox VE's pvestatd sets its balloon" ]]
	wss -c proxmox:/// squeeze 100
	[ "$status" != 0 ]
	[[ $err =~ pvestatd ]]
	wss -c proxmox:/// check
	[ "$status" = 0 ]
	[[ $out =~ "WSS OK".*"web:100" ]]
	pve migrate-estimate 100 --window 1s --bandwidth 1GiB/s --columns domain
	[ "$status" = 0 ]
	[ "$(row 1)" = web:100 ]
	wss check 100
	[ "$status" = 0 ]
	[[ $out =~ "WSS OK".*"web:100" ]]
	policies $'[100]\nopt-out = yes'
	pve sample 100 --window 200ms
	[ "$status" = 5 ]
	[[ $err =~ "its policy opts out" ]]
	wss -c proxmox:/// policy set 100 --opt-out no
	[ "$status" = 5 ]
	[[ $err =~ policy\.d ]]
	# A name may be another guest's VMID: it is looked up once.
	config 102 'name: 103'
	config 103 'name: late'
	csv history 102
	[[ $err =~ "103: " ]]
	[[ ! $err =~ "late" ]]
}

@test "for root on a host of Proxmox VE without libvirt it is the default" {
	config 100 'name: web'
	csv list --columns id,state
	[ "$status" = 0 ]
	[ "$(row 1)" = 100,off ]
	# Also for commands that find no guests at once, and beside it kvm:/// is named as libvirt's URIs are.
	wss balloon 100 --apply --history "$BATS_TEST_TMPDIR/history.db"
	[ "$status" = 5 ]
	[[ $err =~ "web: refused: not running" ]]
	export LIBVIRT_DEFAULT_URI=kvm:///
	csv list --columns pid
	[ "$status" = 0 ]
	[ "$(head -n 1 <<<"$out")" = pid ]
	unset LIBVIRT_DEFAULT_URI
	"${in_host[@]}" mkdir /run/libvirt
	wss list
	[ "$status" = 4 ]
	[[ $err =~ libvirt ]]
	"${in_host[@]}" rmdir /run/libvirt
	rm "$host/etc/pve/qemu-server"
	wss list
	[ "$status" = 4 ]
	[[ $err =~ "cannot read /etc/pve/qemu-server" ]]
	rm -r "$host/etc/pve"
	wss list --columns pid
	[ "$status" = 0 ]
}

has_series() { # REGULAR-EXPRESSION
	"${in_host[@]}" curl -s --unix-socket "$BATS_TEST_TMPDIR/http" http://localhost/metrics | grep -q "^$1"
}

@test "serve, cold and record work, pvestatd goes on, and the history outlives a restart of the guest" {
	local old_pid serve_pid
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	config 100 'name: web' 'memory: 256'
	proxmox_start 100 web
	pvestatd_start "$socket"
	# As its unit does, it finds the inventory of a host without libvirt itself.
	"${in_host[@]}" "$virt_wss" serve --continuous --listen "unix:$BATS_TEST_TMPDIR/http" --window 500ms --period 2s --boot 1s \
		--max-pressure 0 --max-stall 5s --budget 100% 2>"$BATS_TEST_TMPDIR/serve" 3>&- &
	serve_pid=$!
	small_pids+=" $serve_pid"
	wait_until 60 has_series "virt_wss_working_set_bytes{domain=\"web\",uuid=\"$uuid\""
	wait_until 60 has_series "virt_wss_cold_bytes{domain=\"web\""
	"${in_host[@]}" "$virt_wss" top --batch --count 1 --socket "$BATS_TEST_TMPDIR/http" >"$BATS_TEST_TMPDIR/top"
	grep -q '^web  ' "$BATS_TEST_TMPDIR/top"
	# It is answered all the time.
	wait_until 30 has_polls $(($(polls) + 60))
	kill -0 "$pvestatd_pid"
	old_pid=$qemu_pid
	# QEMU (7.2) may wait for ever for a command that it got while it was told to end.
	kill -KILL "$pvestatd_pid" "$old_pid"
	wait_until 60 refute kill -0 "$old_pid"
	proxmox_start 100 web
	pve list --columns uuid,pid
	[ "$(row 1)" = "$uuid,$qemu_pid" ]
	wait_until 60 has_series "virt_wss_working_set_bytes{domain=\"web\",uuid=\"$uuid\""
	# It writes the ages when it ends.
	kill "$serve_pid"
	wait "$serve_pid" || true
	csv cold web --columns domain,uuid
	[ "$status" = 0 ]
	[ "$(row 1)" = "web,$uuid" ]
	# So do top without a service, and the timer's command, which has no place for profiles here.
	wss top --batch --count 1
	[ "$status" = 0 ]
	[[ $out == *web* ]]
	wss sample --all --store --publish --window 2s
	[ "$status" = 0 ]
	[[ $err == *"nothing is published: proxmox:/// has no place for profiles"* ]]
	wss sample web --publish
	[ "$status" = 5 ]
	[[ $err == *"--publish needs libvirt: proxmox:/// has no place for profiles"* ]]
	wss -c proxmox:/// record web --for 2s --interval 500ms -o "$BATS_TEST_TMPDIR/web.rec"
	[ "$status" = 0 ]
}
