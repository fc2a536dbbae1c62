/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room show/: figures in the forms that people and programs read. It knows no feature: features
 * bring rows, or draw with what is here, on a stream.
 *
 *   report.h    rows as a table, CSV or JSON: report-view.c chooses columns, report-cell.c makes
 *               texts, held-rows.h keeps rows that are to be sorted, name-cuts.h and width.h fit
 *               names and texts to the terminal
 *   json.h      JSON that is more than rows
 *   svg.h       pictures: chart.h draws the frame, axis.h the axes, and the feature its plot;
 *               plot.h writes the file
 *   metrics.h   metrics for Prometheus
 *   plugin.h    the output of a monitoring plugin
 *   progress.h  a line on the terminal while a task runs, in a thread of its own
 *
 * In: structs of the features, by the columns of their layouts. Out: text on a stream. A report or
 * a picture belongs to one thread, and nothing is kept between two of them.
 *
 * Begin with report.h. A column belongs to the layout of its feature (struct wss_report_layout). A
 * new kind of value is one of enum wss_kind there, with its texts in report-cell.c and json.c.
 */
#pragma once
