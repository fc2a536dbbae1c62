/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client of the service: which replies it takes, and that it waits for none longer than allowed. */
#include "hosttest.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/stop.h"
#include "client/service.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define PAGE(time, guests) \
	"{ \"schema\": \"virt-wss/guests/1\", \"time\": \"" time "\", \"guests\": [" guests "] }\n"
#define FUTURE "9999-01-01T00:00:00Z"

static const char full[] = HEAD "\r\n" PAGE(
	FUTURE,
	"{ \"domain\": \"w\\u00e9b\\ud83d\\ude00\", \"uuid\": \"1f0c7f4e-5c0e-4b5e-9d0a-2f6a4f1f2b3c\","
	"  \"state\": \"waiting\", \"period_seconds\": 60, \"kind\": \"fine\","
	"  \"sample_age_seconds\": 31.25, \"new\": [1, {\"domain\": \"x\"}],"
	"  \"spent\": {\"windows\": 12, \"vcpu_seconds\": 1.5e-1, \"vcpu_share\": 0.004},"
	"  \"cold\": {\"since_seconds\": 601, \"ages\": [{\"age\": \"2m\", \"high_bytes\": 9},"
	"    {\"age\": \"10m\", \"low_bytes\": 3, \"high_bytes\": 7}]},"
	"  \"recommendation\": {\"recommended_bytes\": 5, \"why\": [\"x\"], \"reclaimable_bytes\": 6},"
	"  \"sample\": {\"observes\": \"accesses\", \"wss_bytes\": 67108864, \"curve\": [],"
	"    \"memory\": {\"balloon_bytes\": 268435456}}},"
	"{ \"state\": \"refused\", \"why\": \"too large\", \"domain\": \"db\" }");

TEST(test_full)
{
	wss_auto_guests struct wss_guests guests = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_guest_view *guest;

	assert_int_equal(wss_guests_read(full, strlen(full), &guests, &err), 0);
	assert_int_equal(guests.n, 2);
	assert_string_equal(guests.held, "");
	guest = &guests.list[0];
	assert_string_equal(guest->name, "w\u00e9b\U0001f600");
	assert_int_equal(guest->age_ns.value, 31250 * WSS_NS_PER_MS);
	assert_int_equal(guest->cold.low_bytes.value, 3);
	assert_int_equal(guest->cold.high_bytes.value, 7);
	assert_int_equal(guest->advice.recommended_bytes.value, 5);
	assert_int_equal(guest->advice.reclaimable_bytes.value, 6);
	assert_int_equal(guest->sample.wss_bytes.value, 64 << 20);
	assert_int_equal(guest->sample.memory.balloon_bytes.value, 256 << 20);
	assert_false(guest->sample.memory.rss_bytes.known);
	guest = &guests.list[1];
	assert_string_equal(guest->state, "refused");
	assert_string_equal(guest->why, "too large");
	assert_false(guest->sample.wss_bytes.known);
}

/* The page is from 2001: its samples are older than they were when it was made. */
TEST(test_old_page)
{
	static const char reply[] = HEAD
		"\r\n" PAGE("2001-01-01T00:00:00Z",
			    "{\"domain\":\"a\",\"state\":\"waiting\",\"sample_age_seconds\":5},"
			    "{\"domain\":\"b\",\"state\":\"waiting\"}");
	wss_auto_guests struct wss_guests guests = {.n = 0};

	assert_int_equal(wss_guests_read(reply, strlen(reply), &guests, NULL), 0);
	assert_true(guests.list[0].age_ns.value > 20ULL * 365 * 86400 * WSS_NS_PER_S);
	assert_false(guests.list[1].age_ns.known);
}

static void refuse(const char *reply, size_t len, const char *why)
{
	struct wss_guests guests = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_guests_read(reply, len, &guests, &err) == 0)
		fail_msg("taken: %s", reply);
	assert_int_equal(err.code, WSS_ERR_FAILED);
	if (!strstr(err.text, why))
		fail_msg("'%s' instead of '%s' for %s", err.text, why, reply);
	assert_null(guests.list);
}

static void refuse_page(const char *page, const char *why)
{
	char *reply = NULL;

	assert_true(asprintf(&reply, HEAD "\r\n%s", page) > 0);
	refuse(reply, strlen(reply), why);
	free(reply);
}

static void refuse_guest(const char *guest, const char *why)
{
	char *page = NULL;

	assert_true(asprintf(&page, PAGE(FUTURE, "%s"), guest) > 0);
	refuse_page(page, why);
	free(page);
}

TEST(test_heads)
{
	static const char *const cases[][2] = {
		{"", "no reply"},
		{"SSH-2.0-OpenSSH\r\n", "not HTTP"},
		{"HTTP/1.1 200 OK", "not HTTP"},
		{"HTTP/1.1 2000 OK\r\n\r\n{}", "not HTTP"},
		{"HTTP/1.1 503 Service Unavailable\r\n\r\nold", "status 503"},
		{"HTTP/1.1 200 OK\r\nServer: x", "head of the reply"},
		{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{}", "2 bytes instead of 5"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "Content-Length"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
		 "Content-Length"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}", "encoded"},
		{"HTTP/1.1 200 OK\r\n\r\n", "ends too early"},
	};
	char long_line[4096];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refuse(cases[i][0], strlen(cases[i][0]), cases[i][1]);
	refuse("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n{}", 28, "head of the reply");
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, HEAD, strlen(HEAD));
	long_line[sizeof(long_line) - 1] = '\n';
	refuse(long_line, sizeof(long_line), "head of the reply");
}

TEST(test_pages)
{
	refuse_page("{}", "schema");
	refuse_page("[]", "an array instead of an object");
	refuse_page("{\"schema\":\"virt-wss/guests/2\"}", "virt-wss/guests/2");
	refuse_page("{\"schema\":\"virt-wss/guests/1\",\"time\":\"now\"}", "time");
	refuse_page(PAGE(FUTURE, "") "x", "not JSON");
	refuse_page("{\"guests\":{}}", "\"guests\" has the wrong type: an object");
	refuse_page("{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "deeper than 32");
	refuse_page("{\"x\":1,}", "not JSON");
	refuse_page("{\"x\":'a'}", "unexpected character");
	refuse_page("{\"x\":truth}", "not JSON");
	refuse_page("{\"x\":-}", "not JSON");
	refuse_page("{\"x\":1e+}", "not JSON");
	refuse_page("{\"x\":\"\xff\"}", "not JSON");
	refuse_page("{\"x\":\"\xe4\xb8", "not JSON");
	refuse_page("{\"x\":\"\n\"}", "control character");
	refuse_page("{\"x\":\"\\q\"}", "not JSON");
	refuse_page("{\"x\":\"\\u00\"}", "not JSON");
	refuse_page("{\"held\":\"\\u0000\"}", "\"held\" is not a text in UTF-8");
	refuse_page("{\"held\":\"\xed\xa0\x80\"}", "\"held\" is not a text in UTF-8");
	refuse_page("{\"held\":\"\xc0\x80\"}", "not a text in UTF-8");
	refuse_page("{\"held\":\"ab", "ends too early");
}

TEST(test_guests)
{
	char name[600];

	refuse_guest("1", "an integer instead of an object");
	refuse_guest("null", "null instead of an object");
	refuse_guest("{}", "without \"domain\"");
	refuse_guest("{\"domain\":\"a\"}", "without \"domain\" or \"state\"");
	refuse_guest("{\"domain\":null}", "\"domain\" has the wrong type");
	refuse_guest("{\"period_seconds\":-1}", "\"period_seconds\" is out of range");
	refuse_guest("{\"period_seconds\":1e300}", "\"period_seconds\" is out of range");
	refuse_guest("{\"period_seconds\":\"60\"}", "\"period_seconds\" has the wrong type");
	refuse_guest("{\"sample\":{\"wss_bytes\":-1}}", "\"wss_bytes\" is out of range");
	refuse_guest("{\"sample\":{\"wss_bytes\":0.5}}", "\"wss_bytes\" is out of range");
	refuse_guest("{\"sample\":{\"wss_bytes\":9223372036854775808}}",
		     "\"wss_bytes\" is out of range");
	refuse_guest("{\"sample\":{\"wss_bytes\":99999999999999999999}}",
		     "\"wss_bytes\" is out of range");
	refuse_guest("{\"period_seconds\":NaN}", "\"period_seconds\" is out of range");
	snprintf(name, sizeof(name), "{\"domain\":\"%0300d\"}", 1);
	refuse_guest(name, "\"domain\" is longer than 255 bytes");
}

/* json-c drops a member silently when it is out of memory, so that one that is there twice looks like that. */
TEST(test_member_twice)
{
	static const char reply[] = HEAD "\r\n{\"held\":\"a\",\"held\":\"b\"}";
	struct wss_guests guests = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_guests_read(reply, strlen(reply), &guests, &err), -1);
	assert_int_equal(err.code, WSS_ERR_NO_MEMORY);
	assert_non_null(strstr(err.text, "names one twice"));
}

/* Makes a page of n times the same element. */
static char *page_of(size_t n, const char *element)
{
	size_t len = strlen(element);
	char *reply = malloc(256 + n * (len + 1)), *at = reply;

	assert_non_null(reply);
	at += sprintf(at, HEAD "\r\n{\"schema\":\"virt-wss/guests/1\",\"time\":\"" FUTURE
			       "\",\"guests\":[");
	for (size_t i = 0; i < n; i++) {
		memcpy(at, element, len);
		at[len] = ',';
		at += len + 1;
	}
	strcpy(at - 1, "]}");
	return reply;
}

TEST(test_many)
{
	static const char guest[] = "{\"domain\":\"a\",\"state\":\"waiting\"}";
	struct wss_guests guests = {.n = 0};
	char *reply = page_of(WSS_GUESTS_MAX, guest);

	assert_int_equal(wss_guests_read(reply, strlen(reply), &guests, NULL), 0);
	assert_int_equal(guests.n, WSS_GUESTS_MAX);
	wss_guests_release(&guests);
	free(reply);
	reply = page_of(WSS_GUESTS_MAX + 1, guest);
	refuse(reply, strlen(reply), "more than 5000 guests");
	free(reply);
	/* 3 bytes each, of which json-c would make hundreds. */
	reply = page_of(600000, "[]");
	refuse(reply, strlen(reply), "would need more than 268435456 bytes of memory");
	free(reply);
}

/* --- at a socket --- */

/* A service that takes one connection, sends text, and closes it or goes silent. */
struct fake_service {
	char path[64];
	int fd;
	const char *text;
	bool hangs, drips;
	pthread_t thread;
	int done[2];
};

static void *fake_serve(void *opaque)
{
	struct fake_service *fake = opaque;
	int fd = accept(fake->fd, NULL, NULL);
	char request[512], c;
	ssize_t n = 0;

	assert_true(fd >= 0);
	if (fake->text)
		n = read(fd, request, sizeof(request) - 1);
	request[n > 0 ? n : 0] = '\0';
	if (fake->text && !strncmp(request, "GET /api/v1/guests HTTP/1.0\r\n", 29))
		(void)!write(fd, fake->text, strlen(fake->text));
	while (fake->drips && send(fd, "x", 1, MSG_NOSIGNAL) == 1)
		usleep(1000);
	if (fake->hangs)
		(void)!read(fake->done[0], &c, 1);
	close(fd);
	return NULL;
}

static void fake_start(struct fake_service *fake)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(fake->path, sizeof(fake->path), "/tmp/wss-test-client-%d", (int)getpid());
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", fake->path);
	unlink(fake->path);
	fake->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fake->fd, 1), 0);
	assert_int_equal(pipe(fake->done), 0);
	assert_int_equal(pthread_create(&fake->thread, NULL, fake_serve, fake), 0);
}

static void fake_end(struct fake_service *fake)
{
	close(fake->done[1]);
	pthread_join(fake->thread, NULL);
	close(fake->done[0]);
	close(fake->fd);
	unlink(fake->path);
}

/* Asks with a deadline of ms: the code of the error, 0 for a reply with n guests. */
static enum wss_error_code asks(const char *path, unsigned ms, size_t n, const char *why)
{
	wss_auto_guests struct wss_guests guests = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t from = wss_clock_now_ns();
	int r = wss_service_guests(path, from + ms * WSS_NS_PER_MS, NULL, &guests, &err);

	assert_int_equal(guests.n, n);
	assert_int_equal(r, err.code ? -1 : 0);
	if (!strstr(err.text, why))
		fail_msg("'%s' instead of '%s'", err.text, why);
	/* No deadline of these is longer: the rest only ends what hangs. */
	assert_true(wss_clock_now_ns() - from < ms * WSS_NS_PER_MS + 300 * WSS_NS_PER_S);
	return err.code;
}

TEST(test_socket)
{
	struct fake_service fake = {.text = full}, broken = {.text = "hello"};
	struct fake_service silent = {.text = "HTTP/1.1 200 OK\r\n", .hangs = true};
	struct fake_service drips = {.text = "HTTP/1.1 200 OK\r\n", .drips = true};
	struct fake_service closes = {.text = NULL};

	fake_start(&fake);
	assert_int_equal(asks(fake.path, 30000, 2, ""), WSS_OK);
	fake_end(&fake);
	fake_start(&broken);
	assert_int_equal(asks(broken.path, 30000, 0, broken.path), WSS_ERR_FAILED);
	fake_end(&broken);
	fake_start(&closes);
	assert_int_equal(asks(closes.path, 30000, 0, closes.path), WSS_ERR_FAILED);
	fake_end(&closes);
	fake_start(&silent);
	assert_int_equal(asks(silent.path, 200, 0, "timed out"), WSS_ERR_TIMEOUT);
	fake_end(&silent);
	fake_start(&drips);
	assert_int_equal(asks(drips.path, 200, 0, "timed out"), WSS_ERR_TIMEOUT);
	fake_end(&drips);
}

TEST(test_no_socket)
{
	struct fake_service fake = {.text = full};

	assert_int_equal(
		asks("/nonexistent/socket", 1000, 0, "/nonexistent/socket: cannot connect"),
		WSS_ERR_GONE);
	assert_int_equal(asks("/dev/null", 1000, 0, "not a UNIX socket"), WSS_ERR_CONNECT);
	assert_int_equal(asks("", 1000, 0, "empty"), WSS_ERR_USAGE);
	/* A file of a service that is gone. */
	fake_start(&fake);
	assert_int_equal(asks(fake.path, 30000, 2, ""), WSS_OK);
	close(fake.fd);
	assert_int_equal(asks(fake.path, 1000, 0, "refused"), WSS_ERR_GONE);
	fake.fd = -1;
	fake_end(&fake);
}

int main(void)
{
	wss_stop_install();
	return tests_run_each(patient_begin, patient_end);
}
