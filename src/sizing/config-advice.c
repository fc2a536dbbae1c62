/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/config-advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

/* Each character of a name may take four in quotes. */
#define WORD_MAX (4 * WSS_NAME_MAX)

const char *wss_config_setting_name(enum wss_config_setting setting)
{
	static const char *const names[] = {
		"no balloon device",	 "huge pages",	    "locked memory",
		"passed-through device", "launch security", "no free page reporting",
		"no balloon statistics", "no autodeflate",  "unknown balloon"};

	return names[setting];
}

/* --- the domain's word --- */

static bool name_is_number(const char *name)
{
	return name[strspn(name, "0123456789")] == '\0';
}

/* virsh takes such a word for a UUID, with or without dashes. */
static bool name_is_uuid(const char *name)
{
	size_t digits = 0;

	for (; *name; name++) {
		if (isxdigit((unsigned char)*name))
			digits++;
		else if (*name != '-')
			return false;
	}
	return digits == 32;
}

/* Other characters could be invisible, or reorder what stands around them. */
static bool name_is_ascii(const char *name)
{
	for (; *name; name++)
		if (*name < ' ' || *name > '~')
			return false;
	return true;
}

/*
 * Writes the word by which a shell command names a domain to virsh: its name, in quotes if need
 * be, or its UUID if virsh, the shell or a terminal could take the name for something else.
 */
static void domain_word(const struct wss_domxml *config, char ret_word[WORD_MAX])
{
	const char *name = config->name;
	bool is_safe = *name && *name != '-' && !name_is_number(name) && !name_is_uuid(name) &&
		       name_is_ascii(name);
	wss_auto_free char *word = is_safe ? wss_text_shell_word(name) : NULL;

	snprintf(ret_word, WORD_MAX, "%s", word ? word : config->uuid);
}

/* --- findings --- */

struct config_check {
	bool bad; /* of a setting that does not block */
	const char *why;
	const char *element;
	const char *no_gain; /* of settings that give nothing back themselves */
};

static void command_fill(const struct wss_domxml *config, bool is_off,
			 struct wss_config_finding *finding)
{
	char word[WORD_MAX];

	domain_word(config, word);
	if (finding->setting == WSS_CONFIG_STATISTICS && config->has_balloon) {
		snprintf(finding->command, sizeof(finding->command),
			 is_off ? "virsh dommemstat %s --period 10 --config"
				: "virsh dommemstat %s --period 10 --live",
			 word);
		finding->effective = is_off ? "next start" : "now";
	} else if (finding->element) {
		snprintf(finding->command, sizeof(finding->command), "virsh edit %s", word);
		finding->effective = "next start";
	}
}

/*
 * Free page reporting returns what the guest's kernel has not allocated: at most what it says is
 * unused, of which some may never have been on the host.
 */
static void gain_fill(const struct wss_config_facts *facts, const struct config_check *check,
		      struct wss_config_finding *finding)
{
	if (check->no_gain) {
		finding->no_gain = check->no_gain;
	} else if (finding->blocks) {
		finding->gain_bytes = facts->reclaimable_bytes;
		finding->no_gain = facts->no_history ? "known to recommend, if it has a size"
						     : "no recommended size";
	} else {
		finding->gain_bytes = facts->free_bytes;
		finding->gain_bound = WSS_BOUND_AT_MOST;
		finding->no_gain = facts->no_statistics
					   ? "the balloon's statistics could not be read"
				   : facts->free_age_s.known
					   ? "the guest reported its free memory too long ago"
					   : "the guest does not report its free memory";
		if (facts->held_bytes.known && facts->free_bytes.known)
			finding->gain_bytes = wss_amount_of(
				wss_u64_min(facts->free_bytes.value, facts->held_bytes.value));
		finding->gain_age_s = facts->free_age_s;
	}
	if (finding->gain_bytes.known)
		finding->no_gain = NULL;
}

struct wss_config_facts wss_config_facts_of(const struct wss_domxml *config,
					    const struct wss_balloon_stats *stats)
{
	struct wss_config_facts facts = {.no_statistics = !stats};

	if (!stats)
		return facts;
	facts.held_bytes = stats->rss_bytes;
	if (stats->update_s.known && stats->update_s.value)
		facts.free_age_s = wss_amount_of(
			(uint64_t)wss_clock_age_seconds((int64_t)stats->update_s.value));
	if (wss_balloon_report_is_current(config, stats->update_s))
		facts.free_bytes = stats->free_bytes;
	return facts;
}

bool wss_config_blocks(const struct wss_domxml *config, enum wss_config_setting setting)
{
	switch (setting) {
	case WSS_CONFIG_BALLOON:
		return !config->has_balloon && !config->balloon_unseen;
	case WSS_CONFIG_HUGEPAGES:
		return config->hugepages;
	case WSS_CONFIG_LOCKED:
		return config->locked;
	case WSS_CONFIG_PINNED:
		return config->hostdevs != 0;
	case WSS_CONFIG_ENCRYPTED:
		return config->launch_security[0] != '\0';
	default:
		return false;
	}
}

bool wss_config_blocks_text(const struct wss_domxml *config, char ret_text[WSS_CONFIG_BLOCKS_MAX])
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (int i = 0; i < WSS_CONFIG_SETTINGS; i++)
		if (wss_config_blocks(config, (enum wss_config_setting)i))
			used += (size_t)snprintf(
				ret_text + used, WSS_CONFIG_BLOCKS_MAX - used, "%s%s",
				used ? ", " : "its memory cannot be reclaimed: ",
				wss_config_setting_name((enum wss_config_setting)i));
	return used;
}

size_t wss_config_advise(const struct wss_domxml *config, const struct wss_config_facts *facts,
			 struct wss_config_finding ret_findings[WSS_CONFIG_SETTINGS])
{
	const char *balloon = config->better_balloon[0] ? config->better_balloon : NULL;
	const char *backing = config->better_backing[0] ? config->better_backing : NULL;
	const struct config_check checks[] = {
		[WSS_CONFIG_BALLOON] =
			{false, "without a balloon device the guest cannot give memory back",
			 balloon, NULL},
		[WSS_CONFIG_HUGEPAGES] =
			{false, "freed memory goes back to the pool of huge pages, not to the host",
			 backing, NULL},
		[WSS_CONFIG_LOCKED] = {false, "all its memory is locked on the host", backing,
				       NULL},
		[WSS_CONFIG_PINNED] = {false,
				       "a PCI, mediated, vDPA or NVMe device pins all its memory",
				       NULL, NULL},
		[WSS_CONFIG_ENCRYPTED] = {false,
					  config->security_unseen
						  ? "QEMU's file of options may encrypt the memory"
						  : "encrypted memory is pinned on the host",
					  NULL, NULL},
		[WSS_CONFIG_REPORTING] = {config->has_balloon && !config->balloon_reporting,
					  "memory that the guest has freed stays on the host",
					  balloon, NULL},
		[WSS_CONFIG_STATISTICS] =
			{config->has_balloon && !config->balloon_statistics,
			 "nobody sees a shortage in the guest, so balloon takes less or nothing",
			 balloon, "needed for ballooning; frees nothing by itself"},
		[WSS_CONFIG_AUTODEFLATE] =
			{config->has_balloon && !config->balloon_autodeflate,
			 "an over-inflated balloon triggers the OOM killer in the guest", balloon,
			 "needed for ballooning; frees nothing by itself"},
		[WSS_CONFIG_UNSEEN] =
			{config->balloon_unseen,
			 "without libvirt there is no domain XML that says whether it has a balloon",
			 NULL, "whether it has a balloon is not known"},
	};
	size_t n = 0;

	for (int i = 0; i < WSS_CONFIG_SETTINGS; i++) {
		struct wss_config_finding *finding = &ret_findings[n];

		bool blocks = wss_config_blocks(config, (enum wss_config_setting)i);

		if (!blocks && !checks[i].bad)
			continue;
		*finding = (struct wss_config_finding){.setting = (enum wss_config_setting)i,
						       .blocks = blocks,
						       .why = checks[i].why,
						       .element = checks[i].element};
		command_fill(config, facts->is_off, finding);
		gain_fill(facts, &checks[i], finding);
		n++;
	}
	return n;
}
