#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests how the process ends: no thread may be in a library while exit() frees that library's
# memory. Also tests conditions that could end the process too early.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
shim=$WSS_BUILDDIR/tests/tools/threads-at-exit.so

needs_shim() {
	[ -e "$shim" ] || skip "no tests/tools/threads-at-exit.so"
}

teardown() {
	[ -z "${silent_pid-}" ] || kill "$silent_pid" 2>/dev/null || true
}

wss() { # ARGUMENT...: status, out, err, and the threads that exit() met
	status=0
	LD_PRELOAD=$shim timeout -k 5 300 "$virt_wss" "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	threads=$(sed -n 's/^threads at exit: //p' "$BATS_TEST_TMPDIR/err" | head -n 1)
	printf '$ virt-wss %s -> %s, %s threads\n' "$*" "$status" "$threads"
	cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
}

@test "only one thread is left at the end, whatever was asked" {
	local i hosts=()
	needs_shim
	for i in {1..20}; do
		hosts+=(-c test:///default)
	done
	for i in {1..5}; do
		wss "${hosts[@]:0:2}" list "${hosts[@]}"
		[ "$status" = 0 ]
		[ "$threads" = 1 ]
	done
	wss -c test:///default list test
	[ "$threads" = 1 ]
	wss -c test:///default sample --all --window 100ms
	[ "$status" = 5 ]
	[ "$threads" = 1 ]
	wss -c test:///default sample --all --window 100ms --store --history "$BATS_TEST_TMPDIR/db"
	[ "$threads" = 1 ]
	wss -c test:///default methods
	[ "$threads" = 1 ]
	wss --version
	[ "$threads" = 1 ]
}

@test "while a thread hangs, nothing is freed, and all output is complete" {
	needs_shim
	command -v perl >/dev/null || skip "needs perl"
	silent_socket
	# By a clock that waits for the threads that list the other domains.
	clock_new "$BATS_TEST_TMPDIR/clock" 100
	shim=$shim:$WSS_BUILDDIR/tests/tools/hang.so WSS_CLOCK=$BATS_TEST_TMPDIR/clock \
		wss -c "qemu+unix:///system?socket=$silent" list -c test:///default --timeout 1s --output csv
	[ "$status" = 3 ]
	[ -z "$threads" ]
	grep -q '^test,' "$BATS_TEST_TMPDIR/out"
}

@test "a limit on the size of files fails the write, and leaves nothing behind" {
	local files=$BATS_TEST_TMPDIR/files
	mkdir "$files"
	"$WSS_BUILDDIR/tests/tools/mkrecording" "$BATS_TEST_TMPDIR/r" >"$BATS_TEST_TMPDIR/said"
	for command in report heatmap; do
		status=0
		(ulimit -f 1 && "$virt_wss" $command "$BATS_TEST_TMPDIR/r" --plot "$files/picture") \
			>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
		cat "$BATS_TEST_TMPDIR/err"
		[ "$status" = 1 ]
		grep -q 'cannot write .*picture: .*File too large' "$BATS_TEST_TMPDIR/err"
		[ -z "$(ls -A "$files")" ]
	done
	status=0
	(ulimit -f 4 && "$virt_wss" -c test:///default sample --store --history "$files/db") \
		2>"$BATS_TEST_TMPDIR/err" || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 1 ]
	grep -q "history $files/db" "$BATS_TEST_TMPDIR/err"
	[ "$(ls -A "$files")" = db.lock ]
}

@test "too few file descriptors are an error, and never end the process by a signal" {
	local limit
	for limit in {5..24}; do
		status=0
		(ulimit -n "$limit" && "$virt_wss" -c test:///default list) \
			>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
		echo "$limit: $status: $(cat "$BATS_TEST_TMPDIR/err")"
		[ "$status" -lt 128 ]
	done
	(ulimit -n 16 && "$virt_wss" -c test:///default list) 2>"$BATS_TEST_TMPDIR/err" || status=$?
	[ "$status" = 4 ]
	grep -q '16 file descriptors must be free' "$BATS_TEST_TMPDIR/err"
}

# --default-signal|--ignore-signal ARGUMENT...: runs virt-wss with a closed pipe as standard
# output; sets status and err.
unread() {
	local disposition=$1 fd
	shift
	exec {fd}> >(exec true)
	# It may have ended so early that bash does not know it any more.
	wait $! || :
	status=0
	timeout -k 5 300 env "$disposition=PIPE" "$virt_wss" "$@" 1>&"$fd" \
		2>"$BATS_TEST_TMPDIR/err" || status=$?
	exec {fd}>&-
	printf '$ virt-wss %s -> %s\n' "$*" "$status"
	cat "$BATS_TEST_TMPDIR/err"
}

@test "a closed pipe ends the program silently, by SIGPIPE" {
	local words recording=$BATS_TEST_TMPDIR/recording
	"$WSS_BUILDDIR/tests/tools/mkrecording" "$recording"
	for words in "-c test:///default list" "-c test:///default list --output json" \
		"-c test:///default list --output csv" "-c test:///default methods test" \
		"report $recording" "report $recording --output json" \
		"diff $recording@1s $recording --output json" \
		"heatmap $recording --plot -" "heatmap $recording --plot /dev/stdout" \
		"--help" "help sample" "--version" "list --columns help"; do
		# shellcheck disable=SC2086
		unread --default-signal $words
		[ "$status" = 141 ]
		[ ! -s "$BATS_TEST_TMPDIR/err" ]
	done
}

@test "a closed pipe is an error if SIGPIPE is ignored" {
	unread --ignore-signal -c test:///default list
	[ "$status" = 1 ]
	[ "$(cat "$BATS_TEST_TMPDIR/err")" = "virt-wss: error: cannot write the output: Broken pipe" ]
	unread --ignore-signal --help
	[ "$status" = 1 ]
	grep -q 'Broken pipe' "$BATS_TEST_TMPDIR/err"
}
