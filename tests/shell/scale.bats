#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests many domains: list and recommend take at most three times the instructions of virsh domstats and one
# metadata read per domain, and with a thousand domains less than 64 MiB.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
shim=$WSS_BUILDDIR/tests/tools/hang.so
few=60 many=1000

setup() {
	command -v virsh >/dev/null || skip "needs libvirt-clients"
	command -v valgrind >/dev/null || skip "needs valgrind"
	[ -x /usr/bin/time ] || skip "needs time"
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	cd "$BATS_TEST_TMPDIR" || return 1
}

setup_file() {
	local dir=$BATS_FILE_TMPDIR i uuid n
	local profile="<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1'
		time='2026-11-20T18:00:00Z' method='mmu' observes='accesses' window='4.02'
		granularity='4096' confidence='high' tool='0.1.0'>
		<wss:current unit='bytes'>68943872</wss:current></wss:profile>"
	for ((i = 1000; i < 1000 + many; i++)); do
		uuid=11111111-2222-3333-4444-55555555$i
		printf '%s' "<domain type='test'><name>guest$i</name><uuid>$uuid</uuid>" \
			"<memory unit='GiB'>4</memory><metadata>$profile</metadata>" \
			"<os><type>hvm</type></os></domain>" >"$dir/$i.xml"
		echo "<domain file='$dir/$i.xml'/>" >>"$dir/domains"
		echo "$uuid" >>"$dir/uuids"
		echo "metadata guest$i --uri urn:virt-wss:profile:1" >>"$dir/reads"
	done
	for n in $few $many; do
		{ echo '<node>'; head -n "$n" "$dir/domains"; echo '</node>'; } >"$dir/node$n.xml"
		head -n "$n" "$dir/uuids" | "$WSS_BUILDDIR/tests/unit/make-history" "$dir/history$n.db" 12 1000000000 50000
	done
}

use() { # NUMBER of domains
	export LIBVIRT_DEFAULT_URI=test://$BATS_FILE_TMPDIR/node$1.xml VIRT_WSS_HISTORY=$BATS_FILE_TMPDIR/history$1.db
}

# Its clock stands still, so that no deadline passes under valgrind.
cheap() { # COMMAND...
	local stats reads ours kib
	use $few
	stats=$(instructions virsh -q domstats)
	reads=$(instructions virsh -q "$(head -n $few "$BATS_FILE_TMPDIR/reads" | tr '\n' ';')")
	clock_new clock 0
	ours=$(WSS_CLOCK=$PWD/clock LD_PRELOAD=$shim instructions "$virt_wss" "$@")
	echo "$*: $ours instructions; virsh: $stats and $reads"
	[ "$ours" -le $((3 * (stats + reads))) ]
	use $many
	/usr/bin/time -o memory -f %M "$virt_wss" "$@" >out </dev/null
	kib=$(cat memory)
	echo "$*: $kib KiB"
	[ "$kib" -lt 65536 ]
	[ "$(wc -l <out)" -ge $many ]
}

@test "list is within the limits" {
	cheap list --output csv
}

@test "recommend is within the limits" {
	cheap recommend --output csv
	grep -q ',ok,' out
}
