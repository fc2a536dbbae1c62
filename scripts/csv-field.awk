# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -f csv-field.awk -v name=COLUMN: print that column of every row after the header of
# virt-wss's CSV (RFC 4180, without line breaks in fields).

function split_row(row, cell,    n, at) {
	n = 0
	while (row != "") {
		n++
		if (row ~ /^"/) {
			match(row, /^"([^"]|"")*"/)
			cell[n] = substr(row, 2, RLENGTH - 2)
			gsub(/""/, "\"", cell[n])
			row = substr(row, RLENGTH + 1)
		} else {
			at = index(row ",", ",")
			cell[n] = substr(row, 1, at - 1)
			row = substr(row, at)
		}
		sub(/^,/, "", row)
	}
	return n
}

{ sub(/\r$/, "") }

NR == 1 {
	n = split_row($0, header)
	for (i = 1; i <= n; i++)
		if (header[i] == name)
			column = i
	if (!column) {
		print "csv-field: no column " name > "/dev/stderr"
		exit 1
	}
	next
}

{
	split("", cell)
	split_row($0, cell)
	print cell[column]
}
