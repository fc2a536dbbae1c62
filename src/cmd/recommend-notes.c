/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "cmd/recommend.h"

/* Returns the entry for windows of this description; NULL if there is no room for another. */
static struct recommend_kind *kind_find(struct recommend_notes *notes, const char *text)
{
	struct recommend_kind *kind;

	for (size_t i = 0; i < notes->n_kinds; i++)
		if (!strcmp(notes->kinds[i].text, text))
			return &notes->kinds[i];
	if (notes->n_kinds == RECOMMEND_KINDS_MAX)
		return NULL;
	kind = &notes->kinds[notes->n_kinds++];
	snprintf(kind->text, sizeof(kind->text), "%s", text);
	return kind;
}

/* Appends guests' names while they fit in full. */
static void kind_add(struct recommend_kind *kind, const char *domain)
{
	size_t used = strlen(kind->guests), len = strlen(domain);

	kind->n_guests++;
	if (kind->n_named + 1 < kind->n_guests || used + len + 3 > sizeof(kind->guests))
		return;
	snprintf(kind->guests + used, sizeof(kind->guests) - used, "%s%s", used ? ", " : "",
		 domain);
	kind->n_named++;
}

static void note_add(struct recommend_notes *notes, const char *domain, const char *text)
{
	if (notes->n_notes == RECOMMEND_NOTES_MAX) {
		notes->more_notes++;
		return;
	}
	snprintf(notes->notes[notes->n_notes++], sizeof(notes->notes[0]), "%.256s: note: %s",
		 domain, text);
}

static void need_add(struct recommend_notes *notes, const char *domain, const char *text)
{
	if (notes->n_needs == RECOMMEND_NOTES_MAX)
		notes->more_notes++;
	else
		snprintf(notes->needs[notes->n_needs++], sizeof(notes->needs[0]), "%.256s: %s",
			 domain, text);
}

static void step_add(struct recommend_notes *notes, const char *domain,
		     const struct wss_advice *advice)
{
	uint64_t bytes = advice->sizing.reclaimable_bytes.value;
	char text[WSS_ADVICE_TEXT_MAX];

	notes->n_freeing += bytes != 0;
	notes->freed_bytes = wss_u64_add(notes->freed_bytes, bytes);
	if ((notes->step[0] && bytes <= notes->step_bytes) || !wss_advice_step_text(advice, text))
		return;
	notes->step_bytes = bytes;
	snprintf(notes->step, sizeof(notes->step), "%.256s: %s", domain, text);
}

/* What keeps memory gets a note of its own; what would only return more is counted. */
static void config_add(struct recommend_notes *notes, const struct recommend_row *row)
{
	if (row->advice.status == WSS_ADVICE_OPTED_OUT || !row->n_findings)
		return;
	notes->n_improvable++;
	if (row->blocked[0])
		note_add(notes, row->domain, row->blocked);
}

/* A size that is exceeded whatever the windows saw, or may be. */
static void what_if_add(struct recommend_notes *notes, const char *domain,
			const struct wss_advice *advice)
{
	char text[WSS_ADVICE_TEXT_MAX], size[24], floor[24];

	if (!advice->what_if.bytes.known)
		return;
	wss_size_format(advice->what_if.bytes.value, size, sizeof(size));
	wss_size_format(advice->what_if.floor_bytes, floor, sizeof(floor));
	if (advice->floor.source == WSS_FLOOR_UNKNOWN)
		snprintf(
			text, sizeof(text),
			"what it cannot give up, touched or not, is unknown: %s may be less, however rarely its windows "
			"touched more",
			size);
	else if (advice->what_if.bytes.value < advice->what_if.floor_bytes)
		snprintf(text, sizeof(text),
			 "%s is less than the %s that it cannot give up, touched or not (%s)", size,
			 floor, wss_floor_source_name(advice->floor.source));
	else
		return;
	note_add(notes, domain, text);
}

static bool row_has_finding(const struct recommend_row *row, enum wss_config_setting setting)
{
	for (size_t i = 0; i < row->n_findings; i++)
		if (row->findings[i].setting == setting)
			return true;
	return false;
}

static void no_size_add(struct recommend_notes *notes, const struct recommend_row *row)
{
	bool no_balloon = row_has_finding(row, WSS_CONFIG_BALLOON);

	kind_add(&notes->no_size, row->domain);
	notes->n_no_balloon += no_balloon;
	notes->n_silent +=
		row->has_findings && !no_balloon && !row_has_finding(row, WSS_CONFIG_STATISTICS);
}

void recommend_notes_add(struct recommend_notes *notes, const struct recommend_row *row)
{
	const struct wss_advice *advice = &row->advice;
	const char *domain = row->domain;
	char text[WSS_ADVICE_TEXT_MAX];
	struct recommend_kind *kind;

	config_add(notes, row);
	if (advice->only_writes)
		note_add(notes, domain,
			 "its windows saw only writes, which do not show how much it needs");
	if (advice->status != WSS_ADVICE_OPTED_OUT && wss_advice_cold_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_no_size_text(advice, text)) {
		no_size_add(notes, row);
		if (notes->named)
			note_add(notes, domain, text);
	} else if (advice->status != WSS_ADVICE_OK && advice->status != WSS_ADVICE_TOO_EARLY) {
		return;
	}
	if (wss_advice_kind_text(advice, text)) {
		kind = kind_find(notes, text);
		if (kind)
			kind_add(kind, domain);
		else
			notes->more_kinds++;
	}
	what_if_add(notes, domain, advice);
	if (wss_advice_left_out_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_learned_text(advice, text))
		need_add(notes, domain, text);
	if (wss_advice_outgrows_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_below_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_fills_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_maximum_text(advice, text))
		note_add(notes, domain, text);
	if (wss_advice_growth_text(advice, text))
		note_add(notes, domain, text);
	step_add(notes, domain, advice);
}

static void kind_print(const struct recommend_kind *kind)
{
	size_t more = kind->n_guests - kind->n_named;

	if (more)
		wss_log(WSS_LOG_INFO, "%s and %zu more: based on %s", kind->guests, more,
			kind->text);
	else
		wss_log(WSS_LOG_INFO, "%s: based on %s", kind->guests, kind->text);
}

static void no_size_print(const struct recommend_notes *notes)
{
	const struct recommend_kind *guests = &notes->no_size;
	size_t more = guests->n_guests - guests->n_named;
	char others[40] = "";

	if (more)
		snprintf(others, sizeof(others), " and %zu more", more);
	wss_log(WSS_LOG_INFO,
		"%s%s: no size without balloon statistics, as it also depends on memory that a guest holds and "
		"does not touch: %s",
		guests->guests, others,
		notes->n_no_balloon == guests->n_guests
			? "their balloons are missing, see virt-wss methods --config"
		: notes->statistics_by ? notes->statistics_by
		: notes->n_silent == guests->n_guests
			? "they are asked for, and none has come: load the balloon driver in the guest"
			: "virsh dommemstat DOMAIN --period 10 --live turns them on");
}

void recommend_notes_print(const struct recommend_notes *notes, bool terminal)
{
	char freed[24];

	for (size_t i = 0; i < notes->n_kinds; i++)
		kind_print(&notes->kinds[i]);
	if (notes->more_kinds)
		wss_log(WSS_LOG_INFO, "%zu more guest%s: based on windows of other kinds",
			notes->more_kinds, wss_plural(notes->more_kinds));
	for (size_t i = 0; i < notes->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s", notes->notes[i]);
	for (size_t i = 0; i < notes->n_needs; i++)
		wss_log(WSS_LOG_INFO, "%s", notes->needs[i]);
	if (notes->more_notes)
		wss_log(WSS_LOG_INFO, "%zu more note%s left out: name a guest to see its own",
			notes->more_notes, notes->more_notes == 1 ? " is" : "s are");
	if (notes->no_size.n_guests)
		no_size_print(notes);
	if (terminal && notes->n_improvable)
		wss_log(WSS_LOG_INFO,
			"%zu guest%s could return more memory: see virt-wss methods --config",
			notes->n_improvable, wss_plural(notes->n_improvable));
	if (!terminal || !notes->step[0])
		return;
	wss_size_format(notes->freed_bytes, freed, sizeof(freed));
	if (notes->n_freeing > 1)
		wss_log(WSS_LOG_INFO, "%s (%zu guests would free %s together)", notes->step,
			notes->n_freeing, freed);
	else
		wss_log(WSS_LOG_INFO, "%s", notes->step);
}
