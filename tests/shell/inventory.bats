#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests list over many hosts, and policy, on libvirt's test driver. That driver's
# domains live only as long as its connection: its node file has the domains.

load functions.sh
# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/virt-wss
profile="<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1' time='2026-11-20T18:00:00Z'
	method='mmu' observes='accesses' window='4.02' granularity='4096' confidence='high'
	tool='0.1.0' samples='120' since='2026-11-01T00:00:00Z'>
	<wss:current unit='bytes'>68943872</wss:current><wss:p50 unit='bytes'>1048576</wss:p50>
	<wss:p99 unit='bytes'>2097152</wss:p99></wss:profile>"

# NODE: makes a host with the domains that follow, as NAME=METADATA. -> $uri
node() { # NODE [NAME=METADATA]...
	local dir=$BATS_TEST_TMPDIR/$1 option n=0
	mkdir -p "$dir"
	shift
	echo '<node>' >"$dir/node.xml"
	for option; do
		n=$((n + 1))
		printf "<domain type='test'><uuid>5c5a91e0-0b0d-4c1b-9d5f-%012d</uuid>" "$n" >"$dir/$n.xml"
		printf '%s' "<name>${option%%=*}</name><memory>1024</memory>" \
			"<metadata>${option#*=}</metadata><os><type>hvm</type></os></domain>" >>"$dir/$n.xml"
		echo "<domain file='$dir/$n.xml'/>" >>"$dir/node.xml"
	done
	echo '</node>' >>"$dir/node.xml"
	uri=test://$dir/node.xml
}

teardown() {
	[ -z "${silent_pid-}" ] || kill "$silent_pid" 2>/dev/null || true
}

@test "everything in a profile is shown" {
	node a "web1=$profile" web2=
	wss -c "$uri" list --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = $'web1\nweb2' ]
	[ "$(field p99_bytes | head -n 1)" = 2097152 ]
	[ "$(field samples | head -n 1)" = 120 ]
	[ "$(field since | head -n 1)" = 2026-11-01T00:00:00Z ]
	[ "$(field confidence | head -n 1)" = high ]
	[ "$(field host | head -n 1)" = "$uri" ]
	[ -z "$(field coarse_why | head -n 1)" ]
	# Why a guest has upper limits only.
	node a "web1=${profile/tool=/coarse-why=\'QEMU has no dirty log\' tool=}"
	wss -c "$uri" list --wide
	[[ $out == *COARSE-WHY* && $out == *"QEMU has no dirty log"* ]]
	wss -c "$uri" list --output json
	[[ $out == *'"coarse_why": "QEMU has no dirty log"'* ]]
	# None is no reason, and too long a one is none that the service wrote.
	node a "web1=${profile/tool=/coarse-why=\'$(printf '%0600d' 0)\' tool=}"
	wss -c "$uri" list
	[ "$status" = 1 ]
	[[ $err == *"no valid coarse-why"* ]]
}

@test "a profile from a clock that was ahead does not pass for a new one" {
	node a "web1=${profile/2026-11-20T/$(($(date +%Y) + 2))-11-20T}" "web2=${profile/2026-11-20T18:00:00Z/$(date -u +%FT%TZ)}"
	wss -c "$uri" list
	[ "$status" = 0 ]
	grep -qE '^web1 +- +65.8 MiB ' <<<"$out"
	grep -qE '^web2 +[0-9]+ s +65.8 MiB ' <<<"$out"
	wss -c "$uri" list --output json
	[ "$(grep -c age_seconds <<<"$out")" = 1 ]
}

@test "list says what to do while nothing has been published" {
	node a web1= web2=
	wss -c "$uri" list
	[ "$status" = 0 ]
	[[ $err == *"no profile has been published yet: start virt-wss serve"* ]]
	wss -c "$uri" list web1
	[[ $err == *"no profile has been published yet"* ]]
	wss -c "$uri" list --output json
	[ -z "$err" ]
	node b "web1=$profile" web2=
	wss -c "$uri" list
	[ -z "$err" ]
	node c
	wss -c "$uri" list
	[[ $err != *"published"* ]]
}

@test "several hosts appear in the order given, with the host in the table" {
	node a "web1=$profile"
	a=$uri
	node b db1=
	wss -c "$uri" list -c "$a" --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = $'db1\nweb1' ]
	printf '# ours\n\n  %s \r\n%s\n' "$a" "$uri" >"$BATS_TEST_TMPDIR/hosts"
	wss list --hosts "$BATS_TEST_TMPDIR/hosts" --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = $'web1\ndb1' ]
	wss list --hosts "$BATS_TEST_TMPDIR/hosts"
	[[ $out == *HOST* && $out == *web1*"$a"* ]]
	wss -c "$a" list
	[[ $out != *HOST* ]]
}

@test "an unreachable host is named, the others are listed, exit 3" {
	node a "web1=$profile"
	wss -c "qemu+unix:///system?socket=/nowhere/socket" list -c "$uri" --output csv
	[ "$status" = 3 ]
	[[ $err == *nowhere* && $out == *web1* ]]
	# A host without domains has answered, too.
	node empty
	wss -c "qemu+unix:///system?socket=/nowhere/socket" list -c "$uri" --output csv
	[ "$status" = 3 ]
	wss -c "qemu+unix:///system?socket=/nowhere/socket" list -c nonsense:///x
	[ "$status" = 4 ]
}

@test "a host that hangs does not delay the others" {
	command -v perl >/dev/null || skip "needs perl"
	silent_socket
	node a "web1=$profile"
	wss -c "qemu+unix:///system?socket=$silent" list -c "$uri" --timeout 2s --output csv
	[ "$status" = 3 ]
	[[ $out == *web1* && $err == *"no answer within 2"* ]]
}

@test "two hundred hosts, most of them unreachable" {
	node a "web1=$profile"
	for ((i = 0; i < 200; i++)); do
		[ $((i % 10)) = 0 ] && echo "$uri" || echo "qemu+unix:///system?socket=/nowhere/$i"
	done >"$BATS_TEST_TMPDIR/hosts"
	wss list --hosts "$BATS_TEST_TMPDIR/hosts" --output csv
	[ "$status" = 3 ]
	[ "$(field domain | grep -c web1)" = 20 ]
	[ "$(field error | grep -c nowhere)" = 180 ]
}

@test "invalid host files and options are refused" {
	wss list --hosts /nowhere/hosts
	[ "$status" = 2 ]
	: >"$BATS_TEST_TMPDIR/hosts"
	wss list --hosts "$BATS_TEST_TMPDIR/hosts"
	[ "$status" = 2 ]
	printf 'test:///default\n\0\nnonsense:///gone\n' >"$BATS_TEST_TMPDIR/hosts"
	wss list --hosts "$BATS_TEST_TMPDIR/hosts"
	[ "$status" = 2 ]
	head -c 2000000 /dev/zero | tr '\0' 'x' >"$BATS_TEST_TMPDIR/hosts"
	wss list --hosts "$BATS_TEST_TMPDIR/hosts"
	[ "$status" = 2 ]
	wss -c test:///default list --hosts "$BATS_TEST_TMPDIR/hosts"
	[ "$status" = 2 ]
	wss -c test:///default list -c test:///default test
	[ "$status" = 2 ]
	wss -c test:///default list --timeout 0
	[ "$status" = 2 ]
}

@test "hostile names and metadata damage no output" {
	local evil='a"b,c&lt;d&amp;&apos;;&#10;$(id) =1+1 é日本 &#x9b;31m' large
	large="<x:note xmlns:x='urn:x'>$(head -c 3000000 /dev/zero | tr '\0' 'y')</x:note>"
	node a "$evil=$profile$large" \
		"evil2=<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1'>&lt;script&gt;</wss:profile>" \
		"evil3=<wss:profile xmlns:wss='urn:virt-wss:profile:1'>$(head -c 100000 /dev/zero | tr '\0' 'y')</wss:profile>"
	for format in table csv json; do
		wss -c "$uri" list --output $format >/dev/null
		[ "$status" = 3 ]
		[[ $out != *$'\xc2\x9b'* && $err != *$'\xc2\x9b'* ]]
		[ "${#out}" -lt 10000 ]
	done
	perl -MJSON::PP -e '
		$rows = decode_json(join("", <STDIN>))->{profiles};
		@$rows == 3 or die "rows"; (grep { $_->{domain} =~ /a"b,c<d/ && $_->{p50_bytes} == 1048576 } @$rows) == 1
			or die "name"; (grep { $_->{error} } @$rows) == 2 or die "errors"' <<<"$out"
	wss -c "$uri" list --output csv
	[ "$(wc -l <<<"$out")" = 4 ]
	[ "$(grep -c '^[=+@-]' <<<"$out")" = 0 ]
}

@test "rows of guests that fail have the UUID, and the name as other commands have it, however long" {
	local long wide
	long=$(head -c 3000 /dev/zero | tr '\0' n) wide=$(printf 'ä%.0s' {1..140})
	node a "$long=" "$wide=" $'a\u202eb=' "end$long="
	wss -c "$uri" recommend --output json
	printf '%s' "$out" >"$BATS_TEST_TMPDIR/recommended"
	wss -c "$uri" sample --output json
	[ "$status" = 1 ]
	/usr/bin/python3 - "$BATS_TEST_TMPDIR/recommended" 3<<<"$out" <<-'END'
		import json, os, sys
		expected = {r["uuid"]: r["domain"] for r in json.load(open(sys.argv[1]))["recommendations"]}
		samples = {r["uuid"]: r["domain"] for r in json.load(os.fdopen(3))["samples"]}
		assert len(samples) == 4 and samples == expected, (samples, expected)
		assert any("\u202e" in name for name in samples.values()), samples
	END
}

@test "policies are shown" {
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' opt-out='yes'>
		<p:minimum unit='MiB'>512</p:minimum><p:headroom>30</p:headroom></p:policy>" web2= \
		"web3=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:minimum>x</p:minimum></p:policy>"
	wss -c "$uri" policy get --output csv
	[ "$status" = 3 ]
	[ "$(field opt_out)" = $'1\n0\n' ] || [ "$(field opt_out | head -n 2)" = $'1\n0' ]
	[ "$(field minimum_bytes | head -n 1)" = 536870912 ]
	[ "$(field headroom_percent | head -n 1)" = 30 ]
	[[ $err == *web3*"not a size"* ]]
	wss -c "$uri" policy get web1 web2
	[ "$status" = 0 ]
	wss -c "$uri" policy get nobody
	[ "$status" = 1 ]
}

# libvirt reads such a size as KiB; virt-wss used to read it as bytes.
@test "a policy file that names a guest of libvirt is said not to be read" {
	local root=$BATS_TEST_TMPDIR/root service
	node a web1= web2=
	mkdir -p "$root/etc/virt-wss/policy.d"
	printf '[web1]\nopt-out = yes\nperiod = 1h\n[elsewhere]\nopt-out = yes\n' >"$root/etc/virt-wss/policy.d/1.conf"
	export VIRT_WSS_SYSROOT=$root
	wss -c "$uri" policy get
	[ "$status" = 0 ]
	[ "$(grep -c '/policy\.d/1\.conf:2: \[web1\] is not read: .* virt-wss policy set$' <<<"$err")" = 1 ]
	[[ $err != *elsewhere* ]]
	wss -c "$uri" policy get web2
	[[ $err != *policy.d* ]]
	"$virt_wss" -c "$uri" serve --no-store --no-publish --textfile "$BATS_TEST_TMPDIR/metrics" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
	service=$!
	wait_until 300 grep -q 'warning: .*/1\.conf:2: \[web1\] is not read: ' "$BATS_TEST_TMPDIR/log"
	kill "$service"
	wait "$service" || true
	[ "$(grep -c 'policy\.d' "$BATS_TEST_TMPDIR/log")" = 1 ]
}

@test "a size in a policy without a unit is refused by whoever reads it" {
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:minimum>5</p:minimum></p:policy>"
	for command in "policy get" sample recommend balloon "policy set --maximum 1GiB"; do
		# shellcheck disable=SC2086
		wss -c "$uri" $command web1
		[ "$status" = 1 ]
		[ "$(grep -c policy <<<"$err")" = 1 ]
		[[ $err == *"web1: policy in the metadata: <minimum>5</minimum> has no unit (example: <minimum unit='MiB'>512</minimum>)"* ]]
	done
	wss -c "$uri" policy clear web1
	[ "$status" = 0 ]
	node a "web1=<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1' time='2026-11-20T18:00:00Z'
		method='mmu' observes='accesses' window='4.02' granularity='4096' confidence='high' tool='0.1.0'>
		<wss:current>5</wss:current></wss:profile>"
	wss -c "$uri" list web1
	[ "$status" = 1 ]
	[[ $err == *"web1: "*"not a number of bytes"* ]]
}

@test "on a terminal an empty table says that all guests opted out" {
	local out="<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' opt-out='yes'/>"
	node a "web1=$out"
	script -qec "'$virt_wss' -c '$uri' sample --all --window 100ms" "$BATS_TEST_TMPDIR/typescript" >/dev/null </dev/null
	grep -q "no guest was measured: the only running guest opted out by policy" "$BATS_TEST_TMPDIR/typescript"
	node b "web1=$out" "web2=$out"
	script -qec "'$virt_wss' -c '$uri' sample --all --window 100ms" "$BATS_TEST_TMPDIR/typescript" >/dev/null </dev/null
	grep -q "no guest was measured: all running guests opted out by policy" "$BATS_TEST_TMPDIR/typescript"
}

@test "a guest that opted out is left alone, and missed in no round" {
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' opt-out='yes'/>"
	wss -c "$uri" sample web1 --window 100ms
	[ "$status" = 5 ]
	[[ $err == *"opts out"* ]]
	wss -c "$uri" sample --all --window 100ms
	[ "$status" = 0 ]
	[ -z "$err" ]
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:period>soon</p:period></p:policy>"
	wss -c "$uri" sample web1 --window 100ms
	[ "$status" = 1 ]
	[[ $err == *policy*period* ]]
}

@test "no command touches a guest that opted out" {
	local command
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' opt-out='yes'/>"
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	for command in sample "sample --store --publish" profile "record -o $BATS_TEST_TMPDIR/r" methods \
		balloon "balloon --apply"; do
		# shellcheck disable=SC2086
		wss -c "$uri" $command web1
		[ "$status" = 5 ]
		[[ $err == *"virt-wss: error: web1: left alone: its policy opts out" ]]
		[[ $command != record* ]] || continue
		# shellcheck disable=SC2086
		wss -c "$uri" $command --all
		[ "$status" = 0 ]
		[[ $out != *web1* && $err != *web1* ]]
	done
	[ ! -e "$BATS_TEST_TMPDIR/r" ]
}

# Such an element makes virDomainGetMetadata() read freed memory, here within this process.
@test "a policy with a prefixed attribute is refused, without asking libvirt for it" {
	local look=(valgrind --quiet --error-exitcode=99)
	command -v valgrind >/dev/null || skip "needs valgrind"
	# valgrind cannot run a program with a sanitizer's shadow memory.
	! nm -D "$virt_wss" | grep -qE '__(asan|tsan)_init' || look=()
	for prefix in p other; do
		node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' $prefix:opt-out='no'/>"
		status=0
		"${look[@]}" "$virt_wss" -c "$uri" policy get web1 \
			2>"$BATS_TEST_TMPDIR/err" || status=$?
		cat "$BATS_TEST_TMPDIR/err"
		[ "$status" = 1 ]
		grep -q "opt-out' has a namespace prefix, which none may have$" "$BATS_TEST_TMPDIR/err"
		wss -c "$uri" policy get
		[ "$status" = 1 ]
		[[ $err == *"namespace prefix"* ]]
	done
	# The namespace may be declared in an outer element, and with any prefix or none.
	node a web1= web2=
	sed -i "s|<metadata>|<metadata xmlns:q='urn:virt-wss:policy:1'><q:policy version='1' opt-out='yes'/>|" \
		"$BATS_TEST_TMPDIR/a/1.xml"
	sed -i "s|<metadata>|<metadata><policy xmlns='urn:virt-wss:policy:1' version='1' opt-out='yes'/>|" \
		"$BATS_TEST_TMPDIR/a/2.xml"
	wss -c "$uri" policy get --output csv
	[ "$status" = 0 ] && [ "$(field opt_out)" = $'1\n1' ]
}

@test "a policy that cannot be read can be cleared" {
	node a "web1=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' optout='yes'/>" \
		"web2=<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'>$(printf '%070000d' 1)</p:policy>"
	wss -c "$uri" policy get
	[ "$status" = 1 ]
	[[ $err == *web1*"unknown attribute 'optout'"*web2*"64 KiB"* ]]
	wss -c "$uri" policy set web1 --minimum 1GiB
	[ "$status" = 1 ]
	wss -c "$uri" policy clear --all
	[ "$status" = 0 ]
}

@test "invalid policies are refused" {
	for words in "" "frobnicate web1" "set" "set test" "set --minimum 1GiB" "clear" \
		"get test --minimum 1GiB" "set test --minimum lots" "set test --headroom 2000" \
		"set test --headroom -1" "set test --opt-out maybe" "set test --period 0" \
		"get test --all"; do
		# shellcheck disable=SC2086
		wss -c test:///default policy $words
		[ "$status" = 2 ]
		[ "$(wc -l <<<"$err")" = 1 ]
	done
	wss -c test:///default policy set test --minimum 2GiB --maximum 1GiB
	[ "$status" = 2 ] || [ "$status" = 1 ]
	wss -c test:///default policy set test --minimum 1GiB --headroom 25% --period 5m
	[ "$status" = 0 ]
	wss -c test:///default policy clear test
	[ "$status" = 0 ]
	wss -c test:///default policy clear nobody
	[ "$status" = 1 ]
}
