# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by the tests of plan. tests/tools/plan-check checks each plan with arithmetic of its own.

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	virt_wss=$WSS_BUILDDIR/virt-wss
	tools=$WSS_SRCDIR/tests/tools
	more=()
}

# shellcheck disable=SC2034
fleet() { # HOSTS GUESTS [OPTIONS]
	bound=$("$tools/plan-fleet" fleet "$@")
}

# Plans and checks; the options are those that both take, the array "more" those that only plan does.
checked_plan() { # [OPTIONS] -- FILE...
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$virt_wss" plan --output json "${options[@]}" "${more[@]}" "$@" >plan.json
	"$tools/plan-check" plan.json "${options[@]}" "$@"
}

figure() { # KEY of the plan
	/usr/bin/python3 -c 'import json, sys; print(json.load(open("plan.json"))["plan"][sys.argv[1]])' "$1"
}
