# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by tests of the command line. $virt_wss is the program that they run.
# shellcheck disable=SC2034,SC2154

# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "$WSS_SRCDIR/scripts/embed.sh"
# shellcheck source-path=SCRIPTDIR source=../functions.sh
. "$WSS_SRCDIR/tests/functions.sh"

run_wss() { # ARGUMENT... -> status, out, err; it is ended only if it hangs
	status=0
	timeout -k 5 300 "$virt_wss" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	contents out "$BATS_TEST_TMPDIR/out"
	contents err "$BATS_TEST_TMPDIR/err"
	printf '$ virt-wss %s -> %s\n%s\n%s\n' "$*" "$status" "$out" "$err"
}

# fake-guest.sh has another one.
wss() { # ARGUMENT...
	run_wss "$@"
}

# Whether virt-wss ends with that status, and one line on stderr that matches.
fails() { # STATUS REGULAR-EXPRESSION ARGUMENT... -> out, err
	local expected=$1 re=$2
	shift 2
	run_wss "$@"
	[ "$status" = "$expected" ] && [[ $err != *$'\n'* && $err =~ $re ]]
}

# Prints a column of the CSV that the last wss() printed, one line per row.
field() { # COLUMN
	awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name="$1" <<<"$out"
}

# Prints how many instructions a program takes, with its libraries: as many on any machine.
instructions() { # COMMAND...
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null </dev/null |
		sed -n 's/.*Collected : //p'
}

# A UNIX socket that accepts connections and never answers, like a libvirtd that hangs.
silent_socket() { # -> silent, silent_pid
	silent=$BATS_TEST_TMPDIR/silent
	perl -MIO::Socket::UNIX -MPOSIX -e '
		$s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die;
		open(F, ">", "$ARGV[0].ready"); close F; alarm 600; pause' "$silent" 3>&- &
	silent_pid=$!
	wait_until 300 [ -e "$silent.ready" ]
}

# The invented clocks of tests/tools/hang.c.

clock_new() { # FILE SECONDS: how far it may go
	printf '%015d\n\0\0\0\0\0\0\0\0' "$2" >"$1"
}

clock_limit() { # FILE SECONDS: likewise, of one that goes already
	printf '%015d' "$2" 1<>"$1"
}

clock_is_at() { # FILE SECONDS: whether it has got there
	[ "$(od -An -t d8 -j 16 -N 8 "$1")" -ge $(($2 * 1000000000)) ]
}
