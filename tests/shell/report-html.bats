#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the page that "report --html" writes.

virt_wss=$WSS_BUILDDIR/virt-wss
mkrecording=$WSS_BUILDDIR/tests/tools/mkrecording

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export TMPDIR=$BATS_TEST_TMPDIR
}

# Prints the data that is in a page.
data() { # FILE
	sed -n 's|^<script id="data" type="application/json">||; T; :more; /<\/script>$/!{ N; b more }; s|</script>$||; p' "$1"
}

look() { # FILE TEXT...
	command -v chromium >/dev/null || skip "no chromium"
	command -v node >/dev/null || skip "no node"
	timeout -k 5 1500 node "$WSS_SRCDIR/tests/page/page.js" report - "$WSS_BUILDDIR/tests/page" "$BATS_TEST_TMPDIR/$1" "${@:2}" </dev/null
}

@test "the page has the report in it" {
	"$mkrecording" r --phases 4096:5,16384:8,2048:7 --windows 40 --mark-every 7 --gap-every 9 --host host1 >said
	"$virt_wss" report r --html r.html >table
	"$virt_wss" report r >expected
	cmp expected table
	[ "$(stat -c %a r.html)" = 600 ]
	"$virt_wss" report r --output json | perl -MJSON::PP -0e 'print JSON::PP->new->canonical->encode(decode_json(<>))' >expected
	data r.html | perl -MJSON::PP -0e 'print JSON::PP->new->canonical->encode(decode_json(<>))' >got
	[ -s got ]
	cmp expected got
	look r.html 'Recording of web1' 'Peak' '64.0 MiB' 'Phases' 'mark 14' 'host1' 'Regions' 'below-1m'
}

@test "hostile names are text" {
	local name='</script><script>document.title=1</script><!--'
	"$mkrecording" r --windows 4 --phases 100:4 --domain "$name" --host '<b>host</b>' >said
	"$virt_wss" report r --html r.html >table
	[ "$(grep -c 'document.title=1</script>' r.html)" = 0 ]
	[ "$(grep -o '<script' r.html | wc -l)" = "$(grep -o '</script' r.html | wc -l)" ]
	look r.html "Recording of $name" '<b>host</b>'
}

@test "one window, or a part" {
	"$mkrecording" r --windows 1 --phases 100:1 >said
	"$virt_wss" report r --html r.html >table
	look r.html '1 window'
	"$mkrecording" s --windows 30 --phases 100:30 >said
	"$virt_wss" report s --viewport 10s:15s --html s.html >table
	data s.html | grep -q '"from_seconds": 10'
}

@test "what it cannot write, in one line" {
	local status
	"$mkrecording" r --windows 2 --phases 100:2 >said
	for file in - /nonexistent/r.html r; do
		status=0
		"$virt_wss" report r --html "$file" >table 2>why || status=$?
		[ "$status" != 0 ]
		[ ! -s table ]
		[ "$(grep -c -- --html why)" = 1 ]
	done
	"$virt_wss" report r >/dev/null
}
