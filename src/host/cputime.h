/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPU time of the threads of a QEMU process, most of which are its virtual CPUs. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/process.h"

/* Threads beyond that count in the sum only. */
#define WSS_CPUTIME_THREADS_MAX 1024

struct wss_cputime {
	uint64_t read_ns; /* wss_clock_now_ns() */
	uint64_t ticks;	  /* of all threads together, in units of sysconf(_SC_CLK_TCK) */
	size_t n;
	struct {
		pid_t tid;
		uint64_t ticks;
	} threads[WSS_CPUTIME_THREADS_MAX];
};

/* Reads the CPU time of each thread of a held process. WSS_ERR_GONE, WSS_ERR_FAILED. */
int wss_cputime_read(const struct wss_process *process, struct wss_cputime *ret_cputime,
		     struct wss_error *err);

/* Between two readings: the shares of the time for which CPUs were busy. */
struct wss_cputime_shares {
	double busiest; /* of the thread that ran most, 0 to 1 */
	double mean;	/* of all threads together, divided by the number of virtual CPUs, 0 to 1
		      */
};

/* Compares two readings; vcpus is at least 1. All 0 if no time has passed. */
struct wss_cputime_shares wss_cputime_compare(const struct wss_cputime *before,
					      const struct wss_cputime *after, unsigned vcpus);
