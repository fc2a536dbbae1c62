/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/tracker.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"

const struct wss_tracker_ops *wss_tracker_by_name(const char *name)
{
	for (size_t i = 0; wss_trackers[i]; i++)
		if (!strcmp(wss_trackers[i]->name, name))
			return wss_trackers[i];
	return NULL;
}

const char *wss_tracker_names(const char *separator, const char *last, char *ret_text, size_t size)
{
	size_t len = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; wss_trackers[i] && len < size; i++)
		len += (size_t)snprintf(ret_text + len, size - len, "%s%s",
					!i		      ? ""
					: wss_trackers[i + 1] ? separator
							      : last,
					wss_trackers[i]->name);
	return ret_text;
}

/* Returns the place of an own option in the method's table; WSS_METHOD_OPTIONS_MAX: none. */
static size_t own_option_find(const struct wss_tracker_ops *ops, const char *name)
{
	for (size_t i = 0; i < WSS_METHOD_OPTIONS_MAX && ops->options[i].name; i++)
		if (!strcmp(ops->options[i].name, name))
			return i;
	return WSS_METHOD_OPTIONS_MAX;
}

static int own_option_unknown(const struct wss_tracker_ops *ops, const char *name,
			      struct wss_error *err)
{
	struct wss_nearest nearest = {.typed = name};
	char names[256] = "";
	size_t len = 0;

	for (size_t i = 0; ops->options[i].name && len < sizeof(names); i++) {
		wss_nearest_offer(&nearest, ops->options[i].name);
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					ops->options[i].name);
	}
	if (wss_nearest_word(&nearest))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "unknown option '%s' of %s: did you mean '%s'?", name,
				     ops->name, wss_nearest_word(&nearest));
	return wss_error_set(err, WSS_ERR_USAGE, "unknown option '%s' of %s, which has %s", name,
			     ops->name, names);
}

/* Stores an own option from a word "NAME=VALUE", which is cut apart. */
static int own_option_parse(const struct wss_tracker_ops *ops, char *word,
			    struct wss_track_options *options, struct wss_error *err)
{
	const char *name = strsep(&word, "="), *value = word;
	size_t i = own_option_find(ops, name);

	if (i == WSS_METHOD_OPTIONS_MAX)
		return own_option_unknown(ops, name, err);
	if (!value)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "option '%s' of %s needs a value: %s,%s=VALUE", name,
				     ops->name, ops->name, name);
	if (ops->options[i].parse(value, name, &options->own[i].value, err) < 0)
		return wss_error_prefix(err, "%s", ops->name);
	options->own[i].known = true;
	return 0;
}

int wss_tracker_parse(const char *text, const struct wss_tracker_ops **ret_ops,
		      struct wss_track_options *options, struct wss_error *err)
{
	wss_auto_free char *copy = strdup(text);
	const struct wss_tracker_ops *ops;
	const char *name;
	char names[128], *rest = copy;

	if (!copy)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	name = strsep(&rest, ",");
	ops = wss_tracker_by_name(name);
	if (!ops && strcmp(name, "auto") != 0)
		return wss_error_set(err, WSS_ERR_USAGE, "'%s' is not auto, %s", name,
				     wss_tracker_names(", ", " or ", names, sizeof(names)));
	if (rest && (!ops || !ops->options))
		return wss_error_set(err, WSS_ERR_USAGE, "%s has no options of its own", name);
	memset(options->own, 0, sizeof(options->own));
	while (rest)
		if (own_option_parse(ops, strsep(&rest, ","), options, err) < 0)
			return -1;
	*ret_ops = ops;
	return 0;
}

uint64_t wss_tracker_option(const struct wss_tracker_ops *ops,
			    const struct wss_track_options *options, size_t i)
{
	return options->own[i].known ? options->own[i].value : ops->options[i].default_value;
}

int wss_tracker_check(const struct wss_tracker_ops *ops, const struct wss_host *host,
		      struct wss_guest *guest, const struct wss_track_options *options,
		      struct wss_error *err)
{
	if (ops->probe(host, guest, err) < 0)
		return -1;
	if (options->recorder == WSS_RECORDER_PAGES && !ops->pages)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "it has no recorder of pages and only counts them");
	return 0;
}

const struct wss_tracker_ops *wss_tracker_choose(const struct wss_host *host,
						 struct wss_guest *guest,
						 const struct wss_track_options *options,
						 struct wss_error *err)
{
	char reasons[sizeof(err->text)] = "";
	size_t len = 0;

	for (size_t i = 0; wss_trackers[i]; i++) {
		struct wss_error why = WSS_ERROR_INIT;

		if (wss_trackers[i]->by_name_only)
			continue;
		if (wss_tracker_check(wss_trackers[i], host, guest, options, &why) == 0)
			return wss_trackers[i];
		/* Another failure says nothing about the method. */
		if (why.code != WSS_ERR_UNSUPPORTED) {
			*err = why;
			return NULL;
		}
		if (len < sizeof(reasons))
			len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s%s: %s",
						i ? "; " : "", wss_trackers[i]->name, why.text);
	}
	wss_error_set(err, WSS_ERR_UNSUPPORTED, "no method can %s (%s)",
		      options->recorder == WSS_RECORDER_PAGES ? "record the pages of this guest"
							      : "measure this guest",
		      reasons);
	return NULL;
}

bool wss_granularity_is_4k(const char *text)
{
	return !strcasecmp(text, "4k") || !strcasecmp(text, "4KiB") || !strcasecmp(text, "4 KiB");
}

int wss_granularity_parse(const char *text, enum wss_granularity *ret_granularity)
{
	static const char *const names[] = {
		[WSS_GRANULARITY_NATIVE] = "native",
		[WSS_GRANULARITY_4K] = "4k",
		[WSS_GRANULARITY_AUTO] = "auto",
	};

	if (wss_granularity_is_4k(text))
		text = names[WSS_GRANULARITY_4K];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret_granularity = (enum wss_granularity)i;
		return 0;
	}
	return -1;
}
