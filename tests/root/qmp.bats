#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests a QEMU that libvirt does not manage and that, like the virt-wss that measures
# it, belongs to an ordinary user. It has two QMP sockets for two clients at the same
# time.

load functions.sh

setup_file() {
	root_setup_file gcc
	[ -z "$root_missing" ] || return 0
	clock_make
	export dir=$embed_root/qmp
	chmod 711 "$embed_root"
	install -d -o 65534 -g 65534 "$dir"
	install -m 755 "$virt_wss" "$dir/virt-wss"
	install -m 644 "$embed_guest_dir/vmlinuz" "$embed_guest_dir/initrd" "$dir"
	as_nobody qemu-system-x86_64 -name plain -uuid 6ad0f6a4-3a3d-4a6b-8b5f-3d1b2f6f7c11 \
		-accel tcg -m 512 -nodefaults -display none -no-reboot \
		-daemonize -pidfile "$dir/pid" -serial "file:$dir/console" \
		-qmp "unix:$dir/socket,server=on,wait=off" -qmp "unix:$dir/other,server=on,wait=off" \
		-object memory-backend-memfd,id=m,size=512M,share=on -machine pc,memory-backend=m \
		-kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
		-append 'console=ttyS0 quiet panic=-1 wss.map=256 wss.touch=64 wss.rate=200000'
	ln -s "$dir/console" "$(embed_console plain)"
	mkdir -p "$embed_root/run/qemu"
	cp "$dir/pid" "$embed_root/run/qemu/plain.pid"
	embed_guest_wait_ready plain
	embed_guest_wait_state plain touching
}

setup() {
	root_setup
	virt_wss=$dir/virt-wss
	wss_as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
}

teardown_file() {
	root_teardown_file
}

as_nobody() { # COMMAND...
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

qmp_other() { # COMMAND
	qmp_ask "$dir/other" "$1" >/dev/null
}

@test "an ordinary user measures a guest of their own" {
	from=$(embed_guest_field plain time_ms)
	wss_whole plain --qmp "$dir/socket" sample
	[ "$status" = 0 ]
	[ "$(field domain)" = plain ]
	[ "$(field quality)" = ok ]
	now=$(embed_guest_field plain time_ms)
	wait_until 10 embed_guest_past plain "$now" touching
	within_percent "$(field wss_bytes)" \
		"$(embed_guest_truth plain "$from" "$(embed_guest_field plain time_ms)")" 10
}

# serve keeps these, and two for BPF: src/serve/rights.h.
@test "two capabilities are enough to measure a guest of another user, and one is not" {
	wss_as=(setpriv --no-new-privs --inh-caps=-all '--bounding-set=-all,+sys_ptrace,+dac_override')
	wss --qmp "$dir/socket" sample --window 2s --output csv
	[ "$status" = 0 ]
	[ "$(field quality)" = ok ]
	for cap in sys_ptrace dac_override; do
		wss_as=(setpriv --no-new-privs --inh-caps=-all "--bounding-set=-all,+$cap")
		wss --qmp "$dir/socket" sample --window 1s
		[ "$status" != 0 ]
		[ "$cap" != sys_ptrace ] || one_line_error ': give virt-wss CAP_DAC_OVERRIDE, which it lacks'
		[ "$cap" != dac_override ] || one_line_error "of process $(<"$dir/pid"): Permission denied: give virt-wss CAP_SYS_PTRACE, which"
	done
	wss_as=(setpriv --no-new-privs --inh-caps=-all '--bounding-set=-all,+sys_ptrace,+dac_read_search')
	wss --qmp "$dir/socket" sample --window 1s
	[ "$status" = 4 ]
	one_line_error 'cannot connect.*give virt-wss CAP_DAC_OVERRIDE, which it lacks'
	chmod 666 "$dir/socket"
	wss --qmp "$dir/socket" sample --window 1s
	[ "$status" = 5 ]
	one_line_error 'clear_refs.*give virt-wss CAP_DAC_OVERRIDE, which it lacks'
	# Another ordinary user lacks both.
	wss_as=(setpriv --reuid=65533 --regid=65533 --clear-groups)
	wss --qmp "$dir/socket" sample --window 1s
	[ "$status" = 5 ]
	one_line_error 'run virt-wss as root; this user lacks CAP_SYS_PTRACE and CAP_DAC_OVERRIDE'
	embed_guest_alive plain
}

@test "mmu refuses it and exits 5" {
	wss --qmp "$dir/socket" sample --method mmu
	[ "$status" = 5 ]
	one_line_error KVM
	embed_guest_alive plain
}

@test "a guest that is paused within the window and resumed: degraded, with the reason" {
	clock_begin
	wss_start --qmp "$dir/socket" sample --window 600s --output json
	qmp_other stop
	# It asks now and then, and holds the socket for no event.
	pass 60
	qmp_other cont
	run_a_while "$(<"$dir/pid")"
	pass 604
	clock_end
	wss_wait
	[ "$status" = 0 ]
	grep -q '"quality": *"degraded"' <<<"$out"
	grep -q 'paused' <<<"$out"
	embed_guest_alive plain
}

@test "a guest that is paused before the window: exit 1, and it stays paused" {
	qmp_other stop
	wss --qmp "$dir/socket" sample --window 500ms
	[ "$status" = 1 ]
	one_line_error paused
	# It gets no processor.
	[[ $(qmp_ask "$dir/other" query-status) == *'"status": "paused"'* ]]
	qmp_other cont
	embed_guest_alive plain
}

@test "one controller per guest: the second is refused, and the first ends well" {
	clock_begin
	wss_start --qmp "$dir/socket" sample --window 600s
	clock_end
	first_pid=$wss_pid
	status=0
	"${wss_as[@]}" timeout 300 "$virt_wss" --qmp "$dir/other" sample --window 500ms \
		>"$BATS_TEST_TMPDIR/out2" 2>"$BATS_TEST_TMPDIR/err2" || status=$?
	cat "$BATS_TEST_TMPDIR/out2" "$BATS_TEST_TMPDIR/err2"
	[ "$status" = 1 ]
	grep -qi 'another\|busy' "$BATS_TEST_TMPDIR/err2"
	wss_pid=$first_pid
	run_a_while "$(<"$dir/pid")"
	pass 604
	wss_wait
	[ "$status" = 0 ]
}

@test "the lock dies with its holder" {
	wss_start --qmp "$dir/socket" sample --window 60s
	kill -KILL "$wss_pid"
	wss_wait
	wss --qmp "$dir/other" sample --window 2s
	[ "$status" = 0 ]
}

@test "--pause with kill -9, and to the end: the guest continues" {
	wss_start --qmp "$dir/socket" sample --window 10ms --count 1000 --pause
	kill -KILL "$wss_pid"
	wss_wait
	embed_guest_alive plain
	wss --qmp "$dir/socket" sample --window 1s --pause
	[ "$status" = 0 ]
	[ "$(embed_process_state plain)" != T ]
	embed_guest_alive plain
}

@test "another user's guest: one line, exit 4 or 5, and the guest lives" {
	chmod 777 "$dir/socket"
	wss_as=(setpriv --reuid=65533 --regid=65533 --clear-groups)
	wss --qmp "$dir/socket" sample --window 500ms
	[ "$status" = 5 ]
	one_line_error 'ermission|privilege|root'
	embed_guest_alive plain
}

# Pauses the guest ten times a second, each time for so short that hardly anybody finds it paused. -> pauser_pid
pauses_begin() {
	# shellcheck disable=SC2016
	perl -MIO::Socket::UNIX -e '
		my $qmp = IO::Socket::UNIX->new($ARGV[0]) or die "no socket";
		$qmp->syswrite(qq({"execute": "qmp_capabilities"}\n));
		alarm 3600;
		do {
			for (qw(stop cont)) {
				$qmp->syswrite(qq({"execute": "$_"}\n));
				select(undef, undef, undef, 0.2);
			}
		} while $qmp->sysread(my $answers, 65536)' "$dir/other" 3>&- &
	pauser_pid=$!
}

pauses_end() {
	kill "$pauser_pid"
	wait "$pauser_pid" || true
	qmp_other cont
}

# In each of its windows: content of sampled pages does not change while the guest is paused, which looks like one that
# writes little.
@test "migrate-estimate counts no window within which the guest was paused" {
	pauses_begin
	# One that begins at the very moment of a pause says so, and is no trial of this.
	for _ in {1..50}; do
		wss --qmp "$dir/socket" migrate-estimate --bandwidth 64MiB/s --window 1s
		[ "$status" = 1 ] || break
		[[ $err == *'the guest is paused, not running'* ]] || break
	done
	pauses_end
	[ "$status" = 1 ]
	[ -z "$out" ]
	[[ $err == *'error: plain: the guest was '*'paused for about'* ]]
	embed_guest_alive plain
}
