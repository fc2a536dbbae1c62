# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of make check-root: virt-wss on TCG guests under qemu:///embed.
# Each file makes its own root, so that files can run at the same time.

# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "${WSS_SRCDIR:?}/scripts/embed.sh"
# shellcheck source-path=SCRIPTDIR source=../functions.sh
. "$WSS_SRCDIR/tests/functions.sh"

virt_wss=${WSS_BUILDDIR:?}/virt-wss
wss_as=() # a command that runs virt-wss as somebody else, or with another clock
within=() # see wss_whole

# For setup_file, which must not skip by itself, because bats would count that as a failure. If
# something is missing it is named in root_missing; setup_file then returns, and setup skips
# each test.
root_setup_file() { # [PROGRAM...] that the tests need, besides QEMU and virsh
	local program
	export root_missing=''
	[ "$(id -u)" = 0 ] || root_missing="needs root"
	for program in qemu-system-x86_64 virsh "$@"; do
		[ -n "$root_missing" ] || command -v "$program" >/dev/null || root_missing="needs $program"
	done
	[ -z "$root_missing" ] || return 0
	if embed_prepare "${WSS_GUEST_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/virt-wss/guest}"; then
		root_new
	else
		root_missing="no test guest could be made"
	fi
}

# The first line of each setup.
root_setup() {
	[ -z "${root_missing-}" ] || skip "$root_missing"
}

setup() {
	root_setup
}

root_new() { # -> embed_root, LIBVIRT_DEFAULT_URI
	embed_root_new
	LIBVIRT_DEFAULT_URI=$(embed_uri)
	export embed_root LIBVIRT_DEFAULT_URI
}

root_teardown_file() {
	[ -z "${embed_owner-}" ] || embed_cleanup
}

# On a busy machine a window may take long to begin: a limit that none exceeds, unless the arguments have another one -> wss_words
with_patience() { # ARGUMENT...
	local word
	wss_words=()
	for word; do
		wss_words+=("$word")
		case $word in sample | record | profile | migrate-estimate) wss_words+=(--max-stall 30s) ;; esac
	done
}

# Runs virt-wss with a deadline that only ends what hangs: status, stdout in $out, stderr in $err.
wss() { # ARGUMENT...
	status=0
	with_patience "$@"
	timeout -k 5 500 "${wss_as[@]}" "$virt_wss" "${wss_words[@]}" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	contents out "$BATS_TEST_TMPDIR/out"
	contents err "$BATS_TEST_TMPDIR/err"
	printf '$ virt-wss %s -> %s\n%s\n%s\n' "$*" "$status" "$out" "$err"
}

# Stores windows until there are 12 good ones of each guest, which are enough to act on. For wait_until, because on a busy
# machine a guest may get no processor within a window, which fails, or too little.
declare -gA wss_stored=()
wss_store() { # OPTION... GUEST...
	local guest enough=1
	wss sample --store --count 15 --output csv "$@"
	for guest in $(field domain | sort -u); do
		wss_stored[$guest]=$((${wss_stored[$guest]-0} + $(paste -d ' ' <(field domain) <(field quality) | grep -cx "$guest ok")))
		[ "${wss_stored[$guest]}" -ge 12 ] || enough=
	done
	[ -n "$enough" ] && [ ${#wss_stored[@]} -gt 0 ]
}

# Prints a column of the CSV in $out, one line per row.
field() { # COLUMN
	awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name="$1" <<<"$out"
}

# bats does not fail a test for "! command" unless it is the last.
refute() { # COMMAND...
	if "$@"; then
		return 1
	fi
}

# Checks that stderr is one line that explains the error. Log lines of libvirt, which
# runs inside the program under qemu:///embed, are not counted.
one_line_error() { # REGULAR-EXPRESSION
	local lines
	lines=$(sed -E '/^[0-9-]+ [0-9:.+]+: [0-9]+: (info|warning|error) : /d' <<<"$err")
	[ "$(wc -l <<<"$lines")" = 1 ] && grep -qE "$1" <<<"$lines"
}

# Acts as a client of QEMU; prints what it answers to the last command.
qmp_ask() { # SOCKET COMMAND...: in JSON, or a name only
	# shellcheck disable=SC2016
	timeout 300 perl -MIO::Socket::UNIX -e '
		my $qmp = IO::Socket::UNIX->new(shift) or die "no socket";
		my $line = <$qmp>;
		for my $command ("qmp_capabilities", @ARGV) {
			print $qmp $command =~ /^{/ ? "$command\n" : qq({"execute": "$command"}\n);
			do { $line = <$qmp> // die "closed" } until $line =~ /^{"(return|error)"/;
			die $line if $1 eq "error";
		}
		print $line' "$@"
}

within_percent() { # VALUE TRUTH PERCENT
	awk -v value="$1" -v truth="$2" -v percent="$3" 'BEGIN {
		off = truth > 0 ? 100 * (value / truth - 1) : 1000
		printf "%.1f MiB, truth %.1f MiB: %+.1f %%\n", value / 1048576, truth / 1048576, off
		exit !(value != "" && off <= percent && off >= -percent)
	}'
}

# Starts virt-wss in the background: wss_pid. Its status is that of wait $wss_pid.
wss_launch() { # ARGUMENT...
	# Messages of an earlier run must not be taken for those of this one.
	: >"$BATS_TEST_TMPDIR/err"
	with_patience "$@"
	"${wss_as[@]}" "$virt_wss" --debug "${wss_words[@]}" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
}

# The same, and waits until it is within its window, which begins when no other program has locked the guest: one that measures
# all VMs of this host, say.
wss_start() { # ARGUMENT...
	wait_until 60 wss_starts "$@" || { cat "$BATS_TEST_TMPDIR/err"; return 1; }
}

wss_starts() { # ARGUMENT...
	wss_launch "$@"
	wait_until 30 armed
	! grep -q 'has locked it' "$BATS_TEST_TMPDIR/err" || { wss_wait; return 1; }
}

# SIGSTOP reaches each thread when it is next scheduled.
all_stopped() { # PID
	# shellcheck disable=SC2016
	! sed 's/.*) //' "/proc/$1"/task/*/stat | grep -v '^[Tt] '
}

stop_and_wait() { # PID
	kill -STOP "$1"
	wait_until 30 all_stopped "$1"
}

armed() {
	grep -q 'armed' "$BATS_TEST_TMPDIR/err" || ! kill -0 "$wss_pid" 2>/dev/null
}

# A clock of virt-wss that the test moves on (tests/tools/stepped-clock.c): a window then ends when what it is to see has
# happened, however busy the machine is. For setup_file:
clock_make() { # -> clock_library
	export clock_library=$embed_root/stepped-clock.so
	gcc -O2 -D_GNU_SOURCE -fvisibility=hidden -shared -fPIC -o "$clock_library" "$WSS_SRCDIR/tests/tools/stepped-clock.c" -ldl
}

# What virt-wss is started until clock_end has that clock. It is the real one until more passes.
clock_begin() {
	clock=$embed_root/clock clock_s=0
	rm -f "$clock"
	head -c 16 /dev/zero >"$clock"
	chmod 666 "$clock"
	clock_before=("${wss_as[@]}")
	wss_as+=(env LD_PRELOAD="$clock_library" WSS_CLOCK="$clock")
}

clock_end() {
	wss_as=("${clock_before[@]}")
}

clock_is_noticed() {
	[ "$(od -A n -t u8 -j 8 -N 8 "$clock")" -ge $((clock_s * 1000000000)) ] || ! kill -0 "$wss_pid" 2>/dev/null
}

# Lets so much time pass within a window. The first step is for a look at the guest as it is now: looks are at most a second apart.
pass() { # SECONDS
	local step
	for step in 2 $(($1 - 2)); do
		clock_s=$((clock_s + step))
		perl -e 'open(my $clock, "+<", $ARGV[0]) or die; syswrite($clock, pack("Q", $ARGV[1] * 1e9))' "$clock" "$clock_s"
		wait_until 60 clock_is_noticed || return 1
	done
}

cpu_ticks() { # PID
	sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

has_ticks() { # PID N
	[ "$(cpu_ticks "$1")" -ge "$2" ]
}

# Waits until a guest has had some hundredths of a second of a processor, as a busy machine may give it none for a while.
run_a_while() { # PID
	wait_until 60 has_ticks "$1" $(($(cpu_ticks "$1") + 5))
}

# Takes a sample whose window ends when the guest has said that it has touched all its memory within it. within: a command that
# runs in it.
wss_whole() { # GUEST ARGUMENT...
	local guest=$1 begun loops
	shift
	clock_begin
	wss_start "$@" --window 600s --output csv
	"${within[@]}"
	begun=$(embed_guest_field "$guest" time_ms)
	wait_until 30 embed_guest_past "$guest" "$begun" touching
	# A pass that was under way then may have begun before the window.
	loops=$(embed_guest_field "$guest" loops)
	wait_until 60 guest_has_passed "$guest" $((loops + 2))
	pass 604
	clock_end
	wss_wait
}

guest_has_passed() { # NAME LOOPS
	[ "$(embed_guest_field "$1" loops)" -ge "$2" ]
}

wss_wait() { # -> status
	status=0
	wait "$wss_pid" || status=$?
	wss_pid=''
	out=$(cat "$BATS_TEST_TMPDIR/out")
	err=$(sed '/^virt-wss: debug: /d' "$BATS_TEST_TMPDIR/err")
	printf 'virt-wss -> %s\n%s\n%s\n' "$status" "$out" "$(cat "$BATS_TEST_TMPDIR/err")"
}
