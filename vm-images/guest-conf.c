/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

struct conf conf = {.map_pages = 64 * MIB_PAGES,
		    .touch_pages = UINT64_MAX,
		    .balloon = true,
		    .way = {.mode = MODE_RMW, .stride = 1},
		    .threads = 1,
		    .interval = 1};

static uint64_t number(const char *key, const char *text, char **ret_end)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno || value > UINT32_MAX || (!ret_end && *end))
		fail("bad value for %s: %s", key, text);
	if (ret_end)
		*ret_end = end;
	return value;
}

static enum mode parse_mode(const char *key, const char *text)
{
	if (!strcmp(text, "read"))
		return MODE_READ;
	if (!strcmp(text, "write"))
		return MODE_WRITE;
	if (!strcmp(text, "rmw"))
		return MODE_RMW;
	fail("bad value for %s: %s", key, text);
}

static void parse_order(const char *key, const char *text, struct way *ret_way)
{
	ret_way->stride = 1;
	if (!strcmp(text, "seq")) {
		ret_way->order = ORDER_SEQ;
	} else if (!strcmp(text, "random")) {
		ret_way->order = ORDER_RANDOM;
	} else if (!strncmp(text, "stride:", 7)) {
		ret_way->order = ORDER_STRIDE;
		ret_way->stride = number(key, text + 7, NULL);
		if (!ret_way->stride)
			fail("a stride of 0");
	} else {
		fail("bad value for %s: %s", key, text);
	}
}

/* If the phase has its own stride, MiB is the memory over which the set is spread. */
struct phase parse_phase(const char *key, char *text)
{
	struct phase phase = {.way = conf.way};
	char *order = NULL;

	phase.pages = number(key, text, &text) * MIB_PAGES;
	if (*text++ != ':')
		fail("%s wants MiB:seconds", key);
	phase.seconds = number(key, text, &text);
	if (*text == ':') {
		order = strchr(++text, ':');
		if (order)
			*order++ = '\0';
		phase.way.mode = parse_mode(key, text);
	} else if (*text) {
		fail("%s wants MiB:seconds", key);
	}
	if (order) {
		parse_order(key, order, &phase.way);
		phase.pages /= phase.way.stride;
	}
	if (phase.pages > conf.map_pages / phase.way.stride)
		fail("%s touches more than the %llu pages there are", key,
		     (unsigned long long)(conf.map_pages / phase.way.stride));
	return phase;
}

static void parse_phases(const char *key, const char *text)
{
	char copy[1024], *save, *word;

	if (strlen(text) >= sizeof(copy))
		fail("%s is too long", key);
	strcpy(copy, text);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (conf.nr_phases == MAX_PHASES)
			fail("more than %d phases", MAX_PHASES);
		conf.phases[conf.nr_phases++] = parse_phase(key, word);
	}
}

static void parse_file(const char *key, const char *text)
{
	conf.file_on_disk = !strncmp(text, "disk:", 5);
	if (!conf.file_on_disk && strncmp(text, "mem:", 4) != 0)
		fail("bad value for %s: %s", key, text);
	conf.file_pages = number(key, strchr(text, ':') + 1, NULL) * MIB_PAGES;
}

static void parse_key(const char *key, char *value)
{
	if (!strcmp(key, "wss.map"))
		conf.map_pages = number(key, value, NULL) * MIB_PAGES;
	else if (!strcmp(key, "wss.touch"))
		conf.touch_pages = number(key, value, NULL) * MIB_PAGES;
	else if (!strcmp(key, "wss.mode"))
		conf.way.mode = parse_mode(key, value);
	else if (!strcmp(key, "wss.order"))
		parse_order(key, value, &conf.way);
	else if (!strcmp(key, "wss.rate"))
		conf.rate = number(key, value, NULL);
	else if (!strcmp(key, "wss.phases"))
		conf.phases_text = value;
	else if (!strcmp(key, "wss.control"))
		snprintf(conf.control, sizeof(conf.control), "%s", value);
	else if (!strcmp(key, "wss.threads"))
		conf.threads = number(key, value, NULL);
	else if (!strcmp(key, "wss.idle"))
		conf.idle = number(key, value, NULL);
	else if (!strcmp(key, "wss.file"))
		parse_file(key, value);
	else if (!strcmp(key, "wss.draw"))
		conf.draw = number(key, value, NULL);
	else if (!strcmp(key, "wss.cold"))
		conf.cold_pages = number(key, value, NULL) * MIB_PAGES;
	else if (!strcmp(key, "wss.lazy"))
		conf.lazy = number(key, value, NULL);
	else if (!strcmp(key, "wss.balloon"))
		conf.balloon = number(key, value, NULL);
	else if (!strcmp(key, "wss.interval"))
		conf.interval = number(key, value, NULL);
	else if (!strcmp(key, "wss.gap"))
		conf.gap = number(key, value, NULL);
	else
		fail("unknown key %s", key);
}

static void check_conf(void)
{
	uint64_t most = conf.map_pages / conf.way.stride;
	struct sysinfo info;

	if (conf.touch_pages == UINT64_MAX)
		conf.touch_pages = most;
	if (conf.touch_pages > most)
		fail("wss.touch is more than the %llu pages there are", (unsigned long long)most);
	if (conf.phases_text)
		parse_phases("wss.phases", conf.phases_text);
	if (!conf.nr_phases)
		conf.phases[conf.nr_phases++] = (struct phase){conf.touch_pages, 0, conf.way};
	if (!conf.threads || conf.threads > MAX_THREADS || !conf.interval)
		fail("wss.threads must be 1 to %d, and wss.interval at least 1", MAX_THREADS);
	if (conf.draw && !conf.file_pages)
		fail("wss.draw requires wss.file");
	sysinfo(&info);
	if ((conf.map_pages + conf.file_pages) * PAGE > info.freeram * info.mem_unit / 10 * 9)
		fail("%llu MiB do not fit into the free memory",
		     (unsigned long long)((conf.map_pages + conf.file_pages) / MIB_PAGES));
}

void read_cmdline(void)
{
	static char text[4096]; /* phases_text points into it */
	char *save, *word;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		fail("cannot read /proc/cmdline");
	close(fd);
	text[n] = '\0';
	for (word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(word, '=');

		if (strncmp(word, "wss.", 4) != 0)
			continue;
		if (!value)
			fail("%s has no value", word);
		*value++ = '\0';
		parse_key(word, value);
	}
	check_conf();
}
