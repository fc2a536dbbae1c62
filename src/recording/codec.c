/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/codec.h"

#include <endian.h>
#include <string.h>

#define FRAME_MARKER 0x46535357U /* "WSSF" */

/* Flags of an interval. */
enum { INTERVAL_GAP = 1, INTERVAL_DEGRADED = 2 };

/* Tables for one byte, and for a byte that is k bytes further on; reflected 0x1edc6f41. */
static const uint32_t (*crc_tables(void))[256]
{
	static uint32_t tables[8][256];
	static bool ready;

	if (ready)
		return tables;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
		tables[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
	ready = true;
	return tables;
}

uint32_t wss_crc32c(uint32_t seed, const void *data, size_t size)
{
	const uint32_t(*t)[256] = crc_tables();
	const uint8_t *p = data;
	uint32_t crc = ~seed;

	for (; size >= 8; size -= 8, p += 8) {
		uint32_t low, high;

		memcpy(&low, p, 4);
		memcpy(&high, p + 4, 4);
		low = le32toh(low) ^ crc;
		high = le32toh(high);
		crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^
		      t[4][low >> 24] ^ t[3][high & 255] ^ t[2][high >> 8 & 255] ^
		      t[1][high >> 16 & 255] ^ t[0][high >> 24];
	}
	while (size--)
		crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
	return ~crc;
}

void wss_buffer_number(struct wss_buffer *buffer, uint64_t number)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (uint8_t)((number & 127) | (number > 127 ? 128 : 0));
		number >>= 7;
	} while (number);
	if (buffer->full || buffer->size - buffer->length < n) {
		buffer->full = true;
		return;
	}
	memcpy(buffer->data + buffer->length, bytes, n);
	buffer->length += n;
}

void wss_buffer_text(struct wss_buffer *buffer, const char *text)
{
	size_t n = strlen(text);

	wss_buffer_number(buffer, n);
	if (buffer->full || buffer->size - buffer->length < n) {
		buffer->full = true;
		return;
	}
	memcpy(buffer->data + buffer->length, text, n);
	buffer->length += n;
}

uint64_t wss_cursor_long_number(struct wss_cursor *cursor, uint64_t max)
{
	uint64_t number = 0;

	for (unsigned shift = 0; !cursor->bad && cursor->data < cursor->end && shift < 64;
	     shift += 7) {
		uint64_t byte = *cursor->data++;

		/* The tenth byte has room for one bit. */
		if (shift == 63 && byte > 1)
			break;
		number |= (byte & 127) << shift;
		if (byte < 128) {
			if (number > max)
				break;
			return number;
		}
	}
	cursor->bad = true;
	return 0;
}

void wss_cursor_text(struct wss_cursor *cursor, char *ret_text, size_t size)
{
	uint64_t n = wss_cursor_number(cursor, size - 1);

	ret_text[0] = '\0';
	if (cursor->bad || n > (uint64_t)(cursor->end - cursor->data)) {
		cursor->bad = true;
		return;
	}
	memcpy(ret_text, cursor->data, n);
	ret_text[n] = '\0';
	cursor->data += n;
	wss_text_sanitize(ret_text);
}

static void put_le32(uint8_t *data, uint32_t value)
{
	value = htole32(value);
	memcpy(data, &value, sizeof(value));
}

static uint32_t get_le32(const uint8_t *data)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return le32toh(value);
}

static void encode_fields(struct wss_buffer *buffer, const struct wss_recording *recording)
{
	wss_buffer_text(buffer, recording->tool);
	wss_buffer_text(buffer, recording->domain);
	wss_buffer_text(buffer, recording->uuid);
	wss_buffer_text(buffer, recording->method);
	wss_buffer_text(buffer, recording->boot_id);
	wss_buffer_number(buffer, recording->granularity_bytes);
	wss_buffer_number(buffer, recording->interval_ns);
	wss_buffer_number(buffer, recording->window_ns);
	wss_buffer_number(buffer, (uint64_t)recording->start_realtime_ns);
	wss_buffer_number(buffer, recording->start_boottime_ns);
	wss_buffer_number(buffer, recording->n_regions);
	for (size_t i = 0; i < recording->n_regions; i++) {
		const struct wss_region *region = &recording->regions[i];

		wss_buffer_number(buffer, region->start);
		wss_buffer_number(buffer, region->length);
		wss_buffer_number(buffer, (uint64_t)region->kind);
		wss_buffer_number(buffer, (uint64_t)(region->node + 1));
		wss_buffer_text(buffer, region->name);
	}
}

size_t wss_rec_encode_header(const struct wss_recording *recording, uint8_t *data, size_t size,
			     uint32_t *ret_crc)
{
	struct wss_buffer buffer = {.data = data, .length = WSS_REC_PREAMBLE_BYTES, .size = size};
	size_t length;

	if (size < WSS_REC_PREAMBLE_BYTES + 4)
		return 0;
	buffer.size = size - 4;
	encode_fields(&buffer, recording);
	length = buffer.length - WSS_REC_PREAMBLE_BYTES;
	if (buffer.full || length > WSS_REC_HEADER_MAX)
		return 0;
	memcpy(data, WSS_REC_MAGIC, 8);
	put_le32(data + 8, WSS_REC_VERSION | (uint32_t)(uint16_t)~WSS_REC_VERSION << 16);
	put_le32(data + 12, (uint32_t)length);
	*ret_crc = wss_crc32c(0, data, buffer.length);
	put_le32(data + buffer.length, *ret_crc);
	return buffer.length + 4;
}

int wss_rec_header_size(const uint8_t *preamble, size_t *ret_size, struct wss_error *err)
{
	uint32_t version = get_le32(preamble + 8), length = get_le32(preamble + 12);

	if (memcmp(preamble, WSS_REC_MAGIC, 8) != 0)
		return wss_error_set(err, WSS_ERR_FAILED, "not a recording of virt-wss");
	/*
	 * The version is stored twice, once inverted, so that damage is not mistaken for a
	 * newer version.
	 */
	if ((version & 0xffff) != (~version >> 16))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "damaged: the checksum of its header is wrong");
	version &= 0xffff;
	if (version > WSS_REC_VERSION)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "made by a newer virt-wss: format %u, this one reads %d",
				     version, WSS_REC_VERSION);
	if (version != WSS_REC_VERSION || length > WSS_REC_HEADER_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "damaged: the checksum of its header is wrong");
	*ret_size = WSS_REC_PREAMBLE_BYTES + (size_t)length + 4;
	return 0;
}

static void decode_fields(struct wss_cursor *cursor, struct wss_recording *recording)
{
	wss_cursor_text(cursor, recording->tool, sizeof(recording->tool));
	wss_cursor_text(cursor, recording->domain, sizeof(recording->domain));
	wss_cursor_text(cursor, recording->uuid, sizeof(recording->uuid));
	wss_cursor_text(cursor, recording->method, sizeof(recording->method));
	wss_cursor_text(cursor, recording->boot_id, sizeof(recording->boot_id));
	recording->granularity_bytes = wss_cursor_number(cursor, 1ULL << 52);
	recording->interval_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
	recording->window_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
	recording->start_realtime_ns = (int64_t)wss_cursor_number(cursor, INT64_MAX);
	recording->start_boottime_ns = wss_cursor_number(cursor, INT64_MAX);
	recording->n_regions = (size_t)wss_cursor_number(cursor, WSS_REGIONS_MAX);
	for (size_t i = 0; i < recording->n_regions && !cursor->bad; i++) {
		struct wss_region *region = &recording->regions[i];

		region->start = wss_cursor_number(cursor, 1ULL << 52);
		region->length = wss_cursor_number(cursor, 1ULL << 52);
		region->kind =
			(enum wss_region_kind)wss_cursor_number(cursor, WSS_REGION_KINDS - 1);
		region->node = (int)wss_cursor_number(cursor, 1 << 16) - 1;
		wss_cursor_text(cursor, region->name, sizeof(region->name));
	}
}

int wss_rec_decode_header(const uint8_t *data, size_t size, struct wss_recording *ret_recording,
			  uint32_t *ret_crc, struct wss_error *err)
{
	struct wss_cursor cursor = {.data = data + WSS_REC_PREAMBLE_BYTES, .end = data + size - 4};
	uint32_t crc = wss_crc32c(0, data, size - 4);

	if (crc != get_le32(data + size - 4))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "damaged: the checksum of its header is wrong");
	memset(ret_recording, 0, sizeof(*ret_recording));
	decode_fields(&cursor, ret_recording);
	if (cursor.bad || cursor.data != cursor.end || !wss_recording_map_valid(ret_recording))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "invalid header: not written by virt-wss");
	*ret_crc = crc;
	return 0;
}

void wss_rec_encode_frame(const struct wss_frame *frame, uint32_t seed, uint8_t *ret_data)
{
	put_le32(ret_data, FRAME_MARKER);
	put_le32(ret_data + 4, frame->type | (uint32_t)frame->flags << 8);
	put_le32(ret_data + 8, frame->length);
	put_le32(ret_data + 12, frame->sequence);
	put_le32(ret_data + 16, frame->payload_crc);
	put_le32(ret_data + 20, wss_crc32c(seed, ret_data, WSS_REC_FRAME_BYTES - 4));
}

bool wss_rec_decode_frame(const uint8_t *data, uint32_t seed, struct wss_frame *ret_frame)
{
	uint32_t kind = get_le32(data + 4);

	if (get_le32(data) != FRAME_MARKER ||
	    get_le32(data + 20) != wss_crc32c(seed, data, WSS_REC_FRAME_BYTES - 4) || kind >> 16 ||
	    get_le32(data + 8) > WSS_REC_PAYLOAD_MAX)
		return false;
	*ret_frame = (struct wss_frame){
		.type = (uint8_t)(kind & 255),
		.flags = (uint8_t)(kind >> 8),
		.length = get_le32(data + 8),
		.sequence = get_le32(data + 12),
		.payload_crc = get_le32(data + 16),
	};
	return true;
}

void wss_rec_encode_interval(struct wss_buffer *buffer, const struct wss_interval *interval)
{
	wss_buffer_number(buffer, (interval->gap ? INTERVAL_GAP : 0) |
					  (interval->degraded ? INTERVAL_DEGRADED : 0));
	wss_buffer_number(buffer, (uint64_t)interval->written);
	wss_buffer_number(buffer, interval->start_ns);
	wss_buffer_number(buffer, interval->end_ns - interval->start_ns);
	wss_buffer_number(buffer, interval->granularity_bytes);
	wss_buffer_number(buffer, interval->balloon_bytes);
	wss_buffer_text(buffer, interval->note);
}

void wss_rec_decode_interval(struct wss_cursor *cursor, struct wss_interval *ret_interval)
{
	uint64_t flags = wss_cursor_number(cursor, INTERVAL_GAP | INTERVAL_DEGRADED);

	*ret_interval = (struct wss_interval){
		.gap = flags & INTERVAL_GAP,
		.degraded = flags & INTERVAL_DEGRADED,
		.written = (enum wss_written)wss_cursor_number(cursor, WSS_WRITTEN_KINDS - 1),
	};
	ret_interval->start_ns = wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
	ret_interval->end_ns =
		ret_interval->start_ns + wss_cursor_number(cursor, WSS_REC_TIME_MAX_NS);
	ret_interval->granularity_bytes = wss_cursor_number(cursor, 1ULL << 52);
	ret_interval->balloon_bytes = wss_cursor_number(cursor, 1ULL << 62);
	wss_cursor_text(cursor, ret_interval->note, sizeof(ret_interval->note));
}
