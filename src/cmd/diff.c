/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/file-options.h"
#include "help-text.h"
#include "pages/moment.h"
#include "pages/range-report.h"
#include "recording/recfiles.h"

/* Ranges closer together than 64 KiB are listed as one. */
#define WITHIN_PAGES 16

static const struct wss_report_layout *const layouts[] = {&wss_diff_layout,
							  &wss_diff_summary_layout, NULL};

struct diff_options {
	struct wss_files_options files;
	bool verbose;
};

/* One of the two sets. */
struct side {
	const char *text; /* FILE or FILE@TIME as given */
	char *path;
	uint64_t at_ns;		  /* WSS_MOMENT_ALL if no time was given */
	struct wss_recfile *file; /* may belong to the other side */
	struct wss_moment moment;
};

enum { OPT_VERBOSE = 1 };

static const struct option long_options[] = {
	WSS_COMMON_LONG, WSS_TABLE_LONG,   {"verbose", no_argument, NULL, OPT_VERBOSE},
	WSS_LIMIT_LONG,	 WSS_SALVAGE_LONG, {NULL, 0, NULL, 0},
};

static int diff_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct diff_options *options = opaque;

	if (c != OPT_VERBOSE)
		return wss_files_option(&options->files, c, value, err);
	options->verbose = true;
	return 0;
}

/* Splits FILE or FILE@MOMENT; a file whose name contains the @ takes precedence. */
static int side_split(const char *text, char **ret_path, uint64_t *ret_at_ns, struct wss_error *err)
{
	wss_auto_free char *path = wss_xstrdup(text);
	char *at;

	*ret_at_ns = WSS_MOMENT_ALL;
	at = strrchr(path, '@');
	if (at && access(path, F_OK) < 0) {
		*at++ = '\0';
		if (wss_moment_parse(at, text, ret_at_ns, err) < 0)
			return -1;
	}
	*ret_path = wss_steal_ptr(path);
	return 0;
}

/* Starts building a side's set, which is read from file. */
static int begin_side(struct side *side, struct wss_recfile *file, struct wss_error *err)
{
	if (wss_moment_init(&side->moment, wss_recfile_recording(file), side->at_ns, err) < 0)
		return -1;
	wss_moment_limit(&side->moment, wss_recfile_budget(file));
	return 0;
}

static int check_time(const struct side *side, const struct wss_recfile *file,
		      struct wss_error *err)
{
	if (side->at_ns == WSS_MOMENT_ALL || side->at_ns <= wss_recfile_state(file)->end_ns)
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED, "%s: the recording ends before this time",
			     side->text);
}

static const struct wss_recfile_visitor one_side = {
	.begin = wss_moment_begin,
	.change = wss_moment_change,
	.expect = wss_moment_expect,
	.end = wss_moment_end,
	.last = wss_moment_last,
};

static int load_side(struct side *side, struct wss_error *err)
{
	if (begin_side(side, side->file, err) < 0 ||
	    wss_recfile_replay(side->file, &one_side, &side->moment, err) < 0)
		return -1;
	return check_time(side, side->file, err);
}

/* Two recordings. The memory limit of the second includes the first one's sets. */
static int load_apart(struct side sides[2], struct wss_error *err)
{
	struct wss_pageset_budget *budgets[] = {wss_recfile_budget(sides[0].file),
						wss_recfile_budget(sides[1].file)};
	uint64_t first_bytes;
	int r;

	if (load_side(&sides[0], err) < 0)
		return -1;
	wss_pageset_budget_clear(budgets[0]);
	first_bytes = budgets[0]->used_bytes;
	budgets[1]->used_bytes += first_bytes;
	r = load_side(&sides[1], err);
	budgets[1]->used_bytes -= first_bytes;
	return r < 0 ? r : wss_recfiles_alike(sides[0].file, sides[1].file, err);
}

/* Visitor for two sides of the same file; opaque is an array of both. */
static int both_begin(void *sides, const struct wss_interval *interval,
		      const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct side *side = sides;
	int r = wss_moment_begin(&side[0].moment, interval, sets, err);

	return r < 0 ? r : wss_moment_begin(&side[1].moment, interval, sets, err);
}

static int both_change(void *sides, enum wss_change change, struct wss_run run,
		       struct wss_error *err)
{
	struct side *side = sides;
	int r = wss_moment_change(&side[0].moment, change, run, err);

	return r < 0 ? r : wss_moment_change(&side[1].moment, change, run, err);
}

static void both_expect(void *sides, enum wss_change change, uint64_t page)
{
	struct side *side = sides;

	wss_moment_expect(&side[0].moment, change, page);
	wss_moment_expect(&side[1].moment, change, page);
}

static int both_end(void *sides, const struct wss_interval *interval,
		    const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct side *side = sides;
	int r = wss_moment_end(&side[0].moment, interval, sets, err);

	return r < 0 ? r : wss_moment_end(&side[1].moment, interval, sets, err);
}

static int both_last(void *sides, const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct side *side = sides;
	int r = wss_moment_last(&side[0].moment, sets, err);

	return r < 0 ? r : wss_moment_last(&side[1].moment, sets, err);
}

/*
 * Replays the file that both sides come from. If both name the same time, only one of them
 * follows the replay.
 */
static int replay_both(struct side sides[2], struct wss_recfile *file, struct wss_error *err)
{
	static const struct wss_recfile_visitor both_sides = {
		.begin = both_begin,
		.change = both_change,
		.expect = both_expect,
		.end = both_end,
		.last = both_last,
	};

	if (sides[0].at_ns != sides[1].at_ns)
		return wss_recfile_replay(file, &both_sides, sides, err);
	if (wss_recfile_replay(file, &one_side, &sides[0].moment, err) < 0)
		return -1;
	wss_moment_copy(&sides[1].moment, &sides[0].moment);
	return 0;
}

/* Two points in one recording take one replay. */
static int load_both(struct side sides[2], struct wss_error *err)
{
	struct wss_recfile *file = sides[0].file;

	if (begin_side(&sides[0], file, err) < 0 || begin_side(&sides[1], file, err) < 0 ||
	    replay_both(sides, file, err) < 0 || check_time(&sides[0], file, err) < 0)
		return -1;
	return check_time(&sides[1], file, err);
}

static bool offer_range(void *top, const struct wss_page_range *range)
{
	wss_top_offer(top, range);
	return !wss_stop_requested();
}

static bool count_row(void *rows, const struct wss_page_range *range)
{
	(void)range;
	--*(uint64_t *)rows;
	return *(uint64_t *)rows && !wss_stop_requested();
}

/*
 * Limits the number of rows, because even small files may differ in a great many ranges: a
 * million, plus one for each 32 bytes of larger files.
 */
static int check_rows(const struct side *sides, struct wss_error *err)
{
	uint64_t bytes = wss_recfile_data_bytes(wss_recfile_state(sides[0].file)) +
			 wss_recfile_data_bytes(wss_recfile_state(sides[1].file));
	uint64_t most = bytes / 32 > 1000000 ? bytes / 32 : 1000000, left = most + 1;

	wss_moment_differences(wss_recfile_recording(sides[0].file), sides[0].moment.pages,
			       sides[1].moment.pages, 1, count_row, &left);
	if (left)
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED,
			     "more than %llu ranges differ: --limit N lists N of them",
			     (unsigned long long)most);
}

/* State for printing ranges as they come: how many more may follow. */
struct verbose_rows {
	struct wss_range_report *report;
	uint64_t left;
};

static bool diff_print_range(void *opaque, const struct wss_page_range *range)
{
	struct verbose_rows *rows = opaque;

	wss_range_report_row(rows->report, range);
	return --rows->left && !wss_stop_requested();
}

/* Prints each range separately, sorted by address; all of them unless a limit was given. */
static void print_verbose(const struct diff_options *options, const struct wss_recording *recording,
			  const struct side *sides, struct wss_range_report *report)
{
	struct verbose_rows rows = {
		.report = report,
		.left = options->files.limit_given ? options->files.limit : UINT64_MAX,
	};

	wss_moment_differences(recording, sides[0].moment.pages, sides[1].moment.pages, 1,
			       diff_print_range, &rows);
}

/* Prints the largest ranges first. */
static void print_largest(const struct diff_options *options, const struct wss_recording *recording,
			  const struct side *sides, struct wss_range_report *report)
{
	struct wss_top top;

	wss_top_init(&top, options->files.limit, wss_range_larger);
	wss_moment_differences(recording, sides[0].moment.pages, sides[1].moment.pages,
			       WITHIN_PAGES, offer_range, &top);
	wss_top_sort(&top);
	for (size_t i = 0; i < top.n && !wss_stop_requested(); i++)
		wss_range_report_row(report, &top.ranges[i]);
	wss_top_free(&top);
}

/* The set of such a time is that of a window near it, which the guest may have left long before. */
static void side_note_gap(const struct side *side, bool said, struct wss_amount *ret_start_ns,
			  struct wss_amount *ret_end_ns)
{
	const struct wss_moment *moment = &side->moment;
	char start[16], end[16];

	if (!wss_moment_in_gap(moment))
		return;
	*ret_start_ns = wss_amount_of(moment->gap_start_ns);
	*ret_end_ns = wss_amount_of(moment->gap_end_ns);
	if (said)
		return;
	wss_duration_format(moment->gap_start_ns, start, sizeof(start));
	wss_duration_format(moment->gap_end_ns, end, sizeof(end));
	wss_log(WSS_LOG_INFO,
		"%s: note: nothing was observed then, in a gap from %s to %s: the set is that of the window %s it",
		side->text, start, end, moment->gap_is_first ? "after" : "before");
}

static void side_note_degraded(const struct side *side)
{
	const struct wss_moment *moment = &side->moment;

	if (moment->degraded && moment->at_ns != WSS_MOMENT_ALL)
		wss_log(WSS_LOG_INFO,
			"%s: note: that window is degraded: touched pages may be missing in it",
			side->text);
	else if (moment->degraded)
		wss_files_note_degraded(side->file);
}

static struct wss_diff_side side_of(const struct wss_moment *moment)
{
	return (struct wss_diff_side){moment->pages,
				      moment->written_known ? moment->written : NULL};
}

static int diff_print(const struct wss_cli *cli, const struct diff_options *options,
		      const struct side *sides, struct wss_error *err)
{
	const struct wss_recording *recording = wss_recfile_recording(sides[0].file);
	const struct wss_moment *a = &sides[0].moment, *b = &sides[1].moment;
	struct wss_pageset_overlap overlap = wss_pageset_compare(
		a->pages, b->pages, NULL, (struct wss_run){0, wss_recording_pages(recording)});
	struct wss_diff_summary summary = {
		.a = cli->domains[0],
		.b = cli->domains[1],
		.a_pages = wss_pageset_count(a->pages),
		.b_pages = wss_pageset_count(b->pages),
		.gained = overlap.only_b,
		.lost = overlap.only_a,
		.kept = overlap.both,
	};
	struct wss_range_report *report;
	int r;

	side_note_gap(&sides[0], false, &summary.a_gap_start_ns, &summary.a_gap_end_ns);
	side_note_gap(&sides[1], !strcmp(sides[0].text, sides[1].text), &summary.b_gap_start_ns,
		      &summary.b_gap_end_ns);
	side_note_degraded(&sides[0]);
	if (strcmp(sides[0].text, sides[1].text) != 0)
		side_note_degraded(&sides[1]);
	if (options->verbose && !options->files.limit_given && check_rows(sides, err) < 0)
		return -1;
	if (wss_range_report_diff(stdout, cli->format, &cli->view, recording, &summary, side_of(a),
				  side_of(b), &report, err) < 0)
		return -1;
	if (options->verbose)
		print_verbose(options, recording, sides, report);
	else
		print_largest(options, recording, sides, report);
	r = wss_range_report_close(report, err);
	if (r == 0 && wss_stop_requested())
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return r;
}

static int open_sides(const struct wss_cli *cli, const struct diff_options *options,
		      struct side sides[2], struct wss_error *err)
{
	for (int i = 0; i < 2; i++) {
		sides[i].text = cli->domains[i];
		if (side_split(sides[i].text, &sides[i].path, &sides[i].at_ns, err) < 0)
			return -1;
	}
	if (wss_recfiles_open(sides[0].path, options->files.salvage, &sides[0].file, err) < 0)
		return -1;
	if (!strcmp(sides[0].path, sides[1].path)) {
		sides[1].file = sides[0].file;
		return 0;
	}
	return wss_recfiles_open(sides[1].path, options->files.salvage, &sides[1].file, err);
}

static int load_sides(struct side sides[2], struct wss_error *err)
{
	struct wss_recfile *const files[] = {sides[0].file, sides[1].file};
	bool again;
	int r;

	do {
		r = files[0] == files[1] ? load_both(sides, err) : load_apart(sides, err);
		again = r < 0 && wss_recfiles_shorten(files, 2, err);
		for (int i = 0; i < 2 && again; i++)
			wss_moment_free(&sides[i].moment);
	} while (again);
	return r;
}

static int diff_run(struct wss_cli *cli, int argc, char **argv)
{
	struct diff_options options = {.files = WSS_FILES_OPTIONS_INIT};
	struct side sides[2] = {0};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	if (wss_cli_parse(cli, argc, argv, &options, &err) < 0 ||
	    wss_cli_view(cli, &wss_diff_layout, &err) < 0 ||
	    wss_files_finish(cli, argc, argv, 2, 2, &err) < 0)
		return wss_cli_error(&err);
	r = open_sides(cli, &options, sides, &err);
	if (r == 0)
		r = load_sides(sides, &err);
	if (r == 0)
		r = diff_print(cli, &options, sides, &err);
	for (int i = 0; i < 2; i++) {
		wss_moment_free(&sides[i].moment);
		free(sides[i].path);
	}
	if (sides[1].file != sides[0].file)
		wss_recfile_close(sides[1].file);
	wss_recfile_close(sides[0].file);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

const struct wss_command wss_cmd_diff = {
	.name = "diff",
	.summary = "compare two recordings, or two points in one",
	.help = wss_help_diff,
	.long_options = long_options,
	.take = diff_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_FILES,
	.run = diff_run,
};
