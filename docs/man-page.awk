# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -f man-page.awk -v synopsis=DIRECTORY -v columns=DIRECTORY virt-wss.pod: the POD, in
# which these lines are replaced by text from NAME.txt in the two directories, so that the
# manual page says the same as --help and --columns help:
#
# =for wss-usage NAME       usage
# =for wss-about NAME       usage, what the command does, and the examples of the help text
# =for wss-options NAME     options
# =for wss-reference NAME   options, and the columns that the first table shows by default
# =for wss-others           a section for each command that has none in the POD

function escaped(text) {
	gsub(/[<>]/, "\001&", text)
	gsub(/\001</, "E<lt>", text)
	gsub(/\001>/, "E<gt>", text)
	return text
}

# The lines of a help text between the one that matches from and the one that matches to.
function part_of(name, from, to,    file, line, inside, text) {
	file = synopsis "/" name ".txt"
	while ((getline line < file) > 0) {
		if (line ~ to)
			inside = 0
		if (inside)
			text = text line "\n"
		if (line ~ from)
			inside = 1
	}
	close(file)
	return text
}

function usage(name,    text) {
	text = part_of(name, "^#", "^$")
	sub(/^Usage: /, "", text)
	gsub(/(^|\n) *virt-wss/, "\n    virt-wss", text)
	print substr(text, 2)
}

function about(name,    examples) {
	usage(name)
	print escaped(part_of(name, "^$", "^(Options|Examples):"))
	examples = part_of(name, "^Examples:", "^never$")
	gsub(/(^|\n) /, "&  ", examples)
	if (examples)
		print examples
}

# Items stand beside their text if they are short enough, without blank lines between them.
function item(tag, text) {
	if (!items++)
		print "=over 20\n"
	printf "=item B<%s>\n\n%s\n\n", tag, escaped(text)
	if (items == 1)
		print "=for man .PD 0\n"
}

# Whether an earlier section has explained it with the same words: that section's name waits in firsts[], and
# short, what it is called there, in same[].
function is_explained(name, tag, text, short,    first) {
	if (!((tag, text) in explained)) {
		explained[tag, text] = name
		return 0
	}
	first = explained[tag, text]
	if (!(first in same))
		firsts[++sections] = first
	same[first] = same[first] ", " escaped(short)
	return 1
}

function option(name, tag, text,    short) {
	short = tag
	sub(/^-., /, "", short)
	sub(/ .*/, "", short)
	if (!is_explained(name, tag, text, short))
		item(tag, text)
}

# An option starts in column 3, what it does two blanks or more behind it, and lines that
# start further right go on with that.
function options(name,    n, i, line, at, tag, text) {
	delete same
	items = sections = 0
	n = split(part_of(name, "ptions:$", "^Examples:"), line, "\n")
	for (i = 1; i <= n; i++) {
		if (line[i] ~ /^  -/) {
			if (tag)
				option(name, tag, text)
			line[i] = substr(line[i], 3)
			at = match(line[i], /  +/)
			tag = substr(line[i], 1, at - 1)
			text = substr(line[i], at + RLENGTH)
		} else if (sub(/^ +/, "", line[i])) {
			text = text " " line[i]
		}
	}
	if (tag)
		option(name, tag, text)
	for (i = 1; i <= sections; i++)
		printf "=item B<%s> (see B<%s>)\n\n", substr(same[firsts[i]], 3), firsts[i]
	if (items)
		print "=back\n\n=for man .PD\n"
}

# A line of the list is NAME, HEADING, SHOWN and MEANING, with two blanks or more between
# them. The list of a second table begins with a line that ends in a colon.
function glossary(name,    file, line, part, text, i) {
	delete same
	sections = 0
	file = columns "/" name ".txt"
	while ((getline line < file) > 0 && line !~ /:$/)
		if (split(line, part, /  +/) == 4 && part[3] == "default" && part[1] != "domain") {
			sub(/, (in (bytes|seconds|percent)|a count|1 = 100%)/, "", part[4])
			if (!is_explained(name, part[2], part[4], part[2]))
				text = text " B<" escaped(part[2]) ">: " escaped(part[4]) "."
		}
	close(file)
	for (i = 1; i <= sections; i++)
		text = text " B<" substr(same[firsts[i]], 3) ">: see B<" firsts[i] ">."
	if (text)
		print "Columns:" text "\n"
}

function reference(name) {
	options(name)
	glossary(name)
}

function others(    file, name) {
	while (("ls " synopsis) | getline file) {
		name = file
		if (sub(/\.txt$/, "", name) && name != "global" && !(name in had)) {
			print "=head2 " name "\n"
			about(name)
			reference(name)
		}
	}
}

/^=head2 [a-z-]+$/ { had[$2] = 1 }
$1 == "=for" && $2 == "wss-usage" { usage($3); next }
$1 == "=for" && $2 == "wss-about" { about($3); next }
$1 == "=for" && $2 == "wss-options" { options($3); next }
$1 == "=for" && $2 == "wss-reference" { reference($3); next }
$1 == "=for" && $2 == "wss-others" { others(); next }
{ print }
