/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/file-options.h"
#include "help-text.h"
#include "pages/heat.h"
#include "pages/marks.h"
#include "pages/range-report.h"
#include "pages/refset-chart.h"
#include "recording/recfiles.h"
#include "show/plot.h"

static const struct wss_report_layout *const layouts[] = {&wss_heat_layout,
							  &wss_heat_summary_layout, NULL};

struct heatmap_options {
	struct wss_files_options files;
	bool hot_first;
};

enum { OPT_HOT_FIRST = 1 };

static const struct option long_options[] = {
	WSS_COMMON_LONG,    WSS_TABLE_LONG, {"hot-first", no_argument, NULL, OPT_HOT_FIRST},
	WSS_LIMIT_LONG,	    WSS_PLOT_LONG,  WSS_SALVAGE_LONG,
	{NULL, 0, NULL, 0},
};

static int heatmap_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct heatmap_options *options = opaque;

	if (c != OPT_HOT_FIRST)
		return wss_files_option(&options->files, c, value, err);
	options->hot_first = true;
	return 0;
}

static int heatmap_parse(struct wss_cli *cli, int argc, char **argv,
			 struct heatmap_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &wss_heat_layout, err) < 0 ||
	    wss_files_finish(cli, argc, argv, 1, 0, err) < 0)
		return -1;
	if (options->files.plot && cli->n_domains > 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--plot: one picture shows one recording: give a single FILE");
	if (!options->files.plot && !options->hot_first)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "nothing to do: name --plot FILE, --hot-first, or both");
	return 0;
}

struct picture {
	const struct wss_recording *recording;
	struct wss_heatmap *map;
	struct wss_marks marks;
};

static int add_change(void *opaque, enum wss_change change, struct wss_run run,
		      struct wss_error *err)
{
	struct picture *picture = opaque;

	return wss_heatmap_change(picture->map, change, run, err);
}

static int add_interval(void *opaque, const struct wss_interval *interval,
			const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct picture *picture = opaque;

	return wss_heatmap_end(picture->map, interval, sets, err);
}

static int heatmap_add_mark(void *opaque, uint64_t time_ns, const char *text, struct wss_error *err)
{
	struct picture *picture = opaque;

	return wss_marks_add(&picture->marks, time_ns, text, err);
}

static void heatmap_draw(FILE *f, const void *opaque)
{
	const struct picture *picture = opaque;

	wss_heatmap_plot(f, picture->recording, picture->map, &picture->marks);
}

static int heatmap_plot(const struct heatmap_options *options, struct wss_recfile *file,
			struct wss_error *err)
{
	static const struct wss_recfile_visitor visitor = {
		.without_sets = true,
		.change = add_change,
		.end = add_interval,
		.mark = heatmap_add_mark,
	};
	const struct wss_recfile_state *state = wss_recfile_state(file);
	struct picture picture = {.recording = wss_recfile_recording(file)};
	int r;

	picture.map = wss_heatmap_new(picture.recording, state->end_ns);
	picture.marks.budget = wss_recfile_budget(file);
	r = wss_recfile_replay(file, &visitor, &picture, err);
	wss_heatmap_finish(picture.map);
	if (r == 0)
		r = wss_marks_sort(&picture.marks, err);
	if (r == 0)
		r = wss_plot_write("--plot", options->files.plot, heatmap_draw, &picture, err);
	wss_heatmap_free(picture.map);
	wss_marks_free(&picture.marks);
	return r;
}

static int replay_all(struct wss_recfile **files, size_t n, struct wss_heat *heat,
		      struct wss_error *err)
{
	static const struct wss_recfile_visitor visitor = {
		.without_sets = true,
		.change = wss_heat_change,
		.end = wss_heat_end,
	};

	for (size_t i = 0; i < n; i++) {
		wss_heat_recording(heat, wss_recfile_state(files[i])->windows);
		if (wss_recfile_replay(files[i], &visitor, heat, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * Sums up all recordings, one slice of memory after the other, and collects the hottest ranges
 * in top.
 */
static int count_windows(struct wss_recfile **files, size_t n, struct wss_heat *heat,
			 struct wss_top *top, struct wss_error *err)
{
	struct wss_page_range carry = {0};
	bool replay;

	if (replay_all(files, n, heat, err) < 0)
		return -1;
	while (wss_heat_slice(heat, &replay)) {
		if (replay && replay_all(files, n, heat, err) < 0)
			return -1;
		wss_heat_ranges(heat, wss_recfile_recording(files[0]), &carry, top);
	}
	wss_heat_flush(&carry, top);
	wss_top_sort(top);
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return 0;
}

static int print_ranges(const struct wss_cli *cli, struct wss_recfile **files, size_t n,
			const struct wss_top *top, uint64_t windows, struct wss_error *err)
{
	const struct wss_recording *recording = wss_recfile_recording(files[0]);
	const struct wss_heat_summary summary = {
		.domain = recording->domain,
		.recordings = n,
		.windows = windows,
		.ranges = top->seen,
	};
	struct wss_range_report *report;
	int r;

	if (wss_range_report_heat(stdout, cli->format, &cli->view, recording, &summary, &report,
				  err) < 0)
		return -1;
	for (size_t i = 0; i < top->n && !wss_stop_requested(); i++)
		wss_range_report_row(report, &top->ranges[i]);
	r = wss_range_report_close(report, err);
	/* The table may be incomplete. */
	if (r == 0 && wss_stop_requested())
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return r;
}

static int print_hot(const struct wss_cli *cli, const struct heatmap_options *options,
		     struct wss_recfile **files, size_t n, struct wss_error *err)
{
	const struct wss_recording *recording = wss_recfile_recording(files[0]);
	struct wss_heat heat;
	struct wss_top top;
	uint64_t windows = 0, bytes = 0;
	int r;

	for (size_t i = 1; i < n; i++)
		if (wss_recfiles_alike(files[0], files[i], err) < 0)
			return -1;
	for (size_t i = 0; i < n; i++) {
		windows += wss_recfile_state(files[i])->windows;
		bytes += wss_recfile_data_bytes(wss_recfile_state(files[i]));
	}
	wss_heat_init(&heat, wss_recording_pages(recording), bytes);
	wss_top_init(&top, options->files.limit, wss_range_hotter);
	r = count_windows(files, n, &heat, &top, err);
	wss_heat_free(&heat);
	if (r == 0)
		r = print_ranges(cli, files, n, &top, windows, err);
	wss_top_free(&top);
	return r;
}

static int heatmap_read(const struct wss_cli *cli, const struct heatmap_options *options,
			struct wss_recfile **files, size_t n, struct wss_error *err)
{
	for (size_t i = 0; i < n; i++)
		wss_files_note_degraded(files[i]);
	if (options->files.plot && heatmap_plot(options, files[0], err) < 0)
		return -1;
	return options->hot_first ? print_hot(cli, options, files, n, err) : 0;
}

static int heatmap_files(const struct wss_cli *cli, const struct heatmap_options *options,
			 struct wss_recfile **files, size_t n, struct wss_error *err)
{
	int r;

	for (size_t i = 0; i < n; i++)
		if (wss_recfiles_open(cli->domains[i], options->files.salvage, &files[i], err) < 0)
			return -1;
	do
		r = heatmap_read(cli, options, files, n, err);
	while (r < 0 && wss_recfiles_shorten(files, n, err));
	return r;
}

static int heatmap_run(struct wss_cli *cli, int argc, char **argv)
{
	struct heatmap_options options = {.files = WSS_FILES_OPTIONS_INIT};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile **files;
	int r;

	if (heatmap_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_plot_check("--plot", options.files.plot, !options.hot_first, &err) < 0)
		return wss_cli_error(&err);
	files = wss_xcalloc((size_t)cli->n_domains, sizeof(struct wss_recfile *));
	r = heatmap_files(cli, &options, files, (size_t)cli->n_domains, &err);
	for (int i = 0; i < cli->n_domains; i++)
		wss_recfile_close(files[i]);
	free(files);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

const struct wss_command wss_cmd_heatmap = {
	.name = "heatmap",
	.summary = "draw a recording, or list its hottest pages",
	.help = wss_help_heatmap,
	.long_options = long_options,
	.take = heatmap_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_FILES,
	.run = heatmap_run,
};
