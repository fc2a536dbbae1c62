/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/metadata.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"
#include "measure/element.h"

#define WHAT "profile in the metadata"

static bool add_bytes(xmlNodePtr root, const char *name, uint64_t bytes)
{
	return wss_element_add(root, name, "bytes", wss_amount_of(bytes));
}

/* Adds the figures that come from a history; absent if there is none. */
static bool profile_fill_history(xmlNodePtr root, const struct wss_profile *profile)
{
	char text[WSS_CLOCK_TEXT_MAX];

	if (profile->samples.known) {
		snprintf(text, sizeof(text), "%" PRIu64, profile->samples.value);
		if (!wss_element_set(root, "samples", text))
			return false;
	}
	if (profile->since.known) {
		wss_clock_format((time_t)profile->since.value, text);
		if (!wss_element_set(root, "since", text))
			return false;
	}
	return wss_element_add(root, "p50", "bytes", profile->p50_bytes) &&
	       wss_element_add(root, "p95", "bytes", profile->p95_bytes) &&
	       wss_element_add(root, "p99", "bytes", profile->p99_bytes) &&
	       wss_element_add(root, "peak", "bytes", profile->peak_bytes);
}

static bool profile_fill(xmlNodePtr root, const void *opaque)
{
	const struct wss_profile *profile = opaque;
	char version[16], time_text[WSS_CLOCK_TEXT_MAX], window[32], granularity[24];

	snprintf(version, sizeof(version), "%u", profile->version);
	wss_clock_format(profile->time, time_text);
	wss_seconds_format(profile->window_ns, window, sizeof(window));
	snprintf(granularity, sizeof(granularity), "%" PRIu64, profile->granularity_bytes);
	return wss_element_set(root, "version", version) &&
	       wss_element_set(root, "time", time_text) &&
	       wss_element_set(root, "method", profile->method) &&
	       wss_element_set(root, "observes", profile->observes) &&
	       wss_element_set(root, "window", window) &&
	       wss_element_set(root, "granularity", granularity) &&
	       wss_element_set(root, "confidence", profile->confidence) &&
	       wss_element_set(root, "tool", profile->tool) &&
	       (!profile->coarse_why[0] ||
		wss_element_set(root, "coarse-why", profile->coarse_why)) &&
	       add_bytes(root, "current", profile->current_bytes) &&
	       add_bytes(root, "low", profile->low_bytes) &&
	       add_bytes(root, "high", profile->high_bytes) && profile_fill_history(root, profile);
}

int wss_metadata_write(const struct wss_profile *profile, char **ret_xml, struct wss_error *err)
{
	return wss_element_write("profile", profile_fill, profile, ret_xml, err);
}

static int profile_bad(struct wss_error *err, const char *what)
{
	return wss_error_set(err, WSS_ERR_FAILED, WHAT ": %s", what);
}

static int read_time(xmlNodePtr root, const char *name, time_t *ret_time)
{
	char text[WSS_CLOCK_TEXT_MAX];

	return wss_element_text(root, name, text, sizeof(text)) < 0
		       ? -1
		       : wss_clock_parse(text, ret_time);
}

static int read_attributes(xmlNodePtr root, struct wss_profile *profile, struct wss_error *err)
{
	char version[16], granularity[24], window[32];
	uint64_t number;

	if (wss_element_text(root, "version", version, sizeof(version)) < 0 ||
	    wss_element_u64(version, &number) < 0)
		return profile_bad(err, "no version");
	if (number != WSS_PROFILE_VERSION)
		return profile_bad(err, "unsupported version");
	profile->version = (unsigned)number;
	if (read_time(root, "time", &profile->time) < 0)
		return profile_bad(err, "no valid time");
	if (wss_element_text(root, "granularity", granularity, sizeof(granularity)) < 0 ||
	    wss_element_u64(granularity, &profile->granularity_bytes) < 0)
		return profile_bad(err, "no valid granularity");
	if (wss_element_text(root, "window", window, sizeof(window)) < 0 ||
	    wss_element_seconds(window, &profile->window_ns) < 0)
		return profile_bad(err, "no valid window");
	if (wss_element_text(root, "method", profile->method, sizeof(profile->method)) < 0 ||
	    wss_element_text(root, "observes", profile->observes, sizeof(profile->observes)) < 0 ||
	    wss_element_text(root, "confidence", profile->confidence, sizeof(profile->confidence)) <
		    0 ||
	    wss_element_text(root, "tool", profile->tool, sizeof(profile->tool)) < 0)
		return profile_bad(err, "method, observes, confidence or tool is missing");
	if (xmlHasProp(root, BAD_CAST "coarse-why") &&
	    wss_element_text(root, "coarse-why", profile->coarse_why, sizeof(profile->coarse_why)) <
		    0)
		return profile_bad(err, "no valid coarse-why");
	return 0;
}

static int read_history(xmlNodePtr root, struct wss_profile *profile, struct wss_error *err)
{
	char samples[24];
	time_t since;

	if (xmlHasProp(root, BAD_CAST "samples")) {
		if (wss_element_text(root, "samples", samples, sizeof(samples)) < 0 ||
		    wss_element_u64(samples, &profile->samples.value) < 0)
			return profile_bad(err, "missing or invalid number of samples");
		profile->samples.known = true;
	}
	if (xmlHasProp(root, BAD_CAST "since")) {
		if (read_time(root, "since", &since) < 0 || since < 0)
			return profile_bad(err, "no valid since");
		profile->since = wss_amount_of((uint64_t)since);
	}
	return 0;
}

static int read_figures(xmlNodePtr root, struct wss_profile *profile, struct wss_error *err)
{
	struct wss_amount current, low, high;

	if (wss_element_number(root, "current", "bytes", &current) < 0 ||
	    wss_element_number(root, "low", "bytes", &low) < 0 ||
	    wss_element_number(root, "high", "bytes", &high) < 0 ||
	    wss_element_number(root, "p50", "bytes", &profile->p50_bytes) < 0 ||
	    wss_element_number(root, "p95", "bytes", &profile->p95_bytes) < 0 ||
	    wss_element_number(root, "p99", "bytes", &profile->p99_bytes) < 0 ||
	    wss_element_number(root, "peak", "bytes", &profile->peak_bytes) < 0)
		return profile_bad(err, "a figure is not a number of bytes");
	if (!current.known)
		return profile_bad(err, "no current figure");
	profile->current_bytes = current.value;
	profile->low_bytes = low.known ? low.value : current.value;
	profile->high_bytes = high.known ? high.value : current.value;
	return 0;
}

int wss_metadata_read(const char *xml, struct wss_profile *ret_profile, struct wss_error *err)
{
	wss_auto_xml_doc xmlDocPtr doc = wss_element_parse(xml, "profile", WHAT, err);
	struct wss_profile profile = {0};
	xmlNodePtr root;

	if (!doc)
		return -1;
	root = xmlDocGetRootElement(doc);
	if (read_attributes(root, &profile, err) < 0 || read_history(root, &profile, err) < 0 ||
	    read_figures(root, &profile, err) < 0)
		return -1;
	*ret_profile = profile;
	return 0;
}
