#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The folders of src/ are stages of a pipeline: host -> track -> wss -> out. rec/ keeps
# what wss/ describes in a file.
# Data flows to the right. A folder may include what its line below lists:
# itself, base, and what it builds on. wss/ is pure numbers, and the struct of
# a sample is the contract between the stages, so track/ includes it to fill it
# and out/ to print it; wss/ itself includes neither of them.

setup() {
	cd "$WSS_SRCDIR" || return 1
}

# FOLDER: the folders whose headers it may include.
allowed() {
	case $1 in
	src/base) echo base ;;
	qmp) echo base qmp ;;
	src/wss) echo base wss ;;
	src/host) echo base qmp host ;;
	src/track) echo base qmp host wss track ;;
	src/store) echo base wss store ;;
	src/out) echo base wss out host ;;
	src/rec) echo base wss rec ;;
	src/service) echo base host wss track store rec out service ;;
	src/control) echo base host wss track store service control ;;
	src/cmd) echo base qmp host track wss store rec out service control cmd ;;
	*) return 1 ;;
	esac
}

folders() {
	echo qmp
	find src -mindepth 1 -maxdepth 1 -type d
}

# file:folder of each #include "folder/…" below DIRECTORY; one without a folder
# is a neighbour in the same folder, config.h or a made header.
includes() {
	grep -rHoE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^"/]+/' "$1" |
		sed 's/:.*"\(.*\)\//:\1/'
}

# Lists files that include a header matching RE, except those that match ALLOWED.
strangers() { # RE ALLOWED
	grep -rlE --include='*.[ch]' "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]($1)" src qmp |
		grep -vxE "$2" || true
}

@test "each folder includes only what it builds on" {
	local folder bad='' file target
	for folder in $(folders); do
		allowed "$folder" >/dev/null || { echo "no rule for $folder"; false; }
		while IFS=: read -r file target; do
			[[ " $(allowed "$folder") " == *" $target "* ]] || bad+="$file includes $target/"$'\n'
		done < <(includes "$folder")
	done
	echo "$bad"
	[ -z "$bad" ]
}

@test "the includes are really seen" {
	[ "$(includes src/base | wc -l)" -gt 3 ]
	[ "$(includes src/host | wc -l)" -gt 3 ]
}

@test "libvirt is in host/ only" {
	[ -n "$(strangers 'libvirt/' 'none')" ]
	run strangers 'libvirt/' 'src/host/[^/]+'
	echo "$output"
	[ -z "$output" ]
}

# main.c: their versions, for --version.
@test "libxml2 is in the readers and the writer of XML only" {
	[ -n "$(strangers 'libxml/' 'none')" ]
	run strangers 'libxml/|host/xml\.h' '(src/host/((domxml|element)\.c|(xml|devices)\.[ch])|src/out/element\.h|src/main\.c)'
	echo "$output"
	[ -z "$output" ]
}

@test "json-c is in qmp/ only" {
	[ -n "$(strangers 'json' 'none')" ]
	run strangers 'json-c/|json\.h' '(qmp/[^/]+|src/main\.c)'
	echo "$output"
	[ -z "$output" ]
}

# What every front end does is said in structs and errors: a service prints nothing, ends nothing and
# knows no command line.
@test "service/ knows no command line, standard output or exit code" {
	run grep -rnE --include='*.[ch]' \
		'getopt|stdout|stderr|STD(OUT|ERR)_FILENO|\b(printf|puts|putchar|exit|isatty)[[:space:]]*\(|WSS_EXIT_|"[^"]*--[a-z]' \
		src/service
	echo "$output"
	[ "$status" = 1 ]
}

@test "SQLite is in store/ only" {
	[ -n "$(strangers 'sqlite3' 'none')" ]
	run strangers 'sqlite3' '(src/store/[^/]+)'
	echo "$output"
	[ -z "$output" ]
}

@test "libbpf is in the recorder only" {
	run strangers '(linux/)?bpf(/|\.h)' 'src/track/recorder(-bpf|\.bpf)\.c'
	echo "$output"
	[ -z "$output" ]
}

@test "HTTP is nowhere yet" {
	run strangers 'microhttpd|ncurses' 'none'
	echo "$output"
	[ -z "$output" ]
}

@test "wss/ does no input or output" {
	run grep -rnE --include='*.[ch]' \
		'include <(fcntl|unistd|dirent|sys/stat|sys/socket)\.h>|\b(fopen|open|openat|read|write|socket)\(|/proc|/sys/' \
		src/wss
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
@test "no method is told apart by its address" {
	local names
	names=$(sed -n 's/.*[[:space:]]method(\([a-z0-9]*\)).*/\1/p' src/track/methods.h | paste -sd '|')
	[[ $names == mmu\|* ]]
	run grep -rnE --include='*.[ch]' "wss_tracker_($names)\b" src
	[ -n "$output" ]
	output=$(grep -vE "^src/track/($names)\.c:" <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
	run grep -rlE --include='*.[ch]' 'track/methods\.h' src
	output=$(grep -vxE "src/track/($names|tracker-list)\.c" <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

# Only a front end knows its options; code below it names the thing itself.
@test "no message below the commands names an option" {
	run grep -rnE --include='*.[ch]' '"([^"]*[^"[:alnum:]-])?--[a-z]' src/cmd
	[ -n "$output" ]
	run grep -rnE --include='*.[ch]' '"([^"]*[^"[:alnum:]-])?--[a-z]' src qmp
	output=$(grep -vE '^src/(cmd/|main\.c:)|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}

@test "control/ knows no command line, no standard output and no exit code" {
	run grep -rnE --include='*.[ch]' \
		'getopt|struct wss_cli|\b(stdout|printf|puts|putchar|exit)\b[[:space:]]*[(,;]|WSS_EXIT_' \
		src/control
	echo "$output"
	[ "$status" = 1 ]
}

@test "every source file names its licence in its first lines" {
	local file bad=''
	while read -r file; do
		head -n 2 "$file" | grep -q 'SPDX-License-Identifier: LGPL-2.1-or-later' || bad+="$file "
	done < <(find src qmp tests vm-images scripts docs dist -type f \
		! -name '*.md' ! -name '*.xml' ! -name '*.json' ! -name '*.log' ! -name '*.trs' \
		! -path '*/fixtures/*' ! -path '*/seeds/*' ! -path '*/.deps/*' ! -name '*.[oa1]' ! -name .dirstamp)
	echo "$bad"
	[ -z "$bad" ]
}

# What others have prepared under a name is looked at first: base/file.h. /dev/null, the directory
# of KVM's counters and the history's own files, whose directory was checked, are no such names.
@test "files that a user names are opened by base/file and base/newfile only" {
	run grep -rnE --include='*.[ch]' '(^|[^>_[:alnum:]])(fopen|freopen|open|openat|creat|mkstemp)[[:space:]]*\(' src qmp
	[ "$(grep -c '^src/base/file\.c:' <<<"$output")" -ge 3 ]
	output=$(grep -vE '^src/(base/(file|newfile|root|child)\.c|main\.c|host/kvmstat\.c|store/(create|lock|place)\.c):' \
		<<<"$output" || true)
	output=$(grep -vE '^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)' <<<"$output" || true)
	echo "$output"
	[ -z "$output" ]
}
