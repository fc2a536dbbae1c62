/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lines of an HTTP request that we read ourselves, and addresses to listen at: one text in
 * the place of each.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "serve/http-listen.h"
#include "serve/http-route.h"

static void try_request(const struct wss_http_request *request)
{
	struct wss_http_answer answer = wss_http_route(request);

	fuzz_require(answer.status >= 200 && answer.status < 600 && answer.type);
	if (answer.text)
		return;
	fuzz_require(answer.status == 200);
	/* A page of the book is named by the end of the path; every other answer is a page. */
	if (answer.name)
		fuzz_require(*answer.name && !strchr(answer.name, '/'));
	else
		fuzz_require(answer.page < WSS_HTTP_PAGES);
}

static void try_requests(const char *text)
{
	static const char *const paths[] = {"/metrics", "/api/v1/guests", "/healthz"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		try_request(&(struct wss_http_request){
			.method = "GET", .path = paths[i], .accept = text, .host = "localhost"});
		try_request(&(struct wss_http_request){
			.method = "GET", .path = paths[i], .host = text, .by_network = true});
		try_request(&(struct wss_http_request){.method = text, .path = paths[i]});
	}
	try_request(&(struct wss_http_request){.method = "GET", .path = text});
	fuzz_require(wss_http_accept(text, "text/plain", "0.0.4", NULL) <= 1000);
}

static void http_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	struct wss_http_address address;
	struct wss_error err = WSS_ERROR_INIT;
	int r = wss_http_address_parse(text, "--listen", &address, &err);

	fuzz_check(r, &err);
	fuzz_require(r < 0 || address.len <= sizeof(address.addr));
	try_requests(text);
}

const struct fuzz_target fuzz_target = {
	.name = "http",
	.run = http_run,
	.max_bytes = 1024,
	.mutations = 100000,
};
