# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -f man-page.awk -v synopsis=DIRECTORY -v columns=DIRECTORY virt-wss.pod: the POD
# with each line "=for wss-usage NAME" replaced by the usage line of the file NAME.txt in
# the first directory, "=for wss-options NAME" by its options, so that the manual page and
# --help say the same, and "=for wss-columns NAME" by the columns that NAME.txt in the
# second directory lists.
#
# What has no place of its own gets one: "=for wss-usage-others" stands for the usage of
# the commands that had none so far, "=for wss-commands-others" for a section for each that
# has none, made of its help text, and "=for wss-columns-others" for one on its columns.

function escaped(text) {
	gsub(/[<>]/, "\001&", text)
	gsub(/\001</, "E<lt>", text)
	gsub(/\001>/, "E<gt>", text)
	return text
}

function file_of(name) {
	return synopsis "/" name ".txt"
}

function usage(name,    line) {
	while ((getline line < file_of(name)) > 0)
		if (sub(/^Usage: /, "", line))
			print "    " line "\n"
	close(file_of(name))
}

# An option starts in column 3, what it does two blanks or more behind it, and
# lines that start further right go on with that.
function options(name,    line, at, body) {
	print "=over 4\n"
	while ((getline line < file_of(name)) > 0) {
		if (line ~ /^  -/) {
			line = substr(line, 3)
			at = match(line, /  +/)
			body = substr(line, at + RLENGTH)
			printf "%s=item B<%s>\n\n%s", separator, escaped(substr(line, 1, at - 1)), escaped(body)
			separator = "\n\n"
		} else if (separator && line ~ /^   /) {
			sub(/^ +/, "", line)
			printf "\n%s", escaped(line)
		}
	}
	close(file_of(name))
	print separator "=back\n"
	separator = ""
}

# A line of the list is NAME, HEADING, SHOWN and MEANING, with two blanks or more between
# them; one that ends in a colon begins the list of another table.
function glossary(name,    line, file, part, item) {
	file = columns "/" name ".txt"
	print "=over 4\n"
	while ((getline line < file) > 0) {
		if (line ~ /:$/) {
			sub(/:$/, "", line)
			printf "=back\n\nIts I<%s>:\n\n=over 4\n\n", line
		} else if (line !~ /^(#|NAME |$)/) {
			split(line, part, /  +/)
			item = "B<" escaped(part[1]) ">" (part[2] == "-" ? "" : " (" escaped(part[2]) ")")
			printf "=item %s\n\n%s.\n\n", item, escaped(part[4])
		}
	}
	close(file)
	print "=back\n"
}

# The names of the commands in a directory that are not among those in had, separated by blanks.
function others(directory, had,    line, name, names) {
	while ((("ls " directory) | getline line) > 0) {
		name = line
		if (sub(/\.txt$/, "", name) && name != "global" && !(name in had))
			names = names " " name
	}
	close("ls " directory)
	return names
}

# What the help says between its usage and its options, and its examples.
function prose(name, from, to,    line, inside, body) {
	while ((getline line < file_of(name)) > 0) {
		if (line ~ to)
			inside = 0
		if (inside)
			body = body (from == "^Usage:" ? escaped(line) : line ? "    " substr(line, 3) : "") "\n"
		if (line ~ from)
			inside = 1
	}
	close(file_of(name))
	return body
}

function section(name,    body) {
	print "=head2 " name "\n"
	usage(name)
	print prose(name, "^Usage:", "^(Options|Examples):")
	if (system("grep -q '^Options:' " file_of(name)) == 0)
		options(name)
	body = prose(name, "^Examples:", "^never$")
	if (body)
		print body
}

/^=head2 Columns of / { had_columns[$4] = 1 }
/^=head2 [a-z-]+$/ { had_section[$2] = 1 }
$1 == "=for" && $2 == "wss-usage" { had_usage[$3] = 1 }

$1 == "=for" && $2 == "wss-columns" { glossary($3); next }
$1 == "=for" && $2 == "wss-usage" { usage($3); next }
$1 == "=for" && $2 == "wss-usage-others" {
	n = split(others(synopsis, had_usage), list, " ")
	for (i = 1; i <= n; i++)
		usage(list[i])
	next
}
$1 == "=for" && $2 == "wss-commands-others" {
	n = split(others(synopsis, had_section), list, " ")
	for (i = 1; i <= n; i++)
		section(list[i])
	next
}
$1 == "=for" && $2 == "wss-columns-others" {
	n = split(others(columns, had_columns), list, " ")
	for (i = 1; i <= n; i++) {
		print "=head2 Columns of " list[i] "\n"
		glossary(list[i])
	}
	next
}
$1 == "=for" && $2 == "wss-options" { options($3); next }
{ print }
