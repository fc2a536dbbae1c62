# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -f help-text.awk docs/synopsis/*.txt: a C header with one string constant
# a file, wss_help_NAME, for virt-wss --help. Lines that start with # are left out.

function finish() {
	if (open)
		print "\t\"\";"
	open = 1
}

NR == 1 {
	print "/* Made from docs/synopsis/ by docs/help-text.awk. */"
}

FNR == 1 {
	finish()
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.txt$/, "", name)
	gsub(/-/, "_", name)
	printf "\n__attribute__((unused)) static const char wss_help_%s[] =\n", name
}

/^#/ {
	next
}

{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	printf "\t\"%s\\n\"\n", $0
}

END {
	finish()
}
