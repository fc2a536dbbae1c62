/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jsonline.h"
#include "query.h"

/*
 * The table of x-query-ramblock as QEMU's ram_block_format() prints it: right-aligned columns
 * "Block Name", "PSize" (such as "4 KiB"), then "Offset", "Used", "Total" as 0x…, and in newer
 * versions "HVA" (0x…) and "RO". A name may contain blanks, so a line is split at its first
 * 0x.
 */
static const char *const heading[] = {"Block Name", "PSize", "Offset", "Used", "Total"};

static bool heading_known(const char *line)
{
	const char *end = strchr(line, '\n');

	for (size_t i = 0; i < sizeof(heading) / sizeof(*heading); i++) {
		line = strstr(line, heading[i]);
		if (!line || (end && line > end))
			return false;
		line += strlen(heading[i]);
	}
	return true;
}

/* Cuts the last blank-separated word off text, in place; returns NULL if there is none. */
static char *cut_last_word(char *text)
{
	size_t len = strlen(text);
	char *blank;

	while (len && text[len - 1] == ' ')
		text[--len] = '\0';
	blank = strrchr(text, ' ');
	if (!blank)
		return NULL;
	*blank = '\0';
	return blank + 1;
}

static bool parse_page_size(const char *number, const char *unit, uint64_t *ret_bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(number, &end, 10);
	if (errno || end == number || *end || !value || value > 1023)
		return false;
	for (unsigned int i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(unit, units[i]))
			continue;
		*ret_bytes = (uint64_t)value << (10 * i);
		return true;
	}
	return false;
}

/* Parses the next 0x number at *text and moves *text behind it. */
static bool parse_hex(char **text, uint64_t *ret_value)
{
	char *end;

	*text += strspn(*text, " ");
	if (strncmp(*text, "0x", 2))
		return false;
	errno = 0;
	*ret_value = strtoull(*text, &end, 16);
	if (errno || end == *text || (*end && *end != ' '))
		return false;
	*text = end;
	return true;
}

static bool parse_line(char *line, struct qmp_ramblock *block)
{
	char *numbers = strstr(line, " 0x");
	char *number, *unit;
	uint64_t offset;

	if (!numbers)
		return false;
	*numbers++ = '\0';
	unit = cut_last_word(line);
	number = unit ? cut_last_word(line) : NULL;
	if (!number || !parse_page_size(number, unit, &block->page_bytes))
		return false;
	line += strspn(line, " ");
	while (*line && line[strlen(line) - 1] == ' ')
		line[strlen(line) - 1] = '\0';
	if (!*line || strlen(line) >= sizeof(block->name))
		return false;
	strcpy(block->name, line);
	if (!parse_hex(&numbers, &offset) || !parse_hex(&numbers, &block->used_bytes) ||
	    !parse_hex(&numbers, &block->total_bytes))
		return false;
	if (!parse_hex(&numbers, &block->host_address))
		block->host_address = 0;
	return true;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* Fills list, which has room for max entries, from the table; modifies the text. */
static int parse_table(char *text, struct qmp_ramblock *list, size_t max, size_t *ret_count,
		       struct wss_error *err)
{
	size_t count = 0;
	char *state = NULL;
	char *line = strtok_r(text, "\n", &state);

	while (line && (line = strtok_r(NULL, "\n", &state))) {
		if (count == max || !parse_line(line, &list[count]))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "QMP x-query-ramblock: cannot parse line %zu",
					     count + 2);
		count++;
	}
	*ret_count = count;
	return 0;
}

int qmp_query_ramblock(struct qmp *qmp, unsigned int timeout_ms,
		       struct qmp_ramblock **ret_list, size_t *ret_count,
		       struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	wss_auto_free struct qmp_ramblock *list = NULL;
	wss_auto_free char *copy = NULL;
	const char *text = NULL;
	size_t lines, count = 0;

	if (qmp_execute(qmp, "x-query-ramblock", NULL, timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_get_string(reply, "human-readable-text", &text, err) < 0)
		return wss_error_prefix(err, "QMP x-query-ramblock");
	if (!heading_known(text))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "QMP x-query-ramblock: unknown table heading");
	lines = count_lines(text);
	if (lines > QMP_LIST_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QMP x-query-ramblock: %zu lines, limit %d", lines,
				     QMP_LIST_MAX);
	copy = strdup(text);
	list = calloc(lines + 1, sizeof(*list));
	if (!copy || !list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (parse_table(copy, list, lines + 1, &count, err) < 0)
		return -1;
	*ret_list = count ? wss_steal_ptr(list) : NULL;
	*ret_count = count;
	return 0;
}
