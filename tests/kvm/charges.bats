#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The service's CPU time, and what of it guests under real KVM are charged with.

bats_require_minimum_version 1.5.0
load "functions.sh"

# Sum of a metric over its series, in ms.
metric_ms() { # PAGE NAME
	awk -v name="virt_wss_$2_seconds_total" '{ sub(/[{].*[}]/, "") } $1 == name { sum += $2 } END { printf "%d\n", sum * 1000 }' "$1"
}

windows_so_far() { # of all guests together
	awk '/^virt_wss_windows_total[{]/ { sum += $NF } END { print sum + 0 }' "$metrics" 2>/dev/null
}

windows_reach() { # N
	[ "$(windows_so_far)" -ge "$1" ]
}

page_is_new() { # PAGE: the service has written another one since
	! cmp -s "$1" "$metrics"
}

# CPU time, in ms, of the threads that libvirt's driver has in this process under qemu:///embed; elsewhere they are
# libvirtd's.
libvirt_ms() {
	local task name ns sum=0
	for task in /proc/"$wss_pid"/task/*; do
		# Some end meanwhile.
		{ read -r name <"$task/comm" && read -r ns _ <"$task/schedstat"; } 2>/dev/null || continue
		[ "$name" = virt-wss ] || sum=$((sum + ns))
	done
	echo $((sum / 1000000))
}

# Holds the service with its n_guests and waits until no window is under way, whose CPU time so far no guest is charged
# with yet, and libvirt has nothing to do: the readings of all clocks are then of the same work.
rest() { # NAME
	touch "$BATS_TEST_TMPDIR/hold"
	cp "$metrics" "$BATS_TEST_TMPDIR/page.running"
	wait_until 40 page_is_at_rest "$BATS_TEST_TMPDIR/page.running" || return 1
	take_page "$1"
}

page_is_at_rest() { # PAGE: the service has written another one since
	page_is_new "$1" && grep -q '^virt_wss_held 1$' "$metrics" && grep -q '^virt_wss_guests{state="waiting"} '"$n_guests"'$' "$metrics"
}

process_ms() { # the kernel's figure
	sed 's/.*) //' "/proc/$wss_pid/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%d\n", ($12 + $13) * 1000 / hz }'
}

# The next page -> page, wall_ms, libvirt, process_before and process: the kernel's figure before and after it was written
take_page() { # NAME
	process_before=$(process_ms)
	cp "$metrics" "$BATS_TEST_TMPDIR/$1.before"
	wait_until 40 page_is_new "$BATS_TEST_TMPDIR/$1.before" || return 1
	page=$BATS_TEST_TMPDIR/$1
	libvirt=$(libvirt_ms)
	process=$(process_ms)
	wall_ms=$(($(date +%s%N) / 1000000))
	cp "$metrics" "$page"
}

all_asleep() {
	refute grep -qv '^S' <<<"$(sed 's/.*) //' "/proc/$wss_pid/task"/*/stat)"
}

# What the service does for no guest lists them and writes the metrics. How much that is shows while it is held, when
# it does nothing else.
@test "the guests' charges add up to the CPU time of the service" {
	local n_guests=5 i hold=$BATS_TEST_TMPDIR/hold idle_ms idle_wall libvirt_begin
	for i in 1 2 3 4; do
		kvm_guest_start "small$i" memory=128 touch="pages=$((i * 2000)) order=random rate=2000"
	done
	kvm_guest_start huge memory=256 backing=anonymous touch='pages=4096 stride=8 order=random access=modify rate=2000'
	touch "$hold"
	metrics=$BATS_TEST_TMPDIR/metrics
	"$virt_wss" serve --no-store --textfile "$metrics" --period 1s --window 300ms --boot 1s --max-pressure 0 --max-stall 5s \
		--budget 100% --hold-file "$hold" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 60 grep -q '^virt_wss_guests{state="waiting"} '$n_guests'$' "$metrics"
	take_page held
	idle_ms=$(($(metric_ms "$page" process_cpu) - libvirt)) idle_wall=$wall_ms
	take_page held-later
	take_page held-last
	idle_ms=$(($(metric_ms "$page" process_cpu) - libvirt - idle_ms)) idle_wall=$((wall_ms - idle_wall))
	echo "held: $idle_ms ms of CPU time in $idle_wall ms"
	[ "$(metric_ms "$page" cpu)" = 0 ]
	wait_until 30 all_asleep
	rm "$hold"
	wait_until 60 windows_reach 10
	rest first
	local own=$(($(metric_ms "$page" process_cpu) - libvirt)) begin=$wall_ms
	local guests uncharged
	guests=$(metric_ms "$page" cpu)
	uncharged=$(metric_ms "$page" uncharged_cpu)
	libvirt_begin=$libvirt
	rm "$hold"
	wait_until 90 windows_reach 60
	rest last
	own=$(($(metric_ms "$page" process_cpu) - libvirt - own))
	guests=$(($(metric_ms "$page" cpu) - guests))
	uncharged=$(($(metric_ms "$page" uncharged_cpu) - uncharged - libvirt + libvirt_begin))
	idle_ms=$((idle_ms * (wall_ms - begin) / idle_wall))
	echo "in $((wall_ms - begin)) ms $own ms of CPU time, $guests for guests, $uncharged for none; held $idle_ms"
	[ "$guests" -le "$own" ]
	[ $((guests * 10)) -ge $(((own - idle_ms) * 9)) ]
	# The same by the kernel's own account, which counts in ticks of 10 ms.
	local page_ms
	page_ms=$(metric_ms "$page" process_cpu)
	[ "$page_ms" -le $((process + 30)) ]
	[ "$page_ms" -ge $((process_before - 30)) ]
	for i in 1 2 3 4; do
		grep -q "^virt_wss_cpu_seconds_total{domain=\"small$i\"[^}]*} 0[.]*[0-9]*[1-9]" "$page"
	done
	kvm_guest_runs huge
	kill -TERM "$wss_pid"
	wait "$wss_pid" || true
	wss_pid=''
}

# The most descriptors, tasks and memory so far -> most_files, most_tasks; the kernel keeps the latter.
look_at_resources() {
	local files=(/proc/"$wss_pid"/fd/*) tasks=(/proc/"$wss_pid"/task/*)
	[ ${#files[@]} -le "$most_files" ] || most_files=${#files[@]}
	[ ${#tasks[@]} -le "$most_tasks" ] || most_tasks=${#tasks[@]}
}

resident_kib() { # NAME: VmHWM, the most so far
	sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$wss_pid/status"
}

# Each of the guests has had an exact window -> exact, and in which more was seen than it touches -> wrong.
all_exact() {
	local i
	look_at_resources
	for i in $(seq "$n_guests"); do
		! kvm_metric_exact "many$i" $((100 + i * 20)) || exact[i]=1
	done
	[ ${#exact[@]} = "$n_guests" ]
}

# 12 guests, or KVM_GUESTS.
@test "many guests: all exact, their charges add up, descriptors, tasks and memory stay within their limits" {
	local n_guests=${KVM_GUESTS:-12} i own guests most_files=0 most_tasks=0 exact=() wrong=''
	# Without interrupts a guest waits by a loop: the service comes first.
	for i in $(seq "$n_guests"); do
		kvm_guest_start "many$i" memory=32 touch="pages=$((100 + i * 20)) order=random access=modify rate=50000"
		find "/proc/$(embed_guest_pid "many$i")/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | xargs renice -n 10 -p >/dev/null
	done
	metrics=$BATS_TEST_TMPDIR/metrics
	touch "$BATS_TEST_TMPDIR/hold"
	"$virt_wss" serve --no-store --textfile "$metrics" --period 3s --window 500ms --boot 1s --max-pressure 0 --max-stall 5s \
		--budget 100% --hold-file "$BATS_TEST_TMPDIR/hold" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 60 grep -q '^virt_wss_guests{state="waiting"} '"$n_guests"'$' "$metrics"
	take_page held
	own=$(($(metric_ms "$page" process_cpu) - libvirt))
	rm "$BATS_TEST_TMPDIR/hold"
	wait_until 120 all_exact
	rest last
	own=$(($(metric_ms "$page" process_cpu) - libvirt - own))
	guests=$(metric_ms "$page" cpu)
	echo "$n_guests guests, $(windows_so_far) windows: $own ms of CPU time, $guests ms charged; at most $most_files" \
		"descriptors, $most_tasks tasks, $(resident_kib VmHWM) KiB"
	echo "too many pages:$wrong"
	[ -z "$wrong" ]
	[ "$guests" -le "$own" ]
	[ $((guests * 10)) -ge $((own * 9)) ]
	# Of the service at most what src/serve/resource-limits.c has for it; libvirt's driver has a few for each guest.
	[ "$most_files" -le $((128 + 24 * n_guests)) ]
	[ "$most_tasks" -le $((32 + 4 * n_guests)) ]
	[ "$(resident_kib VmHWM)" -le $(((64 + n_guests) << 10)) ]
	kill -TERM "$wss_pid"
	wait "$wss_pid" || true
	wss_pid=''
}
