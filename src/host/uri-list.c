/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/uri-list.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

#define FILE_MAX (1024 * 1024)

static int uri_list_read_text(const char *path, char **ret_text, struct wss_error *err)
{
	wss_auto_free char *text = NULL;
	size_t len;

	if (wss_file_read(path, FILE_MAX, &text, &len, err) < 0) {
		if (err->code == WSS_ERR_INTERRUPTED)
			return -1;
		if (err->code != WSS_ERR_NO_MEMORY)
			err->code = WSS_ERR_USAGE;
		return wss_error_prefix(err, "cannot read '%s'", path);
	}
	/* Lines after the zero byte would silently be left out. */
	if (strlen(text) != len)
		return wss_error_set(err, WSS_ERR_USAGE, "'%s' is not a text file", path);
	*ret_text = wss_steal_ptr(text);
	return 0;
}

/* Returns the line without the white space around it; NULL if it names no host. */
static const char *uri_of_line(char *line)
{
	char *end;

	line += strspn(line, " \t\r");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return *line && *line != '#' ? line : NULL;
}

static int uri_list_split(struct wss_uri_list *list, struct wss_error *err)
{
	char *rest = list->text, *line;
	size_t lines = 1;

	for (const char *at = list->text; *at; at++)
		lines += *at == '\n';
	list->uris = calloc(lines, sizeof(*list->uris));
	if (!list->uris)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	while ((line = strsep(&rest, "\n"))) {
		const char *uri = uri_of_line(line);

		if (uri)
			list->uris[list->n++] = uri;
	}
	return 0;
}

int wss_uri_list_read(const char *path, struct wss_uri_list *ret_list, struct wss_error *err)
{
	wss_auto_uri_list struct wss_uri_list list = {.n = 0};

	if (uri_list_read_text(path, &list.text, err) < 0 || uri_list_split(&list, err) < 0)
		return -1;
	if (!list.n)
		return wss_error_set(err, WSS_ERR_USAGE, "'%s' names no host", path);
	*ret_list = list;
	list = (struct wss_uri_list){.n = 0};
	return 0;
}

void wss_uri_list_free(struct wss_uri_list *list)
{
	free(list->uris);
	free(list->text);
}
