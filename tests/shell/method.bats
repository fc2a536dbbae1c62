#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests a method that src/ does not know (tests/tools/method-fake.c), in a build of virt-wss
# that lists it: everything that accepts a method also accepts this one.

load fake-guest.sh
# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/tests/tools/virt-wss-fake

setup() {
	[ -x "$virt_wss" ] || skip "no tests/tools/virt-wss-fake"
	fake_setup
}

teardown() {
	fake_teardown
}

# Starts a guest whose RAM lies where that of a PC does.
pc_start() { # [RAM]
	fake_start <<-EOF
		ram ${1:-128} 32 memfd
		on qom-get
		return "pc-i440fx-7.2-machine"
	EOF
}

json() { # EXPRESSION of the JSON on stdout, as $j
	perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>)); eval $ARGV[0] or die "not: $ARGV[0]\n"' "$1" <<<"$out"
}

@test "it is in the list of that build, and in no other" {
	local list='mmu, refs or fake'
	[[ $("$virt_wss" --version) == *$'\n'"methods: mmu refs fake"$'\n'* ]]
	pc_start
	wss sample --method none
	[ "$status" = 2 ]
	[[ $err == *"'none' is not auto, $list" ]]
	wss methods --output json
	[ "$status" = 0 ]
	json '@{$j->{methods}} == 3'
	json '$m = $j->{methods}[2]; $m->{method} eq "fake" && $m->{usable} && !$m->{auto}'
	json '!exists $j->{methods}[2]{recorder}'
	virt_wss=$WSS_BUILDDIR/virt-wss
	wss sample --method fake
	[ "$status" = 2 ]
	[[ $err == *"'fake' is not auto, "* ]]
}

@test "it measures a guest" {
	pc_start
	wss sample --method fake --window 200ms --count 2 --output json
	[ "$status" = 0 ]
	json '@{$j->{samples}} == 2 && $j->{samples}[1]{method} eq "fake"'
	json '!grep { $_->{wss_bytes} != 8 << 20 || $_->{wss_low_bytes} != 8 << 20 } @{$j->{samples}}'
	# On a busy machine its process gets too little CPU time, which degrades the figure.
	json '!grep { $_->{quality} ne "ok" && !grep(/'"$embed_slowed"'/, @{$_->{notes}}) } @{$j->{samples}}'
	json '$j->{samples}[0]{written_bytes} == 4 << 20 && $j->{samples}[0]{granularity_bytes} == 4096'
	json '$j->{samples}[0]{notes}[0] eq "nothing of this is true"'
	wss profile --method fake --from 10ms --to 300ms --output csv
	[ "$status" = 0 ]
	grep -q fake <<<"$out"
	# auto prefers the first method that can do what is requested.
	wss sample --window 200ms --output csv
	[ "$(field method)" = refs ]
	wss sample --window 200ms --recorder bpf --output csv
	[ "$(field method)" = fake ]
}

@test "its pages are recorded, reported, compared and drawn" {
	local seconds
	pc_start
	# On a busy machine windows are late.
	for seconds in 2 8 32 128; do
		rm -f "$BATS_TEST_TMPDIR/r"
		wss record -o "$BATS_TEST_TMPDIR/r" --for ${seconds}s --interval 200ms --window 100ms
		[ "$status" = 0 ]
		# Readers need not know the method.
		virt_wss=$WSS_BUILDDIR/virt-wss run_wss report "$BATS_TEST_TMPDIR/r" --output json
		[ "$status" = 0 ]
		! json '$j->{viewport}{windows} >= 5' || break
	done
	virt_wss=$WSS_BUILDDIR/virt-wss
	json '$j->{recording}{method} eq "fake" && $j->{viewport}{windows} >= 5'
	# 8 MiB in each window, each 1 MiB further up, and half of that written.
	json '!grep { $_->{kind} eq "window" && $_->{outstanding_bytes} != 8 << 20 } @{$j->{intervals}}'
	json '$j->{viewport}{reference_bytes} == (7 + $j->{viewport}{windows}) << 20'
	json '!grep { $_->{kind} eq "window" && $_->{written_bytes} != 4 << 20 } @{$j->{intervals}}'
	run_wss diff "$BATS_TEST_TMPDIR/r@100ms" "$BATS_TEST_TMPDIR/r@700ms" --output json
	[ "$status" = 0 ]
	run_wss heatmap "$BATS_TEST_TMPDIR/r" --plot "$BATS_TEST_TMPDIR/heat.svg"
	[ "$status" = 0 ]
	xmllint --noout "$BATS_TEST_TMPDIR/heat.svg"
}

@test "what it cannot do is refused with its name" {
	pc_start
	# It does not claim to work on held guests.
	wss sample --method fake --window 200ms --pause
	[ "$status" = 5 ]
	[[ $err == *"method fake cannot measure a guest while it is paused" ]]
	wss record --method refs -o "$BATS_TEST_TMPDIR/r"
	[ "$status" = 5 ]
	[[ $err == *"method refs: it has no recorder of pages"* ]]
	fake_teardown
	pc_start 48
	wss record -o "$BATS_TEST_TMPDIR/r"
	[ "$status" = 5 ]
	[[ $err == *"no method can record the pages of this guest (mmu: "*"refs: "*"; fake: "* ]]
	[ ! -e "$BATS_TEST_TMPDIR/r" ]
}

# Its options come with its name, so that no command knows them.
@test "it has options of its own, wherever a method is chosen" {
	pc_start
	wss sample --method fake,touched=4 --window 200ms --output json
	[ "$status" = 0 ]
	json '$s = $j->{samples}[0]; $s->{wss_bytes} == 4 << 20 && $s->{written_bytes} == 2 << 20'
	# An earlier choice leaves nothing behind.
	wss sample --method fake,touched=4 --method fake --window 200ms --output json
	[ "$status" = 0 ]
	json '$j->{samples}[0]{wss_bytes} == 8 << 20'
	wss profile --method fake,touched=2 --from 10ms --to 300ms --output json
	[ "$status" = 0 ]
	grep -q 2097152 <<<"$out"
	wss record --method fake,touched=2 -o "$BATS_TEST_TMPDIR/r" --for 1s --interval 200ms
	[ "$status" = 0 ]
	run_wss report "$BATS_TEST_TMPDIR/r" --output json
	json '!grep { $_->{kind} eq "window" && $_->{outstanding_bytes} != 2 << 20 } @{$j->{intervals}}'
	wss methods --output json
	[ "$status" = 0 ]
	json '$j->{methods}[2]{options} =~ /^touched=: MiB .*; bounds=: what is known/'
	json '!grep { exists $_->{options} } @{$j->{methods}}[0, 1]'
	# However long its texts are, the table is aligned; awk may count bytes.
	wss methods --columns method,options,usable
	[ "$(awk 'NR == 1 { at = index($0, "USABLE") } substr($0, at - 1) ~ /^ (yes|no) *$/' <<<"${out//…/.}" | wc -l)" = 3 ]
}

# One for which the guest has had its CPU time: of another, that is what is said.
sample_least() {
	wss sample --method fake,bounds=least --window 200ms
	[ "$status" = 0 ] && ! [[ $err =~ $embed_slowed ]]
}

@test "a method that only gives bounds: each figure says so" {
	pc_start
	wss sample --method fake,bounds=most,touched=16 --window 200ms
	[ "$status" = 0 ]
	[[ $out == *"<= 16 MiB"* ]]
	wss sample --method fake,bounds=most --window 200ms --output json
	json '$s = $j->{samples}[0]; $s->{wss_low_bytes} == 0 && $s->{wss_high_bytes} == 8 << 20'
	wait_until 60 sample_least
	# Who sizes guests leaves those samples out, for the guest may need more.
	[[ $out == *"degraded "*">= 8 MiB"* ]]
	[[ $err == *"the figure is a lower bound"* ]]
	wss profile --method fake,bounds=most --from 10ms --to 300ms --plot "$BATS_TEST_TMPDIR/p.svg"
	[ "$status" = 0 ]
	[[ $out == *"0 B -8 MiB "* ]]
	xmllint --noout "$BATS_TEST_TMPDIR/p.svg"
}

@test "a recording without any window leaves the old one, and fails at once" {
	local old=$BATS_TEST_TMPDIR/r
	pc_start
	wss record --method fake -o "$old" --for 400ms --interval 200ms
	[ "$status" = 0 ]
	cp "$old" "$old.copy"
	# Its pages are not known, so there is nothing to record.
	wss record --method fake,bounds=most -o "$old" --for 10h --interval 200ms
	[ "$status" = 1 ]
	[[ $err == *"no window could be recorded: "*[a-z]* ]]
	# Fewer windows than are tried.
	wss record --method fake,bounds=most -o "$old" --for 200ms --interval 200ms
	[ "$status" = 1 ]
	[[ $err == *"no window could be recorded: "*[a-z]* ]]
	cmp "$old" "$old.copy"
	wss record --method fake,bounds=most -o "$old.none" --for 200ms --interval 200ms
	[ "$status" = 1 ]
	[ "$(find "$BATS_TEST_TMPDIR" -name 'r.none*' -o -name '.virt-wss-*' | wc -l)" = 0 ]
}

@test "options that a method does not have are refused, with those that it has" {
	local choice message
	pc_start
	while read -r choice message; do
		for command in sample profile "record -o $BATS_TEST_TMPDIR/r"; do
			# shellcheck disable=SC2086
			wss $command --method "$choice"
			[ "$status" = 2 ]
			[[ $err == *"--method: $message" ]]
		done
	done <<-EOF
		fake,tuched=4 unknown option 'tuched' of fake: did you mean 'touched'?
		fake,x=4 unknown option 'x' of fake, which has touched, bounds
		fake, unknown option '' of fake, which has touched, bounds
		fake,touched option 'touched' of fake needs a value: fake,touched=VALUE
		fake,touched=17 fake: touched: '17' is not a whole number from 1 to 16
		fake,touched=2,bounds= fake: bounds: '' is not exact, most or least
		refs,touched=4 refs has no options of its own
		auto,touched=4 auto has no options of its own
	EOF
	[ ! -e "$BATS_TEST_TMPDIR/r" ]
}

@test "methods --explain tells of each method what it counts, what it costs and where it may be wrong" {
	pc_start
	wss methods --explain
	[ "$status" = 0 ]
	grep -qE '^[^ ]+: mmu cannot measure it$' <<<"$out"
	grep -qE '^[^ ]+: refs can measure it, and is chosen by default$' <<<"$out"
	grep -qE '^[^ ]+: fake can measure it$' <<<"$out"
	[ "$(grep -cE '^    (counts|costs|limits): +[^ (]' <<<"$out")" = 9 ]
	grep -qE '^    why not: +the guest does not run on KVM' <<<"$out"
	grep -q '^    limits:  everywhere$' <<<"$out"
	wss methods --explain --output json
	json '$j->{methods}[2]{costs} eq "nothing" && $j->{methods}[0]{limits}'
	status=0
	"$virt_wss" --qmp "$socket" methods --explain >/dev/full || status=$?
	[ "$status" = 1 ]
}

@test "--method all takes all that can measure the guest in turn, and compares them" {
	pc_start
	wss sample --method all --window 300ms --output json
	[ "$status" = 0 ]
	json 'join(",", map { $_->{method} } @{$j->{samples}}) eq "refs,fake,refs"'
	json '$j->{samples}[2]{notes}[0] =~ /^fake .*refs/'
	wss sample --method all --window 300ms
	[ "$status" = 0 ]
	[ "$(grep -cE ' (refs|fake) ' <<<"$out")" = 3 ]
	[[ $err == *": note: fake "*"refs"* ]]
}
