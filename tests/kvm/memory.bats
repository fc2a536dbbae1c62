#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Guests under real KVM whose memory is in several pieces, or becomes more, less or another within a window.

bats_require_minimum_version 1.5.0
load "functions.sh"

# 3 GiB in two NUMA cells end at page 786432, and a DIMM follows in the guest's count of pages (ring3-guest.c). Every
# 200th page from 360000 on: in the first cell, the second, and the first 31,600 of the DIMM's 32,768.
touch='pages=2290 first=360000 stride=200 order=random access=modify'
cells_pages=2133 all_pages=2290

# One guest for all tests: each leaves it without a DIMM. virt-wss asks by its QMP, the tests by the other socket. qtest
# writes to its ports as a kernel would.
setup_file() {
	kvm_setup_file || return 1
	[ -z "$root_missing" ] || return 0
	clock_make
	kvm_qemu_start cells "$touch" -machine pc -m 3072,slots=2,maxmem=8G \
		-object memory-backend-memfd,id=m0,size=1536M,share=on -numa node,memdev=m0 \
		-object memory-backend-memfd,id=m1,size=1536M,share=on -numa node,memdev=m1 \
		-object memory-backend-memfd,id=dimm,size=128M,share=on \
		-device secondary-vga,addr=5 -qtest "unix:$embed_root/cells.qtest,server=on,wait=off"
	# The graphics card's memory appears at 0xe0000000.
	qtest 'outl 0xcf8 0x80002804' 'outw 0xcfc 0x2'
	card_move 0xe0000000
}

teardown() {
	[ -z "${wss_pid-}" ] || kill -KILL "$wss_pid" 2>/dev/null || true
	for guest in ${other-}; do
		kill -KILL "$(embed_guest_pid "$guest")" 2>/dev/null || true
	done
	[ -z "${gib_had-}" ] || echo "$gib_had" >"$gib_pages"
}

qtest() { # COMMAND...
	timeout 300 perl -MIO::Socket::UNIX -e '
		my $qtest = IO::Socket::UNIX->new(shift) or die "no socket";
		for (@ARGV) {
			print $qtest "$_\n";
			<$qtest> =~ /^OK/ or die "$_ failed";
		}' "$embed_root/cells.qtest" "$@"
}

card_move() { # ADDRESS
	qtest 'outl 0xcf8 0x80002810' "outl 0xcfc $1"
}

qmp() { # COMMAND...
	qmp_ask "$embed_root/cells.other" "$@"
}

plug() {
	qmp '{"execute": "device_add", "arguments": {"driver": "pc-dimm", "id": "d", "memdev": "dimm"}}'
}

# The kernel selects the DIMM by its slot, and ejects it.
unplug() {
	qmp '{"execute": "device_del", "arguments": {"id": "d"}}'
	qtest 'outl 0xa00 0' 'outb 0xa14 8'
	qmp query-memory-devices | grep -qF '"return": []'
}

cells_exact() { # PAGES
	kvm_sample_exact "$1" --qmp "$embed_root/cells.qmp" sample
}

# Does something within a window, which ends afterwards: the row is degraded for that reason.
degraded_by() { # REASON COMMAND...
	local reason=$1
	shift
	clock_begin
	wss_start --qmp "$embed_root/cells.qmp" sample --window 600s --output csv
	"$@"
	run_a_while "$(embed_guest_pid cells)"
	pass 604
	clock_end
	wss_wait
	[ "$status" = 0 ] && [ "$(field quality)" = degraded ] && [[ $(field notes) == *"$reason within the window"* ]]
}

@test "two NUMA cells: exact" {
	cells_exact $cells_pages
}

@test "memory plugged before the window counts, within it degrades the row" {
	degraded_by "memory was plugged into the guest" plug
	[ "$(field wss_low_bytes)" -ge $((cells_pages * 4096)) ]
	[ "$(field wss_high_bytes)" -ge $((all_pages * 4096)) ]
	cells_exact $all_pages
	unplug
}

@test "memory unplugged within the window degrades the row" {
	plug
	cells_exact $all_pages
	degraded_by "memory was unplugged from the guest" unplug
	cells_exact $cells_pages
}

@test "memory that moved within the window degrades the row" {
	degraded_by "memory of the guest moved" card_move 0xe8000000
	cells_exact $cells_pages
}

@test "two NUMA cells and a DIMM of libvirt: exact" {
	other=numa
	kvm_guest_start numa memory=3072 cells=1536 touch="$touch"
	kvm_sample_exact $cells_pages sample numa
	cat >"$BATS_TEST_TMPDIR/dimm.xml" <<-XML
		<memory model='dimm'><target><size unit='MiB'>128</size><node>0</node></target></memory>
	XML
	embed_virsh attach-device numa "$BATS_TEST_TMPDIR/dimm.xml" --live
	kvm_sample_exact $all_pages sample numa
}

@test "memory on pages of 1 GiB: native is an upper bound, 4k exact" {
	gib_pages=/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
	[ -w $gib_pages ] || skip "the host's processor has no pages of 1 GiB"
	gib_had=$(<"$gib_pages")
	echo $((gib_had + 1)) >"$gib_pages"
	[ "$(<"$gib_pages")" -gt "$gib_had" ] || skip "the host has no free page of 1 GiB"
	other=gib
	kvm_qemu_start gib 'pages=3000 stride=8 order=random access=modify' -m 1024 -machine pc,memory-backend=m \
		-object memory-backend-memfd,id=m,size=1G,share=on,hugetlb=on,hugetlbsize=1G
	wait_until 30 gib_is_bounded
	kvm_sample_exact 3000 --qmp "$embed_root/gib.qmp" sample --granularity 4k
}

gib_is_bounded() {
	wss --qmp "$embed_root/gib.qmp" sample --window 400ms --output csv
	kvm_samples_are_ok && [ "$(field granularity_bytes)" -ge $((2 << 20)) ] &&
		[ "$(field wss_high_bytes)" -ge $((3000 * 8 * 4096)) ]
}

# A second of touches, and a second of silence. The guest says when it has touched all pages, and when it falls silent; then the
# window ends.
@test "a burst, then silence: exact" {
	local _
	other=burst
	kvm_guest_start burst touch='pages=3000 seconds=1 access=modify; pages=0 seconds=1'
	for _ in 1 2 3; do
		clock_begin
		wss_start sample --window 600s --output csv burst
		said=$(burst_says)
		# One burst may have begun before the window.
		wait_until 60 burst_is_over 3
		pass 604
		clock_end
		wss_wait
		kvm_samples_are_ok
		kvm_exact "$(field wss_bytes)" 3000
	done
}

# Prints how many of its bursts have had all pages and are over.
burst_says() {
	awk '/all pages touched/ { all = 1 } /phase=1/ { n += all; all = 0 } END { print n + 0 }' "$(embed_console burst)"
}

burst_is_over() { # N of them since then
	[ "$(burst_says)" -ge $((said + $1)) ]
}

# A virtio-mem device shows KVM all of its memory, plugged or not, and QEMU counts what is plugged. Firmware has no driver
# to plug a block with, but may touch what is not.
@test "a virtio-mem device of which nothing is plugged: in the layout, and nothing of it in the set" {
	local device=(-machine pc -m '3072,slots=2,maxmem=8G' -object 'memory-backend-memfd,id=m0,size=3G,share=on'
		-numa 'node,memdev=m0' -object 'memory-backend-memfd,id=m1,size=1G,share=on'
		-device 'virtio-mem-pci,id=v,memdev=m1,requested-size=0,node=0')
	other='untouched touched'
	kvm_qemu_start untouched "${touch/pages=$all_pages/pages=$cells_pages}" "${device[@]}"
	kvm_qemu_start touched "$touch" "${device[@]}"
	kvm_sample_exact $cells_pages --qmp "$embed_root/untouched.qmp" sample
	[ "$(field maximum_bytes)" = $((3 << 30)) ]
	kvm_sample_exact $all_pages --qmp "$embed_root/touched.qmp" sample
	wss --qmp "$embed_root/touched.qmp" record --window 400ms --for 1200ms -o "$BATS_TEST_TMPDIR/touched.rec"
	[ "$status" = 0 ]
	wss report "$BATS_TEST_TMPDIR/touched.rec"
	[[ $out =~ (^|$'\n')device\ +-\ +0x100000000\ +1\ GiB\ +628\ KiB ]]
}
