#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Guests run at the size that recommend gives them: each one is measured, booted again with that much memory, and does its
# work without running out of it. What they touch is a small part of what they hold.

load balloon-functions.sh

declare -gA work=(
	[example]="wss.map=256 wss.touch=96 wss.rate=200000"
	[holds]="wss.map=300 wss.touch=8 wss.rate=20000"
	[file]="wss.map=8 wss.touch=4 wss.file=disk:8 wss.cold=250 wss.rate=20000"
	[tmpfs]="wss.map=16 wss.touch=8 wss.file=mem:200 wss.rate=20000"
	[tiny]="wss.map=8 wss.touch=4 wss.rate=20000"
)

setup_file() {
	local name
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	for name in "${!work[@]}"; do
		start_with_balloon "$name" "${work[$name]}"
	done
	# It has no balloon that could say what it holds.
	embed_guest_start silent args="${work[holds]}" memory="$assigned"
	embed_guest_wait_ready silent
}

setup() {
	root_setup
	export VIRT_WSS_HISTORY=$BATS_FILE_TMPDIR/history.db
}

shut_off() { # NAME
	local pid
	pid=$(embed_guest_pid "$1")
	kill -TERM "$pid"
	wait_until 20 eval "! kill -0 $pid 2>/dev/null"
}

has_worked() { # NAME PASSES
	local touches
	touches=$(embed_guest_field "$1" touches)
	[ "${touches:-0}" -ge "$2" ]
}

@test "guests that are measured have sizes, unless what they hold is unknown" {
	wait_until 60 wss_store --window 300ms --max-stall 5s "${!work[@]}" silent
	wss recommend --minimum 32MiB --output csv --columns domain,status,assigned_bytes,need_bytes,floor_bytes,floor_is,recommended_bytes
	[ "$status" = 0 ]
	out=${out//$'\r'/}
	echo "$out" >"$BATS_FILE_TMPDIR/sizes"
	[ "$(grep -c ',statistics,' <<<"$out")" = ${#work[@]} ]
	grep -E '^silent,no size,.*,,,$' <<<"$out"
	# Those that hold much and touch little.
	for name in holds tmpfs; do
		line=$(grep "^$name," <<<"$out")
		IFS=, read -r _ _ _ need floor _ size <<<"$line"
		[ "$floor" -gt $((200 * mib)) ]
		[ "$need" -lt $((floor / 2)) ] || [ "$name" = tmpfs ]
		[ "$size" -gt "$floor" ]
	done
}

@test "each of them boots with its recommended size, and works" {
	local name size booted=0
	while IFS=, read -r name _ _ _ _ _ size; do
		[ -n "$size" ] && [ -n "${work[$name]-}" ] || continue
		echo "$name: $((size / mib)) MiB of $assigned"
		[ "$size" -lt $((assigned * mib)) ]
		shut_off "$name"
		embed_virsh dumpxml "$name" --inactive | sed "s|<memory unit='KiB'>.*</memory>|<memory unit='KiB'>$((size / 1024))</memory>|
			/<currentMemory/d" >"$embed_root/$name.sized.xml"
		embed_virsh define "$embed_root/$name.sized.xml" >/dev/null
		boot "$name"
		wait_until 30 has_worked "$name" 1000
		no_oom "$name"
		booted=$((booted + 1))
	done <"$BATS_FILE_TMPDIR/sizes"
	[ "$booted" = "${#work[@]}" ]
}

has_sample() {
	grep -q '^virt_wss_windows_total{domain="tiny".* [1-9]' "$BATS_TEST_TMPDIR/metrics" 2>/dev/null
}

@test "serve turns statistics on where it is told to, until the guest ends" {
	local pid
	embed_virsh dommemstat tiny --period 0 --live
	refute grep -q '<stats ' <(embed_virsh dumpxml tiny)
	"$virt_wss" serve --textfile "$BATS_TEST_TMPDIR/metrics" --period 3s --window 1s --boot 1s --max-stall 10s \
		--budget 100% --max-pressure 0 --balloon-statistics 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	wait_until 60 has_sample || { kill -TERM $pid; cat "$BATS_TEST_TMPDIR/err"; false; }
	kill -TERM $pid
	wait $pid || [ $? = 143 ]
	# Only one process at a time has the embedded driver.
	embed_virsh dumpxml tiny >"$BATS_TEST_TMPDIR/live.xml"
	grep -F "<stats period='10'/>" "$BATS_TEST_TMPDIR/live.xml"
	embed_virsh dumpxml tiny --inactive >"$BATS_TEST_TMPDIR/stored.xml"
	refute grep -F "<stats period='10'/>" "$BATS_TEST_TMPDIR/stored.xml"
}
