#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The examples of the manual page and of README.md are correct command lines:
# with a libvirt that has the domain web1 but no QEMU they end as "not supported
# here" or well, never as a usage error. make check-root runs them on a guest.

@test "every example is a command line that the program takes" {
	export PATH="$WSS_BUILDDIR:$PATH"
	printf '%s' "<domain type='test'><name>web1</name><memory>1024</memory>" \
		"<os><type>hvm</type></os></domain>" >"$BATS_TEST_TMPDIR/domain.xml"
	printf '%s' "<node><domain file='$BATS_TEST_TMPDIR/domain.xml'/></node>" >"$BATS_TEST_TMPDIR/node.xml"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	export LIBVIRT_DEFAULT_URI=test://$BATS_TEST_TMPDIR/node.xml
	sed -nE 's/^(    |\$ )(\.\/)?(virt-wss .*)/\3/p' "$WSS_SRCDIR"/{docs/virt-wss.pod,README.md} \
		>"$BATS_TEST_TMPDIR/examples"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/examples")" -ge 6 ]
	while read -r example; do
		echo "\$ $example"
		status=0
		bash -c "$example" </dev/null || status=$?
		echo "-> $status"
		[ $status = 0 ] || [ $status = 5 ]
	done <"$BATS_TEST_TMPDIR/examples"
}
