/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dirtyrate.h"

#include <string.h>

#include "jsonline.h"

int qmp_start_dirty_bitmap(struct qmp *qmp, unsigned int seconds, unsigned int timeout_ms,
			   struct wss_error *err)
{
	qmp_auto_json struct json_object *args = json_object_new_object();

	if (!args ||
	    qmp_json_put(args, "calc-time", json_object_new_int64(seconds)) < 0 ||
	    qmp_json_put(args, "mode", json_object_new_string("dirty-bitmap")) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return qmp_execute(qmp, "calc-dirty-rate", args, timeout_ms, NULL, err);
}

int qmp_query_dirty_rate(struct qmp *qmp, unsigned int timeout_ms,
			 struct qmp_dirty_rate *ret_rate, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	const char *status, *mode = "page-sampling";

	if (qmp_execute(qmp, "query-dirty-rate", NULL, timeout_ms, &reply, err) < 0)
		return -1;
	/* QEMU before 6.2 has no "mode", and only samples pages. */
	if (qmp_get_string(reply, "status", &status, err) < 0 ||
	    (qmp_has(reply, "mode") && qmp_get_string(reply, "mode", &mode, err) < 0))
		return wss_error_prefix(err, "QMP query-dirty-rate");
	*ret_rate = (struct qmp_dirty_rate){
		.measuring = !strcmp(status, "measuring"),
		.bitmap = !strcmp(mode, "dirty-bitmap"),
	};
	return 0;
}
