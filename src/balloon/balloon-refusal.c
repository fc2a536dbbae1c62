/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which guests keep their balloon as it is, and why. With 27 columns for a reason, the table of a dry run fits 80.
 */
#include "balloon/balloon.h"

#include <stddef.h>

const char wss_balloon_fixed[] = "its balloon cannot be set without libvirt";
const char wss_balloon_unfinished[] = "unfinished balloon steps";
const char wss_balloon_left_open[] = "its steps stay open in the journal";
const char wss_balloon_too_early[] = "too early: fewer than 10 windows";
const char wss_balloon_outdated[] = "measured too long ago";
const char wss_balloon_no_driver[] = "driver does not answer";
const char wss_balloon_no_statistics[] = "no balloon statistics";

const char *wss_balloon_objection(const struct wss_balloon_facts *facts)
{
	if (facts->opted_out)
		return "opted out by its policy";
	if (facts->hazard)
		return facts->hazard;
	if (!facts->statistics && !facts->autodeflate)
		return facts->asked ? "statistics have stopped" : wss_balloon_no_statistics;
	return NULL;
}

struct refusal {
	bool refuse;
	const char *reason;
};

static const char *first_of(const struct refusal *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].refuse)
			return table[i].reason;
	return NULL;
}

/* Returns why the guest cannot be shrunk now, whatever it needs. */
static const char *state_refusal(const struct wss_balloon_facts *facts)
{
	const struct refusal table[] = {
		{facts->foreign, "not a QEMU guest"},
		{!facts->running, "not running"},
		{facts->job, "a libvirt job is active"},
		/* Then it is not known whether there is one. */
		{facts->owner, facts->owner},
		{facts->fixed, wss_balloon_fixed},
		{!facts->has_device, "no balloon device"},
		{facts->unsized, "size of balloon is unknown"},
		{!facts->answers, wss_balloon_no_driver},
	};

	if (facts->unfinished)
		return wss_balloon_unfinished;
	if (facts->opted_out || facts->hazard)
		return wss_balloon_objection(facts);
	return first_of(table, sizeof(table) / sizeof(table[0]));
}

const char *wss_balloon_guest_refusal(const struct wss_balloon_facts *facts)
{
	const char *refusal = state_refusal(facts);

	return refusal ? refusal : wss_balloon_objection(facts);
}

const char *wss_balloon_refusal(const struct wss_balloon_facts *facts)
{
	const struct refusal table[] = {
		{facts->confidence == WSS_CONFIDENCE_NONE, wss_balloon_too_early},
		{!facts->current, wss_balloon_outdated},
	};
	const char *refusal = state_refusal(facts);

	if (!refusal)
		refusal = first_of(table, sizeof(table) / sizeof(table[0]));
	return refusal ? refusal : wss_balloon_objection(facts);
}
