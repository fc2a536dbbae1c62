/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/config-file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libeconf.h>
#include <libeconf_ext.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"

#define VENDOR_DIRECTORY "/usr/lib/virt-wss"
#define LOCAL_DIRECTORY WSS_SYSCONFDIR "/virt-wss"
#define NAME "serve"
#define SUFFIX ".conf"
#define BLANKS " \t"
#define NOT_A_LINE "neither [SECTION], KEY = VALUE nor # COMMENT"

/* libeconf keeps the place of the last error, and more, in variables of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct config {
	const struct wss_config_events *events;
	void *opaque;
	unsigned faults;
	unsigned files;
};

__attribute__((format(printf, 3, 4))) static void
config_fault(struct config *config, enum wss_error_code code, const char *fmt, ...)
{
	struct wss_error error = WSS_ERROR_INIT;
	char text[sizeof(error.text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wss_error_set(&error, code, "%s", text);
	config->events->error(&error, config->opaque);
	config->faults++;
}

/* --- before libeconf reads a file --- */

/* A line that has a key. */
struct config_key {
	const char *section, *key;
	size_t section_len, key_len;
};

static bool config_key_same(const struct config_key *a, const struct config_key *b)
{
	return a->section_len == b->section_len && a->key_len == b->key_len &&
	       !memcmp(a->section, b->section, a->section_len) &&
	       !memcmp(a->key, b->key, a->key_len);
}

struct config_check {
	struct config *config;
	const char *file;
	uint64_t line;
	struct config_key section; /* of the lines that follow; only its section is set */
	struct config_key keys[WSS_CONFIG_LINES_MAX];
	size_t n_keys;
};

static void check_fault(struct config_check *check, const char *text)
{
	config_fault(check->config, WSS_ERR_USAGE, "%s:%" PRIu64 ": %s", check->file, check->line,
		     text);
}

static void check_key_fault(struct config_check *check, const struct config_key *key,
			    const char *text)
{
	bool has_section = key->section_len > 0;

	config_fault(check->config, WSS_ERR_USAGE, "%s:%" PRIu64 ": %s%.*s%s%.*s%s", check->file,
		     check->line, has_section ? "[" : "", (int)key->section_len, key->section,
		     has_section ? "] " : "", (int)key->key_len, key->key, text);
}

/* A line KEY = VALUE of that length, without a comment. */
static void check_key(struct config_check *check, const char *line, size_t len)
{
	struct config_key key = check->section;
	size_t value = strcspn(line, "=") + 1;

	key.key = line;
	key.key_len = strcspn(line, "=" BLANKS);
	if (line[key.key_len + strspn(line + key.key_len, BLANKS)] != '=') {
		check_fault(check, NOT_A_LINE);
		return;
	}
	for (size_t i = 0; i < check->n_keys; i++)
		if (config_key_same(&check->keys[i], &key)) {
			check_key_fault(check, &key, " is set twice in this file");
			return;
		}
	check->keys[check->n_keys++] = key;
	/* libeconf 0.5.1 reads on behind a value that is only blanks, or a single quotation mark. */
	if (value + strspn(line + value, BLANKS "\"") >= len)
		check_key_fault(check, &key, ": the value is empty");
}

/* A line [SECTION] of that length. After a fault the lines below are checked as those of the section that was meant. */
static void check_section(struct config_check *check, const char *line, size_t len)
{
	const char *name = line + 1, *end = memchr(name, ']', len - 1);

	check->section.section = name;
	check->section.section_len = end ? (size_t)(end - name) : len - 1;
	if (!end)
		check_fault(check, "the ] of the section is missing");
	else if (end == name)
		check_fault(check, "the section has no name");
	else if (end + 1 + strspn(end + 1, BLANKS) < line + len)
		check_fault(check, "text after the section's ]");
}

/* A line without blanks at its beginning. */
static void check_line(struct config_check *check, const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f) {
			check_fault(check, "the line contains a control character");
			return;
		}
	len = strcspn(line, "#\n");
	if (!len)
		return;
	if (line[0] == '[')
		check_section(check, line, len);
	else if (line[0] == '=' || !memchr(line, '=', len))
		check_fault(check, NOT_A_LINE);
	else
		check_key(check, line, len);
}

static void check_text(struct config_check *check, const char *text)
{
	while (*text) {
		size_t blanks = strspn(text, BLANKS), len = strcspn(text + blanks, "\n");

		if (++check->line > WSS_CONFIG_LINES_MAX) {
			config_fault(check->config, WSS_ERR_USAGE, "%s: more than %d lines",
				     check->file, WSS_CONFIG_LINES_MAX);
			return;
		}
		if (blanks + len > WSS_CONFIG_LINE_MAX)
			check_fault(check, "the line is longer than 1024 bytes");
		else
			check_line(check, text + blanks, len);
		text += blanks + len;
		text += *text == '\n';
	}
}

/*
 * Checks a file, which may be missing unless it is required. *ret_text, which the caller frees, is what it says: NULL if it
 * could not be read.
 */
static void config_check_text(struct config *config, const char *path, bool required,
			      char **ret_text)
{
	wss_auto_free struct config_check *check = calloc(1, sizeof(*check));
	struct wss_error error = WSS_ERROR_INIT;
	wss_auto_free char *text = NULL;
	size_t len;

	if (!check) {
		config_fault(config, WSS_ERR_NO_MEMORY, "out of memory");
		return;
	}
	if (wss_file_read(path, WSS_CONFIG_BYTES_MAX, &text, &len, &error) < 0) {
		if (required || error.code != WSS_ERR_GONE)
			config_fault(config, error.code, "%s: %s", path, error.text);
		return;
	}
	config->files++;
	check->config = config;
	check->file = path;
	check->section.section = "";
	if (memchr(text, '\0', len))
		config_fault(config, WSS_ERR_USAGE, "%s: binary file, not a configuration", path);
	else
		check_text(check, text);
	*ret_text = wss_steal_ptr(text);
}

static void config_check_file(struct config *config, const char *path, bool required)
{
	wss_auto_free char *text = NULL;

	config_check_text(config, path, required, &text);
}

bool wss_config_is_drop_in(const char *name)
{
	size_t len = strlen(name);

	return len > strlen(SUFFIX) && !strcmp(name + len - strlen(SUFFIX), SUFFIX);
}

static int is_drop_in(const struct dirent *entry)
{
	return wss_config_is_drop_in(entry->d_name);
}

/* Checks whatever libeconf may read below a directory. */
static void config_check_directory(struct config *config, const char *directory)
{
	char path[4096], above[4096];
	struct dirent **list = NULL;
	int n;

	snprintf(path, sizeof(path), "%s/" NAME SUFFIX, directory);
	config_check_file(config, path, false);
	snprintf(above, sizeof(above), "%s/" NAME SUFFIX ".d", directory);
	n = scandir(above, &list, is_drop_in, alphasort);
	for (int i = 0; i < n; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", above, list[i]->d_name) <
		    sizeof(path))
			config_check_file(config, path, true);
		free(list[i]);
	}
	free(list);
}

/* --- what libeconf has read --- */

static void config_econf_fault(struct config *config, econf_err code)
{
	uint64_t line = 0;
	wss_auto_free char *file = NULL;

	econf_errLocation(&file, &line);
	config_fault(config, code == ECONF_NOMEM ? WSS_ERR_NO_MEMORY : WSS_ERR_USAGE,
		     "%s:%" PRIu64 ": %s", file ? file : "configuration", line,
		     econf_errString(code));
}

static econf_err config_pass_entry(struct config *config, econf_file *file, const char *group,
				   const char *key)
{
	wss_auto_free char *path = econf_getPath(file), *value = NULL;
	struct wss_config_entry entry = {
		.file = path ? path : "", .section = group ? group : "", .key = key};
	econf_ext_value *extra = NULL;
	econf_err code = econf_getExtValue(file, group, key, &extra);

	if (code == ECONF_SUCCESS) {
		entry.line = extra->line_number;
		econf_freeExtValue(extra);
		code = econf_getStringValue(file, group, key, &value);
	}
	if (code != ECONF_SUCCESS)
		return code;
	/*
	 * libeconf 0.5.1 takes an indented comment for a continuation of the line above, and keeps its line break.
	 * Nothing else follows a break: each line was checked to be a whole setting.
	 */
	if (value)
		value[strcspn(value, "\n")] = '\0';
	entry.value = value ? value : "";
	config->events->entry(&entry, config->opaque);
	return ECONF_SUCCESS;
}

/* group NULL: the lines above the first section. */
static econf_err config_pass_group(struct config *config, econf_file *file, const char *group)
{
	char **keys = NULL;
	size_t n = 0;
	econf_err code = econf_getKeys(file, group, &n, &keys);

	if (code != ECONF_SUCCESS)
		return code == ECONF_NOKEY || code == ECONF_NOGROUP ? ECONF_SUCCESS : code;
	for (size_t i = 0; i < n && code == ECONF_SUCCESS; i++)
		code = config_pass_entry(config, file, group, keys[i]);
	econf_freeArray(keys);
	return code;
}

static bool group_seen(char **groups, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(groups[i], groups[j]))
			return true;
	return false;
}

static void config_pass_file(struct config *config, econf_file *file)
{
	econf_err code = config_pass_group(config, file, NULL);
	char **groups = NULL;
	size_t n = 0;

	if (code == ECONF_SUCCESS && econf_getGroups(file, &n, &groups) != ECONF_SUCCESS)
		n = 0;
	/* A section that is opened twice is listed twice, each time with all of its keys. */
	for (size_t i = 0; i < n && code == ECONF_SUCCESS; i++)
		if (!group_seen(groups, i))
			code = config_pass_group(config, file, groups[i]);
	if (groups)
		econf_freeArray(groups);
	if (code != ECONF_SUCCESS)
		config_econf_fault(config, code);
}

/* Whether this is a drop-in, and a later one has the same name and so replaces it, as in
 * econf_readDirs(). */
static bool config_is_replaced(econf_file **files, size_t i, size_t n)
{
	wss_auto_free char *path = econf_getPath(files[i]);
	bool replaced = false;

	if (!path || !strstr(path, NAME SUFFIX ".d/"))
		return false;
	for (size_t j = i + 1; j < n && !replaced; j++) {
		wss_auto_free char *other = econf_getPath(files[j]);

		replaced = other && !strcmp(basename(path), basename(other));
	}
	return replaced;
}

static void config_pass_directories(struct config *config, const char *vendor, const char *local)
{
	econf_file **files = NULL;
	size_t n = 0;
	econf_err code = econf_readDirsHistory(&files, &n, vendor, local, NAME, SUFFIX, "=", "#");

	if (code == ECONF_NOFILE)
		return;
	if (code != ECONF_SUCCESS) {
		config_econf_fault(config, code);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!config_is_replaced(files, i, n))
			config_pass_file(config, files[i]);
		econf_freeFile(files[i]);
	}
	free(files);
}

static void config_read_directories(struct config *config)
{
	const char *root = wss_test_sysroot();
	char vendor[4096], local[4096];

	if (!strcmp(root, "/"))
		root = "";
	if (snprintf(vendor, sizeof(vendor), "%s" VENDOR_DIRECTORY, root) > 3000)
		return;
	snprintf(local, sizeof(local), "%s" LOCAL_DIRECTORY, root);
	config_check_directory(config, vendor);
	config_check_directory(config, local);
	if (config->files && !config->faults)
		config_pass_directories(config, vendor, local);
}

static void config_read_file(struct config *config, const char *path)
{
	econf_file *file = NULL;
	econf_err code;

	config_check_file(config, path, true);
	if (config->faults)
		return;
	code = econf_readFile(&file, path, "=", "#");
	if (code != ECONF_SUCCESS) {
		config_econf_fault(config, code);
		return;
	}
	config_pass_file(config, file);
	econf_freeFile(file);
}

int wss_config_read(const char *path, const struct wss_config_events *events, void *opaque)
{
	struct config config = {.events = events, .opaque = opaque};

	pthread_mutex_lock(&lock);
	if (path)
		config_read_file(&config, path);
	else
		config_read_directories(&config);
	pthread_mutex_unlock(&lock);
	return config.faults ? -1 : 0;
}

/* --- files with a section for each of many --- */

/* Cuts blanks from both ends of a text, and the quotation marks around the rest. */
static char *text_trim(char *text, bool quoted)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len && strchr(BLANKS, text[len - 1]))
		len--;
	if (quoted && len > 1 && text[0] == '"' && text[len - 1] == '"') {
		text++;
		len -= 2;
	}
	text[len] = '\0';
	return text;
}

/*
 * Passes the entries of a checked text in their order, and changes it. libeconf 0.5.1 cannot read such files: it drops each key
 * that another section has already had.
 */
static void config_pass_text(struct config *config, const char *path, char *text)
{
	struct wss_config_entry entry = {.file = path, .section = ""};
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char *value;

		entry.line++;
		line[strcspn(line, "#")] = '\0';
		line += strspn(line, BLANKS);
		if (line[0] == '[') {
			line[strcspn(line, "]")] = '\0';
			entry.section = line + 1;
		} else if ((value = strchr(line, '='))) {
			*value++ = '\0';
			entry.key = text_trim(line, false);
			entry.value = text_trim(value, true);
			config->events->entry(&entry, config->opaque);
		}
	}
}

static void config_read_private_file(struct config *config, const char *directory, const char *name)
{
	wss_auto_free char *path = NULL, *resolved = NULL, *text = NULL;
	struct wss_error error = WSS_ERROR_INIT;
	struct stat st;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		config_fault(config, WSS_ERR_NO_MEMORY, "out of memory");
	} else if (wss_place_resolve_private(path, &resolved, &error) < 0) {
		config_fault(config, error.code, "%s: %s", path, error.text);
	} else if (lstat(resolved, &st) < 0) {
		config_fault(config, WSS_ERR_FAILED, "%s: %s", path, strerror(errno));
	} else if (wss_file_check_regular(&st, &error) < 0 ||
		   wss_file_check_private(resolved, &st, "it", &error) < 0) {
		config_fault(config, error.code, "%s: %s", path, error.text);
	} else {
		config_check_text(config, path, true, &text);
		if (text && !config->faults)
			config_pass_text(config, path, text);
	}
}

int wss_config_read_private(const char *directory, const struct wss_config_events *events,
			    void *opaque)
{
	struct config config = {.events = events, .opaque = opaque};
	struct dirent **list = NULL;
	int n = scandir(directory, &list, is_drop_in, alphasort);

	if (n < 0 && errno != ENOENT)
		config_fault(&config, WSS_ERR_FAILED, "%s: %s", directory, strerror(errno));
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n; i++) {
		config_read_private_file(&config, directory, list[i]->d_name);
		free(list[i]);
	}
	pthread_mutex_unlock(&lock);
	free(list);
	return config.faults ? -1 : 0;
}
