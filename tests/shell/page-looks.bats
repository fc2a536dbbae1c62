#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests how the page of the service looks, as page.bats tests what it does.

load page-functions.sh

@test "an empty host says what to do" {
	look empty
}

@test "a service that has just started is no empty host" {
	look starting
}

@test "held, without libvirt, without the service" {
	look troubles
}

@test "200 guests" {
	look many
}

@test "accessible by axe, light and dark" {
	local axe=$WSS_BUILDDIR/cache/axe.js status=0
	"$WSS_SRCDIR/scripts/fetch-axe" "$axe" >why || status=$?
	[ "$status" != 77 ] || skip "$(cat why)"
	[ "$status" = 0 ]
	look axe "$axe"
}

@test "light, dark, and on a phone" {
	look pictures
	for picture in light dark phone phone-dark phone-guest0 dark-guest3; do
		[ -s "$pictures/$picture.png" ]
	done
}
