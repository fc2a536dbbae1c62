# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by what starts Prometheus and VictoriaMetrics: at loopback ports of their own, with data in the
# current directory, ended by fleet_end.

# Processes that were started.
fleet_pids=()

# A port that is free now. What listens at it next might still lose it to another program.
free_port() {
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1)->sockport'
}

fleet_end() {
	local pid
	for pid in ${fleet_pids[@]+"${fleet_pids[@]}"}; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	fleet_pids=()
}

# Starts COMMAND with @PORT@ replaced by a free port, and waits until PATH answers there; again with another
# port if that one was taken. -> port
fleet_start() { # NAME PATH COMMAND...
	local name=$1 path=$2 attempt pid deadline
	shift 2
	for attempt in 1 2 3; do
		port=$(free_port)
		"${@//@PORT@/$port}" >"$name.log" 2>&1 3>&- &
		pid=$!
		deadline=$((SECONDS + 300))
		while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
			if curl -sf --max-time 5 -o /dev/null "http://127.0.0.1:$port$path" 2>/dev/null; then
				fleet_pids+=("$pid")
				return 0
			fi
			sleep 0.2
		done
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		echo "$name: attempt $attempt: $(tail -n 3 "$name.log")"
	done
	return 1
}

# -> victoria, its URL. Answers include what was written just now.
fleet_start_victoria() { # OPTION...
	fleet_start victoria /health victoria-metrics -httpListenAddr=127.0.0.1:@PORT@ \
		-storageDataPath="$PWD/victoria" -search.latencyOffset=0s -loggerLevel=WARN "$@" || return 1
	victoria=http://127.0.0.1:$port
}

# Prints the answer to a query: on each line the value, then the labels asked for.
fleet_query() { # PROMQL LABEL...
	local query=$1
	shift
	curl -sS --max-time 300 --data-urlencode "query=$query" --data-urlencode nocache=1 \
		"$victoria/api/v1/query" >answer.json || return 1
	perl -MJSON::PP -e '
		open my $file, "<", "answer.json" or die;
		my $answer = decode_json(do { local $/; <$file> });
		die "$answer->{error}\n" if $answer->{status} ne "success";
		for my $row (@{$answer->{data}{result}}) {
			print join(" ", $row->{value}[1], map { $row->{metric}{$_} // "" } @ARGV), "\n";
		}' "$@"
}
