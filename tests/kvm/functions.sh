# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of make check-kvm: virt-wss on guests under real KVM that run in ring 3 (vm-images/ring3-guest.c), with
# qemu:///embed. Their truth is known to the page: what opt/virt-wss/guest asks for, and few pages of their own program.

# shellcheck source-path=SCRIPTDIR source=../root/functions.sh
. "$WSS_SRCDIR/tests/root/functions.sh"

# Pages of 4 KiB that a guest touches besides those asked for: its program, its stacks.
kvm_own_pages=4

# Prints why this KVM runs no ring-3 guest; succeeds if so.
kvm_unusable() { # ROM
	local console=$BATS_FILE_TMPDIR/probe qemu end=$((SECONDS + 20)) why=''
	[ -w /dev/kvm ] || { echo "/dev/kvm is missing or closed"; return 0; }
	qemu-system-x86_64 -accel kvm -cpu host,-arch-capabilities -machine pc -m 64 -nodefaults -display none -no-reboot \
		-bios "$1" -serial "file:$console" </dev/null >/dev/null 2>&1 3>&- &
	qemu=$!
	until grep -q '^ring3: ready' "$console" 2>/dev/null; do
		kill -0 "$qemu" 2>/dev/null || { why="QEMU does not run with KVM"; break; }
		[ $SECONDS -lt $end ] || { why="a guest in ring 3 was not ready under KVM after 20 s"; break; }
		sleep 0.1
	done
	kill -KILL "$qemu" 2>/dev/null
	wait "$qemu" 2>/dev/null
	[ -n "$why" ] && echo "$why"
}

# Without hardware virtualisation KVM has neither ept nor npt, and virt-wss refuses it, because with guests in general
# shadow page tables count more than their memory. Those of this guest do not: it maps each page once.
kvm_host() {
	local host=$BATS_FILE_TMPDIR/host
	mkdir -p "$host/sys/module/kvm_intel/parameters"
	echo Y >"$host/sys/module/kvm_intel/parameters/ept"
	ln -s /proc "$host/proc"
	ln -s /run "$host/run"
	ln -s /sys/kernel "$host/sys/kernel"
	ln -s /sys/fs "$host/sys/fs"
	ln -s /sys/devices "$host/sys/devices"
	export VIRT_WSS_SYSROOT=$host
}

setup_file() {
	kvm_rom=$BATS_FILE_TMPDIR/ring3.rom
	export kvm_rom
	root_setup_file gcc objcopy || return 1
	[ -z "$root_missing" ] || return 0
	"$WSS_SRCDIR/vm-images/mkring3" "$kvm_rom" || return 1
	if root_missing=$(kvm_unusable "$kvm_rom"); then
		return 0
	fi
	kvm_host
}

teardown_file() {
	root_teardown_file
}

teardown() {
	[ -z "${root_missing-}" ] || return 0
	kvm_guests_end
	kvm_hugetlb_end
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

# Starts a guest and waits until it has touched all its pages once. touch: see vm-images/ring3-guest.c.
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
		  <on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>
		  <devices>
		    <emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <controller type='usb' model='none'/>
		    <serial type='file'><source path='$(embed_console "$name")'/><target port='0'/></serial>
		    <memballoon model='none'/>
		  </devices>
		</domain>
	XML
	embed_virsh create "$embed_root/$name.xml" >/dev/null || return 1
	wait_until 30 grep -q '^ring3: all pages touched' "$(embed_console "$name")"
}

# Not by libvirt, which may not find a guest right after it has opened the root.
kvm_guests_end() {
	wait_until 30 embed_root_kill "$embed_root"
}

# Checks that a figure in bytes is that many pages, and at most those of the guest's own program more.
kvm_exact() { # BYTES PAGES
	local pages=$(($1 / 4096))
	echo "$pages pages of 4 KiB, asked for $2"
	[ "$pages" -ge "$2" ] && [ "$pages" -le $(($2 + kvm_own_pages)) ]
}
