/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-qmp.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verbs[] = {
	"default", "return", "error", "event", "events", "flood", "raw", "line",
	"huge",	   "deep",   "delay", "split", "hang",	 "close", "end", "owe",
};

static void *grow(void *array, size_t count, size_t entry_bytes)
{
	void *larger = realloc(array, (count + 1) * entry_bytes);

	if (!larger)
		fake_die("out of memory");
	memset((char *)larger + count * entry_bytes, 0, entry_bytes);
	return larger;
}

static char *copy_text(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		fake_die("out of memory");
	return copy;
}

/* Ends text after its first word and returns the rest without leading blanks. */
static char *split_word(char *text)
{
	char *end = text + strcspn(text, " \t");

	if (!*end)
		return end;
	*end++ = '\0';
	return end + strspn(end, " \t");
}

static bool set_guest(struct fake_guest *guest, const char *key, const char *value)
{
	if (!strcmp(key, "uuid"))
		snprintf(guest->uuid, sizeof(guest->uuid), "%s", value);
	else if (!strcmp(key, "name"))
		snprintf(guest->name, sizeof(guest->name), "%s", value);
	else if (!strcmp(key, "status"))
		snprintf(guest->status, sizeof(guest->status), "%s", value);
	else if (!strcmp(key, "kvm"))
		guest->kvm = !strcmp(value, "on");
	else if (!strcmp(key, "balloon"))
		guest->has_balloon = sscanf(value, "%" SCNu64, &guest->balloon_bytes) == 1;
	else if (!strcmp(key, "version"))
		return sscanf(value, "%u.%u.%u", &guest->version[0], &guest->version[1],
			      &guest->version[2]) == 3;
	else
		return false;
	return true;
}

static bool set_ram(struct fake_guest *guest, const char *args)
{
	char kind[16] = "memfd";
	int fields = sscanf(args, "%" SCNu64 " %" SCNu64 " %15s", &guest->ram_mib,
			    &guest->touch_mib, kind);

	guest->anonymous = !strcmp(kind, "anonymous");
	return fields >= 2 && guest->touch_mib <= guest->ram_mib &&
	       (guest->anonymous || !strcmp(kind, "memfd"));
}

static void add_section(struct fake_script *script, const char *command)
{
	struct fake_section *section;

	script->sections = grow(script->sections, script->count, sizeof(*script->sections));
	section = &script->sections[script->count++];
	snprintf(section->command, sizeof(section->command), "%s", command);
}

static bool add_action(struct fake_script *script, const char *verb, const char *args)
{
	struct fake_section *section;
	bool known = false;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		known |= !strcmp(verb, verbs[i]);
	if (!known || !script->count)
		return false;
	section = &script->sections[script->count - 1];
	section->actions = grow(section->actions, section->count, sizeof(*section->actions));
	section->actions[section->count].verb = copy_text(verb);
	section->actions[section->count++].args = copy_text(args);
	return true;
}

static bool take_line(struct fake_script *script, char *line)
{
	char *args, *value;

	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	args = split_word(line);
	if (!strcmp(line, "connect") && !*args) {
		add_section(script, "");
		return true;
	}
	if (!strcmp(line, "on") && *args && strlen(args) < FAKE_COMMAND_MAX) {
		add_section(script, args);
		return true;
	}
	if (!strcmp(line, "fork") && !*args) {
		script->fork = true;
		return true;
	}
	if (!strcmp(line, "ram"))
		return set_ram(&script->guest, args);
	if (!strcmp(line, "set")) {
		value = split_word(args);
		return set_guest(&script->guest, args, value);
	}
	return add_action(script, line, args);
}

void fake_script_load(const char *path, struct fake_script *ret_script)
{
	static const struct fake_guest guest = {
		.uuid = "12345678-1234-1234-1234-123456789abc",
		.name = "fake",
		.status = "running",
		.version = {7, 2, 22},
	};
	FILE *f = fopen(path, "re");
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;

	*ret_script = (struct fake_script){.guest = guest};
	if (!f)
		fake_die("cannot read %s", path);
	while (getline(&line, &size, f) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!take_line(ret_script, line))
			fake_die("%s:%u: not understood: %s", path, number, line);
	}
	free(line);
	fclose(f);
}

static struct fake_section *find_named(struct fake_script *script, const char *name)
{
	struct fake_section *last = NULL;

	for (size_t i = 0; i < script->count; i++) {
		struct fake_section *section = &script->sections[i];

		if (strcmp(section->command, name))
			continue;
		last = section;
		if (!section->used)
			break;
	}
	if (last)
		last->used = true;
	return last;
}

struct fake_section *fake_script_find(struct fake_script *script, const char *command)
{
	struct fake_section *section = find_named(script, command);

	/* Tests of "*" rely on the negotiation and the greeting. */
	if (section || !*command || !strcmp(command, "qmp_capabilities"))
		return section;
	return find_named(script, "*");
}
