/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

#define STAT_MAX 4096
/* Enough of a stat file for the process ID, the longest name (64 bytes, of a kernel thread) and the state. */
#define STATE_MAX 256
#define STATUS_MAX (64 * 1024)
#define MOUNTS_MAX (1024 * 1024)

/* Returns the value of uuid= among the options of "type=1,...", or NULL. */
static const char *smbios_uuid(const char *options)
{
	const char *uuid = NULL;
	bool system = false;

	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		/* QEMU reads a comma that is doubled as one of a value, which may be a guest's owner's text. */
		if (*at == ',') {
			at++;
			continue;
		}
		system |= !strncmp(at, "type=1", strlen("type=1")) && (!at[6] || at[6] == ',');
		if (!strncmp(at, "uuid=", strlen("uuid=")))
			uuid = at + strlen("uuid=");
	}
	return system ? uuid : NULL;
}

/* Returns the value of uuid= or system_uuid= in what cloud-hypervisor's option "platform" says, or NULL. */
static const char *platform_uuid(const char *options)
{
	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		at += strncmp(at, "system_", strlen("system_")) ? 0 : strlen("system_");
		if (!strncmp(at, "uuid=", strlen("uuid=")))
			return at + strlen("uuid=");
	}
	return NULL;
}

bool wss_procfile_uuid(const char *cmdline, size_t len, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	const char *end = cmdline + len, *value = NULL;
	size_t length = WSS_UUID_TEXT_MAX - 1;

	ret_uuid[0] = '\0';
	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *next = arg + strlen(arg) + 1,
			   *flag = arg + (arg[0] == '-' && arg[1] == '-');

		if (next >= end)
			break;
		if (!strcmp(flag, "-uuid"))
			value = next;
		else if (!strcmp(flag, "-smbios") && smbios_uuid(next))
			value = smbios_uuid(next);
		else if (!strcmp(flag, "-platform") && platform_uuid(next))
			value = platform_uuid(next);
	}
	/* QEMU's value for "no UUID" has only zeros. */
	if (!value || strspn(value, "0-") >= length ||
	    strspn(value, "0123456789abcdefABCDEF-") != length ||
	    (value[length] && value[length] != ','))
		return false;
	memcpy(ret_uuid, value, length);
	ret_uuid[length] = '\0';
	return true;
}

/* Reads the start of a file, at once, into a text. Returns 0 or negative errno. */
static int read_start(int fd, char *ret_text, size_t size)
{
	ssize_t n;

	do
		n = pread(fd, ret_text, size - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ret_text[n] = '\0';
	return 0;
}

static int open_stat(const struct wss_root *root, const char *path)
{
	return wss_root_openat(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

int wss_procfile_read_open_stat(int fd, struct wss_procfile_stat *ret)
{
	struct wss_procfile_stat line;
	uint64_t user, system;
	char text[STAT_MAX], *rest;
	int r = read_start(fd, text, sizeof(text));

	if (r < 0)
		return r;
	/* The name in parentheses may contain anything, even ')' and newlines. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1,
			    " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
			    " %*s %*s %*s %*s %*s %*s %" SCNu64,
			    &line.state, &line.parent, &user, &system, &line.start_ticks) != 5)
		return -EINVAL;
	line.cpu_ticks = wss_u64_add(user, system);
	*ret = line;
	return 0;
}

int wss_procfile_read_stat(const struct wss_root *root, const char *path,
			   struct wss_procfile_stat *ret)
{
	wss_auto_close int fd = open_stat(root, path);

	return fd < 0 ? fd : wss_procfile_read_open_stat(fd, ret);
}

static int read_open_state(int fd, char *ret_state)
{
	char text[STATE_MAX];
	const char *name_end;
	int r = read_start(fd, text, sizeof(text));

	if (r < 0)
		return r;
	/* The name in parentheses may contain anything; only numbers follow the state. */
	name_end = strrchr(text, ')');
	if (!name_end || name_end[1] != ' ' || !name_end[2])
		return -EINVAL;
	*ret_state = name_end[2];
	return 0;
}

int wss_procfile_read_state(const struct wss_root *root, const char *path, char *ret_state)
{
	wss_auto_close int fd = open_stat(root, path);

	return fd < 0 ? fd : read_open_state(fd, ret_state);
}

/* Reads the real, effective, saved and file system user ID. Returns 0 or negative errno. */
static int read_user_ids(const struct wss_root *dir, unsigned ret_ids[4])
{
	wss_auto_free char *text = NULL;
	int r = wss_root_read(dir, "status", STATUS_MAX, &text, NULL);
	const char *line;

	if (r < 0)
		return r;
	/* The line with the process's name comes first, with its newlines escaped. */
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u %u %u %u", &ret_ids[0], &ret_ids[1], &ret_ids[2],
			    &ret_ids[3]) != 4)
		return -EINVAL;
	return 0;
}

int wss_procfile_is_owned_by(const struct wss_root *dir, uid_t owner)
{
	unsigned ids[4];
	int r = read_user_ids(dir, ids);

	return r < 0 ? r : ids[0] == owner && ids[1] == owner && ids[2] == owner && ids[3] == owner;
}

int wss_procfile_user(const struct wss_root *dir, uid_t *ret_user)
{
	unsigned ids[4];
	int r = read_user_ids(dir, ids);

	if (r == 0)
		*ret_user = ids[0];
	return r;
}

int wss_procfile_program(const struct wss_root *dir, char *ret_name, size_t size)
{
	char target[PATH_MAX];
	const char *name;
	ssize_t len = readlinkat(dir->dirfd, "exe", target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	target[len] = '\0';
	name = strrchr(target, '/');
	snprintf(ret_name, size, "%s", name ? name + 1 : target);
	return 0;
}

/* Whether the process has a VM open (virt/kvm/kvm_main.c, kvm_dev_ioctl_create_vm()). No file has such a path. */
static int has_vm(const struct wss_root *dir)
{
	static const char vm[] = "anon_inode:kvm-vm";
	wss_auto_dir DIR *fds = NULL;
	int r = wss_root_opendir(dir, "fd", &fds);

	if (r < 0)
		return r == -EACCES || r == -EPERM ? r : 0;
	for (struct dirent *entry; (entry = readdir(fds));) {
		char target[sizeof(vm)] = "";
		ssize_t len = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		if (len == (ssize_t)sizeof(vm) - 1 && !memcmp(target, vm, sizeof(vm) - 1))
			return 1;
	}
	return 0;
}

int wss_procfile_looks_like_qemu(const struct wss_root *dir)
{
	char name[NAME_MAX + 1];
	int r = wss_procfile_program(dir, name, sizeof(name));

	return r < 0 ? r : strstr(name, "qemu") || strstr(name, "kvm") ? 1 : has_vm(dir);
}

bool wss_procfile_exited(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

bool wss_procfile_hides(const struct wss_root *root, char ret_value[16])
{
	wss_auto_free char *mounts = NULL, *first = NULL;
	char *option, *end, *save;

	if (wss_root_read(root, "proc/1/cmdline", WSS_CMDLINE_MAX, &first, NULL) == 0 ||
	    wss_root_read(root, "proc/self/mounts", MOUNTS_MAX, &mounts, NULL) < 0)
		return false;
	for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		option = strstr(line, " /proc proc ") ? strstr(line, "hidepid=") : NULL;
		if (!option)
			continue;
		option += strlen("hidepid=");
		end = option + strcspn(option, ", ");
		snprintf(ret_value, 16, "%.*s", (int)(end - option), option);
		/* These are the names and numbers of "off". */
		return strcmp(ret_value, "0") && strcmp(ret_value, "off");
	}
	return false;
}

const char *wss_procfile_option(const char *cmdline, size_t len, const char *option)
{
	const char *end = cmdline + len, *value = NULL;
	size_t length = strlen(option);

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *next = arg + strlen(arg) + 1, *name = arg + strspn(arg, "-");

		if (name == arg || strncmp(name, option, length))
			continue;
		if (!name[length] && next < end)
			value = next;
		else if (name[length] == '=')
			value = name + length + 1;
	}
	return value;
}

const char *wss_procfile_cgroup(const char *cgroups, const char *start)
{
	size_t length = strlen(start);

	/* Lines HIERARCHY:CONTROLLERS:PATH (cgroups(7)); a path may have colons, but no newline (kernel/cgroup/cgroup.c). */
	for (const char *line = cgroups; *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		const char *path = line;

		for (int i = 0; i < 2; i++) {
			path += strcspn(path, ":\n");
			path += *path == ':';
		}
		if (!strncmp(path, start, length))
			return path + length;
	}
	return NULL;
}
