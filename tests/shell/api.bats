#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the answers below /api/v1/ against their schema: those about invented guests, and those of a service.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

schema=$WSS_SRCDIR/docs/http-api.schema.json
check=$WSS_SRCDIR/tests/tools/api-check
uuid=a1b2c3d4-0000-4000-8000-000000000000

setup() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "needs python3-jsonschema"
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

fails() { # COMMAND...
	! "$@"
}

json() { # FILE EXPRESSION of it, as $j
	perl -MJSON::PP -e '$j = decode_json(join("", <STDIN>)); eval $ARGV[0] or die "not: $ARGV[0]\n"' "$2" <"$1"
}

@test "guests without a history" {
	timeout 300 "$WSS_BUILDDIR/tests/unit/make-pages" .
	"$check" "$schema" ./*.json
	json guests.json '@{$j->{guests}} == 3 && !grep { $_->{recommendation} } @{$j->{guests}}'
	json host.json '$j->{guests}{total} == 3 && $j->{guests}{refused} == 1 && $j->{guests}{left_out} == 1'
	# What is not known is not there.
	json host.json '$j->{totals}{wss}{low_bytes} <= $j->{totals}{wss}{bytes} && $j->{totals}{wss}{bytes} <= $j->{totals}{wss}{high_bytes}'
	json host.json '$j->{totals}{wss}{guests} == 1 && !exists $j->{totals}{recommended} && !exists $j->{held}'
	json "$uuid.json" '@{$j->{recent}{wss_bytes}} >= 1 && !exists $j->{days}'
	json trends.json "@{\$j->{wss_bytes}{'$uuid'}} == 48 && \$j->{wss_bytes}{'$uuid'}[47] == 1 << 20"
	json trends.json "\$j->{bounds}{'$uuid'} eq 'exact'"
	json guests.json 'grep { $_->{cold} && $_->{cold}{ages}[4]{high_bytes} } @{$j->{guests}}'
}

@test "guests with a history" {
	# 40 days at the same time of day, then a day with a window each 5 minutes.
	"$WSS_BUILDDIR/tests/unit/make-history" history.db 40 $((64 << 20)) 86400 "$uuid"
	"$WSS_BUILDDIR/tests/unit/make-history" history.db 288 $((100 << 20)) 300 "$uuid"
	timeout 300 "$WSS_BUILDDIR/tests/unit/make-pages" . history.db
	"$check" "$schema" ./*.json
	json "$uuid.json" '@{$j->{days}{days}} >= 39 && @{$j->{recent}{wss_bytes}} == 288'
	json "$uuid.json" '$j->{days}{days}[0]{p95_bytes} >= 64 << 20 && $j->{days}{series}[0]{window_seconds} == 4'
	json guests.json '$r = (grep { $_->{uuid} eq "'$uuid'" } @{$j->{guests}})[0]{recommendation};
		$r->{status} eq "ok" && $r->{recommended_bytes} > 100 << 20 && @{$r->{why}} >= 2'
	json host.json '$j->{totals}{recommended}{guests} == 1 && $j->{totals}{reclaimable}{bytes} > 0'
}

@test "the schema finds faults" {
	timeout 300 "$WSS_BUILDDIR/tests/unit/make-pages" .
	sed 's/"vcpu_seconds": [0-9.]*/"vcpu_seconds": -1/' guests.json >wrong.json
	fails "$check" "$schema" wrong.json
	sed 's/"uuid"/"uid"/' guests.json >wrong.json
	fails "$check" "$schema" wrong.json
	sed 's/"held_bytes"/"undocumented": 1, "held_bytes"/' guests.json >wrong.json
	fails "$check" "$schema" wrong.json
	sed 's/guests\/1/guests\/2/' guests.json >wrong.json
	fails "$check" "$schema" wrong.json
}

@test "each member of the schema is documented" {
	local member bad=''
	for member in $(/usr/bin/python3 -c '
import json, sys
def names(node):
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for child in node.values():
            yield from names(child)
defs = json.load(open(sys.argv[1]))["$defs"]
del defs["sample"]
print(*sorted(set(names(defs))))' "$schema"); do
		grep -Eq "\`([a-z_]+(\[\])?\.)*$member(\[\])?[.\`]" "$WSS_SRCDIR/docs/http-api.md" || bad+=" $member"
	done
	echo "not in docs/http-api.md:$bad"
	[ -z "$bad" ]
}

@test "answers of a service" {
	command -v curl >/dev/null || skip "needs curl"
	LIBVIRT_DEFAULT_URI=test:///default "$WSS_BUILDDIR/virt-wss" serve --history history.db --listen unix:socket 2>err 3>&- &
	pid=$!
	get() { # PATH FILE
		curl -sSf --max-time 300 --unix-socket socket "http://localhost$1" >"$2" 2>curl.err
	}
	wait_until 300 eval 'get /api/v1/guests guests.json && grep -q recommendation guests.json'
	uuid=$(sed -n 's/.*"uuid": "\([^"]*\)".*/\1/p' guests.json)
	wait_until 300 get "/api/v1/history/$uuid" history.json
	get /api/v1/host host.json
	get /api/v1/trends trends.json
	"$check" "$schema" guests.json history.json host.json trends.json
	json host.json '$j->{guests}{total} == 1 && $j->{guests}{measured} == 0 && $j->{memory_bytes} > 0'
	fails get /api/v1/history/nobody nobody.json
	kill -TERM "$pid"
	wait "$pid" || true
	pid=''
}
