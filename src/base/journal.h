/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sends messages with fields of their own to systemd's journal, by its native protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram of "FIELD=value" lines. libsystemd does the same, but
 * comes with several other libraries, and is missing where there is no systemd.
 */
#pragma once

#include <stdbool.h>

/* Whether standard error is connected to the journal (JOURNAL_STREAM, systemd.exec(5)). */
bool wss_journal_has_stderr(void);

/* Makes the socket for wss_journal_send(). Call it before threads start. */
void wss_journal_open(void);

/*
 * Sends a message about a guest with the fields DOMAIN_NAME and DOMAIN_UUID (left out if ""). priority is one of
 * syslog(3). Texts must not contain a newline. Waits for nobody. False: the journal has not taken it.
 */
bool wss_journal_send(int priority, const char *text, const char *name, const char *uuid);
