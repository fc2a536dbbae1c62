#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the configuration files of serve: /etc and /usr/lib are below a directory of the test.

# shellcheck disable=SC1091
. "$WSS_SRCDIR/scripts/embed.sh"

virt_wss=$WSS_BUILDDIR/virt-wss

setup() {
	export LIBVIRT_DEFAULT_URI=test:///default VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	cd "$BATS_TEST_TMPDIR" || return 1
	root=$BATS_TEST_TMPDIR/root
	etc=$root/etc/virt-wss vendor=$root/usr/lib/virt-wss
	mkdir -p "$etc/serve.conf.d" "$vendor/serve.conf.d"
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

# The warning about the sysroot is not of interest.
check() { # OPTION...
	status=0
	VIRT_WSS_SYSROOT=$root timeout -k 5 300 "$virt_wss" serve --check-config "$@" >out 2>all || status=$?
	grep -v 'VIRT_WSS_SYSROOT is set' all >err || true
	printf '$ check %s -> %s\n%s\n%s\n' "$*" "$status" "$(cat out)" "$(cat err)"
}

good() { # OPTION...
	check "$@"
	[ "$status" = 0 ] && [ ! -s err ]
}

# Checks that the files are refused, with this message alone.
refused() { # MESSAGE
	check
	[ "$status" = 2 ] && [ ! -s out ] && [ "$(cat err)" = "virt-wss: error: $1" ]
}

has() { # LINE...
	local line
	for line; do
		grep -qxF "$line" out || { echo "no line: $line"; return 1; }
	done
}

@test "without files the defaults count" {
	good
	has 'window = 4s' 'granularity = auto' 'period = 1min' 'budget = 0.5%' 'max-pressure = 10%' 'ages-memory = 128MiB' 'max-stall = 20ms' 'http-user = nobody' '# listen is not set'
	rm -r "$root"
	mkdir "$root"
	good
}

@test "what it prints is a configuration file that means the same" {
	good --window 1500ms --budget 0.25% --listen 127.0.0.1:0 --listen "unix:$PWD/a" --keep 36h \
		--keep-size 1500KB --method auto --metrics full --granularity 4KiB --no-publish -c test:///default --debug
	has 'window = 1500ms' "listen = 127.0.0.1:0 unix:$PWD/a" 'keep = 36h' 'keep-size = 1500000B' \
		'connect = test:///default' 'debug = yes' 'no-publish = yes'
	mv out first
	cp first "$etc/serve.conf"
	check
	[ "$status" = 0 ]
	cmp first out
}

@test "values that begin or end with blanks or quotation marks read back as the same" {
	local value
	mkdir ' ' '"' '""' "'"
	for value in 'a b ' ' /a' $'a\t' '"/a"' '""/a""' 'a"b' '"/a' 'a"' "'/a '" 'a;b'; do
		good --textfile "$value"
		cp out first
		good --config first
		diff first out
		grep -qxF -e "textfile = $value" -e "textfile = \"$value\"" out
	done
	printf '[metrics]\ntextfile = "a "\n' >first
	good --config first
	has 'textfile = "a "'
}

@test "a value that no file can have is a comment" {
	local value
	for value in 'a#b' $'a\nb' ' "' "$(printf './%.0s' {1..512})a"; do
		good --textfile "$value"
		grep -q '^# textfile is set to what no file can have: ' out
		good --config out
		has '# textfile is not set'
	done
}

@test "an indented comment is one, and belongs to no value" {
	printf '[metrics]\ntextfile = x\n  # metrics = full\n\t# more\n[log]\ndebug = yes\n # the end\n' >"$etc/serve.conf"
	good
	has 'textfile = x' 'metrics = standard' 'debug = yes'
}

@test "every option has a key, and every key an option" {
	good
	sed -n 's/^# \([a-z-]*\) is not set$/\1/p; s/^\([a-z-]*\) = .*/\1/p' out | sort >keys
	"$virt_wss" serve --help | sed -n 's/^  --\([a-z-]*\) .*/\1/p' | grep -vx 'config\|check-config' >options
	printf '%s\n' connect allow-monitor debug >>options
	sort -o options options
	diff keys options
	[ "$(wc -l <keys)" -ge 19 ]
}

@test "/etc replaces /usr/lib, drop-ins come after both, and the command line last" {
	printf '[measure]\nwindow = 1s\nboot = 1m\n' >"$vendor/serve.conf"
	good
	has 'window = 1s' 'boot = 1min'
	printf '# of this host\n[measure]\nwindow = 2s # of course\n' >"$etc/serve.conf"
	good
	has 'window = 2s' 'boot = 2min'
	printf '[measure]\nwindow = 5s\nperiod = 2m\n' >"$vendor/serve.conf.d/50-a.conf"
	printf '[measure]\nwindow = 3s\nboot = 3m\n' >"$etc/serve.conf.d/10-b.conf"
	good
	has 'window = 3s' 'boot = 3min' 'period = 2min'
	# One of the same name replaces all of the other.
	printf '[measure]\nboot = 5m\n' >"$etc/serve.conf.d/50-a.conf"
	good
	has 'window = 3s' 'boot = 5min' 'period = 1min'
	printf '[measure]\nwindow = 9s\n' >"$etc/serve.conf.d/ignored.conf.old"
	good --window 8s
	has 'window = 8s' 'boot = 5min'
}

@test "the command line replaces addresses of files, and a later file those of an earlier one" {
	printf '[http]\nlisten = unix:a 127.0.0.1:1\n' >"$etc/serve.conf"
	good
	has 'listen = unix:a 127.0.0.1:1'
	printf '[http]\nlisten =   unix:b\t127.0.0.1:2 \n' >"$etc/serve.conf.d/1.conf"
	good
	has 'listen = unix:b 127.0.0.1:2'
	good --listen unix:c --listen unix:d
	has 'listen = unix:c unix:d'
}

@test "--config reads that file alone" {
	printf '[measure]\nwindow = 1s\n' >"$etc/serve.conf"
	printf '[measure]\nperiod = 3m\n' >other
	good --config other
	has 'window = 4s' 'period = 3min'
	check --config missing
	[ "$status" = 2 ]
	[[ $(cat err) == "virt-wss: error: missing: "* ]]
}

@test "a wrong value is refused as on the command line, with file, line, section and key" {
	printf '[measure]\n\nwindow = soon\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:3: [measure] window: 'soon' is not a duration (examples: 10ms, 4s, 5m)"
	"$virt_wss" serve --window soon 2>typed && false
	grep -qxF "virt-wss: error: --window: 'soon' is not a duration (examples: 10ms, 4s, 5m)" typed
	printf '[measure]\nmax-pressure = 0\n' >"$etc/serve.conf"
	good
	has 'max-pressure = 0%'
	printf '[measure]\nmax-pressure = 101%%\n' >"$etc/serve.conf"
	check
	[[ $(cat err) == *"/serve.conf:2: [measure] max-pressure: "* ]]
	printf '[measure]\nmethod = magic\n' >"$etc/serve.conf"
	check
	[[ $(cat err) == *"/serve.conf:2: [measure] method: 'magic' is not auto, "* ]]
	printf '[http]\nlisten = 0.0.0.0:80\n' >"$etc/serve.conf"
	check
	[[ $(cat err) == *"/serve.conf:2: [http] listen: other hosts reach 0.0.0.0:"* ]]
	printf '[measure]\ngranularity = both\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [measure] granularity: 'both' is not auto, native or 4k"
	printf '[measure]\ngranularity = 4k\ncontinuous = yes\n' >"$etc/serve.conf"
	refused "--continuous excludes --granularity 4k: QEMU's dirty log lasts 60 s at most"
	printf '[history]\nno-store = maybe\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [history] no-store: 'maybe' is not yes or no"
	printf '[metrics]\ntextfile =\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [metrics] textfile: the value is empty"
	printf '[metrics]\ntextfile = \t # none\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [metrics] textfile: the value is empty"
	printf '[metrics]\ntextfile="' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [metrics] textfile: the value is empty"
	printf '%1020s\n%1020s[http]\n' '' '' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: the line is longer than 1024 bytes"
	printf '[measure]\nperiod = 2s\n' >"$etc/serve.conf"
	refused "a period of 2s ([measure] period, --period) is shorter than a window of 4s ([measure] window, --window)"
}

@test "each fault is told in a line of its own" {
	printf '[measure]\nwindow = soon\nbudget = 500%%\n[http]\nlisten = nowhere\n' >"$etc/serve.conf"
	printf '[measure]\nperiod = never\n' >"$etc/serve.conf.d/1.conf"
	check
	[ "$status" = 2 ]
	[ "$(wc -l <err)" = 4 ]
	# A service does not start then, either.
	status=0
	VIRT_WSS_SYSROOT=$root timeout -k 5 300 "$virt_wss" serve 2>all || status=$?
	[ "$status" = 2 ]
	[ "$(grep -c error: all)" = 4 ]
	[ ! -e history.db ]
}

# --check-config names each fault as the start does, which names only the first, and makes nothing.
refused_at_start() { # MESSAGE OPTION...
	local message=$1
	shift
	check "$@"
	[ "$status" = 2 ] || return 1
	[ ! -s out ] || return 1
	[[ $(cat err) == "virt-wss: error: $message"* ]] || return 1
	status=0
	VIRT_WSS_SYSROOT=$root timeout -k 5 300 "$virt_wss" serve "$@" 2>all || status=$?
	echo "the start: $status: $(cat all)"
	[ "$status" = 1 ] || return 1
	diff <(grep -v 'VIRT_WSS_SYSROOT is set' all) err
}

@test "what the installed unit does not let the service write is told" {
	local unit=$root/etc/systemd/system/virt-wss.service warning
	warning() { # DIRECTORY FILE
		echo "virt-wss: warning: $1/$2: virt-wss.service may not write there: add ReadWritePaths=$1 by systemctl edit virt-wss.service"
	}
	mkdir -p "$unit.d" place other "$root/usr/lib/systemd/system"
	good --textfile "$PWD/place/metrics" --history "$PWD/other/h.db"
	printf '[Service]\nProtectSystem=strict\nReadWritePaths=-/run/libvirt -%s\n' "$PWD/place/" >"$root/usr/lib/systemd/system/virt-wss.service"
	check --textfile "$PWD/place/metrics" --history "$PWD/other/h.db" --listen "unix:$PWD/sock"
	[ "$status" = 0 ]
	grep -qxF "$(warning "$PWD/other" h.db)" err
	grep -qxF "$(warning "$PWD" sock)" err
	[ "$(wc -l <err)" = 2 ]
	printf '[Service]\nReadWritePaths=%s\n' "$PWD" >"$unit.d/1.conf"
	good --textfile "$PWD/place/metrics" --history "$PWD/other/h.db" --listen "unix:$PWD/sock"
	# That of the administrator counts, not the package's.
	printf '[Service]\nProtectSystem=full\n' >"$unit"
	rm "$unit.d/1.conf"
	good --textfile "$PWD/place/metrics" --history "$PWD/other/h.db"
}

@test "files and sockets that would keep the service from starting are told before the start" {
	mkdir -m 777 everybodys
	mkdir place
	echo 'no database' >rubbish.db
	touch file
	refused_at_start 'missing/metrics: cannot open its directory: No such file or directory' --textfile missing/metrics
	refused_at_start 'file/metrics: cannot open its directory: Not a directory' --textfile file/metrics
	mkfifo pipe
	refused_at_start 'pipe: it is a FIFO, not a regular file' --textfile pipe
	refused_at_start 'history everybodys/h.db: other users may write to its directory' --history everybodys/h.db
	refused_at_start 'history everybodys/a/b/h.db: other users may write to its directory' --history everybodys/a/b/h.db
	refused_at_start 'history file/h.db: cannot open its directory: Not a directory' --history file/h.db
	refused_at_start 'history ' --history rubbish.db
	refused_at_start "cannot listen at unix:$PWD/missing/s: cannot open its directory: No such file" \
		--no-store --listen "unix:$PWD/missing/s"
	refused_at_start "cannot listen at unix:$PWD/everybodys/s: other users may write" --no-store --listen "unix:$PWD/everybodys/s"
	refused_at_start "cannot listen at unix:$PWD/file: it is a regular file, not a UNIX socket" --no-store --listen "unix:$PWD/file"
	[ -z "$(find everybodys place -mindepth 1)" ]
	ln -s nowhere place/ages
	refused_at_start 'cannot keep the ages of memory: place/ages: it is not a directory' --history place/h.db
	[ ! -e history.db ]
	check --textfile missing/metrics --history everybodys/h.db --listen "unix:$PWD/file"
	[ "$status" = 2 ]
	[ "$(wc -l <err)" = 3 ]
	# What the start would make is no fault.
	good --textfile new --history a/b/c/h.db --listen "unix:$PWD/s"
	[ ! -e a ]
	# Nor is what a running service has.
	printf '[metrics]\ntextfile = metrics\n[http]\nlisten = unix:%s/s\n' "$PWD" >"$etc/serve.conf"
	begin
	good
	[ -S s ]
}

@test "a directory that the units make may be missing before the start" {
	if [ -e /run/virt-wss ] && [ -e /var/lib/virt-wss ]; then
		skip "this machine has the directories of the units"
	fi
	local directory
	for directory in /run/virt-wss /var/lib/virt-wss; do
		[ ! -e "$directory" ] || continue
		check --textfile "$directory/metrics"
		[ "$status" = 0 ]
		[[ $(cat err) == "virt-wss: warning: $directory/metrics: cannot open its directory: No such file or directory: virt-wss.service makes that directory when it starts, "* ]]
		check --textfile "$directory/deeper/metrics"
		[ "$status" = 2 ]
	done
}

@test "a user that cannot serve HTTP is told before the start" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	check --listen 127.0.0.1:0 --http-user nosuch
	[ "$status" = 2 ]
	[ ! -s out ]
	[ "$(cat err)" = "virt-wss: error: there is no user 'nosuch' to serve HTTP" ]
	# The unit's socket is none of the service's own addresses.
	printf '[http]\nhttp-user = nosuch\n' >"$etc/serve.conf"
	check
	[ "$status" = 0 ]
	[ "$(cat err)" = "virt-wss: warning: there is no user 'nosuch' to serve HTTP, should the service be passed a socket" ]
}

@test "unknown keys are refused, and the nearest one is named" {
	printf '[measure]\nwindwo = 4s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [measure] windwo: unknown key: did you mean 'window' in section [measure]?"
	printf '[measure]\nlisten = unix:/a\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [measure] listen: this key belongs in section [http]"
	printf 'window = 4s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:1: window: key before any [SECTION]: this key belongs in section [measure]"
	printf '[nonsense]\nqqqqqqqqqqqq = 1\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: [nonsense] qqqqqqqqqqqq: unknown key (serve --check-config lists all)"
}

@test "what libeconf would misread is refused" {
	printf '[measure]\nwindow = 4s\nwindow = 5s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:3: [measure] window is set twice in this file"
	printf '[measure]\nwindow = 4s\n[http]\n[measure]\nwindow = 5s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:5: [measure] window is set twice in this file"
	printf '[measure]\nhold-file = /a\nb\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:3: neither [SECTION], KEY = VALUE nor # COMMENT"
	printf '[measure]\n = 4s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: neither [SECTION], KEY = VALUE nor # COMMENT"
	printf '[measure]\nwindow 4s = 5\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: neither [SECTION], KEY = VALUE nor # COMMENT"
	printf 'window = 4s\nwindow = 5s\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: window is set twice in this file"
}

@test "each line that is none of a configuration is named, in all files" {
	printf '[measure # ]\nwindow = 4s\n[]\nwindow = 4s\n[http] x\n[metrics]]\nlevel\nlevel =\n' >"$etc/serve.conf"
	printf '[http\n' >"$etc/serve.conf.d/1.conf"
	check
	[ "$status" = 2 ]
	[ ! -s out ]
	sed "s|^virt-wss: error: $etc/serve.conf||" err >faults
	diff - faults <<-EOF
		:1: the ] of the section is missing
		:3: the section has no name
		:5: text after the section's ]
		:6: text after the section's ]
		:7: neither [SECTION], KEY = VALUE nor # COMMENT
		:8: [metrics] level: the value is empty
		.d/1.conf:1: the ] of the section is missing
	EOF
	rm "$etc/serve.conf.d/1.conf"
	# These libeconf can parse.
	printf ' [measure] \t# ]\n window\t=4s#\n[http]# x\nhttp-user = "a b"\n' >"$etc/serve.conf"
	check
	[ "$status" = 0 ]
	[[ $(cat err) == "virt-wss: warning: there is no user 'a b' "* ]]
	has 'window = 4s' 'http-user = a b'
}

@test "files that are no text, too large, or no files are refused" {
	printf '[measure]\nwindow = 4s\0\n' >"$etc/serve.conf"
	refused "$etc/serve.conf: binary file, not a configuration"
	printf '[measure]\nwindow = 4s\r\n' >"$etc/serve.conf"
	refused "$etc/serve.conf:2: the line contains a control character"
	printf '[measure]\nhold-file = /%01100d\n' 0 >"$etc/serve.conf"
	refused "$etc/serve.conf:2: the line is longer than 1024 bytes"
	yes '' | head -n 3000 >"$etc/serve.conf"
	refused "$etc/serve.conf: more than 2000 lines"
	head -c 70000 /dev/zero | tr '\0' '#' >"$etc/serve.conf"
	check
	[ "$status" = 2 ]
	[ "$(wc -l <err)" = 1 ]
	rm "$etc/serve.conf"
	mkfifo "$etc/serve.conf.d/pipe.conf"
	check
	[ "$status" = 2 ]
	[[ $(cat err) == *"/serve.conf.d/pipe.conf: "* ]]
	rm "$etc/serve.conf.d/pipe.conf"
	mkdir "$etc/serve.conf"
	check
	[ "$status" = 2 ]
	# A link to nowhere may mean that a file system is missing.
	rmdir "$etc/serve.conf"
	ln -s nowhere "$etc/serve.conf.d/link.conf"
	check
	[ "$status" = 2 ]
}

# --- SIGHUP ---

begin() { # OPTION...: in the background -> pid
	VIRT_WSS_SYSROOT=$root "$virt_wss" serve "$@" 2>log 3>&- &
	pid=$!
	wait_until 300 [ -s metrics ]
}

logged() { # TEXT [TIMES]
	[ "$(grep -cF "$1" log)" = "${2:-1}" ]
}

reload() { # TEXT of the log [TIMES]
	kill -HUP "$pid"
	wait_until 300 logged "$@"
}

budget() { # NUMBER: in the metrics
	grep -qxF "virt_wss_budget_vcpu_ratio $1" metrics
}

@test "SIGHUP takes over what has changed, and the same process goes on" {
	printf '[measure]\nbudget = 1%%\n[metrics]\ntextfile = metrics\n' >"$etc/serve.conf"
	begin
	wait_until 300 budget 0.01
	printf '[measure]\nbudget = 2%%\nhold-file = hold\n[metrics]\ntextfile = metrics\n' >"$etc/serve.conf"
	touch hold
	reload 'the configuration was read again'
	wait_until 300 budget 0.02
	wait_until 300 logged 'paused by hold file hold'
	# Several times, because configurations that were replaced are released.
	printf '[metrics]\ntextfile = other\n' >"$etc/serve.conf"
	reload 'the configuration was read again' 2
	wait_until 300 [ -s other ]
	wait_until 300 logged 'hold file /run/virt-wss/hold is gone: measuring again'
	mv other metrics
	reload 'the configuration was read again' 3
	wait_until 300 [ -s other ]
	kill -0 "$pid"
}

@test "SIGHUP refuses a wrong configuration in one line, and the old one stays" {
	printf '[measure]\nbudget = 1%%\n[metrics]\ntextfile = metrics\n' >"$etc/serve.conf"
	begin
	wait_until 300 budget 0.01
	printf '[measure]\nbudget = 2%%\nwindow = soon\nboot = never\n' >"$etc/serve.conf"
	reload 'the configuration stays as it was: '
	logged "error: the configuration stays as it was: $etc/serve.conf:3: [measure] window: 'soon' is not a duration (examples: 10ms, 4s, 5m) (and 1 more: see serve --check-config)"
	logged error:
	printf '[metrics]\ntextfile = /nonexistent/metrics\n' >"$etc/serve.conf"
	reload 'the configuration stays as it was: /nonexistent/metrics: '
	inode=$(stat -c %i metrics)
	wait_until 300 eval "[ \"\$(stat -c %i metrics)\" != $inode ]"
	budget 0.01
}

@test "SIGHUP names what a running service cannot change, and leaves it" {
	printf '[metrics]\ntextfile = metrics\n[http]\nlisten = unix:%s/a\n' "$PWD" >"$etc/serve.conf"
	begin
	printf '[metrics]\ntextfile = metrics\n[http]\nlisten = unix:%s/b\n[history]\nhistory = %s/h.db\n' "$PWD" "$PWD" \
		>"$etc/serve.conf"
	reload 'the configuration was read again'
	logged 'warning: [http] listen has changed, which takes effect only when the service starts again'
	logged 'warning: [history] history has changed, which takes effect only when the service starts again'
	logged warning: 3
	[ -S a ]
	[ ! -e b ]
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	pid=''
	[ "$status" = 143 ]
	[ ! -e a ]
}

@test "after SIGHUP the command line still replaces what files say" {
	printf '[measure]\nbudget = 1%%\n' >"$etc/serve.conf"
	begin --textfile metrics --budget 3%
	wait_until 300 budget 0.03
	printf '[measure]\nbudget = 2%%\n[metrics]\ntextfile = other\n' >"$etc/serve.conf"
	reload 'the configuration was read again'
	inode=$(stat -c %i metrics)
	wait_until 300 eval "[ \"\$(stat -c %i metrics)\" != $inode ]"
	budget 0.03
	[ ! -e other ]
}
