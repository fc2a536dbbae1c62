/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the tests of qmp/: a fake server process, a prepared stream, a canned transport. */
#pragma once

#include <sys/types.h>

#include "qmp/qmp.h"
#include "tests/testing.h"

/* Ample time for anything that should succeed, even under valgrind and on a busy machine. */
#define PLENTY_MS 300000u

#define GREETING_ALONE                                                                    \
	"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 0, \"minor\": 2, \"major\": 7}, " \
	"\"package\": \"\"}, \"capabilities\": []}}\r\n"
#define GREETING GREETING_ALONE "{\"return\": {}, \"id\": \"qmp-1\"}\r\n"

/* Ids from 1 on, for replies that were written before the commands were sent. */
extern const struct qmp_limits canned_limits;

struct fake {
	pid_t pid;
	char dir[64];
	char socket[96];
};

/* Runs fake-qmp with this script and waits until it is ready. */
void fake_start(struct fake *fake, const char *script);
void fake_stop(struct fake *fake);

/* Connects to it; fails the test if that is impossible. */
struct qmp *fake_connect(const struct fake *fake, const struct qmp_limits *limits);

/*
 * Returns a socket from which the client reads exactly these bytes and then end of file; whatever
 * it sends is dropped. At most 64 KiB.
 */
int stream_of(const void *bytes, size_t len);

/* Returns a connection whose server has sent GREETING and then text, and answers nothing else. */
struct qmp *connect_stream(const char *text);

/* Returns a connection over a transport that answers every command with this text, borrowed. */
struct qmp *connect_canned(const char *const *reply);
extern char canned_command[512]; /* the last command that such a connection sent */

/* Returns a monotonic time, to measure durations. */
uint64_t now_ms(void);

#define assert_code(err, expected)                                                             \
	do {                                                                                   \
		if ((err)->code != (expected))                                                 \
			fail_msg("code %d where %d was expected: %s", (err)->code, (expected), \
				 (err)->text);                                                 \
	} while (0)

/* Asserts that the text contains needle and is one line. */
#define assert_text(err, needle)                                               \
	do {                                                                   \
		if (!strstr((err)->text, needle) || strchr((err)->text, '\n')) \
			fail_msg("no \"%s\" in: %s", needle, (err)->text);     \
	} while (0)
