/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finding a guest's QEMU process by libvirt's files and the processes' own files. Parts: @pid
 * and @xml, libvirt's NAME.pid and NAME.xml; @cmdline (an argument a line), @stat, @status,
 * @comm and @thread, the stat of a thread, of process 4242; the same with a 2 behind it, of
 * process 4243.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/process-find.h"
#include "host/procfile.h"

#define UUID "6c8f7a52-9d3e-4c1b-a0f4-5b2e8d7c6a10"

static void put_part(const uint8_t *data, size_t size, const char *name, const char *path)
{
	size_t len;
	const uint8_t *part = fuzz_part(data, size, name, &len);

	fuzz_file(path, part, len);
}

/* Arguments end with a NUL in /proc. */
static void put_arguments(const uint8_t *data, size_t size, const char *name, const char *path)
{
	size_t len;
	const uint8_t *part = fuzz_part(data, size, name, &len);
	wss_auto_free char *text = part ? fuzz_text(part, len) : NULL;

	for (size_t i = 0; i < len; i++)
		if (text[i] == '\n')
			text[i] = '\0';
	fuzz_file(path, text, len);
}

static void put_process(const uint8_t *data, size_t size, const char *pid, const char *suffix)
{
	static const char *const files[] = {"stat", "status", "comm"};
	char name[32], path[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", files[i], suffix);
		snprintf(path, sizeof(path), "proc/%s/%s", pid, files[i]);
		put_part(data, size, name, path);
	}
	snprintf(name, sizeof(name), "thread%s", suffix);
	snprintf(path, sizeof(path), "proc/%s/task/%s/stat", pid, pid);
	put_part(data, size, name, path);
	snprintf(name, sizeof(name), "cmdline%s", suffix);
	snprintf(path, sizeof(path), "proc/%s/cmdline", pid);
	put_arguments(data, size, name, path);
	snprintf(path, sizeof(path), "proc/%s/exe", pid);
	if (symlinkat("/usr/bin/qemu-system-x86_64", fuzz_dirfd(), path) == 0)
		return;
}

/* A held process claims to be this guest. */
static void check_held(struct wss_process *process)
{
	wss_auto_free char *cmdline = NULL;
	char found[WSS_UUID_TEXT_MAX];
	char state;
	size_t len;

	fuzz_require(process->pid == 4242 || process->pid == 4243);
	fuzz_require(wss_root_read(&process->proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len) ==
		     0);
	fuzz_require(wss_procfile_uuid(cmdline, len, found) && !strcasecmp(found, UUID));
	fuzz_require(wss_process_state(process, &state) <= 0);
}

static void process_run(const uint8_t *data, size_t size)
{
	struct wss_root root = {.dirfd = fuzz_dirfd()};
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	/* The files of the invented machine belong to this user. */
	uid_t owner = size % 2 ? WSS_UID_ANY : geteuid();
	pid_t pid = 0;
	int r;

	put_part(data, size, "pid", "run/web1.pid");
	put_part(data, size, "xml", "run/web1.xml");
	put_process(data, size, "4242", "");
	put_process(data, size, "4243", "2");
	r = wss_process_attach(&root, "/run", "web1", UUID, owner, &process, &err);
	fuzz_check(r, &err);
	if (r == 0)
		check_held(&process);
	wss_process_release(&process);
	wss_error_clear(&err);
	r = wss_process_find(&root, UUID, owner, &pid, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 ? !pid : pid == 4242 || pid == 4243);
}

const struct fuzz_target fuzz_target = {
	.name = "process",
	.run = process_run,
	.max_bytes = 8192,
	.mutations = 4000,
};
