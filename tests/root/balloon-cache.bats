#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon --apply on a guest that depends on its page cache: by its own statistics it
# could do with less memory, and only its disk reads show that it could not.

load balloon-functions.sh

setup_file() {
	root_setup_file sqlite3
	[ -z "$root_missing" ] || return 0
	start_with_balloon web1 "wss.map=16 wss.phases=16:0 wss.file=disk:150 wss.cold=170"
}

setup() {
	root_setup
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	wait_until 60 wss_store --window 1s --max-stall 5s web1
}

size_mib() {
	echo "$((assigned - $(embed_guest_field web1 balloon_bytes) / mib))"
}

reported_since() { # MS-OF-THE-GUEST
	[ "$(embed_guest_field web1 time_ms)" -ge "$1" ]
}

# True if its reports, every 3 s, show no reads.
reads_nothing() {
	local before until_ms
	before=$(embed_guest_field web1 read_bytes)
	until_ms=$(($(embed_guest_field web1 time_ms) + 3000))
	wait_until 20 reported_since $until_ms
	[ "$(embed_guest_field web1 read_bytes)" = "$before" ]
}

@test "a guest that has to read its page cache again grows until it no longer does" {
	reads_nothing
	# Page cache that a window does not see is not counted, even if it is in use.
	apply web1 --minimum 64MiB --headroom 0 --window 2s --period 8s
	wait_until 240 said 'web1: balloon .* -> .*: with less memory the guest reads its disks again'
	least=$((assigned - $(most_taken web1)))
	wait_until 60 reads_nothing
	wait_until 20 said 'web1: with less memory the guest reads its disks again'
	echo "# down to $least MiB, read $(($(embed_guest_field web1 read_bytes) / mib)) MiB, then $(size_mib) MiB" >&3
	[ "$(size_mib)" -gt "$least" ]
	[ "$(size_mib)" -lt "$assigned" ]
	kill -TERM "$apply_pid"
	apply_end
	[ "$status" = 143 ]
	none_left
	wait_until 20 taken_is web1 0
	no_oom web1
}
