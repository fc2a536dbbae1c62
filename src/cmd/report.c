/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/file-options.h"
#include "help-text.h"
#include "pages/refset-chart.h"
#include "pages/refset-columns.h"
#include "pages/refset-report.h"
#include "pages/refset.h"
#include "recording/recfiles.h"
#include "serve/page.h"
#include "show/plot.h"

/* --columns and --sort refer to the first layout. */
static const struct wss_report_layout *const layouts[] = {
	&wss_refset_layouts[WSS_REFSET_INTERVALS], &wss_refset_layouts[WSS_REFSET_REGIONS],
	&wss_refset_layouts[WSS_REFSET_NODES],	   &wss_refset_layouts[WSS_REFSET_PHASES],
	&wss_refset_layouts[WSS_REFSET_MARKS],	   &wss_refset_layouts[WSS_REFSET_RECORDING],
	&wss_refset_layouts[WSS_REFSET_VIEWPORT],  NULL,
};

struct report_options {
	struct wss_files_options files;
	uint64_t from_ns;
	uint64_t to_ns;
	const char *html; /* NULL: no file */
};

enum { OPT_VIEWPORT = 1, OPT_HTML };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"viewport", required_argument, NULL, OPT_VIEWPORT},
	WSS_PLOT_LONG,
	{"html", required_argument, NULL, OPT_HTML},
	WSS_SALVAGE_LONG,
	{NULL, 0, NULL, 0},
};

static int parse_viewport(const char *text, struct report_options *options, struct wss_error *err)
{
	wss_auto_free char *copy = wss_xstrdup(text);
	char *colon;

	colon = strchr(copy, ':');
	if (!colon)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--viewport: '%s' is not FROM:TO (as in 10s:25s)", text);
	*colon = '\0';
	if (*copy && wss_moment_parse(copy, "--viewport", &options->from_ns, err) < 0)
		return -1;
	if (colon[1] && wss_moment_parse(colon + 1, "--viewport", &options->to_ns, err) < 0)
		return -1;
	if (options->from_ns >= options->to_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "--viewport: '%s' ends before it begins",
				     text);
	return 0;
}

static int report_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct report_options *options = opaque;

	if (c == OPT_VIEWPORT)
		return parse_viewport(value, options, err);
	if (c == OPT_HTML) {
		options->html = value;
		return 0;
	}
	return wss_files_option(&options->files, c, value, err);
}

static void report_draw(FILE *f, const void *opaque)
{
	const struct wss_refset_report *report = opaque;

	wss_refset_plot(f, report->recording, report->result, report->duration_ns);
}

/* A report as JSON, in memory. */
struct report_json {
	char *text;
	size_t size;
};

static void report_draw_html(FILE *f, const void *opaque)
{
	const struct report_json *json = opaque;

	wss_page_write(f, json->text, json->size);
}

static int report_write_html(const char *path, const struct wss_refset_report *report,
			     struct wss_error *err)
{
	struct report_json json = {.text = NULL};
	FILE *stream = open_memstream(&json.text, &json.size);
	int r;

	if (!stream)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	r = wss_refset_report_print(stream, WSS_FORMAT_JSON, NULL, report, 0, err);
	if (fclose(stream) != 0 && r == 0)
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (r == 0)
		r = wss_plot_write("--html", path, report_draw_html, &json, err);
	free(json.text);
	return r;
}

static int report_print(const struct wss_cli *cli, const struct report_options *options,
			const struct wss_recfile *file, const struct wss_refset_result *result,
			struct wss_error *err)
{
	const struct wss_recfile_state *state = wss_recfile_state(file);
	const struct wss_refset_report report = {
		.file = wss_recfile_name(file),
		.recording = wss_recfile_recording(file),
		.result = result,
		.file_bytes = state->file_bytes,
		.duration_ns = state->end_ns,
		.ended = state->ended,
		.whole = !state->cut_bytes && !state->damaged_at,
	};

	wss_files_note_degraded(file);
	/* Files come first, so that nothing has been printed if one fails. */
	if (options->files.plot &&
	    wss_plot_write("--plot", options->files.plot, report_draw, &report, err) < 0)
		return -1;
	if (options->html && report_write_html(options->html, &report, err) < 0)
		return -1;
	return wss_refset_report_print(stdout, cli->format, &cli->view, &report,
				       wss_terminal_width(), err);
}

static int report_file(const struct wss_cli *cli, const struct report_options *options,
		       struct wss_recfile *file, struct wss_error *err)
{
	static const struct wss_recfile_visitor visitor = {
		.begin = wss_refset_begin,
		.change = wss_refset_change,
		.expect = wss_refset_expect,
		.end = wss_refset_end,
		.last = wss_refset_last,
		.mark = wss_refset_mark,
	};
	const struct wss_refset_result *result;
	struct wss_refset *refset;
	int r;

	if (wss_refset_new(wss_recfile_recording(file), options->from_ns, options->to_ns, &refset,
			   err) < 0)
		return -1;
	wss_refset_limit(refset, wss_recfile_budget(file));
	r = wss_recfile_replay(file, &visitor, refset, err);
	if (r == 0 && wss_refset_finish(refset, wss_recfile_state(file)->end_ns, &result, err) < 0)
		r = wss_error_prefix(err, "%s", wss_recfile_name(file));
	if (r == 0)
		r = report_print(cli, options, file, result, err);
	/* The table may be incomplete. */
	if (r == 0 && wss_stop_requested())
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	wss_refset_free(refset);
	return r;
}

static int report_run(struct wss_cli *cli, int argc, char **argv)
{
	struct report_options options = {.to_ns = UINT64_MAX};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile *file = NULL;
	int r;

	if (wss_cli_parse(cli, argc, argv, &options, &err) < 0 ||
	    wss_cli_view(cli, layouts[0], &err) < 0 ||
	    wss_files_finish(cli, argc, argv, 1, 1, &err) < 0)
		return wss_cli_error(&err);
	if (wss_plot_check("--plot", options.files.plot, false, &err) < 0 ||
	    wss_plot_check("--html", options.html, false, &err) < 0)
		return wss_cli_error(&err);
	r = wss_recfiles_open(cli->domains[0], options.files.salvage, &file, &err);
	if (r == 0) {
		do
			r = report_file(cli, &options, file, &err);
		while (r < 0 && wss_recfiles_shorten(&file, 1, &err));
	}
	wss_recfile_close(file);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

static const struct wss_option_values values[] = {
	{"html", WSS_VALUES_FILES},
	{NULL, NULL},
};

const struct wss_command wss_cmd_report = {
	.name = "report",
	.summary = "summarize a recording: peak, phases, regions, marks",
	.help = wss_help_report,
	.long_options = long_options,
	.take = report_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_FILES,
	.values = values,
	.run = report_run,
};
