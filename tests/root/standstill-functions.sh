# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Loaded by tests that keep a guest from running for a part of a window: its QEMU is pid, its name is guest, and
# guest_lives tells that it goes on. A way to stop it is WAY in three functions: stop_by_WAY, go_on_by_WAY, and
# stopped_by_WAY, which tells whether it stands still by now. On a busy machine that takes its time.

window_s=600 # of the samples, by the test's clock
clock_s=0
inventory=() # options for virt-wss that name another one than libvirt's

# Busy processes. As many as make four for each CPU with what runs already, if nothing else is asked for.
hogs_start() { # [N]
	local i running
	running=$(cut -d ' ' -f 4 /proc/loadavg)
	for ((i = 0; i < ${1-4 * $(nproc) - ${running%/*}}; i++)); do
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

vcpu_stat() { # FILE: of its first vCPU
	cat "$(grep -lE '^(CPU 0|ALL CPUs)' "/proc/$pid/task"/*/comm | head -n 1 | sed "s/comm\$/$1/")"
}

stop_by_signal() { kill -STOP "$pid"; }
stopped_by_signal() { all_stopped "$pid" >/dev/null; }
go_on_by_signal() { kill -CONT "$pid"; }
stop_by_tracer() {
	mkfifo "$BATS_TEST_TMPDIR/traced.$((n += 1))"
	trace <"$BATS_TEST_TMPDIR/traced.$n" 3>&- &
	exec 8>"$BATS_TEST_TMPDIR/traced.$n"
}
stopped_by_tracer() { all_stopped "$pid" >/dev/null; }
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
stopped_by_freezer() {
	if [ -e "$group/cgroup.events" ]; then
		grep -q '^frozen 1' "$group/cgroup.events"
	else
		grep -q FROZEN "$group/freezer.state"
	fi
}
go_on_by_freezer() {
	if [ -e "$group/cgroup.freeze" ]; then
		echo 0 >"$group/cgroup.freeze"
	else
		echo THAWED >"$group/freezer.state"
	fi
}
limit_to() { # MICROSECONDS PERIOD
	if [ -e "$group/cpu.max" ]; then
		echo "$1 $2" >"$group/cpu.max"
	else
		echo "$2" >"$group/cpu.cfs_period_us"
		echo "$1" >"$group/cpu.cfs_quota_us"
	fi
}
stop_by_limit() { limit_to 1000 100000; }
stopped_by_limit() { true; }
go_on_by_limit() {
	if [ -e "$group/cpu.max" ]; then
		echo max >"$group/cpu.max"
	else
		echo -1 >"$group/cpu.cfs_quota_us"
	fi
}
# Its memory lies in a file, whose file system holds whoever writes to it.
stop_by_storage() { fsfreeze --freeze "$storage"; }
stopped_by_storage() { vcpu_stat stat | grep -q ') D '; }
go_on_by_storage() { fsfreeze --unfreeze "$storage"; }

# In ms, by the clock of the windows.
now_ms() {
	echo $((clock_s * 1000 + ${EPOCHREALTIME/[.,]/} / 1000))
}

# Takes a sample and stops the guest within it -> window_ms, stops: of each in ms when it was told to stop, stood still,
# was told to go on, and went on. The window begins when virt-wss says so, and lasts until its time has passed. The guest has
# touched something by then.
sample_with_stops() { # WAY WAIT-S STOP-S [TIMES]
	local time told still on way=$1 wait_s=$2 stop_s=$3
	stops=''
	clock_begin
	wss_start "${inventory[@]}" sample "$guest" --window "$window_s" --output csv
	window_ms=$(stat -c %.3Y "$BATS_TEST_TMPDIR/err" | tr -d .)
	[ "$wait_s" = 0 ] || run_a_while "$pid"
	for ((time = 0; time < ${4-1}; time++)); do
		[ "$wait_s" = 0 ] || pass "$wait_s"
		told=$(now_ms)
		"stop_by_$way"
		wait_until 30 "stopped_by_$way"
		still=$(now_ms)
		pass "$stop_s"
		on=$(now_ms)
		"go_on_by_$way"
		stops+="$told $still $on $(now_ms)"$'\n'
	done
	[ "$wait_s" != 0 ] || run_a_while "$pid"
	pass $((window_s - clock_s > 3 ? window_s - clock_s : 3))
	clock_end
	wss_wait
	stops_count
}

# What of the window the guest stood still -> least, most: percent, as its stops have been
stops_count() {
	read -r least most < <(awk -v begin="$window_ms" -v ms=$((window_s * 1000)) '
		function part(from, to) {
			from = from < begin ? begin : from
			to = to > begin + ms ? begin + ms : to
			return to > from ? 100 * (to - from) / ms : 0
		}
		{ least += part($2, $3); most += part($1, $4) }
		END { printf "%.1f %.1f\n", least, most }' <<<"$stops")
	echo "window $window_ms, stops $stops: $least to $most %"
}

# A CPU limit counts real time: the same with a sleep instead, in windows that become longer until half of the
# stop lies within one, as a busy machine may be late. -> window_s, least, most
sample_with_limit() { # WAY
	local told still on way=$1
	for window_s in 4 8 16 32 64; do
		wss_start "${inventory[@]}" sample "$guest" --window "$window_s" --output csv
		window_ms=$(stat -c %.3Y "$BATS_TEST_TMPDIR/err" | tr -d .)
		told=$(now_ms)
		"stop_by_$way"
		wait_until 30 "stopped_by_$way"
		still=$(now_ms)
		sleep $((window_s / 2))
		on=$(now_ms)
		"go_on_by_$way"
		stops="$told $still $on $(now_ms)"
		wss_wait
		stops_count
		[ "${least%.*}" -lt 25 ] || return 0
	done
	return 1
}

# A look at the guest counts for the time to the next one and to the one before, by half.
is_degraded() { # WAY-IN-WORDS [PERCENT of the window, more or less]
	local slack=${2-1}
	[ "$status" = 0 ]
	[ "$(field quality)" = degraded ]
	has_share "$1" $((${least%.*} - slack)) $((${most%.*} + 1 + slack))
}

has_share() { # WAY-IN-WORDS LEAST-PERCENT MOST-PERCENT
	share=$(sed -nE "s/.*the guest was (.* % and )?$1 for about ([0-9.]+) %.*/\2/p" <<<"$out$err" | head -n 1)
	echo "share $share"
	awk -v share="$share" -v least="$2" -v most="$3" 'BEGIN { exit !(share >= least && share <= most) }'
}

# At the beginning, in the middle, at the end, and in several short stops.
is_seen_everywhere() { # WAY WAY-IN-WORDS
	sample_with_stops "$1" 0 200
	is_degraded "$2"
	sample_with_stops "$1" 200 200
	is_degraded "$2"
	sample_with_stops "$1" 400 201
	is_degraded "$2"
	sample_with_stops "$1" 60 40 5
	is_degraded "$2" 2
	guest_lives
}
