/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The queries: results of good replies, and errors for bad ones. */
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/query.h"

static int print_status(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_status v;

	if (qmp_query_status(qmp, PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "%d %s", v.running, v.state);
	return 0;
}

static int print_kvm(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_kvm v;

	if (qmp_query_kvm(qmp, PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "%d %d", v.enabled, v.present);
	return 0;
}

static int print_uuid(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	char uuid[QMP_UUID_TEXT_MAX];

	if (qmp_query_uuid(qmp, PLENTY_MS, uuid, err) < 0)
		return -1;
	snprintf(text, size, "%s", uuid);
	return 0;
}

static int print_name(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	char name[QMP_NAME_MAX];

	if (qmp_query_name(qmp, PLENTY_MS, name, err) < 0)
		return -1;
	snprintf(text, size, "<%s>", name);
	return 0;
}

static int print_balloon(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_balloon v;

	if (qmp_query_balloon(qmp, PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "%d %" PRIu64, v.present, v.actual_bytes);
	return 0;
}

static int print_balloon_report(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_balloon_report v;

	if (qmp_query_balloon_report(qmp, "balloon0", PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "%" PRIu64 ": %d %" PRIu64 ", %d %" PRIu64 ", %d, %d", v.update_s,
		 v.free_bytes.known, v.free_bytes.value, v.usable_bytes.known, v.usable_bytes.value,
		 v.managed_bytes.known, v.cache_bytes.known);
	return 0;
}

static int print_migrate(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_migration v;

	if (qmp_query_migrate(qmp, PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "<%s> %d", v.state, v.in_progress);
	return 0;
}

static int print_memory_size(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_memory_size v;

	if (qmp_query_memory_size(qmp, PLENTY_MS, &v, err) < 0)
		return -1;
	snprintf(text, size, "%" PRIu64 " %d %" PRIu64, v.base_bytes, v.has_plugged,
		 v.plugged_bytes);
	return 0;
}

static int print_memdev(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_memdev *list = NULL;
	size_t count = 77, at;

	if (qmp_query_memdev(qmp, PLENTY_MS, &list, &count, err) < 0) {
		assert_true(!list && count == 77);
		return -1;
	}
	at = (size_t)snprintf(text, size, "%zu", count);
	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "; <%s> %" PRIu64 " %d", list[i].id,
				       list[i].size_bytes, list[i].share);
	free(list);
	return 0;
}

static int print_memory_devices(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_memory_device *list = NULL;
	size_t count = 77, at;

	if (qmp_query_memory_devices(qmp, PLENTY_MS, &list, &count, err) < 0) {
		assert_true(!list && count == 77);
		return -1;
	}
	at = (size_t)snprintf(text, size, "%zu", count);
	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at,
				       "; %s <%s> <%s> %" PRIu64 " %" PRIu64 " %" PRIu64,
				       list[i].type, list[i].id, list[i].memdev, list[i].gpa,
				       list[i].size_bytes, list[i].max_bytes);
	free(list);
	return 0;
}

static int print_models(const struct qmp_model *list, size_t count, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "%zu", count);

	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "; %s", list[i].name);
	return 0;
}

static int print_children(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_model *list = NULL;
	size_t count = 77;

	if (qmp_query_children(qmp, "/machine/peripheral", PLENTY_MS, &list, &count, err) < 0) {
		assert_true(!list && count == 77);
		return -1;
	}
	print_models(list, count, text, size);
	free(list);
	return 0;
}

static int print_network(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_model *list = NULL;
	size_t count = 77;

	if (qmp_query_network(qmp, PLENTY_MS, &list, &count, err) < 0) {
		assert_true(!list && count == 77);
		return -1;
	}
	print_models(list, count, text, size);
	free(list);
	return 0;
}

static int print_stats(struct qmp *qmp, char *text, size_t size, struct wss_error *err)
{
	struct qmp_stat stats[] = {{"pages_4k", true, 77}, {"pages_2m", true, 77}};
	int result = qmp_query_stats(qmp, QMP_STATS_VM, stats, 2, PLENTY_MS, err);

	if (result < 0) {
		assert_true(stats[0].found && stats[0].value == 77 && stats[1].value == 77);
		return -1;
	}
	snprintf(text, size, "%d %" PRIu64 ", %d %" PRIu64, stats[0].found, stats[0].value,
		 stats[1].found, stats[1].value);
	return 0;
}

static const struct {
	const char *name;
	int (*print)(struct qmp *qmp, char *text, size_t size, struct wss_error *err);
} queries[] = {
	{"query-status", print_status},
	{"query-kvm", print_kvm},
	{"query-uuid", print_uuid},
	{"query-name", print_name},
	{"query-balloon", print_balloon},
	{"qom-get", print_balloon_report},
	{"query-migrate", print_migrate},
	{"query-memory-size-summary", print_memory_size},
	{"query-memdev", print_memdev},
	{"query-memory-devices", print_memory_devices},
	{"query-stats", print_stats},
	{"qom-list", print_children},
	{"human-monitor-command", print_network},
};

#define QUERIES (sizeof(queries) / sizeof(*queries))

/* Runs one query by name, and prints its result into text. */
static int run(struct qmp *qmp, const char *query, char *text, size_t size, struct wss_error *err)
{
	for (size_t i = 0; i < QUERIES; i++)
		if (!strcmp(queries[i].name, query))
			return queries[i].print(qmp, text, size, err);
	fail_msg("no query %s", query);
	return -1;
}

static void expect_on(struct qmp *qmp, const char *query, const char *expected)
{
	struct wss_error err = WSS_ERROR_INIT;
	char text[1024] = "";

	if (run(qmp, query, text, sizeof(text), &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(text, expected);
	assert_int_equal(err.code, WSS_OK);
}

TEST(test_default_guest)
{
	static const char *const replies[][2] = {
		{"query-status", "1 running"},
		{"query-kvm", "0 1"},
		{"query-uuid", "12345678-1234-1234-1234-123456789abc"},
		{"query-name", "<fake>"},
		{"query-balloon", "0 0"},
		{"query-migrate", "<> 0"},
		{"query-memory-size-summary", "8388608 1 0"},
		{"query-memdev", "1; <pc.ram> 8388608 1"},
		{"query-memory-devices", "0"},
		{"query-stats", "0 0, 0 0"},
	};
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "ram 8 1\n");
	qmp = fake_connect(&fake, NULL);
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++)
		expect_on(qmp, replies[i][0], replies[i][1]);
	qmp_close(qmp);
	fake_stop(&fake);
}

TEST(test_guest_of_a_script)
{
	struct fake fake;
	struct qmp *qmp;

	fake_start(&fake, "# a guest\nset kvm on\nset status paused\nset version 10.0.1\n"
			  "set balloon 123456789\nset name other\n"
			  "set uuid ABCDEF00-0000-0000-0000-000000000000\n"
			  "on query-name\n return {}\n");
	qmp = fake_connect(&fake, NULL);
	expect_on(qmp, "query-status", "0 paused");
	expect_on(qmp, "query-kvm", "1 1");
	expect_on(qmp, "query-uuid", "abcdef00-0000-0000-0000-000000000000");
	expect_on(qmp, "query-name", "<>");
	expect_on(qmp, "query-balloon", "1 123456789");
	qmp_close(qmp);
	fake_stop(&fake);
}

/* Replies of QEMU 7.2 and 10.0, beyond the simplest. */
TEST(test_more_replies)
{
	static const char *const cases[][3] = {
		/* What a guest does not report is -1, as an unsigned number. */
		{"qom-get",
		 "{\"last-update\": 1700000000, \"stats\": {\"stat-free-memory\": 5, \"stat-available-memory\": 7, "
		 "\"stat-total-memory\": 18446744073709551615, \"stat-disk-caches\": 9223372036854775807}}",
		 "1700000000: 1 5, 1 7, 0, 0"},
		{"query-migrate", "{\"status\": \"active\", \"total-time\": 5}", "<active> 1"},
		{"query-migrate", "{\"status\": \"completed\"}", "<completed> 0"},
		{"query-migrate", "{\"status\": \"cancelled\"}", "<cancelled> 0"},
		{"query-migrate", "{\"status\": \"failed\"}", "<failed> 0"},
		{"query-migrate", "{\"status\": \"none\"}", "<none> 0"},
		{"query-migrate", "{\"status\": \"postcopy-paused\"}", "<postcopy-paused> 1"},
		{"query-memory-size-summary", "{\"base-memory\": 5}", "5 0 0"},
		{"query-memdev",
		 "[{\"prealloc\": false, \"host-nodes\": [], \"size\": 536870912, \"merge\": "
		 "true, "
		 "\"dump\": true, \"id\": \"ram0\", \"policy\": \"default\"}, "
		 "{\"size\": 4096, \"share\": true}]",
		 "2; <ram0> 536870912 0; <> 4096 1"},
		{"query-memory-devices",
		 "[{\"data\": {\"memdev\": \"/objects/m1\", \"hotplugged\": false, "
		 "\"addr\": 4294967296, \"hotpluggable\": true, \"size\": 1024, \"slot\": 0, "
		 "\"node\": 0, \"id\": \"dimm1\"}, \"type\": \"dimm\"}, "
		 "{\"type\": \"virtio-mem\", \"data\": {\"memaddr\": 8192, "
		 "\"requested-size\": 9, "
		 "\"size\": 10, \"max-size\": 100, \"block-size\": 2, \"node\": 0, "
		 "\"memdev\": \"/objects/m2\"}}, {\"type\": \"new\", \"data\": {}}]",
		 "3; dimm <dimm1> </objects/m1> 4294967296 1024 1024; "
		 "virtio-mem <> </objects/m2> 8192 10 100; new <> <> 0 0 0"},
		{"qom-list",
		 "[{\"name\": \"type\", \"type\": \"string\"}, {\"name\": \"net0\", \"type\": "
		 "\"child<virtio-net-pci>\"}, {\"name\": \"d\", \"type\": \"child<vfio-pci>\"}]",
		 "2; virtio-net-pci; vfio-pci"},
		{"qom-list", "[]", "0"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"max\", \"value\": 18446744073709551615}, "
		 "{\"name\": \"pages_4k\", \"value\": 9223372036854775808}, "
		 "{\"name\": \"pages_2m\", \"value\": 18446744073709551614}, "
		 "{\"name\": \"pages_2m\", \"value\": 2}, {\"name\": \"pages_2m\", \"value\": 0}]}]",
		 "1 9223372036854775808, 0 18446744073709551615"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"pages_4k\", \"value\": 18446744073709551615}, "
		 "{\"name\": \"pages_2m\", \"value\": 5}]}]",
		 "0 18446744073709551615, 1 5"},
		{"human-monitor-command",
		 "\"hub 0\\r\\n \\\\ u: index=0,type=user,net=10.0.2.0\\r\\nnet0: index=0,type=nic,"
		 "model=virtio-net-pci\\r\\n \\\\ n0: index=12,type=vhost-user\\r\\n\"",
		 "3; user; nic; vhost-user"},
		{"human-monitor-command", "\"\"", "0"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"pages_4k\", \"value\": "
		 "4518}, "
		 "{\"name\": \"other\", \"value\": [1, 2]}, {\"name\": \"pages_2m\", "
		 "\"value\": true}]}, "
		 "{\"provider\": \"other\", \"stats\": [{\"name\": \"pages_4k\", \"value\": "
		 "1}]}]",
		 "1 4518, 1 1"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"qom-path\": \"a\", \"stats\": [{\"name\": "
		 "\"pages_2m\", \"value\": 3}]}, "
		 "{\"provider\": \"kvm\", \"qom-path\": \"b\", \"stats\": [{\"name\": "
		 "\"pages_2m\", \"value\": 4}]}]",
		 "0 0, 1 7"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char reply[2048];
		const char *pointer = reply;
		struct qmp *qmp = connect_canned(&pointer);

		snprintf(reply, sizeof(reply), "{\"return\": %s}", cases[i][1]);
		expect_on(qmp, cases[i][0], cases[i][2]);
		qmp_close(qmp);
	}
}

static void refuse(const char *query, const char *reply, enum wss_error_code code,
		   const char *needle)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = connect_canned(&reply);
	char text[1024] = "untouched";

	if (run(qmp, query, text, sizeof(text), &err) == 0)
		fail_msg("%s accepted: %s", query, reply);
	assert_string_equal(text, "untouched");
	assert_code(&err, code);
	assert_text(&err, needle);
	assert_text(&err, query);
	qmp_close(qmp);
}

TEST(test_bad_replies)
{
	static const char *const cases[][3] = {
		{"query-status", "{\"status\": \"x\"}", "\"running\" is missing"},
		{"query-status", "{\"running\": true}", "\"status\" is missing"},
		{"query-status",
		 "{\"running\": true, \"status\": \"0123456789012345678901234567890123\"}",
		 "34 characters"},
		{"query-kvm", "{\"enabled\": true}", "\"present\" is missing"},
		{"query-kvm", "{\"enabled\": 1, \"present\": true}", "\"enabled\" is an integer"},
		{"query-uuid", "{\"uuid\": \"\"}", "\"UUID\" is missing"},
		{"query-uuid", "{\"UUID\": \"12345678-1234-1234-1234-123456789ab\"}", "not a UUID"},
		{"query-uuid", "{\"UUID\": \"12345678x1234-1234-1234-123456789abc\"}",
		 "not a UUID"},
		{"query-uuid", "{\"UUID\": \"12345678-1234-1234-1234-12345678-abc\"}",
		 "not a UUID"},
		{"query-uuid", "{\"UUID\": \"12345678-1234-1234-1234-123456789abcd\"}",
		 "37 characters"},
		{"query-name", "{\"name\": 1}", "\"name\" is an integer"},
		{"query-balloon", "{}", "\"actual\" is missing"},
		{"qom-get", "{\"stats\": {}}", "\"last-update\" is missing"},
		{"qom-get", "{\"last-update\": 0, \"stats\": 5}", "\"stats\""},
		{"query-balloon", "{\"actual\": -1}", "negative"},
		{"query-migrate", "{\"status\": 1}", "\"status\" is an integer"},
		{"query-memory-size-summary", "{}", "\"base-memory\" is missing"},
		{"query-memory-size-summary", "{\"base-memory\": 1, \"plugged-memory\": \"\"}",
		 "a string"},
		{"query-memory-size-summary", "[]", "an array instead of"},
		{"query-memdev", "[{}]", "entry 0: \"size\" is missing"},
		{"query-memdev", "[{\"size\": 1}, 5]", "entry 1: an integer instead of"},
		{"query-memdev", "[{\"size\": 1, \"share\": 1}]", "\"share\" is an integer"},
		{"query-memdev", "[{\"size\": 1, \"id\": 1}]", "\"id\" is an integer"},
		{"query-memory-devices", "[null]", "entry 0: null instead of"},
		{"query-memory-devices", "[{\"type\": \"dimm\"}]", "\"data\" is missing"},
		{"query-memory-devices", "[{\"type\": \"dimm\", \"data\": {\"size\": -1}}]",
		 "negative"},
		{"query-memory-devices", "[{\"type\": \"dimm\", \"data\": {\"max-size\": -1}}]",
		 "negative"},
		{"qom-list", "{}", "an object instead of a list"},
		{"qom-list", "[{\"name\": \"a\"}]", "\"type\" is missing"},
		{"qom-list", "[{\"type\": \"child<\"}]", "unknown \"type\""},
		{"qom-list", "[{\"type\": \"child<a\"}]", "unknown \"type\""},
		{"human-monitor-command", "{}", "an object instead of a string"},
		{"human-monitor-command", "\"unknown command\\r\\n\"",
		 "cannot parse info network: unknown"},
		{"human-monitor-command", "\"a: index=0,kind=tap\"", "cannot parse"},
		{"human-monitor-command", "\"a: index=0,type=,x\"", "cannot parse"},
		{"query-stats", "{}", "an object instead of a list"},
		{"query-stats", "[5]", "an integer instead of"},
		{"query-stats", "[{\"provider\": \"kvm\"}]", "\"stats\" is missing"},
		{"query-stats", "[{\"provider\": \"kvm\", \"stats\": [{}]}]",
		 "\"name\" is missing"},
		{"query-stats", "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"pages_4k\"}]}]",
		 "pages_4k: \"value\" is missing"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"pages_4k\", \"value\": "
		 "[1]}]}]",
		 "an array"},
		{"query-stats",
		 "[{\"provider\": \"kvm\", \"stats\": [{\"name\": \"pages_4k\", \"value\": "
		 "-1}]}]",
		 "negative"},
	};
	char reply[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(reply, sizeof(reply), "{\"return\": %s}", cases[i][1]);
		refuse(cases[i][0], reply, WSS_ERR_FAILED, cases[i][2]);
	}
}

/* Every query handles an error from QEMU and a reply of the wrong type. */
TEST(test_every_query)
{
	for (size_t i = 0; i < QUERIES; i++) {
		const char *name = queries[i].name;

		refuse(name, "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"what?\"}}",
		       WSS_ERR_UNSUPPORTED, "what?");
		refuse(name, "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}",
		       WSS_ERR_FAILED, "no (GenericError)");
		refuse(name, "{\"return\": 5}", WSS_ERR_FAILED, "an integer instead of");
		refuse(name, "garbage", WSS_ERR_FAILED, "not JSON");
	}
}

TEST(test_too_many_entries)
{
	static const char *const names[] = {"query-memdev", "query-memory-devices", "query-stats"};
	char *reply = malloc(256 + 2 * QMP_LIST_MAX), *at;
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_stat stats[65] = {{0}};
	const char *none = "{\"return\": []}";
	struct qmp *qmp;

	at = reply + sprintf(reply, "{\"return\": [0");
	for (int i = 0; i < QMP_LIST_MAX; i++)
		at += sprintf(at, ",0");
	strcpy(at, "]}");
	for (size_t i = 0; i < 3; i++)
		refuse(names[i], reply, WSS_ERR_FAILED, "4097 entries, limit 4096");
	free(reply);
	qmp = connect_canned(&none);
	assert_int_equal(qmp_query_stats(qmp, QMP_STATS_VM, stats, 65, PLENTY_MS, &err), -1);
	assert_text(&err, "65 names, limit 64");
	qmp_close(qmp);
}

TEST(test_stats_request)
{
	const char *reply = "{\"return\": [{\"provider\": \"kvm\", \"stats\": "
			    "[{\"name\": \"pf_fixed\", \"value\": 9}]}]}";
	struct qmp_stat stats[] = {{.name = "pages_4k"}, {.name = "pf_fixed"}};
	struct qmp *qmp = connect_canned(&reply);

	assert_int_equal(qmp_query_stats(qmp, QMP_STATS_VCPU, stats, 2, PLENTY_MS, NULL), 0);
	assert_false(stats[0].found);
	assert_true(stats[1].found && stats[1].value == 9);
	assert_string_equal(canned_command,
			    "{\"execute\":\"query-stats\",\"arguments\":{\"target\":\"vcpu\","
			    "\"providers\":[{\"provider\":\"kvm\",\"names\":[\"pages_4k\","
			    "\"pf_fixed\"]}]}}");
	assert_int_equal(qmp_query_stats(qmp, QMP_STATS_VM, stats, 0, PLENTY_MS, NULL), 0);
	assert_non_null(strstr(canned_command, "\"target\":\"vm\""));
	qmp_close(qmp);
}

int main(void)
{
	return tests_run();
}
