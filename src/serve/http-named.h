/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named pages: pages by name, one for each guest, as a sealed memory file of its own. They are rendered more
 * seldom than the others (http-pages.h), and are larger.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "serve/http-pages.h"

/* Room for the name of a page with its final NUL: a UUID fits. */
#define WSS_HTTP_NAME_MAX 40

/* Name of the page of all guests; all others are named by UUID. */
#define WSS_HTTP_TRENDS "trends"

struct wss_http_entry {
	char name[WSS_HTTP_NAME_MAX]; /* unique */
	struct wss_http_span span;
};

/* Beginning of the file; n entries follow, sorted by name. */
struct wss_http_index {
	uint64_t magic;
	uint64_t n;
};

/* Named pages that are being written. */
struct wss_http_named_draft {
	FILE *stream;
	struct wss_http_entry *entries;
	size_t n, room;
	uint64_t from; /* start of the next page */
};

#define WSS_HTTP_NAMED_DRAFT_INIT \
	{                         \
		.stream = NULL    \
	}

/* Starts a file of n pages at most; write a page to draft->stream. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY. */
int wss_http_named_begin(struct wss_http_named_draft *draft, size_t n, struct wss_error *err);

/* Makes everything that was written since the last call, or since the start, the page of this name. */
void wss_http_named_page(struct wss_http_named_draft *draft, const char *name);

/* Seals the file: *ret_fd is the caller's. WSS_ERR_FAILED, also if an earlier write failed. */
int wss_http_named_end(struct wss_http_named_draft *draft, int *ret_fd, struct wss_error *err);

/* Accepts WSS_HTTP_NAMED_DRAFT_INIT and an ended draft. */
void wss_http_named_release(struct wss_http_named_draft *draft);

#define wss_auto_http_named_draft __attribute__((cleanup(wss_http_named_release)))

/* A file that has been mapped. */
struct wss_http_named {
	const struct wss_http_index *index; /* NULL: none */
	size_t size;
};

/* Maps the file, as wss_http_pages_map(). */
int wss_http_named_map(int fd, struct wss_http_named *ret_named, struct wss_error *err);

/* Accepts a named whose index is NULL. */
void wss_http_named_unmap(struct wss_http_named *named);

/* Returns the page of that name and its size, valid until it is unmapped; NULL: there is none. */
const void *wss_http_named_find(const struct wss_http_named *named, const char *name,
				size_t *ret_size);
