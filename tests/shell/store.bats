#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests sample --store where nothing can be measured: the round around the measurement.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/state/history.db LIBVIRT_DEFAULT_URI=test:///default
}

# A history with one sample of a guest that does not exist.
history_make() { # [FILE]
	"$WSS_BUILDDIR/tests/unit/make-history" "${1-$VIRT_WSS_HISTORY}" 1 1000000 1 \
		a1b2c3d4-0000-4000-8000-000000000000
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

@test "a round names what cannot be measured, and leaves no empty history" {
	wss sample --all --store --publish --window 100ms --output csv
	[ "$status" = 5 ]
	[[ $err == *test*QEMU* && $out == *unsupported* ]]
	[ "$(ls -A "$BATS_TEST_TMPDIR/state")" = history.db.lock ]
	wss sample test --store --history "$BATS_TEST_TMPDIR/elsewhere" --window 100ms
	[ "$status" = 5 ]
	[ ! -e "$BATS_TEST_TMPDIR/elsewhere" ]
	wss sample nobody --store
	[ "$status" = 1 ]
	[[ $err == *nobody* ]]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	wss balloon test --apply
	[ "$status" = 5 ]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	wss recommend
	[[ $err == *"no history yet"* ]]
}

@test "a history that was there before stays, with samples and without" {
	history_make
	[ -z "$(find "$BATS_TEST_TMPDIR/state" -perm /007 -type f)" ]
	wss sample --all --store --window 100ms
	[ "$status" = 5 ]
	[ -s "$VIRT_WSS_HISTORY" ]
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	sqlite3 "$VIRT_WSS_HISTORY" 'PRAGMA foreign_keys = ON; DELETE FROM guest'
	wss sample --all --store --window 100ms
	[ "$status" = 5 ]
	[ -s "$VIRT_WSS_HISTORY" ]
}

@test "two rounds never overlap" {
	wss sample --store --window 100ms
	[ "$status" = 5 ]
	exec 9>>"$VIRT_WSS_HISTORY.lock"
	flock 9
	wss sample --store --window 100ms
	[ "$status" = 1 ]
	[[ $err == *"another round"* ]]
	[ "$(wc -l <<<"$err")" = 1 ]
	# A single guest by name is not a round.
	wss sample test --store --window 100ms
	[ "$status" = 5 ]
	exec 9>&-
	wss sample --store --window 100ms
	[ "$status" = 5 ]
}

@test "a history that cannot be written gives one clear line" {
	wss sample test --store --history /proc/nowhere/history.db
	[ "$status" = 1 ]
	[ "$(wc -l <<<"$err")" = 1 ]
	head -c 100000 /dev/urandom >"$BATS_TEST_TMPDIR/garbage"
	cp "$BATS_TEST_TMPDIR/garbage" "$BATS_TEST_TMPDIR/garbage.before"
	wss sample test --store --history "$BATS_TEST_TMPDIR/garbage"
	[ "$status" = 1 ]
	cmp "$BATS_TEST_TMPDIR/garbage" "$BATS_TEST_TMPDIR/garbage.before"
	wss -c 'qemu+unix:///system?socket=/nowhere/socket' sample --store
	[ "$status" = 4 ]
}

@test "a history that is not a regular file is refused at once, by readers and writers" {
	dir=$BATS_TEST_TMPDIR/special
	mkdir "$dir"
	history_make "$dir/good"
	mkfifo "$dir/fifo"
	ln -s good "$dir/link"
	ln -s nothing "$dir/dangling"
	mkdir "$dir/directory"
	for name in fifo link dangling directory; do
		# If SIGTERM were ignored, the limit would end it.
		[ "$name" = directory ] && expected=2 || expected=1
		wss recommend test --history "$dir/$name"
		[ "$status" = "$expected" ]
		[ "$(wc -l <<<"$err")" = 1 ]
		[[ $err == *"$dir/$name"*" is a "* ]]
		wss sample test --store --history "$dir/$name"
		[ "$status" = "$expected" ]
		[ "$(wc -l <<<"$err")" = 1 ]
		[[ $err == *"$dir/$name"*" is a "* ]]
	done
	[ ! -e "$dir/nothing" ]
	[ -p "$dir/fifo" ]
	# A directory may be reached through a link, and the file by a relative name.
	ln -s . "$dir/here"
	wss sample test --store --history "$dir/here/good" --window 100ms
	[ "$status" = 5 ]
	(cd "$dir" && wss recommend test --history good && [ "$status" = 0 ])
}

@test "SQLite's files next to a history are refused unless they are regular files" {
	history_make
	for suffix in -journal -wal -shm; do
		for kind in fifo link; do
			mv "$VIRT_WSS_HISTORY$suffix" "$BATS_TEST_TMPDIR/kept" || true
			if [ $kind = fifo ]; then
				mkfifo "$VIRT_WSS_HISTORY$suffix"
			else
				echo theirs >"$BATS_TEST_TMPDIR/target"
				ln -s "$BATS_TEST_TMPDIR/target" "$VIRT_WSS_HISTORY$suffix"
			fi
			wss recommend test
			[ "$status" = 1 ]
			[[ $err == *"history.db$suffix: it is a "* ]]
			wss sample test --store --window 100ms
			[ "$status" = 1 ]
			[[ $err == *"history.db$suffix: it is a "* ]]
			rm "$VIRT_WSS_HISTORY$suffix"
			[ ! -e "$BATS_TEST_TMPDIR/kept" ] || mv "$BATS_TEST_TMPDIR/kept" "$VIRT_WSS_HISTORY$suffix"
		done
	done
	[ "$(cat "$BATS_TEST_TMPDIR/target")" = theirs ]
	wss sample test --store --window 100ms
	[ "$status" = 5 ]
}

# A hot rollback journal that names VICTIM as the super-journal of a transaction over several
# databases. SQLite deletes that file, because it does not list this journal.
journal_naming() { # VICTIM
	perl -e 'my $victim = shift; my $magic = pack "H*", "d9d505f920a163d7";
		print $magic, pack("N5", 0, 1, 40, 512, 4096), "\0" x 484, pack("N", 0x40000000 / 4096 + 1),
			$victim, pack("N2", length $victim, unpack "%32C*", $victim), $magic' "$1"
}

@test "a journal that names another file is refused, and the file stays" {
	local victim=$BATS_TEST_TMPDIR/victim command
	history_make
	sqlite3 "$VIRT_WSS_HISTORY" "PRAGMA journal_mode = DELETE" >/dev/null
	cp "$VIRT_WSS_HISTORY" "$BATS_TEST_TMPDIR/kept"
	for command in history recommend "sample --all --store --window 100ms"; do
		cp "$BATS_TEST_TMPDIR/kept" "$VIRT_WSS_HISTORY"
		echo precious >"$victim"
		journal_naming "$victim" >"$VIRT_WSS_HISTORY-journal"
		# shellcheck disable=SC2086
		wss $command
		[ "$(cat "$victim")" = precious ]
		[ "$status" = 1 ]
		[[ $err == *"history.db-journal: it names a file that SQLite would delete"* ]]
	done
	# This is what SQLite itself would do.
	sqlite3 "$VIRT_WSS_HISTORY" "SELECT count(*) FROM guest" >/dev/null || true
	[ ! -e "$victim" ]
}

@test "the round's lock is private, and neither a link nor a FIFO" {
	wss sample --store --window 100ms
	[ "$status" = 5 ]
	[ "$(stat -c %a "$VIRT_WSS_HISTORY.lock")" = 600 ]
	rm "$VIRT_WSS_HISTORY.lock"
	echo theirs >"$BATS_TEST_TMPDIR/target"
	chmod 644 "$BATS_TEST_TMPDIR/target"
	for target in "$BATS_TEST_TMPDIR/target" "$BATS_TEST_TMPDIR/nothing"; do
		ln -s "$target" "$VIRT_WSS_HISTORY.lock"
		wss sample --store --window 100ms
		[ "$status" = 1 ]
		[ "$(wc -l <<<"$err")" = 1 ]
		[[ $err == *history.db.lock* ]]
		rm "$VIRT_WSS_HISTORY.lock"
	done
	[ "$(stat -c %a "$BATS_TEST_TMPDIR/target")" = 644 ]
	[ ! -e "$BATS_TEST_TMPDIR/nothing" ]
	mkfifo "$VIRT_WSS_HISTORY.lock"
	wss sample --store --window 100ms
	[ "$status" = 1 ]
	[[ $err == *"history.db.lock: it is a FIFO"* ]]
}

# Anyone who may read a directory can lock it forever.
@test "a locked directory does not prevent the creation of a history" {
	mkdir "${VIRT_WSS_HISTORY%/*}"
	exec 9<"${VIRT_WSS_HISTORY%/*}"
	flock --shared 9
	wss sample test --store --window 100ms
	[ "$status" = 5 ]
	history_make
	exec 9<&-
}

ended() { # PID
	! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]
}

# A stop request cuts short the 15 s of waiting for another writer.
@test "waiting for another writer of the history ends on a stop" {
	history_make
	mkfifo "$BATS_TEST_TMPDIR/commands"
	sqlite3 "$VIRT_WSS_HISTORY" <"$BATS_TEST_TMPDIR/commands" >"$BATS_TEST_TMPDIR/said" 3>&- &
	exec 8>"$BATS_TEST_TMPDIR/commands"
	printf 'PRAGMA locking_mode = EXCLUSIVE;\nBEGIN EXCLUSIVE;\nSELECT 42;\n' >&8
	wait_until 300 grep -q 42 "$BATS_TEST_TMPDIR/said"
	"$virt_wss" recommend test >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- 8>&- &
	pid=$!
	wait_until 300 has_open "$pid" history.db
	kill "$pid"
	wait_until 300 ended "$pid"
	wait "$pid" || true
	exec 8>&-
	wait
}

has_open() { # PID NAME
	find "/proc/$1/fd" -lname "*/$2" 2>/dev/null | grep -q .
}

@test "invalid options are refused" {
	for words in "--history x" "--keep 1d" "--persistent" "--store --cumulative" \
		"--store --keep 0" "--store --keep 90" "--store --keep 3M" "--store --keep 23h" "--store --keep forever" "--store --keep-size 1KiB" \
		"--store --history=" "--store --deadline 0" "--jobs 0" "--jobs 1001"; do
		# shellcheck disable=SC2086
		wss sample test $words
		[ "$status" = 2 ]
		[ "$(wc -l <<<"$err")" = 1 ]
	done
	wss sample test --store --keep 90
	[[ $err == *"--keep: '90' is less than a day: give days, such as 90d (a number without a unit is seconds, m is minutes)" ]]
	wss --qmp /nowhere sample --store
	[ "$status" = 2 ]
	[[ $err == *"--qmp: a guest that is known by its socket alone has no history: use -c kvm:///, which stores the same guest" ]]
	wss --qmp /nowhere recommend
	[ "$status" = 2 ]
	[[ $err == *"use -c kvm:///, which stores the same guest" ]]
	wss --qmp /nowhere --qmp /elsewhere sample
	[ "$status" = 2 ]
	[[ $err == *"--qmp given more than once: it takes the socket of one guest" ]]
}

@test "one bad guest is some of several, even if the others are not due yet" {
	dir=$BATS_TEST_TMPDIR/node
	mkdir "$dir"
	due=a1b2c3d4-0000-4000-8000-00000000aaaa
	later=a1b2c3d4-0000-4000-8000-00000000bbbb
	for uuid in $due $later; do
		echo "<domain type='test'><name>$uuid</name><uuid>$uuid</uuid><memory>1024</memory><metadata>
			<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:period unit='seconds'>3600</p:period></p:policy>
			</metadata><os><type>hvm</type></os></domain>" >"$dir/$uuid.xml"
	done
	echo "<node><domain file='$dir/$due.xml'/><domain file='$dir/$later.xml'/></node>" >"$dir/node.xml"
	wss -c "test://$dir/node.xml" policy get --output csv
	[ "$(grep -c 3600 <<<"$out")" = 2 ]
	mkdir "${VIRT_WSS_HISTORY%/*}"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 $later
	wss -c "test://$dir/node.xml" sample --store --window 100ms --output csv
	[ "$status" = 3 ]
	[[ $err == *$due* && $err != *$later* ]]
}
