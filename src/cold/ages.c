/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cold/ages.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/io.h"
#include "base/newfile.h"
#include "base/number.h"
#include "recording/codec.h"

#define MAGIC "VWSSAGE\n"
#define MAGIC_BYTES 8
#define FORMAT_VERSION 2
/* The first one that says why ages are those of units of 2 MiB. */
#define FORMAT_VERSION_NO_MEMORY 2
#define HEAD_BYTES (MAGIC_BYTES + 4)
#define CRC_BYTES 4
#define CHUNK_BYTES 65536
/* The longest thing that is encoded in one go: the key, or the slots. */
#define ITEM_BYTES_MAX 32768
#define FILE_MODE 0600
#define DIRECTORY_MODE 0700

/* Serials in the file. */
enum { CODE_NEVER, CODE_ABSENT, CODE_SLOTS };

bool wss_ages_same_guest(const struct wss_ages_key *a, const struct wss_ages_key *b)
{
	return !strcmp(a->uuid, b->uuid) && !strcmp(a->boot_id, b->boot_id) && a->boot_id[0] &&
	       a->pid == b->pid && a->start_ticks == b->start_ticks;
}

int wss_ages_find_directory(const char *history, bool make, char **ret_path, struct wss_error *err)
{
	const char *slash = strrchr(history, '/');
	wss_auto_free char *named = NULL, *path = NULL;
	struct stat st;

	if (asprintf(&named, "%.*sages", slash ? (int)(slash + 1 - history) : 0, history) < 0) {
		named = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (wss_place_resolve_private(named, &path, err) < 0)
		return wss_error_prefix(err, "%s", named);
	if ((make && mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST) || lstat(path, &st) < 0)
		return wss_error_errno(err, errno == ENOENT ? WSS_ERR_GONE : WSS_ERR_FAILED, errno,
				       "%s", named);
	if (!S_ISDIR(st.st_mode))
		return wss_error_set(err, WSS_ERR_FAILED, "%s: it is not a directory", named);
	if (wss_file_check_private(path, &st, "it", err) < 0)
		return wss_error_prefix(err, "%s", named);
	*ret_path = wss_steal_ptr(path);
	return 0;
}

bool wss_ages_is_name(const char *name)
{
	return strlen(name) == WSS_UUID_TEXT_MAX - 1 &&
	       strspn(name, "0123456789abcdefABCDEF-") == WSS_UUID_TEXT_MAX - 1;
}

char *wss_ages_path(const char *directory, const char *uuid)
{
	char *path;

	if (!wss_ages_is_name(uuid) || asprintf(&path, "%s/%s", directory, uuid) < 0)
		return NULL;
	return path;
}

/* --- writing --- */

/* The file as it grows in memory; of the chunk only what fills it is encoded at once. */
struct output {
	uint8_t *data; /* malloc()ed */
	size_t size;
	uint64_t limit_bytes;
	bool too_long;
	uint8_t chunk[CHUNK_BYTES];
	struct wss_buffer buffer;
};

static int output_append(struct output *output, const void *data, size_t size,
			 struct wss_error *err)
{
	uint8_t *longer = realloc(output->data, output->size + size);

	if (!longer)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	memcpy(longer + output->size, data, size);
	output->data = longer;
	output->size += size;
	return 0;
}

static int output_flush(struct output *output, struct wss_error *err)
{
	size_t size = output->buffer.length;

	output->buffer.length = 0;
	if (output->size + size <= output->limit_bytes)
		return output_append(output, output->chunk, size, err);
	output->too_long = true;
	return wss_error_set(err, WSS_ERR_FAILED, "it would be longer than %" PRIu64 " bytes",
			     output->limit_bytes);
}

static void output_bytes(struct output *output, const void *data, size_t size)
{
	memcpy(output->chunk + output->buffer.length, data, size);
	output->buffer.length += size;
}

static void encode_key(struct wss_buffer *buffer, const struct wss_ages_key *key)
{
	wss_buffer_text(buffer, key->uuid);
	wss_buffer_text(buffer, key->name);
	wss_buffer_text(buffer, key->boot_id);
	wss_buffer_number(buffer, (uint64_t)key->pid);
	wss_buffer_number(buffer, key->start_ticks);
	wss_buffer_number(buffer, (uint64_t)wss_clock_wall_seconds());
	wss_buffer_number(buffer, wss_clock_now_ns());
}

static void encode_parts(struct wss_buffer *buffer, const struct wss_coldness *coldness)
{
	struct wss_run parts[WSS_COLD_PARTS_MAX];
	size_t n = wss_coldness_parts(coldness, parts);
	uint64_t end = 0;

	wss_buffer_number(buffer, n);
	for (size_t i = 0; i < n; i++) {
		wss_buffer_number(buffer, parts[i].first - end);
		wss_buffer_number(buffer, parts[i].n);
		end = parts[i].first + parts[i].n;
	}
}

static void encode_timeline(struct wss_buffer *buffer, const struct wss_cold_timeline *timeline)
{
	uint64_t end_ns = 0;

	wss_buffer_number(buffer, timeline->n);
	for (size_t i = 0; i < timeline->n; i++) {
		const struct wss_cold_slot *slot = &timeline->slots[i];

		wss_buffer_number(buffer, slot->start_ns - end_ns);
		wss_buffer_number(buffer, slot->end_ns - slot->start_ns);
		wss_buffer_number(buffer, slot->observed_ns);
		wss_buffer_number(buffer, slot->holes);
		wss_buffer_number(buffer, slot->pages);
		end_ns = slot->end_ns;
	}
	wss_buffer_number(buffer, timeline->last_window_ns);
	wss_buffer_number(buffer, timeline->never_pages);
	wss_buffer_number(buffer, timeline->absent_pages);
	wss_buffer_number(buffer, timeline->taken_bytes);
	wss_buffer_number(buffer, timeline->granularity_bytes);
	wss_buffer_number(buffer, timeline->no_memory);
}

static int encode_pages(struct output *output, const struct wss_coldness *coldness,
			struct wss_error *err)
{
	struct wss_cold_run run;

	for (uint64_t at = 0; wss_coldness_next(coldness, at, &run); at += run.n) {
		wss_buffer_number(&output->buffer, run.serial == WSS_COLD_NEVER ? CODE_NEVER
						   : run.serial == WSS_COLD_ABSENT
							   ? CODE_ABSENT
							   : run.serial - 1U + CODE_SLOTS);
		wss_buffer_number(&output->buffer, run.n);
		if (output->buffer.length > CHUNK_BYTES - ITEM_BYTES_MAX &&
		    output_flush(output, err) < 0)
			return -1;
	}
	return output_flush(output, err);
}

static int encode_file(struct output *output, const struct wss_ages_key *key,
		       const struct wss_coldness *coldness, struct wss_error *err)
{
	uint32_t version = htole32(FORMAT_VERSION), crc;

	output->buffer = (struct wss_buffer){.data = output->chunk, .size = CHUNK_BYTES};
	output_bytes(output, MAGIC, MAGIC_BYTES);
	output_bytes(output, &version, sizeof(version));
	encode_key(&output->buffer, key);
	encode_parts(&output->buffer, coldness);
	encode_timeline(&output->buffer, wss_coldness_timeline(coldness));
	if (encode_pages(output, coldness, err) < 0)
		return -1;
	crc = htole32(wss_crc32c(0, output->data, output->size));
	return output_append(output, &crc, sizeof(crc), err);
}

static int encode(const struct wss_ages_key *key, const struct wss_coldness *coldness,
		  uint64_t limit_bytes, uint8_t **ret_data, size_t *ret_size, bool *ret_too_long,
		  struct wss_error *err)
{
	wss_auto_free struct output *output = calloc(1, sizeof(*output));

	if (!output)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	output->limit_bytes = limit_bytes;
	if (encode_file(output, key, coldness, err) < 0) {
		*ret_too_long = output->too_long;
		free(output->data);
		return -1;
	}
	*ret_data = output->data;
	*ret_size = output->size;
	return 0;
}

int wss_ages_encode(const struct wss_ages_key *key, const struct wss_coldness *coldness,
		    uint64_t limit_bytes, uint8_t **ret_data, size_t *ret_size,
		    struct wss_error *err)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_coldness *coarse;
	bool too_long = false;
	int r = encode(key, coldness, limit_bytes, ret_data, ret_size, &too_long, &error);

	if (too_long) {
		coarse = wss_coldness_coarse(coldness);
		if (!coarse)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		wss_error_clear(&error);
		r = encode(key, coarse, limit_bytes, ret_data, ret_size, &too_long, &error);
		wss_coldness_free(coarse);
	}
	if (r < 0 && err)
		*err = error;
	return r;
}

int wss_ages_write(const char *path, const uint8_t *data, size_t size, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	int r;

	if (wss_newfile_make(path, FILE_MODE, &file, err) < 0)
		return wss_error_prefix(err, "%s", path);
	file.unsynced = true;
	r = wss_io_pwrite(file.fd, data, size, 0);
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "%s: cannot write it", path);
	return wss_newfile_name(&file, true, err) < 0 ? wss_error_prefix(err, "%s", path) : 0;
}

/* --- reading --- */

static int ages_damaged(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_FAILED, "it is damaged");
}

static int check_head(const uint8_t *data, size_t size, uint32_t *ret_version,
		      struct wss_error *err)
{
	uint32_t version, crc;

	if (size < HEAD_BYTES + CRC_BYTES || memcmp(data, MAGIC, MAGIC_BYTES) != 0)
		return wss_error_set(err, WSS_ERR_FAILED, "it is not a file of idle ages");
	memcpy(&version, data + MAGIC_BYTES, sizeof(version));
	version = le32toh(version);
	if (!version || version > FORMAT_VERSION)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"it has format version %u: this virt-wss reads versions up to %d", version,
			FORMAT_VERSION);
	*ret_version = version;
	memcpy(&crc, data + size - CRC_BYTES, sizeof(crc));
	return wss_crc32c(0, data, size - CRC_BYTES) == le32toh(crc) ? 0 : ages_damaged(err);
}

static void decode_key(struct wss_cursor *cursor, struct wss_ages *ages)
{
	struct wss_ages_key *key = &ages->key;

	wss_cursor_text(cursor, key->uuid, sizeof(key->uuid));
	wss_cursor_text(cursor, key->name, sizeof(key->name));
	wss_cursor_text(cursor, key->boot_id, sizeof(key->boot_id));
	key->pid = (pid_t)wss_cursor_number(cursor, INT32_MAX);
	key->start_ticks = wss_cursor_number(cursor, UINT64_MAX);
	ages->written_s = (int64_t)wss_cursor_number(cursor, WSS_TIME_MAX_S);
	ages->written_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
}

/* Returns the number of pages; 0: the parts are not valid. */
static uint64_t decode_parts(struct wss_cursor *cursor, struct wss_ages *ages)
{
	uint64_t end = 0, pages = 0;

	ages->n_parts = wss_cursor_number(cursor, WSS_COLD_PARTS_MAX);
	for (size_t i = 0; i < ages->n_parts; i++) {
		struct wss_run *part = &ages->parts[i];

		part->first = end + wss_cursor_number(cursor, WSS_BYTES_MAX);
		part->n = wss_cursor_number(cursor, WSS_PAGESET_MAX_PAGES);
		if (!part->n)
			return 0;
		end = part->first + part->n;
		pages += part->n;
	}
	return pages <= WSS_PAGESET_MAX_PAGES ? pages : 0;
}

static void decode_timeline(struct wss_cursor *cursor, uint32_t version,
			    struct wss_cold_timeline *timeline)
{
	uint64_t end_ns = 0;

	timeline->n = wss_cursor_number(cursor, WSS_COLD_SLOTS_MAX);
	for (size_t i = 0; i < timeline->n; i++) {
		struct wss_cold_slot *slot = &timeline->slots[i];

		slot->start_ns = end_ns + wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
		slot->end_ns = slot->start_ns + wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
		slot->observed_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
		slot->holes = wss_cursor_number(cursor, 1) != 0;
		slot->pages = wss_cursor_number(cursor, WSS_PAGESET_MAX_PAGES);
		end_ns = slot->end_ns;
		/* Before the next sum could overflow. */
		if (end_ns > WSS_REC_TIME_MAX_NS)
			cursor->bad = true;
	}
	timeline->last_window_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
	timeline->never_pages = wss_cursor_number(cursor, WSS_PAGESET_MAX_PAGES);
	timeline->absent_pages = wss_cursor_number(cursor, WSS_PAGESET_MAX_PAGES);
	timeline->taken_bytes = wss_cursor_number(cursor, WSS_BYTES_MAX);
	timeline->granularity_bytes = wss_cursor_number(cursor, WSS_BYTES_MAX);
	if (version >= FORMAT_VERSION_NO_MEMORY)
		timeline->no_memory = wss_cursor_number(cursor, 1) != 0;
}

static uint64_t *timeline_count(struct wss_cold_timeline *timeline, uint64_t code)
{
	if (code == CODE_NEVER)
		return &timeline->never_pages;
	return code == CODE_ABSENT ? &timeline->absent_pages
				   : &timeline->slots[code - CODE_SLOTS].pages;
}

static uint16_t serial_of_code(uint64_t code)
{
	if (code < CODE_SLOTS)
		return code == CODE_NEVER ? WSS_COLD_NEVER : WSS_COLD_ABSENT;
	return (uint16_t)(code - CODE_SLOTS + 1);
}

/* Takes the runs from left, the numbers of pages that they must add up to; coldness may be NULL. */
static bool decode_pages(struct wss_cursor *cursor, uint64_t n_pages,
			 struct wss_cold_timeline *left, struct wss_coldness *coldness)
{
	uint64_t at = 0;

	while (at < n_pages) {
		uint64_t code = wss_cursor_number(cursor, left->n + CODE_SLOTS - 1);
		uint64_t n = wss_cursor_number(cursor, n_pages - at);
		uint64_t *count;

		if (cursor->bad || !n)
			return false;
		count = timeline_count(left, code);
		if (n > *count)
			return false;
		*count -= n;
		if (coldness)
			wss_coldness_restore_run(coldness, at,
						 &(struct wss_cold_run){n, serial_of_code(code)});
		at += n;
	}
	return cursor->data == cursor->end;
}

static int decode_body(struct wss_cursor *cursor, uint32_t version, uint64_t limit_bytes,
		       struct wss_cold_budget *budget, struct wss_ages *ages,
		       struct wss_coldness **ret_coldness, struct wss_error *err)
{
	wss_auto_free struct wss_cold_timeline *left = malloc(sizeof(*left));
	struct wss_coldness *coldness = NULL;
	uint64_t n_pages;

	if (!left)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	decode_key(cursor, ages);
	n_pages = decode_parts(cursor, ages);
	decode_timeline(cursor, version, &ages->timeline);
	if (cursor->bad || !n_pages ||
	    !wss_cold_timeline_valid(&ages->timeline, n_pages, ages->written_ns))
		return ages_damaged(err);
	if (ret_coldness) {
		coldness = wss_coldness_new(ages->parts, ages->n_parts, limit_bytes, budget);
		if (!coldness)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		wss_coldness_restore(coldness, &ages->timeline);
	}
	*left = ages->timeline;
	if (!decode_pages(cursor, n_pages, left, coldness)) {
		wss_coldness_free(coldness);
		return ages_damaged(err);
	}
	if (ret_coldness)
		*ret_coldness = coldness;
	return 0;
}

int wss_ages_decode(const uint8_t *data, size_t size, uint64_t limit_bytes,
		    struct wss_cold_budget *budget, struct wss_ages *ret_ages,
		    struct wss_coldness **ret_coldness, struct wss_error *err)
{
	uint32_t version = 0;
	wss_auto_free struct wss_ages *ages = calloc(1, sizeof(*ages));
	struct wss_cursor cursor;

	if (!ages)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (check_head(data, size, &version, err) < 0)
		return -1;
	cursor = (struct wss_cursor){.data = data + HEAD_BYTES, .end = data + size - CRC_BYTES};
	if (decode_body(&cursor, version, limit_bytes, budget, ages, ret_coldness, err) < 0)
		return -1;
	*ret_ages = *ages;
	return 0;
}

/* Only the caller and root can write to the directory, so that nobody can replace the file after this. */
static int check_file(const char *path, struct wss_error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return wss_error_errno(err, errno == ENOENT ? WSS_ERR_GONE : WSS_ERR_FAILED, errno,
				       "cannot examine it");
	return wss_file_check_regular(&st, err) < 0 ? -1
						    : wss_file_check_private(path, &st, "it", err);
}

int wss_ages_read(const char *path, uint64_t limit_bytes, struct wss_cold_budget *budget,
		  struct wss_ages *ret_ages, struct wss_coldness **ret_coldness,
		  struct wss_error *err)
{
	wss_auto_free char *data = NULL;
	size_t size;

	if (check_file(path, err) < 0 ||
	    wss_file_read(path, WSS_AGES_BYTES_MAX + CRC_BYTES, &data, &size, err) < 0 ||
	    wss_ages_decode((const uint8_t *)data, size, limit_bytes, budget, ret_ages,
			    ret_coldness, err) < 0)
		return wss_error_prefix(err, "%s", path);
	return 0;
}

static bool guest_has_ended(const struct wss_ages_key *key)
{
	char boot_id[WSS_HOST_BOOT_ID_MAX];

	wss_host_boot_id(wss_test_sysroot(), boot_id);
	if (!boot_id[0])
		return false;
	return strcmp(key->boot_id, boot_id) != 0 ||
	       (key->pid > 0 && kill(key->pid, 0) < 0 && errno == ESRCH);
}

void wss_ages_prune(const char *directory)
{
	wss_auto_dir DIR *dir = opendir(directory);
	wss_auto_free struct wss_ages *ages = malloc(sizeof(*ages));
	const struct dirent *entry;

	while (dir && ages && (entry = readdir(dir))) {
		wss_auto_free char *path = wss_ages_path(directory, entry->d_name);

		if (path && wss_ages_read(path, 0, NULL, ages, NULL, NULL) == 0 &&
		    guest_has_ended(&ages->key))
			unlink(path);
	}
}
