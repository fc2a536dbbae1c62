#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# sample --store where nothing can be measured: the round around it.

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/state/history.db LIBVIRT_DEFAULT_URI=test:///default
}

wss() { # ARGUMENT...
	status=0
	timeout -k 5 60 "$virt_wss" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	out=$(cat "$BATS_TEST_TMPDIR/out")
	err=$(cat "$BATS_TEST_TMPDIR/err")
	printf '$ virt-wss %s -> %s\n%s\n%s\n' "$*" "$status" "$out" "$err"
}

@test "a round names what cannot be measured, and makes the history" {
	wss sample --all --store --publish --window 100ms --output csv
	[ "$status" = 5 ]
	[[ $err == *test*QEMU* && $out == *unsupported* ]]
	[ -s "$VIRT_WSS_HISTORY" ]
	[ -z "$(find "$BATS_TEST_TMPDIR/state" -perm /007 -type f)" ]
	wss sample test --store --history "$BATS_TEST_TMPDIR/elsewhere" --window 100ms
	[ "$status" = 5 ]
	[ -s "$BATS_TEST_TMPDIR/elsewhere" ]
	wss sample nobody --store
	[ "$status" = 1 ]
	[[ $err == *nobody* ]]
}

@test "two rounds never overlap" {
	wss sample --store --window 100ms
	[ "$status" = 5 ]
	exec 9>>"$VIRT_WSS_HISTORY.lock"
	flock 9
	wss sample --store --window 100ms
	[ "$status" = 1 ]
	[[ $err == *"another round"* ]]
	[ "$(wc -l <<<"$err")" = 1 ]
	# One guest by name is no round.
	wss sample test --store --window 100ms
	[ "$status" = 5 ]
	exec 9>&-
	wss sample --store --window 100ms
	[ "$status" = 5 ]
}

@test "a history that cannot be written is one clear line" {
	wss sample test --store --history /proc/nowhere/history.db
	[ "$status" = 1 ]
	[ "$(wc -l <<<"$err")" = 1 ]
	head -c 100000 /dev/urandom >"$BATS_TEST_TMPDIR/garbage"
	cp "$BATS_TEST_TMPDIR/garbage" "$BATS_TEST_TMPDIR/garbage.before"
	wss sample test --store --history "$BATS_TEST_TMPDIR/garbage"
	[ "$status" = 1 ]
	cmp "$BATS_TEST_TMPDIR/garbage" "$BATS_TEST_TMPDIR/garbage.before"
	wss -c 'qemu+unix:///system?socket=/nowhere/socket' sample --store
	[ "$status" = 4 ]
}

@test "options that are none" {
	for words in "--history x" "--keep 1d" "--deadline 5s" "--persistent" "--store --cumulative" \
		"--store --keep 0" "--store --keep forever" "--store --keep-size 1KiB" \
		"--store --history=" "--store --count 5000" "--store --deadline 0"; do
		# shellcheck disable=SC2086
		wss sample test $words
		[ "$status" = 2 ]
		[ "$(wc -l <<<"$err")" = 1 ]
	done
	wss --qmp /nowhere sample --store
	[ "$status" = 2 ]
}

@test "one bad guest is some of several, also where the others are not due yet" {
	dir=$BATS_TEST_TMPDIR/node
	mkdir "$dir"
	due=a1b2c3d4-0000-4000-8000-00000000aaaa
	later=a1b2c3d4-0000-4000-8000-00000000bbbb
	for uuid in $due $later; do
		echo "<domain type='test'><name>$uuid</name><uuid>$uuid</uuid><memory>1024</memory><metadata>
			<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:period unit='seconds'>3600</p:period></p:policy>
			</metadata><os><type>hvm</type></os></domain>" >"$dir/$uuid.xml"
	done
	echo "<node><domain file='$dir/$due.xml'/><domain file='$dir/$later.xml'/></node>" >"$dir/node.xml"
	wss -c "test://$dir/node.xml" policy get --output csv
	[ "$(grep -c 3600 <<<"$out")" = 2 ]
	mkdir "${VIRT_WSS_HISTORY%/*}"
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 $later
	wss -c "test://$dir/node.xml" sample --store --window 100ms --output csv
	[ "$status" = 3 ]
	[[ $err == *$due* && $err != *$later* ]]
}
