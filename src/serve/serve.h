/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room serve/: the service. One thread runs the watch (watch/watch.h), which measures all guests of a host
 * continuously, and keeps what it has learned where others read it. Theory of operation:
 *
 *   archive.h  stores samples in the history; past.h, and watch/advisor.h, read it, at a slow pace
 *   guest-metrics.h, service-metrics.h  metrics; textfile.h replaces their file in one step
 *   guests-page.h, host-page.h, past-page.h  the pages for HTTP
 *   http.h     hands pages and metrics to a process without rights (http-child.h), so that no
 *              client can delay the service; page.h: the page for browsers
 *   settings.h, notify.h, rights.h, resource-limits.h  settings, service manager, capabilities, limits
 *
 * In: struct wss_serve_options, and the samples of measure/round.h. Out: the history, ages,
 * profiles, metrics (docs/metrics.md) and pages (docs/http-api.md).
 *
 * When the file of metrics cannot be written, or the history, the service says so once and goes on.
 * While the hold file exists no window is armed. SIGHUP makes the service ask for new options, of
 * which it takes over those that can change while it runs; guests, ages, the history and
 * connections go on.
 *
 * The thread of the watch also runs the service's loop, and waits for no disk: archive.h, textfile.h
 * and others have threads for that (base/background.h). HTTP is another process.
 *
 * Begin with serve_step() in serve.c. A new metric goes into guest-metrics.c or service-metrics.c
 * and docs/metrics.md, a member of an answer into its *-page.c, docs/http-api.md and the schema.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "history/history.h"
#include "serve/guest-metrics.h"
#include "serve/http.h"
#include "watch/watch.h"

/* How old the file of metrics may be, and, on a host without many guests, the pages for HTTP. */
#define WSS_SERVE_METRICS_NS (5 * WSS_NS_PER_S)

struct wss_serve_options {
	struct wss_watch_options watch;
	const char *history; /* path; NULL: nothing is stored */
	struct wss_history_limits limits;
	enum wss_metrics_level metrics;
	const char *textfile;  /* path of the file of metrics; NULL: none is written */
	const char *hold_file; /* path; NULL: nothing holds it, ever */
	bool no_publish;       /* write no profiles to the inventory */
	struct wss_http_options http;
	/* For tests: */
	/* The source of guests; NULL: watch.hypervisor says it. */
	struct wss_hypervisor *hypervisor;
	/* How often all is rendered, however long that takes; 0: as said above. */
	uint64_t refresh_ns;
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
