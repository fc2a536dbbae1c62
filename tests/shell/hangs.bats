#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests libvirt calls that never return, on libvirt's test driver: a call that hangs for one
# domain delays no other, and a stop request takes effect at once. Seconds are those of a clock that
# goes on while the program waits, to a limit that the tests set: what needs longer never ends.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
shim=$WSS_BUILDDIR/tests/tools/hang.so
uuid=6e2d1b40-53f1-4a0c-9a7e-00000000000
commands=(list recommend 'policy get' 'policy set' 'policy clear')

setup() {
	local i
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	cd "$BATS_TEST_TMPDIR" || return 1
	{
		echo '<node>'
		for i in 1 2 3; do
			printf '%s' "<domain type='test'><name>web$i</name><uuid>$uuid$i</uuid>" \
				"<memory unit='GiB'>4</memory><os><type>hvm</type></os></domain>" >"$i.xml"
			echo "<domain file='$PWD/$i.xml'/>"
		done
		echo '</node>'
	} >node.xml
	export LIBVIRT_DEFAULT_URI=test://$PWD/node.xml VIRT_WSS_HISTORY=$PWD/history.db
}

teardown() {
	local pid
	for pid in ${pids-}; do
		kill -KILL "$pid" 2>/dev/null || true
	done
}

# CALL NAME ARGUMENT...: starts virt-wss with a call that hangs, and a clock in which so many seconds
# pass; NAME.out, NAME.err, pid, and pids.
begin() {
	local call=$1 name=$2
	shift 2
	rm -f "$name.hangs"
	clock_new "$name.clock" "${seconds-0}"
	WSS_CLOCK=$PWD/$name.clock WSS_HANG=$call WSS_HANG_FILE=$PWD/$name.hangs LD_PRELOAD=$shim \
		"$virt_wss" "$@" >"$name.out" 2>"$name.err" 3>&- &
	pids="${pids-} $!"
	pid=$!
}

# The status of a process, which is killed if it does not end.
finish() { # PID -> status
	status=0
	wait_until 300 has_ended "$1" || kill -KILL "$1"
	wait "$1" || status=$?
}

has_ended() { # PID
	! kill -0 "$1" 2>/dev/null
}

# Sets the options that a command requires.
words_of() { # COMMAND -> words
	case $1 in
	'policy set') words=(policy set --headroom 10) ;;
	'policy clear') words=(policy clear) ;;
	*) read -ra words <<<"$1" ;;
	esac
}

wait_for() { # FILE
	wait_until 300 [ -e "$1" ] || { echo "no $1"; return 1; }
}

# SIGNAL STATUS NAME: stops the program of begin() once its call hangs. The call has 30 s, the end may take 5.
stop() {
	wait_for "$3.hangs"
	kill -"$1" "$pid"
	clock_limit "$3.clock" 5
	finish "$pid"
	echo "$3: $status: $(cat "$3.err")"
	[ "$status" = "$2" ]
	! grep -q web "$3.out"
}

@test "a stop request takes effect while a call of libvirt hangs" {
	local command words
	for command in "${commands[@]}"; do
		words_of "$command"
		begin virDomainGetXMLDesc:web1 named "${words[@]}" web1 web2
		stop INT 130 named
		begin virDomainGetXMLDesc:web1 all "${words[@]}" --all
		stop TERM 143 all
		begin virConnectListAllDomains: listing "${words[@]}" --all
		stop TERM 143 listing
		begin virConnectGetType: opening "${words[@]}" web1
		stop INT 130 opening
	done
	# The first is that of opening the guest.
	WSS_HANG_AFTER=1 begin virDomainListGetStats:web1 statistics balloon web1 web2
	stop INT 130 statistics
	WSS_HANG_AFTER=1 begin virDomainListGetStats:web1 preview squeeze web1 --dry-run
	stop INT 130 preview
	begin virNodeGetMemoryStats: memory recommend
	stop INT 130 memory
	begin virDomainGetInfo:web2 size recommend
	stop INT 130 size
	begin virDomainSetMetadata:web2 store policy set web2 --opt-out yes
	stop INT 130 store
	# After those of opening the guest and of reading its policy.
	WSS_HANG_AFTER=2 begin virDomainGetXMLDesc:web1 record record web1 -o file
	stop INT 130 record
	[ ! -e file ]
	WSS_HANG_AFTER=2 begin virDomainGetXMLDesc:web1 migrate migrate-estimate web1 --bandwidth 1GiB/s
	stop INT 130 migrate
}

# SIGTERM gives guests time to be restored.
@test "serve ends within five seconds of SIGTERM, whatever call of libvirt hangs" {
	local call now seconds=1 WSS_CLOCK_PACE=1
	export WSS_CLOCK_PACE
	for call in virConnectGetType: virConnectListAllDomains: virDomainGetXMLDesc: virConnectClose:; do
		begin $call serve serve --no-store --boot 1ms --period 1s --window 100ms --textfile metrics
		# Connections are closed only at the end.
		[ $call = virConnectClose: ] || wait_for serve.hangs
		wait_for metrics
		kill -TERM "$pid"
		clock_limit serve.clock 6
		finish "$pid"
		echo "$call $status : $(cat serve.err)"
		[ "$status" = 143 ]
		rm metrics
	done
}

@test "what hangs for one domain delays no other, and has a deadline" {
	local command words how n=0 i status running=() seconds=40
	for command in "${commands[@]}"; do
		for how in 'web1 web2 web3' --all; do
			words_of "$command"
			[ "$command" != list ] || words+=(--timeout 2s)
			[[ $command == 'policy '[sc]* ]] || words+=(--output csv)
			# shellcheck disable=SC2086
			begin virDomainGetXMLDesc:web2 "$n" "${words[@]}" $how
			running[n++]=$pid
		done
	done
	WSS_HANG_AFTER=1 begin virDomainListGetStats:web2 "$n" balloon --output csv
	running[n++]=$pid
	begin virDomainListGetStats:web2 optional recommend --output csv
	optional_pid=$pid
	begin virConnectGetHostname: name recommend
	name_pid=$pid
	begin virConnectListAllDomains: listing recommend
	for ((i = 0; i < n; i++)); do
		finish "${running[i]}"
		echo "$i: $status: $(cat $i.out $i.err)"
		[ "$status" = 3 ]
		grep -q 'web2: timed out after' $i.err
		! grep -q 'web[13]' $i.err
	done
	grep -q "web2: timed out after 30.0 s while reading the balloon's statistics" $((n - 1)).err
	# What the history says needs no statistics.
	finish "$optional_pid"
	[ "$status" = 0 ]
	cat optional.out optional.err
	grep -q '^web2,[^,]*,unknown,running,' optional.out
	grep -q "web2: no balloon statistics: timed out after 10.0 s while reading the balloon's statistics" optional.err
	finish "$pid"
	cat listing.err
	[ "$status" = 1 ]
	grep -q 'timed out after 30.0 s while listing the domains' listing.err
	finish "$name_pid"
	cat name.err
	[ "$status" = 1 ]
	grep -q "timed out after 30.0 s while asking libvirt for its host's name" name.err
}

calls_about() { # DOMAIN
	grep -cx "$1" calls
}

have_been_called() { # N DOMAIN...
	local n=$1 domain
	shift
	for domain; do
		[ "$(calls_about "$domain")" -ge "$n" ] || return 1
	done
}

# Each visit of the service has a connection of its own.
@test "serve asks no second time about a guest about which a call hangs, and goes on with the others" {
	: >calls
	seconds=130
	WSS_HANG_CALLS=$PWD/calls begin 'virDomainListGetStats:web2' serve serve --no-store --boot 1ms --period 10s --window 100ms --textfile metrics
	# In that time the first visit of the one that hangs is over, and several more have been due.
	wait_until 300 have_been_called 10 web1 web3 || { cat calls serve.err; false; }
	[ "$(calls_about web2)" = 1 ]
	kill -TERM "$pid"
	clock_limit serve.clock 136
	finish "$pid"
	[ "$status" = 143 ]
}

@test "a connection that cannot be closed does not keep the program" {
	seconds=10 begin virConnectClose: closing list web1
	finish "$pid"
	cat closing.out
	[ "$status" = 0 ]
	grep -q web1 closing.out
}

@test "sample prints its rows in the order asked for, with --all by name, not in the order of answers" {
	local format seconds=10
	for format in csv json; do
		WSS_HANG_SECONDS=2 begin virDomainGetXMLDesc:web1 rows sample --output $format web3 web1 web2
		finish "$pid"
		[ "$(grep -o 'web[123]' rows.out | uniq | tr '\n' ' ')" = "web3 web1 web2 " ]
		WSS_HANG_SECONDS=2 begin virDomainGetXMLDesc:web2 rows sample --output $format --all
		finish "$pid"
		[ "$(grep -o 'web[123]' rows.out | uniq | tr '\n' ' ')" = "web1 web2 web3 " ]
	done
}
