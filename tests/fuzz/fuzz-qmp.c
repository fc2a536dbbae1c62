/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QMP client. The input is everything that a server sends. If it starts with 'H' the rest
 * follows a good greeting and negotiation, so that the fuzzer reaches the replies without
 * having to discover the handshake. Every query is then run until one closes the connection.
 * If it starts with 'C' the rest is the reply to every query.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "qmp/dirtyrate.h"
#include "qmp/query.h"

#define INPUT_MAX 65536
#define TIMEOUT_MS 1000

static const char handshake[] =
	"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 0, \"minor\": 2, \"major\": 7}}}}\r\n"
	"{\"return\": {}, \"id\": \"qmp-1\"}\r\n";

/* Makes a socket from which these bytes can be read, and the server's end of it, or -1. */
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

static void ask_lists(struct qmp *qmp, struct wss_error *err)
{
	struct qmp_memory_device *devices = NULL;
	struct qmp_model *models = NULL, *backends = NULL;
	struct qmp_memdev *memdevs = NULL;
	size_t count;

	fuzz_check(qmp_query_memdev(qmp, TIMEOUT_MS, &memdevs, &count, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_memory_devices(qmp, TIMEOUT_MS, &devices, &count, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_children(qmp, "/machine/peripheral", TIMEOUT_MS, &models, &count, err),
		   err);
	wss_error_clear(err);
	fuzz_check(qmp_query_network(qmp, TIMEOUT_MS, &backends, &count, err), err);
	wss_error_clear(err);
	free(models);
	free(backends);
	free(memdevs);
	free(devices);
}

static void ask_figures(struct qmp *qmp, struct wss_error *err)
{
	struct qmp_stat stats[] = {{.name = "pages_4k"}, {.name = "pf_fixed"}};
	struct qmp_migration migration;
	struct qmp_memory_size size;
	struct qmp_dirty_rate rate;
	struct qmp_balloon balloon;
	struct qmp_balloon_report report;

	fuzz_check(qmp_query_balloon(qmp, TIMEOUT_MS, &balloon, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_balloon_report(qmp, "balloon0", TIMEOUT_MS, &report, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_migrate(qmp, TIMEOUT_MS, &migration, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_memory_size(qmp, TIMEOUT_MS, &size, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_stats(qmp, QMP_STATS_VM, stats, 2, TIMEOUT_MS, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_stats(qmp, QMP_STATS_VCPU, stats, 2, TIMEOUT_MS, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_start_dirty_bitmap(qmp, 1, TIMEOUT_MS, err), err);
	wss_error_clear(err);
	fuzz_check(qmp_query_dirty_rate(qmp, TIMEOUT_MS, &rate, err), err);
	wss_error_clear(err);
}

static void ask_all(struct qmp *qmp)
{
	char uuid[QMP_UUID_TEXT_MAX] = "", name[QMP_NAME_MAX] = "";
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_machine machine;
	struct qmp_status status;
	struct qmp_kvm kvm;

	fuzz_check(qmp_query_status(qmp, TIMEOUT_MS, &status, &err), &err);
	wss_error_clear(&err);
	fuzz_check(qmp_query_kvm(qmp, TIMEOUT_MS, &kvm, &err), &err);
	wss_error_clear(&err);
	fuzz_check(qmp_query_uuid(qmp, TIMEOUT_MS, uuid, &err), &err);
	wss_error_clear(&err);
	fuzz_check(qmp_query_name(qmp, TIMEOUT_MS, name, &err), &err);
	wss_error_clear(&err);
	fuzz_check(qmp_query_machine(qmp, TIMEOUT_MS, &machine, &err), &err);
	wss_error_clear(&err);
	ask_figures(qmp, &err);
	ask_lists(qmp, &err);
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

/* Uses the input as the reply to every query, so that each parser gets the same bytes. */
static void run_canned(const uint8_t *data, size_t size)
{
	static const struct qmp_transport_ops ops = {.name = "fuzz", .execute = canned_execute};
	wss_auto_free char *text = fuzz_text(data, size);
	struct qmp *qmp = NULL;

	if (qmp_open_transport(&ops, text, NULL, &qmp, NULL) == 0)
		ask_all(qmp);
	qmp_close(qmp);
}

static void qmp_run(const uint8_t *data, size_t size)
{
	/* The ids of the replies were written before. */
	static const struct qmp_limits limits = {
		.reply_bytes = 4u << 20, .tree_bytes = 32u << 20, .depth = 64, .first_id = 1};
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;
	int fd, server, r;

	if (size && data[0] == 'C') {
		run_canned(data + 1, size - 1);
		return;
	}
	fd = serve(data, size, &server);
	r = qmp_open_fd(fd, TIMEOUT_MS, &limits, &qmp, &err);
	fuzz_check(r, &err);
	if (r == 0) {
		qmp_stops_seen(qmp);
		ask_all(qmp);
		qmp_stops_seen(qmp);
	}
	qmp_close(qmp);
	close(server);
}

const struct fuzz_target fuzz_target = {
	.name = "qmp",
	.run = qmp_run,
	.max_bytes = INPUT_MAX,
	.mutations = 8000,
};
