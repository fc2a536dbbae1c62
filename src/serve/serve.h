/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service: measures all guests of a host continuously, within their budget, and keeps what it has
 * learned where others read it.
 *
 * Theory of operation. One thread runs the watch (service/watch.h), which waits for nothing that may
 * hang. What the watch tells is stored in the history and, every few seconds, written to a file of
 * metrics, which replaces the one before in one step, so that whoever reads it finds all of it. When
 * the file of metrics cannot be written, or the history, the service says so once and goes on.
 *
 * HTTP clients get the same figures from a separate process (serve/http.h), to which the service hands
 * rendered pages every few seconds. No client can delay the service.
 *
 * As long as the hold file exists nothing is armed.
 *
 * SIGHUP makes the service ask for new options. It takes over those that can change while it runs; guests,
 * ages, the history and connections go on.
 */
#ifndef WSS_SERVE_SERVE_H
#define WSS_SERVE_SERVE_H

#include <stdbool.h>

#include "base/error.h"
#include "serve/guest-metrics.h"
#include "serve/http.h"
#include "service/watch.h"
#include "store/history.h"

/* How old the file of metrics may be, and, on a host without many guests, the pages for HTTP. */
#define WSS_SERVE_METRICS_NS (5 * WSS_NS_PER_S)

struct wss_serve_options {
	struct wss_watch_options watch;
	const char *history;   /* path; NULL: nothing is stored */
	struct wss_history_limits limits;
	enum wss_metrics_level metrics;
	const char *textfile;  /* path of the file of metrics; NULL: none is written */
	const char *hold_file; /* path; NULL: nothing holds it, ever */
	bool no_publish;       /* write no profiles to the inventory */
	struct wss_http_options http;
	/* For tests: */
	struct wss_hypervisor *hypervisor; /* the source of guests; NULL: watch.hypervisor says it */
	uint64_t refresh_ns; /* how often all is rendered, however long that takes; 0: as said above */
	/*
	 * Called on SIGHUP; NULL: it ends the service. Returns new options, which must live until the next
	 * ones are returned, or NULL with err. Only these count: textfile, hold_file, no_publish, metrics, limits, and
	 * what wss_watch_change() takes of watch.
	 */
	const struct wss_serve_options *(*reload)(void *opaque, struct wss_error *err);
	void *reload_opaque;
};

/*
 * Runs until its token is requested (options->watch.cancel). Messages go to the log (base/log.h).
 * 0; -1 where it could not begin: the errors of wss_history_open(), wss_newfile_check() and
 * wss_http_new(), WSS_ERR_BUSY (another service or round measures all guests), WSS_ERR_NO_MEMORY.
 */
int wss_serve_run(const struct wss_serve_options *options, struct wss_error *err);

#endif
