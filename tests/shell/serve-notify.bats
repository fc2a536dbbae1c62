#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests what serve tells a service manager: the test has the manager's socket.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export LIBVIRT_DEFAULT_URI=test:///default VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	cd "$BATS_TEST_TMPDIR" || return 1
	/usr/bin/python3 - >told 2>listener.err 3>&- <<-'EOF' &
		import socket
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind("manager")
		while True:
		    print(s.recv(4096).decode().replace("\n", " "), flush=True)
	EOF
	listener=$!
	wait_until 300 [ -S manager ]
	export NOTIFY_SOCKET=$PWD/manager
}

teardown() {
	kill -KILL ${pid:+"$pid"} ${listener:+"$listener"} 2>/dev/null || true
}

begin() { # OPTION...: in the background -> pid
	"$virt_wss" serve --no-store "$@" 2>log 3>&- &
	pid=$!
}

told() { # LINE, a regular expression
	grep -qxE "$1" told
}

count() { # LINE
	grep -cxF "$1" told || true
}

more_than() { # NUMBER LINE
	[ "$(count "$2")" -gt "$1" ]
}

was_down() { # METRIC
	local child
	child=$(pgrep -P "$pid") && kill -KILL "$child"
	grep -qx "$1 0" metrics.prom
}

told_down() { # METRIC
	was_down "$1"
	told 'STATUS=1 guest, [01] measured, 0 refused; HTTP does not run: its process ended \(signal 9\)'
}

# Killed again and again it is started after growing pauses.
@test "it tells why HTTP is not served, and the textfile has it, too" {
	local metric='virt_wss_http_up'
	begin --listen unix:socket --textfile metrics.prom
	wait_until 300 grep -qx "$metric 1" metrics.prom
	for _ in 1 2 3 4; do
		wait_until 300 pgrep -P "$pid"
		kill -KILL "$(pgrep -P "$pid")"
		wait_until 300 eval '! pgrep -P "$pid"'
	done
	# Both are told now and then: it dies again until its absence was.
	wait_until 300 told_down "$metric"
	wait_until 300 was_down "$metric"
	wait_until 300 grep -qx "$metric 1" metrics.prom
	[ "$(awk '$1 == "virt_wss_http_starts_total" { print ($2 >= 5) }' metrics.prom)" = 1 ]
	wait_until 300 eval 'tail -n 1 told | grep -qxE "STATUS=1 guest, [01] measured, 0 refused"'
}

@test "it is ready once guests were listed, and tells its state" {
	begin --hold-file hold
	wait_until 300 told READY=1
	wait_until 300 told 'STATUS=1 guest, [01] measured, 0 refused'
	touch hold
	wait_until 300 told 'STATUS=1 guest, [01] measured, 0 refused; paused: hold exists'
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
	[ "$(tail -n 1 told)" = STOPPING=1 ]
	[ "$(count READY=1)" = 1 ]
	[ "$(count STOPPING=1)" = 1 ]
	! grep -q WATCHDOG told || false
}

@test "a manager that is too busy to listen hears that it is ready later" {
	local listens=$listener
	kill -STOP "$listens"
	/usr/bin/python3 - <<-'EOF'
		import socket
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.connect("manager")
		s.setblocking(False)
		try:
		    while True:
		        s.send(b"OTHER=1")
		except BlockingIOError:
		    pass
	EOF
	begin --textfile metrics
	# Written before each step of the watch: it has tried to tell after the first of them.
	wait_until 300 grep -qs '^virt_wss_guests{state="[a-z ]*"} 1' metrics
	kill -CONT "$listens"
	wait_until 300 told READY=1
	wait_until 300 told 'STATUS=1 guest, [01] measured, 0 refused'
	[ "$(count READY=1)" = 1 ]
}

@test "without a libvirt it is ready, and says so" {
	begin -c "test://$PWD/none.xml"
	wait_until 300 told READY=1
	wait_until 300 told 'STATUS=0 guests, 0 measured, 0 refused; no connection to libvirt'
}

@test "it announces a reload and its end, with the manager's clock" {
	begin
	wait_until 300 told READY=1
	before=$(cut -d . -f 1 /proc/uptime)
	kill -HUP "$pid"
	wait_until 300 told 'RELOADING=1 MONOTONIC_USEC=[0-9]+'
	wait_until 300 more_than 1 READY=1
	usec=$(sed -n 's/^RELOADING=1 MONOTONIC_USEC=//p' told)
	[ $((usec / 1000000)) -ge $((before - 1)) ]
	[ $((usec / 1000000)) -le $(($(cut -d . -f 1 /proc/uptime) + 1)) ]
}

# Runs with a clock in which no more than ten seconds pass.
invented_clock() { # COMMAND...
	clock_new clock 10
	WSS_CLOCK=$PWD/clock LD_PRELOAD=$WSS_BUILDDIR/tests/tools/hang.so "$@"
}

@test "the watchdog hears of work that was done" {
	export WATCHDOG_USEC=4000000
	begin
	wait_until 300 more_than 2 WATCHDOG=1
	# Of this process only.
	kill -KILL "$pid"
	wait "$pid" || true
	: >told
	export WATCHDOG_PID=1
	invented_clock begin
	wait_until 300 told READY=1
	clock_limit clock 30
	wait_until 300 clock_is_at clock 30
	[ "$(count WATCHDOG=1)" = 0 ]
}

# The sign of life comes from the work itself, not from a thread or a timer that would go on.
@test "a service that hangs starves the watchdog" {
	export WATCHDOG_USEC=1000000 VIRT_WSS_FAULT=stuck-service
	invented_clock begin
	wait_until 300 told READY=1
	n=$(count WATCHDOG=1)
	clock_limit clock 30
	wait_until 300 clock_is_at clock 30
	[ "$(count WATCHDOG=1)" = "$n" ]
	# It is alive otherwise.
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
}

@test "a process that is paused starves the watchdog" {
	export WATCHDOG_USEC=1000000
	command -v curl >/dev/null || skip "needs curl"
	begin --listen unix:socket
	wait_until 300 more_than 2 WATCHDOG=1
	wait_until 300 curl -sSf --unix-socket socket -o /dev/null http://localhost/healthz
	kill -STOP "$pid"
	n=$(count WATCHDOG=1)
	# Meanwhile the only other process of the service works.
	for _ in {1..40}; do
		curl -sS --max-time 300 --unix-socket socket -o /dev/null http://localhost/metrics
	done
	[ "$(count WATCHDOG=1)" -le $((n + 1)) ]
	kill -CONT "$pid"
	wait_until 300 more_than $((n + 1)) WATCHDOG=1
}

@test "an abstract socket will do, and a wrong one does no harm" {
	/usr/bin/python3 - >abstract 3>&- <<-EOF &
		import socket
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind("\\0virt-wss-test-$$")
		print("bound", flush=True)
		print(s.recv(4096).decode(), flush=True)
	EOF
	wait_until 300 grep -q bound abstract
	NOTIFY_SOCKET=@virt-wss-test-$$ begin
	wait_until 300 grep -qE 'READY=1|STATUS=' abstract
	kill -KILL "$pid"
	wait "$pid" || true
	export NOTIFY_SOCKET=relative
	begin --textfile metrics
	wait_until 300 [ -s metrics ]
	grep -q "^virt-wss: warning: cannot notify the service manager at 'relative'" log
}

@test "the journal gets priorities, whoever else gets words" {
	begin -c "test://$PWD/none.xml"
	wait_until 300 grep -q '^virt-wss: error: cannot connect' log
	kill -KILL "$pid"
	wait "$pid" || true
	: >journal
	JOURNAL_STREAM=$(stat -c %d:%i journal)
	export JOURNAL_STREAM
	"$virt_wss" serve --no-store -c "test://$PWD/none.xml" 2>>journal 3>&- &
	pid=$!
	wait_until 300 grep -q '^<3>cannot connect' journal
	! grep -q 'virt-wss:' journal || false
}
