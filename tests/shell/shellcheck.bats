#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later

scripts() { # every shell script of the project
	grep -rlE --exclude-dir=build --exclude-dir=.git --exclude-dir=build-aux \
		--exclude-dir=autom4te.cache --exclude=configure --exclude=config.status --exclude='*.md' \
		-e '^#!/(usr/)?bin/(env )?(ba|da)?sh' -e '^# shellcheck shell=' . | sort
}

@test "shellcheck has nothing to say of scripts" {
	cd "$WSS_SRCDIR"
	[ "$(scripts | wc -l)" -ge 8 ]
	scripts | xargs shellcheck -x --source-path=SCRIPTDIR
}

# SC2154, SC2034: variables that a loaded file sets or reads; SC2016: perl's.
@test "shellcheck has nothing to say of tests" {
	cd "$WSS_SRCDIR"
	shellcheck -s bats -e SC2154,SC2034,SC2016 tests/*/*.bats
}
