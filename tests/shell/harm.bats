#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# scripts/harm-on-my-host, on a service that is invented: "make bench-harm" runs it on guests.

setup() {
	harm=$WSS_SRCDIR/scripts/harm-on-my-host
	cd "$BATS_TEST_TMPDIR" || return 1
	cat >service <<-'END'
		#!/usr/bin/python3
		import json, os, socket, sys, time
		options = dict(zip(sys.argv[2:], sys.argv[3:]))
		server = socket.socket(socket.AF_UNIX)
		server.bind(options["--listen"].removeprefix("unix:"))
		server.listen()
		if os.environ.get("ENDS"):
		    print("no such budget")
		    sys.exit(2)
		windows = 0
		while True:
		    client = server.accept()[0]
		    client.recv(1000)
		    held = os.path.exists(options["--hold-file"])
		    windows += not held
		    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
		    cost = {"arm_seconds": 0.003, "predicted_stall_seconds": 0.002, "faults": 90, "predicted_faults": 100}
		    guest = {"domain": "web1", "uuid": "6e1b2f3a-0000-4000-8000-00000000abcd", "state": "waiting", "vcpus": 2,
		             "kind": "fine", "spent": {"vcpu_seconds": windows * 0.02},
		             "sample": {"time": str(windows), "cost": cost}}
		    page = json.dumps({"time": stamp, "guests": [guest]}).encode()
		    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + page)
		    client.close()
	END
	chmod +x service
	# Nine of ten operations take 1 us, one takes 5, or 9 while the service is not held; fewer then.
	cat >probe <<-'END'
		while sleep 0.1; do
			if [ -e virt-wss-harm.*/hold ]; then echo 1000:90,5000:10; else echo 1000:72,9000:8; fi
		done
	END
	export TMPDIR=$PWD
}

# How many windows and operations there were depends on the machine, what is made of them does not: each page has a
# window, of 20 ms on two vCPUs, and what is lost is that of a running run against the held one beside it.
shares_add_up='
import json, statistics, sys
guest = json.load(sys.stdin)["guests"]["web1"]
runs, result = guest["runs"], guest["result"]
held, running = ([run for run in runs if run["held"] == which] for which in (True, False))
assert len(held) == len(running) == 2, runs
windows = result["charged_share"] * sum(run["seconds"] for run in running) / 0.01
assert abs(windows - round(windows)) < 1e-6 and 1 <= round(windows) <= result["windows"], windows
lost = 1 - statistics.median(b["operations"] / a["operations"] for a, b in zip(held, running))
assert abs(lost - result["lost_share"]) < 1e-6, lost
'

all_have_operations='
import json, sys
sys.exit(not all("operations" in run for run in json.load(sys.stdin)["guests"]["web1"]["runs"]))
'

measure() { # OPTION...
	"$harm" --virt-wss ./service --pairs 2 --seconds "${seconds:-2.2}" --settle 0 --probe web1='sh probe' "$@" web1 -- --budget 1%
}

@test "what a guest loses while it is measured is told from what it loses otherwise" {
	# In longer and longer runs, until the probe has got a processor in each of them.
	for seconds in 2.2 11 55; do
		run measure --output harm.tar.gz
		[ "$status" = 0 ]
		! tar xOzf harm.tar.gz harm.json | /usr/bin/python3 -c "$all_have_operations" || break
	done
	grep -qE '^  latency, 99.9 % +us +5[.]00 +5[.]00 to 5[.]00 +9[.]00 +1[.]800$' <<<"$output"
	grep -q '^  99.9 % of the latencies: 80% above the held runs$' <<<"$output"
	grep -q '^  stall of a window: 3.00 ms, 1.50 of what was predicted (1.50 to 1.50)$' <<<"$output"
	grep -q '^  faults of a window: 90, 0.90 of what was predicted' <<<"$output"
	grep -qE 'charged to the guest: [0-9.]+% of its vCPUs. time; operations lost -?[0-9.]+%$' <<<"$output"
	tar xOzf harm.tar.gz harm.json | /usr/bin/python3 -c "$shares_add_up"
	refute_left
}

# Nothing of it is left, nor of its service and probes, which run here.
refute_left() {
	local cwd
	[ -z "$(compgen -G 'virt-wss-harm.*')" ]
	for cwd in /proc/[0-9]*/cwd; do
		[ "$(readlink "$cwd")" != "$PWD" ] || ! tr '\0' ' ' <"${cwd%cwd}cmdline" | grep -qE '^(sh probe|[^ ]*python3)' || return 1
	done
}

@test "what cannot be measured is said in a line" {
	ENDS=1 run measure
	[ "$status" = 1 ]
	[[ $output == *"the service ended:"*"no such budget"* ]]
	run "$harm" --virt-wss ./service --probe db1=true web1
	[ "$status" = 2 ]
	[[ $output == *"--probe db1=true: it is GUEST=COMMAND"* ]]
	refute_left
}
