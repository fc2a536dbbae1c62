#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the command line of balloon, on libvirt's test driver.

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=test:///default
}

@test "a guest that cannot be shrunk is not a failure, and the reason is given" {
	run "$virt_wss" balloon test --output json
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *'"action": "refused"'* && $output == *'"reason"'* ]]
	run "$virt_wss" balloon nobody
	[ "$status" = 1 ]
}

@test "invalid options are refused" {
	for words in "--span 0" "--headroom x" "--minimum x" "--history=" "--all test" "--frobnicate" "--apply --restore" "--period 0" "--window 1m --period 30s"; do
		# shellcheck disable=SC2086
		run "$virt_wss" balloon test $words
		[ "$status" = 2 ]
	done
	run "$virt_wss" balloon test --history /nowhere/history.db
	[ "$status" = 1 ]
}

@test "nothing to restore is not a failure, and nothing to apply is reported" {
	local history=$BATS_TEST_TMPDIR/a/b/c
	# Nothing is created, whether directories are missing or only the file.
	for history in "$history" "$VIRT_WSS_HISTORY"; do
		run "$virt_wss" balloon --restore --history "$history"
		[ "$status" = 0 ]
		[ "$output" = "virt-wss: $history: nothing to restore" ]
		run "$virt_wss" balloon test --restore --history "$history"
		[ "$status" = 0 ]
		[ "$output" = "virt-wss: test: nothing to restore" ]
	done
	[ ! -e "$BATS_TEST_TMPDIR/a" ]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	run timeout 60 "$virt_wss" balloon test --apply
	echo "$output"
	[ "$status" = 5 ]
	[[ $output == *refused* ]]
}

@test "a host without guests is named, and having nothing to apply to is not a failure" {
	cat >"$BATS_TEST_TMPDIR/empty.xml" <<-'END'
		<node><cpu><mhz>1</mhz><model>x</model><active>1</active><nodes>1</nodes><sockets>1</sockets>
		<cores>1</cores><threads>1</threads></cpu><memory>1000000</memory></node>
	END
	for words in "" --apply; do
		# shellcheck disable=SC2086
		run timeout 60 "$virt_wss" -c "test://$BATS_TEST_TMPDIR/empty.xml" balloon $words
		echo "$output"
		[ "$status" = 0 ]
		[[ $output == *"no domain is running at test://$BATS_TEST_TMPDIR/empty.xml"* ]]
	done
}

@test "many guests to restore: those that are gone are done, the others have a reason" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 \
		a1b2c3d4-0000-4000-8000-000000000000
	run "$virt_wss" balloon --restore
	[ "$output" = "virt-wss: $VIRT_WSS_HISTORY: nothing to restore" ]
	for i in $(seq 100 139); do
		echo "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
			VALUES ('a1b2c3d4-0000-4000-8000-000000000$i', 'web$i', 1, 5, 5, 4, 'test',
			'test:///$([ $((i % 2)) = 0 ] && echo default || echo elsewhere)');"
	done | sqlite3 "$VIRT_WSS_HISTORY"
	run "$virt_wss" balloon web100 web101 --restore
	[ "$status" = 3 ]
	[[ $output == *"web101: not known here: its memory was taken through 'test:///elsewhere'" ]]
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM balloon WHERE done = 1')" = 1 ]
	run "$virt_wss" balloon --restore
	echo "$output"
	[ "$status" = 3 ]
	[ "$(grep -c 'not known here' <<<"$output")" = 20 ]
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM balloon WHERE done = 1')" = 20 ]
}
