#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the commands that read recordings, on recordings of invented guests.

load functions.sh
load live-recording.sh

virt_wss=$WSS_BUILDDIR/virt-wss
mkrecording=$WSS_BUILDDIR/tests/tools/mkrecording

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	# Nothing here may use libvirt.
	export LIBVIRT_DEFAULT_URI=nonsense:///
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

make() { # FILE OPTION...
	"$mkrecording" "$@" >"$1.said"
}

# Evaluates an expression on the JSON on stdin, as $j; fails unless it is true.
json() { # EXPRESSION
	perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>)); $e = shift; eval $e or die "not: $e\n"' "$1"
}

refused() { # STATUS REGULAR-EXPRESSION ARGUMENT...
	fails "$@" && [ -z "$out" ]
}

bats_require_minimum_version 1.5.0

# A degraded window shows few pages, as one in which pages are missing.
@test "degraded windows are no good ones: an estimate leaves them out, the others note them" {
	local command
	make good --phases 4096:3,4096:1 --windows 20
	make r --phases 4096:3,8:1 --windows 20 --degraded-every 4
	"$virt_wss" migrate-estimate --recording r --bandwidth 64MiB/s --output json 2>err >r.json
	cat err
	[ "$(grep -c 'web1: note: leaves out 5 degraded windows of 20 (virt-wss report --wide says why)$' err)" = 1 ]
	[ "$("$virt_wss" report r --output csv 2>/dev/null | grep -c ,degraded,)" = 5 ]
	# Each with its reason.
	[ "$("$virt_wss" report r --wide 2>/dev/null | grep -c ' degraded .* the guest was frozen, as the test says$')" = 5 ]
	"$virt_wss" report r --output json 2>/dev/null |
		json '(grep { ($_->{why} // "") eq "the guest was frozen, as the test says" } @{$j->{intervals}}) == 5'
	"$virt_wss" migrate-estimate --recording good --bandwidth 64MiB/s --output json 2>err >good.json
	refute_degraded
	# Each of the others wrote to the first half of 4096 pages.
	json '$j->{migrations}[0]{written_low_bytes} == 2048 * 4096 && $j->{migrations}[0]{measured_seconds} == 1' <r.json
	json '$j->{migrations}[0]{measured_seconds} == 16' <good.json
	make bad --degraded-every 1 --windows 3
	refused 1 'web1: all windows are degraded: ' migrate-estimate --recording bad --bandwidth 1GiB/s
	for command in 'report r' 'heatmap r --plot r.svg' 'heatmap --hot-first r' 'diff good r'; do
		# shellcheck disable=SC2086
		"$virt_wss" $command 2>err >/dev/null
		cat err
		[ "$(grep -c 'r: note: 5 of 20 windows are degraded: ' err)" = 1 ]
	done
	"$virt_wss" report good 2>err >/dev/null
	refute_degraded
	# Points in time: the fourth window is degraded, the third is not.
	"$virt_wss" diff r@2500ms r@3500ms 2>err >/dev/null
	[ "$(grep -c degraded err)" = 1 ]
	grep -q '^virt-wss: r@3500ms: note: that window is degraded: ' err
	"$virt_wss" diff r@1500ms r@2500ms 2>err >/dev/null
	refute_degraded
}

refute_degraded() {
	if grep degraded err; then
		return 1
	fi
}

@test "report: sizes, phases, steady state, marks" {
	make r --phases 4096:5,16384:8,2048:7 --mark-every 6 --gap-every 9
	"$virt_wss" report r --output json >out.json
	json '$j->{schema} eq "virt-wss/report/1"' <out.json
	json '$j->{viewport}{peak_bytes} == 16384 * 4096 && $j->{viewport}{peak_at_seconds} == 5' <out.json
	json '$j->{viewport}{steady_bytes} == 2048 * 4096' <out.json
	json '$j->{viewport}{reference_bytes} == 16384 * 4096' <out.json
	json '$j->{viewport}{persistent_bytes} == 2048 * 4096' <out.json
	json '$j->{viewport}{lost_bytes} == 2048 * 4096 && $j->{viewport}{gained_bytes} == 0' <out.json
	json '$j->{viewport}{transient_bytes} == 12288 * 4096' <out.json
	json '$j->{viewport}{gap_seconds} == 2 && $j->{viewport}{windows} == 20' <out.json
	json 'join(" ", map { $_->{median_bytes} / 4096 } @{$j->{phases}}) eq "4096 16384 2048"' <out.json
	json 'join(" ", map { $_->{text} } @{$j->{marks}}) eq "mark 6 mark 12 mark 18"' <out.json
	json '$j->{recording}{ended} && $j->{recording}{whole}' <out.json
	# Each window shows what the recorder saw.
	diff <(perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>));
			printf "%s %s\n", $_->{start_seconds}, $_->{outstanding_bytes}
				for grep { $_->{kind} eq "window" } @{$j->{intervals}}' <out.json) \
		<(awk '/^window/ { print $4, $6 }' r.said)
	json '!grep { $_->{kind} eq "gap" && exists $_->{outstanding_bytes} } @{$j->{intervals}}' <out.json
}

@test "report: a picture is valid XML, whatever the guest's name is" {
	command -v xmllint >/dev/null || skip "needs libxml2-utils"
	# Noncharacters, zero-width characters, separators, controls; and characters special to XML.
	make r --domain $'a\ufffe\uffff\U1fffe\u200b\u2060\ufeff\u2028\u2029\u00ad\u202e\U000e0041\x01\x7f<&">'
	"$virt_wss" report r --plot r.svg >table
	xmllint --noout r.svg
	"$virt_wss" heatmap r --plot h.svg
	xmllint --noout h.svg
	# A title that is too long ends in an ellipsis.
	run ! grep -qP '[^\x00-\x7f]' <(sed 's/\xe2\x80\xa6//' r.svg h.svg table)
	head -n 1 table | grep -qF 'a?'
	head -n 1 table | grep -qF '<&">, recorded'
}

@test "report --viewport selects a time" {
	make r --phases 4096:5,16384:8,2048:7
	"$virt_wss" report r --viewport 1s:10s --output json >out.json
	json '$j->{viewport}{persistent_bytes} == 4096 * 4096' <out.json
	json '$j->{viewport}{gained_bytes} == 12288 * 4096 && $j->{viewport}{lost_bytes} == 0' <out.json
	json '$j->{viewport}{transient_bytes} == 0 && $j->{viewport}{steady_bytes} == 16384 * 4096' <out.json
	"$virt_wss" report r --viewport 14s: --output json | json '$j->{viewport}{size_bytes} == 2048 * 4096'
	"$virt_wss" report r --viewport :4s --output json | json '$j->{viewport}{to_seconds} == 4'
	refused 1 'no window' report r --viewport 100s:200s
	refused 2 'viewport' report r --viewport 5s
	refused 2 'viewport' report r --viewport 5s:5s
	refused 2 'viewport' report r --viewport x:5s
}

@test "report --viewport: the graph shows that time only, a row a window, at its own scale" {
	make r --phases 512:10,16384:20,512:10
	"$virt_wss" report r --viewport 2s:8s >table
	sed -n '/^ *TIME  *SET$/,$p' table >graph
	cat graph
	[ "$(awk 'NR > 1 { print $1 }' graph | tr '\n' ' ')" = "2.00 3.00 4.00 5.00 6.00 7.00 " ]
	[ "$(grep -c '|#\{40,\}$' graph)" = 6 ]
}

@test "report --viewport: one that begins in a gap begins with what the last window left" {
	make r --phases 4096:4,0:8 --gap-every 5 --windows 8
	"$virt_wss" report r --viewport 4500ms: --output json >out.json
	json '$j->{viewport}{lost_bytes} == 4096 * 4096 && $j->{viewport}{size_bytes} == 4096 * 4096' <out.json
	json '$j->{viewport}{peak_bytes} == 4096 * 4096 && $j->{viewport}{peak_at_seconds} == 4.5' <out.json
	json '$j->{regions}[2]{peak_bytes} == 4096 * 4096' <out.json
	# Written before the viewport.
	json '$j->{viewport}{written_bytes} == 0 && $j->{viewport}{written} eq "exact"' <out.json
}

@test "report --viewport: the reference set is the one at its end" {
	make r --phases 4096:5,16384:15
	"$virt_wss" report r --viewport 0s:4s --output json >out.json
	json '$j->{viewport}{reference_bytes} == 4096 * 4096' <out.json
	json '$j->{regions}[2]{reference_bytes} == 4096 * 4096' <out.json
	"$virt_wss" report r --output json | json '$j->{viewport}{reference_bytes} == 16384 * 4096'
}

@test "report: many nodes" {
	make r --ram $((1 << 40)) --nodes 1000 --phases 4096:20
	timeout 300 "$virt_wss" report r --output json >out.json
	json '@{$j->{nodes}} == 1000 && $j->{nodes}[999]{node} == 999' <out.json
	timeout 300 "$virt_wss" report r >table
}

@test "a recording gets no more intervals than can be read" {
	! "$mkrecording" r --ram $((16 << 20)) --windows 1048577 >said 2>why || return 1
	grep -q '1048576 intervals.*which is the limit$' why
	# As text, because JSON would be a third of a gigabyte.
	"$virt_wss" report r --viewport 1048570s: >out 2>err
	[ ! -s err ]
	grep -q '^from 291 h to 291 h: 6 windows, gaps of 0 s' out
	refused 2 'at most 524288 windows' record web1 -o r --for 8d
	refused 2 'at most 524288 windows' record web1 -o r --for 10m --interval 1ms
}

@test "a recording is not scattered over more memory than can be read" {
	make r --ram $((16 << 40)) --windows 2 --scatter 32768
	# Sets of 128 MiB each.
	(ulimit -v $((2 << 20)) && "$virt_wss" report r --output json >out.json)
	json '$j->{viewport}{peak_bytes} == 32768 * 4096 && $j->{recording}{whole}' <out.json
	! "$mkrecording" s --ram $((16 << 40)) --windows 2 --scatter 32769 >said 2>why || return 1
	grep -q 's: its pages are scattered over more than 4 TiB: no more fit$' why
	refused 1 's: contains no window' report s
}

# Special files that are named explicitly are written to directly.
@test "--plot: standard output, descriptors and devices, if they are named as such" {
	make r
	"$virt_wss" heatmap r --plot plain.svg
	"$virt_wss" heatmap r --plot - >got
	cmp got plain.svg
	"$virt_wss" heatmap r --plot /dev/stdout | cmp - plain.svg
	echo before >got
	"$virt_wss" heatmap r --plot /dev/stdout >>got
	diff got <(echo before; cat plain.svg)
	"$virt_wss" report r --plot >(cat >piped) >table
	wait_until 300 grep -q '</svg>' piped
	"$virt_wss" report r --plot /dev/null >table
	[ -c /dev/null ]
	refused 1 'cannot write /dev/full: cannot write to it: No space left' heatmap r --plot /dev/full
	refused 1 'cannot write /dev/fd/77: no such descriptor' heatmap r --plot /dev/fd/77
	refused 2 "'-' would mix" report r --plot -
	refused 2 "'-' would mix" heatmap r --hot-first --plot -
}

@test "--plot: into a pipe that nobody reads, until it is stopped" {
	make r --ram $((1 << 30)) --windows 300 --phases 40000:10,90000:20 --runs 300
	"$virt_wss" heatmap r --plot plain.svg
	[ "$(stat -c %s plain.svg)" -gt 100000 ]
	mkfifo pipe
	exec 5<>pipe
	"$virt_wss" heatmap r --plot /dev/fd/5 2>err 3>&- &
	pid=$!
	# It waits once the pipe is full.
	wait_until 300 test "$(dd if=/dev/fd/5 bs=1 count=1 status=none)" = '<'
	kill "$pid"
	wait_until 300 ended "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ]
	grep -q interrupted err
	exec 5>&-
}

has_open() { # PID NAME
	find "/proc/$1/fd" -lname "*/$2" 2>/dev/null | grep -q .
}

ended() { # PID
	! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]
}

@test "--plot: FIFOs, links, sockets and directories are refused" {
	make r
	mkfifo pipe
	echo mine >target
	ln -s target link
	ln -s nothing dangling
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1)'
	mkdir directory
	refused 1 'cannot write pipe: it is a FIFO, not a regular file' report r --plot pipe
	refused 1 'cannot write link: it is a symbolic link, not a regular file' report r --plot link
	refused 1 'cannot write dangling: it is a symbolic link' report r --plot dangling
	refused 1 'cannot write socket: it is a socket' report r --plot socket
	refused 1 'cannot write directory: it is a directory' report r --plot directory
	refused 1 'cannot write directory/: it is a directory' report r --plot directory/
	refused 1 'cannot write \.: it is a directory' report r --plot .
	refused 2 'the value is empty: give the path of a file' report r --plot ''
	[ "$(cat target)" = mine ]
	[ -p pipe ]
	[ -L link ]
	[ ! -e nothing ]
	[ -z "$(find . -name '*.new')" ]
}

@test "--plot: a new file for its owner only, and no other is touched" {
	make r
	echo mine >x.svg.new
	echo old >x.svg
	chmod 666 x.svg
	ln x.svg another-name
	long=$(printf %0251d 0).svg
	"$virt_wss" report r --plot x.svg >table
	"$virt_wss" report r --plot "$long" >table
	grep -q '</svg>' x.svg
	grep -q '</svg>' "$long"
	[ "$(cat x.svg.new) $(cat another-name)" = "mine old" ]
	[ "$(stat -c %a x.svg) $(stat -c %a "$long")" = "600 600" ]
	[ "$(find . -name '*.new')" = ./x.svg.new ]
}

@test "recordings are read and marked as regular files only, without waiting" {
	mkfifo pipe
	refused 1 'pipe: it is a FIFO, not a regular file' report pipe
	refused 1 'pipe: it is a FIFO, not a regular file' diff pipe pipe@1s
	refused 1 'pipe: it is a FIFO, not a regular file' heatmap pipe --hot-first
	refused 1 'pipe: it is a FIFO, not a regular file' mark pipe text
	refused 1 '/dev/zero: it is a device' report /dev/zero
	refused 1 '/dev/zero: it is a device' mark /dev/zero text
	refused 1 ': it is a directory' report .
	refused 1 'nowhere: cannot open it: No such file' mark nowhere text
	refused 2 'cannot go to standard output' record web1 -o -
	# A recording in progress can be marked only under its own name, and read under any
	# name.
	start_live --windows 1
	ln -s live link
	refused 1 'link: it is a symbolic link, not a regular file' mark link text
	"$virt_wss" report link >table
	exec 4>&-
	wait
}

@test "record: a new file replaces an old one, which is not written to" {
	make r
	cp r old
	chmod 666 r
	ln r another-name
	make r --windows 3
	cmp another-name old
	[ "$(stat -c %a r) $(stat -c %a another-name)" = "600 666" ]
	ln -s r link
	mkfifo pipe
	ln -s nothing dangling
	for name in link pipe dangling /dev/null .; do
		! "$mkrecording" "$name" >said 2>why || return 1
		grep -qE "$name: it is a (symbolic link|FIFO|device|directory), not a regular file" why
	done
	cmp another-name old
	[ -p pipe ]
	[ ! -e nothing ]
	[ -z "$(find . -name '*.new')" ]
}

@test "mark: waits for another's lock only for a limited time, and not after a stop" {
	start_live --windows 1
	mkfifo hold2
	# The lock for one addition, as docs/recording-format.md describes it.
	perl -MFcntl -e 'open(F, "+<", "live") or die; $| = 1;
		$area = pack("s s x4 q q l x4", F_WRLCK, SEEK_SET, (1 << 62) + 1, 1, 0);
		fcntl(F, 37, $area) or die "$!"; print "locked\n"; <STDIN>' <hold2 >lock 2>&1 3>&- 4>&- &
	exec 6>hold2
	wait_until 300 grep -q locked lock
	run --separate-stderr timeout 300 "$virt_wss" mark live late
	[ "$status" = 1 ]
	[[ $stderr == *"live: another process has been adding to it for 10 s" ]]
	"$virt_wss" mark live stopped 2>err 3>&- 4>&- 6>&- &
	pid=$!
	wait_until 300 has_open "$pid" live
	kill "$pid"
	wait_until 300 ended "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ]
	exec 6>&-
	"$virt_wss" mark live after
	exec 4>&-
	wait
}

@test "report: regions and nodes" {
	make r --ram $((8 << 30)) --nodes 2 --device $((1 << 30)) --phases 4096:20 --balloon 100
	"$virt_wss" report r --output json >out.json
	json 'join(" ", map { $_->{region} } @{$j->{regions}}) eq "below-1m below-1m low high high device"' <out.json
	json '$j->{nodes}[1]{length_bytes} == 3.5 * 2**30' <out.json
	json '$j->{regions}[2]{size_bytes} == 4096 * 4096' <out.json
	json '(grep { $_->{ballooned_bytes} == 409600 } @{$j->{intervals}}) == 1' <out.json
	json '(grep { $_->{returned_bytes} == 409600 } @{$j->{intervals}}) == 1' <out.json
	"$virt_wss" report r | grep -q '^device *1 '
}

@test "report: CSV is the graph, the table is for people" {
	make r --phases 4096:5,16384:15 --gap-every 7
	"$virt_wss" report r --output csv |
		awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name=outstanding_bytes >found
	[ "$(grep -c . found)" = 20 ]
	[ "$(tail -n 1 found)" = $((16384 * 4096)) ]
	run "$virt_wss" report r
	[[ $output == *"peak "*"64 MiB"* && $output == *"steady state"*"64 MiB"* && $output == *gap* ]]
}

@test "recordings that were not ended, cut off, damaged, or are none" {
	make r --phases 4096:20 --runs 100 --unended
	"$virt_wss" report r --output json | json '!$j->{recording}{ended} && $j->{recording}{whole}'
	head -c -10 r >cut.rec
	run --separate-stderr "$virt_wss" report cut.rec --output json
	[ "$status" = 0 ]
	[[ $stderr == *"cut off"* ]]
	json '!$j->{recording}{whole} && @{$j->{intervals}} == 19' <<<"$output"
	cp r damaged
	printf x | dd of=damaged bs=1 seek=$(($(stat -c %s r) / 2)) conv=notrunc status=none
	refused 1 'damaged at byte' report damaged
	refused 1 'damaged at byte' diff damaged r
	refused 1 'damaged at byte [0-9]+, after [0-9]+ whole intervals \(those can be salvaged\)' heatmap damaged --hot-first
	run --separate-stderr "$virt_wss" report damaged --salvage --output json
	[ "$status" = 0 ]
	[[ $stderr == *damaged* ]]
	json '@{$j->{intervals}} < 20 && @{$j->{intervals}} > 5' <<<"$output"
	# Within its first interval: there is nothing before.
	cp r early
	printf x | dd of=early bs=1 seek=200 conv=notrunc status=none
	refused 1 'after 0 whole intervals \(no window among them: nothing can be salvaged\)' report early
	refused 1 'no window before the damage at byte [0-9]+: nothing can be salvaged' report early --salvage
	cp r newer
	printf '\2\0\375\377' | dd of=newer bs=1 seek=8 conv=notrunc status=none
	refused 5 'newer' report newer
	refused 1 'not a recording' report "$WSS_SRCDIR/README.md"
	refused 1 'No such file' report nothing
	refused 1 'not a regular' report /dev/null
	: >empty
	refused 1 'empty: not a recording of virt-wss: it has only 0 bytes' report empty
	printf abc >three
	refused 1 'three: not a recording of virt-wss: it has only 3 bytes' report three
	head -c 12 r >twelve
	refused 1 'twelve: cut off in its header' report twelve
}

@test "diff: two moments, and the same one twice" {
	make r --phases 4096:10,16384:10
	"$virt_wss" diff r@5s r@15s --output json >out.json
	json '$j->{schema} eq "virt-wss/diff/1" && $j->{summary}{gained_bytes} == 12288 * 4096' <out.json
	json '$j->{summary}{lost_bytes} == 0 && $j->{summary}{kept_bytes} == 4096 * 4096' <out.json
	json '@{$j->{ranges}} == 1 && $j->{ranges}[0]{start_address} eq "0x1220000"' <out.json
	json '$j->{ranges}[0]{end_address} eq "0x421ffff" && $j->{ranges}[0]{change} eq "gained"' <out.json
	# The first half of the 64 MiB was written: 16 MiB of the gained pages.
	json '$j->{ranges}[0]{written_bytes} == 4096 * 4096' <out.json
	"$virt_wss" diff r@15s r@5s --output json | json '$j->{summary}{lost_bytes} == 12288 * 4096'
	for _ in 1 2; do
		"$virt_wss" diff r r --output json |
			json '@{$j->{ranges}} == 0 && $j->{summary}{kept_bytes} == 16384 * 4096'
	done
	refused 1 'ends before' diff r@5s r@50s
	refused 2 'duration' diff r@5s r@x
	refused 2 'missing' diff r
}

@test "diff: a time at which nothing was observed is named" {
	make r --phases 4096:10,16384:10 --gap-every 7
	json 'join(" ", map { $_->{start_seconds} } grep { $_->{kind} eq "gap" } @{$j->{intervals}}) eq "6 13 20"' \
		<<<"$("$virt_wss" report r --output json)"
	run --separate-stderr "$virt_wss" diff r@6500ms r@15s
	[ "$status" = 0 ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *"r@6500ms: note: nothing was observed then, in a gap from 6.00 s to 7.00 s: the set is that of the window before it" ]]
	"$virt_wss" diff r@6500ms r@13500ms --output json >out.json
	json '$j->{summary}{a_gap_start_seconds} == 6 && $j->{summary}{a_gap_end_seconds} == 7' <out.json
	json '$j->{summary}{b_gap_start_seconds} == 13 && $j->{summary}{b_gap_end_seconds} == 14' <out.json
	run --separate-stderr "$virt_wss" diff r@5s r@15s --output json
	[ -z "$stderr" ]
	json '!grep { /gap/ } keys %{$j->{summary}}' <<<"$output"
	"$virt_wss" diff r@6500ms r@6500ms 2>&1 | grep -c 'nothing was observed' | grep -qx 1
}

@test "diff: two recordings, largest first; --verbose has each range" {
	make a --phases 4096:5 --runs 300 --windows 5
	make b --phases 8192:5 --runs 500 --windows 5
	"$virt_wss" diff a b --limit 50 --output json >out.json
	json 'my $last = 1e18; my $ok = 1; for (@{$j->{ranges}}) { $ok &&= $_->{bytes} <= $last;
		$last = $_->{bytes}; } $ok && @{$j->{ranges}} == 50' <out.json
	"$virt_wss" diff a b --verbose --output json >out.json
	json 'my %sum; $sum{$_->{change}} += $_->{bytes} for @{$j->{ranges}};
		$sum{gained} == $j->{summary}{gained_bytes} && $sum{lost} == $j->{summary}{lost_bytes}' <out.json
	json '!grep { $_->{bytes} != $_->{span_bytes} } @{$j->{ranges}}' <out.json
	# The limit applies to --verbose, too: the first ranges by address.
	"$virt_wss" diff a b --verbose --limit 7 --output json >few.json
	diff <(json 'print join("\n", map { $_->{start_address} } @{$j->{ranges}}[0 .. 6])' <out.json) \
		<(json 'print join("\n", map { $_->{start_address} } @{$j->{ranges}})' <few.json)
	# Unchanged pages within a range were not gained, so they do not count as written.
	make c --ram $((8 << 20)) --phases 1400:20 --runs 30
	for options in '--limit 1000' --verbose; do
		# shellcheck disable=SC2086
		"$virt_wss" diff c@3s c@15s $options --output json >"out$options"
	done
	json '(grep { $_->{written_bytes} && $_->{span_bytes} > $_->{bytes} } @{$j->{ranges}}) &&
		!grep { $_->{written_bytes} > $_->{bytes} } @{$j->{ranges}}' <"out--limit 1000"
	sum='my $sum = 0; $sum += $_->{written_bytes} for @{$j->{ranges}}; print "$sum\n"'
	diff <(json "$sum" <"out--limit 1000") <(json "$sum" <out--verbose)
	make other --ram $((1 << 30)) --windows 5
	refused 1 'memory layouts' diff a other
	refused 1 'memory layouts' heatmap a other --hot-first
}

@test "diff, heatmap: recordings of two guests give a warning" {
	make a --windows 3 --phases 10:3
	make b --windows 3 --phases 20:3 --domain db1 --uuid 11111111-3d1e-4b0a-9f43-57e0a1b2c3d4
	make c --windows 3 --phases 20:3
	for arguments in "diff a b" "heatmap a b --hot-first"; do
		# shellcheck disable=SC2086
		run --separate-stderr "$virt_wss" $arguments --output json
		[ "$status" = 0 ]
		[[ $stderr == *"a and b: recordings of different guests, web1 and db1" ]]
		json '$j->{schema}' <<<"$output"
	done
	run --separate-stderr "$virt_wss" diff a c
	[ "$status" = 0 ] && [ -z "$stderr" ]
}

@test "every command refuses a recording without a window" {
	make none --windows 0
	make r
	refused 1 'none: contains no window' report none
	refused 1 'none: contains no window' diff r none
	refused 1 'none: contains no window' heatmap none --hot-first
	refused 1 'none: contains no window' heatmap none --plot x.svg
	[ ! -e x.svg ]
}

@test "heatmap --hot-first: over one and several recordings" {
	make r --phases 4096:5,16384:5,2048:10
	"$virt_wss" heatmap r --hot-first --output json >out.json
	json 'join(" ", map { $_->{windows} } @{$j->{ranges}}) eq "20 10 5"' <out.json
	json 'join(" ", map { $_->{bytes} / 4096 } @{$j->{ranges}}) eq "2048 2048 12288"' <out.json
	json '$j->{ranges}[1]{share} == 0.5' <out.json
	make s --phases 2048:20
	"$virt_wss" heatmap r s --hot-first --output json |
		json '$j->{summary}{windows} == 40 && $j->{ranges}[0]{windows} == 40 && $j->{ranges}[1]{share} == 0.25'
	refused 2 'nothing to do' heatmap r
	refused 2 'one picture shows one recording' heatmap r s --plot x.svg
	refused 2 'limit' heatmap r --hot-first --limit 0
	[ ! -e x.svg ]
}

@test "mark: into a recording in progress, and no other" {
	make r
	refused 1 'no process is recording' mark r text
	refused 2 'TEXT' mark r
	refused 2 'TEXT' mark r ''
	refused 2 'argument' mark r a b
	start_live --windows 3
	run --separate-stderr "$virt_wss" mark live 'load <begins> & "ends"'
	[ "$status" = 0 ]
	[ -z "$output" ]
	# The file is complete even while it is being written, and two marks at the same time
	# both succeed.
	"$virt_wss" mark live second & "$virt_wss" mark live third
	wait $!
	"$virt_wss" report live --output json |
		json '@{$j->{marks}} == 3 && $j->{marks}[0]{text} eq q(load <begins> & "ends")'
	refused 1 'cannot write' report live --plot /nonexistent/x.svg
	exec 4>&-
	wait
	refused 1 'no process is recording' mark live late
}

@test "1 TiB: each command takes less than 256 MiB" {
	make t --ram $((1 << 40)) --nodes 8 --windows 60 --runs 20000 --mark-every 10 --gap-every 16 \
		--phases $((50 << 18)):20,$((200 << 18)):20,$((20 << 18)):20
	for arguments in "report t --plot t.svg" "diff t@5s t@30s" "diff t t@30s --verbose --output csv" \
		"heatmap t --plot h.svg" "heatmap t --hot-first"; do
		# SIGXCPU ends what hangs.
		# shellcheck disable=SC2086
		(ulimit -t 300 && exec /usr/bin/time -q -o memory -f %M "$virt_wss" $arguments >/dev/null)
		echo "$arguments: $(cat memory) KiB"
		[ "$(cat memory)" -le $((256 * 1024)) ]
	done
}

@test "a guest that touches as much takes no more work for having 1,024 times the memory" {
	local command small large
	command -v valgrind >/dev/null || skip "needs valgrind"
	make small --ram $((1 << 30)) --windows 6 --runs 300 --phases 20000:3,40000:3
	make large --ram $((1 << 40)) --windows 6 --runs 300 --phases 20000:3,40000:3
	for command in report "heatmap --hot-first"; do
		# shellcheck disable=SC2086
		small=$(instructions "$virt_wss" $command small)
		# shellcheck disable=SC2086
		large=$(instructions "$virt_wss" $command large)
		echo "$command: $small, $large instructions"
		[ "$large" -le $((small * 3 / 2)) ]
	done
}

@test "--plot does not replace a recording or a history" {
	make r --windows 3
	"$WSS_BUILDDIR/tests/unit/make-history" history.db 20 100000000 600 \
		6c8f7a52-0000-4000-8000-000000000001
	for file in r history.db; do
		cp $file before
		refused 1 "$file: it is a recording or a database: not overwritten" report r --plot $file
		refused 1 "$file: it is a recording or a database: not overwritten" heatmap r --plot $file
		refused 1 "$file: it is a recording or a database: not overwritten" \
			recommend web1 --backtest --history history.db --plot $file
		cmp $file before
	done
	# Any other file is replaced.
	echo text >r.svg
	"$virt_wss" report r --plot r.svg >table
	[ "$(head -c 5 r.svg)" = '<?xml' ]
}

@test "zeros after the end of a recording do not make it one that is cut off" {
	make r --windows 3
	truncate -s +4096 r
	"$virt_wss" report r >table 2>err
	[ "$(cat err)" = 'virt-wss: warning: r: ignoring 4096 bytes after the end of the recording' ]
}
