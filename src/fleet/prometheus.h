/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a fleet from the API of Prometheus or VictoriaMetrics, into which "serve" is scraped.
 */
#pragma once

#include "fleet/cluster.h"

struct wss_prometheus_options {
	const char *url;				  /* as in client/http-get.h */
	const char *token_file, *user_file, *header_file; /* or NULL */
	const char *ca_file;				  /* or NULL */
	const char *match;   /* matchers of labels for each query, 'cluster="a"', or NULL */
	bool allow_partial;  /* take answers that lack something */
	uint64_t timeout_ns; /* for all answers together */
};

/* What the API said beside its answers. */
#define WSS_PROMETHEUS_WARNINGS 8
#define WSS_PROMETHEUS_WARNING_MAX 400

struct wss_prometheus_notes {
	bool is_partial; /* an answer lacks something */
	bool has_more;	 /* than these warnings */
	size_t n;
	/* Different ones, each with its query; they may hold characters that must not reach a terminal. */
	char warnings[WSS_PROMETHEUS_WARNINGS][WSS_PROMETHEUS_WARNING_MAX];
};

/* Bytes of matchers. */
#define WSS_PROMETHEUS_MATCH_MAX 1000

/* Longest answer, and the memory that it may need as a tree. */
#define WSS_PROMETHEUS_REPLY_MAX ((size_t)32 << 20)
#define WSS_PROMETHEUS_TREE_MAX ((size_t)256 << 20)

/*
 * Adds all hosts (label "instance") and their guests, with the largest working set in each
 * hour of the week over the last four weeks. Errors name the URL. The errors of
 * wss_http_get_open() and wss_http_get(); WSS_ERR_FAILED also if an answer is not one of this
 * API, or there is no host; WSS_ERR_CONNECT with notes->is_partial if an answer lacks something, and may not.
 */
int wss_prometheus_read(struct wss_cluster *fleet, const struct wss_prometheus_options *options,
			struct wss_prometheus_notes *notes, struct wss_error *err);
