#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests check, the monitoring plugin: its verdicts, its one line, and that it ends in time.

load functions.sh
# shellcheck disable=SC1091
. "$WSS_SRCDIR/tests/shell/service-functions.sh"

shim=$WSS_BUILDDIR/tests/tools/hang.so

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/none.db LIBVIRT_DEFAULT_URI=test:///default
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	end_service
}

# STATUS RE ARGUMENT...: runs check, which must print one line that matches.
says() {
	local expected=$1 re=$2 status=0
	shift 2
	timeout -k 5 300 "$WSS_BUILDDIR/virt-wss" check "$@" >out 2>err </dev/null || status=$?
	printf '$ virt-wss check %s -> %s\n%s\n%s\n' "$*" "$status" "$(cat out)" "$(cat err)"
	[ "$status" = "$expected" ] && [ "$(wc -l <out)" = 1 ] && [ ! -s err ] && grep -qE -e "$re" out &&
		performance_data
}

# As the guidelines have it: a blank between 'label'=value[UOM];[warn];[crit];[min];[max].
performance_data() {
	perl -ne '
		my @parts = split /\|/;
		exit 0 if @parts == 1;
		die "two bars\n" if @parts != 2;
		my $number = qr/-?[0-9]+(\.[0-9]+)?/;
		my $range = qr/(@?(~:|$number:)?($number)?)/;
		for ($parts[1]) {
			chomp;
			s/^ (\x27[^=\x27]+\x27|[a-z_]+)=(U|$number(s|%|B|c)?(;$range){2};$number(;$number)?)(?= |$)// or die "at: $_\n" while length;
		}' out
}

# Runs with a clock in which no more than five seconds pass: who waits longer never ends.
five_seconds() { # COMMAND...
	clock_new clock 5
	WSS_CLOCK=$PWD/clock LD_PRELOAD=$shim "$@"
}

has() { # TEXT of the performance data
	grep -qF -e "$1" out
}

lacks() { # TEXT
	! has "$1"
}

ask() { # STATUS RE ARGUMENT...: by the socket
	says "$1" "$2" --socket socket "${@:3}"
}

@test "a verdict that cannot be written is UNKNOWN, not WARNING" {
	local status
	answer "$(guest web1 waiting 64 256 31)" >page
	begin_service
	status=0
	"$WSS_BUILDDIR/virt-wss" check --socket socket 2>err >/dev/full || status=$?
	[ "$status" = 3 ]
	grep -qx "virt-wss: error: cannot write the output: No space left on device" err
	status=0
	"$WSS_BUILDDIR/virt-wss" check --socket socket --warning 10 2>err >&- || status=$?
	[ "$status" = 3 ]
	grep -q "cannot write the output" err
}

@test "working sets within their balloons are OK" {
	answer "$(guest web1 waiting 64 256 31)" "$(guest db waiting 200 256 12)" >page
	begin_service
	ask 0 '^WSS OK - 2 guests, largest working set 78% of the balloon \(db\), oldest sample (3[1-9]|[4-9][0-9]|1[0-9][0-9]) s old \|'
	has "guests=2;;;0 problems=0;;;0 refused=0;;;0 held=0;;;0;1 wss=276824064B;;;0;536870912 wss_low=276824064B;;;0;536870912"
	grep -q "'web1 wss'=67108864B;;;0;268435456 'web1 wss_percent'=25%;90;95;0;100 'web1 age'=3[1-9]s;600;3600;0" out
	ask 0 '^WSS OK - 1 guest, working set 25% of the balloon \(web1\), sample (3[1-9]|[4-9][0-9]|1[0-9][0-9]) s old \| '"'web1 wss'" web1
	ask 0 'held=0' --brief
	lacks web1
}

@test "what a service that was restarted has not measured yet has its stored sample, and else no age" {
	local uuid
	uuid=$(guest web1 waiting | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
	# A canary's window.
	answer '{"domain":"web1","uuid":"'"$uuid"'","state":"waiting","period_seconds":60,"kind":"canary","sample_age_seconds":10.3,"sample":{"quality":"ok","method":"mmu","observes":"accesses","memory":{"balloon_bytes":268435456}}}' >page
	begin_service
	ask 3 'web1: not measured yet'
	grep -qE "'web1 age'=U\$" out
	export VIRT_WSS_HISTORY=$PWD/stored.db
	chmod 700 .
	"$WSS_BUILDDIR/tests/unit/make-history" stored.db 12 $((50 << 20)) 60 "$uuid"
	ask 0 '^WSS OK - 1 guest, working set 2[0-9]% of the balloon \(web1\), sample [0-9]+ s old'
}

@test "sums and percentages of upper limits are upper limits" {
	answer "$(guest exact waiting 64 256 31)" \
		"$(guest bounded waiting 26 256 31 '' '"wss_low_bytes":53248,"wss_high_bytes":27262976')" >page
	begin_service
	ask 0 ''
	has "wss=94371840B;;;0;536870912 wss_low=67162112B;;;0;536870912"
	# 10.16 %.
	ask 0 'working set at most 11% of the balloon \(bounded\)' bounded
	ask 0 'working set at most 10\.2% of the balloon' -w 10.5 -c 20 bounded
}

@test "a degraded window proves what was touched at least, and no more" {
	local bounds='"wss_low_bytes":41943040,"wss_high_bytes":67108864' uuid
	answer "$(guest web1 waiting 64 256 31 '' "$bounds")" | sed 's/"quality":"ok"/"quality":"degraded"/' >page
	begin_service
	ask 3 '^WSS UNKNOWN - web1: working set at least 15% of 256 MiB, as its last window was degraded \|'
	ask 2 '^WSS CRITICAL - web1: working set at least 15% ' -w 5 -c 10
	# The last good one counts, as old as it is.
	uuid=$(grep -o '........-0000-4000-8000-000000000000' page)
	export VIRT_WSS_HISTORY=$PWD/stored.db
	chmod 700 .
	"$WSS_BUILDDIR/tests/unit/make-history" stored.db 12 $((50 << 20)) 60 "$uuid"
	sqlite3 stored.db "UPDATE sample SET quality = 1 WHERE time > (SELECT max(time) FROM sample) - 120"
	ask 0 '^WSS OK - 1 guest, working set 2[0-9]% of the balloon \(web1\), sample [2-9] min old'
	sqlite3 stored.db "UPDATE sample SET quality = 1"
	ask 3 'web1: working set at least 15% of'
}

@test "thresholds are ranges, and the worst state wins" {
	answer "$(guest a waiting 64 256 31)" "$(guest b waiting 240 256 31)" >page
	begin_service
	ask 1 '^WSS WARNING - b: working set 94% of 256 MiB \|'
	ask 2 '^WSS CRITICAL - b: working set 94% of 256 MiB \|' -c 93
	ask 2 '^WSS CRITICAL - b: working set 94% of 256 MiB; a: working set 25% of 256 MiB \|' -w 10 -c 90
	ask 0 '' -w 10:95 -c '~:95' a
	has ';10:95;~:95;'
	ask 1 '' -w 30:
	ask 1 '' -w @20:30 a
	ask 0 '' -w @20:24 a
	ask 1 'last measured (3[1-9]|[4-9][0-9]|1[0-9][0-9]) s ago' --age-warning 30 a
	ask 2 'last measured (3[1-9]|[4-9][0-9]|1[0-9][0-9]) s ago' --age-critical 30.5 a
	ask 0 '' --age-critical 40 a
}

@test "a figure near a threshold has the digits that show on which side it is" {
	answer "$(guest over waiting 9003 10000 31)" "$(guest under waiting 8960 10000 31)" \
		"$(guest hardly waiting 90000001 100000000 31)" >page
	begin_service
	ask 1 ' over: working set 90\.03% of 9\.77 GiB \|' over
	ask 2 ' over: working set 90\.03% of ' -c 90 -w 80 over
	ask 2 ' over: working set 90% of ' -w 95 -c @90:90.1 over
	ask 0 'working set 90% of the balloon' under
	ask 0 'working set 89\.6% of the balloon' -w 89.8 under
	ask 1 ' hardly: working set 90\.000001% of ' hardly
	has "'hardly wss_percent'=90.000001%;90;95;0;100"
	ask 0 'working set 90% of the balloon' -w 91 hardly
	has "'hardly wss_percent'=90%;91;95;0;100"
}

@test "what is not known is UNKNOWN" {
	answer "$(guest new waiting)" "$(guest odd waiting '' '' '' '"why":"its job has no end"')" \
		"$(guest low waiting 64 256 3 '' '"wss_low_bytes":67108864,"wss_high_bytes":268435456')" \
		"$(guest high waiting 250 256 3 '' '"wss_low_bytes":4096,"wss_high_bytes":262144000')" \
		"$(guest out 'left out')" "$(guest fine waiting 1 256 3)" >page
	begin_service
	ask 3 'new: not measured yet' new
	has "'new wss'=U 'new wss_percent'=U 'new age'=U"
	ask 3 'odd: its job has no end' odd
	ask 3 'low: working set at least 25% of 256 MiB' low
	ask 3 'high: working set at most 98% of 256 MiB, at least 0%' high
	ask 3 '^WSS UNKNOWN - out: not measured: its policy opts out' out
	ask 3 'absent: the service knows no such running domain' absent
	ask 3 'absent: ' absent fine
	ask 3 'new: .*; odd: .*; low: .*; high: .*; 1 opted out: out'
	answer "$(guest out 'left out')" >page
	ask 0 '^WSS OK - no guest to check; 1 opted out: out \|'
	answer >page
	ask 0 '^WSS OK - 0 guests \|'
	ask 2 '^WSS CRITICAL - 0 guests \|' --empty critical
	says 3 'service at socket2: cannot connect' --socket socket2
	says 3 'no service runs \(/run/virt-wss/http.sock\), and there is no history'
	says 3 'history .*none2.db' --history "$PWD/none2.db"
}

@test "an upper bound is judged by what is sure" {
	answer "$(guest wide waiting 250 256 3 '' '"wss_low_bytes":4096,"wss_high_bytes":262144000')" \
		"$(guest near waiting 250 256 3 '' '"wss_low_bytes":248302796,"wss_high_bytes":262144000')" \
		"$(guest full waiting 255 256 3 '' '"wss_low_bytes":257698037,"wss_high_bytes":267386880')" \
		"$(guest small waiting 100 256 3 '' '"wss_low_bytes":4096,"wss_high_bytes":104857600')" >page
	begin_service
	ask 3 'wide: working set at most 98% of 256 MiB, at least 0%' wide
	ask 1 'near: working set at most 98% of 256 MiB, at least 92%' near
	ask 2 'full: working set at most 100% of 256 MiB, at least 95%' full
	ask 0 'working set at most 40% of the balloon \(small\)' small
	# A range whose inside is bad: what is sure there.
	ask 3 'small: ' -w 30: small
	ask 1 'small: ' -w 50: small
}

@test "a guest that is paused is named, and says nothing of the others" {
	answer "$(guest web1 waiting 64 256 31)" "$(guest held1 paused 250 256 90000 '"why":"the domain is paused"')" \
		"$(guest new1 paused '' '' '' '"why":"the domain is paused"')" >page
	begin_service
	ask 0 '^WSS OK - 1 guest, working set 25% of the balloon \(web1\), sample (3[1-9]|[4-9][0-9]|1[0-9][0-9]) s old; 2 paused: held1, new1 \|'
	has 'guests=1;;;0 problems=0'
	lacks "held1 wss"
	ask 3 '^WSS UNKNOWN - held1: not measured: it is paused' held1 web1
}

@test "a libvirt that does not answer is told apart from a host without guests" {
	answer -u false >page
	begin_service
	ask 3 '^WSS UNKNOWN - libvirt does not answer; 0 guests \|' --empty critical
	answer -u false "$(guest a waiting 64 256 31)" "$(guest b waiting 240 256 31)" >page
	ask 3 '^WSS UNKNOWN - libvirt does not answer; 1 guest, working set 25%' a
	ask 1 '^WSS WARNING - libvirt does not answer; b: working set 94%'
	# The service has just started.
	answer -s 3.2 >page
	ask 3 '^WSS UNKNOWN - the service started ([3-9]|[1-9][0-9]) s ago and has not listed the guests yet; 0 guests \|' --empty ok
	ask 3 '^WSS UNKNOWN - the service started ([3-9]|[1-9][0-9]) s ago' a
	answer -u '' >page
	ask 3 '^WSS UNKNOWN - the service has not asked libvirt yet; 0 guests \|'
	end_service
	answer -u 7 >page
	begin_service
	ask 3 '"libvirt_up" has the wrong type'
	end_service
	"$WSS_BUILDDIR/virt-wss" -c "test://$PWD/none.xml" serve --no-store --listen "unix:$PWD/socket" 2>serve.err 3>&- &
	service_pid=$!
	wait_until 300 eval "'$WSS_BUILDDIR/virt-wss' check --socket socket | grep -q '^WSS UNKNOWN - libvirt does not answer; 0 guests'"
	end_service
	printf '<node/>' >empty.xml
	"$WSS_BUILDDIR/virt-wss" -c "test://$PWD/empty.xml" serve --no-store --listen "unix:$PWD/socket" 2>serve.err 3>&- &
	service_pid=$!
	wait_until 300 eval "'$WSS_BUILDDIR/virt-wss' check --socket socket | grep -q '^WSS OK - 0 guests'"
}

@test "a service that is held, or refuses a guest, has the state that was asked for" {
	answer -h '/run/virt-wss/hold exists' "$(guest a waiting 64 256 31)" \
		"$(guest b refused 64 256 31 '"why":"it is too large for any window"')" >page
	begin_service
	ask 1 '^WSS WARNING - measuring is paused: /run/virt-wss/hold exists; b: refused by the budget: it is too large for any window \|'
	has 'refused=1;;;0 held=1;;;0;1'
	ask 1 'measuring is paused:' a
	ask 0 'measuring is paused:' --held ok a
	ask 2 'refused by' --held OK --refused critical
	ask 0 '' --held ok --refused ok
}

@test "pages that the service does not renew make the samples old" {
	answer "$(guest a waiting 64 256 31)" | sed 's/@NOW@/2020-01-01T00:00:00Z/' >page
	begin_service
	ask 2 'a: last measured [0-9]* d ago'
}

@test "hostile names cannot forge a line, a label or performance data" {
	answer "$(guest "x' | up=1" waiting 64 256 31)" "$(guest 'a=b;c' waiting 64 256 31)" \
		"$(guest 'e\u001b[2J\u202ef\n' waiting 250 256 31)" "$(guest '\u4e16\u754c' waiting 64 256 31)" >page
	begin_service
	ask 2 '^WSS CRITICAL - e\?\[2J\?f\?: working set 98%'
	[ "$(LC_ALL=C grep -c $'[\001-\011\013-\037]' out)" = 0 ]
	has "'x_ _ up_1 "
	has "'a_b_c "
	has "'世界 wss'="
	answer "$(guest '|' waiting 250 256 31)" >page
	ask 2 '^WSS CRITICAL - \?: working set'
}

@test "a service that sends rubbish, or nothing, is UNKNOWN in time" {
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	echo hello >page
	begin_service raw
	ask 3 '^WSS UNKNOWN - service at socket: the reply is not HTTP'
	end_service
	begin_service
	ask 3 '^WSS UNKNOWN - service at socket: not JSON'
	end_service
	begin_service hang
	five_seconds ask 3 '^WSS UNKNOWN - service at socket: timed out' -t 1
}

@test "the service itself is understood" {
	"$WSS_BUILDDIR/virt-wss" serve --no-store --listen "unix:$PWD/socket" --hold-file hold 2>serve.err 3>&- &
	service_pid=$!
	wait_until 300 eval "'$WSS_BUILDDIR/virt-wss' check --socket socket | grep -q 'test: '"
	ask 3 "^WSS UNKNOWN - test: "
	touch hold
	wait_until 300 eval "'$WSS_BUILDDIR/virt-wss' check --socket socket --held critical | grep -q '^WSS CRITICAL - measuring is paused: hold exists; test: '"
	"$WSS_BUILDDIR/virt-wss" top -b -n 1 --socket socket >out
	grep -q '^NOT MEASURING: hold exists (asking the service)$' out
	grep -q '^test ' out
}

@test "without a service the history has the samples" {
	local uuid=6695eb01-f6a4-8304-79aa-97f2502e193f
	# libvirt's test driver runs one domain, "test", with this UUID.
	"$WSS_BUILDDIR/tests/unit/make-history" "$PWD/h.db" 3 $((64 << 20)) 60 $uuid
	export VIRT_WSS_HISTORY=$PWD/h.db
	says 0 '^WSS OK - 1 guest, working set 2[0-9]% of the balloon .* \(from the history\) \|'
	says 0 '' --uuid $uuid
	says 0 '^WSS OK - 1 guest, ' test
	says 3 '^WSS UNKNOWN - web1: no such domain \(from the history\) \|' web1
	says 3 '^WSS UNKNOWN - cannot connect to libvirt' --connect nonsense:///x test
	says 3 '^WSS UNKNOWN - cannot connect to libvirt' --connect nonsense:///x
	"$WSS_BUILDDIR/tests/unit/make-history" "$PWD/g.db" 1 $((64 << 20)) 60 6695eb01-f6a4-8304-79aa-97f2502e1930
	says 3 'test: no sample in the history' --history "$PWD/g.db"
}

# DESCRIPTION of domains of libvirt's test driver, each of which runs.
test_host() {
	printf '<node>%s</node>\n' "$1" >host.xml
	export LIBVIRT_DEFAULT_URI=test://$PWD/host.xml
}

test_domain() { # NAME UUID [RUNSTATE [METADATA]], as libvirt's test driver has it: 1 runs, 3 is paused, 5 is shut off
	printf '<domain type="test" xmlns:test="http://libvirt.org/schemas/domain/test/1.0">
		<name>%s</name><uuid>%s</uuid><memory>262144</memory><os><type>hvm</type></os>
		<metadata>%s</metadata><test:runstate>%s</test:runstate></domain>' "$1" "$2" "${4-}" "${3-1}"
}

@test "a guest that was named and does not run, is paused or opted out is UNKNOWN, whatever the history has of it" {
	local uuid=6695eb01-f6a4-8304-79aa-97f2502e193f
	"$WSS_BUILDDIR/tests/unit/make-history" "$PWD/h.db" 3 $((64 << 20)) 60 $uuid
	sqlite3 h.db "UPDATE guest SET name = 'web1'"
	export VIRT_WSS_HISTORY=$PWD/h.db
	test_host "$(test_domain web1 $uuid)"
	says 0 '^WSS OK - 1 guest, ' web1
	test_host "$(test_domain web1 $uuid 5)"
	says 3 '^WSS UNKNOWN - web1: the domain is not running' web1
	says 3 '^WSS UNKNOWN - web1: the domain is not running' --uuid $uuid
	test_host "$(test_domain web1 $uuid 3)"
	says 3 '^WSS UNKNOWN - web1: not measured: it is paused' web1
	test_host "$(test_domain web1 $uuid 1 '<policy xmlns="urn:virt-wss:policy:1" version="1" opt-out="yes"/>')"
	says 3 '^WSS UNKNOWN - web1: not measured: its policy opts out' web1
	test_host "$(test_domain db 6695eb01-f6a4-8304-79aa-97f2502e1930)"
	says 3 '^WSS UNKNOWN - web1: no such domain' web1
	says 3 "^WSS UNKNOWN - $uuid: no such domain" --uuid $uuid
}

@test "a name that the history has of two guests is that of the one that runs" {
	local a=6695eb01-f6a4-8304-79aa-97f2502e193f b=6695eb01-f6a4-8304-79aa-97f2502e1930
	"$WSS_BUILDDIR/tests/unit/make-history" "$PWD/h.db" 3 $((64 << 20)) 60 $a $b
	sqlite3 h.db "UPDATE guest SET name = 'web1'; 
		DELETE FROM series WHERE guest_id = (SELECT id FROM guest WHERE uuid = '$a');
		DELETE FROM sample WHERE series_id NOT IN (SELECT id FROM series)"
	export VIRT_WSS_HISTORY=$PWD/h.db
	test_host "$(test_domain web1 $b)"
	says 0 '^WSS OK - 1 guest, working set 2[0-9]% of the balloon \(web1\)' web1 web1 $b
	[ "$(grep -o "wss_percent" out | wc -l)" = 1 ]
	test_host "$(test_domain web1 $a)"
	says 3 '^WSS UNKNOWN - web1: no sample in the history' web1
}

@test "by the service, too, of two guests of one name the one measured last counts" {
	local a=0000000a-0000-4000-8000-000000000000 b=0000000b-0000-4000-8000-000000000000
	answer "$(guest web1 waiting 64 256 31 | sed -E "s/[0-9a-f]{8}-0000/0000000a-0000/")" \
		"$(guest web1 waiting 250 256 20 | sed -E "s/[0-9a-f]{8}-0000/0000000b-0000/")" \
		"$(guest $a waiting 64 256 31)" >page
	begin_service
	ask 2 "^WSS CRITICAL - web1: working set 98% of 256 MiB \(of several guests named web1 the one measured last, UUID $b\) \|" web1
	# A name that is another guest's UUID.
	ask 3 "$a: the name fits two guests, 'web1' \(UUID $a\) and '$a' \(UUID" $a
	ask 0 '^WSS OK - 1 guest, working set 25% ' --uuid $a
	ask 2 '^WSS CRITICAL - web1: working set 98% ' --uuid $b
	# Each once, however often it is named.
	ask 2 '^WSS CRITICAL - web1: working set 98% of 256 MiB \|' $b $b --uuid
	[ "$(grep -o "wss_percent" out | wc -l)" = 1 ]
}

@test "a libvirt that hangs does not hang it" {
	local call uuid=6695eb01-f6a4-8304-79aa-97f2502e193f
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	"$WSS_BUILDDIR/tests/unit/make-history" "$PWD/h.db" 3 $((64 << 20)) 60 $uuid
	export VIRT_WSS_HISTORY=$PWD/h.db WSS_HANG_FILE=$PWD/hangs
	for call in virConnectListAllDomains virConnectGetType; do
		rm -f hangs
		WSS_HANG=$call: five_seconds says 3 '^WSS UNKNOWN - .*(deadline|timed out)' -t 1
		[ -e hangs ]
	done
	WSS_HANG=virConnectGetType: five_seconds says 3 '^WSS UNKNOWN - .*(deadline|timed out)' -t 1 --uuid $uuid
}

@test "wrong options are UNKNOWN, on standard output" {
	local options
	for options in "-w x" "-w 5:1" "-w :" "-w @" "-c ~" "-c" "-t 0" "--held maybe" "--socket a --history b" \
		"--all a" "--uuid a" "--no-such-option"; do
		# shellcheck disable=SC2086
		says 3 '^WSS UNKNOWN - ' $options
	done
}

@test "an output that cannot be written is not OK" {
	local status=0
	answer "$(guest web1 waiting 64 256 31)" >page
	begin_service
	"$WSS_BUILDDIR/virt-wss" check --socket socket >/dev/full 2>err || status=$?
	[ "$status" != 0 ]
}
