#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests files, locks and directories of other users in places that root writes to: they are
# refused or replaced, never written to, and never block.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/virt-wss
mkrecording=$WSS_BUILDDIR/tests/tools/mkrecording
other=(setpriv --reuid=65534 --regid=65534 --clear-groups)

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	export LIBVIRT_DEFAULT_URI=test:///default
	# A directory that another user may enter; bats' own directories belong to root alone.
	shared=$(mktemp -d /var/tmp/wss-files.XXXXXX)
	chmod 1777 "$shared"
	cd "$shared" || return 1
}

teardown() {
	[ -z "${racer-}" ] || kill "$racer" || true
	[ -z "${shared-}" ] || { cd / && rm -rf "$shared"; }
}

wss() { # ARGUMENT...
	status=0
	timeout -k 5 500 "$virt_wss" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	err=$(cat "$BATS_TEST_TMPDIR/err")
	printf '$ virt-wss %s -> %s\n%s\n' "$*" "$status" "$err"
}

refused() { # REGULAR-EXPRESSION ARGUMENT...
	local re=$1
	shift
	wss "$@"
	[ "$status" = 1 ] && [ "$(wc -l <<<"$err")" = 1 ] && grep -qE "$re" <<<"$err"
}

theirs() { # FILE: with a mode that lets everyone write to it
	"${other[@]}" sh -c 'umask 0; echo theirs >"$1"' sh "$1"
	[ "$(stat -c '%u %a' "$1")" = "65534 666" ]
}

untouched() { # FILE
	[ "$(cat "$1") $(stat -c '%u %a' "$1")" = "theirs 65534 666" ]
}

@test "pictures and recordings: another user's file in a sticky directory is refused" {
	"$mkrecording" "$BATS_TEST_TMPDIR/r" >"$BATS_TEST_TMPDIR/said"
	theirs picture
	refused 'picture: it belongs to another user \(uid 65534\)' report "$BATS_TEST_TMPDIR/r" --plot picture
	refused 'picture: it belongs to another user' heatmap "$BATS_TEST_TMPDIR/r" --plot "$shared/picture"
	untouched picture
	# An empty file would be replaced, and so would a recording.
	theirs recording
	"${other[@]}" sh -c ': >recording'
	! "$mkrecording" recording >"$BATS_TEST_TMPDIR/said" 2>"$BATS_TEST_TMPDIR/err" || return 1
	grep -q 'recording: it belongs to another user' "$BATS_TEST_TMPDIR/err"
	[ "$(stat -c '%u %a %s' recording)" = "65534 666 0" ]
	refused 'recording: it belongs to another user' mark recording text
	[ -z "$(find . -name '*.new')" ]
}

@test "pictures and recordings: elsewhere a new file of root's replaces it" {
	chmod 755 .
	theirs_in_place picture
	theirs_in_place recording
	: >recording
	exec 7<>recording 8<>picture
	"$mkrecording" recording >"$BATS_TEST_TMPDIR/said"
	wss report recording --plot picture
	[ "$status" = 0 ]
	[ "$(stat -c '%u %a' recording picture)" = $'0 600\n0 600' ]
	# Those who have the old files open see nothing of the new ones.
	[ "$(cat <&7)$(cat <&8)" = theirs ]
	exec 7>&- 8>&-
}

theirs_in_place() { # FILE: made where its owner may not
	echo theirs >"$1"
	chown 65534:65534 "$1"
	chmod 666 "$1"
}

@test "a history that others could write to or replace is refused" {
	mkdir safe
	"$WSS_BUILDDIR/tests/unit/make-history" safe/history.db 1 1000000 1 \
		a1b2c3d4-0000-4000-8000-000000000000
	# In a directory for everyone, or of another user.
	refused 'other users may write to its directory' sample test --store --history new.db
	[ ! -e new.db ]
	cp safe/history.db .
	refused 'other users may write to its directory' recommend test --history history.db
	chown 65534 safe
	refused 'its directory belongs to another user \(uid 65534\)' recommend test --history safe/history.db
	chown 0 safe
	chmod 775 safe
	chgrp 65534 safe
	refused 'other users may write to its directory' sample test --store --history safe/history.db
	chmod 755 safe
	# The history itself, and the files that belong to it.
	for name in history.db history.db-wal history.db-shm; do
		chown 65534 safe/$name
		refused "$name: it belongs to another user \(uid 65534\)" sample test --store --history safe/history.db
		refused "$name: it belongs to another user" recommend test --history safe/history.db
		chown 0 safe/$name
		chmod 666 safe/$name
		refused "$name: other users may write to it" sample test --store --history safe/history.db
		chmod 640 safe/$name
	done
	theirs_in_place safe/history.db-journal
	refused "history.db-journal: it belongs to another user" sample test --store --history safe/history.db
	rm safe/history.db-journal
	wss sample test --store --history safe/history.db --window 100ms
	[ "$status" = 5 ]
}

@test "another user's lock is neither trusted nor waited for" {
	mkdir safe
	wss sample --store --history safe/history.db --window 100ms
	[ "$status" = 5 ]
	theirs_in_place safe/history.db.lock
	mkfifo hold
	: >"$BATS_TEST_TMPDIR/lock"
	"${other[@]}" flock safe/history.db.lock sh -c 'echo locked; read -r line' \
		<hold >"$BATS_TEST_TMPDIR/lock" 3>&- &
	exec 7>hold
	wait_until 20 grep -q locked "$BATS_TEST_TMPDIR/lock"
	refused 'history.db.lock: it belongs to another user' sample --store --history safe/history.db
	untouched safe/history.db.lock
	rm safe/history.db.lock
	# It locks what it can: the directory. No history is there yet.
	rm -f safe/history.db*
	exec 7>&-
	wait
	"${other[@]}" flock safe sh -c 'echo directory; read -r line' <hold >"$BATS_TEST_TMPDIR/lock" 3>&- &
	exec 7>hold
	wait_until 20 grep -q directory "$BATS_TEST_TMPDIR/lock"
	wss sample --store --history safe/history.db --window 100ms
	[ "$status" = 5 ]
	# The other user cannot open the new lock file either.
	[ "$(stat -c '%u %a' safe/history.db.lock)" = "0 600" ]
	exec 7>&-
	wait
}

# Another user owns the directory "theirs", and swaps theirs/d for a link to root's directory "victim", and
# theirs/socket for a link to a file of root's, as fast as he can. -> racer
race() {
	mkdir theirs victim
	echo secret >victim/file
	chmod 600 victim/file
	chown 65534:65534 theirs
	"${other[@]}" perl -e '
		my $test = getppid;
		chdir "theirs" or die;
		mkdir "d";
		symlink "../victim", "link";
		symlink "../victim/file", "filelink";
		while (getppid == $test) {
			rename "d", "old"; rename "link", "d"; rename "d", "link"; rename "old", "d";
			rename "socket", "taken" if -S "socket";
			link "filelink", "socket"; unlink "socket";
		}' 3>&- &
	racer=$!
}

race_end() {
	kill "$racer"
	wait "$racer" || true
	racer=''
	[ "$(ls victim)" = file ]
	[ "$(cat victim/file) $(stat -c '%u %a' victim/file)" = "secret 0 600" ]
}

@test "a racing owner of the directory: the socket of serve is refused there, and below" {
	race
	mkdir theirs/mine
	for directory in theirs theirs/mine theirs/d; do
		for _ in 1 2 3; do
			wss serve --no-store --listen "unix:$directory/socket"
			[ "$status" = 1 ]
			grep -qE "^virt-wss: error: cannot listen at unix:$directory/socket: .*(another user|No such file|Not a directory)" <<<"$err"
		done
	done
	chmod 755 .
	mkdir open
	chmod 777 open
	refused 'cannot listen at unix:open/socket: other users may write to its directory' \
		serve --no-store --listen unix:open/socket
	race_end
}

# Runs the service until it has written its metrics into the racer's directory, or said why not.
metrics_once() {
	local pid
	"$virt_wss" serve --no-store --textfile theirs/d/metrics >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- &
	pid=$!
	wait_until 30 has_tried "$pid"
	kill "$pid" 2>/dev/null || true
	wait "$pid" || true
	rm -f theirs/*/metrics
}

has_tried() { # PID
	grep -q metrics "$BATS_TEST_TMPDIR/said" || compgen -G 'theirs/*/metrics' >/dev/null || ! kill -0 "$1" 2>/dev/null
}

@test "a racing owner of the directory: pictures, recordings and metrics land nowhere else" {
	"$mkrecording" "$BATS_TEST_TMPDIR/r" >"$BATS_TEST_TMPDIR/said"
	race
	for n in $(seq 100); do
		"$virt_wss" report "$BATS_TEST_TMPDIR/r" --plot theirs/d/picture >"$BATS_TEST_TMPDIR/said" 2>&1 || true
		"$mkrecording" theirs/d/recording >"$BATS_TEST_TMPDIR/said" 2>&1 || true
		# The name itself, which is a link to the victim for some of the time.
		"$virt_wss" heatmap "$BATS_TEST_TMPDIR/r" --plot theirs/socket >"$BATS_TEST_TMPDIR/said" 2>&1 || true
		"$virt_wss" mark theirs/socket text >"$BATS_TEST_TMPDIR/said" 2>&1 || true
		[ $((n % 10)) != 0 ] || metrics_once
	done
	race_end
	# What belongs to root leads where it says.
	ln -s . theirs/root-link
	wss report "$BATS_TEST_TMPDIR/r" --plot theirs/root-link/picture
	[ "$status" = 0 ]
	"${other[@]}" ln -s . theirs/their-link
	refused 'symbolic link on the way belongs to another user' \
		report "$BATS_TEST_TMPDIR/r" --plot theirs/their-link/picture
}

@test "a racing owner of the directory: a history is neither read nor made there, nor a directory for it" {
	race
	mkdir theirs/mine
	for directory in theirs theirs/mine theirs/new/directory theirs/d theirs/d/new; do
		wss sample test --store --history "$directory/history.db"
		[ "$status" = 1 ]
		wss recommend test --history "$directory/history.db"
		[ "$status" != 0 ] || grep -q 'no history' <<<"$err"
		for command in "balloon --apply test" "balloon --restore" "cold" "serve"; do
			# shellcheck disable=SC2086
			wss $command --history "$directory/history.db"
			[ "$status" != 0 ] || grep -qE 'no (history|idle-age data)|nothing to restore' <<<"$err"
		done
	done
	[ ! -e theirs/new ]
	race_end
}

@test "ages that others could write to or replace are refused" {
	mkdir safe elsewhere
	for how in link theirs open; do
		rm -rf safe/ages
		case $how in
		link) ln -s ../elsewhere safe/ages ;;
		theirs) mkdir safe/ages && chown 65534 safe/ages ;;
		open) mkdir safe/ages && chmod 777 safe/ages ;;
		esac
		refused 'cannot keep the ages of memory: safe/ages: (it is not a directory|it belongs to another user|other users may write to it)' \
			serve --history safe/history.db
		refused 'error: safe/ages: ' cold --history safe/history.db
	done
	rm -rf safe/ages
	mkdir safe/ages
	# The files in it likewise.
	name=safe/ages/a1b2c3d4-0000-4000-8000-000000000000
	theirs_in_place "$name"
	wss cold --history safe/history.db
	grep -q "$name: it belongs to another user" <<<"$err"
	rm "$name"
	ln -s /etc/passwd "$name"
	wss cold --history safe/history.db
	grep -q "$name: it is a symbolic link" <<<"$err"
}
