#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares the miss-rate curve with reality. A guest reads pages of a disk at random, all from
# its page cache; ten windows are taken; then its balloon is inflated by hand while the cache
# is hot, so that part of its reads go to the disk. The share must match what recommend
# --what-if predicts for that little memory from the windows alone, to within 5 in 100 reads,
# because a kernel does not evict by exact LRU.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/decisions.sh"

assigned=$((320 * MiB))
file=64 # MiB
rate=5000
# Time in which each page is drawn 2.4 times on average.
window=8s
# Guest time over which its reads are counted.
counted=20

# Prints how many bytes of different pages that number of draws with wss.draw=K reaches.
drawn_bytes() { # K DRAWS
	awk -v k="$1" -v draws="$2" -v pages=$((file * 256)) 'BEGIN {
		for (i = 0; i < pages; i++) {
			p = ((i + 1) / pages) ^ (1 / k) - (i / pages) ^ (1 / k)
			sum += 1 - (1 - p) ^ draws
		}
		printf "%d\n", sum * 4096
	}'
}

# Prints, from the guest's newest reports, reads per second, how many of 1000 went to the disk,
# and the size of the page cache.
count_reads() { # NAME -> reads misses cache
	local from
	from=$(lab_guest_field "$1" time_ms)
	wait_report "$1" $((from + counted * 1000)) || return 1
	read -r reads misses cache < <(tr -d '\r' <"$lab_run/log/$1" | awk -v from="$from" '
		/^wss-guest: time_ms=/ {
			for (i = 2; i <= NF; i++)
				field[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
			if (field["time_ms"] + 0 < from + 0)
				next
			if (!reports++) {
				time = field["time_ms"]
				touches = field["touches"]
				disk = field["read_bytes"]
			}
			cache += field["cache_bytes"]
		}
		END {
			touches = field["touches"] - touches
			printf "%d %d %d\n", 1000 * touches / (field["time_ms"] - time),
				1000 * (field["read_bytes"] - disk) / 4096 / touches, cache / reports
		}')
}

balloon_has_come_to() { # NAME BYTES
	within_one_mib $((assigned - $(balloon_bytes "$1"))) "$2"
}

within_one_mib() { # BYTES BYTES
	[ "$1" -ge $(($2 - MiB)) ] && [ "$1" -le $(($2 + MiB)) ]
}

# Waits until the page cache no longer changes from one report to the next, because the kernel
# has finished reclaiming.
cache_rests() { # NAME
	local before
	before=$(lab_guest_field "$1" cache_bytes)
	next_report_ms "$1" >/dev/null && within_one_mib "$before" "$(lab_guest_field "$1" cache_bytes)"
}

# The guest gives up free memory first, except its kernel's reserve.
leave_cache_of() { # NAME MIB
	local line spare size try
	for try in 1 2 3; do
		line=$(lab_guest_line "$1")
		spare=$(($(lab_line_field "$line" free_bytes) - 10 * MiB))
		spare=$((spare + $(lab_line_field "$line" cache_bytes) - $2 * MiB))
		size=$(((assigned - $(lab_line_field "$line" balloon_bytes) - spare) / 1024))
		[ $((spare / MiB)) != 0 ] || return 0
		virsh -q setmem "$1" "${size}KiB" --live &&
			wait_until 60 balloon_has_come_to "$1" $((size * 1024)) &&
			wait_until 60 cache_rests "$1" || return 1
	done
}

test_size() { # NAME MIB
	local predicted
	check "$1: it is left about $2 MiB of page cache" leave_cache_of "$1" "$2"
	check "it reads from the disk" count_reads "$1" || return 1
	wss recommend "$1" --what-if $(((cache + baseline) / 1024))KiB --output csv
	predicted=$((1000 * $(csv what_if_faults_per_second) / full))
	diag "page cache $(mib "$cache"): $misses of 1000 reads go to the disk, $predicted are predicted;" \
		"$reads reads a second"
	check "as many reads miss as the curve predicts" in_range "$predicted" $((misses - 50)) $((misses + 50))
}

test_draw() { # NAME K MIB...
	local name=$1 k=$2 baseline full misses reads cache size
	shift 2
	decisions_guest_start "$name" "wss.map=1 wss.phases=0:0 wss.file=disk:$file wss.draw=$k wss.rate=$rate"
	check "$name: ten windows" ten_windows "$name" || bail_out "no history"
	count_reads "$name"
	full=$reads
	wss recommend "$name" --output csv
	baseline=$(($(csv p50_bytes) - $(drawn_bytes "$k" $((full * ${window%s})))))
	diag "$full reads a second, $misses of 1000 from the disk; the guest's own $(mib $baseline)"
	check "the whole file is in its cache" in_range "$misses" 0 2
	check "the windows contain what it reads, and little else" in_range $baseline $((-MiB)) $((8 * MiB))
	for size; do
		test_size "$name" "$size"
	done
	check "no OOM kill" no_oom "$name"
	lab_guest_stop "$name"
}

lab_libvirtd_start
test_draw uniform 1 48 32 16
test_draw skewed 3 40 20
done_testing
