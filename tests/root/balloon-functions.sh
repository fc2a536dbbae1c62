# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of balloon --apply on guests whose balloons move: web1 and web2.
# shellcheck disable=SC2034,SC2154,SC2016

load functions.sh

mib=1048576
assigned=512
# With the default headroom of a fifth, the policy's minimum is the floor of these
# guests.
floor=256

# Starts a guest with cold page cache, balloon statistics and autodeflate, which touches memory
# as its control line requests.
start_with_balloon() { # NAME [KERNEL-ARGUMENTS]
	local usual="wss.map=192 wss.lazy=1 wss.cold=320 wss.rate=20000 wss.phases=32:0 wss.control=ttyS1"
	truncate -s 350M "$embed_root/disk.img"
	mkfifo -m 666 "$embed_root/$1.control".{in,out}
	embed_guest_start "$1" define=only memory=$assigned \
		args="${2-$usual}"
	devices="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>"
	devices+="<serial type='pipe'><source path='$embed_root/$1.control'/><target port='1'/></serial>"
	devices+="<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
	devices+="<source file='$embed_root/disk.img'/><target dev='vda' bus='virtio'/><readonly/></disk>"
	embed_virsh dumpxml "$1" --inactive | sed "s|<memballoon model='none'/>|$devices|" \
		>"$embed_root/$1.new.xml"
	embed_virsh define "$embed_root/$1.new.xml" >/dev/null
	boot "$1"
}

boot() { # NAME
	rm -f "$(embed_console "$1")"
	# libvirt notices on its own that the guest it knew has ended.
	wait_until 20 embed_virsh start "$1" >/dev/null
	embed_guest_wait_ready "$1"
	wait_until 60 has_reported "$1"
}

has_reported() { # NAME
	[ -n "$(embed_guest_field "$1" phase)" ]
}

setup_file() {
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	start_with_balloon web1
	start_with_balloon web2
}

teardown_file() {
	root_teardown_file
}

rss_at_least() { # NAME MIB
	[ "$(rss_mib "$1")" -ge "$2" ]
}

has_passed() { # NAME LOOPS
	[ "$(embed_guest_field "$1" loops)" -gt "$2" ]
}

# Returns when the guest has touched all of it once.
touch_all() { # NAME MIB
	touch_mib "$1" "$2"
	wait_until 60 has_passed "$1" "$(embed_guest_field "$1" loops)"
}

# Returned memory is not on the host until the guest touches it again, and the guest reads the
# page cache that it lost to the balloon only while it boots.
refill() { # NAME
	local pid
	wait_until 20 taken_is "$1" 0
	rss_at_least "$1" 450 || touch_all "$1" 192
	if ! rss_at_least "$1" 450; then
		pid=$(embed_guest_pid "$1")
		kill -TERM "$pid"
		wait_until 20 eval "! kill -0 $pid 2>/dev/null"
		boot "$1"
		touch_all "$1" 192
		rss_at_least "$1" 450
	fi
	touch_mib "$1" 32
}

# Windows of the same kind as those that --apply takes.
setup() {
	root_setup
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	refill web1
	refill web2
	wait_until 60 wss_store --window 300ms --max-stall 5s web1 web2
}

# Only the controller's messages explain a failure.
teardown() {
	[ ! -e "$BATS_TEST_TMPDIR/apply" ] || tail -n 60 "$BATS_TEST_TMPDIR/apply"
	[ -z "${apply_pid-}" ] || kill -KILL "$apply_pid" 2>/dev/null || true
	[ -z "${watchdog-}" ] || kill -KILL "$watchdog" 2>/dev/null || true
}

# Runs --apply in the background until it is stopped: apply_pid.
apply() { # NAME|OPTION...
	"${wss_as[@]}" "$virt_wss" --debug balloon --apply --period 3s --window 300ms --pause 1s "$@" \
		2>"$BATS_TEST_TMPDIR/apply" 3>&- &
	apply_pid=$!
}

# Runs squeeze in the background until it ends by itself, with small steps: apply_pid.
squeeze() { # NAME|OPTION...
	"${wss_as[@]}" "$virt_wss" --debug squeeze --step 8 --settle 1s --interval 2s --output csv "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/apply" 3>&- &
	apply_pid=$!
}

apply_end() { # -> status
	status=0
	wait "$apply_pid" || status=$?
	grep -v 'debug: \|: info : ' "$BATS_TEST_TMPDIR/apply" || true
}

watchdog_pid() {
	cat "/proc/$apply_pid/task/$apply_pid/children"
}

# Stops the controller first, so that neither sees the other die and gives the memory back.
kill_with_watchdog() {
	kill -STOP "$apply_pid"
	kill -KILL "$(watchdog_pid)"
	kill -KILL "$apply_pid"
	wait "$apply_pid" || true
	apply_pid=
}

said() { # REGULAR-EXPRESSION
	grep -q "$1" "$BATS_TEST_TMPDIR/apply"
}

journal() { # SQL-CONDITION
	sqlite3 -cmd '.timeout 10000' "$VIRT_WSS_HISTORY" "SELECT count(*) FROM balloon WHERE $1"
}

none_left() {
	[ "$(journal 'done = 0')" = 0 ]
}

rss_mib() { # NAME
	awk '/^VmRSS:/ { print int($2 / 1024) }' "/proc/$(embed_guest_pid "$1")/status"
}

# Whether the guest reports that its balloon has taken this much.
taken_is() { # NAME BYTES
	[ "$(embed_guest_field "$1" balloon_bytes)" = "$2" ]
}

taken_at_least() { # NAME MIB
	[ "$(embed_guest_field "$1" balloon_bytes)" -ge $(($2 * mib)) ]
}

most_taken() { # NAME: in MiB, of all reports
	tr -d '\r' <"$(embed_console "$1")" | grep -o 'balloon_bytes=[0-9]*' | cut -d= -f2 | sort -n |
		tail -n 1 | awk '{ print int($1 / 1048576) }'
}

in_phase_after() { # NAME PHASE
	[ "$(embed_guest_field "$1" phase)" -gt "$2" ]
}

# Waits for a report of the new phase, however much the guest can touch in a second.
touch_mib() { # NAME MIB
	local phase
	phase=$(embed_guest_field "$1" phase)
	echo "$2:0" >"$embed_root/$1.control.in"
	wait_until 30 in_phase_after "$1" "$phase"
}

no_oom() { # NAME
	embed_guest_alive "$1"
	refute grep -aq 'oom_kills=[1-9]' "$(embed_console "$1")"
}
