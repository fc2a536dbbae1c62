/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: one instant query for the memory of all hosts and one for the names of
 * all guests make the fleet; a few more add a figure to each of its members. Then one range
 * query per host, so that no answer is large, reads the largest working set of each hour, and
 * folds four weeks into one.
 *
 * A store may have several series for one host or guest: it is a replica of another store, a label has changed, a
 * guest migrates, or two clusters have hosts of the same name. Series that agree count as one. A guest whose series
 * contradict each other is marked as ambiguous. So is a host that has several series while none of its guests has:
 * these are different hosts.
 *
 * An answer may be partial: a store behind the API did not answer, and what it has is missing, as if there were no
 * such guests. Thanos, and Prometheus with remote_read, say so in "warnings", where notes on PromQL are, too; VictoriaMetrics
 * says "isPartial".
 *
 * Where a label of the target has the name of one of ours, Prometheus renames ours: it begins with "exported_" then.
 */
#include "fleet/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "client/http-get.h"
#include "client/json-fields.h"
#include "qmp/jsonline.h"

#define DEPTH_MAX 16
#define HOUR_S 3600
#define WEEKS 4
/* Hours from a Monday, 00:00 UTC, to the epoch, a Thursday. */
#define EPOCH_HOUR 72
#define QUERY_MAX 4096
/*
 * A page is as good as new for three periods of its guests; it is written twice a minute at least, and may have waited
 * for a scrape, or for a file to be scraped.
 */
#define PAGE_PERIODS 3
#define PAGE_AGE_S 300
/* The value of virt_wss_state for a guest that is paused (docs/metrics.md). */
#define STATE_PAUSED 4

/* --- a series --- */

struct point {
	int n; /* members so far: the time, the value */
	struct wss_amount time_s;
	struct wss_amount bytes; /* unknown: not a number, as one that is stale */
};

struct reading;

/* Longer ones are cut, and no name. */
/* What an error shows of a page that is not an answer of the API. */
#define LINE_MAX_BYTES 161
#define NAME_MAX_BYTES sizeof(((struct wss_cluster_host *)NULL)->name)
#define UUID_MAX_BYTES sizeof(((struct wss_cluster_guest *)NULL)->uuid)

struct series {
	struct reading *reading;
	char instance[NAME_MAX_BYTES + 1], uuid[UUID_MAX_BYTES + 1], domain[256];
	char exported_instance[NAME_MAX_BYTES + 1], exported_uuid[UUID_MAX_BYTES + 1];
	char exported_domain[256];
	struct point point;
};

/* An answer that is being read. */
struct reading {
	struct wss_cluster *fleet;
	const uint32_t *by_uuid; /* guests, sorted */
	char status[16];
	char error_type[32], error[256]; /* of a status that is "error" */
	struct wss_amount has_result;	 /* it has a list of series, which may be empty */
	struct wss_amount is_partial;	 /* of VictoriaMetrics: 1 or 0 */
	char partial_why[200];		 /* the first warning that says so; "": none */
	struct wss_prometheus_notes *notes;
	const char *expression; /* of the answer */
	/* Takes a series; of a range query, takes each of its points. */
	int (*take)(struct reading *reading, struct series *series, struct wss_error *err);
	size_t offset; /* of the amount that the answer is about, in a guest or host */
	/* Series of hosts have this label: it is not the guest's. */
	bool uuid_is_foreign, domain_is_foreign;
};

/* Values are texts, because JSON has no NaN. */
static int value_parse(const char *text, struct wss_amount *ret_bytes, struct wss_error *err)
{
	char *end;
	double value = strtod(text, &end);

	*ret_bytes = (struct wss_amount){.known = false};
	if (end == text || *end)
		return wss_error_set(err, WSS_ERR_FAILED, "the value \"%s\" is not a number", text);
	/* One that is impossible is unknown, too: it is of one guest or host, and others are right. */
	if (isnan(value) || !(value >= 0 && value <= (double)WSS_BYTES_MAX))
		return 0;
	*ret_bytes = wss_amount_of(wss_u64_from_double(ceil(value)));
	return 0;
}

/* Reads a member of [TIME, "VALUE"]. */
static int read_point(struct json_object *element, void *data, struct wss_error *err)
{
	struct point *point = data;
	char text[64];

	switch (point->n++) {
	case 0:
		if (!element)
			return wss_error_set(err, WSS_ERR_FAILED, "a value has no time");
		return wss_json_bytes(element, &point->time_s, err) < 0
			       ? wss_error_prefix(err, "the time of a value")
			       : 0;
	case 1:
		return wss_json_text(element, text, sizeof(text), err) < 0
			       ? wss_error_prefix(err, "a value")
			       : value_parse(text, &point->bytes, err);
	default:
		return wss_error_set(err, WSS_ERR_FAILED, "a value has more than two members");
	}
}

static int read_value(struct json_object *element, void *data, struct wss_error *err)
{
	struct series *series = data;

	return read_point(element, &series->point, err);
}

/* Gives the labels the names that virt-wss gave them. May be repeated. */
static void series_restore_labels(struct series *series)
{
	if (series->exported_instance[0])
		memcpy(series->instance, series->exported_instance, sizeof(series->instance));
	if (series->exported_uuid[0])
		memcpy(series->uuid, series->exported_uuid, sizeof(series->uuid));
	if (series->exported_domain[0])
		memcpy(series->domain, series->exported_domain, sizeof(series->domain));
}

/* Says why a series can be no host's; NULL: it may be. */
static const char *series_lacks_host(const struct series *series)
{
	return !series->instance[0] ? "no label \"instance\""
	       : strlen(series->instance) >= NAME_MAX_BYTES
		       ? "an \"instance\" of more than 255 bytes"
		       : NULL;
}

/* Leaves out a host or guest that cannot be told from others, and keeps what the first one was. */
static void series_leave_out(struct series *series, const char *what, const char *why)
{
	struct wss_cluster *fleet = series->reading->fleet;

	if (!fleet->n_left_out++)
		snprintf(fleet->left_out, sizeof(fleet->left_out), "%s %.60s has %s", what,
			 series->domain[0]     ? series->domain
			 : series->instance[0] ? series->instance
			 : series->uuid[0]     ? series->uuid
					       : "without a name",
			 why);
}

/* Reads a point of a range. */
static int read_values(struct json_object *element, void *data, struct wss_error *err)
{
	struct series *series = data;

	series->point = (struct point){.n = 0};
	if (wss_json_list_read(element, &series->point, read_point, err) < 0)
		return -1;
	series_restore_labels(series);
	return series->reading->take(series->reading, series, err);
}

static const struct wss_json_field metric_fields[] = {
	/* Cut rather than refused: it is of one host or guest. */
	WSS_JSON_FIELD(series, "instance", WSS_JSON_MESSAGE, instance),
	WSS_JSON_FIELD(series, "exported_instance", WSS_JSON_MESSAGE, exported_instance),
	WSS_JSON_FIELD(series, "uuid", WSS_JSON_MESSAGE, uuid),
	WSS_JSON_FIELD(series, "exported_uuid", WSS_JSON_MESSAGE, exported_uuid),
	WSS_JSON_FIELD(series, "domain", WSS_JSON_MESSAGE, domain),
	WSS_JSON_FIELD(series, "exported_domain", WSS_JSON_MESSAGE, exported_domain),
};
WSS_JSON_TABLE(metric);

static const struct wss_json_field series_fields[] = {
	/* The fields of this one are those of the series; it comes before its values. */
	{"metric", WSS_JSON_OBJECT, 0, 0, &metric_table, NULL},
	{"value", WSS_JSON_LIST, 0, 0, NULL, read_value},
	{"values", WSS_JSON_LIST, 0, 0, NULL, read_values},
};
WSS_JSON_TABLE(series);

static int read_series(struct json_object *element, void *data, struct wss_error *err)
{
	struct reading *reading = data;
	struct series series = {.reading = reading};

	if (wss_json_read(element, &series_table, &series, err) < 0)
		return -1;
	series_restore_labels(&series);
	return series.point.n == 2 ? reading->take(reading, &series, err) : 0;
}

static const struct wss_json_field data_fields[] = {
	{"result", WSS_JSON_LIST, 0, 0, NULL, read_series},
	WSS_JSON_FIELD(reading, "result", WSS_JSON_HAS, has_result),
};
WSS_JSON_TABLE(data);

/* Notes a warning of the answer, with its query, unless the text is known. */
static void notes_add(struct reading *reading, const char *text)
{
	struct wss_prometheus_notes *notes = reading->notes;
	size_t len = strlen(text);

	for (size_t i = 0; i < notes->n; i++)
		if (!strncmp(notes->warnings[i], text, len) &&
		    !strncmp(notes->warnings[i] + len, " (query ", 8))
			return;
	if (notes->n == WSS_PROMETHEUS_WARNINGS) {
		notes->has_more = true;
		return;
	}
	snprintf(notes->warnings[notes->n++], WSS_PROMETHEUS_WARNING_MAX, "%s (query %.150s)", text,
		 reading->expression);
}

/* Those on PromQL concern the query alone: nothing is missing. */
static int read_warning(struct json_object *element, void *data, struct wss_error *err)
{
	struct reading *reading = data;
	char text[200];

	(void)err;
	wss_json_message(element, text, sizeof(text));
	if (!*text)
		strcpy(text, "a warning without a text");
	if (!strncmp(text, "PromQL info", 11))
		return 0;
	notes_add(reading, text);
	if (strncmp(text, "PromQL ", 7) != 0 && !reading->partial_why[0])
		strcpy(reading->partial_why, text);
	return 0;
}

static const struct wss_json_field answer_fields[] = {
	WSS_JSON_FIELD(reading, "status", WSS_JSON_TEXT, status),
	WSS_JSON_FIELD(reading, "errorType", WSS_JSON_MESSAGE, error_type),
	WSS_JSON_FIELD(reading, "error", WSS_JSON_MESSAGE, error),
	WSS_JSON_FIELD(reading, "isPartial", WSS_JSON_BOOL, is_partial),
	{"warnings", WSS_JSON_LIST, 0, 0, NULL, read_warning},
	{"data", WSS_JSON_OBJECT, 0, 0, &data_table, NULL},
};
WSS_JSON_TABLE(answer);

/* --- queries --- */

struct prometheus {
	struct wss_http_get *http;
	const struct wss_prometheus_options *options;
	struct reading reading;
};

static int answer_parse(struct reading *reading, const char *body, size_t len,
			struct wss_error *err)
{
	static const struct qmp_limits limits = {.tree_bytes = WSS_PROMETHEUS_TREE_MAX,
						 .depth = DEPTH_MAX};
	qmp_auto_json struct json_object *object = NULL;

	reading->status[0] = reading->error_type[0] = reading->error[0] = '\0';
	reading->has_result.known = reading->is_partial.known = false;
	reading->partial_why[0] = '\0';
	return qmp_json_parse(body, len, &limits, &object, NULL, err) < 0
		       ? -1
		       : wss_json_read(object, &answer_table, reading, err);
}

/* Whether the API says why it did not answer. */
static bool answer_has_error(const struct reading *reading)
{
	return !strcmp(reading->status, "error") && (reading->error[0] || reading->error_type[0]);
}

/* Copies the first line that says something, without white space around it: what follows says no more. */
static void first_line(const char *body, char ret_line[LINE_MAX_BYTES])
{
	size_t len;

	body += strspn(body, " \t\r\n");
	snprintf(ret_line, LINE_MAX_BYTES, "%.*s", (int)strcspn(body, "\r\n"), body);
	wss_text_drop_incomplete(ret_line);
	for (len = strlen(ret_line); len && strchr(" \t", ret_line[len - 1]); len--)
		ret_line[len - 1] = '\0';
}

static int answer_read(struct reading *reading, const char *body, size_t len, long http_status,
		       struct wss_error *err)
{
	struct wss_error broken = WSS_ERROR_INIT;
	char line[LINE_MAX_BYTES];
	int r = answer_parse(reading, body, len, &broken);

	if (answer_has_error(reading))
		return wss_error_set(err, WSS_ERR_FAILED, "the API reports an error: %s%s%s",
				     reading->error_type,
				     reading->error_type[0] && reading->error[0] ? ": " : "",
				     reading->error);
	if (http_status != 200) {
		first_line(body, line);
		return wss_error_set(err, WSS_ERR_FAILED, "HTTP status %ld instead of 200%s%s",
				     http_status, *line ? ": " : "", line);
	}
	if (r < 0)
		return wss_error_set(err, broken.code, "%s", broken.text);
	if (strcmp(reading->status, "success") != 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "\"status\" is \"%s\" instead of \"success\": is it the "
				     "API of Prometheus?",
				     reading->status);
	/* Else a host would count as empty whose guests nobody has told. */
	if (!reading->has_result.known)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the answer has no \"data\" with a \"result\": is it the "
				     "API of Prometheus?");
	return 0;
}

/* Refuses an answer that lacks something, or notes it. */
static int partial_check(struct prometheus *run, struct wss_error *err)
{
	struct reading *reading = &run->reading;
	bool is_partial = reading->is_partial.known && reading->is_partial.value;

	if (is_partial && !reading->partial_why[0]) {
		strcpy(reading->partial_why, "\"isPartial\" is true");
		notes_add(reading, reading->partial_why);
	}
	if (!reading->partial_why[0])
		return 0;
	reading->notes->is_partial = true;
	return run->options->allow_partial
		       ? 0
		       : wss_error_set(err, WSS_ERR_CONNECT, "the answer is partial: %s",
				       reading->partial_why);
}

static int query_run(struct prometheus *run, const char *path, const char *expression,
		     const char *more, struct wss_error *err)
{
	const char *body;
	size_t len;
	long status;

	if (wss_http_get(run->http, path, "query", expression, more, &body, &len, &status, err) < 0)
		return -1;
	run->reading.expression = expression;
	if (answer_read(&run->reading, body, len, status, err) < 0 || partial_check(run, err) < 0)
		return wss_error_prefix(err, "%s: query %s", run->options->url, expression);
	return 0;
}

/* Asks for the newest value of each series of a metric. */
static int query(struct prometheus *run, const char *metric, struct wss_error *err)
{
	const char *match = run->options->match;
	char expression[QUERY_MAX];

	snprintf(expression, sizeof(expression), "%s%s%s%s", metric, match ? "{" : "",
		 match ? match : "", match ? "}" : "");
	return query_run(run, "/api/v1/query", expression, "", err);
}

static int host_find(const struct wss_cluster *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->n_hosts; i++)
		if (!strcmp(fleet->hosts[i].name, name))
			return (int)i;
	return -1;
}

static int take_host(struct reading *reading, struct series *series, struct wss_error *err)
{
	int found = host_find(reading->fleet, series->instance);
	struct wss_amount bytes = series->point.bytes;
	const char *why = series_lacks_host(series);
	struct wss_cluster_host *host;
	uint32_t index = (uint32_t)found;

	if (why) {
		series_leave_out(series, "host", why);
		return 0;
	}
	if (found < 0 && wss_cluster_add_host(reading->fleet, series->instance, &index, err) < 0)
		return -1;
	if (series->uuid[0])
		reading->uuid_is_foreign = true;
	if (series->domain[0])
		reading->domain_is_foreign = true;
	host = &reading->fleet->hosts[index];
	host->n_series++;
	host->has_exported |= series->exported_instance[0] != '\0';
	host->is_ambiguous |=
		host->memory_bytes.known && bytes.known && host->memory_bytes.value != bytes.value;
	if (!host->memory_bytes.known || (bytes.known && bytes.value < host->memory_bytes.value))
		host->memory_bytes = bytes;
	return 0;
}

/* Of replicas, which were not asked in the same moment. */
static void keep_larger(struct wss_amount *amount, struct wss_amount other)
{
	if (!amount->known || (other.known && other.value > amount->value))
		*amount = other;
}

static void keep_smaller(struct wss_amount *amount, struct wss_amount other)
{
	if (!amount->known || other.value < amount->value)
		*amount = other;
}

static int take_overhead(struct reading *reading, struct series *series, struct wss_error *err)
{
	int host = host_find(reading->fleet, series->instance);

	(void)err;
	if (host >= 0)
		keep_larger(&reading->fleet->hosts[host].overhead_bytes, series->point.bytes);
	return 0;
}

/* Takes when the host's page was written, as the store's clock sees it. */
static int take_page(struct reading *reading, struct series *series, struct wss_error *err)
{
	int host = host_find(reading->fleet, series->instance);
	const struct point *point = &series->point;
	uint64_t age_s;

	(void)err;
	if (host < 0 || !point->time_s.known || !point->bytes.known)
		return 0;
	age_s = point->time_s.value > point->bytes.value ? point->time_s.value - point->bytes.value
							 : 0;
	keep_smaller(&reading->fleet->hosts[host].page_age_s, wss_amount_of(age_s));
	return 0;
}

static int take_period(struct reading *reading, struct series *series, struct wss_error *err)
{
	int host = host_find(reading->fleet, series->instance);

	(void)err;
	if (host >= 0)
		keep_larger(&reading->fleet->hosts[host].period_s, series->point.bytes);
	return 0;
}

/* Takes how many guests the host has; the answers before may lack some of them. */
static int take_count(struct reading *reading, struct series *series, struct wss_error *err)
{
	int host = host_find(reading->fleet, series->instance);

	(void)err;
	if (host >= 0 && series->point.bytes.known &&
	    series->point.bytes.value > reading->fleet->hosts[host].n_guests)
		reading->fleet->hosts[host].is_partial = true;
	return 0;
}

static int take_guest(struct reading *reading, struct series *series, struct wss_error *err)
{
	struct wss_cluster_guest guest = {.name = ""};
	int host = host_find(reading->fleet, series->instance);
	const char *foreign = NULL, *why;
	uint32_t index = (uint32_t)host;

	if (reading->uuid_is_foreign && !series->exported_uuid[0])
		foreign = "uuid";
	else if (reading->domain_is_foreign && !series->exported_domain[0])
		foreign = "domain";
	if (foreign)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"the label \"%s\" is not of virt-wss, as hosts have it, too, and there is no "
			"\"exported_%s\": keep the latter when relabelling",
			foreign, foreign);
	why = series_lacks_host(series);
	if (!why && !series->uuid[0])
		why = "no label \"uuid\"";
	else if (!why && strlen(series->uuid) >= UUID_MAX_BYTES)
		why = "a \"uuid\" of more than 36 bytes";
	else if (!why && !series->domain[0])
		why = "no label \"domain\"";
	if (why) {
		series_leave_out(series, "guest", why);
		if (host >= 0)
			reading->fleet->hosts[host].is_incomplete = true;
		return 0;
	}
	/* A host that has just gone: its memory is not known any more; or else the store lacks it. */
	if (host < 0 && !reading->notes->is_partial)
		return 0;
	if (host < 0 && wss_cluster_add_host(reading->fleet, series->instance, &index, err) < 0)
		return -1;
	guest.host = index;
	guest.n_series = 1;
	memcpy(guest.name, series->domain, sizeof(guest.name));
	memcpy(guest.uuid, series->uuid, sizeof(guest.uuid));
	return wss_cluster_add_guest(reading->fleet, &guest, err);
}

static int guest_compare(const struct wss_cluster *fleet, const struct wss_cluster_guest *guest,
			 const char *uuid, const char *host)
{
	int order = strcmp(guest->uuid, uuid);

	return order ? order : strcmp(fleet->hosts[guest->host].name, host);
}

/* Finds the guest of a series; NULL: there is none on this host. */
static struct wss_cluster_guest *guest_find(const struct reading *reading,
					    const struct series *series)
{
	struct wss_cluster *fleet = reading->fleet;
	size_t low = 0, high = fleet->n_guests;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct wss_cluster_guest *guest = &fleet->guests[reading->by_uuid[middle]];
		int order = guest_compare(fleet, guest, series->uuid, series->instance);

		if (!order)
			return guest;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int take_figure(struct reading *reading, struct series *series, struct wss_error *err)
{
	struct wss_cluster_guest *guest = guest_find(reading, series);

	(void)err;
	if (guest)
		keep_larger((struct wss_amount *)(void *)((char *)guest + reading->offset),
			    series->point.bytes);
	return 0;
}

/* Takes whether there is a recommendation, by its code in docs/metrics.md. */
static int take_status(struct reading *reading, struct series *series, struct wss_error *err)
{
	static const char *const names[] = {"ok",	 "unknown", "too early",
					    "opted out", "failed",  "no size"};
	struct wss_cluster_guest *guest = guest_find(reading, series);
	struct wss_amount code = series->point.bytes;
	const char *name = code.known && code.value < sizeof(names) / sizeof(names[0])
				   ? names[code.value]
				   : "unknown";

	(void)err;
	if (!guest)
		return 0;
	guest->is_ambiguous |= guest->status[0] && strcmp(guest->status, name) != 0;
	snprintf(guest->status, sizeof(guest->status), "%s", name);
	return 0;
}

/* Takes whether it is paused, by its code in docs/metrics.md: such a guest holds what it has. */
static int take_state(struct reading *reading, struct series *series, struct wss_error *err)
{
	struct wss_cluster_guest *guest = guest_find(reading, series);

	(void)err;
	if (guest && series->point.bytes.known && series->point.bytes.value == STATE_PAUSED)
		strcpy(guest->state, "paused");
	return 0;
}

/* Reads why guests have no recommendation; where nothing was advised yet there is no series. */
static int read_statuses(struct prometheus *run, struct wss_error *err)
{
	struct wss_cluster *fleet = run->reading.fleet;

	run->reading.take = take_status;
	if (query(run, "virt_wss_advice", err) < 0)
		return -1;
	for (size_t i = 0; i < fleet->n_guests; i++)
		if (!fleet->guests[i].status[0])
			strcpy(fleet->guests[i].status, "unknown");
	return 0;
}

/* The point at the end of an hour is the largest of that hour. */
static int take_hour(struct reading *reading, struct series *series, struct wss_error *err)
{
	struct wss_cluster_guest *guest = guest_find(reading, series);
	struct wss_amount *hour;

	(void)err;
	if (!guest || series->point.n != 2 || !series->point.bytes.known ||
	    series->point.time_s.value < HOUR_S)
		return 0;
	hour = &guest->week_bytes[(series->point.time_s.value / HOUR_S - 1 + EPOCH_HOUR) %
				  WSS_CLUSTER_HOURS];
	if (!hour->known || hour->value < series->point.bytes.value)
		*hour = series->point.bytes;
	return 0;
}

/* --- the fleet --- */

static int uuids_compare(const void *a, const void *b, void *opaque)
{
	const struct wss_cluster *fleet = opaque;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct wss_cluster_guest *other = &fleet->guests[right];
	int order = guest_compare(fleet, &fleet->guests[left], other->uuid,
				  fleet->hosts[other->host].name);

	return order ? order : left < right ? -1 : left > right;
}

/* Sorts the guests by UUID and host in a list. */
static uint32_t *guests_sort(struct wss_cluster *fleet)
{
	uint32_t *list = wss_xcalloc(fleet->n_guests, sizeof(*list));

	for (uint32_t i = 0; i < fleet->n_guests; i++)
		list[i] = i;
	qsort_r(list, fleet->n_guests, sizeof(*list), uuids_compare, fleet);
	return list;
}

/* Makes one of the series of a guest on a host. */
static void guests_merge(struct wss_cluster *fleet)
{
	wss_auto_free uint32_t *list = guests_sort(fleet);
	struct wss_cluster_guest *first = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < fleet->n_guests; i++) {
		struct wss_cluster_guest *guest = &fleet->guests[list[i]];

		if (!first || strcmp(first->uuid, guest->uuid) != 0 || first->host != guest->host) {
			first = guest;
			continue;
		}
		first->n_series++;
		first->is_ambiguous |= strcmp(first->name, guest->name) != 0;
		guest->n_series = 0;
		fleet->hosts[guest->host].n_guests--;
	}
	for (size_t i = 0; i < fleet->n_guests; i++)
		if (fleet->guests[i].n_series)
			fleet->guests[kept++] = fleet->guests[i];
	fleet->n_guests = kept;
}

/* Marks hosts with several series each of whose guests has one: they are different hosts of one name. */
static void hosts_judge(struct wss_cluster *fleet)
{
	wss_auto_free bool *has_replicas = wss_xcalloc(fleet->n_hosts, sizeof(*has_replicas));

	for (size_t i = 0; i < fleet->n_guests; i++)
		has_replicas[fleet->guests[i].host] |= fleet->guests[i].n_series > 1;
	for (size_t i = 0; i < fleet->n_hosts; i++) {
		struct wss_cluster_host *host = &fleet->hosts[i];

		host->is_ambiguous |= host->n_series > 1 && host->n_guests && !has_replicas[i];
	}
}

/* Writes a label's value as a string of PromQL; false: it is too long. */
static bool label_quote(const char *value, char *text, size_t size)
{
	size_t n = 0;

	for (; *value; value++) {
		if (n + 3 > size)
			return false;
		if (*value == '"' || *value == '\\')
			text[n++] = '\\';
		else if (*value == '\n')
			return false;
		text[n++] = *value;
	}
	text[n] = '\0';
	return true;
}

/* An hour whose windows were all degraded shows no need: their figures are lower bounds. */
static int read_weeks(struct prometheus *run, struct wss_error *err)
{
	long long end = (long long)wss_clock_wall_seconds() / HOUR_S * HOUR_S;
	const char *name, *comma = run->options->match ? "," : "";
	const char *match = run->options->match ? run->options->match : "";
	char label[512], expression[QUERY_MAX], more[128];

	run->reading.take = take_hour;
	snprintf(more, sizeof(more), "&start=%lld&end=%lld&step=%d",
		 end - (long long)(WEEKS * WSS_CLUSTER_HOURS - 1) * HOUR_S, end, HOUR_S);
	for (size_t i = 0; i < run->reading.fleet->n_hosts; i++) {
		if (!label_quote(run->reading.fleet->hosts[i].name, label, sizeof(label)))
			continue;
		name = run->reading.fleet->hosts[i].has_exported ? "exported_instance" : "instance";
		snprintf(expression, sizeof(expression),
			 "max by (%s, uuid, exported_uuid) "
			 "(max_over_time(virt_wss_working_set_bytes{%s=\"%s\"%s%s}[1h]) "
			 "unless max_over_time(virt_wss_working_set_bound{%s=\"%s\"%s%s}[1h]) < 0)",
			 name, name, label, comma, match, name, label, comma, match);
		if (query_run(run, "/api/v1/query_range", expression, more, err) < 0)
			return -1;
	}
	return 0;
}

/* Finds the hosts whose pages are too old. */
static int read_pages(struct prometheus *run, struct wss_error *err)
{
	struct wss_cluster *fleet = run->reading.fleet;

	run->reading.take = take_page;
	if (query(run, "virt_wss_page_timestamp_seconds", err) < 0)
		return -1;
	run->reading.take = take_period;
	if (query(run, "virt_wss_period_seconds", err) < 0)
		return -1;
	for (size_t i = 0; i < fleet->n_hosts; i++) {
		struct wss_cluster_host *host = &fleet->hosts[i];
		uint64_t periods_s = host->period_s.known ? host->period_s.value * PAGE_PERIODS : 0;

		host->is_stale = host->page_age_s.known &&
				 host->page_age_s.value > wss_u64_max(periods_s, PAGE_AGE_S);
	}
	return 0;
}

/*
 * Finds the hosts of which guests are missing: those that count more of them, and those without any, which may not be
 * empty.
 */
static int read_missing(struct prometheus *run, struct wss_error *err)
{
	struct wss_cluster *fleet = run->reading.fleet;
	const char *match = run->options->match;
	char expression[QUERY_MAX];

	snprintf(
		expression, sizeof(expression),
		"sum by (instance, exported_instance) (max by (instance, exported_instance, state) "
		"(virt_wss_guests%s%s%s))",
		match ? "{" : "", match ? match : "", match ? "}" : "");
	run->reading.take = take_count;
	if (query_run(run, "/api/v1/query", expression, "", err) < 0)
		return -1;
	for (size_t i = 0; i < fleet->n_hosts; i++)
		fleet->hosts[i].is_partial |= !fleet->hosts[i].n_guests;
	return 0;
}

static int read_figures(struct prometheus *run, struct wss_error *err)
{
	static const struct {
		const char *metric;
		size_t offset;
	} figures[] = {
		{"virt_wss_recommended_bytes",
		 offsetof(struct wss_cluster_guest, recommended_bytes)},
		{"virt_wss_resident_bytes", offsetof(struct wss_cluster_guest, held_bytes)},
		{"virt_wss_reclaimable_bytes",
		 offsetof(struct wss_cluster_guest, reclaimable_bytes)},
		{"virt_wss_balloon_bytes", offsetof(struct wss_cluster_guest, assigned_bytes)},
	};

	run->reading.take = take_figure;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		run->reading.offset = figures[i].offset;
		if (query(run, figures[i].metric, err) < 0)
			return -1;
	}
	return 0;
}

static int read_fleet(struct prometheus *run, struct wss_error *err)
{
	struct wss_cluster *fleet = run->reading.fleet;
	wss_auto_free uint32_t *by_uuid = NULL;

	run->reading.take = take_host;
	if (query(run, "virt_wss_host_memory_bytes", err) < 0)
		return -1;
	if (!fleet->n_hosts)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "%s: no virt_wss_host_memory_bytes%s%s: it must scrape "
				     "\"virt-wss serve\" on each host",
				     run->options->url,
				     run->options->match ? " with the labels that were asked for"
							 : "",
				     fleet->n_left_out ? " and a usable \"instance\"" : "");
	run->reading.take = take_overhead;
	if (query(run, "virt_wss_host_overhead_bytes", err) < 0)
		return -1;
	run->reading.take = take_guest;
	if (query(run, "virt_wss_domain_info", err) < 0)
		return -1;
	guests_merge(fleet);
	hosts_judge(fleet);
	by_uuid = guests_sort(fleet);
	run->reading.by_uuid = by_uuid;
	if (read_statuses(run, err) < 0)
		return -1;
	run->reading.take = take_state;
	if (query(run, "virt_wss_state", err) < 0)
		return -1;
	if (read_pages(run, err) < 0 || read_figures(run, err) < 0 || read_weeks(run, err) < 0)
		return -1;
	return run->reading.notes->is_partial ? read_missing(run, err) : 0;
}

int wss_prometheus_read(struct wss_cluster *fleet, const struct wss_prometheus_options *options,
			struct wss_prometheus_notes *notes, struct wss_error *err)
{
	const struct wss_http_get_options http_options = {
		.url = options->url,
		.token_file = options->token_file,
		.user_file = options->user_file,
		.header_file = options->header_file,
		.ca_file = options->ca_file,
		.deadline_ns = wss_clock_now_ns() + options->timeout_ns,
		.timeout_ns = options->timeout_ns,
		.most_bytes = WSS_PROMETHEUS_REPLY_MAX,
	};
	struct prometheus run = {.options = options, .reading = {.fleet = fleet, .notes = notes}};
	int r;

	if (wss_http_get_open(&http_options, &run.http, err) < 0)
		return -1;
	r = read_fleet(&run, err);
	wss_http_get_close(run.http);
	return r;
}
