/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The origin of a domain, and priors from guests of the same origin. */
#include "hosttest.h"

#include "host/origin.h"
#include "wss/prior.h"

#define OSINFO "http://libosinfo.org/xmlns/libvirt/domain/1.0"

static struct wss_origin origin_of(const char *xml)
{
	struct wss_origin origin = {.title = "before"};

	assert_int_equal(wss_origin_read(xml, 1 << 20, &origin, NULL), 0);
	return origin;
}

static void test_origin(void **unused)
{
	struct wss_origin origin;
	struct wss_error err = WSS_ERROR_INIT;
	char long_title[600];

	(void)unused;
	origin = origin_of("<domain><title>web</title><metadata><l:libosinfo xmlns:l='" OSINFO "'>"
			   "<l:os id='http://debian.org/debian/13'/></l:libosinfo></metadata></domain>");
	assert_string_equal(origin.title, "web");
	assert_string_equal(origin.os, "http://debian.org/debian/13");
	assert_false(origin.maximum_bytes.known);
	origin = origin_of("<domain><memory unit='GiB'>4</memory><currentMemory>1</currentMemory></domain>");
	assert_true(origin.maximum_bytes.known && origin.maximum_bytes.value == 4ULL << 30);
	assert_false(origin_of("<domain><memory>many</memory></domain>").maximum_bytes.known);
	origin = origin_of("<domain/>");
	assert_string_equal(origin.title, "");
	assert_string_equal(origin.os, "");
	/* Another namespace, or the element elsewhere. */
	origin = origin_of("<domain><metadata><l:libosinfo xmlns:l='urn:x'><l:os id='a'/></l:libosinfo>"
			   "<libosinfo><os id='b'/></libosinfo></metadata>"
			   "<l:libosinfo xmlns:l='" OSINFO "'><l:os id='c'/></l:libosinfo></domain>");
	assert_string_equal(origin.os, "");
	/* A title that does not fit is none, lest it be the same as others. */
	snprintf(long_title, sizeof(long_title), "<domain><title>%0300d</title></domain>", 7);
	assert_string_equal(origin_of(long_title).title, "");
	assert_int_equal(wss_origin_read("<domain", 1 << 20, &origin, &err), -1);
}

static const struct wss_prior_guest guests[] = {
	{"1", "web", "debian", 100}, {"2", "web", "debian", 300}, {"3", "web", "fedora", 200},
	{"4", "db", "debian", 900},  {"5", "", "debian", 50},	  {"6", "", "", 7},
	{"7", "", "", 7},	     {"8", "", "", 7},
};

static struct wss_prior prior_of(const char *uuid, const char *title, const char *os)
{
	const struct wss_prior_guest guest = {uuid, title, os, 0};
	struct wss_prior prior;

	assert_int_equal(wss_prior_find(guests, sizeof(guests) / sizeof(guests[0]), &guest, &prior, NULL), 0);
	return prior;
}

static void test_prior(void **unused)
{
	struct wss_prior prior = prior_of("9", "web", "debian");

	(void)unused;
	assert_int_equal(prior.kind, WSS_PRIOR_TITLE);
	assert_int_equal(prior.guests, 3);
	assert_int_equal(prior.bytes.value, 300);
	/* Too few of that title: by the operating system. */
	prior = prior_of("9", "db", "debian");
	assert_int_equal(prior.kind, WSS_PRIOR_OS);
	assert_int_equal(prior.guests, 4);
	assert_int_equal(prior.bytes.value, 900);
	/* A guest is no evidence about itself. */
	assert_int_equal(prior_of("1", "web", "fedora").kind, WSS_PRIOR_NONE);
	/* What is not stated is not alike. */
	assert_int_equal(prior_of("9", "", "").kind, WSS_PRIOR_NONE);
	assert_false(prior_of("9", "", "").bytes.known);
	assert_int_equal(prior_of("9", "none such", "fedora").kind, WSS_PRIOR_NONE);
}

/* Of ten and more the largest is left out. */
static void test_percentile(void **unused)
{
	struct wss_prior_guest many[20];
	const struct wss_prior_guest guest = {"x", "t", "", 0};
	char uuids[20][8];
	struct wss_prior prior;

	(void)unused;
	for (size_t i = 0; i < 20; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%zu", i);
		many[i] = (struct wss_prior_guest){uuids[i], "t", "", i + 1};
	}
	assert_int_equal(wss_prior_find(many, 20, &guest, &prior, NULL), 0);
	assert_int_equal(prior.bytes.value, 18);
	assert_int_equal(wss_prior_find(many, 0, &guest, &prior, NULL), 0);
	assert_int_equal(prior.kind, WSS_PRIOR_NONE);
}

static void test_size(void **unused)
{
	const struct wss_prior prior = {WSS_PRIOR_TITLE, 3, wss_amount_of(300)},
			       none = {.kind = WSS_PRIOR_NONE};
	const struct wss_rounding rounding = {.step_bytes = 1000};
	const struct wss_amount unknown = {.known = false};
	struct wss_sizing_rule rule = {.minimum_bytes = 0};
	struct wss_policy policy = {.opt_out = false};
	struct wss_prior_size size;

	(void)unused;
	assert_false(wss_prior_size(&none, &rule, &policy, wss_amount_of(1)).bytes.known);
	size = wss_prior_size(&prior, &rule, &policy, unknown);
	assert_true(size.bytes.value == 300 && size.reason == WSS_SIZING_PERCENTILE);
	rule.minimum_bytes = 400;
	size = wss_prior_size(&prior, &rule, &policy, unknown);
	assert_true(size.bytes.value == 400 && size.reason == WSS_SIZING_MINIMUM);
	rule.rounding = &rounding;
	size = wss_prior_size(&prior, &rule, &policy, wss_amount_of(1000));
	assert_true(size.bytes.value == 1000 && size.reason == WSS_SIZING_ROUNDING);
	/* The smaller of both maxima counts. */
	policy.maximum_bytes = wss_amount_of(350);
	size = wss_prior_size(&prior, &rule, &policy, wss_amount_of(600));
	assert_true(size.bytes.value == 350 && size.reason == WSS_SIZING_MAXIMUM);
	size = wss_prior_size(&prior, &rule, &policy, wss_amount_of(250));
	assert_true(size.bytes.value == 250 && size.reason == WSS_SIZING_MAXIMUM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_origin),
		cmocka_unit_test(test_prior),
		cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
