/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a recording (docs/recording-format.md): checksums, numbers, the header, the
 * frames. No input or output here.
 */
#ifndef WSS_REC_CODEC_H
#define WSS_REC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wss/recording.h"

#define WSS_REC_VERSION 1
#define WSS_REC_MAGIC "VWSSREC\n"
#define WSS_REC_PREAMBLE_BYTES 16
#define WSS_REC_HEADER_MAX (1U << 20) /* bytes behind the preamble, checksum apart */
#define WSS_REC_FRAME_BYTES 24
#define WSS_REC_PAYLOAD_MAX (1U << 20)
#define WSS_REC_INTERVALS_MAX (1U << 20)
#define WSS_REC_MARKS_MAX (1U << 16)
/*
 * Chunks of page sets that the runs of a recording cover in part: all that a guest of 4 TiB has.
 */
#define WSS_REC_PARTS_MAX 32768U
/* Times that a run goes on from one region into the next. Our writer has each end with its region. */
#define WSS_REC_CROSSINGS_MAX (1U << 20)
/* The latest time of a recording: 100 years. */
#define WSS_REC_TIME_MAX_NS (3155760000ULL * 1000000000ULL)

enum wss_frame_type { WSS_FRAME_INTERVAL = 1, WSS_FRAME_MARK = 2, WSS_FRAME_END = 3, WSS_FRAME_HOST = 4 };

enum {
	WSS_FRAME_FIRST = 1,   /* of an interval: begins with what is known of it */
	WSS_FRAME_LAST = 2,    /* of an interval: it is whole now */
	WSS_FRAME_OPTIONAL = 128, /* a reader that does not know the type goes on */
};

struct wss_frame {
	uint8_t type;
	uint8_t flags;
	uint32_t length; /* of the payload */
	uint32_t sequence;
	uint32_t payload_crc;
};

/* CRC-32C (Castagnoli) of data, going on from seed (0 at the start). */
uint32_t wss_crc32c(uint32_t seed, const void *data, size_t size);

/* Bytes being written; full is set, and nothing more written, when they do not fit. */
struct wss_buffer {
	uint8_t *data;
	size_t length;
	size_t size;
	bool full;
};

void wss_buffer_number(struct wss_buffer *buffer, uint64_t number);
void wss_buffer_text(struct wss_buffer *buffer, const char *text);

/* Bytes being read; bad is set, and 0 or "" given, when they are not what was asked for. */
struct wss_cursor {
	const uint8_t *data;
	const uint8_t *end;
	bool bad;
};

/* A number of at most max, of any length. */
uint64_t wss_cursor_long_number(struct wss_cursor *cursor, uint64_t max);

/* A number of at most max. Most have one byte. */
static inline uint64_t wss_cursor_number(struct wss_cursor *cursor, uint64_t max)
{
	if (cursor->data < cursor->end && *cursor->data < 128 && *cursor->data <= max && !cursor->bad)
		return *cursor->data++;
	return wss_cursor_long_number(cursor, max);
}

/* A text that fits size with its final NUL; what is not printable becomes '?'. */
void wss_cursor_text(struct wss_cursor *cursor, char *ret_text, size_t size);

/*
 * The whole header, preamble and checksum included. Its size, or 0 where it does not fit.
 * ret_crc is the checksum, from which those of the frames go on.
 */
size_t wss_rec_encode_header(const struct wss_recording *recording, uint8_t *data, size_t size,
			     uint32_t *ret_crc);

/*
 * The bytes that the header has in all, from its preamble. WSS_ERR_FAILED: not a
 * recording; WSS_ERR_UNSUPPORTED: of a newer version.
 */
int wss_rec_header_size(const uint8_t *preamble, size_t *ret_size, struct wss_error *err);

/* Reads the header of the size that the preamble gives. WSS_ERR_FAILED: damaged. */
int wss_rec_decode_header(const uint8_t *data, size_t size, struct wss_recording *ret_recording,
			  uint32_t *ret_crc, struct wss_error *err);

/* seed: the header's checksum. */
void wss_rec_encode_frame(const struct wss_frame *frame, uint32_t seed, uint8_t *ret_data);

/* false: these are no frame's head. */
bool wss_rec_decode_frame(const uint8_t *data, uint32_t seed, struct wss_frame *ret_frame);

void wss_rec_encode_interval(struct wss_buffer *buffer, const struct wss_interval *interval);
void wss_rec_decode_interval(struct wss_cursor *cursor, struct wss_interval *ret_interval);

#endif
