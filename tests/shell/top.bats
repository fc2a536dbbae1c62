#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests top on a terminal of tmux, and in batch mode, with a service that says what the tests want.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"
# shellcheck disable=SC1091
. "$WSS_SRCDIR/tests/shell/service-functions.sh"

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	command -v tmux >/dev/null || skip "needs tmux"
	cd "$BATS_TEST_TMPDIR" || return 1
	export LIBVIRT_DEFAULT_URI=test:///default
	unset TMUX
	host >page
	terminals=0
}

teardown() {
	end
	end_service
}

# Forty guests, some of them difficult.
host() {
	local i guests=()
	for ((i = 1; i <= 36; i++)); do
		guests+=("$(guest "web$i" waiting $((i * 13)) 512 $((i * 2)))")
	done
	answer "$@" "${guests[@]}" "$(guest full waiting 510 512 3)" "$(guest new waiting)" \
		"$(guest big refused 500 512 900 '"why":"a window would stall it for 45 ms"')" \
		"$(guest 'e\u001b[2J\u202ev\u0007il\u200b \u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c' waiting 1 256 3)"
}

in_tmux() { # COMMAND OF TMUX...
	tmux -S "$terminal" -f /dev/null "$@"
}

# Ends the terminal with what runs in it.
end() {
	[ -z "${terminal-}" ] || in_tmux kill-server 2>/dev/null || true
}

# Starts top in a shell on a terminal of that size. The shell prints the
# settings of the terminal before and after, then the status.
begin() { # COLUMNS LINES ARGUMENT...
	local columns=$1 lines=$2
	shift 2
	end
	# Another server each time: the last one may not be gone yet.
	terminal=$PWD/tmux$((++terminals))
	printf '%s\n' 'trap : INT' 'stty -g' "${top_env:-env} '$virt_wss' top $* 2>err" \
		'status=$?; stty -g; echo "ended with $status"; exec cat' >script
	in_tmux new-session -d -s top -x "$columns" -y "$lines" "sh ./script"
}

screen() {
	in_tmux capture-pane -p -t top >screen || return 1
	cat screen
}

# Waits until the screen has a line that matches.
sees() { # RE
	wait_until 300 eval "screen | grep -qE -e '$1'" || { cat screen; echo "no $1"; return 1; }
}

lacks() { # RE
	wait_until 300 eval "! screen | grep -qE -e '$1'" || { cat screen; echo "still $1"; return 1; }
}

keys() { # KEY...
	in_tmux send-keys -t top "$@"
}

# Waits until this guest is the first of the table.
first() { # NAME
	wait_until 300 eval "screen | sed -n 6p | grep -qE '^$1 '" || { cat screen; echo "not first: $1"; return 1; }
}

# It has ended with this status, and the terminal is as it was.
ended() { # STATUS
	sees "^ended with $1\$"
	[ "$(grep -c 'virt-wss top, ' screen)" = 0 ]
	[ "$(grep -E '^[0-9a-f:]+$' screen | tr -d '\n' | wc -c)" -gt 20 ]
	# stty -g is one line or several, twice the same.
	grep -E '^[0-9a-f:]+$' screen | tr -d '\n' | perl -ne 'exit !/^(.*)\1$/'
	[ "$(in_tmux display-message -p -t top '#{alternate_on} #{cursor_flag}')" = '0 1' ]
}

@test "80 columns show all guests by their working sets" {
	begin_service
	begin 80 24 --socket socket
	first full
	grep -qE '^virt-wss top, [0-9:]{8}: 40 guests, 39 measured, 1 refused$' screen
	grep -qE '^Maximum 3[0-9]\.[0-9] GiB, WSS 9\.[0-9]+ GiB \([0-9]+%\), reclaimable <= [0-9.]+ GiB, oldest 15 min$' screen
	grep -qE '^asking the service, every 5 s; sorted by wss; h: help$' screen
	grep -qE '^big: a window would stall it for 45 ms$' screen
	grep -qE '^NAME +S +WSS +%BAL +BALLOON +RSS +COLD +AGE$' screen
	grep -qE '^full +510 MiB +100% +512 MiB +512 MiB +- +[0-9]+ s$' screen
	grep -qE '^big +R +500 MiB +98% ' screen
	[ "$(wc -l <screen)" = 24 ]
	[ "$(grep -cE '.{81}' screen)" = 0 ]
}

@test "what sums up upper limits is an upper limit, and what they leave is no less" {
	local exact='"wss_low_bytes":67108864,"wss_high_bytes":67108864' most='"wss_low_bytes":53248,"wss_high_bytes":27262976'
	answer "$(guest exact waiting 64 256 3 '"cold":{"since_seconds":900,"ages":[{"age":"10m","low_bytes":2097152,"high_bytes":2097152}]}' "$exact")" \
		"$(guest bounded waiting 26 256 3 '"cold":{"since_seconds":900,"ages":[{"age":"10m","low_bytes":0,"high_bytes":4771021}]}' "$most")" >page
	begin_service
	"$virt_wss" top -b -n 1 --socket socket >out </dev/null
	cat out
	# 90 of 512 MiB are 17.6 %; 512 MiB less 64 MiB and 52 KiB.
	grep -qE '^Maximum 1 GiB, WSS <= 90 MiB \(<=18%\), reclaimable <= 448 MiB, ' out
	grep -qE '^exact +64 MiB +25% +256 MiB .* 2 MiB +([3-9]|[1-9][0-9]) s$' out
	grep -qE '^bounded +<= 26 MiB +<=11% +256 MiB .* <= 4\.55 MiB +([3-9]|[1-9][0-9]) s$' out
	answer "$(guest bounded waiting 26 256 3 '' "$most")" "$(guest rises waiting 10 256 3 '' '"wss_low_bytes":10485760')" >page
	"$virt_wss" top -b -n 1 --socket socket >out </dev/null
	grep -qE '^Maximum 1 GiB, WSS >= 10\.1 MiB \(>=1%\), ' out
}

@test "what the guests can give up says of how many guests it is known" {
	answer "$(guest web1 waiting 10 512 3 '"recommendation":{"reclaimable_bytes":10485760}')" "$(guest web2 waiting 10 512 3)" >page
	begin_service
	"$virt_wss" top -b -n 1 --socket socket >out </dev/null
	grep -qE ', reclaimable 10 MiB \(1 of 2 guests\), ' out
	answer "$(guest web1 waiting 10 512 3 '"recommendation":{"reclaimable_bytes":10485760}')" >page
	"$virt_wss" top -b -n 1 --socket socket >out </dev/null
	grep -qE ', reclaimable 10 MiB, ' out
}

@test "a wide terminal shows more columns, also after it was resized" {
	begin_service
	begin 80 24 --socket socket
	first full
	in_tmux resize-window -t top -x 220 -y 50
	sees '^NAME .* MAXIMUM +RSS +SWAP +COLD .* PERIOD KIND +METHOD REMARK'
	sees 'refused: a window would stall it for 45 ms'
	sees '^web1 '
	in_tmux resize-window -t top -x 30 -y 8
	sees '^NAME +S +WSS$'
	in_tmux resize-window -t top -x 3 -y 2
	in_tmux resize-window -t top -x 80 -y 24
	first full
	keys q
	ended 0
}

@test "long names have the width that is there, and batch mode prints them whole" {
	local long
	long=$(printf 'tenant-%.0s' 1 2 3 4 5)production-database-of-a-customer-0001
	answer "$(guest "$long" waiting 64 256 3)" "$(guest short waiting 32 256 3)" >page
	begin_service
	"$virt_wss" top -b -n 1 --socket socket >out </dev/null
	grep -qE "^$long +64 MiB +25% " out
	begin 132 24 --socket socket
	sees '^short +32 MiB '
	# No guest has a reason that takes width away from names.
	grep -qE "^${long:0:40}" screen
	in_tmux resize-window -t top -x 220 -y 24
	sees "^$long +64 MiB +25% "
	keys q
	ended 0
	answer "$(guest "$long" waiting 64 256 3)" "$(guest big refused 32 256 3 '"why":"a window would stall it for 45 ms"')" >page
	begin 220 24 --socket socket
	sees "^${long:0:60}.*[^ ] +64 MiB +25% "
	sees '^big .* refused: a window'
}

@test "keys sort, reverse, scroll and filter" {
	begin_service
	begin 80 24 --socket socket
	first full
	keys N
	first big
	keys r
	first 'web9'
	keys P
	first full
	keys '<'
	sees 'sorted by wss'
	keys r
	first 'e.*'
	# What is not known stays at the end.
	keys End
	wait_until 300 eval "screen | tail -n 1 | grep -q '^new '"
	keys Home
	first 'e.*'
	keys NPage
	lacks '^e\?'
	keys PPage Down
	first web1
	keys Up
	first 'e.*'
	keys / 'WEB3' Enter
	sees '; 8 with "WEB3"'
	lacks '^full'
	keys / C-u Enter
	sees '^full|^web13'
	keys r W '?'
	sees '^Keys:'
	keys x x
	first full
	keys A
	first big
}

@test "the help has all lines, on as many screens as it takes" {
	begin_service
	begin 80 24 --socket socket
	first full
	keys h
	sees '^q: quit; any other key: next page$'
	grep -qE '^ +q, Ctrl-C +quit' screen
	lacks ' REMARK '
	keys Space
	sees '^q: quit; any other key: back$'
	grep -qE '^ +REMARK +why there is no sample, or only an upper limit$' screen
	keys Space
	first full
	in_tmux resize-window -t top -x 120 -y 40
	keys '?'
	sees '^q: quit; any other key: back$'
	grep -qE '^ +q, Ctrl-C +quit' screen
	grep -qE '^ +REMARK ' screen
	# No line is cut on a narrow screen, and q quits from here, too.
	in_tmux resize-window -t top -x 60 -y 60
	sees '^ +/ +show names that contain a text; empty: all$'
	grep -qE '^ +h, \? +show this help$' screen
	keys q
	sees '^ended with 0$'
}

@test "texts and figures of one row stay apart, whatever the width" {
	answer "$(guest optout 'left out' '' '' '' '"why":"a window would stall it for 45 ms"')" \
		"$(guest old waiting 1000 1024 7100 '' '"wss_low_bytes":1,"wss_high_bytes":1048576000')" >page
	begin_service
	for width in 60 80 82 132 200; do
		begin $width 10 --socket socket
		sees '^old +<= 1000 MiB +<=98% +1 GiB .*11[89] min( |$)|^old +<= 0.98 GiB +<=98% +1 GiB .*11[89] min( |$)'
		[ $width -lt 200 ] || grep -qE '^optout .* opted out by its policy$' screen
		! grep -q policya screen || false
	done
}

@test "the delay is asked for, and the screen can be paused" {
	begin_service
	begin 80 24 --socket socket
	first full
	keys d 0 Enter
	sees 'The delay is a time from 0.5s to 1h'
	keys d 1 s Enter
	sees 'every 1 s;'
	keys p
	sees 'PAUSED'
	answer "$(guest other waiting 5 512 3)" >page2
	mv page2 page
	keys N r
	first 'web9'
	keys p
	first other
	keys / Escape
	first other
	host -h 'the operator said so' >page2
	mv page2 page
	sees '^NOT MEASURING: the operator said so'
}

@test "a service that has just started is no host without guests" {
	answer -s 3.2 >page
	begin_service
	begin 80 24 --socket socket --delay 1s
	sees '^The service started [0-9]+ s ago and has not listed the guests yet'
	[ "$(grep -cE 'No domain|0 guests' screen)" = 0 ]
	answer "$(guest late waiting 64 256 31)" >page
	first late
}

@test "a service that is lost is asked again, and its guests grow old meanwhile" {
	begin_service
	begin 80 24 -d 1 --socket socket
	first full
	end_service
	sees '^No answer for [0-9]+ s, trying again: service at socket: cannot connect: '
	first full
	begin_service
	lacks 'trying again'
	end_service
	sees 'trying again'
	echo rubbish >page
	begin_service raw
	sees '^No answer for [0-9]+ s, trying again: service at socket: the reply is not HTTP$'
	keys q
	ended 0
}

@test "names cannot break the screen" {
	begin_service
	begin 80 24 --socket socket --sort -wss
	first 'e\?\[2J\?*v\?il\?* (世界)+…'
	# Both lines have their figures in the same columns.
	grep -qE '^e.*世界… {9,10}1 MiB +0% +256 MiB' screen
	[ "$(in_tmux capture-pane -p -t top | LC_ALL=C grep -c $'[\001-\010\013-\032\034-\037]')" = 0 ]
	keys q
	ended 0
}

@test "a terminal without UTF-8 gets ASCII" {
	begin_service
	top_env='env LC_ALL=C' begin 80 24 --socket socket --sort -wss
	sees '^e\?.* [?]+~ {9}1 MiB +0% '
	[ "$(LC_ALL=C grep -c '[^ -~]' screen)" = 0 ]
	keys q
	ended 0
}

@test "signals end it, and the terminal is as it was" {
	local signal pid
	begin_service
	for signal in TERM:143 INT:130 HUP:129; do
		begin 80 24 --socket socket
		first full
		pid=$(pgrep -P "$(in_tmux display-message -p -t top '#{pane_pid}')" -f 'virt-wss top')
		kill "-${signal%:*}" "$pid"
		ended "${signal#*:}"
	done
	begin 80 24 --socket socket
	first full
	keys C-c
	ended 130
}

@test "it ends with a terminal that goes away" {
	local pid
	begin_service
	begin 80 24 --socket socket
	first full
	pid=$(pgrep -P "$(in_tmux display-message -p -t top '#{pane_pid}')" -f 'virt-wss top')
	in_tmux kill-session -t top
	wait_until 300 eval "! kill -0 $pid 2>/dev/null"
}

@test "after N updates it ends" {
	begin_service
	begin 80 24 --socket socket -n 2 -d 0.5
	ended 0
}

@test "a terminal that cannot be used is refused in one line" {
	local how status
	for how in TERM=dumb TERM=nonsense TERM=; do
		top_env="env $how" begin 80 24 --socket socket
		ended 5
		[ "$(wc -l <err)" = 1 ]
		grep -q '(TERM)\|TERM is not set' err
		grep -q 'set TERM=xterm-256color, which most terminals understand' err
	done
	status=0
	"$virt_wss" top </dev/null >out 2>err || status=$?
	[ "$status" = 5 ]
	grep -q 'must be a terminal' err
	[ ! -s out ]
}

@test "without a service it measures the guests itself, and says so" {
	begin 80 24 -c test:///default
	sees '^no service: measuring within 0.5% of CPU time'
	sees '^test +! '
	sees '^test: libvirt.s driver'
	keys q
	ended 0
}

@test "a libvirt that hangs holds no key up" {
	local shim=$WSS_BUILDDIR/tests/tools/hang.so
	[ -e "$shim" ] || skip "no tests/tools/hang.so"
	top_env="env WSS_HANG=virConnectListAllDomains: WSS_HANG_FILE=$PWD/hangs LD_PRELOAD=$shim" \
		begin 80 24 -c test:///default
	wait_until 300 [ -e hangs ]
	sees '^Waiting for the first answer'
	keys N
	sees 'sorted by name'
	keys q
	ended 0
}

@test "batch mode prints text" {
	local status=0 socket
	begin_service
	"$virt_wss" top -b -n 2 -d 0.5 --socket socket --sort percent >out 2>err </dev/null
	[ ! -s err ]
	[ "$(grep -c '^virt-wss top, ' out)" = 2 ]
	[ "$(grep -c '^full ' out)" = 2 ]
	grep -q 'refused: a window would stall it for 45 ms$' out
	[ "$(LC_ALL=C grep -c $'[\001-\011\013-\037]' out)" = 0 ]
	"$virt_wss" top -b -n 1 -c test:///default >out </dev/null
	grep -q '^test ' out
	# A file at which nobody listens is as good as none.
	: >socket3
	for socket in socket2 socket3; do
		status=0
		"$virt_wss" top -b -n 1 --socket "$socket" >out 2>err </dev/null || status=$?
		[ "$status" = 4 ]
		[ ! -s out ]
		grep -qE "service at $socket: (cannot connect|it is a regular file, not a UNIX socket)" err
	done
	status=0
	timeout -k 5 300 "$virt_wss" top -b --socket socket -d 0.5 2>err </dev/null | head -n 1 >out || status=$?
	grep -q '^virt-wss top' out
	status=0
	"$virt_wss" top -b -n 1 --socket socket >/dev/full 2>err </dev/null || status=$?
	[ "$status" = 1 ]
}

@test "wrong options are refused in one line" {
	local options status
	for options in web1 "--qmp socket" "--sort size" "-d 0.1" "-d 2h" "-n 0" "--socket a -c b" "--output json"; do
		status=0
		# shellcheck disable=SC2086
		"$virt_wss" top -b $options >out 2>err </dev/null || status=$?
		echo "$options: $status $(cat err)"
		[ "$status" = 2 ]
		[ "$(wc -l <err)" = 1 ]
		[ ! -s out ]
	done
}
