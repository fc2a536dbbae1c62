#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the program's --help, the manual page and README.md agree.

setup() {
	cd "$WSS_SRCDIR" || return 1
	virt_wss=$WSS_BUILDDIR/virt-wss
	[ "$(commands | wc -l)" -ge 3 ]
}

commands() { # of the program's own help
	"$virt_wss" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'
}

options_of() { # COMMAND: its long options
	"$virt_wss" "$1" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
}

man_text() {
	awk -f docs/man-page.awk -v synopsis=docs/synopsis -v columns=docs/columns \
		docs/virt-wss.pod
}

@test "--help goes to stdout, exit 0" {
	"$virt_wss" --help >/dev/null
	[ -z "$("$virt_wss" --help 2>&1 >/dev/null)" ]
}

@test "--help is the text that the manual page is made from" {
	diff <("$virt_wss" --help | sed '/^Commands:$/,/^$/d') \
		<(grep -v '^#' docs/synopsis/global.txt | sed '/^Commands:$/,/^$/d')
	for command in $(commands); do
		diff <("$virt_wss" "$command" --help) <(grep -v '^#' "docs/synopsis/$command.txt")
		diff <("$virt_wss" "$command" -h) <(grep -v '^#' "docs/synopsis/$command.txt")
	done
}

@test "the manual page is correct POD" {
	man_text >"$BATS_TEST_TMPDIR/virt-wss.pod"
	podchecker "$BATS_TEST_TMPDIR/virt-wss.pod"
}

@test "the manual page has each command, with its options and an example" {
	for command in $(commands); do
		man_text | sed -n "/^=head2 $command\$/,/^=head[12] /p" >"$BATS_TEST_TMPDIR/section"
		grep -qE "^    virt-wss .*\b$command\b.* web1|^    virt-wss $command" "$BATS_TEST_TMPDIR/section" || {
			echo "$command: no example in the manual page: write one into docs/synopsis/$command.txt"
			false
		}
		for option in $(options_of "$command"); do
			grep -qE "^=item B<([^>]*, )?$option\b" "$BATS_TEST_TMPDIR/section" || {
				echo "$command: no $option in the manual page"
				false
			}
		done
	done
}

with_table() { # the commands that print one
	local command
	for command in $(commands); do
		! grep -q '^  --columns ' "docs/synopsis/$command.txt" || echo "$command"
	done
}

@test "docs/columns has each column as the program describes it" {
	for command in $(with_table); do
		{
			echo '# SPDX-License-Identifier: LGPL-2.1-or-later'
			"$virt_wss" "$command" --columns help
		} >"$BATS_TEST_TMPDIR/columns"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/columns")" -ge 3 ]
		if [ -n "${WSS_REGENERATE-}" ]; then
			cp "$BATS_TEST_TMPDIR/columns" "docs/columns/$command.txt"
		else
			diff "docs/columns/$command.txt" "$BATS_TEST_TMPDIR/columns"
		fi
	done
	# Those of a command that is gone, or prints no table any more, are deleted by hand.
	diff <(with_table | sort) <(basename -s .txt docs/columns/*.txt | sort)
}

@test "each column has a description, with the unit that its name ends in" {
	for command in $(with_table); do
		"$virt_wss" "$command" --columns help | awk -F '  +' '
			$1 == "NAME" || NF < 2 { next }
			NF != 4 || $4 == "-" { print "no description: " $0; bad = 1 }
			$1 ~ /_bytes$/ && $4 !~ /in bytes/ || $1 ~ /_seconds$/ && $4 !~ /in seconds/ ||
				$1 ~ /_percent$/ && $4 !~ /in percent/ { print "no unit: " $0; bad = 1 }
			END { exit bad }'
	done
}

@test "the manual page has each column of each command" {
	for command in $(with_table); do
		man_text | sed -n "/^=head2 Columns of $command\$/,/^=head[12] /p" >"$BATS_TEST_TMPDIR/section"
		"$virt_wss" "$command" --columns help | awk '$1 != "NAME" && NF > 1 { print $1 }' |
			while read -r column; do
				grep -qE "^=item B<$column>( |$)" "$BATS_TEST_TMPDIR/section" || {
					echo "$command: no column $column in the manual page"
					false
				}
			done
	done
}

@test "the list of commands describes each in one line of at most 80 columns" {
	"$virt_wss" --help | sed -n '/^Commands:$/,/^$/p' | awk '
		/^  / { n++; if (NF < 4 || length > 80) { print; bad = 1 } }
		END { exit bad || n < 10 }'
	for command in $(commands); do
		[ -f "docs/synopsis/$command.txt" ]
	done
}

@test "README.md names no command that does not exist" {
	grep -oE '^(\$ |    )(\./)?virt-wss [a-z-]+' README.md | awk '{ print $NF }' | sort -u |
		while read -r command; do
			commands | grep -qx "$command" || { echo "README.md: no command $command"; false; }
		done
}

# Exporters of libvirt, which run beside it, have port 9177.
@test "no example listens where an exporter of libvirt does" {
	cd "$WSS_SRCDIR"
	grep -rqE ':19177\b' README.md docs dist
	run grep -rnE ':9177\b' README.md docs dist
	echo "$output"
	[ "$status" = 1 ]
}

@test "each option in the help of a command is accepted by it" {
	for command in $(commands); do
		for option in $(options_of "$command"); do
			# The word after it is an option that does not exist, or its value, which may be
			# a file to write. No command runs long: serve takes no domain.
			run timeout 20 env -C "$BATS_TEST_TMPDIR" "$virt_wss" "$command" "$option" \
				--no-such-option -c nonsense:///x web1
			echo "$command $option: $output"
			[ "$status" != 0 ]
			[[ $output != *"option '$option'"* ]]
		done
	done
	run "$virt_wss" sample --no-such-option
	[ "$status" = 2 ]
}

@test "--version has the version of configure.ac and those of the libraries" {
	version=$(sed -n 's/^AC_INIT(\[virt-wss\], \[\(.*\)\])/\1/p' configure.ac)
	run "$virt_wss" --version
	[ "$status" = 0 ]
	[[ $output == *"$version"* && $output == *libvirt* && $output == *"recorders: counters; "* ]]
}
