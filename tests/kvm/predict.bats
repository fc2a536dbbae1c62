#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the service predicts of its windows' cost, once a few have been measured, against what they cost under real KVM: their
# faults. How near the predicted stall comes depends on what else the machine does; it is printed.

bats_require_minimum_version 1.5.0
load "functions.sh"

# Prints the guest, and the faults and the stall as measured, of what was predicted, of each of so many windows of these kinds in
# which the guest has touched all of its pages.
windows_of() { # N KIND GUEST [KIND GUEST...]
	timeout 600 python3 - "$BATS_TEST_TMPDIR/http" "$@" <<-'END'
		import json, socket, sys, time
		path, count, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
		kinds = dict(zip(words[1::2], words[::2]))
		seen = {name: {} for name in kinds}
		while min(map(len, seen.values())) < count:
		    time.sleep(0.1)
		    with socket.socket(socket.AF_UNIX) as client:
		        client.connect(path)
		        client.sendall(b"GET /api/v1/guests HTTP/1.0\r\n\r\n")
		        page = json.loads(client.makefile("rb").read().split(b"\r\n\r\n", 1)[1])
		    for guest in page["guests"]:
		        name = guest["domain"]
		        sample = guest.get("sample", {})
		        if name in kinds and guest.get("kind") == kinds[name] and "cost" in sample and sample["wss_bytes"] >= 3000 * 4096:
		            cost = sample["cost"]
		            seen[name][sample["time"]] = (cost["faults"] / cost["predicted_faults"],
		                                          cost["arm_seconds"] / cost["predicted_stall_seconds"])
		for name in seen:
		    for time in sorted(seen[name])[:count]:
		        print(name, "%.2f %.2f" % seen[name][time])
	END
}

# Checks the median of five windows of each guest, after the first three.
predicted_well() { # KIND GUEST [KIND GUEST...]
	windows_of 8 "$@" >"$BATS_TEST_TMPDIR/windows"
	sed 's/^/# /' "$BATS_TEST_TMPDIR/windows" >&3
	while [ $# -gt 0 ]; do
		grep "^$2 " "$BATS_TEST_TMPDIR/windows" | tail -n +4 | cut -d' ' -f2 | sort -n |
			awk '{ ratio[NR] = $1 } END { exit !(NR == 5 && ratio[3] >= 0.8 && ratio[3] <= 1.25) }'
		shift 2
	done
}

@test "small pages, huge pages by 4 KiB and memfd: the faults of a window are predicted within a fifth" {
	local touch='pages=3000 order=random access=modify rate=50000'
	kvm_guest_start huge memory=128 backing=anonymous touch="$touch"
	kvm_guest_start memfd memory=128 touch="$touch"
	kvm_guest_start small memory=128 backing=small touch="$touch"
	refute grep -q 'AnonHugePages: *[1-9]' "/proc/$(embed_guest_pid small)/smaps_rollup"
	grep -q 'AnonHugePages: *[1-9]' "/proc/$(embed_guest_pid huge)/smaps_rollup"
	"$virt_wss" serve --no-store --no-publish --listen "unix:$BATS_TEST_TMPDIR/http" --period 2s --window 1s --boot 1s \
		--max-pressure 0 --budget 100% --max-stall 10s 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wss_pid=$!
	wait_until 30 test -S "$BATS_TEST_TMPDIR/http"
	predicted_well coarse small coarse memfd fine huge
	kvm_guest_runs huge
	kill -TERM "$wss_pid"
	wait "$wss_pid" || true
	wss_pid=''
}
