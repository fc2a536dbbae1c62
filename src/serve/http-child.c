/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-child.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "serve/http-confine.h"
#include "serve/http-connections.h"
#include "serve/http-listen.h"
#include "serve/http-named.h"
#include "serve/http-route.h"

/* Open connections, where the limit on descriptors allows as many. */
#define CONNECTIONS_MAX 1024
#define CONNECTIONS_MIN 16
/* Descriptors for anything else: the channel, listening sockets, the daemon's own. */
#define OTHER_FDS 64
/* A request's lines may take this, and it may have so many headers; others are refused. */
#define REQUEST_BYTES (16 * 1024)
#define HEADERS_MAX 100
/* Those that child_on_uri() adds. */
#define OWN_HEADERS 1
/* Parameters of an address, none of which means anything here. */
#define PARAMETERS_MAX 100
/*
 * What libmicrohttpd may take for a request: its lines, a record of some 72 bytes for each
 * header and parameter, and the header of the answer. Most of it is touched only by large requests.
 */
#define REQUEST_MEMORY_BYTES (64 * 1024)

/* Pages as they are served: kept until the last answer with them is sent. */
struct snapshot {
	struct wss_http_pages pages;
	struct wss_http_named named; /* its index is NULL: none yet */
	size_t uses;
	struct MHD_Response *responses[WSS_HTTP_PAGES];
};

struct child {
	struct MHD_Daemon *daemon;
	struct wss_http_connections connections;
	struct snapshot *snapshot; /* the newest pages; NULL: none yet */
	size_t n_listeners;
	unsigned most; /* open connections */
};

/* --- pages --- */

static void snapshot_drop(void *opaque)
{
	struct snapshot *snapshot = opaque;

	if (--snapshot->uses)
		return;
	wss_http_pages_unmap(&snapshot->pages);
	wss_http_named_unmap(&snapshot->named);
	free(snapshot);
}

/* Lets go of the newest pages; answers that are being sent keep theirs. */
static void snapshot_retire(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < WSS_HTTP_PAGES; i++)
		if (snapshot->responses[i])
			MHD_destroy_response(snapshot->responses[i]);
	snapshot_drop(snapshot);
}

static void response_describe(struct MHD_Response *response, const struct wss_http_answer *answer)
{
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Content-Security-Policy",
				answer->policy ? answer->policy : "default-src 'none'");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Content-Type", answer->type);
	if (answer->varies)
		MHD_add_response_header(response, "Vary", "Accept");
	MHD_add_response_header(response, "Connection", "close");
}

/* named: -1 if there are none. NULL: one of the files is damaged, or out of memory. */
static struct snapshot *snapshot_new(int pages, int named)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->uses = 1;
	if (wss_http_pages_map(pages, &snapshot->pages, NULL) < 0 ||
	    (named >= 0 && wss_http_named_map(named, &snapshot->named, NULL) < 0)) {
		snapshot_drop(snapshot);
		return NULL;
	}
	return snapshot;
}

/* An answer that keeps the snapshot until it is sent. NULL: out of memory. */
static struct MHD_Response *snapshot_lend(struct snapshot *snapshot, const void *page, size_t size,
					  const struct wss_http_answer *answer)
{
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		size, (void *)page, snapshot_drop, snapshot);

	if (!response)
		return NULL;
	snapshot->uses++;
	response_describe(response, answer);
	return response;
}

/* A page's answer, made when it is first asked for. NULL: out of memory. */
static struct MHD_Response *snapshot_response(struct snapshot *snapshot,
					      const struct wss_http_answer *answer)
{
	struct MHD_Response **response = &snapshot->responses[answer->page];
	const void *page;
	size_t size;

	if (*response)
		return *response;
	page = wss_http_pages_get(&snapshot->pages, answer->page, &size);
	*response = snapshot_lend(snapshot, page, size, answer);
	return *response;
}

/* Takes a message with pages; false: the service has gone. */
static bool child_take_pages(struct child *child)
{
	int fds[2] = {-1, -1};
	char byte, control[CMSG_SPACE(sizeof(fds))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(WSS_HTTP_CHANNEL, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *cmsg = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct snapshot *snapshot;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS && cmsg->cmsg_len <= CMSG_LEN(sizeof(fds)))
		memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	snapshot = snapshot_new(fds[0], fds[1]);
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (snapshot) {
		snapshot_retire(child->snapshot);
		child->snapshot = snapshot;
	}
	return send(WSS_HTTP_CHANNEL, &byte, 1, MSG_NOSIGNAL) == 1;
}

/* --- requests --- */

static const char *request_header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Lines of one name are one list (RFC 9110, 5.3). */
struct header_lines {
	const char *name;
	size_t n, len;
	char text[REQUEST_BYTES];
};

static enum MHD_Result header_lines_add(void *opaque, enum MHD_ValueKind kind, const char *name,
					const char *value)
{
	struct header_lines *lines = opaque;

	(void)kind;
	if (strcasecmp(name, lines->name) != 0)
		return MHD_YES;
	lines->len += (size_t)snprintf(lines->text + lines->len, sizeof(lines->text) - lines->len,
				       "%s%s", lines->n++ ? "," : "", value ? value : "");
	return lines->len < sizeof(lines->text) ? MHD_YES : MHD_NO;
}

/* Returns the list in a header, of all its lines, until the next call; NULL: there is none. */
static const char *request_header_list(struct MHD_Connection *connection, const char *name)
{
	static struct header_lines lines;

	lines.name = name;
	lines.n = lines.len = 0;
	MHD_get_connection_values(connection, MHD_HEADER_KIND, header_lines_add, &lines);
	return lines.n ? lines.text : NULL;
}

static bool comes_by_network(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return !info || !info->client_addr || info->client_addr->sa_family != AF_UNIX;
}

static enum MHD_Result text_send(struct MHD_Connection *connection,
				 const struct wss_http_answer *answer)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		answer->text_size, (void *)answer->text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	response_describe(response, answer);
	if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

/* A named page; its answer is made for this request: there are as many as guests. */
static enum MHD_Result named_send(struct MHD_Connection *connection, struct snapshot *snapshot,
				  const struct wss_http_answer *answer)
{
	static const struct wss_http_answer none = WSS_HTTP_NO_GUEST;
	size_t size;
	const void *page = wss_http_named_find(&snapshot->named, answer->name, &size);
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!page)
		return text_send(connection, &none);
	response = snapshot_lend(snapshot, page, size, answer);
	if (!response)
		return MHD_NO;
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

/* The context of a request that has too many parameters. */
static char too_many_parameters;

/*
 * Called with the address as it was received, in libmicrohttpd's own buffer, before its parameters are parsed.
 * libmicrohttpd closes the connection without an answer if their records do not fit, so that too many of them
 * are cut off, and the request is refused later.
 */
static void *child_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	char *parameters = strchr((char *)uri, '?');
	size_t n = 0;

	(void)cls;
	/*
	 * libmicrohttpd copies the first Cookie header to parse it, and closes the connection without an answer if that
	 * leaves no room for one. This header comes before the client's, whose cookies nothing here wants.
	 */
	MHD_set_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_COOKIE, "");
	if (!parameters)
		return NULL;
	for (const char *at = parameters; at; at = strchr(at + 1, '&'))
		n++;
	if (n <= PARAMETERS_MAX)
		return NULL;
	parameters[1] = '\0';
	return &too_many_parameters;
}

static bool request_is_too_large(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return !info || info->header_size > REQUEST_BYTES ||
	       MHD_get_connection_values(connection, MHD_HEADER_KIND, NULL, NULL) >
		       OWN_HEADERS + HEADERS_MAX;
}

/* Not by libmicrohttpd, in whose memory such a request may leave no room for the header of an answer. */
static enum MHD_Result too_large_refuse(struct MHD_Connection *connection)
{
	static const char answer[] = "HTTP/1.1 431 Request Header Fields Too Large\r\n"
				     "Connection: close\r\nContent-Length: 0\r\n\r\n";
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (info)
		send(info->connect_fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return MHD_NO;
}

static enum MHD_Result child_on_request(void *cls, struct MHD_Connection *connection,
					const char *url, const char *method, const char *version,
					const char *upload, size_t *upload_size, void **context)
{
	const struct child *child = cls;
	uint64_t age_ns = wss_clock_now_ns() - child->snapshot->pages.header->made_ns;
	const struct wss_http_request request = {
		.method = method,
		.path = url,
		.accept = request_header_list(connection, "Accept"),
		.host = request_header(connection, "Host"),
		.by_network = comes_by_network(connection),
		.fresh = age_ns <= WSS_HTTP_FRESH_NS,
	};
	static const struct wss_http_answer too_long = WSS_HTTP_URI_TOO_LONG,
					    no_host = WSS_HTTP_NO_HOST;
	struct wss_http_answer answer = wss_http_route(&request);
	struct MHD_Response *response;

	(void)upload;
	(void)upload_size;
	if (request_is_too_large(connection))
		return too_large_refuse(connection);
	if (!request.host && !strcmp(version, MHD_HTTP_VERSION_1_1))
		return text_send(connection, &no_host);
	if (*context == &too_many_parameters)
		return text_send(connection, &too_long);
	if (answer.text)
		return text_send(connection, &answer);
	if (answer.name)
		return named_send(connection, child->snapshot, &answer);
	response = snapshot_response(child->snapshot, &answer);
	return response ? MHD_queue_response(connection, answer.status, response) : MHD_NO;
}

/*
 * Decodes %HH in a part of an address, in place. libmicrohttpd hands paths on as strings, so "%00" would hide
 * what follows it: a part that has it stays as it is, and matches nothing.
 */
static size_t part_unescape(void *cls, struct MHD_Connection *connection, char *part)
{
	(void)cls;
	(void)connection;
	return strstr(part, "%00") ? strlen(part) : MHD_http_unescape(part);
}

/* --- the loop --- */

static void child_on_connection(void *cls, struct MHD_Connection *connection, void **context,
				enum MHD_ConnectionNotificationCode code)
{
	wss_http_connections_notify(cls, connection, context, (int)code);
}

/*
 * Without MHD_USE_ERROR_LOG, so that clients cannot fill the log. Not strict: child_on_request() answers requests
 * that lack a Host header.
 */
static int child_start_daemon(struct child *child)
{
	if (wss_http_connections_open(&child->connections, child->most) < 0)
		return -1;
	child->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, child_on_request, child,
		MHD_OPTION_NOTIFY_CONNECTION, child_on_connection, &child->connections,
		MHD_OPTION_CONNECTION_LIMIT, child->most + WSS_HTTP_ENDING_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, child_on_uri, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
		part_unescape, NULL, MHD_OPTION_END);
	return child->daemon ? 0 : -1;
}

static int wait_ms(const struct child *child)
{
	uint64_t due_ns = wss_http_connections_due_ns(&child->connections);
	int ms = due_ns == UINT64_MAX ? -1 : wss_clock_poll_ms(due_ns);
	MHD_UNSIGNED_LONG_LONG mhd_ms;

	if (MHD_get_timeout(child->daemon, &mhd_ms) == MHD_YES &&
	    (ms < 0 || mhd_ms < (MHD_UNSIGNED_LONG_LONG)ms))
		ms = (int)mhd_ms;
	return ms;
}

static void child_serve(struct child *child)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(child->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[2 + WSS_HTTP_LISTENERS_MAX] = {
		{.fd = WSS_HTTP_CHANNEL, .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN},
	};

	for (size_t i = 0; i < child->n_listeners; i++)
		fds[2 + i] = (struct pollfd){.fd = WSS_HTTP_CHANNEL + 1 + (int)i,
					     .events = POLLIN | POLLRDHUP};
	for (bool again = false;;) {
		/* Connections wait until there is something to serve. */
		nfds_t n = child->snapshot ? 2 + child->n_listeners : 2;
		int ms = wait_ms(child);
		int ready = poll(fds, n, again ? 0 : ms);

		if (ready < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		/* The daemon closes a connection that it has given up when it runs again, and asks for no run. */
		again = ready > 0 || ms == 0;
		if (fds[0].revents && !child_take_pages(child))
			return;
		wss_http_connections_expire(&child->connections);
		for (nfds_t i = 2; i < n; i++) {
			/* Somebody has shut it down. The service makes another one before it starts this process again. */
			if (fds[i].revents & ~POLLIN)
				return;
			if (fds[i].revents & POLLIN)
				wss_http_connections_accept(&child->connections, child->daemon,
							    fds[i].fd);
			/* Frees the connections that had to make room. */
			MHD_run(child->daemon);
		}
	}
}

/* A signal to the process group is for the service; the end of the channel then ends this process. */
static void signals_ignore(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_IGN);
}

static unsigned connections_most(void)
{
	struct rlimit limit;
	rlim_t spare = OTHER_FDS + WSS_HTTP_ENDING_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < spare + CONNECTIONS_MIN)
		return CONNECTIONS_MIN;
	return (unsigned)wss_u64_min(limit.rlim_max - spare, CONNECTIONS_MAX);
}

bool wss_http_child_is(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], WSS_HTTP_CHILD);
}

const char *wss_http_child_version(void)
{
	return MHD_get_version();
}

static int child_prepare(struct child *child, char **words, struct wss_error *err)
{
	uint64_t uid, gid, n;
	int log_fd, r;

	if (wss_number_parse(words[1], 0, UINT32_MAX, "user", &uid, err) < 0 ||
	    wss_number_parse(words[2], 0, UINT32_MAX, "group", &gid, err) < 0 ||
	    wss_number_parse(words[3], 1, WSS_HTTP_LISTENERS_MAX, "sockets", &n, err) < 0)
		return -1;
	child->n_listeners = (size_t)n;
	child->most = connections_most();
	if (wss_http_confine((uid_t)uid, (gid_t)gid, child->most + WSS_HTTP_ENDING_MAX + OTHER_FDS,
			     err) < 0)
		return -1;
	if (child_start_daemon(child) < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "cannot start the HTTP server");
	/* Standard input is /dev/null. From here on nothing that clients send can reach the log. */
	log_fd = dup(STDERR_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	r = wss_http_confine_calls(WSS_HTTP_CHANNEL + (int)n, err);
	if (r < 0)
		dup2(log_fd, STDERR_FILENO);
	close(log_fd);
	return r;
}

int wss_http_child_main(int argc, char **argv)
{
	struct child child = {.n_listeners = 0};
	struct wss_error err = WSS_ERROR_INIT;

	signals_ignore();
	if (argc != 4) {
		wss_log(WSS_LOG_ERROR, "%s is started by virt-wss serve only", WSS_HTTP_CHILD);
		return 2;
	}
	if (child_prepare(&child, argv, &err) < 0) {
		wss_log(WSS_LOG_ERROR, "HTTP: %s", err.text);
		return 1;
	}
	child_serve(&child);
	return 0;
}
