/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

void wss_cgroup_path(const struct wss_root *root, const char *text, const char *controller,
		     char ret_path[PATH_MAX])
{
	size_t len = strlen(controller);

	ret_path[0] = '\0';
	for (const char *line = text; line && *line;
	     line = strchrnul(line, '\n'), line += *line == '\n') {
		const char *list = strchr(line, ':'), *path = list ? strchr(++list, ':') : NULL;
		bool found = path && !len && path == list;

		if (!path)
			return;
		for (const char *word = list; len && word < path; word += strcspn(word, ",:") + 1)
			found = found ||
				(strcspn(word, ",:") == len && !strncmp(word, controller, len));
		if (!found)
			continue;
		path++;
		for (int unified = 0; unified < 2 && !ret_path[0]; unified++) {
			wss_auto_close int fd = -1;

			snprintf(ret_path, PATH_MAX, "sys/fs/cgroup%s%.*s%.*s",
				 len	   ? "/"
				 : unified ? "/unified"
					   : "",
				 len ? (int)(path - 1 - list) : 0, list, (int)strcspn(path, "\n"),
				 path);
			fd = wss_root_openat(root, ret_path, O_PATH | O_DIRECTORY);
			if (fd < 0)
				ret_path[0] = '\0';
		}
		return;
	}
}

char *wss_cgroup_read(const struct wss_root *root, const char *directory, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    wss_root_read(root, path, WSS_CGROUP_MAX_BYTES, &text, &len) < 0)
		return NULL;
	return text;
}

bool wss_cgroup_says(const struct wss_root *root, const char *directory, const char *name,
		     const char *word)
{
	wss_auto_free char *text = wss_cgroup_read(root, directory, name);
	const char *at = text ? strstr(text, word) : NULL;

	return at && (at == text || at[-1] == '\n') && at[strlen(word)] != '0';
}

bool wss_cgroup_is_frozen(const struct wss_root *root, const char *text)
{
	char path[PATH_MAX];

	wss_cgroup_path(root, text, "", path);
	if (path[0] && wss_cgroup_says(root, path, "cgroup.events", "frozen "))
		return true;
	wss_cgroup_path(root, text, "freezer", path);
	return path[0] && wss_cgroup_says(root, path, "freezer.state", "FROZEN");
}
