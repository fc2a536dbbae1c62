#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the frame of the fuzz targets finds faults: with a target that is broken on
# purpose, and for make fuzz with programs that stand in for libFuzzer.

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	broken=$WSS_BUILDDIR/tests/fuzz/broken
}

# Runs the target on one input, and checks that no directory is left however it ends.
try() { # INPUT
	mkdir -p memory
	printf %s "$1" >input
	TMPDIR=$PWD/memory run "$broken" input
	[ -z "$(ls memory)" ]
}

@test "a good input passes, and nothing is kept" {
	try fine
	[ "$status" = 0 ]
	[[ $output == *"1..1"*"ok 1 - 1 seeds"* ]]
	[ ! -e fuzz-broken.crash ]
}

@test "an input that crashes or breaks a requirement is kept" {
	local input
	for input in crash require; do
		rm -f fuzz-broken.crash
		try $input
		[ "$status" = 1 ]
		[[ $output == *"not ok - fuzz-broken ended by signal 6"* ]]
		[ "$(cat fuzz-broken.crash)" = $input ]
	done
}

@test "an input that takes too long fails" {
	# It computes for two seconds.
	WSS_FUZZ_SECONDS=1 try slow
	[ "$status" = 1 ]
	[[ $output == *"slow: one input took "* ]]
	[ "$(cat fuzz-broken.crash)" = slow ]
}

@test "an input that takes too much memory fails" {
	try large
	[ "$status" = 1 ]
	[[ $output == *"large: one input took it to "* ]]
	[ "$(cat fuzz-broken.crash)" = large ]
}

@test "a target without seeds fails" {
	run "$broken"
	[ "$status" = 1 ]
	[[ $output == *"no seeds"* ]]
}

# Makes fuzz-NAME in bin/, which stands in for a libFuzzer program. Given one file it
# reproduces, otherwise it searches; the other arguments define its behaviour in that case.
stand_in() { # NAME REPRODUCES SEARCHES
	mkdir -p bin
	cat >"bin/fuzz-$1" <<-END
		#!/bin/bash
		[ -z "\${WSS_FUZZ_SEEDS-}" ] || exit 0
		if [ \$# = 1 ]; then $2; fi
		for argument; do
			case \$argument in -artifact_prefix=*) prefix=\${argument#*=} ;; esac
		done
		echo "stat::number_of_executed_units: 1234"
		echo "stat::new_units_added:          5"
		echo "fuzz-$1: longest 0.123 s"
		$3
	END
	chmod +x "bin/fuzz-$1"
}

fuzz() { # TARGET...
	run "$WSS_SRCDIR/tests/fuzz/run" --minutes 0.01 bin out "$@"
}

@test "each target has a line, and a finding fails the run" {
	stand_in good 'exit 0' 'exit 0'
	fuzz fuzz-good
	[ "$status" = 0 ]
	[ "$output" = "fuzz-good: 1234 runs, 5 new inputs, longest 0.1 s, 0 crashes" ]
	# shellcheck disable=SC2016
	stand_in bad 'exit 1' 'echo x >"${prefix}crash-1"; exit 77'
	fuzz fuzz-bad fuzz-good
	[ "$status" = 1 ]
	[[ $output == *"fuzz-bad: 1234 runs, 5 new inputs, longest 0.1 s, 1 crashes: see out/bad"* ]]
	[[ $output == *"fuzz-good: 1234 runs"*" 0 crashes"* ]]
	[ -e out/bad/crash-1 ]
}

@test "a target that ends in the wrong way without leaving a file is a finding" {
	stand_in odd 'exit 0' 'exit 3'
	fuzz fuzz-odd
	[ "$status" = 1 ]
	[[ $output == *" 1 crashes: see out/odd" ]]
}

@test "an earlier finding is tried again, and joins the corpus once it is repaired" {
	stand_in again 'exit 1' 'exit 0'
	mkdir -p out/again
	echo x >out/again/timeout-1
	fuzz fuzz-again
	[ "$status" = 1 ]
	[ -e out/again/timeout-1 ]
	stand_in again 'exit 0' 'exit 0'
	fuzz fuzz-again
	[ "$status" = 0 ]
	[ -e out/again/corpus/timeout-1 ]
}
