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
	mkdir "$BATS_TEST_TMPDIR/page" "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/h"
	awk -v directory="$BATS_TEST_TMPDIR/page/" '!/^#/ { print >(directory substr(FILENAME, 15)) }' docs/synopsis/*.txt
	rm "$BATS_TEST_TMPDIR/page/global.txt"
	for command in $(commands); do
		"$virt_wss" "$command" --help >"$BATS_TEST_TMPDIR/help/$command.txt"
		"$virt_wss" "$command" -h >"$BATS_TEST_TMPDIR/h/$command.txt"
	done
	diff -r "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page"
	diff -r "$BATS_TEST_TMPDIR/h" "$BATS_TEST_TMPDIR/page"
}

@test "the manual page is correct POD" {
	man_text >"$BATS_TEST_TMPDIR/virt-wss.pod"
	podchecker "$BATS_TEST_TMPDIR/virt-wss.pod"
}

section() { # NAME: that of the manual page
	sed -nE "/^=head[12] $1\$/,/^=head[12] /p" "$BATS_TEST_TMPDIR/page"
}

# One program for all of them, as there are hundreds of options.
@test "the manual page has each command, with its options and an example" {
	man_text >"$BATS_TEST_TMPDIR/page"
	for command in $(commands); do
		"$virt_wss" "$command" --help >"$BATS_TEST_TMPDIR/help.$command"
	done
	# shellcheck disable=SC2046
	perl -e '
		my ($directory, @commands) = @ARGV;
		my $bad = 0;
		sub complain { print "@_\n"; $bad = 1 }
		sub text_of { open(my $file, "<", $_[0]) or die "$_[0]: $!"; local $/; <$file> }
		# The text of an option in a help text, in one line.
		sub option_text {
			my ($name, $option) = @_;
			my ($inside, $text) = (0, "");
			for (split /\n/, text_of("docs/synopsis/$name.txt")) {
				$inside = 0 if /^[^ ]|^$/;
				$inside = /^  (-., )?$option( |$)/ if /^  -/;
				s/^  (-., )?--[^ ]+( [^ ]+)? +//;
				$text .= " " . s/^ +//r if $inside;
			}
			complain("docs/synopsis/$name.txt: no $option") unless $text;
			return $text;
		}
		my %section = map { /^=head[12] (.*)/ ? ($1 => $_) : () } split /^(?==head[12] )/m, text_of("$directory/page");
		for my $command (@commands) {
			my $page = $section{$command} // "";
			$page =~ /^    virt-wss .*\b$command\b.* web1|^    virt-wss $command/m or
				complain("$command: no example in the manual page: write one into docs/synopsis/$command.txt");
			for my $option (text_of("$directory/help.$command") =~ /^  (?:-., )?(--[a-z-]+)/mg) {
				$page =~ /^=item B<([^>]*, )?$option\b/m or complain("$command: no $option in the manual page");
				# Where the page refers to another section, that one explains the same option.
				my ($other) = $page =~ /^=item B<(?:[^>]*, )?$option(?:, [^>]*)?> \(see B<(.*)>\)$/m or next;
				option_text($command, $option) eq option_text($other, $option) or
					complain("$command: $option is not what $other explains");
				$other = "GLOBAL OPTIONS" if $other eq "global";
				($section{$other} // "") =~ /^=item B<(-., )?$option( [^,>]+)?>$/m or
					complain("$command: $option refers to $other, which does not explain it");
			}
		}
		exit $bad' "$BATS_TEST_TMPDIR" $(commands)
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

@test "the manual page has each column that the first table of a command shows by default" {
	man_text | sed 's/E<lt>/</g; s/E<gt>/>/g' >"$BATS_TEST_TMPDIR/page"
	for command in $(with_table); do
		section=$(section "$command" | grep '^Columns: ')
		"$virt_wss" "$command" --columns help | sed '/:$/,$d' | awk -F '  +' '
			$3 == "default" && $1 != "domain" {
				sub(/, (in (bytes|seconds|percent)|a count|1 = 100%)/, "", $4)
				print "B<" $2 ">: " $4 "."
			}' >"$BATS_TEST_TMPDIR/wanted"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -ge 3 ]
		while read -r column; do
			[[ $section != *"$column"* ]] || continue
			# Then it says which other section explains the column, in the same words.
			heading=${column#B<}
			other=$(sed -nE "s|.*B<([^>]*, )?${heading%%>*}(, [^>]*)?>: see B<([a-z-]+)>.*|\3|p" <<<"$section")
			section "${other:-none}" | grep -qF -- "$column" || {
				echo "$command: the manual page does not have $column"
				false
			}
		done <"$BATS_TEST_TMPDIR/wanted"
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
@test "each test that docs/inventories.md names exists" {
	local test tests
	tests=$(grep -o '`[a-z]*/[a-z-]*\.bats`' "$WSS_SRCDIR/docs/inventories.md" | tr -d '`' | sort -u)
	[ "$(wc -l <<<"$tests")" -ge 10 ]
	for test in $tests; do
		[ -f "$WSS_SRCDIR/tests/$test" ] || { echo "$test"; return 1; }
	done
}

@test "no example listens where an exporter of libvirt does" {
	cd "$WSS_SRCDIR"
	grep -rqE ':19177\b' README.md docs dist
	run grep -rnE ':9177\b' README.md docs dist
	echo "$output"
	[ "$status" = 1 ]
}

@test "each option in the help of a command is accepted by it" {
	local commands
	commands=$(commands)
	# An option may take the word after it for a file to write.
	cd "$BATS_TEST_TMPDIR"
	for command in $commands; do
		for option in $(options_of "$command"); do
			# The word after it is an option that does not exist, or its value. No command runs long: serve takes
			# no domain.
			status=0
			output=$("$virt_wss" "$command" "$option" --no-such-option -c nonsense:///x web1 2>&1) || status=$?
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
