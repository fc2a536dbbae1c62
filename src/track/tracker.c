/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/tracker.h"

#include <stdio.h>
#include <string.h>

const struct wss_tracker_ops *const wss_trackers[] = {
	&wss_tracker_mmu,
	&wss_tracker_refs,
	NULL,
};

const struct wss_tracker_ops *wss_tracker_by_name(const char *name)
{
	for (size_t i = 0; wss_trackers[i]; i++)
		if (!strcmp(wss_trackers[i]->name, name))
			return wss_trackers[i];
	return NULL;
}

const struct wss_tracker_ops *wss_tracker_choose(const struct wss_host *host,
						 struct wss_guest *guest, struct wss_error *err)
{
	char reasons[sizeof(err->text)] = "";
	size_t len = 0;

	for (size_t i = 0; wss_trackers[i]; i++) {
		struct wss_error why = WSS_ERROR_INIT;

		if (wss_trackers[i]->probe(host, guest, &why) == 0)
			return wss_trackers[i];
		/* It says nothing about the method. */
		if (why.code == WSS_ERR_NO_MEMORY) {
			*err = why;
			return NULL;
		}
		if (len < sizeof(reasons))
			len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s%s: %s",
						i ? "; " : "", wss_trackers[i]->name, why.text);
	}
	wss_error_set(err, WSS_ERR_UNSUPPORTED, "no method can measure this guest (%s)", reasons);
	return NULL;
}
