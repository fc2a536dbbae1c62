#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests docs/fleet.md: its configuration and its queries, with the real Prometheus, vmagent and
# VictoriaMetrics. host1 and host2 are invented, their pages are written by the code of the service; host3 is
# a real service without guests that can be measured.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"
# shellcheck disable=SC1091
. "$WSS_SRCDIR/tests/shell/fleet-functions.sh"

metrics_page=$WSS_BUILDDIR/tests/tools/metrics-page

# NAME,WSS,BALLOON,RSS in MiB. virt-wss recommends 1.2 times the set.
host1=('web1,500,4096,4000' 'web2,1000,4096,2600' 'db1,3500,4096,4090' 'idle1,300,8192,8000' 'new1,0,1024,900' 'cache1,800,3000,2800')
host2=('web3,600,4096,3000' 'web4,400,4096,1500' 'db2,2000,8192,7000' 'idle2,250,2048,2000' 'mail1,700,2048,2048'
	'build1,1500,6144,6000' 'ldap1,260,1024,600' 'vpn1,260,1024,1000')

setup_file() {
	local missing=''
	for program in prometheus vmagent victoria-metrics; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	export missing
}

setup() {
	[ -z "$missing" ] || skip "needs$missing (Debian: prometheus, victoria-metrics)"
	cd "$BATS_TEST_TMPDIR" || return 1
	export TMPDIR=$PWD
}

teardown() {
	fleet_end
}

# The n-th block of that language in docs/fleet.md.
documented() { # LANGUAGE N
	awk -v language="$1" -v n="$2" '
		/^```/ { inside = $0 == "```" language && ++i == n; next }
		inside' "$WSS_SRCDIR/docs/fleet.md"
}

serve_page() { # FILE -> port
	"$WSS_SRCDIR/tests/tools/http-file" "$1" >"$1.port" 3>&- &
	fleet_pids+=("$!")
	wait_until 300 [ -s "$1.port" ]
	port=$(cat "$1.port")
}

# The documented configuration for a host, scraped every five seconds.
configure() { # HOST PORT
	documented yaml 1 | sed "s/host1/$1/; s/127\.0\.0\.1:19177/127.0.0.1:$2/; s/60s/5s/"
}

# What follows from the guests above, in bytes: reclaimable, host, guest.
expected_reclaimable() {
	local host guest name wss balloon rss
	for host in host1 host2; do
		local -n guests=$host
		for guest in "${guests[@]}"; do
			IFS=, read -r name wss balloon rss <<<"$guest"
			[ "$wss" = 0 ] || awk -v rss="$rss" -v wss="$wss" -v id="$host $name" '
				BEGIN { size = int(wss * 1.5 + 0.999); if (size < 256) size = 256
					printf "%.0f %s\n", (rss > size ? rss - size : 0) * 1048576, id }'
		done
	done | sort -rn
}

all_hosts_are_there() {
	[ "$(fleet_query "$(documented promql 7)")" = 3 ]
}

has_answer() { # PROMQL
	[ -n "$(fleet_query "$1")" ]
}

prints() { # EXPECTED COMMAND...
	[ "$("${@:2}" | tee got)" = "$1" ]
}

# A host that answers a scrape late is gone until the next one.
becomes() { # EXPECTED COMMAND...
	wait_until 300 prints "$@" || { cat got; return 1; }
}

answer() { # SORT-OPTIONS FIELDS PROMQL LABEL...
	fleet_query "${@:3}" | cut -d' ' -f"$2" | sort "$1"
}

start_fleet() {
	local page1 page2 page3 libvirt
	"$metrics_page" --memory 32768 "${host1[@]}" >host1.prom
	"$metrics_page" --memory 14000 --level full "${host2[@]}" >host2.prom
	# As an exporter of libvirt has it.
	for guest in "${host1[@]}"; do
		IFS=, read -r name _ balloon _ <<<"$guest"
		printf 'libvirt_domain_info_%s{domain="%s"} %s\n' memory_usage_bytes "$name" $((balloon << 20)) \
			maximum_memory_bytes "$name" $((balloon << 21))
	done | sort >libvirt.prom
	serve_page host1.prom && page1=$port
	serve_page host2.prom && page2=$port
	serve_page libvirt.prom && libvirt=$port
	fleet_start serve /healthz "$WSS_BUILDDIR/virt-wss" -c test:///default serve --no-store \
		--listen 127.0.0.1:@PORT@
	page3=$port
	fleet_start_victoria
	{
		configure host1 "$page1"
		configure host3 "$page3" | sed '1,/^scrape_configs/d; s/job_name: virt-wss/&-3\n  relabel_configs: [{target_label: job, replacement: virt-wss}]/'
		printf -- '- job_name: libvirt\n  static_configs:\n  - {targets: ["127.0.0.1:%s"], labels: {instance: "host1:9000"}}\n' "$libvirt"
		documented yaml 2 | sed "s,http://victoria.example.com:8428,$victoria,"
		printf '  queue_config: {batch_send_deadline: 1s}\n'
		printf 'rule_files: [%s]\n' "$WSS_SRCDIR/dist/prometheus/virt-wss.rules.yml"
	} | sed 's/scrape_interval: 5s/&\n  evaluation_interval: 1s/' >prometheus.yml
	promtool check config prometheus.yml
	configure host2 "$page2" >vmagent.yml
	fleet_start prometheus /-/ready prometheus --config.file=prometheus.yml --storage.tsdb.path="$PWD/prometheus" \
		--web.listen-address=127.0.0.1:@PORT@ --log.level=warn
	fleet_start vmagent /health vmagent -promscrape.config=vmagent.yml -remoteWrite.url="$victoria/api/v1/write" \
		-remoteWrite.tmpDataPath="$PWD/vmagent" -remoteWrite.flushInterval=1s \
		-httpListenAddr=127.0.0.1:@PORT@ -loggerLevel=WARN
	wait_until 300 all_hosts_are_there
}

@test "one question to the whole fleet: reclaimable guests, and hosts with headroom" {
	start_fleet
	# The ten largest of thirteen, from both hosts, and none that is not known.
	[ "$(expected_reclaimable | wc -l)" -ge 12 ]
	becomes "$(expected_reclaimable | head -n 10)" answer -rn 1- "$(documented promql 1)" instance domain
	# host2 has 6 GiB left; of host3 nothing is known.
	becomes host1 answer -u 2 "$(documented promql 2)" instance
	becomes $'host1\nhost2' answer -u 2 virt_wss_host_headroom_bytes instance
	# The other questions.
	becomes "$(expected_reclaimable | awk '{ sum[$2] += $1 } END { for (host in sum) printf "%.0f %s\n", sum[host], host }' | sort -rn)" \
		answer -rn 1- "$(documented promql 3)" instance
	wait_until 300 has_answer "$(documented promql 4)"
	becomes '' answer -u 1- "$(documented promql 5)" instance domain
	wait_until 300 eval 'answer -u 1- "$(documented promql 6)" advice | grep -qx "1 1"'
	[ -z "$(documented promql 8)" ]
	# Each panel of the dashboard has data, but for ages and rates, for which the fleet is too young,
	# and for bounds of huge pages, which no guest has.
	local query
	wait_until 300 has_answer 'instance:virt_wss_host_committed:ratio'
	"$WSS_SRCDIR/tests/tools/dashboard-queries" "$WSS_SRCDIR/dist/grafana/virt-wss.json" |
		grep -vE 'virt_wss_cold_bytes|working_set_low|working_set_bound ([<]|== 1)|rate1h|^rate\(' >queries
	while read -r query; do
		wait_until 300 has_answer "$query" || { echo "no data: $query"; false; }
	done <queries
	# 500 of 4096 MiB.
	wait_until 300 eval 'answer -u 1- "$(grep "^label_replace" queries)" domain | grep -qE "^0\.122[0-9]* web1$"'
}

# The table of docs/fleet.md, from what the service writes.
@test "docs/fleet.md counts the series of a page" {
	local level name guest host
	mkdir pages
	WSS_PAGES=$PWD/pages "$WSS_BUILDDIR/tests/unit/test-advisor"
	for level in 0:minimal 1:standard 2:full; do
		name=${level#*:}
		guest=$(grep -c '^[^#].*domain=' "pages/${level%:*}.prometheus")
		host=$(grep -vc -e '^#' -e 'domain=' "pages/${level%:*}.prometheus")
		grep -q "^A page has $host series of the host" "$WSS_SRCDIR/docs/fleet.md"
		host=$((host + 40 * guest))
		grep -F "| \`$name\` | $guest | $host | $((5000 * host)) | $((5000 * host / 60)) |" \
			<(sed -E 's/([0-9]),([0-9])/\1\2/g; s/([0-9]),([0-9])/\1\2/g' "$WSS_SRCDIR/docs/fleet.md")
	done
}
