/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints what guests' configurations cost, as a table, JSON or CSV. */
#pragma once

#include "show/report.h"
#include "sizing/config-advice.h"

struct wss_config_row {
	const char *domain, *uuid;
	const struct wss_config_finding *finding; /* NULL: nothing is to be changed */
	const char *error;			  /* why the guest could not be examined, or NULL */
};

extern const struct wss_report_layout wss_config_layout;

/*
 * Prints, for each element that a guest's findings replace, one message with the command and
 * the element.
 */
void wss_config_notes(const char *domain, const struct wss_config_finding *findings, size_t n);
