#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests samples of a guest that is idle, and of one that touches 64 of 256 MiB.

load functions.sh

setup_file() {
	root_setup_file gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	embed_guest_start idle1 args="wss.map=256 wss.touch=64 wss.idle=100000"
	embed_guest_start web1 args="wss.map=256 wss.touch=64 wss.rate=200000"
	embed_guest_wait_ready idle1
	embed_guest_wait_ready web1
}

teardown_file() {
	root_teardown_file
}

idle_bytes() {
	cat "$BATS_FILE_TMPDIR/idle"
}

# Compares a sample, minus the idle guest's, with the guest's own reports from that time.
right_within_10_percent() { # VALUE FROM_MS
	local now
	now=$(embed_guest_field web1 time_ms)
	wait_until 10 embed_guest_past web1 "$now" touching
	within_percent $(($1 - $(idle_bytes))) \
		"$(embed_guest_truth web1 "$2" "$(embed_guest_field web1 time_ms)")" 10
}

@test "an idle guest shows only its own kernel" {
	wss sample idle1 --window 3s --output csv
	[ "$status" = 0 ]
	[ "$(field quality)" = ok ]
	field wss_bytes >"$BATS_FILE_TMPDIR/idle"
	[ "$(idle_bytes)" -gt 0 ]
	[ "$(idle_bytes)" -lt $((16 << 20)) ]
	# The other tests have one guest.
	kill -KILL "$(embed_guest_pid idle1)"
	wait_until 20 refute kill -0 "$(embed_guest_pid idle1)" 2>/dev/null
}

@test "auto chooses refs, and the touched set is right" {
	embed_guest_wait_state web1 touching
	from=$(embed_guest_field web1 time_ms)
	wss_whole web1 sample web1
	[ "$status" = 0 ]
	[ "$(field method)" = refs ]
	[ "$(field quality)" = ok ]
	[ "$(field granularity_bytes)" = 4096 ]
	right_within_10_percent "$(field wss_bytes)" "$from"
}

@test "resident memory is the guest's, and far above its working set" {
	wss sample web1 --window 1s --output csv
	[ "$(field rss_bytes)" -ge $((256 << 20)) ]
	[ "$(field rss_bytes)" -le $((512 << 20)) ]
	[ "$(field maximum_bytes)" = $((512 << 20)) ]
}

@test "a window of 2 s is measured as about 2 s" {
	local began=$EPOCHREALTIME
	wss sample web1 --window 2s --output csv
	# As long as the command has taken at most, however late the end of the window was noticed on a busy machine.
	awk -v window="$(field window_seconds)" -v a="$began" -v b="$EPOCHREALTIME" \
		'BEGIN { print window, b - a; exit !(window >= 1.99 && window <= b - a) }'
}

@test "mmu refuses a guest without KVM, and the guest lives" {
	wss sample web1 --method mmu
	[ "$status" = 5 ]
	one_line_error 'web1.*KVM'
	embed_guest_alive web1
}

@test "methods explains why mmu cannot measure it" {
	wss methods web1 --output csv
	[ "$status" = 0 ]
	# A newer method may appear among them.
	[[ $(paste <(field method) <(field usable) <(field auto) | tr '\t\n' ' ;') == *"mmu 0 0;"*"refs 1 1;"* ]]
	field reason | grep -q KVM
}

@test "--cumulative: the set grows, and ends at the touched set" {
	from=$(embed_guest_field web1 time_ms)
	wss sample web1 --cumulative --window 4s --interval 500ms --output csv
	[ "$status" = 0 ]
	# Eight, and fewer where a busy machine is late.
	[ "$(field wss_bytes | wc -l)" -ge 2 ]
	field wss_bytes | sort -n -c
	right_within_10_percent "$(field wss_bytes | tail -n 1)" "$from"
}

@test "--count and --interval" {
	local times seconds
	wss sample web1 --count 3 --window 200ms --interval 3s --output csv
	[ "$status" = 0 ]
	[ "$(field wss_bytes | wc -l)" = 3 ]
	mapfile -t times < <(field time)
	seconds=$(($(date -d "${times[2]}" +%s) - $(date -d "${times[0]}" +%s)))
	echo "$seconds s from the first to the third"
	[ "$seconds" -ge 5 ]
}

@test "--pause: the sample is exact, and the guest continues" {
	from=$(embed_guest_field web1 time_ms)
	wss_whole web1 sample web1 --pause
	[ "$status" = 0 ]
	right_within_10_percent "$(field wss_bytes)" "$from"
	[ "$(embed_process_state web1)" != T ]
	embed_guest_alive web1
}

@test "JSON is one object of the documented form" {
	wss sample web1 --window 2s --output json
	[ "$status" = 0 ]
	perl -MJSON::PP -e '
		my $doc = decode_json(join("", <STDIN>));
		$doc->{schema} eq "virt-wss/samples/1" or die "schema";
		my $s = $doc->{samples}[0];
		$s->{domain} eq "web1" && $s->{quality} eq "ok" && $s->{method} eq "refs" or die "names";
		$s->{wss_bytes} == $s->{wss_high_bytes} && $s->{wss_bytes} > 0 or die "bounds";
		$s->{memory}{rss_bytes} > 0 && $s->{cost}{arm_seconds} >= 0 or die "memory, cost";
		$s->{time} =~ /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/ or die "time";
		ref $s->{curve} eq "ARRAY" && ref $s->{notes} eq "ARRAY" or die "arrays"' <<<"$out"
}

@test "the table has the columns that an operator needs" {
	wss sample web1 --window 2s
	[ "$status" = 0 ]
	for column in DOMAIN QUALITY METHOD WINDOW BALLOON RSS WSS; do
		head -n 1 <<<"$out" | grep -qw "$column"
	done
	grep -q '^web1 ' <<<"$out"
	[ "$(wc -L <<<"$out")" -le 80 ]
	wss sample web1 --window 500ms --wide
	for column in DOMAIN METHOD GRAN WINDOW MAXIMUM BALLOON RSS PSS SWAP WSS BOUNDS; do
		head -n 1 <<<"$out" | grep -qw "$column"
	done
}

@test "each row of a series has its time, and the table fits 80 columns" {
	for series in "--count 2 --interval 2s --window 500ms" "--cumulative --window 4s --interval 2s"; do
		# shellcheck disable=SC2086
		wss sample web1 $series
		[ "$status" = 0 ]
		head -n 1 <<<"$out" | grep -qE '^DOMAIN +TIME '
		[ "$(wc -L <<<"$out")" -le 80 ]
		# There are as many different times as rows, however late a row is.
		[ "$(awk 'NR > 1 { print $2 }' <<<"$out" | sort -u | grep -cE '^[0-9-]+T[0-9:]+Z$')" = 2 ]
	done
}

# On a busy machine no window may count, as the guest was starved in it.
profile_has_rows() {
	wss profile web1 --to 500ms --sort -seconds
	[ "$status" = 0 ] && [ "$(wc -l <<<"$out")" -gt 1 ]
}

@test "profile prints a sorted table instead of the drawing" {
	wait_until 60 profile_has_rows
	[ "$(wc -L <<<"$out")" -le 80 ]
	head -n 1 <<<"$out" | grep -qE '^DOMAIN +TIME +WSS '
	sed -n 2p <<<"$out" | grep -qE '^web1 +500 ms '
	wss profile web1 --to 500ms --columns seconds,mean_bytes --output csv
	[ "$(head -n 1 <<<"$out" | tr -d '\r')" = seconds,mean_bytes ]
}

@test "a closed pipe ends a series, and the guest continues" {
	local ends
	timeout -k 5 500 env --default-signal=PIPE "$virt_wss" sample web1 --count 1000000 --window 100ms \
		--pause --output csv 2>"$BATS_TEST_TMPDIR/err" | sed 2q >"$BATS_TEST_TMPDIR/out"
	ends=("${PIPESTATUS[@]}")
	cat "$BATS_TEST_TMPDIR/err"
	[ "${ends[0]}" = 141 ]
	[ ! -s "$BATS_TEST_TMPDIR/err" ]
	refute all_stopped "$(embed_guest_pid web1)"
	wss sample web1 --window 100ms --output csv
	[ "$status" = 0 ]
}

@test "an interrupted profile draws the windows that were complete" {
	wss_start profile web1 --to 500ms --repeat 100 --method refs
	second() { [ "$(grep -c 'armed' "$BATS_TEST_TMPDIR/err")" -ge 3 ]; }
	wait_until 30 second
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 130 ]
	grep -q '^web1 (refs' <<<"$out"
	grep -qE 'interrupted: the curves cover [0-9]+ of 100 windows' <<<"$err"
}

@test "a published profile can be read by virsh and by list" {
	wss list web1 --output csv
	[ "$status" = 0 ]
	[ -z "$(field current_bytes)" ]
	wss sample web1 --publish --output csv
	[ "$status" = 0 ]
	bytes=$(field wss_bytes)
	embed_virsh metadata web1 --uri urn:virt-wss:profile:1 >"$BATS_TEST_TMPDIR/profile"
	cat "$BATS_TEST_TMPDIR/profile"
	[ "$(xmllint --xpath 'string(/profile/current)' "$BATS_TEST_TMPDIR/profile")" = "$bytes" ]
	embed_virsh dumpxml web1 | xmllint --xpath '/domain/metadata/*[local-name()="profile"]' - \
		>"$BATS_TEST_TMPDIR/element"
	cat "$BATS_TEST_TMPDIR/element"
	xmllint --noout --relaxng "$WSS_SRCDIR/dist/profile.rng" "$BATS_TEST_TMPDIR/element"
	wss list web1 --output csv
	[ "$status" = 0 ]
	[ "$(field current_bytes)" = "$bytes" ]
	[ "$(field confidence)" = single ]
	[ "$(field age_seconds)" -ge 0 ]
}

# Recordings need KVM, and a mark needs one in progress: tests/shell/ and the lab test
# those. Commands that read recordings get an invented one here.
@test "every example of the manual page runs" {
	{
		grep -E '^    (virt-wss|virsh) ' "$WSS_SRCDIR/docs/virt-wss.pod" | grep -v 'virt-wss serve '
		# Those of the help texts that end by themselves and measure or read.
		sed -nsE '/^Examples:$/,$s/^  (virt-wss .*)/\1/p' \
			"$WSS_SRCDIR"/docs/synopsis/{cold,migrate-estimate,plan,squeeze}.txt
	} >"$BATS_TEST_TMPDIR/examples"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/examples")" -ge 6 ]
	PATH=$WSS_BUILDDIR:$PATH
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	cd "$BATS_TEST_TMPDIR" || return 1
	"$WSS_BUILDDIR/tests/tools/mkrecording" web1.rec --phases 4096:10,1024:10
	"$WSS_SRCDIR/tests/tools/plan-fleet" . 2 6
	echo "small 1GiB" >flavours.txt
	while read -r example; do
		echo "\$ $example"
		expected=0
		case $example in
		'virt-wss mark '*) continue ;;
		'virt-wss record '*) expected=5 ;;
		# It has no balloon.
		'virt-wss squeeze web1 '* | 'virt-wss balloon web1'*) expected=5 ;;
		# No service has watched it.
		'virt-wss cold web1') expected=1 ;;
		esac
		status=0
		bash -c "$example" </dev/null || status=$?
		# As in embed_virsh: libvirt's embedded driver may crash when virsh ends.
		if [ $status = 139 ] && [[ $example == virsh* ]]; then
			status=0
			bash -c "$example" </dev/null || status=$?
		fi
		[ $status = $expected ]
	done <"$BATS_TEST_TMPDIR/examples"
}

@test "in the end the guest has no taint but that of root, and no job" {
	embed_virsh domjobinfo web1 | grep -q 'None'
	[ -s "$embed_root/run/qemu/web1.xml" ]
	[ -s "$embed_root/log/qemu/web1.log" ]
	refute grep -q 'custom-monitor' "$embed_root/run/qemu/web1.xml" "$embed_root/log/qemu/web1.log"
	embed_guest_alive web1
}
