# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Loaded by the tests in bats of all tiers.

# Sets a variable to what a file holds, without the line ends at its end: $(cat FILE) without two processes, which
# tests need thousands of times.
contents() { # VARIABLE FILE
	local contents_text=''
	{ IFS= read -rd '' contents_text || :; } <"$2" || return 1
	printf -v "$1" %s "${contents_text%"${contents_text##*[!$'\n']}"}"
}
