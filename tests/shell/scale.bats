#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests a thousand domains: list and recommend take at most three times the CPU time of
# virsh domstats and one metadata read per domain, and less than 64 MiB.

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	command -v virsh >/dev/null || skip "needs libvirt-clients"
	[ -x /usr/bin/time ] || skip "needs time"
}

setup_file() {
	export dir=$BATS_FILE_TMPDIR
	export VIRT_WSS_HISTORY=$dir/history.db LIBVIRT_DEFAULT_URI=test://$dir/node.xml
	local profile="<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1'
		time='2026-11-20T18:00:00Z' method='mmu' observes='accesses' window='4.02'
		granularity='4096' confidence='high' tool='0.1.0'>
		<wss:current unit='bytes'>68943872</wss:current></wss:profile>" i uuid
	{
		echo '<node>'
		for ((i = 1000; i < 2000; i++)); do
			uuid=11111111-2222-3333-4444-55555555$i
			printf '%s' "<domain type='test'><name>guest$i</name><uuid>$uuid</uuid>" \
				"<memory unit='GiB'>4</memory><metadata>$profile</metadata>" \
				"<os><type>hvm</type></os></domain>" >"$dir/$i.xml"
			echo "<domain file='$dir/$i.xml'/>"
			echo "$uuid" >>"$dir/uuids"
			echo "metadata guest$i --uri urn:virt-wss:profile:1" >>"$dir/reads"
		done
		echo '</node>'
	} >"$dir/node.xml"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 12 1000000000 50000 <"$dir/uuids"
}

# Measures CPU time in ms and peak memory in KiB. Uses the cheapest of three runs, because the
# machine has other work.
cost() { # COMMAND... -> cpu, memory
	local i line
	cpu=999999
	memory=0
	for i in 1 2 3; do
		/usr/bin/time -o "$BATS_TEST_TMPDIR/time" -f '%U %S %M' "$@" >"$BATS_TEST_TMPDIR/out" </dev/null
		line=$(awk '{ print int(($1 + $2) * 1000), $3 }' "$BATS_TEST_TMPDIR/time")
		[ "${line% *}" -ge "$cpu" ] || cpu=${line% *}
		[ "${line#* }" -le "$memory" ] || memory=${line#* }
	done
	echo "$*: $cpu ms, $memory KiB"
}

allowance() { # -> allowed: three times what virsh needs, in ms
	cost virsh -q domstats
	allowed=$cpu
	cost sh -c "virsh -q <'$dir/reads'"
	allowed=$(((allowed + cpu) * 3))
}

cheap() { # COMMAND...
	allowance
	cost "$virt_wss" "$@"
	[ "$cpu" -le "$allowed" ]
	[ "$memory" -lt 65536 ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -ge 1000 ]
}

@test "list is within the limits" {
	cheap list --output csv
}

@test "recommend is within the limits" {
	cheap recommend --output csv
	grep -q ',ok,' "$BATS_TEST_TMPDIR/out"
}
