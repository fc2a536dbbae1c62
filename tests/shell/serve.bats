#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests serve without a guest that can be measured: its options, its files, how it ends.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=test:///default
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

wss() { # ARGUMENT...: out and err are files
	status=0
	timeout -k 5 300 "$virt_wss" "$@" >out 2>err || status=$?
	printf '$ virt-wss %s -> %s\n%s\n%s\n' "$*" "$status" "$(cat out)" "$(cat err)"
}

begin() { # OPTION...: in the background -> pid
	"$virt_wss" serve --textfile metrics "$@" 2>err 3>&- &
	pid=$!
	wait_until 300 [ -s metrics ]
}

end() { # SIGNAL -> status
	kill "-$1" "$pid" 2>/dev/null || true
	status=0
	wait "$pid" || status=$?
	pid=''
}

says() { # LINE of the metrics
	grep -qxF "$1" metrics
}

# One description before the values of a family, each value once, and the form of a value.
well_formed() {
	perl -ne '
		next if /^# HELP (\S+) \S/;
		if (/^# TYPE (\S+) (gauge|counter)$/) { die "$1 twice" if $seen{$family = $1}++; next }
		/^((\w+)(\{(\w+="(\\.|[^"\\])*"(,(?=\w))?)*\})?) (-?[0-9.]+(e[-+]?\d+)?|NaN|[-+]Inf)$/ or die "line: $_";
		die "$2 below $family" if $2 ne $family;
		die "$1 twice" if $values{$1}++;
	' metrics
}

@test "every user may read the textfile, whatever the umask: node_exporter is another than the service" {
	(umask 077 && exec "$virt_wss" serve --no-store --textfile metrics 2>err 3>&-) &
	pid=$!
	wait_until 300 [ -s metrics ]
	[ "$(stat -c %a metrics)" = 644 ]
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
}

@test "a file of metrics is there at once, complete, and stays fresh" {
	begin
	well_formed
	says 'virt_wss_held 0'
	wait_until 300 says 'virt_wss_guests{state="waiting"} 1'
	[ "$(stat -c %a metrics)" = 644 ]
	first=$(stat -c %i metrics)
	wait_until 300 eval "[ \"\$(stat -c %i metrics)\" != $first ]"
	well_formed
	wait_until 300 says 'virt_wss_libvirt_up 1'
}

@test "it raises the limit of open files, or measures fewer guests at a time" {
	ulimit -Sn 1024
	begin
	[ "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" = 2048 ]
	run ! grep -q 'at a time' err
	end TERM
	rm metrics
	ulimit -n 300
	begin
	grep -qx 'virt-wss: warning: at most 7 guests are measured at a time, not 80: the limit of open files (LimitNOFILE) is 300; raise it to 2048' err
	[ "$(grep -c 'at a time' err)" = 1 ]
}

@test "a limit of open files that HTTP cannot begin with is named" {
	ulimit -n 60
	begin --listen unix:http.sock
	wait_until 300 grep -qx 'virt-wss: warning: the HTTP process ended at once (is the limit of open files, LimitNOFILE, too low?): starting it again' err
}

@test "a limit of its cgroup that is too small is said once" {
	local cgroup=root/sys/fs/cgroup/system.slice/virt-wss.service
	mkdir -p root/proc/self $cgroup
	ln -s /proc/sys root/proc/sys
	echo 0::/system.slice/virt-wss.service >root/proc/self/cgroup
	echo 40 >$cgroup/pids.max
	echo $((300 << 20)) >$cgroup/memory.max
	VIRT_WSS_SYSROOT=$PWD/root begin
	grep -qx 'virt-wss: warning: at most 4 guests are measured at a time, not 80: the limit of tasks (TasksMax) is 40; raise it to 192' err
	grep -qx 'virt-wss: warning: the limit of memory (MemoryMax) is 300 MiB: with this ages-memory, raise it to 512 MiB' err
	end TERM
	rm metrics
	echo max >$cgroup/pids.max
	VIRT_WSS_SYSROOT=$PWD/root begin --ages-memory 8MiB
	[ "$(grep -c 'TasksMax' err)" = 0 ]
	grep -q 'raise it to 392 MiB' err
}

@test "SIGTERM ends it at once, while its clock stands still, and no file is left beside the metrics" {
	local shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "needs hang.so"
	clock_new clock 2
	WSS_CLOCK=$PWD/clock LD_PRELOAD=$shim begin
	wait_until 300 clock_is_at clock 2
	kill -TERM "$pid"
	wait_until 300 eval '! kill -0 "$pid" 2>/dev/null'
	end TERM
	[ "$status" = 143 ]
	[ "$(find . -name '.virt-wss-*' | wc -l)" = 0 ]
	# Nothing was measured, so there is no history either.
	[ ! -e history.db ]
	[ ! -e ages ]
}

@test "a hold file holds it until it is gone" {
	touch hold
	begin --hold-file hold
	wait_until 300 says 'virt_wss_held 1'
	rm hold
	wait_until 300 says 'virt_wss_held 0'
	grep -qE '^virt_wss_held_seconds_total\{by="operator"\} (0\.0*[1-9]|[1-9])' metrics
	grep -qx 'virt_wss_held_seconds_total{by="pressure"} 0' metrics
	grep -qx 'virt-wss: paused by hold file hold' err
	grep -qx 'virt-wss: hold file hold is gone: measuring again' err
}

@test "a hold file that is a link to nowhere, or cannot be looked for, holds it" {
	local file
	ln -s loop loop
	ln -s nowhere dangling
	for file in dangling loop/hold; do
		rm -f metrics
		begin --hold-file $file
		wait_until 300 says 'virt_wss_held 1'
		end TERM
		[ "$status" = 143 ]
	done
}

@test "only one measures all guests into a history" {
	begin
	wss serve
	[ "$status" = 1 ]
	[ "$(wc -l <err)" = 1 ]
	grep -qE "^virt-wss: error: history .* is in use by the service, process $pid: stop that first, or take another history$" err
	wss sample --all --store
	[ "$status" = 1 ]
	grep -qE "in use by the service, process $pid: stop that first, or take another history, or omit --store$" err
	wss serve --no-store --textfile /nonexistent/metrics
	[ "$status" = 1 ]
}

@test "without a libvirt it waits for one" {
	begin -c "test://$PWD/none.xml"
	wait_until 300 says 'virt_wss_libvirt_up 0'
	grep -q "^virt-wss: error: cannot connect .* (trying again until it works)\$" err
	[ "$(grep -c error err)" = 1 ]
	end TERM
	[ "$status" = 143 ]
}

@test "wrong options are refused in one line" {
	local options
	for options in web1 "--qmp socket" "--no-store --history h.db" "--window 2m --period 1m" \
		"--budget 0" "--budget 101" "--period 0" "--max-stall -1" "--textfile" "--metrics all" "--metrics"; do
		# shellcheck disable=SC2086
		wss serve $options
		[ "$status" = 2 ]
		[ "$(wc -l <err)" -le 2 ]
		[ ! -s out ]
	done
	wss serve --textfile /nonexistent/metrics
	[ "$status" = 1 ]
	grep -q '/nonexistent/metrics' err
	[ ! -e history.db ]
}
