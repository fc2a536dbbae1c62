#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that virt-wss reads the inputs of libvirt's own tests, which are fetched with its source package: domain XML,
# status files, and replies of QEMU's monitor; and that it knows each device that QEMU has. The numbers are those of
# libvirt 9.0 (Debian 12), and least ones: of another version, less than one in a hundred may be wrong.

setup() {
	local status=0
	inputs=$WSS_BUILDDIR/cache/libvirt
	facts=$WSS_BUILDDIR/tests/tools/guest-facts
	cd "$BATS_TEST_TMPDIR" || return 1
	"$WSS_SRCDIR/tests/tools/fetch-libvirt" "$inputs" >why || status=$?
	[ "$status" != 77 ] || skip "$(cat why)"
	[ "$status" = 0 ]
	# As libvirt 10.1 and later call it, or earlier ones.
	domains=$inputs/qemuxmlconfdata
	[ -d "$domains" ] || domains=$inputs/qemuxml2argvdata
}

# Reads the files into "seen", of which those with an error are in "wrong".
read_inputs() { # KIND FILE...
	local kind=$1
	shift
	printf '%s\n' "$@" | "$facts" "$kind" >seen
	grep -P '\terror ' seen >wrong || true
	printf '%s of %s: ' "$(wc -l <wrong)" "$(wc -l <seen)"
	cat wrong
}

is_libvirt_9_0() {
	[ "$(cat "$inputs/complete")" = 9.0.0 ]
}

# libvirt reports memory and a UUID for each running guest. Six of its inputs lack one of them,
# for libvirt to refuse or to complete: cpu-numa-no-memory-element, minimal-no-memory,
# pci-bridge-duplicate-index, pci-bridge-negative-index-invalid, pci-root-address and pci-root-nonzero-index.
@test "domain XML: all but those without memory or with a bad UUID" {
	read_inputs xml "$domains"/*.xml
	[ $(($(grep -vcP '\terror (memory: missing|the XML has no valid uuid)' wrong) * 100)) -le "$(wc -l <seen)" ]
	is_libvirt_9_0 || return 0
	[ "$(wc -l <seen)" = 1070 ]
	[ "$(wc -l <wrong)" -le 6 ]
}

@test "domain XML says what libvirt tells QEMU: UUID, locked memory, devices that pin memory, balloon" {
	read_inputs xml "$domains"/*.xml
	/usr/bin/python3 - seen "$(cat "$inputs/complete")" <<-'END'
		import glob, os, re, sys
		compared = same = 0
		for line in open(sys.argv[1]):
		    name, *pairs = line.rstrip("\n").split("\t")
		    facts = dict(p.split("=", 1) for p in pairs if "=" in p)
		    if "uuid" not in facts:
		        continue
		    for path in glob.glob(glob.escape(name[:-4]) + "*.args"):
		        # Not those of another input whose name begins alike.
		        if not re.fullmatch(re.escape(name[:-4]) + r"(\.[a-z0-9_]+-[a-z0-9.]+)?\.args", path):
		            continue
		        args = open(path).read()
		        truth = {"uuid": re.search(r"-uuid (\S+)", args)[1],
		                 "locked": str(int(re.search(r"mem-lock=on|mlock=on", args) is not None)),
		                 "pinned": str(int(re.search(r'vfio-(?!ap|ccw)|vhost-vdpa|"driver":"nvme"', args) is not None))}
		        # A guest without the element gets a balloon by libvirt, and then has it in its XML.
		        if "<memballoon" in open(name).read():
		            truth["balloon"] = str(int("virtio-balloon" in args))
		        wrong = {k: (facts[k], v) for k, v in truth.items() if facts[k] != v}
		        compared += 1
		        same += not wrong
		        if wrong:
		            print(os.path.basename(path), wrong)
		print(same, "of", compared)
		least = 893 if sys.argv[2] == "9.0.0" else max(800, compared * 0.99)
		sys.exit(same < least)
	END
}

@test "status files: all" {
	read_inputs status "$inputs"/qemustatusxml2xmldata/*.xml
	[ "$(wc -l <seen)" -ge 22 ]
	[ ! -s wrong ]
}

@test "replies of QEMU's monitor: all" {
	read_inputs replies "$inputs"/qemucapabilitiesdata/*.replies "$inputs"/qemumonitorjsondata/*.json
	[ ! -s wrong ]
	[ "$(awk -F objects= '{ n += $2 } END { print n }' seen)" -ge 2808 ]
}

# A device is allowed, or refused with the reason of its kind, or refused because it is not known.
@test "each device that QEMU has is in one class" {
	local outside='vhost-(user|scsi|vdpa)|vfio|pvrdma|virtio-crypto|x-pci-proxy-dev|x-vfio-user'
	local memory='ivshmem|nvdimm|virtio-(mem|pmem)|cxl-type3'
	qemu-system-x86_64 -device help | sed -n 's/^name "\([^"]*\)".*/\1/p' >names
	echo no-such-device >>names
	"$facts" models <names >seen
	[ "$(wc -l <seen)" -ge 300 ]
	perl -F'\t' -lane '
		BEGIN { ($outside, $memory) = (shift, shift); }
		my ($hazard) = $F[1] =~ /^hazard=(.*)/ or die "no class: $_\n";
		my $class = $F[0] =~ /^($memory)/ ? "memory beside" : $F[0] =~ /^($outside)/ ? "outside QEMU" : "";
		die "$_\n" if $class && $hazard !~ /$class|outside QEMU|does not know/;
		die "$_\n" if !$class && $hazard && $hazard !~ /does not know/;
		$unknown++ if $hazard =~ /does not know/;
		END { print "unknown: $unknown"; exit 1 if $unknown * 20 > $. || !$unknown; }' "$outside" "$memory" seen
	grep -qP '^no-such-device\thazard=.*does not know' seen
}
