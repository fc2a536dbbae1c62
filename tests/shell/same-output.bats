#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests tests/tools/same-output: one program differs in nothing from itself, and each kind of change is shown.

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	for tool in curl script sqlite3; do
		command -v $tool >/dev/null || skip "needs $tool"
	done
	cd "$BATS_TEST_TMPDIR" || return 1
}

same_output() { # OPTION... PROGRAM
	run "$WSS_SRCDIR/tests/tools/same-output" "${@:1:$#-1}" "$virt_wss" "${@: -1}"
	echo "$output"
}

# Makes the program "changed": virt-wss, and then COMMAND on what it has printed.
changed() { # COMMAND
	printf '%s\n' '#!/bin/bash' 'set -o pipefail' "'$virt_wss' \"\$@\" | $1" >changed
	chmod +x changed
}

@test "a program and itself differ in nothing" {
	same_output "$virt_wss"
	[ "$status" = 0 ]
	[ "${#lines[@]}" = 1 ]
	[[ $output =~ ^[0-9]+" command lines, 0 differ"$ ]]
	[ "${output%% *}" -gt 200 ]
}

@test "a changed column is shown, in table, JSON and CSV" {
	changed "sed 's/current_bytes/used_bytes/; s/ CURRENT / USED /'"
	same_output --only '^virt-wss list( --wide| --output csv| --output json|)$' ./changed
	[ "$status" = 1 ]
	[ "${lines[-1]}" = '4 command lines, 4 differ' ]
	grep -qx 'virt-wss list --output csv' <<<"$output"
	grep -qx -- '--- OLD stdout' <<<"$output"
	grep -q '^-.* "current_bytes": 150994944,' <<<"$output"
	grep -q '^+.* "used_bytes": 150994944,' <<<"$output"
	grep -q '^+domain,.*,used_bytes' <<<"$output"
	grep -q '^+DOMAIN .* USED ' <<<"$output"
}

@test "a changed line of the help is shown" {
	changed "sed 's/^  --window TIME .*/  --window TIME          how long/'"
	same_output --only '^virt-wss s[a-z]* --help$' ./changed
	[ "$status" = 1 ]
	[ "${lines[-1]}" = '3 command lines, 2 differ' ]
	grep -qx 'virt-wss sample --help' <<<"$output"
	grep -q '^-  --window TIME .*default 4s' <<<"$output"
	grep -qx '+  --window TIME          how long' <<<"$output"
}

@test "a changed picture, a changed answer of the service and a changed history are shown" {
	changed "cat; [ ! -e p.svg ] || sed -i 's/<svg /<svg id=\"x\" /' p.svg"
	same_output --only '^virt-wss report r --plot p.svg' ./changed
	[ "$status" = 1 ]
	grep -qx -- '--- OLD files/p.svg' <<<"$output"
	grep -q '^+<svg id="x" ' <<<"$output"
	changed 'cat; sqlite3 history.db "DELETE FROM sample WHERE quality = 0"'
	same_output --only '^virt-wss history$' ./changed
	[ "$status" = 1 ]
	grep -qx -- '--- OLD files/history.db.sql' <<<"$output"
	printf '%s\n' '#!/bin/bash' "exec '$virt_wss' \"\$@\" --budget 7%" >changed
	same_output --only 'serve --listen.*period' ./changed
	[ "$status" = 1 ]
	grep -q '^+.*"vcpu_share": 0.07' <<<"$output"
}

@test "another exit status, another message and figures of a window that are gone are shown" {
	printf '%s\n' '#!/bin/bash' "'$virt_wss' \"\$@\" 2> >(sed 's/no such column/no column/' >&2)" 'exit 7' >changed
	chmod +x changed
	same_output --only '^virt-wss help sample$' ./changed
	[ "$status" = 1 ]
	grep -qx -- '+7' <<<"$output"
	changed "sed 's/, \"wss_bytes\": [0-9]*//'"
	same_output --only '^virt-wss sample --qmp .* --output json$' ./changed
	[ "$status" = 1 ]
	grep -q '^-.*"wss_bytes": #' <<<"$output"
}

@test "nothing is proven by command lines that are missing, or print nothing" {
	same_output --only 'no such command line' "$virt_wss"
	[ "$status" = 2 ]
	printf '%s\n' '#!/bin/bash' >silent
	chmod +x silent
	run "$WSS_SRCDIR/tests/tools/same-output" --only '^virt-wss list$' ./silent ./silent
	echo "$output"
	[ "$status" = 2 ]
}

@test "each command is compared by more than its help" {
	local command
	for command in $("$virt_wss" --help | sed -n '/^Commands:$/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
		echo "$command"
		grep -qE "^[[:space:]]+(plain|table) $command( |\$)" "$WSS_SRCDIR/tests/tools/same-output"
	done
	[ "$command" = completion ]
}
