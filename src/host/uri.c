/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/uri.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decodes %XX in len characters into out; -1 if it does not fit or would contain a NUL. */
static int percent_decode(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%' && i + 2 < len && isxdigit((unsigned char)text[i + 1]) &&
		    isxdigit((unsigned char)text[i + 2])) {
			c = (char)strtoul((char[]){text[i + 1], text[i + 2], '\0'}, NULL, 16);
			i += 2;
		}
		if (!c || n + 1 >= size)
			return -1;
		out[n++] = c;
	}
	out[n] = '\0';
	return 0;
}

/* Finds the value of key in a query ("a=b&c=d"). Returns its length, or -1 if it is missing. */
static int find_parameter(const char *query, const char *key, const char **ret_value)
{
	size_t key_len = strlen(key);

	while (query && *query) {
		size_t len = strcspn(query, "&;#");

		if (len > key_len && !strncmp(query, key, key_len) && query[key_len] == '=') {
			*ret_value = query + key_len + 1;
			return (int)(len - key_len - 1);
		}
		query += len + (query[len] != '\0');
	}
	return -1;
}

static int set_embed_dir(const char *query, struct wss_uri *uri, struct wss_error *err)
{
	char root[sizeof(uri->run_dir) - sizeof("/run/qemu")];
	const char *value;
	int len = find_parameter(query, "root", &value);

	if (len < 0 || percent_decode(value, (size_t)len, root, sizeof(root)) < 0 || root[0] != '/')
		return wss_error_set(err, WSS_ERR_FAILED,
				     "an embed URI needs root=/absolute/directory");
	snprintf(uri->run_dir, sizeof(uri->run_dir), "%s/run/qemu", root);
	return 0;
}

/* "qemu+ext://", for example, may lead anywhere although it names no server. */
static bool has_transport(const char *text)
{
	size_t len = strcspn(text, "+:");

	return text[len] == '+' && strncmp(text + len, "+unix:", 6) != 0;
}

static void set_session_dir(const char *runtime_dir, const char *cache_dir, struct wss_uri *uri)
{
	const char *base = runtime_dir ? runtime_dir : cache_dir;

	if (base && (size_t)snprintf(uri->run_dir, sizeof(uri->run_dir), "%s/libvirt/qemu/run",
				     base) >= sizeof(uri->run_dir))
		uri->run_dir[0] = '\0';
}

int wss_uri_parse(const char *text, const char *runtime_dir, const char *cache_dir,
		  struct wss_uri *ret_uri, struct wss_error *err)
{
	struct wss_uri uri = {.kind = WSS_URI_OTHER};
	const char *authority = strstr(text, "://"), *path, *query, *unused;
	size_t path_len;

	if (!authority)
		return wss_error_set(err, WSS_ERR_FAILED, "'%s' is not a libvirt URI", text);
	authority += 3;
	path = authority + strcspn(authority, "/?");
	uri.has_server = path != authority;
	path_len = strcspn(path, "?");
	query = path[path_len] ? path + path_len + 1 : NULL;
	uri.own_socket = has_transport(text) || find_parameter(query, "socket", &unused) >= 0;

	if (!strncmp(text, "qemu:", 5) || !strncmp(text, "qemu+", 5)) {
		if (path_len == 7 && !strncmp(path, "/system", 7)) {
			uri.kind = WSS_URI_SYSTEM;
			snprintf(uri.run_dir, sizeof(uri.run_dir), "/run/libvirt/qemu");
		} else if (path_len == 8 && !strncmp(path, "/session", 8)) {
			uri.kind = WSS_URI_SESSION;
			set_session_dir(runtime_dir, cache_dir, &uri);
		} else if (path_len == 6 && !strncmp(path, "/embed", 6)) {
			uri.kind = WSS_URI_EMBED;
			if (set_embed_dir(query, &uri, err) < 0)
				return -1;
		}
	}
	*ret_uri = uri;
	return 0;
}
