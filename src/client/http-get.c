/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/http-get.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "base/stop.h"
#include "base/units.h"

#define SECRET_MAX 16384
#define URL_MAX 2048

struct wss_http_get {
	const struct wss_http_get_options *options;
	CURL *curl;
	char base[URL_MAX]; /* the URL without a slash at its end */
	char *token;
	char *user, *password;	    /* password is a part of user's text */
	struct curl_slist *headers; /* further ones, as "NAME: VALUE" */
	bool is_near;		    /* at a private address: no proxy is asked */
	char *body;
	size_t len, room;
	bool too_long, no_memory;
	char why[CURL_ERROR_SIZE];
};

/* --- secrets --- */

/* Whether all characters are printable ASCII; a line break would start another header. */
static bool text_is_printable(const char *text, char first)
{
	for (; *text; text++)
		if (*text < first || *text > '~')
			return false;
	return true;
}

static int secret_read_from(int fd, char **ret_text, struct wss_error *err)
{
	wss_auto_free char *text = calloc(1, SECRET_MAX + 1);
	struct stat st;
	ssize_t len;

	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (fstat(fd, &st) < 0 || (st.st_mode & (S_IRWXG | S_IRWXO)))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "others than its owner can read or write it, but it must be "
				     "kept secret, as by \"chmod 600 FILE\"");
	len = wss_io_pread(fd, text, SECRET_MAX + 1, 0);
	if (len < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, (int)-len, "cannot be read");
	if (len > SECRET_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "it is longer than %d bytes, too long for such a file",
				     SECRET_MAX);
	*ret_text = wss_steal_ptr(text);
	return 0;
}

/* A token is one word (RFC 6750). */
static int token_take(struct wss_http_get *http, char *text, struct wss_error *err)
{
	text[strcspn(text, "\r\n")] = '\0';
	if (!*text || !text_is_printable(text, '!'))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "its first line is not a token: one word of printable "
				     "ASCII characters");
	http->token = strdup(text);
	return http->token ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

/* A password may be UTF-8 (RFC 7617), and have colons. */
static int user_take(struct wss_http_get *http, char *text, struct wss_error *err)
{
	char *colon;

	text[strcspn(text, "\r\n")] = '\0';
	colon = strchr(text, ':');
	if (!colon || colon == text)
		return wss_error_set(err, WSS_ERR_FAILED, "its first line is not USER:PASSWORD");
	http->user = strdup(text);
	if (!http->user)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	http->password = http->user + (colon - text) + 1;
	http->user[colon - text] = '\0';
	return 0;
}

/* Whether it is "NAME: VALUE", of which libcurl would take other forms for commands. */
static bool header_is_valid(const char *line)
{
	size_t name = strspn(line, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return name && line[name] == ':' && line[name + 1 + strspn(line + name + 1, " ")] &&
	       text_is_printable(line, ' ');
}

static int headers_take(struct wss_http_get *http, char *text, struct wss_error *err)
{
	char *rest = text, *line;

	for (int n = 1; (line = strsep(&rest, "\n")); n++) {
		struct curl_slist *more;

		line[strcspn(line, "\r")] = '\0';
		if (!*line)
			continue;
		if (!header_is_valid(line))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "line %d is not a header, such as X-Scope-OrgID: "
					     "tenant1",
					     n);
		more = curl_slist_append(http->headers, line);
		if (!more)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		http->headers = more;
	}
	return http->headers ? 0 : wss_error_set(err, WSS_ERR_FAILED, "it has no header");
}

/* Reads a file of secrets, if one was given. */
static int secret_read(struct wss_http_get *http, const char *path,
		       int (*take)(struct wss_http_get *http, char *text, struct wss_error *err),
		       struct wss_error *err)
{
	wss_auto_close int fd = -1;
	char *text = NULL;
	int r;

	if (!path)
		return 0;
	if (wss_file_open(path, &fd, err) < 0 || secret_read_from(fd, &text, err) < 0)
		return wss_error_prefix(err, "%s", path);
	r = take(http, text, err);
	explicit_bzero(text, SECRET_MAX);
	free(text);
	return r < 0 ? wss_error_prefix(err, "%s", path) : 0;
}

static int secrets_read(struct wss_http_get *http, struct wss_error *err)
{
	const struct wss_http_get_options *options = http->options;

	if (secret_read(http, options->token_file, token_take, err) < 0 ||
	    secret_read(http, options->user_file, user_take, err) < 0)
		return -1;
	return secret_read(http, options->header_file, headers_take, err);
}

/* --- the URL --- */

static bool url_has(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK && text;

	curl_free(text);
	return has;
}

enum reach { HERE, NEAR, ELSEWHERE };

/*
 * Returns where an IPv4 address in host byte order leads. NEAR: to a private network (RFC 1918) or a single link
 * (RFC 3927).
 */
static enum reach v4_reach(uint32_t address)
{
	if (address >> 24 == 127)
		return HERE;
	return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8 ||
			       address >> 16 == 0xa9fe
		       ? NEAR
		       : ELSEWHERE;
}

static enum reach v6_reach(const struct in6_addr *address)
{
	const uint8_t *bytes = address->s6_addr;

	if (IN6_IS_ADDR_LOOPBACK(address))
		return HERE;
	if (IN6_IS_ADDR_V4MAPPED(address))
		return v4_reach((uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 |
				(uint32_t)bytes[14] << 8 | bytes[15]);
	/* Unique local addresses (RFC 4193). */
	return (bytes[0] & 0xfe) == 0xfc || IN6_IS_ADDR_LINKLOCAL(address) ? NEAR : ELSEWHERE;
}

/*
 * Where a host is, whatever a resolver or a proxy says: libcurl answers for "localhost" itself (RFC 6761), and any
 * other name may be elsewhere. So may 127.1 and the like: their meaning differs from resolver to resolver.
 */
static enum reach host_reach(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	char inner[INET6_ADDRSTRLEN];

	if (!strcasecmp(host, "localhost"))
		return HERE;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return v4_reach(ntohl(v4.s_addr));
	if (host[0] != '[' || strlen(host) >= sizeof(inner))
		return ELSEWHERE;
	snprintf(inner, sizeof(inner), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
	return inet_pton(AF_INET6, inner, &v6) == 1 ? v6_reach(&v6) : ELSEWHERE;
}

static bool has_secret(const struct wss_http_get_options *options)
{
	return options->token_file || options->user_file || options->header_file;
}

static int url_check(CURLU *url, struct wss_http_get *http, struct wss_error *err)
{
	const struct wss_http_get_options *options = http->options;
	char *scheme = NULL, *host = NULL;
	int r = 0;

	if (strlen(options->url) >= URL_MAX / 2 ||
	    curl_url_set(url, CURLUPART_URL, options->url, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
		r = wss_error_set(err, WSS_ERR_USAGE,
				  "'%.200s' is not a URL such as https://host:9090", options->url);
	else if (url_has(url, CURLUPART_USER) || url_has(url, CURLUPART_PASSWORD))
		r = wss_error_set(err, WSS_ERR_USAGE,
				  "the URL has a user or password, which everybody could see: "
				  "put it into a file");
	else if (url_has(url, CURLUPART_QUERY) || url_has(url, CURLUPART_FRAGMENT))
		r = wss_error_set(err, WSS_ERR_USAGE, "'%.200s' must end before any '?' or '#'",
				  options->url);
	else if (has_secret(options) && strcmp(scheme, "https") != 0 && host_reach(host) != HERE)
		r = wss_error_set(err, WSS_ERR_USAGE,
				  "'%.200s' would get the %s without encryption: use https",
				  options->url,
				  options->token_file  ? "token"
				  : options->user_file ? "password"
						       : "headers");
	else
		http->is_near = host_reach(host) != ELSEWHERE;
	curl_free(scheme);
	curl_free(host);
	return r;
}

static int url_prepare(struct wss_http_get *http, struct wss_error *err)
{
	CURLU *url = curl_url();
	size_t len;
	int r;

	if (!url)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	r = url_check(url, http, err);
	curl_url_cleanup(url);
	if (r < 0)
		return -1;
	len = strlen(http->options->url);
	while (len && http->options->url[len - 1] == '/')
		len--;
	memcpy(http->base, http->options->url, len);
	return 0;
}

/* --- the transfer --- */

static size_t body_append(char *data, size_t size, size_t n, void *opaque)
{
	struct wss_http_get *http = opaque;
	size_t more = size * n;

	if (more > http->options->most_bytes - http->len) {
		http->too_long = true;
		return 0;
	}
	if (http->len + more + 1 > http->room) {
		size_t room = (http->len + more + 1) * 2;
		char *body = realloc(http->body, room);

		if (!body) {
			http->no_memory = true;
			return 0;
		}
		http->body = body;
		http->room = room;
	}
	memcpy(http->body + http->len, data, more);
	http->len += more;
	http->body[http->len] = '\0';
	return more;
}

/* libcurl calls it at least once a second; anything but 0 ends the transfer. */
static int transfer_progress(void *opaque, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)opaque;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return wss_stop_requested();
}

/* Options that do not change from request to request. */
static int curl_prepare(struct wss_http_get *http, struct wss_error *err)
{
	const struct wss_http_get_options *options = http->options;
	CURL *curl = http->curl;
	CURLcode r = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);

#define SET(option, value)                                         \
	do {                                                       \
		if (r == CURLE_OK)                                 \
			r = curl_easy_setopt(curl, option, value); \
	} while (0)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	/* Elsewhere libcurl takes a proxy from the environment, which sees only the host's name of https. */
	if (http->is_near)
		SET(CURLOPT_PROXY, "");
	SET(CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
	SET(CURLOPT_ERRORBUFFER, http->why);
	SET(CURLOPT_WRITEFUNCTION, body_append);
	SET(CURLOPT_WRITEDATA, http);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, transfer_progress);
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)options->most_bytes);
	if (options->ca_file)
		SET(CURLOPT_CAINFO, options->ca_file);
	if (http->token) {
		SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		SET(CURLOPT_XOAUTH2_BEARER, http->token);
	}
	if (http->user) {
		SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		SET(CURLOPT_USERNAME, http->user);
		SET(CURLOPT_PASSWORD, http->password);
	}
	if (http->headers) {
		SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
		SET(CURLOPT_HTTPHEADER, http->headers);
	}
#undef SET
	return r == CURLE_OK
		       ? 0
		       : wss_error_set(err, WSS_ERR_FAILED, "libcurl: %s", curl_easy_strerror(r));
}

int wss_http_get_open(const struct wss_http_get_options *options, struct wss_http_get **ret_http,
		      struct wss_error *err)
{
	struct wss_http_get *http = calloc(1, sizeof(*http));

	if (!http)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	http->options = options;
	if (url_prepare(http, err) < 0 || secrets_read(http, err) < 0) {
		wss_http_get_close(http);
		return -1;
	}
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		http->curl = curl_easy_init();
	if (!http->curl || curl_prepare(http, err) < 0) {
		if (!http->curl)
			wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		wss_http_get_close(http);
		return -1;
	}
	*ret_http = http;
	return 0;
}

void wss_http_get_close(struct wss_http_get *http)
{
	if (!http)
		return;
	if (http->curl)
		curl_easy_cleanup(http->curl);
	if (http->token)
		explicit_bzero(http->token, strlen(http->token));
	if (http->user)
		explicit_bzero(http->password, strlen(http->password));
	for (struct curl_slist *header = http->headers; header; header = header->next)
		explicit_bzero(header->data, strlen(header->data));
	free(http->token);
	free(http->user);
	curl_slist_free_all(http->headers);
	free(http->body);
	free(http);
}

const char *wss_http_get_version(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "libcurl %s", curl_version_info(CURLVERSION_NOW)->version);
	return text;
}

/* --- a request --- */

/* Makes the error of a transfer that ended early. */
static int transfer_error(const struct wss_http_get *http, CURLcode code, struct wss_error *err)
{
	const char *why = http->why[0] ? http->why : curl_easy_strerror(code);
	char size[16], time[16];

	if (http->no_memory || code == CURLE_OUT_OF_MEMORY)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	if (http->too_long || code == CURLE_FILESIZE_EXCEEDED) {
		wss_size_format(http->options->most_bytes, size, sizeof(size));
		return wss_error_set(err, WSS_ERR_FAILED, "the answer is longer than %s", size);
	}
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		wss_duration_format(http->options->timeout_ns, time, sizeof(time));
		return wss_error_set(err, WSS_ERR_TIMEOUT, "no complete answer within %s", time);
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return wss_error_set(err, WSS_ERR_CONNECT, "%s", why);
	default:
		return wss_error_set(err, WSS_ERR_FAILED, "%s", why);
	}
}

static int transfer_run(struct wss_http_get *http, const char *url, long *ret_status,
			struct wss_error *err)
{
	uint64_t now = wss_clock_now_ns(), deadline = http->options->deadline_ns;
	long left_ms = deadline > now ? (long)((deadline - now) / WSS_NS_PER_MS) : 0;
	CURLcode code = CURLE_OPERATION_TIMEDOUT;

	http->len = 0;
	http->too_long = false;
	http->why[0] = '\0';
	/* 0 would be no limit. */
	if (left_ms && (code = curl_easy_setopt(http->curl, CURLOPT_URL, url)) == CURLE_OK &&
	    (code = curl_easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, left_ms)) == CURLE_OK)
		code = curl_easy_perform(http->curl);
	if (code == CURLE_OK)
		code = curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, ret_status);
	if (code != CURLE_OK)
		return transfer_error(http, code, err);
	if (*ret_status < 200 || *ret_status > 599 || (*ret_status >= 300 && *ret_status < 400))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "HTTP status %ld instead of 200: give the URL that it "
				     "redirects to, if it does",
				     *ret_status);
	return 0;
}

int wss_http_get(struct wss_http_get *http, const char *path, const char *name, const char *value,
		 const char *more, const char **ret_body, size_t *ret_len, long *ret_status,
		 struct wss_error *err)
{
	char *escaped = curl_easy_escape(http->curl, value, 0);
	char *url = NULL;
	int r;

	if (!escaped || asprintf(&url, "%s%s?%s=%s%s", http->base, path, name, escaped, more) < 0) {
		curl_free(escaped);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	curl_free(escaped);
	r = transfer_run(http, url, ret_status, err);
	free(url);
	if (r < 0)
		return wss_error_prefix(err, "%s", http->base);
	*ret_body = http->len ? http->body : "";
	*ret_len = http->len;
	return 0;
}
