#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests plan with a few hosts.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC1091
. "$WSS_SRCDIR/tests/shell/plan-functions.sh"

# Prints a host's file: HOST-BYTES, then NAME,SET,ASSIGNED of each guest, in GiB.
host_file() {
	/usr/bin/python3 - "$@" <<-'EOP'
		import json, sys
		rows = []
		for words in (w.split(',') for w in sys.argv[2:]):
		    rows.append({'domain': words[0], 'uuid': '00000000-0000-4000-8000-%012x' % abs(hash(words[0]) % 16**12),
		                 'status': 'ok', 'recommended_bytes': int(words[1]) << 30,
		                 'assigned_bytes': int(words[2]) << 30})
		print(json.dumps({'schema': 'virt-wss/recommendations/1', 'recommendations': rows,
		                  'host': {'host_bytes': int(sys.argv[1]) << 30}}))
	EOP
}

refuses() { # FILE TEXT: one line that names the file
	run -1 --separate-stderr "$virt_wss" plan "$1"
	[ -z "$output" ]
	echo "$stderr"
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == "virt-wss: error: $1: "*"$2"* ]]
}

@test "moves that wait for each other are broken up by a move aside, or left out and named" {
	fleet 12 200 --seed 32 --fill 0.9 --reporting
	more=(--overcommit 10)
	checked_plan -- fleet/*.json
	[ "$(figure aside_moves)" -gt 0 ]
	[ "$(figure left_out_moves)" = 0 ]
	grep -q '"move aside"' plan.json
	# Too few moves for that: the others still can be carried out.
	local budget=$(($(figure moves) - 3))
	checked_plan --max-moves $budget -- fleet/*.json
	[ "$(figure left_out_moves)" -gt 0 ]
	run -0 --separate-stderr "$virt_wss" plan --overcommit 10 --max-moves $budget fleet/*.json
	[[ $stderr =~ 'left out '[0-9]+' moves that wait for each other, because no host has room to move one aside, or --max-moves allows no more: guest'[0-9]+ ]]
}

says() { # TEXT [OPTION...]: the only line of messages about host*.json, but for those about guests' sizes
	run -0 --separate-stderr "$virt_wss" plan --goal safe "${@:2}" host*.json
	echo "$stderr"
	[ "$(grep -v -- --overcommit <<<"$stderr")" = "virt-wss: warning: $1" ]
}

@test "a host that stays over its limit gets the reason" {
	local stays='1 host stays over its limit'
	host_file 100 web1,60,60 web2,60,60 >host1.json
	says "$stays: there is no other host"
	host_file 100 >host2.json
	says "$stays: --max-moves allows no more moves" --max-moves 0
	echo 'close host2' >constraints
	says "$stays: no other host may take guests" --constraints constraints
	echo 'pin web1 web2' >constraints
	says "$stays: the guests that would have to leave it may not move" --constraints constraints
	host_file 50 db1,1,1 >host2.json
	says "$stays: the guests that could leave it fit on no other host"
	says "$stays: the guests that could leave it fit on no other host" --max-moves 1
	echo 'apart web1 db1' >constraints
	says "$stays, or with guests that must be apart: the guests that could leave it fit on no other host" \
		--constraints constraints
	host_file 100 app1,60,60 app2,60,60 >host3.json
	says '2 hosts stay over their limits: the guests that could leave them fit on no other host'
	host_file 200 >host2.json
	says "$stays: --max-moves allows no more moves" --max-moves 1
	says '2 hosts stay over their limits: --max-moves allows no more moves' --max-moves 0
}

@test "the table shows what to do, and the distance from the bound" {
	host_file 100 web1,20,40 web2,30,40 >host1.json
	host_file 100 db1,30,60 >host2.json
	run -0 "$virt_wss" plan host1.json host2.json
	[[ $output == *'db1 '*' shrink '*' host2 '*'db1 '*' move '*' host2 '*' host1 '* ]]
	[[ $output == *'MEMORY '*'SIZES '*'SIZES-AFTER '*'NEED '*'NEED-AFTER'*'host1 '*' 100 GiB '*' 80 GiB '*' 90 GiB '*' 50 GiB '*' 80 GiB '* ]]
	[[ $output == *'GUESTS'*'USED'*'AFTER'*'BOUND'*'ABOVE'* ]]
	[[ ${lines[-1]} =~ ^' '*3' '+2' '+1' '+1' '+0 ]]
	run -0 "$virt_wss" plan --output csv host1.json host2.json
	[ "${#lines[@]}" -ge 2 ]
	run -0 "$virt_wss" plan --goal safe host1.json host2.json
	[[ $output != *' move '* ]]
}

@test "what guests may take stays within the host's memory, or what --overcommit allows" {
	local ratio
	fleet 14 200 --seed 3
	for ratio in '' 1 1.5 3 0.9; do
		more=(${ratio:+--overcommit "$ratio"})
		checked_plan -- fleet/*.json
		[ "$(figure over_before)" -gt 0 ]
		/usr/bin/python3 - <<-'END'
			import json
			plan = json.load(open('plan.json'))['plan']
			assert sum(h['size_before_bytes'] > h['memory_bytes'] for h in plan['hosts']) > 10
			for h in plan['hosts']:
			    assert h['size_limit_bytes'] == int(h['memory_bytes'] * plan['overcommit'])
			    assert h['size_after_bytes'] <= h['size_limit_bytes']
		END
	done
}

@test "guests that cannot shrink keep what they have, and those without a size count with it" {
	host_file 100 web1,20,70 web2,20,60 >right.json
	shrunk() { # EXPRESSION of the first guest's members: prints the guests that shrink
		/usr/bin/python3 -c 'import json, sys; d = json.load(open("right.json")); d["recommendations"][0].update(eval(sys.argv[1])); json.dump(d, open("host1.json", "w"))' "$1"
		checked_plan -- host1.json >&2
		/usr/bin/python3 -c 'import json; print(*(c["domain"] for c in json.load(open("plan.json"))["changes"]))'
	}
	[ "$(shrunk '{}')" = web1 ]
	[ "$(shrunk '{"configuration": [{"blocks": False}, {"blocks": True}]}')" = web2 ]
	[ "$(shrunk '{"configuration": [{"blocks": False}]}')" = web1 ]
	[ "$(shrunk '{"reclaimable_bytes": 0}')" = web2 ]
	[ "$(shrunk '{"reclaimable_bytes": 1}')" = web1 ]
	# Blocked or not, nothing can be had back from a guest that holds less than its size.
	[ "$(shrunk '{"reclaimable_bytes": 0, "held_bytes": 10 << 30}')" = web1 ]
	[ "$(shrunk '{"state": "paused"}')" = web2 ]
	[ "$(figure unsized_guests)" = 1 ]
	[ "$(shrunk '{"status": "too early"}')" = web2 ]
	[ "$(figure unsized_guests)" = 1 ]
	run -0 --separate-stderr "$virt_wss" plan host1.json
	[[ $stderr == *'1 guest has no recommended size, and counts with the memory that it has: web1'* ]]
}

@test "guests shrink where their hosts are over the limit otherwise" {
	host_file 100 web1,20,60 web2,30,70 >host1.json
	run -0 "$virt_wss" plan host1.json
	[[ $output == *'web1 '*' shrink '*' 20 GiB'* ]]
	[[ $output != *' move'* ]]
}

@test "guests shrink to no less than they need, without QEMU's memory" {
	host_file 100 web1,20,60 web2,50,70 >host1.json
	# web1 needs 30 GiB in two hours, 28 in another one; QEMU takes 4 for each guest.
	/usr/bin/python3 - <<-'EOP'
		import json
		data = json.load(open('host1.json'))
		week = [10 << 30] * 168
		week[5] = week[6] = 30 << 30
		week[7] = 28 << 30
		data['recommendations'][0]['week'] = {'set_bytes': week}
		data['host']['overhead_bytes'] = 8 << 30
		json.dump(data, open('host1.json', 'w'))
	EOP
	shrunk() { # OPTION...: prints the need of web1 and its size
		checked_plan -- host1.json >/dev/null
		"$virt_wss" plan --output csv --columns domain,need_bytes,shrink_to_bytes "$@" host1.json |
			grep ^web1 | tr -d '\r'
	}
	[ "$(shrunk)" = "web1,$((34 << 30)),$((30 << 30))" ]
	sed -i "s/$((30 << 30))/$((29 << 30))/" plan.json
	run ! "$tools/plan-check" plan.json host1.json
	[[ $output == *'shrinks below its need'* ]]
	more=(--risk 1.2)
	[ "$(shrunk --risk 1.2)" = "web1,$((34 << 30)),$((28 << 30))" ]
	[ "$(shrunk --risk 2)" = "web1,$((34 << 30)),$((20 << 30))" ]
}

@test "the need of a guest is shown as it counts for its host" {
	host_file 100 web1,20,95 | sed "s/$((20 << 30))/$(((20 << 30) + 5))/" >host1.json
	"$virt_wss" plan --goal safe --safe-limit 50 --output json host1.json >plan.json
	cat plan.json
	/usr/bin/python3 -c '
import json
plan = json.load(open("plan.json"))
assert plan["changes"][0]["need_bytes"] == plan["plan"]["hosts"][0]["need_before_bytes"] == (20 << 30) + (1 << 20)'
}

@test "no guest moves between a host of libvirt and one of Proxmox VE" {
	host_file 100 web1,20,40 | sed 's/"host_bytes"/"inventory": "libvirt", &/' >host1.json
	host_file 100 db1,20,40 | sed 's/"host_bytes"/"inventory": "proxmox", &/' >host2.json
	run -0 --separate-stderr "$virt_wss" plan host1.json host2.json
	[[ $output != *' move'* ]]
	[[ $stderr == *'1 host without libvirt is left alone, because no guest can move between it and the others: host2'* ]]
	# Among hosts of one inventory they do.
	sed -i 's/"libvirt"/"proxmox"/' host1.json
	run -0 --separate-stderr "$virt_wss" plan host1.json host2.json
	[[ $output == *' move'* ]]
	[[ $stderr != *'left alone'* ]]
}

@test "guests that opted out, and hosts with guests without any figure, are left alone" {
	host_file 100 web1,20,40 >host1.json
	host_file 100 db1,20,40 | sed 's/"ok"/"opted out"/' >host2.json
	checked_plan -- host1.json host2.json
	[ "$(figure hosts_after)" = 1 ]
	grep -q '"web1"' plan.json
	printf '{"schema": "virt-wss/inventory/1", "profiles": [{"domain": "new1"}]}' >host2.json
	run -0 --separate-stderr "$virt_wss" plan --host-memory 100GiB host1.json host2.json
	[[ $output != *' move'* ]]
	[[ $stderr == *'1 guest was never measured, stays, and its host gets no other guest: new1'* ]]
}

@test "a guest that is shut off needs nothing, and one that is paused what it has" {
	# Both hosts have one that is off; what needs memory on the second fits on the first.
	host_file 100 web1,20,40 off1,30,40 | sed 's/"domain": "off1"/&, "state": "shut off"/' >host1.json
	host_file 100 db1,20,40 off2,30,90 held2,30,40 |
		sed 's/"domain": "off2"/&, "state": "shut off"/; s/"domain": "held2"/&, "state": "paused"/' >host2.json
	run -0 --separate-stderr "$virt_wss" plan --output json host1.json host2.json
	printf '%s\n' "$output" >plan.json
	echo "$stderr"
	[ "$(figure hosts_after)" = 1 ]
	[[ $stderr == *'2 guests are shut off, need nothing and stay: off1, off2'* ]]
	/usr/bin/python3 -c 'import json; print(*sorted(r["domain"] for r in json.load(open("plan.json"))["changes"] if "to" in r))' >moved
	cat moved
	grep -qxE 'db1 held2|web1' moved
	# Without its balloon's driver running, it cannot shrink.
	/usr/bin/python3 -c 'import json; print(*(r["domain"] for r in json.load(open("plan.json"))["changes"] if "shrink_to_bytes" in r))' >shrunk
	[[ $(<shrunk) != *held2* && $(<shrunk) != *off* ]]
}

@test "guests with too few windows count with all their memory" {
	host_file 100 web1,20,40 >host1.json
	host_file 100 db1,20,80 | sed 's/"ok"/"too early", "peak_bytes": 1000/' >host2.json
	checked_plan -- host1.json host2.json
	[ "$(figure hosts_after)" = 2 ]
	sed -i 's/"too early"/"ok"/' host2.json
	checked_plan -- host1.json host2.json
	[ "$(figure hosts_after)" = 1 ]
}

@test "the JSON of list will do" {
	local name
	for name in host1 host2; do
		echo '{"schema": "virt-wss/inventory/1", "profiles": [{"domain": "'$name'-web", "peak_bytes": 1073741824}]}' >$name.json
	done
	run "$virt_wss" plan --host-memory 8GiB host1.json host2.json
	[ "$status" = 0 ]
	[[ $output == *' move '* ]]
	run -1 "$virt_wss" plan host1.json host2.json
	[[ $output == *'host host1: its memory is unknown: '*'--host-memory'* ]]
}

@test "a broken file gets one line that says where, and what would be right" {
	local right='{"domain": "web1", "recommended_bytes": 1000, "assigned_bytes": 2000'
	echo 'nonsense' >a.json
	refuses a.json 'not JSON'
	echo '[]' >a.json
	refuses a.json 'an array instead of an object'
	echo '{}' >a.json
	refuses a.json 'no "schema": give the JSON of recommend or list'
	echo '{"schema": "virt-wss/samples/1"}' >a.json
	refuses a.json 'give the JSON of recommend or list'
	echo '{"schema": "virt-wss/vms/1", "vms": [{"name": "web1"}]}' >a.json
	refuses a.json '"virt-wss/vms/1": a list of guests without libvirt has no sizes that they need: give the JSON of recommend, which'
	local line='{"schema": "virt-wss/recommendations/1", "recommendations": '
	echo "${line}[$right}, 7]}" >a.json
	refuses a.json 'guest 2: an integer instead of an object'
	echo "${line}[{\"domain\": \"web1\", \"recommended_bytes\": \"7\"}]}" >a.json
	refuses a.json 'guest web1: "recommended_bytes" has the wrong type: a string instead of a number'
	echo "${line}[{\"domain\": \"web1\", \"recommended_bytes\": -7}]}" >a.json
	refuses a.json 'guest web1: "recommended_bytes" is out of range'
	echo "${line}[{\"domain\": \"web1\", \"recommended_bytes\": 9000000000000000000}]}" >a.json
	refuses a.json 'guest web1: 9000000000000000000 bytes of memory: at most 1 EiB'
	echo "${line}[$right, \"state\": \"running forever\"}]}" >a.json
	refuses a.json 'guest web1: "state" is "running forever" instead of "running", "paused" or "shut off"'
	echo "${line}[$right, \"uuid\": \"u-1\"}, ${right/web1/web2}, \"uuid\": \"u-1\"}]}" >a.json
	run -1 "$virt_wss" plan a.json
	[ "$output" = "virt-wss: error: host a: its guests web1 and web2 have the same UUID, u-1" ]
	: >a.json
	refuses a.json 'the file is empty: give the JSON of recommend or list'
	echo "${line}[{}]}" >a.json
	refuses a.json 'guest 1: no "domain"'
	echo "${line}[$right, \"week\": {\"set_bytes\": [1, 2]}}]}" >a.json
	refuses a.json 'guest web1: "set_bytes" has 2 hours instead of 168'
	echo "${line}[$right, \"week\": {\"set_bytes\": [null, \"x\"]}}]}" >a.json
	refuses a.json 'guest web1: "set_bytes", hour 1: a string instead of a number of bytes or null'
	echo "${line}[$right, \"week\": {\"set_bytes\": [$(printf '1,%.0s' {1..168})1]}}]}" >a.json
	refuses a.json 'more than 168 hours'
	printf '\n%70000000s' '' >a.json
	refuses a.json 'longer than 67108864 bytes'
	mkdir b.json
	refuses b.json 'directory'
	mkfifo c.json
	refuses c.json 'FIFO'
	refuses missing.json ''
}

@test "two files of one host are refused, and a guest on two hosts stays" {
	mkdir a
	host_file 100 web1,20,40 >host1.json
	cp host1.json a/
	run -1 "$virt_wss" plan host1.json a/host1.json
	[[ $output == *'host host1 was given twice'* ]]
	cp host1.json host2.json
	run -0 --separate-stderr "$virt_wss" plan host1.json host2.json
	[[ $stderr == *'1 guest is on two hosts, as in a migration, and stays: web1'* ]]
	[[ $stderr == *'nothing to do: every guest can stay as it is'* ]]
	[[ $output != *' move'* ]]
}

@test "a broken constraint gets one line with file and line" {
	host_file 100 web1,20,40 web2,20,40 >host1.json
	local constraint text
	while IFS='|' read -r constraint text; do
		printf '# first\n%s\n' "$constraint" >constraints
		run -1 --separate-stderr "$virt_wss" plan --constraints constraints host1.json
		echo "$stderr"
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *"constraints: line 2: $text"* ]]
	done <<-'EOF2'
		pins web1|'pins' is not a constraint: pin, apart, keep, close or memory
		pin|pin: needs the name or UUID of a guest
		pin web9|no guest has the name or UUID 'web9'
		apart web1|apart: needs two guests or more
		apart web1 web2|apart: 2 guests cannot each be alone on 1 host
		keep|keep: needs the name of a host
		close host9|no host has the name 'host9'
		memory host1|memory: needs the name of a host and a size
		memory host1 12|memory: 
		memory host1 12GiB more|memory: 'more' is one word too many
	EOF2
}

@test "usage errors" {
	local ratio
	run -2 "$virt_wss" plan
	[[ $output == *'missing FILE'* ]]
	run -2 "$virt_wss" plan --goal big x.json
	[[ $output == *"'big' is not empty or safe"* ]]
	run -2 "$virt_wss" plan --risk 60 x.json
	run -2 "$virt_wss" plan --safe-limit 0 x.json
	run -2 "$virt_wss" plan --max-moves some x.json
	for ratio in 0 101 1.5x 1..5 -1 ''; do
		run -2 "$virt_wss" plan --overcommit "$ratio" x.json
		[[ $output == *"--overcommit: '$ratio' is not a ratio from 0.1 to 100, such as 1.5"* ]]
	done
	run -2 "$virt_wss" plan -c test:///default x.json
}
