/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A name is an option of a command line, which anyone can write. It is believed if the process is where only its manager, or
 * root, can have put it:
 *
 * - libvirt: in a cgroup /machine.slice/machine-qemu\x2dN\x2dNAME.scope (systemd-machined);
 * - Proxmox VE: in /qemu.slice/VMID.scope, with -id VMID (see proxmox.c);
 * - Incus and LXD: in the cgroup of the daemon's service, with -readconfig .../NAME/qemu.conf, where NAME has the project in
 *   front (lxc/incus, internal/server/instance/drivers/driver_qemu.go; canonical/lxd, lxd/instance/drivers/driver_qemu.go).
 *   The daemon never leaves QEMU's monitor;
 * - KubeVirt: in the cgroup of a pod which the kubelet calls NAMESPACE, virt-launcher-VMI-xxxxx, by the directory that it has in
 *   /var/log/pods; QEMU's -name is NAMESPACE_VMI (kubevirt/kubevirt, VMINamespaceKeyFunc()). Virtual machines of the same name in
 *   two namespaces may have the same UUID (CalculateLegacyUUID() there), so it counts for nothing;
 * - Firecracker's jailer: its root directory is .../PROGRAM/ID/root, in our own user namespace, and its cgroup, if it is in one of
 *   PROGRAM's, is /PROGRAM/ID (firecracker-microvm/firecracker, docs/jailer.md).
 *
 * Without a manager it is believed if the process is in our own pid namespace, so that no container runs it, and its user is root
 * or a service's.
 */
#include "host/namers.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/text.h"
#include "host/procfile.h"

/* Accounts of people begin here (login.defs(5), UID_MIN). */
#define FIRST_PERSON 1000
#define CGROUP_MAX (64 * 1024)
#define MOUNTS_MAX (1024 * 1024)
#define POD_UID_LENGTH 36
/* Kubernetes cuts the name of a pod after so many characters, and appends others at random. */
#define POD_NAME_MAX 58
#define POD_RANDOM_LENGTH 5

struct facts {
	const struct wss_root *root, *proc;
	const char *cmdline;
	size_t length;
	const char *cgroups;
	const char *cgroup; /* what follows the namer's in the path; it may end at a newline */
};

struct namer {
	const char *manager; /* NULL: none */
	const char *cgroup;  /* how the path of one of its cgroups begins; NULL: any */
	const char *program; /* part of the executable's name */
	const char *option;  /* names the guest */
	void (*take)(const char *value, char ret_name[WSS_NAME_MAX]);
	/*
	 * Whether it is a process of this manager, as far as its cgroup does not tell; may complete the name. If it
	 * only pretends, vm->why says what does not fit.
	 */
	bool (*fits)(const struct facts *facts, struct wss_vm *vm);
	bool keeps_monitor; /* the manager never leaves it */
	bool makes_uuid;    /* the same UUID may be another's */
};

/* Returns the value of key=... among options that commas separate, which ends at a comma or at its end; NULL: none. */
static const char *key_value(const char *options, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, key, length) && at[length] == '=')
			return at + length + 1;
	}
	return NULL;
}

/* Takes the name from QEMU's "NAME,...", "guest=NAME,...", in which a comma of the name is doubled. */
static void take_name(const char *value, char ret_name[WSS_NAME_MAX])
{
	const char *guest = strstr(value, "guest=");
	size_t n = 0;

	if (guest && (guest == value || guest[-1] == ','))
		value = guest + strlen("guest=");
	for (; *value && (*value != ',' || value[1] == ',') && n < WSS_NAME_MAX - 1; value++) {
		value += *value == ',';
		ret_name[n++] = *value;
	}
	ret_name[n] = '\0';
}

/* Takes the name of a socket's file, "[path=]DIRECTORY/NAME.sock,...", without its ending; a descriptor has none. */
static void take_socket(const char *value, char ret_name[WSS_NAME_MAX])
{
	const char *path = key_value(value, "path");
	char *dot;

	if (key_value(value, "fd"))
		return;
	path = path ? path : value;
	for (const char *at = path; *at && *at != ','; at++)
		if (*at == '/')
			path = at + 1;
	snprintf(ret_name, WSS_NAME_MAX, "%.*s", (int)strcspn(path, ","), path);
	dot = strrchr(ret_name, '.');
	if (dot && (!strcmp(dot, ".sock") || !strcmp(dot, ".socket")))
		*dot = '\0';
}

static bool same_value(const char *a, const char *b)
{
	size_t length = strcspn(a, ",");

	return length == strcspn(b, ",") && !strncmp(a, b, length);
}

/* Whether -mon makes a chardev, named by the value of its id, a monitor for programs. */
static bool is_for_programs(const char *cmdline, size_t len, const char *id)
{
	const char *end = cmdline + len;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *chardev = key_value(arg, "chardev"), *mode = key_value(arg, "mode");

		if (chardev && mode && same_value(chardev, id) && same_value(mode, "control"))
			return true;
	}
	return false;
}

/*
 * Takes the path of a QMP socket on which QEMU listens: -qmp unix:PATH,server=on, or -mon chardev=ID,mode=control and
 * -chardev socket,id=ID,path=PATH,server=on.
 */
static void take_monitor(const char *cmdline, size_t len, char ret_path[WSS_SOCKET_PATH_MAX])
{
	const char *end = cmdline + len, *path = wss_procfile_option(cmdline, len, "qmp");

	path = path && !strncmp(path, "unix:", strlen("unix:")) && strstr(path, ",server")
		       ? path + strlen("unix:")
		       : NULL;
	for (const char *arg = cmdline; !path && arg < end; arg += strlen(arg) + 1) {
		const char *id =
			strncmp(arg, "socket,", strlen("socket,")) ? NULL : key_value(arg, "id");

		if (id && strstr(arg, ",server") && is_for_programs(cmdline, len, id))
			path = key_value(arg, "path");
	}
	if (path && strcspn(path, ",") < WSS_SOCKET_PATH_MAX)
		snprintf(ret_path, WSS_SOCKET_PATH_MAX, "%.*s", (int)strcspn(path, ","), path);
}

/* Whether both are in the same namespace of that kind. */
static bool same_namespace(const struct wss_root *root, const struct wss_root *proc,
			   const char *kind)
{
	char ours[64] = "", its[64] = "", path[32];

	snprintf(path, sizeof(path), "proc/self/ns/%s", kind);
	return readlinkat(root->dirfd, path, ours, sizeof(ours) - 1) > 0 &&
	       readlinkat(proc->dirfd, path + strlen("proc/self/"), its, sizeof(its) - 1) > 0 &&
	       !strcmp(ours, its);
}

/* Cuts off the last part of a path, and returns it; NULL: there is none. */
static char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

static bool proxmox_fits(const struct facts *facts, struct wss_vm *vm)
{
	const char *id = wss_procfile_option(facts->cmdline, facts->length, "id");
	size_t length = id ? strlen(id) : 0;

	if (id && !strncmp(facts->cgroup, id, length) &&
	    !strncmp(facts->cgroup + length, ".scope", strlen(".scope")) &&
	    strchrnul(facts->cgroup, '\n') == facts->cgroup + length + strlen(".scope"))
		return true;
	snprintf(vm->why, sizeof(vm->why), "its VMID is not that of its cgroup /qemu.slice/%.*s",
		 (int)wss_u64_min(strcspn(facts->cgroup, "\n"), 32), facts->cgroup);
	return false;
}

/* The daemon's directory of the instance is called NAME or PROJECT_NAME. */
static bool incus_fits(const struct facts *facts, struct wss_vm *vm)
{
	const char *option = wss_procfile_option(facts->cmdline, facts->length, "readconfig");
	char path[PATH_MAX] = "", *file, *directory;
	size_t length = strlen(vm->name), directory_length;

	snprintf(path, sizeof(path), "%s", option ? option : "");
	file = cut_last(path);
	directory = cut_last(path);
	directory_length = directory ? strlen(directory) : 0;
	if (!directory || strcmp(file, "qemu.conf") != 0 || directory_length < length ||
	    directory_length >= sizeof(vm->name) ||
	    strcmp(directory + directory_length - length, vm->name) != 0 ||
	    (directory_length > length && directory[directory_length - length - 1] != '_')) {
		snprintf(vm->why, sizeof(vm->why),
			 "its configuration is not the file qemu.conf of an instance of that name");
		return false;
	}
	strcpy(vm->name, directory);
	return true;
}

/* Finds the UID of the pod in a cgroup's path, where systemd has '_' for '-'. */
static bool take_pod_uid(const char *cgroup, char ret_uid[POD_UID_LENGTH + 1])
{
	static const char digits[] = "0123456789abcdef-_";
	size_t length = strcspn(cgroup, "\n");

	for (const char *at = cgroup; at + strlen("pod") + POD_UID_LENGTH <= cgroup + length;
	     at++) {
		if (strncmp(at, "pod", strlen("pod")) ||
		    strspn(at + strlen("pod"), digits) != POD_UID_LENGTH)
			continue;
		for (size_t i = 0; i < POD_UID_LENGTH; i++) {
			char c = at[strlen("pod") + i];

			ret_uid[i] = (char)(c == '_' ? '-' : c);
		}
		ret_uid[POD_UID_LENGTH] = '\0';
		return true;
	}
	return false;
}

/* Whether the kubelet has a directory NAMESPACE_POD_UID, whose pod is called START and some random characters. */
static bool has_pod(const struct wss_root *root, const char *start, const char *uid)
{
	wss_auto_dir DIR *pods = NULL;
	size_t length = strlen(start);

	if (wss_root_opendir(root, "var/log/pods", &pods) < 0)
		return false;
	for (struct dirent *entry; (entry = readdir(pods));) {
		const char *rest = entry->d_name + length;

		if (!strncmp(entry->d_name, start, length) &&
		    strcspn(rest, "_") == POD_RANDOM_LENGTH &&
		    !strncmp(rest + POD_RANDOM_LENGTH, "_", 1) &&
		    !strcmp(rest + POD_RANDOM_LENGTH + 1, uid))
			return true;
	}
	return false;
}

static bool kubevirt_fits(const struct facts *facts, struct wss_vm *vm)
{
	static const char launcher[] = "virt-launcher-";
	const char *vmi = strchr(vm->name, '_');
	char start[WSS_NAME_MAX + sizeof(launcher) + 2], uid[POD_UID_LENGTH + 1];
	size_t length;

	/* Others run VMs for pods, too. */
	if (!vmi || same_namespace(facts->root, facts->proc, "pid") ||
	    !take_pod_uid(facts->cgroup, uid))
		return false;
	length = (size_t)(vmi - vm->name) + 1;
	snprintf(start, sizeof(start), "%.*s%s%s-", (int)length, vm->name, launcher, vmi + 1);
	if (strlen(start) > length + POD_NAME_MAX)
		start[length + POD_NAME_MAX] = '\0';
	if (has_pod(facts->root, start, uid))
		return true;
	snprintf(vm->why, sizeof(vm->why),
		 "its pod %s is not the launcher of that guest, by /var/log/pods", uid);
	return false;
}

/* Reads which directory of a file system is mounted as the root directory of the process. */
static bool read_root_mount(const struct wss_root *proc, char ret_path[PATH_MAX])
{
	wss_auto_free char *mounts = NULL;
	char *save, point[3], path[PATH_MAX];
	bool found = false;

	if (wss_root_read(proc, "mountinfo", MOUNTS_MAX, &mounts, NULL) < 0)
		return false;
	/* proc_pid_mountinfo(5); the last is on top. */
	for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%*s %*s %*s %4095s %2s", path, point) != 2 ||
		    strcmp(point, "/") != 0)
			continue;
		strcpy(ret_path, path);
		found = true;
	}
	return found;
}

static bool jailer_fits(const struct facts *facts, struct wss_vm *vm)
{
	char path[PATH_MAX], start[sizeof(vm->program) + 2], *end, *id, *program;
	const char *cgroup;
	size_t length;

	if (!read_root_mount(facts->proc, path))
		return false;
	end = cut_last(path);
	id = cut_last(path);
	program = cut_last(path);
	if (!program || strcmp(end, "root") != 0 || strcmp(program, vm->program) != 0)
		return false;
	snprintf(start, sizeof(start), "/%s/", program);
	cgroup = wss_procfile_cgroup(facts->cgroups, start);
	length = strlen(id);
	if (!same_namespace(facts->root, facts->proc, "user"))
		snprintf(vm->why, sizeof(vm->why),
			 "its jail is in a user namespace, where anyone can make one");
	else if (strcmp(id, vm->name) != 0)
		snprintf(vm->why, sizeof(vm->why), "its jail is that of %.100s", id);
	else if (cgroup && (strcspn(cgroup, "\n/") != length || strncmp(cgroup, id, length)))
		snprintf(vm->why, sizeof(vm->why), "its cgroup is that of %.*s",
			 (int)wss_u64_min(strcspn(cgroup, "\n/"), 100), cgroup);
	else
		return true;
	return false;
}

/* The first that fits names the process; those without a manager are last. */
static const struct namer namers[] = {
	{"libvirt", "/machine.slice/machine-qemu", "", "name", take_name, NULL, false, false},
	{"proxmox", "/qemu.slice/", "", "name", take_name, proxmox_fits, false, false},
	{"incus", "/system.slice/incus.service", "qemu", "name", take_name, incus_fits, true,
	 false},
	{"lxd", "/system.slice/snap.lxd.daemon.service", "qemu", "name", take_name, incus_fits,
	 true, false},
	{"lxd", "/system.slice/lxd.service", "qemu", "name", take_name, incus_fits, true, false},
	{"kubevirt", "/kubepods", "qemu", "name", take_name, kubevirt_fits, true, true},
	{"jailer", NULL, "firecracker", "id", take_name, jailer_fits, false, false},
	{NULL, NULL, "qemu", "name", take_name, NULL, false, false},
	{NULL, NULL, "kvm", "name", take_name, NULL, false, false},
	{NULL, NULL, "firecracker", "id", take_name, NULL, false, false},
	{NULL, NULL, "crosvm", "name", take_name, NULL, false, false},
	{NULL, NULL, "crosvm", "socket", take_socket, NULL, false, false},
	{NULL, NULL, "crosvm", "s", take_socket, NULL, false, false},
	{NULL, NULL, "cloud-hypervisor", "api-socket", take_socket, NULL, false, false},
};

/* Whether this namer knows the process; takes the name. */
static bool namer_knows(const struct namer *namer, struct facts *facts, struct wss_vm *vm)
{
	const char *value;

	if (!strstr(vm->program, namer->program))
		return false;
	facts->cgroup = namer->cgroup ? wss_procfile_cgroup(facts->cgroups, namer->cgroup) : NULL;
	if (namer->cgroup && !facts->cgroup)
		return false;
	value = wss_procfile_option(facts->cmdline, facts->length, namer->option);
	vm->name[0] = '\0';
	if (value)
		namer->take(value, vm->name);
	return vm->name[0] && (!namer->fits || namer->fits(facts, vm));
}

/* Whether a process that no manager started is believed. */
static bool is_trusted(const struct facts *facts, struct wss_vm *vm)
{
	if (!same_namespace(facts->root, facts->proc, "pid"))
		strcpy(vm->why, "it runs in a container");
	else if (vm->user >= FIRST_PERSON)
		strcpy(vm->why, "its user is neither root nor a service's");
	return !vm->why[0];
}

static void take_claims(const struct namer *namer, const struct facts *facts, struct wss_vm *vm)
{
	if (namer->manager)
		strcpy(vm->manager, namer->manager);
	if (!namer->keeps_monitor)
		take_monitor(facts->cmdline, facts->length, vm->monitor);
	if (!namer->makes_uuid)
		wss_procfile_uuid(facts->cmdline, facts->length, vm->uuid);
	for (char *at = vm->uuid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	vm->has_uuid = vm->uuid[0];
}

static void qualify_name(struct wss_vm *vm)
{
	char name[WSS_NAME_MAX];

	snprintf(name, sizeof(name), "%s", vm->name);
	if (vm->user_name[0])
		snprintf(vm->name, sizeof(vm->name), "%.180s@%s", name, vm->user_name);
	else
		snprintf(vm->name, sizeof(vm->name), "%.180s@%u", name, vm->user);
}

void wss_namers_read(const struct wss_root *root, const struct wss_root *proc, struct wss_vm *vm)
{
	wss_auto_free char *cmdline = NULL, *cgroups = NULL;
	struct facts facts = {.root = root, .proc = proc, .cgroups = ""};
	const struct namer *namer = NULL;
	char text[WSS_NAME_MAX + sizeof(vm->manager)];

	strcpy(vm->manager, "unknown");
	if (wss_root_read(proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &facts.length) < 0)
		return;
	facts.cmdline = cmdline;
	if (wss_root_read(proc, "cgroup", CGROUP_MAX, &cgroups, NULL) == 0)
		facts.cgroups = cgroups;
	for (size_t i = 0; !namer && i < sizeof(namers) / sizeof(namers[0]); i++)
		if (namer_knows(&namers[i], &facts, vm))
			namer = &namers[i];
	/* Directories and cgroups may have any name. */
	wss_text_sanitize(vm->name);
	wss_text_sanitize(vm->why);
	/* Whoever pretends to one manager is not believed by another either. */
	vm->claims = namer && !vm->why[0] && (namer->manager || is_trusted(&facts, vm));
	if (vm->claims) {
		vm->manager[0] = '\0';
		take_claims(namer, &facts, vm);
	} else if (namer) {
		qualify_name(vm);
	} else {
		vm->name[0] = '\0';
		if (!vm->why[0])
			strcpy(vm->why, "its arguments name no guest");
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s", vm->manager, vm->manager[0] ? ":" : "", vm->name);
	if (!vm->has_uuid)
		wss_vms_make_uuid(text, vm->uuid);
}
