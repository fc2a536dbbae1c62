/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/tracker.h"

#include <stdio.h>
#include <string.h>

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
					!i ? "" : wss_trackers[i + 1] ? separator : last,
					wss_trackers[i]->name);
	return ret_text;
}

int wss_tracker_check(const struct wss_tracker_ops *ops, const struct wss_host *host,
		      struct wss_guest *guest, const struct wss_track_options *options,
		      struct wss_error *err)
{
	if (ops->probe(host, guest, err) < 0)
		return -1;
	if (options->recorder == WSS_RECORDER_PAGES && !ops->pages)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"it has no recorder of pages and only counts how many were touched");
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

		if (wss_tracker_check(wss_trackers[i], host, guest, options, &why) == 0)
			return wss_trackers[i];
		/* Running out of memory says nothing about the method. */
		if (why.code == WSS_ERR_NO_MEMORY) {
			*err = why;
			return NULL;
		}
		if (len < sizeof(reasons))
			len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s%s: %s",
						i ? "; " : "", wss_trackers[i]->name, why.text);
	}
	wss_error_set(err, WSS_ERR_UNSUPPORTED, "no method can %s (%s)",
		      options->recorder == WSS_RECORDER_PAGES
			      ? "record the pages of this guest"
			      : "measure this guest",
		      reasons);
	return NULL;
}
