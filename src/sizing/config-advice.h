/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a guest's configuration costs the operator: settings that keep its memory from coming
 * back to the host, or would let more of it come back, with what changes them. Changes nothing.
 */
#pragma once

#include "host/guest.h"
#include "measure/sample.h"

enum wss_config_setting {
	WSS_CONFIG_BALLOON,    /* no balloon device */
	WSS_CONFIG_HUGEPAGES,  /* explicit huge pages */
	WSS_CONFIG_LOCKED,     /* memory locked */
	WSS_CONFIG_PINNED,     /* a passed-through device */
	WSS_CONFIG_ENCRYPTED,  /* launch security */
	WSS_CONFIG_REPORTING,  /* no free page reporting */
	WSS_CONFIG_STATISTICS, /* no statistics period */
	WSS_CONFIG_AUTODEFLATE,
	WSS_CONFIG_UNSEEN, /* whether it has a balloon is not known */
	WSS_CONFIG_SETTINGS
};

/* "no balloon device", "huge pages", "locked memory" ... */
const char *wss_config_setting_name(enum wss_config_setting setting);

/*
 * Whether this setting keeps the guest's memory on the host, whatever its balloon does; false for settings that keep
 * none. What QEMU has locked is in config once the guest is attached (wss_guest_attach()).
 */
bool wss_config_blocks(const struct wss_domxml *config, enum wss_config_setting setting);

/* Room for the names of all settings that block. */
#define WSS_CONFIG_BLOCKS_MAX 200

/*
 * Names them: "its memory cannot be reclaimed: huge pages, locked memory". Returns false, and an empty text, if none
 * does: then a smaller balloon returns memory to the host.
 */
bool wss_config_blocks_text(const struct wss_domxml *config, char ret_text[WSS_CONFIG_BLOCKS_MAX]);

/* Room for a command with a domain's name in quotes. */
#define WSS_CONFIG_COMMAND_MAX (4 * WSS_NAME_MAX + 80)

struct wss_config_finding {
	enum wss_config_setting setting;
	bool blocks; /* no memory comes back by the balloon as long as this is so; with WSS_CONFIG_UNSEEN not known */
	const char *why;     /* what it costs */
	const char *element; /* replaces that of the same name in the XML; NULL: none does */
	char command[WSS_CONFIG_COMMAND_MAX]; /* opens the XML, or sets it at once; "": none */
	const char *effective; /* when that takes effect: "now", "next start"; NULL: no command */
	struct wss_amount gain_bytes;
	enum wss_bound gain_bound;    /* AT_MOST where free memory may not all be on the host */
	struct wss_amount gain_age_s; /* age of the guest's report on which the gain rests */
	const char *no_gain;	      /* why the gain is not known */
};

/* Figures on which the gains rest; all zero: none is known. */
struct wss_config_facts {
	struct wss_amount reclaimable_bytes; /* held beyond the recommended size */
	struct wss_amount free_bytes;	     /* the guest's own figure of unused memory */
	/* Age of that figure, or of one that is too old to be given. */
	struct wss_amount free_age_s;
	struct wss_amount held_bytes; /* resident guest memory */
	bool no_history;	      /* nobody looked for a recommended size */
	bool no_statistics;	      /* they could not be read */
	bool is_off;		      /* the guest is shut off: nothing can be set at once */
};

/*
 * Returns the facts about a guest from its balloon's statistics (NULL: unknown), of which those that it never
 * reported, or too long ago (wss_balloon_report_is_current()), are unknown.
 */
struct wss_config_facts wss_config_facts_of(const struct wss_domxml *config,
					    const struct wss_balloon_stats *stats);

/*
 * Lists what is to be changed, in the order of the settings, and returns the number. config
 * must outlive the findings.
 */
size_t wss_config_advise(const struct wss_domxml *config, const struct wss_config_facts *facts,
			 struct wss_config_finding ret_findings[WSS_CONFIG_SETTINGS]);
