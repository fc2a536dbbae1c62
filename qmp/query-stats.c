/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "jsonline.h"
#include "query.h"

#define STATS_MAX 64

static struct json_object *build_names(const struct qmp_stat *stats, size_t count)
{
	qmp_auto_json struct json_object *names = json_object_new_array();

	for (size_t i = 0; names && i < count; i++)
		if (qmp_json_put(names, NULL, json_object_new_string(stats[i].name)) < 0)
			return NULL;
	return wss_steal_ptr(names);
}

/* Builds {"target": T, "providers": [{"provider": "kvm", "names": […]}]}; NULL: out of memory. */
static struct json_object *build_args(enum qmp_stats_target target, const struct qmp_stat *stats,
				      size_t count)
{
	const char *target_name = target == QMP_STATS_VM ? "vm" : "vcpu";
	qmp_auto_json struct json_object *args = json_object_new_object();
	qmp_auto_json struct json_object *providers = json_object_new_array();
	qmp_auto_json struct json_object *provider = json_object_new_object();

	if (!args || !providers || !provider ||
	    qmp_json_put(provider, "provider", json_object_new_string("kvm")) < 0 ||
	    qmp_json_put(provider, "names", build_names(stats, count)) < 0 ||
	    qmp_json_put(args, "target", json_object_new_string(target_name)) < 0 ||
	    qmp_json_put(providers, NULL, json_object_get(provider)) < 0 ||
	    qmp_json_put(args, "providers", json_object_get(providers)) < 0)
		return NULL;
	return wss_steal_ptr(args);
}

/*
 * Adds a value. If it does not fit, as no counter that is asked for can, its statistic counts as not found:
 * it stays UINT64_MAX. The other statistics are still read.
 */
static int add_value(struct json_object *entry, struct qmp_stat *stat, struct wss_error *err)
{
	struct json_object *given = json_object_object_get(entry, "value");
	uint64_t value;
	bool flag;

	if (json_object_is_type(given, json_type_boolean)) {
		if (qmp_get_bool(entry, "value", &flag, err) < 0)
			return -1;
		value = flag;
	} else if (json_object_is_type(given, json_type_int) &&
		   json_object_get_uint64(given) == UINT64_MAX) {
		value = UINT64_MAX;
	} else if (qmp_get_uint64(entry, "value", &value, err) < 0) {
		return wss_error_prefix(err, "%s", stat->name);
	}
	if (__builtin_add_overflow(stat->value, value, &stat->value))
		stat->value = UINT64_MAX;
	stat->found = stat->value != UINT64_MAX;
	return 0;
}

/* Parses one {"name": …, "value": …}; skips statistics that were not asked for. */
static int stat_parse(struct json_object *entry, struct qmp_stat *stats, size_t count,
		      struct wss_error *err)
{
	const char *name;

	if (qmp_get_string(entry, "name", &name, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, stats[i].name))
			return add_value(entry, &stats[i], err);
	return 0;
}

/* Parses the statistics of one VM or vCPU from one provider. */
static int result_parse_stats(struct json_object *result, struct qmp_stat *stats, size_t count,
			      struct wss_error *err)
{
	struct json_object *list = NULL;
	const char *provider;

	if (qmp_get_string(result, "provider", &provider, err) < 0)
		return -1;
	if (strcmp(provider, "kvm"))
		return 0;
	if (qmp_get_array(result, "stats", &list, err) < 0)
		return -1;
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (stat_parse(json_object_array_get_idx(list, i), stats, count, err) < 0)
			return -1;
	return 0;
}

static int reply_parse_stats(struct json_object *reply, struct qmp_stat *stats, size_t count,
			     struct wss_error *err)
{
	size_t results;

	if (!json_object_is_type(reply, json_type_array))
		return wss_error_set(err, WSS_ERR_FAILED, "%s instead of a list",
				     qmp_json_type_name(reply));
	results = json_object_array_length(reply);
	if (results > QMP_LIST_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "%zu entries, limit %d", results,
				     QMP_LIST_MAX);
	for (size_t i = 0; i < results; i++)
		if (result_parse_stats(json_object_array_get_idx(reply, i), stats, count, err) < 0)
			return -1;
	return 0;
}

int qmp_query_stats(struct qmp *qmp, enum qmp_stats_target target, struct qmp_stat *stats,
		    size_t count, unsigned int timeout_ms, struct wss_error *err)
{
	qmp_auto_json struct json_object *args = NULL;
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_stat found[STATS_MAX];

	if (count > STATS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "QMP query-stats: %zu names, limit %d",
				     count, STATS_MAX);
	for (size_t i = 0; i < count; i++)
		found[i] = (struct qmp_stat){.name = stats[i].name};
	args = build_args(target, stats, count);
	if (!args)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (qmp_execute(qmp, "query-stats", args, timeout_ms, &reply, err) < 0)
		return -1;
	if (reply_parse_stats(reply, found, count, err) < 0)
		return wss_error_prefix(err, "QMP query-stats");
	memcpy(stats, found, count * sizeof(*stats));
	return 0;
}
