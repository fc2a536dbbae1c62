#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the ages of a guest that leaves 100 of its 160 MiB idle, as serve sees them: by pages, by blocks
# of 2 MiB, after a restart of the service, after the balloon took memory, and in the history.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder
export VIRT_WSS_HISTORY=$lab_run/history.db
metrics=$lab_run/metrics

# Arming is slow under emulation, and a guest takes long to start.
serve_start() {
	rm -f "$metrics"
	"$virt_wss" --debug serve --continuous --metrics full --textfile "$metrics" --period 15s --window 2s \
		--boot 1s --max-stall 30s --budget 100% >"$wss_out" 2>"$wss_err" &
	wss_pid=$!
}

serve_stop() {
	kill -TERM "$wss_pid"
	wss_wait
}

cold_of() { # AGE BOUND: bytes
	sed -n "s/^virt_wss_cold_bytes{domain=\"idle1\",.*age=\"$1\",bound=\"$2\"} //p" "$metrics" 2>/dev/null
}

cold_is_known() {
	[ -n "$(cold_of 2m high)" ]
}

two_minutes_are_known() {
	[ "$(cold_of 2m low)" -gt 0 ] 2>/dev/null
}

# What it knows of the guest, and how its windows went.
serve_say() {
	diag "$(grep -v '^#' "$metrics" | grep 'idle1')"
	diag "$(cat "$wss_err")"
}

windows() { # how many there were in this run of the service
	sed -n 's/^virt_wss_windows_total{domain="idle1",.*} //p' "$metrics" 2>/dev/null
}

windows_are() { # N
	[ "$(windows)" -ge "$1" ] 2>/dev/null
}

balloon_is() { # MIB: at most
	[ "$(virsh dommemstat idle1 | sed -n 's/^actual //p')" -le $(($1 * 1024)) ] 2>/dev/null
}

in_history() { # COLUMN
	"$virt_wss" history idle1 --by hour --columns "$1" --output csv | tr -d '\r' | tail -n 1
}

rows() { # COLUMN AGE: by the command
	"$virt_wss" cold idle1 --columns "idle,$1" --output csv | tr -d '\r' | sed -n "s/^$2,//p"
}

# Everything but the 60 MiB that it touches, and what its kernel does.
test_ages() { # GRANULARITY SLACK-MIB
	local held low high
	check "two minutes become known" wait_until 400 two_minutes_are_known || serve_say
	serve_stop
	check "the service ends in good order" status_is 143
	held=$(rows held_bytes 2m) low=$(rows low_bytes 2m) high=$(rows high_bytes 2m)
	diag "held $(mib "${held:-0}"), idle for two minutes $(mib "${low:-0}") to $(mib "${high:-0}")"
	diag "$("$virt_wss" cold idle1 --wide)"
	check "ages are those of pieces of the host's size" [ "$(rows granularity_bytes 2m)" = "$1" ]
	check "what is idle is known to be" in_range "$low" $((100 * MiB)) "$high"
	check "what is touched is not" in_range $((held - high)) $((60 * MiB)) $((held - 100 * MiB))
	check "nothing else is" in_range $((held - low)) $((60 * MiB)) $(((60 + $2) * MiB))
	check "the history has it" [ "$(in_history cold_watched_seconds | cut -d. -f1)" -ge 120 ]
	check "a day is not known yet" [ -z "$(in_history cold_24h_low_bytes)" ]
}

guest() { # THP
	rm -rf "$lab_run"/ages "$VIRT_WSS_HISTORY"*
	lab_thp "$1"
	lab_guest_start idle1 memory=256 balloon=virtio args='wss.map=160 wss.touch=60 wss.rate=6000 wss.interval=5'
}

lab_libvirtd_start
guest never
serve_start
test_ages 4096 8
watched=$(rows watched_seconds 2m)
serve_start
# A canary, and two windows of which the first is told once the second begins.
check "the ages survive a restart of the service" wait_until 240 cold_is_known
absent=$(rows absent_bytes 2m)
# Of 256 MiB the guest can spare about 30.
virsh -q setmem idle1 232M --live
check "the balloon takes 24 MiB" wait_until 300 balloon_is 232
check "other windows follow" wait_until 120 windows_are $(($(windows) + 3))
serve_stop
held=$(rows held_bytes 2m)
diag "absent $(mib "$absent"), with the balloon $(mib "$(rows absent_bytes 2m)")"
check "what it took has no age" in_range $(($(rows absent_bytes 2m) - absent)) $((8 * MiB)) $((28 * MiB))
check "nor is it idle" in_range "$(rows high_bytes never)" 0 $((held - 60 * MiB))
check "they go on" in_range "$(rows watched_seconds 2m | cut -d. -f1)" "${watched%.*}" 100000
check "nothing is known of the time in between" [ "$(rows low_bytes never)" = 0 ]
lab_guest_stop idle1

guest always
serve_start
test_ages 2097152 64
lab_guest_alive idle1 || not_ok "the guest goes on"
done_testing
