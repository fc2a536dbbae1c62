/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Encodes and decodes the bytes of a recording (docs/recording-format.md): checksums, numbers,
 * the header, the frames. No input or output here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/newfile.h"
#include "pages/recording.h"

#define WSS_REC_VERSION 1
#define WSS_REC_PREAMBLE_BYTES 16
#define WSS_REC_HEADER_MAX (1U << 20) /* bytes after the preamble, without the checksum */
#define WSS_REC_FRAME_BYTES 24
#define WSS_REC_PAYLOAD_MAX (1U << 20)
#define WSS_REC_INTERVALS_MAX (1U << 20)
#define WSS_REC_MARKS_MAX (1U << 16)
/*
 * Largest number of page-set chunks that the runs of a recording may cover in part: those of a
 * 4 TiB guest.
 */
#define WSS_REC_PARTS_MAX 32768U
/*
 * Largest number of runs that may continue from one region into the next. Our own writer ends
 * each run with its region.
 */
#define WSS_REC_CROSSINGS_MAX (1U << 20)
/* Latest time in a recording: 100 years. */
#define WSS_REC_TIME_MAX_NS (3155760000ULL * 1000000000ULL)

enum wss_frame_type {
	WSS_FRAME_INTERVAL = 1,
	WSS_FRAME_MARK = 2,
	WSS_FRAME_END = 3,
	WSS_FRAME_HOST = 4
};

enum {
	WSS_FRAME_FIRST = 1,	  /* first frame of an interval, with its fields */
	WSS_FRAME_LAST = 2,	  /* last frame of an interval, which completes it */
	WSS_FRAME_OPTIONAL = 128, /* a reader that does not know the type skips the frame */
};

struct wss_frame {
	uint8_t type;
	uint8_t flags;
	uint32_t length; /* length of the payload */
	uint32_t sequence;
	uint32_t payload_crc;
};

/* CRC-32C (Castagnoli) of data, continuing from seed (0 at the start). */
uint32_t wss_crc32c(uint32_t seed, const void *data, size_t size);

/* Output buffer. If data does not fit, full is set and nothing more is written. */
struct wss_buffer {
	uint8_t *data;
	size_t length;
	size_t size;
	bool full;
};

void wss_buffer_number(struct wss_buffer *buffer, uint64_t number);
void wss_buffer_text(struct wss_buffer *buffer, const char *text);

/* Input buffer. If the data is invalid for a read, bad is set and the read returns 0 or "". */
struct wss_cursor {
	const uint8_t *data;
	const uint8_t *end;
	bool bad;
};

/* Reads a number of at most max, of any length. */
uint64_t wss_cursor_long_number(struct wss_cursor *cursor, uint64_t max);

/* Reads a number of at most max; fast for numbers of one byte, which most are. */
static inline uint64_t wss_cursor_number(struct wss_cursor *cursor, uint64_t max)
{
	if (cursor->data < cursor->end && *cursor->data < 128 && *cursor->data <= max &&
	    !cursor->bad)
		return *cursor->data++;
	return wss_cursor_long_number(cursor, max);
}

/* Reads a text that fits size with its final NUL; unprintable characters become '?'. */
void wss_cursor_text(struct wss_cursor *cursor, char *ret_text, size_t size);

/*
 * Writes the whole header with preamble and checksum. Returns its size, or 0 if it does not
 * fit. ret_crc is the checksum from which those of the frames continue.
 */
size_t wss_rec_encode_header(const struct wss_recording *recording, uint8_t *data, size_t size,
			     uint32_t *ret_crc);

/*
 * Returns the total size of the header from its preamble. WSS_ERR_FAILED: not a recording;
 * WSS_ERR_UNSUPPORTED: written by a newer version.
 */
int wss_rec_header_size(const uint8_t *preamble, size_t *ret_size, struct wss_error *err);

/* Decodes a header of the size that the preamble gives. WSS_ERR_FAILED: damaged. */
int wss_rec_decode_header(const uint8_t *data, size_t size, struct wss_recording *ret_recording,
			  uint32_t *ret_crc, struct wss_error *err);

/* seed: the header's checksum. */
void wss_rec_encode_frame(const struct wss_frame *frame, uint32_t seed, uint8_t *ret_data);

/* Returns false if these bytes are not the head of a frame. */
bool wss_rec_decode_frame(const uint8_t *data, uint32_t seed, struct wss_frame *ret_frame);

void wss_rec_encode_interval(struct wss_buffer *buffer, const struct wss_interval *interval);
void wss_rec_decode_interval(struct wss_cursor *cursor, struct wss_interval *ret_interval);
