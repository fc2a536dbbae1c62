#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests recordings that are expensive to read: any file of up to 32 MiB is read or
# refused within 2 s of CPU time and 256 MiB, and a stop takes effect within 200 ms.
# The seconds are those of a machine that does the work of reference_seconds in 0.2 s; where
# that takes longer, because of the machine or of what else it does, so may the rest.

virt_wss=$WSS_BUILDDIR/virt-wss
mkhostile=$WSS_BUILDDIR/tests/tools/mkhostile

bats_require_minimum_version 1.5.0

setup() {
	[ -x /usr/bin/time ] || skip "needs time"
	cd "$BATS_TEST_TMPDIR" || return 1
	# Nothing here may use libvirt.
	export LIBVIRT_DEFAULT_URI=nonsense:///
	seconds_limit=2
	# With coverage, which counts each line, it takes ten times as long.
	! grep -q '^SANITIZE_CFLAGS = .*--coverage' "$WSS_BUILDDIR/Makefile" || seconds_limit=20
}

# CPU time of a fixed piece of work, which uses memory as the replay of a recording does.
reference_seconds() {
	/usr/bin/time -q -o reference -f '%U %S' \
		awk 'BEGIN { for (i = 0; i < 5000000; i++) sum[i % 100000] += i }'
	awk '{ print $1 + $2 }' reference
}

# Whether these are seconds_limit, or more on a machine that is slow at the moment.
in_time() { # SECONDS
	local reference
	! awk -v s="$1" -v limit="$seconds_limit" 'BEGIN { exit !(s <= limit) }' || return 0
	reference=$(reference_seconds)
	echo "over the limit; reference $reference s"
	awk -v s="$1" -v limit="$seconds_limit" -v reference="$reference" \
		'BEGIN { exit !(s <= limit * reference / 0.2) }'
}

# Whether it ends well or with a one-line error, within its limits. Uses the cheapest of three
# runs, because the machine has other work.
within() { # ARGUMENT...
	local i status seconds kib
	for i in 1 2 3; do
		status=0
		# SIGXCPU ends a run that takes far too long.
		(ulimit -t $((10 * seconds_limit)) && exec /usr/bin/time -q -o cost -f '%U %S %M' "$virt_wss" "$@" >out 2>err) ||
			status=$?
		read -r seconds kib < <(awk 'END { print $1 + $2, $3 }' cost)
		echo "$*: status $status, $seconds s, $kib KiB: $(head -c 300 err)"
		[ "$status" -le 1 ] && [ "$kib" -le $((256 * 1024)) ] &&
			[ "$(grep -c error: err)" = "$status" ] &&
			{ [ "$status" = 0 ] || [ ! -s out ]; } || return 1
		! in_time "$seconds" || return 0
	done
	return 1
}

all_commands() { # FILE
	within report "$1" &&
		within report "$1" --output json &&
		within report "$1" --output csv &&
		within report "$1" --salvage --viewport 1us:2h --plot p.svg &&
		within heatmap "$1" --plot p.svg &&
		within heatmap "$1" --hot-first --limit 100000 --output json &&
		within diff "$1@1us" "$1" --output json &&
		within diff "$1@1us" "$1@2us" --verbose --output csv &&
		within migrate-estimate --recording "$1" --bandwidth 1GiB/s &&
		within migrate-estimate --recording "$1" --salvage --bandwidth 1MiB/s --output json
}

@test "small recordings of every kind are within the limits" {
	local kind
	for kind in $("$mkhostile"); do
		"$mkhostile" "$kind" r $((3 << 20))
		all_commands r
		rm -f r
	done
}

@test "the worst recordings of 32 MiB are within the limits" {
	local kind
	for kind in single-pages unshared windows balloon balloon-churn balloon-divided; do
		"$mkhostile" "$kind" r
		within report r --output json
		within heatmap r --hot-first --limit 1000
		within migrate-estimate --recording r --bandwidth 1GiB/s
		rm -f r
	done
}

@test "a recording that takes more work than any guest's is refused" {
	"$mkhostile" balloon-divided r
	run -1 --separate-stderr "$virt_wss" report r
	[ -z "$output" ]
	[[ $stderr == *"r: reading it would take too long: "* ]]
}

@test "a recording of a large guest with distant pages is read" {
	"$mkhostile" sparse r
	within report r
	[ ! -s err ]
	within report r --salvage
	[ ! -s err ]
}

@test "content that makes no sense takes no second reading that is long" {
	"$mkhostile" nonsense r $((3 << 20))
	for command in "report r" "heatmap r --hot-first" "diff r@1us r" \
		"migrate-estimate --recording r --bandwidth 1GiB/s"; do
		# shellcheck disable=SC2086
		within $command --salvage
		[[ $(cat err) == "virt-wss: warning: r: damaged or invalid at byte "* ]]
	done
	"$mkhostile" sparse-nonsense r
	within report r --salvage
	[[ $(cat err) == *"r: reading it would take too long: "* ]]
}

# The end of a file may be a hole, which costs its author nothing.
@test "a hole at the end of a recording buys no memory" {
	"$mkhostile" unshared r
	truncate -s 1T r
	within heatmap r --hot-first --limit 1000
}

@test "a diff of a recording of 32 MiB with itself follows the balloon once" {
	"$mkhostile" balloon-churn r
	within diff r r
	within diff r@1us r
}

@test "a diff of two files of 32 MiB whose changes alternate between distant pages" {
	local kind
	# Both files together have 64 MiB.
	seconds_limit=3
	for kind in written random; do
		"$mkhostile" "$kind" r
		within diff r r
		rm -f r
	done
}

@test "a million sorted rows" {
	# Sorting and printing take as long as reading.
	seconds_limit=4
	"$mkhostile" unshared r
	within heatmap r --hot-first --limit 1000000 --sort -bytes
	"$mkhostile" phases r
	within report r --sort -outstanding_bytes
}

@test "two points of one recording take one replay" {
	"$mkhostile" alternate-most r 100000
	truncate -s -1 r
	"$virt_wss" diff r@1us r@2us >out 2>err
	[ "$(grep -c 'cut off' err)" = 1 ]
	# The same result as with two files.
	cp r s
	"$virt_wss" diff r@1us s@2us 2>err | cmp - out
	[ "$(grep -c 'cut off' err)" = 2 ]
}

@test "a mark, while another process writes the recording" {
	local kind
	for kind in optional windows hops-gone; do
		"$mkhostile" "$kind" r
		# F_OFD_SETLK on the byte that a recorder locks.
		perl -e '
			use Fcntl;
			open(my $f, "+<", "r") or die;
			my $area = pack("s s x4 q q i x4", F_WRLCK, 0, 1 << 62, 1, 0);
			fcntl($f, 37, $area) or die;
			exit(system(@ARGV) != 0);' \
			bash -c "$(declare -f within in_time reference_seconds); $(declare -p virt_wss seconds_limit); within mark r MARK"
		grep -q marked err
		rm -f r
	done
}

@test "reading is exact, however the file was written" {
	"$mkhostile" alternate-most r 100000
	"$virt_wss" report r --output csv >intervals.csv
	# All but two of 2^32 pages, in every other window.
	awk -F , 'NR > 1 && $4 != (NR % 2 ? 0 : (2 ^ 32 - 2) * 4096) { bad = 1 } END { exit bad || NR < 100 }' \
		intervals.csv
	"$mkhostile" hotter r 1000000
	"$virt_wss" heatmap r --hot-first --limit 1 --output json |
		grep -q '"windows": [0-9]*, "ranges": [0-9]*'
}

@test "marks in any order are printed in order of time" {
	"$mkhostile" marks-descending r
	"$virt_wss" report r --output json >out.json
	perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>)); $last = 0;
		for (@{$j->{marks}}) { $_->{seconds} >= $last or die "order"; $last = $_->{seconds} }
		@{$j->{marks}} == 65536 or die "number"' <out.json
}

@test "more ranges than anybody reads are refused, not printed" {
	"$mkhostile" single-pages r $((3 << 20))
	run --separate-stderr "$virt_wss" diff r@1us r@0s --verbose
	echo "$status: $stderr"
	[ "$status" = 1 ] && [ -z "$output" ]
	grep -q 'more than 1000000 ranges differ: --limit N' <<<"$stderr"
	"$virt_wss" diff r@1us r@0s --limit 3 >/dev/null
}

# Measures CPU time after the signal, because other processes share the machine. The signal
# comes after $after seconds of CPU time.
after=0.1
stopped() { # ARGUMENT...
	after=$after perl -e '
		use POSIX ":sys_wait_h";
		my $hz = POSIX::sysconf(&POSIX::_SC_CLK_TCK);
		my $pid = fork() // die;
		if (!$pid) {
			open(STDOUT, ">", "/dev/null");
			exec(@ARGV) or die;
		}
		sub cpu {
			open(my $f, "<", "/proc/$pid/stat") or return -1;
			my @w = split(" ", (split(/\) /, <$f>))[1]);
			return ($w[11] + $w[12]) / $hz;
		}
		my $deadline = time() + 60;
		while (cpu() < $ENV{after}) {
			die "it ended too early\n" if waitpid($pid, WNOHANG) == $pid;
			die "it does not get on\n" if time() > $deadline;
			select(undef, undef, undef, 0.005);
		}
		my $before = cpu();
		kill("TERM", $pid);
		waitpid($pid, 0);
		my (undef, undef, $user, $system) = times();
		printf "%s: status %d, %.2f s of CPU time behind the signal\n", "@ARGV", $? >> 8,
			$user + $system - $before;
		exit(!($? >> 8 == 143 && $user + $system - $before < 0.2));' \
		"$virt_wss" "$@"
}

@test "a stop takes effect at once" {
	"$mkhostile" random r $((64 << 20))
	stopped report r
	stopped heatmap r --plot p.svg
	[ ! -e p.svg ]
	stopped heatmap r --hot-first
	stopped diff r r
	stopped migrate-estimate --recording r --bandwidth 1GiB/s
	"$mkhostile" windows w
	stopped report w --output json
	stopped report w --output csv
	"$mkhostile" balloon-churn b
	after=0.5
	stopped report b
	stopped diff b b
}

@test "a stop is heeded while rows are held, sorted and written" {
	local total share
	"$mkhostile" phases r
	# Based on the cheapest of three runs, so that it is not over when the signal comes.
	total=$(TIMEFORMAT=%U; for _ in 1 2 3; do
		{ time "$virt_wss" report r --sort -outstanding_bytes >out; } 2>&1
	done | sort -n | head -n 1)
	for share in 0.45 0.6; do
		after=$(awk -v t="$total" -v s="$share" 'BEGIN { print t * s }')
		stopped report r --sort -outstanding_bytes
	done
}
