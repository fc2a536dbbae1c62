/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/ram.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/units.h"

#define STATUS_MAX (64U * 1024)
/* Up to this size a block may be as large as a thread stack (8 MiB) or a malloc arena (64 MiB). */
#define SMALL_BLOCK_MAX (64 * WSS_MIB)

/* One mapping; fields that come from smaps only are 0 after reading maps. */
struct vma {
	uint64_t start, end, offset, inode;
	unsigned dev_major, dev_minor;
	bool ram_like;	/* readable and writable, not executable, not QEMU's heap or stack */
	bool guard;	/* inaccessible and anonymous */
	bool shared;	/* MAP_SHARED */
	bool backend;	/* has a name that QEMU's and libvirt's memory backends use */
	bool dont_fork; /* VmFlags: dc, ht, sd */
	bool is_hugetlb;
	bool soft_dirty;
	struct {
		uint64_t page, rss, pss, referenced, swap;
		uint64_t anon_huge, shmem_huge, file_huge, shared_hugetlb, private_hugetlb;
	} bytes;
};

#define FIELD(name, member)                                                \
	{                                                                  \
		name, sizeof(name) - 1, offsetof(struct vma, bytes.member) \
	}
static const struct {
	const char *name;
	size_t len;
	size_t offset;
} smaps_fields[] = {
	FIELD("KernelPageSize:", page),
	FIELD("Rss:", rss),
	FIELD("Pss:", pss),
	FIELD("Referenced:", referenced),
	FIELD("Swap:", swap),
	FIELD("AnonHugePages:", anon_huge),
	FIELD("ShmemPmdMapped:", shmem_huge),
	FIELD("FilePmdMapped:", file_huge),
	FIELD("Shared_Hugetlb:", shared_hugetlb),
	FIELD("Private_Hugetlb:", private_hugetlb),
};

/* Reads maps or smaps one mapping at a time. */
struct reader {
	FILE *file;
	char *line; /* header of the next mapping if has_line */
	size_t size;
	bool has_line;
};

static void close_reader(struct reader *reader)
{
	if (reader->file)
		fclose(reader->file);
	free(reader->line);
}

#define auto_reader wss_cleanup(close_reader)

/* Reads a line. Returns 1, 0 at the end, or negative errno. */
static int read_line(struct reader *reader)
{
	errno = 0;
	if (getline(&reader->line, &reader->size, reader->file) >= 0)
		return 1;
	return feof(reader->file) ? 0 : errno ? -errno : -EIO;
}

static bool is_backend_name(const char *path)
{
	return !strncmp(path, "/memfd:memory-backend-", strlen("/memfd:memory-backend-")) ||
	       !strncmp(path, "/dev/zero (deleted)", strlen("/dev/zero (deleted)")) ||
	       strstr(path, "/qemu_back_mem.") || strstr(path, "/libvirt/qemu/") ||
	       strstr(path, "/libvirt/qemu-embed-");
}

/* Parses "start-end perms offset major:minor inode path". Returns false for any other line. */
static bool parse_header(const char *line, struct vma *ret)
{
	char perms[5];
	const char *path;
	int used = 0;

	memset(ret, 0, sizeof(*ret));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &ret->start,
		   &ret->end, perms, &ret->offset, &ret->dev_major, &ret->dev_minor, &ret->inode,
		   &used) != 7 ||
	    ret->end <= ret->start || strlen(perms) != 4)
		return false;
	path = line + used + strspn(line + used, " ");
	ret->shared = perms[3] == 's';
	ret->guard = !strncmp(perms, "---", 3) && !ret->inode;
	ret->ram_like = !strncmp(perms, "rw-", 3) && strncmp(path, "[heap]", 6) &&
			strncmp(path, "[stack", 6);
	ret->backend = is_backend_name(path);
	return true;
}

static bool has_flag(const char *line, const char *flag)
{
	for (const char *at = strstr(line, flag); at; at = strstr(at + 2, flag))
		if (at[-1] == ' ' && isspace((unsigned char)at[2]))
			return true;
	return false;
}

/* Parses one of the lines that follow a header in smaps. */
static void parse_detail(const char *line, struct vma *vma)
{
	if (!strncmp(line, "VmFlags:", 8)) {
		vma->dont_fork = has_flag(line, "dc");
		vma->is_hugetlb = has_flag(line, "ht");
		vma->soft_dirty = has_flag(line, "sd");
		vma->backend |= vma->is_hugetlb;
		return;
	}
	for (size_t i = 0; i < sizeof(smaps_fields) / sizeof(smaps_fields[0]); i++) {
		if (strncmp(line, smaps_fields[i].name, smaps_fields[i].len))
			continue;
		*(uint64_t *)((char *)vma + smaps_fields[i].offset) =
			wss_u64_mul(strtoull(line + smaps_fields[i].len, NULL, 10), WSS_KIB);
		return;
	}
}

/* Reads a mapping. Returns 1, 0 at the end, or negative errno. */
static int next_vma(struct reader *reader, struct vma *ret)
{
	int r = reader->has_line ? 1 : read_line(reader);

	reader->has_line = false;
	if (r <= 0)
		return r;
	if (!parse_header(reader->line, ret))
		return -EINVAL;
	/* Headers start with a lower-case hexadecimal digit, details with a capital. */
	while ((r = read_line(reader)) > 0) {
		if (!isupper((unsigned char)reader->line[0])) {
			reader->has_line = true;
			break;
		}
		parse_detail(reader->line, ret);
	}
	return r < 0 ? r : 1;
}

struct vmas {
	struct vma *list;
	size_t n;
};

static void free_vmas(struct vmas *vmas)
{
	free(vmas->list);
}

#define auto_vmas wss_cleanup(free_vmas)

/* Reads the mappings of "maps" or "smaps" that may be RAM, and the guards behind them. */
static int read_vmas(const struct wss_process *process, const char *file, bool with_flags,
		     struct vmas *ret, struct wss_error *err)
{
	auto_reader struct reader reader = {NULL, NULL, 0, false};
	struct vma vma;
	size_t size = 0;
	int r = wss_root_fopen(&process->proc, file, &reader.file);

	while (r >= 0 && (r = next_vma(&reader, &vma)) > 0) {
		if (!vma.guard && (!vma.ram_like || (with_flags && !vma.dont_fork)))
			continue;
		if (ret->n == size) {
			struct vma *bigger = reallocarray(ret->list, size = size ? size * 2 : 64,
							  sizeof(*bigger));

			if (!bigger)
				return wss_process_error(process, -ENOMEM, file, err);
			ret->list = bigger;
		}
		ret->list[ret->n++] = vma;
	}
	if (r < 0)
		return wss_process_error(process, r, file, err);
	if (!wss_process_alive(process))
		return wss_process_error(process, -ESRCH, file, err);
	return 0;
}

/* Whether b continues a, so that one block of RAM may span both. */
static bool vma_continues(const struct vma *a, const struct vma *b)
{
	return a->ram_like && b->ram_like && a->end == b->start && a->shared == b->shared &&
	       a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor &&
	       (!a->inode || a->offset + (a->end - a->start) == b->offset);
}

/*
 * Whether a block of `bytes` ends with vmas->list[last], at its guard; *ret_first is its first
 * mapping. With flags_known a run has no foreign neighbour before it and must match as a
 * whole.
 */
static bool vma_ends_block(const struct vmas *vmas, size_t last, uint64_t bytes, bool flags_known,
			   size_t *ret_first)
{
	const struct vma *v = vmas->list;
	uint64_t page = v[last].bytes.page ? v[last].bytes.page : 4 * WSS_KIB;
	uint64_t want = (bytes + page - 1) / page * page, have = v[last].end - v[last].start;
	size_t first = last;

	if (!v[last].ram_like || last + 1 == vmas->n || !v[last + 1].guard ||
	    v[last + 1].start != v[last].end)
		return false;
	while (have < want && first > 0 && vma_continues(&v[first - 1], &v[first])) {
		first--;
		have += v[first].end - v[first].start;
	}
	if (have != want || (flags_known && first > 0 && vma_continues(&v[first - 1], &v[first])))
		return false;
	*ret_first = first;
	return true;
}

static void add_range(const struct vmas *vmas, size_t first, size_t last, struct wss_ram *ram)
{
	struct wss_range *range = &ram->ranges[ram->n_ranges++];

	range->start = vmas->list[first].start;
	range->end = vmas->list[last].end;
	ram->total_bytes += range->end - range->start;
	for (size_t i = first; i <= last; i++) {
		ram->all_shared &= vmas->list[i].shared;
		ram->any_shared |= vmas->list[i].shared;
	}
}

/* Adds the `needed` blocks of this size to ram. */
static int find_size(const struct vmas *vmas, uint64_t bytes, size_t needed, bool flags_known,
		     struct wss_ram *ram, struct wss_error *err)
{
	size_t candidates = 0, backends = 0, first;
	bool only_backends;

	for (size_t i = 0; i < vmas->n; i++) {
		if (vma_ends_block(vmas, i, bytes, flags_known, &first)) {
			candidates++;
			backends += vmas->list[i].backend;
		}
	}
	only_backends = backends == needed;
	if (candidates != needed && !only_backends)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "guest RAM: expected %zu block%s of %llu KiB, but QEMU has "
				     "%zu mappings of that size%s",
				     needed, wss_plural(needed), bytes / WSS_KIB, candidates,
				     candidates > needed ? ", which cannot be told apart" : "");
	for (size_t i = 0; i < vmas->n; i++)
		if (vma_ends_block(vmas, i, bytes, flags_known, &first) &&
		    (vmas->list[i].backend || !only_backends))
			add_range(vmas, first, i, ram);
	return 0;
}

static int block_compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int ram_compare_ranges(const void *a, const void *b)
{
	return block_compare_sizes(&((const struct wss_range *)a)->start,
				   &((const struct wss_range *)b)->start);
}

static void cleanup_ram(struct wss_ram *ram)
{
	wss_ram_free(ram);
}

/* Finds all blocks among the mappings; sizes is sorted. */
static int find_all_blocks(const struct vmas *vmas, const uint64_t *sizes, size_t n,
			   bool flags_known, struct wss_ram *ret_ram, struct wss_error *err)
{
	wss_cleanup(cleanup_ram) struct wss_ram ram = {.all_shared = true};
	size_t same;

	ram.ranges = calloc(n, sizeof(*ram.ranges));
	if (!ram.ranges)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory for %zu RAM ranges", n);
	for (size_t i = 0; i < n; i += same) {
		for (same = 1; i + same < n && sizes[i + same] == sizes[i]; same++)
			;
		if (find_size(vmas, sizes[i], same, flags_known, &ram, err) < 0)
			return -1;
	}
	qsort(ram.ranges, ram.n_ranges, sizeof(*ram.ranges), ram_compare_ranges);
	for (size_t i = 1; i < ram.n_ranges; i++)
		if (ram.ranges[i].start < ram.ranges[i - 1].end)
			return wss_error_set(err, WSS_ERR_FAILED, "guest RAM: two blocks overlap");
	*ret_ram = ram;
	ram = (struct wss_ram)WSS_RAM_INIT;
	return 0;
}

int wss_ram_find(const struct wss_process *process, const uint64_t *block_bytes, size_t n,
		 struct wss_ram *ret_ram, struct wss_error *err)
{
	wss_auto_free uint64_t *sizes = calloc(n ? n : 1, sizeof(*sizes));
	auto_vmas struct vmas maps = {NULL, 0}, smaps = {NULL, 0};

	if (!sizes)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory for %zu sizes", n);
	if (n)
		memcpy(sizes, block_bytes, n * sizeof(*sizes));
	qsort(sizes, n, sizeof(*sizes), block_compare_sizes);
	if (!n || !sizes[0])
		return wss_error_set(err, WSS_ERR_FAILED, "guest RAM: its size is unknown");
	if (read_vmas(process, "maps", false, &maps, err) < 0)
		return -1;
	if (sizes[0] > SMALL_BLOCK_MAX &&
	    find_all_blocks(&maps, sizes, n, false, ret_ram, NULL) == 0)
		return 0;
	if (read_vmas(process, "smaps", true, &smaps, err) < 0)
		return -1;
	return find_all_blocks(&smaps, sizes, n, true, ret_ram, err);
}

static bool overlaps_any(const struct vma *vma, const struct wss_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (vma->start < ranges[i].end && ranges[i].start < vma->end)
			return true;
	return false;
}

int wss_ram_find_at(const struct wss_process *process, const struct wss_range *ranges, size_t n,
		    struct wss_ram *ret_ram, struct wss_error *err)
{
	wss_cleanup(cleanup_ram) struct wss_ram ram = {.all_shared = true};
	auto_vmas struct vmas maps = {NULL, 0};

	if (read_vmas(process, "maps", false, &maps, err) < 0)
		return -1;
	ram.ranges = calloc(maps.n + 1, sizeof(*ram.ranges));
	if (!ram.ranges)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory for %zu RAM ranges",
				     maps.n);
	for (size_t i = 0; i < maps.n; i++)
		if (maps.list[i].ram_like && overlaps_any(&maps.list[i], ranges, n))
			add_range(&maps, i, i, &ram);
	if (!ram.n_ranges)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "guest RAM: nothing is mapped where KVM has its memory");
	*ret_ram = ram;
	ram = (struct wss_ram)WSS_RAM_INIT;
	return 0;
}

void wss_ram_free(struct wss_ram *ram)
{
	free(ram->ranges);
	*ram = (struct wss_ram)WSS_RAM_INIT;
}

/*
 * Whether address lies in ram. Addresses must ascend from call to call; *at is where to
 * continue.
 */
static bool is_in_ram(const struct wss_ram *ram, uint64_t address, size_t *at)
{
	while (ram && *at < ram->n_ranges && ram->ranges[*at].end <= address)
		(*at)++;
	return ram && *at < ram->n_ranges && ram->ranges[*at].start <= address;
}

static void add_vma(const struct vma *vma, bool is_first, struct wss_smaps_sum *sum)
{
	uint64_t hugetlb = vma->bytes.shared_hugetlb + vma->bytes.private_hugetlb;

	sum->rss += vma->bytes.rss + hugetlb;
	sum->pss += vma->bytes.pss + hugetlb;
	sum->referenced += vma->bytes.referenced;
	sum->swap += vma->bytes.swap;
	sum->huge += vma->bytes.anon_huge + vma->bytes.shmem_huge + vma->bytes.file_huge + hugetlb;
	sum->hugetlb += hugetlb;
	if (vma->is_hugetlb && vma->bytes.page > sum->hugetlb_page)
		sum->hugetlb_page = vma->bytes.page;
	sum->any_hugetlb |= vma->is_hugetlb;
	sum->all_hugetlb = (is_first || sum->all_hugetlb) && vma->is_hugetlb;
	sum->soft_dirty = (is_first || sum->soft_dirty) && vma->soft_dirty;
}

int wss_smaps_read(const struct wss_process *process, const struct wss_ram *ram,
		   struct wss_smaps *ret_smaps, struct wss_error *err)
{
	auto_reader struct reader reader = {NULL, NULL, 0, false};
	struct wss_smaps sums = {0};
	uint64_t guest_bytes = 0;
	size_t at = 0, n_guest = 0, n_qemu = 0;
	struct vma vma;
	int r = wss_root_fopen(&process->proc, "smaps", &reader.file);

	while (r >= 0 && (r = next_vma(&reader, &vma)) > 0) {
		if (is_in_ram(ram, vma.start, &at)) {
			add_vma(&vma, n_guest++ == 0, &sums.guest);
			guest_bytes += vma.end - vma.start;
		} else {
			add_vma(&vma, n_qemu++ == 0, &sums.qemu);
		}
	}
	if (r < 0)
		return wss_process_error(process, r, "smaps", err);
	if (!wss_process_alive(process))
		return wss_process_error(process, -ESRCH, "smaps", err);
	if (ram && guest_bytes != ram->total_bytes)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "guest RAM of process %d has moved: found %llu KiB of "
				     "%llu KiB",
				     process->pid, guest_bytes / WSS_KIB,
				     ram->total_bytes / WSS_KIB);
	*ret_smaps = sums;
	return 0;
}

/* Parses "Name:\t  123 kB" in text into bytes; 0 if it is missing. */
static bool status_bytes(const char *text, const char *name, uint64_t *ret_bytes)
{
	const char *at = strstr(text, name);

	if (!at)
		return false;
	*ret_bytes = wss_u64_mul(strtoull(at + strlen(name), NULL, 10), WSS_KIB);
	return true;
}

int wss_kept_memory_read(const struct wss_process *process, struct wss_kept_memory *ret_kept)
{
	wss_auto_free char *text = NULL;
	int r = wss_root_read(&process->proc, "status", STATUS_MAX, &text, NULL);

	if (r < 0)
		return r;
	*ret_kept = (struct wss_kept_memory){0};
	status_bytes(text, "\nVmLck:", &ret_kept->locked_bytes);
	status_bytes(text, "\nHugetlbPages:", &ret_kept->hugetlb_bytes);
	return 0;
}

int wss_process_memory_read(const struct wss_process *process,
			    struct wss_process_memory *ret_memory, struct wss_error *err)
{
	struct wss_process_memory memory = {.swap_bytes = 0};
	wss_auto_free char *text = NULL;
	int r = wss_root_read(&process->proc, "status", STATUS_MAX, &text, NULL);

	if (r < 0)
		return wss_process_error(process, r, "status", err);
	/* Processes without memory, such as exiting ones, lack this line. */
	if (!status_bytes(text, "\nVmRSS:", &memory.rss_bytes))
		return wss_process_error(process, wss_process_alive(process) ? -EINVAL : -ESRCH,
					 "status", err);
	/* Kernels without hugetlb, or without swap, lack these lines. */
	status_bytes(text, "\nHugetlbPages:", &memory.hugetlb_bytes);
	status_bytes(text, "\nVmSwap:", &memory.swap_bytes);
	memory.rss_bytes += memory.hugetlb_bytes;
	*ret_memory = memory;
	return 0;
}

int wss_resident_read(const struct wss_process *process, uint64_t *ret_rss_bytes,
		      uint64_t *ret_hugetlb_bytes, struct wss_error *err)
{
	struct wss_process_memory memory;

	if (wss_process_memory_read(process, &memory, err) < 0)
		return -1;
	*ret_rss_bytes = memory.rss_bytes;
	if (ret_hugetlb_bytes)
		*ret_hugetlb_bytes = memory.hugetlb_bytes;
	return 0;
}
