# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of make check-root: virt-wss on TCG guests under qemu:///embed.
# Each file makes its own root, so that files can run at the same time.

# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "${WSS_SRCDIR:?}/scripts/embed.sh"

virt_wss=${WSS_BUILDDIR:?}/virt-wss
wss_as=() # a command that runs virt-wss as somebody else

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

# Runs virt-wss with a deadline that only ends what hangs: status, stdout in $out, stderr in $err.
wss() { # ARGUMENT...
	status=0
	timeout -k 5 500 "${wss_as[@]}" "$virt_wss" "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	out=$(cat "$BATS_TEST_TMPDIR/out")
	err=$(cat "$BATS_TEST_TMPDIR/err")
	printf '$ virt-wss %s -> %s\n%s\n%s\n' "$*" "$status" "$out" "$err"
}

# Stores windows of guests of which most are good: 12 of each are enough to act on. For wait_until, because on a busy
# machine a guest may get no processor within a window, which fails, or too little.
wss_store() { # OPTION... GUEST...
	local guest
	wss sample --store --count 15 --output csv "$@"
	[ "$status" = 0 ] || return 1
	for guest in $(field domain | sort -u); do
		[ "$(paste -d ' ' <(field domain) <(field quality) | grep -cx "$guest ok")" -ge 12 ] || return 1
	done
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
	"${wss_as[@]}" "$virt_wss" --debug "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
}

# The same, and waits until it is within its window.
wss_start() { # ARGUMENT...
	wss_launch "$@"
	wait_until 30 armed || { cat "$BATS_TEST_TMPDIR/err"; return 1; }
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

wss_wait() { # -> status
	status=0
	wait "$wss_pid" || status=$?
	wss_pid=''
	out=$(cat "$BATS_TEST_TMPDIR/out")
	err=$(sed '/^virt-wss: debug: /d' "$BATS_TEST_TMPDIR/err")
	printf 'virt-wss -> %s\n%s\n%s\n' "$status" "$out" "$(cat "$BATS_TEST_TMPDIR/err")"
}
