#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests, as root, what the process that speaks HTTP may do: nothing.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v curl >/dev/null || skip "needs curl"
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
	[ -z "${directory-}" ] || rm -rf "$directory"
}

begin() { # OPTION... -> pid, child
	VIRT_WSS_SECRET=secret "$virt_wss" -c test:///default serve --no-store --listen unix:socket "$@" 2>err 3>&- &
	pid=$!
	wait_until 30 curl -sSf --unix-socket socket -o body http://localhost/metrics
	child=$(cat "/proc/$pid/task/$pid/children")
	child=${child% }
}

status_of() { # FIELD -> its value in /proc/PID/status
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$child/status" | tr '\t' ' '
}

@test "it has no capability, no group and no way to get one" {
	local set uid
	uid=$(id -u nobody)
	begin
	cat "/proc/$child/status"
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		[ "$(status_of $set)" = 0000000000000000 ]
	done
	[ "$(status_of NoNewPrivs)" = 1 ]
	[ "$(status_of Uid)" = "$uid $uid $uid $uid" ]
	[[ $(status_of Gid) != *\ 0* ]]
	[ -z "$(status_of Groups)" ]
	[ "$(status_of Seccomp)" = 2 ]
	[ "$(status_of Threads)" = 1 ]
}

@test "it has no files, no environment and an empty root" {
	local fd
	begin
	[ ! -s "/proc/$child/environ" ]
	[ "$(find "/proc/$child/root/" | wc -l)" = 1 ]
	[ "$(stat -c %h "/proc/$child/root/")" = 0 ]
	for fd in "/proc/$child/fd/"*; do
		case $(readlink "$fd") in
		socket:* | anon_inode:* | /dev/null | *null) ;;
		*) ls -l "/proc/$child/fd"; false ;;
		esac
	done
	[ -z "$(find /tmp /run -maxdepth 1 -name 'virt-wss-??????')" ]
	grep -q 'Max processes  *0  *0' "/proc/$child/limits"
}

@test "another process of its user cannot trace it" {
	begin
	run setpriv --reuid nobody --regid nogroup --clear-groups ls "/proc/$child/fd/"
	[ "$status" != 0 ]
	run setpriv --reuid nobody --regid nogroup --clear-groups cat "/proc/$child/maps"
	[ "$status" != 0 ]
	# What is missing is the permission: root may.
	ls "/proc/$child/fd/"
}

@test "--http-user names its user, who is not root" {
	local user=games
	id $user >/dev/null || skip "no user $user"
	begin --http-user $user
	[[ $(status_of Uid) == "$(id -u $user) "* ]]
	for user in root nosuchuser; do
		status=0
		timeout 300 "$virt_wss" -c test:///default serve --no-store --listen unix:other --http-user $user 2>err2 ||
			status=$?
		[ "$status" = 2 ]
		[ "$(wc -l <err2)" = 1 ]
		[ ! -e other ]
	done
}

@test "another user connects only where the file lets him" {
	directory=$(mktemp -d)
	chmod 711 "$directory"
	cd "$directory"
	begin
	[ "$(stat -c %a:%u socket)" = 660:0 ]
	run setpriv --reuid nobody --regid nogroup --clear-groups curl -sS --unix-socket "$PWD/socket" http://localhost/metrics
	[ "$status" = 7 ]
	chmod 666 socket
	setpriv --reuid nobody --regid nogroup --clear-groups curl -sSf --unix-socket "$PWD/socket" http://localhost/metrics
}

@test "a service that may not give up privileges serves no HTTP" {
	setpriv --bounding-set -setuid "$virt_wss" -c test:///default serve --no-store --listen unix:socket --textfile metrics \
		2>err 3>&- &
	pid=$!
	wait_until 30 grep -q 'HTTP: cannot give up privileges' err
	# But it goes on.
	[ -s metrics ]
	wait_until 30 grep -q 'starting it again' err
}
