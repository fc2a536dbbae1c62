/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/guests.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "client/json-fields.h"
#include "qmp/jsonline.h"
#include "qmp/qmp.h"

#define SCHEMA "virt-wss/guests/1"
/* The age that check and top show. */
#define COLD_AGE "10m"
/* Longest line of the head that is looked at. */
#define LINE_MAX_BYTES 1024
/* A page counts as at most that late: then its ages fit into 64 bits. */
#define LATE_MAX_S 9000000000

/* --- the head of the reply --- */

/* Copies the next line of the head, without its end; -1: there is no whole line that fits. */
static int head_line(const char **at, const char *end, char *line, size_t size)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	size_t len;

	if (!newline)
		return -1;
	len = (size_t)(newline - *at);
	if (len && (*at)[len - 1] == '\r')
		len--;
	if (len >= size || memchr(*at, '\0', len))
		return -1;
	memcpy(line, *at, len);
	line[len] = '\0';
	*at = newline + 1;
	return 0;
}

/* Parses "HTTP/1.1 200 OK". */
static int check_status(const char *line, struct wss_error *err)
{
	if (strncmp(line, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line[7]) ||
	    line[8] != ' ' || strspn(line + 9, "0123456789") != 3)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply is not HTTP");
	if (strncmp(line + 9, "200", 3) != 0)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply has HTTP status %.40s",
				     line + 9);
	return 0;
}

/* Returns the value of a header; NULL if the line is another one. */
static const char *header_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	return line + len + 1 + strspn(line + len + 1, " \t");
}

static int check_length(const char *value, size_t *ret_length, struct wss_error *err)
{
	size_t digits = strspn(value, "0123456789");

	if (!digits || digits > 18 || value[digits])
		return wss_error_set(err, WSS_ERR_FAILED, "the reply has no proper Content-Length");
	*ret_length = (size_t)strtoull(value, NULL, 10);
	return 0;
}

/* Checks the head, and finds the body, which is all that follows. */
static int find_body(const char *reply, size_t len, const char **ret_body, size_t *ret_len,
		     struct wss_error *err)
{
	const char *at = reply, *end = reply + len;
	char line[LINE_MAX_BYTES];
	size_t length = SIZE_MAX;

	if (!len)
		return wss_error_set(err, WSS_ERR_FAILED, "no reply");
	if (head_line(&at, end, line, sizeof(line)) < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply is not HTTP");
	if (check_status(line, err) < 0)
		return -1;
	do {
		const char *value;

		if (head_line(&at, end, line, sizeof(line)) < 0)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "the head of the reply is broken or too long");
		value = header_value(line, "Content-Length");
		if (value && check_length(value, &length, err) < 0)
			return -1;
		if (header_value(line, "Transfer-Encoding") ||
		    header_value(line, "Content-Encoding"))
			return wss_error_set(err, WSS_ERR_FAILED, "the reply is encoded: %.60s",
					     line);
	} while (line[0]);
	*ret_body = at;
	*ret_len = (size_t)(end - at);
	if (length != SIZE_MAX && length != *ret_len)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply has %zu bytes instead of %zu",
				     *ret_len, length);
	return 0;
}

/* --- the body --- */

#define OBJECT(struct_type, key, member, fields)                                               \
	{                                                                                      \
		key, WSS_JSON_OBJECT, offsetof(struct struct_type, member), 0, &(fields), NULL \
	}

static const struct wss_json_field memory_fields[] = {
	WSS_JSON_FIELD(wss_guest_sample, "maximum_bytes", WSS_JSON_COUNT, memory.maximum_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "balloon_bytes", WSS_JSON_COUNT, memory.balloon_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "rss_bytes", WSS_JSON_COUNT, memory.rss_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "swap_bytes", WSS_JSON_COUNT, memory.swap_bytes),
};
WSS_JSON_TABLE(memory);

static const struct wss_json_field sample_fields[] = {
	WSS_JSON_FIELD(wss_guest_sample, "quality", WSS_JSON_TEXT, quality),
	WSS_JSON_FIELD(wss_guest_sample, "method", WSS_JSON_TEXT, method),
	WSS_JSON_FIELD(wss_guest_sample, "observes", WSS_JSON_TEXT, observes),
	WSS_JSON_FIELD(wss_guest_sample, "granularity_bytes", WSS_JSON_COUNT, granularity_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "window_seconds", WSS_JSON_NANO, window_ns),
	WSS_JSON_FIELD(wss_guest_sample, "wss_bytes", WSS_JSON_COUNT, wss_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "wss_low_bytes", WSS_JSON_COUNT, low_bytes),
	WSS_JSON_FIELD(wss_guest_sample, "wss_high_bytes", WSS_JSON_COUNT, high_bytes),
	/* The fields of this one are those of the sample. */
	{"memory", WSS_JSON_OBJECT, 0, 0, &memory_table, NULL},
};
WSS_JSON_TABLE(sample);

/* One age of a guest's memory. */
struct cold_age {
	char age[16];
	struct wss_amount low_bytes, high_bytes;
};

static const struct wss_json_field age_fields[] = {
	WSS_JSON_FIELD(cold_age, "age", WSS_JSON_TEXT, age),
	WSS_JSON_FIELD(cold_age, "low_bytes", WSS_JSON_COUNT, low_bytes),
	WSS_JSON_FIELD(cold_age, "high_bytes", WSS_JSON_COUNT, high_bytes),
};
WSS_JSON_TABLE(age);

static int read_age(struct json_object *element, void *data, struct wss_error *err)
{
	struct wss_guest_cold *cold = data;
	struct cold_age age = {.age = ""};

	if (wss_json_read(element, &age_table, &age, err) < 0)
		return -1;
	if (strcmp(age.age, COLD_AGE) != 0)
		return 0;
	cold->low_bytes = age.low_bytes;
	cold->high_bytes = age.high_bytes;
	return 0;
}

/* The list is that of the struct that has it. */
static const struct wss_json_field cold_fields[] = {
	WSS_JSON_FIELD(wss_guest_cold, "since_seconds", WSS_JSON_NANO, since_ns),
	{"ages", WSS_JSON_LIST, 0, 0, NULL, read_age},
};
WSS_JSON_TABLE(cold);

static const struct wss_json_field advice_fields[] = {
	WSS_JSON_FIELD(wss_guest_advice, "recommended_bytes", WSS_JSON_COUNT, recommended_bytes),
	WSS_JSON_FIELD(wss_guest_advice, "reclaimable_bytes", WSS_JSON_COUNT, reclaimable_bytes),
};
WSS_JSON_TABLE(advice);

static const struct wss_json_field guest_fields[] = {
	WSS_JSON_FIELD(wss_guest_view, "domain", WSS_JSON_TEXT, name),
	WSS_JSON_FIELD(wss_guest_view, "uuid", WSS_JSON_TEXT, uuid),
	WSS_JSON_FIELD(wss_guest_view, "state", WSS_JSON_TEXT, state),
	WSS_JSON_FIELD(wss_guest_view, "why", WSS_JSON_TEXT, why),
	WSS_JSON_FIELD(wss_guest_view, "coarse_why", WSS_JSON_TEXT, coarse_why),
	WSS_JSON_FIELD(wss_guest_view, "blocked_why", WSS_JSON_TEXT, blocked_why),
	WSS_JSON_FIELD(wss_guest_view, "kind", WSS_JSON_TEXT, kind),
	WSS_JSON_FIELD(wss_guest_view, "period_seconds", WSS_JSON_NANO, period_ns),
	WSS_JSON_FIELD(wss_guest_view, "sample_age_seconds", WSS_JSON_NANO, age_ns),
	OBJECT(wss_guest_view, "cold", cold, cold_table),
	OBJECT(wss_guest_view, "recommendation", advice, advice_table),
	OBJECT(wss_guest_view, "sample", sample, sample_table),
};
WSS_JSON_TABLE(guest);

struct page {
	char schema[64];
	char time[WSS_CLOCK_TEXT_MAX];
	struct wss_guests guests;
};

struct wss_guest_view *wss_guests_add(struct wss_guests *guests)
{
	if (guests->n == guests->room) {
		size_t room = guests->room ? guests->room * 2 : 16;
		struct wss_guest_view *list = realloc(guests->list, room * sizeof(*list));

		if (!list)
			return NULL;
		guests->list = list;
		guests->room = room;
	}
	guests->list[guests->n] = (struct wss_guest_view){.name = ""};
	return &guests->list[guests->n++];
}

static int read_guest(struct json_object *element, void *data, struct wss_error *err)
{
	struct wss_guests *guests = data;
	struct wss_guest_view *guest;

	if (guests->n == WSS_GUESTS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "more than %d guests", WSS_GUESTS_MAX);
	guest = wss_guests_add(guests);
	if (!guest)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_json_read(element, &guest_table, guest, err) < 0)
		return -1;
	/* The rule of wss_sample_figure(). */
	if (!strcmp(guest->sample.quality, "degraded")) {
		guest->sample.wss_bytes = guest->sample.low_bytes;
		guest->sample.high_bytes = (struct wss_amount){.known = false};
	}
	if (!guest->name[0] || !guest->state[0])
		return wss_error_set(err, WSS_ERR_FAILED,
				     "a guest without \"domain\" or \"state\"");
	return 0;
}

static const struct wss_json_field page_fields[] = {
	WSS_JSON_FIELD(page, "schema", WSS_JSON_TEXT, schema),
	WSS_JSON_FIELD(page, "time", WSS_JSON_TEXT, time),
	WSS_JSON_FIELD(page, "state", WSS_JSON_TEXT, guests.state),
	WSS_JSON_FIELD(page, "since_seconds", WSS_JSON_NANO, guests.since_ns),
	WSS_JSON_FIELD(page, "held", WSS_JSON_TEXT, guests.held),
	WSS_JSON_FIELD(page, "libvirt_up", WSS_JSON_BOOL, guests.libvirt_up),
	{"guests", WSS_JSON_LIST, offsetof(struct page, guests), 0, NULL, read_guest},
};
WSS_JSON_TABLE(page);

static int check_page(const struct page *page, time_t *ret_time, struct wss_error *err)
{
	if (strcmp(page->schema, SCHEMA) != 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the schema is \"%s\" instead of \"" SCHEMA "\"",
				     page->schema);
	if (wss_clock_parse(page->time, ret_time) < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "\"time\" is not a time");
	return 0;
}

/* A page that the service does not renew any more makes all samples older. */
static void add_page_age(struct wss_guests *guests, time_t time)
{
	int64_t late = wss_clock_wall_seconds() - time;

	if (late <= 0)
		return;
	guests->page_age_ns = (uint64_t)(late < LATE_MAX_S ? late : LATE_MAX_S) * WSS_NS_PER_S;
	for (size_t i = 0; i < guests->n; i++)
		if (guests->list[i].age_ns.known)
			guests->list[i].age_ns.value += guests->page_age_ns;
}

int wss_guests_read(const char *reply, size_t len, struct wss_guests *ret_guests,
		    struct wss_error *err)
{
	static const struct qmp_limits limits = {.tree_bytes = WSS_GUESTS_TREE_MAX,
						 .depth = WSS_GUESTS_DEPTH_MAX};
	qmp_auto_json struct json_object *object = NULL;
	struct page page = {.schema = ""};
	struct wss_error unseen = WSS_ERROR_INIT;
	const char *body = NULL;
	size_t body_len = 0;
	time_t time = 0;

	if (!err)
		err = &unseen;
	if (find_body(reply, len, &body, &body_len, err) < 0)
		return -1;
	if (qmp_json_parse(body, body_len, &limits, &object, NULL, err) < 0)
		return -1;
	if (wss_json_read(object, &page_table, &page, err) < 0 ||
	    check_page(&page, &time, err) < 0) {
		wss_guests_release(&page.guests);
		return -1;
	}
	add_page_age(&page.guests, time);
	*ret_guests = page.guests;
	return 0;
}

bool wss_guests_starting(const struct wss_guests *guests)
{
	return !strcmp(guests->state, "starting");
}

void wss_guests_release(struct wss_guests *guests)
{
	free(guests->list);
	*guests = (struct wss_guests){.n = 0};
}
