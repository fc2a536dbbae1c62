/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/qmppeer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/procfile.h"

#define NET_UNIX_MAX (64U * 1024 * 1024)
/* State of a connected socket in /proc/net/unix: SS_CONNECTED of linux/net.h. */
#define CONNECTED_STATE 3

/* Sockets that count as the other end: a single one, or all accepted at a path. */
struct ends {
	const struct qmp_peer *peer;
	char *net_unix; /* /proc/net/unix of the process's network namespace, to find sockets
			   by path */
};

/* Whether this line of /proc/net/unix describes a socket with that inode, accepted at the path. */
static bool is_accepted_at(const char *line, unsigned long inode, const char *path)
{
	unsigned state;
	unsigned long found;
	size_t len = strcspn(line, "\n");
	int at = 0;

	/* Num: RefCount Protocol Flags Type St Inode Path (net/unix/af_unix.c, unix_seq_show) */
	if (sscanf(line, "%*[^:]: %*s %*s %*s %*s %x %lu %n", &state, &found, &at) != 2 || !at ||
	    (size_t)at > len || state != CONNECTED_STATE || found != inode)
		return false;
	return len - (size_t)at == strlen(path) && !memcmp(line + at, path, strlen(path));
}

static bool is_other_end(const struct ends *ends, unsigned long inode)
{
	if (ends->peer->inode)
		return inode == ends->peer->inode;
	for (const char *line = ends->net_unix; line && *line; line++) {
		if (is_accepted_at(line, inode, ends->peer->path))
			return true;
		line = strchr(line, '\n');
		if (!line)
			break;
	}
	return false;
}

/*
 * Reads the inode of the socket behind a descriptor; 0 if it is not a socket. Returns 0 or
 * negative errno.
 */
static int socket_inode(int fd_dir, const char *fd, unsigned long *ret_inode)
{
	char target[64];
	ssize_t len = readlinkat(fd_dir, fd, target, sizeof(target) - 1);

	*ret_inode = 0;
	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (sscanf(target, "socket:[%lu]", ret_inode) != 1)
		*ret_inode = 0;
	return 0;
}

/* Whether the process whose directory is dir holds the other end. 1, 0 or negative errno. */
static int holds_end(const struct wss_root *dir, const struct qmp_peer *peer)
{
	wss_auto_free char *net_unix = NULL;
	struct ends ends = {.peer = peer};
	wss_auto_dir DIR *fds = NULL;
	int r = wss_root_opendir(dir, "fd", &fds);

	if (r < 0)
		return r;
	if (!peer->inode) {
		if (!peer->path[0])
			return 0;
		r = wss_root_read(dir, "net/unix", NET_UNIX_MAX, &net_unix, NULL);
		if (r < 0)
			return r;
		ends.net_unix = net_unix;
	}
	r = 0;
	for (struct dirent *entry; (entry = readdir(fds));) {
		unsigned long inode;
		int e = socket_inode(dirfd(fds), entry->d_name, &inode);

		if (inode && is_other_end(&ends, inode))
			return 1;
		/* Without permission to read the links, the socket may be among them. */
		if (e == -EACCES || e == -EPERM)
			r = e;
	}
	return r;
}

/*
 * Whether the value of an option names the path, as "unix:PATH,server=on", "path=PATH" or in
 * JSON. QemuOpts doubles a comma in the path.
 */
static bool value_names_path(const char *value, const char *path)
{
	size_t len = strlen(path), n = 0;
	wss_auto_free char *doubled = malloc(2 * len + 1);

	if (!doubled || !len)
		return false;
	for (size_t i = 0; i < len; i++) {
		doubled[n++] = path[i];
		if (path[i] == ',')
			doubled[n++] = ',';
	}
	doubled[n] = '\0';
	for (const char *at = value; (at = strstr(at, doubled)); at++)
		if (at > value && strchr(":=\"", at[-1]) && strchr(",\"", at[n]))
			return true;
	return false;
}

/* Whether the value of an option passes QEMU a descriptor that is a socket: "fd=N". */
static bool value_names_socket_fd(const struct wss_process *process, const char *value)
{
	const char *fd = strstr(value, "fd=");
	wss_auto_dir DIR *fds = NULL;
	unsigned long inode;
	char number[16];
	size_t digits;

	if (!fd || (fd > value && fd[-1] != ',') ||
	    wss_root_opendir(&process->proc, "fd", &fds) < 0)
		return false;
	fd += strlen("fd=");
	digits = strspn(fd, "0123456789");
	if (!digits || digits >= sizeof(number))
		return false;
	memcpy(number, fd, digits);
	number[digits] = '\0';
	return socket_inode(dirfd(fds), number, &inode) == 0 && inode;
}

static bool process_serves_path(const struct wss_process *process, const char *cmdline, size_t len,
				const char *path)
{
	static const char *const options[] = {"qmp", "qmp-pretty", "chardev"};
	const char *end = cmdline + len;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *value = arg + strlen(arg) + 1;
		const char *name = arg + (arg[0] == '-') + (arg[0] == '-' && arg[1] == '-');

		for (size_t i = 0; name > arg && value < end && i < 3; i++)
			if (!strcmp(name, options[i]) &&
			    (value_names_path(value, path) ||
			     (!strcmp(name, "chardev") && value_names_socket_fd(process, value))))
				return true;
	}
	return false;
}

/*
 * A guest without a UUID is identified by the socket in its QEMU's options; one of which only QMP does not know the
 * UUID by that on the command line.
 */
static int check_serves(const struct wss_process *process, const char *path, struct wss_error *err)
{
	wss_auto_free char *cmdline = NULL;
	char comm[64] = "?", uuid[WSS_UUID_TEXT_MAX];
	size_t len;
	int r = wss_root_read(&process->proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len);

	if (r < 0)
		return wss_process_error(process, r, "cmdline", err);
	if (wss_procfile_uuid(cmdline, len, uuid))
		return 0;
	r = wss_procfile_looks_like_qemu(&process->proc);
	if (r < 0)
		return wss_process_error(process, r, "exe", err);
	wss_root_read_line(&process->proc, "comm", comm, sizeof(comm));
	if (!r)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "process %d (%s) is not QEMU, and the guest has no UUID",
				     process->pid, comm);
	if (!process_serves_path(process, cmdline, len, path))
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"no option of process %d (%s) says that it listens on this socket, "
			"and the guest has no UUID: start QEMU with -uuid",
			process->pid, comm);
	return 0;
}

int wss_qmppeer_check(const struct wss_process *process, const struct qmp_peer *peer,
		      const char *uuid, struct wss_error *err)
{
	/* root may have passed the socket on to any user. */
	uid_t owner = peer->uid == 0 ? WSS_UID_ANY : peer->uid;
	int r = holds_end(&process->proc, peer);
	char comm[64] = "?";

	if (r < 0)
		return wss_process_error(process, r, "fd", err);
	wss_root_read_line(&process->proc, "comm", comm, sizeof(comm));
	if (!r)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "process %d (%s) has the pid of the socket's listener, but "
				     "does not hold the connection",
				     process->pid, comm);
	if (wss_process_check_owner(process, owner, err) < 0)
		return -1;
	return uuid ? wss_process_check_uuid(process, uuid, err)
		    : check_serves(process, peer->path, err);
}

int wss_qmppeer_hold(const struct wss_root *root, const struct qmp_peer *peer, const char *uuid,
		     struct wss_process *ret_process, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	struct wss_process process;
	char hidepid[16];

	if (wss_process_hold(root, peer->pid, NULL, &process, &why) < 0) {
		/* The directory of a hidden process may still be opened, but no file in it. */
		if ((why.code == WSS_ERR_GONE || why.code == WSS_ERR_UNSUPPORTED) &&
		    wss_procfile_hides(root, hidepid))
			return wss_error_set(
				err, WSS_ERR_UNSUPPORTED,
				"the socket's listener, process %d, cannot be seen: /proc is mounted with "
				"hidepid=%s, which hides other users' processes: run virt-wss as root, or "
				"give it CAP_SYS_PTRACE",
				peer->pid, hidepid);
		return wss_error_set(err, why.code, "the socket's listener: %s", why.text);
	}
	/* Checked through the held process, because the pid may be reused at any time. */
	if (wss_qmppeer_check(&process, peer, uuid, err) < 0) {
		wss_process_release(&process);
		return -1;
	}
	*ret_process = process;
	return 0;
}
