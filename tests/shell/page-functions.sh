# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of the service's page. Screenshots are in build/tests/page/.

pictures=$WSS_BUILDDIR/tests/page

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	command -v node >/dev/null || skip "no node"
	cd "$BATS_TEST_TMPDIR" || return 1
	export TMPDIR=$BATS_TEST_TMPDIR
}

look() { # CASE [MORE...]
	local name=$1
	shift
	timeout -k 5 1500 node "$WSS_SRCDIR/tests/page/page.js" "$name" "$WSS_BUILDDIR/tests/tools/page-server" "$pictures" "$@" </dev/null
}
