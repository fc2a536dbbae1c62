#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the examples of the help texts, of the manual page and of README.md are valid
# command lines: with a libvirt that has the domain web1 but no QEMU they succeed or end as "not
# supported here", never as a usage error. make check-root runs them on a guest.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

# Makes a recording web1.rec that is being written, which mark needs.
hold_recording() {
	mkfifo "$BATS_TEST_TMPDIR/hold"
	"$WSS_BUILDDIR/tests/tools/mkrecording" web1.rec --hold --phases 4096:10,1024:10 \
		<"$BATS_TEST_TMPDIR/hold" >"$BATS_TEST_TMPDIR/held" 3>&- &
	exec 4>"$BATS_TEST_TMPDIR/hold"
	wait_until 300 grep -q holding "$BATS_TEST_TMPDIR/held"
}

teardown() {
	exec 4>&-
}

@test "every example is a valid command line" {
	local uuid=6695eb01-f6a4-8304-79aa-97f2502e193f
	export PATH="$WSS_BUILDDIR:$PATH"
	printf '%s' "<domain type='test'><name>web1</name><uuid>$uuid</uuid><memory>1024</memory>" \
		"<os><type>hvm</type></os></domain>" >"$BATS_TEST_TMPDIR/domain.xml"
	printf '%s' "<node><domain file='$BATS_TEST_TMPDIR/domain.xml'/></node>" >"$BATS_TEST_TMPDIR/node.xml"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	export LIBVIRT_DEFAULT_URI=test://$BATS_TEST_TMPDIR/node.xml
	# One of them writes a file below it.
	export HOME=$BATS_TEST_TMPDIR
	mkdir -p "$HOME/.local/share/bash-completion/completions"
	{
		sed -nE 's/^(    |\$ )(\.\/)?(virt-wss .*)/\3/p' "$WSS_SRCDIR"/{docs/virt-wss.pod,README.md}
		sed -nsE '/^Examples:$/,$s/^  (virt-wss .*)/\1/p' "$WSS_SRCDIR"/docs/synopsis/*.txt
	} >"$BATS_TEST_TMPDIR/examples"
	grep -qx 'virt-wss help sample' "$BATS_TEST_TMPDIR/examples"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/examples")" -ge 6 ]
	cd "$BATS_TEST_TMPDIR" || return 1
	hold_recording
	"$WSS_SRCDIR/tests/tools/plan-fleet" . 2 6
	echo 'small 1GiB' >flavours.txt
	# As if a service had watched the domain for two minutes.
	mkdir -m 700 ages
	"$WSS_BUILDDIR/tests/unit/make-ages" ages $uuid web1 2
	while read -r example; do
		echo "\$ $example"
		# The service would not end. Its directories are those of another host.
		if [[ $example == 'virt-wss serve '* ]]; then
			example=$(sed 's,/var/lib/prometheus/node-exporter/,./,; s,/run/virt-wss/,./,' <<<"$example")' --check-config'
		fi
		status=0
		bash -c "$example" </dev/null || status=$?
		echo "-> $status"
		case $example in
		# A monitoring plugin ends with 3 where it knows nothing: no sample was stored.
		'virt-wss check'*) [ $status = 3 ] ;;
		'virt-wss cold'*) [ $status = 0 ] ;;
		# There is no history.
		'virt-wss recommend --backtest web1'* | 'virt-wss balloon --forget web1' | 'virt-wss balloon --restore') [ $status = 1 ] ;;
		*) [ $status = 0 ] || [ $status = 5 ] ;;
		esac
	done <"$BATS_TEST_TMPDIR/examples"
}
