/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-named.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define MAGIC 0x316b6f6f62737777ULL

int wss_http_named_begin(struct wss_http_named_draft *draft, size_t n, struct wss_error *err)
{
	draft->from = sizeof(struct wss_http_index) + n * sizeof(*draft->entries);
	draft->n = 0;
	draft->room = n;
	draft->entries = calloc(n ? n : 1, sizeof(*draft->entries));
	if (!draft->entries)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return wss_http_file_new(draft->from, &draft->stream, err);
}

void wss_http_named_page(struct wss_http_named_draft *draft, const char *name)
{
	off_t end = ftello(draft->stream);
	struct wss_http_entry *entry = &draft->entries[draft->n];

	if (end < 0 || draft->n == draft->room)
		return;
	memcpy(entry->name, name, strnlen(name, sizeof(entry->name) - 1));
	entry->span = (struct wss_http_span){draft->from, (uint64_t)end - draft->from};
	draft->from = (uint64_t)end;
	draft->n++;
}

static int entry_compare(const void *a, const void *b)
{
	return strcmp(((const struct wss_http_entry *)a)->name,
		      ((const struct wss_http_entry *)b)->name);
}

int wss_http_named_end(struct wss_http_named_draft *draft, int *ret_fd, struct wss_error *err)
{
	const struct wss_http_index index = {MAGIC, draft->n};
	wss_auto_close int fd = wss_http_file_end(&draft->stream);
	bool written;

	qsort(draft->entries, draft->n, sizeof(*draft->entries), entry_compare);
	written = fd >= 0 && wss_io_pwrite(fd, &index, sizeof(index), 0) == 0 &&
		  wss_io_pwrite(fd, draft->entries, draft->n * sizeof(*draft->entries),
				sizeof(index)) == 0 &&
		  wss_http_file_seal(fd);
	wss_http_named_release(draft);
	if (!written)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "cannot write the pages of guests for HTTP to a memory file");
	*ret_fd = wss_steal_fd(&fd);
	return 0;
}

void wss_http_named_release(struct wss_http_named_draft *draft)
{
	if (draft->stream)
		fclose(draft->stream);
	free(draft->entries);
	draft->stream = NULL;
	draft->entries = NULL;
}

static const struct wss_http_entry *named_entries(const struct wss_http_named *named)
{
	return (const struct wss_http_entry *)(named->index + 1);
}

static bool named_is_valid(const struct wss_http_named *named)
{
	const struct wss_http_entry *entries = named_entries(named);

	if (named->index->magic != MAGIC ||
	    named->index->n > (named->size - sizeof(*named->index)) / sizeof(*entries))
		return false;
	for (size_t i = 0; i < named->index->n; i++)
		if (entries[i].name[WSS_HTTP_NAME_MAX - 1] ||
		    entries[i].span.offset > named->size ||
		    entries[i].span.size > named->size - entries[i].span.offset)
			return false;
	return true;
}

int wss_http_named_map(int fd, struct wss_http_named *ret_named, struct wss_error *err)
{
	struct wss_http_named named;

	if (wss_http_file_map(fd, sizeof(*named.index), (const void **)&named.index, &named.size,
			      err) < 0)
		return -1;
	if (!named_is_valid(&named)) {
		wss_http_named_unmap(&named);
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the service has handed over damaged pages");
	}
	*ret_named = named;
	return 0;
}

void wss_http_named_unmap(struct wss_http_named *named)
{
	if (named->index)
		munmap((void *)named->index, named->size);
	named->index = NULL;
}

const void *wss_http_named_find(const struct wss_http_named *named, const char *name,
				size_t *ret_size)
{
	struct wss_http_entry key = {.name = ""};
	const struct wss_http_entry *entry;

	if (!named->index || strlen(name) >= sizeof(key.name))
		return NULL;
	memcpy(key.name, name, strlen(name));
	entry = bsearch(&key, named_entries(named), named->index->n, sizeof(key), entry_compare);
	if (!entry)
		return NULL;
	*ret_size = (size_t)entry->span.size;
	return (const char *)named->index + entry->span.offset;
}
