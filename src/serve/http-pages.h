/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages that the service renders and the HTTP process serves, as one sealed memory file:
 * the receiver maps it, and nobody can change it any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum wss_http_page {
	WSS_HTTP_PROMETHEUS,
	WSS_HTTP_OPENMETRICS,
	WSS_HTTP_GUESTS, /* JSON, as the next one */
	WSS_HTTP_HOST,
	WSS_HTTP_PAGES, /* how many there are */
};

/* Place of a page in the file, in bytes. */
struct wss_http_span {
	uint64_t offset;
	uint64_t size;
};

/* Beginning of the file. */
struct wss_http_header {
	uint64_t magic;
	uint64_t made_ns; /* wss_clock_now_ns() of the sender */
	struct wss_http_span pages[WSS_HTTP_PAGES];
};

/* Pages that are being written. */
struct wss_http_draft {
	FILE *stream;
	struct wss_http_header header;
	uint64_t from; /* start of the next page */
};

#define WSS_HTTP_DRAFT_INIT    \
	{                      \
		.stream = NULL \
	}

/* Creates an empty file; write a page to draft->stream. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY. */
int wss_http_draft_begin(struct wss_http_draft *draft, struct wss_error *err);

/* Makes everything that was written since the last call, or since the start, this page. */
void wss_http_draft_page(struct wss_http_draft *draft, enum wss_http_page page);

/* Seals the file: *ret_fd is the caller's. WSS_ERR_FAILED, also if an earlier write failed. */
int wss_http_draft_end(struct wss_http_draft *draft, int *ret_fd, struct wss_error *err);

/* Accepts WSS_HTTP_DRAFT_INIT and an ended draft. */
void wss_http_draft_release(struct wss_http_draft *draft);

#define wss_auto_http_draft __attribute__((cleanup(wss_http_draft_release)))

/* --- any sealed memory file, as those of http-named.h --- */

/* Creates an empty file; *ret_stream begins at an offset. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY. */
int wss_http_file_new(uint64_t offset, FILE **ret_stream, struct wss_error *err);

/* Closes the stream and makes it NULL. Returns the file's descriptor; -1: a write failed. */
int wss_http_file_end(FILE **stream);

/* From now on nobody can change the file; false: the kernel refuses. */
bool wss_http_file_seal(int fd);

/* Maps a sealed file of at least min bytes, for munmap(). WSS_ERR_FAILED. */
int wss_http_file_map(int fd, size_t min, const void **ret_map, size_t *ret_size,
		      struct wss_error *err);

/* --- */

/* A file that has been mapped. */
struct wss_http_pages {
	const struct wss_http_header *header; /* NULL: none */
	size_t size;
};

/*
 * Maps the file, whose descriptor stays the caller's. WSS_ERR_FAILED, also for a file that is
 * not sealed, or whose pages are not all inside it.
 */
int wss_http_pages_map(int fd, struct wss_http_pages *ret_pages, struct wss_error *err);

/* Accepts pages whose header is NULL. */
void wss_http_pages_unmap(struct wss_http_pages *pages);

/* Returns the page and its size; valid until it is unmapped. */
const void *wss_http_pages_get(const struct wss_http_pages *pages, enum wss_http_page page,
			       size_t *ret_size);
