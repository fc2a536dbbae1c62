/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-qmp.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096UL
#define TOUCH_PAUSE_NS 20000000L

char *fake_default_greeting(const struct fake_guest *guest)
{
	char *text;

	if (asprintf(&text,
		     "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": %u, \"minor\": %u, "
		     "\"major\": %u}, "
		     "\"package\": \"fake\"}, \"capabilities\": [\"oob\"]}}",
		     guest->version[2], guest->version[1], guest->version[0]) < 0)
		fake_die("out of memory");
	return text;
}

/*
 * The object that protects the guest: the value of "memory-encryption" or
 * "confidential-guest-support" in the text, "" without one.
 */
static bool find_protection(const char *text, char ret_id[64])
{
	static const char *const names[] = {"memory-encryption", "confidential-guest-support"};

	for (size_t i = 0; i < 2; i++) {
		const char *at = strstr(text, names[i]);

		at = at ? at + strlen(names[i]) : "";
		if (sscanf(at + strspn(at, " =:\""), "%63[^\", \n]", ret_id) == 1)
			return true;
	}
	ret_id[0] = '\0';
	return false;
}

/* As QEMU 6.0 and newer answer: a path, "" if nothing protects the guest. */
static int print_protection(char **ret_text, const struct fake_guest *guest)
{
	char id[64] = "", file[4096];

	for (char *const *arg = guest->arguments; arg && *arg && !id[0]; arg++) {
		FILE *f = arg[1] && !strcmp(*arg, "-readconfig") ? fopen(arg[1], "re") : NULL;

		if (f) {
			file[fread(file, 1, sizeof(file) - 1, f)] = '\0';
			fclose(f);
		}
		find_protection(f ? file : *arg, id);
	}
	return asprintf(ret_text, "\"return\": \"%s%s\"", id[0] ? "/objects/" : "", id);
}

static int print_reply(char **ret_text, const struct fake_guest *guest, const char *command)
{
	uint64_t ram_bytes = guest->ram_mib << 20;

	if (!strcmp(command, "qmp_capabilities"))
		return asprintf(ret_text, "\"return\": {}");
	if (!strcmp(command, "query-status"))
		return asprintf(ret_text,
				"\"return\": {\"status\": \"%s\", \"singlestep\": false, "
				"\"running\": %s}",
				guest->status, strcmp(guest->status, "running") ? "false" : "true");
	if (!strcmp(command, "query-kvm"))
		return asprintf(ret_text, "\"return\": {\"enabled\": %s, \"present\": true}",
				guest->kvm ? "true" : "false");
	if (!strcmp(command, "query-uuid"))
		return asprintf(ret_text, "\"return\": {\"UUID\": \"%s\"}", guest->uuid);
	if (!strcmp(command, "query-name"))
		return asprintf(ret_text, "\"return\": {\"name\": \"%s\"}", guest->name);
	if (!strcmp(command, "query-memory-size-summary"))
		return asprintf(ret_text,
				"\"return\": {\"base-memory\": %" PRIu64 ", \"plugged-memory\": 0}",
				ram_bytes);
	if (!strcmp(command, "query-memdev"))
		return asprintf(ret_text,
				"\"return\": [{\"id\": \"pc.ram\", \"size\": %" PRIu64
				", \"share\": %s}]",
				ram_bytes, guest->anonymous ? "false" : "true");
	if (!strcmp(command, "query-memory-devices") || !strcmp(command, "query-stats"))
		return asprintf(ret_text, "\"return\": []");
	if (!strcmp(command, "qom-get confidential-guest-support"))
		return print_protection(ret_text, guest);
	if (!strncmp(command, "qom-get ", 8))
		return asprintf(ret_text,
				"\"error\": {\"class\": \"GenericError\", "
				"\"desc\": \"Property 'pc-machine.%s' not found\"}",
				command + 8);
	if (!strcmp(command, "qom-list"))
		return asprintf(ret_text, "\"return\": []");
	if (!strcmp(command, "query-migrate"))
		return asprintf(ret_text, "\"return\": {}");
	if (!strcmp(command, "query-balloon"))
		return guest->has_balloon
			       ? asprintf(ret_text, "\"return\": {\"actual\": %" PRIu64 "}",
					  guest->balloon_bytes)
			       : asprintf(ret_text, "\"error\": {\"class\": \"DeviceNotActive\", "
						    "\"desc\": \"No balloon device has been "
						    "activated\"}");
	return asprintf(ret_text,
			"\"error\": {\"class\": \"CommandNotFound\", "
			"\"desc\": \"The command %s has not been found\"}",
			command);
}

char *fake_default_reply(const struct fake_guest *guest, const char *command)
{
	char *text;

	if (print_reply(&text, guest, command) < 0)
		fake_die("out of memory");
	return text;
}

struct ram {
	volatile unsigned char *front;
	size_t touch_bytes;
};

static void *touch_loop(void *opaque)
{
	const struct timespec pause = {.tv_nsec = TOUCH_PAUSE_NS};
	struct ram *ram = opaque;

	for (;;) {
		for (size_t at = 0; at < ram->touch_bytes; at += PAGE_BYTES)
			ram->front[at]++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/*
 * Maps memory the way QEMU maps guest RAM (util/mmap-alloc.c and softmmu/physmem.c of 7.2),
 * which distinguishes it from other mappings in /proc: a reserved range whose last page stays
 * inaccessible, RAM over the rest of it, and MADV_DONTFORK. The name is also QEMU's.
 */
static void *map_ram(size_t bytes, bool anonymous)
{
	int flags = anonymous ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *reserved;
	int fd = -1;

	reserved = mmap((void *)FAKE_RAM_ADDRESS, bytes + PAGE_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return NULL;
	if (!anonymous) {
		fd = memfd_create("memory-backend-memfd", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
			return NULL;
	}
	if (mmap(reserved, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    madvise(reserved, bytes, MADV_DONTFORK) < 0)
		return NULL;
	return reserved;
}

void fake_ram_start(const struct fake_guest *guest)
{
	static struct ram ram;
	size_t bytes = guest->ram_mib << 20;
	void *map = map_ram(bytes, guest->anonymous);
	pthread_t thread;

	if (!map)
		fake_die("cannot map %" PRIu64 " MiB", guest->ram_mib);
	memset(map, 1, bytes);
	ram = (struct ram){.front = map, .touch_bytes = guest->touch_mib << 20};
	if (pthread_create(&thread, NULL, touch_loop, &ram))
		fake_die("no thread");
}
