# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by tests that read and mark a recording in progress.
# shellcheck disable=SC2154

# shellcheck source-path=SCRIPTDIR source=../../scripts/embed.sh
. "$WSS_SRCDIR/scripts/embed.sh"

# Starts a recording in ./live that continues until "exec 4>&-".
start_live() { # OPTION... of mkrecording
	mkfifo hold
	"$mkrecording" live --hold "$@" <hold >said 3>&- &
	exec 4>hold
	wait_until 300 grep -q holding said
}
