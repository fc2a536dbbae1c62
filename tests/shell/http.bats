#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests what serve answers by HTTP, and that neither a service that hangs nor hostile clients change
# that for others.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
http_client=$WSS_SRCDIR/tests/tools/http-client

setup() {
	command -v curl >/dev/null || skip "needs curl"
	export LIBVIRT_DEFAULT_URI=test:///default
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "${stopped-}" ] || kill -CONT "$stopped" 2>/dev/null || true
	[ -z "${clients-}" ] || kill -KILL -- "-$clients" 2>/dev/null || true
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

begin() { # OPTION...: in the background -> pid
	"$virt_wss" serve --no-store "$@" 2>err 3>&- &
	pid=$!
}

# Listens at a UNIX socket and at a port of its own. -> pid, port
begin_both() { # OPTION...
	begin --listen unix:socket --listen 127.0.0.1:0 "$@"
	wait_until 300 grep -q 'HTTP at 127' err
	port=$(sed -n 's/.*HTTP at 127\.0\.0\.1://p' err)
	wait_until 300 eval 'http /healthz'
}

http() { # PATH [OPTION OF CURL]...: status; head and body in files
	local path=$1
	shift
	: >body
	status=$(curl -sS --max-time 300 --unix-socket socket -D head -o body -w '%{http_code}' "$@" "http://localhost$path" 2>curl.err)
	[ "$status" = 200 ]
}

refuses() { # as http
	! http "$@"
}

child() { # -> the pid of the process that speaks HTTP
	tr -d ' ' <"/proc/$pid/task/$pid/children"
}

metric() { # LINE
	http /metrics && grep -qxF "$1" body
}

# Whether all requests are answered.
all_answered() { # ADDRESS CLIENTS REQUESTS
	local requests bad times
	read -r requests bad times < <(timeout 300 "$http_client" scrape "$1" "$2" "$3")
	echo "$1: $requests requests, $bad bad; p50, p99, max in ms: $times"
	[ "$requests" = $(($2 * $3)) ] && [ "$bad" = 0 ]
}

stop_service() { # -> stopped
	kill -STOP "$pid"
	stopped=$pid
}

json() { # EXPRESSION of the body, as $j
	perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>)); eval $ARGV[0] or die "not: $ARGV[0]\n"' "$1" <body
}

@test "metrics come in both forms, at a UNIX socket and a port" {
	begin_both
	[ "$(stat -c %a socket)" = 660 ]
	http /metrics
	grep -qi '^content-type: text/plain; version=0.0.4' head
	grep -qi '^cache-control: no-store' head
	grep -qi '^x-content-type-options: nosniff' head
	grep -q '^virt_wss_build_info{version=' body
	[ "$(grep -c '^# EOF' body)" = 0 ]
	http /metrics -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
	grep -qi '^content-type: application/openmetrics-text' head
	[ "$(tail -n 1 body)" = '# EOF' ]
	wait_until 300 eval "curl -sSf 'http://127.0.0.1:$port/metrics' | grep -q '^virt_wss_libvirt_up 1'"
	curl -sSf "http://localhost:$port/metrics" -4 >/dev/null
	[ "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "http://127.0.0.1:$port/metrics")" = 403 ]
	wait_until 300 metric 'virt_wss_guests{state="waiting"} 1'
}

@test "the pages stay fresh" {
	begin_both --hold-file hold
	metric 'virt_wss_held 0'
	touch hold
	wait_until 300 metric 'virt_wss_held 1'
	http /api/v1/guests
	json '$j->{held} eq "hold exists" && $j->{held_seconds} >= 0'
}

@test "the guests are JSON" {
	begin_both
	wait_until 300 eval 'http /api/v1/guests && grep -q waiting body'
	grep -qi '^content-type: application/json' head
	json '$j->{schema} eq "virt-wss/guests/1" && $j->{time} =~ /^20.*Z$/ && !exists $j->{held}'
	json '@{$j->{guests}} == 1 && $j->{guests}[0]{domain} eq "test"'
	json '$j->{guests}[0]{state} eq "waiting" && $j->{guests}[0]{period_seconds} == 60'
	json '$j->{guests}[0]{spent}{windows} == 0 && !exists $j->{guests}[0]{sample}'
}

@test "a service that has not listed the guests yet says so, then has them at once" {
	local shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "needs hang.so"
	WSS_HANG=virConnectListAllDomains: LD_PRELOAD=$shim begin --listen unix:socket
	wait_until 300 eval 'http /api/v1/guests'
	json '$j->{state} eq "starting" && $j->{since_seconds} > 0 && !exists $j->{libvirt_up}'
	http /api/v1/host
	json '$j->{state} eq "starting" && $j->{since_seconds} > 0 && !exists $j->{libvirt_up}'
	http /metrics
	grep -q '^virt_wss_build_info' body
	run grep -E '^virt_wss_(libvirt_up|guests)\b' body
	[ "$status" = 1 ]
	run "$virt_wss" check --socket socket
	[ "$status" = 3 ]
	[[ $output = 'WSS UNKNOWN - the service started '*' ago and has not listed the guests yet'* ]]
	kill -KILL "$pid"
	begin --listen unix:socket
	wait_until 300 eval 'http /api/v1/guests && ! grep -q starting body'
	json '@{$j->{guests}} == 1'
	http /api/v1/host
	json '!exists $j->{state} && $j->{libvirt_up}'
}

@test "HEAD, and what is refused" {
	begin_both
	http /metrics -I
	grep -qi '^content-length: [1-9]' head
	# curl writes the head to both.
	cmp body head
	refuses /nothing
	[ "$status" = 404 ]
	refuses /metrics -X POST
	[ "$status" = 405 ]
	grep -qi '^allow: GET, HEAD' head
	refuses /metrics -H 'Accept: image/png'
	[ "$status" = 406 ]
	refuses /metrics -H 'Accept: *;q=.0'
	[ "$status" = 406 ]
	# Java's default.
	http /metrics -H 'Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2'
	http /api/v1/guests -H 'Accept: text/html, image/gif, image/jpeg, *; q=.2'
	# It works below a path of a proxy.
	http /
	grep -q 'api/v1/guests' body
	[ "$(grep -c '["`]/api' body)" = 0 ]
	refuses /metrics -T err
	[ "$status" = 405 ]
}

@test "it ends with the service, and the service without it goes on" {
	local first
	begin_both
	first=$(child)
	kill -KILL "$first"
	# A request that waits when the next process begins to listen is lost; those after it are answered.
	wait_until 300 http /metrics
	[ "$(child)" != "$first" ]
	grep -q 'the HTTP process ended (signal 9): starting it again' err
	wait_until 300 metric 'virt_wss_http_starts_total 2'
	first=$(child)
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
	wait_until 300 eval "! kill -0 $first 2>/dev/null"
	[ ! -e socket ]
}

@test "it is the first to end where memory is short" {
	begin_both
	[ "$(cat "/proc/$(child)/oom_score_adj")" = 1000 ]
	[ "$(cat "/proc/$pid/oom_score_adj")" -lt 1000 ]
}

@test "it comes back, too, where the parent ignores SIGCHLD" {
	perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$virt_wss" serve --no-store --listen unix:socket 2>err 3>&- &
	pid=$!
	wait_until 300 eval 'http /healthz'
	kill -KILL "$(child)"
	wait_until 300 grep -q 'the HTTP process ended (signal 9): starting it again' err
	wait_until 300 metric 'virt_wss_http_starts_total 2'
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
}

@test "SIGTERM ends it where the parent has blocked all signals" {
	perl -MPOSIX -e '$all = POSIX::SigSet->new; $all->fillset; sigprocmask(SIG_BLOCK, $all); exec @ARGV' \
		"$virt_wss" serve --no-store --listen unix:socket 2>err 3>&- &
	pid=$!
	wait_until 300 eval 'http /healthz'
	kill -TERM "$pid"
	# shellcheck disable=SC2016
	wait_until 300 eval '! kill -0 "$pid" 2>/dev/null'
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
}

@test "a socket that somebody else shuts down is made again" {
	begin_both
	# Whoever has a descriptor of it can do that: here root, or the same user, by pidfd_getfd.
	cat >shut.py <<-'END'
		import ctypes, os, socket, sys
		libc, kept = ctypes.CDLL(None, use_errno=True), []
		pidfd = os.pidfd_open(int(sys.argv[1]))
		for fd in range(3, 64):
		    copy = libc.syscall(438, pidfd, fd, 0)
		    if copy < 0:
		        if ctypes.get_errno() in (1, 38):
		            sys.exit(1)
		        continue
		    try:
		        s = socket.socket(fileno=copy)
		        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
		            s.shutdown(socket.SHUT_RDWR)
		            kept.append(s)
		    except OSError:
		        pass
		open("ready", "w")
		sys.stdin.read()
	END
	mkfifo end
	/usr/bin/python3 shut.py "$pid" <end 3>&- &
	helper=$!
	exec 4>end
	wait_until 300 eval '[ -e ready ] || ! kill -0 "$helper"'
	[ -e ready ] || skip "needs pidfd_getfd"
	wait_until 300 grep -q "unix:socket no longer listened: it does again" err
	wait_until 300 grep -q "127.0.0.1:$port no longer listened: it does again" err
	wait_until 300 eval 'http /metrics'
	curl -sSf "http://127.0.0.1:$port/metrics" >/dev/null
	[ "$(stat -c %a socket)" = 660 ]
	exec 4>&-
	wait "$helper"
}

@test "it ends with a service that is killed, whose socket the next one replaces" {
	local first
	begin_both
	first=$(child)
	kill -KILL "$pid"
	wait "$pid" || true
	wait_until 300 eval "! kill -0 $first 2>/dev/null"
	[ -S socket ]
	begin_both
	http /metrics
}

@test "a signal to all processes ends it in order" {
	begin_both
	kill -TERM "$(child)" "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
	[ "$(grep -c 'starting it again' err)" = 0 ]
}

@test "a scrape waits for nobody, not even for a service that hangs" {
	begin_both
	stop_service
	all_answered unix:socket 20 100
	all_answered "127.0.0.1:$port" 20 100
}

@test "large headers are refused" {
	begin_both
	case $("$http_client" header unix:socket $((10 << 20))) in 431 | closed) ;; *) false ;; esac
	[ "$("$http_client" header unix:socket $((20 << 10)))" = 431 ]
	[ "$("$http_client" header unix:socket 1000)" = 200 ]
	http /metrics
	[ "$(grep -c 'starting it again' err)" = 0 ]
}

# Around each limit of the documentation, and of libmicrohttpd's memory behind it.
@test "each request gets an answer, however many headers it has, and however large its cookies are" {
	begin_both
	cat >ask.py <<-'END'
		import socket
		def ask(head):
		    s = socket.socket(socket.AF_UNIX)
		    s.settimeout(300)
		    s.connect("socket")
		    try:
		        s.sendall(head + b"\r\n")
		    except OSError:
		        pass
		    answer = b""
		    try:
		        while not answer.endswith(b"\n"):
		            more = s.recv(65536)
		            if not more:
		                break
		            answer += more
		    except OSError:
		        pass
		    return answer[9:12].decode()
		def expect(what, head, code):
		    answer = ask(head)
		    if answer != code:
		        print(f"{what}: '{answer}' instead of {code}")
		get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
		def headers(n):
		    return b"".join(b"X%d: 1\r\n" % i for i in range(n))
		def cookies(n, value=b"1"):
		    return b"Cookie: " + b"; ".join(b"c%d=" % i + value for i in range(n)) + b"\r\n"
		for n in 10, 99:
		    expect(f"{n} headers", get + headers(n), "200")
		for n in 100, 220, 500, 600, 700, 800, 900, 1000, 5000, 20000:
		    expect(f"{n} headers", get + headers(n), "431")
		for n in 10, 98, 99, 100, 500, 1000, 1500:
		    expect(f"{n} cookies", get + cookies(n), "200")
		for n in 3000, 10000:
		    expect(f"{n} cookies", get + cookies(n), "431")
		for n in 4000, 8000, 12000, 16000:
		    expect(f"a header of {n} bytes", get + b"X: " + b"a" * n + b"\r\n", "200")
		    expect(f"a cookie of {n} bytes", get + b"Cookie: a=" + b"a" * n + b"\r\n", "200")
		    expect(f"a path of {n} bytes", b"GET /" + b"a" * n + b" HTTP/1.1\r\nHost: localhost\r\n", "404")
		expect("16 KiB", get + cookies(89, b"v" * 80) + b"".join(b"X%d: %s\r\n" % (i, b"v" * 800) for i in range(9)), "200")
		for n in list(range(16384, 17000, 100)) + list(range(20000, 70000, 5000)) + list(range(63000, 66000, 40)) + list(range(65100, 65220, 3)):
		    expect(f"a header of {n} bytes", get + b"X: " + b"a" * n + b"\r\n", "431")
		    expect(f"a cookie of {n} bytes", get + b"Cookie: a=" + b"a" * n + b"\r\n", "431")
		expect("no Host header", b"GET /healthz HTTP/1.1\r\n", "400")
		expect("HTTP/1.0", b"GET /healthz HTTP/1.0\r\n", "200")
	END
	run /usr/bin/python3 ask.py
	echo "$output"
	[ "$status" = 0 ]
	[ -z "$output" ]
	[ "$(grep -c 'starting it again' err)" = 0 ]
}

@test "ten thousand slow connections change nothing for the others" {
	local address kib
	begin_both
	for address in unix:socket "127.0.0.1:$port"; do
		: >clients
		setsid "$http_client" idle "$address" 10000 >clients 3>&- &
		clients=$!
		wait_until 300 grep -q ready clients
		all_answered "$address" 4 50
		kill -KILL -- "-$clients"
		wait "$clients" || true
		clients=''
	done
	[ "$(grep -c 'starting it again' err)" = 0 ]
	kib=$(sed -n 's/^VmHWM:\s*\([0-9]*\) kB/\1/p' "/proc/$(child)/status")
	echo "$kib KiB at most"
	[ "$kib" -lt 65536 ]
}

# Closed connections used to wait until the service handed over its next pages: it hands over none here.
@test "a query that does not fit is answered at once" {
	local n
	begin_both
	[ "$("$http_client" query unix:socket 99)" = 200 ]
	[ "$("$http_client" query unix:socket 100)" = 414 ]
	stop_service
	for n in 300 1000 2000 4000 5000; do
		[ "$(timeout 300 "$http_client" query unix:socket "$n")" = 414 ]
	done
	http /healthz
}

@test "a zero byte in a path hides nothing of it" {
	begin_both
	refuses /metrics%00x
	[ "$status" = 404 ]
	refuses /%00
	[ "$status" = 404 ]
	http /metri%63s
}

@test "nothing of clients reaches the log or the disk" {
	begin_both
	local before
	before=$(wc -c <err)
	"$http_client" header unix:socket 100000
	curl -s --unix-socket socket "http://localhost/%0a%1b" >/dev/null
	http /metrics
	[ "$(wc -c <err)" = "$before" ]
}

# Passes sockets as systemd does; LISTEN_PID must be virt-wss's own.
activate() { # "ADDRESS..."
	# shellcheck disable=SC2016
	ADDRESSES=$1 perl -MIO::Socket::INET -MIO::Socket::UNIX -MPOSIX -e '
		my @sockets;
		push @sockets, /^unix:(.*)/ ? IO::Socket::UNIX->new(Local => $1, Listen => 5)
			: IO::Socket::INET->new(LocalAddr => $_, Listen => 5) for split " ", $ENV{ADDRESSES};
		my $to = 3;
		POSIX::dup2(fileno($_), 100 + $to++) for @sockets;
		POSIX::dup2(103 + $_, 3 + $_) for 0 .. $#sockets;
		@ENV{"LISTEN_PID", "LISTEN_FDS"} = ($$, scalar @sockets);
		exec @ARGV or die;
	' "$virt_wss" serve --no-store 2>err 3>&- &
	pid=$!
}

@test "sockets that a service manager passes are served" {
	activate "unix:socket 127.0.0.1:0"
	wait_until 300 grep -q 'HTTP at 127' err
	grep -qx 'virt-wss: HTTP at unix:socket' err
	port=$(sed -n 's/.*HTTP at 127\.0\.0\.1://p' err)
	wait_until 300 eval 'http /healthz'
	curl -sSf "http://127.0.0.1:$port/metrics" >/dev/null
	# They are the manager's: the file stays.
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
	[ -S socket ]
}

# The service manager's own copy is the same socket: only a new one helps.
@test "a passed socket that was shut down is told, and costs nothing" {
	# The clock stops where a thread always has something to do.
	local shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "needs hang.so"
	clock_new clock 100000
	# shellcheck disable=SC2016
	WSS_CLOCK=$PWD/clock LD_PRELOAD=$shim perl -MIO::Socket::UNIX -MPOSIX -e '
		$^F = 255; # no socket is closed by exec
		my $socket = IO::Socket::UNIX->new(Local => "socket", Listen => 5);
		if (!fork) {
			POSIX::dup2(fileno($socket), 3);
			@ENV{"LISTEN_PID", "LISTEN_FDS"} = ($$, 1);
			exec @ARGV or die;
		}
		select undef, undef, undef, 0.05 until -e "shut";
		shutdown $socket, 2;
	' "$virt_wss" serve --no-store --textfile metrics 2>err 3>&- &
	# Its child has the real clock, by which the pages are old.
	wait_until 300 eval 'http /healthz || [ "$status" = 503 ]'
	pid=$(pgrep -n -P $! virt-wss)
	touch shut
	wait_until 300 grep -q 'error: unix:socket no longer listens.*systemctl restart virt-wss.socket' err
	[ "$(grep -c 'no longer listens' err)" = 1 ]
	[ -z "$(child)" ]
	rm metrics
	wait_until 300 test -s metrics
	grep -qx 'virt_wss_http_starts_total 1' metrics
}

@test "sockets that other hosts reach are refused" {
	activate 0.0.0.0:0
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 2 ]
	grep -q 'other hosts reach 0.0.0.0' err
	[ "$(wc -l <err)" = 1 ]
}

@test "wrong addresses are refused in one line" {
	local address
	for address in 0.0.0.0:19177 192.0.2.1:80 localhost:80 127.0.0.1 127.0.0.1:99999 unix: '' '[::]:80'; do
		status=0
		timeout 300 "$virt_wss" serve --no-store --listen "$address" 2>err || status=$?
		[ "$status" = 2 ]
		[ "$(wc -l <err)" -le 2 ]
		grep -q -- '--listen' err
	done
	status=0
	timeout 300 "$virt_wss" serve --no-store --listen unix:/nonexistent/socket 2>err || status=$?
	[ "$status" = 1 ]
	[ "$(wc -l <err)" = 1 ]
	touch file
	status=0
	timeout 300 "$virt_wss" serve --no-store --listen unix:file 2>err || status=$?
	[ "$status" = 1 ]
	[ -f file ]
}
