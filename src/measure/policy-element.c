/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/policy-element.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "measure/element.h"

#define WHAT "policy in the metadata"

static bool add_period(xmlNodePtr root, struct wss_amount period_ns)
{
	xmlNodePtr child;
	char text[32];

	if (!period_ns.known)
		return true;
	wss_seconds_format(period_ns.value, text, sizeof(text));
	child = xmlNewTextChild(root, NULL, BAD_CAST "period", BAD_CAST text);
	return child && wss_element_set(child, "unit", "seconds");
}

static bool policy_fill(xmlNodePtr root, const void *opaque)
{
	const struct wss_policy *policy = opaque;
	char version[16];

	snprintf(version, sizeof(version), "%d", WSS_POLICY_VERSION);
	return wss_element_set(root, "version", version) &&
	       (!policy->opt_out || wss_element_set(root, "opt-out", "yes")) &&
	       wss_element_add(root, "minimum", "bytes", policy->minimum_bytes) &&
	       wss_element_add(root, "maximum", "bytes", policy->maximum_bytes) &&
	       wss_element_add(root, "headroom", "percent", policy->headroom_percent) &&
	       add_period(root, policy->period_ns);
}

int wss_policy_write(const struct wss_policy *policy, char **ret_xml, struct wss_error *err)
{
	return wss_element_write("policy", policy_fill, policy, ret_xml, err);
}

static int policy_refuse(struct wss_error *err, const char *what)
{
	return wss_error_set(err, WSS_ERR_FAILED, WHAT ": %s", what);
}

/* The units of virt-wss's command line, and libvirt's "bytes". */
static int size_scale(uint64_t number, const char *unit, uint64_t *ret_bytes)
{
	char text[48];

	if (!strcasecmp(unit, "bytes") || !strcasecmp(unit, "byte"))
		unit = "B";
	/* A digit here would become part of the number. */
	if (!isalpha((unsigned char)unit[0]))
		return -1;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)number, unit);
	return wss_size_parse(text, "size", ret_bytes, NULL);
}

/*
 * Reads a size with a unit attribute, as in libvirt's own XML. The unit is required, because
 * libvirt would assume KiB and a reader might expect bytes.
 */
static int read_size(xmlNodePtr root, const char *name, struct wss_amount *ret_bytes,
		     struct wss_error *err)
{
	xmlNodePtr child = wss_element_child(root, name);
	struct wss_amount number;
	char unit[16];

	*ret_bytes = (struct wss_amount){0};
	if (!child)
		return 0;
	if (wss_element_number(root, name, NULL, &number) < 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     WHAT ": %s is not a size (example: <%s unit='MiB'>512</%s>)",
				     name, name, name);
	if (!xmlHasProp(child, BAD_CAST "unit"))
		return wss_error_set(err, WSS_ERR_FAILED,
				     WHAT ": <%s>%llu</%s> has no unit (example: <%s "
					  "unit='MiB'>512</%s>)",
				     name, (unsigned long long)number.value, name, name, name);
	if (wss_element_text(child, "unit", unit, sizeof(unit)) < 0 ||
	    size_scale(number.value, unit, &ret_bytes->value) < 0)
		return wss_error_set(err, WSS_ERR_FAILED,
				     WHAT ": the unit of %s is unknown, or the size too large "
					  "(example: <%s unit='MiB'>512</%s>)",
				     name, name, name);
	ret_bytes->known = true;
	return 0;
}

static int read_period(xmlNodePtr root, struct wss_amount *ret_ns)
{
	xmlNodePtr child = wss_element_child(root, "period");
	const xmlChar *text = wss_xml_content(child);

	if (!child)
		return 0;
	if (!text || !wss_element_is_in(child, "seconds") ||
	    wss_element_seconds((const char *)text, &ret_ns->value) < 0)
		return -1;
	ret_ns->known = true;
	return 0;
}

/*
 * Anything but a clear "no" keeps virt-wss away from the guest, because the author meant
 * something by it.
 */
static bool reads_opt_out(xmlNodePtr root)
{
	char text[16] = "yes";

	return xmlHasProp(root, BAD_CAST "opt-out") &&
	       (wss_element_text(root, "opt-out", text, sizeof(text)) < 0 || strcmp(text, "no"));
}

static bool is_one_of(const xmlChar *name, const char *const *names)
{
	while (*names && strcmp((const char *)name, *names))
		names++;
	return *names;
}

/* Refuses names that are unknown or appear twice, because the author meant something by them. */
static int check_names(xmlNodePtr root, struct wss_error *err)
{
	static const char *const attributes[] = {"version", "opt-out", NULL};
	static const char *const elements[] = {"minimum", "maximum", "headroom", "period", NULL};

	for (xmlAttrPtr attr = root->properties; attr; attr = attr->next)
		if (!is_one_of(attr->name, attributes))
			return wss_error_set(err, WSS_ERR_FAILED,
					     WHAT
					     ": unknown attribute '%s' (known: version, opt-out)",
					     (const char *)attr->name);
	for (xmlNodePtr child = root->children; child; child = child->next) {
		const char *name = (const char *)child->name;

		if (child->type != XML_ELEMENT_NODE)
			continue;
		if (!is_one_of(child->name, elements))
			return wss_error_set(err, WSS_ERR_FAILED,
					     WHAT
					     ": unknown element '%s' (known: minimum, maximum, "
					     "headroom, period)",
					     name);
		if (wss_element_child(root, name) != child)
			return wss_error_set(err, WSS_ERR_FAILED, WHAT ": '%s' appears twice",
					     name);
	}
	return 0;
}

int wss_policy_read(const char *xml, struct wss_policy *ret_policy, struct wss_error *err)
{
	wss_auto_xml_doc xmlDocPtr doc = wss_element_parse(xml, "policy", WHAT, err);
	struct wss_policy policy = {0};
	char version[16];
	xmlNodePtr root;
	uint64_t number;

	if (!doc)
		return -1;
	root = xmlDocGetRootElement(doc);
	if (wss_element_text(root, "version", version, sizeof(version)) < 0 ||
	    wss_element_u64(version, &number) < 0 || number != WSS_POLICY_VERSION)
		return policy_refuse(err,
				     "missing or unsupported version (this program supports 1)");
	if (check_names(root, err) < 0)
		return -1;
	policy.opt_out = reads_opt_out(root);
	if (read_size(root, "minimum", &policy.minimum_bytes, err) < 0 ||
	    read_size(root, "maximum", &policy.maximum_bytes, err) < 0)
		return -1;
	if (wss_element_number(root, "headroom", "percent", &policy.headroom_percent) < 0)
		return policy_refuse(err, "headroom is not a whole number of percent "
					  "(example: <headroom unit='percent'>20</headroom>)");
	if (read_period(root, &policy.period_ns) < 0)
		return policy_refuse(err, "period is not a number of seconds "
					  "(example: <period unit='seconds'>3600</period>)");
	if (wss_policy_check(&policy, err) < 0) {
		err->code = WSS_ERR_FAILED;
		return wss_error_prefix(err, WHAT);
	}
	*ret_policy = policy;
	return 0;
}
