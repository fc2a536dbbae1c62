#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests on a real QEMU what methods --config says: the command takes effect at once, QEMU starts with the element,
# and then nothing is left to change.

load functions.sh

# Replaces the guest's balloon in its definition, and starts it.
start_with_balloon() { # MEMBALLOON
	embed_virsh dumpxml plain --inactive | element=$1 perl -0pe \
		's|<memballoon[^>]*/>\n|$ENV{element}\n| or s|<memballoon.*</memballoon>|$ENV{element}|s' >"$embed_root/plain.new.xml"
	embed_virsh define "$embed_root/plain.new.xml" >/dev/null
	embed_virsh start plain >/dev/null
	embed_guest_wait_ready plain 180
}

setup_file() {
	root_setup_file
	[ -z "$root_missing" ] || return 0
	type=qemu memory=512 args=''
	embed_guest_start plain args="wss.map=64 wss.touch=32 wss.rate=20000" define=only
	start_with_balloon "<memballoon model='virtio'/>"
}

teardown_file() {
	root_teardown_file
}

settings() { # -> the guest's settings, one per line
	wss methods --config plain --output csv >&2
	field setting
}

is_off() {
	[ "$(embed_virsh domstate plain)" = "shut off" ]
}

gain_is_known() {
	wss methods --config plain --output csv
	[[ $(field gain_bytes | head -n 1) =~ ^[0-9]+$ ]]
}

@test "the command switches the statistics on, and the gain of free page reporting gets known" {
	[ "$(settings)" = $'no free page reporting\nno balloon statistics\nno autodeflate' ]
	wss methods --config plain --output csv
	read -r -a words <<<"$(field command | sed -n 2p)"
	[ "${words[0]}" = virsh ]
	embed_virsh "${words[@]:1}"
	[ "$(settings)" = $'no free page reporting\nno autodeflate' ]
	wait_until 60 gain_is_known
	wss methods --config plain --output csv
	[ "$(field gain_is_bound | head -n 1)" = 1 ]
	# Of 512 MiB it uses some, and has been given none of it that it did not touch.
	[ "$(field gain_bytes | head -n 1)" -gt 0 ]
	[ "$(field gain_bytes | head -n 1)" -lt $((512 << 20)) ]
}

@test "QEMU starts with the element, and then nothing is to be changed" {
	wss methods --config plain --output csv
	element=$(field element | head -n 1)
	# virsh may crash after it has succeeded, and then fails the second time.
	embed_virsh destroy plain >/dev/null || true
	wait_until 60 is_off
	start_with_balloon "$element"
	tr '\0' '\n' <"/proc/$(cat "$embed_root/run/qemu/plain.pid")/cmdline" | grep -E 'virtio-balloon.*"deflate-on-oom":true.*"free-page-reporting":true|free-page-reporting=on'
	wss methods --config plain --output csv
	[ -z "$(field setting)" ]
	[[ $out == *"nothing to change"* ]]
}

# A domain of the node: what is below <domain> besides its devices, and its devices. -> node
node_add() { # XML DEVICES
	n=$((n + 1))
	printf "<domain type='%%s'><name>d$n</name><uuid>11111111-2222-3333-4444-55555555%04d</uuid><memory unit='MiB'>512</memory>
		<vcpu>2</vcpu>%s<os><type arch='x86_64' machine='${machine:-pc-q35-7.2}'>hvm</type></os><devices>%s</devices></domain>" \
		$n "$1" "$2" >"$BATS_TEST_TMPDIR/d$n.xml"
}

@test "libvirt turns each element into what is meant: memory never into a file on disk" {
	local n=0 i file
	local balloon="<memballoon model='virtio' autodeflate='on' freePageReporting='on'><stats period='10'/></memballoon>"
	local cells="<cpu><numa><cell id='0' cpus='0-1' memory='512' unit='MiB' memAccess='shared'/></numa></cpu>"
	cd "$BATS_TEST_TMPDIR"
	for file in "" "<source type='anonymous'/>" "<source type='memfd'/>" "<source type='file'/>"; do
		node_add "<memoryBacking><hugepages/>$file<access mode='shared'/></memoryBacking>" "$balloon"
		node_add "<memoryBacking><hugepages/>$file<access mode='shared'/><locked/></memoryBacking>" "<memballoon model='virtio'/>"
		node_add "<memoryBacking><hugepages/>$file</memoryBacking>$cells" "$balloon"
		# What is a file already may stay one.
		[[ $file == *"'file'"* ]] || node_add "<memoryBacking>$file<locked/></memoryBacking>" "$balloon"
		node_add "<memoryBacking><hugepages/>$file</memoryBacking>" "<memballoon model='none'/>"
		node_add "<memoryBacking><hugepages/>$file</memoryBacking>${cells/shared/private}" "$balloon"
		node_add "<memoryBacking><hugepages><page size='2' unit='MiB' nodeset='0'/></hugepages><nosharepages/>$file
			<allocation mode='ondemand'/><discard/></memoryBacking>${cells/ memAccess=?shared?/}" "$balloon"
		machine=pc-i440fx-7.2 node_add "<memoryBacking><hugepages/>$file<access mode='private'/></memoryBacking>" "$balloon"
	done
	{
		echo '<node>'
		# shellcheck disable=SC2059
		for ((i = 1; i <= n; i++)); do printf "$(cat d$i.xml)" test; done
		echo '</node>'
	} >node.xml
	"$virt_wss" -c "test://$PWD/node.xml" methods --config --output csv >out.csv
	[ "$(wc -l <out.csv)" -ge 30 ]
	python3 - $n <<-'END'
		import csv, sys
		import xml.etree.ElementTree as ET
		rows = list(csv.DictReader(open('out.csv')))
		for i in range(1, int(sys.argv[1]) + 1):
		    root = ET.fromstring(open(f'd{i}.xml').read() % 'qemu')
		    elements = {r['element'] for r in rows if r['domain'] == f'd{i}' and r['element']}
		    assert elements, i
		    for text in elements:
		        new = ET.fromstring(text)
		        parent = root if new.tag == 'memoryBacking' else root.find('devices')
		        parent.remove(parent.find(new.tag))
		        parent.append(new)
		    ET.ElementTree(root).write(f'after{i}.xml')
	END
	for ((i = 1; i <= n; i++)); do
		embed_virsh domxml-to-native qemu-argv --xml "$PWD/after$i.xml" >after
		echo "d$i: $(<"after$i.xml")"
		# What was shared stays so; memfd alone is shared by default.
		[ "$(grep -c shared "d$i.xml")" = "$(grep -c '"share":true' after)" ]
		[[ $(cat after) != *memory-backend-file* ]]
		[[ $(cat after) != *mem-lock=on* && $(cat after) != *hugetlb* ]]
		[[ $(cat after) == *virtio-balloon* ]]
	done
}
