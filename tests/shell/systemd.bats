#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the units of dist/ with systemd's own tools.

setup() {
	command -v systemd-analyze >/dev/null || skip "needs systemd"
	units=$BATS_TEST_TMPDIR/units
	mkdir -p "$units"
	# The program is not installed where the units expect it.
	for unit in virt-wss virt-wss-sample; do
		sed "s|^ExecStart=[^ ]*|ExecStart=$WSS_BUILDDIR/virt-wss|" \
			"$WSS_BUILDDIR/dist/$unit.service" >"$units/$unit.service"
	done
	cp "$WSS_SRCDIR"/dist/virt-wss{.socket,-sample.timer} "$units"
}

@test "the units are correct" {
	# Complaints about other units of this machine do not matter.
	run systemd-analyze verify --man=no "$units"/*
	echo "$output"
	! grep -q 'virt-wss' <<<"$output" || false
	# It finds faults.
	echo 'Nonsense=yes' >>"$units/virt-wss-sample.timer"
	run systemd-analyze verify --man=no "$units/virt-wss-sample.timer"
	[[ $output == *Nonsense* ]]
}

exposed() { # UNIT LEVEL: whether its exposure level is worse than a tenth of LEVEL
	run systemd-analyze security --offline=true --threshold="$2" "$units/$1.service"
	echo "$output" | tail -n 3
	[ "$status" != 0 ]
}

@test "the sandboxes' exposure levels are 3.0 and 2.0 or better" {
	! exposed virt-wss-sample 30 || false
	! exposed virt-wss 20 || false
	sed -i '/^Protect\|^Private\|^Restrict\|^SystemCall/d' "$units"/*.service
	exposed virt-wss-sample 30
	exposed virt-wss 20
}

# For each of these settings systemd mounts a new /proc, unless the unit binds the host's.
@test "the services lock guests in the host's /proc" {
	for unit in virt-wss virt-wss-sample; do
		grep -qE '^Protect(KernelTunables|ControlGroups)=yes$' "$units/$unit.service"
		grep -qx 'BindPaths=/proc' "$units/$unit.service"
		grep -qx 'ProtectProc=default' "$units/$unit.service"
		! grep -qE '^(ProcSubset|PrivatePIDs|RootDirectory|RootImage|MountAPIVFS)=' "$units/$unit.service" || false
	done
}

# tests/packages/under-systemd sees which of them wins.
@test "only the service and its socket say that they exclude the timer" {
	grep -qx 'Conflicts=virt-wss-sample.timer virt-wss-sample.service' "$units/virt-wss.service"
	grep -qx 'Conflicts=virt-wss-sample.timer' "$units/virt-wss.socket"
	! grep '^Conflicts' "$units"/virt-wss-sample.* || false
	grep -qx 'ConditionPathExists=!/run/virt-wss/hold' "$units/virt-wss-sample.service"
}

# tests/root/rights.bats tests what the program keeps of it.
@test "the service has the capabilities that src/serve/rights.c keeps, but chroot" {
	sed -n 's/^CapabilityBoundingSet=//p' "$units/virt-wss.service" | tr ' ' '\n' | sort >"$BATS_TEST_TMPDIR/ours"
	grep -oE 'BIT\(CAP_[A-Z_]+\)' "$WSS_SRCDIR/src/serve/rights.c" | sed 's/BIT(\(.*\))/\1/' | grep -vx CAP_SYS_CHROOT | sort -u >"$BATS_TEST_TMPDIR/kept"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/kept")" -ge 8 ]
	diff "$BATS_TEST_TMPDIR/ours" "$BATS_TEST_TMPDIR/kept"
}

@test "users, directories and settings that come with the units are correct" {
	run systemd-sysusers --dry-run --root="$BATS_TEST_TMPDIR" "$WSS_SRCDIR/dist/virt-wss.sysusers"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *virt-wss-http* ]]
	mkdir "$BATS_TEST_TMPDIR/root"
	run systemd-tmpfiles --create --root="$BATS_TEST_TMPDIR/root" "$WSS_SRCDIR/dist/virt-wss.tmpfiles"
	echo "$output"
	[ -d "$BATS_TEST_TMPDIR/root/run/virt-wss" ]
	"$WSS_BUILDDIR/virt-wss" serve --check-config --config "$WSS_SRCDIR/dist/serve.conf" | grep -qx 'http-user = virt-wss-http'
}

@test "the settings that are installed show the defaults" {
	local conf=$WSS_SRCDIR/dist/serve.conf
	settings() { "$WSS_BUILDDIR/virt-wss" serve --check-config --config "$1"; }
	# The directory of the metrics file comes with node_exporter, that of the history is root's.
	sed -e '/^#listen/!s/^#\([a-z-]* = \)/\1/' -e "s,^\(textfile\|history\) = .*/,\1 = $BATS_TEST_TMPDIR/," "$conf" \
		>"$BATS_TEST_TMPDIR/all.conf"
	# With listen it would look for the user. All keys in their order, and those that have a default with it.
	diff <(settings "$conf" | sed -n 's/^# \([a-z-]*\) is not set/\1/p; s/^\([a-z-]*\) = .*/\1/p') \
		<(sed -n 's/^#\{0,1\}\([a-z-]*\) = .*/\1/p' "$conf")
	diff <(settings "$conf" | grep -v 'is not set$') \
		<(settings "$BATS_TEST_TMPDIR/all.conf" | grep -vE 'is not set$|^(textfile|history|connect) = ')
}

@test "the directories that --check-config lets be missing are those that the unit makes" {
	diff <(sed -n 's,^RuntimeDirectory=\(.*\),/run/\1/,p; s,^StateDirectory=\(.*\),/var/lib/\1/,p' "$units/virt-wss.service" | sort) \
		<(sed -n '/unit_directories\[\] = /,/;/p' "$WSS_SRCDIR/src/serve/start-check.c" | grep -o '"[^"]*"' | tr -d '"' | sort)
}

@test "the program accepts the units' command lines" {
	for unit in virt-wss virt-wss-sample; do
		read -r _ words < <(sed -n 's/^ExecStart=//p' "$units/$unit.service")
		# shellcheck disable=SC2086
		run timeout 300 "$WSS_BUILDDIR/virt-wss" $words --no-such-option
		echo "$output"
		# An error before that would have been reported first.
		[ "$status" = 2 ]
		[[ $output == *"unknown option '--no-such-option'"* ]]
	done
}
