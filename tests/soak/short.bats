#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Ten minutes of what make check-soak does for an hour, and each call that fails (make check-faults).

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v qemu-system-x86_64 >/dev/null || skip "needs qemu-system-x86_64"
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	command -v xmllint >/dev/null || skip "needs libxml2-utils"
}

ends_well() { # COMMAND...
	local status=0
	"$@" 3>&- || status=$?
	[ $status = 0 ]
}

@test "controllers and rounds that are killed, and full disks, leave guests and histories whole" {
	WSS_SOAK_KILLS=60 WSS_SOAK_FULL=20 ends_well "$WSS_SRCDIR/tests/soak/kills.sh"
}

@test "a service that is killed leaves its guest and its history whole" {
	ends_well "$WSS_SRCDIR/tests/soak/serve-kills.sh" 40
}

@test "a service outlives a libvirtd that hangs and is killed" {
	command -v libvirtd >/dev/null || skip "needs libvirtd"
	ends_well "$WSS_SRCDIR/tests/soak/libvirtd.sh" 10 5
}

@test "each call of each command that fails ends well" {
	ends_well "$WSS_SRCDIR/tests/faults/run"
}
