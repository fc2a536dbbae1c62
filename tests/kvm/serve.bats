#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The service on guests under real KVM, whose truth is known to the page.

bats_require_minimum_version 1.5.0
load "functions.sh"

begin() { # OPTION...: in the background -> wss_pid
	metrics=$BATS_TEST_TMPDIR/metrics
	# Of a service that was killed.
	rm -f "$metrics"
	"$virt_wss" serve --no-store --textfile "$metrics" --period 4s --window 1s --boot 1s --max-pressure 0 --max-stall 5s \
		--budget 100% "$@" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
}

end() {
	kill -TERM "$wss_pid"
	wait "$wss_pid" || true
	wss_pid=''
}

metric() { # NAME GUEST: its value
	sed -n "s/^virt_wss_$1{domain=\"$2\"[^}]*} //p" "$metrics" 2>/dev/null
}

metric_is() { # NAME GUEST VALUE
	[ "$(metric "$1" "$2")" = "$3" ]
}

# It touches each of 64 huge pages.
is_coarse() { # GUEST
	metric_is working_set_bound "$1" 1 && [ "$(metric working_set_bytes "$1")" -ge $((64 << 21)) ] &&
		[ "$(metric working_set_low_bytes "$1")" -lt $((1 << 20)) ]
}

@test "a guest on huge pages is measured by 4 KiB, one on pages of 4 KiB as it is" {
	local wrong=''
	kvm_guest_start huge backing=anonymous touch='pages=4096 stride=8 order=random access=modify'
	kvm_guest_start small touch='pages=3000 order=random'
	# By itself it says so for one period at most, in which on a busy machine nobody may look.
	begin --granularity native
	wait_until 60 is_coarse huge
	end
	begin
	wait_until 60 is_fine huge 4096
	wait_until 60 kvm_metric_exact small 3000
	[ -z "$wrong" ]
	end
	wait_until 20 native_again huge
}

is_fine() { # GUEST PAGES
	kvm_metric_exact "$1" "$2" && metric_is coarse "$1" 0 && [ -z "$(metric working_set_low_bytes "$1")" ]
}

native_again() {
	wss sample "$1" --window 1s --output csv
	[ "$status" = 0 ] && [ "$(field granularity_bytes)" = 2097152 ]
}

@test "why a guest on huge pages is not measured by 4 KiB is said" {
	kvm_guest_start coarse backing=anonymous touch='pages=4096 stride=8 order=random'
	begin --granularity native
	wait_until 60 metric_is working_set_bound coarse 1
	metric_is coarse coarse 1
	wait_until 60 grep -q 'coarse-why=' "$embed_root/run/qemu/coarse.xml"
	end
	wss list coarse --output csv
	[ "$(field coarse_why)" = "granularity native is configured" ]
	VIRT_WSS_FAULT=slow-log begin
	wait_until 60 metric_is coarse coarse 4
	wait_until 60 metric_is working_set_bound coarse 1
	grep -q 'coarse: its working sets are upper limits.*would stall it' "$BATS_TEST_TMPDIR/err"
	end
}

@test "killed in a fine window it leaves the guest running, and measurable" {
	local wrong=''
	kvm_guest_start killed backing=anonymous touch='pages=4096 stride=8 order=random access=modify'
	begin
	wait_until 60 metric_is working_set_bound killed 0
	kill -KILL "$wss_pid"
	wait "$wss_pid" || true
	wait_until 30 native_again killed
	begin
	wait_until 60 kvm_metric_exact killed 4096
	[ -z "$wrong" ]
	end
}

# Each of them in one of its windows -> exact
all_exact() {
	local n
	for n in 1 2 3 4 5 6 7 8; do
		! kvm_metric_exact "web$n" $((n * 700)) || exact[n]=1
	done
	[ ${#exact[@]} = 8 ]
}

all_ok() {
	wss sample --all --window 1s --output csv
	[ "$(field quality | sort | uniq -c | tr -d ' ')" = 8ok ]
}

@test "eight guests, each exact" {
	local n exact=() wrong=''
	for n in 1 2 3 4 5 6 7 8; do
		kvm_guest_start "web$n" memory=64 touch="pages=$((n * 700)) order=random access=modify rate=100000"
	done
	begin
	wait_until 120 all_exact
	[ -z "$wrong" ]
	end
	wait_until 30 all_ok
}

# What was never touched since the service watches the guest, without bounds.
cold_is_known() { # GUEST
	awk -v name="$1" '$0 ~ "^virt_wss_cold_bytes.domain=\"" name "\"" && /never/ { bytes[/high/ ? "high" : "low"] = $2 }
		END { exit !("high" in bytes && bytes["low"] == bytes["high"]) }' "$metrics"
}

@test "memory that a guest no longer touches is cold, to the page" {
	local cold held wrong=''
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	kvm_guest_start cold touch='pages=9000 seconds=2; pages=3000 first=40000 order=random'
	wait_until 20 grep -q '^ring3: phase=1' "$(embed_console cold)"
	metrics=$BATS_TEST_TMPDIR/metrics
	"$virt_wss" serve --continuous --textfile "$metrics" --period 4s --window 1s --boot 1s --max-pressure 0 --max-stall 5s \
		--budget 100% 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	# Its ages are of all windows.
	wait_until 60 kvm_metric_exact cold 3000
	wait_until 60 cold_is_known cold
	[ -z "$wrong" ]
	end
	wss cold cold --output csv --columns idle,low_bytes,high_bytes,held_bytes
	cold=$(tr -d '\r' <<<"$out" | awk -F, '$1 == "never" { print $3 }')
	held=$(tr -d '\r' <<<"$out" | awk -F, '$1 == "never" { print $4 }')
	[ "$(tr -d '\r' <<<"$out" | awk -F, '$1 == "never" { print $2 }')" = "$cold" ]
	# What the host does not hold of shared RAM counts as held, too (virt-wss(1), cold).
	kvm_exact $((held - cold)) 3000
}
