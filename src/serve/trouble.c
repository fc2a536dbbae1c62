/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/trouble.h"

#include <stddef.h>

#include "base/log.h"

void wss_trouble_note(struct wss_trouble *trouble, const struct wss_error *error)
{
	if (trouble->on == (error != NULL))
		return;
	trouble->on = error != NULL;
	if (error)
		wss_log(WSS_LOG_ERROR, "%s", error->text);
	else
		wss_log(WSS_LOG_INFO, "%s: it works again", trouble->what);
}
