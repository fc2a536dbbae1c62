#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares migrate-estimate with real migrations from one QEMU to another, of guests that write a
# known set at a known rate. All of them run at the same time. The figures are printed.
#
# The link is so slow that also a busy machine keeps up with it, and with what the guests are to write while it sends.

load functions.sh

bandwidth_mib=8
downtime_ms=300

# Starts a QEMU of a guest, as its source or, with a URI, as its destination.
guest_qemu() { # NAME SIDE COMMAND-LINE [-incoming URI]
	local name=$1 side=$2 words=$3
	shift 3
	qemu-system-x86_64 -name "$name" -accel tcg -m 256 -nodefaults -display none -no-reboot -daemonize \
		-pidfile "$embed_root/run/qemu/$name-$side.pid" -serial "file:$(embed_console "$name-$side")" \
		-qmp "unix:$dir/$name-$side,server=on,wait=off" -qmp "unix:$dir/$name-$side-2,server=on,wait=off" \
		-object memory-backend-memfd,id=m,size=256M,share=on -machine pc,memory-backend=m \
		-kernel "$embed_guest_dir/vmlinuz" -initrd "$embed_guest_dir/initrd" \
		-append "console=ttyS0 quiet panic=-1 $words" "$@"
}

# Estimates, then migrates, and cancels after so many reads of the dirty bitmap: NAME.json, NAME.real.
guest_run() { # NAME SYNCS COMMAND-LINE [CAPABILITY]
	local name=$1 syncs=$2 words=$3
	shift 3
	guest_qemu "$name" from "$words"
	embed_guest_wait_ready "$name-from"
	embed_guest_wait_state "$name-from" touching
	timeout 500 "$virt_wss" --qmp "$dir/$name-from" migrate-estimate --bandwidth ${bandwidth_mib}MiB/s \
		--downtime ${downtime_ms}ms --output json >"$dir/$name.json" 2>"$dir/$name.err"
	guest_qemu "$name" to "$words" -incoming "unix:$dir/$name.stream"
	timeout 500 "$WSS_SRCDIR/tests/tools/migrate-guest" "$dir/$name-from-2" "unix:$dir/$name.stream" \
		$((bandwidth_mib << 20)) $downtime_ms "$syncs" "$@" >"$dir/$name.real"
}

setup_file() {
	local job jobs=()
	root_setup_file
	[ -z "$root_missing" ] || return 0
	export dir=$embed_root/migrate
	mkdir -p "$dir" "$embed_root/run/qemu"
	# The first touches next to nothing. The second writes half as fast as the link sends, and
	# the last one ten times as fast, both to a set that the threshold does not hold.
	guest_run idle 30 'wss.map=64 wss.touch=1 wss.rate=10' >"$dir/idle.log" 2>&1 3>&- &
	jobs+=($!)
	guest_run passes 30 'wss.map=40 wss.touch=12 wss.mode=write wss.order=random wss.rate=1000' \
		>"$dir/passes.log" 2>&1 3>&- &
	jobs+=($!)
	guest_run never 5 'wss.map=40 wss.touch=16 wss.mode=write wss.order=random wss.rate=20000' \
		>"$dir/never.log" 2>&1 3>&- &
	jobs+=($!)
	for job in "${jobs[@]}"; do
		wait "$job" || { cat "$dir"/*.log "$dir"/*.err; return 1; }
	done
}

teardown_file() {
	root_teardown_file
}

setup() {
	root_setup
}

# Prints a figure of a row of the estimate; nothing if it is unknown.
estimate() { # NAME MODE KEY
	perl -MJSON::PP -e '
		my ($row) = grep { $_->{mode} eq $ARGV[0] } @{decode_json(join("", <STDIN>))->{migrations}};
		print $row->{$ARGV[1]} // "", "\n"' "$2" "$3" <"$dir/$1.json"
}

show() { # NAME
	local key
	cat "$dir/$1.err" "$dir/$1.real"
	for key in converges passes sent_bytes sent_low_bytes sent_high_bytes seconds downtime_seconds pass_bytes \
		pass_seconds content_bytes written_bytes written_low_bytes written_high_bytes; do
		echo "$key $(estimate "$1" pre-copy $key)"
	done
}

# Compares with a migration that has ended by itself.
compare() { # NAME
	local status ms syncs sent downtime
	show "$1"
	read -r status ms syncs sent downtime <<<"$(tail -n 1 "$dir/$1.real")"
	{
		echo "# $1: sent $((sent >> 20)) MiB in $((ms / 1000)) s, $((syncs - 1)) passes, down $downtime ms;"
		echo "#   estimated $(estimate "$1" pre-copy sent_bytes | awk '{ print int($1 / 1048576) }') MiB" \
			"in $(estimate "$1" pre-copy seconds) s, $(estimate "$1" pre-copy passes) passes," \
			"down at most $(estimate "$1" pre-copy downtime_high_seconds) s"
	} >&3
	[ "$status" = completed ]
	# Unknown where a busy machine starved the guest in most of the windows.
	[[ $(estimate "$1" pre-copy converges) =~ ^(yes|likely|unknown)$ ]]
	# The bounds, with what QEMU's own timing takes.
	awk -v low="$(estimate "$1" pre-copy sent_low_bytes)" -v high="$(estimate "$1" pre-copy sent_high_bytes)" \
		-v sent="$sent" 'BEGIN { exit !(low <= sent && (high == "" || high > 0.95 * sent)) }'
}

@test "an idle guest is sent once" {
	compare idle
	within_percent "$(estimate idle pre-copy sent_bytes)" "$(awk 'END { print $4 }' "$dir/idle.real")" 20
	[ "$(estimate idle pre-copy passes)" -le 3 ]
}

@test "a guest that writes slower than the link sends takes some passes" {
	compare passes
	[ "$(estimate passes pre-copy passes)" -ge 3 ]
	syncs=$(grep -c '^sync' "$dir/passes.real")
	[ "$syncs" -ge 3 ]
}

@test "a guest that writes faster than the link sends is migrated forever" {
	show never
	grep -q '^cancelled' "$dir/never.real"
	[[ $(estimate never pre-copy converges) =~ ^(no|unlikely|unknown)$ ]]
	[ -z "$(estimate never pre-copy sent_bytes)" ]
	[[ $(estimate never post-copy converges) =~ ^(yes|likely)$ ]]
	# The passes after the first.
	pass=$(awk '$1 == "sync" && $3 == 2 { from = $4; n = 2 } $1 == "sync" && $3 > 2 { to = $4; n = $3 }
		END { if (n > 3) print (to - from) / (n - 2) }' "$dir/never.real")
	echo "# never: each further pass sends $(awk "BEGIN { print int($pass / 1048576) }") MiB;" \
		"estimated $(estimate never pre-copy pass_bytes | awk '{ print int($1 / 1048576) }') MiB" >&3
	within_percent "$(estimate never pre-copy pass_bytes)" "$pass" 20
}

# libvirt starts the page sampling here, with its own number of samples.
@test "a guest of libvirt is estimated, and a stop ends the measurement at once" {
	embed_guest_start web1 args='wss.map=64 wss.touch=16 wss.mode=write' memory=256
	embed_guest_wait_ready web1
	embed_guest_wait_state web1 touching
	wss migrate-estimate web1 --bandwidth 10GiB/s --window 1s --output json
	[ "$status" = 0 ]
	refute grep -q 'not sampled\|not measured' <<<"$err"
	cp "$BATS_TEST_TMPDIR/out" "$dir/web1.json"
	[ "$(estimate web1 pre-copy converges)" = yes ]
	[ "$(estimate web1 pre-copy written_high_bytes)" -ge $((16 << 20)) ]
	[ "$(estimate web1 pre-copy sent_high_bytes)" -lt $((600 << 20)) ]
	wss migrate-estimate web1 --bandwidth 10GiB/s --window 1s
	[ "$status" = 0 ]
	[ "$(wc -l <<<"$out")" = 4 ]
	[ "$(awk '{ print length }' <<<"$out" | sort -n | tail -n 1)" -le 80 ]
	wss_start migrate-estimate web1 --bandwidth 1GiB/s --window 60s
	kill -INT "$wss_pid"
	wss_wait
	[ "$status" = 130 ]
	embed_guest_alive web1
}

# As record leaves one, or another program starts it: it ends by itself.
@test "a calculation that runs already is waited for" {
	embed_guest_start web2 args='wss.map=64 wss.touch=16 wss.mode=write' memory=256
	embed_guest_wait_ready web2
	embed_virsh domdirtyrate-calc web2 --seconds 8
	wss_launch migrate-estimate web2 --bandwidth 10GiB/s --window 1s
	wss_wait
	[ "$status" = 0 ]
	grep -q 'waiting until a dirty-rate calculation has ended' "$BATS_TEST_TMPDIR/err"
	refute grep -q 'not sampled' <<<"$err"
}
