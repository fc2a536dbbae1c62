/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening: unsuitable sockets, other transports, out of memory. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../divert.h"
#include "../patient.h"
#include "qmp/query.h"

#define SHORT_MS 150u

/* Allocations of qmp/ left until one fails; negative: none does. */
static int fail_in = -1;

static bool fails(void)
{
	return fail_in >= 0 && fail_in-- == 0;
}

#define FAILING(type, name, params, args)                    \
	static __typeof__(&name) real_##name;                \
	static type failing_##name params                    \
	{                                                    \
		return fails() ? (type)0 : real_##name args; \
	}

FAILING(void *, calloc, (size_t count, size_t size), (count, size))
FAILING(void *, realloc, (void *ptr, size_t size), (ptr, size))
FAILING(struct json_tokener *, json_tokener_new_ex, (int depth), (depth))
FAILING(struct json_object *, json_object_new_object, (void), ())
FAILING(struct json_object *, json_object_new_array, (void), ())
FAILING(struct json_object *, json_object_new_string, (const char *text), (text))
FAILING(const char *, json_object_to_json_string_ext, (struct json_object * obj, int flags),
	(obj, flags))

static __typeof__(&json_object_object_add) real_json_object_object_add;
static __typeof__(&json_object_array_add) real_json_object_array_add;

static int failing_json_object_object_add(struct json_object *obj, const char *key,
					  struct json_object *v)
{
	return fails() ? -1 : real_json_object_object_add(obj, key, v);
}

static int failing_json_object_array_add(struct json_object *obj, struct json_object *v)
{
	return fails() ? -1 : real_json_object_array_add(obj, v);
}

#define DIVERT(name) divert(name, failing_##name, &real_##name)

static void divert_allocations(void)
{
	DIVERT(calloc);
	DIVERT(realloc);
	DIVERT(json_tokener_new_ex);
	DIVERT(json_object_new_object);
	DIVERT(json_object_new_array);
	DIVERT(json_object_new_string);
	DIVERT(json_object_to_json_string_ext);
	DIVERT(json_object_object_add);
	DIVERT(json_object_array_add);
}

static void refuse_path(const char *path, unsigned int timeout_ms, enum wss_error_code code,
			const char *needle)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;

	assert_int_equal(qmp_open_unix(path, timeout_ms, NULL, &qmp, &err), -1);
	assert_null(qmp);
	assert_code(&err, code);
	assert_text(&err, needle);
}

TEST(test_paths)
{
	char path[300] = "/tmp/test-qmp-file-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	refuse_path(path, PLENTY_MS, WSS_ERR_CONNECT, "it is a regular file, not a UNIX socket");
	refuse_path("/tmp", PLENTY_MS, WSS_ERR_CONNECT, "it is a directory, not a UNIX socket");
	unlink(path);
	close(fd);
	refuse_path(path, PLENTY_MS, WSS_ERR_CONNECT, "No such file");
	refuse_path("", PLENTY_MS, WSS_ERR_USAGE, "empty");
	memset(path, 'x', 200);
	path[200] = '\0';
	refuse_path(path, PLENTY_MS, WSS_ERR_USAGE, "socket path has 200 characters, limit 107");
}

TEST(test_greetings)
{
	static const struct {
		const char *script;
		enum wss_error_code code;
		const char *needle;
	} cases[] = {
		{"connect\n line QEMU 7.2 monitor\n raw (qemu) \n", WSS_ERR_CONNECT,
		 "no QMP greeting: not JSON"},
		{"connect\n close\n", WSS_ERR_CONNECT, "no QMP greeting: the peer closed"},
		{"connect\n hang\n", WSS_ERR_CONNECT, "one client at a time"},
		{"connect\n huge 100\n", WSS_ERR_CONNECT, "larger than 4194304 bytes"},
		{"connect\n line {}\n", WSS_ERR_CONNECT, "\"QMP\" is missing"},
		{"connect\n event A\n", WSS_ERR_CONNECT, "\"QMP\" is missing"},
		{"connect\n line {\"QMP\": 1}\n", WSS_ERR_CONNECT, "\"QMP\" is an integer"},
		{"on qmp_capabilities\n hang\n", WSS_ERR_CONNECT, "no reply within 150 ms"},
		{"on qmp_capabilities\n close\n", WSS_ERR_CONNECT,
		 "QMP qmp_capabilities: the peer closed"},
		{"on qmp_capabilities\n error GenericError no\n", WSS_ERR_CONNECT,
		 "no (GenericError)"},
		{"on qmp_capabilities\n error CommandNotFound no\n", WSS_ERR_CONNECT, "no ("},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool hangs = strstr(cases[i].script, "hang") != NULL;
		struct fake fake;

		fake_start(&fake, cases[i].script);
		refuse_path(fake.socket, hangs ? SHORT_MS : PLENTY_MS, cases[i].code,
			    cases[i].needle);
		fake_stop(&fake);
	}
}

/* QEMU hands the reply to a client that was killed to the next one. */
TEST(test_reply_to_the_client_before)
{
	static const char text[] = GREETING_ALONE
		"{\"return\": 5, \"id\": \"qmp-51\"}\r\n"
		"{\"return\": {}, \"id\": \"qmp-1\"}\r\n{\"return\": {}, \"id\": \"qmp-2\"}\r\n";
	struct qmp *qmp = NULL;

	assert_int_equal(
		qmp_open_fd(stream_of(text, strlen(text)), PLENTY_MS, &canned_limits, &qmp, NULL),
		0);
	assert_int_equal(qmp_execute(qmp, "query-x", NULL, PLENTY_MS, NULL, NULL), 0);
	qmp_close(qmp);
}

/* Another virt-wss may have been killed in the very command that this one begins with. */
TEST(test_reply_to_a_client_like_this_one)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "on qmp_capabilities\n owe\non qmp_capabilities\n default\n");
	refuse_path(fake.socket, SHORT_MS, WSS_ERR_CONNECT, "no reply");
	for (int i = 0; i < 3; i++) {
		qmp = fake_connect(&fake, NULL);
		if (qmp_execute(qmp, "query-status", NULL, PLENTY_MS, NULL, &err) < 0)
			fail_msg("%s", err.text);
		qmp_close(qmp);
	}
	fake_stop(&fake);
}

/* As with QEMU, the second client is served once the first has left. */
TEST(test_second_client_waits)
{
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "");
	qmp = fake_connect(&fake, NULL);
	refuse_path(fake.socket, SHORT_MS, WSS_ERR_CONNECT, "no QMP greeting in time");
	qmp_close(qmp);
	qmp_close(fake_connect(&fake, NULL));
	fake_stop(&fake);
}

/* Nobody accepts and the queue is full: connect() itself must end by the deadline. */
TEST(test_full_queue)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), clients[8], connected = 0;
	uint64_t start;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/test-qmp-queue-%d", (int)getpid());
	unlink(addr.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (; connected < 8; connected++) {
		clients[connected] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(clients[connected], (struct sockaddr *)&addr, sizeof(addr)) < 0)
			break;
	}
	assert_in_range(connected, 1, 7);
	assert_int_equal(errno, EAGAIN);
	start = now_ms();
	/* Otherwise this never ends. */
	refuse_path(addr.sun_path, SHORT_MS, WSS_ERR_CONNECT,
		    "has not accepted the connection within 150 ms");
	assert_true(now_ms() - start >= SHORT_MS);
	for (int i = 0; i <= connected; i++)
		close(clients[i]);
	close(listener);
	unlink(addr.sun_path);
}

/* open() owns the descriptor, on failure as well; an odd descriptor is an error, not a crash. */
TEST(test_descriptors)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;
	int fd;

	fd = stream_of("{}\n", 3);
	assert_int_equal(qmp_open_fd(fd, PLENTY_MS, NULL, &qmp, &err), -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(qmp_open_fd(open("/dev/null", O_RDWR), PLENTY_MS, NULL, &qmp, &err), -1);
	assert_int_equal(qmp_open_fd(-1, PLENTY_MS, NULL, &qmp, &err), -1);
	assert_null(qmp);
}

static struct {
	char command[128];
	uint64_t deadline_ns;
	size_t reply_bytes;
	const char *reply; /* NULL: fail */
	int closed;
} seen;

static int recording_execute(void *opaque, const char *command, uint64_t deadline_ns,
			     size_t reply_bytes, char **ret_reply, struct wss_error *err)
{
	assert_ptr_equal(opaque, &seen);
	snprintf(seen.command, sizeof(seen.command), "%s", command);
	seen.deadline_ns = deadline_ns;
	seen.reply_bytes = reply_bytes;
	if (!seen.reply)
		return wss_error_set(err, WSS_ERR_GONE, "the domain is off");
	*ret_reply = strdup(seen.reply);
	return 0;
}

static void recording_close(void *opaque)
{
	assert_ptr_equal(opaque, &seen);
	seen.closed++;
}

static const struct qmp_transport_ops recording = {
	.name = "a recording",
	.execute = recording_execute,
	.close = recording_close,
};

static void expect_canned(struct qmp *qmp, const char *reply, enum wss_error_code code,
			  const char *needle)
{
	struct wss_error err = WSS_ERROR_INIT;

	seen.reply = reply;
	assert_int_equal(qmp_execute(qmp, "query-x", NULL, 1000, NULL, &err), -1);
	assert_code(&err, code);
	assert_text(&err, needle);
	assert_text(&err, "QMP query-x: ");
}

TEST(test_other_transport)
{
	struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_peer peer;
	struct qmp *qmp = NULL;

	limits.reply_bytes = 100;
	assert_int_equal(qmp_open_transport(&recording, &seen, &limits, &qmp, &err), 0);
	seen.reply = "{\"return\": {}, \"id\": \"libvirt-7\"}\n";
	assert_int_equal(qmp_execute(qmp, "query-x", NULL, 1000, NULL, &err), 0);
	assert_string_equal(seen.command, "{\"execute\":\"query-x\"}");
	assert_true(seen.deadline_ns > 0);
	assert_int_equal(seen.reply_bytes, 100);

	expect_canned(qmp, NULL, WSS_ERR_GONE, "the domain is off");
	expect_canned(qmp, "{", WSS_ERR_FAILED, "ends too early");
	expect_canned(qmp, "", WSS_ERR_FAILED, "ends too early");
	expect_canned(qmp, "{}", WSS_ERR_FAILED, "reply has no \"return\"");
	expect_canned(qmp, "{\"return\": null}", WSS_ERR_FAILED, "reply has no \"return\"");
	expect_canned(qmp, "{\"return\": 1, \"error\": {}}", WSS_ERR_FAILED, "both");
	expect_canned(qmp, "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no\"}}",
		      WSS_ERR_UNSUPPORTED, "no (CommandNotFound)");
	expect_canned(qmp,
		      "{\"return\": \"01234567890123456789012345678901234567890123456789012345678"
		      "9012345678901234567890123456789\"}",
		      WSS_ERR_FAILED, "the reply is larger than 100 bytes");
	seen.reply = "{\"return\": {}}";
	assert_int_equal(qmp_execute(qmp, "query-x", NULL, 1000, NULL, &err), 0);

	assert_false(qmp_stops_seen(qmp).stopped);
	assert_int_equal(qmp_peer(qmp, &peer, &err), -1);
	assert_code(&err, WSS_ERR_UNSUPPORTED);
	assert_text(&err, "a recording");
	qmp_close(qmp);
	assert_int_equal(seen.closed, 1);
}

/* Fails each allocation in turn until step() succeeds; valgrind and ASan would show a leak. */
static int fail_each(int (*step)(struct wss_error *err))
{
	for (int n = 0; n < 1000; n++) {
		struct wss_error err = WSS_ERROR_INIT;
		int result;

		fail_in = n;
		result = step(&err);
		fail_in = -1;
		if (result == 0)
			return n;
		assert_code(&err, WSS_ERR_NO_MEMORY);
		assert_text(&err, "out of memory");
	}
	return -1;
}

static int step_socket(struct wss_error *err)
{
	static const char text[] = GREETING "{\"return\": {}, \"id\": \"qmp-2\"}\r\n";
	struct qmp *qmp = NULL;
	int saved = fail_in, fd, result;

	fail_in = -1;
	fd = stream_of(text, strlen(text));
	fail_in = saved;
	result = qmp_open_fd(fd, PLENTY_MS, &canned_limits, &qmp, err);
	if (!result)
		result = qmp_execute(qmp, "query-x", NULL, PLENTY_MS, NULL, err);
	qmp_close(qmp);
	return result;
}

static int step_queries(struct wss_error *err)
{
	static const char *const names[] = {"a", "b"};
	struct qmp_stat stats[2] = {{.name = names[0]}, {.name = names[1]}};
	struct qmp_memory_device *devices = NULL;
	struct qmp_memdev *memdevs = NULL;
	struct qmp *qmp = NULL;
	size_t count;
	int result;

	seen.closed = 0;
	seen.reply = "{\"return\": []}";
	result = qmp_open_transport(&recording, &seen, NULL, &qmp, err);
	if (!result)
		result = qmp_query_stats(qmp, QMP_STATS_VM, stats, 2, PLENTY_MS, err);
	seen.reply = "{\"return\": [{\"size\": 1}]}";
	if (!result)
		result = qmp_query_memdev(qmp, PLENTY_MS, &memdevs, &count, err);
	seen.reply = "{\"return\": [{\"type\": \"x\", \"data\": {}}]}";
	if (!result)
		result = qmp_query_memory_devices(qmp, PLENTY_MS, &devices, &count, err);
	free(devices);
	free(memdevs);
	qmp_close(qmp);
	assert_int_equal(seen.closed, 1);
	return result;
}

TEST(test_no_memory)
{
	assert_in_range(fail_each(step_socket), 10, 100);
	assert_in_range(fail_each(step_queries), 20, 200);
}

int main(void)
{
	divert_allocations();
	/* The fake QEMU is one. */
	patient_clock.children = true;
	return tests_run_each(patient_begin, patient_end);
}
