#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the service predicts of its windows' cost, once a few have been measured, against what they cost under real KVM.

bats_require_minimum_version 1.5.0
load "functions.sh"

# Prints the guest, and the stall and the faults as measured, of what was predicted, of each of so many windows of these kinds.
windows_of() { # N KIND GUEST [KIND GUEST...]
	timeout 150 python3 - "$BATS_TEST_TMPDIR/http" "$@" <<-'END'
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
		        if name in kinds and guest.get("kind") == kinds[name] and "cost" in guest.get("sample", {}):
		            cost = guest["sample"]["cost"]
		            seen[name][guest["sample"]["time"]] = (cost["arm_seconds"] / cost["predicted_stall_seconds"],
		                                                   cost["faults"] / cost["predicted_faults"])
		for name in seen:
		    for time in sorted(seen[name])[:count]:
		        print(name, "%.2f %.2f" % seen[name][time])
	END
}

# Checks both medians of five windows of each guest, after the first three. A busy machine only adds to a stall: the best
# of three fives counts.
predicted_well() { # KIND GUEST [KIND GUEST...]
	local i
	for i in 1 2 3; do
		windows_of 8 "$@" >"$BATS_TEST_TMPDIR/windows" || return 1
		cat "$BATS_TEST_TMPDIR/windows"
		medians_are_near "$@" && return 0
	done
	return 1
}

medians_are_near() { # KIND GUEST [KIND GUEST...]
	local figures
	while [ $# -gt 0 ]; do
		figures=$(grep "^$2 " "$BATS_TEST_TMPDIR/windows" | tail -n +4)
		median_is_near "$(cut -d' ' -f2 <<<"$figures")" || return 1
		median_is_near "$(cut -d' ' -f3 <<<"$figures")" || return 1
		shift 2
	done
}

median_is_near() { # RATIO...
	sort -n <<<"$1" | awk '{ ratio[NR] = $1 } END { exit !(NR == 5 && ratio[3] >= 0.8 && ratio[3] <= 1.25) }'
}

@test "small pages, huge pages by 4 KiB and memfd: what a window costs is predicted within a fifth" {
	# Few pages, which a guest touches within a window also where it seldom gets a processor.
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
