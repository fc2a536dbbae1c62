/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/policy-file.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/config-file.h"
#include "base/fault.h"
#include "base/units.h"

#define DIRECTORY WSS_SYSCONFDIR "/virt-wss/policy.d"

enum { KEY_MINIMUM, KEY_MAXIMUM, KEY_HEADROOM, KEY_PERIOD, KEY_OPT_OUT, KEYS };

/* Where a setting is. */
struct place {
	char file[PATH_MAX];
	uint64_t line; /* 0: it is nowhere */
};

struct search {
	const struct wss_guest *guest;
	struct wss_policy policy;
	struct place places[KEYS];
	struct wss_error error; /* the first */
};

/* --- sections that have been those of a guest, of all threads --- */

static pthread_mutex_t fits_lock = PTHREAD_MUTEX_INITIALIZER;
static char **fits;
static size_t n_fits;
static bool any_read; /* a guest's policy is in files, not in libvirt's metadata */

static bool section_fits(const char *section)
{
	bool found = false;

	pthread_mutex_lock(&fits_lock);
	for (size_t i = 0; i < n_fits && !found; i++)
		found = !strcmp(fits[i], section);
	pthread_mutex_unlock(&fits_lock);
	return found;
}

/* Without memory a section stays unknown, which costs a warning. */
static void note_fit(const char *section)
{
	char **list;

	if (section_fits(section))
		return;
	pthread_mutex_lock(&fits_lock);
	list = reallocarray(fits, n_fits + 1, sizeof(*list));
	if (list) {
		fits = list;
		fits[n_fits] = strdup(section);
		n_fits += fits[n_fits] != NULL;
	}
	pthread_mutex_unlock(&fits_lock);
}

/* --- a guest's policy --- */

static void search_fail(const struct wss_error *error, void *opaque)
{
	struct search *search = opaque;

	if (!search->error.code)
		wss_error_set(&search->error, WSS_ERR_FAILED, "policy in %s", error->text);
}

/* A fault of the file, which keeps every guest from being measured. */
static void search_fail_file(const struct wss_error *error, void *opaque)
{
	struct search *search = opaque;
	bool first = !search->error.code;

	search_fail(error, search);
	search->error.shared |= first;
}

static int policy_take(struct search *search, const struct wss_config_entry *entry,
		       struct wss_error *err)
{
	static const char *const names[KEYS] = {"minimum", "maximum", "headroom", "period",
						"opt-out"};
	struct wss_policy *policy = &search->policy;
	struct wss_amount *const amounts[KEYS] = {&policy->minimum_bytes, &policy->maximum_bytes,
						  &policy->headroom_percent, &policy->period_ns};
	const char *key = entry->key, *value = entry->value;
	struct wss_amount read = {.known = true};
	size_t which = 0;
	int r = 0;

	while (which < KEYS && strcmp(key, names[which]) != 0)
		which++;
	if (which == KEYS)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"unknown key '%s' (known: opt-out, minimum, maximum, headroom, period)",
			key);
	if (which == KEY_MINIMUM || which == KEY_MAXIMUM)
		r = wss_size_parse(value, key, &read.value, err);
	else if (which == KEY_HEADROOM)
		r = wss_whole_percent_parse(value, 0, WSS_POLICY_HEADROOM_MAX, key, &read.value,
					    err);
	else if (which == KEY_PERIOD)
		r = wss_duration_parse(value, WSS_POLICY_PERIOD_MAX_NS, key, &read.value, err);
	if (r < 0)
		return -1;
	snprintf(search->places[which].file, PATH_MAX, "%s", entry->file);
	search->places[which].line = entry->line;
	if (amounts[which])
		*amounts[which] = read;
	/* Anything but a clear "no" keeps virt-wss away from the guest. */
	else
		policy->opt_out = strcmp(value, "no") != 0;
	return 0;
}

static bool is_of_guest(const char *section, const struct wss_guest *guest)
{
	for (size_t i = 0; i < sizeof(guest->aliases) / sizeof(guest->aliases[0]); i++)
		if (guest->aliases[i] && !strcmp(section, guest->aliases[i]))
			return true;
	return !strcmp(section, guest->config.name) || !strcasecmp(section, guest->config.uuid);
}

static void search_entry(const struct wss_config_entry *entry, void *opaque)
{
	struct search *search = opaque;
	struct wss_error error = WSS_ERROR_INIT, place = WSS_ERROR_INIT;
	int r = 0;

	if (!entry->section[0])
		r = wss_error_set(&error, WSS_ERR_FAILED,
				  "the section of a guest is missing before it: [NAME] or [UUID]");
	else if (is_of_guest(entry->section, search->guest))
		r = policy_take(search, entry, &error);
	else
		return;
	if (entry->section[0])
		note_fit(entry->section);
	if (r == 0)
		return;
	wss_error_set(&place, WSS_ERR_FAILED, "%s:%llu: %s", entry->file,
		      (unsigned long long)entry->line, error.text);
	if (entry->section[0])
		search_fail(&place, search);
	else
		search_fail_file(&place, search);
}

/* Names both settings, each of which may be in a file of its own. */
static void search_fail_limits(struct search *search, const char *why)
{
	const struct place *minimum = &search->places[KEY_MINIMUM],
			   *maximum = &search->places[KEY_MAXIMUM];
	struct wss_error error = WSS_ERROR_INIT;

	wss_error_set(&error, WSS_ERR_FAILED, "%s:%" PRIu64 " and %s:%" PRIu64 ": %s: %s",
		      minimum->file, minimum->line, maximum->file, maximum->line,
		      search->guest->config.name, why);
	search_fail(&error, search);
}

static void directory_path(char ret_path[PATH_MAX])
{
	const char *root = wss_test_sysroot();

	snprintf(ret_path, PATH_MAX, "%s%s", strcmp(root, "/") ? root : "", DIRECTORY);
}

int wss_policy_file_read(const struct wss_guest *guest, struct wss_policy *ret_policy,
			 struct wss_error *err)
{
	static const struct wss_config_events events = {search_entry, search_fail_file};
	wss_auto_free struct search *search = calloc(1, sizeof(*search));
	struct wss_error error = WSS_ERROR_INIT;
	char directory[PATH_MAX];

	if (!search)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	search->guest = guest;
	directory_path(directory);
	pthread_mutex_lock(&fits_lock);
	any_read = true;
	pthread_mutex_unlock(&fits_lock);
	wss_config_read_private(directory, &events, search);
	if (!search->error.code && wss_policy_check(&search->policy, &error) < 0)
		search_fail_limits(search, error.text);
	if (search->error.code) {
		if (err)
			*err = search->error;
		return -1;
	}
	*ret_policy = search->policy;
	return 0;
}

/* --- what is of no guest --- */

struct unused {
	wss_policy_unused on_unused;
	void *opaque;
	bool sections, any_read;
	const char *const *guests;
	char last[WSS_CONFIG_LINE_MAX]; /* section, of which only the first key is told */
};

static bool section_is_listed(const char *section, const char *const *guests)
{
	while (guests && *guests && strcasecmp(section, *guests) != 0)
		guests++;
	return guests && *guests;
}

static void unused_entry(const struct wss_config_entry *entry, void *opaque)
{
	struct unused *unused = opaque;
	const char *section = entry->section;
	struct wss_error text = WSS_ERROR_INIT;

	if (!section[0] || !strcmp(unused->last, section) ||
	    (unused->any_read ? !unused->sections || section_fits(section)
			      : !section_is_listed(section, unused->guests)))
		return;
	snprintf(unused->last, sizeof(unused->last), "%s", section);
	if (unused->any_read)
		wss_error_set(&text, WSS_ERR_FAILED,
			      "%s:%" PRIu64
			      ": [%s] is no guest that runs: its settings are for nobody",
			      entry->file, entry->line, section);
	else
		wss_error_set(
			&text, WSS_ERR_FAILED,
			"%s:%" PRIu64
			": [%s] is not read: the policy of a libvirt guest is in its metadata, "
			"by virt-wss policy set",
			entry->file, entry->line, section);
	unused->on_unused(text.text, unused->opaque);
}

/* The policy of each guest has that fault. */
static void unused_fault(const struct wss_error *error, void *opaque)
{
	(void)error;
	(void)opaque;
}

void wss_policy_file_unused(bool sections, const char *const *guests, wss_policy_unused on_unused,
			    void *opaque)
{
	static const struct wss_config_events events = {unused_entry, unused_fault};
	struct unused unused = {
		.on_unused = on_unused, .opaque = opaque, .sections = sections, .guests = guests};
	char directory[PATH_MAX];
	wss_auto_dir DIR *dir = NULL;

	pthread_mutex_lock(&fits_lock);
	unused.any_read = any_read;
	pthread_mutex_unlock(&fits_lock);
	directory_path(directory);
	wss_config_read_private(directory, &events, &unused);
	if (!unused.any_read)
		return;
	dir = opendir(directory);
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		struct wss_error text = WSS_ERROR_INIT;

		if (entry->d_name[0] == '.' || wss_config_is_drop_in(entry->d_name))
			continue;
		wss_error_set(&text, WSS_ERR_FAILED,
			      "%s/%s is not read: its name does not end in .conf", directory,
			      entry->d_name);
		on_unused(text.text, opaque);
	}
}
