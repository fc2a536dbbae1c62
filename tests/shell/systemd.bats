#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the units of dist/ with systemd's own tools.

setup() {
	command -v systemd-analyze >/dev/null || skip "needs systemd"
	units=$BATS_TEST_TMPDIR/units
	mkdir -p "$units"
	# The program is not installed where the unit expects it.
	sed "s|^ExecStart=[^ ]*|ExecStart=$WSS_BUILDDIR/virt-wss|" \
		"$WSS_BUILDDIR/dist/virt-wss-sample.service" >"$units/virt-wss-sample.service"
	cp "$WSS_SRCDIR/dist/virt-wss-sample.timer" "$units"
}

@test "the units are correct" {
	# Complaints about other units of this machine do not matter.
	run systemd-analyze verify --man=no "$units/virt-wss-sample.timer" "$units/virt-wss-sample.service"
	echo "$output"
	! grep -q 'virt-wss' <<<"$output" || false
	# It finds faults.
	echo 'Nonsense=yes' >>"$units/virt-wss-sample.timer"
	run systemd-analyze verify --man=no "$units/virt-wss-sample.timer"
	[[ $output == *Nonsense* ]]
}

@test "the sandbox's exposure level is 3.0 or better" {
	run systemd-analyze security --offline=true --threshold=30 "$units/virt-wss-sample.service"
	echo "$output" | tail -n 3
	[ "$status" = 0 ]
	sed -i '/^Protect\|^Private\|^Restrict\|^SystemCall/d' "$units/virt-wss-sample.service"
	run systemd-analyze security --offline=true --threshold=30 "$units/virt-wss-sample.service"
	[ "$status" != 0 ]
}

@test "the program accepts the unit's command line" {
	read -r _ words < <(sed -n 's/^ExecStart=//p' "$units/virt-wss-sample.service")
	# shellcheck disable=SC2086
	run timeout 60 "$WSS_BUILDDIR/virt-wss" $words --no-such-option
	echo "$output"
	# An error before that would have been reported first.
	[ "$status" = 2 ]
	[[ $output == *"unknown option '--no-such-option'"* ]]
}
