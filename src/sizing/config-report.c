/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/config-report.h"

#include <string.h>

#include "base/log.h"

static const void *finding_of(const void *row)
{
	return ((const struct wss_config_row *)row)->finding;
}

static struct wss_value config_get_setting(const void *row)
{
	const struct wss_config_finding *finding = finding_of(row);

	return finding ? wss_value_text(wss_config_setting_name(finding->setting))
		       : wss_value_absent();
}

static struct wss_value config_get_why(const void *row)
{
	const struct wss_config_row *config = row;

	return wss_value_text(config->error	? config->error
			      : config->finding ? config->finding->why
						: "nothing to change");
}

static struct wss_value config_get_blocks(const void *row)
{
	const struct wss_config_finding *finding = finding_of(row);

	return finding && finding->setting != WSS_CONFIG_UNSEEN
		       ? wss_value_number(finding->blocks, WSS_KIND_BOOL)
		       : wss_value_absent();
}

static struct wss_value config_get_gain(const void *row)
{
	const struct wss_config_finding *finding = finding_of(row);

	return finding ? wss_value_bounded(wss_value_amount(finding->gain_bytes, WSS_KIND_BYTES),
					   finding->gain_bound)
		       : wss_value_absent();
}

static struct wss_value config_get_gain_is_bound(const void *row)
{
	const struct wss_config_finding *finding = finding_of(row);

	return finding && finding->gain_bytes.known
		       ? wss_value_number(finding->gain_bound != WSS_BOUND_EXACT, WSS_KIND_BOOL)
		       : wss_value_absent();
}

#define FIELD(member, kind) WSS_FIELD(struct wss_config_row, member, kind)
#define FINDING(member, kind) WSS_FIELD_OF(finding_of, struct wss_config_finding, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -8, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"setting", NULL, "SETTING", -22, WSS_GET(config_get_setting),
	 "What its configuration has or lacks; absent: nothing is to be changed"},
	{"blocks", NULL, "BLOCKS", -6, WSS_GET(config_get_blocks),
	 "Whether no memory comes back by the balloon as long as this is so"},
	{"gain_bytes", NULL, "GAIN", 10, WSS_GET(config_get_gain),
	 "Memory that the change would return or make returnable, in bytes"},
	{"gain_is_bound", NULL, "BOUND", -5, WSS_GET(config_get_gain_is_bound),
	 "Whether that is an upper bound"},
	{"gain_age_seconds", NULL, "GAIN-AGE", 8, FINDING(gain_age_s, AGE),
	 "Age of the guest's own report on which the gain rests, in seconds"},
	{"gain_reason", NULL, "NO-GAIN", -20, FINDING(no_gain, TEXT), "Why the gain is not known"},
	{"effective", NULL, "EFFECTIVE", -10, FINDING(effective, TEXT),
	 "When the change takes effect: now, or at the next start of the guest"},
	{"command", NULL, "COMMAND", -20, FINDING(command, TEXT),
	 "The command that makes the change, or opens the XML"},
	{"element", NULL, "ELEMENT", -20, FINDING(element, TEXT),
	 "The element that takes the place of the one of that name in the XML"},
	{"reason", NULL, "REASON", -20, WSS_GET(config_get_why), "What the present setting costs"},
};

const struct wss_report_layout wss_config_layout = {
	.schema = "virt-wss/configuration/1",
	.array_key = "configuration",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,setting,blocks,gain_bytes,command",
	.wide = "domain,setting,blocks,gain_bytes,gain_age_seconds,gain_reason,effective,command,reason",
};

void wss_config_notes(const char *domain, const struct wss_config_finding *findings, size_t n)
{
	const char *printed = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *element = findings[i].element;

		/* All findings on one device have the same element. */
		if (!element || (printed && !strcmp(printed, element)))
			continue;
		printed = element;
		wss_log(WSS_LOG_INFO, "%s: put into the domain XML (effective at next start): %s",
			domain, element);
	}
}
