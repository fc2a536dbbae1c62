#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The service on guests under real KVM, whose truth is known to the page.

bats_require_minimum_version 1.5.0
load "functions.sh"

teardown() {
	[ -z "${root_missing-}" ] || return 0
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
	kvm_guests_end
}

begin() { # OPTION...: in the background -> pid
	metrics=$BATS_TEST_TMPDIR/metrics
	# Of a service that was killed.
	rm -f "$metrics"
	"$virt_wss" serve --no-store --textfile "$metrics" --period 4s --window 1s --boot 1s --max-pressure 0 \
		--budget 100% "$@" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
}

end() {
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
}

metric() { # NAME GUEST: its value
	sed -n "s/^virt_wss_$1{domain=\"$2\"[^}]*} //p" "$metrics" 2>/dev/null
}

metric_is() { # NAME GUEST VALUE
	[ "$(metric "$1" "$2")" = "$3" ]
}

@test "a guest on huge pages is measured by 4 KiB, one on pages of 4 KiB as it is" {
	kvm_guest_start huge backing=anonymous touch='pages=4096 stride=8 order=random access=modify'
	kvm_guest_start small touch='pages=3000 order=random'
	begin
	wait_until 60 metric_is working_set_bound huge 1
	[ "$(metric working_set_bytes huge)" -ge $((64 << 21)) ]
	[ "$(metric working_set_low_bytes huge)" -lt $((1 << 20)) ]
	wait_until 60 metric_is working_set_bound huge 0
	metric_is coarse huge 0
	kvm_exact "$(metric working_set_bytes huge)" 4096
	[ -z "$(metric working_set_low_bytes huge)" ]
	wait_until 60 metric_is working_set_bound small 0
	kvm_exact "$(metric working_set_bytes small)" 3000
	end
	wait_until 20 native_again huge
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
	begin --max-stall 300us
	wait_until 60 metric_is coarse coarse 4
	wait_until 60 metric_is working_set_bound coarse 1
	grep -q 'coarse: its working sets are upper limits.*would stall it' "$BATS_TEST_TMPDIR/err"
	end
}

@test "killed in a fine window it leaves the guest running, and measurable" {
	kvm_guest_start killed backing=anonymous touch='pages=4096 stride=8 order=random access=modify'
	begin
	wait_until 60 metric_is working_set_bound killed 0
	kill -KILL "$pid"
	wait "$pid" || true
	wait_until 30 native_again killed
	begin
	wait_until 60 metric_is working_set_bound killed 0
	kvm_exact "$(metric working_set_bytes killed)" 4096
	end
}
