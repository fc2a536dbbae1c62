#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests scripts/check on invented tiers: leftovers of a test are failures, are named,
# and are removed.

load functions.sh

setup() {
	dir=$BATS_TEST_TMPDIR
	unset WSS_CHECK_ID
	: >"$dir/pids"
	marker=wss-check-bats.$BATS_TEST_NUMBER.$$
	mkdir "$dir/build"
	printf '.PHONY: check-clean check-leaky check-quick\ncheck-clean check-leaky check-quick:\n\t@sh ./$@\n' >"$dir/build/Makefile"
	for tier in clean leaky quick; do
		printf 'printf ":tier: %%s\\n:test-result: PASS it\\n" "$WSS_TIER" >test-%s.trs\n' $tier >"$dir/build/check-$tier"
	done
}

teardown() {
	! runs || runs | xargs kill -KILL
}

check() { # TIER: status, out
	status=0
	TMPDIR=/tmp timeout -k 5 500 "$WSS_SRCDIR/scripts/check" "$dir/build" "$1" \
		>"$dir/out" 2>&1 3>&- || status=$?
	out=$(cat "$dir/out")
	printf '%s\n' "$out"
}

# Counts processes with the marker on their command line, once each has reported.
runs() {
	local pid
	while read -r pid; do
		! grep -qsF "$marker" "/proc/$pid/cmdline" || echo "$pid"
	done <"$dir/pids" | grep .
}

@test "a check that leaves nothing behind passes" {
	check clean
	[ "$status" = 0 ]
	[[ $out == *"1 passed, 0 failed" ]]
}

# The tiers of a group meet, or wait for each other in vain.
@test "tiers run at the same time or in turn, as the group says" {
	for tier in quick leaky; do
		printf 'echo >met.%s; i=0; until [ -e met.quick ] && [ -e met.leaky ]; do i=$((i+1)); [ $i -lt ${MEET_WAITS:-3000} ] || exit 1; sleep 0.1; done\n' \
			$tier >>"$dir/build/check-$tier"
	done
	echo '[ -e met.quick ] || exit 1' >>"$dir/build/check-clean"
	check quick,clean+leaky
	[ "$status" = 0 ]
	[[ $out == *"3 passed, 0 failed" ]]
	rm "$dir/build"/met.*
	MEET_WAITS=3 check clean,quick
	[ "$status" = 1 ]
	[[ $out == *"check-clean failed"* ]]
}

@test "a tier that only builds has no tests, and fails if a build does" {
	printf '.PHONY: check-builds\ncheck-builds:\n\t@sh ./$@\n' >>"$dir/build/Makefile"
	echo 'echo built >it' >"$dir/build/check-builds"
	check builds
	[ "$status" = 0 ]
	[[ $out == *"1 passed, 0 failed" ]]
	echo 'echo the linker is missing; exit 1' >"$dir/build/check-builds"
	check builds
	[ "$status" = 1 ]
	[[ $out == *"check-builds failed"*"the linker is missing"*"0 passed, 1 failed" ]]
}

@test "the summary says that no test of real KVM could run" {
	local results=$dir/build/tests/kvm/measure.trs
	mkdir -p "${results%/*}"
	printf '.PHONY: check-kvm\ncheck-kvm:\n\t@sh ./$@\n' >>"$dir/build/Makefile"
	echo "cp results $results" >"$dir/build/check-kvm"
	printf ':tier: kvm\n:test-result: SKIP one: no KVM\n' >"$dir/build/results"
	echo ':test-result: SKIP two: no KVM' >>"$dir/build/results"
	check kvm
	[ "$status" = 0 ]
	[[ $out == *$'\nno real KVM here: 2 tests not run\n'*"0 passed, 0 failed, 2 skipped" ]]
	echo ':test-result: PASS three' >>"$dir/build/results"
	check kvm
	[ "$status" = 0 ]
	[[ $out != *"no real KVM"* ]]
}

@test "a tier that is killed before its end is a failure" {
	# Its parent is make, whose parent runs the tier.
	echo 'kill -KILL $(ps -o ppid= -p $PPID)' >>"$dir/build/check-quick"
	check quick
	[ "$status" = 1 ]
	[[ $out == *"was not run to its end"*"1 passed, 1 failed" ]]
}

@test "a signal ends what runs at the same time" {
	for tier in quick leaky; do
		printf 'echo $$ >>%s; : %s; while :; do sleep 0.2; done\n' "$dir/pids" "$marker" >"$dir/build/check-$tier"
	done
	TMPDIR=/tmp "$WSS_SRCDIR/scripts/check" "$dir/build" quick+leaky >/dev/null 2>&1 3>&- &
	pid=$!
	wait_until 300 eval '[ "$(wc -l <"$dir/pids")" = 2 ]'
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ "$status" = 143 ]
	while read -r pid; do
		[ ! -d "/proc/$pid" ] || exit 1
	done <"$dir/pids"
}

# Writes a result and a log for each program of ROOT_TESTS, or else of PROGRAMS.
flaky() { # CONDITION-THAT-PASSES PROGRAMS
	printf '.PHONY: check-root\ncheck-root:\n\t@sh ./$@ "$(ROOT_TESTS)"\n' >>"$dir/build/Makefile"
	cat >"$dir/build/check-root" <<-EOF
		mkdir -p tests/root
		for program in \${1:-$2}; do
			program=\${program%.bats}
			echo "\$program" >>$dir/ran
			if $1; then kind=PASS; else kind=FAIL result=1; fi
			printf ':tier: root\n:seconds: 7 5\n:test-result: %s it\n' \$kind >\$program.trs
			printf 'not ok 1 it\n# where it broke\n' >\$program.log
		done
		exit \${result-0}
	EOF
}

@test "a program that fails once runs again, alone, and is named as unsteady with its first output" {
	flaky '[ $program != tests/root/qmp ] || [ "$(grep -c qmp '"$dir/ran"')" = 2 ]' 'tests/root/qmp.bats tests/root/top.bats'
	check root
	[ "$status" = 0 ]
	[[ $out == *"FAIL tests/root/qmp: it"*"again"*"unsteady: 1, "*"root tests/root/qmp: it"*"# where it broke"*"2 passed, 0 failed" ]]
	[ "$(sort "$dir/ran" | uniq -c | tr -s ' \n' ' ')" = ' 2 tests/root/qmp 1 tests/root/top ' ]
	grep -q '^root tests/root/qmp: it$' "$dir/build/log/unsteady"
	# The next run begins with an empty list.
	check clean
	[ ! -s "$dir/build/log/unsteady" ]
}

@test "a program that fails twice is a failure, beside one that fails once" {
	flaky '[ $program = tests/root/top ] || { [ $program = tests/root/qmp ] && [ "$(grep -c qmp '"$dir/ran"')" = 2 ]; }' \
		'tests/root/qmp.bats tests/root/ends.bats tests/root/top.bats'
	check root
	[ "$status" = 1 ]
	[[ $out == *"again"*"unsteady: 1, "*"2 passed, 1 failed" ]]
	[[ $out != *"root tests/root/ends: it"* ]]
	[ "$(sort "$dir/ran" | uniq -c | tr -s ' \n' ' ')" = ' 2 tests/root/ends 2 tests/root/qmp 1 tests/root/top ' ]
}

@test "five programs that fail are not run again" {
	flaky false "$(printf 'tests/root/%s ' a b c d e)"
	check root
	[ "$status" = 1 ]
	[[ $out == *"0 passed, 5 failed" ]]
	[[ $out != *again* ]]
	[ "$(wc -l <"$dir/ran")" = 5 ]
}

@test "each tier and the slowest programs are listed with their time" {
	flaky true tests/root/qmp.bats
	check root
	[ "$status" = 0 ]
	[[ $out =~ root\ +[0-9]+\ +[0-9]+\ +1\ passed.*all\ +[0-9]+\ +[0-9]+\ processes.*7\ +5\ +root\ tests/root/qmp ]]
}

@test "a check that hangs ends at its deadline, and says what ran" {
	flaky true tests/root/qmp.bats
	cat >>"$dir/build/check-root" <<-EOF
		rm tests/root/qmp.trs
		echo \$\$ >>$dir/pids
		: $marker
		while :; do sleep 0.2; done
	EOF
	sed -i '/^exit/d' "$dir/build/check-root"
	WSS_CHECK_DEADLINE=3 WSS_CHECK_SETTLE=1 check root
	[ "$status" = 1 ]
	[[ $out == *"not done after 3 s; then ran:"*"root tests/root/qmp"*", 3 failed" ]]
	[ -z "$(runs)" ]
}

@test "processes that are still ending when the tests are over are waited for" {
	cat >>"$dir/build/check-quick" <<-EOF
		setsid sh -c 'sleep 2; : $marker' >/dev/null 2>&1 </dev/null &
	EOF
	WSS_CHECK_SETTLE=300 check quick
	[ "$status" = 0 ]
}

# With no environment except TMPDIR, like processes that libvirt starts.
@test "a process and a file left behind are failures, are named, and are removed" {
	cat >>"$dir/build/check-leaky" <<-EOF
		env -i TMPDIR="\$TMPDIR" PATH="\$PATH" setsid sh -c 'echo \$\$ >>$dir/pids; sleep 500; : $marker' >/dev/null 2>&1 </dev/null &
		setsid sh -c 'echo \$\$ >>$dir/pids; sleep 500; : second $marker' >/dev/null 2>&1 </dev/null &
		echo x >"\$TMPDIR/forgotten"
		echo "\$TMPDIR" >$dir/tmpdir
	EOF
	WSS_CHECK_SETTLE=1 check leaky
	[ "$status" = 1 ]
	[[ $out == *"1 passed, "[1-9]*" failed" ]]
	[ "$(grep -c "left behind: process [0-9]* sh -c .*$marker" <<<"$out")" = 2 ]
	grep -q 'left behind: file /tmp/wss-c\..*/forgotten$' <<<"$out"
	[ -z "$(runs)" ]
	[ ! -e "$(cat "$dir/tmpdir")" ]
}

@test "a mount left behind is a failure, is named, and is removed" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare --mount true 2>/dev/null || skip "may not mount"
	cat >>"$dir/build/check-leaky" <<-EOF
		mkdir "\$TMPDIR/m" && mount -t tmpfs none "\$TMPDIR/m"
		echo "\$TMPDIR" >$dir/tmpdir
	EOF
	WSS_CHECK_SETTLE=1 check leaky
	[ "$status" = 1 ]
	grep -q 'left behind: mount /tmp/wss-c\..*/m$' <<<"$out"
	[ "$(grep -cF "$(cat "$dir/tmpdir")" /proc/self/mountinfo)" = 0 ]
	[ ! -e "$(cat "$dir/tmpdir")" ]
}

probe_start() { # DIRECTORY [ENVIRONMENT...] -> pid
	env "${@:2}" qemu-system-x86_64 -machine none -nodefaults -display none -daemonize \
		-pidfile "$1/probe" -qmp "unix:$1/monitor,server=on,wait=off" 3>&-
	pid=$(cat "$1/probe")
	[ -e "/proc/$pid/exe" ]
}

is_qemu() { # PID
	[[ $(readlink "/proc/$1/exe") == */qemu-system-* ]]
}

# As libvirt starts one to probe QEMU; once libvirt has been killed, nothing refers to it. As tests do, which have the root in
# their environment. A command line that names the root is no sign.
@test "a root of the embedded driver is removed with every QEMU that was started in it, and no other" {
	command -v qemu-system-x86_64 >/dev/null || skip "needs qemu-system-x86"
	embed_owner=$(embed_owner_of $$)
	embed_guest_dir=$dir/guest
	mkdir -p "$embed_guest_dir"
	embed_root_new
	probe_start "$embed_root"
	other=$pid
	probe_start "$dir" "XDG_CACHE_HOME=$embed_root/lib/qemu/qmp-x/.cache"
	probes=$pid
	mkdir "$dir/test"
	probe_start "$dir/test" "embed_root=$embed_root"
	probes+=" $pid"
	# Of a session of another user's.
	if [ "$EUID" = 0 ]; then
		HOME=$embed_root/s setpriv --reuid=65534 --regid=65534 --clear-groups \
			qemu-system-x86_64 -machine none -nodefaults -display none 3>&- &
		wait_until 30 is_qemu $!
		probes+=" $!"
	fi
	embed_root_remove "$embed_root"
	[ -e "/proc/$other/exe" ]
	kill -KILL "$other"
	for pid in $probes; do
		[ ! -e "/proc/$pid/exe" ] || { kill -KILL "$pid"; false; }
	done
	[ ! -e "$embed_root" ]
}

root_planted() { # MODE [USER]: by somebody whose process is gone -> planted
	planted=$(mktemp -d /tmp/wss.XXXXXX)
	echo '999999999 1' >"$planted/owner"
	chmod "$1" "$planted"
	[ $# = 1 ] || chown "$2" "$planted"
}

@test "a root that others may have put there is left alone" {
	root_planted 711
	embed_remove_stale
	[ ! -e "$planted" ]
	root_planted 777
	embed_remove_stale
	[ -e "$planted" ]
	rm -r "$planted"
	ln -s "$dir" "$planted"
	echo '999999999 1' >"$dir/owner"
	embed_remove_stale
	[ -L "$planted" ]
	rm "$planted"
	[ "$(id -u)" = 0 ] || return 0
	root_planted 700 nobody
	embed_remove_stale
	[ -e "$planted" ]
	rm -r "$planted"
}

@test "an empty group of a guest of the embedded driver is a leftover, and removed with its root" {
	local hash
	mount=$(awk '$3 ~ /^cgroup/ && $4 !~ /name=/ { print $2; exit }' /proc/mounts)
	[ -n "$mount" ] && [ -w "$mount" ] || skip "no cgroup that may be written to"
	# shellcheck disable=SC1091
	. "$WSS_SRCDIR/scripts/leftovers.sh"
	embed_owner=$(embed_owner_of $$)
	embed_guest_dir=$dir/guest
	mkdir -p "$embed_guest_dir"
	embed_root_new
	hash=$(printf %s "$embed_root" | sha256sum)
	group=$mount/machine/qemu-embed-${hash:0:8}-1-web1.libvirt-qemu
	mkdir -p "$group/vcpu0" || skip "no cgroup that may be written to"
	[ "$(leftovers_list_places | grep -cxF "$group")" = 1 ]
	if leftovers_is_used "$group"; then false; fi
	embed_root_remove "$embed_root"
	[ ! -e "$group" ]
}

@test "groups of guests in roots that others use are no leftovers" {
	local hash
	# shellcheck disable=SC1091
	. "$WSS_SRCDIR/scripts/leftovers.sh"
	embed_owner=$(embed_owner_of $$)
	embed_guest_dir=$dir/guest
	mkdir -p "$embed_guest_dir"
	embed_root_new
	hash=$(printf %s "$embed_root" | sha256sum)
	WSS_CHECK_ID=another
	leftovers_others_groups | grep -qx "/machine/qemu-embed-${hash:0:8}-"
	echo another >"$embed_root/check"
	[ "$(leftovers_others_groups | grep -c -- "-${hash:0:8}-")" = 0 ]
	embed_root_remove "$embed_root"
}

# Provides the programs of this machine except the named ones, stand-ins for QEMU and virsh if
# those are missing, and a user.
machine() { # UID WITHOUT...: -> $dir/bin
	local program uid=$1
	shift
	rm -rf "${dir:?}/bin"
	mkdir "$dir/bin"
	ln -sft "$dir/bin" /sbin/* /bin/* /usr/sbin/* /usr/bin/* 2>/dev/null || true
	for program in qemu-system-x86_64 virsh; do
		[ -e "$dir/bin/$program" ] || ln -sf /bin/false "$dir/bin/$program"
	done
	rm -f "$dir/bin/id"
	printf '#!/bin/sh\necho %s\n' "$uid" >"$dir/bin/id"
	chmod +x "$dir/bin/id"
	for program in "$@"; do
		rm -f "$dir/bin/$program"
	done
}

# Exit status 0, and each test a skip with that reason.
skips_all() { # REASON FILE...
	local reason=$1
	shift
	status=0
	env -u BATS_TMPDIR PATH="$dir/bin" bats --tap "$@" >"$dir/tap" 2>&1 3>&- || status=$?
	cat "$dir/tap"
	[ "$status" = 0 ]
	[ "$(grep -c "^ok [0-9]* .* # skip $reason\$" "$dir/tap")" = "$(cat "$@" | grep -c '^@test ')" ]
}

@test "root tests are skipped with the reason by a user who is not root" {
	machine 1000
	skips_all 'needs root' "$WSS_SRCDIR"/tests/root/*.bats
}

@test "root tests are skipped with the reason where a program is missing" {
	machine 0 qemu-system-x86_64
	skips_all 'needs qemu-system-x86_64' "$WSS_SRCDIR"/tests/root/measure.bats
	machine 0 sqlite3
	# shellcheck disable=SC2046
	skips_all 'needs sqlite3' $(grep -lE 'root_setup_file.* sqlite3|load balloon-functions.sh' "$WSS_SRCDIR"/tests/root/*.bats)
	machine 0 libvirtd
	skips_all 'needs libvirtd' "$WSS_SRCDIR"/tests/root/session.bats
}
