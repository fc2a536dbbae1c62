#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that trouble with the files of serve is told, and delays neither its windows nor its hold.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"
# shellcheck source-path=SCRIPTDIR source=kvm-guest.sh
. "$WSS_SRCDIR/tests/shell/kvm-guest.sh"

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	dir=$(mktemp -d "${TMPDIR:-/tmp}/wss-store.XXXXXX")
	mkdir "$dir/work"
	cd "$dir/work" || return 1
}

teardown() {
	exec 4>&-
	for pid in ${service-} ${locker-} ${kvm_guest_pid-}; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
	cd / && rm -rf "${dir:?}"
}

# Measures the fake guest every 60 ms. -> service
begin() {
	: >err
	kvm_guest_start
	VIRT_WSS_SYSROOT=$dir/host LD_PRELOAD=${preload-} "$WSS_BUILDDIR/tests/faults/serve-windows" endless "$dir/guest" \
		"$kvm_guest_uuid" "unix:$dir/http" 2>>err 3>&- &
	service=$!
	wait_until 300 has_windows 3
}

value() { # METRIC
	sed -n "s/^virt_wss_$1\({.*}\)\? //p" metrics 2>/dev/null
}

windows() {
	value windows_total
}

has_windows() { # N
	local n
	n=$(windows)
	[ "${n:-0}" -ge "$1" ]
}

has_failures() {
	[ "$(value store_failures_total)" -ge 1 ]
}

end() { # -> status
	kill -TERM "$service"
	status=0
	wait "$service" || status=$?
	service=''
	[ "$status" = 0 ]
	kvm_guest_at_rest
}

# Keeps the history locked until "exec 4>&-". -> locker
lock_history() {
	mkfifo lock
	sqlite3 h.db <lock >locked 3>&- &
	locker=$!
	exec 4>lock
	printf '.timeout 300000\nBEGIN IMMEDIATE; SELECT 1;\n' >&4
	wait_until 300 [ -s locked ]
}

@test "a history that another process keeps locked delays no window" {
	begin
	lock_history
	wait_until 300 has_failures
	has=$(windows)
	# As long as it is locked; each wait for the lock takes seconds.
	wait_until 300 has_windows $((has + 40))
	grep -q 'error: history .*database is locked' err
	[ "$(grep -c 'error:' err)" = 1 ]
	stored=$(value stored_samples_total)
	exec 4>&-
	wait_until 300 eval "[ \"\$(value stored_samples_total)\" -gt $stored ]"
	grep -q 'the history: it works again' err
	end
}

has_stored() { # N
	[ "$(value stored_samples_total)" -ge "$1" ]
}

removals_told() {
	grep -c 'warning: history h.db: it was removed, replaced or emptied, and is opened again$' err
}

@test "a history that was removed is opened again, which is told once" {
	begin
	local kind
	for kind in 'rm h.db h.db-*' 'rm h.db*' 'rm h.db' 'mv h.db old.db'; do
		echo "$kind"
		: >err
		stored=$(value stored_samples_total)
		$kind
		wait_until 300 removals_told
		wait_until 300 has_stored $((stored + 6))
		[ "$(removals_told)" = 1 ]
		cat err
		[ "$(wc -l <err)" = 1 ]
		# The new one has them, and no other round may run beside the service.
		wait_until 300 eval "[ \"\$(sqlite3 -readonly h.db 'SELECT count(*) FROM sample')\" -ge 5 ]"
		run timeout -k 5 300 "$virt_wss" -c test:///default sample --all --store --history h.db
		[ "$status" = 1 ]
		[[ $output = *"/h.db is in use by another round, process $service (serve-windows): stop that first, or take another history, or omit --store"* ]]
	done
	end
	[ "$(sqlite3 h.db 'PRAGMA integrity_check')" = ok ]
	[ "$(sqlite3 old.db 'PRAGMA integrity_check')" = ok ]
}

@test "a history that is moved away without its log has all samples" {
	begin
	wait_until 300 has_stored 8
	stored=$(value stored_samples_total)
	# They are in the log alone.
	[ "$(sqlite3 'file:h.db?immutable=1' 'SELECT count(*) FROM sample')" -lt "$stored" ]
	mv h.db old.db
	wait_until 300 removals_told
	wait_until 300 has_stored $((stored + 6))
	end
	[ "$(sqlite3 old.db 'SELECT count(*) FROM sample')" -ge "$stored" ]
	[ "$(sqlite3 old.db 'PRAGMA integrity_check')" = ok ]
	[ "$(sqlite3 h.db 'PRAGMA integrity_check')" = ok ]
	[ ! -e old.db-wal ] || [ ! -s old.db-wal ]
}

@test "a history that cannot be opened again is told once, and is opened later" {
	begin
	rm h.db h.db-*
	ln -s nowhere h.db
	wait_until 300 has_failures
	grep -q 'error: the history was removed, replaced or emptied: ' err
	stored=$(value stored_samples_total)
	has=$(windows)
	wait_until 300 has_windows $((has + 5))
	[ "$(value stored_samples_total)" = "$stored" ]
	cat err
	[ "$(grep -c 'error:' err)" = 1 ]
	rm h.db
	wait_until 300 has_stored $((stored + 1))
	end
	[ "$(sqlite3 h.db 'PRAGMA integrity_check')" = ok ]
}

# How many windows there have been, as HTTP says.
windows_now() {
	curl -s --max-time 300 --unix-socket "$dir/http" http://localhost/metrics |
		sed -n 's/^virt_wss_windows_total\({.*}\)\? //p'
}

has_windows_now() { # N
	local n
	n=$(windows_now)
	[ "${n:-0}" -ge "$1" ]
}

@test "slow disks of the history, the metrics, the ages and the hold file stop no window" {
	command -v curl >/dev/null || skip "needs curl"
	local call files before
	local preload=$WSS_BUILDDIR/tests/tools/slow.so
	export WSS_SLOW_DIR=$dir/work WSS_SLOW_WHEN=$dir/slow
	for files in '[!h]*' 'h.db*' hold; do
		for call in sync,stat open,read,write,rename; do
			[ "$call $files" != "open,read,write,rename hold" ] || continue
			rm -f h.db* metrics "$dir/slow"
			WSS_SLOW=$call:3600 WSS_SLOW_NAME=$files begin
			: >"$dir/slow"
			# Such a call has begun, and does not end before the windows are counted.
			wait_until 300 test -s "$dir/slow"
			before=$(windows_now)
			[ -n "$before" ]
			wait_until 300 has_windows_now $((before + 40))
			echo "$call of $files: $(windows_now) windows after $before: $(cat "$dir/slow")"
			rm "$dir/slow"
			rm -r "$dir/host"
			kill -KILL "$service" "$kvm_guest_pid"
			wait "$service" "$kvm_guest_pid" || true
			service='' kvm_guest_pid=''
		done
	done
}

@test "no canary is stored, as its window is shorter than the others" {
	begin
	end
	[ "$(sqlite3 h.db 'SELECT count(DISTINCT window_ns) FROM series')" = 1 ]
	[ "$(sqlite3 h.db 'SELECT count(*) FROM sample')" -ge 2 ]
}

@test "ages that cannot be kept are refused in one line" {
	export LIBVIRT_DEFAULT_URI=test:///default
	for kind in file link; do
		rm -f ages
		if [ $kind = file ]; then echo >ages; else ln -s nowhere ages; fi
		status=0
		timeout -k 5 300 "$virt_wss" serve --history "$PWD/h.db" 2>err || status=$?
		cat err
		[ "$status" = 1 ]
		cat err
		[ "$(wc -l <err)" = 1 ]
		grep -q "error: cannot keep the ages of memory: $PWD/ages: " err
		[ ! -e h.db ]
	done
}
