#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later

@test "C files look as clang-format makes them" {
	clang-format --version | grep -q 'version 14\.' || skip "no clang-format 14, whose result .clang-format is for"
	make -C "$WSS_BUILDDIR" format-check
}

@test "a line that is formatted otherwise is found" {
	clang-format --version | grep -q 'version 14\.' || skip "no clang-format 14, whose result .clang-format is for"
	printf 'int  x;\n' >"$BATS_TEST_TMPDIR/x.c"
	run make -C "$WSS_BUILDDIR" format-check C_FILES="$BATS_TEST_TMPDIR/x.c"
	[ "$status" != 0 ]
	[[ $output == *"x.c:1:4: error: code should be clang-formatted"* ]]
}
