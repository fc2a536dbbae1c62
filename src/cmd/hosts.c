/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

#define TIMEOUT_MAX_NS (3600 * WSS_NS_PER_S)
#define FILE_MAX (1024 * 1024)

int wss_hosts_option(struct wss_hosts *hosts, int c, const char *value, struct wss_error *err)
{
	switch (c) {
	case WSS_OPT_HOSTS:
		hosts->file = value;
		return 1;
	case WSS_OPT_TIMEOUT:
		return wss_duration_parse(value, TIMEOUT_MAX_NS, "--timeout", &hosts->timeout_ns,
					  err) < 0
			       ? -1
			       : 1;
	default:
		return 0;
	}
}

static int read_file(struct wss_hosts *hosts, struct wss_error *err)
{
	size_t len;

	if (wss_file_read(hosts->file, FILE_MAX, &hosts->text, &len, err) < 0) {
		if (err->code == WSS_ERR_INTERRUPTED)
			return -1;
		err->code = WSS_ERR_USAGE;
		return wss_error_prefix(err, "--hosts: cannot read '%s'", hosts->file);
	}
	/* What comes after it would be left out without a word. */
	if (strlen(hosts->text) != len)
		return wss_error_set(err, WSS_ERR_USAGE, "--hosts: '%s' is no text", hosts->file);
	return 0;
}

/* The line without what is blank around it; NULL for one that names no host. */
static const char *uri_of_line(char *line)
{
	char *end;

	line += strspn(line, " \t\r");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return *line && *line != '#' ? line : NULL;
}

static int split(struct wss_hosts *hosts, struct wss_error *err)
{
	size_t lines = 1;
	char *rest = hosts->text, *line;

	for (const char *at = hosts->text; *at; at++)
		lines += *at == '\n';
	hosts->uris = calloc(lines, sizeof(*hosts->uris));
	if (!hosts->uris)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	while ((line = strsep(&rest, "\n"))) {
		const char *uri = uri_of_line(line);

		if (uri)
			hosts->uris[hosts->n++] = uri;
	}
	if (!hosts->n)
		return wss_error_set(err, WSS_ERR_USAGE, "--hosts: '%s' names no host", hosts->file);
	return 0;
}

static int take_connects(struct wss_hosts *hosts, const struct wss_cli *cli, struct wss_error *err)
{
	hosts->n = cli->n_uris ? cli->n_uris : 1;
	hosts->uris = calloc(hosts->n, sizeof(*hosts->uris));
	if (!hosts->uris)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < cli->n_uris; i++)
		hosts->uris[i] = cli->uris[i];
	return 0;
}

int wss_hosts_finish(struct wss_hosts *hosts, const struct wss_cli *cli, struct wss_error *err)
{
	if (hosts->file && cli->n_uris)
		return wss_error_set(err, WSS_ERR_USAGE, "--hosts and --connect exclude each other");
	if (hosts->file ? read_file(hosts, err) < 0 || split(hosts, err) < 0
			: take_connects(hosts, cli, err) < 0)
		return -1;
	if (hosts->n > 1 && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "DOMAIN and several hosts exclude each other");
	if (hosts->file && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--hosts and DOMAIN exclude each other");
	return 0;
}

void wss_hosts_free(struct wss_hosts *hosts)
{
	free(hosts->uris);
	free(hosts->text);
}
