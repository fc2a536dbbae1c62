/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dirtyrate.h"

#include <string.h>

#include "jsonline.h"

/* per_gib 0: the mode samples no pages. */
static int start_calculation(struct qmp *qmp, unsigned int seconds, const char *mode,
			     unsigned int per_gib, unsigned int timeout_ms, struct wss_error *err)
{
	qmp_auto_json struct json_object *args = json_object_new_object();

	if (!args || qmp_json_put(args, "calc-time", json_object_new_int64(seconds)) < 0 ||
	    qmp_json_put(args, "mode", json_object_new_string(mode)) < 0 ||
	    (per_gib && qmp_json_put(args, "sample-pages", json_object_new_int64(per_gib)) < 0))
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return qmp_execute(qmp, "calc-dirty-rate", args, timeout_ms, NULL, err);
}

int qmp_start_dirty_bitmap(struct qmp *qmp, unsigned int seconds, unsigned int timeout_ms,
			   struct wss_error *err)
{
	return start_calculation(qmp, seconds, "dirty-bitmap", 0, timeout_ms, err);
}

int qmp_start_page_sampling(struct qmp *qmp, unsigned int seconds, unsigned int per_gib,
			    unsigned int timeout_ms, struct wss_error *err)
{
	return start_calculation(qmp, seconds, "page-sampling", per_gib, timeout_ms, err);
}

int qmp_query_dirty_rate(struct qmp *qmp, unsigned int timeout_ms, struct qmp_dirty_rate *ret_rate,
			 struct wss_error *err)
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
		.measured = !strcmp(status, "measured") && qmp_has(reply, "dirty-rate"),
	};
	if (ret_rate->measured &&
	    qmp_get_uint64(reply, "dirty-rate", &ret_rate->mib_per_s, err) < 0)
		return wss_error_prefix(err, "QMP query-dirty-rate");
	/* Only a hint: what is no number there is unknown. */
	qmp_get_uint64(reply, "start-time", &ret_rate->start_s, NULL);
	qmp_get_uint64(reply, "calc-time", &ret_rate->length_s, NULL);
	return 0;
}
