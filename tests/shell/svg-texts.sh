# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Loaded by the tests of pictures.

# The texts of SVG, a line each: CLASS, a colon, the text.
texts() { # SVG
	sed -nE 's/^<text class="([^"]*)".*>([^<]*)<\/text>$/\1: \2/p' "$1" |
		sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g'
}

# All TEXTs, each with its class, are among the texts of SVG.
says() { # SVG TEXT...
	local svg=$1 text
	shift
	for text; do
		texts "$svg" | grep -qxF "$text" ||
			{ echo "$svg: not there: $text"; texts "$svg"; return 1; }
	done
}

# None of the texts of SVG, each with its class, matches.
lacks() { # SVG REGULAR-EXPRESSION
	if texts "$1" | grep -E "$2"; then
		return 1
	fi
}
