/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/background.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/newfile.h"
#include "base/number.h"
#include "base/stop.h"
#include "cold/ages.h"
#include "measure/policy-file.h"
#include "serve/archive.h"
#include "serve/guest-metrics.h"
#include "serve/guests-page.h"
#include "serve/hold-file.h"
#include "serve/host-page.h"
#include "serve/http-pages.h"
#include "serve/resource-limits.h"
#include "serve/notify.h"
#include "serve/past-page.h"
#include "serve/past.h"
#include "serve/rights.h"
#include "serve/textfile.h"
#include "serve/trouble.h"
#include "sizing/publish-profile.h"

/* How often the service manager is told the state. */
#define STATUS_NS WSS_NS_PER_S
/*
 * The pages for HTTP, the named pages and the file of metrics are rendered so seldom that each takes at most one part in so
 * many of a processor, unless it would get too old.
 */
#define RENDER_PERIODS 8000
#define PAGES_MAX_NS (30 * WSS_NS_PER_S)
/* Likewise the named pages, of which nothing gets too old for as long as a slot of a trend. */
#define NAMED_MAX_NS (WSS_TREND_SLOT_S * WSS_NS_PER_S)
/* Until the pages show that libvirt has gone, or is back. */
#define NEWS_NS (500 * WSS_NS_PER_MS)

struct serve {
	const struct wss_serve_options *options;
	struct wss_watch *watch;
	struct wss_archive *archive; /* NULL: nothing is stored */
	struct wss_http *http;	     /* NULL: none */
	struct wss_pasts *pasts;     /* NULL: no HTTP */
	struct wss_textfile *textfile;
	struct wss_advisor *advisor;
	const struct wss_serve_options *(*reload)(void *opaque, struct wss_error *err);
	void *reload_opaque;
	struct wss_notify notify;
	struct wss_service_facts facts;
	bool held; /* by the hold file */
	struct wss_hold_file *hold_file;
	struct wss_trouble writing, rendering, reading;
	bool listed;			 /* the pages have guests, or say that there are none */
	struct wss_background *policies; /* looks once for policies of no guest; NULL: not yet */
	/* When they are due, wss_clock_now_ns(). */
	uint64_t metrics_ns, pages_ns, named_ns, status_ns;
};

/* --- what the watch tells --- */

static void serve_on_sample(const struct wss_watched *guest, const struct wss_sample *sample,
			    void *opaque)
{
	struct serve *serve = opaque;

	/* A canary's window is shorter than the others, so its figure cannot be compared with theirs. */
	if (!wss_sample_measured(sample) || guest->kind == WSS_WINDOW_CANARY)
		return;
	if (serve->pasts)
		wss_pasts_add(serve->pasts, guest->uuid, sample);
	wss_archive_add(serve->archive, sample);
}

static void serve_on_gone(const struct wss_watched *guest, void *opaque)
{
	struct serve *serve = opaque;

	if (serve->pasts)
		wss_pasts_forget(serve->pasts, guest->uuid);
}

/* For what a reader should know before the next pages are due. At most, pages are then rendered twice a second. */
static void serve_hurry(struct serve *serve)
{
	uint64_t soon_ns = wss_clock_now_ns() + NEWS_NS;

	serve->pages_ns = wss_u64_min(serve->pages_ns, soon_ns);
	serve->metrics_ns = wss_u64_min(serve->metrics_ns, soon_ns);
}

static void serve_on_connection(const struct wss_error *error, void *opaque)
{
	struct serve *serve = opaque;

	serve->facts.connected = !error;
	serve_hurry(serve);
	if (error)
		wss_log(WSS_LOG_ERROR, "%s (trying again until it works)", error->text);
	else
		wss_log(WSS_LOG_INFO, "libvirt answers again");
}

/* Percentiles are those of the advice, so that nothing waits for the history. */
static bool serve_on_profile(const struct wss_watched *guest, struct wss_profile *ret_profile,
			     void *opaque)
{
	const struct serve *serve = opaque;
	const struct wss_sample *sample = &guest->sample;
	const struct wss_advised *advised = wss_advisor_find(serve->advisor, guest->uuid);
	struct wss_sizing sizing;

	if (serve->options->no_publish)
		return false;
	wss_profile_from_sample(sample, PACKAGE_VERSION, ret_profile);
	if (guest->coarse != WSS_COARSE_NOT)
		snprintf(ret_profile->coarse_why, sizeof(ret_profile->coarse_why), "%s",
			 guest->coarse_why.text);
	if (!advised || !sample->method || strcmp(advised->method, sample->method) != 0 ||
	    advised->granularity_bytes != sample->granularity_bytes.value ||
	    advised->window_ns != sample->requested_window_ns)
		return true;
	sizing = (struct wss_sizing){.confidence = advised->confidence,
				     .p50_bytes = advised->p50_bytes,
				     .p95_bytes = advised->p95_bytes,
				     .p99_bytes = advised->p99_bytes,
				     .peak_bytes = advised->peak_bytes};
	wss_profile_add_sizing(ret_profile, advised->windows, advised->first, &sizing);
	return true;
}

static const struct wss_watch_events watch_events = {
	.sample = serve_on_sample,
	.gone = serve_on_gone,
	.connection = serve_on_connection,
	.profile = serve_on_profile,
};

/* --- what is due now and then --- */

/* When a rendering began: by the clock, and by the CPU time of the thread. */
struct rendering {
	uint64_t began_ns, cpu_ns;
};

static struct rendering rendering_begin(void)
{
	return (struct rendering){wss_clock_now_ns(), wss_clock_thread_ns()};
}

/* Returns when what has just been rendered is to be rendered again, within its share of a processor. */
static uint64_t rendering_next_ns(const struct rendering *rendering, const struct serve *serve,
				  uint64_t max_ns)
{
	uint64_t cpu_ns = wss_clock_thread_ns() - rendering->cpu_ns;
	uint64_t pause_ns = serve->options->refresh_ns;

	if (!pause_ns)
		pause_ns = wss_u64_min(wss_u64_max(cpu_ns * RENDER_PERIODS, WSS_SERVE_METRICS_NS),
				       max_ns);
	return rendering->began_ns + pause_ns;
}

static int write_metrics(const struct serve *serve, struct wss_error *err)
{
	FILE *stream = wss_textfile_begin(serve->textfile);

	if (!stream)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_metrics_write(stream, WSS_METRICS_PROMETHEUS, serve->watch, &serve->facts);
	return wss_textfile_write(serve->textfile, serve->options->textfile, err);
}

/* Nobody should wait for the first list of guests longer than the service itself. */
static void step_list(struct serve *serve)
{
	if (serve->listed || !wss_watch_listed(serve->watch))
		return;
	serve->listed = true;
	serve->pages_ns = serve->metrics_ns = 0;
}

static void warn_unused(const char *text, void *opaque)
{
	(void)opaque;
	wss_warn("%s", text);
}

/* Names and UUIDs of guests, which the background owns once it looks. */
struct policies {
	size_t n;
	char *guests[]; /* NULL at the end */
};

static void policies_free(struct policies *policies)
{
	for (size_t i = 0; policies && i < policies->n; i++)
		free(policies->guests[i]);
	free(policies);
}

static struct policies *policies_new(const struct wss_watch *watch)
{
	size_t n = wss_watch_count(watch);
	struct policies *policies =
		calloc(1, sizeof(*policies) + (2 * n + 1) * sizeof(policies->guests[0]));

	for (size_t i = 0; policies && i < n; i++) {
		const struct wss_watched *guest = wss_watch_guest(watch, i);

		for (int j = 0; j < 2; j++) {
			policies->guests[policies->n] = strdup(j ? guest->uuid : guest->name);
			policies->n += policies->guests[policies->n] != NULL;
		}
	}
	return policies;
}

static void policies_look(void *opaque)
{
	struct policies *policies = opaque;

	wss_policy_file_unused(true, (const char *const *)policies->guests, warn_unused, NULL);
	policies_free(policies);
}

/* Whether the policy of each guest has been looked for, and there is one. */
static bool policies_are_known(const struct wss_watch *watch)
{
	size_t n = wss_watch_count(watch);

	for (size_t i = 0; i < n; i++) {
		const struct wss_watched *guest = wss_watch_guest(watch, i);

		if (!guest->measured && !guest->why.code && guest->state != WSS_WATCHED_LEFT_OUT &&
		    guest->state != WSS_WATCHED_PAUSED)
			return false;
	}
	return n > 0;
}

/* Names once what policy files have for no guest of those that the first list has, or for libvirt's. */
static void step_policies(struct serve *serve)
{
	struct wss_error ignored = WSS_ERROR_INIT;
	struct policies *policies;

	if (serve->policies || !serve->listed || !policies_are_known(serve->watch))
		return;
	policies = policies_new(serve->watch);
	serve->policies = policies ? wss_background_new() : NULL;
	if (!serve->policies ||
	    wss_background_start(serve->policies, policies_look, policies, &ignored) < 0)
		policies_free(policies);
}

static void step_metrics(struct serve *serve)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct rendering rendering;
	int r = wss_textfile_result(serve->textfile, &error);

	if (r)
		wss_trouble_note(&serve->writing, r < 0 ? &error : NULL);
	if (!serve->options->textfile || !wss_textfile_is_idle(serve->textfile) ||
	    wss_clock_now_ns() < serve->metrics_ns)
		return;
	rendering = rendering_begin();
	if (write_metrics(serve, &error) < 0)
		wss_trouble_note(&serve->writing, &error);
	serve->metrics_ns = rendering_next_ns(&rendering, serve, PAGES_MAX_NS);
}

static int render_pages(const struct serve *serve, int *ret_fd, struct wss_error *err)
{
	wss_auto_http_draft struct wss_http_draft draft = WSS_HTTP_DRAFT_INIT;
	struct wss_service_facts facts = serve->facts;

	/* As it is for whoever reads the pages. */
	facts.http_up = true;
	if (wss_http_draft_begin(&draft, err) < 0)
		return -1;
	wss_metrics_write(draft.stream, WSS_METRICS_PROMETHEUS, serve->watch, &facts);
	wss_http_draft_page(&draft, WSS_HTTP_PROMETHEUS);
	wss_metrics_write(draft.stream, WSS_METRICS_OPENMETRICS, serve->watch, &facts);
	wss_http_draft_page(&draft, WSS_HTTP_OPENMETRICS);
	wss_guests_page_write(draft.stream, serve->watch, &serve->facts);
	wss_http_draft_page(&draft, WSS_HTTP_GUESTS);
	wss_host_page_write(draft.stream, serve->watch, &serve->facts);
	wss_http_draft_page(&draft, WSS_HTTP_HOST);
	return wss_http_draft_end(&draft, ret_fd, err);
}

/* Renders the named pages where it is due. */
static int step_named(struct serve *serve, struct wss_error *err)
{
	struct rendering rendering = rendering_begin();
	int fd;

	if (rendering.began_ns < serve->named_ns)
		return 0;
	if (wss_past_named(serve->watch, serve->pasts, &fd, err) < 0)
		return -1;
	wss_http_set_named(serve->http, fd);
	serve->named_ns = rendering_next_ns(&rendering, serve, NAMED_MAX_NS);
	return 0;
}

static void step_http(struct serve *serve)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct rendering rendering;
	int fd, r;

	if (!serve->http)
		return;
	wss_http_step(serve->http);
	serve->facts.http = true;
	serve->facts.http_up = wss_http_runs(serve->http);
	serve->facts.http_starts = wss_http_starts(serve->http);
	if (!wss_http_ready(serve->http) || wss_clock_now_ns() < serve->pages_ns)
		return;
	r = step_named(serve, &error);
	rendering = rendering_begin();
	if (r == 0)
		r = render_pages(serve, &fd, &error);
	if (r == 0)
		wss_http_publish(serve->http, fd);
	wss_trouble_note(&serve->rendering, error.code ? &error : NULL);
	serve->pages_ns = rendering_next_ns(&rendering, serve, PAGES_MAX_NS);
}

static void step_advisor(struct serve *serve)
{
	struct wss_error error = WSS_ERROR_INIT;
	int r = wss_advisor_step(serve->advisor, serve->watch, &error);

	/* A stop request interrupts the history. */
	if (r && error.code != WSS_ERR_INTERRUPTED)
		wss_trouble_note(&serve->reading, r < 0 ? &error : NULL);
}

/* --- the hold file --- */

static void step_hold(struct serve *serve)
{
	const char *path = serve->options->hold_file;
	char reason[WSS_WATCH_REASON_MAX];
	bool exists;

	if (!path || !wss_hold_file_look(serve->hold_file, path, &exists) || exists == serve->held)
		return;
	serve->held = exists;
	snprintf(reason, sizeof(reason), "%s exists", path);
	wss_watch_hold(serve->watch, serve->held ? reason : NULL);
	if (serve->held)
		wss_log(WSS_LOG_INFO, "paused by hold file %s", path);
	else
		wss_log(WSS_LOG_INFO, "hold file %s is gone: measuring again", path);
}

static void serve_change(struct serve *serve, const struct wss_serve_options *options)
{
	serve->options = options;
	serve->facts.options = &options->watch;
	serve->facts.level = options->metrics;
	serve->writing.what = options->textfile;
	serve->metrics_ns = 0;
	wss_hold_file_hurry(serve->hold_file);
	wss_archive_set_limits(serve->archive, &options->limits);
	wss_watch_change(serve->watch, &options->watch);
}

static void step_reload(struct serve *serve)
{
	const struct wss_serve_options *options;
	struct wss_error error = WSS_ERROR_INIT;

	if (!wss_stop_take_reload())
		return;
	wss_notify_reloading(&serve->notify);
	options = serve->reload(serve->reload_opaque, &error);
	if (options) {
		serve_change(serve, options);
		wss_log(WSS_LOG_INFO, "the configuration was read again");
	} else {
		wss_log(WSS_LOG_ERROR, "the configuration stays as it was: %s", error.text);
	}
	wss_notify_reloaded(&serve->notify);
}

/* --- what the service manager is told --- */

static void status_format(const struct serve *serve, char *ret_text, size_t size)
{
	size_t n = wss_watch_count(serve->watch), measured = 0, refused = 0;
	const char *held = wss_watch_held(serve->watch);
	const char *no_http = serve->http ? wss_http_why_not(serve->http) : NULL;

	for (size_t i = 0; i < n; i++) {
		const struct wss_watched *guest = wss_watch_guest(serve->watch, i);

		measured += wss_watched_has_wss(guest);
		refused += guest->state == WSS_WATCHED_REFUSED;
	}
	snprintf(ret_text, size, "%zu guest%s, %zu measured, %zu refused%s%s%s%s%s", n,
		 wss_plural(n), measured, refused,
		 serve->facts.connected ? "" : "; no connection to libvirt",
		 no_http ? "; HTTP does not run: " : "", no_http ? no_http : "",
		 held ? "; paused: " : "", held ? held : "");
}

/* After a step of the watch, whose end is what the watchdog waits for. */
static void step_manager(struct serve *serve)
{
	char status[sizeof(serve->notify.status)];

	while (wss_fault("stuck-service") && serve->notify.ready && !wss_stop_requested())
		wss_stop_wait_ns(WSS_NS_PER_S);
	wss_notify_alive(&serve->notify);
	if (wss_watch_has_tried(serve->watch))
		wss_notify_ready(&serve->notify);
	if (!wss_clock_is_due(&serve->status_ns, STATUS_NS))
		return;
	wss_log_guests_left_out();
	status_format(serve, status, sizeof(status));
	wss_notify_status(&serve->notify, status);
}

static bool serve_step(struct serve *serve)
{
	step_reload(serve);
	step_hold(serve);
	step_advisor(serve);
	step_list(serve);
	step_policies(serve);
	step_metrics(serve);
	step_http(serve);
	wss_archive_step(serve->archive, serve->watch);
	serve->facts.samples = wss_archive_count(serve->archive);
	return wss_watch_step(serve->watch);
}

static void serve_loop(struct serve *serve)
{
	bool is_stopping = false;

	while (serve_step(serve)) {
		step_manager(serve);
		if (is_stopping || !wss_cancel_requested(serve->options->watch.cancel))
			continue;
		is_stopping = true;
		wss_notify_stopping(&serve->notify);
	}
	if (!is_stopping)
		wss_notify_stopping(&serve->notify);
}

static int serve_open_archive(struct serve *serve, struct wss_error *err)
{
	if (!serve->options->history)
		return 0;
	if (wss_archive_open(serve->options->history, &serve->archive, err) < 0)
		return -1;
	wss_archive_set_limits(serve->archive, &serve->options->limits);
	return 0;
}

/* The directory of ages lies beside the history, and is as private. */
static int serve_make_ages(const struct serve *serve, char **ret_directory, struct wss_error *err)
{
	if (!serve->options->history)
		return 0;
	if (wss_ages_find_directory(serve->options->history, true, ret_directory, err) < 0)
		return wss_error_prefix(err, "cannot keep the ages of memory");
	wss_ages_prune(*ret_directory);
	return 0;
}

static int serve_new_watch(struct serve *serve, const struct wss_watch_options *watch,
			   struct wss_error *err)
{
	struct wss_hypervisor *hypervisor = serve->options->hypervisor;

	return hypervisor ? wss_watch_new_with(hypervisor, watch, &watch_events, serve,
					       &serve->watch, err)
			  : wss_watch_new(watch, &watch_events, serve, &serve->watch, err);
}

/* The past is for the pages only. */
static int serve_make_pasts(struct serve *serve, struct wss_error *err)
{
	if (!serve->http)
		return 0;
	serve->pasts = wss_pasts_new(wss_archive_history(serve->archive));
	return serve->pasts ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static int read_past(const char *uuid, void *opaque, struct wss_error *err)
{
	struct serve *serve = opaque;

	return serve->pasts ? wss_pasts_read(serve->pasts, uuid, err) : 0;
}

static bool start_reading(void (*read)(void *reader), void *reader, void *opaque)
{
	struct serve *serve = opaque;
	struct wss_background *background = wss_archive_background(serve->archive);

	return !wss_archive_is_busy(serve->archive) &&
	       wss_background_start(background, read, reader, NULL) == 0;
}

static int serve_make_advisor(struct serve *serve, struct wss_error *err)
{
	struct wss_advisor_options options;

	wss_advisor_options_init(&options);
	options.start = start_reading;
	options.read_more = read_past;
	options.opaque = serve;
	serve->advisor = wss_advisor_new(wss_archive_history(serve->archive), &options);
	if (!serve->advisor)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	serve->facts.advisor = serve->advisor;
	return 0;
}

int wss_serve_run(const struct wss_serve_options *options, struct wss_error *err)
{
	struct serve serve = {
		.options = options,
		.reload = options->reload,
		.reload_opaque = options->reload_opaque,
		.facts = {.options = &options->watch,
			  .level = options->metrics,
			  .connected = true,
			  .since_ns = wss_clock_now_ns()},
		.writing = {.what = options->textfile},
		.rendering = {.what = "the pages for HTTP"},
		.reading = {.what = "reading the history"},
	};
	struct wss_watch_options watch = options->watch;
	wss_auto_free char *ages = NULL;
	int r = -1;

	if (options->textfile && wss_newfile_check(options->textfile, err) < 0)
		return wss_error_prefix(err, "%s", options->textfile);
	serve.textfile = wss_textfile_new();
	serve.hold_file = wss_hold_file_new();
	if (!serve.textfile || !serve.hold_file) {
		wss_textfile_free(serve.textfile);
		wss_hold_file_free(serve.hold_file);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	wss_limits_apply(&watch);
	wss_notify_open(&serve.notify);
	if (options->reload)
		wss_stop_spare_hangup();
	if (serve_open_archive(&serve, err) == 0 && serve_make_ages(&serve, &ages, err) == 0 &&
	    serve_make_advisor(&serve, err) == 0 &&
	    wss_http_new(&options->http, &serve.http, err) == 0 &&
	    serve_make_pasts(&serve, err) == 0 &&
	    wss_rights_limit(watch.hypervisor.uri, serve.http, err) == 0) {
		watch.ages = ages;
		r = serve_new_watch(&serve, &watch, err);
	}
	if (r == 0) {
		serve_loop(&serve);
		wss_archive_finish(serve.archive, serve.watch);
	}
	wss_watch_free(serve.watch);
	wss_http_free(serve.http);
	wss_textfile_free(serve.textfile);
	wss_hold_file_free(serve.hold_file);
	wss_background_end(serve.policies, 0);
	/* Nothing was stored: nothing stays behind. */
	if (ages)
		rmdir(ages);
	if (wss_archive_close(serve.archive)) {
		wss_pasts_free(serve.pasts);
		wss_advisor_free(serve.advisor);
	}
	wss_notify_close(&serve.notify);
	return r;
}
