/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>

#include "host/inventory.h"
#include "host/xml.h"
#include "out/policy.h"
#include "wss/profile.h"

static bool is_valid(const char *xml)
{
	xmlRelaxNGParserCtxtPtr parser = xmlRelaxNGNewParserCtxt(WSS_DIST "/policy.rng");
	xmlRelaxNGPtr schema = xmlRelaxNGParse(parser);
	xmlRelaxNGValidCtxtPtr ctxt;
	xmlDocPtr doc = xmlReadMemory(xml, (int)strlen(xml), "test", NULL, XML_PARSE_NONET);
	xmlNodePtr root = doc ? xmlDocGetRootElement(doc) : NULL;
	xmlNsPtr ns;
	int r;

	assert_non_null(schema);
	assert_non_null(root);
	ns = xmlNewNs(root, BAD_CAST WSS_POLICY_NAMESPACE, BAD_CAST WSS_POLICY_PREFIX);
	xmlSetNs(root, ns);
	for (xmlNodePtr node = root->children; node; node = node->next)
		if (node->type == XML_ELEMENT_NODE)
			xmlSetNs(node, ns);
	ctxt = xmlRelaxNGNewValidCtxt(schema);
	r = xmlRelaxNGValidateDoc(ctxt, doc);
	xmlRelaxNGFreeValidCtxt(ctxt);
	xmlRelaxNGFree(schema);
	xmlRelaxNGFreeParserCtxt(parser);
	xmlFreeDoc(doc);
	return r == 0;
}

static void assert_amount(struct wss_amount amount, bool known, uint64_t value)
{
	assert_int_equal(amount.known, known);
	if (known)
		assert_int_equal(amount.value, value);
}

static void test_round_trip(void **unused)
{
	struct wss_policy policy = {
		.opt_out = true,
		.minimum_bytes = wss_amount_of(1 << 30),
		.maximum_bytes = wss_amount_of(4ULL << 30),
		.headroom_percent = wss_amount_of(25),
		.period_ns = wss_amount_of(1500000000),
	};
	struct wss_policy back, empty = { 0 };
	struct wss_error err = WSS_ERROR_INIT;
	char *xml;

	(void)unused;
	assert_int_equal(wss_policy_write(&policy, &xml, &err), 0);
	assert_true(is_valid(xml));
	assert_int_equal(wss_policy_read(xml, &back, &err), 0);
	assert_true(back.opt_out);
	assert_amount(back.minimum_bytes, true, 1 << 30);
	assert_amount(back.maximum_bytes, true, 4ULL << 30);
	assert_amount(back.headroom_percent, true, 25);
	assert_amount(back.period_ns, true, 1500000000);
	free(xml);
	assert_true(wss_policy_is_empty(&empty));
	assert_false(wss_policy_is_empty(&policy));
	assert_int_equal(wss_policy_write(&empty, &xml, &err), 0);
	assert_true(is_valid(xml));
	assert_int_equal(wss_policy_read(xml, &back, &err), 0);
	assert_true(wss_policy_is_empty(&back));
	free(xml);
}

/* Written by hand, in libvirt's own style. */
static void test_by_hand(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	(void)unused;
	assert_int_equal(wss_policy_read("<wss-policy:policy xmlns:wss-policy='urn:virt-wss:policy:1' "
					 "version='1' opt-out='no'><!-- ours -->"
					 "<wss-policy:minimum unit='GiB'>2</wss-policy:minimum>"
					 "<wss-policy:period unit='seconds'>\n  300\n</wss-policy:period>"
					 "</wss-policy:policy>",
					 &policy, &err),
			 0);
	assert_false(policy.opt_out);
	assert_amount(policy.minimum_bytes, true, 2ULL << 30);
	assert_amount(policy.maximum_bytes, false, 0);
	assert_amount(policy.period_ns, true, 300000000000ULL);
	/* Any other value leaves the guest alone, too. */
	assert_int_equal(wss_policy_read("<policy version='1' opt-out='true'/>", &policy, &err), 0);
	assert_true(policy.opt_out);
	assert_int_equal(wss_policy_read("<policy version='1' opt-out='a very long word indeed'/>",
					 &policy, &err),
			 0);
	assert_true(policy.opt_out);
}

static void test_refuses(void **unused)
{
	static const char *const bad[] = {
		"",
		"<policy/>",
		"<policy version='2'/>",
		"<profile version='1'/>",
		"<policy version='1'><minimum unit='MiB'>-1</minimum></policy>",
		"<policy version='1'><minimum>5</minimum></policy>",
		"<policy version='1'><maximum>8589934592</maximum></policy>",
		"<policy version='1'><minimum unit='parsecs'>1</minimum></policy>",
		"<policy version='1'><minimum unit=''>1</minimum></policy>",
		/* Never read as 50 KiB, 50 GiB or 5.5 GiB. */
		"<policy version='1'><minimum unit='0'>5</minimum></policy>",
		"<policy version='1'><minimum unit='0GiB'>5</minimum></policy>",
		"<policy version='1'><minimum unit='.5GiB'>5</minimum></policy>",
		"<policy version='1'><maximum unit='TiB'>99999999999</maximum></policy>",
		"<policy version='1'><headroom>20%</headroom></policy>",
		"<policy version='1'><headroom>1001</headroom></policy>",
		"<policy version='1'><period>5m</period></policy>",
		"<policy version='1'><period></period></policy>",
		"<policy version='1'><period>.5</period></policy>",
		"<policy version='1'><period>5 5</period></policy>",
		"<policy version='1'><period unit='minutes'>5</period></policy>",
		"<policy version='1'><headroom unit='MiB'>50</headroom></policy>",
		"<policy version='1'><minimun>5</minimun></policy>",
		"<policy version='1'><opt-out>yes</opt-out></policy>",
		"<policy version='1' optout='yes'/>",
		"<policy version='1'><minimum unit='B'>1</minimum><minimum "
		"unit='B'>2</minimum></policy>",
		"<policy version='1'><minimum unit='B'>2</minimum><maximum "
		"unit='B'>1</maximum></policy>",
		"<!DOCTYPE policy [<!ENTITY a '1'>]><policy version='1'/>",
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_policy policy = { .opt_out = true };

		if (wss_policy_read(bad[i], &policy, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_error(&err, WSS_ERR_FAILED, "policy in the metadata");
		assert_true(policy.opt_out);
	}
}

/* The schema and the reader agree on what an operator may write. */
static void test_blanks(void **unused)
{
	static const char xml[] = "<policy version=' 1 '><minimum unit='MiB'> 512\n</minimum>"
				  "<headroom>\t5 </headroom><period> 1.5 </period></policy>";
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	(void)unused;
	assert_true(is_valid(xml));
	assert_int_equal(wss_policy_read(xml, &policy, &err), 0);
	assert_amount(policy.minimum_bytes, true, 512ULL << 20);
	assert_amount(policy.headroom_percent, true, 5);
	assert_amount(policy.period_ns, true, 1500000000);
	assert_false(is_valid("<policy version='1'><period>.5</period></policy>"));
	assert_false(is_valid("<policy version='1'><period>+5</period></policy>"));
	assert_false(is_valid("<policy version='1'><period>1000000001</period></policy>"));
}

static void test_due(void **unused)
{
	struct wss_policy policy = { .period_ns = wss_amount_of(300000000000ULL) };
	struct wss_policy none = { 0 };
	const struct wss_amount never = { 0 };

	(void)unused;
	assert_true(wss_policy_due(&none, wss_amount_of(1000), 1000));
	assert_true(wss_policy_due(&policy, never, 1000));
	assert_false(wss_policy_due(&policy, wss_amount_of(1000), 1000));
	assert_false(wss_policy_due(&policy, wss_amount_of(1000), 1298));
	assert_true(wss_policy_due(&policy, wss_amount_of(1000), 1300));
	/* The clock was set back. */
	assert_true(wss_policy_due(&policy, wss_amount_of(5000), 1000));
}

/* When a round replaces a published profile. */
static void test_publication_due(void **unused)
{
	struct wss_profile old = { .time = 100000, .current_bytes = 1 }, now = old;

	(void)unused;
	now.current_bytes = 2;
	now.time = old.time + WSS_PUBLISH_PERIOD_S - 1;
	assert_false(wss_profile_due(&old, &now));
	now.time = old.time + WSS_PUBLISH_PERIOD_S;
	assert_true(wss_profile_due(&old, &now));
	now.current_bytes = 1;
	now.samples = wss_amount_of(7);
	assert_false(wss_profile_due(&old, &now));
	now.p99_bytes = wss_amount_of(1);
	assert_true(wss_profile_due(&old, &now));
	now.p99_bytes.known = false;
	now.time = old.time + WSS_PUBLISH_REFRESH_S;
	assert_true(wss_profile_due(&old, &now));
	now.time = old.time - 1;
	assert_true(wss_profile_due(&old, &now));
}

/* Elements that virDomainSetMetadata() may be given: see docs/libvirt-metadata-prefix.md. */
static void test_plain(void **unused)
{
	static const char *const plain[] = {
		"<policy version='1'/>",
		"<policy version='1' xmlns='urn:virt-wss:policy:1'><minimum unit='B'>1</minimum></policy>",
		"<policy version='a:b'>c:d<!-- e:f --></policy>",
	};
	static const char *const others[] = {
		"", "text", "<policy", "<policy wss:opt-out='yes'/>", "<wss:policy/>",
		"<policy><wss:minimum>1</wss:minimum></policy>",
		"<policy><minimum/><minimum><a b='1' c:d='2'/></minimum></policy>",
		"<p:policy xmlns:p='urn:virt-wss:policy:1'/>",
		"<policy xmlns:p='urn:virt-wss:policy:1' p:opt-out='yes'/>",
		"<!DOCTYPE policy><policy/>",
		"<policy long='01234567890123456789012345678901234567890123456789'/>",
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!wss_xml_is_plain(plain[i], 1000))
			fail_msg("%s", plain[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (wss_xml_is_plain(others[i], 66))
			fail_msg("%s", others[i]);
}

static int clean_up(void **unused)
{
	(void)unused;
	xmlRelaxNGCleanupTypes();
	xmlCleanupParser();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_refuses),	   cmocka_unit_test(test_due),
		cmocka_unit_test(test_blanks),	   cmocka_unit_test(test_publication_due),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, clean_up);
}
