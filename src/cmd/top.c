/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* virt-wss top: shows the working sets of all guests, and keeps doing so. */
#include "top/top.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "client/service.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "measure/kvm-cost.h"

#define DELAY_NS (5 * WSS_NS_PER_S)
#define COUNT_MAX 1000000
/* Without a service: how often a guest is measured, at most, and how long its windows are. */
#define PERIOD_NS (20 * WSS_NS_PER_S)
#define WINDOW_NS (4 * WSS_NS_PER_S)
/* How long to ask whether there is a service. */
#define FIRST_ANSWER_NS (5 * WSS_NS_PER_S)
/* How long batch mode waits for the first window of each guest. */
#define FIRST_WINDOWS_NS (90 * WSS_NS_PER_S)
#define BATCH_WIDTH 132

enum { OPT_SOCKET = 1, OPT_SORT };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	{"batch", no_argument, NULL, 'b'},
	{"count", required_argument, NULL, 'n'},
	{"delay", required_argument, NULL, 'd'},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"sort", required_argument, NULL, OPT_SORT},
	{NULL, 0, NULL, 0},
};

struct top_options {
	struct wss_top_settings settings;
	const char *socket; /* NULL: the usual one, if there is a service */
	uint64_t count;	    /* 0: without end */
	bool batch;
};

static int sort_option(struct wss_top_settings *settings, const char *value, struct wss_error *err)
{
	bool reverse = *value == '-';
	int column = wss_top_sort_name(value + reverse);
	char names[200];

	if (column < 0) {
		wss_top_sort_names(names, sizeof(names));
		return wss_error_set(err, WSS_ERR_USAGE, "--sort: '%s' is not one of: %s", value,
				     names);
	}
	settings->sort = (size_t)column;
	settings->reverse = reverse;
	return 0;
}

static int top_option(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct top_options *options = opaque;

	switch (c) {
	case 'b':
		options->batch = true;
		return 0;
	case 'n':
		return wss_number_parse(value, 1, COUNT_MAX, "--count", &options->count, err);
	case 'd':
		if (wss_duration_parse(value, WSS_TOP_DELAY_MAX_NS, "--delay",
				       &options->settings.delay_ns, err) < 0)
			return -1;
		if (options->settings.delay_ns < WSS_TOP_DELAY_MIN_NS)
			return wss_error_set(err, WSS_ERR_USAGE,
					     "--delay: '%s' is too short: at least 0.5s", value);
		return 0;
	case OPT_SOCKET:
		options->socket = value;
		return 0;
	default:
		return sort_option(&options->settings, value, err);
	}
}

/* --- the source --- */

/* Whether a service listens at the usual place, even if it does not answer just now. */
static bool service_runs(void)
{
	wss_auto_guests struct wss_guests guests = {.n = 0};
	struct wss_error error = WSS_ERROR_INIT;

	return wss_service_guests(WSS_SERVICE_SOCKET, wss_clock_now_ns() + FIRST_ANSWER_NS, NULL,
				  &guests, &error) == 0 ||
	       error.code != WSS_ERR_GONE;
}

/* A watch with the service's budget, whose periods are shorter because somebody looks. */
static int open_watch(const struct wss_cli *cli, struct top_options *options,
		      struct wss_top_source **ret_source, struct wss_error *err)
{
	static char text[100];
	struct wss_watch_options watch;

	wss_watch_options_init(&watch);
	watch.hypervisor.uri = wss_cli_uri(cli->uri);
	watch.hypervisor.allow_monitor = cli->monitor;
	watch.measure.window.track.window_ns = WINDOW_NS;
	watch.period_ns = PERIOD_NS;
	watch.fault_ns = wss_kvm_cost()->fault_ns;
	snprintf(text, sizeof(text), "no service: measuring within %.3g%% of CPU time",
		 100 * watch.budget.guest_share);
	options->settings.source = text;
	if (options->batch)
		wss_log(WSS_LOG_INFO,
			"no service: each guest is measured first, which takes up to %.0f s",
			FIRST_WINDOWS_NS / (double)WSS_NS_PER_S);
	return wss_top_source_watch(&watch, ret_source, err);
}

static int open_source(const struct wss_cli *cli, struct top_options *options,
		       struct wss_top_source **ret_source, struct wss_error *err)
{
	const char *path = options->socket;

	if (!path && !cli->uri && service_runs())
		path = WSS_SERVICE_SOCKET;
	if (!path)
		return open_watch(cli, options, ret_source, err);
	options->settings.source = "asking the service";
	return wss_top_source_service(path, options->settings.delay_ns, ret_source, err);
}

/* --- batch --- */

static void print_trimmed(char *text)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	puts(text);
}

static void print_row(const struct wss_top_settings *settings, const struct wss_top_layout *layout,
		      const struct wss_guest_view *guest, uint64_t late_ns)
{
	char line[WSS_TOP_TEXT_MAX], text[WSS_TOP_TEXT_MAX];
	size_t len = 0;

	for (size_t i = 0; i < layout->n; i++) {
		wss_top_cell(settings, layout, i, guest, late_ns, text);
		if (len + strlen(text) + 2 > sizeof(line))
			break;
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s", i ? " " : "", text);
	}
	print_trimmed(line);
}

static int print_view(const struct wss_top_view *view, const struct wss_top_settings *settings,
		      struct wss_error *err)
{
	struct wss_top_widths widths = wss_top_widths(view);
	struct wss_top_layout layout;
	wss_auto_free const struct wss_guest_view **list = NULL;
	uint64_t late_ns = wss_clock_now_ns() - view->taken_ns;
	char text[WSS_TOP_TEXT_MAX];
	size_t n;

	/* A line of a file may be as long as its name and its reason, and always has a place for one. */
	widths.why = WSS_TOP_WIDTH_MAX;
	layout = wss_top_layout(BATCH_WIDTH, &widths);
	layout.cells[0].width = widths.name;
	layout.cells[layout.n - 1].width = WSS_TOP_WIDTH_MAX;
	if (wss_top_select(view, settings, &list, &n, err) < 0)
		return -1;
	for (int i = 0; i < WSS_TOP_HEAD_LINES; i++) {
		wss_top_head(settings, view, n, i, WSS_TOP_WIDTH_MAX, text);
		print_trimmed(text);
	}
	print_row(settings, &layout, NULL, 0);
	for (size_t i = 0; i < n; i++)
		print_row(settings, &layout, list[i], late_ns);
	putchar('\n');
	return wss_io_flush_output(err);
}

/* Waits for news until a time. */
static void batch_wait(const struct wss_top_source *source, uint64_t until_ns)
{
	struct pollfd pfds[] = {
		{.fd = wss_top_source_fd(source), .events = POLLIN},
		{.fd = wss_stop_fd(), .events = POLLIN},
	};

	poll(pfds, sizeof(pfds) / sizeof(pfds[0]), wss_clock_poll_ms(until_ns));
}

/* Waits until there is something to print: an answer, and a window of each guest. */
static int batch_first(struct wss_top_source *source, struct wss_top_view *view,
		       struct wss_error *err)
{
	uint64_t until_ns = wss_clock_now_ns() + FIRST_WINDOWS_NS;

	while (!wss_stop_requested()) {
		wss_top_source_take(source, view);
		if (view->error.code && !view->any) {
			if (err)
				*err = view->error;
			return -1;
		}
		if (view->any && (view->complete || wss_clock_now_ns() >= until_ns))
			return 0;
		batch_wait(source, until_ns > wss_clock_now_ns()
					   ? until_ns
					   : wss_clock_now_ns() + WSS_NS_PER_S);
	}
	return 0;
}

static int top_batch(struct wss_top_source *source, const struct top_options *options,
		     struct wss_error *err)
{
	struct wss_top_view view = {.any = false};
	int r = batch_first(source, &view, err);

	for (uint64_t i = 0; r == 0 && !wss_stop_requested(); i++) {
		wss_top_source_take(source, &view);
		r = print_view(&view, &options->settings, err);
		if (options->count && i + 1 == options->count)
			break;
		wss_stop_wait_ns(options->settings.delay_ns);
	}
	wss_guests_release(&view.guests);
	return r;
}

/* --- the command --- */

static int top_parse(struct wss_cli *cli, int argc, char **argv, struct top_options *options,
		     struct wss_error *err)
{
	options->settings.sort = wss_top_sort_first();
	options->settings.delay_ns = DELAY_NS;
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_finish(cli, argc, argv, err) < 0 || wss_cli_refuse_view(cli, "top", err) < 0)
		return -1;
	if (cli->qmp || cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "top shows all guests that libvirt runs: %s",
				     cli->qmp ? "--qmp excludes it" : "it takes no DOMAIN");
	if (options->socket && cli->uri)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--socket and --connect exclude each other");
	return options->batch ? 0 : wss_top_screen_check(err);
}

/* A log would break the screen: the head says what is wrong. */
static void drop_message(enum wss_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

static int top_run(struct wss_cli *cli, int argc, char **argv)
{
	struct top_options options = {.count = 0};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_top_source *source = NULL;
	int r = -1;

	options.settings.utf8 = wss_top_locale();
	if (top_parse(cli, argc, argv, &options, &err) < 0 ||
	    open_source(cli, &options, &source, &err) < 0)
		return wss_cli_error(&err);
	if (options.batch) {
		r = top_batch(source, &options, &err);
	} else {
		wss_log_set_sink(drop_message);
		r = wss_top_screen(source, &options.settings, options.count, &err);
		wss_log_set_sink(NULL);
	}
	wss_top_source_free(source);
	if (r < 0)
		return wss_cli_error(&err);
	return wss_stop_signal() ? 128 + wss_stop_signal() : WSS_EXIT_OK;
}

static const struct wss_option_values values[] = {
	{"sort", "name wss percent balloon maximum rss swap cold recommended reclaimable age"},
	{NULL, NULL},
};

const struct wss_command wss_cmd_top = {
	.name = "top",
	.summary = "show the working sets of all guests, continuously",
	.help = wss_help_top,
	.short_options = WSS_COMMON_SHORT "bn:d:",
	.long_options = long_options,
	.take = top_option,
	.takes = WSS_WORDS_NONE,
	.values = values,
	.run = top_run,
};
