#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sends kill -9 at random moments to the periodic round and to the balloon controller, and runs
# both on full disks, with guests whose balloons move (TCG, qemu:///embed). After each run the
# history is intact and the guest has all its memory back; no guest was ever below its floor.
# Prints TAP.
#
#   WSS_SOAK_KILLS     how many of them, half of each kind            [1000]
#   WSS_SOAK_FULL      how many runs on full disks                    [200]
#   WSS_SOAK_SEED      of the random moments; printed                 [of the clock]
#   WSS_SOAK_WORKERS   guests, each with its own libvirt and history  [4]
set -u

virt_wss=${WSS_BUILDDIR:?}/virt-wss
# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "${WSS_SRCDIR:?}/scripts/embed.sh"

kills=${WSS_SOAK_KILLS:-1000}
full=${WSS_SOAK_FULL:-200}
seed=${WSS_SOAK_SEED:-$(($(date +%s) % 30000))}
workers=${WSS_SOAK_WORKERS:-4}
# Close enough for the second step to reach the floor.
mib=1048576 assigned=512 floor=480
# Lifetime of a controller; it does not touch a balloon that may have moved within five
# seconds.
controller_ms=8000

pids=() # of the workers

skip_all() {
	echo "1..0 # SKIP $*"
	exit 77
}

# One worker: a guest, its libvirt, and a history on a disk whose size can be changed.

start_guest() {
	local devices
	truncate -s 350M "$embed_root/disk.img"
	devices="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>"
	devices+="<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
	devices+="<source file='$embed_root/disk.img'/><target dev='vda' bus='virtio'/><readonly/></disk>"
	embed_guest_start soak define=only memory=$assigned \
		args="wss.map=64 wss.touch=16 wss.cold=300 wss.rate=5000" || return 1
	embed_virsh dumpxml soak --inactive | sed "s|<memballoon model='none'/>|$devices|" \
		>"$embed_root/new.xml"
	embed_virsh define "$embed_root/new.xml" >/dev/null && embed_virsh start soak >/dev/null &&
		embed_guest_wait_ready soak 120
}

resize_disk() { # SIZE
	mount -o "remount,size=$1" "$embed_root/disk"
}

start_history() {
	mkdir "$embed_root/disk" && mount -t tmpfs -o size=64m,mode=755 none "$embed_root/disk" || return 1
	export VIRT_WSS_HISTORY=$embed_root/disk/history.db LIBVIRT_DEFAULT_URI
	LIBVIRT_DEFAULT_URI=$(embed_uri)
	refresh_history
}

# Stores windows that are new enough for the controller, because a killed round may
# have left too few.
refresh_history() {
	timeout 60 "$virt_wss" sample soak --store --window 100ms --count 15 >/dev/null 2>"$embed_root/err"
}

problem() { # TEXT...
	echo "PROBLEM $* (history $(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM sample' 2>&1))"
	sed '/: info :/d; s/^/  /' "$embed_root/err" | tail -n 5
}

# begin ARGUMENT...: starts virt-wss in the background: pid, and its watchdog once it
# has one
begin() {
	"$virt_wss" "$@" >/dev/null 2>"$embed_root/err" &
	pid=$!
}

random_sleep() { # MAX-MS: bash's sleep takes decimals
	sleep "$(awk -v ms=$(((RANDOM * 32768 + RANDOM) % $1)) 'BEGIN { print ms / 1000 }')"
}

children_of() { # PID
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

# Whether the watchdog and what it starts have ended: only one process at a time may
# have this libvirt.
all_ended() { # PID...
	local p
	for p; do
		[ ! -e "/proc/$p/exe" ] || return 1
	done
}

kill_and_wait() { # SIGNAL SECONDS
	local watchdog
	watchdog=$(children_of $pid)
	kill "-$1" $pid 2>/dev/null
	wait $pid 2>/dev/null
	# shellcheck disable=SC2086
	wait_until "$2" all_ended $watchdog
}

# Opened exclusively, because there may be no room for the shared index file.
whole() {
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'PRAGMA locking_mode = EXCLUSIVE' 'PRAGMA integrity_check' 2>&1 |
		tail -n 1)" = ok ]
}

has_all_back() {
	[ "$(embed_guest_field soak balloon_bytes)" = 0 ]
}

kill_round() {
	begin sample --all --store --publish --window 100ms --count 3
	random_sleep 1200
	kill_and_wait KILL 20
	# There is no file if it was killed before creating one.
	[ ! -s "$VIRT_WSS_HISTORY" ] || whole || problem "kill of a round: the history is damaged"
	echo "KILL round"
}

# Only kills after the first step are of interest; their number is counted.
kill_controller() {
	local steps
	begin balloon soak --apply --period 2s --window 100ms --pause 1s \
		--minimum ${floor}MiB
	random_sleep "$controller_ms"
	kill_and_wait KILL 60 || problem "kill of the controller: its watchdog has not ended"
	steps=$(grep -c 'balloon .* -> ' "$embed_root/err")
	whole || problem "kill of the controller: the history is damaged"
	wait_until 30 has_all_back || problem "kill of the controller: memory is still taken"
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM balloon WHERE done = 0')" = 0 ] ||
		problem "kill of the controller: the journal has open steps"
	echo "KILL controller steps=$steps"
	grep -q 'last measured\|too early' "$embed_root/err" && refresh_history
}

# Leaves little room, which is used up at the start of the run or later.
fill_disk() {
	local used
	used=$(du -sk "$embed_root/disk" | cut -f1)
	resize_disk $((used + RANDOM % 120))k
}

full_round() {
	fill_disk
	timeout 60 "$virt_wss" sample soak --store --window 20ms --count 30 \
		>/dev/null 2>"$embed_root/err"
	echo "FULL round said=$(grep -c 'full' "$embed_root/err")"
	whole || problem "full disk: the history is damaged"
	resize_disk 64m
	whole || problem "full disk, then room: the history is damaged"
}

full_controller() {
	local signal=TERM
	[ $((RANDOM % 2)) = 0 ] || signal=KILL
	fill_disk
	begin balloon soak --apply --period 2s --window 100ms --pause 1s \
		--minimum ${floor}MiB
	random_sleep "$controller_ms"
	watchdog=$(children_of $pid)
	kill -$signal $pid 2>/dev/null
	wait $pid 2>/dev/null
	# While the disk is full, memory is given back even if that cannot be recorded.
	wait_until 60 has_all_back || problem "full disk, $signal: memory is still taken"
	echo "FULL controller said=$(grep -c 'full' "$embed_root/err") steps=$(grep -c 'balloon .* -> ' "$embed_root/err")"
	resize_disk 64m
	# shellcheck disable=SC2086
	wait_until 90 all_ended $watchdog || problem "full disk, $signal: the watchdog has not ended"
	whole || problem "full disk, $signal: the history is damaged"
	timeout 60 "$virt_wss" balloon --restore 2>>"$embed_root/err" ||
		problem "full disk, then room: --restore fails"
	grep -q 'last measured\|too early' "$embed_root/err" && refresh_history
}

# Checks all reports of the guest and all entries of the journal.
never_below_floor() {
	tr -d '\r' <"$(embed_console soak)" | grep -o 'balloon_bytes=[0-9]*' | cut -d= -f2 | sort -n |
		tail -n 1 | awk -v most=$(((assigned - floor) * mib)) '{ print "MOST", int($1 / 1048576); exit $1 > most }' ||
		problem "the balloon has taken more than it may"
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" "SELECT count(*) FROM balloon WHERE to_bytes < $((floor * mib))")" = 0 ] ||
		problem "a step below the floor"
	grep -aq 'oom_kills=[1-9]' "$(embed_console soak)" && problem "the guest's kernel has killed"
	embed_guest_alive soak || problem "the guest does not run"
}

work() { # NUMBER
	local i
	RANDOM=$((seed + $1))
	embed_root_new
	echo "$embed_root" >"$scratch/root.$1"
	if ! start_guest || ! start_history; then
		problem "no guest"
		return
	fi
	for ((i = $1; i < kills; i += workers)); do
		if [ $((i / workers % 2)) = 0 ]; then kill_round; else kill_controller; fi
	done
	for ((i = $1; i < full; i += workers)); do
		if [ $((i / workers % 2)) = 0 ]; then full_round; else full_controller; fi
	done
	never_below_floor
}

# shellcheck disable=SC2317
clean_up() {
	local file
	trap - EXIT
	# The workers would keep restarting the processes being cleaned up.
	[ ${#pids[@]} = 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
	for file in "$scratch"/root.*; do
		[ ! -e "$file" ] || umount -l "$(cat "$file")/disk" 2>/dev/null
	done
	embed_cleanup
	rm -rf "$scratch"
}

count() { # REGULAR-EXPRESSION
	cat "$scratch"/out.* | grep -c "$1"
}

verdict() { # DESCRIPTION COMMAND...
	local description=$1
	shift
	tests=$((tests + 1))
	if "$@"; then echo "ok $tests - $description"; else
		echo "not ok $tests - $description"
		failed=1
	fi
}

main() {
	local i tests=0 failed=0
	[ "$(id -u)" = 0 ] || skip_all "needs root"
	command -v qemu-system-x86_64 >/dev/null || skip_all "needs qemu-system-x86"
	command -v sqlite3 >/dev/null || skip_all "needs sqlite3"
	echo "# seed $seed, $workers guests: WSS_SOAK_SEED=$seed WSS_SOAK_WORKERS=$workers"
	scratch=$(mktemp -d)
	trap clean_up EXIT
	trap 'exit 130' INT TERM
	embed_prepare "${WSS_GUEST_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/virt-wss/guest}" ||
		skip_all "no test guest could be made"
	for ((i = 0; i < workers; i++)); do
		: >"$scratch/out.$i"
		work $i >"$scratch/out.$i" 2>&1 &
		pids+=($!)
		# The first worker probes QEMU's capabilities for all.
		[ $i != 0 ] || wait_until 120 grep -q . "$scratch/out.0"
	done
	wait "${pids[@]}"
	pids=()
	grep -hA5 '^PROBLEM' "$scratch"/out.* | sed 's/^/# /'
	echo "# rounds killed $(count '^KILL round'), controllers killed $(count '^KILL controller')," \
		"of these after a step $(count '^KILL controller steps=[1-9]');" \
		"full disks $(count '^FULL'), of these noticed $(count '^FULL.*said=[1-9]');" \
		"most that a balloon took, MiB: $(sed -n 's/^MOST //p' "$scratch"/out.* | tr '\n' ' ')"
	verdict "$kills were killed" [ "$(count '^KILL')" = "$kills" ]
	verdict "$full ran on full disks" [ "$(count '^FULL')" = "$full" ]
	verdict "some kills were after a step" [ "$(count 'steps=[1-9]')" -gt 0 ]
	verdict "no history was damaged" [ "$(count '^PROBLEM.*damaged')" = 0 ]
	verdict "no balloon was left below its floor, no memory taken" \
		[ "$(count '^PROBLEM.*\(floor\|taken\)')" = 0 ]
	verdict "nothing else" [ "$(count '^PROBLEM')" = 0 ]
	echo "1..$tests"
	exit $failed
}

main
