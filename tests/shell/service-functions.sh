# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by the tests of what asks the service: a service that says whatever they want.

# One guest in JSON; what is not given is not known.
guest() { # NAME STATE [WSS-MIB BALLOON-MIB AGE [MORE MEMBERS OF THE GUEST [OF THE SAMPLE]]]
	local LC_ALL=C name=$1 state=$2 wss=${3-} balloon=${4-} age=${5-} digits=0 i byte
	# Forty guests would be a hundred processes.
	for ((i = 0; i < ${#name}; i++)); do
		printf -v byte %d "'${name:i:1}"
		digits=$(((digits * 31 + byte) & 0xffffffff))
	done
	printf '{"domain":"%s","uuid":"%08x-0000-4000-8000-000000000000","state":"%s","period_seconds":60%s' \
		"$name" "$digits" "$state" "${6:+,$6}"
	[ -z "$wss" ] || printf ',"kind":"fine","sample_age_seconds":%s,"sample":{"quality":"ok","method":"mmu","observes":"accesses","wss_bytes":%s,"memory":{"balloon_bytes":%s,"maximum_bytes":%s,"rss_bytes":%s}%s}' \
		"$age" $((wss << 20)) $((balloon << 20)) $((balloon << 21)) $((balloon << 20)) "${7:+,$7}"
	printf '}'
}

# The whole answer.
answer() { # [-s SECONDS-SINCE-THE-START] [-h HELD] [-u UP] [GUEST]...
	local held='' up=',"libvirt_up":true' separator=''
	[ "${1-}" != -s ] || { up=",\"state\":\"starting\",\"since_seconds\":$2"; shift 2; }
	[ "${1-}" != -h ] || { held=",\"held\":\"$2\""; shift 2; }
	[ "${1-}" != -u ] || { up=${2:+",\"libvirt_up\":$2"}; shift 2; }
	printf '{"schema":"virt-wss/guests/1","time":"@NOW@"%s%s,"guests":[' "$held" "$up"
	while [ $# -gt 0 ]; do
		printf '%s%s' "$separator" "$1"
		separator=,
		shift
	done
	printf ']}\n'
}

# Starts a service that answers with the file "page". -> service_pid
begin_service() { # [raw|hang]
	# An earlier service may have written "ready" to this file.
	: >service.out
	"$WSS_SRCDIR/tests/tools/fake-service" socket page "$@" >service.out 2>&1 3>&- &
	service_pid=$!
	wait_until 300 grep -q ready service.out
}

end_service() {
	[ -z "${service_pid-}" ] || { kill "$service_pid"; wait "$service_pid"; } 2>/dev/null || true
	service_pid=''
	rm -f socket
}
