#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the command line of balloon, on libvirt's test driver.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
uuid=6695eb01-f6a4-8304-79aa-97f2502e1930

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=test:///default
}

done_rows() {
	sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM balloon WHERE done = 1'
}

# How the dry run and --apply refuse a guest of these devices, here and with what a killed controller left.
refused_alike() { # DEVICES POLICY
	local words status_of_dry_run reason
	printf '%s' "<domain type='test'><name>it&apos;s</name><uuid>$uuid</uuid><memory unit='GiB'>2</memory>" \
		"<metadata>$2</metadata><os><type>hvm</type></os><devices>$1</devices></domain>" >"$BATS_TEST_TMPDIR/domain.xml"
	echo "<node><domain file='$BATS_TEST_TMPDIR/domain.xml'/></node>" >"$BATS_TEST_TMPDIR/node.xml"
	export LIBVIRT_DEFAULT_URI=test://$BATS_TEST_TMPDIR/node.xml
	run --separate-stderr "$virt_wss" balloon "it's" --output json
	echo "$status: $output: $stderr"
	status_of_dry_run=$status
	reason=$(sed -n 's/.*"reason": "\([^"]*\)".*/\1/p' <<<"$output")
	hint=$(sed -n 's/.*"hint": "\([^"]*\)".*/\1/p' <<<"$output")
	[ -n "$reason" ] || reason=$(sed -n "s/.*error: it's: //p" <<<"$stderr")
	for words in "balloon --apply" squeeze "squeeze --dry-run --output json"; do
		# shellcheck disable=SC2086
		run --separate-stderr timeout 300 "$virt_wss" $words "it's"
		echo "$words: $status: $output: $stderr"
		[ "$status" = "$status_of_dry_run" ]
		[[ $output$stderr == *"$reason"* ]]
	done
}

@test "the dry run refuses a guest as --apply and squeeze do: same reason, same status" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 20 1000000 1 $uuid
	for devices in "" "<memballoon model='none'/>"; do
		refused_alike "$devices" ""
		[ "$status" = 5 ]
		[[ $hint != *--restore* ]]
		sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon
			(uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
			VALUES ('$uuid', 'it''s', 1, 3 << 30, 3 << 30, 2 << 30, 'test', '$LIBVIRT_DEFAULT_URI')"
		refused_alike "$devices" ""
		[ "$status" = 5 ]
		[ "$hint" = "virt-wss balloon --restore 'it'\\\\''s'" ]
		for words in "" --apply; do
			# shellcheck disable=SC2086
			run timeout 300 "$virt_wss" -c "$LIBVIRT_DEFAULT_URI" balloon $words "it's" --history "$VIRT_WSS_HISTORY"
			echo "$output"
			[ "$status" = 5 ]
			grep -F "virt-wss: it's: unless another virt-wss controls its balloon now, which it gives back when you end it: to allow this, run: virt-wss -c $LIBVIRT_DEFAULT_URI balloon --restore --history $VIRT_WSS_HISTORY 'it'\\''s'" <<<"$output"
		done
		bash -c "PATH=$WSS_BUILDDIR:\$PATH; $(sed -n 's/.* run: //p' <<<"$output")"
		[ "$(done_rows)" -gt 0 ]
	done
	refused_alike "" "<wss:policy xmlns:wss='urn:virt-wss:policy:1' version='1' opt-out='yes'/>"
	[ "$status" = 5 ]
	[[ $stderr == *"opts out"* ]]
	# An answer about all guests is none about a guest that was asked for.
	run "$virt_wss" balloon
	[ "$status" = 0 ]
	run "$virt_wss" balloon nobody
	[ "$status" = 1 ]
}

@test "a guest of another hypervisor is called that" {
	for words in "balloon test" "squeeze test --dry-run" "balloon test --apply"; do
		# shellcheck disable=SC2086
		run timeout 300 "$virt_wss" $words
		echo "$output"
		[ "$status" = 5 ]
		[[ $output == *"not a QEMU guest"* && $output != *driver* ]]
	done
}

@test "invalid options are refused" {
	for words in "--span 0" "--headroom x" "--minimum x" "--history=" "--all test" "--frobnicate" "--apply --restore" "--apply --forget" "--restore --forget" "--forget --wide" "--period 0" "--window 1m --period 30s"; do
		# shellcheck disable=SC2086
		run "$virt_wss" balloon test $words
		[ "$status" = 2 ]
	done
	run "$virt_wss" balloon test --history /nowhere/history.db
	[ "$status" = 1 ]
}

@test "a history that is missing is an error of --restore, and nothing to apply is reported" {
	local history=$BATS_TEST_TMPDIR/a/b/c
	# Nothing is created, whether directories are missing or only the file.
	for history in "$history" "$VIRT_WSS_HISTORY"; do
		run "$virt_wss" balloon --restore --history "$history"
		[ "$status" = 1 ]
		[ "$output" = "virt-wss: error: there is no history $history" ]
		# The history may be on a disk that is not mounted now.
		for command in --restore --forget; do
			run "$virt_wss" balloon test $command --history "$history"
			[ "$status" = 1 ]
			[ "$output" = "virt-wss: error: test: there is no history $history" ]
		done
	done
	[ ! -e "$BATS_TEST_TMPDIR/a" ]
	[ ! -e "$VIRT_WSS_HISTORY" ]
	TZ=Asia/Kolkata run timeout 300 "$virt_wss" balloon test --apply
	echo "$output"
	[ "$status" = 5 ]
	grep -qE "^$(TZ=Asia/Kolkata date +%Y-%m-)[0-9]{2}T[0-9:]{8}\\+0530 virt-wss: error: test: refused: " <<<"$output"
}

@test "a host without guests is named, and having nothing to apply to is not a failure" {
	cat >"$BATS_TEST_TMPDIR/empty.xml" <<-'END'
		<node><cpu><mhz>1</mhz><model>x</model><active>1</active><nodes>1</nodes><sockets>1</sockets>
		<cores>1</cores><threads>1</threads></cpu><memory>1000000</memory></node>
	END
	for words in "" --apply; do
		# shellcheck disable=SC2086
		run timeout 300 "$virt_wss" -c "test://$BATS_TEST_TMPDIR/empty.xml" balloon $words
		echo "$output"
		[ "$status" = 0 ]
		[[ $output == *"no domain is running at test://$BATS_TEST_TMPDIR/empty.xml"* ]]
	done
}

@test "without libvirt nothing is restored, with the reason, and the journal stays open" {
	local uri
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
		VALUES ('6695eb01-f6a4-8304-79aa-97f2502e193f', 'test', 1, 4 << 30, 4 << 30, 2 << 30, 'test', 'test:///default')"
	for uri in proxmox:/// kvm:///; do
		run "$virt_wss" -c "$uri" balloon --restore
		echo "$output"
		[ "$status" = 5 ]
		[ "$output" = "virt-wss: error: test: its balloon cannot be set without libvirt" ]
		[ "$(done_rows)" = 0 ]
	done
}

# A guest that has 2 GiB, by what the last step left to it.
@test "a size that the last step does not explain is somebody else's, and nothing is given back" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	restores() { # ORIGINAL FROM TO, in MiB -> what it says
		sqlite3 "$VIRT_WSS_HISTORY" "DELETE FROM balloon;
			INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
			VALUES ('6695eb01-f6a4-8304-79aa-97f2502e193f', 'test', 1, $1 << 20, $1 << 20, $2 << 20, 'test', 'test:///default'),
			('6695eb01-f6a4-8304-79aa-97f2502e193f', 'test', 1, $1 << 20, $2 << 20, $3 << 20, 'test', 'test:///default')"
		run "$virt_wss" balloon --restore
		echo "$* -> $output"
		[ "$status" = 0 ]
		[ "$(done_rows)" = 2 ]
	}
	for sizes in "4096 2200 2048" "4096 2100 2000" "4096 2048 2048" "2048 1024 512"; do
		# shellcheck disable=SC2086
		restores $sizes
		[[ $output == *"test: restored to "* ]]
	done
	for sizes in "4096 4000 3000" "4096 1024 1024" "1024 1000 900"; do
		# shellcheck disable=SC2086
		restores $sizes
		[ "$output" = "virt-wss: test: somebody else set its balloon (now 2 GiB): nothing given back" ]
	done
}

# Runs with a disk whose calls take an hour, in the background -> disk_pid; disk.out, and disk.status at its end. Before
# disk_end no more than 20 s pass, and 30 s are what a disk has. The index of the log, which a killed controller leaves
# behind, is in memory.
disk_begin() { # CALLS ARGUMENT...
	export WSS_SLOW=$1:3600 WSS_SLOW_DIR=$BATS_TEST_TMPDIR WSS_SLOW_NAME='history.d*[!m]' WSS_SLOW_WHEN=$BATS_TEST_TMPDIR/slow
	shift
	: >"$WSS_SLOW_WHEN"
	clock_new clock 20
	(
		status=0
		WSS_CLOCK=$PWD/clock LD_PRELOAD=$WSS_BUILDDIR/tests/tools/slow.so:$WSS_BUILDDIR/tests/tools/hang.so \
			timeout --foreground -s KILL 300 "$virt_wss" "$@" >disk.out 2>&1 || status=$?
		echo "$status" >disk.status
	) 3>&- &
	disk_pid=$!
}

# Waits for its end -> status, output.
disk_end() {
	clock_limit clock 100
	wait "$disk_pid"
	status=$(cat disk.status)
	output=$(cat disk.out)
	echo "$status: $output"
}

@test "the journal's disk hangs: --restore gives memory back first, and ends" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	[ -e "$WSS_BUILDDIR/tests/tools/slow.so" ] || skip "needs slow.so"
	cd "$BATS_TEST_TMPDIR"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
		VALUES ('6695eb01-f6a4-8304-79aa-97f2502e193f', 'test', 1, 4096 << 20, 2200 << 20, 2048 << 20, 'test', 'test:///default')"
	# When its file for reading hangs, nobody knows what the guest had.
	disk_begin open,read balloon --restore
	disk_end
	[ "$status" = 1 ]
	[ "$output" = "virt-wss: error: history $VIRT_WSS_HISTORY: its disk has not answered for 30 s" ]
	disk_begin write,sync balloon --restore
	wait_until 300 grep -qF "test: restored to " disk.out
	disk_end
	[ "$status" = 1 ]
	[[ $output == *"error: test: history $VIRT_WSS_HISTORY: its disk has not answered for 30 s" ]]
	disk_begin write,sync balloon --forget test
	disk_end
	[ "$status" = 1 ]
	[ "$output" = "virt-wss: error: test: history $VIRT_WSS_HISTORY: its disk has not answered for 30 s" ]
	[ "$(done_rows)" = 0 ]
	run "$virt_wss" balloon --restore
	[ "$status" = 0 ]
	[ "$(done_rows)" = 1 ]
}

# The sizes of the journal move with it, and the balloon keeps what it has taken.
@test "memory that was plugged in or unplugged after a kill -9: --restore leaves nothing in the balloon" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	# It had HAD, of which all but 2 GiB were taken, with a maximum of BEFORE; then MAXIMUM and NOW, in MiB.
	for sizes in "4096 4096 6144 4096 6 GiB" "4096 4096 5120 3072 5 GiB" "4096 4096 3072 1024 3 GiB" \
		"4096 4096 4608 2560 4.50 GiB" "4096 4096 4096 2048 4 GiB" \
		"4096 6144 8192 4096 6 GiB" "4096 6144 6200 2104 4.05 GiB" "4096 6144 5120 1024 3 GiB"; do
		read -r had before maximum now given <<<"$sizes"
		printf '%s' "<node><domain type='test'><name>web1</name><uuid>$uuid</uuid><memory unit='MiB'>$maximum</memory>" \
			"<currentMemory unit='MiB'>$now</currentMemory><os><type>hvm</type></os>" \
			"<devices><memballoon model='virtio'/></devices></domain></node>" >"$BATS_TEST_TMPDIR/node.xml"
		sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon
			(uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri, maximum_bytes)
			VALUES ('$uuid', 'web1', 1, $had << 20, 2150 << 20, 2 << 30, 'test', 'test://$BATS_TEST_TMPDIR/node.xml',
			$before << 20)"
		run "$virt_wss" -c "test://$BATS_TEST_TMPDIR/node.xml" balloon --restore
		echo "$sizes: $output"
		[ "$status" = 0 ]
		[ "$output" = "virt-wss: web1: restored to $given" ]
	done
}

@test "a setmem after a kill -9 is not taken for plugged memory where the balloon was in use before" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	printf '%s' "<node><domain type='test'><name>db-7</name><uuid>$uuid</uuid><memory unit='MiB'>3000</memory>" \
		"<currentMemory unit='MiB'>2600</currentMemory><os><type>hvm</type></os>" \
		"<devices><memballoon model='virtio'/></devices></domain></node>" >"$BATS_TEST_TMPDIR/node.xml"
	# Nor does a journal of an older version tell.
	for maximum in "3000 << 20" NULL; do
		sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon
			(uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri, maximum_bytes)
			VALUES ('$uuid', 'db-7', 1, 2000 << 20, 2000 << 20, 1500 << 20, 'test',
			'test://$BATS_TEST_TMPDIR/node.xml', $maximum)"
		run "$virt_wss" -c "test://$BATS_TEST_TMPDIR/node.xml" balloon --restore
		echo "$output"
		[ "$output" = "virt-wss: db-7: somebody else set its balloon (now 2.54 GiB): nothing given back" ]
	done
}

@test "a damaged journal: nothing passes for restored or forgotten that is not" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	printf '%s' "<node><domain type='test'><name>db-7</name><uuid>$uuid</uuid><memory unit='MiB'>3000</memory>" \
		"<currentMemory unit='MiB'>2000</currentMemory><os><type>hvm</type></os>" \
		"<devices><memballoon model='virtio'/></devices></domain></node>" >"$BATS_TEST_TMPDIR/node.xml"
	for damage in "original_bytes = -5" "original_bytes = 'much'" "uuid = uuid || 'x'"; do
		sqlite3 "$VIRT_WSS_HISTORY" "DELETE FROM balloon;
			INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason)
			VALUES ('$uuid', 'db-7', 1, 2600 << 20, 2500 << 20, 2000 << 20, 'test');
			UPDATE balloon SET $damage"
		run "$virt_wss" -c "test://$BATS_TEST_TMPDIR/node.xml" balloon --restore
		echo "$damage: $output"
		[ "$status" = 1 ]
		[[ $damage == uuid* || $output == *"db-7: its former size in the journal is damaged: "* ]]
		[ "$(done_rows)" = 0 ]
		run "$virt_wss" balloon --forget db-7
		[ "$status" = 0 ]
		[[ $output == *"db-7: forgotten"* ]]
		[ "$(done_rows)" = 1 ]
	done
}

# QEMU still has our size where the guest's driver was unloaded, which empties the balloon.
@test "a balloon that others emptied is set once more by --restore; one that they filled is not touched" {
	shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 a1b2c3d4-0000-4000-8000-000000000000
	for now in 4096 3000; do
		printf '%s' "<node><domain type='test'><name>web1</name><uuid>$uuid</uuid><memory unit='MiB'>4096</memory>" \
			"<currentMemory unit='MiB'>$now</currentMemory><os><type>hvm</type></os>" \
			"<devices><memballoon model='virtio'/></devices></domain></node>" >"$BATS_TEST_TMPDIR/node.xml"
		sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon
			(uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
			VALUES ('$uuid', 'web1', 1, 2 << 30, 1075 << 20, 1 << 30, 'test', 'test://$BATS_TEST_TMPDIR/node.xml')"
		WSS_HANG=virDomainSetMemoryFlags:web1 WSS_HANG_SECONDS=0 WSS_HANG_FILE=$BATS_TEST_TMPDIR/set-$now LD_PRELOAD=$shim \
			run "$virt_wss" -c "test://$BATS_TEST_TMPDIR/node.xml" balloon --restore
		echo "$output"
		[ "$status" = 0 ]
		[[ $output == "virt-wss: web1: somebody else set its balloon (now "*"): nothing given back" ]]
	done
	[ -e "$BATS_TEST_TMPDIR/set-4096" ]
	[ ! -e "$BATS_TEST_TMPDIR/set-3000" ]
}

@test "many guests to restore that are unknown stay in the journal, each with a reason, until they are forgotten" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 \
		a1b2c3d4-0000-4000-8000-000000000000
	run "$virt_wss" balloon --restore
	[ "$output" = "virt-wss: $VIRT_WSS_HISTORY: nothing to restore" ]
	for i in $(seq 100 139); do
		echo "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
			VALUES ('a1b2c3d4-0000-4000-8000-000000000$i', 'web$i', 1, 5, 5, 4, 'test',
			'test:///$([ $((i % 2)) = 0 ] && echo default || echo elsewhere)');"
	done | sqlite3 "$VIRT_WSS_HISTORY"
	sqlite3 "$VIRT_WSS_HISTORY" "UPDATE balloon SET original_bytes = 1048576"
	run "$virt_wss" balloon web100 web101 --restore
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"web100: libvirt does not know it now: its former size, 1 MiB, is remembered until it is back"* ]]
	[[ ${lines[-1]} == "virt-wss: if a guest will not be back, run: virt-wss balloon --forget DOMAIN" ]]
	[[ $output == *"web101: not known here: its balloon was set through 'test:///elsewhere', so restore it there"* ]]
	[ "$(done_rows)" = 0 ]
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, uri)
		VALUES ('6695eb01-f6a4-8304-79aa-97f2502e193f', 'test', 1, 4294967296, 4294967296, 2147483648, 'test', 'test:///default')"
	run "$virt_wss" balloon --restore
	echo "$output"
	[ "$status" = 3 ]
	[ "$(grep -c 'not known here' <<<"$output")" = 20 ]
	[ "$(grep -c 'does not know it now' <<<"$output")" = 20 ]
	[[ $output == *"test: restored to"* ]]
	[ "$(done_rows)" = 1 ]
	run "$virt_wss" balloon --forget web100 a1b2c3d4-0000-4000-8000-000000000101 nobody
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"web100: forgotten; it had 1 MiB"*"web101: forgotten"* && $output == *"nobody: nothing to forget"* ]]
	[ "$(done_rows)" = 3 ]
	# Not all of them by mistake.
	run "$virt_wss" balloon --forget
	[ "$status" = 2 ]
	[[ $output == *"--forget needs a DOMAIN"* ]]
	[ "$(done_rows)" = 3 ]
}
