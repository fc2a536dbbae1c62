# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Loaded by the tests of pictures.

# Prints the texts of SVG, one per line: CLASS, a colon, the text.
texts() { # SVG
	sed -nE 's/^<text class="([^"]*)".*>([^<]*)<\/text>$/\1: \2/p' "$1" |
		sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g'
}

# Whether all TEXTs, each with its class, are among the texts of SVG.
says() { # SVG TEXT...
	local svg=$1 text
	shift
	for text; do
		texts "$svg" | grep -qxF "$text" ||
			{ echo "$svg: not there: $text"; texts "$svg"; return 1; }
	done
}

# Whether no text of SVG, with its class, matches.
lacks() { # SVG REGULAR-EXPRESSION
	if texts "$1" | grep -E "$2"; then
		return 1
	fi
}
