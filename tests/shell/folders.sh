# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The rooms of the house, which are the folders of src/, and qmp.

# FOLDER: prints the rooms that it may use, itself among them, as its Makemodule.am says.
allowed() {
	echo "${1#src/} $(sed -n "s/^${1#src/}_uses =//p" "$WSS_SRCDIR/$1/Makemodule.am")"
}

folders() {
	echo qmp
	dirname src/*/Makemodule.am
}
