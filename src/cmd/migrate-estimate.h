/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by migrate-estimate.c, which measures, and migrate-estimate-report.c, which prints.
 */
#pragma once

#include <stdbool.h>

#include "cmd/cmd.h"
#include "migration/migration.h"

/* Measurements and assumptions that an estimate is based on. */
struct migrate_guest {
	const char *domain;
	const char *uuid;   /* "" if unknown */
	const char *method; /* of the window over touched memory, or NULL */
	bool is_recorded;   /* the figures are those of a recording */
	struct wss_migration migration;
};

enum migrate_mode { MIGRATE_PRECOPY, MIGRATE_AUTO_CONVERGE, MIGRATE_POSTCOPY };
#define MIGRATE_MODES 3

#define MIGRATE_TEXT 32

/* A row: one way of migrating the guest. */
struct migrate_row {
	const struct migrate_guest *guest;
	enum migrate_mode mode;
	struct wss_migration_run runs[WSS_ENDS];
	enum wss_migration_ends ends;
	double measured_s,
		written[WSS_ENDS]; /* the written set, in bytes, and the time that it was measured over */
	/* For the table: "1.1-1.4 GiB". */
	char passes[MIGRATE_TEXT], sent[MIGRATE_TEXT], time[MIGRATE_TEXT], downtime[MIGRATE_TEXT];
};

extern const struct wss_report_layout migrate_layout;
extern const struct wss_report_layout *const migrate_layouts[];

void migrate_row_init(struct migrate_row *row, const struct migrate_guest *guest,
		      enum migrate_mode mode);

/* Prints what the table cannot say, as notes. */
void migrate_notes(const struct migrate_guest *guest, const struct migrate_row *rows);
