# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by the demo and by the tests of make check-root: test guests under qemu:///embed,
# which needs no libvirtd. A root admits one process at a time, so guests that run at the same
# time have a root each. Only the caller opens it: a process that starts a guest here has
# exited before the caller uses virsh or virt-wss on the root.
#
# A script calls embed_prepare once, makes roots with embed_root_new, and always calls
# embed_cleanup before it exits. The next script removes the leftovers of a killed one.

# Print the process that owns the roots and its start time, because pids are reused.
embed_owner_of() { # PID
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk -v pid="$1" '{ print pid " " $20 }'
}

# libvirt's capabilities of QEMU, which take 4 s to probe, are kept below DIRECTORY and copied
# to every root.
embed_prepare() { # DIRECTORY: makes the test guest there
	export embed_guest_dir=$1 embed_owner
	embed_owner=$(embed_owner_of $$)
	embed_remove_stale
	"${WSS_SRCDIR:?}/vm-images/mkguest" "$embed_guest_dir"
}

# stdio_handler: the driver otherwise needs virtlogd. user, group: otherwise QEMU runs as a
# user that cannot read the guest's kernel or open /dev/kvm, which libvirt then probes for
# seconds. The path is short because paths of UNIX sockets below it must be short.
embed_root_new() { # -> embed_root
	embed_root=$(mktemp -d /tmp/wss.XXXXXX) || return 1
	echo "$embed_owner" >"$embed_root/owner"
	[ -z "${WSS_CHECK_ID-}" ] || echo "$WSS_CHECK_ID" >"$embed_root/check"
	mkdir -p "$embed_root/etc" "$embed_root/cache/qemu" "$embed_guest_dir/capabilities"
	printf '%s\n' 'stdio_handler = "file"' 'user = "root"' 'group = "root"' \
		>"$embed_root/etc/qemu.conf"
	cp -a "$embed_guest_dir/capabilities" "$embed_root/cache/qemu/"
}

embed_uri() {
	echo "qemu:///embed?root=$embed_root"
}

# Run virsh on the root in embed_root; print its stderr only if it fails. libvirt 9.0 may crash
# when it closes the embedded driver, even after the command succeeded: then try again, and
# accept "already" as success. embed_wrapper: a command that runs virsh.
embed_virsh() { # ARGUMENT...
	local status=139 tries=0 out err
	out=$(mktemp "$embed_root/virsh.XXXXXX") && err=$(mktemp "$embed_root/virsh.XXXXXX") || return 1
	# Print the output of the last attempt only.
	while [ $status = 139 ] && [ $((tries += 1)) -le 3 ]; do
		status=0
		# shellcheck disable=SC2154
		timeout 300 "${embed_wrapper[@]}" virsh -q -c "$(embed_uri)" "$@" >"$out" 2>"$err" || status=$?
	done
	[ $tries = 1 ] || ! grep -q 'already' "$err" || status=0
	cat "$out"
	[ $status = 0 ] || grep -v ': info :' "$err" >&2
	rm -f "$out" "$err"
	return $status
}

embed_console() { # NAME: its serial console
	echo "$embed_root/$1.console"
}

embed_guest_xml() { # NAME; the options of embed_guest_start in its caller's variables
	cat <<-XML
		<domain type='$type'>
		  <name>$1</name>
		  <memory unit='MiB'>$memory</memory>
		  <vcpu>1</vcpu>
		  <memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>
		  <os><type arch='x86_64' machine='pc'>hvm</type>
		    <kernel>$embed_guest_dir/vmlinuz</kernel>
		    <initrd>$embed_guest_dir/initrd</initrd>
		    <cmdline>console=ttyS0 quiet panic=-1 $args</cmdline></os>
		$(embed_devices_xml "$1")
		</domain>
	XML
}

# What all guests have: a console in a file, and as few devices as possible.
embed_devices_xml() { # NAME
	cat <<-XML
		  <on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>
		  <devices>
		    <emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <controller type='usb' model='none'/>
		    <serial type='file'><source path='$(embed_console "$1")'/><target port='0'/></serial>
		    $(embed_balloon_xml)
		  </devices>
	XML
}

embed_balloon_xml() {
	if [ -n "${balloon-}" ]; then
		echo "<memballoon model='virtio' autodeflate='on'><stats period='$balloon'/></memballoon>"
	else
		echo "<memballoon model='none'/>"
	fi
}

# Start a guest in embed_root without waiting for it. args: for the kernel command line, see
# vm-images/README.md. balloon: it has one, with new statistics each so many seconds.
embed_guest_start() { # NAME [args="…"] [type=qemu|kvm] [memory=MIB] [balloon=SECONDS] [paused=1] [define=1]
	local name=$1 args='' type=qemu memory=512 balloon='' paused='' define='' option
	shift
	for option; do
		case ${option%%=*} in
		args | type | memory | balloon | paused | define) local "${option%%=*}=${option#*=}" ;;
		*) echo "embed_guest_start: no option $option" >&2; return 2 ;;
		esac
	done
	embed_guest_xml "$name" >"$embed_root/$name.xml"
	if [ -n "$define" ]; then
		embed_virsh define "$embed_root/$name.xml" >/dev/null || return 1
		[ "$define" = only ] || embed_virsh start "$name" >/dev/null || return 1
	else
		embed_virsh create ${paused:+--paused} "$embed_root/$name.xml" >/dev/null || return 1
	fi
	[ -e "$embed_guest_dir/capabilities/done" ] || {
		cp -a "$embed_root/cache/qemu/capabilities" "$embed_guest_dir/" &&
			: >"$embed_guest_dir/capabilities/done"
	}
}

embed_guest_pid() { # NAME
	cat "$embed_root/run/qemu/$1.pid"
}

# Advance fair_ms, a clock of a machine with a processor to spare: while N threads want each processor, it is N times as
# slow. Call it often, as it knows how many there are only when it looks.
fair_clock() { # -> fair_ms
	local now=${EPOCHREALTIME/[.,]/} running
	fair_processors=${fair_processors:-$(nproc)}
	read -r _ _ _ running _ </proc/loadavg
	running=$(((${running%/*} + fair_processors - 1) / fair_processors))
	fair_us=$((${fair_us:-0} + (now - ${fair_then:-$now}) / (running > 0 ? running : 1)))
	fair_then=$now fair_ms=$((fair_us / 1000))
}

# Wait until COMMAND succeeds. SECONDS is what that takes at most on a machine that is neither slow nor busy; the deadline only
# ends what hangs: ten times as long, and never less than five minutes, by that clock. The pauses between two looks become
# longer, up to 0.3 s, and are no sleep(1): what tests wait for took more processes than what they do. Nor do they change $!.
wait_until() { # SECONDS COMMAND..., which may set what it likes
	local wait_ends wait_pause wait_looks=0 wait_never='' wait_result=0
	fair_clock
	wait_ends=$((fair_ms + 10000 * ($1 > 30 ? $1 : 30)))
	shift
	until "$@"; do
		fair_clock
		[ $fair_ms -lt $wait_ends ] || { wait_result=1; break; }
		# A socket to which nobody writes.
		[ -n "$wait_never" ] || exec {wait_never}<>/dev/udp/127.0.0.1/9
		printf -v wait_pause '0.%02d' $(((wait_looks += 2) < 30 ? wait_looks : 30))
		read -rt "$wait_pause" -u "$wait_never" || :
	done
	[ -z "$wait_never" ] || exec {wait_never}>&-
	return $wait_result
}

# The note, as a regular expression, of a window in which others left its guest little CPU time, or a limit of its group did.
# shellcheck disable=SC2034
embed_slowed='the guest was (starved of CPU time by other processes|throttled by a CPU limit) for about [0-9]+ % of the window'

embed_guest_said() { # NAME REGULAR-EXPRESSION
	grep -q "^wss-guest: $2" "$(embed_console "$1")" 2>/dev/null
}

embed_guest_wait_ready() { # NAME [SECONDS]
	wait_until "${2:-60}" embed_guest_said "$1" '\(ready\|error\)' &&
		embed_guest_said "$1" ready
}

# Print its newest complete report; the file's last line may be incomplete.
embed_guest_report() { # NAME
	# shellcheck disable=SC2016
	sed -n '/^wss-guest: time_ms=.*touches=[0-9]*\r\{0,1\}$/{s/\r$//;h;};${x;p;}' \
		"$(embed_console "$1")" 2>/dev/null
}

embed_guest_field() { # NAME FIELD: of its newest report
	embed_guest_report "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

embed_guest_past() { # NAME TIME_MS [STATE]: it has reported after that time, in that state
	local report time
	report=$(embed_guest_report "$1")
	time=${report#*time_ms=}
	time=${time%% *}
	[ -n "$time" ] && [ "$time" -gt "$2" ] && [[ $report == *"state=${3-}"* ]]
}

# Wait for a report of a whole interval in that state that began after now.
embed_guest_wait_state() { # NAME idle|touching [SECONDS]
	local now
	wait_until "${3:-60}" embed_guest_past "$1" 0 "$2" || return 1
	now=$(embed_guest_field "$1" time_ms)
	wait_until "${3:-60}" embed_guest_past "$1" "$now" "$2"
}

# Print the largest set that the guest reported between two guest times; nothing if there is no
# report.
embed_guest_truth() { # NAME FROM_MS TO_MS -> bytes
	awk -v from="$2" -v to="$3" '
		/^wss-guest: time_ms=.*touches=[0-9]+\r?$/ {
			split("", field)
			for (i = 2; i <= NF; i++) {
				at = index($i, "=")
				field[substr($i, 1, at - 1)] = substr($i, at + 1) + 0
			}
			if (field["time_ms"] - field["interval_ms"] < from || field["time_ms"] > to)
				next
			if (field["touched_bytes"] >= most + 0)
				most = field["touched_bytes"]
		}
		END { if (most != "") printf "%d\n", most }' "$(embed_console "$1")"
}

embed_process_state() { # NAME: one letter, T for stopped; nothing if it is gone
	awk '{ sub(/.*\) /, ""); print $1 }' "/proc/$(embed_guest_pid "$1")/stat" 2>/dev/null
}

# Whether it runs and keeps reporting. An idle guest reports, too.
embed_guest_alive() { # NAME [SECONDS]
	local now
	now=$(embed_guest_field "$1" time_ms)
	wait_until "${2:-30}" embed_guest_past "$1" "${now:-0}" ''
}

# List every QEMU that was started in the root: guests, and capability probes of a killed libvirt, which no longer have a
# pid file. libvirt gives each a HOME below it, and tests have it in embed_root; a command line that names it may be
# anybody's. A session's are another user's.
embed_root_qemus() { # ROOT
	local file pid
	grep -lszF "=$1" /proc/[0-9]*/environ | while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/environ}
		case $(readlink "/proc/$pid/exe") in */qemu-system-*) echo "$pid" ;; esac
	done
}

# libvirt names the groups of a root's guests by the root, and leaves those of guests that it has not seen end.
embed_root_cgroups() { # ROOT
	local hash
	hash=$(printf %s "$1" | sha256sum)
	find /sys/fs/cgroup -depth -type d -path "*/machine/qemu-embed-${hash:0:8}-*" 2>/dev/null
}

# Kill all that exist; true once there are none.
embed_root_kill() { # ROOT
	local pids
	pids=$(embed_root_qemus "$1")
	[ -n "$pids" ] || return 0
	# shellcheck disable=SC2086
	kill -KILL $pids 2>/dev/null
	return 1
}

# Remove its groups; true once there are none. The kernel keeps one for a moment after its process has gone.
embed_root_ungroup() { # ROOT
	local groups
	groups=$(embed_root_cgroups "$1")
	[ -n "$groups" ] || return 0
	# shellcheck disable=SC2086
	rmdir $groups 2>/dev/null
	[ -z "$(embed_root_cgroups "$1")" ]
}

# Done without libvirt, which may be the process that hangs.
embed_root_remove() { # ROOT
	wait_until 30 embed_root_kill "$1" || echo "$1: its QEMU does not end" >&2
	wait_until 3 embed_root_ungroup "$1" || echo "$1: its guests' cgroups stay" >&2
	rm -rf "$1"
}

# Anyone may make a directory of such a name, but not one of this user that nobody else may write to.
embed_roots() {
	find /tmp -mindepth 1 -maxdepth 1 -type d -name 'wss.??????' -uid "$EUID" ! -perm /022
}

embed_cleanup() {
	local root
	for root in $(embed_roots); do
		[ "$(cat "$root/owner" 2>/dev/null)" != "$embed_owner" ] || embed_root_remove "$root"
	done
}

embed_remove_stale() {
	local root owner
	for root in $(embed_roots); do
		owner=$(cat "$root/owner" 2>/dev/null)
		[ -n "$owner" ] || continue
		[ "$(embed_owner_of "${owner% *}")" = "$owner" ] || embed_root_remove "$root"
	done
}
