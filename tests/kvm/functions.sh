# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of make check-kvm: virt-wss on guests of real KVM that run in ring 3
# (vm-images/ring3-guest.c), under qemu:///embed. Their truth is known to the page: what
# opt/virt-wss/guest asks for, and a few pages of their own program.

# shellcheck source-path=SCRIPTDIR source=../root/functions.sh
. "$WSS_SRCDIR/tests/root/functions.sh"

# Pages of 4 KiB that a guest touches at most besides those asked for: its program, its stacks.
kvm_own_pages=4

# Whether a guest gets ready within a minute.
kvm_rom_runs() { # ROM ACCELERATOR CPU
	local console=$BATS_FILE_TMPDIR/$2.console qemu status=0
	qemu-system-x86_64 -accel "$2" -cpu "$3" -machine pc -m 64 -nodefaults -display none -no-reboot \
		-bios "$1" -serial "file:$console" </dev/null >/dev/null 2>&1 3>&- &
	qemu=$!
	wait_until 60 kvm_ready_or_gone "$qemu" "$console"
	grep -q '^ring3: ready' "$console" 2>/dev/null || status=1
	kill -KILL "$qemu" 2>/dev/null
	wait "$qemu" 2>/dev/null
	return $status
}

kvm_ready_or_gone() { # PID CONSOLE
	grep -q '^ring3: ready' "$2" 2>/dev/null || ! kill -0 "$1" 2>/dev/null
}

setup_file() {
	kvm_setup_file
}

# A guest that does not even run emulated is a fault of ours, not of this KVM.
kvm_setup_file() {
	kvm_rom=$BATS_FILE_TMPDIR/ring3.rom
	export kvm_rom
	root_setup_file gcc objcopy || return 1
	[ -z "$root_missing" ] || return 0
	"$WSS_SRCDIR/vm-images/mkring3" "$kvm_rom" || return 1
	kvm_rom_runs "$kvm_rom" tcg max || { echo "the guest does not run emulated"; return 1; }
	if [ ! -w /dev/kvm ]; then
		root_missing="/dev/kvm is missing or closed"
	elif ! kvm_rom_runs "$kvm_rom" kvm host,-arch-capabilities; then
		root_missing="this KVM runs no guest in ring 3"
	fi
}

teardown_file() {
	root_teardown_file
}

# wss_pid: as root's functions.sh has it.
teardown() {
	[ -z "${root_missing-}" ] || return 0
	[ -z "${wss_pid-}" ] || kill -KILL "$wss_pid" 2>/dev/null || true
	kvm_guests_end
	kvm_hugetlb_end
	! mountpoint -q "$embed_root/debug" || umount "$embed_root/debug"
}

# Reserves huge pages until the test ends, and lets libvirt find them.
kvm_hugetlb() { # N
	kvm_hugetlb_had=$(cat /proc/sys/vm/nr_hugepages)
	mkdir "$embed_root/huge"
	mount -t hugetlbfs none "$embed_root/huge" || return 1
	echo "hugetlbfs_mount = \"$embed_root/huge\"" >>"$embed_root/etc/qemu.conf"
	echo $((kvm_hugetlb_had + $1)) >/proc/sys/vm/nr_hugepages
	[ "$(cat /proc/sys/vm/nr_hugepages)" -ge $((kvm_hugetlb_had + $1)) ]
}

kvm_hugetlb_end() {
	[ -n "${kvm_hugetlb_had-}" ] || return 0
	echo "$kvm_hugetlb_had" >/proc/sys/vm/nr_hugepages
	sed -i '/^hugetlbfs_mount/d' "$embed_root/etc/qemu.conf"
	umount "$embed_root/huge"
	rmdir "$embed_root/huge"
}

# Starts a guest and waits until it has touched all its pages once. touch: see ring3-guest.c.
# backing: memfd (pages of 4 KiB), file (in libvirt's memory_backing_dir), anonymous (huge pages if the host has them), small (anonymous, of 4 KiB) or hugetlb.
# cells: the memory in MiB of each NUMA cell, which are half of all each; then it has room for two DIMMs.
kvm_guest_start() { # NAME [touch="…"] [memory=MIB] [vcpus=N] [backing=…] [cells=MIB]
	local name=$1 touch='' memory=512 vcpus=1 backing=memfd cells='' option embed_wrapper=()
	shift
	for option; do
		case ${option%%=*} in
		touch | memory | vcpus | backing | cells) local "${option%%=*}=${option#*=}" ;;
		*) echo "kvm_guest_start: no option $option" >&2; return 2 ;;
		esac
	done
	case $backing in
	memfd | file) backing="<source type='$backing'/><access mode='shared'/>" ;;
	hugetlb) backing="<hugepages><page size='2' unit='MiB'/></hugepages>" ;;
	anonymous) backing='' ;;
	# PR_SET_THP_DISABLE is inherited by all that virsh starts.
	small)
		backing=''
		# shellcheck disable=SC2034
		embed_wrapper=(perl -e 'syscall(157, 41, 1, 0, 0, 0) == 0 or die "prctl: $!"; exec @ARGV')
		;;
	esac
	[ -z "$cells" ] || cells="<numa><cell id='0' cpus='0' memory='$cells' unit='MiB'/><cell id='1' memory='$cells' unit='MiB'/></numa>"
	cat >"$embed_root/$name.xml" <<-XML
		<domain type='kvm'>
		  <name>$name</name>
		  <memory unit='MiB'>$memory</memory>
		  ${cells:+<maxMemory slots='2' unit='GiB'>8</maxMemory>}
		  <vcpu>$vcpus</vcpu>
		  <memoryBacking>$backing</memoryBacking>
		  <sysinfo type='fwcfg'><entry name='opt/virt-wss/guest'>$touch</entry></sysinfo>
		  <os><type arch='x86_64' machine='pc'>hvm</type><loader type='rom'>$kvm_rom</loader></os>
		  ${cells:+<features><acpi/></features>}
		  <cpu mode='host-passthrough'><feature policy='disable' name='arch-capabilities'/>$cells</cpu>
		$(embed_devices_xml "$name" | sed "s|/usr/bin/qemu-system-x86_64|${kvm_emulator:-&}|")
		</domain>
	XML
	embed_virsh create "$embed_root/$name.xml" >/dev/null || return 1
	wait_until 120 grep -q '^ring3: all pages touched' "$(embed_console "$name")"
}

# The same without libvirt: with two QMP sockets, NAME.qmp and NAME.other. QEMU gets the further arguments, too.
kvm_qemu_start() { # NAME TOUCH ARGUMENT...
	local name=$1 touch=$2
	shift 2
	mkdir -p "$embed_root/run/qemu"
	qemu-system-x86_64 -name "$name" -accel kvm -cpu host,-arch-capabilities -nodefaults -display none -no-reboot \
		-bios "$kvm_rom" -serial "file:$(embed_console "$name")" -fw_cfg "name=opt/virt-wss/guest,string=$touch" \
		-qmp "unix:$embed_root/$name.qmp,server=on,wait=off" -qmp "unix:$embed_root/$name.other,server=on,wait=off" \
		-daemonize -pidfile "$embed_root/run/qemu/$name.pid" "$@" 3>&- || return 1
	wait_until 120 grep -q '^ring3: all pages touched' "$(embed_console "$name")"
}

# Not by libvirt, which may not find a guest right after it has opened the root.
kvm_guests_end() {
	wait_until 30 embed_root_kill "$embed_root"
}

# A signal, a debugger or the end of QEMU would show.
kvm_guest_runs() { # NAME
	local states
	states=$(sed 's/.*) //' /proc/"$(embed_guest_pid "$1")"/task/*/stat) || return 1
	refute grep -q '^[TtZX]' <<<"$states"
}

# Lets virt-wss read KVM's counters until the test ends, as debugfs may not be mounted, instead of asking QEMU, which may
# be stopped.
kvm_debugfs() {
	local host=$BATS_TEST_TMPDIR/host file
	mkdir -p "$embed_root/debug"
	mount -t debugfs none "$embed_root/debug"
	mkdir -p "$host/sys/kernel/debug"
	ln -s "$embed_root/debug/kvm" "$host/sys/kernel/debug/kvm"
	for file in /proc /run /sys/* /sys/kernel/*; do
		[ -e "$host$file" ] || ln -s "$file" "$host$file"
	done
	export VIRT_WSS_SYSROOT=$host
}

# Checks that a figure in bytes is that many pages, or up to those of the guest's own program more.
kvm_exact() { # BYTES PAGES
	local pages=$(($1 / 4096))
	echo "$pages pages of 4 KiB, asked for $2"
	[ "$pages" -ge "$2" ] && [ "$pages" -le $(($2 + kvm_own_pages)) ]
}

# Whether all samples are ok, or degraded only because others starve the guest.
kvm_samples_are_ok() {
	[ "$status" = 0 ] && refute grep -vE "^ok|$embed_slowed" \
		<<<"$(paste -d ' ' <(field quality) <(field notes))"
}

# As many windows as a size needs. A busy machine may starve the guest in some.
kvm_stores_enough() { # COMMAND ARGUMENT...
	"$@" --window 200ms --count 12 --store
	[ "$(field quality | grep -c ok)" -ge 10 ]
}

# Takes a sample, which leaves a QEMU of Proxmox VE that is slow to answer alone. On a busy machine any is.
kvm_is_answered() { # ARGUMENT...
	wss "$@"
	[[ $err != *"timed out after 180 ms"* ]]
}

# Samples until each guest's figure is that many pages, or up to those of its own program more, by windows that become longer: in
# a short one a busy machine may not give a guest the time to touch all of them. More pages than that fail at once.
kvm_sample_exact() { # PAGES ARGUMENT...
	local pages=$1 window bytes missing
	shift
	for window in 500ms 2s 8s 20s 50s; do
		wait_until 60 kvm_is_answered "$@" --window "$window" --output csv || return 1
		[ "$status" = 0 ] || [[ $err == *"touched nothing at all"* ]] || return 1
		missing=''
		for bytes in $(field wss_bytes); do
			[ "$bytes" -le $(((pages + kvm_own_pages) * 4096)) ] || { kvm_exact "$bytes" "$pages"; return 1; }
			[ "$bytes" -ge $((pages * 4096)) ] || missing=1
		done
		[ -z "$missing" ] && kvm_samples_are_ok && return
	done
	return 1
}

# Whether the service's figure of a guest, in the file metrics, is no bound and that many pages, or up to those of its own program
# more. On a busy machine it may touch fewer in a window; more are wrong in any: then it goes into wrong, and is the figure.
kvm_metric_exact() { # GUEST PAGES
	local figures pages
	# shellcheck disable=SC2154
	figures=$(sed -n "s/^virt_wss_working_set_\(bound\|bytes\){domain=\"$1\"[^}]*} /\1=/p" "$metrics" 2>/dev/null)
	[[ $figures == *bound=0* ]] || return 1
	pages=$(awk -F= '$1 == "bytes" { print $2 / 4096 }' <<<"$figures")
	[ -n "$pages" ] || return 1
	[ "$pages" -le $(($2 + kvm_own_pages)) ] || wrong+=" $1: $pages"
	[ "$pages" -ge "$2" ]
}

# Puts a process into a cgroup, in any of the hierarchies, until kvm_vmms_end.
group_enter() { # PATH PID
	local group=/sys/fs/cgroup/cpuacct/$1
	[ -d /sys/fs/cgroup/cpuacct ] || group=/sys/fs/cgroup/$1
	mkdir -p "$group" || return 1
	groups+=" $group"
	echo "$2" >"$group/cgroup.procs"
}

# Starts a VMM that is not QEMU, as a program of that name -> small_pid. See tests/tools/small-vmm.c.
small_start() { # NAME ARGUMENT...
	local program
	program=$(mktemp -d "$BATS_TEST_TMPDIR/program.XXXXXX")/$1
	shift
	cp "$WSS_BUILDDIR/tests/tools/small-vmm" "$program"
	small_run "$program" "$@"
}

small_run() { # COMMAND...
	local out
	out=$(mktemp "$BATS_TEST_TMPDIR/out.XXXXXX")
	"$@" >"$out" 3>&- &
	small_pid=$!
	small_pids+=" $small_pid"
	wait_until 20 grep -q ready "$out"
}

# Another client of the monitor that never disconnects, as with Incus.
monitor_take() { # SOCKET
	"${wss_as[@]}" python3 -c 'import signal, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.recv(1)
print("taken", flush=True)
signal.pause()' "$1" >"$BATS_TEST_TMPDIR/taken" 3>&- &
	small_pids+=" $!"
	wait_until 10 grep -q taken "$BATS_TEST_TMPDIR/taken"
}

# It may have been entered twice.
group_is_gone() { # DIRECTORY
	rmdir "$1" 2>/dev/null
	[ ! -d "$1" ]
}

# Ends what small_start, group_enter and the like have left.
kvm_vmms_end() {
	local group
	[ -z "${root_missing-}" ] || return 0
	[ -z "${small_pids-}" ] || xargs kill -KILL <<<"$small_pids" 2>/dev/null || true
	kvm_guests_end
	for group in ${groups-}; do
		wait_until 10 group_is_gone "$group"
		rmdir -p "${group%/*}" 2>/dev/null || true
	done
}
