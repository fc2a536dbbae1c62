/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * serve-windows MODE SOURCE UUID HTTP-ADDRESS: runs the service with history h.db, ages beside it, metrics, and
 * windows of 20 ms (canaries: 10 ms) that begin every 60 ms. MODE is
 *
 *   single, continuous  over the single guest that answers at the QMP socket SOURCE, until it has been measured
 *                       a few times, which it must be whatever fails
 *   endless             likewise in windows that follow each other, until a signal ends it
 *   libvirt             over the guests of the libvirt at the URI SOURCE, until a signal ends it
 *
 * Exit status 1 if the service could not begin.
 */
#include "fake-recorder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/stop.h"
#include "base/thread.h"
#include "host/conn.h"
#include "host/qmpguest.h"
#include "serve/http-child.h"
#include "serve/serve.h"

#define WINDOWS 4
#define WINDOW_NS (20 * WSS_NS_PER_MS)
#define CANARY_NS (10 * WSS_NS_PER_MS)
#define PERIOD_NS (60 * WSS_NS_PER_MS)
#define REFRESH_NS (50 * WSS_NS_PER_MS)

static struct wss_cancel cancel = WSS_CANCEL_INIT;
static atomic_uint windows;
static bool endless;

static void on_window(void)
{
	/* The one after the last: those before it have been told of. */
	if (++windows == WINDOWS + 1 && !endless)
		wss_cancel_request(&cancel);
}

/* --- the only guest --- */

struct only_guest {
	const char *socket, *uuid;
	const struct wss_root *root;
};

static int guest_list(void *opaque, bool inactive_too, struct wss_conn_domain **ret_domains,
		      size_t *ret_n, struct wss_error *err)
{
	const struct only_guest *only = opaque;
	struct wss_conn_domain *domain = calloc(1, sizeof(*domain));

	(void)inactive_too;
	if (!domain || !(domain->name = strdup(only->socket))) {
		free(domain);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	snprintf(domain->uuid, sizeof(domain->uuid), "%s", only->uuid);
	*ret_domains = domain;
	*ret_n = 1;
	return 0;
}

static int guest_open(void *opaque, const struct wss_domain_ref *ref,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err)
{
	const struct only_guest *only = opaque;

	return wss_qmpguest_open(only->root, ref->name, deadline, ret_guest, err);
}

static struct wss_hypervisor *hypervisor_of(struct only_guest *only, struct wss_error *err)
{
	static const struct wss_guest_source source = {.list = guest_list, .open = guest_open};
	struct wss_hypervisor *hypervisor;
	struct wss_host host;

	if (wss_host_open(wss_test_sysroot(), &host, err) < 0 ||
	    wss_hypervisor_new(&host, &source, only, &hypervisor, err) < 0)
		return NULL;
	only->root = &wss_hypervisor_host(hypervisor)->root;
	return hypervisor;
}

/* --- the service --- */

static void fill_options(struct wss_serve_options *options, const char *mode)
{
	struct wss_watch_options *watch = &options->watch;

	wss_watch_options_init(watch);
	wss_measure_options_init(&watch->measure, WINDOW_NS);
	watch->measure.window.growth = true;
	watch->period_ns = PERIOD_NS;
	watch->canary_ns = CANARY_NS;
	watch->boot_ns = 0;
	watch->pressure_share = 0;
	watch->budget.guest_share = 1;
	watch->budget.stall_ns = 10 * WSS_NS_PER_S;
	endless = !strcmp(mode, "endless");
	watch->continuous = endless || !strcmp(mode, "continuous");
	watch->cancel = &cancel;
	options->history = "h.db";
	options->textfile = "metrics";
	options->hold_file = "hold";
	options->limits = (struct wss_history_limits)WSS_HISTORY_LIMITS_DEFAULT;
	options->metrics = WSS_METRICS_FULL;
	options->refresh_ns = REFRESH_NS;
}

static int serve(char **words)
{
	struct only_guest only = {.socket = words[2], .uuid = words[3]};
	struct wss_serve_options options = {.http.user = "nobody", .http.n_addresses = 1};
	struct wss_error error = WSS_ERROR_INIT;
	int r = -1;

	fill_options(&options, words[1]);
	if (!strcmp(words[1], "libvirt"))
		options.watch.hypervisor.uri = words[2];
	else
		options.hypervisor = hypervisor_of(&only, &error);
	/* A guest without libvirt has no inventory, and its QMP socket takes one client at a time: the window's. */
	options.no_publish = options.hypervisor != NULL;
	if ((options.hypervisor || options.watch.hypervisor.uri) &&
	    wss_cancel_open(&cancel, NULL, &error) == 0 &&
	    wss_http_address_parse(words[4], "HTTP-ADDRESS", &options.http.addresses[0], &error) ==
		    0)
		r = wss_serve_run(&options, &error);
	wss_hypervisor_unref(options.hypervisor);
	wss_cancel_close(&cancel);
	if (r < 0)
		fprintf(stderr, "serve-windows: %s\n", error.text);
	return r < 0;
}

int main(int argc, char **argv)
{
	int r;

	if (wss_http_child_is(argc, argv))
		return wss_http_child_main(argc, argv);
	if (argc != 5)
		return 2;
	wss_stop_install();
	fake_recorder_window = on_window;
	r = serve(argv);
	wss_conn_end_events();
	return wss_threads_end(WSS_NS_PER_S) ? r : 3;
}
