#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The units of dist/, as systemd itself judges them.

setup() {
	command -v systemd-analyze >/dev/null || skip "needs systemd"
	units=$BATS_TEST_TMPDIR/units
	mkdir -p "$units"
	# The program is not installed where the unit says.
	sed "s|^ExecStart=[^ ]*|ExecStart=$WSS_BUILDDIR/virt-wss|" \
		"$WSS_BUILDDIR/dist/virt-wss-sample.service" >"$units/virt-wss-sample.service"
	cp "$WSS_SRCDIR/dist/virt-wss-sample.timer" "$units"
}

@test "the units are correct" {
	# What it says of other units of this machine is not ours.
	run systemd-analyze verify --man=no "$units/virt-wss-sample.timer" "$units/virt-wss-sample.service"
	echo "$output"
	! grep -q 'virt-wss' <<<"$output" || false
	# It finds what is wrong.
	echo 'Nonsense=yes' >>"$units/virt-wss-sample.timer"
	run systemd-analyze verify --man=no "$units/virt-wss-sample.timer"
	[[ $output == *Nonsense* ]]
}

@test "the sandbox is at 3.0 or better" {
	run systemd-analyze security --offline=true --threshold=30 "$units/virt-wss-sample.service"
	echo "$output" | tail -n 3
	[ "$status" = 0 ]
	sed -i '/^Protect\|^Private\|^Restrict\|^SystemCall/d' "$units/virt-wss-sample.service"
	run systemd-analyze security --offline=true --threshold=30 "$units/virt-wss-sample.service"
	[ "$status" != 0 ]
}

@test "the command line of the unit is one that the program takes" {
	read -r _ words < <(sed -n 's/^ExecStart=//p' "$units/virt-wss-sample.service")
	# shellcheck disable=SC2086
	run timeout 60 "$WSS_BUILDDIR/virt-wss" $words --no-such-option
	echo "$output"
	# What is wrong before that would have been said first.
	[ "$status" = 2 ]
	[[ $output == *"unknown option '--no-such-option'"* ]]
}
