#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests methods --config on libvirt's test driver: each element is valid and lifts what it is for, each
# command is one that virsh takes, and names cannot turn it into another.

virt_wss=$WSS_BUILDDIR/virt-wss
schema=/usr/share/libvirt/schemas/domain.rng

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	# Replaces the element of the same name in a file by that in ELEMENT.
	cat >replace <<-'END'
		#!/usr/bin/python3
		import os, sys
		import xml.etree.ElementTree as ET
		tree = ET.parse(sys.argv[1])
		new = ET.fromstring(os.environ['ELEMENT'])
		parent = tree.getroot() if new.tag == 'memoryBacking' else tree.getroot().find('devices')
		old = parent.find(new.tag)
		if old is not None:
		    parent.remove(old)
		parent.append(new)
		tree.write(sys.argv[1])
	END
	chmod +x replace
	n=0
	: >domains
}

# Adds a domain to the node.
domain() { # NAME DEVICES [OTHER-XML]
	n=$((n + 1))
	/usr/bin/python3 - "$n" "$@" >"$n.xml" <<-'END'
		import sys
		from xml.sax.saxutils import escape
		n, name, devices, *other = sys.argv[1:]
		print("<domain type='test'><name>%s</name><uuid>11111111-2222-3333-4444-55555555%04d</uuid>"
		      "<memory unit='GiB'>4</memory><os><type arch='x86_64'>hvm</type></os>%s"
		      "<devices>%s</devices></domain>" % (escape(name), int(n), ''.join(other), devices))
	END
	echo "<domain file='$PWD/$n.xml'/>" >>domains
}

node() { # -> uri
	{ echo '<node>'; cat domains; echo '</node>'; } >node.xml
	uri=test://$PWD/node.xml
}

config() { # -> config.json
	"$virt_wss" -c "$uri" methods --config --output json >config.json
}

# Checks config.json with Python, where rows are those of each domain by its name.
config_is() { # PYTHON
	/usr/bin/python3 - "$1" <<-'END'
		import json, sys
		rows = {}
		for row in json.load(open('config.json'))['configuration']:
		    rows.setdefault(row['domain'], []).append(row)
		exec(sys.argv[1])
	END
}

balloon="<memballoon model='virtio'><stats period='5'/></memballoon>"

# What keeps memory, in many forms, under names that a shell, virsh or a terminal could misread.
all_kinds() {
	domain plain "<memballoon model='none'/>"
	domain "a b'; \$(touch broken) \`touch broken\`" "$balloon"
	domain -rf "<memballoon model='virtio-non-transitional' autodeflate='on'><stats period='0'/>
		<driver iommu='on' ats='on'/><address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></memballoon>"
	domain 12 "<memballoon model='virtio' freePageReporting='on'/>" \
		"<memoryBacking><hugepages><page size='2' unit='M'/></hugepages><nosharepages/><locked/></memoryBacking>"
	domain 11111111-2222-3333-4444-555555550001 "$balloon" "<memoryBacking><locked/></memoryBacking>"
	domain $'na\u00efve\u202eexe.bew' "$balloon" \
		"<memoryBacking><hugepages/><source type='memfd'/><access mode='shared'/></memoryBacking>"
	domain '"&<>%s;' "<memballoon model='virtio'/>"
	domain whole "<memballoon model='virtio' autodeflate='on' freePageReporting='on'><stats period='10'/></memballoon>"
	node
}

@test "settings that keep memory, and those that would return more" {
	all_kinds
	domain usb "$balloon<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' function='0'/></source></hostdev>" \
		"<launchSecurity type='sev'><policy>1</policy><cbitpos>47</cbitpos><reducedPhysBits>1</reducedPhysBits></launchSecurity>"
	node
	config
	config_is '
def settings(name): return [r.get("setting") for r in rows[name]]
missing = ["no free page reporting", "no balloon statistics", "no autodeflate"]
assert settings("plain") == ["no balloon device"], rows["plain"]
assert settings("-rf") == missing[:2]
assert settings("12") == ["huge pages", "locked memory", "no balloon statistics", "no autodeflate"]
assert settings("whole") == [None] and rows["whole"][0]["reason"] == "nothing to change"
assert settings("usb") == ["passed-through device", "launch security", "no free page reporting", "no autodeflate"]
assert not any("command" in r for r in rows["usb"][:2])
for row in sum(rows.values(), []):
    if "setting" not in row: continue
    # A figure, or why there is none.
    assert ("gain_bytes" in row) != ("gain_reason" in row), row
    assert row["blocks"] == (row["setting"] not in missing), row
    assert ("command" in row) == ("effective" in row), row
    assert row.get("effective") == ("now" if row["setting"] == "no balloon statistics" else "next start") or \
        row["setting"] in ("passed-through device", "launch security"), row'
	run -0 --separate-stderr "$virt_wss" -c "$uri" methods --config plain whole
	[[ $output == *"virsh edit plain"* ]]
	[[ $stderr == *"virt-wss: plain: put into the domain XML (effective at next start): <memballoon model='virtio' autodeflate='on'"* ]]
	run -2 "$virt_wss" --qmp /nonexistent methods --config
}

@test "each element is valid, and lifts all that it is for" {
	[ -e "$schema" ] || skip "no libvirt schema"
	all_kinds
	config
	/usr/bin/python3 - <<-'END' >elements
		import json
		for row in json.load(open('config.json'))['configuration']:
		    if 'element' in row:
		        assert '\n' not in row['element'] and '\t' not in row['element']
		        print(int(row['uuid'][-4:]), row['element'], sep='\t')
	END
	[ "$(wc -l <elements)" -ge 15 ]
	while IFS=$'\t' read -r i element; do
		virsh -c "$uri" dumpxml --inactive "11111111-2222-3333-4444-55555555$(printf %04d "$i")" >"new$i.xml"
		[ -e "sum$i.xml" ] || cp "$i.xml" "sum$i.xml"
		ELEMENT=$element "$PWD/replace" "new$i.xml"
		xmllint --noout --relaxng "$schema" "new$i.xml"
		virt-xml-validate "new$i.xml" domain
		ELEMENT=$element "$PWD/replace" "sum$i.xml"
	done <elements
	# With all of its elements each domain is as it should be.
	for new in sum*.xml; do
		mv "$new" "${new#sum}"
	done
	config
	config_is 'assert all("setting" not in r for r in sum(rows.values(), [])), rows'
	# Only what had to change did.
	grep -q "iommu=.on" 3.xml
	grep -q "bus=.0x01" 3.xml
	grep -q 'nosharepages' 4.xml
	grep -q 'memfd' 6.xml
	# A schema that lets everything pass would prove nothing.
	sed -i 's/freePageReporting/freePageReport/' new1.xml
	run ! xmllint --noout --relaxng "$schema" new1.xml
}

@test "virsh takes each command, and finds the domain that is meant" {
	all_kinds
	config
	/usr/bin/python3 - <<-'END' >commands
		import json
		for row in json.load(open('config.json'))['configuration']:
		    if 'command' in row:
		        print(row['uuid'], row.get('element', ''), row['command'], sep='\t')
	END
	mkdir bin
	# The same virsh on this test's node.
	printf '#!/bin/sh\nexec %s -c %q "$@"\n' "$(command -v virsh)" "$uri" >bin/virsh
	# An editor that notes whose XML it gets, and makes the change.
	printf '#!/bin/sh\ngrep -o "<uuid>[^<]*" "$1" >>%q\nexec %q "$1"\n' "$PWD/edited" "$PWD/replace" >bin/editor
	chmod +x bin/*
	while IFS=$'\t' read -r uuid element command; do
		echo "$command"
		rm -f edited
		env -u VISUAL PATH="$PWD/bin:$PATH" EDITOR="$PWD/bin/editor" ELEMENT="$element" bash -c "$command" >out 2>&1 </dev/null || {
			cat out
			false
		}
		[[ $command == virsh\ dommemstat* || $(cat edited) == "<uuid>$uuid" ]]
		[[ $command != *edit* ]] || grep -q 'XML configuration edited' out
	done <commands
	[ "$(grep -c dommemstat commands)" -ge 3 ]
	[ ! -e broken ]
	# A number, a UUID, an option and what cannot be seen are named by UUID, others by name.
	config_is '
for name in ("12", "-rf", "11111111-2222-3333-4444-555555550001", "na\u00efve\u202eexe.bew"):
    assert all(r["uuid"] in r["command"] and "bew" not in r["command"] for r in rows[name]), rows[name]
assert rows["plain"][0]["command"] == "virsh edit plain"
assert rows["\"&<>%s;"][0]["command"] == "virsh edit \u0027\"&<>%s;\u0027"'
}

@test "the command for a guest that is shut off is one that takes effect" {
	local state flag
	for state in 1 5; do
		printf '%s' '<node><domain type="test" xmlns:test="http://libvirt.org/schemas/domain/test/1.0">' \
			"<test:runstate>$state</test:runstate><name>web1</name><memory unit='MiB'>256</memory>" \
			'<os><type>hvm</type></os><devices><memballoon model="virtio"/></devices></domain></node>' \
			>"$BATS_TEST_TMPDIR/node.xml"
		flag=--live
		[ $state = 1 ] || flag=--config
		"$WSS_BUILDDIR/virt-wss" -c "test://$BATS_TEST_TMPDIR/node.xml" methods --config web1 >"$BATS_TEST_TMPDIR/out"
		cat "$BATS_TEST_TMPDIR/out"
		grep -q "virsh dommemstat web1 --period 10 $flag\$" "$BATS_TEST_TMPDIR/out"
	done
}
