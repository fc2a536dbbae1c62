/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operator's constraints, a line each: pin GUEST, apart GUEST GUEST..., keep HOST, close
 * HOST, memory HOST SIZE. A word that starts with # and what follows is a comment.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/units.h"
#include "fleet/plan.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define APART_GUESTS_MAX 100000 /* in all lines */
#define BLANKS " \t\r"

/* A name or UUID, and what it stands for. Names that several guests have follow each other. */
struct known {
	const char *word;
	uint32_t index;
};

struct constraints {
	struct wss_plan *plan;
	struct known *guests, *hosts;
	size_t n_guests, n_hosts;
	uint32_t *line_guests; /* guests of the line, with room for all */
	size_t n_line_guests;
	bool *in_line; /* of each guest */
};

static int known_compare(const void *a, const void *b)
{
	const struct known *left = a, *right = b;

	return strcmp(left->word, right->word);
}

/* Finds the first one with this word; NULL: there is none. */
static const struct known *known_find(const struct known *list, size_t n, const char *word)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(list[middle].word, word) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && !strcmp(list[low].word, word) ? &list[low] : NULL;
}

static void constraints_index(struct constraints *run)
{
	const struct wss_cluster *fleet = &run->plan->fleet;

	run->guests = wss_xcalloc(2 * fleet->n_guests, sizeof(*run->guests));
	run->hosts = wss_xcalloc(fleet->n_hosts, sizeof(*run->hosts));
	run->line_guests = wss_xcalloc(fleet->n_guests, sizeof(*run->line_guests));
	run->in_line = wss_xcalloc(fleet->n_guests, sizeof(*run->in_line));
	for (uint32_t i = 0; i < fleet->n_guests; i++) {
		run->guests[run->n_guests++] = (struct known){fleet->guests[i].name, i};
		if (fleet->guests[i].uuid[0])
			run->guests[run->n_guests++] = (struct known){fleet->guests[i].uuid, i};
	}
	for (uint32_t i = 0; i < fleet->n_hosts; i++)
		run->hosts[run->n_hosts++] = (struct known){fleet->hosts[i].name, i};
	qsort(run->guests, run->n_guests, sizeof(*run->guests), known_compare);
	qsort(run->hosts, run->n_hosts, sizeof(*run->hosts), known_compare);
}

/* --- a line --- */

static int constraint_host(struct constraints *run, const char *word, uint32_t *ret_host,
			   struct wss_error *err)
{
	const struct known *found = known_find(run->hosts, run->n_hosts, word);

	if (!found)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "no host has the name '%s': hosts are named after their "
				     "files, or by their instance",
				     word);
	*ret_host = found->index;
	return 0;
}

/* Adds all guests of that name to the line. */
static int constraint_guest(struct constraints *run, const char *word, struct wss_error *err)
{
	const struct known *found = known_find(run->guests, run->n_guests, word);

	if (!found)
		return wss_error_set(err, WSS_ERR_FAILED, "no guest has the name or UUID '%s'",
				     word);
	for (; found < run->guests + run->n_guests && !strcmp(found->word, word); found++)
		if (!run->in_line[found->index]) {
			run->in_line[found->index] = true;
			run->line_guests[run->n_line_guests++] = found->index;
		}
	return 0;
}

static int apart_add(struct constraints *run, struct wss_error *err)
{
	struct wss_plan *plan = run->plan;
	size_t n = run->n_line_guests;
	uint32_t *guests;

	if (n < 2)
		return wss_error_set(err, WSS_ERR_FAILED, "apart: needs two guests or more");
	if (n > plan->fleet.n_hosts)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "apart: %zu guests cannot each be alone on %zu host%s", n,
				     plan->fleet.n_hosts, wss_plural(plan->fleet.n_hosts));
	if (plan->n_apart_guests + n > APART_GUESTS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "apart: more than %d guests in all lines",
				     APART_GUESTS_MAX);
	plan->aparts = wss_xreallocarray(plan->aparts, plan->n_aparts + 1, sizeof(*plan->aparts));
	guests = wss_xcalloc(n, sizeof(*guests));
	memcpy(guests, run->line_guests, n * sizeof(*guests));
	plan->aparts[plan->n_aparts++] = (struct wss_pack_apart){guests, n};
	plan->n_apart_guests += n;
	return 0;
}

static int guests_line(struct constraints *run, const char *what, char *rest, struct wss_error *err)
{
	char *word, *state = NULL;
	int r = 0;

	run->n_line_guests = 0;
	for (word = strtok_r(rest, BLANKS, &state); word && r == 0;
	     word = strtok_r(NULL, BLANKS, &state)) {
		if (word[0] == '#')
			break;
		r = constraint_guest(run, word, err);
	}
	if (r == 0 && !run->n_line_guests)
		r = wss_error_set(err, WSS_ERR_FAILED, "%s: needs the name or UUID of a guest",
				  what);
	for (size_t i = 0; i < run->n_line_guests; i++) {
		run->in_line[run->line_guests[i]] = false;
		if (r == 0 && !strcmp(what, "pin"))
			run->plan->pack_guests[run->line_guests[i]].pinned = true;
	}
	return r == 0 && !strcmp(what, "apart") ? apart_add(run, err) : r;
}

static int host_line(struct constraints *run, const char *what, char *rest, struct wss_error *err)
{
	char *state = NULL, *word = strtok_r(rest, BLANKS, &state),
	     *size = strtok_r(NULL, BLANKS, &state);
	char *more = strtok_r(NULL, BLANKS, &state);
	bool takes_size = !strcmp(what, "memory");
	uint64_t bytes;
	uint32_t host = 0;

	if (!word || word[0] == '#' || (takes_size && (!size || size[0] == '#')))
		return wss_error_set(err, WSS_ERR_FAILED, "%s: needs the name of a host%s", what,
				     takes_size ? " and a size" : "");
	more = takes_size ? more : size;
	if (more && more[0] != '#')
		return wss_error_set(err, WSS_ERR_FAILED, "%s: '%s' is one word too many", what,
				     more);
	if (constraint_host(run, word, &host, err) < 0)
		return -1;
	if (takes_size) {
		if (wss_size_parse(size, what, &bytes, err) < 0) {
			err->code = WSS_ERR_FAILED; /* The command line is right. */
			return -1;
		}
		run->plan->fleet.hosts[host].memory_bytes = wss_amount_of(bytes);
	} else if (!strcmp(what, "keep")) {
		run->plan->hosts[host].keep = true;
	} else {
		run->plan->hosts[host].closed = true;
	}
	return 0;
}

static int constraint_line(struct constraints *run, char *line, struct wss_error *err)
{
	char *rest = NULL, *what = strtok_r(line, BLANKS, &rest);

	if (!what || what[0] == '#')
		return 0;
	if (!strcmp(what, "pin") || !strcmp(what, "apart"))
		return guests_line(run, what, rest, err);
	if (!strcmp(what, "keep") || !strcmp(what, "close") || !strcmp(what, "memory"))
		return host_line(run, what, rest, err);
	return wss_error_set(err, WSS_ERR_FAILED,
			     "'%s' is not a constraint: pin, apart, keep, close or memory", what);
}

static int constraint_lines(struct constraints *run, char *text, size_t len, struct wss_error *err)
{
	char *end = text + len;

	if (memchr(text, '\0', len))
		return wss_error_set(err, WSS_ERR_FAILED, "a NUL byte: it must be a text");
	for (size_t n = 1; text < end; n++) {
		char *line = text, *newline = strchr(text, '\n');

		text = newline ? newline + 1 : end;
		if (newline)
			*newline = '\0';
		if (constraint_line(run, line, err) < 0)
			return wss_error_prefix(err, "line %zu", n);
	}
	return 0;
}

int wss_plan_constraints_read(struct wss_plan *plan, struct wss_error *err)
{
	const char *path = plan->options->constraints;
	struct constraints run = {.plan = plan};
	wss_auto_free char *text = NULL;
	size_t len;
	int r = 0;

	if (wss_file_read(path, FILE_MAX_BYTES, &text, &len, err) < 0)
		return wss_error_prefix(err, "%s", path);
	constraints_index(&run);
	if (constraint_lines(&run, text, len, err) < 0)
		r = wss_error_prefix(err, "%s", path);
	free(run.guests);
	free(run.hosts);
	free(run.line_guests);
	free(run.in_line);
	return r;
}
