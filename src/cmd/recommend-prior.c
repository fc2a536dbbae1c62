/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "cmd/recommend.h"
#include "host/inventory.h"
#include "out/policy.h"

struct recommend_prior {
	struct wss_targets own; /* if those of the command are not all */
	size_t n;
	struct wss_prior_guest *guests; /* their texts are those of the targets */
};

/* A guest that cannot be read, or has no size, is left out. */
static void prior_add(struct recommend_prior *prior, const struct wss_target *target,
		      struct wss_history *history, time_t since,
		      const struct wss_advice_options *options)
{
	const struct wss_target_entry *found = target->data;
	struct wss_policy policy = {.opt_out = false};
	struct wss_advice_guest guest = {.policy = &policy};
	struct wss_advice advice;

	if (target->error.code || !found || !found->entry.uuid[0] ||
	    (!found->entry.origin.title[0] && !found->entry.origin.os[0]) ||
	    (found->entry.xml && wss_policy_read(found->entry.xml, &policy, NULL) < 0))
		return;
	guest.uuid = found->entry.uuid;
	guest.active = found->entry.active;
	if (wss_advice_read(history, &guest, since, options, &advice, NULL) < 0)
		return;
	if (advice.status == WSS_ADVICE_OK && advice.sizing.recommended_bytes.known)
		prior->guests[prior->n++] = (struct wss_prior_guest){
			.uuid = found->entry.uuid,
			.title = found->entry.origin.title,
			.os = found->entry.origin.os,
			.bytes = advice.sizing.recommended_bytes.value,
		};
	wss_advice_free(&advice);
}

static int prior_read_targets(struct recommend_prior *prior, const struct wss_cli *cli,
			      struct wss_error *err)
{
	struct wss_cli all = *cli;

	all.n_domains = 0;
	if (wss_cli_find_targets(&all, WSS_TARGET_DEADLINE_NS, &prior->own, err) < 0)
		return -1;
	return wss_targets_read_element(&prior->own, WSS_POLICY_NAMESPACE, false, err);
}

struct recommend_prior *recommend_prior_read(const struct wss_cli *cli, const struct wss_targets *targets,
					     struct wss_history *history, time_t since,
					     const struct wss_advice_options *options,
					     struct wss_error *err)
{
	struct recommend_prior *prior = calloc(1, sizeof(*prior));

	if (!prior) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	if (cli->n_domains && prior_read_targets(prior, cli, err) < 0) {
		recommend_prior_free(prior);
		return NULL;
	}
	if (cli->n_domains)
		targets = &prior->own;
	prior->guests = calloc(targets->n + 1, sizeof(*prior->guests));
	if (!prior->guests) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		recommend_prior_free(prior);
		return NULL;
	}
	for (size_t i = 0; i < targets->n; i++)
		prior_add(prior, targets->list[i], history, since, options);
	return prior;
}

void recommend_prior_free(struct recommend_prior *prior)
{
	if (!prior)
		return;
	wss_targets_free(&prior->own);
	free(prior->guests);
	free(prior);
}

int recommend_prior_find(const struct recommend_prior *prior, struct recommend_row *row,
			 struct wss_error *err)
{
	const struct wss_origin *origin = row->origin;
	const struct wss_prior_guest guest = {
		.uuid = row->uuid, .title = origin->title, .os = origin->os};

	if (wss_prior_find(prior->guests, prior->n, &guest, &row->prior, err) < 0)
		return -1;
	row->prior_size = wss_prior_size(&row->prior, &row->advice.rule, &row->policy,
					 origin->maximum_bytes);
	return 0;
}
