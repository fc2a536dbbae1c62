#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the metrics follow the conventions of Prometheus and OpenMetrics, as their own tools see
# them, and that docs/metrics.md lists them.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

bats_require_minimum_version 1.5.0

setup_file() {
	# At each level, a guest with as many series as there can be.
	export pages=$BATS_FILE_TMPDIR/pages
	mkdir "$pages"
	WSS_PAGES=$pages "$WSS_BUILDDIR/tests/unit/test-advisor"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

parse_openmetrics() { # FILE: lists the families
	/usr/bin/python3 - "$1" <<'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
with open(sys.argv[1]) as page:
    for family in text_string_to_metric_families(page.read()):
        print(family.name)
END
}

need_promtool() {
	command -v promtool >/dev/null || skip "needs promtool (Debian: prometheus)"
}

need_parser() {
	/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || skip "needs python3-prometheus-client"
}

@test "promtool finds nothing wrong with the metrics of any level" {
	need_promtool
	for level in 0 1 2; do
		promtool check metrics <"$pages/$level.prometheus" >out 2>&1 || { cat out; false; }
		[ ! -s out ] || { cat out; false; }
	done
	# It does find what is wrong.
	sed 's/_seconds_total/_seconds/' "$pages/2.prometheus" >wrong
	run ! promtool check metrics <wrong
}

@test "a strict parser of OpenMetrics reads each level" {
	need_parser
	for level in 0 1 2; do
		[ "$(parse_openmetrics "$pages/$level.openmetrics" | wc -l)" -ge 20 ]
	done
	# All metrics are in both forms.
	diff <(parse_openmetrics "$pages/2.openmetrics" | sort) \
		<(sed -nE 's/^# TYPE (\S*) .*/\1/p' "$pages/2.prometheus" | sed -E 's/_(total|info)$//' | sort)
	sed '/# EOF/d' "$pages/2.openmetrics" >wrong
	run ! parse_openmetrics wrong
}

openmetrics_page_is_whole() {
	curl -sSf --unix-socket socket -H 'Accept: application/openmetrics-text' -o body http://localhost/metrics &&
		[ "$(parse_openmetrics body | wc -l)" -ge 20 ]
}

@test "what serve writes is as good" {
	need_promtool
	need_parser
	VIRT_WSS_HISTORY=$PWD/history.db "$WSS_BUILDDIR/virt-wss" -c test:///default serve --metrics full \
		--textfile page.prom --listen unix:socket 2>err 3>&- &
	pid=$!
	wait_until 300 grep -q '^virt_wss_host_memory_bytes' page.prom
	promtool check metrics <page.prom >out 2>&1 || { cat out; false; }
	[ ! -s out ]
	# The HTTP process may still show the page from before the first round.
	wait_until 300 openmetrics_page_is_whole
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
}

@test "docs/metrics.md lists each metric and no other" {
	diff <(sed -nE 's/^# TYPE (\S*) .*/\1/p' "$pages/2.prometheus" | sort) \
		<(sed -nE '/^\|/s/^\| (`[^|]*)\|.*/\1/p' "$WSS_SRCDIR/docs/metrics.md" | grep -oE 'virt_wss_\w+' | sort)
	# The levels and the numbers of series.
	local level name levels series n
	for level in 0:minimal 1:standard 2:full; do
		while IFS='|' read -r _ name levels series _; do
			name=$(tr -d ' `' <<<"$name")
			n=$(grep -c "^$name{domain=" "$pages/${level%:*}.prometheus" || true)
			case ${level#*:} in
			full) [ "$n" = "${series##*[ ,]}" ] || [ "$n" = "$(tr -d ' ' <<<"${series##*,}")" ] ;;
			standard) case $levels in *standard*|*minimal*) [ "$n" = "$(tr -d ' ' <<<"${series%%,*}")" ] ;; *) [ "$n" = 0 ] ;; esac ;;
			minimal) case $levels in *minimal*) [ "$n" = 1 ] ;; *) [ "$n" = 0 ] ;; esac ;;
			esac || { echo "$name: $n series at level ${level#*:}"; false; }
		done < <(sed -n '/^## Of each guest/,/^## Of the host/p' "$WSS_SRCDIR/docs/metrics.md" | grep '^| `virt_wss_')
	done
}
