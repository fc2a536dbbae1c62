#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests recommend --backtest on invented histories.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss

setup_file() {
	# One guest of each kind: steady0 daily1 weekly2 ... resizes7 ... mixed11.
	"$WSS_BUILDDIR/tests/tools/mkhistories" "$BATS_FILE_TMPDIR/history.db" 12 7
}

setup() {
	export VIRT_WSS_HISTORY=$BATS_FILE_TMPDIR/history.db
	export LIBVIRT_DEFAULT_URI=test:///nowhere
}

check() { # PYTHON, with data: the JSON that was printed
	/usr/bin/python3 -c "import json, sys
data = json.load(open(sys.argv[1]))
$1" "$BATS_TEST_TMPDIR/out"
}

@test "a backtest of all guests compares the recommended size with its rivals" {
	wss recommend --backtest --hold 1d --train 14d --test 14d --output json
	[ "$status" = 0 ]
	check '
assert data["schema"] == "virt-wss/backtest/1"
sizes = {row["size"]: row for row in data["sizes"]}
assert list(sizes) == ["recommended", "peak + 15%", "p90 24h + 15%", "fixed"], sizes
ours = sizes["recommended"]
assert ours["guests"] == 12 and 3000 < ours["hours"] <= 12 * 336, ours
assert "domain" not in ours
assert ours["violation_share"] <= 0.005 and ours["slack_share"] <= 0.26, ours
assert ours["violation_hours"] / ours["hours"] - ours["violation_share"] < 1e-6
for name, rival in sizes.items():
    assert rival["hours"] == ours["hours"], rival'
}

@test "all of the history before the test is known, unless --train says otherwise" {
	local all
	wss recommend --backtest peaks5 --output csv
	all=$out
	wss recommend --backtest peaks5 --output csv --train 21d
	[ "$out" = "$all" ]
	wss recommend --backtest peaks5 --output csv --train 7d
	[ "$out" != "$all" ]
}

@test "an hour that a wrong clock has dated in the future ends no test" {
	local copy=$BATS_TEST_TMPDIR/wrong.db hours
	wss recommend --backtest steady0 --output csv --columns size,hours
	hours=$(sed -n 's/^recommended,\([0-9]*\).*/\1/p' <<<"$out")
	sqlite3 "$VIRT_WSS_HISTORY" ".backup $copy"
	# Ten years ahead.
	sqlite3 "$copy" "CREATE TEMP TABLE last AS SELECT * FROM summary WHERE level = 3600 AND series_id =
		(SELECT min(series_id) FROM summary) ORDER BY start DESC LIMIT 1;
		UPDATE last SET start = start + 315360000, first = first + 315360000, last = last + 315360000;
		INSERT INTO summary SELECT * FROM last"
	VIRT_WSS_HISTORY=$copy wss recommend --backtest steady0 --output csv --columns size,hours
	[ "$hours" -gt 100 ]
	grep -q "^recommended,${hours}[^0-9]*\$" <<<"$out"
}

@test "what is damaged of one guest does not keep the others from being judged" {
	local copy=$BATS_TEST_TMPDIR/damaged.db
	sqlite3 "$VIRT_WSS_HISTORY" ".backup $copy"
	sqlite3 "$copy" "UPDATE summary SET sizes = x'00' WHERE level = 3600 AND series_id IN
		(SELECT series.id FROM series JOIN guest ON guest.id = guest_id WHERE name = 'daily1')"
	chmod 600 "$copy"
	for words in "" "daily1 steady0"; do
		# shellcheck disable=SC2086
		wss recommend --backtest $words --history "$copy" --output csv --columns size,guests
		[ "$status" = 3 ]
		[[ $err == *'daily1: history '*': its summary of the hour from 20'*'Z is damaged: delete that with: sqlite3 '* ]]
		grep -qE '^recommended,(11|1)' <<<"$out"
	done
}

@test "each of several named guests has rows of its own, then all of them" {
	wss recommend --backtest steady0 daily1 --output csv --columns domain,size,hours
	[ "$status" = 0 ]
	[ "$(grep -c ^steady0, <<<"$out")" = 4 ]
	[ "$(grep -c ^daily1, <<<"$out")" = 4 ]
	[ "$(grep -c ^, <<<"$out")" = 4 ]
	grep -q '^steady0,recommended,168' <<<"$out"
	grep -q '^,recommended,336' <<<"$out"
}

@test "a rule that is named is judged instead of the learned one" {
	wss recommend --backtest daily1 --span 7d --percentile 50 --headroom 0 --output json
	[ "$status" = 0 ]
	check 'assert data["sizes"][0]["violation_share"] > 0.1, data'
}

@test "the picture shows one guest's recommended size, need and violations" {
	wss recommend --backtest --hold 1d --train 14d --test 14d resizes7 --plot "$BATS_TEST_TMPDIR/p.svg" --output json
	[ "$status" = 0 ]
	xmllint --noout "$BATS_TEST_TMPDIR/p.svg"
	grep -q 'more needed: 10 of 336 hours' "$BATS_TEST_TMPDIR/p.svg"
	# Ten dots and the one in the legend.
	[ "$(grep -o '<circle' "$BATS_TEST_TMPDIR/p.svg" | wc -l)" = 11 ]
	check 'assert data["sizes"][0]["violation_hours"] == 10'
	wss recommend --backtest --plot "$BATS_TEST_TMPDIR/q.svg"
	[ "$status" = 2 ]
	[ ! -e "$BATS_TEST_TMPDIR/q.svg" ]
}

@test "a history that is too short is said to be, and an unknown guest is an error" {
	wss recommend --backtest --train 1h --test 10h steady0
	[ "$status" = 0 ]
	[[ "$err" == *"no hour could be judged: that takes at least 24 measured hours of a guest before it, within --train"* ]]
	wss recommend --backtest --train 12h --test 3d steady0
	[[ "$err" == *"not judged: "*" hours, before which too little was measured"* ]]
	wss recommend --backtest stedy0
	[ "$status" = 1 ]
	[[ "$err" == *"stedy0: no such guest in the history: did you mean 'steady0'?"* ]]
	[ -z "$out" ]
	wss recommend --backtest stedy0 --output csv
	[[ "$out" == domain,uuid,size,* ]]
}

@test "options that do not go together are refused" {
	local options
	for options in "--train 7d" "--test 7d" "--plot x.svg" "--backtest --what-if 1GiB" "--backtest --probability 90" \
		"--backtest --train 10m" "--hold 10m" "--hold 29d"; do
		# shellcheck disable=SC2086
		wss recommend $options
		[ "$status" = 2 ]
		[ -z "$out" ]
	done
}

@test "the minimum and rounding are replayed" {
	wss recommend --backtest steady0 --output json
	cp "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/plain"
	wss recommend --backtest steady0 --minimum 64GiB --output json
	check 'assert data["sizes"][0]["slack_share"] > 0.8, data'
	wss recommend --backtest steady0 --step 64GiB --output json
	check 'assert data["sizes"][0]["slack_share"] > 0.8, data'
	echo 1MiB >"$BATS_TEST_TMPDIR/flavours"
	wss recommend --backtest steady0 --flavours "$BATS_TEST_TMPDIR/flavours" --output json
	cmp "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/out"
}

@test "with --connect the policies of the guests are replayed, too" {
	local uuid=00000000-0000-0000-0000-000000000000
	printf '%s' "<domain type='test'><name>steady0</name><uuid>$uuid</uuid><memory unit='GiB'>4</memory>" \
		"<metadata><p:policy xmlns:p='urn:virt-wss:policy:1' version='1'>" \
		"<p:maximum unit='MiB'>1</p:maximum></p:policy></metadata>" \
		"<os><type>hvm</type></os></domain>" >"$BATS_TEST_TMPDIR/domain.xml"
	echo "<node><domain file='$BATS_TEST_TMPDIR/domain.xml'/></node>" >"$BATS_TEST_TMPDIR/node.xml"
	wss -c "test://$BATS_TEST_TMPDIR/node.xml" recommend --backtest steady0 daily1 --minimum 0 --output json
	[ "$status" = 0 ]
	check '
ours = {row["domain"]: row for row in data["sizes"] if "domain" in row and row["size"] == "recommended"}
assert ours["steady0"]["violation_share"] == 1, ours
assert ours["daily1"]["violation_share"] < 0.1, ours'
	wss -c test:///nowhere recommend --backtest steady0
	[ "$status" != 0 ]
}
