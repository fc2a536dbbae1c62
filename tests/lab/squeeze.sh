#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests squeeze on guests with a known set, a file that each reads from its page cache at a given
# rate: the edge is the set and what an idle guest of the same size cannot give up; the recommendation
# lies between the edge and 1.3 times it; and a guest left with the recommended size keeps its rate.
# A last guest runs redis-server, which answers requests as fast as it can, and then a quarter as many. Its
# memory is anonymous and there is no swap, so that its edge is the memory that it has in use.
# WSS_LAB_ARGS: sizes of the set in MiB, or "redis", in place of three and that.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/decisions.sh"

assigned=$((400 * MiB))
disk_mib=230
# Page reads a second, several times slower than the guest could.
rate=12000
# Pairs of measurements, one with all memory and one with the recommended size.
pairs=7
rate_reports=6

# What a guest without a set cannot give up, by its own statistics: its kernel, whose page tables grow
# with the guest and not with the set, and the memory that it keeps free.
measure_base() { # -> base
	decisions_guest_start idle "wss.map=1 wss.phases=0:0"
	wait_until 60 has_statistics idle || bail_out "no statistics"
	base=$(virsh dommemstat idle |
		awk '{ v[$1] = $2 * 1024 } END { printf "%d\n", v["actual"] - v["usable"] }')
	diag "an idle guest cannot give up $(mib "$base")"
	lab_guest_stop idle
}

has_statistics() { # NAME
	virsh dommemstat "$1" | grep -q '^usable'
}

set_size() { # NAME BYTES: waits until the guest has it
	virsh -q setmem "$1" "$(($2 / 1024))KiB" --live && wait_until 60 has_size "$1" "$2"
}

has_size() { # NAME BYTES
	local off=$((assigned - $(balloon_bytes "$1") - $2))
	[ "$off" -ge $((-MiB)) ] && [ "$off" -le "$MiB" ]
}

squeeze_guest() { # NAME
	local wss_deadline=900
	wss squeeze "$1" --debug --step 4 --settle 2s --interval 4s --minimum 16MiB --output csv
	grep -v 'debug: .*\(observed$\|in progress\|: info : \)' "$wss_err" | grep 'observed size\|gives' >"$lab_run/points"
	status_is 0
}

# Windows in which the guest makes that number of requests, by its rate now. If they are too short, the
# set still grows at their end, and the recommendation allows for that.
test_windows() { # NAME REQUESTS
	window=$(($2 / $(loop_rate "$1") + 1))s
	diag "windows of $window"
	check "$1: ten windows are taken" ten_windows "$1" || return 1
	wss recommend "$1" --minimum 16MiB --output csv
	diag "99th percentile $(mib "$(csv p99_bytes)"), recommended $(mib "$(csv recommended_bytes)"): $(csv reason)"
}

test_edge() { # NAME SET-BYTES
	local edge
	check "$1: it is squeezed" squeeze_guest "$1" || return 1
	diag "$(cut -c -200 "$lab_run/points")"
	edge=$(csv paging_edge_bytes)
	diag "set $(mib "$2"): edge $(mib "$(csv paging_low_bytes)") - $(mib "$(csv paging_high_bytes)")," \
		"without the base $(mib $((edge - base))): $((1000 * (edge - base) / $2)) in 1000;" \
		"reads: $(csv reason)"
	check "$1: the edge is within 10 % of the set" \
		in_range $((edge - base)) $(($2 * 90 / 100)) $(($2 * 110 / 100))
	check "$1: it has all its memory back" wait_until 60 has_size "$1" "$assigned"
	check "$1: no step is left in the journal" [ "$(journal 'done = 0')" = 0 ]
	size=$(csv recommended_bytes)
	diag "recommended $(mib "$size"): $((1000 * size / edge)) in 1000 of the edge"
	check "$1: the recommendation is between the edge and 1.3 times it" \
		in_range "$size" "$edge" $((edge * 13 / 10))
}

between() { # FIELD: by how much it grew from one report to another
	echo $(($(lab_line_field "$line" "$1") - $(lab_line_field "$before" "$1")))
}

# Interleaved, so that a drift of the machine does not look like a change.
test_rate() { # NAME
	local i before line misses=0 reads=0
	rm -f "$lab_run/full" "$lab_run/given"
	for ((i = 0; i < pairs; i++)); do
		set_size "$1" "$assigned" && lab_guest_wait_passes "$1" 1
		loop_rate "$1" >>"$lab_run/full"
		set_size "$1" "$size" && lab_guest_wait_passes "$1" 1
		before=$(lab_guest_line "$1")
		loop_rate "$1" >>"$lab_run/given"
		line=$(lab_guest_line "$1")
		misses=$((misses + $(between read_bytes) / 4096)) reads=$((reads + $(between touches)))
	done
	check "$1: it has the recommended size" has_size "$1" "$size"
	set_size "$1" "$assigned"
	compare_rates "$1"
	diag "$misses of $reads reads went to the disk"
	check "$1: at most 3 in 1000 reads go to the disk" in_range $misses 0 $((reads / 333))
}

# Prints by how much the medians of two files like this one may differ by chance, in tenths of a percent: twice the
# standard error of that difference, of a normal distribution with their quartiles.
chance_of() { # FILE
	sort -n "$1" | awk '{ v[NR] = $1 }
		END {
			deviation = (v[int(0.75 * NR + 0.5)] - v[int(0.25 * NR + 0.5)]) / 1.349
			printf "%d\n", 1000 * 2 * sqrt(2) * 1.2533 * deviation / sqrt(NR) / v[int((NR + 1) / 2)]
		}'
}

compare_rates() { # NAME [WHAT]
	local full given apart
	full=$(median_of "$lab_run/full") given=$(median_of "$lab_run/given")
	diag "requests a second with all memory: $(tr '\n' ' ' <"$lab_run/full")"
	diag "with the recommended size: $(tr '\n' ' ' <"$lab_run/given")"
	apart=$(chance_of "$lab_run/full")
	diag "medians $full, $given: $((1000 * given / full)) in 1000; by chance they differ by up to $apart"
	check "$1: it keeps 97 % of its rate${2:+ $2}, up to chance" \
		in_range $((1000 * given / full)) $((970 - apart)) 99999
}

test_set() { # MIB
	local name=set$1 size
	decisions_guest_start "$name" "wss.map=1 wss.phases=0:0 wss.file=disk:$1 wss.rate=$rate"
	# Four times its set.
	test_windows "$name" $(($1 * 1024)) || return 1
	test_edge "$name" $(($1 * MiB)) && test_rate "$name"
	check "$name: no OOM kill" no_oom "$name"
	lab_guest_stop "$name"
}

# In turns, REPORTS to a rate: of requests.
redis_rates() { # REPORTS PAIRS
	local i rate_reports=$1
	rm -f "$lab_run/full" "$lab_run/given"
	for ((i = 0; i < $2; i++)); do
		set_size redis "$assigned" && pause 2
		loop_rate redis >>"$lab_run/full"
		set_size redis "$size" && pause 2
		loop_rate redis >>"$lab_run/given"
	done
	check "redis: it has the recommended size" has_size redis "$size"
	set_size redis "$assigned"
}

# Redis at full speed takes what the machine gives it, which changes from run to run: only many runs say something. A
# quarter of it is served in full unless the guest lacks memory.
test_redis_rate() {
	redis_rates 6 30
	compare_rates redis "at full speed"
	echo $(($(median_of "$lab_run/full") / 4)) >&7
	redis_rates 14 10
	compare_rates redis "of what it is asked for"
}

test_redis() {
	local redis_keys=2048 edge size
	[ -n "${WSS_LAB_REDIS-}" ] || { skip "no guest with redis" "redis keeps its rate"; return; }
	lab_thp never
	cp "$WSS_LAB_REDIS" "$lab_run/redis-initrd" && chmod 644 "$lab_run/redis-initrd"
	rm -f "$VIRT_WSS_HISTORY"*
	controlled_guest_start redis "redis.keys=$redis_keys redis.bytes=64000 redis.requests=200" \
		memory=$((assigned / MiB)) initrd="$lab_run/redis-initrd" \
		balloon="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>"
	# Six times each key, on average.
	test_windows redis $((6 * redis_keys)) || return 1
	check "redis: it is squeezed" squeeze_guest redis || return 1
	edge=$(csv paging_edge_bytes) size=$(csv recommended_bytes)
	diag "edge $(mib "$(csv paging_low_bytes)") - $(mib "$(csv paging_high_bytes)"): $(csv reason)"
	diag "recommended $(mib "$size"): $((1000 * size / edge)) in 1000 of the edge"
	check "redis: it has all its memory back" wait_until 60 has_size redis "$assigned"
	check "redis: the recommendation is between the edge and 1.3 times it" \
		in_range "$size" "$edge" $((edge * 13 / 10)) && test_redis_rate
	check "redis: no OOM kill" no_oom redis
	lab_guest_stop redis
}

lab_libvirtd_start
for set in ${WSS_LAB_ARGS:-112 160 224 redis}; do
	if [ "$set" = redis ]; then
		test_redis
	else
		[ -n "${base-}" ] || measure_base
		test_set "$set"
	fi
done
done_testing
