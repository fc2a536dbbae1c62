# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The folders of src/ are stages of a pipeline (HACKING.md). A folder may include, and call, only
# the folders in its line below: itself, base, and those it builds on. wss/ is pure numbers, and
# the struct of a sample is the contract between the stages: track/ includes it to fill it in
# and out/ to print it, while wss/ includes neither of them.

# FOLDER: prints the folders whose headers it may include.
allowed() {
	case $1 in
	src/base) echo base ;;
	qmp) echo base qmp ;;
	src/wss) echo base wss ;;
	src/kvm) echo base kvm ;;
	src/host) echo base qmp host ;;
	src/track) echo base qmp kvm host wss track ;;
	src/store) echo base wss store ;;
	src/out) echo base wss out host ;;
	src/rec) echo base wss rec ;;
	src/service) echo base host wss track store rec out service ;;
	src/control) echo base host wss track store service control ;;
	src/serve) echo base host wss track store out service serve ;;
	src/client) echo base qmp client ;;
	src/cmd) echo base qmp host track wss store rec out service control serve client cmd ;;
	*) return 1 ;;
	esac
}

folders() {
	echo qmp
	find src -mindepth 1 -maxdepth 1 -type d
}
