/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scope of the controller and the restore: connection, history and guests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/conn.h"

struct wss_control_scope {
	const char *uri;     /* URI of the connection; NULL: libvirt's default */
	bool monitor;	     /* allow QMP through libvirt's monitor */
	const char *history; /* path of the history, which contains the journal */
	/* The guests; n_guests 0: all that run, or all that the journal lists. */
	const struct wss_domain_ref *guests;
	size_t n_guests;
};
