/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

#define MAGIC 0x3165676170737777ULL
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
/* More than any host's pages take; a larger file is not ours. */
#define PAGES_MAX_BYTES (1ULL << 30)

int wss_http_file_new(uint64_t offset, FILE **ret_stream, struct wss_error *err)
{
	wss_auto_close int fd = memfd_create("virt-wss-pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *stream;

	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create a memory file");
	stream = fdopen(fd, "w");
	if (!stream)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_steal_fd(&fd);
	fseeko(stream, (off_t)offset, SEEK_SET);
	*ret_stream = stream;
	return 0;
}

int wss_http_file_end(FILE **stream)
{
	wss_auto_close int fd = fcntl(fileno(*stream), F_DUPFD_CLOEXEC, 0);
	bool written = fd >= 0 && fflush(*stream) == 0 && !ferror(*stream);

	fclose(*stream);
	*stream = NULL;
	return written ? wss_steal_fd(&fd) : -1;
}

bool wss_http_file_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) == 0;
}

int wss_http_file_map(int fd, size_t min, const void **ret_map, size_t *ret_size,
		      struct wss_error *err)
{
	struct stat st;
	void *map;

	/* Without the seals the file could shrink below a page that is being sent. */
	if (fcntl(fd, F_GET_SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size < (off_t)min ||
	    (uint64_t)st.st_size > PAGES_MAX_BYTES)
		return wss_error_set(err, WSS_ERR_FAILED, "pages for HTTP are not sealed");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot map the pages");
	*ret_map = map;
	*ret_size = (size_t)st.st_size;
	return 0;
}

int wss_http_draft_begin(struct wss_http_draft *draft, struct wss_error *err)
{
	draft->header = (struct wss_http_header){.magic = MAGIC, .made_ns = wss_clock_now_ns()};
	draft->from = sizeof(draft->header);
	return wss_http_file_new(draft->from, &draft->stream, err);
}

void wss_http_draft_page(struct wss_http_draft *draft, enum wss_http_page page)
{
	off_t end = ftello(draft->stream);

	if (end < 0)
		return;
	draft->header.pages[page] =
		(struct wss_http_span){draft->from, (uint64_t)end - draft->from};
	draft->from = (uint64_t)end;
}

int wss_http_draft_end(struct wss_http_draft *draft, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = wss_http_file_end(&draft->stream);

	if (fd < 0 || wss_io_pwrite(fd, &draft->header, sizeof(draft->header), 0) < 0 ||
	    !wss_http_file_seal(fd))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "cannot write the pages for HTTP to a memory file");
	*ret_fd = wss_steal_fd(&fd);
	return 0;
}

void wss_http_draft_release(struct wss_http_draft *draft)
{
	if (draft->stream)
		fclose(draft->stream);
	draft->stream = NULL;
}

static bool header_is_valid(const struct wss_http_header *header, uint64_t size)
{
	if (header->magic != MAGIC)
		return false;
	for (size_t i = 0; i < WSS_HTTP_PAGES; i++)
		if (header->pages[i].offset > size ||
		    header->pages[i].size > size - header->pages[i].offset)
			return false;
	return true;
}

int wss_http_pages_map(int fd, struct wss_http_pages *ret_pages, struct wss_error *err)
{
	struct wss_http_pages pages;

	if (wss_http_file_map(fd, sizeof(*pages.header), (const void **)&pages.header, &pages.size,
			      err) < 0)
		return -1;
	if (!header_is_valid(pages.header, pages.size)) {
		wss_http_pages_unmap(&pages);
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the service has handed over damaged pages");
	}
	*ret_pages = pages;
	return 0;
}

void wss_http_pages_unmap(struct wss_http_pages *pages)
{
	if (pages->header)
		munmap((void *)pages->header, pages->size);
	pages->header = NULL;
}

const void *wss_http_pages_get(const struct wss_http_pages *pages, enum wss_http_page page,
			       size_t *ret_size)
{
	const struct wss_http_span *span = &pages->header->pages[page];

	*ret_size = (size_t)span->size;
	return (const char *)pages->header + span->offset;
}
