/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints how cold the memory of guests is, by the files that the service keeps of it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/newfile.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "cmd/stored-guests.h"
#include "cold/ages.h"
#include "help-text.h"
#include "show/width.h"

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
	const char *idle;
	struct wss_amount low_bytes, high_bytes;
	double observed;
	uint64_t age_s, watched_ns;
};

struct cold_run {
	const struct wss_cli *cli;
	const char *history; /* path */
	struct wss_report *report;
	struct wss_tally tally;
	struct cold_guest *guests;
	size_t n, room;
};

/* --- the table --- */

static const void *cold_guest(const void *row)
{
	return ((const struct cold_row *)row)->guest;
}

#define FIELD(member, kind) WSS_FIELD(struct cold_row, member, kind)
#define GUEST(member, kind) WSS_FIELD_OF(cold_guest, struct cold_guest, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, GUEST(name, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, GUEST(uuid, TEXT), "UUID of the guest"},
	{"time", NULL, "TIME", -20, GUEST(time, TEXT), "When its idle-age data was stored, UTC"},
	{"age_seconds", NULL, "AGE", 6, FIELD(age_s, AGE), "How long ago that was, in seconds"},
	{"idle", NULL, "IDLE", -5, FIELD(idle, TEXT),
	 "Untouched for at least this time; never: since serve started watching it"},
	{"low_bytes", NULL, "LOW", 8, FIELD(low_bytes, BYTES),
	 "Memory that was surely untouched for that time, in bytes; absent until the guest has been watched for as long"},
	{"high_bytes", NULL, "HIGH", 8, FIELD(high_bytes, BYTES),
	 "Memory that was not seen touched in that time, in bytes; absent likewise"},
	{"observed_share", NULL, "OBSERVED", 8, FIELD(observed, SHARE),
	 "Share of that time in which the guest was observed"},
	{"watched_seconds", NULL, "WATCHED", 8, FIELD(watched_ns, DURATION),
	 "Time since serve started watching it, in seconds"},
	{"held_bytes", NULL, "HELD", 8, GUEST(report.held_bytes, BYTES),
	 "Guest memory whose idle time is known, in bytes"},
	{"absent_bytes", NULL, "ABSENT", 8, GUEST(report.absent_bytes, BYTES),
	 "Memory that the host does not hold: never touched, ballooned or discarded, in bytes"},
	{"granularity_bytes", NULL, "GRAN", 5, GUEST(report.granularity_bytes, BYTES),
	 "Size of the pieces whose ages are known, in bytes"},
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

static const struct wss_report_layout *const layouts[] = {&layout, NULL};

/* --- the files --- */

static struct cold_guest *cold_add(struct cold_run *run)
{
	if (run->n == run->room) {
		run->room = run->room ? 2 * run->room : 64;
		run->guests = wss_xreallocarray(run->guests, run->room, sizeof(*run->guests));
	}
	run->guests[run->n] = (struct cold_guest){.known = false};
	return &run->guests[run->n++];
}

/* A file that cannot be read is reported, and leaves the others. */
static int cold_read_file(struct cold_run *run, const char *path, struct wss_error *err)
{
	wss_auto_free struct wss_ages *ages = wss_xcalloc(1, sizeof(*ages));
	struct wss_error why = WSS_ERROR_INIT;
	struct cold_guest *guest;

	if (wss_ages_read(path, 0, NULL, ages, NULL, &why) < 0) {
		if (why.code != WSS_ERR_GONE)
			wss_tally_bad(&run->tally, NULL, &why);
		return why.code == WSS_ERR_INTERRUPTED
			       ? wss_error_set(err, why.code, "%s", why.text)
			       : 0;
	}
	guest = cold_add(run);
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
	const struct wss_cold_report *report = &guest->report;
	time_t now = wss_clock_wall_seconds();
	struct cold_row row = {.guest = guest,
			       .age_s = now > guest->time ? (uint64_t)(now - guest->time) : 0,
			       .watched_ns = report->as_of_ns - report->since_ns};

	for (enum wss_cold_age age = 0; guest->known && age < WSS_COLD_AGES; age++) {
		row.idle = wss_cold_age_name(age);
		row.low_bytes = wss_cold_low(report, age);
		row.high_bytes = wss_cold_high(report, age);
		row.observed = report->ages[age].observed;
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

/* Whether the history has the guest. */
static bool cold_is_stored(const struct cold_run *run, const char *word)
{
	struct wss_stored_guests stored = {.n = 0};
	struct wss_history *history = NULL;
	struct wss_error why = WSS_ERROR_INIT;
	bool found;

	if (wss_history_open_readonly(run->history, &history, &why) < 0)
		return false;
	found = wss_stored_guests_read(history, &stored, &why) == 0 &&
		(wss_cli_stored_guest(&stored, word, run->cli->by_uuid, &why) ||
		 why.code == WSS_ERR_AMBIGUOUS);
	wss_stored_guests_free(&stored);
	wss_history_close(history);
	return found;
}

static void cold_unknown(const struct cold_run *run, const char *word, struct wss_error *err)
{
	struct wss_nearest nearest = {.typed = word};
	const char *near;

	for (size_t i = 0; i < run->n; i++)
		wss_nearest_offer(&nearest, run->guests[i].name);
	near = run->cli->by_uuid ? NULL : wss_nearest_word(&nearest);
	wss_error_set(err, WSS_ERR_GONE,
		      "unknown guest: neither idle-age data nor the history has it%s%s%s",
		      near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
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
	if (cold_is_stored(run, word))
		wss_error_set(
			&why, WSS_ERR_GONE,
			"no idle-age data for this guest yet: virt-wss serve writes it, first after five minutes");
	else
		cold_unknown(run, word, &why);
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

/* Programs have it in granularity_bytes. */
static void cold_explain_units(const struct cold_run *run)
{
	char names[400] = "";
	size_t n = 0, len = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct cold_guest *guest = &run->guests[i];
		char name[WSS_NAME_SHORT_MAX];

		if (!cold_is_asked_for(run, guest) || !guest->known || !guest->report.no_memory)
			continue;
		wss_name_shorten(guest->name, name);
		if (n++ < NAMED_MAX && len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						n > 1 ? ", " : "", name);
	}
	if (n > NAMED_MAX)
		len += (size_t)snprintf(names + len, len < sizeof(names) ? sizeof(names) - len : 0,
					" and %zu more", n - NAMED_MAX);
	if (n)
		wss_log(WSS_LOG_INFO,
			"by 2 MiB, because ages-memory is too small for ages by 4 KiB: %s", names);
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
		wss_duration_format(guest->report.as_of_ns - guest->report.since_ns, time,
				    sizeof(time));
		if (n++ < NAMED_MAX && len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s for %s",
						n > 1 ? ", " : "", name, time);
	}
	if (!seen && !run->tally.bad)
		wss_log(WSS_LOG_INFO,
			"no idle-age data in %s yet: virt-wss serve writes it, first after five minutes",
			directory);
	/* Programs have the time in watched_seconds. */
	if (run->cli->format != WSS_FORMAT_TABLE)
		return;
	cold_explain_units(run);
	if (n > NAMED_MAX)
		wss_log(WSS_LOG_INFO,
			"not yet watched for the 24 h that the longest age needs: %s and %zu more",
			names, n - NAMED_MAX);
	else if (n)
		wss_log(WSS_LOG_INFO, "not yet watched for the 24 h that the longest age needs: %s",
			names);
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
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"cold reads what serve has stored: it takes no -c, --qmp or --allow-monitor");
	wss_cli_take_ids(cli);
	return 0;
}

static int cold_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_store_options store = WSS_STORE_OPTIONS_INIT;
	wss_auto_free char *history = NULL, *directory = NULL;
	char elsewhere[WSS_STORE_ELSEWHERE_MAX];
	struct cold_run run = {.cli = cli};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	if (wss_cli_parse(cli, argc, argv, &store, &err) < 0 ||
	    cold_finish(cli, argc, argv, &err) < 0)
		return wss_cli_error(&err);
	run.history = history = wss_xchecked(wss_store_path(&store));
	r = wss_newfile_check_path(history, "VIRT_WSS_HISTORY", &err);
	if (r == 0)
		r = wss_ages_find_directory(history, false, &directory, &err);
	if (r == 0) {
		r = cold_read(&run, directory, &err);
	} else if (err.code == WSS_ERR_GONE) {
		wss_store_elsewhere(elsewhere);
		wss_log(WSS_LOG_INFO, "no idle-age data yet beside %s: start virt-wss serve%s",
			history, elsewhere);
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
	{NULL, 0, NULL, 0},
};

const struct wss_command wss_cmd_cold = {
	.name = "cold",
	.summary = "show how long memory has been idle, as serve saw it",
	.help = wss_help_cold,
	.long_options = long_options,
	.take = cold_option,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = cold_run,
};
