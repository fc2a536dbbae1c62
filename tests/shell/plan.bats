#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests plan with invented fleets. tests/tools/plan-check checks each plan with arithmetic of its own.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	virt_wss=$WSS_BUILDDIR/virt-wss
	tools=$WSS_SRCDIR/tests/tools
	more=()
}

fleet() { # HOSTS GUESTS [OPTIONS]
	bound=$("$tools/plan-fleet" fleet "$@")
}

# Plans and checks; the options are those that both take, the array "more" those that only plan does.
checked_plan() { # [OPTIONS] -- FILE...
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$virt_wss" plan --output json "${options[@]}" "${more[@]}" "$@" >plan.json
	"$tools/plan-check" plan.json "${options[@]}" "$@"
}

figure() { # KEY of the plan
	/usr/bin/python3 -c 'import json, sys; print(json.load(open("plan.json"))["plan"][sys.argv[1]])' "$1"
}

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

@test "plans obey every constraint" {
	local seed ratio
	for seed in {1..8}; do
		rm -rf fleet
		fleet 12 200 --seed "$seed" --fill 0.6
		ratio=$((1 + seed % 2 * 2))
		more=(--overcommit "$ratio")
		printf '%s\n' '# of the operator' 'pin guest1 guest2 guest3' 'apart guest4 guest5 guest6' \
			'apart guest7 guest8  # two' 'keep host3' 'close host4' >constraints
		checked_plan -- fleet/*.json
		[ "$(figure over_after)" = 0 ]
		checked_plan --constraints constraints -- fleet/*.json
		checked_plan --constraints constraints --max-moves 15 -- fleet/*.json
		more=(--overcommit "$ratio" --goal safe --safe-limit 60)
		checked_plan --constraints constraints -- fleet/*.json
		more=(--overcommit "$ratio" --risk 3)
		checked_plan --constraints constraints -- fleet/*.json
		more=()
	done
}

@test "the check detects plans that break a constraint" {
	fleet 12 200 --fill 0.7
	checked_plan -- fleet/*.json
	cp plan.json right.json
	# All guests move to one host.
	sed -E 's/"to": *"[^"]*"/"to":"host1"/g' right.json >plan.json
	run ! "$tools/plan-check" plan.json fleet/*.json
	[[ $output == *'host host1 then needs '* ]]
	# A pinned guest moves.
	echo "pin $(sed -nE 's/.*"domain": *"(guest[0-9]+)".*"to".*/\1/p' right.json | head -n 1)" >constraints
	run ! "$tools/plan-check" right.json --constraints constraints fleet/*.json
	[[ $output == *'moves, but must stay'* ]]
	run ! "$tools/plan-check" right.json --max-moves 1 fleet/*.json
	sed -E 's/"hosts_after": *[0-9]+/"hosts_after":1/' right.json >plan.json
	run ! "$tools/plan-check" plan.json fleet/*.json
	[[ $output == *'hosts_after is '* ]]
}

# As if somebody had carried out the moves in another order.
@test "the check detects an order that brings a host over its limit on the way" {
	fleet 40 800 --fill 0.9
	checked_plan -- fleet/*.json
	cp plan.json right.json
	/usr/bin/python3 - <<-'END'
		import json
		plan = json.load(open('right.json'))
		moves = [c for c in plan['changes'] if 'to' in c]
		order = [c for c in plan['changes'] if 'to' not in c] + moves[::-1]
		for step, change in enumerate(order, 1):
		    change['step'] = step
		plan['changes'] = order
		json.dump(plan, open('plan.json', 'w'))
	END
	run ! "$tools/plan-check" plan.json fleet/*.json
	grep -qE '^step [0-9]+: host host[0-9]+ then needs ' <<<"$output"
	# The table has the moves in their order, too.
	run -0 "$virt_wss" plan --output csv fleet/*.json
	[ "$(awk -f "$WSS_SRCDIR/scripts/csv-field.awk" -v name=step <<<"$output" | paste -sd, | cut -c1-8)" = 1,2,3,4, ]
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

# Nine of the ten hosts over their limits need one move, the last one two.
@test "hosts over their limits take few moves, and a budget repairs as many of them as possible" {
	local budget
	more=(--goal safe --overcommit 10)
	fleet 60 400 --seed 5 --reporting
	checked_plan -- fleet/*.json
	[ "$(figure over_before)" = 10 ]
	[ "$(figure over_after)" = 0 ]
	[ "$(figure moves)" -le 11 ]
	[ "$(figure copy_bytes)" -le $((160 << 30)) ]
	for budget in 1 5 9; do
		checked_plan --max-moves $budget -- fleet/*.json
		[ "$(figure over_after)" = $((10 - budget)) ]
		[ "$(figure moves)" = $budget ]
	done
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

@test "10,000 guests on 500 hosts in memory, close to the bound and far from packing by peaks" {
	local after peaks
	fleet 500 10000 --reporting
	# SIGXCPU ends what hangs.
	(ulimit -t 300 && exec /usr/bin/time -f %M -o memory "$virt_wss" plan --overcommit 10 --output json fleet/*.json >plan.json)
	"$tools/plan-check" plan.json fleet/*.json
	[ "$(cat memory)" -lt $((512 * 1024)) ]
	after=$(figure hosts_after)
	[ $((after * 100)) -le $((bound * 105)) ]
	fleet 500 10000 --peaks --reporting
	"$virt_wss" plan --overcommit 10 --output json fleet/*.json >plan.json
	peaks=$(figure hosts_after)
	echo "$after hosts, bound $bound, by peaks $peaks"
	[ $((peaks * 100)) -ge $((after * 115)) ]
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

# The second program: every sum and every step of each plan, with all the figures that a file may lack.
@test "several hundred small fleets: sums and steps of each plan are right" {
	run -0 "$tools/plan-fuzz" "$virt_wss" 300 5
	echo "$output"
	[[ $output =~ ^move=[0-9]{3}' 'move-aside=[1-9][0-9]*' 'shrink=[0-9]{3}' 'over=[1-9][0-9]+$ ]]
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

@test "the picture shows the hosts before and after" {
	command -v chromium >/dev/null || skip "no chromium"
	local width scheme file
	fleet 12 200 --fill 0.8
	"$virt_wss" plan --safe-limit 80 --plot few.svg fleet/*.json >/dev/null
	rm -r fleet
	run ! grep -qE 'risk|class="s3"' few.svg
	fleet 14 200 --fill 0.8 --reporting
	"$virt_wss" plan --overcommit 4 --risk 20 --plot risk.svg fleet/*.json >/dev/null
	grep -q '>limit of that: overcommit 4<' risk.svg
	grep -q '; risk 20 %; .* no plan needs fewer than [0-9]*<' risk.svg
	grep -q 'over the limit in no more hours than the risk allows' risk.svg
	# Bars of hosts in that state, besides the key.
	[ "$(grep -c 'rect class="s3"' risk.svg)" -gt 2 ]
	rm -r fleet
	fleet 60 500
	"$virt_wss" plan --plot many.svg fleet/*.json >/dev/null
	for file in few risk many; do
		while read -r width scheme; do
			"$tools/svg-check" $file.svg "$width" "$scheme" </dev/null >$file.has || { cat $file.has; false; }
		done <<-'EOF2'
			800 light
			1600 dark
		EOF2
	done
	grep -q '>Before: 12 hosts in use<' few.svg
	grep -q '>host7<' few.svg
	run ! grep -q '>host7<' many.svg
	# A mark for what the guests of each host in use may take, and a line for what they may, before and after.
	[ "$(grep -c 'line class="curve s2"' few.svg)" -gt 22 ]
	[ "$(grep -c 'line class="mark"' few.svg)" -ge 2 ]
	# A bar for each host in use, before and after.
	[ "$(grep -c 'rect class="s[01]" ' many.svg)" -ge $((60 + bound)) ]
	run -2 "$virt_wss" plan --plot - fleet/host1.json
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
