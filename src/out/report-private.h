/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What report.c asks of the JSON form, which lives in json.c.
 */
#ifndef WSS_OUT_REPORT_PRIVATE_H
#define WSS_OUT_REPORT_PRIVATE_H

#include "out/report.h"

/* Writes a row as a JSON object in one line without newline; -1 when memory is short. */
int wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row);

#endif
