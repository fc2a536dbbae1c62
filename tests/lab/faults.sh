#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests failures: one clear line, the right exit status, and an unchanged guest; and that many
# samples leave nothing behind. The guest "good" lives through all of it; it takes six seconds
# for a pass over its 64 MiB. The guest "victim" does not.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

# The lab's zaps often take longer than the default limit.
patient=(--max-stall 10s)

# Records "kB of anonymous memory, descriptors, children" of the tool until it ends.
watch_tool() { # PID
	local key value _ fds children
	while [ -e "/proc/$1/fd" ]; do
		fds=(/proc/"$1"/fd/*)
		children=
		read -r children <"/proc/$1/task/$1/children"
		while read -r key value _; do
			[ "$key" = RssAnon: ] && echo "$value ${#fds[@]} $(wc -w <<<"$children")"
		done <"/proc/$1/status"
		sleep 0.05
	done 2>/dev/null
}

# Prints the minimum and maximum of a column over part of the run, given in tenths.
extremes() { # COLUMN FROM TO -> least most
	read -r least most < <(awk -v column="$1" -v from="$2" -v to="$3" '
		{ value[NR] = $column }
		END {
			for (i = int(NR * from / 10) + 1; i <= NR * to / 10; i++) {
				if (!n++ || value[i] < least)
					least = value[i]
				if (value[i] > most)
					most = value[i]
			}
			print least + 0, most + 0
		}' "$lab_run/watched")
}

# Checks that the minimum over the last tenth of the run is not larger than that over the
# second; single readings may catch a file that is open.
does_not_grow() { # COLUMN TOLERANCE
	local least most early
	extremes "$1" 1 2
	early=$least
	extremes "$1" 9 10
	diag "$early early, $least late"
	in_range "$least" 0 $((early + $2))
}

at_most() { # COLUMN LIMIT: in the whole run
	local least most
	extremes "$1" 0 10
	in_range "$most" 0 "$2"
}

guest_fds() {
	local fds
	fds=(/proc/"$(lab_guest_pid good)"/fd/*)
	echo ${#fds[@]}
}

no_process_left() {
	! pgrep '^virt-wss' >/dev/null
}

test_soak() {
	local before i
	before=$(guest_fds)
	"$virt_wss" sample good --count 100 --window 50ms "${patient[@]}" --output json \
		>"$wss_out" 2>"$wss_err" &
	wss_pid=$!
	watch_tool $wss_pid >"$lab_run/watched"
	wss_wait
	check "100 samples in a row are taken" status_is 0
	check "all samples are measured" in_range "$(json wss_bytes | wc -l)" 100 100
	check "the tool was looked at meanwhile" in_range "$(wc -l <"$lab_run/watched")" 20 100000
	check "its anonymous memory stays under 16 MiB" at_most 1 16383
	check "its memory does not grow" does_not_grow 1 64
	check "its descriptors do not grow" does_not_grow 2 0
	check "its children do not grow in number" does_not_grow 3 0
	for ((i = 0; i < 20; i++)); do
		wss sample good --window 50ms "${patient[@]}" --output json
		[ "$status" = 0 ] || break
	done
	check "20 samples one after another" status_is 0
	wss sample good --count 5 --window 50ms --pause "${patient[@]}" --output json
	check "five samples that hold the guest are taken" status_is 0
	check "no process is left" no_process_left
	check "the guest has no more descriptors than before" in_range "$(guest_fds)" 1 "$before"
	check "the guest is well" guest_well good
}

# The gauge never shows the whole set, before or after it is mapped.
zap_in_the_middle() {
	local middle=$((began + 2500))
	while [ "$(uptime_ms)" -lt $middle ]; do
		sleep 0.02
	done
	echo 4 >"/proc/$(lab_guest_pid good)/clear_refs"
}

test_lost_entries() {
	local began touches set=$((64 * MiB))
	stamp_begin good
	check "a window" wss_start sample good --window 7s --recorder counters \
		--output json "${patient[@]}"
	began=$(uptime_ms)
	zap_in_the_middle
	wss_wait
	stamp_end
	read -r _ _ touches < <(reports_between "$began" $((began + 6600)))
	diag "at least $(mib $((touches * 4096))) and at most $(mib $set) touched," \
		"bounds $(mib "$(json wss_low_bytes)") - $(mib "$(json wss_high_bytes)")"
	check "the memory that another zap took away is known to be missing" json_is quality degraded
	check "the low bound is below the set" in_range "$(json wss_low_bytes)" 1 $set
	check "the high bound is above what was touched" \
		in_range "$(json wss_high_bytes)" $((touches < 16384 ? touches * 4096 : set)) $((512 * MiB))
}

test_stall_limit() {
	local before limit
	for limit in "--max-stall 1us" "slow-zap"; do
		before=$(lab_guest_counter good pages_4k)
		if [ "$limit" = slow-zap ]; then
			VIRT_WSS_FAULT=slow-zap wss sample good --window 1s --output json
		else
			wss sample good --window 1s --max-stall 1us --output json
		fi
		check "$limit: a stall that is foreseen is refused" refused 5 'for one stall'
		check "$limit: nothing was unmapped" \
			in_range "$(lab_guest_counter good pages_4k)" $((before * 9 / 10)) 131072
	done
	check "the guest is well" guest_well good
}

test_publish() {
	local log=/var/log/libvirt/qemu/good.log
	wss sample good --window 1s --publish "${patient[@]}" --output json
	check "a sample is published" status_is 0
	virsh metadata good urn:virt-wss:profile:1 >"$lab_run/metadata" 2>&1
	check "libvirt's clients can read it" \
		grep -q "<current unit=\"bytes\">$(json wss_bytes)<" "$lab_run/metadata"
	wss list good --wide
	check "list shows it" grep -qE '^good +[0-9.]+ .*mmu' "$wss_out"
	check "no job is left" grep -q '^Job type: *None' <(virsh domjobinfo good)
	check "the domain is not tainted" refute grep -q custom-monitor $log
	virsh -q qemu-monitor-command good '{"execute":"query-status"}' >/dev/null
	check "as it would be by a monitor command" wait_until 10 grep -q custom-monitor $log
}

test_unprivileged() {
	status=0
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$virt_wss" sample good --window 500ms --output json >"$wss_out" 2>"$wss_err" || status=$?
	diag "$(cat "$wss_err")"
	check "an unprivileged user gets an error" refused $((status == 4 ? 4 : 5)) 'permi|connect|root'
}

test_bad_domains() {
	local pid
	wss sample good nobody victim --window 1s --output json "${patient[@]}"
	check "one of several is unknown: exit 3" status_is 3
	check "the others are measured" in_range "$(json wss_bytes | wc -l)" 2 2

	virsh -q suspend victim
	wss sample victim --window 1s --output json
	check "a paused guest is refused" refused 1 'paused'
	check "the paused guest stays paused" grep -q paused <(virsh domstate victim)
	virsh -q resume victim

	pid=$(lab_guest_pid victim)
	kill -STOP "$pid"
	wss sample victim --window 1s --output json
	check "a guest that a signal has stopped is refused" refused 1 'stopped'
	check "the stopped guest stays stopped" refute guest_not_held victim
	kill -CONT "$pid"

	check "a window" wss_start sample victim --window 3s --output json "${patient[@]}"
	virsh -q suspend victim
	virsh -q resume victim
	wss_wait
	check "a guest that was paused within it is measured" status_is 0
	check "its sample is degraded" json_is quality degraded
	check "its sample has the reason" noted 'paused'
	check "victim is well" guest_well victim
}

test_guest_dies() {
	local began
	check "a window of two guests" \
		wss_start sample good victim --window 5s --output json "${patient[@]}"
	wait_until 20 both_armed
	kill -KILL "$(lab_guest_pid victim)"
	wss_wait
	check "one of them is killed within it: exit 3" status_is 3
	check "the other one is measured" in_range "$(json wss_bytes good)" 1 $((512 * MiB))

	check "a guest is started again" start_victim
	check "a window" wss_start sample victim --window 60s --output json
	began=$(uptime_ms)
	kill -KILL "$(lab_guest_pid victim)"
	wss_wait
	check "its guest is killed within it: exit 1" refused 1 'victim.*(ended|gone)'
	check "the kill is noticed at once" in_range $(($(uptime_ms) - began)) 0 20000
	wss sample victim --window 1s --output json
	check "a domain that is gone is refused" refused 1 'victim'
}

both_armed() {
	[ "$(grep -c ': armed by' "$wss_err")" -ge 2 ]
}

start_victim() {
	lab_guest_stop victim
	lab_guest_start victim memory=192 args="wss.map=32 wss.rate=4096"
}

test_libvirtd() {
	local pid
	pid=$(cat /run/libvirtd.pid)
	check "a window" wss_start sample good --window 4s --output json "${patient[@]}"
	kill -STOP "$pid"
	wss_wait
	kill -CONT "$pid"
	check "libvirtd hangs within it: the sample is taken" status_is 0
	check "a window" wss_start sample good --window 4s --output json "${patient[@]}"
	kill -KILL "$pid"
	wss_wait
	check "libvirtd is killed within it: the sample is taken" status_is 0
	check "the sample is of the guest" in_range "$(json wss_bytes)" 1 $((100 * MiB))
	wss sample good --window 1s --output json
	check "without libvirtd: exit 4" refused 4 'connect'
	lab_libvirtd_start
	wss sample good --window 1s --output json "${patient[@]}"
	check "with libvirtd again the guest is measured" status_is 0
	check "the guest is well" guest_well good
}

lab_thp never
lab_libvirtd_start
lab_guest_start good memory=512 args="wss.map=96 wss.touch=64 wss.mode=write wss.rate=2730"
start_victim
test_soak
test_lost_entries
test_stall_limit
test_unprivileged
test_bad_domains
test_guest_dies
test_publish
test_libvirtd
check "no process is left in the end" no_process_left
done_testing
