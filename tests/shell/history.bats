#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests history on an invented history, without libvirt.

bats_require_minimum_version 1.5.0

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
uuid=11111111-2222-3333-4444-55555555000

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	chmod 700 .
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db LIBVIRT_DEFAULT_URI=nonsense:/// LC_ALL=C.UTF-8
}

make() { # N BYTES STEP UUID...
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" "$@"
}

edit() { # SQL
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	sqlite3 "$VIRT_WSS_HISTORY" "$1"
}

# Prints a column of the CSV on stdin, one line per row.
field() { # COLUMN
	awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name="$1"
}

refused() { # STATUS REGULAR-EXPRESSION ARGUMENT...
	fails "$1" "$2" history "${@:3}"
}

# Whether a process waits for the reader of its output.
has_full_pipe() { # PID
	grep -q pipe_write "/proc/$1/wchan" 2>/dev/null || grep -q '^1 0x1 ' "/proc/$1/syscall" 2>/dev/null
}

@test "each sample of the requested time is a row, in order" {
	make 48 100000000 3600 ${uuid}1
	"$virt_wss" history --all --output csv >rows
	[ "$(field domain <rows | sort | uniq -c | awk '{ print $1, $2 }')" = "48 guest" ]
	field time <rows | sort -c
	# make-history goes from BYTES to 1.1 times that in steps of a hundredth.
	[ "$(field wss_bytes <rows | sort -n | uniq | head -n 2 | tr '\n' ' ')" = "100000000 101000000 " ]
	[ "$(field quality <rows | sort -u)" = ok ]
	[ "$(field requested_window_seconds <rows | sort -u)" = 4 ]
	[ "$("$virt_wss" history --span 12h30m --output csv 2>/dev/null | wc -l)" = 14 ] ||
		[ "$("$virt_wss" history --span 750m --output csv | wc -l)" = 14 ]
	[ "$("$virt_wss" history --since 750m --until 690m --output csv | wc -l)" = 2 ]
	tenth=$(field time <rows | sed -n 10p)
	"$virt_wss" history --since "$tenth" --until "$tenth" --output csv >one
	[ "$(field time <one)" = "$tenth" ]
	day=$(tail -n 1 rows | cut -d, -f3 | cut -dT -f1)
	[ "$("$virt_wss" history --since "$day" --output csv | field time | cut -dT -f1 | sort -u)" = "$day" ]
}

@test "the last day by default, a week of hours or days, and everything with --all" {
	make 240 100000000 3600 ${uuid}1
	run --separate-stderr "$virt_wss" history
	echo "$output, $stderr"
	[ "${#lines[@]}" -ge 25 ]
	[ "${#lines[@]}" -le 26 ]
	[ "$stderr" = "virt-wss: only the last day: for $((241 - ${#lines[@]})) older samples, use --span TIME or --all" ]
	# --all cannot be given together with a guest.
	run --separate-stderr "$virt_wss" history ${uuid}1
	[[ $stderr == *" older samples, use --span TIME" ]]
	run --separate-stderr "$virt_wss" history --by hour
	[ "${#lines[@]}" -ge 169 ]
	[ "${#lines[@]}" -le 170 ]
	[ "$stderr" = "virt-wss: only the last 7 days: for $((241 - ${#lines[@]})) older rows, use --span TIME or --all" ]
	for options in "--all" "--span 30d"; do
		# shellcheck disable=SC2086
		run --separate-stderr "$virt_wss" history $options
		[ "${#lines[@]}" = 241 ]
		[ -z "$stderr" ]
	done
}

@test "samples from a clock that was ahead are shown to those who ask for them" {
	make 5 100000000 3600 ${uuid}1
	edit "UPDATE sample SET time = time + 315360000 WHERE id = (SELECT max(id) FROM sample)"
	[ "$("$virt_wss" history --output csv | wc -l)" = 5 ]
	[ "$("$virt_wss" history --output csv --all | wc -l)" = 6 ]
	[ "$("$virt_wss" history --output csv --until "$(($(date +%Y) + 11))-01-01" | wc -l)" = 6 ]
}

@test "hours and days have percentiles of their samples" {
	# 11 sizes in turn, 100 to 110 million; each occurs many times in a day.
	make 1100 100000000 60 ${uuid}1
	"$virt_wss" history --by day --output csv >rows
	[ "$(field samples <rows | awk '{ n += $1 } END { print n }')" = 1100 ]
	# Each size twice at least, which the present day may lack as yet.
	awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "samples") at = i } NR == 1 || $at >= 22' rows >full
	mv full rows
	[ "$(field max_bytes <rows | sort -u)" = 110000000 ]
	[ "$(field min_bytes <rows | sort -u)" = 100000000 ]
	# Accurate to a bucket of the histogram: 1.6 %.
	awk -v p50="$(field p50_bytes <rows | tail -n 1)" -v p95="$(field p95_bytes <rows | tail -n 1)" 'BEGIN {
		print p50, p95
		exit !(p50 >= 105e6 && p50 <= 107e6 && p95 >= 109e6 && p95 <= 110e6) }'
	"$virt_wss" history --by hour --output csv >rows
	[ "$(field samples <rows | awk '{ n += $1 } END { print n }')" = 1100 ]
	[ "$(field samples <rows | sort -n | tail -n 1)" = 60 ]
	[ "$(field span_seconds <rows | sort -u)" = 3600 ]
	field time <rows | grep -qE 'T[0-9]{2}:00:00Z$'
	"$virt_wss" history --by hour --output json | perl -MJSON::PP -e '
		$j = decode_json(join("", <STDIN>));
		$j->{schema} eq "virt-wss/history/1" && @{$j->{spans}} >= 18 && $j->{spans}[5]{samples} == 60 or die'
	"$virt_wss" history --output json | perl -MJSON::PP -e '
		$j = decode_json(join("", <STDIN>));
		@{$j->{samples}} == 1100 && $j->{samples}[0]{memory}{rss_bytes} == 400000000 or die'
}

@test "hours and days have how cold the memory was at their end" {
	make 48 100000000 3600 ${uuid}2
	"$WSS_BUILDDIR/tests/unit/make-history" -c 90000 "$VIRT_WSS_HISTORY" 1 100000000 60 ${uuid}2
	for level in hour day; do
		"$virt_wss" history --by $level --output csv >rows
		# Only the last one is known.
		[ "$(field cold_24h_low_bytes <rows | sort | uniq -c | awk '{ print $2 }' | paste -sd,)" = ,50000000 ]
		[ "$(field cold_24h_low_bytes <rows | tail -n 1)" = 50000000 ]
		[ "$(field cold_24h_high_bytes <rows | tail -n 1)" = 75000000 ]
		[ "$(field cold_24h_observed_share <rows | tail -n 1)" = 1.000000 ]
		[ "$(field cold_watched_seconds <rows | tail -n 1)" = 90000 ]
	done
	# A time that was not observed has no low bound.
	"$WSS_BUILDDIR/tests/unit/make-history" -C 90000 "$VIRT_WSS_HISTORY" 1 100000000 60 ${uuid}2
	"$virt_wss" history --by day --output csv >rows
	[ -z "$(field cold_24h_low_bytes <rows | tail -n 1)" ]
	[ "$(field cold_24h_high_bytes <rows | tail -n 1)" = 75000000 ]
}

@test "a guest is named by its name or its UUID" {
	make 3 100000000 60 ${uuid}1
	for word in guest ${uuid}1; do
		[ "$("$virt_wss" history "$word" --output csv | wc -l)" = 4 ]
	done
	[ "$("$virt_wss" history --uuid ${uuid}1 --output csv | wc -l)" = 4 ]
	refused 1 "gest: no such guest in the history: did you mean 'guest'\?$" gest
	[ -z "$out" ]
	refused 1 'zzzzzzzzzzz: no such guest in the history$' zzzzzzzzzzz
	refused 3 'zzzzzzzzzzz' guest zzzzzzzzzzz
	refused 1 'no such guest' --uuid ${uuid}7
	make 3 100000000 60 ${uuid}2
	# The newest, which are those that were stored last.
	run -0 --separate-stderr "$virt_wss" history guest --output csv
	[ "$(field uuid <<<"$output" | sort -u)" = ${uuid}2 ]
	[[ $stderr == *"of several guests of this name in the history, the one measured last, UUID ${uuid}2"* ]]
	[ "$("$virt_wss" history ${uuid}2 --output csv | wc -l)" = 4 ]
	[ "$("$virt_wss" history --output csv | wc -l)" = 7 ]
}

@test "a guest is forgotten, with all of its rows, and others are kept" {
	make 3 100000000 60 ${uuid}1
	make 3 100000000 60 ${uuid}2 ${uuid}3
	edit "INSERT INTO squeeze VALUES ('${uuid}1', 1, 1, 0), ('${uuid}2', 1, 1, 0);
		INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, to_bytes, reason, done)
		VALUES ('${uuid}1', 'guest', 1, 1, 1, 1, 'r', 1), ('${uuid}1', 'guest', 1, 1, 1, 1, 'r', 0)"
	refused 2 'forget deletes all that is stored of each DOMAIN' --forget
	refused 2 'all and DOMAIN exclude each other' --forget --all guest
	refused 2 'forget deletes' --forget --span 1h guest
	refused 1 "guest: fits two guests" --forget guest
	refused 1 "no such guest" --forget ${uuid}1 nobody
	[ "$("$virt_wss" history --output csv | wc -l)" = 10 ]
	refused 0 "guest \(UUID ${uuid}1\): forgotten" --forget ${uuid}1
	[ "$("$virt_wss" history --output csv | wc -l)" = 7 ]
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM guest')" = 2 ]
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM squeeze')" = 1 ]
	# A balloon that has to be restored yet.
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT sum(done = 0), sum(done) FROM balloon')" = '1|0' ]
	[ "$(sqlite3 "$VIRT_WSS_HISTORY" 'SELECT count(*) FROM series WHERE guest_id NOT IN (SELECT id FROM guest)')" = 0 ]
	# Measured again, it has a history again.
	make 2 100000000 60 ${uuid}1
	[ "$("$virt_wss" history --uuid ${uuid}1 --output csv | wc -l)" = 3 ]
}

@test "a word that is one guest's UUID and another's name is refused" {
	make 3 100000000 60 a${uuid:1}1 a${uuid:1}2
	edit "UPDATE guest SET name = 'first' WHERE uuid LIKE '%1'; UPDATE guest SET name = 'a${uuid:1}1' WHERE uuid LIKE '%2'"
	refused 1 "fits two guests.*'first' \(UUID a${uuid:1}1\)" a${uuid:1}1
	[ "$("$virt_wss" history --uuid a${uuid:1}1 --output csv | field domain | sort -u)" = first ]
	# UUIDs are compared without regard to case, as in the other commands.
	[ "$("$virt_wss" history --uuid A${uuid:1}1 --output csv | field domain | sort -u)" = first ]
}

@test "tables fit 80 columns" {
	make 30 100000000 3600 ${uuid}1
	edit "UPDATE series SET granularity_bytes = 2097152; UPDATE sample SET low_bytes = 1000000"
	for words in "" "--by hour" "--by day" "--chart" "--chart --by day"; do
		# shellcheck disable=SC2086
		"$virt_wss" history $words >drawn
		cat drawn
		[ "$(wc -l <drawn)" -gt 2 ]
		[ "$(wc -L <drawn)" -le 80 ]
	done
	"$virt_wss" history --by day | grep -q '<= '
	"$virt_wss" history | grep -q '<= '
}

@test "the chart rises with the working set, and shows gaps" {
	make 20 100000000 3600 ${uuid}1
	edit "UPDATE sample SET wss_bytes = (id - 1) * 10485760, low_bytes = (id - 1) * 10485760,
		high_bytes = (id - 1) * 10485760; DELETE FROM sample WHERE id BETWEEN 8 AND 12"
	"$virt_wss" history --chart >chart
	cat chart
	# 19 times 10 MiB at the right top; only the last columns reach that line.
	sed -n 2p chart | grep -qE '^ +190 MiB \| {60,}.*█$'
	sed -n 9p chart | grep -qE '^ +0 \|.*█ {12,}█.*█$'
	grep -q '▄' chart
	[ "$(wc -l <chart)" = 10 ]
	LC_ALL=C "$virt_wss" history --chart >ascii
	[ "$(LC_ALL=C tr -d '\n -~' <ascii | wc -c)" = 0 ]
	sed -n 2p ascii | grep -qE '^ +190 MiB \| {60,}.*#$'
}

@test "samples that were measured in several ways are distinguished" {
	make 4 100000000 60 ${uuid}1
	edit "INSERT INTO series (guest_id, method, observes, granularity_bytes, window_ns)
			VALUES (1, 'refs', 0, 2097152, 1000000000);
		UPDATE sample SET series_id = 2 WHERE id > 2"
	refused 0 'guest: measured in several ways'
	run --separate-stderr "$virt_wss" history --wide
	[ -z "$stderr" ]
	[ "$(grep -c 'refs' <<<"$output")" = 2 ]
}

@test "an empty result is explained" {
	make 3 100000000 60 ${uuid}1
	refused 0 'guest: no samples in this time range; the newest is from 20' --until 2020-01-01 --since 2019-01-01
	edit 'UPDATE sample SET time = time + 500 * 86400'
	refused 0 'guest: all its samples lie ahead of the present time: see history --all'
	edit 'DELETE FROM sample'
	for words in "" "guest" "--chart guest"; do
		# shellcheck disable=SC2086
		refused 0 '^virt-wss: guest: no sample in the history$' $words
	done
	edit 'DELETE FROM guest'
	refused 0 '^virt-wss: no guest in the history$'
	refused 0 '^virt-wss: no guest in the history$' --chart
	rm history.db*
	refused 0 'there is no history yet [(].*/history.db[)]: start virt-wss serve, or run .*sample --all --store; --history and VIRT_WSS_HISTORY name another'
	refused 1 'no such file|No such file' --history "$PWD/nowhere.db"
}

@test "what is damaged of one guest does not keep the others from being shown" {
	make 50 100000000 300 ${uuid}1 ${uuid}2
	edit "UPDATE guest SET name = 'old mail' WHERE uuid = '${uuid}1'; UPDATE summary SET sizes = x'00'
		WHERE level = 3600 AND series_id IN (SELECT series.id FROM series JOIN guest ON guest.id = guest_id WHERE uuid = '${uuid}1')"
	for words in "--by hour" "--by hour --chart" "--by hour ${uuid}1 ${uuid}2"; do
		# shellcheck disable=SC2086
		run --separate-stderr "$virt_wss" history $words
		echo "$words: $status: $output: $stderr"
		[ "$status" = 3 ]
		[[ $stderr == *"old mail: history "*": its summary of the hour from 20"*"Z is damaged: delete that with: sqlite3 "* ]]
		grep -q '^guest' <<<"$output"
	done
}

@test "the command that a damaged summary asks for repairs it" {
	make 50 100000000 300 ${uuid}1
	edit "UPDATE summary SET max_bytes = -1 WHERE level = 3600 AND start = (SELECT min(start) FROM summary WHERE level = 3600)"
	run --separate-stderr "$virt_wss" history --by hour
	[ "$status" = 1 ]
	# One that was valid but for the sign.
	bash -c "${stderr##*delete that with: }"
	"$virt_wss" history --by hour --output csv >rows
	[ "$(wc -l <rows)" -gt 3 ]
	[ "$(field max_bytes <rows | grep -cx 0)" = 0 ]
}

@test "a chart leaves out degraded windows, with a word" {
	make 12 100000000 60 ${uuid}1
	"$virt_wss" history --chart >all 2>err
	[ ! -s err ]
	edit "UPDATE sample SET quality = 1, wss_bytes = 5000000, low_bytes = 5000000 WHERE id = 7"
	run --separate-stderr "$virt_wss" history --chart
	[ "$status" = 0 ]
	[[ $stderr == "virt-wss: guest: the chart leaves out 1 window that is degraded or uncertain: see the column QUALITY of history" ]]
	edit "UPDATE sample SET quality = 1"
	refused 0 'guest: the chart leaves out 12 windows that are degraded or uncertain' --chart
}

@test "damaged samples are left out, with a word, and the older ones count" {
	local damage newest
	for damage in "wss_bytes = -1" "wss_bytes = 'abc'" "wss_bytes = 1e30" "low_bytes = wss_bytes + 1" \
		"high_bytes = wss_bytes - 1" "window_ns = 0" "maximum_bytes = 1"; do
		rm -f history.db*
		make 12 100000000 60 ${uuid}1
		newest=$("$virt_wss" history --output csv | field time | tail -n 1)
		# The newest ones.
		edit "UPDATE sample SET $damage WHERE id > 9"
		run --separate-stderr "$virt_wss" history --output csv
		echo "$damage: $output: $stderr"
		[ "$status" = 0 ]
		[ "${#lines[@]}" = 10 ]
		[[ $stderr == *": left out 3 damaged samples: no guest can have had these figures" ]]
		[ "$(field time <<<"$output" | tail -n 1)" != "$newest" ]
		run --separate-stderr "$virt_wss" history --chart
		[[ $stderr == *": left out 3 damaged samples: "* ]]
	done
	# None is left.
	edit "UPDATE sample SET wss_bytes = -1"
	run --separate-stderr "$virt_wss" history
	[[ $stderr == *": left out 12 damaged samples: "*"guest: no sample in the history" ]]
}

@test "invalid options are refused" {
	local next_year=$(($(date +%Y) + 1))
	refused 2 "by: 'week' is not hour or day" --by week
	refused 2 "since: 'yesterday'" --since yesterday
	refused 2 "since: '2026-13-01'" --since 2026-13-01
	refused 2 "since: '2026-02-30' is not a time" --since 2026-02-30
	refused 2 "until: '2027-02-29T12:00' is not a time" --until 2027-02-29T12:00
	refused 2 'exclude' --since 2d --span 2d
	refused 2 'until: .*Z is before the first time to show, .*Z: .*--since' --since 2d --until 3d
	refused 2 'until: 2020-01-01T00:00:00Z is before the first time to show, 20.*Z: .*--since' --until 2020-01-01
	refused 2 "since: $next_year-01-01T00:00:00Z is in the future: give a time before 20.*Z, .*--until" --since "$next_year-01-01"
	refused 2 'chart' --chart --output json
	refused 2 'chart' --chart --wide
	refused 2 'column' --columns nonsense
	refused 2 'column' --by day --sort wss_bytes
	refused 2 'history reads what is stored' --qmp /nowhere
}

# Whoever is not root has a history of his own, and seldom means that.
@test "where an ordinary user has no history, root's is named" {
	local dir=$BATS_TEST_TMPDIR/host as=()
	mkdir -p "$dir/var/lib/virt-wss"
	cp "$WSS_BUILDDIR/virt-wss" "$dir"
	chmod o+rx "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR" "$dir" "$dir/virt-wss"
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	ordinary() {
		run --separate-stderr "${as[@]}" env -u VIRT_WSS_HISTORY -u XDG_STATE_HOME HOME="$dir/home" \
			VIRT_WSS_SYSROOT="$dir" "$dir/virt-wss" history
		echo "$stderr"
		[ "$status" = 0 ]
		[[ $stderr == *"there is no history yet ($dir/home/.local/state/virt-wss/history.db): "* ]]
	}
	ordinary
	[[ $stderr != *"root's"* ]]
	touch "$dir/var/lib/virt-wss/history.db"
	ordinary
	[[ $stderr == *", and root's is /var/lib/virt-wss/history.db, which only root reads" ]]
}

@test "the history is not changed" {
	make 3 100000000 60 ${uuid}1
	before=$(md5sum <history.db)
	"$virt_wss" history >/dev/null
	"$virt_wss" history --by day --chart >/dev/null
	[ "$(md5sum <history.db)" = "$before" ]
}

@test "output that is not read keeps no log from being written back" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	make 3000 100000000 60 ${uuid}1 ${uuid}2
	mkfifo out
	"$virt_wss" history --output csv >out 3>&- &
	local reader=$!
	exec 4<out
	read -r <&4
	wait_until 300 has_full_pipe "$reader"
	run sqlite3 "$VIRT_WSS_HISTORY" "UPDATE guest SET name = name || 'x'; PRAGMA wal_checkpoint(TRUNCATE)"
	kill "$reader"
	exec 4<&-
	wait "$reader" || true
	[ "$output" = "0|0|0" ]
	[ ! -s "$VIRT_WSS_HISTORY-wal" ]
}
