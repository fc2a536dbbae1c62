#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests recordings that are expensive to read: any file of up to 32 MiB is read or
# refused within 256 MiB, with work that grows no faster than its size, and a stop takes effect at once.
# Work is counted: instructions, as callgrind counts them, and bytes that are read and written.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
mkhostile=$WSS_BUILDDIR/tests/tools/mkhostile

bats_require_minimum_version 1.5.0

setup() {
	[ -x /usr/bin/time ] || skip "needs time"
	cd "$BATS_TEST_TMPDIR" || return 1
	# Nothing here may use libvirt.
	export LIBVIRT_DEFAULT_URI=nonsense:///
}

# Whether it ends well or with a one-line error, and within its memory. SIGXCPU ends what hangs: the longest takes two seconds.
within() { # ARGUMENT...
	local status=0 kib
	(ulimit -t 300 && exec /usr/bin/time -q -o cost -f %M "$virt_wss" "$@" >out 2>err) || status=$?
	kib=$(tail -n 1 cost)
	echo "$*: status $status, $kib KiB: $(head -c 300 err)"
	[ "$status" -le 1 ] && [ "$kib" -le $((256 * 1024)) ] &&
		[ "$(grep -c error: err)" = "$status" ] &&
		{ [ "$status" = 0 ] || [ ! -s out ]; }
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

# Two seconds of a processor that executes three instructions a nanosecond.
most_instructions=6000000000

# Four times the data may take six times the work, as some of it grows by the logarithm; 16 times would be quadratic.
@test "the work of a recording of every kind is limited, and grows as it does" {
	local kind command small large start
	command -v valgrind >/dev/null || skip "needs valgrind"
	start=$(instructions "$virt_wss" --version)
	for kind in $("$mkhostile"); do
		"$mkhostile" "$kind" small $((64 << 10))
		"$mkhostile" "$kind" large $((256 << 10))
		for command in "report FILE --output json" "heatmap FILE --hot-first --limit 1000" \
			"diff FILE@1us FILE --output csv" "migrate-estimate --recording FILE --bandwidth 1GiB/s"; do
			# shellcheck disable=SC2086
			small=$(instructions "$virt_wss" ${command//FILE/small})
			# shellcheck disable=SC2086
			large=$(instructions "$virt_wss" ${command//FILE/large})
			echo "$kind: $command: $small, $large instructions"
			[ "$large" -le $most_instructions ]
			[ $((large - start)) -le $((6 * (small - start) + 30000000)) ]
		done
		rm -f small large
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
	for kind in written random; do
		"$mkhostile" "$kind" r
		within diff r r
		rm -f r
	done
}

@test "a million sorted rows" {
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
			bash -c "$(declare -f within); $(declare -p virt_wss); within mark r MARK"
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
	[ "$status" = 1 ]
	[ -z "$output" ]
	grep -q 'more than 1000000 ranges differ: --limit N' <<<"$stderr"
	"$virt_wss" diff r@1us r@0s --limit 3 >/dev/null
}

# Sends SIGTERM to virt-wss once it has read SHARE of the file and, if the share is 1, before or after it has begun to write. It is
# suspended meanwhile, so that what it still reads and writes is counted from the signal on: a MiB at most of each.
stopped() { # SHARE read|held|written FILE ARGUMENT...
	perl -e '
		use POSIX ":sys_wait_h";
		my ($share, $when, $file, @command) = @ARGV;
		my $size = -s $file;
		sub io { # -> bytes read, bytes written
			open(my $f, "<", "/proc/$_[0]/io") or return;
			my %io = map { /(\w+): (\d+)/ } <$f>;
			return @io{"rchar", "wchar"};
		}
		sub state {
			open(my $f, "<", "/proc/$_[0]/stat") or return "";
			return (split(" ", (split(/\) /, <$f>))[1]))[0];
		}
		sub pause { select(undef, undef, undef, 0.001) }
		# The moment may pass between two looks.
		for my $try (1 .. 20) {
			my $pid = fork() // die;
			if (!$pid) {
				open(STDOUT, ">", "/dev/null");
				exec(@command) or die;
			}
			my ($read, $written);
			while (state($pid) ne "Z") {
				($read, $written) = io($pid);
				last if $read >= $share * $size && ($when ne "written" || $written);
				pause();
			}
			kill("STOP", $pid);
			pause() while state($pid) !~ /[TZ]/;
			($read, $written) = io($pid);
			my $early = $when eq "read" ? $read < $size : $when eq "held" ? !$written : 1;
			if (state($pid) eq "Z" || !$early) {
				kill("KILL", $pid);
				waitpid($pid, 0);
				next;
			}
			kill("TERM", $pid);
			kill("CONT", $pid);
			pause() while state($pid) ne "Z";
			my ($read_last, $written_last) = io($pid);
			waitpid($pid, 0);
			printf "@command: status %d, read %d and wrote %d bytes after the signal\n", $? >> 8, $read_last - $read,
				$written_last - $written;
			exit(!($? >> 8 == 143 && $read_last - $read <= 1 << 20 && $written_last - $written <= 1 << 20));
		}
		die "@command: the moment was missed each time\n"' "$1" "$2" "$3" "$virt_wss" "${@:4}"
}

@test "a stop takes effect at once" {
	"$mkhostile" random r $((64 << 20))
	stopped 0.1 read r report r
	stopped 0.1 read r heatmap r --plot p.svg
	[ ! -e p.svg ]
	stopped 0.1 read r heatmap r --hot-first
	stopped 0.1 read r diff r r
	stopped 0.1 read r migrate-estimate --recording r --bandwidth 1GiB/s
	"$mkhostile" windows w
	stopped 0.1 read w report w --output json
	stopped 0.1 read w report w --output csv
	"$mkhostile" balloon-churn b
	stopped 0.3 read b report b
	stopped 0.3 read b diff b b
}

@test "a stop takes effect while rows are held, sorted and written" {
	"$mkhostile" phases r
	stopped 1 held r report r --sort -outstanding_bytes
	stopped 1 written r report r --sort -outstanding_bytes
}
