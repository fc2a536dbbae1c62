# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Loaded by tests that keep a guest from running for a part of a window: its QEMU is pid, its name is guest, and
# guest_lives tells that it goes on.

# Busy processes, four for each CPU.
hogs_start() {
	local i
	for ((i = 0; i < 4 * $(nproc); i++)); do
		perl -e '1 while 1' 3>&- &
		hogs+=($!)
	done
}

hogs_end() {
	local hog
	for hog in "${hogs[@]}"; do
		kill "$hog"
		wait "$hog" || true
	done
	hogs=()
}

# Moves QEMU into a new group of the hierarchy at DIRECTORY: group.
group_enter() { # DIRECTORY
	group=$1/wss-test.$$.$BATS_TEST_NUMBER
	mkdir "$group"
	sed -n "s|^[0-9]*:${2-}:||p" "/proc/$pid/cgroup" >"$BATS_TEST_TMPDIR/home"
	group_home=$1$(cat "$BATS_TEST_TMPDIR/home")
	echo "$pid" >"$group/cgroup.procs"
}

groups_leave() {
	[ -n "${group-}" ] || return 0
	[ ! -e "$group/cgroup.freeze" ] || echo 0 >"$group/cgroup.freeze"
	[ ! -e "$group/freezer.state" ] || echo THAWED >"$group/freezer.state"
	echo "$pid" >"$group_home/cgroup.procs" || echo "$pid" >"${group%/*}/cgroup.procs"
	rmdir "$group"
	group=''
}

unified() { # prints the mount of version 2
	awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}

legacy() { # CONTROLLER: prints its mount of version 1
	awk -v c="$1" '$3 == "cgroup" && $4 ~ "(^|,)" c "(,|$)" { print $2; exit }' /proc/mounts
}

# Traces all threads until its standard input ends.
trace() {
	perl -e '
		my @tids = map { /(\d+)$/ } glob("/proc/$ARGV[0]/task/*");
		for (@tids) { syscall(101, 16, int($_), 0, 0) == 0 or die "attach: $!"; waitpid($_, 0x40000000) }
		<STDIN>;
		syscall(101, 17, int($_), 0, 0) for @tids' "$pid"
}

stop_by_signal() { kill -STOP "$pid"; }
go_on_by_signal() { kill -CONT "$pid"; }
stop_by_tracer() {
	mkfifo "$BATS_TEST_TMPDIR/traced.$((n += 1))"
	trace <"$BATS_TEST_TMPDIR/traced.$n" 3>&- &
	exec 8>"$BATS_TEST_TMPDIR/traced.$n"
}
go_on_by_tracer() {
	exec 8>&-
	wait $!
}
stop_by_freezer() {
	if [ -e "$group/cgroup.freeze" ]; then
		echo 1 >"$group/cgroup.freeze"
	else
		echo FROZEN >"$group/freezer.state"
	fi
}
go_on_by_freezer() {
	if [ -e "$group/cgroup.freeze" ]; then
		echo 0 >"$group/cgroup.freeze"
	else
		echo THAWED >"$group/freezer.state"
	fi
}
stop_by_limit() {
	if [ -e "$group/cpu.max" ]; then
		echo "1000 100000" >"$group/cpu.max"
	else
		echo 1000 >"$group/cpu.cfs_quota_us"
	fi
}
go_on_by_limit() {
	if [ -e "$group/cpu.max" ]; then
		echo max >"$group/cpu.max"
	else
		echo -1 >"$group/cpu.cfs_quota_us"
	fi
}

# Takes a sample of 3 s and stops the guest within it.
sample_with_stops() { # WAY WAIT-S STOP-S [TIMES]
	wss_start sample "$guest" --window 3s --output csv
	for ((time = 0; time < ${4-1}; time++)); do
		sleep "$2"
		"stop_by_$1"
		sleep "$3"
		"go_on_by_$1"
	done
	wss_wait
}

is_degraded() { # WAY-IN-WORDS LEAST-PERCENT MOST-PERCENT
	[ "$status" = 0 ]
	[ "$(field quality)" = degraded ]
	share=$(grep -oE "the guest was $1 for about [0-9.]+ % of the window" <<<"$out$err" | grep -oE '[0-9.]+ %')
	echo "share $share"
	awk -v share="${share% %}" -v least="$2" -v most="$3" 'BEGIN { exit !(share >= least && share <= most) }'
}

# At the beginning, in the middle, at the end, and in several short stops. Of short throttling much lies in
# intervals in which the guest ran, too.
is_seen_everywhere() { # WAY WAY-IN-WORDS
	sample_with_stops "$1" 0 1
	is_degraded "$2" 15 75
	sample_with_stops "$1" 1 1
	is_degraded "$2" 15 75
	sample_with_stops "$1" 2 2
	is_degraded "$2" 15 75
	sample_with_stops "$1" 0.3 0.2 5
	is_degraded "$2" 3 75
	guest_lives
}
