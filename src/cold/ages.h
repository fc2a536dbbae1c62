/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that keep the ages of a guest's memory, so that they survive a restart of the service.
 *
 * One file a guest, named by its UUID, in the directory "ages" beside the history. It is written as a
 * whole and replaces the one before (base/newfile.h). Ages are those of one run of the guest: the file
 * names the boot of the host and the QEMU process, and is of no use to another.
 *
 *   "VWSSAGE\n"  8 bytes
 *   version      4 bytes, little-endian: 2
 *   numbers      each in LEB128, and texts, each a number of bytes and the bytes (recording/codec.h):
 *                  guest: UUID, name; boot id; pid; start time of the process (clock ticks)
 *                  when the file was written: seconds since 1970; ns of CLOCK_BOOTTIME
 *                  number of parts of RAM; of each: pages since the end of the last, pages
 *                  number of slots; of each: ns since the end of the last, length in ns, observed ns,
 *                  holes (0 or 1), pages
 *                  length of the newest window in ns; pages never touched; pages without an age; bytes
 *                  taken; granularity in bytes; 0, or 1: larger than a page for want of memory (since version 2)
 *                  runs until all pages have a serial: 0 (never touched), 1 (no age), or the number of
 *                  its slot from 2 on; pages
 *   CRC-32C      4 bytes, little-endian, of everything before
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cold/coldness.h"
#include "host/domxml.h"
#include "host/host.h"

/*
 * Far more than the ages of a guest of 1 TiB whose memory is touched in runs of a few MiB. Those of one whose
 * memory is touched page by page are stored by units of 2 MiB, which takes 8 MiB at most for 4 TiB.
 */
#define WSS_AGES_BYTES_MAX (64U << 20)

/* Whose ages they are. */
struct wss_ages_key {
	char uuid[WSS_UUID_TEXT_MAX];
	char name[WSS_NAME_MAX];
	char boot_id[WSS_HOST_BOOT_ID_MAX];
	pid_t pid;
	uint64_t start_ticks;
};

/* All of a file but its pages. */
struct wss_ages {
	struct wss_ages_key key;
	int64_t written_s;   /* since 1970 */
	uint64_t written_ns; /* wss_clock_now_ns() */
	size_t n_parts;
	struct wss_run parts[WSS_COLD_PARTS_MAX];
	struct wss_cold_timeline timeline;
};

/* Whether both are the same run of the same guest. */
bool wss_ages_same_guest(const struct wss_ages_key *a, const struct wss_ages_key *b);

/*
 * Finds the directory beside a history, and creates it if make: *ret_path is for free(). It must be as private as the
 * history's own directory. WSS_ERR_FAILED: others can write to it, or it is something else, such as a symbolic link.
 * WSS_ERR_GONE: there is none.
 */
int wss_ages_find_directory(const char *history, bool make, char **ret_path, struct wss_error *err);

/* Whether a file of that name is a guest's: it is a UUID. */
bool wss_ages_is_name(const char *name);

/* Returns the path of a guest's file, malloc()ed; NULL: out of memory, or that is no UUID. */
char *wss_ages_path(const char *directory, const char *uuid);

/*
 * Encodes the content of a file; *ret_data is malloc()ed. One that would be longer than limit_bytes
 * (WSS_AGES_BYTES_MAX at most) gets the ages of units of 2 MiB instead of single pages. WSS_ERR_FAILED: that is
 * too long as well; WSS_ERR_NO_MEMORY.
 */
int wss_ages_encode(const struct wss_ages_key *key, const struct wss_coldness *coldness,
		    uint64_t limit_bytes, uint8_t **ret_data, size_t *ret_size,
		    struct wss_error *err);

/*
 * Writes the file, whose directory must exist. It is of no use after the host has crashed, so that it is not
 * synced. WSS_ERR_FAILED.
 */
int wss_ages_write(const char *path, const uint8_t *data, size_t size, struct wss_error *err);

/*
 * Decodes the content of a file. With ret_coldness also its pages, in memory of limit_bytes and of the budget (NULL: none), for
 * wss_coldness_free(). Outputs are untouched on failure: WSS_ERR_FAILED (damaged, or not such a file),
 * WSS_ERR_UNSUPPORTED (written by a newer version), WSS_ERR_NO_MEMORY.
 */
int wss_ages_decode(const uint8_t *data, size_t size, uint64_t limit_bytes,
		    struct wss_cold_budget *budget, struct wss_ages *ret_ages,
		    struct wss_coldness **ret_coldness, struct wss_error *err);

/*
 * Reads a file and decodes it. WSS_ERR_GONE: there is none. WSS_ERR_FAILED also for a symbolic link, and for a file
 * that others can write to.
 */
int wss_ages_read(const char *path, uint64_t limit_bytes, struct wss_cold_budget *budget,
		  struct wss_ages *ret_ages, struct wss_coldness **ret_coldness,
		  struct wss_error *err);

/*
 * Removes the files of guests that have ended while no service ran: those of an earlier boot, and those whose
 * process is gone. Files that cannot be read stay.
 */
void wss_ages_prune(const char *directory);
