#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests processes that pretend to be a guest's QEMU: behind a QMP socket whose listener
# has gone and whose pid was reused, by a guest's UUID on their command line, by a pid
# file, by locks. The guest is measured nevertheless if there is one, and no other
# process is stopped or cleared.

load functions.sh

uuid=6ad0f6a4-3a3d-4a6b-8b5f-3d1b2f6f7c21
none=00000000-0000-0000-0000-000000000000
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

setup_file() {
	root_setup_file gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	embed_guest_start web1 args='wss.map=128 wss.touch=64 wss.rate=200000'
	embed_guest_wait_ready web1
	embed_guest_wait_state web1 touching
	export web1_uuid
	web1_uuid=$(tr '\0' '\n' <"/proc/$(embed_guest_pid web1)/cmdline" | grep -A1 -x -- -uuid | tail -n 1)
	# A directory in which the user nobody may create sockets and programs.
	export dir=$embed_root/open
	chmod 711 "$embed_root"
	install -d -m 1777 "$dir"
	install -m 755 "$WSS_BUILDDIR/tests/qmp/fake-qmp" "$dir/fake-qmp"
	install -m 755 "$WSS_BUILDDIR/tests/qmp/fake-qmp" "$dir/qemu-fake"
	install -m 755 "$(readlink -f "$(command -v perl)")" "$dir/qemu-perl"
}

setup() {
	root_setup
	pids=()
}

teardown() {
	[ -z "$root_missing" ] || return 0
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	for pid in "${pids[@]}"; do
		wait "$pid" 2>/dev/null || true
	done
	[ ! -e "$BATS_TEST_TMPDIR/web1.pid" ] || mv "$BATS_TEST_TMPDIR/web1.pid" "$embed_root/run/qemu/"
	rm -f "$dir"/socket*
}

teardown_file() {
	root_teardown_file
}

# Writes the script of a fake guest of 64 MiB with that UUID that touches nothing; stdin has
# more of the script.
script() { # FILE UUID
	{
		printf '%s\n' 'ram 64 0 memfd' 'set kvm off' 'set name web1' "set uuid $2"
		cat
	} >"$1"
	chmod 644 "$1"
}

# Runs in a pid namespace: nobody's FAKE listens and forks, the listener exits, and the
# next process of root's, a fake guest with the options VICTIM, gets its pid. Then
# virt-wss measures through the socket. The results are in the files err, status, stops
# (a line for each time that the victim was stopped) and referenced (KiB of the victim,
# before and after).
reuse() { # FAKE UUID SERVER-OPTION... -- VICTIM-OPTION...
	local fake=$1 server=()
	script "$dir/script" "$2" <<<fork
	script "$dir/victim" "$2" </dev/null
	shift 2
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	cat >"$BATS_TEST_TMPDIR/inside" <<'EOF'
		use strict;
		my ($out, $virt_wss, $dir, $fake, $n, @words) = @ARGV;
		my @nobody = qw(setpriv --reuid=65534 --regid=65534 --clear-groups);
		my @server = splice @words, 0, $n;
		sub put { open my $f, ">>", "$out/$_[0]" or die; print $f "$_[1]\n"; close $f }
		sub ready { until (-s $_[0]) { select undef, undef, undef, 0.01 } }
		sub spawn {
			my ($file, @command) = @_;
			my $pid = fork // die;
			return $pid if $pid;
			open STDOUT, ">", $file or die;
			exec @command or die;
		}
		sub referenced {
			open my $f, "<", "/proc/$_[0]/smaps_rollup" or die;
			my ($kib) = join("", <$f>) =~ /^Referenced:\s+(\d+)/m;
			return $kib;
		}
		my $listener = spawn("$out/server", @nobody, $fake, "$dir/socket", "$dir/script", @server);
		waitpid $listener, 0;
		ready("$out/server");
		open my $last, ">", "/proc/sys/kernel/ns_last_pid" or exit 77;
		print $last $listener - 1;
		close $last or exit 77;
		my $victim = spawn("$out/victim", $fake, "$dir/socket2", "$dir/victim", @words);
		die "pid $victim, not $listener" if $victim != $listener;
		ready("$out/victim");
		put("referenced", referenced($victim));
		my $wss = spawn("$out/out", "sh", "-c", 'exec timeout -k 5 500 "$@" 2>"$0"', "$out/err",
			$virt_wss, "--qmp", "$dir/socket", qw(sample --pause --window 300ms));
		for (;;) {
			my $pid = waitpid -1, 2; # WUNTRACED
			if ($pid == $victim) {
				put("stops", $?);
				last if ($? & 0x7f) != 0x7f;
			}
			last if $pid == $wss || $pid < 0;
		}
		put("status", $? >> 8);
		put("referenced", referenced($victim));
EOF
	timeout -k 5 550 unshare --pid --fork --kill-child --mount-proc perl "$BATS_TEST_TMPDIR/inside" \
		"$BATS_TEST_TMPDIR" "$virt_wss" "$dir" "$fake" ${#server[@]} "${server[@]}" "$@" 3>&-
	cat "$BATS_TEST_TMPDIR"/{status,out,err,referenced}
	status=$(cat "$BATS_TEST_TMPDIR/status")
	err=$(cat "$BATS_TEST_TMPDIR/err")
}

# Whether nobody has stopped the victim or cleared its referenced bits.
victim_untouched() {
	[ ! -e "$BATS_TEST_TMPDIR/stops" ] || return 1
	[ "$(wc -l <"$BATS_TEST_TMPDIR/referenced")" = 2 ] || return 1
	[ "$(head -n 1 "$BATS_TEST_TMPDIR/referenced")" -ge 65536 ] || return 1
	[ "$(tail -n 1 "$BATS_TEST_TMPDIR/referenced")" -ge 65536 ]
}

@test "a socket whose listener has gone, without a UUID: refused, the new owner of its pid untouched" {
	reuse "$dir/fake-qmp" $none --
	[ "$status" = 1 ]
	one_line_error 'does not hold the connection'
	victim_untouched
}

@test "the same if the new owner has the guest's UUID and is named like QEMU" {
	reuse "$dir/qemu-fake" $uuid -- -uuid $uuid
	[ "$status" = 1 ]
	one_line_error 'does not hold the connection'
	victim_untouched
}

@test "the same if the new owner claims to listen on this very socket" {
	reuse "$dir/qemu-fake" $none -- -qmp "unix:$dir/socket,server=on"
	[ "$status" = 1 ]
	one_line_error 'does not hold the connection'
	victim_untouched
}

@test "the same if the process that serves has the guest's UUID, too" {
	reuse "$dir/qemu-fake" $uuid -uuid $uuid -- -uuid $uuid
	[ "$status" = 1 ]
	one_line_error 'does not hold the connection'
	victim_untouched
}

@test "a server whose connections another user's process serves is refused" {
	"${nobody[@]}" perl -MIO::Socket::UNIX -e '
		my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die;
		open STDIN, "<&", $s or die; exec "sleep", 600' "$dir/socket" &
	pids+=($!)
	wait_until 10 [ -S "$dir/socket" ]
	# A process of root's takes the listening socket, and serves although it does not
	# listen itself.
	perl -e '
		use IO::Socket::UNIX; use JSON::PP;
		my $pid = shift; my $fd = syscall(434, $pid + 0, 0); # pidfd_open
		my $listener = syscall(438, $fd, 0, 0);              # pidfd_getfd
		open my $s, "+<&=", $listener or die "fd: $!";
		my $c; accept $c, $s or die "accept: $!";
		select $c; $| = 1;
		print qq({"QMP": {"version": {"qemu": {"micro": 0, "minor": 2, "major": 7}, "package": ""}, "capabilities": []}}\n);
		my %reply = ("query-kvm" => "{\"enabled\": false, \"present\": true}",
			"query-uuid" => "{\"UUID\": \"'$uuid'\"}", "query-name" => "{}",
			"query-memory-size-summary" => "{\"base-memory\": 67108864}", "query-memdev" => "[]",
			"query-memory-devices" => "[]", "query-balloon" => "{\"actual\": 67108864}",
			"query-status" => "{\"status\": \"running\", \"running\": true}");
		while (<$c>) {
			my $q = decode_json($_); my $id = exists $q->{id} ? ", \"id\": " . JSON::PP->new->allow_nonref->encode($q->{id}) : "";
			my $r = $reply{$q->{execute}} // "{}";
			print qq({"return": $r$id}\n);
		}
		sleep 600' "${pids[0]}" -uuid $uuid 3>&- 2>"$BATS_TEST_TMPDIR/server" &
	pids+=($!)
	wss --qmp "$dir/socket" sample --pause --window 300ms
	cat "$BATS_TEST_TMPDIR/server"
	[ "$status" = 1 ]
	one_line_error "process ${pids[0]} \(sleep\) .*does not hold the connection"
}

# Starts nobody's QEMU without a guest kernel, which runs forever.
plain_qemu() { # OPTION...
	"${nobody[@]}" qemu-system-x86_64 -accel tcg -machine pc -m 64 -nodefaults -display none "$@" 3>&- &
	pids+=($!)
}

refs_is_usable() {
	wss --qmp "$dir/socket" methods --output csv
	[ "$status" = 0 ] || return 1
	[[ $(paste -d= <(field method) <(field usable) | paste -sd,), == *mmu=0,*refs=1,* ]]
}

@test "QEMU without a UUID: with -qmp, -runas, -chardev, a descriptor of root's, daemonized" {
	plain_qemu -qmp "unix:$dir/socket,server=on,wait=off"
	wait_until 20 [ -S "$dir/socket" ]
	refs_is_usable
	teardown
	pids=()
	qemu-system-x86_64 -accel tcg -machine pc -m 64 -nodefaults -display none -runas nobody \
		-qmp "unix:$dir/socket,server=on,wait=off" 3>&- &
	pids+=($!)
	wait_until 20 [ -S "$dir/socket" ]
	refs_is_usable
	teardown
	pids=()
	plain_qemu -chardev "socket,id=q,path=$dir/socket,server=on,wait=off" -mon chardev=q,mode=control
	wait_until 20 [ -S "$dir/socket" ]
	refs_is_usable
	teardown
	pids=()
	# As with a socket unit of systemd: root listens, and passes the socket on.
	perl -MIO::Socket::UNIX -MPOSIX -e '
		my $path = shift;
		my $s = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die;
		POSIX::dup2(fileno $s, 9);
		exec @ARGV' "$dir/socket" "${nobody[@]}" qemu-system-x86_64 -accel tcg -machine pc -m 64 \
		-nodefaults -display none -chardev socket,id=q,fd=9,server=on,wait=off \
		-mon chardev=q,mode=control 3>&- &
	pids+=($!)
	wait_until 20 [ -S "$dir/socket" ]
	refs_is_usable
	teardown
	pids=()
	"${nobody[@]}" qemu-system-x86_64 -accel tcg -machine pc -m 64 -nodefaults -display none \
		-daemonize -pidfile "$dir/socket.pid" -qmp "unix:$dir/socket,server=on,wait=off" 3>&-
	pids+=("$(cat "$dir/socket.pid")")
	refs_is_usable
}

@test "QEMU that was passed a listening socket, as libvirt does" {
	# The process that listened before it does not have the UUID on its command line.
	options="-accel tcg -machine pc -m 64 -nodefaults -display none -uuid $uuid
		-chardev socket,id=q,fd=9,server=on,wait=off -mon chardev=q,mode=control" \
		perl -MIO::Socket::UNIX -MPOSIX -e '
		my $path = shift;
		my $s = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die;
		if (!fork) { POSIX::dup2(fileno $s, 9); exec @ARGV, split " ", $ENV{options} }
		close $s; wait' "$dir/socket" "${nobody[@]}" qemu-system-x86_64 3>&- &
	pids+=($!)
	wait_until 20 [ -S "$dir/socket" ]
	pids+=("$(pgrep -P "${pids[0]}")")
	refs_is_usable
}

@test "a process whose descriptors may not be read is not accused of lacking the connection" {
	qemu-system-x86_64 -accel tcg -machine pc -m 64 -nodefaults -display none -uuid $uuid \
		-qmp "unix:$dir/socket,server=on,wait=off" 3>&- &
	pids+=($!)
	wait_until 20 [ -S "$dir/socket" ]
	# root in a user namespace of its own has no power over processes outside.
	wss_as=(unshare --user --map-root-user)
	wss --qmp "$dir/socket" sample --window 300ms
	[ "$status" = 5 ]
	one_line_error "fd of process ${pids[0]}: Permission denied"
}

# Starts processes of the user nobody that claim the UUID of web1: a program named like QEMU,
# and sleep.
pretend() { # N
	local i
	for ((i = 0; i < $1; i++)); do
		"${nobody[@]}" "$dir/qemu-perl" -e 'sleep 600' -- -uuid "$web1_uuid" 3>&- &
		pids+=($!)
		"${nobody[@]}" perl -e 'sleep 600' -- -uuid "$web1_uuid" 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait_until 10 grep -qF "$web1_uuid" "/proc/$i/cmdline"
	done
}

measures_web1() {
	local from now
	from=$(embed_guest_field web1 time_ms)
	wss_whole web1 sample web1
	[ "$status" = 0 ] || return 1
	now=$(embed_guest_field web1 time_ms)
	wait_until 10 embed_guest_past web1 "$now" touching || return 1
	within_percent "$(field wss_bytes)" \
		"$(embed_guest_truth web1 "$from" "$(embed_guest_field web1 time_ms)")" 10
}

@test "processes that claim a guest's UUID do not prevent its measurement" {
	pretend 20
	measures_web1
	# Nor if libvirt's pid file is useless, so that they have to be distinguished.
	mv "$embed_root/run/qemu/web1.pid" "$BATS_TEST_TMPDIR/web1.pid"
	echo 999999999 >"$embed_root/run/qemu/web1.pid"
	measures_web1
}

@test "a forged pid file leads to no process" {
	pretend 1
	mv "$embed_root/run/qemu/web1.pid" "$BATS_TEST_TMPDIR/web1.pid"
	echo "${pids[0]}" >"$embed_root/run/qemu/web1.pid"
	measures_web1
	# A file of another user with the right pid counts as missing.
	cp "$BATS_TEST_TMPDIR/web1.pid" "$embed_root/run/qemu/web1.pid"
	chown 65534 "$embed_root/run/qemu/web1.pid"
	measures_web1
	rm "$embed_root/run/qemu/web1.pid"
	mkfifo "$embed_root/run/qemu/web1.pid"
	measures_web1
	rm "$embed_root/run/qemu/web1.pid"
	ln -s /dev/zero "$embed_root/run/qemu/web1.pid"
	measures_web1
	rm "$embed_root/run/qemu/web1.pid"
}

@test "another user's locks on a guest's files do not delay its measurement" {
	local pid file
	pid=$(embed_guest_pid web1)
	refute "${nobody[@]}" flock -n "/proc/$pid/clear_refs" true
	for file in cmdline stat status; do
		"${nobody[@]}" flock --no-fork "/proc/$pid/$file" sleep 600 3>&- &
		pids+=($!)
	done
	for file in cmdline stat status; do
		wait_until 10 refute flock -n "/proc/$pid/$file" true
	done
	measures_web1
}
