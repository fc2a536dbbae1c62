/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints how cold the memory of guests is, by the files that the service keeps of it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "help-text.h"
#include "out/width.h"
#include "service/ages.h"

/* A file more than these is not read: a directory like that is not the service's. */
#define GUESTS_MAX 100000
/* Guests that a message names; it counts the others. */
#define NAMED_MAX 5

struct cold_guest {
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX];
	time_t time;
	bool known; /* there has been a window */
	struct wss_cold_report report;
};

struct cold_row {
	const struct cold_guest *guest;
	enum wss_cold_age age;
	time_t now;
};

struct cold_run {
	const struct wss_cli *cli;
	struct wss_report *report;
	struct wss_tally tally;
	struct cold_guest *guests;
	size_t n, room;
};

/* --- the table --- */

static const struct wss_cold_class *row_class(const void *row)
{
	const struct cold_row *cold = row;

	return &cold->guest->report.ages[cold->age];
}

/* Both bounds are absent for an age that is longer than the time for which the guest has been watched. */
static struct wss_value row_bound(const void *row, uint64_t bytes)
{
	const struct cold_row *cold = row;

	return wss_cold_watched(&cold->guest->report, cold->age) ? wss_value_number(bytes, WSS_KIND_BYTES)
								 : wss_value_absent();
}

static const struct cold_guest *row_guest(const void *row)
{
	return ((const struct cold_row *)row)->guest;
}

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(row_guest(row)->name);
}

static struct wss_value get_uuid(const void *row)
{
	return wss_value_text(row_guest(row)->uuid);
}

static struct wss_value get_time(const void *row)
{
	return wss_value_time(row_guest(row)->time);
}

static struct wss_value get_age(const void *row)
{
	const struct cold_row *cold = row;

	return wss_value_number(cold->now > cold->guest->time
					? (uint64_t)(cold->now - cold->guest->time)
					: 0,
				WSS_KIND_AGE);
}

static struct wss_value get_idle(const void *row)
{
	return wss_value_text(wss_cold_age_name(((const struct cold_row *)row)->age));
}

static struct wss_value get_low(const void *row)
{
	return row_bound(row, row_class(row)->low_bytes);
}

static struct wss_value get_high(const void *row)
{
	return row_bound(row, row_class(row)->high_bytes);
}

static struct wss_value get_observed(const void *row)
{
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = row_class(row)->observed };
}

static struct wss_value get_watched(const void *row)
{
	const struct wss_cold_report *report = &row_guest(row)->report;

	return wss_value_number(report->as_of_ns - report->since_ns, WSS_KIND_DURATION);
}

static struct wss_value get_held(const void *row)
{
	return wss_value_number(row_guest(row)->report.held_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_absent(const void *row)
{
	return wss_value_number(row_guest(row)->report.absent_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_granularity(const void *row)
{
	return wss_value_number(row_guest(row)->report.granularity_bytes, WSS_KIND_BYTES);
}

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain, "Name of the guest", false },
	{ "uuid", NULL, "UUID", -36, get_uuid, "UUID of the guest", false },
	{ "time", NULL, "TIME", -20, get_time, "When its idle-age data was stored, UTC", false },
	{ "age_seconds", NULL, "AGE", 6, get_age, "How long ago that was, in seconds", false },
	{ "idle", NULL, "IDLE", -5, get_idle,
	  "Untouched for at least this time; never: since serve started watching it", false },
	{ "low_bytes", NULL, "LOW", 8, get_low,
	  "Memory that was surely untouched for that time, in bytes; absent until the guest has been watched for as long", false },
	{ "high_bytes", NULL, "HIGH", 8, get_high,
	  "Memory that was not seen touched in that time, in bytes; absent likewise", false },
	{ "observed_share", NULL, "OBSERVED", 8, get_observed,
	  "Share of that time in which the guest was observed", false },
	{ "watched_seconds", NULL, "WATCHED", 8, get_watched,
	  "Time since serve started watching it, in seconds", false },
	{ "held_bytes", NULL, "HELD", 8, get_held, "Guest memory whose idle time is known, in bytes",
	  false },
	{ "absent_bytes", NULL, "ABSENT", 8, get_absent,
	  "Memory that the host does not hold: never touched, ballooned or discarded, in bytes",
	  false },
	{ "granularity_bytes", NULL, "GRAN", 5, get_granularity,
	  "Size of the pieces whose ages are known, in bytes", false },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/coldness/1",
	.array_key = "coldness",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,idle,low_bytes,high_bytes,observed_share,watched_seconds,held_bytes",
	.wide = "domain,idle,low_bytes,high_bytes,observed_share,watched_seconds,held_bytes,"
		"absent_bytes,granularity_bytes,age_seconds,uuid",
};

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

/* --- the files --- */

static struct cold_guest *cold_add(struct cold_run *run)
{
	struct cold_guest *guests = run->guests;

	if (run->n == run->room) {
		size_t room = run->room ? 2 * run->room : 64;

		guests = realloc(run->guests, room * sizeof(*guests));
		if (!guests)
			return NULL;
		run->guests = guests;
		run->room = room;
	}
	guests[run->n] = (struct cold_guest){ .known = false };
	return &guests[run->n++];
}

/* A file that cannot be read is reported, and leaves the others. */
static int cold_read_file(struct cold_run *run, const char *path, struct wss_error *err)
{
	wss_auto_free struct wss_ages *ages = malloc(sizeof(*ages));
	struct wss_error why = WSS_ERROR_INIT;
	struct cold_guest *guest;

	if (!ages)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_ages_read(path, 0, ages, NULL, &why) < 0) {
		if (why.code != WSS_ERR_GONE)
			wss_tally_bad(&run->tally, NULL, &why);
		return why.code == WSS_ERR_INTERRUPTED ? wss_error_set(err, why.code, "%s", why.text)
						       : 0;
	}
	guest = cold_add(run);
	if (!guest)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	memcpy(guest->name, ages->key.name, sizeof(guest->name));
	memcpy(guest->uuid, ages->key.uuid, sizeof(guest->uuid));
	guest->time = (time_t)ages->written_s;
	guest->known = wss_cold_timeline_report(&ages->timeline, ages->written_ns, &guest->report);
	return 0;
}

static int compare_guests(const void *a, const void *b)
{
	const struct cold_guest *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->uuid, y->uuid);
}

static int cold_read(struct cold_run *run, const char *directory, struct wss_error *err)
{
	wss_auto_dir DIR *dir = opendir(directory);
	const struct dirent *entry;

	if (!dir)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "%s", directory);
	while (run->n < GUESTS_MAX && (entry = readdir(dir))) {
		wss_auto_free char *path = NULL;

		/* A temporary file, or not the service's. */
		if (!wss_ages_is_name(entry->d_name))
			continue;
		path = wss_ages_path(directory, entry->d_name);
		if (!path)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		if (cold_read_file(run, path, err) < 0)
			return -1;
	}
	if (run->n)
		qsort(run->guests, run->n, sizeof(*run->guests), compare_guests);
	return 0;
}

/* --- the command --- */

static void cold_show(struct cold_run *run, const struct cold_guest *guest)
{
	struct cold_row row = { .guest = guest, .now = wss_clock_wall_seconds() };

	for (size_t i = 0; guest->known && i < WSS_COLD_AGES; i++) {
		row.age = (enum wss_cold_age)i;
		wss_report_row(run->report, &row);
	}
}

static bool cold_guest_is(const struct cold_run *run, const struct cold_guest *guest,
			  const char *word)
{
	return !strcasecmp(guest->uuid, word) || (!run->cli->by_uuid && !strcmp(guest->name, word));
}

static bool cold_is_asked_for(const struct cold_run *run, const struct cold_guest *guest)
{
	bool asked = !run->cli->n_domains;

	for (int i = 0; i < run->cli->n_domains; i++)
		asked = asked || cold_guest_is(run, guest, run->cli->domains[i]);
	return asked;
}

static void cold_show_named(struct cold_run *run, const char *word)
{
	struct wss_error why = WSS_ERROR_INIT;
	bool found = false;

	for (size_t i = 0; i < run->n; i++) {
		if (!cold_guest_is(run, &run->guests[i], word))
			continue;
		cold_show(run, &run->guests[i]);
		found = true;
	}
	if (found)
		return;
	wss_error_set(&why, WSS_ERR_GONE, "no idle-age data for this guest yet: virt-wss serve writes it, first after five minutes");
	wss_tally_bad(&run->tally, word, &why);
	wss_report_leave_out(run->report);
}

static void cold_set_width(const struct cold_run *run)
{
	size_t width = 0;

	for (size_t i = 0; i < run->n; i++)
		if (cold_is_asked_for(run, &run->guests[i]))
			width = wss_name_width(width, run->guests[i].name);
	wss_report_set_first_width(run->report, width);
	wss_report_set_batch(run->report);
}

static int cold_print(struct cold_run *run, struct wss_error *err)
{
	const struct wss_cli *cli = run->cli;

	if (wss_report_open(stdout, cli->format, &cli->view, &layout, &run->report, err) < 0)
		return -1;
	cold_set_width(run);
	for (int i = 0; i < cli->n_domains; i++)
		cold_show_named(run, cli->domains[i]);
	for (size_t i = 0; i < run->n && !cli->n_domains; i++)
		cold_show(run, &run->guests[i]);
	return wss_report_close(run->report, err);
}

/* Says why a table has no figures, or not all, each reason once with the guests that it concerns. */
static void cold_explain(const struct cold_run *run, const char *directory)
{
	char names[400] = "";
	size_t n = 0, len = 0, seen = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct cold_guest *guest = &run->guests[i];
		char name[WSS_NAME_SHORT_MAX], time[24];

		if (!cold_is_asked_for(run, guest))
			continue;
		seen += guest->known;
		if (!guest->known || wss_cold_watched(&guest->report, WSS_COLD_24H))
			continue;
		wss_name_shorten(guest->name, name);
		wss_duration_format(guest->report.as_of_ns - guest->report.since_ns, time, sizeof(time));
		if (n++ < NAMED_MAX && len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s for %s", n > 1 ? ", " : "",
						name, time);
	}
	if (!seen && !run->tally.bad)
		wss_log(WSS_LOG_INFO,
			"no idle-age data in %s yet: virt-wss serve writes it, first after five minutes",
			directory);
	/* Programs have the time in watched_seconds. */
	if (run->cli->format != WSS_FORMAT_TABLE)
		return;
	if (n > NAMED_MAX)
		wss_log(WSS_LOG_INFO, "not yet watched for the 24 h that the longest age needs: %s and %zu more",
			names, n - NAMED_MAX);
	else if (n)
		wss_log(WSS_LOG_INFO, "not yet watched for the 24 h that the longest age needs: %s", names);
}

static int cold_option(void *opaque, int c, const char *value, struct wss_error *err)
{
	return wss_store_option(opaque, c, value, err) < 0 ? -1 : 0;
}

static int cold_finish(struct wss_cli *cli, int argc, char **argv, struct wss_error *err)
{
	if (wss_cli_view(cli, &layout, err) < 0 || wss_cli_finish(cli, argc, argv, err) < 0 ||
	    wss_cli_check_domains(cli, err) < 0)
		return -1;
	if (cli->uri || cli->qmp || cli->monitor)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "cold reads what serve has stored: it takes no -c, --qmp or --allow-monitor");
	return 0;
}

static int cold_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_store_options store = WSS_STORE_OPTIONS_INIT;
	wss_auto_free char *history = NULL, *directory = NULL;
	struct cold_run run = { .cli = cli };
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	if (wss_cli_parse(cli, argc, argv, &store, &err) < 0 ||
	    cold_finish(cli, argc, argv, &err) < 0)
		return wss_cli_error(&err);
	history = wss_store_path(&store);
	r = history ? wss_file_path_check(history, "VIRT_WSS_HISTORY", &err)
		    : wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	if (r == 0)
		r = wss_ages_find_directory(history, false, &directory, &err);
	if (r == 0) {
		r = cold_read(&run, directory, &err);
	} else if (err.code == WSS_ERR_GONE) {
		wss_log(WSS_LOG_INFO, "no idle-age data yet beside %s: start virt-wss serve", history);
		wss_error_clear(&err);
		r = 0;
	}
	if (r == 0)
		r = cold_print(&run, &err);
	if (r == 0 && directory)
		cold_explain(&run, directory);
	free(run.guests);
	if (r < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run.tally,
				   cli->n_domains ? (size_t)cli->n_domains : run.n + run.tally.bad);
}

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_HISTORY_LONG,
	{ NULL, 0, NULL, 0 },
};

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, cold_option };

const struct wss_command wss_cmd_cold = {
	.name = "cold",
	.summary = "show how long memory has been idle, as serve saw it",
	.help = wss_help_cold,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = cold_run,
};
