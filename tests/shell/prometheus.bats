#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the rules for Prometheus and the dashboard for Grafana with promtool.

bats_require_minimum_version 1.5.0

rules=$WSS_SRCDIR/dist/prometheus/virt-wss.rules.yml
tests=$WSS_SRCDIR/tests/prometheus/virt-wss.test.yml
dashboard=$WSS_SRCDIR/dist/grafana/virt-wss.json

setup() {
	command -v promtool >/dev/null || skip "needs promtool (Debian: prometheus)"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Names of metrics in PromQL on standard input.
metrics_of() {
	sed -E 's/"[^"]*"//g' | grep -oE '\b(\w+:)?(virt_wss|libvirt)_\w+(:\w+)?' | sort -u
}

# Everything that a rule or a panel may ask for: docs/metrics.md, our recording rules, and the usual
# exporter of libvirt.
known_metrics() {
	sed -nE '/^\|/s/^\| (`[^|]*)\|.*/\1/p' "$WSS_SRCDIR/docs/metrics.md" | grep -oE 'virt_wss_\w+'
	sed -nE 's/^ *- record: //p' "$rules"
	printf 'libvirt_domain_info_%s\n' maximum_memory_bytes memory_usage_bytes
}

@test "the rules are correct" {
	promtool check rules --lint=all --lint-fatal "$rules"
}

@test "alerts fire when they should, and never else" {
	promtool test rules "$tests"
}

# The tests of the rules notice each condition, so each is needed and tested.
@test "without one of its conditions an alert fires when it should not, or not at all" {
	local n conditions
	mkdir -p dist/prometheus tests/prometheus
	cp "$tests" tests/prometheus/
	mapfile -t conditions < <(grep -nE '^ *(for:|unless |and changes|or \()' "$rules" | cut -d: -f1)
	[ "${#conditions[@]}" -ge 20 ]
	for n in "${conditions[@]}"; do
		sed "${n}d" "$rules" >dist/prometheus/virt-wss.rules.yml
		promtool check rules dist/prometheus/virt-wss.rules.yml >/dev/null
		run ! promtool test rules tests/prometheus/virt-wss.test.yml
	done
	# With all of them it is as above.
	cp "$rules" dist/prometheus/
	promtool test rules tests/prometheus/virt-wss.test.yml
}

@test "each alert fires in a test" {
	diff <(sed -nE 's/^ *- alert: //p' "$rules" | sort) \
		<(grep -oE 'alertname="\w+", instance' "$tests" | cut -d'"' -f2 | sort -u)
}

@test "each expression of the dashboard is correct" {
	local query n=0
	"$WSS_SRCDIR/tests/tools/dashboard-queries" "$dashboard" >queries
	[ "$(wc -l <queries)" -ge 20 ]
	{
		printf 'groups:\n- name: dashboard\n  rules:\n'
		while read -r query; do
			printf -- '  - record: query_%d\n    expr: >-\n      %s\n' $((n++)) "$query"
		done <queries
	} >queries.yml
	promtool check rules queries.yml
	sed 's/topk(10,/topk(10/' queries.yml >wrong.yml
	run ! promtool check rules wrong.yml
}

@test "rules and dashboard use metrics that exist" {
	"$WSS_SRCDIR/tests/tools/dashboard-queries" "$dashboard" | metrics_of >used
	grep -v '^#' "$rules" | metrics_of >>used
	[ "$(wc -l <used)" -ge 30 ]
	diff <(sort -u used) <(sort -u used | grep -xF "$(known_metrics)")
}
