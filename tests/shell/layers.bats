#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the rules of the rooms (HACKING.md): which may use which other, and what belongs where.
# walk.bats in tests/root/ tests the same of calls at run time.

load folders.sh

setup() {
	cd "$WSS_SRCDIR" || return 1
}

# Lists files that include a header matching RE, except those that match ALLOWED.
strangers() { # RE ALLOWED
	grep -rlE --include='*.[ch]' "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]($1)" src qmp |
		grep -vxE "$2" || true
}

# That a room reaches no other is the compiler's to check: rooms/ROOM/ has nothing else.
@test "the rooms form no circle" {
	local room used
	for room in $(folders); do
		for used in $(allowed "$room"); do
			echo "$used ${room#src/}"
		done
	done >"$BATS_TEST_TMPDIR/arrows"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/arrows")" -gt 40 ]
	run tsort "$BATS_TEST_TMPDIR/arrows"
	echo "$output"
	[ "$status" = 0 ]
}

@test "each room uses only rooms above it in HACKING's table, which has all" {
	local above=' ' row room used
	while read -r row; do
		room=${row#src/}
		for used in $(allowed "$row"); do
			[ "$used" = "$room" ] || [[ $above == *" $used "* ]] || { echo "$room uses $used"; return 1; }
		done
		above+="$room "
	done < <(sed -nE 's,^\| `(src/)?([a-z]+)/` \|.*,\1\2,p' HACKING.md)
	diff <(tr ' ' '\n' <<<"$above" | grep . | sort) <(folders | sed 's,^src/,,' | sort)
}

# Also by what those include that it includes.
@test "no room names a room that it does not use" {
	local room used
	[ -e "$WSS_BUILDDIR/rooms.stamp" ] || skip "not built"
	for room in $(folders); do
		for used in $(allowed "$room"); do
			[ "$used" = "${room#src/}" ] ||
				grep -qF "rooms/${room#src/}/$used/" "$WSS_BUILDDIR/$room"/.deps/*.Po ||
				{ echo "${room#src/} does not use $used"; return 1; }
		done
	done
}

# Its first comment: the room, what flows in and out, threads, and where to begin.
@test "each room opens with a header of its name" {
	local room name comment word
	for room in $(folders); do
		name=${room#src/}
		comment=$(sed -n '2,/\*\/$/p' "$room/$name.h")
		echo "$name: $(wc -l <<<"$comment") lines"
		[ "$(wc -l <<<"$comment")" -ge 10 ]
		[ "$(wc -l <<<"$comment")" -le 30 ]
		[ "$(sed -n 2p <<<"$comment" | cut -d : -f 1)" = " * The room $name/" ]
		for word in '([iI]n:| in )' '([oO]ut:| out )' '(thread|worker)' 'Begin with'; do
			grep -qE "$word" <<<"$comment" || { echo "no $word"; return 1; }
		done
	done
}

@test "no header includes itself by way of others" {
	grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^"]+"' qmp/*.h src/*/*.h |
		sed -E 's,^(src/)?([^:]*):.*"([^"]*)",\2 \3,' >"$BATS_TEST_TMPDIR/includes"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/includes")" -gt 300 ]
	run tsort "$BATS_TEST_TMPDIR/includes"
	[ "$status" = 0 ]
}

@test "an include of a room that is not named does not compile" {
	local room
	[ -e "$WSS_BUILDDIR/rooms.stamp" ] || skip "not built"
	for room in $(folders); do
		diff <(allowed "$room" | tr -s ' ' '\n' | grep . | sort) <(find "$WSS_BUILDDIR/rooms/${room#src/}" -type l -printf '%f\n' | sort)
	done
	echo '#include "measure/window.h"' >"$BATS_TEST_TMPDIR/a.c"
	gcc -fsyntax-only -I"$WSS_BUILDDIR/rooms/measure" -I/usr/include/libxml2 "$BATS_TEST_TMPDIR/a.c"
	run gcc -fsyntax-only -I"$WSS_BUILDDIR/rooms/host" -I/usr/include/libxml2 "$BATS_TEST_TMPDIR/a.c"
	echo "$output"
	[[ $output == *"measure/window.h: No such file"* ]]
}

@test "libvirt is used in host/ only" {
	[ -n "$(strangers 'libvirt/' 'none')" ]
	run strangers 'libvirt/' 'src/host/[^/]+'
	echo "$output"
	[ -z "$output" ]
}

# main.c prints their versions.
@test "libxml2 is used by the readers and the writer of XML only" {
	[ -n "$(strangers 'libxml/' 'none')" ]
	run strangers 'libxml/|host/xml\.h' '(src/host/((domxml|domxml-memory|element)\.c|(xml|devices|domxml-private)\.[ch])|src/measure/element\.h|src/main\.c)'
	echo "$output"
	[ -z "$output" ]
}

# A client of the service gets its tree from qmp/, and reads it in one file. main.c prints the version.
@test "json-c is used in qmp/ and by the reader of the service's answers only" {
	[ -n "$(strangers 'json' 'none')" ]
	run strangers 'json-c/|json\.h' '(qmp/[^/]+|src/client/json-fields\.c|src/main\.c)'
	echo "$output"
	[ -z "$output" ]
}

# What a feature finds, it reports through structs and errors: it does not print, end the process or know the command
# line.
@test "no feature knows the command line, a standard stream or an exit code" {
	local words='getopt|optarg|optind|struct wss_cli|\bstd(in|out|err)\b|STD(IN|OUT|ERR)_FILENO'
	words+='|\b(v?printf|puts|putchar|exit|isatty)[[:space:]]*\(|\bEXIT_(SUCCESS|FAILURE)|WSS_EXIT_'
	run grep -rnE --include='*.[ch]' "$words" src/cmd src/main.c
	[ "$status" = 0 ]
	run grep -rnE --include='*.[ch]' "$words" src/{measure,pages,recording,cold,history,sizing,migration,balloon,client,fleet,watch}
	echo "$output"
	[ "$status" = 1 ]
}

@test "SQLite is used in history/ only" {
	[ -n "$(strangers 'sqlite3' 'none')" ]
	run strangers 'sqlite3' '(src/history/[^/]+)'
	echo "$output"
	[ -z "$output" ]
}

@test "libbpf is used in kvm/ only" {
	run strangers '(linux/)?bpf(/|\.h)' 'src/kvm/(vm-bpf|kvm\.bpf)\.c'
	echo "$output"
	[ -z "$output" ]
}

@test "HTTP is spoken by the files of its process only" {
	[ -n "$(strangers 'microhttpd' 'none')" ]
	run strangers 'microhttpd' 'src/serve/http-(child|connections)\.c'
	echo "$output"
	[ -z "$output" ]
}

@test "libseccomp and libcap-ng are used where rights are given up only" {
	[ -n "$(strangers 'seccomp\.h' 'none')" ]
	run strangers 'seccomp\.h' 'src/serve/http-confine\.c'
	echo "$output"
	[ -z "$output" ]
	run strangers 'cap-ng\.h' 'src/serve/(http-confine|rights)\.c'
	echo "$output"
	[ -z "$output" ]
}

# It has no rights, and needs none for what it includes: the guests are the service's.
@test "the process that speaks HTTP knows neither guests nor libvirt" {
	run grep -hE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^"/]+/' \
		src/serve/http-{named,child,confine,connections,pages,route}.[ch]
	[ "$status" = 0 ]
	output=$(grep -vE '"(base/[^"]*|serve/(http-(named|child|confine|connections|listen|pages|route)|page)\.h|show/metrics\.h)"' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

@test "libcurl is used by one file" {
	[ -n "$(strangers 'curl/' 'none')" ]
	run strangers 'curl/' 'src/client/http-get\.c'
	echo "$output"
	[ -z "$output" ]
}

@test "ncurses is used by the screen of top only" {
	[ -n "$(strangers 'n?curses|term\.h' 'none')" ]
	run strangers 'n?curses|term\.h' 'src/top/screen\.c'
	echo "$output"
	[ -z "$output" ]
}

@test "pages/ and migration/ do no input or output but the pictures" {
	run grep -rnE --include='*.[ch]' \
		'include <(fcntl|unistd|dirent|sys/stat|sys/socket)\.h>|\b(fopen|open|openat|read|write|socket)\(|/proc|/sys/' \
		src/pages src/migration
	echo "$output"
	[ "$status" = 1 ]
}

@test "files of /proc and /sys are opened through the rooted handle only" {
	run grep -rnE --include='*.[ch]' '\b(fopen|open|openat|opendir|readlink|access|stat)[[:space:]]*\([^;]*"/(proc|sys|run)\b' \
		src qmp
	output=$(grep -vE '^src/base/(root|child)\.c:' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

# All facts about a method are in its wss_tracker_ops.
@test "no method is identified by its address" {
	local names
	names=$(sed -n 's/.*[[:space:]]method(\([a-z0-9]*\)).*/\1/p' src/measure/methods.h | paste -sd '|')
	[[ "|$names|" == *"|mmu|"* ]]
	run grep -rnE --include='*.[ch]' "wss_tracker_($names)\b" src
	[ -n "$output" ]
	output=$(grep -vE "^src/measure/($names)\.c:" <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
	run grep -rlE --include='*.[ch]' 'measure/methods\.h' src
	output=$(grep -vxE "src/measure/($names|tracker-list)\.c" <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

# All facts about a command are in its struct wss_command. "help" is also a value of --columns, and
# "history" an option.
@test "no command is told apart by its name" {
	local names
	names=$(sed -n 's/^[[:space:]]*X(\([a-z_]*\)).*/\1/p' src/cmd/cmd.h | tr _ - | grep -vx help | paste -sd '|')
	[[ "|$names|" == *"|sample|"* ]]
	run grep -nE "\"($names)\"" src/main.c src/cmd/{common,completion,dispatch,help,unknown,view}.c
	output=$(grep -vE '\.name = |\{"history", WSS_VALUES_FILES\}' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

# Only a command knows its options; code below it names the thing itself. The "-n" of "ulimit
# -n" is not an option of ours, nor are those of virsh.
@test "no message below the commands names an option" {
	local words='"([^"]*[^"[:alnum:]-])?--?[a-zA-Z]([^"[:alnum:]%.][^"]*)?"|"([^"]*[^"[:alnum:]-])?--[a-z]'
	run grep -rnE --include='*.[ch]' "$words" src/cmd
	[ -n "$output" ]
	run grep -rnE --include='*.[ch]' "$words" src qmp
	output=$(grep -vE '^src/(cmd/|main\.c:)|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)|"ulimit -n"|"virsh ' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

makefiles() {
	echo Makefile.am
	find src qmp tests docs vm-images -name Makemodule.am
}

# Tests link the same libraries as the program: src/libcmd.a and those below it. They
# substitute parts through tables (methods, recorder, guests, clock), or at run time.
@test "tests compile nothing of the program, and the linker replaces nothing" {
	local files of_tests
	mapfile -t files < <(makefiles)
	mapfile -t of_tests < <(makefiles | grep '^tests/')
	[ "${#of_tests[@]}" -gt 4 ]
	run grep -nE '(^|[[:space:]])(\$\((top_)?srcdir\)/)?(src|qmp)/[^[:space:]]*\.c\b|(virt_wss|(src|qmp)_lib[a-z]+_a)_SOURCES|-Dmain=' \
		"${of_tests[@]}"
	echo "$output"
	[ "$status" = 1 ]
	run grep -nE -e '--(wrap|defsym)|-z,muldefs|allow-multiple-definition' configure.ac "${files[@]}"
	echo "$output"
	[ "$status" = 1 ]
}

# Prints nm's symbols of these TYPES, each with its file: SYMBOL FILE.
symbols() { # TYPES FILE...
	local types=$1
	shift
	nm -A -P "$@" 2>/dev/null | awk -v types="$types" 'index(types, $3) { sub(/:$/, "", $1); print $2, $1 }' | sort -u
}

built() {
	[ -e "$WSS_BUILDDIR/src/libcmd.a" ] || skip "not built"
	libraries=("$WSS_BUILDDIR"/src/lib*.a "$WSS_BUILDDIR/qmp/libqmp.a")
	mapfile -t objects < <(find "$WSS_BUILDDIR/tests" -name '*.o' ! -path '*/CMakeFiles/*')
}

@test "no test defines a function of ours, or of a library that we use" {
	local libraries objects shared
	built
	[ "${#objects[@]}" -gt 20 ]
	mapfile -t shared < <(ldd "$WSS_BUILDDIR/virt-wss" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }')
	[ "${#shared[@]}" -gt 5 ]
	{
		symbols T "${libraries[@]}"
		nm -D -P --defined-only "${shared[@]}" 2>/dev/null | awk '$2 ~ /^[TWi]$/ { sub(/@.*/, "", $1); print $1 }'
	} | cut -d ' ' -f 1 | sort -u >"$BATS_TEST_TMPDIR/defined"
	grep -qx malloc "$BATS_TEST_TMPDIR/defined"
	grep -qx virConnectOpen "$BATS_TEST_TMPDIR/defined"
	grep -qx wss_conn_open "$BATS_TEST_TMPDIR/defined"
	run join "$BATS_TEST_TMPDIR/defined" <(symbols T "${objects[@]}")
	echo "$output"
	[ -z "$output" ]
}

# An export used only by its own file should be static; one used by none is dead.
@test "what is exported is used in another file" {
	local libraries objects
	built
	symbols 'TDRBC' "${libraries[@]}" | cut -d ' ' -f 1 | sort -u >"$BATS_TEST_TMPDIR/exported"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/exported")" -gt 500 ]
	symbols U "${libraries[@]}" "${objects[@]}" "$WSS_BUILDDIR"/src/virt_wss-main.o |
		cut -d ' ' -f 1 | sort -u >"$BATS_TEST_TMPDIR/used"
	run join -v 1 "$BATS_TEST_TMPDIR/exported" "$BATS_TEST_TMPDIR/used"
	echo "$output"
	[ -z "$output" ]
}

@test "every source file names its licence in its first lines" {
	local file bad=''
	while read -r file; do
		head -n 2 "$file" | grep -q 'SPDX-License-Identifier: LGPL-2.1-or-later' || bad+="$file "
	done < <(find src qmp tests vm-images scripts docs dist -type f \
		! -name '*.md' ! -name '*.xml' ! -name '*.json' ! -name '*.png' ! -name '*.log' ! -name '*.trs' \
		! -path '*/fixtures/*' ! -path '*/seeds/*' ! -path '*/.deps/*' ! -name '*.[oa1]' ! -name .dirstamp)
	echo "$bad"
	[ -z "$bad" ]
}

# Files that others may have prepared are examined first: base/file.h. Exceptions are
# /dev/null, the directory of KVM's counters, root's locks in a directory of root's, and the history's own files, whose directory was
# checked.
@test "files that a user names are opened by base/file and base/newfile only" {
	run grep -rnE --include='*.[ch]' '(^|[^>._[:alnum:]])(fopen|freopen|open|openat|creat|mkstemp)[[:space:]]*\(' src qmp
	[ "$(grep -c '^src/base/file\.c:' <<<"$output")" -ge 3 ]
	output=$(grep -vE '^src/(base/(file|newfile|root|child)\.c|main\.c|host/kvmstat\.c|measure/(control|kvm-cost)\.c|top/screen\.c|history/(create|lock|place)\.c):' \
		<<<"$output" || true)
	output=$(grep -vE '^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

@test "each switch for tests is described, and used" {
	cd "$WSS_SRCDIR"
	diff <(sed -nE 's/^ \*   ([a-z]+-[a-z]+) .*/\1/p' src/base/fault.h | sort) \
		<(grep -rhoE 'wss_fault\("[^"]*"' src --include='*.c' | sed 's/.*"\(.*\)"/\1/' | sort -u)
}
