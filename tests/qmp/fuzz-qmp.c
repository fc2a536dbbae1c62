/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzing entry: the input is all that a server sends. If it starts with 'H' the rest
 * follows a good greeting and negotiation, so that replies are reached without a fuzzer
 * having to find out how to shake hands. Every query is then run until one closes the
 * connection.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jsonline.h"
#include "query.h"

#define INPUT_MAX 65536
#define TIMEOUT_MS 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char handshake[] =
	"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 0, \"minor\": 2, \"major\": 7}}}}\r\n"
	"{\"return\": {}, \"id\": \"qmp-1\"}\r\n";

/* A socket that has these bytes to be read, and the server's end of it, or -1. */
static int serve(const uint8_t *data, size_t size, int *ret_server)
{
	int fds[2], room = 4 * INPUT_MAX;
	size_t greeting = size && data[0] == 'H' ? sizeof(handshake) - 1 : 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (send(fds[1], handshake, greeting, MSG_DONTWAIT) < 0 ||
	    (size > !!greeting &&
	     send(fds[1], data + !!greeting, size - !!greeting, MSG_DONTWAIT) < 0))
		abort();
	shutdown(fds[1], SHUT_WR);
	*ret_server = fds[1];
	return fds[0];
}

static void query_lists(struct qmp *qmp)
{
	struct qmp_stat stats[] = {{.name = "pages_4k"}, {.name = "pf_fixed"}};
	struct qmp_memory_device *devices = NULL;
	struct qmp_ramblock *blocks = NULL;
	struct qmp_model *devices_asked = NULL, *backends = NULL;
	struct qmp_memdev *memdevs = NULL;
	size_t count;

	qmp_query_memdev(qmp, TIMEOUT_MS, &memdevs, &count, NULL);
	qmp_query_memory_devices(qmp, TIMEOUT_MS, &devices, &count, NULL);
	qmp_query_ramblock(qmp, TIMEOUT_MS, &blocks, &count, NULL);
	qmp_query_stats(qmp, QMP_STATS_VM, stats, 2, TIMEOUT_MS, NULL);
	qmp_query_children(qmp, "/machine/peripheral", TIMEOUT_MS, &devices_asked, &count, NULL);
	qmp_query_network(qmp, TIMEOUT_MS, &backends, &count, NULL);
	free(devices_asked);
	free(backends);
	free(memdevs);
	free(devices);
	free(blocks);
}

static void query_all(struct qmp *qmp)
{
	char uuid[QMP_UUID_TEXT_MAX], name[QMP_NAME_MAX];
	struct qmp_migration migration;
	struct qmp_memory_size size;
	struct qmp_balloon balloon;
	struct qmp_version version;
	struct qmp_status status;
	struct qmp_kvm kvm;

	qmp_query_status(qmp, TIMEOUT_MS, &status, NULL);
	qmp_query_kvm(qmp, TIMEOUT_MS, &kvm, NULL);
	qmp_query_uuid(qmp, TIMEOUT_MS, uuid, NULL);
	qmp_query_name(qmp, TIMEOUT_MS, name, NULL);
	qmp_query_version(qmp, TIMEOUT_MS, &version, NULL);
	qmp_query_balloon(qmp, TIMEOUT_MS, &balloon, NULL);
	qmp_query_migrate(qmp, TIMEOUT_MS, &migration, NULL);
	qmp_query_memory_size(qmp, TIMEOUT_MS, &size, NULL);
	query_lists(qmp);
}

static int canned_execute(void *opaque, const char *command, uint64_t deadline_ns,
			  size_t reply_bytes, char **ret_reply, struct wss_error *err)
{
	(void)command;
	(void)deadline_ns;
	(void)reply_bytes;
	*ret_reply = strdup(opaque);
	return *ret_reply ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

/* The input as the reply to every query: reaches each parser with the same bytes. */
static void query_canned(const uint8_t *data, size_t size)
{
	static const struct qmp_transport_ops ops = {.name = "fuzz",
						     .execute = canned_execute};
	char *text = malloc(size + 1);
	struct qmp *qmp = NULL;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (qmp_open_transport(&ops, text, NULL, &qmp, NULL) == 0)
		query_all(qmp);
	qmp_close(qmp);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *event;
	struct qmp *qmp = NULL;
	int fd, server;

	if (size > INPUT_MAX)
		return -1;
	if (size && data[0] == 'C') {
		query_canned(data + 1, size - 1);
		return 0;
	}
	fd = serve(data, size, &server);
	if (qmp_open_fd(fd, TIMEOUT_MS, NULL, &qmp, NULL) == 0) {
		if (qmp_next_event(qmp, 0, &event, NULL) == 1)
			json_object_put(event);
		query_all(qmp);
	}
	qmp_close(qmp);
	close(server);
	return 0;
}
