#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests squeeze on guests whose balloons move: web1 reads a file of known size from its page cache,
# web2 has nothing but anonymous memory, which it cannot give up.

load balloon-functions.sh

file=128
anonymous=256

setup_file() {
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	start_with_balloon web1 "wss.map=8 wss.touch=8 wss.file=disk:$file wss.cold=200 wss.rate=20000 wss.control=ttyS1"
	start_with_balloon web2 "wss.map=$anonymous wss.touch=$anonymous wss.rate=20000 wss.control=ttyS1"
}

# The history has no windows of these guests unless a test adds them.
setup() {
	root_setup
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	wait_until 20 taken_is web1 0
	wait_until 20 taken_is web2 0
}

squeeze_end() { # -> status out
	apply_end
	out=$(cat "$BATS_TEST_TMPDIR/out")
	echo "$out"
}

# What the guest could not give up if it used no page cache, by its statistics.
idle_base() { # NAME
	embed_virsh dommemstat "$1" | awk '{ v[$1] = $2 * 1024 } END { printf "%d\n", v["actual"] - v["usable"] }'
}

reboot() { # NAME
	local pid
	pid=$(embed_guest_pid "$1")
	kill -KILL "$pid"
	wait_until 20 eval "! kill -0 $pid 2>/dev/null"
	boot "$1"
}

# Squeezes web1 once it has read its file more than once, as only then its cold page cache goes first.
squeeze_cache() { # INTERVAL -> status out base edge
	wait_until 60 guest_has_passed web1 $(($(embed_guest_field web1 loops) + 3))
	base=$(idle_base web1)
	squeeze web1 --interval "$1"
	squeeze_end
	edge=$(field paging_edge_bytes)
	echo "base $((base / mib)), edge $((${edge:-0} / mib)) MiB"
}

# A guest that a busy machine gives little time reads only a part of its file in a short interval, and is found to page
# too late: never too early, and not with longer intervals.
@test "page cache: the edge is that of a file in use, and the guest gets everything back" {
	local interval found=''
	for interval in 2s 8s 32s; do
		[ $interval = 2s ] || reboot web1
		squeeze_cache $interval
		[ "$status" = 0 ]
		[ "$(field action)" = squeezed ]
		[ "$(field from_bytes)" = $((assigned * mib)) ]
		[ -z "$edge" ] || [ $((edge - base)) -le $((file * mib * 11 / 10)) ]
		[ -z "$(field recommended_bytes)" ]
		[ "$(field recommended_reason)" = "no window in the history" ]
		none_left
		[ "$(journal 'done = 1')" -gt 5 ]
		wait_until 20 taken_is web1 0
		no_oom web1
		[ "$(field reason)" != "disk reads rose" ] || ! within_percent $((edge - base)) $((file * mib)) 10 || found=$interval
		[ -z "$found" ] || break
	done
	[ -n "$found" ]
	low=$(field paging_low_bytes)
	high=$(field paging_high_bytes)
	[ "$low" -lt "$high" ]
	# The cold cache goes first.
	[ "$(field scanning_edge_bytes)" -gt "$high" ]
}

@test "anonymous memory without swap: the edge is where nothing is left to give up" {
	squeeze web2
	squeeze_end
	[ "$status" = 0 ]
	[[ $(field reason) == "it has little left to give up without swapping" ]]
	[ "$(field paging_high_bytes)" -gt $((anonymous * mib)) ]
	[ "$(field paging_low_bytes)" -lt $(((anonymous + 100) * mib)) ]
	# Kept for recommend.
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT bytes FROM squeeze')" = "$(field paging_high_bytes)" ]
	none_left
	wait_until 20 taken_is web2 0
	no_oom web2
}

@test "the recommendation of the history stands beside the edge" {
	wait_until 60 wss_store --window 1s --max-stall 5s web2
	squeeze web2 --floor 450MiB
	squeeze_end
	[ "$status" = 0 ]
	[ "$(field end)" = "it has reached the floor" ]
	[ "$(field reason)" = "it did not page at any size" ]
	[ -z "$(field paging_edge_bytes)" ]
	[ "$(field smallest_bytes)" = $((450 * mib)) ]
	[ "$(field recommended_bytes)" -ge $((anonymous * mib)) ]
	[ "$(field recommended_bytes)" -ge $(($(field used_bytes) + $(field reserve_bytes))) ]
	[ "$(field used_bytes)" -ge $((anonymous * mib)) ]
	wait_until 20 taken_is web2 0
}

@test "--dry-run changes nothing" {
	wss squeeze web1 --dry-run --step 10 --interval 4s --settle 1s --floor 256MiB --output csv
	[ "$status" = 0 ]
	[ "$(field action)" = squeeze ]
	[ "$(field floor_bytes)" = $((256 * mib)) ]
	[ "$(field steps)" = 7 ]
	[ "$(field longest_seconds)" = 60 ]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	taken_is web1 0
	wss squeeze web1 --dry-run --floor 256MiB
	[[ $out == "DOMAIN"*" FROM "*" FLOOR "*" STEPS "*" WHY"*$'\n'"web1 "*" 256 MiB "* ]]
	wss squeeze web1 --dry-run --floor 100GiB --output csv
	[ "$status" = 5 ]
	[ "$(field action)" = refused ]
	[[ "$(field reason)" == "no step from its size of "*" to the floor of 100 GiB" ]]
	wss squeeze web1 --floor 100GiB
	[ "$status" = 5 ]
	[[ $err == *"refused: no step from its size of "*" to the floor of 100 GiB"* ]]
	taken_is web1 0
	wss policy set web1 --minimum 300MiB
	wss squeeze web1 --dry-run --output csv
	[ "$(field floor_bytes)" = $((300 * mib)) ]
	wss policy set web1 --opt-out yes
	wss squeeze web1 --dry-run
	[ "$status" = 5 ]
	wss squeeze web1
	[ "$status" = 5 ]
	wss policy clear web1
	taken_is web1 0
}

@test "SIGTERM: the guest gets everything back" {
	squeeze web1
	wait_until 120 taken_at_least web1 60
	kill -TERM "$apply_pid"
	squeeze_end
	[ "$status" = 143 ]
	[ -z "$out" ]
	none_left
	wait_until 20 taken_is web1 0
}

@test "kill -9: the watchdog gives everything back" {
	squeeze web1
	wait_until 120 taken_at_least web1 60
	kill -KILL "$apply_pid"
	squeeze_end
	[ "$status" = 137 ]
	wait_until 60 none_left
	said 'web1: restored to 512 MiB'
	wait_until 20 taken_is web1 0
	no_oom web1
}

@test "without its watchdog it goes no further" {
	squeeze web1
	wait_until 120 taken_at_least web1 40
	kill -KILL "$(watchdog_pid)"
	squeeze_end
	[ "$status" = 1 ]
	said 'web1: the watchdog has died'
	none_left
	wait_until 20 taken_is web1 0
}

@test "killed with its watchdog: squeeze refuses the guest until --restore" {
	squeeze web1
	wait_until 120 taken_at_least web1 40
	kill_with_watchdog
	for words in "" --dry-run; do
		# shellcheck disable=SC2086
		wss squeeze web1 $words
		[ "$status" = 5 ]
		[[ $err == *"web1: unless another virt-wss controls its balloon now,"*": to allow this, run: virt-wss balloon --restore web1"* ]]
	done
	wss balloon --restore
	[ "$status" = 0 ]
	none_left
	wait_until 20 taken_is web1 0
}

@test "a guest that goes away ends it" {
	squeeze web2
	wait_until 120 taken_at_least web2 40
	kill -KILL "$(embed_guest_pid web2)"
	squeeze_end
	[ "$status" = 1 ]
	none_left
}
