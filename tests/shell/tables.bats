#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests tables: they fit 80 columns, long and wide names leave them aligned, and
# --wide, --columns and --sort work. On libvirt's test driver, and recordings of
# invented guests.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
uuid=11111111-2222-3333-4444-55555555000
long="a-rather-long-name-of-a-guest-in-production-17"
cjk=数据库服务器一号
ellipsis=…

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LC_ALL=C.UTF-8
}

profile() { # CURRENT LOW: a measured guest's metadata
	printf '%s' "<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1'" \
		" time='2026-11-20T18:00:00Z' method='mmu' observes='accesses' window='4.02'" \
		" granularity='2097152' confidence='low' tool='0.1.0'>" \
		"<wss:current unit='bytes'>$1</wss:current><wss:low unit='bytes'>$2</wss:low>" \
		"<wss:high unit='bytes'>$1</wss:high></wss:profile>"
}

# Makes a host with guests of these names, the first with metadata.
node() { # METADATA NAME... -> LIBVIRT_DEFAULT_URI
	local metadata=$1 n=0 name
	shift
	echo '<node>' >node.xml
	for name; do
		n=$((n + 1))
		printf '%s' "<domain type='test'><name>$name</name><uuid>$uuid$n</uuid>" \
			"<memory unit='GiB'>4</memory><metadata>$metadata</metadata>" \
			"<os><type>hvm</type></os></domain>" >"$n.xml"
		metadata=
		echo "<domain file='$PWD/$n.xml'/>" >>node.xml
	done
	echo '</node>' >>node.xml
	export LIBVIRT_DEFAULT_URI=test://$PWD/node.xml
}

history_of() { # N-SAMPLES BYTES STEP GUEST...
	local n=$1 bytes=$2 step=$3
	shift 3
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" "$n" "$bytes" "$step" "${@/#/$uuid}"
}

# Prints stdout as on a terminal with this number of columns, without messages.
terminal() { # COLUMNS ARGUMENT... -> out
	local columns=$1
	shift
	out=$(script -qec "stty cols $columns rows 40; $(printf '%q ' "$virt_wss" "$@") 2>/dev/null" \
		/dev/null </dev/null | tr -d '\r')
	printf '$ virt-wss %s (%s columns)\n%s\n' "$*" "$columns" "$out"
	[ -n "$out" ]
}

piped() { # ARGUMENT... -> out
	out=$("$virt_wss" "$@" 2>err)
	printf '$ virt-wss %s\n%s\n' "$*" "$out"
	[ -n "$out" ]
}

refused() { # REGULAR-EXPRESSION ARGUMENT...
	fails 2 "$@" && [ -z "$out" ]
}

no_wider_than() { # COLUMNS
	[ "$(wc -L <<<"$out")" -le "$1" ]
}

# Whether all figures of a right-aligned column end where its heading ends, in terminal
# columns.
aligned() { # HEADING
	perl -CSDA -Mutf8 -e '
		sub width { my $w = 0; $w += ord($_) >= 0x2e80 ? 2 : 1 for split //, shift; $w }
		my $heading = shift;
		my $head = <STDIN>;
		$head =~ /^(.*?\b\Q$heading\E)(?=\s|$)/ or die "no $heading";
		my $end = width($1);
		while (<STDIN>) {
			chomp;
			last if $_ eq "";
			next if /^ /; # a text that goes on
			my ($at, $w) = (0, 0);
			$w += width(substr($_, $at++, 1)) while $w < $end && $at < length;
			substr($_, $at - 1, 1) ne " " && ($at == length || substr($_, $at, 1) eq " ")
				or die "not below $heading: $_\n";
		}' "$1" <<<"$out"
}

# Every command that prints a table of guests, with one of its headings.
guest_tables=("list:CURRENT" "recommend:RECOMMEND" "recommend --what-if 640MiB:EXCEEDED" "balloon:FROM"
	"policy get:HEADROOM")

@test "default tables of guests fit 80 columns, on a terminal and in a pipe" {
	node "$(profile 150994944 294912)" web1 db2
	history_of 10 $((100 << 20)) 300 1
	for table in "${guest_tables[@]}" "methods:METHOD"; do
		# shellcheck disable=SC2086
		terminal 80 ${table%:*}
		no_wider_than 80
		grep -qE "^DOMAIN .*${table#*:}" <<<"$out"
		grep -q '^web1 ' <<<"$out"
		# shellcheck disable=SC2086
		piped ${table%:*}
		[[ $table == methods* ]] || no_wider_than 80
		grep -q '^web1 ' <<<"$out"
	done
}

@test "a guest that is given by its UUID has a column as wide as its name; ranks have one of their own" {
	node '' "$long" db2
	history_of 10 $((100 << 20)) 300 1
	piped recommend ${uuid}1
	aligned RECOMMEND
	piped recommend --host
	grep -qE "^RANK  DOMAIN " <<<"$out"
	grep -qE "^ +-  $long " <<<"$out"
}

@test "long names and wide characters leave tables aligned: cut on a terminal, whole in a pipe" {
	node "$(profile 150994944 294912)" "$long" "$cjk" db2 "${long%7}8"
	history_of 10 $((100 << 20)) 300 1 2
	for table in "${guest_tables[@]}"; do
		# shellcheck disable=SC2086
		terminal 80 ${table%:*}
		no_wider_than 80
		# Two that differ only at their ends can still be told apart.
		grep -qE "^a-rath[^ ]*${ellipsis}[^ ]*-17  " <<<"$out"
		grep -qE "^a-rath[^ ]*${ellipsis}[^ ]*-18  " <<<"$out"
		aligned "${table#*:}"
		# shellcheck disable=SC2086
		terminal 120 ${table%:*}
		no_wider_than 120
		grep -q "^$long  " <<<"$out"
		grep -q "^$cjk  " <<<"$out"
		aligned "${table#*:}"
		# shellcheck disable=SC2086
		piped ${table%:*}
		grep -q "^$long  " <<<"$out"
		grep -q "^$cjk  " <<<"$out"
		aligned "${table#*:}"
	done
}

@test "a name of thousands of characters widens no row and hides no reason; CSV and JSON keep it whole" {
	local endless wide table
	endless=$(printf 'x%.0s' {1..2990})-end wide=$(printf '数%.0s' {1..700})-wide
	node '' "$endless" "$wide" db2 "${endless%d}t"
	history_of 10 $((100 << 20)) 300 1 2
	for table in 'list' 'list --sort domain' 'policy get' 'history --by day' 'recommend' 'recommend --sort domain'; do
		# shellcheck disable=SC2086
		piped $table
		/usr/bin/python3 -c 'import sys, unicodedata
for line in sys.stdin.read().splitlines():
	assert not line.startswith("DOMAIN") or len(line) < 200, line
	assert sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in line.partition("  ")[0]) <= 80, line' <<<"$out"
	done
	[ "$("$virt_wss" list --output csv | grep -cE "^($endless|$wide),")" = 2 ]
	[ "$("$virt_wss" list --output json | grep -cF -e "\"$endless\"" -e "\"$wide\"")" = 2 ]
	run --separate-stderr "$virt_wss" sample
	echo "$stderr"
	[ "${#stderr_lines[@]}" = 4 ]
	[ "$(wc -L <<<"$stderr")" -lt 160 ]
	[ "$(grep -cE "^virt-wss: error: [^ ]+: (libvirt's driver 'TEST' runs no QEMU guests|the domain XML has .*255 bytes)" <<<"$stderr")" = 4 ]
}

@test "a reason that does not fit wraps on a terminal, and is one line in a pipe" {
	node '' web1
	terminal 60 methods
	no_wider_than 60
	# The rest of the reason is in the column of its first word.
	perl -e '<STDIN>; $_ = <STDIN>; /^(web1 .*? )libvirt/ or die; $n = length $1;
		$_ = <STDIN>; /^ {$n}\S/ or die "not below"' <<<"$out"
	piped methods
	[ "$(grep -c "runs no QEMU guests" <<<"$out")" = "$(($(wc -l <<<"$out") - 1))" ]
}

@test "several hosts: their names appear next to the guests, within 80 columns of a terminal" {
	node "$(profile 150994944 294912)" web1
	cp -r . ../host-of-a-rather-long-name-that-is-in-production
	sed -i "s|$PWD/|${PWD%/*}/host-of-a-rather-long-name-that-is-in-production/|" \
		../host-of-a-rather-long-name-that-is-in-production/node.xml
	a=test://${PWD%/*}/host-of-a-rather-long-name-that-is-in-production/node.xml
	node '' "$long"
	terminal 80 list -c "$a" -c "$LIBVIRT_DEFAULT_URI"
	no_wider_than 80
	aligned CURRENT
	piped list -c "$a" -c "$LIBVIRT_DEFAULT_URI"
	grep -q "^web1 .*$a\$" <<<"$out"
	aligned CURRENT
}

@test "a bound is marked in a table, and nowhere else" {
	node "$(profile 150994944 294912)" web1
	piped list
	grep -qE '^web1 .* <= 144 MiB ' <<<"$out"
	piped list --output csv --columns current_bytes
	[ "$(tail -n 1 <<<"$out" | tr -d '\r')" = 150994944 ]
	node "$(profile 150994944 150994944)" web1
	piped list
	grep -qE '^web1 .*[0-9] [a-z]+ +144 MiB ' <<<"$out"
}

@test "--what-if: the windows above a size are a bound where they are of huge pages" {
	node '' web1 web2
	history_of 400 $((100 << 20)) 300 1
	"$WSS_BUILDDIR/tests/unit/make-history" -g $((2 << 20)) "$VIRT_WSS_HISTORY" 400 $((100 << 20)) 300 ${uuid}2
	piped recommend --what-if 50MiB
	grep -qE '^web1 .* 50 MiB +100.0%$' <<<"$out"
	grep -qE '^web2 .* 50 MiB +<=100.0%$' <<<"$out"
	piped recommend --what-if 250MiB
	grep -qE '^web2 .* 250 MiB +0.0%$' <<<"$out"
}

@test "too early shows how many windows there are, and is counted apart from unknown" {
	node '' web1 web2 web3
	history_of 3 $((100 << 20)) 300 1
	history_of 20 $((100 << 20)) 300 2
	piped recommend
	grep -qE '^web1 +too early .* 3 of 10 ' <<<"$out"
	grep -qE '^web2 +ok .* 20 ' <<<"$out"
	grep -qE '^GUESTS +UNKNOWN +EARLY ' <<<"$out"
	tail -n 1 <<<"$out" | grep -qE '^ +3 +1 +1 '
	piped recommend --output csv --columns samples
	[ "$(sed -n 2p <<<"$out" | tr -d '\r')" = 3 ]
	piped recommend --output json
	perl -MJSON::PP -e '
		$h = decode_json(join("", <STDIN>))->{host};
		# Both kinds have no size; each has a count of its own.
		$h->{unknown_guests} == 2 && $h->{status_unknown_guests} == 1 && $h->{too_early_guests} == 1
			or die "counts"' <<<"$out"
}

@test "the host: assigned memory relative to the need and to the host are two figures" {
	node '' web1
	history_of 20 $((100 << 20)) 300 1
	piped recommend --output json
	perl -MJSON::PP -e '
		sub near { abs($_[0] / $_[1] - 1) < 1e-5 }
		$h = decode_json(join("", <STDIN>))->{host};
		near($h->{overcommit}, $h->{assigned_bytes} / $h->{needed_bytes}) or die "needed";
		near($h->{assigned_of_host}, $h->{assigned_bytes} / $h->{host_bytes}) or die "host";
		!near($h->{overcommit}, $h->{assigned_of_host}) or die "the same"' <<<"$out"
	piped recommend
	grep -qE '^GUESTS .* NEEDED  ASSIGNED/NEEDED +FREE$' <<<"$out"
	[[ $out != *OVERCOMMIT* ]]
}

@test "--sort: by value, in reverse, unknown last, with the host's line at the end" {
	node '' web1 web2 web3 web4
	history_of 20 $((2 << 30)) 300 1
	history_of 20 $((900 << 20)) 300 3
	history_of 20 $((3 << 30)) 300 4
	piped recommend --sort recommended_bytes
	[ "$(awk '/^web/ { print $1 }' <<<"$out" | tr '\n' ' ')" = "web3 web1 web4 web2 " ]
	tail -n 2 <<<"$out" | head -n 1 | grep -q '^GUESTS '
	piped recommend --sort -recommended_bytes
	[ "$(awk '/^web/ { print $1 }' <<<"$out" | tr '\n' ' ')" = "web4 web1 web3 web2 " ]
	piped recommend --sort -domain --output csv --columns domain
	[ "$(tr -d '\r' <<<"$out" | tr '\n' ' ')" = "domain web4 web3 web2 web1 " ]
}

json() { # ARGUMENT...
	"$virt_wss" "$@" --output json | sed -E 's/"age_seconds": [0-9]+/"age_seconds": 0/'
}

@test "--columns: these, in this order, in tables and CSV; JSON has all" {
	node "$(profile 150994944 294912)" web1
	piped list --columns current_bytes,domain
	[ "$(head -n 1 <<<"$out")" = "    CURRENT  DOMAIN" ]
	piped list --columns current_bytes,domain --output csv
	[ "$out" = $'current_bytes,domain\r\n150994944,web1\r' ]
	# The age of the profile grows meanwhile.
	diff <(json list) <(json list --columns domain)
	piped list --columns uuid
	[[ $out == *"${uuid}1"* ]]
}

@test "unknown columns: the nearest one and a list are shown before anything is done" {
	node '' web1
	for command in sample profile methods list recommend balloon "policy get"; do
		# shellcheck disable=SC2086
		refused "--columns: no column 'domian'; did you mean 'domain'\\? Columns: domain, " \
			$command --columns domian
		# shellcheck disable=SC2086
		refused "--sort: no column 'frobnicate'. Columns: " $command --sort frobnicate
	done
	refused "did you mean 'wss_bytes'" sample --columns domain,wss
	refused "no column" sample --columns ''
	# The file is not opened yet.
	refused "did you mean 'share'" heatmap none --hot-first --sort -shar
	refused "did you mean 'bytes'" diff none none --columns byte
	refused "did you mean 'kind'" report none --columns knd
	refused "unknown option" record --columns domain
	# Commands that print no table refuse them.
	refused "--apply prints no table" balloon web1 --apply --wide
	refused "--restore prints no table" balloon --restore --columns domain
	refused "policy set prints no table" policy set web1 --headroom 20 --sort domain
	refused "policy clear prints no table" policy clear web1 --wide
}

@test "--columns help: each column with heading and meaning, within a terminal's width" {
	for command in sample profile methods list recommend balloon policy report diff heatmap; do
		terminal 80 "$command" --columns help
		no_wider_than 80
		head -n 1 <<<"$out" | grep -qE '^NAME +HEADING +SHOWN +MEANING$'
	done
}

@test "--wide shows more columns" {
	node '' web1
	piped list --wide
	for column in METHOD GRAN WINDOW CURRENT LOW HIGH P50 P95 PEAK CONFIDENCE SAMPLES; do
		head -n 1 <<<"$out" | grep -qw "$column"
	done
}

@test "report, diff, heatmap: 80 columns, --wide, --columns, --sort" {
	export LIBVIRT_DEFAULT_URI=nonsense:///
	"$WSS_BUILDDIR/tests/tools/mkrecording" r --phases 4096:5,16384:8,2048:7 --mark-every 6 >said
	for table in "report r" "diff r@2s r@18s" "heatmap r --hot-first"; do
		# shellcheck disable=SC2086
		terminal 80 $table
		no_wider_than 80
		# shellcheck disable=SC2086
		piped $table
		no_wider_than 80
		# shellcheck disable=SC2086
		piped $table --wide
	done
	piped report r --sort -outstanding_bytes --columns start_seconds,outstanding_bytes
	table=$(sed -n '/^ *START  *SET$/,$p' <<<"$out")
	sed -n 2p <<<"$table" | grep -qE ' 64 MiB$'
	tail -n 1 <<<"$table" | grep -qE ' 8 MiB$'
	[[ $out != *"####"* ]]
	piped heatmap r --hot-first --sort start_address --columns start_address,windows --output csv
	head -n 1 <<<"$out" | grep -q '^start_address,windows'
	# Addresses are sorted as numbers, not as texts.
	sed 1d <<<"$out" | perl -ne '/^0x([0-9a-f]+),/ or die; die if hex($1) < $last; $last = hex($1)'
	piped diff r@2s r@18s --sort -bytes --columns bytes
	head -n 8 <<<"$out" | tail -n 1 | grep -q CHANGED
}
