/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection: greeting, ids, events, errors, deadlines, and a peer that misbehaves. */
#include "fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../divert.h"
#include "../patient.h"
#include "base/stop.h"
#include "qmp/client.h"
#include "qmp/jsonline.h"
#include "qmp/query.h"

#define SHORT_MS 150u

/* Largest block that qmp/ has requested since this was set to 0. */
static size_t largest_realloc;
static __typeof__(&realloc) real_realloc;

static void *noting_realloc(void *ptr, size_t size)
{
	if (size > largest_realloc)
		largest_realloc = size;
	return real_realloc(ptr, size);
}

static int query_with(struct qmp *qmp, unsigned int timeout_ms, struct wss_error *err)
{
	wss_error_clear(err);
	return qmp_execute(qmp, "query-status", NULL, timeout_ms, NULL, err);
}

static void assert_works(struct qmp *qmp)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (qmp_execute(qmp, "query-name", NULL, PLENTY_MS, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

/* Asserts that the connection was closed and that later calls say why. */
static void assert_closed(struct qmp *qmp, const char *why)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(query_with(qmp, PLENTY_MS, &err), -1);
	assert_code(&err, WSS_ERR_GONE);
	assert_text(&err, why);
}

/* Runs a server with the script and one query-status, which must fail as given. */
static void expect_failure(const char *script, unsigned int timeout_ms, enum wss_error_code code,
			   const char *needle)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, script);
	qmp = fake_connect(&fake, &canned_limits);
	assert_int_equal(query_with(qmp, timeout_ms, &err), -1);
	assert_code(&err, code);
	assert_text(&err, needle);
	assert_text(&err, "QMP query-status: ");
	assert_closed(qmp, needle);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_replies_in_turn)
{
	struct json_object *value = NULL;
	const char *status = NULL;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "set status paused\n");
	qmp = fake_connect(&fake, NULL);
	for (int i = 0; i < 20; i++)
		assert_works(qmp);
	assert_int_equal(qmp_execute(qmp, "query-status", NULL, PLENTY_MS, &value, NULL), 0);
	assert_int_equal(qmp_get_string(value, "status", &status, NULL), 0);
	assert_string_equal(status, "paused");
	json_object_put(value);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_arguments_are_sent)
{
	struct json_object *args = json_object_new_object();
	char text[512] = GREETING "{\"return\": {}, \"id\": \"qmp-2\"}\n";
	struct qmp *qmp = NULL;
	int fds[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_true(write(fds[1], text, strlen(text)) == (ssize_t)strlen(text));
	json_object_object_add(args, "a", json_object_new_string("x\ny"));
	assert_int_equal(qmp_open_fd(fds[0], PLENTY_MS, &canned_limits, &qmp, NULL), 0);
	assert_int_equal(qmp_execute(qmp, "c", args, PLENTY_MS, NULL, NULL), 0);
	json_object_put(args);
	qmp_close(qmp);
	n = read(fds[1], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(
		text, "{\"execute\":\"qmp_capabilities\",\"id\":\"qmp-1\"}\n"
		      "{\"execute\":\"c\",\"arguments\":{\"a\":\"x\\ny\"},\"id\":\"qmp-2\"}\n");
	close(fds[1]);
}

TEST(test_peer)
{
	struct qmp_peer peer;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "");
	qmp = fake_connect(&fake, NULL);
	assert_int_equal(qmp_peer(qmp, &peer, NULL), 0);
	assert_int_equal(peer.pid, fake.pid);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.gid, getegid());
	qmp_close(qmp);
	fake_stop(&fake);
}

/* Reads what comes without a request: until the guest has stopped (true), or the connection was closed. */
static bool stops_soon(struct qmp *qmp)
{
	while (!qmp_stops_seen(qmp).stopped && qmp->closed_why.code == WSS_OK) {
		struct pollfd pfd = {.fd = qmp->stream.fd, .events = POLLIN};

		assert_int_equal(poll(&pfd, 1, PLENTY_MS), 1);
	}
	return qmp_stops_seen(qmp).stopped;
}

TEST(test_events_between_replies)
{
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "on query-status\n event A {\"return\": 1}\n event B\n default\n"
			  "on query-name\n default\n delay 50\n event STOP\n");
	qmp = fake_connect(&fake, NULL);
	assert_int_equal(query_with(qmp, PLENTY_MS, &(struct wss_error){0}), 0);
	assert_works(qmp);
	assert_true(stops_soon(qmp));
	assert_works(qmp);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_stop_seen)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_status status;
	struct fake fake;
	struct qmp *qmp;

	/* STOP comes before, within, and after the reply; the answer overtakes the first. */
	fake_start(&fake, "on query-status\n event STOP\n event RESUME\n default\n"
			  "on query-name\n events 200\n event STOP\n default\n events 200\n"
			  "on query-uuid\n default\n delay 50\n event SUSPEND\n"
			  "on query-kvm\n default\n close\n");
	qmp = fake_connect(&fake, NULL);
	assert_false(qmp_stops_seen(qmp).stopped);
	assert_int_equal(qmp_query_status(qmp, PLENTY_MS, &status, &err), 0);
	assert_false(qmp_stops_seen(qmp).stopped);
	assert_works(qmp);
	assert_true(qmp_stops_seen(qmp).stopped);
	assert_true(qmp_stops_seen(qmp).stopped);
	assert_int_equal(qmp_query_status(qmp, PLENTY_MS, &status, &err), 0);
	assert_false(qmp_stops_seen(qmp).stopped);

	assert_int_equal(qmp_execute(qmp, "query-uuid", NULL, PLENTY_MS, NULL, &err), 0);
	assert_true(stops_soon(qmp));
	assert_int_equal(qmp_execute(qmp, "query-kvm", NULL, PLENTY_MS, NULL, &err), 0);
	assert_int_equal(query_with(qmp, PLENTY_MS, &err), -1);
	assert_true(qmp_stops_seen(qmp).stopped);
	qmp_stop_forget(qmp);
	assert_false(qmp_stops_seen(qmp).stopped);
	qmp_close(qmp);
	fake_stop(&fake);
}

/* A peer that floods cannot block qmp_stops_seen() either. */
TEST(test_stop_seen_in_a_flood)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "on query-status\n default\n flood\n");
	qmp = fake_connect(&fake, NULL);
	assert_int_equal(query_with(qmp, PLENTY_MS, &err), 0);
	for (int i = 0; i < 20; i++)
		assert_false(qmp_stops_seen(qmp).stopped);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_flood_ends_by_the_deadline)
{
	uint64_t start = now_ms();

	/* Otherwise this never ends. */
	expect_failure("on query-status\n flood\n", SHORT_MS, WSS_ERR_TIMEOUT,
		       "no reply within 150 ms");
	assert_true(now_ms() - start >= SHORT_MS);
}

TEST(test_split_replies)
{
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "connect\n split 1\n default\non query-status\n event STOP\n default\n");
	qmp = fake_connect(&fake, NULL);
	assert_int_equal(query_with(qmp, PLENTY_MS, &(struct wss_error){0}), 0);
	assert_works(qmp);
	assert_true(qmp_stops_seen(qmp).stopped);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_large_reply_within_bounds)
{
	struct json_object *value = NULL;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "on query-status\n huge 3\n");
	qmp = fake_connect(&fake, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(qmp_execute(qmp, "query-status", NULL, PLENTY_MS, &value, NULL),
				 0);
		assert_int_equal(json_object_get_string_len(value), 3 << 20);
		json_object_put(value);
		assert_works(qmp);
	}
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_100_mib_reply)
{
	largest_realloc = 0;
	expect_failure("on query-status\n huge 100\n", PLENTY_MS, WSS_ERR_FAILED,
		       "the reply is larger than 4194304 bytes");
	assert_in_range(largest_realloc, 1, 4 << 20);
}

TEST(test_small_bound)
{
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	struct wss_error err = WSS_ERROR_INIT;
	struct fake fake;
	struct qmp *qmp;

	limits.reply_bytes = 1000;
	fake_start(&fake, "on query-status\n huge 1\n");
	qmp = fake_connect(&fake, &limits);
	largest_realloc = 0;
	assert_works(qmp);
	assert_int_equal(query_with(qmp, PLENTY_MS, &err), -1);
	assert_text(&err, "the reply is larger than 1000 bytes");
	assert_in_range(largest_realloc, 0, 1000);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_misbehaving_peer)
{
	static const struct {
		const char *actions;
		enum wss_error_code code;
		const char *needle;
	} cases[] = {
		{"hang", WSS_ERR_TIMEOUT, "no reply within 150 ms"},
		{"split 1 20\n default", WSS_ERR_TIMEOUT, "no reply within 150 ms"},
		{"raw {\"return\": {}, \"id\": %ID%}\n hang", WSS_ERR_TIMEOUT, "no reply"},
		{"close", WSS_ERR_GONE, "the peer closed the connection"},
		{"raw {\"return\": {}\n close", WSS_ERR_GONE, "in the middle of a reply"},
		{"line \\x80\\xff\\x01 garbage", WSS_ERR_FAILED, "not JSON"},
		{"line", WSS_ERR_FAILED, "ends too early"},
		{"line {\"return\": {}, \"id\": %ID%\\0}", WSS_ERR_FAILED, "character 0x00"},
		{"deep 100000", WSS_ERR_FAILED, "nested deeper than 64"},
		{"line [1]", WSS_ERR_FAILED, "an array instead of an object"},
		{"line {}", WSS_ERR_FAILED, "neither a reply nor an event"},
		{"line {\"QMP\": {}}", WSS_ERR_FAILED, "neither a reply nor an event"},
		{"line {\"return\": {}}", WSS_ERR_FAILED, "\"id\" is missing"},
		{"line {\"return\": {}, \"id\": 2}", WSS_ERR_FAILED, "\"id\" is an integer"},
		{"line {\"return\": {}, \"id\": \"x\"}", WSS_ERR_FAILED,
		 "id \"x\" instead of \"qmp-2\""},
		{"line {\"return\": null, \"id\": %ID%}", WSS_ERR_FAILED, "neither"},
		{"line {\"return\": 1, \"error\": {}, \"id\": %ID%}", WSS_ERR_FAILED, "both"},
		{"line {\"error\": 5, \"id\": %ID%}", WSS_ERR_FAILED, "malformed error reply"},
		{"line {\"error\": {}, \"id\": %ID%}", WSS_ERR_FAILED, "\"class\" is missing"},
		{"line {\"error\": {\"class\": \"A\", \"desc\": 1}, \"id\": %ID%}", WSS_ERR_FAILED,
		 "\"desc\" is an integer"},
	};
	char script[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(script, sizeof(script), "on query-status\n %s\n", cases[i].actions);
		expect_failure(script, cases[i].code == WSS_ERR_TIMEOUT ? SHORT_MS : PLENTY_MS,
			       cases[i].code, cases[i].needle);
	}
}

TEST(test_duplicate_reply)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "on query-name\n default\n default\n");
	qmp = fake_connect(&fake, &canned_limits);
	assert_works(qmp);
	assert_int_equal(query_with(qmp, PLENTY_MS, &err), -1);
	assert_text(&err, "id \"qmp-2\" instead of \"qmp-3\"");
	assert_closed(qmp, "instead of");
	qmp_close(qmp);

	qmp = fake_connect(&fake, &canned_limits);
	assert_works(qmp);
	assert_false(stops_soon(qmp));
	assert_closed(qmp, "QEMU sent a reply without a request");
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_errors_of_qemu)
{
	static const struct {
		const char *name;
		enum qmp_error_class class;
		enum wss_error_code code;
	} cases[] = {
		{"GenericError", QMP_CLASS_GENERIC, WSS_ERR_FAILED},
		{"CommandNotFound", QMP_CLASS_COMMAND_NOT_FOUND, WSS_ERR_UNSUPPORTED},
		{"DeviceNotActive", QMP_CLASS_DEVICE_NOT_ACTIVE, WSS_ERR_FAILED},
		{"DeviceNotFound", QMP_CLASS_DEVICE_NOT_FOUND, WSS_ERR_FAILED},
		{"KVMMissingCap", QMP_CLASS_KVM_MISSING_CAP, WSS_ERR_UNSUPPORTED},
		{"NewInQemu99", QMP_CLASS_OTHER, WSS_ERR_FAILED},
	};
	char script[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct fake fake;
		struct qmp *qmp;

		snprintf(script, sizeof(script), "on query-status\n error %s it is \\n so\n",
			 cases[i].name);
		fake_start(&fake, script);
		qmp = fake_connect(&fake, NULL);
		assert_int_equal(qmp_last_class(qmp), QMP_CLASS_NONE);
		assert_int_equal(query_with(qmp, PLENTY_MS, &err), -1);
		assert_code(&err, cases[i].code);
		assert_text(&err, "QMP query-status: it is ? so (");
		assert_int_equal(qmp_last_class(qmp), cases[i].class);
		assert_works(qmp);
		assert_int_equal(qmp_last_class(qmp), QMP_CLASS_NONE);
		qmp_close(qmp);
		fake_stop(&fake);
	}
}

/* A peer that reads nothing: the command does not fit the socket's buffer. */
TEST(test_peer_that_does_not_read)
{
	struct json_object *args = json_object_new_object();
	struct wss_error err = WSS_ERROR_INIT;
	char *large = calloc(1, 8 << 20);
	struct qmp *qmp = NULL;
	int fds[2];

	memset(large, 'x', (8 << 20) - 1);
	json_object_object_add(args, "a", json_object_new_string(large));
	free(large);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_true(write(fds[1], GREETING, strlen(GREETING)) > 0);
	assert_int_equal(qmp_open_fd(fds[0], PLENTY_MS, &canned_limits, &qmp, NULL), 0);
	assert_int_equal(qmp_execute(qmp, "c", args, SHORT_MS, NULL, &err), -1);
	assert_code(&err, WSS_ERR_TIMEOUT);
	qmp_close(qmp);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_true(write(fds[1], GREETING, strlen(GREETING)) > 0);
	assert_int_equal(qmp_open_fd(fds[0], PLENTY_MS, &canned_limits, &qmp, NULL), 0);
	close(fds[1]);
	assert_int_equal(qmp_execute(qmp, "c", args, PLENTY_MS, NULL, &err), -1);
	assert_code(&err, WSS_ERR_GONE);
	qmp_close(qmp);
	json_object_put(args);
}

/* Acts as a QEMU that never answers: sends the signal once the query has come, and then reads on. */
static pid_t hang_and_signal(int fd, int other_fd, int number)
{
	char text[4096] = "";
	bool asked = false;
	size_t len = 0;
	ssize_t n;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	close(other_fd);
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
		len += (size_t)n;
		if (!asked && strstr(text, "query-status"))
			asked = kill(getppid(), number) == 0;
	}
	_exit(0);
}

/* Runs query-status on a peer that hangs, in a child, because a stop request cannot be undone. */
static int stopped_child(bool within)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;
	int fds[2];
	pid_t peer;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
	    write(fds[1], GREETING, strlen(GREETING)) != (ssize_t)strlen(GREETING))
		return 1;
	wss_stop_install();
	peer = hang_and_signal(fds[1], fds[0], within ? SIGTERM : 0);
	close(fds[1]);
	if (peer < 0 || qmp_open_fd(fds[0], PLENTY_MS, &canned_limits, &qmp, NULL) < 0)
		return 2;
	if (!within)
		raise(SIGINT);
	if (query_with(qmp, PLENTY_MS, &err) != -1 || err.code != WSS_ERR_INTERRUPTED)
		return 3;
	/* The signal must also end a caller that could do without the first answer. */
	if (query_with(qmp, PLENTY_MS, &err) != -1 || err.code != WSS_ERR_INTERRUPTED)
		return 4;
	qmp_close(qmp);
	return waitpid(peer, NULL, 0) == peer ? 0 : 5;
}

TEST(test_stop_request)
{
	for (int within = 0; within < 2; within++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (!pid)
			_exit(stopped_child(within));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

TEST(test_null_error)
{
	struct qmp *qmp = NULL;
	struct fake fake;

	assert_int_equal(qmp_open_unix("/nonexistent/socket", SHORT_MS, NULL, &qmp, NULL), -1);
	assert_int_equal(qmp_open_fd(stream_of("x\n", 2), SHORT_MS, NULL, &qmp, NULL), -1);
	assert_null(qmp);
	fake_start(&fake, "on query-status\n close\n");
	qmp = fake_connect(&fake, NULL);
	assert_int_equal(qmp_execute(qmp, "nope", NULL, PLENTY_MS, NULL, NULL), -1);
	assert_int_equal(qmp_execute(qmp, "query-status", NULL, PLENTY_MS, NULL, NULL), -1);
	assert_int_equal(qmp_execute(qmp, "query-status", NULL, PLENTY_MS, NULL, NULL), -1);
	qmp_close(qmp);
	qmp_close(NULL);
	fake_stop(&fake);
}

int main(void)
{
	divert(realloc, noting_realloc, &real_realloc);
	/* The fake QEMU is one. */
	patient_clock.children = true;
	return tests_run_each(patient_begin, patient_end);
}
