/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/start-check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/config-file.h"
#include "base/fault.h"
#include "base/newfile.h"
#include "base/root.h"
#include "cold/ages.h"

/* That systemd makes before it starts the service: RuntimeDirectory= and StateDirectory= of its unit. */
static const char *const unit_directories[] = {"/run/virt-wss/", "/var/lib/virt-wss/"};

struct start_check {
	const struct wss_start_check_events *events;
	void *opaque;
};

static void start_fault(const struct start_check *check, const struct wss_error *error)
{
	check->events->fault(error, check->opaque);
}

/* Reports why a file cannot be made: its directory may be one that does not exist yet. */
static void start_fault_of_file(const struct start_check *check, const char *path,
				const struct wss_error *error)
{
	size_t len = (size_t)(strrchr(path, '/') ? strrchr(path, '/') + 1 - path : 0);
	struct wss_error text = WSS_ERROR_INIT;

	for (size_t i = 0; i < sizeof(unit_directories) / sizeof(unit_directories[0]); i++)
		if (error->code == WSS_ERR_GONE && len == strlen(unit_directories[i]) &&
		    !strncmp(path, unit_directories[i], len)) {
			wss_error_set(&text, WSS_ERR_GONE,
				      "%s: virt-wss.service makes that directory when it starts, "
				      "a service without it does not",
				      error->text);
			check->events->warning(text.text, check->opaque);
			return;
		}
	start_fault(check, error);
}

/* --- what the unit lets the service write --- */

struct unit {
	const char *path; /* that is looked for */
	bool is_strict;	  /* all is read-only but what it names */
	bool allows;
};

static bool is_below(const char *path, const char *directory, size_t len)
{
	while (len && directory[len - 1] == '/')
		len--;
	return !strncmp(path, directory, len) && path[len] == '/';
}

/* Takes a value of ReadWritePaths=, which adds to those before it; an empty one drops them. */
static void unit_take_paths(struct unit *unit, char *value)
{
	char *rest = NULL, *word = strtok_r(value, " \t\n", &rest);

	if (!word)
		unit->allows = false;
	for (; word; word = strtok_r(NULL, " \t\n", &rest)) {
		word += strspn(word, "-+");
		unit->allows |= is_below(unit->path, word, strlen(word));
	}
}

/* Returns false if there is no such file. */
static bool unit_read(struct unit *unit, const struct wss_root *root, const char *file)
{
	static const char protect[] = "ProtectSystem=", paths[] = "ReadWritePaths=";
	wss_auto_file FILE *stream = NULL;
	wss_auto_free char *line = NULL;
	size_t size = 0;

	if (wss_root_fopen(root, file, &stream) < 0)
		return false;
	while (getline(&line, &size, stream) >= 0) {
		if (!strncmp(line, protect, strlen(protect)))
			unit->is_strict = !strncmp(line + strlen(protect), "strict", 6);
		else if (!strncmp(line, paths, strlen(paths)))
			unit_take_paths(unit, line + strlen(paths));
	}
	return true;
}

static void unit_read_drop_ins(struct unit *unit, const struct wss_root *root, const char *name)
{
	wss_auto_dir DIR *dir = NULL;
	char file[PATH_MAX];

	if (wss_root_opendir(root, name, &dir) < 0)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		snprintf(file, sizeof(file), "%s/%s", name, entry->d_name);
		if (wss_config_is_drop_in(entry->d_name))
			unit_read(unit, root, file);
	}
}

/*
 * Warns of a path that the installed unit does not let the service write, where it is not this command that does. A
 * relative one is the command's own. What the service writes to /tmp nobody else sees (PrivateTmp=).
 */
static void check_unit(const struct start_check *check, const char *path)
{
	/* In systemd's order: the first counts. */
	static const char *const places[] = {"etc", "run", "usr/local/lib", "usr/lib", "lib"};
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	struct unit unit = {.path = path};
	struct wss_error text = WSS_ERROR_INIT;
	char file[PATH_MAX];
	bool found = false;

	if (!path || path[0] != '/' || wss_root_open(wss_test_sysroot(), &root, &text) < 0)
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		snprintf(file, sizeof(file), "%s/systemd/system/virt-wss.service", places[i]);
		found = unit_read(&unit, &root, file);
	}
	unit_read_drop_ins(&unit, &root, "etc/systemd/system/virt-wss.service.d");
	for (size_t i = 0; i < sizeof(unit_directories) / sizeof(unit_directories[0]); i++)
		unit.allows |= is_below(path, unit_directories[i], strlen(unit_directories[i]));
	if (!unit.is_strict || unit.allows)
		return;
	wss_error_set(
		&text, WSS_ERR_FAILED,
		"%s: virt-wss.service may not write there: add ReadWritePaths=%.*s by systemctl "
		"edit virt-wss.service",
		path, (int)(strrchr(path, '/') - path), path);
	check->events->warning(text.text, check->opaque);
}

/* --- the checks --- */

static void check_textfile(const struct start_check *check, const char *path)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (path && wss_newfile_check(path, &error) < 0) {
		wss_error_prefix(&error, "%s", path);
		start_fault_of_file(check, path, &error);
	}
	check_unit(check, path);
}

static void check_history(const struct start_check *check, const char *path)
{
	struct wss_error error = WSS_ERROR_INIT;
	wss_auto_free char *ages = NULL;

	if (!path)
		return;
	check_unit(check, path);
	if (wss_history_check(path, &error) < 0) {
		start_fault(check, &error);
	} else if (wss_ages_find_directory(path, false, &ages, &error) < 0 &&
		   error.code != WSS_ERR_GONE) {
		wss_error_prefix(&error, "cannot keep the ages of memory");
		start_fault(check, &error);
	}
}

static void check_http(const struct start_check *check, const struct wss_http_options *http)
{
	struct wss_error error = WSS_ERROR_INIT, text = WSS_ERROR_INIT;
	char name[WSS_HTTP_ADDRESS_TEXT_MAX];

	for (size_t i = 0; i < http->n_addresses; i++) {
		wss_http_address_format(&http->addresses[i], name);
		if (!strncmp(name, "unix:", 5))
			check_unit(check, name + 5);
		if (wss_http_listen_check(&http->addresses[i], &error) == 0)
			continue;
		start_fault_of_file(check, strchr(name, ':') + 1, &error);
		wss_error_clear(&error);
	}
	if (wss_http_check_user(http->user, &error) == 0)
		return;
	if (http->n_addresses) {
		start_fault(check, &error);
		return;
	}
	wss_error_set(&text, error.code, "%s, should the service be passed a socket", error.text);
	check->events->warning(text.text, check->opaque);
}

void wss_start_check(const struct wss_serve_options *options,
		     const struct wss_start_check_events *events, void *opaque)
{
	const struct start_check check = {events, opaque};

	check_textfile(&check, options->textfile);
	check_history(&check, options->history);
	check_http(&check, &options->http);
}
