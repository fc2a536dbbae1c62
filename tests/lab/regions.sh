#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests a recording of a guest with two NUMA nodes and a DIMM that touches more than the nodes'
# own memory: the report by region and by node shows where QEMU really put them.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder

node=128 dimm=128 set=208 # MiB
# The least memory that the guest's kernel had taken before the DIMM existed, and the most that
# it touches.
kernel=96
rec=$lab_run/regions.rec

has_windows() { # COUNT
	[ "$("$virt_wss" report "$rec" --output csv 2>/dev/null | grep -c ',window,')" -ge "$1" ]
}

# Prints, from the table "regions" or "nodes" of the report, FIELD of the rows where KEY is
# VALUE, added up.
sum() { # TABLE KEY VALUE FIELD
	sed -n "/\"$1\": \[/,/\]/p" "$lab_run/report" | grep "\"$2\": \"\{0,1\}$3[\",}]" |
		sed -n "s/.*\"$4\": \"\{0,1\}\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

address_of_dimm() {
	virsh dumpxml numa | sed -n "s/.*<address type='dimm'.* base='\([^']*\)'.*/\1/p"
}

# A truncated window would have only part of the set.
last_is_whole() {
	grep '"kind": ' "$lab_run/report" | tail -n 1 | grep -q '"kind": "gap"' &&
		grep '"kind": "window"' "$lab_run/report" | tail -n 1 |
		awk '{ gsub(/,/, ""); for (i = 1; i < NF; i++) value[$i] = $(i + 1) }
			END { exit !(value["\"end_seconds\":"] - value["\"start_seconds\":"] >= 11.5) }'
}

# All nodes together equal all regions together, and at least the memory that the guest
# touches.
test_sums() {
	local by_region by_node
	by_region=$(($(sum regions region below-1m reference_bytes) + $(sum regions region low reference_bytes) +
		$(sum regions region device reference_bytes)))
	by_node=$(($(sum nodes node 0 reference_bytes) + $(sum nodes node 1 reference_bytes)))
	diag "by region $(mib $by_region), by node $(mib $by_node)"
	check "the regions add up to the touched memory" in_range $by_region $((set * MiB)) $(((set + kernel) * MiB))
	check "the nodes add up to the touched memory" test "$by_node" = "$by_region"
}

test_device() {
	check "the DIMM is where QEMU has put it" grep -q "\"start_address\": \"$(address_of_dimm)\"" \
		"$lab_run/report"
	check "it has its length" test "$(sum regions region device length_bytes)" = $((dimm * MiB))
	# The nodes' own memory, less the kernel's, is too small for the set.
	check "the DIMM has what the nodes cannot hold" in_range "$(sum regions region device reference_bytes)" \
		$(((set - (2 * node - kernel)) * MiB)) $((dimm * MiB))
	check "the DIMM belongs to node 1" test "$(sum nodes node 1 length_bytes)" = $(((node + dimm) * MiB))
	check "node 0 has its own memory" in_range "$(sum nodes node 0 length_bytes)" $((node * MiB - MiB)) $((node * MiB))
}

lab_libvirtd_start
lab_thp never
lab_guest_start numa vcpus=2 memory=$((2 * node + dimm)) \
	top="<maxMemory slots='2' unit='MiB'>1024</maxMemory>" \
	cpu="<cpu><numa><cell id='0' cpus='0' memory='$node' unit='MiB'/>
		<cell id='1' cpus='1' memory='$node' unit='MiB'/></numa></cpu>" \
	devices="<memory model='dimm'><target><size unit='MiB'>$dimm</size><node>1</node></target></memory>" \
	args="memhp_default_state=online wss.map=$set wss.mode=write"
: >"$wss_err"
"$virt_wss" record numa -o "$rec" --until-stopped --interval 12s --granularity native --max-stall 10s \
	>"$wss_out" 2>"$wss_err" &
wss_pid=$!
check "windows of it are recorded" wait_until 120 has_windows 3
kill -INT $wss_pid
wss_wait
check "the recording ends well" status_is 0
"$virt_wss" report "$rec" --output json >"$lab_run/report"
diag "$("$virt_wss" report "$rec" | head -n 40)"
check "the window that was stopped is a gap" last_is_whole
check "the guest is well" guest_well numa
test_sums
test_device
lab_guest_stop numa
done_testing
