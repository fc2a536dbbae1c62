/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-route.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http-named.h"
#include "serve/page.h"
#include "show/metrics.h"

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json"
#define HTML "text/html; charset=utf-8"
#define HISTORY "/api/v1/history/"
#define SPACES " \t"
/* Wanted in full. */
#define FULL 1000

/* --- content negotiation --- */

/* One range of an Accept header. */
struct range {
	const char *type; /* type_len bytes: "text/plain", no parameters */
	size_t type_len;
	char version[16]; /* "": it names none */
	unsigned wanted;  /* 0 to FULL */
};

/* Parses "0", "0.7", "1.000", and Java's ".2"; anything else counts as 0, so that no client gets what it cannot read. */
static unsigned quality_parse(const char *text, size_t len)
{
	char whole[6];
	unsigned value = 0, unit = FULL;

	if (len > 1 && len < 5 && text[0] == '.') {
		snprintf(whole, sizeof(whole), "0%.*s", (int)len, text);
		return quality_parse(whole, len + 1);
	}
	if (len < 1 || len > 5 || text[0] < '0' || text[0] > '1' || (len > 1 && text[1] != '.'))
		return 0;
	value = (unsigned)(text[0] - '0') * FULL;
	for (size_t i = 2; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		unit /= 10;
		value += (unsigned)(text[i] - '0') * unit;
	}
	return value > FULL ? 0 : value;
}

static bool name_is(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && !strncasecmp(text, name, len);
}

/* Reads one "name=value" of a range; only the weight and the version matter. */
static void range_take_parameter(struct range *range, const char *text, size_t len)
{
	const char *equals = memchr(text, '=', len);
	const char *value = equals ? equals + 1 : NULL;
	size_t value_len;

	if (!equals)
		return;
	value_len = len - (size_t)(value - text);
	if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
		value++;
		value_len -= 2;
	}
	if (name_is(text, (size_t)(equals - text), "q"))
		range->wanted = quality_parse(value, value_len);
	else if (name_is(text, (size_t)(equals - text), "version"))
		snprintf(range->version, sizeof(range->version), "%.*s", (int)value_len, value);
}

/* Cuts white space off both ends. */
static const char *trim(const char *text, size_t *len)
{
	while (*len && strchr(SPACES, *text)) {
		text++;
		--*len;
	}
	while (*len && strchr(SPACES, text[*len - 1]))
		--*len;
	return text;
}

/* The length of what comes before any of the characters ends, but for those in quotes. */
static size_t part_length(const char *text, const char *ends)
{
	bool quoted = false;
	size_t n;

	for (n = 0; text[n] && (quoted || !strchr(ends, text[n])); n++) {
		if (quoted && text[n] == '\\' && text[n + 1])
			n++;
		else if (text[n] == '"')
			quoted = !quoted;
	}
	return n;
}

/* Parses the next range and returns what follows it; NULL: there is none. */
static const char *range_next(const char *at, struct range *ret_range)
{
	struct range range = {.wanted = FULL};
	size_t len = part_length(at, ",");
	bool first = true;

	if (!*at)
		return NULL;
	for (const char *end = at + len, *part = at; part <= end;) {
		size_t part_len = part_length(part, ";,"), trimmed = part_len;
		const char *text = trim(part, &trimmed);

		if (first) {
			range.type = text;
			range.type_len = trimmed;
		} else {
			range_take_parameter(&range, text, trimmed);
		}
		first = false;
		part += part_len + 1;
	}
	*ret_range = range;
	return at[len] ? at + len + 1 : at + len;
}

/* How specifically a range matches a type: 0 not at all, 3 by name. */
static int range_fits(const struct range *range, const char *type, const char *version)
{
	size_t major = strcspn(type, "/") + 1;

	if (range->version[0] && version && strcmp(range->version, version) != 0)
		return 0;
	if (name_is(range->type, range->type_len, type))
		return 3;
	if (range->type_len == major + 1 && !strncasecmp(range->type, type, major) &&
	    range->type[major] == '*')
		return 2;
	/* Java's default is "*". */
	return name_is(range->type, range->type_len, "*/*") ||
			       name_is(range->type, range->type_len, "*")
		       ? 1
		       : 0;
}

unsigned wss_http_accept(const char *accept, const char *type, const char *version, bool *ret_named)
{
	/* An empty list wants nothing in particular. */
	bool any = !accept || !accept[strspn(accept, SPACES ",")];
	unsigned wanted = any ? FULL : 0;
	struct range range;
	int best = 0;

	for (const char *at = accept; at && (at = range_next(at, &range));) {
		int fit = range_fits(&range, type, version);

		if (fit < best || !fit)
			continue;
		/* Ranges may differ only in parameters that do not matter: the best one counts. */
		wanted = fit > best || range.wanted > wanted ? range.wanted : wanted;
		best = fit;
	}
	if (ret_named)
		*ret_named = best == 3;
	return wanted;
}

/*
 * Chooses OpenMetrics for a client that names it and wants it at least as much as the text form,
 * and the text form for all others. Returns false if the client accepts neither.
 */
static bool metrics_choose(const char *accept, enum wss_metrics_form *ret_form)
{
	bool named;
	unsigned open = wss_http_accept(accept, "application/openmetrics-text", "1.0.0", &named);
	unsigned text = wss_http_accept(accept, "text/plain", "0.0.4", NULL);

	*ret_form = open && (!text || (named && open >= text)) ? WSS_METRICS_OPENMETRICS
							       : WSS_METRICS_PROMETHEUS;
	return open || text;
}

/* --- who asks --- */

/* Whether this is the end of a Host header: nothing, or a port. */
static bool port_follows(const char *rest)
{
	return !*rest || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

bool wss_http_host_is_local(const char *host)
{
	bool bracket = host[0] == '[';
	const char *start = host + bracket;
	unsigned char address[sizeof(struct in6_addr)];
	char name[INET6_ADDRSTRLEN + 1];
	size_t len = strcspn(start, bracket ? "]" : ":");

	if (len >= sizeof(name) || (bracket && !start[len]) || !port_follows(start + len + bracket))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)len, start);
	if (bracket)
		return inet_pton(AF_INET6, name, address) == 1;
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, address) == 1;
}

/* --- what there is --- */

static struct wss_http_answer say(unsigned status, const char *text)
{
	return (struct wss_http_answer){
		.status = status, .type = TEXT, .text = text, .text_size = strlen(text)};
}

static struct wss_http_answer answer_page(const struct wss_http_request *request)
{
	struct wss_http_answer answer = {.status = 200, .type = HTML, .policy = wss_page_policy()};

	if (!wss_http_accept(request->accept, "text/html", NULL, NULL))
		return say(406, "the page comes as text/html\n");
	answer.text = wss_page(&answer.text_size);
	return answer;
}

static struct wss_http_answer answer_metrics(const struct wss_http_request *request)
{
	enum wss_metrics_form form;

	if (!metrics_choose(request->accept, &form))
		return say(406, "metrics come as text/plain or application/openmetrics-text\n");
	return (struct wss_http_answer){
		.status = 200,
		.type = wss_metrics_content_type(form),
		.varies = true,
		.page = form == WSS_METRICS_OPENMETRICS ? WSS_HTTP_OPENMETRICS
							: WSS_HTTP_PROMETHEUS,
	};
}

static struct wss_http_answer answer_json(const struct wss_http_request *request,
					  enum wss_http_page page, const char *name)
{
	if (!wss_http_accept(request->accept, JSON, NULL, NULL))
		return say(406, "it comes as application/json\n");
	return (struct wss_http_answer){.status = 200, .type = JSON, .page = page, .name = name};
}

static struct wss_http_answer answer_guests(const struct wss_http_request *request)
{
	return answer_json(request, WSS_HTTP_GUESTS, NULL);
}

static struct wss_http_answer answer_host(const struct wss_http_request *request)
{
	return answer_json(request, WSS_HTTP_HOST, NULL);
}

static struct wss_http_answer answer_trends(const struct wss_http_request *request)
{
	return answer_json(request, WSS_HTTP_PAGES, WSS_HTTP_TRENDS);
}

static struct wss_http_answer answer_history(const struct wss_http_request *request)
{
	return answer_json(request, WSS_HTTP_PAGES, request->path + strlen(HISTORY));
}

static struct wss_http_answer answer_health(const struct wss_http_request *request)
{
	return request->fresh ? say(200, "ok\n")
			      : say(503, "the service has not renewed its pages for a minute\n");
}

static const struct {
	const char *path;
	struct wss_http_answer (*answer)(const struct wss_http_request *request);
} routes[] = {
	{"/", answer_page},
	{"/metrics", answer_metrics},
	{"/api/v1/host", answer_host},
	{"/api/v1/guests", answer_guests},
	{"/api/v1/trends", answer_trends},
	{HISTORY, answer_history},
	{"/healthz", answer_health},
};

/* A path that ends in a slash stands for all that begin with it and have no other. */
static bool route_matches(const char *route, const char *path)
{
	size_t len = strlen(route);

	if (len < 2 || route[len - 1] != '/')
		return !strcmp(path, route);
	return !strncmp(path, route, len) && path[len] && !strchr(path + len, '/');
}

struct wss_http_answer wss_http_route(const struct wss_http_request *request)
{
	if (request->by_network && request->host && !wss_http_host_is_local(request->host))
		return say(403, "the Host header must be localhost or an address\n");
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!route_matches(routes[i].path, request->path))
			continue;
		if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0)
			return say(405, "only GET and HEAD are allowed\n");
		return routes[i].answer(request);
	}
	return say(404, "there are /, /metrics, /healthz, /api/v1/host, /api/v1/guests, "
			"/api/v1/trends and /api/v1/history/UUID\n");
}
