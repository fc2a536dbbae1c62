#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The build system: what is generated comes before what includes it.

# The command that makes HEADER stands before the one that compiles SOURCE, for virt-wss alone.
made_before() { # HEADER SOURCE
	local header source
	header=$(grep -nF "$1.new" commands | head -n 1)
	source=$(grep -n -- " -c .*$2\$" commands | head -n 1)
	printf '%s: %s\n%s: %s\n' "$1" "${header:0:80}" "$2" "${source:0:80}"
	[ -n "$header" ] && [ -n "$source" ] && [ "${header%%:*}" -lt "${source%%:*}" ]
}

@test "virt-wss alone can be made in a fresh build directory" {
	cd "$BATS_TEST_TMPDIR"
	"$WSS_SRCDIR/configure" --quiet >configure.out 2>&1 || { cat configure.out; false; }
	# What it would do, in this order; to do it takes too long for each run.
	make -n virt-wss >commands
	made_before src/help-text.h src/main.c
	made_before src/help-text.h src/cmd/balloon.c
	if grep -qE '^WITH_BPF_TRUE *= *$' Makefile; then
		made_before src/track/recorder.skel.h src/track/recorder-bpf.c
	fi
}
