/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a request gets, where HTTP may be served, and the file in which pages are handed over.
 */
#include "hosttest.h"

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "serve/http-listen.h"
#include "serve/http-named.h"
#include "serve/http-pages.h"
#include "serve/http-route.h"

#define OPEN "application/openmetrics-text"

static struct wss_http_answer route(const char *method, const char *path, const char *accept)
{
	const struct wss_http_request request = {
		.method = method, .path = path, .accept = accept, .fresh = true};

	return wss_http_route(&request);
}

static void assert_page(const char *path, const char *accept, enum wss_http_page page)
{
	struct wss_http_answer answer = route("GET", path, accept);

	if (answer.status != 200 || answer.text || answer.page != page)
		fail_msg("%s for '%s': status %u, page %d", path, accept ? accept : "",
			 answer.status, (int)answer.page);
}

static void assert_status(const char *method, const char *path, const char *accept, unsigned status)
{
	struct wss_http_answer answer = route(method, path, accept);

	if (answer.status != status || !answer.text)
		fail_msg("%s %s for '%s': status %u", method, path, accept ? accept : "",
			 answer.status);
}

TEST(test_metrics_form)
{
	static const char *const text[] = {
		NULL,
		"*/*",
		"text/plain",
		"TEXT/Plain ; version=0.0.4",
		"text/*",
		"*/*;q=0.1",
		OPEN ";q=0.3, text/plain;q=0.5",
		OPEN ";q=0,*/*",
		OPEN ";version=2.0.0;q=0.9,text/plain;q=0.1",
		"application/vnd.google.protobuf;q=0.9,text/plain;q=0.2",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		/* Not a number: as if it were not there. */
		OPEN ";q=much,*/*;q=0.1",
	};
	static const char *const open[] = {
		OPEN,
		OPEN ";version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		OPEN "; version=\"1.0.0\" ; charset=utf-8,text/plain",
		/* Prometheus 2.43 and 3.0. */
		OPEN ";version=1.0.0," OPEN
		     ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		OPEN ";version=1.0.0;escaping=allow-utf-8;q=0.6," OPEN
		     ";version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
		     "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"application/*",
		"text/plain;q=0, */*",
	};

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_page("/metrics", text[i], WSS_HTTP_PROMETHEUS);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_page("/metrics", open[i], WSS_HTTP_OPENMETRICS);
	assert_non_null(strstr(route("GET", "/metrics", OPEN).type, "openmetrics"));
	assert_true(route("GET", "/metrics", OPEN).varies);
}

TEST(test_unacceptable)
{
	assert_status("GET", "/metrics", "application/json", 406);
	assert_status("GET", "/metrics", "*/*;q=0", 406);
	assert_page("/metrics", "", WSS_HTTP_PROMETHEUS);
	assert_page("/metrics", " , ,", WSS_HTTP_PROMETHEUS);
	assert_status("GET", "/metrics", ";;;,,;q=1", 406);
	assert_status("GET", "/api/v1/guests", "text/html", 406);
	assert_page("/api/v1/guests", "text/html,*/*;q=0.1", WSS_HTTP_GUESTS);
	assert_page("/api/v1/guests", "Application/JSON", WSS_HTTP_GUESTS);
	assert_page("/api/v1/guests", NULL, WSS_HTTP_GUESTS);
}

TEST(test_weights)
{
	bool named;

	assert_int_equal(wss_http_accept("a/b;q=0.123", "a/b", NULL, &named), 123);
	assert_true(named);
	assert_int_equal(wss_http_accept("a/*;q=0.5,*/*;q=0.7", "a/b", NULL, &named), 500);
	assert_false(named);
	assert_int_equal(wss_http_accept("a/b;q=1.000", "a/b", NULL, NULL), 1000);
	assert_int_equal(wss_http_accept("a/b;q=1.001", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept("a/b;q=0.1234", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept("a/b;q=-1", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept("a/bc", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept("a/b", "a/bc", NULL, NULL), 0);
	/* A wildcard after the range that names the type does not count. */
	assert_int_equal(wss_http_accept("a/b;q=0,*/*", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept(NULL, "a/b", NULL, NULL), 1000);
	/* What is in quotes separates nothing. */
	assert_int_equal(wss_http_accept("a/b;c=\"d;q=0\"", "a/b", NULL, NULL), 1000);
	assert_int_equal(wss_http_accept("c/d;e=\"\\\", a/b, f", "a/b", NULL, NULL), 0);
	assert_int_equal(wss_http_accept("c/d;e=\"\\\", a/b\";q=0, a/b;q=0.5", "a/b", NULL, NULL),
			 500);
}

TEST(test_methods_and_paths)
{
	static const char *const methods[] = {"POST",	 "PUT", "DELETE", "OPTIONS", "TRACE",
					      "CONNECT", "get", "",	  "GETX"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_status(methods[i], "/metrics", NULL, 405);
	assert_int_equal(route("HEAD", "/metrics", NULL).status, 200);
	assert_status("POST", "/none", NULL, 404);
	assert_status("GET", "/", NULL, 200);
	assert_status("GET", "/index.html", NULL, 404);
	assert_status("GET", "", NULL, 404);
	assert_status("GET", "/metrics/", NULL, 404);
	assert_status("GET", "//metrics", NULL, 404);
	assert_status("GET", "/../metrics", NULL, 404);
	assert_status("GET", "/healthz", NULL, 200);
	assert_status("GET", "/healthz", "application/json", 200);
}

TEST(test_health_needs_fresh_pages)
{
	struct wss_http_request request = {.method = "GET", .path = "/healthz"};

	assert_int_equal(wss_http_route(&request).status, 503);
	/* What is there is served all the same: it says how old it is. */
	request.path = "/metrics";
	assert_int_equal(wss_http_route(&request).status, 200);
}

TEST(test_host)
{
	static const char *const local[] = {"localhost",    "LOCALHOST:19177", "127.0.0.1",
					    "127.0.0.1:80", "[::1]",	       "[::1]:19177",
					    "192.0.2.7"};
	static const char *const foreign[] = {"",
					      "evil.example",
					      "evil.example:19177",
					      "localhost.",
					      "localhost.evil.example",
					      "127.0.0.1.evil.example",
					      "[::1",
					      "[::1]x",
					      "[::1].evil.example",
					      "[evil]",
					      "127.0.0.1:80x",
					      "127.1",
					      "0x7f.0.0.1",
					      "::1"};
	struct wss_http_request request = {.method = "GET", .path = "/metrics", .fresh = true};

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!wss_http_host_is_local(local[i]))
			fail_msg("'%s' is refused", local[i]);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (wss_http_host_is_local(foreign[i]))
			fail_msg("'%s' is accepted", foreign[i]);
	request.host = "evil.example";
	assert_int_equal(wss_http_route(&request).status, 200);
	request.by_network = true;
	assert_int_equal(wss_http_route(&request).status, 403);
	request.host = NULL;
	assert_int_equal(wss_http_route(&request).status, 200);
}

static void assert_address(const char *text, int family, unsigned port)
{
	struct wss_http_address address;
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_http_address_parse(text, "--listen", &address, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(address.addr.ss_family, family);
	if (family == AF_INET)
		assert_int_equal(ntohs(((struct sockaddr_in *)(void *)&address.addr)->sin_port),
				 port);
	if (family == AF_INET6)
		assert_int_equal(ntohs(((struct sockaddr_in6 *)(void *)&address.addr)->sin6_port),
				 port);
}

static void assert_refused(const char *text, const char *part)
{
	struct wss_http_address address;
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_http_address_parse(text, "--listen", &address, &err) == 0)
		fail_msg("'%s' is accepted", text);
	assert_error(&err, WSS_ERR_USAGE, part);
	assert_non_null(strstr(err.text, "--listen"));
}

TEST(test_addresses)
{
	char path[200] = "unix:/";

	assert_address("127.0.0.1:19177", AF_INET, 19177);
	assert_address("127.9.9.9:0", AF_INET, 0);
	assert_address("[::1]:65535", AF_INET6, 65535);
	assert_address("unix:/run/virt-wss/http.sock", AF_UNIX, 0);
	assert_address("unix:x", AF_UNIX, 0);
	assert_refused("0.0.0.0:19177", "other hosts");
	assert_refused("192.0.2.1:19177", "other hosts");
	assert_refused("[::]:19177", "other hosts");
	assert_refused("[2001:db8::1]:19177", "other hosts");
	assert_refused("[::ffff:192.0.2.1]:19177", "other hosts");
	assert_refused("localhost:19177", "not an address");
	assert_refused("127.0.0.1", "not an address");
	assert_refused("19177", "not an address");
	assert_refused(":19177", "not an address");
	assert_refused("*:19177", "not an address");
	assert_refused("::1:19177", "not an address");
	assert_refused("[]:19177", "not an address");
	assert_refused("", "not an address");
	assert_refused("127.0.0.1:", NULL);
	assert_refused("127.0.0.1:65536", NULL);
	assert_refused("127.0.0.1:http", NULL);
	assert_refused("unix:", "path");
	memset(path + 6, 'a', sizeof(path) - 7);
	assert_refused(path, "at most 107");
}

/* --- pages --- */

static int make_pages(const char *metrics, const char *guests)
{
	struct wss_http_draft draft = WSS_HTTP_DRAFT_INIT;
	int fd;

	assert_int_equal(wss_http_draft_begin(&draft, NULL), 0);
	fputs(metrics, draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_PROMETHEUS);
	wss_http_draft_page(&draft, WSS_HTTP_OPENMETRICS);
	fputs(guests, draft.stream);
	wss_http_draft_page(&draft, WSS_HTTP_GUESTS);
	assert_int_equal(wss_http_draft_end(&draft, &fd, NULL), 0);
	return fd;
}

static void assert_content(const struct wss_http_pages *pages, enum wss_http_page page,
			   const char *expected)
{
	size_t size;
	const void *text = wss_http_pages_get(pages, page, &size);

	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

TEST(test_pages)
{
	wss_auto_close int fd = make_pages("metrics\n", "{}\n");
	struct wss_http_pages pages;

	assert_int_equal(wss_http_pages_map(fd, &pages, NULL), 0);
	assert_content(&pages, WSS_HTTP_PROMETHEUS, "metrics\n");
	assert_content(&pages, WSS_HTTP_OPENMETRICS, "");
	assert_content(&pages, WSS_HTTP_GUESTS, "{}\n");
	/* Nobody can change them, or take them away, while they are sent. */
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	wss_http_pages_unmap(&pages);
	wss_http_pages_unmap(&pages);
}

TEST(test_damaged_pages)
{
	wss_auto_close int fd = make_pages("metrics\n", "{}\n");
	wss_auto_close int open_fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct wss_http_header header;
	struct wss_http_pages pages;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.pages[WSS_HTTP_GUESTS].size += 1;
	assert_int_equal(write(open_fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(wss_http_pages_map(open_fd, &pages, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "sealed");
	assert_int_equal(fcntl(open_fd, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
			 0);
	wss_error_clear(&err);
	assert_int_equal(wss_http_pages_map(open_fd, &pages, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "damaged");
	assert_int_equal(wss_http_pages_map(-1, &pages, &err), -1);
}

/* --- the named pages --- */

static int make_named(void)
{
	struct wss_http_named_draft draft = WSS_HTTP_NAMED_DRAFT_INIT;
	int fd;

	/* Fewer pages than there is room for, in no order. */
	assert_int_equal(wss_http_named_begin(&draft, 3, NULL), 0);
	fputs("second\n", draft.stream);
	wss_http_named_page(&draft, "b1b2c3d4-0000-4000-8000-000000000000");
	fputs("first\n", draft.stream);
	wss_http_named_page(&draft, "a1b2c3d4-0000-4000-8000-000000000000");
	assert_int_equal(wss_http_named_end(&draft, &fd, NULL), 0);
	return fd;
}

static void assert_named(const struct wss_http_named *named, const char *name, const char *expected)
{
	size_t size;
	const void *text = wss_http_named_find(named, name, &size);

	if (!expected) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

TEST(test_named)
{
	wss_auto_close int fd = make_named();
	struct wss_http_named named = {.index = NULL};
	char longest[100];

	assert_named(&named, "a1b2c3d4-0000-4000-8000-000000000000", NULL);
	assert_int_equal(wss_http_named_map(fd, &named, NULL), 0);
	assert_named(&named, "a1b2c3d4-0000-4000-8000-000000000000", "first\n");
	assert_named(&named, "b1b2c3d4-0000-4000-8000-000000000000", "second\n");
	assert_named(&named, "b1b2c3d4-0000-4000-8000-00000000000", NULL);
	assert_named(&named, "", NULL);
	/* A path may have any bytes but zero. */
	assert_named(&named, "0\x04\x1d\xd5\xe2&\xfc\x7f", NULL);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_named(&named, longest, NULL);
	assert_int_equal(ftruncate(fd, 0), -1);
	wss_http_named_unmap(&named);
	wss_http_named_unmap(&named);
}

TEST(test_damaged_named)
{
	wss_auto_close int fd = make_named();
	wss_auto_close int bad_fd = memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct {
		struct wss_http_index index;
		struct wss_http_entry entries[3];
	} start;
	struct wss_http_named named;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(pread(fd, &start, sizeof(start), 0), sizeof(start));
	start.entries[1].span.size = UINT64_MAX;
	assert_int_equal(write(bad_fd, &start, sizeof(start)), sizeof(start));
	assert_int_equal(wss_http_named_map(bad_fd, &named, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "sealed");
	assert_true(wss_http_file_seal(bad_fd));
	wss_error_clear(&err);
	assert_int_equal(wss_http_named_map(bad_fd, &named, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "damaged");
}

TEST(test_names_in_paths)
{
	struct wss_http_request request = {.method = "GET", .path = "/api/v1/history/abc"};
	struct wss_http_answer answer = wss_http_route(&request);

	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.name, "abc");
	request.path = "/api/v1/history/";
	assert_int_equal(wss_http_route(&request).status, 404);
	request.path = "/api/v1/history/a/b";
	assert_int_equal(wss_http_route(&request).status, 404);
	request.path = "/api/v1/trends";
	assert_string_equal(wss_http_route(&request).name, WSS_HTTP_TRENDS);
	request.path = "/api/v1/host";
	assert_int_equal(wss_http_route(&request).page, WSS_HTTP_HOST);
	assert_null(wss_http_route(&request).name);
	request.method = "POST";
	assert_int_equal(wss_http_route(&request).status, 405);
}

int main(void)
{
	return tests_run();
}
