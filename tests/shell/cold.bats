#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests what cold shows of invented files of ages; libvirt is not asked.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
uuid=11111111-2222-3333-4444-55555555000

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir -m 700 ages
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=nonsense:/// LC_ALL=C.UTF-8
	# Of 64 MiB: 4 MiB in use, 8 MiB touched at first only.
	make ${uuid}1 web1 15
}

make() { # UUID NAME MINUTES
	"$WSS_BUILDDIR/tests/unit/make-ages" ages "$@"
}

# Prints a column of the CSV on stdin, one line per row.
field() { # COLUMN
	awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name="$1"
}

refused() { # STATUS REGULAR-EXPRESSION ARGUMENT...
	fails "$1" "$2" cold "${@:3}"
}

@test "each age has its bounds, and how much of it was observed" {
	"$virt_wss" cold --output csv >rows
	[ "$(field domain <rows | sort | uniq -c | awk '{ print $1, $2 }')" = "5 web1" ]
	[ "$(field idle <rows | tr '\n' ' ')" = "2m 10m 1h 24h never " ]
	# In MiB. It was watched for a quarter of an hour: longer ages are not known, and not all of its memory.
	[ "$(field low_bytes <rows | awk '{ printf "%d ", $1 == "" ? -1 : $1 / 1048576 }')" = "60 60 -1 -1 52 " ]
	[ "$(field high_bytes <rows | awk '{ printf "%d ", $1 == "" ? -1 : $1 / 1048576 }')" = "60 60 -1 -1 52 " ]
	[ "$(field observed_share <rows | awk '{ printf "%.2f ", $1 }')" = "1.00 1.00 0.25 0.01 1.00 " ]
	[ "$(field watched_seconds <rows | sort -u)" = 900 ]
	[ "$(field held_bytes <rows | sort -u)" = 67108864 ]
	[ "$(field absent_bytes <rows | sort -u)" = 0 ]
	[ "$(field granularity_bytes <rows | sort -u)" = 4096 ]
	[ "$(field age_seconds <rows | sort -n | tail -n 1)" -lt 900 ]
}

@test "ages by 2 MiB for want of memory are named" {
	make ${uuid}2 web2 15 coarse
	make ${uuid}3 web3 15 coarse
	"$virt_wss" cold 2>err
	grep -qx 'virt-wss: by 2 MiB, because ages-memory is too small for ages by 4 KiB: web2, web3' err
	[ "$("$virt_wss" cold web2 --output csv 2>err | field granularity_bytes | sort -u)" = 2097152 ]
	[ ! -s err ]
	"$virt_wss" cold web1 2>err
	run ! grep -q 'by 2 MiB' err
}

@test "a table fits 80 columns" {
	make ${uuid}2 "$(printf 'a-long-name%.0s' 1 2 3)" 3
	"$virt_wss" cold >table
	cat table
	[ "$(wc -l <table)" = 11 ]
	"$virt_wss" cold web1 >table
	cat table
	[ "$(awk '{ print length }' table | sort -n | tail -n 1)" -le 80 ]
	grep -qE '^web1 +10m +60 MiB +60 MiB +100\.0%' table
}

@test "JSON says what it is" {
	"$virt_wss" cold --output json | /usr/bin/python3 -c '
import json, sys
data = json.load(sys.stdin)
assert data["schema"] == "virt-wss/coldness/1", data
rows = data["coldness"]
assert len(rows) == 5 and rows[1]["idle"] == "10m" and rows[1]["low_bytes"] == 60 << 20, rows
assert rows[0]["uuid"] == "'${uuid}1'", rows'
}

@test "a guest is named by its name or its UUID" {
	make ${uuid}2 web2 3
	make ${uuid}3 web2 3
	[ "$("$virt_wss" cold web1 --output csv | field uuid | sort -u)" = ${uuid}1 ]
	[ "$("$virt_wss" cold ${uuid}2 --output csv | field uuid | sort -u)" = ${uuid}2 ]
	[ "$("$virt_wss" cold web2 --output csv | field uuid | sort -u | wc -l)" = 2 ]
	[ "$("$virt_wss" cold --all --output csv | field uuid | sort -u | wc -l)" = 3 ]
	refused 1 "web9: unknown guest: neither idle-age data nor the history has it: did you mean 'web" web9
	refused 1 'nosuch: unknown guest: neither idle-age data nor the history has it$' nosuch
	# The history knows it, as it was measured before.
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 3 $((64 << 20)) 60 ${uuid}9
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE guest SET name = 'web9'"
	refused 1 'web9: no idle-age data for this guest yet' web9
	[ -z "$out" ]
	run "$virt_wss" cold web1 web9
	[ "$status" = 3 ]
}

@test "a file that is damaged leaves the others" {
	make ${uuid}2 web2 3
	printf 'x' | dd of=ages/${uuid}2 bs=1 seek=100 conv=notrunc status=none
	run --separate-stderr "$virt_wss" cold --output csv
	[ "$status" = 3 ]
	[[ "$stderr" = *"ages/${uuid}2: it is damaged" ]]
	[ "$(field uuid <<<"$output" | sort -u)" = ${uuid}1 ]
	# What has no UUID as its name is not read at all, and nothing but a regular file is.
	mkfifo ages/fifo ages/${uuid}4
	rm ages/${uuid}2
	run --separate-stderr timeout 300 "$virt_wss" cold --output csv
	[ "$status" = 3 ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ "$stderr" = *"ages/${uuid}4"* ]]
}

@test "without files it says so" {
	rm -r ages
	run --separate-stderr "$virt_wss" cold
	[ "$status" = 0 ]
	[[ "$stderr" = *"no idle-age data yet beside "*": start virt-wss serve; --history and VIRT_WSS_HISTORY name another"* ]]
	refused 2 'takes no -c' -c test:///default
}

@test "where figures are missing it says since when they are, each reason once" {
	local i
	make ${uuid}3 old 1500
	run --separate-stderr "$virt_wss" cold web1 old
	[ "$status" = 0 ]
	[[ "$stderr" = "virt-wss: not yet watched for the 24 h that the longest age needs: web1 for 15"*min ]]
	run --separate-stderr "$virt_wss" cold old
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	for i in 4 5 6 7 8; do
		make ${uuid}$i "new$i" 3
	done
	run --separate-stderr "$virt_wss" cold
	[[ "$stderr" = *" needs: new4 for "*", new8 for 3"*" and 1 more" ]]
	rm ages/*
	run --separate-stderr "$virt_wss" cold
	[ "$status" = 0 ]
	[[ "$stderr" = "virt-wss: no idle-age data in $PWD/ages yet: virt-wss serve writes it, first after five minutes" ]]
}
