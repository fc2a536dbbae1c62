#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the command line of squeeze, on libvirt's test driver.

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=test:///default
}

@test "invalid options are refused" {
	for words in "" "test other" "--all" "test --step 0" "test --step 21" "test --step x" "test --settle 0" \
		"test --settle 1500ms" "test --interval 0" "test --interval 2h" "test --floor 5" "test --hold 10m" "test --history=" \
		"test --restore" "test --apply" "--qmp /nowhere"; do
		# shellcheck disable=SC2086
		run "$virt_wss" squeeze $words
		echo "$words: $output"
		[ "$status" = 2 ]
		[ "${#lines[@]}" = 1 ]
	done
	run "$virt_wss" squeeze
	[[ $output == *"squeeze takes one DOMAIN"* ]]
	run "$virt_wss" squeeze test --settle 1500ms
	[[ $output == *"'1500ms' is not in whole seconds"* ]]
	for words in 0 21 x 0%; do
		run "$virt_wss" squeeze test --step "$words"
		[[ $output == *"--step: '${words%\%}' is not a whole number from 1 to 20" ]]
	done
}

@test "a guest that balloon refuses is refused, with the same reason" {
	run "$virt_wss" balloon test --output json
	echo "$output"
	reason=$(sed -n 's/.*"reason": "\([^"]*\)".*/\1/p' <<<"$output")
	[ -n "$reason" ]
	run "$virt_wss" squeeze test --dry-run --output json
	echo "$output"
	[ "$status" = 5 ]
	[[ $output == *'"schema": "virt-wss/squeeze/1"'* ]]
	[[ $output == *'"action": "refused"'* ]]
	[[ $output == *"\"reason\": \"$reason\""* ]]
	[[ $output == *'"recommended_reason": "there is no history"'* ]]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	run timeout 300 "$virt_wss" squeeze test
	echo "$output"
	[ "$status" = 5 ]
	[[ $output == *"test: refused: $reason"* ]]
}

@test "--dry-run prints the floor and the number of steps, and no column of what was found" {
	run --separate-stderr "$virt_wss" squeeze test --dry-run
	echo "$output"
	[[ ${lines[0]} == "DOMAIN"*"FROM"*"FLOOR"*"STEPS"*"LONGEST"*"WHY"* ]]
	[[ ${lines[0]} != *"PAGES"* ]]
	[[ ${lines[1]} == "test "*" 64 MiB "* ]]
	run "$virt_wss" squeeze --columns help
	[ "$status" = 0 ]
}

@test "a guest that is not there is an error, in each format" {
	for words in "" --dry-run; do
		# shellcheck disable=SC2086
		run timeout 300 "$virt_wss" squeeze nobody $words --output json
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *'"error": '* ]]
		# shellcheck disable=SC2086
		run timeout 300 "$virt_wss" squeeze nobody $words
		[ "$status" = 1 ]
		[[ $output == *nobody* ]]
	done
}

@test "a history that cannot be opened: no memory is taken without a journal" {
	touch "$BATS_TEST_TMPDIR/file"
	run timeout 300 "$virt_wss" squeeze test --history "$BATS_TEST_TMPDIR/file/history.db"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"/file/history.db"* ]]
}
