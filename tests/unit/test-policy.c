/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>

#include "host/inventory.h"
#include "host/xml.h"
#include "measure/policy-element.h"
#include "measure/policy-file.h"
#include "measure/profile.h"

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

TEST(test_round_trip)
{
	struct wss_policy policy = {
		.opt_out = true,
		.minimum_bytes = wss_amount_of(1 << 30),
		.maximum_bytes = wss_amount_of(4ULL << 30),
		.headroom_percent = wss_amount_of(25),
		.period_ns = wss_amount_of(1500000000),
	};
	struct wss_policy back, empty = {0};
	struct wss_error err = WSS_ERROR_INIT;
	char *xml;

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
TEST(test_by_hand)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	assert_int_equal(
		wss_policy_read("<wss-policy:policy xmlns:wss-policy='urn:virt-wss:policy:1' "
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

TEST(test_refuses)
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

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_policy policy = {.opt_out = true};

		if (wss_policy_read(bad[i], &policy, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_error(&err, WSS_ERR_FAILED, "policy in the metadata");
		assert_true(policy.opt_out);
	}
}

/* The schema and the reader agree on what an operator may write. */
TEST(test_blanks)
{
	static const char xml[] = "<policy version=' 1 '><minimum unit='MiB'> 512\n</minimum>"
				  "<headroom>\t5 </headroom><period> 1.5 </period></policy>";
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	assert_true(is_valid(xml));
	assert_int_equal(wss_policy_read(xml, &policy, &err), 0);
	assert_amount(policy.minimum_bytes, true, 512ULL << 20);
	assert_amount(policy.headroom_percent, true, 5);
	assert_amount(policy.period_ns, true, 1500000000);
	assert_false(is_valid("<policy version='1'><period>.5</period></policy>"));
	assert_false(is_valid("<policy version='1'><period>+5</period></policy>"));
	assert_false(is_valid("<policy version='1'><period>1000000001</period></policy>"));
}

TEST(test_due)
{
	struct wss_policy policy = {.period_ns = wss_amount_of(300000000000ULL)};
	struct wss_policy none = {0};
	const struct wss_amount never = {0};

	assert_true(wss_policy_due(&none, wss_amount_of(1000), 1000));
	assert_true(wss_policy_due(&policy, never, 1000));
	assert_false(wss_policy_due(&policy, wss_amount_of(1000), 1000));
	assert_false(wss_policy_due(&policy, wss_amount_of(1000), 1298));
	assert_true(wss_policy_due(&policy, wss_amount_of(1000), 1300));
	/* The clock was set back. */
	assert_true(wss_policy_due(&policy, wss_amount_of(5000), 1000));
}

/* When a round replaces a published profile. */
TEST(test_publication_due)
{
	struct wss_profile old = {.time = 100000, .current_bytes = 1}, now = old;

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
TEST(test_plain)
{
	static const char *const plain[] = {
		"<policy version='1'/>",
		"<policy version='1' xmlns='urn:virt-wss:policy:1'><minimum unit='B'>1</minimum></policy>",
		"<policy version='a:b'>c:d<!-- e:f --></policy>",
	};
	static const char *const others[] = {
		"",
		"text",
		"<policy",
		"<policy wss:opt-out='yes'/>",
		"<wss:policy/>",
		"<policy><wss:minimum>1</wss:minimum></policy>",
		"<policy><minimum/><minimum><a b='1' c:d='2'/></minimum></policy>",
		"<p:policy xmlns:p='urn:virt-wss:policy:1'/>",
		"<policy xmlns:p='urn:virt-wss:policy:1' p:opt-out='yes'/>",
		"<!DOCTYPE policy><policy/>",
		"<policy long='01234567890123456789012345678901234567890123456789'/>",
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!wss_xml_is_plain(plain[i], 1000))
			fail_msg("%s", plain[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (wss_xml_is_plain(others[i], 66))
			fail_msg("%s", others[i]);
}

static int clean_up(void **unused)
{
	xmlRelaxNGCleanupTypes();
	xmlCleanupParser();
	return 0;
}

static char *file_tree;
static struct wss_guest file_guest = {.config = {.name = "web1", .uuid = UUID_A},
				      .aliases = {"web", "100"}};

static void put_policy(const char *name, const char *text)
{
	char path[PATH_MAX];

	put_text(file_tree, make_path(path, "etc/virt-wss/policy.d/%s", name), text);
}

static struct wss_policy file_policy(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	if (wss_policy_file_read(&file_guest, &policy, &err) < 0)
		fail_msg("%s", err.text);
	return policy;
}

/* shared: the fault is that of every guest. */
static void assert_file_refused_as(bool shared, const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;

	assert_int_equal(wss_policy_file_read(&file_guest, &policy, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, part);
	assert_int_equal(err.shared, shared);
}

static void assert_file_refused(const char *part)
{
	assert_file_refused_as(false, part);
}

/* By name or UUID, from all files in their order; what is wrong anywhere is no policy to go by. */
TEST(test_files)
{
	struct wss_policy policy;
	char path[PATH_MAX];

	file_tree = make_tree();
	setenv("VIRT_WSS_SYSROOT", file_tree, 1);
	policy = file_policy();
	assert_true(wss_policy_is_empty(&policy));
	put_policy("1.conf", "[web1]\nminimum = 512MiB\nheadroom = 20%\n[web2]\nopt-out = yes\n");
	put_policy(
		"2.conf",
		"[A1B2C3D4-0000-4000-8000-00000000AAAA]\nminimum = 1GiB\nperiod = 1h\nopt-out = no\n");
	put_policy("3.ini", "[web1]\nopt-out = yes\n");
	policy = file_policy();
	assert_amount(policy.minimum_bytes, true, 1 << 30);
	assert_amount(policy.headroom_percent, true, 20);
	assert_amount(policy.period_ns, true, 3600 * WSS_NS_PER_S);
	assert_amount(policy.maximum_bytes, false, 0);
	assert_false(policy.opt_out);
	put_policy("4.conf", "[web1]\nopt-out = perhaps\n");
	assert_true(file_policy().opt_out);
	put_policy("4.conf", "[100]\nopt-out = yes\n[1000]\nopt-out = no\n");
	assert_true(file_policy().opt_out);
	put_policy("4.conf", "[web]\nopt-out = yes\n");
	assert_true(file_policy().opt_out);
	put_policy("4.conf", "[web1]\nmaximum = 100MiB\n");
	assert_file_refused("2.conf:2 and ");
	assert_file_refused("4.conf:2: web1: the minimum of 1 GiB is above the maximum of 100 MiB");
	/* In one file, too, the later setting counts, by name or by UUID. */
	put_policy("4.conf", "[" UUID_A "]\nheadroom = 50\n[web1]\nheadroom = 10\n");
	assert_amount(file_policy().headroom_percent, true, 10);
	/* Each guest has its own setting, by whatever order. */
	put_policy(
		"4.conf",
		"[web2]\nopt-out = no\nheadroom = 50\n[web1]\nopt-out = \"yes\" # ours\n\theadroom\t=10");
	assert_true(file_policy().opt_out);
	assert_amount(file_policy().headroom_percent, true, 10);
	put_policy("4.conf", "[web1]\nheadroom = 10\n[" UUID_A "]\nheadroom = 50\n");
	assert_amount(file_policy().headroom_percent, true, 50);
	put_policy("4.conf", "[web1]\nmaximum = 100\n");
	assert_file_refused("4.conf:2: maximum");
	put_policy("4.conf", "[web1]\nmaxmum = 100MiB\n");
	assert_file_refused("unknown key 'maxmum'");
	put_policy("4.conf", "opt-out = yes\n");
	assert_file_refused_as(true, "4.conf:1: the section of a guest is missing");
	put_policy("4.conf", "[web2\n");
	assert_file_refused_as(true, "4.conf:1: the ] of the section is missing");
	put_policy("4.conf", "");
	assert_int_equal(chmod(make_path(path, "%s/etc/virt-wss/policy.d/4.conf", file_tree), 0666),
			 0);
	assert_file_refused_as(true, "other users may write to it");
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(file_tree);
}

static void unused_add(const char *text, void *opaque)
{
	char *all = opaque;
	size_t len = strlen(all);

	snprintf(all + len, 2000 - len, "%s\n", text);
}

/* A name that was mistyped protects nobody. */
TEST(test_what_is_for_no_guest_is_named)
{
	char all[2000] = "";

	file_tree = make_tree();
	setenv("VIRT_WSS_SYSROOT", file_tree, 1);
	file_policy();
	wss_policy_file_unused(true, NULL, unused_add, all);
	assert_string_equal(all, "");
	put_policy("1.conf",
		   "[web1]\nheadroom = 20%\nperiod = 1h\n[web88]\nopt-out = yes\nperiod = 1h\n");
	put_policy("2.cnf", "[web1]\nopt-out = yes\n");
	put_policy(".2.conf.swp", "x");
	file_policy();
	wss_policy_file_unused(true, NULL, unused_add, all);
	assert_non_null(strstr(
		all,
		"policy.d/1.conf:5: [web88] is no guest that runs: its settings are for nobody\n"));
	assert_non_null(
		strstr(all, "policy.d/2.cnf is not read: its name does not end in .conf\n"));
	assert_null(strstr(all, "web1"));
	assert_null(strstr(all, "swp"));
	assert_int_equal(strchr(strchr(all, '\n') + 1, '\n') - all, (long)strlen(all) - 1);
	all[0] = '\0';
	wss_policy_file_unused(false, NULL, unused_add, all);
	assert_null(strstr(all, "web88"));
	assert_non_null(strstr(all, "2.cnf"));
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(file_tree);
}

int main(void)
{
	return tests_run_within(NULL, clean_up);
}
