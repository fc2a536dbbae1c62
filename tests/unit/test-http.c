/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The HTTP process, as the service starts it: this program, run again. */
#include "hosttest.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "serve/http-child.h"
#include "serve/http-confine.h"
#include "serve/http-named.h"
#include "serve/http-pages.h"
#include "serve/http.h"

#define PATIENCE_NS (300 * WSS_NS_PER_S)
#define CLIENTS 3000

static char directory[64], path[100];
static struct wss_http *http;

/*
 * What time it is for the process. It stands still, so that no machine is too slow for a request, until a test says that
 * more has passed.
 */
static _Atomic uint64_t *child_ns;

static uint64_t child_now_ns(void *unused)
{
	return *child_ns;
}

static void child_clock_map(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(ftruncate(fd, sizeof(*child_ns)), 0);
	child_ns = mmap(NULL, sizeof(*child_ns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(child_ns != MAP_FAILED);
	close(fd);
}

/* --- the service's side --- */

static void publish(const char *text, size_t padding)
{
	struct wss_http_draft draft = WSS_HTTP_DRAFT_INIT;
	int fd;

	assert_int_equal(wss_http_draft_begin(&draft, NULL), 0);
	fputs(text, draft.stream);
	for (size_t i = 0; i < padding; i++)
		fputc('x', draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_PROMETHEUS);
	fputs("open\n# EOF\n", draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_OPENMETRICS);
	fputs("{}\n", draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_GUESTS);
	assert_int_equal(wss_http_draft_end(&draft, &fd, NULL), 0);
	wss_http_publish(http, fd);
}

static void publish_book(const char *name, const char *text)
{
	struct wss_http_named_draft draft = WSS_HTTP_NAMED_DRAFT_INIT;
	int fd;

	assert_int_equal(wss_http_named_begin(&draft, 1, NULL), 0);
	fputs(text, draft.stream);
	wss_http_named_page(&draft, name);
	assert_int_equal(wss_http_named_end(&draft, &fd, NULL), 0);
	wss_http_set_named(http, fd);
}

/* Tends the process until the condition holds. */
#define TEND_UNTIL(condition)                                        \
	do {                                                         \
		uint64_t end_ns_ = wss_clock_now_ns() + PATIENCE_NS; \
		for (;;) {                                           \
			wss_http_step(http);                         \
			if (condition)                               \
				break;                               \
			if (wss_clock_now_ns() > end_ns_)            \
				fail_msg("never: %s", #condition);   \
			poll(NULL, 0, 5);                            \
		}                                                    \
	} while (0)

static int setup(void **unused)
{
	struct wss_http_options options = {.n_addresses = 1};
	struct wss_error err = WSS_ERROR_INIT;
	char address[128], clock[128];

	snprintf(directory, sizeof(directory), "/tmp/wss-http-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	snprintf(clock, sizeof(clock), "%s.clock", path);
	child_clock_map(clock);
	snprintf(address, sizeof(address), "unix:%s", path);
	if (wss_http_address_parse(address, "address", &options.addresses[0], &err) < 0 ||
	    wss_http_new(&options, &http, &err) < 0)
		fail_msg("%s", err.text);
	wss_http_step(http);
	publish("first\n", 0);
	*child_ns = wss_clock_now_ns();
	patient_clock.children = true;
	if (patient_begin(unused) < 0)
		return -1;
	TEND_UNTIL(wss_http_ready(http));
	return 0;
}

static void child_clock_remove(void)
{
	char clock[128];

	snprintf(clock, sizeof(clock), "%s.clock", path);
	munmap(child_ns, sizeof(*child_ns));
	unlink(clock);
}

static int teardown(void **unused)
{
	patient_end(unused);
	wss_http_free(http);
	child_clock_remove();
	/* Its file is gone, or the directory would not be. */
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

/* The only child of this process. */
static pid_t child_pid(void)
{
	char name[64], line[64] = "";
	FILE *stream;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
	stream = fopen(name, "r");
	assert_non_null(stream);
	assert_non_null(fgets(line, sizeof(line), stream));
	fclose(stream);
	return (pid_t)strtol(line, NULL, 10);
}

/* --- clients --- */

static int client_open(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void client_send(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Reads until the end, which must come; *ret_size may be NULL. For free(). */
static char *client_read(int fd, size_t *ret_size)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	size_t size = 0, room = 1 << 16;
	char *text = malloc(room);
	ssize_t n;

	for (;;) {
		assert_int_equal(poll(&pfd, 1, (int)(PATIENCE_NS / WSS_NS_PER_MS)), 1);
		n = recv(fd, text + size, room - size - 1, 0);
		if (n <= 0)
			break;
		size += (size_t)n;
		if (room - size < 2)
			text = realloc(text, room *= 2);
	}
	close(fd);
	text[size] = '\0';
	if (ret_size)
		*ret_size = size;
	return text;
}

static char *ask(const char *request)
{
	int fd = client_open();

	client_send(fd, request);
	return client_read(fd, NULL);
}

static void assert_answer(const char *request, const char *status, const char *end)
{
	wss_auto_free char *answer = ask(request);
	size_t len = strlen(answer);

	if (strncmp(answer, status, strlen(status)) != 0)
		fail_msg("%s: %s", request, answer);
	if (len < strlen(end) || strcmp(answer + len - strlen(end), end) != 0)
		fail_msg("%s does not end in %s: %s", request, end, answer);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: any\r\n\r\n"

/* Lets time pass for the process once it has all connections; it notices before it answers another one. */
static void child_pass(uint64_t ns)
{
	free(ask(GET("/healthz")));
	*child_ns += ns;
	free(ask(GET("/healthz")));
}

/* --- tests --- */

TEST(test_pages_are_served)
{
	wss_auto_free char *answer = ask(GET("/metrics"));

	assert_non_null(strstr(answer, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
	assert_non_null(strstr(answer, "\r\nContent-Length: 6\r\n"));
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "\r\n\r\nfirst\n");
	assert_answer("GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "first\n");
	assert_answer("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "\r\n\r\n");
	assert_answer("GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nAccept: "
		      "application/openmetrics-text\r\n\r\n",
		      "HTTP/1.1 200", "# EOF\n");
	assert_answer(GET("/api/v1/guests"), "HTTP/1.1 200", "{}\n");
	assert_answer(GET("/healthz"), "HTTP/1.1 200", "ok\n");
	assert_answer(GET("/"), "HTTP/1.1 200", "</html>\n");
	assert_answer(GET("/nothing"), "HTTP/1.1 404", "\n");
	assert_answer("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		      "HTTP/1.1 405", "\n");
	assert_answer("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: image/png\r\n\r\n",
		      "HTTP/1.1 406", "\n");
	assert_answer(
		"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: image/png\r\naccept: text/*\r\n\r\n",
		"HTTP/1.1 200", "first\n");
	assert_answer("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept:\r\n\r\n", "HTTP/1.1 200",
		      "first\n");
}

TEST(test_nonsense)
{
	static const char *const requests[] = {
		"\r\n\r\n\r\n",
		"GET\r\n\r\n",
		"GET /metrics HTTP/9.9\r\n\r\n",
		"\x16\x03\x01\x02",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET /%00%ff%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		int fd = client_open();

		client_send(fd, requests[i]);
		shutdown(fd, SHUT_WR);
		/* Some of it could go on. */
		child_pass(WSS_HTTP_REQUEST_NS);
		free(client_read(fd, NULL));
	}
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
	assert_int_equal(wss_http_starts(http), 1);
}

TEST(test_new_pages_replace_old_ones)
{
	wss_auto_free char *answer = NULL;
	size_t size;
	int slow;

	publish("second\n", 8 << 20);
	TEND_UNTIL(wss_http_ready(http));
	slow = client_open();
	client_send(slow, GET("/metrics"));
	/* It has begun, and cannot end before it is read. */
	assert_int_equal(poll(&(struct pollfd){.fd = slow, .events = POLLIN}, 1, 300000), 1);
	publish("third\n", 0);
	TEND_UNTIL(wss_http_ready(http));
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "third\n");
	answer = client_read(slow, &size);
	assert_true(size > 8 << 20);
	assert_non_null(strstr(answer, "\r\n\r\nsecond\nxxxx"));
}

TEST(test_the_book)
{
	assert_answer(GET("/api/v1/trends"), "HTTP/1.1 404", "\n");
	publish_book("trends", "{1}\n");
	/* It goes with the pages. */
	publish("second\n", 0);
	TEND_UNTIL(wss_http_ready(http));
	assert_answer(GET("/api/v1/trends"), "HTTP/1.1 200", "{1}\n");
	assert_answer(GET("/api/v1/history/trend"), "HTTP/1.1 404", "\n");
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "second\n");
	publish_book("a", "{2}\n");
	publish("third\n", 0);
	TEND_UNTIL(wss_http_ready(http));
	assert_answer(GET("/api/v1/trends"), "HTTP/1.1 404", "\n");
	assert_answer(GET("/api/v1/history/a"), "HTTP/1.1 200", "{2}\n");
	/* A process that is started later gets both. */
	kill(child_pid(), SIGKILL);
	TEND_UNTIL(wss_http_starts(http) == 2 && wss_http_runs(http));
	assert_answer(GET("/api/v1/history/a"), "HTTP/1.1 200", "{2}\n");
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "third\n");
}

TEST(test_killed_it_starts_again)
{
	pid_t before = child_pid();

	assert_true(wss_http_runs(http));
	assert_null(wss_http_why_not(http));
	kill(before, SIGKILL);
	TEND_UNTIL(!wss_http_runs(http));
	assert_string_equal(wss_http_why_not(http), "its process ended (signal 9)");
	TEND_UNTIL(wss_http_starts(http) == 2 && wss_http_runs(http));
	assert_null(wss_http_why_not(http));
	assert_int_not_equal(child_pid(), before);
	/* With the pages that there were. */
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
}

static uint64_t shift_ns;

static uint64_t shifted_now_ns(void *unused)
{
	return patient_now_ns(unused) + shift_ns;
}

TEST(test_stopped_it_is_not_waited_for)
{
	static const struct wss_clock_source source = {.now_ns = shifted_now_ns};
	pid_t before = child_pid();

	kill(before, SIGSTOP);
	publish("later\n", 0);
	assert_false(wss_http_ready(http));
	wss_http_step(http);
	assert_int_equal(wss_http_starts(http), 1);
	wss_clock_inject(&source);
	shift_ns = 31 * WSS_NS_PER_S;
	TEND_UNTIL(wss_http_starts(http) == 2 && wss_http_ready(http));
	wss_clock_inject(NULL);
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "later\n");
}

/* A service inherits it from whoever starts it. */
TEST(test_killed_it_starts_again_where_sigchld_is_ignored)
{
	pid_t before = child_pid();

	signal(SIGCHLD, SIG_IGN);
	kill(before, SIGKILL);
	TEND_UNTIL(wss_http_starts(http) == 2 && wss_http_runs(http));
	signal(SIGCHLD, SIG_DFL);
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
}

/* Makes the next process one that has been taken over: taken_over_main(), or one that closes its channel and lives on. */
static void take_over(const char *how)
{
	char file[128];
	FILE *stream;

	snprintf(file, sizeof(file), "%s.%s", path, how);
	stream = fopen(file, "w");
	assert_non_null(stream);
	fclose(stream);
	kill(child_pid(), SIGKILL);
	TEND_UNTIL(wss_http_starts(http) == 2 && access(file, F_OK) < 0);
}

/* Takes the descriptor that comes with a byte. */
static int receive_descriptor(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	int fd;

	assert_int_equal(recvmsg(from, &msg, 0), 1);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The service's own descriptor. */
static int our_listener(void)
{
	for (int fd = 3; fd < 256; fd++) {
		socklen_t len = sizeof(int);
		int listens = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens)
			return fd;
	}
	return -1;
}

static char child_state(void)
{
	char name[64], state = '?';
	FILE *stream;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)child_pid());
	stream = fopen(name, "r");
	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%*d %*s %c", &state), 1);
	fclose(stream);
	return state;
}

/*
 * It gives the listening socket to a client, who can do with it what the process itself may not, and floods the
 * service with answers.
 */
TEST(test_taken_over_it_comes_back)
{
	int client, listener;

	take_over("taken");
	client = client_open();
	listener = receive_descriptor(client);
	/* The flood does not hold it up. */
	wss_http_step(http);
	TEND_UNTIL(wss_http_starts(http) == 3 && wss_http_runs(http));
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
	/* Whoever has the old socket gets no connection. */
	assert_int_equal(accept(listener, NULL, NULL), -1);
	assert_int_equal(listen(listener, 5), 0);
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
	close(listener);
	close(client);
	/* For reading only: poll() shows that in another way. */
	assert_int_equal(shutdown(our_listener(), SHUT_RD), 0);
	TEND_UNTIL(wss_http_starts(http) == 4 && wss_http_runs(http));
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
	/* It does not spin, or it would never sleep. */
	TEND_UNTIL(child_state() == 'S');
	assert_int_equal(wss_http_starts(http), 4);
}

TEST(test_one_that_closes_its_channel_is_replaced)
{
	take_over("closed");
	TEND_UNTIL(wss_http_starts(http) == 3 && wss_http_runs(http));
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
}

/* What the process does instead of serving: see test_taken_over_it_comes_back(). */
static int taken_over_main(char **argv)
{
	const int listener = WSS_HTTP_CHANNEL + 1;
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int client;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &listener, sizeof(int));
	if (wss_http_confine((uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10),
			     64, NULL) < 0 ||
	    wss_http_confine_calls(listener, NULL) < 0)
		return 1;
	do
		client = accept4(listener, NULL, NULL, 0);
	while (client < 0 && (errno == EAGAIN || errno == EINTR));
	if (client < 0 || sendmsg(client, &msg, 0) != 1)
		return 1;
	while (send(WSS_HTTP_CHANNEL, &byte, 1, MSG_NOSIGNAL) == 1)
		;
	return 0;
}

/* In the process: a file beside its socket. */
static void child_file(const char *what, char ret_file[128])
{
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);

	getsockname(WSS_HTTP_CHANNEL + 1, (struct sockaddr *)&addr, &len);
	snprintf(ret_file, 128, "%.100s.%s", addr.sun_path, what);
}

/* Whether take_over() has asked for it. */
static bool is_taken_over(const char *how)
{
	char file[128];

	child_file(how, file);
	return unlink(file) == 0;
}

TEST(test_one_that_dies_at_once_is_started_ever_more_seldom)
{
	uint64_t began_ns = wss_clock_now_ns();

	for (uint64_t starts = 1; starts <= 3; starts++) {
		kill(child_pid(), SIGKILL);
		TEND_UNTIL(wss_http_starts(http) == starts + 1);
	}
	/* After 0.5, 1 and 2 s. */
	assert_true(wss_clock_now_ns() - began_ns >= 3 * WSS_NS_PER_S);
}

/* Each of them takes a slot, and never asks for anything. */
TEST(test_a_client_among_many)
{
	static int idle[CLIENTS];
	struct rlimit limit;
	size_t n = CLIENTS;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < CLIENTS + 64) {
		print_message("only %llu descriptors\n", (unsigned long long)limit.rlim_max);
		skip();
	}
	for (size_t i = 0; i < n; i++) {
		idle[i] = client_open();
		client_send(idle[i], "GET /metrics HTTP/1.1\r\nX-Slow: ");
	}
	/* Time stands still: none of them ends but to make room. */
	for (int i = 0; i < 20; i++)
		assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
	/* The first have made room for the last. */
	free(client_read(idle[0], NULL));
	for (size_t i = 1; i < n; i++)
		close(idle[i]);
	assert_int_equal(wss_http_starts(http), 1);
}

TEST(test_a_request_ends)
{
	int fd = client_open();
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	/* However much comes: a byte now and then keeps no connection. */
	for (unsigned i = 0; i < 9; i++) {
		child_pass(WSS_HTTP_REQUEST_NS / 10);
		client_send(fd, "G");
	}
	child_pass(WSS_HTTP_REQUEST_NS / 10 - 1);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	child_pass(1);
	free(client_read(fd, NULL));
}

/* The kernel has asked in vain whether a client takes more: what it keeps is all it keeps. */
static bool has_stalled(int fd)
{
	struct tcp_info info = {.tcpi_backoff = 0};
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_backoff > 0 &&
	       poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 0) == 0;
}

/* The kernel would keep megabytes for it, and for each of its like. */
TEST(test_a_client_that_does_not_read_takes_little_memory)
{
	static const char piece[16384];
	struct wss_http_listener listener;
	struct wss_http_address address;
	struct wss_error err = WSS_ERROR_INIT;
	struct pollfd pfd = {.events = POLLOUT};
	size_t kept = 0;
	int client = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(wss_http_address_parse("127.0.0.1:0", "address", &address, NULL), 0);
	if (wss_http_listen(&address, &listener, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(
		connect(client, (struct sockaddr *)&listener.address.addr, listener.address.len),
		0);
	assert_true(poll(&(struct pollfd){.fd = listener.fd, .events = POLLIN}, 1, 300000) == 1);
	pfd.fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK);
	alarm(300);
	while (!has_stalled(pfd.fd)) {
		ssize_t n = poll(&pfd, 1, 20) == 1 ? send(pfd.fd, piece, sizeof(piece), 0) : 0;

		assert_true(n >= 0);
		kept += (size_t)n;
		assert_true(kept < 1 << 20);
	}
	alarm(0);
	close(pfd.fd);
	close(client);
	wss_http_listener_close(&listener);
}

TEST(test_its_socket_is_its_own)
{
	struct wss_http_options options = {.n_addresses = 1};
	struct wss_http *second = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	char address[128];

	snprintf(address, sizeof(address), "unix:%s", path);
	assert_int_equal(wss_http_address_parse(address, "address", &options.addresses[0], NULL),
			 0);
	assert_int_equal(wss_http_new(&options, &second, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, path);
	assert_null(second);
	assert_answer(GET("/metrics"), "HTTP/1.1 200", "first\n");
}

int main(int argc, char **argv)
{
	static const struct wss_clock_source source = {.now_ns = child_now_ns};
	char file[128];

	/* As in main() of virt-wss. */
	while (wss_http_child_is(argc, argv) && fcntl(STDOUT_FILENO, F_GETFD) < 0)
		open("/dev/null", O_RDWR);
	if (wss_http_child_is(argc, argv) && is_taken_over("taken"))
		return taken_over_main(argv);
	if (wss_http_child_is(argc, argv) && is_taken_over("closed")) {
		close(WSS_HTTP_CHANNEL);
		for (;;)
			pause();
	}
	if (wss_http_child_is(argc, argv)) {
		child_file("clock", file);
		child_clock_map(file);
		wss_clock_inject(&source);
		return wss_http_child_main(argc, argv);
	}
	return tests_run_each(setup, teardown);
}
