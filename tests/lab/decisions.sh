# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Sourced by the tests and benches of sizing decisions: a guest of 1 GiB with a balloon and a
# disk, a history of ten windows, balloon --apply down to the floor, the memory that the host
# reclaimed, and the guest's speed.
# shellcheck disable=SC2034,SC2154

# shellcheck source-path=SCRIPTDIR source=rates.sh
. "${WSS_LAB_DIR:?}/rates.sh"

assigned=$((1024 * MiB))
disk_mib=800
# A lower limit; see fit_window().
window=5s
# A long period, because under emulation the faults after a zap take the guest seconds: only
# one window, at the start. Other benches measure the cost of windows.
period=400s
export VIRT_WSS_HISTORY=$lab_run/history.db

# Statistics and autodeflate, as recommended to operators.
decisions_guest_start() { # NAME KERNEL-ARGUMENTS [always|never]: huge pages
	lab_thp "${3:-never}"
	rm -f "$VIRT_WSS_HISTORY"*
	truncate -s ${disk_mib}M "$lab_run/disk.img"
	controlled_guest_start "$1" "$2" memory=$((assigned / MiB)) \
		balloon="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>" \
		devices="<disk type='file' device='disk'><driver name='qemu' type='raw'/>
			<source file='$lab_run/disk.img'/><target dev='vda' bus='virtio'/><readonly/></disk>"
}

# After a zap the emulated guest touches 200 MiB twice within 5 s on a machine that has nothing
# else to do. On a busy machine windows become as long as that takes, up to 20 s.
fit_window() { # NAME -> window
	local began seconds
	began=$(uptime_ms)
	wss sample "$1" --window 1s --max-stall 10s
	lab_guest_wait_passes "$1" 1
	seconds=$((($(uptime_ms) - began) / 1000 + 1))
	window=$((seconds < 5 ? 5 : seconds > 20 ? 20 : seconds))s
	diag "twice through its set in $seconds s: windows of $window"
}

ten_windows() { # NAME
	local wss_deadline=$((60 + 12 * ${window%s}))
	wss sample "$1" --store --window $window --count 10 --max-stall 10s --output csv
	status_is 0
}

# Prints a column of the row that virt-wss has printed as CSV.
csv() { # COLUMN
	awk -f "$WSS_LAB_DIR/../../scripts/csv-field.awk" -v name="$1" "$wss_out"
}

# Starts the controller in the background: apply_pid; its messages are in $lab_run/apply.err.
apply_start() { # NAME
	"$virt_wss" --debug balloon "$1" --apply --period $period --window $window --pause 1s --max-stall 10s \
		>"$lab_run/apply.out" 2>"$lab_run/apply.err" &
	apply_pid=$!
}

apply_said() { # REGULAR-EXPRESSION
	grep -q "$1" "$lab_run/apply.err" || ! kill -0 "$apply_pid" 2>/dev/null
}

apply_stop() { # -> status
	status=0
	kill -TERM "$apply_pid" 2>/dev/null
	wait "$apply_pid" 2>/dev/null || status=$?
}

apply_say() {
	diag "$(grep -v 'debug: \|: info : ' "$lab_run/apply.err")"
}

# Prints the number of steps of a kind in the journal.
journal() { # SQL-CONDITION [SQL-EXPRESSION]
	sqlite3 -cmd '.timeout 10000' "$VIRT_WSS_HISTORY" "SELECT ${2:-count(*)} FROM balloon WHERE $1"
}

balloon_bytes() { # NAME: what the guest says that it took
	lab_guest_field "$1" balloon_bytes
}

# Checks that the guest's kernel never killed a process and did not panic.
no_oom() { # NAME
	! grep -aq 'oom_kills=[1-9]\|Kernel panic\|Out of memory' "$lab_run/log/$1" && guest_well "$1"
}

# Waits for some passes, because memory is slow when touched for the first time, or again after
# a zap.
rates() { # NAME FILE COUNT
	local i
	lab_guest_wait_passes "$1" 10
	for ((i = 0; i < $3; i++)); do
		loop_rate "$1" >>"$2"
	done
}

median_of() { # FILE
	spread <"$1" | cut -d' ' -f1 | cut -d. -f1
}

# Prints how far the runs of a file differ, in tenths of a percent of their median, without the
# fastest and the slowest.
spread_of() { # FILE
	sort -n "$1" | awk '{ v[NR] = $1 }
		END { printf "%d\n", (NR > 2 ? 1000 * (v[NR - 1] - v[2]) / v[int((NR + 1) / 2)] : 1000) }'
}
