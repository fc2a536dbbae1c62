# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Sourced by scripts/check: finds leftovers of a check. Its processes have a mark in their
# environment: TMPDIR, which even libvirt passes on to the processes that it starts, is a
# directory of the check's own.

leftovers_places="/dev/shm /run/libvirt /var/lib/libvirt /var/lib/virt-wss /var/log/libvirt"

# A short path, because those of UNIX sockets below it must be short; its mode is that
# of /tmp for tests that are not root.
leftovers_begin() { # -> TMPDIR, WSS_CHECK_ID
	TMPDIR=$(mktemp -d /tmp/wss-c.XXXXXX) || return 1
	chmod 1777 "$TMPDIR"
	WSS_CHECK_ID=$TMPDIR
	export TMPDIR WSS_CHECK_ID
	leftovers_before=$(leftovers_list_places)
}

# Without the state directories of libvirt itself: any QEMU driver that is root's makes them,
# if they were not there before, and keeps them until the next boot. With the groups of the embedded driver's guests.
leftovers_list_places() {
	{
		# shellcheck disable=SC2086
		find $leftovers_places -mindepth 1 -maxdepth 1
		find /sys/fs/cgroup -mindepth 2 -maxdepth 3 -type d -path '*/machine/qemu-embed-*' -prune
	} 2>/dev/null | grep -vxE '/run/libvirt/(common|hostdevmgr)' | sort
}

# Still in use, so it is not ours: all our processes have ended.
leftovers_is_used() { # PATH
	[ -d "$1" ] && find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -q . && return
	grep -qsF "$1" /proc/[0-9]*/cmdline /proc/[0-9]*/environ ||
		find /proc/[0-9]*/fd /proc/[0-9]*/cwd -lname "$1*" 2>/dev/null | grep -q .
}

leftovers_is_ours() { # PID: this shell, or started by it just now for this very look
	local pid=$1
	while [ "${pid:-0}" -gt 1 ]; do
		[ "$pid" != $$ ] || return 0
		pid=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f2)
	done
	return 1
}

# Print "PID COMMAND LINE" of each process that has the mark. Leftover processes have lost
# their parents.
leftovers_processes() {
	local file pid command
	grep -lszxF -e "WSS_CHECK_ID=$WSS_CHECK_ID" -e "TMPDIR=$TMPDIR" /proc/[0-9]*/environ | while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/environ}
		! leftovers_is_ours "$pid" || continue
		command=$(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-200)
		[ -z "$command" ] || printf '%s %s\n' "$pid" "$command"
	done 2>/dev/null
}

# List roots of libvirt's embedded driver that tests have made, see embed.sh.
leftovers_roots() {
	local root
	find /tmp -mindepth 1 -maxdepth 1 -type d -name 'wss.??????' -uid "$EUID" ! -perm /022 | while read -r root; do
		[ "$(cat "$root/check" 2>/dev/null)" != "$WSS_CHECK_ID" ] || echo "$root"
	done
}

leftovers_mounts() {
	local root
	for root in "$TMPDIR" $(leftovers_roots); do
		awk -v root="$root/" 'index($5 "/", root) == 1 { print $5 }' /proc/self/mountinfo
	done
}

# Print the text by which the groups are known of guests in roots that are not ours: their users remove them.
leftovers_others_groups() {
	local root hash
	for root in /tmp/wss.??????; do
		[ -d "$root" ] || continue
		[ "$(cat "$root/check" 2>/dev/null)" != "$WSS_CHECK_ID" ] || continue
		hash=$(printf %s "$root" | sha256sum)
		echo "/machine/qemu-embed-${hash:0:8}-"
	done
}

leftovers_files() {
	local path
	find "$TMPDIR" -mindepth 1 -maxdepth 1
	leftovers_roots
	comm -13 <(echo "$leftovers_before") <(leftovers_list_places) | grep -vFf <(leftovers_others_groups) | while read -r path; do
		leftovers_is_used "$path" || echo "$path"
	done
}

# Print one leftover per line.
leftovers_list() {
	leftovers_processes | sed 's/^/process /'
	leftovers_mounts | sed 's/^/mount /'
	leftovers_files | sed 's/^/file /'
}

# Time that processes may take to exit, for example after a kill.
leftovers_settle() { # SECONDS
	local end=$((SECONDS + $1))
	while [ $SECONDS -lt $end ] && [ -n "$(leftovers_list)" ]; do
		sleep 0.2
	done
}

# Ends and removes all leftovers, except files outside the check's own directories, which may
# belong to somebody else.
leftovers_remove() {
	local roots
	roots=$(leftovers_roots)
	leftovers_processes | cut -d' ' -f1 | xargs -r kill -KILL 2>/dev/null
	leftovers_mounts | sort -r | xargs -r umount -l
	# shellcheck disable=SC2086
	rm -rf "$TMPDIR" $roots
}
