#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later

scripts() { # every shell script of the project
	grep -rlE --exclude-dir=build --exclude-dir=.git --exclude-dir=build-aux \
		--exclude-dir=autom4te.cache --exclude=configure --exclude=config.status --exclude='*.md' \
		-e '^#!/(usr/)?bin/(env )?(ba|da)?sh' -e '^# shellcheck shell=' . | sort
}

# SC2317: shellcheck does not see that a function is called by its name in a variable.
@test "shellcheck finds nothing in scripts" {
	cd "$WSS_SRCDIR"
	[ "$(scripts | wc -l)" -ge 8 ]
	scripts | xargs shellcheck -x -e SC2317 --source-path=SCRIPTDIR
}

# SC2154, SC2034: variables that a loaded file sets or reads; SC2030, SC2031: each test
# is a subshell, as intended; SC2016: perl code.
@test "shellcheck finds nothing in tests" {
	cd "$WSS_SRCDIR"
	shellcheck -s bats -e SC2154,SC2034,SC2030,SC2031,SC2016 tests/*/*.bats
}

# What stands left of && fails a test only in the last line of a function.
@test "each check of a test can fail" {
	cd "$WSS_SRCDIR"
	# shellcheck disable=SC2016
	output=$(awk '
		check != "" && !/^\t*\}/ { print check }
		{ check = "" }
		/^\t+(\[ .* \]|\[\[ .* \]\]) && / && !/\|\||&& (\{|return|continue|break|exit|skip)|(\\|&&)$/ { check = FILENAME ":" FNR ": " $0 }' tests/*/*.bats)
	echo "$output"
	[ -z "$output" ]
}
