# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of make check-kvm: virt-wss on guests of real KVM that run in ring 3
# (vm-images/ring3-guest.c), under qemu:///embed. Their truth is known to the page: what
# opt/virt-wss/guest asks for, and a few pages of their own program.

# shellcheck source-path=SCRIPTDIR source=../root/functions.sh
. "$WSS_SRCDIR/tests/root/functions.sh"

# Pages of 4 KiB that a guest touches at most besides those asked for: its program, its stacks.
kvm_own_pages=4

# Whether a guest gets ready within 20 s.
kvm_rom_runs() { # ROM ACCELERATOR CPU
	local console=$BATS_FILE_TMPDIR/$2.console qemu status=0
	qemu-system-x86_64 -accel "$2" -cpu "$3" -machine pc -m 64 -nodefaults -display none -no-reboot \
		-bios "$1" -serial "file:$console" </dev/null >/dev/null 2>&1 3>&- &
	qemu=$!
	wait_until 20 kvm_ready_or_gone "$qemu" "$console"
	grep -q '^ring3: ready' "$console" 2>/dev/null || status=1
	kill -KILL "$qemu" 2>/dev/null
	wait "$qemu" 2>/dev/null
	return $status
}

kvm_ready_or_gone() { # PID CONSOLE
	grep -q '^ring3: ready' "$2" 2>/dev/null || ! kill -0 "$1" 2>/dev/null
}

# A guest that does not even run emulated is a fault of ours, not of this KVM.
setup_file() {
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

teardown() {
	[ -z "${root_missing-}" ] || return 0
	kvm_guests_end
	kvm_hugetlb_end
	[ ! -d "$embed_root/debug" ] || umount "$embed_root/debug"
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
}

# Starts a guest and waits until it has touched all its pages once. touch: see ring3-guest.c.
# backing: memfd (pages of 4 KiB), anonymous (huge pages if the host has them) or hugetlb.
kvm_guest_start() { # NAME [touch="…"] [memory=MIB] [vcpus=N] [backing=…]
	local name=$1 touch='' memory=512 vcpus=1 backing=memfd option
	shift
	for option; do
		case ${option%%=*} in
		touch | memory | vcpus | backing) local "${option%%=*}=${option#*=}" ;;
		*) echo "kvm_guest_start: no option $option" >&2; return 2 ;;
		esac
	done
	case $backing in
	memfd) backing="<source type='memfd'/><access mode='shared'/>" ;;
	hugetlb) backing="<hugepages><page size='2' unit='MiB'/></hugepages>" ;;
	anonymous) backing='' ;;
	esac
	cat >"$embed_root/$name.xml" <<-XML
		<domain type='kvm'>
		  <name>$name</name>
		  <memory unit='MiB'>$memory</memory>
		  <vcpu>$vcpus</vcpu>
		  <memoryBacking>$backing</memoryBacking>
		  <sysinfo type='fwcfg'><entry name='opt/virt-wss/guest'>$touch</entry></sysinfo>
		  <os><type arch='x86_64' machine='pc'>hvm</type><loader type='rom'>$kvm_rom</loader></os>
		  <cpu mode='host-passthrough'><feature policy='disable' name='arch-capabilities'/></cpu>
		$(embed_devices_xml "$name")
		</domain>
	XML
	embed_virsh create "$embed_root/$name.xml" >/dev/null || return 1
	wait_until 30 grep -q '^ring3: all pages touched' "$(embed_console "$name")"
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

# Lets kvm_gauge read KVM's counters until the test ends, as debugfs may not be mounted.
kvm_gauges() {
	mkdir -p "$embed_root/debug"
	mount -t debugfs none "$embed_root/debug"
}

# Lets virt-wss, too, read KVM's counters there, instead of asking QEMU, which may be stopped.
kvm_debugfs() {
	local host=$BATS_TEST_TMPDIR/host file
	kvm_gauges
	mkdir -p "$host/sys/kernel/debug"
	ln -s "$embed_root/debug/kvm" "$host/sys/kernel/debug/kvm"
	for file in /proc /run /sys/* /sys/kernel/*; do
		[ -e "$host$file" ] || ln -s "$file" "$host$file"
	done
	export VIRT_WSS_SYSROOT=$host
}

# Prints a gauge of KVM: how many entries of that size it has mapped.
kvm_gauge() { # NAME pages_4k|pages_2m
	cat "$embed_root/debug/kvm/$(embed_guest_pid "$1")"-*/"$2"
}

# Checks that a figure in bytes is that many pages, or up to those of the guest's own program more.
kvm_exact() { # BYTES PAGES
	local pages=$(($1 / 4096))
	echo "$pages pages of 4 KiB, asked for $2"
	[ "$pages" -ge "$2" ] && [ "$pages" -le $(($2 + kvm_own_pages)) ]
}
