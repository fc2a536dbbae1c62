/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <libxml/tree.h>

#include "host/inventory.h"
#include "host/xml.h"
#include "measure/metadata.h"

static struct wss_profile example(void)
{
	return (struct wss_profile){
		.version = WSS_PROFILE_VERSION,
		.time = 1795197600,
		.method = "mmu",
		.observes = "accesses",
		.window_ns = 4020000000,
		.granularity_bytes = 4096,
		.current_bytes = 68943872,
		.low_bytes = 60000000,
		.high_bytes = 70000000,
		.confidence = "low",
		.tool = "0.1.0",
	};
}

static void drop_message(void *unused, const char *fmt, ...)
{
}

/* Loads the schema that is shipped. */
static xmlRelaxNGPtr load_schema(void)
{
	xmlRelaxNGParserCtxtPtr parser = xmlRelaxNGNewParserCtxt(WSS_DIST "/profile.rng");
	xmlRelaxNGPtr schema = parser ? xmlRelaxNGParse(parser) : NULL;

	xmlRelaxNGFreeParserCtxt(parser);
	return schema;
}

/* Puts a whole element into the namespace, as libvirt does when it stores one. */
static void inject_namespace(xmlNodePtr node, xmlNsPtr ns)
{
	for (; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE)
			continue;
		xmlSetNs(node, ns);
		inject_namespace(node->children, ns);
	}
}

static bool is_valid(xmlRelaxNGPtr schema, const char *xml)
{
	xmlDocPtr doc = xmlReadMemory(xml, (int)strlen(xml), "test", NULL, XML_PARSE_NONET);
	xmlRelaxNGValidCtxtPtr ctxt = xmlRelaxNGNewValidCtxt(schema);
	xmlNodePtr root = doc ? xmlDocGetRootElement(doc) : NULL;
	int r;

	assert_non_null(root);
	inject_namespace(
		root, xmlNewNs(root, BAD_CAST WSS_PROFILE_NAMESPACE, BAD_CAST WSS_PROFILE_PREFIX));
	xmlRelaxNGSetValidErrors(ctxt, drop_message, drop_message, NULL);
	r = xmlRelaxNGValidateDoc(ctxt, doc);
	xmlRelaxNGFreeValidCtxt(ctxt);
	xmlFreeDoc(doc);
	assert_true(r >= 0);
	return r == 0;
}

static void assert_same(const struct wss_profile *a, const struct wss_profile *b)
{
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->time, b->time);
	assert_string_equal(a->method, b->method);
	assert_string_equal(a->observes, b->observes);
	assert_true(a->window_ns == b->window_ns);
	assert_true(a->granularity_bytes == b->granularity_bytes);
	assert_true(a->current_bytes == b->current_bytes);
	assert_true(a->low_bytes == b->low_bytes);
	assert_true(a->high_bytes == b->high_bytes);
	assert_int_equal(a->p50_bytes.known, b->p50_bytes.known);
	assert_int_equal(a->p95_bytes.known, b->p95_bytes.known);
	assert_int_equal(a->p99_bytes.known, b->p99_bytes.known);
	assert_int_equal(a->peak_bytes.known, b->peak_bytes.known);
	assert_int_equal(a->samples.known, b->samples.known);
	assert_int_equal(a->since.known, b->since.known);
	assert_true(!a->p99_bytes.known || a->p99_bytes.value == b->p99_bytes.value);
	assert_true(!a->samples.known || a->samples.value == b->samples.value);
	assert_true(!a->since.known || a->since.value == b->since.value);
	assert_true(!a->p50_bytes.known || a->p50_bytes.value == b->p50_bytes.value);
	assert_true(!a->p95_bytes.known || a->p95_bytes.value == b->p95_bytes.value);
	assert_true(!a->peak_bytes.known || a->peak_bytes.value == b->peak_bytes.value);
	assert_string_equal(a->confidence, b->confidence);
	assert_string_equal(a->coarse_why, b->coarse_why);
	assert_string_equal(a->tool, b->tool);
}

/* Written, valid, and the same when read. */
static void assert_round_trip(const struct wss_profile *profile)
{
	struct wss_error err = WSS_ERROR_INIT;
	wss_auto_free char *xml = NULL;
	struct wss_profile back;
	xmlRelaxNGPtr schema;

	assert_int_equal(wss_metadata_write(profile, &xml, &err), 0);
	if (wss_metadata_read(xml, &back, &err) < 0)
		fail_msg("%s: %s", err.text, xml);
	assert_same(profile, &back);
	schema = load_schema();
	assert_non_null(schema);
	if (!is_valid(schema, xml))
		fail_msg("not valid: %s", xml);
	xmlRelaxNGFree(schema);
}

TEST(test_round_trip)
{
	struct wss_profile profile = example();

	assert_round_trip(&profile);
	profile.p50_bytes = wss_amount_of(1);
	profile.p95_bytes = wss_amount_of(0);
	profile.p99_bytes = wss_amount_of(3);
	profile.samples = wss_amount_of(UINT64_MAX);
	profile.since = wss_amount_of(1795197000);
	profile.peak_bytes = wss_amount_of(UINT64_MAX);
	profile.current_bytes = UINT64_MAX;
	profile.low_bytes = 0;
	profile.high_bytes = UINT64_MAX;
	profile.granularity_bytes = 1 << 30;
	profile.window_ns = 1000;
	profile.time = 0;
	assert_round_trip(&profile);
	profile = example();
	profile.window_ns = 86400ULL * 1000000000;
	/* The version may be anything. */
	snprintf(profile.tool, sizeof(profile.tool), "0.1.0-\"<&>'");
	snprintf(profile.coarse_why, sizeof(profile.coarse_why), "device \"<&>' is unknown");
	assert_round_trip(&profile);
}

/* Unknown values are absent, and there is no prefix, as virDomainSetMetadata() requires. */
TEST(test_written_form)
{
	struct wss_profile profile = example();
	wss_auto_free char *xml = NULL;

	assert_int_equal(wss_metadata_write(&profile, &xml, NULL), 0);
	assert_int_equal(strncmp(xml, "<profile ", 9), 0);
	assert_null(strstr(xml, "p50"));
	assert_null(strstr(xml, "p95"));
	assert_null(strstr(xml, "peak"));
	assert_non_null(strstr(xml, "time=\"2026-11-20T18:00:00Z\""));
	assert_non_null(strstr(xml, "window=\"4.02\""));
	assert_non_null(strstr(xml, "<current unit=\"bytes\">68943872</current>"));
	assert_true(strlen(xml) < 1024);
}

/* The schema refuses wrong profiles. */
TEST(test_schema_refuses)
{
	static const char *const bad[] = {
		"<profile/>",
		"<profile version='1' time='2026-11-20T18:00:00Z' method='mmu' observes='accesses' "
		"window='4' granularity='4096' confidence='single' tool='0.1.0'/>",
		"<profile version='1' time='yesterday' method='mmu' observes='accesses' "
		"window='4' granularity='4096' confidence='single' tool='0.1.0'>"
		"<current unit='bytes'>1</current></profile>",
		"<profile version='1' time='2026-11-20T18:00:00Z' method='mmu' observes='accesses' "
		"window='4' granularity='4096' confidence='single' tool='0.1.0'>"
		"<current unit='bytes'>-1</current></profile>",
	};
	xmlRelaxNGPtr schema = load_schema();

	assert_non_null(schema);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (is_valid(schema, bad[i]))
			fail_msg("valid: %s", bad[i]);
	xmlRelaxNGFree(schema);
}

/* Returns the profile with one of its parts replaced. */
static char *changed(const char *from, const char *to)
{
	struct wss_profile profile = example();
	wss_auto_free char *xml = NULL;
	char *result, *at;
	size_t size;

	assert_int_equal(wss_metadata_write(&profile, &xml, NULL), 0);
	at = strstr(xml, from);
	if (!at)
		fail_msg("'%s' is not in %s", from, xml);
	size = strlen(xml) + strlen(to) + 1;
	result = malloc(size);
	assert_non_null(result);
	snprintf(result, size, "%.*s%s%s", (int)(at - xml), xml, to, at + strlen(from));
	return result;
}

TEST(test_refuses)
{
	static const struct {
		const char *from, *to, *part;
	} table[] = {
		{"<profile ", "<policy ", "not a <profile>"},
		{"</profile>", "", "not a <profile>"},
		{"version=\"1\"", "version=\"2\"", "unsupported version"},
		{"version=\"1\"", "version=\"4294967297\"", "unsupported version"},
		{"version=\"1\"", "version=\"-1\"", "no version"},
		{"version=\"1\"", "", "no version"},
		{"18:00:00Z", "18:00:00Z and more", "time"},
		{"18:00:00Z", "", "time"},
		{"2026-11-20", "2026-13-20", "time"},
		{"granularity=\"4096\"", "granularity=\"4 KiB\"", "granularity"},
		{"granularity=\"4096\"", "", "granularity"},
		{"window=\"4.02\"", "window=\"-4\"", "window"},
		{"window=\"4.02\"", "window=\"nan\"", "window"},
		{"window=\"4.02\"", "window=\"inf\"", "window"},
		{"window=\"4.02\"", "window=\"1e300\"", "window"},
		{"window=\"4.02\"", "window=\"4s\"", "window"},
		{"window=\"4.02\"", "window=\"0x10\"", "window"},
		{"method=\"mmu\"", "", "method"},
		{"method=\"mmu\"", "method=\"longer-than-any-method\"", "method"},
		{"tool=\"0.1.0\"", "", "tool"},
		{"tool=\"0.1.0\"", "tool=\"0\" samples=\"-1\"", "samples"},
		{"tool=\"0.1.0\"", "tool=\"0\" since=\"yesterday\"", "since"},
		{"tool=\"0.1.0\"", "tool=\"0\" since=\"1900-01-01T00:00:00Z\"", "since"},
		{">68943872<", "><", "not a number"},
		{">68943872<", ">1 1<", "not a number"},
		{"<current unit=\"bytes\">", "<current unit=\"KiB\">", "not a number"},
		{">68943872<", ">-1<", "not a number"},
		{">68943872<", ">+1<", "not a number"},
		{">68943872<", ">1.5<", "not a number"},
		{">68943872<", ">18446744073709551616<", "not a number"},
		{">68943872<", ">000000000000000000000068943872<", "not a number"},
		{"<low ", "<peak unit=\"bytes\">x</peak><low ", "not a number"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		wss_auto_free char *xml = changed(table[i].from, table[i].to);
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_profile profile = {.version = 77};

		if (wss_metadata_read(xml, &profile, &err) == 0)
			fail_msg("taken: %s", xml);
		assert_error(&err, WSS_ERR_FAILED, table[i].part);
		assert_int_equal(profile.version, 77);
	}
}

TEST(test_no_current)
{
	wss_auto_free char *xml = changed("<current unit=\"bytes\">68943872</current>", "");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_profile profile;

	assert_int_equal(wss_metadata_read(xml, &profile, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "no current");
}

/* Additions by a later version, or by an operator's editor, do no harm. */
TEST(test_tolerates)
{
	static const struct {
		const char *from, *to;
	} table[] = {
		{"<profile ", "<?xml version=\"1.0\"?>\n<!-- x -->\n<profile new=\"1\" "},
		{"<low ", "\n\n <new>1</new><!-- x --><low "},
		{"<current ", "<current at=\"1\" "},
	};
	struct wss_profile profile, expected = example();

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		wss_auto_free char *xml = changed(table[i].from, table[i].to);

		assert_int_equal(wss_metadata_read(xml, &profile, NULL), 0);
		assert_same(&profile, &expected);
	}
}

/* Without bounds the figure is its own bound. */
TEST(test_bounds_absent)
{
	wss_auto_free char *xml = changed("<low unit=\"bytes\">60000000</low>", "");
	struct wss_profile profile;

	assert_int_equal(wss_metadata_read(xml, &profile, NULL), 0);
	assert_int_equal(profile.low_bytes, 68943872);
	assert_int_equal(profile.high_bytes, 70000000);
}

TEST(test_hostile)
{
	static const char *const bad[] = {
		"",
		" ",
		"<",
		"profile",
		"\xff\xfe",
		"<profile>&#0;</profile>",
		"<!DOCTYPE profile><profile/>",
		"<!DOCTYPE profile SYSTEM \"file:///etc/passwd\"><profile/>",
		"<!DOCTYPE profile [<!ENTITY a \"1\">]><profile version=\"&a;\"/>",
	};
	wss_auto_free char *large = malloc(1 << 20);
	wss_auto_free char *laughs = NULL;
	struct wss_profile profile;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_metadata_read(bad[i], &profile, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_error(&err, WSS_ERR_FAILED, "profile in the metadata");
	}
	/* Longer than allowed, and nested as deeply as possible. */
	assert_non_null(large);
	memset(large, ' ', (1 << 20) - 1);
	large[(1 << 20) - 1] = '\0';
	assert_int_equal(wss_metadata_read(large, &profile, NULL), -1);
	for (size_t i = 0; i < 60000; i += 3)
		memcpy(large + i, "<a>", 4);
	assert_int_equal(wss_metadata_read(large, &profile, NULL), -1);
	/* Entities that would grow: the profile is valid except for its document type. */
	laughs = changed("<profile ", "<!DOCTYPE profile [<!ENTITY a \"9\">"
				      "<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
				      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">]><profile ");
	assert_int_equal(wss_metadata_read(laughs, &profile, NULL), -1);
}

/* Texts that an operator will see cannot move a cursor. */
TEST(test_text_is_clean)
{
	wss_auto_free char *xml = changed("tool=\"0.1.0\"", "tool=\"a&#9;b&#x9b;c\"");
	struct wss_profile profile;

	assert_int_equal(wss_metadata_read(xml, &profile, NULL), 0);
	assert_string_equal(profile.tool, "a?b??c");
}

static unsigned calls_left; /* until one allocation of libxml2 fails; 0: none does */

static bool next_call_fails(void)
{
	return calls_left && !--calls_left;
}

static void *failing_malloc(size_t size)
{
	return next_call_fails() ? NULL : malloc(size);
}

static void *failing_realloc(void *data, size_t size)
{
	return next_call_fails() ? NULL : realloc(data, size);
}

static char *failing_strdup(const char *text)
{
	return next_call_fails() ? NULL : strdup(text);
}

static char *dump(xmlDoc *doc)
{
	xmlChar *text = NULL;
	int size;

	xmlDocDumpMemory(doc, &text, &size);
	assert_non_null(text);
	return (char *)text;
}

/*
 * Whichever allocation of libxml2 fails, a text is never another document without an error. libxml2
 * loses names when its dictionary grows, which it does at random.
 */
TEST(test_out_of_memory)
{
	static const char domain[] =
		"<domain type='kvm' id='1'><name>web1</name><uuid>a1b2c3d4</uuid><metadata>"
		"<p:policy xmlns:p='urn:virt-wss:policy:1' version='1'><p:minimum unit='MiB'>512</p:minimum>"
		"<p:headroom>30</p:headroom></p:policy>"
		"<wss:profile xmlns:wss='urn:virt-wss:profile:1' version='1' method='mmu' window='4.02' "
		"observes='accesses' granularity='4096' confidence='high' tool='0.1.0' samples='120'>"
		"<wss:current unit='bytes'>68943872</wss:current><wss:p50 unit='bytes'>1048576</wss:p50>"
		"</wss:profile></metadata><memory unit='KiB'>4194304</memory><vcpu placement='static'>1</vcpu>"
		"<os><type arch='i686'>hvm</type><boot dev='hd'/></os><clock offset='utc'/>"
		"<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><devices/></domain>";
	wss_auto_xml_doc xmlDoc *whole = wss_xml_parse(domain, sizeof(domain), NULL);
	wss_auto_free char *expected = dump(whole);
	unsigned failed = 0;

	assert_int_equal(xmlMemSetup(free, failing_malloc, failing_realloc, failing_strdup), 0);
	for (unsigned n = 0; n < 16000; n++) {
		struct wss_error err = WSS_ERROR_INIT;
		wss_auto_xml_doc xmlDoc *doc = NULL;

		calls_left = n % 400;
		doc = wss_xml_parse(domain, sizeof(domain), &err);
		calls_left = 0;
		failed += !doc;
		if (doc) {
			wss_auto_free char *text = dump(doc);

			assert_string_equal(text, expected);
		} else {
			assert_int_equal(err.code, WSS_ERR_NO_MEMORY);
		}
		assert_true(n % 400 || doc);
	}
	assert_true(failed > 4000);
	xmlMemSetup(free, malloc, realloc, strdup);
}

static int clean_up(void **unused)
{
	xmlRelaxNGCleanupTypes();
	xmlCleanupParser();
	return 0;
}

int main(void)
{
	return tests_run_within(NULL, clean_up);
}
