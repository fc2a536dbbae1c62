#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests recommend on libvirt's test driver, with an invented history.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
uuid=11111111-2222-3333-4444-55555555000
# A balloon that lacks nothing.
balloon="<devices><memballoon model='virtio' autodeflate='on' freePageReporting='on'><stats period='10'/></memballoon></devices>"

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
}

# Makes a host with web1 to webN, of 4 GiB each; web1 has the given metadata.
node() { # N [METADATA] -> LIBVIRT_DEFAULT_URI
	local i
	{
		echo '<node>'
		for ((i = 1; i <= $1; i++)); do
			printf '%s' "<domain type='test'><name>web$i</name><uuid>$uuid$i</uuid>" \
				"<memory unit='GiB'>4</memory><os><type>hvm</type></os>${DEVICES-$balloon}</domain>" \
				>"$BATS_TEST_TMPDIR/$i.xml"
			echo "<domain file='$BATS_TEST_TMPDIR/$i.xml'/>"
		done
		echo '</node>'
	} >"$BATS_TEST_TMPDIR/node.xml"
	[ -z "${2-}" ] || sed -i "s|<os>|<metadata>$2</metadata><os>|" "$BATS_TEST_TMPDIR/1.xml"
	export LIBVIRT_DEFAULT_URI=test://$BATS_TEST_TMPDIR/node.xml
}

# MAKE_HISTORY: further options.
history_of() { # N-SAMPLES BYTES STEP GUEST...
	local n=$1 bytes=$2 step=$3
	shift 3
	# shellcheck disable=SC2086
	"$WSS_BUILDDIR/tests/unit/make-history" ${MAKE_HISTORY-} "$VIRT_WSS_HISTORY" "$n" "$bytes" "$step" "${@/#/$uuid}"
}

on_terminal() { # ARGUMENT...
	script -qec "$(printf '%q ' "$virt_wss" "$@") 2>&1" /dev/null </dev/null |
		tr -d '\r' >"$BATS_TEST_TMPDIR/out"
	out=$(cat "$BATS_TEST_TMPDIR/out")
	printf '%s\n' "$out"
}

between() { # VALUE LOW HIGH, in MiB
	[ "$1" -ge $(($2 << 20)) ] && [ "$1" -le $(($3 << 20)) ]
}

@test "without a history everything is unknown, which is no failure" {
	node 2
	wss recommend --output csv
	[ "$status" = 0 ]
	[ "$(field status)" = $'unknown\nunknown' ]
	[ -z "$(field recommended_bytes | tr -d '\n')" ]
	[[ $err == *"no history yet"* ]]
	# A named history that does not exist is an error.
	wss recommend --history "$BATS_TEST_TMPDIR/none"
	[ "$status" = 1 ]
}

@test "too early is reported, not guessed" {
	node 1
	history_of 9 $((1 << 30)) 300 1
	wss recommend web1 --output csv
	[ "$status" = 0 ]
	[ "$(field status)" = "too early" ]
	[ -z "$(field recommended_bytes)" ]
	[ "$(field samples)" = 9 ]
}

@test "windows that see only writes size nobody" {
	node 2
	MAKE_HISTORY=-o history_of 40 $((1000 << 20)) 300 1 2
	history_of 12 $((1000 << 20)) 300 2
	wss recommend --output csv
	[ "$status" = 0 ]
	[ "$(field status)" = $'unknown\nok' ]
	[ "$(field samples)" = $'\n12' ]
	wss recommend
	[ "$status" = 0 ]
	[ "$(awk '$1 ~ /^web/ { print $2 }' <<<"$out")" = $'unknown\nok' ]
	grep -Fx 'virt-wss: web1: note: its windows saw only writes, which do not show how much it needs' <<<"$err"
	grep -Fx 'virt-wss: web2: note: leaves out 40 windows of another method, granularity or length' <<<"$err"
}

@test "ten windows: the peak with headroom; many: the percentile" {
	node 2
	history_of 10 $((1000 << 20)) 300 1
	history_of 1800 $((1000 << 20)) 300 2
	wss recommend web1 web2 --output csv
	[ "$status" = 0 ]
	[ "$(field confidence)" = $'low\nlow' ]
	# The second one has a size to keep for a week.
	between "$(field recommended_bytes | sed -n 1p)" 1290 1460
	between "$(field recommended_bytes | sed -n 2p)" 1640 1660
	for i in 1 2; do
		between "$(field p50_bytes | sed -n ${i}p)" 1000 1080
		between "$(field reclaimable_bytes | sed -n ${i}p)" 2500 3200
	done
	wss recommend web2 --headroom 0 --percentile 50 --output csv
	between "$(field recommended_bytes)" 1040 1110
	wss recommend web2 --span 1h --output csv
	[ "$(field samples)" -le 24 ]
	wss recommend web2 --minimum 2GiB --output csv
	[ "$(field recommended_bytes)" = $((2 << 30)) ]
}

@test "sizes are rounded to flavours or steps, and say so" {
	node 2
	history_of 10 $((1000 << 20)) 300 1
	history_of 10 $((4000 << 20)) 300 2
	printf '# our sizes\nm1 1GiB\nm2 2GiB\n4GiB\n' >"$BATS_TEST_TMPDIR/flavours"
	wss recommend web1 web2 --flavours "$BATS_TEST_TMPDIR/flavours" --output csv
	[ "$status" = 0 ]
	[ "$(field recommended_bytes | sed -n 1p)" = $((2 << 30)) ]
	[ "$(field flavour)" = m2 ]
	[ "$(field reason)" = $'rounding\npeak' ]
	wss recommend web2 --flavours "$BATS_TEST_TMPDIR/flavours"
	[[ $err == *"web2: note: no flavour is as large as "*", so the size is not rounded"* ]]
	wss recommend web1 --step 1GiB --output csv
	[ "$(field recommended_bytes)" = $((2 << 30)) ]
	[ "$(field reason)" = rounding ]
	wss recommend web1 --step 1000KiB
	[ "$status" = 2 ]
	wss recommend web1 --step 1GiB --flavours "$BATS_TEST_TMPDIR/flavours"
	[ "$status" = 2 ]
	echo 'm1 many' >"$BATS_TEST_TMPDIR/flavours"
	wss recommend web1 --flavours "$BATS_TEST_TMPDIR/flavours"
	[ "$status" = 1 ]
	[[ $err == *"--flavours "*"/flavours: line 1: flavour: "* ]]
}

@test "the table shows where the peak replaces the requested percentile" {
	node 3
	history_of 10 $((1000 << 20)) 300 1
	history_of 1800 $((1000 << 20)) 300 2
	wss recommend --wide
	[ "$status" = 0 ]
	[ "$(grep -E '^(DOMAIN|GUESTS)' <<<"$out" | grep -oE 'PCTILE|PROB')" = $'PCTILE\nPROB' ]
	grep -E '^web1 .* peak ' <<<"$out"
	grep -E '^web2 .* 99\.0% ' <<<"$out"
	# 299 hours would be enough; web3 is unknown, and its dash does not mean the peak.
	tail -n 1 <<<"$out" | grep -E '^ +3 +1 .* peak '
	[ "$(grep -c ' peak  ' <<<"$out")" = 3 ]
	wss recommend --wide --percentile 60 --probability 60
	[ "$(grep -c ' 60\.0% ' <<<"$out")" = 3 ]
	[[ $out != *" peak "* ]]
}

@test "the columns of the table are aligned, however long the names are" {
	local long=a-guest-whose-name-is-long
	node 2
	sed -i "s|<name>web2<|<name>$long<|" "$BATS_TEST_TMPDIR/2.xml"
	history_of 10 $((1000 << 20)) 300 1 2
	for guests in "" "web1 $long"; do
		# shellcheck disable=SC2086
		wss recommend $guests
		[ "$status" = 0 ]
		# Only DOMAIN and the two blanks after it come before STATUS and "ok".
		head -n 1 <<<"$out" | grep -E "^DOMAIN {$((${#long} - 4))}STATUS "
		grep -E "^web1 {$((${#long} - 2))}ok " <<<"$out"
		grep -E "^$long  ok " <<<"$out"
	done
}

@test "a maximum below the need is the size, and a note says what the guest lacks" {
	node 1 "<policy xmlns='urn:virt-wss:policy:1' version='1'><maximum unit='MiB'>512</maximum></policy>"
	history_of 20 $((1000 << 20)) 300 1
	wss recommend --output csv
	[ "$(field status)" = ok ]
	[ "$(field recommended_bytes)" = $((512 << 20)) ]
	on_terminal recommend
	[[ $out == *"web1: note: the 512 MiB that its policy allows at most are too little: it needs 1."*" GiB"* ]]
	node 1 "<policy xmlns='urn:virt-wss:policy:1' version='1'><maximum unit='GiB'>3</maximum></policy>"
	on_terminal recommend
	[[ $out != *"too little"* ]]
}

@test "nothing can be reclaimed from a guest that does not run" {
	node 2
	history_of 20 $((1000 << 20)) 300 1 2
	sed -i "s|<domain type='test'>|<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>|
		s|</os>|</os><test:runstate>5</test:runstate>|" "$BATS_TEST_TMPDIR/1.xml"
	for guests in "" "web1 web2"; do
		# shellcheck disable=SC2086
		wss recommend $guests --output csv
		[ "$status" = 0 ]
		[ "$(field status)" = $'ok\nok' ]
		[ -z "$(field held_bytes | head -n 1)$(field reclaimable_bytes | head -n 1)" ]
		[ "$(field reclaimable_bytes | tail -n 1)" -gt 0 ]
		between "$(field recommended_bytes | head -n 1)" 1290 1350
	done
}

@test "a guest that is paused, suspended or crashed counts with what it has" {
	local state
	for state in 3 6 7; do
		node 2
		sed -i "s|<domain type='test'>|<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>|
			s|</memory>|&<currentMemory unit='MiB'>768</currentMemory>|
			s|</os>|</os><test:runstate>$state</test:runstate>|" "$BATS_TEST_TMPDIR/1.xml"
		wss recommend --host --output json
		[[ $out == *'"domain": "web1"'*'"reason": "paused"'*'"domain": "web2"'*"\"need_bytes\": $(((4 << 30) + (768 << 20)))"* ]]
	done
}

@test "the policy overrides the options" {
	node 1 "<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:maximum unit='MiB'>1100</p:maximum><p:headroom>100</p:headroom></p:policy>"
	history_of 20 $((1000 << 20)) 300 1
	wss recommend web1 --output csv
	[ "$(field recommended_bytes)" = $((1100 << 20)) ]
	[ "$(field headroom_percent)" = 100 ]
}

@test "--what-if: how often the size was exceeded" {
	node 2
	history_of 100 $((1000 << 20)) 300 1
	wss recommend web1 --what-if 525MiB --output csv
	[ "$(field what_if_exceeded)" = 1.000000 ]
	wss recommend web1 --what-if 1050MiB --output csv
	[[ $(field what_if_exceeded) == 0.4* || $(field what_if_exceeded) == 0.5* ]]
	wss recommend web1 --what-if 3GiB --output csv
	[ "$(field what_if_exceeded)" = 0.000000 ]
	# It touches little, and cannot give up more than that.
	MAKE_HISTORY="-k $((400 << 20))" history_of 100 $((100 << 20)) 300 2
	wss recommend web2 --what-if 300MiB --output csv
	[ "$(field what_if_exceeded)" = 1.000000 ]
	wss recommend web2 --what-if 300MiB
	[[ $err == *'web2: note: 300 MiB is less than the 400 MiB that it cannot give up, touched or not (statistics)'* ]]
	wss recommend web2 --what-if 500MiB
	[ "$status" = 0 ]
	[[ $err != *'is less than'* ]]
}

# 97 MiB, of which windows of 500 ms see 41: at random, in a loop, and in pages of 2
# MiB.
@test "a set that outgrew its windows is extrapolated, with low confidence" {
	node 4
	MAKE_HISTORY='-w 500 -t 909 -s' history_of 10 $((97 << 20)) 6 1
	MAKE_HISTORY='-w 500 -t 1183 -s -l' history_of 10 $((97 << 20)) 6 2
	MAKE_HISTORY='-w 500 -t 909 -s -g 2097152' history_of 10 $((97 << 20)) 6 3
	# Enough windows for any percentile, within a week.
	MAKE_HISTORY='-w 500 -t 909 -s' history_of 1000 $((97 << 20)) 700 4
	wss recommend --minimum 1MiB --span 10d --output csv
	[ "$status" = 0 ]
	[ "$(field confidence)" = $'low\nlow\nlow\nlow' ]
	for i in 1 2 3 4; do
		between "$(field peak_bytes | sed -n ${i}p)" 41 47
		between "$(field recommended_bytes | sed -n ${i}p)" 107 300
		between "$(field grown_bytes | sed -n ${i}p)" 107 300
	done
	# The host must hold the extrapolated sets, too.
	wss recommend --minimum 1MiB --span 10d --output json
	perl -MJSON::PP -e '
		decode_json(join("", <STDIN>))->{host}{needed_bytes} >= 4 * 107 * 2**20 or die' <<<"$out"
	# The same guest with windows that are long enough.
	rm "$VIRT_WSS_HISTORY"*
	MAKE_HISTORY='-w 8000 -t 909 -s' history_of 1000 $((97 << 20)) 700 1
	wss recommend web1 --minimum 1MiB --span 10d --output csv
	# For eight days are no four weeks.
	[ "$(field confidence)" = low ]
	[ -z "$(field grown_bytes)" ]
	between "$(field recommended_bytes)" 116 130
}

@test "notes: what the sizes are based on, what they leave out, and what grew" {
	node 4
	history_of 300 $((1000 << 20)) 300 1 2
	MAKE_HISTORY='-w 500 -t 909 -s' history_of 10 $((97 << 20)) 6 3
	MAKE_HISTORY='-w 8000 -g 2097152' history_of 7 $((1000 << 20)) 300 1
	MAKE_HISTORY=-d history_of 1 $((1000 << 20)) 300 1
	wss recommend
	[ "$status" = 0 ]
	grep -Fx 'virt-wss: web1, web2: based on windows of 4 s by mmu at 4 KiB granularity' <<<"$err"
	grep -Fx 'virt-wss: web3: based on windows of 500 ms by mmu at 4 KiB granularity' <<<"$err"
	grep -Fx 'virt-wss: web1: note: leaves out 1 degraded window and 7 windows of another method, granularity or length' <<<"$err"
	grep -E '^virt-wss: web3: note: still growing when the windows of 500 ms ended, by 8[0-9]% with each doubling of time; 4[0-9.]+ MiB extrapolated to 2[0-9]+ MiB; longer' <<<"$err"
	[ "$(grep -cE '^virt-wss: web[12]: for 7 d: needs at most 1\.61 GiB in [0-9]+ of [0-9]+ hours, 2 days on record; no past hold yet to try such a size on$' <<<"$err")" = 2 ]
	[ "$(wc -l <<<"$err")" = 6 ]
	wss recommend web1 --output csv
	[ "$(field degraded_samples)" = 1 ]
	[ -z "$err" ]
	# Without a growth curve growth is unknown.
	MAKE_HISTORY='-e' history_of 20 $((97 << 20)) 6 4
	wss recommend web4
	[[ $err == *"web4: note: no growth curve shows whether the working set outgrew its windows of 4 s"* ]]
	[[ $out == *" low "* ]]
}

@test "a person at a terminal gets the next step" {
	node 4
	history_of 12 $((300 << 20)) 6 1
	history_of 1000 $((300 << 20)) 700 2
	history_of 3 $((300 << 20)) 300 3
	on_terminal recommend web1
	# 66 s of windows; 1.2 times 318 MiB.
	grep -E '^virt-wss: web1: 1\.[0-9]+ GiB -> 39[0-9] MiB; balloon would free [0-9.]+ [MG]iB on the host; low confidence: 12 windows in 66 s, needs a day of measured hours$' <<<"$out"
	on_terminal recommend
	grep -E '^virt-wss: web2: .*; balloon would free .* on the host; low confidence: [0-9]+ windows in 7 d, needs more days \(2 guests would free .* together\)$' <<<"$out"
	on_terminal recommend web3
	grep -Fx 'virt-wss: web3: too early: 3 of 10 windows' <<<"$out"
	# The guest needs more than it has, or holds no more than it needs.
	on_terminal recommend web1 --minimum 8GiB
	grep -E '^virt-wss: web1: 1\.[0-9]+ GiB is less than it needs \(8 GiB\); low confidence' <<<"$out"
	wss recommend web1
	[[ $err != *"would free"* ]]
}

@test "memory that was idle for a day: for certain, at most, or why it is not known" {
	node 6
	MAKE_HISTORY='-c 90000' history_of 12 $((1000 << 20)) 300 1
	MAKE_HISTORY='-C 90000' history_of 12 $((1000 << 20)) 300 2
	MAKE_HISTORY='-C 80000' history_of 12 $((1000 << 20)) 300 3
	MAKE_HISTORY='-c 90000 -a 3700' history_of 12 $((1000 << 20)) 300 4
	history_of 12 $((1000 << 20)) 300 5
	wss recommend
	grep -Fx 'virt-wss: web1: note: 500 MiB has been idle for 24 h and can certainly be reclaimed; at most 750 MiB may have been idle (upper limit only)' <<<"$err"
	grep -Fx 'virt-wss: web2: note: idle memory is not known: only 75% of the last 24 h was observed; at most 750 MiB was idle' <<<"$err"
	grep -E '^virt-wss: web3: note: idle memory is not known yet: watched for 22 h of the 24 h needed$' <<<"$err"
	grep -E '^virt-wss: web4: note: which memory is idle is unknown: serve last reported it 6[12] min ago$' <<<"$err"
	[[ $err != *"web5: note"* && $err != *"web6: note"* ]]
	wss recommend web1 web2 web3 web4 web5 web6 --output csv
	[ "$(field cold_status | paste -sd,)" = "ok,gaps,too early,stale,unwatched,unwatched" ]
	[ "$(field cold_24h_low_bytes | paste -sd,)" = "$((500 << 20)),,,,," ]
	[ "$(field cold_24h_high_bytes | paste -sd,)" = "$((750 << 20)),$((750 << 20)),$((750 << 20)),,," ]
	wss recommend web2 --output json
	perl -MJSON::PP -e '
		$r = decode_json(join("", <STDIN>))->{recommendations}[0];
		$r->{cold_24h_high_bytes} == 750 << 20 && !defined $r->{cold_24h_low_bytes} or die' <<<"$out"
	# Of what a smaller size would free, so much is certain.
	on_terminal recommend web1
	grep -E '^virt-wss: web1: .* would free 2\.[0-9]+ GiB on the host, 500 MiB of it idle for 24 h; low confidence' <<<"$out"
	# A guest that does not run has no memory.
	sed -i "s|<domain type='test'>|<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>|
		s|</os>|</os><test:runstate>5</test:runstate>|" "$BATS_TEST_TMPDIR/1.xml"
	wss recommend web1 --output csv
	[ "$(field cold_status)" = unwatched ]
	[ -z "$(field cold_24h_low_bytes)" ]
}

@test "a guest is not sized below what it cannot give up, nor where that is unknown" {
	node 4
	MAKE_HISTORY="-k $((2 << 30))" history_of 12 $((1000 << 20)) 300 1
	MAKE_HISTORY="-k 0" history_of 24 $((1000 << 20)) 300 2 3
	sed -i "s/freePageReporting='on'//" "$BATS_TEST_TMPDIR/2.xml"
	history_of 12 $((1000 << 20)) 300 4
	# The third one has run for an hour with a smaller balloon.
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE sample SET balloon_bytes = 1500 << 20 WHERE series_id IN
		(SELECT series.id FROM series JOIN guest ON guest.id = guest_id WHERE uuid = '${uuid}3')"
	wss recommend web1 web2 web3 web4 --output csv
	[ "$status" = 0 ]
	[ "$(field status | paste -sd,)" = "ok,no size,ok,ok" ]
	[ "$(field reason | paste -sd,)" = "memory in use,,memory in use,peak" ]
	[ "$(field floor_is | paste -sd,)" = "statistics,,ballooning,statistics" ]
	[ "$(field floor_bytes | sed -n 3p)" = $((1500 << 20)) ]
	# 2 GiB, and a fifth of the set.
	between "$(field recommended_bytes | sed -n 1p)" 2260 2280
	[ -z "$(field recommended_bytes | sed -n 2p)$(field reclaimable_bytes | sed -n 2p)" ]
	between "$(field recommended_bytes | sed -n 3p)" 1500 1500
	# Of 5 GB, once it is started with the size.
	[ "$(field boot_saving_bytes | sed -n 3p)" = $(($(field assigned_bytes | sed -n 3p) - (1500 << 20))) ]
	[ -z "$(field boot_saving_bytes | sed -n 2p)" ]
	for i in 1 2 3 4; do
		between "$(field need_bytes | sed -n ${i}p)" 1290 1460
	done
	wss recommend web2
	grep -E '^virt-wss: web2: note: no size: its working set of 1\.[0-9]+ GiB asks for 1\.[0-9]+ GiB with headroom, but the size also depends on memory that it holds and does not touch, which is unknown without balloon statistics$' <<<"$err"
	grep -Fx "virt-wss: web2: no size without balloon statistics, as it also depends on memory that a guest holds and does not touch: they are asked for, and none has come: load the balloon driver in the guest" <<<"$err"
	[[ $err != *"->"* ]]
	# Nor is a size that no window exceeded known to suffice.
	wss recommend web2 --what-if 3GiB
	grep -qE '^web2 +no size +- +3 GiB +-$' <<<"$out"
	grep -Fx 'virt-wss: web2: note: what it cannot give up, touched or not, is unknown: 3 GiB may be less, however rarely its windows touched more' <<<"$err"
	wss recommend web2 --what-if 1050MiB
	grep -qE '^web2 .* >=[1-9][0-9.]+%$' <<<"$out"
	wss recommend web2 --what-if 500MiB
	grep -qE '^web2 .* 500 MiB +100.0%$' <<<"$out"
	sed -i "s|<stats period='10'/>||" "$BATS_TEST_TMPDIR/2.xml"
	wss recommend web2
	grep -q 'does not touch: virsh dommemstat DOMAIN --period 10 --live turns them on$' <<<"$err"
	# Of a balloon that is not there no statistics can be asked for.
	sed -i "s|model='virtio'|model='none'|" "$BATS_TEST_TMPDIR/2.xml"
	wss recommend web2
	grep -q 'does not touch: their balloons are missing, see virt-wss methods --config$' <<<"$err"
	sed -i "s|model='none'|model='virtio'|" "$BATS_TEST_TMPDIR/2.xml"
	# In the host's sums each counts with what it holds.
	wss recommend --output json
	[ "$(/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["host"]["needed_bytes"] >> 20)' <<<"$out")" -ge $((2267 + 1500 + 1048 + 1048)) ]
}

@test "the host: guests of status no size count with all their memory, in all sums" {
	node 2
	sed -i "s/freePageReporting='on'//" "$BATS_TEST_TMPDIR"/[12].xml
	MAKE_HISTORY="-k 0" history_of 24 $((100 << 20)) 300 1 2
	wss recommend --output json
	[ "$status" = 0 ]
	host='{ "statuses": [g["status"] for g in d["recommendations"]], **d["host"] }'
	/usr/bin/python3 -c "import json, sys; d = json.load(sys.stdin); h = $host
assert h['statuses'] == ['no size'] * 2 and h['unknown_guests'] == 2, h
assert h['needed_bytes'] == h['assigned_bytes'] > 1000 << 20, h" <<<"$out"
	assigned=$(/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["host"]["assigned_bytes"])' <<<"$out")
	wss recommend --host --output json
	[ "$status" = 0 ]
	/usr/bin/python3 -c "import json, sys; h = json.load(sys.stdin)['host']
assert h['unsized_guests'] == 2 and h['need_bytes'] == $assigned, h" <<<"$out"
	# Beside one with a size, in whose hours the other was measured, too.
	rm "$VIRT_WSS_HISTORY"
	MAKE_HISTORY="-k 0" history_of 24 $((100 << 20)) 300 1
	history_of 24 $((100 << 20)) 300 2
	wss recommend --output json
	[ "$status" = 0 ]
	/usr/bin/python3 -c "import json, sys; h = json.load(sys.stdin)['host']
assert h['unknown_guests'] == 1 and h['needed_bytes'] > $assigned // 2 + (100 << 20), h" <<<"$out"
}

@test "QEMU's own memory is a figure of its own" {
	node 3
	history_of 40 $((1000 << 20)) 300 1
	history_of 140 $((1000 << 20)) 300 2
	history_of 40 $((1000 << 20)) 300 3
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE sample SET qemu_bytes = NULL WHERE series_id IN
		(SELECT series.id FROM series JOIN guest ON guest.id = guest_id WHERE uuid = '${uuid}3')"
	wss recommend web1 web2 web3 --output csv
	[ "$status" = 0 ]
	[ "$(field overhead_bytes | paste -sd,)" = "$((64 << 20)),$((64 << 20))," ]
	[ "$(field overhead_is | paste -sd,)" = peak,p99,unknown ]
}

@test "the host: unknown guests count with all their memory" {
	node 3
	history_of 10 $((1000 << 20)) 300 1 2
	wss recommend --output json
	[ "$status" = 0 ]
	perl -MJSON::PP -e '
		$all = decode_json(join("", <STDIN>));
		@{$all->{recommendations}} == 3 or die "rows";
		$host = $all->{host};
		$host->{guests} == 3 && $host->{unknown_guests} == 1 or die "guests";
		# Two of about 1.1 GiB, and 4 GiB of the third.
		$host->{needed_bytes} > (4096 + 2000) * 2**20 && $host->{needed_bytes} < (4096 + 2300) * 2**20 or die "needed";
		$host->{from_peak} or die "peak";
		$host->{host_bytes} > 0 && exists $host->{fits_bytes} or die "host"' <<<"$out"
	wss recommend
	[[ $out == *UNKNOWN* && $out == *unknown* ]]
	wss recommend --output csv
	[ "$(wc -l <<<"$out")" = 4 ]
}

@test "the host: a guest whose policy cannot be read counts nevertheless" {
	node 2 "<p:policy xmlns:p='urn:virt-wss:policy:1' version='99'/>"
	history_of 10 $((1000 << 20)) 300 1 2
	wss recommend --output json
	[ "$status" = 3 ]
	perl -MJSON::PP -e '
		$host = decode_json(join("", <STDIN>))->{host};
		$host->{guests} == 2 && $host->{unknown_guests} == 1 or die "guests";
		# One of about 1.1 GiB, and 4 GiB of the other.
		$host->{needed_bytes} > (4096 + 1000) * 2**20 or die "needed"' <<<"$out"
}

@test "the host: an overflow does not become a small number" {
	node 4
	history_of 10 $((1000 << 20)) 300 1
	sed -i "s|unit='GiB'>4<|unit='EiB'>7<|" "$BATS_TEST_TMPDIR"/[234].xml
	wss recommend --output json
	[ "$status" = 0 ]
	[[ $out == *'"assigned_bytes": 18446744073709551615'* ]]
	[[ $out == *'"needed_bytes": 18446744073709551615'* ]]
	# The same with QEMU's own memory added.
	[[ $out == *'"fits_bytes": 0,'* ]]
}

@test "an empty table comes with the URI that was asked" {
	echo '<node></node>' >"$BATS_TEST_TMPDIR/empty.xml"
	local uri=test://$BATS_TEST_TMPDIR/empty.xml command
	for command in recommend list "policy get"; do
		# shellcheck disable=SC2086
		wss -c "$uri" $command
		[ "$status" = 0 ]
		grep -Fx "virt-wss: no domain is defined at $uri" <<<"$err"
		# shellcheck disable=SC2086
		wss -c "$uri" $command --output csv
		[[ $err != *defined* ]]
	done
	for command in methods sample balloon "sample --store"; do
		# shellcheck disable=SC2086
		LIBVIRT_DEFAULT_URI=$uri wss $command
		[ "$status" = 0 ]
		grep -Fx "virt-wss: no domain is running at $uri" <<<"$err"
	done
}

@test "a damaged history, and an unknown guest" {
	node 1
	head -c 5000 /dev/urandom >"$VIRT_WSS_HISTORY"
	wss recommend
	[ "$status" = 1 ]
	[ "$(wc -l <<<"$err")" = 1 ]
	rm "$VIRT_WSS_HISTORY"
	# SQLite names a damaged page in its second line.
	history_of 200 $((100 << 20)) 4096 1
	dd if=/dev/urandom of="$VIRT_WSS_HISTORY" bs=4096 seek=2 count=2 conv=notrunc status=none
	wss recommend
	[ "$status" = 1 ]
	[ "$(wc -l <<<"$err")" = 1 ]
	[[ $err == *": damaged: "*": move it away, and the next sample that is stored begins a new one" ]]
	[[ $err != *'?'* ]]
	rm "$VIRT_WSS_HISTORY"
	wss recommend nobody
	[ "$status" = 1 ]
	wss -c nonsense:///x recommend
	[ "$status" = 4 ]
	[[ $err == *"virt-wss: error: cannot connect to libvirt at nonsense:///x: "* ]]
}

@test "a size without a unit is refused, and the policy stays as it was" {
	node 1
	for words in "recommend --what-if 64" "recommend web1 --minimum 256" \
		"policy set web1 --minimum 256" "policy set web1 --maximum 1.5"; do
		# shellcheck disable=SC2086
		wss $words
		[ "$status" = 2 ]
		[ "$(wc -l <<<"$err")" = 1 ]
		[[ $err == *" '${words##* }' has no unit (examples: 512MiB, 2GiB)" ]]
	done
	wss -c test:///default policy set test --minimum 256MiB
	[ "$status" = 0 ]
}

@test "policy set warns of limits that the guest's memory or its need contradicts, with both figures" {
	node 1
	history_of 20 $((1000 << 20)) 60 1
	wss policy set web1 --maximum 512MiB
	[ "$status" = 0 ]
	[[ $err == "virt-wss: warning: web1: the maximum of 512 MiB is below its peak working set of 1.07 GiB" ]]
	wss policy set web1 --minimum 5GiB
	[ "$status" = 0 ]
	[ "$err" = "virt-wss: warning: web1: the minimum of 5 GiB is above its assigned memory of 4 GiB" ]
	# Two windows show a peak, too, though no size; and a guest has its memory also while it does not run.
	rm "$VIRT_WSS_HISTORY"
	history_of 2 $((1000 << 20)) 60 1
	wss policy set web1 --maximum 512MiB
	[[ $err == "virt-wss: warning: web1: the maximum of 512 MiB is below its peak working set of "* ]]
	sed -i "s|<domain type='test'>|<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>|
		s|</os>|</os><test:runstate>5</test:runstate>|" "$BATS_TEST_TMPDIR/1.xml"
	wss policy set web1 --minimum 5GiB
	[ "$err" = "virt-wss: warning: web1: the minimum of 5 GiB is above its assigned memory of 4 GiB" ]
	for words in "--maximum 3GiB" "--minimum 4GiB" "--maximum none" "--headroom 20"; do
		# shellcheck disable=SC2086
		wss policy set web1 $words
		[ "$status" = 0 ]
		[ -z "$err" ]
	done
	rm "$VIRT_WSS_HISTORY"
	wss policy set web1 --maximum 512MiB
	[ "$status" = 0 ]
	[ -z "$err" ]
	[ ! -e "$VIRT_WSS_HISTORY" ]
}

@test "a span shorter than an hour is refused" {
	node 1
	history_of 20 $((1000 << 20)) 60 1
	for command in recommend balloon; do
		wss "$command" --span 10s
		[ "$status" = 2 ]
		[ "$err" = "virt-wss: error: --span: '10s' is less than 1h, and the history adds windows up by the hour" ]
	done
	wss recommend web1 --span 1h --output csv
	[ "$status" = 0 ]
	[ "$(field samples)" = 20 ]
}

@test "invalid options are refused" {
	node 1
	for words in "--span 0" "--span 900d" "--percentile 100" "--percentile 49" "--percentile x" \
		"--percentile 9e1" "--headroom -1" "--headroom 5000" "--what-if lots" "--probability 101" "--minimum x" "--history=" \
		"--keep 1d" "--all web1" "--what-if 64" "--minimum 256"; do
		# shellcheck disable=SC2086
		wss recommend $words
		[ "$status" = 2 ]
		[ "$(wc -l <<<"$err")" = 1 ]
	done
}

@test "a set that fills the memory is said to, and nothing shrinks it" {
	node 1
	history_of 40 $((1000 << 20)) 300 1
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE sample SET maximum_bytes = 1100 << 20, balloon_bytes = 1100 << 20, rss_bytes = 1100 << 20"
	wss recommend
	grep -E '^virt-wss: web1: note: its set of 1\.0[0-9] GiB fills its 1\.07 GiB, so that what it needs is unknown: it may want more, and nothing shrinks it' <<<"$err"
	# By whatever rule.
	wss recommend --headroom 0 --percentile 50 --output csv
	between "$(field recommended_bytes)" 1100 1100
	[ "$(field confidence),$(field reclaimable_bytes)" = low,0 ]
	wss recommend --host --output csv
	[ "$(field reason)" = "its set fills its memory" ]
}

@test "a size below what the guest has just needed says so" {
	node 1
	history_of 672 $((300 << 20)) 3600 1
	wss recommend
	[[ $err != *"needed within the last hold"* ]]
	history_of 1 $((600 << 20)) 3600 1
	wss recommend
	[ "$status" = 0 ]
	grep -E '^virt-wss: web1: note: the size of 49[0-9] MiB is less than the 6[0-9]{2} MiB that it needed within the last hold$' <<<"$err"
	grep -E '^virt-wss: web1: for 7 d: needs at most 49[0-9] MiB in 67[12] of 67[23] hours, (28|29) days on record; 6[0-9]{2} MiB once, [A-Z][a-z]{2} 20[0-9-]{8} [0-9]{2}:00 UTC; such a size would have kept ' <<<"$err"
	grep -E '^web1 .* >= ?49[0-9] MiB ' <<<"$out"
	# Hours above are those above the size that is recommended, not above what was learned.
	wss recommend --output csv
	[ "$(field hours_above),$(field hold_seconds)" = 1,604800 ]
	wss recommend --minimum 2GiB --output csv
	[ "$(field hours_above)" = 0 ]
}

@test "after a day of measured hours the size is learned, for as long as it is to be kept" {
	node 1
	history_of 672 $((300 << 20)) 3600 1
	wss recommend --output csv
	[ "$status" = 0 ]
	# The sets are 300 to 330 MiB, in a cycle of 11 hours: of the largest one 1.5 times.
	between "$(field learned_bytes)" 494 496
	between "$(field recommended_bytes)" 494 496
	[ "$(field reason)" = peak ]
	[ "$(field confidence)" = medium ]
	[ "$(field record_bytes)" = $((330 << 20)) ]
	[ "$(field last_hold_bytes)" = $((330 << 20)) ]
	[ "$(field learned_hours),$(field hours_above)" = 672,0 ]
	[ "$(field holds)" = "$(field holds_kept)" ]
	between "$(($(field holds) << 20))" 17 20
	wss recommend --hold 1d --output csv
	between "$(field learned_bytes)" 379 380
	[ "$(field confidence)" = high ]
	wss recommend
	grep -Ex 'virt-wss: web1: for 7 d: needs at most 495 MiB in 672 of 672 hours, 29 days on record; such a size would have kept (1[789]|20) of (1[789]|20) past holds' <<<"$err"
	# What is asked for by an option, or by the policy, is obeyed.
	local option
	for option in "--headroom 20" "--percentile 99" "--span 7d"; do
		# shellcheck disable=SC2086
		wss recommend $option --output csv
		between "$(field recommended_bytes)" 395 397
		[ -z "$(field learned_bytes)" ]
	done
	node 1 "<w:policy xmlns:w='urn:virt-wss:policy:1' version='1'><w:headroom>50</w:headroom></w:policy>"
	wss recommend --output csv
	[ -z "$(field learned_bytes)" ]
	between "$(field recommended_bytes)" 494 496
}

@test "nothing is learned from an hour that a wrong clock has dated in the future" {
	local learned
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	node 1
	history_of 400 $((300 << 20)) 3600 1
	wss recommend --output csv
	learned=$(field learned_bytes)
	# A year ahead, and ten times as large.
	sqlite3 "$VIRT_WSS_HISTORY" "CREATE TEMP TABLE last AS
		SELECT * FROM summary WHERE level = 3600 ORDER BY start DESC LIMIT 1;
		UPDATE last SET start = start + 31536000, first = first + 31536000, last = last + 31536000,
			max_bytes = 10 * max_bytes;
		INSERT INTO summary SELECT * FROM last"
	wss recommend --output csv
	[ "$(field learned_hours)" = 400 ]
	[ "$(field learned_bytes)" = "$learned" ]
}

@test "less than a day of measured hours is sized by percentile and headroom" {
	node 1
	history_of 20 $((300 << 20)) 3600 1
	wss recommend --output csv
	[ -z "$(field learned_bytes)" ]
	[ "$(field reason)" = peak ]
	between "$(field recommended_bytes)" 395 397
}

@test "JSON has what the guest used in each hour of the week" {
	node 1
	history_of 30 $((300 << 20)) 3600 1
	wss recommend --output json
	/usr/bin/python3 -c '
import json, sys, time
data = json.load(open(sys.argv[1]))
sets = data["recommendations"][0]["week"]["set_bytes"]
assert len(sets) == 168
now = time.gmtime()
hour = now.tm_wday * 24 + now.tm_hour
known = [i for i in range(168) if sets[i] is not None]
assert 30 <= len(known) <= 31, known
assert all((hour - i) % 168 < 32 for i in known), (hour, known)
assert all(300 << 20 <= sets[i] <= 330 << 20 for i in known)' "$BATS_TEST_TMPDIR/out"
}

# Checks the JSON in "out" with Python, where host and guests by their names are set.
room_is() { # PYTHON
	/usr/bin/python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
host, guests = data["host"], {g["domain"]: g for g in data["guests"]}
exec(sys.argv[2])' "$BATS_TEST_TMPDIR/out" "$1"
}

@test "--host: what fits, and whom to shrink first" {
	node 5 "<p:policy xmlns:p='urn:virt-wss:policy:1' version='1' opt-out='yes'/>"
	sed -i 's|<node>|<node><memory>33554432</memory>|' "$BATS_TEST_TMPDIR/node.xml"
	history_of 30 $((600 << 20)) 3600 1
	history_of 30 $((500 << 20)) 3600 2
	history_of 200 $((500 << 20)) 3600 3
	history_of 5 $((500 << 20)) 300 4
	wss recommend --host --output json
	[ "$status" = 0 ]
	room_is '
assert data["schema"] == "virt-wss/host-room/1"
assert [g["domain"] for g in data["guests"]] == ["web3", "web2", "web1", "web4", "web5"], data
# More hours without a violation make the same gain less of a risk.
assert guests["web2"]["violation_share"] > 5 * guests["web3"]["violation_share"]
assert guests["web3"]["above_hours"] == 0 and guests["web3"]["hours"] >= 199
assert [guests["web%d" % i].get("rank") for i in (1, 2, 3, 4, 5)] == [None, 2, 1, None, None]
assert guests["web1"]["reason"] == "opted out"
assert guests["web4"]["reason"] == "too early: 5 of 10 windows"
assert guests["web5"]["reason"] == "unknown: no window"
assert host["guests"] == 5 and host["unsized_guests"] == 2
assert host["host_bytes"] == 32 << 30 and host["reserve_bytes"] == (32 << 30) // 10
assert host["over_hours"] == 1
gain = sum(g["gain_bytes"] for g in guests.values() if "rank" in g)
assert host["free_after_bytes"] == host["free_bytes"] + gain == guests["web2"]["free_after_bytes"]
assert host["fits_bytes"] > host["free_bytes"] > 0
assert "short_bytes" not in host or host["short_bytes"] == 0'
	# The arithmetic again, from what recommend prints: the second largest hour decides at 99 %.
	wss recommend --output json
	mv "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/guests.json"
	wss recommend --host --reserve 8GiB --output json
	room_is '
rows = json.load(open(sys.argv[1].replace("/out", "/guests.json")))
hours = [0] * 168
for row in rows["recommendations"]:
    week = row.get("week", {}).get("set_bytes", [None] * 168)
    flat = row.get("recommended_bytes")
    most = row.get("assigned_bytes", 4 << 30)
    for i in range(168):
        need = most if flat is None else flat if week[i] is None else max(week[i], row["minimum_bytes"])
        hours[i] += min(need, most)
hours.sort()
limit = (24 << 30) - host["overhead_bytes"]
assert host["need_bytes"] == hours[-1], (host, hours[-1])
assert host["fits_bytes"] == limit - hours[-2], (host, limit - hours[-2])'
	wss recommend --host
	[ "$status" = 0 ]
	grep -E '^ *1 +web3 .* exceeded in 0 of [0-9]+ hours$' <<<"$out"
	grep -E '(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]{2}:00' <<<"$out"
	[ "$(awk '{ if (length > n) n = length } END { print n }' <<<"$out")" -le 100 ]
	wss recommend --host --output csv
	[ "$(wc -l <<<"$out")" = 6 ]
}

# Two windows in the hour before last, the only one that was measured.
@test "--host: hours that were measured, in local time, and no risk without enough of them" {
	node 1
	sed -i 's|<node>|<node><memory>33554432</memory>|' "$BATS_TEST_TMPDIR/node.xml"
	history_of 12 $((600 << 20)) 60 1
	TZ=Asia/Kolkata wss recommend --host
	[ "$status" = 0 ]
	grep -E '^ *1 +web1 .* - .* risk needs 24 hours, has [12]$' <<<"$out"
	# Elsewhere the guest has its recommended size, which is larger.
	[[ $out != *:[03]0* ]]
	wss recommend --host --output json
	room_is '
assert "violation_share" not in guests["web1"] and guests["web1"]["rank"] == 1
assert "fits_hour" not in host and "need_hour" not in host, host'
	# All hours were measured, and one of them was the largest.
	rm "$VIRT_WSS_HISTORY"
	history_of 170 $((600 << 20)) 3600 1
	hour=$((($(date +%s) / 3600 - 3) * 3600))
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE summary SET max_bytes = 900 << 20 WHERE level = 3600 AND start = $hour"
	TZ=Asia/Kolkata wss recommend --host --wide --probability 99.9
	grep -F "$(LC_ALL=C TZ=Asia/Kolkata date -d "@$hour" '+%a %H:%M')" <<<"$out"
	wss recommend --host --output json
	room_is 'assert host["need_hour"] == '"$(((hour / 3600 + 72) % 168))"', host'
}

@test "--host: a host that lacks memory, and one whose memory is less than the reserve" {
	node 2
	history_of 30 $((1000 << 20)) 300 1
	wss recommend --host --output json
	[ "$status" = 0 ]
	# The test driver's host has 3 GiB.
	room_is '
assert host["fits_bytes"] == 0 and host["short_bytes"] > 2 << 30, host
assert host["free_bytes"] == 0'
	wss recommend --host --probability 99.9 --output json
	room_is 'assert host["risk"] == 0.001, host'
	wss recommend --host --reserve 4GiB
	[ "$status" = 1 ]
	[[ $err == *"a reserve of 4 GiB is more than the 3 GiB of the host"* ]]
	[ -z "$out" ]
	for arguments in "--host web1" "--reserve 1GiB" "--host --plot x.svg" "--host --what-if 1GiB" "--host --backtest"; do
		# shellcheck disable=SC2086
		wss recommend $arguments
		[ "$status" = 2 ]
	done
}

@test "--host: a guest whose policy cannot be read counts nevertheless" {
	node 2 "<p:policy xmlns:p='urn:virt-wss:policy:1' version='99'/>"
	history_of 10 $((1000 << 20)) 300 1 2
	wss recommend --host --output json
	[ "$status" = 3 ]
	room_is 'assert host["guests"] == 2 and host["unsized_guests"] == 1, host
assert "rank" not in guests["web1"] and guests["web2"]["rank"] == 1'
}

@test "what the configuration costs, with the gain where the history knows it" {
	DEVICES="<devices><memballoon model='none'/></devices>" node 3
	# web2 lacks only something; web3 nothing.
	sed -i "s|<devices>.*</devices>|<devices><memballoon model='virtio'/></devices>|" "$BATS_TEST_TMPDIR/2.xml"
	sed -i "s|<devices>.*</devices>|$balloon|" "$BATS_TEST_TMPDIR/3.xml"
	history_of 30 $((500 << 20)) 3600 1 2 3
	wss recommend --output json
	[ "$status" = 0 ]
	/usr/bin/python3 -c '
import json, sys
rows = {r["domain"]: r for r in json.load(open(sys.argv[1]))["recommendations"]}
web1, = rows["web1"]["configuration"]
assert web1["setting"] == "no balloon device" and web1["blocks"]
# A smaller balloon frees nothing; another configuration would let it free as much as that of web3.
assert rows["web1"]["reclaimable_bytes"] == 0 < rows["web3"]["reclaimable_bytes"]
assert web1["gain_bytes"] == rows["web3"]["reclaimable_bytes"] and "gain_reason" not in web1
assert web1["command"] == "virsh edit web1" and web1["element"].startswith("<memballoon")
web2 = rows["web2"]["configuration"]
assert [c["setting"] for c in web2] == ["no free page reporting", "no balloon statistics", "no autodeflate"]
assert all("gain_bytes" not in c and c["gain_reason"] for c in web2)
assert web2[1]["command"] == "virsh dommemstat web2 --period 10 --live"
assert rows["web3"]["configuration"] == []' "$BATS_TEST_TMPDIR/out"
	wss recommend
	grep -Fx 'virt-wss: web1: note: its memory cannot be reclaimed: no balloon device' <<<"$err"
	[[ $err != *"web2: note"* ]]
	on_terminal recommend
	grep -Fx 'virt-wss: 2 guests could return more memory: see virt-wss methods --config' <<<"$out"
	on_terminal recommend web1
	grep -F 'would free nothing on the host now' <<<"$out"
	grep -Fx 'virt-wss: 1 guest could return more memory: see virt-wss methods --config' <<<"$out"
	# Such a guest is not one to shrink.
	wss recommend --host --output json
	room_is '
assert "rank" not in guests["web1"] and guests["web2"]["rank"] == 1
assert guests["web1"]["reason"] == "its memory cannot be reclaimed: no balloon device" and guests["web1"]["gain_bytes"] == 0'
}
