#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the service survives a libvirtd that is stopped, resumed and killed, a few times;
# tests/soak/libvirtd.sh does so as often as it is told.

load functions.sh

setup_file() {
	root_setup_file libvirtd virsh setpriv
}

teardown_file() {
	root_teardown_file
}

setup() {
	root_setup
}

@test "the service survives what happens to libvirtd, and is connected again within 5 s" {
	timeout -k 5 300 "$WSS_SRCDIR/tests/soak/libvirtd.sh" 4 2 3>&-
}
