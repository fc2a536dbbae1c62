/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The estimate for each way of migrating a guest, as rows of a table and as notes. */
#pragma once

#include <stdbool.h>

#include "migration/migration.h"
#include "show/report.h"

/* Measurements and assumptions that an estimate is based on. */
struct wss_migration_guest {
	const char *domain;
	const char *uuid;   /* "" if unknown */
	const char *method; /* of the window over touched memory, or NULL */
	bool is_recorded;   /* the figures are those of a recording */
	struct wss_migration migration;
};

enum wss_migration_mode {
	WSS_MIGRATION_PRECOPY,
	WSS_MIGRATION_AUTO_CONVERGE,
	WSS_MIGRATION_POSTCOPY
};
#define WSS_MIGRATION_MODES 3

#define WSS_MIGRATION_TEXT_MAX 32

/* A row: one way of migrating the guest. */
struct wss_migration_row {
	const struct wss_migration_guest *guest;
	enum wss_migration_mode mode;
	struct wss_migration_run runs[WSS_ENDS];
	enum wss_migration_ends ends;
	double measured_s,
		written[WSS_ENDS]; /* the written set, in bytes, and the time that it was measured over */
	/* For the table: "1.1-1.4 GiB". */
	char passes[WSS_MIGRATION_TEXT_MAX], sent[WSS_MIGRATION_TEXT_MAX],
		time[WSS_MIGRATION_TEXT_MAX], downtime[WSS_MIGRATION_TEXT_MAX];
};

extern const struct wss_report_layout wss_migration_layout;

void wss_migration_row_init(struct wss_migration_row *row, const struct wss_migration_guest *guest,
			    enum wss_migration_mode mode);

/* Prints what the table cannot say, as notes. */
void wss_migration_notes(const struct wss_migration_guest *guest,
			 const struct wss_migration_row *rows);
