/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/idle-pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kernel-page-flags.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/number.h"
#include "base/privilege.h"

#define BITMAP "sys/kernel/mm/page_idle/bitmap"
#define FLAGS "proc/kpageflags"
/* Documentation/admin-guide/mm/pagemap.rst: the page's number, that nothing else maps it, and that it is in memory. */
#define ENTRY_NUMBER ((1ULL << 55) - 1)
#define ENTRY_EXCLUSIVE (1ULL << 56)
#define ENTRY_PRESENT (1ULL << 63)
#define FLAG(bit) (1ULL << (bit))
#define PAGE_SHIFT 12
/* Pages of the process that are looked up at a time. */
#define PIECE 32768
/* The pages of the largest page that is no hugetlb page, which begins at a multiple of them. */
#define BLOCK 512

struct wss_idle_pages {
	const struct wss_process *process;
	int pagemap, flags, bitmap;
	/* A bit for each page of the RAM: it could not be made idle when that was last tried. */
	uint8_t *refused;
	uint64_t n_refused;
	uint64_t pages[PIECE]; /* those of a piece that are present, sorted: see page_make() */
};

/* Pages of one block: pages[0..n), and what the kernel says of the block from its first page on. */
struct block {
	uint64_t first; /* number of its first page */
	const uint64_t *pages;
	size_t n;
	uint8_t *refused; /* of the piece */
	uint64_t flags[BLOCK];
	/* The place of the first page of the larger page that each is in; BLOCK: unknown. */
	uint16_t heads[BLOCK];
	uint64_t idle[BLOCK / 64];
};

static int file_error(int negative_errno, const char *path, struct wss_error *err)
{
	return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -negative_errno,
				   WSS_CAPS_FILE | WSS_CAP(CAP_SYS_ADMIN), "cannot use /%s", path);
}

static int open_files(const struct wss_host *host, int *ret_bitmap, int *ret_flags,
		      struct wss_error *err)
{
	*ret_bitmap = wss_root_openat(&host->root, BITMAP, O_RDWR);
	if (*ret_bitmap == -ENOENT)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"this kernel has no idle page tracking (CONFIG_IDLE_PAGE_TRACKING)");
	if (*ret_bitmap < 0)
		return file_error(*ret_bitmap, BITMAP, err);
	*ret_flags = wss_root_openat(&host->root, FLAGS, O_RDONLY);
	return *ret_flags < 0 ? file_error(*ret_flags, FLAGS, err) : 0;
}

int wss_idle_pages_probe(const struct wss_host *host, struct wss_error *err)
{
	wss_auto_close int bitmap = -1;
	wss_auto_close int flags = -1;

	return open_files(host, &bitmap, &flags, err);
}

int wss_idle_pages_open(const struct wss_host *host, const struct wss_process *process,
			struct wss_idle_pages **ret_idle, struct wss_error *err)
{
	struct wss_idle_pages *idle = malloc(sizeof(*idle));

	if (!idle)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	idle->process = process;
	idle->refused = NULL;
	idle->n_refused = 0;
	idle->pagemap = idle->flags = idle->bitmap = -1;
	if (open_files(host, &idle->bitmap, &idle->flags, err) < 0)
		goto failed;
	idle->pagemap = wss_root_openat(&process->proc, "pagemap", O_RDONLY);
	if (idle->pagemap < 0) {
		wss_process_error(process, idle->pagemap, "pagemap", err);
		goto failed;
	}
	*ret_idle = idle;
	return 0;
failed:
	wss_idle_pages_close(idle);
	return -1;
}

static void close_file(int fd)
{
	if (fd >= 0)
		close(fd);
}

void wss_idle_pages_close(struct wss_idle_pages *idle)
{
	if (!idle)
		return;
	close_file(idle->pagemap);
	close_file(idle->flags);
	close_file(idle->bitmap);
	free(idle->refused);
	free(idle);
}

/*
 * The number of a host's page, which has at most 40 bits, as addresses have 52; its place in the piece; and whether the
 * guest shares it.
 */
static uint64_t page_make(uint64_t entry, size_t i)
{
	return (entry & ENTRY_NUMBER) << 16 | i << 1 | !(entry & ENTRY_EXCLUSIVE);
}

static uint64_t page_number(uint64_t page)
{
	return page >> 16;
}

static size_t page_index(uint64_t page)
{
	return page >> 1 & (PIECE - 1);
}

static bool page_is_shared(uint64_t page)
{
	return page & 1;
}

static int compare_pages(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Fills in idle->pages for these addresses. */
static int pages_read(struct wss_idle_pages *idle, uint64_t address, size_t n_pages, size_t *ret_n,
		      struct wss_error *err)
{
	uint64_t *pages = idle->pages;
	ssize_t got = wss_io_pread(idle->pagemap, pages, n_pages * 8,
				   (off_t)((address >> PAGE_SHIFT) * 8));
	bool sorted = true;
	size_t n = 0;

	/* The file of a process that has ended is empty. */
	if (got != (ssize_t)(n_pages * 8))
		return wss_process_error(idle->process, got < 0 ? (int)got : -ESRCH, "pagemap",
					 err);
	for (size_t i = 0; i < n_pages; i++) {
		if (!(pages[i] & ENTRY_PRESENT))
			continue;
		if (!(pages[i] & ENTRY_NUMBER))
			return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, EPERM,
						   WSS_CAP(CAP_SYS_ADMIN),
						   "the kernel hides the numbers of pages");
		pages[n] = page_make(pages[i], i);
		sorted = sorted && (!n || pages[n] > pages[n - 1]);
		n++;
	}
	if (!sorted)
		qsort(pages, n, sizeof(*pages), compare_pages);
	*ret_n = n;
	return 0;
}

/* --- a block --- */

static size_t place(const struct block *block, size_t i)
{
	return page_number(block->pages[i]) - block->first;
}

static int flags_read(const struct wss_idle_pages *idle, struct block *block, size_t from,
		      size_t to, struct wss_error *err)
{
	ssize_t got = wss_io_pread(idle->flags, &block->flags[from], (to - from) * 8,
				   (off_t)((block->first + from) * 8));

	if (got == (ssize_t)((to - from) * 8))
		return 0;
	return wss_error_errno(err, WSS_ERR_FAILED, got < 0 ? (int)-got : EIO,
			       "cannot read /" FLAGS);
}

/* Finds the page whose bit stands for each. What precedes the block's first is read only where that is part of a larger page. */
static int block_find_heads(const struct wss_idle_pages *idle, struct block *block,
			    struct wss_error *err)
{
	size_t from = place(block, 0), to = place(block, block->n - 1) + 1;
	uint16_t head = BLOCK;

	if (flags_read(idle, block, from, to, err) < 0)
		return -1;
	if (from && block->flags[from] & FLAG(KPF_COMPOUND_TAIL)) {
		if (flags_read(idle, block, 0, from, err) < 0)
			return -1;
		from = 0;
	}
	for (size_t i = from; i < to; i++) {
		if (!(block->flags[i] & FLAG(KPF_COMPOUND_TAIL)))
			head = (uint16_t)i;
		block->heads[i] = head;
	}
	return 0;
}

static bool can_be_idle(const struct block *block, size_t head)
{
	return head < BLOCK && block->flags[head] & FLAG(KPF_LRU);
}

/* Counts pages, and marks in block->idle those whose bits are asked for. */
static void block_count_tracked(struct block *block, struct wss_idle_counts *counts)
{
	uint64_t large = 0;

	memset(block->idle, 0, sizeof(block->idle));
	for (size_t i = 0; i < block->n; i++) {
		size_t at = place(block, i), head = block->heads[at];

		/* The zero page, and what KSM has merged, is there more than once. */
		if (i && at == place(block, i - 1) + 1 && head == block->heads[at - 1])
			large++;
		else
			large = 1;
		counts->largest_pages = wss_u64_max(counts->largest_pages, large);
		if (!can_be_idle(block, head))
			continue;
		counts->tracked_pages++;
		block->idle[head / 64] |= 1ULL << head % 64;
	}
	counts->present_pages += block->n;
}

static void block_note_refused(const struct block *block)
{
	for (size_t i = 0; i < block->n; i++) {
		size_t page = page_index(block->pages[i]);

		if (!can_be_idle(block, block->heads[place(block, i)]))
			block->refused[page / 8] |= (uint8_t)(1 << page % 8);
	}
}

static void block_count_touched(const struct block *block, struct wss_idle_counts *counts)
{
	for (size_t i = 0; i < block->n; i++) {
		size_t at = place(block, i), head = block->heads[at];
		size_t page = page_index(block->pages[i]);

		if (can_be_idle(block, head) && block->idle[head / 64] >> head % 64 & 1)
			continue;
		/* Linux 6.12 shows the flag with each anonymous page. */
		if (!can_be_idle(block, head) ||
		    (block->flags[head] & FLAG(KPF_KSM) && page_is_shared(block->pages[i])) ||
		    block->refused[page / 8] >> page % 8 & 1) {
			counts->unsure_pages++;
			continue;
		}
		counts->touched_pages++;
		counts->touched_units += head == at;
	}
}

/* Writes or reads the words of the bitmap that have bits of the block's pages. */
static int block_transfer(const struct wss_idle_pages *idle, struct block *block,
			  enum wss_idle_task task, struct wss_error *err)
{
	size_t from = 0, to = BLOCK / 64;
	ssize_t r, size;
	off_t offset;

	while (to && !block->idle[to - 1])
		to--;
	while (from < to && !block->idle[from])
		from++;
	size = (ssize_t)((to - from) * 8);
	offset = (off_t)(block->first / 8 + from * 8);
	if (!size || task == WSS_IDLE_LOOK)
		return 0;
	r = task == WSS_IDLE_SET
		    ? wss_io_pwrite(idle->bitmap, &block->idle[from], (size_t)size, offset)
		    : wss_io_pread(idle->bitmap, &block->idle[from], (size_t)size, offset);
	if (r == (task == WSS_IDLE_SET ? 0 : size))
		return 0;
	return wss_error_errno(err, WSS_ERR_FAILED, r < 0 ? (int)-r : EIO, "cannot use /" BITMAP);
}

static int block_run(const struct wss_idle_pages *idle, struct block *block,
		     enum wss_idle_task task, struct wss_idle_counts *counts, struct wss_error *err)
{
	if (block_find_heads(idle, block, err) < 0)
		return -1;
	block_count_tracked(block, counts);
	if (block_transfer(idle, block, task, err) < 0)
		return -1;
	if (task == WSS_IDLE_SET)
		block_note_refused(block);
	if (task == WSS_IDLE_READ)
		block_count_touched(block, counts);
	return 0;
}

/* --- all --- */

/* first is the number of pages of RAM before these. */
static int piece_run(struct wss_idle_pages *idle, uint64_t address, size_t n_pages, uint64_t first,
		     enum wss_idle_task task, struct wss_idle_counts *counts, struct wss_error *err)
{
	struct block block = {.refused = &idle->refused[first / 8]};
	size_t n = 0;

	if (pages_read(idle, address, n_pages, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i += block.n) {
		block.first = page_number(idle->pages[i]) & ~(BLOCK - 1ULL);
		block.pages = &idle->pages[i];
		block.n = 1;
		while (i + block.n < n && place(&block, block.n) < BLOCK)
			block.n++;
		if (block_run(idle, &block, task, counts, err) < 0)
			return -1;
	}
	return 0;
}

/* Clears the list of refused pages before they are marked again, and if the size of the RAM has changed. */
static int refused_prepare(struct wss_idle_pages *idle, const struct wss_ram *ram,
			   enum wss_idle_task task, struct wss_error *err)
{
	uint64_t n = 0;

	/* Each piece begins with a byte of its own. */
	for (size_t i = 0; i < ram->n_ranges; i++)
		n += ((ram->ranges[i].end - ram->ranges[i].start) >> PAGE_SHIFT) + 8;
	if (task != WSS_IDLE_SET && n == idle->n_refused)
		return 0;
	free(idle->refused);
	idle->refused = calloc(n / 8 + 1, 1);
	idle->n_refused = idle->refused ? n : 0;
	return idle->refused ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static int check_time(const struct wss_deadline *deadline, struct wss_error *err)
{
	if (wss_cancel_requested(wss_deadline_cancel(deadline)))
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return wss_deadline_check(deadline, err);
}

int wss_idle_pages_run(struct wss_idle_pages *idle, const struct wss_ram *ram,
		       enum wss_idle_task task, const struct wss_deadline *deadline,
		       struct wss_idle_counts *ret_counts, struct wss_error *err)
{
	struct wss_idle_counts counts = {.present_pages = 0};
	uint64_t first = 0;

	if (refused_prepare(idle, ram, task, err) < 0)
		return -1;
	for (size_t i = 0; i < ram->n_ranges; i++) {
		uint64_t at = ram->ranges[i].start, n;

		for (; at < ram->ranges[i].end; at += n << PAGE_SHIFT) {
			n = wss_u64_min((ram->ranges[i].end - at) >> PAGE_SHIFT, PIECE);
			if (check_time(deadline, err) < 0 ||
			    piece_run(idle, at, n, first, task, &counts, err) < 0)
				return -1;
			first += (n + 7) & ~7ULL;
		}
	}
	*ret_counts = counts;
	return 0;
}
