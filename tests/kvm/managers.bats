#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# -c kvm:///: VMMs on real KVM in the shape that their managers give them (src/host/namers.c), and others that only pretend.

bats_require_minimum_version 1.5.0
load "functions.sh"

setup() {
	root_setup
	# Users have to reach the programs.
	chmod 755 "$BATS_TEST_TMPDIR"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
}

teardown() {
	kvm_vmms_end
}

vms() { # ARGUMENT...
	wss -c kvm:/// "$@" --output csv
	out=${out//$'\r'/}
}

row() { # N: of the table in $out
	sed -n "$(($1 + 1))p" <<<"$out"
}

exact() { # DOMAIN PAGES
	kvm_sample_exact "$2" -c kvm:/// sample "$1"
}

# Starts a VMM as Firecracker's jailer does: a copy of the program as DIRECTORY/firecracker/ID/root/firecracker, which is its root
# directory, as a user of its own; nobody does all of it in a user namespace, as anyone can -> small_pid
jail_start() { # ID USER PAGES ARGUMENT...
	local jail=${jails-$BATS_TEST_TMPDIR}/firecracker/$1/root user=$2 file
	shift 2
	mkdir -p "$jail/dev"
	cp "$WSS_BUILDDIR/tests/tools/small-vmm" "$jail/firecracker"
	ldd "$jail/firecracker" | grep -o '/[^ ]*' | while read -r file; do
		mkdir -p "$jail${file%/*}"
		cp "$file" "$jail$file"
	done
	mknod -m 666 "$jail/dev/kvm" c 10 232
	small_run python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)
os.chdir(sys.argv[1])
user = int(sys.argv[2])
if user == 65534:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    call("unshare", 0x10000000)                    # CLONE_NEWUSER
call("unshare", 0x20000)                           # CLONE_NEWNS
call("mount", b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
call("mount", b".", b".", None, 0x1000, None)      # MS_BIND
os.chdir("../root")
call("syscall", 155, b".", b".")                   # pivot_root
call("umount2", b".", 2)                           # MNT_DETACH
os.chroot(".")
if user != 65534:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
os.execv("/firecracker", ["/firecracker"] + sys.argv[3:])' "$jail" "$user" "$@"
}

@test "Firecracker in its jail: its id, by every command" {
	local uuid
	jail_start vm-7 30007 3000 --id vm-7 --start-time-us 1
	group_enter firecracker/vm-7 "$small_pid"
	vms list vm-7 --columns domain,manager,program,pid,believed,details
	[ "$status" = 0 ]
	[ "$(row 1)" = "vm-7,jailer,firecracker,$small_pid,1," ]
	exact vm-7 3000
	vms methods vm-7
	[ "$status" = 0 ]
	grep -q '^vm-7,mmu,1' <<<"$out"
	vms profile vm-7 --to 1s
	[ "$status" = 0 ]
	wait_until 60 kvm_stores_enough vms sample vm-7
	vms list vm-7 --columns uuid
	uuid=$(row 1)
	wss history vm-7 --columns domain,uuid --output csv
	out=${out//$'\r'/}
	[ "$status" = 0 ]
	[ "$(row 1)" = "vm-7,$uuid" ]
	vms recommend vm-7 --columns domain,status
	[ "$status" = 0 ]
	[[ "$(row 1)" == vm-7,* ]]
	wss -c kvm:/// check vm-7 --warning 95 --critical 99
	[ "$status" = 0 ]
	[[ $out =~ "WSS OK".*"vm-7" ]]
	vms migrate-estimate vm-7 --window 1s --bandwidth 1GiB/s
	[ "$status" = 0 ]
	vms balloon vm-7 --columns action,reason
	[[ "$(row 1)" == "refused,"* ]]
	# It is the same after a restart, as another process and user.
	kill -KILL "$small_pid"
	wait_until 10 refute kill -0 "$small_pid"
	rm -r "$BATS_TEST_TMPDIR/firecracker"
	jail_start vm-7 30008 1000 --id vm-7
	vms list vm-7 --columns uuid,pid
	[ "$(row 1)" = "$uuid,$small_pid" ]
	exact vm-7 1000
}

@test "a process that only pretends to be Firecracker's of another id is measured as what it is" {
	local jailed mine
	jail_start vm-7 30007 700 --id vm-7
	jailed=$small_pid
	# Another jail's, a user's without a jail, and a user's who has made one in a user namespace of his own.
	jail_start vm-8 30008 800 --id vm-7
	vms list vm-7@30008 --columns manager,details
	[ "$(row 1)" = "unknown,its jail is that of vm-8" ]
	exact vm-7@30008 800
	small_start firecracker 900 --id vm-7
	mine=$small_pid
	vms list "$mine" --columns domain,manager,believed,details
	[ "$(row 1)" = "firecracker-$mine,unknown,0,another VM has the same name or UUID" ]
	exact "firecracker-$mine" 900
	jails=$BATS_TEST_TMPDIR/users jail_start vm-7 65534 600 --id vm-7
	vms list vm-7@nobody --columns manager,details
	[ "$(row 1)" = "unknown,\"its jail is in a user namespace, where anyone can make one\"" ]
	exact vm-7@nobody 600
	vms list vm-7 --columns pid,manager
	[ "$(row 1)" = "$jailed,jailer" ]
	exact vm-7 700
}

has_series() { # REGULAR-EXPRESSION
	curl -s --unix-socket "$BATS_TEST_TMPDIR/http" http://localhost/metrics | grep -q "^$1"
}

@test "cloud-hypervisor and crosvm: names of sockets, for record, serve and cold, too" {
	local serve_pid uuid=7d0e9a51-1111-4222-8333-9c1ea5b1e000
	small_start cloud-hypervisor 3000 --api-socket path=/run/ch/cloudy.sock --memory size=64M --platform "uuid=$uuid"
	small_start crosvm 1000 run --socket /run/crossed.sock
	vms list cloudy crossed --columns domain,manager,program,believed
	[ "$status" = 0 ]
	[ "$(row 1)" = cloudy,,cloud-hypervisor,1 ]
	[ "$(row 2)" = crossed,,crosvm,1 ]
	exact cloudy 3000
	exact crossed 1000
	wss -c kvm:/// record cloudy --for 2s --interval 500ms -o "$BATS_TEST_TMPDIR/cloudy.rec"
	[ "$status" = 0 ]
	"$virt_wss" -c kvm:/// serve --continuous --listen "unix:$BATS_TEST_TMPDIR/http" --window 500ms --period 2s --boot 1s \
		--max-pressure 0 --max-stall 5s --budget 100% 3>&- &
	serve_pid=$!
	small_pids+=" $serve_pid"
	wait_until 60 has_series "virt_wss_working_set_bytes{domain=\"cloudy\",uuid=\"$uuid\""
	wait_until 60 has_series "virt_wss_working_set_bytes{domain=\"crossed\""
	wait_until 60 has_series "virt_wss_cold_bytes{domain=\"cloudy\""
	"$virt_wss" top --batch --count 1 --socket "$BATS_TEST_TMPDIR/http" >"$BATS_TEST_TMPDIR/top"
	grep -q '^cloudy  ' "$BATS_TEST_TMPDIR/top"
	grep -q '^crossed  ' "$BATS_TEST_TMPDIR/top"
	# It writes the ages when it ends.
	kill "$serve_pid"
	wait "$serve_pid" || true
	wss cold cloudy --columns domain,uuid --output csv
	out=${out//$'\r'/}
	[ "$status" = 0 ]
	[ "$(row 1)" = "cloudy,$uuid" ]
}

# Starts a VMM in a pid namespace of its own, as a container does -> small_pid
contained_start() { # PROGRAM ARGUMENT...
	local program
	program=$(mktemp -d "$BATS_TEST_TMPDIR/program.XXXXXX")/$1
	shift
	cp "$WSS_BUILDDIR/tests/tools/small-vmm" "$program"
	small_run unshare -f -p --kill-child --mount-proc "$program" "$@"
	small_pid=$(pgrep -P "$small_pid")
}

# Listens at a socket, as QEMU does for its monitor, and notes each connection -> log
monitor_listen() { # SOCKET
	log=$BATS_TEST_TMPDIR/connections
	python3 -c 'import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
while True:
    listener.accept()[0].close()
    print("connected", flush=True)' "$1" >"$log" 3>&- &
	small_pids+=" $!"
	wait_until 10 grep -q ready "$log"
}

@test "the monitor of a guest of Incus is left alone, as the daemon never leaves it" {
	local socket=$BATS_TEST_TMPDIR/qemu.monitor log
	monitor_listen "$socket"
	small_start qemu-system-x86_64 700 -name alone -readconfig /run/incus/alone/qemu.conf -qmp "unix:$socket,server=on,wait=off"
	exact alone 700
	grep -q connected "$log"
	echo >"$log"
	group_enter system.slice/incus.service "$small_pid"
	vms list alone --columns manager
	[ "$(row 1)" = incus ]
	exact alone 700
	vms methods alone
	[ "$status" = 0 ]
	refute grep -q connected "$log"
}

@test "Incus by its service, KubeVirt by the pod that the kubelet has" {
	local host=$BATS_TEST_TMPDIR/host file uid=11111111-2222-4333-8444-555555555555
	mkdir -p "$host/var/log/pods"
	for file in /proc /sys /run /etc; do
		ln -s "$file" "$host$file"
	done
	export VIRT_WSS_SYSROOT=$host
	small_start qemu-system-x86_64 700 -name web -readconfig /run/incus/prod_web/qemu.conf
	group_enter system.slice/incus.service "$small_pid"
	contained_start qemu-kvm 800 -name guest=dev_db,debug-threads=on
	group_enter "kubepods.slice/kubepods-pod${uid//-/_}.slice/cri-containerd-1.scope" "$small_pid"
	vms list prod_web dev_db@root --columns domain,manager,details
	[ "$status" = 0 ]
	[ "$(row 1)" = prod_web,incus, ]
	[ "$(row 2)" = "dev_db@root,unknown,\"its pod $uid is not the launcher of that guest, by /var/log/pods\"" ]
	exact dev_db@root 800
	mkdir "$host/var/log/pods/dev_virt-launcher-db-x7k2p_$uid"
	vms list dev_db --columns domain,manager,believed
	[ "$(row 1)" = dev_db,kubevirt,1 ]
	exact prod_web 700
	exact dev_db 800
}
