/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/config-report.h"

#include <string.h>

#include "base/log.h"

static const struct wss_config_row *config_row_of(const void *row)
{
	return row;
}

static const struct wss_config_finding *finding_of(const void *row)
{
	static const struct wss_config_finding none = {.why = "nothing to change"};
	const struct wss_config_finding *finding = config_row_of(row)->finding;

	return finding ? finding : &none;
}

static struct wss_value config_get_domain(const void *row)
{
	return wss_value_text(config_row_of(row)->domain);
}

static struct wss_value config_get_uuid(const void *row)
{
	return wss_value_text(config_row_of(row)->uuid);
}

static struct wss_value config_get_setting(const void *row)
{
	return config_row_of(row)->finding ? wss_value_text(wss_config_setting_name(finding_of(row)->setting))
					   : wss_value_absent();
}

static struct wss_value config_get_blocks(const void *row)
{
	return config_row_of(row)->finding ? wss_value_number(finding_of(row)->blocks, WSS_KIND_BOOL)
					   : wss_value_absent();
}

static struct wss_value config_get_why(const void *row)
{
	return wss_value_text(config_row_of(row)->error ? config_row_of(row)->error
							: finding_of(row)->why);
}

static struct wss_value config_get_command(const void *row)
{
	return wss_value_text(finding_of(row)->command);
}

static struct wss_value config_get_effective(const void *row)
{
	return wss_value_text(finding_of(row)->effective);
}

static struct wss_value config_get_element(const void *row)
{
	return wss_value_text(finding_of(row)->element);
}

static struct wss_value config_get_gain(const void *row)
{
	return wss_value_bounded(wss_value_amount(finding_of(row)->gain_bytes, WSS_KIND_BYTES),
				 finding_of(row)->gain_bound);
}

static struct wss_value config_get_gain_is_bound(const void *row)
{
	return finding_of(row)->gain_bytes.known
		       ? wss_value_number(finding_of(row)->gain_bound != WSS_BOUND_EXACT, WSS_KIND_BOOL)
		       : wss_value_absent();
}

static struct wss_value config_get_gain_age(const void *row)
{
	return wss_value_amount(finding_of(row)->gain_age_s, WSS_KIND_AGE);
}

static struct wss_value config_get_no_gain(const void *row)
{
	return wss_value_text(finding_of(row)->no_gain);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -8, config_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, config_get_uuid, "UUID of the guest", false},
	{"setting", NULL, "SETTING", -22, config_get_setting,
	 "What its configuration has or lacks; absent: nothing is to be changed", false},
	{"blocks", NULL, "BLOCKS", -6, config_get_blocks,
	 "Whether no memory comes back by the balloon as long as this is so", false},
	{"gain_bytes", NULL, "GAIN", 10, config_get_gain,
	 "Memory that the change would return or make returnable, in bytes", false},
	{"gain_is_bound", NULL, "BOUND", -5, config_get_gain_is_bound,
	 "Whether that is an upper bound", false},
	{"gain_age_seconds", NULL, "GAIN-AGE", 8, config_get_gain_age,
	 "Age of the guest's own report on which the gain rests, in seconds", false},
	{"gain_reason", NULL, "NO-GAIN", -20, config_get_no_gain, "Why the gain is not known", false},
	{"effective", NULL, "EFFECTIVE", -10, config_get_effective,
	 "When the change takes effect: now, or at the next start of the guest", false},
	{"command", NULL, "COMMAND", -20, config_get_command,
	 "The command that makes the change, or opens the XML", false},
	{"element", NULL, "ELEMENT", -20, config_get_element,
	 "The element that takes the place of the one of that name in the XML", false},
	{"reason", NULL, "REASON", -20, config_get_why, "What the setting costs", false},
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
		wss_log(WSS_LOG_INFO, "%s: put into the domain XML (effective at next start): %s", domain, element);
	}
}
