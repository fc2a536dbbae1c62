/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the process of a VM claims to be. Parts: @program, the name of its executable; @cmdline (an argument a line), @cgroup
 * and @mountinfo of the process, which has a pid namespace of its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz.h"
#include "host/namers.h"

#define POD "var/log/pods/dev_virt-launcher-db-x7k2p_11111111-2222-4333-8444-555555555555/x"

static void put_part(const uint8_t *data, size_t size, const char *name, char separator)
{
	size_t length;
	const uint8_t *part = fuzz_part(data, size, name, &length);
	wss_auto_free char *text = part ? fuzz_text(part, length) : NULL;
	char path[64];

	/* Arguments end with a NUL in /proc. */
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\n')
			text[i] = separator;
	snprintf(path, sizeof(path), "proc/4242/%s", name);
	fuzz_file(path, text, length);
}

static void put_namespace(const char *pid, const char *kind, const char *target)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%s/ns/made", pid);
	fuzz_file(path, "", 0);
	snprintf(path, sizeof(path), "proc/%s/ns/%s", pid, kind);
	if (faccessat(fuzz_dirfd(), path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		fuzz_require(symlinkat(target, fuzz_dirfd(), path) == 0);
}

/* Nothing that reaches a terminal may move its cursor. */
static void check_shown(const char *text, size_t size)
{
	fuzz_require(memchr(text, '\0', size));
	for (int n; *text; text += n) {
		n = wss_text_shown(text);
		fuzz_require(n > 0);
	}
}

static void check_claims(const struct wss_vm *vm)
{
	check_shown(vm->name, sizeof(vm->name));
	check_shown(vm->why, sizeof(vm->why));
	fuzz_require(memchr(vm->monitor, '\0', sizeof(vm->monitor)));
	fuzz_require(memchr(vm->manager, '\0', sizeof(vm->manager)));
	fuzz_require(strlen(vm->uuid) == (vm->name[0] ? WSS_UUID_TEXT_MAX - 1 : 0));
	fuzz_require(vm->claims == !vm->why[0] || !strcmp(vm->manager, "unknown"));
	/* The process is of another pid namespace, so that only a manager can vouch for it. */
	fuzz_require(vm->claims == (strcmp(vm->manager, "unknown") != 0));
	fuzz_require(!vm->claims || (vm->name[0] && vm->manager[0]));
	fuzz_require(!vm->monitor[0] || !strcmp(vm->manager, "libvirt") ||
		     !strcmp(vm->manager, "proxmox") || !strcmp(vm->manager, "jailer"));
}

static void namers_run(const uint8_t *data, size_t size)
{
	struct wss_root root = {.dirfd = fuzz_dirfd()};
	wss_cleanup(wss_root_close) struct wss_root proc = {.dirfd = -1};
	struct wss_vm vm = {.pid = 4242, .user = (uid_t)size % 2000};
	size_t length;
	const uint8_t *program = fuzz_part(data, size, "program", &length);

	for (size_t i = 0; program && i < length && i < sizeof(vm.program) - 1 && program[i] > ' ';
	     i++)
		vm.program[i] = (char)program[i];
	wss_text_sanitize(vm.program);
	put_part(data, size, "cmdline", '\0');
	put_part(data, size, "cgroup", '\n');
	put_part(data, size, "mountinfo", '\n');
	put_namespace("self", "pid", "pid:[1]");
	put_namespace("4242", "pid", "pid:[2]");
	put_namespace("self", "user", "user:[1]");
	put_namespace("4242", "user", "user:[1]");
	fuzz_file(POD, "", 0);
	proc.dirfd = wss_root_openat(&root, "proc/4242", O_PATH | O_DIRECTORY);
	fuzz_require(proc.dirfd >= 0);
	wss_namers_read(&root, &proc, &vm);
	check_claims(&vm);
}

const struct fuzz_target fuzz_target = {
	.name = "namers",
	.run = namers_run,
	.max_bytes = 4096,
	.mutations = 20000,
};
