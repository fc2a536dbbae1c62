#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the command line and connections, without a guest.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss

# Whether the command fails with this status and one matching line, and prints nothing on
# stdout except the row of a domain that could not be measured.
refused() { # STATUS REGULAR-EXPRESSION ARGUMENT...
	local status out err
	fails "$@" && [[ -z $out || $out =~ unsupported|failed ]]
}

usage() { # REGULAR-EXPRESSION ARGUMENT...
	local re=$1
	shift
	refused 2 "$re" -c test:///default "$@"
}

@test "a missing or unknown command and an unknown option are refused" {
	refused 2 'frobnicate' frobnicate
	usage 'empty domain name' sample ''
	usage 'empty domain name' policy set '' --maximum 1GiB
	refused 2 'frobnicate' sample --frobnicate
	refused 2 'frobnicate' --frobnicate sample
	refused 2 'connect' sample --connect
}

@test "an empty value names its option and says what is expected" {
	local command option
	for command in sample list methods policy; do
		refused 2 'error: --connect: the value is empty: give a libvirt URI' -c '' $command
		refused 2 'error: --connect: the value is empty: give a libvirt URI' $command --connect=
		refused 2 'error: --qmp: the value is empty: give the path of a UNIX socket' $command --qmp ''
	done
	refused 2 'error: --socket: the value is empty: give the path of a UNIX socket' top --socket ''
	for option in 'sample --history' 'cold --history' 'serve --history' 'serve --textfile' 'serve --hold-file' \
		'serve --config' 'list --hosts' 'recommend --flavours' 'plan --constraints' 'plan --token-file' \
		'plan --ca-file' 'record --output-file' 'report --plot' 'report --html' 'migrate-estimate --recording'; do
		# shellcheck disable=SC2086
		refused 2 "error: ${option#* }: the value is empty: give the path of a file$" $option ''
	done
	for command in report heatmap diff plan mark; do
		refused 2 'error: FILE is empty: give the path of a file$' $command '' a
	done
	refused 2 'error: TEXT is empty' mark file ''
}

@test "a directory in place of a file or a socket is refused" {
	local command directory=$BATS_TEST_TMPDIR
	for command in cold history recommend 'sample --store' 'serve --check-config' serve; do
		# shellcheck disable=SC2086
		refused 2 "error: --history: '$directory/?' is a directory: give the path of a file in it$" $command --history "$directory"
		# shellcheck disable=SC2086
		refused 2 "error: --history: '$directory/?' is a directory" $command --history "$directory/"
	done
	VIRT_WSS_HISTORY=$directory refused 2 "error: VIRT_WSS_HISTORY: '$directory' is a directory" cold
	refused 2 "error: --textfile: '$directory' is a directory" serve --check-config --textfile "$directory"
	refused 4 "error: $directory: it is a directory, not a UNIX socket$" methods --qmp "$directory"
	refused 4 "error: /dev/null: it is a device, not a UNIX socket$" methods --qmp /dev/null
	refused 1 "listen at unix:$directory: it is a directory, not a UNIX socket$" \
		-c test:///default serve --no-store --listen "unix:$directory"
	run "$virt_wss" check --socket "$directory"
	[ "$status" = 3 ] && [[ $output == *"$directory: it is a directory, not a UNIX socket" ]]
}

@test "a bare call prints a short usage on stderr" {
	local status=0
	for words in "" "-c test:///default"; do
		# shellcheck disable=SC2086
		"$virt_wss" $words >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
		cat "$BATS_TEST_TMPDIR/err"
		[ "$status" = 2 ]
		[ ! -s "$BATS_TEST_TMPDIR/out" ]
		[ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -le 10 ]
		grep -q '^Usage: virt-wss .*COMMAND' "$BATS_TEST_TMPDIR/err"
		grep -qw balloon "$BATS_TEST_TMPDIR/err"
		[ "$(grep -c '.\{81\}\| $' "$BATS_TEST_TMPDIR/err")" = 0 ]
	done
}

@test "a mistyped command or option names the nearest" {
	refused 2 "unknown command 'smaple': did you mean 'sample'\?$" smaple
	refused 2 "unknown command 'recom': did you mean 'recommend'\?$" help recom
	refused 2 "unknown command 'smaple': did you mean 'sample'\?$" smaple --help
	refused 2 "unknown option '--widnow': did you mean '--window'\?$" sample --widnow 4s
	refused 2 "unknown option '--widnow': did you mean '--window'\?$" sample test --widnow=4s
	refused 2 "unknown option '--conect': did you mean '--connect'\?$" --conect x list
	# Options of other commands are unknown to this one.
	refused 2 "unknown option '--hot-first' \(see --help\)$" sample --hot-first
	refused 2 "unknown command 'frobnicate' \(see virt-wss --help\)$" frobnicate
	refused 2 "option '--w' is ambiguous" sample --w
	refused 2 "option '--pause' takes no value" sample --pause=3
	refused 2 "option '--help' takes no value" sample --help=3
	refused 2 "unknown option '-x'" sample --all -xq test
	refused 2 "unknown option '-x'" -x sample
}

help_of() { # COMMAND ARGUMENT...: the help of the command, and nothing else
	local expected=$1 status=0
	shift
	"$virt_wss" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	printf '$ virt-wss %s -> %s\n' "$*" "$status"
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" = 0 ] && [ ! -s "$BATS_TEST_TMPDIR/err" ] &&
		grep -q "^Usage: virt-wss .*\b$expected\b" "$BATS_TEST_TMPDIR/out"
}

@test "--help and -h print the help of the command wherever they stand" {
	local word
	for word in --help -h; do
		help_of COMMAND $word
		help_of COMMAND -c test:///default $word
		help_of COMMAND --frobnicate $word
		help_of sample $word sample
		help_of sample -c nonsense:///x $word sample
		help_of sample --frobnicate sample $word
		help_of sample sample $word
		help_of sample sample test $word
		help_of sample sample test other --window nonsense $word
		help_of sample sample test $word --widnow 4s --pause=3
		help_of sample sample --window $word
		help_of record record $word
		help_of mark mark nowhere $word
		help_of heatmap heatmap a b $word --sort nonsense
		help_of policy policy set $word
		help_of balloon balloon --apply --restore $word
		help_of report report "$BATS_TEST_TMPDIR/nowhere" $word
	done
	help_of sample sample --hel
	help_of COMMAND --he
	help_of COMMAND help
	help_of sample help sample
	help_of help help --help
	refused 2 'unexpected' help sample list
	# After "--" it is an ordinary argument.
	refused 2 'TEXT' mark -- --help
}

@test "-V is --version" {
	diff <("$virt_wss" -V) <("$virt_wss" --version)
	"$virt_wss" -V | grep -qE "^methods:.* mmu .*\brefs\b"
}

@test "invalid recorders are refused" {
	usage 'recorder' sample test --recorder maybe
	usage 'recorder' sample test --recorder ''
	usage 'recorder' profile test --recorder BPF
}

@test "invalid windows are refused" {
	usage 'window' sample test --window 0
	usage 'window' sample test --window 0s
	usage 'window' sample test --window -4s
	usage 'window' sample test --window=-4s
	usage 'window' sample test --window 87600h
	usage 'window' sample test --window 3650d
	usage 'window' sample test --window nan
	usage 'window' sample test --window inf
	usage 'window' sample test --window 4x
	usage 'window' sample test --window ''
	usage 'window' sample test --window 1e3
	usage 'window' sample test --window 99999999999999999999999s
}

@test "invalid numbers, intervals and words are refused" {
	usage 'count' sample test --count 0
	usage 'count' sample test --count -1
	usage 'count' sample test --count 1.5
	usage 'count' sample test --count 99999999999999999999
	usage 'interval' sample test --interval 0
	usage 'interval' sample test --interval soon
	usage 'max-stall' sample test --max-stall 0
	usage 'max-stall' sample test --max-stall -1ms
	usage 'max-stall' record test -o /dev/null --max-stall 61s
	usage 'max-stall' balloon test --apply --max-stall 0
	usage 'method' sample test --method magic
	usage 'granularity' sample test --granularity 8k
	usage 'granularity both' sample test --granularity both --cumulative
	usage 'explain' methods test --explain --config
	usage 'method all' sample test --method all --cumulative
	usage 'method all' sample test --method all --granularity both
	usage 'method all' sample test --method all --store
	usage 'method all' sample test --method all --publish
	usage "'all' is not auto" record test --method all -o "$BATS_TEST_TMPDIR/recording"
	usage 'granularity both' profile test --granularity both
	usage 'output' sample test --output yaml
	usage 'output' list test --output yaml
	usage 'output' methods test --output ''
}

@test "invalid uses of recordings are refused" {
	usage 'missing required option -o FILE' record test
	usage 'one DOMAIN' record -o x
	usage 'one DOMAIN' record a b -o x
	usage 'exclude' record test -o x --for 1s --until-stopped
	usage 'window' record test -o x --window 2s
	usage 'granularity' record test -o x --granularity 2m
	refused 2 'missing' report
	refused 2 'unexpected' report a b
	refused 2 'all' report a --all
	refused 2 'missing' diff a
	refused 2 'nothing to do' heatmap a
	refused 2 'TEXT' mark a
	refused 5 'QEMU' -c test:///default record test -o "$BATS_TEST_TMPDIR/x"
	refused 1 'nobody' -c test:///default record nobody -o "$BATS_TEST_TMPDIR/x"
	[ ! -e "$BATS_TEST_TMPDIR/x" ]
}

@test "options that exclude each other are refused" {
	usage 'all' sample test --all
	refused 2 'qmp' --qmp /nowhere -c test:///default sample
	usage 'count|cumulative' sample test --cumulative --count 3
}

# All commands except list refuse it: using only the last connection would change or measure a
# different host than the first.
@test "only list accepts more than one connection" {
	local command
	for command in "sample test" "profile test" "record test -o x" "mark x y" "report x" \
		"diff x y" "heatmap x" "methods test" "policy get test" "policy set test --headroom 7" \
		"policy clear test" "recommend test" "balloon test" "balloon --restore"; do
		# shellcheck disable=SC2086
		usage 'only list takes' -c test:///default $command
		# shellcheck disable=SC2086
		usage 'only list takes' $command --connect test:///default
	done
	run "$virt_wss" -c test:///default list -c test:///default
	[ "$status" = 0 ]
}

@test "the number of jobs, of sample and of profile" {
	local command
	for command in sample profile; do
		usage 'jobs: ' $command test --jobs 0
		usage 'jobs: ' $command test --jobs 1001
		refused 5 'QEMU' -c test:///default $command test --jobs 1
	done
}

@test "history takes no connection" {
	usage 'history does not use libvirt' history
	usage 'history does not use libvirt' history test
}

@test "what a command would ignore is refused" {
	local command
	for command in "report x" "diff x y" "heatmap x --hot-first" "mark x y"; do
		# shellcheck disable=SC2086
		usage "connect: ${command%% *} uses the FILE" $command
		# shellcheck disable=SC2086
		refused 2 "connect: ${command%% *} uses the FILE" $command --connect test:///default
		# shellcheck disable=SC2086
		refused 2 "qmp: ${command%% *} uses the FILE" $command --qmp /nowhere
		# shellcheck disable=SC2086
		refused 2 "uuid: ${command%% *} uses the FILE" $command --uuid
		# shellcheck disable=SC2086
		refused 2 "monitor: ${command%% *} uses the FILE" $command --allow-monitor
	done
	# A connection that comes from the environment is meant for other commands.
	LIBVIRT_DEFAULT_URI=test:///default refused 1 'nowhere' report /nowhere
	for command in "record test -o x" "balloon --apply" "balloon --restore" "policy set test --headroom 7" \
		"policy clear test"; do
		# shellcheck disable=SC2086
		usage 'prints no table' $command --output json
	done
	refused 2 'prints no table' mark x y --output csv
}

@test "what the tables print is taken" {
	local words
	for words in "sample test --granularity 4KiB" "sample test --granularity 4kib" \
		"profile test --granularity 4KiB" "record test -o x --granularity 4KiB"; do
		# The driver is refused, not the command line.
		# shellcheck disable=SC2086
		refused 5 'QEMU' -c test:///default $words
	done
	refused 5 'QEMU' -c test:///default sample test --granularity '4 KiB'
	for words in "recommend test" "balloon test" "policy set test"; do
		# shellcheck disable=SC2086
		run "$virt_wss" -c test:///default $words --headroom 20%
		echo "$output"
		# balloon refuses the guest.
		case $words in balloon*) [ "$status" = 5 ] ;; *) [ "$status" = 0 ] ;; esac
		# shellcheck disable=SC2086
		usage 'headroom' $words --headroom 20%%
		# shellcheck disable=SC2086
		usage 'headroom' $words --headroom %
	done
}

@test "a failed connection is reported once" {
	for words in list "policy get" methods recommend; do
		# shellcheck disable=SC2086
		LIBVIRT_DEFAULT_URI='qemu+unix:///system?socket=/nowhere' run -4 "$virt_wss" $words
		echo "$output"
		[ "$(grep -o 'cannot connect to libvirt' <<<"$output" | wc -l)" = 1 ]
		grep -Fq 'virt-wss: error: cannot connect to libvirt at qemu+unix:///system?socket=/nowhere (LIBVIRT_DEFAULT_URI): ' <<<"$output"
	done
}

@test "a URI that is nearly that of an inventory gets it proposed" {
	for uri in KVM:/// kvm: kvm:///x; do
		run -4 "$virt_wss" -c "$uri" list
		echo "$output"
		[[ $output == *"cannot connect to libvirt at $uri (did you mean kvm:///?): "* ]]
	done
	run -4 "$virt_wss" -c Proxmox:// list
	[[ $output == *"(did you mean proxmox:///?)"* ]]
}

@test "of several hosts only libvirt's guests are listed, which says so for each other one" {
	run -5 "$virt_wss" -c kvm:/// -c proxmox:/// list
	echo "$output"
	[ "$(grep -c "^virt-wss: error: \(kvm\|proxmox\):///: of several hosts only libvirt's guests are listed" <<<"$output")" = 2 ]
	printf 'test:///default\nkvm:///\n' >"$BATS_TEST_TMPDIR/hosts"
	run -3 "$virt_wss" list --hosts "$BATS_TEST_TMPDIR/hosts"
	grep -q "^virt-wss: error: kvm:///: of several hosts" <<<"$output"
}

@test "no connection exits 4" {
	refused 4 'connect|socket|nowhere' -c 'qemu+unix:///system?socket=/nowhere/socket' sample test
	refused 4 'nowhere' --qmp /nowhere/socket sample
	refused 4 '.' -c 'nonsense:///system' list
}

@test "a connection that is not QEMU's on this host exits 5" {
	refused 5 'test' -c test:///default sample test --window 100ms
}

@test "an unknown domain exits 1" {
	refused 1 'nobody' -c test:///default sample nobody --window 100ms
	refused 1 'nobody' -c test:///default list nobody
}

@test "methods and list work where nothing can be measured" {
	run "$virt_wss" -c test:///default methods test
	[ "$status" = 0 ]
	[[ $output == *mmu* && $output == *refs* ]]
	run "$virt_wss" -c test:///default list
	[ "$status" = 0 ]
	[[ $output == *test* ]]
}

@test "LIBVIRT_DEFAULT_URI is honoured, and -c takes precedence" {
	LIBVIRT_DEFAULT_URI=test:///default run "$virt_wss" list
	[ "$status" = 0 ]
	[[ $output == *test* ]]
	LIBVIRT_DEFAULT_URI=nonsense:///x run "$virt_wss" -c test:///default list
	[ "$status" = 0 ]
	LIBVIRT_DEFAULT_URI=nonsense:///x run "$virt_wss" list
	[ "$status" = 4 ]
}

@test "global options are accepted after the command, too" {
	run "$virt_wss" list -c test:///default --debug
	[ "$status" = 0 ]
	[[ $output == *test* ]]
}

@test "migrate-estimate refuses what makes no sense" {
	usage 'missing --bandwidth' migrate-estimate test
	usage 'takes one DOMAIN' migrate-estimate --bandwidth 1GiB/s
	usage 'takes one DOMAIN' migrate-estimate --bandwidth 1GiB/s a b
	usage 'takes one DOMAIN' migrate-estimate --bandwidth 1GiB/s --all
	for bad in '' / /s 1 1GiB 1/s GiB/s -1GiB/s 1GiB/s/s 1GiB/m 0KiB/s 1B/s 2048TiB/s 99999999999999999999GiB/s nan/s; do
		usage 'bandwidth: ' migrate-estimate test --bandwidth "$bad"
	done
	for bad in '' 0 0s 1us 1h -1s inf; do
		usage 'downtime: ' migrate-estimate test --bandwidth 1GiB/s --downtime "$bad"
	done
	for bad in 0s 999ms 61s; do
		usage 'window: ' migrate-estimate test --bandwidth 1GiB/s --window "$bad"
	done
	usage 'frobnicate' migrate-estimate test --bandwidth 1GiB/s --method frobnicate
	usage 'omit DOMAIN' migrate-estimate test --bandwidth 1GiB/s --recording r
	refused 2 'omit --window' migrate-estimate --bandwidth 1GiB/s --recording r --window 60s
	refused 2 'omit --window' migrate-estimate --bandwidth 1GiB/s --recording r --max-stall 5ms
	usage 'salvage needs' migrate-estimate test --bandwidth 1GiB/s --salvage
	refused 2 'missing --bandwidth' migrate-estimate --recording r
	refused 1 'no-such-file' migrate-estimate --bandwidth 1GiB/s --recording no-such-file
	refused 1 'frobnicate' -c test:///default migrate-estimate frobnicate --bandwidth 1GiB/s
	refused 5 'test' -c test:///default migrate-estimate test --bandwidth 1GiB/s
}

@test "a full disk is an error" {
	[ -e /dev/full ] || skip "no /dev/full"
	status=0
	"$virt_wss" -c test:///default list >/dev/full 2>"$BATS_TEST_TMPDIR/err" || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ $status = 1 ]
	[ -s "$BATS_TEST_TMPDIR/err" ]
	status=0
	"$virt_wss" --help >/dev/full 2>/dev/null || status=$?
	[ $status = 1 ]
}

@test "a hostile domain name is harmless on the terminal" {
	printf '%s' "<domain type='test'><name>a&#x9b;31mb\$(id)</name><memory>1024</memory>" \
		"<os><type>hvm</type></os></domain>" >"$BATS_TEST_TMPDIR/domain.xml"
	printf '%s' "<node><domain file='$BATS_TEST_TMPDIR/domain.xml'/></node>" >"$BATS_TEST_TMPDIR/node.xml"
	run "$virt_wss" -c "test://$BATS_TEST_TMPDIR/node.xml" list
	[[ $output == *31mb* ]]
	[[ $output != *$'\xc2\x9b'* && $output != *$'\x1b'* ]]
}

@test "JSON and CSV of list are well formed" {
	"$virt_wss" -c test:///default list --output json | perl -MJSON::PP -e '
		decode_json(join("", <STDIN>))->{schema} =~ m(^virt-wss/[a-z]+/1$) or die "schema"'
	"$virt_wss" -c test:///default list --output csv |
		awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name=domain | grep -qx test
}
