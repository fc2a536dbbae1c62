#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests plan with invented fleets, up to 10,000 guests.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC1091
. "$WSS_SRCDIR/tests/shell/plan-functions.sh"

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

# The second program: every sum and every step of each plan, with all the figures that a file may lack.
@test "several hundred small fleets: sums and steps of each plan are right" {
	run -0 "$tools/plan-fuzz" "$virt_wss" 300 5
	echo "$output"
	[[ $output =~ ^move=[0-9]{3}' 'move-aside=[1-9][0-9]*' 'shrink=[0-9]{3}' 'over=[1-9][0-9]+$ ]]
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
