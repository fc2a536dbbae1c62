/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest is a file /etc/pve/qemu-server/VMID.conf. It runs if /run/qemu-server/VMID.pid names a process that
 *
 * - has a VM, by the kernel's own tables;
 * - runs as root, with all its user IDs;
 * - has the executable /usr/bin/kvm or /usr/bin/qemu-system-ARCH (PVE/QemuServer/Helpers.pm, get_command_for_arch());
 * - was started with -id VMID, an option that only Proxmox VE's QEMU has (config_to_command() in PVE/QemuServer.pm);
 * - is in the cgroup /qemu.slice/VMID.scope (vm_start_nolock() there), where only root can put a process.
 *
 * Root may always pretend; nobody else can.
 *
 * The balloon is Proxmox VE's: pvestatd moves those of guests that have a minimum and shares (PVE/AutoBalloon.pm), and
 * a guest's start sets the others.
 */
#include "host/proxmox.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/text.h"
#include "host/inventories.h"
#include "host/procfile.h"

#define CONFIGS "etc/pve/qemu-server"
#define RUN "run/qemu-server"
#define CGROUP_MAX (64 * 1024)
/* More guests than a host can run. */
#define GUESTS_MAX 16384
/* Number of digits of the largest VMID, 999999999. */
#define VMID_DIGITS 9
/* In MiB; defaults of memory and shares (PVE/QemuServer/Memory.pm, PVE/QemuServer.pm). */
#define MEMORY_DEFAULT 512
#define MEMORY_MAX (1ULL << 32)
#define SHARES_DEFAULT 1000
#define SHARES_MAX 50000

/* Returns the text between the blanks of a line, which ends at its length. */
static const char *trim(const char *text, size_t *length)
{
	while (*length && isspace((unsigned char)text[*length - 1]))
		--*length;
	while (*length && isspace((unsigned char)*text)) {
		++text;
		--*length;
	}
	return text;
}

static void take_text(const char *value, size_t length, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%.*s", (int)wss_u64_min(length, size - 1), value);
	wss_text_sanitize(ret_text);
}

/* Reads a decimal number up to most; else it is unknown. */
static struct wss_amount take_number(const char *value, size_t length, uint64_t most)
{
	uint64_t number = 0;

	if (!length || length > 12)
		return (struct wss_amount){.known = false};
	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9')
			return (struct wss_amount){.known = false};
		number = number * 10 + (uint64_t)(value[i] - '0');
	}
	return (struct wss_amount){number <= most, number <= most ? number : 0};
}

static struct wss_amount take_mib(const char *value, size_t length)
{
	struct wss_amount amount = take_number(value, length, MEMORY_MAX);

	amount.value <<= 20;
	return amount;
}

/* Returns the part "KEY=..." among parts that commas separate, without its key; NULL: there is none. */
static const char *find_part(const char *value, size_t length, const char *key, size_t *ret_length)
{
	size_t key_length = strlen(key);

	for (const char *at = value, *end = value + length; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at)),
			   *stop = comma ? comma : end;

		if ((size_t)(stop - at) > key_length && !memcmp(at, key, key_length) &&
		    at[key_length] == '=') {
			*ret_length = (size_t)(stop - at) - key_length - 1;
			return at + key_length + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

/* "2048", or from qemu-server 8.0 on "current=2048". */
static struct wss_amount take_memory(const char *value, size_t length)
{
	size_t part_length = 0;
	const char *part = find_part(value, length, "current", &part_length);

	return part ? take_mib(part, part_length) : take_mib(value, length);
}

static void take_uuid(const char *value, size_t length, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	size_t part_length = 0;
	const char *part = find_part(value, length, "uuid", &part_length);
	char option[2 * WSS_UUID_TEXT_MAX] = "-uuid";
	int n;

	if (!part || part_length != WSS_UUID_TEXT_MAX - 1)
		return;
	n = snprintf(option + sizeof("-uuid"), WSS_UUID_TEXT_MAX, "%.*s", (int)part_length, part);
	if (n != WSS_UUID_TEXT_MAX - 1 ||
	    !wss_procfile_uuid(option, sizeof("-uuid") + WSS_UUID_TEXT_MAX, ret_uuid))
		return;
	for (char *at = ret_uuid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
}

static void take_setting(const char *key, size_t key_length, const char *value, size_t length,
			 struct wss_proxmox_config *config)
{
#define IS(word) (key_length == strlen(word) && !memcmp(key, word, key_length))
	if (IS("name"))
		take_text(value, length, config->name, sizeof(config->name));
	else if (IS("tags"))
		take_text(value, length, config->tags, sizeof(config->tags));
	else if (IS("memory"))
		config->memory_bytes = take_memory(value, length);
	else if (IS("balloon"))
		config->balloon_minimum_bytes = take_mib(value, length);
	else if (IS("shares"))
		config->balloon_shares = take_number(value, length, SHARES_MAX);
	else if (IS("template"))
		config->is_template = length == 1 && *value == '1';
	else if (IS("smbios1"))
		take_uuid(value, length, config->uuid);
#undef IS
}

/* "KEY: VALUE"; comments have '#' in front. */
static void take_line(const char *line, size_t length, struct wss_proxmox_config *config)
{
	const char *colon = memchr(line, ':', length), *value;
	size_t key_length = colon ? (size_t)(colon - line) : 0, value_length;

	if (!colon || line[0] < 'a' || line[0] > 'z')
		return;
	value_length = length - key_length - 1;
	value = trim(colon + 1, &value_length);
	if (value_length)
		take_setting(line, key_length, value, value_length, config);
}

void wss_proxmox_config_parse(const char *text, struct wss_proxmox_config *ret_config)
{
	struct wss_proxmox_config *config = ret_config;

	*config = (struct wss_proxmox_config){
		.memory_bytes = wss_amount_of((uint64_t)MEMORY_DEFAULT << 20),
		.balloon_shares = wss_amount_of(SHARES_DEFAULT),
		.has_balloon = true,
	};
	/* The first section ends it. */
	for (const char *line = text; *line && *line != '[';) {
		size_t length = strcspn(line, "\n");

		take_line(line, length, config);
		line += length + (line[length] == '\n');
	}
	/* 0 is how the device is left out. */
	if (config->balloon_minimum_bytes.known && !config->balloon_minimum_bytes.value) {
		config->has_balloon = false;
		config->balloon_minimum_bytes.known = false;
	}
	config->balloon_shares.known &= config->balloon_minimum_bytes.known;
}

/* Takes the VMID from the name of a configuration; false: it is none. */
static bool take_vmid(const char *file, char ret_vmid[VMID_DIGITS + 1])
{
	size_t digits = strspn(file, "0123456789");

	if (digits < 3 || digits > VMID_DIGITS || file[0] == '0' ||
	    strcmp(file + digits, ".conf") != 0)
		return false;
	memcpy(ret_vmid, file, digits);
	ret_vmid[digits] = '\0';
	return true;
}

/* Whether the process whose directory is proc is in the cgroup of that guest, in any of the hierarchies. */
static bool is_in_scope(const struct wss_root *proc, const char *vmid)
{
	wss_auto_free char *cgroups = NULL;
	const char *rest;
	char path[128];

	snprintf(path, sizeof(path), "/qemu.slice/%s.scope", vmid);
	if (wss_root_read(proc, "cgroup", CGROUP_MAX, &cgroups, NULL) < 0)
		return false;
	rest = wss_procfile_cgroup(cgroups, path);
	return rest && (!*rest || *rest == '\n');
}

/* The VMs that the kernel knows, and in whose cgroup each is; "": in none of Proxmox VE's. */
struct known_vms {
	const struct wss_vm *vms;
	size_t n;
	char (*vmids)[VMID_DIGITS + 1];
};

static void take_scope(const struct wss_root *root, pid_t pid, char ret_vmid[VMID_DIGITS + 1])
{
	wss_auto_free char *cgroups = NULL;
	const char *rest = NULL;
	char path[32];
	size_t digits;

	snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
	if (wss_root_read(root, path, CGROUP_MAX, &cgroups, NULL) == 0)
		rest = wss_procfile_cgroup(cgroups, "/qemu.slice/");
	digits = rest ? strspn(rest, "0123456789") : 0;
	if (digits && digits <= VMID_DIGITS && strcspn(rest + digits, "\n") == strlen(".scope") &&
	    !strncmp(rest + digits, ".scope", strlen(".scope")))
		memcpy(ret_vmid, rest, digits);
}

static bool is_executable(const struct wss_root *proc)
{
	static const char directory[] = "/usr/bin/", qemu[] = "qemu-system-";
	static const char deleted[] = " (deleted)";
	char target[PATH_MAX], *name = target + sizeof(directory) - 1;
	ssize_t length = readlinkat(proc->dirfd, "exe", target, sizeof(target) - 1);

	if (length < 0)
		return false;
	target[length] = '\0';
	/* A newer version has taken its place since. */
	if ((size_t)length > sizeof(deleted) &&
	    !strcmp(target + length - (sizeof(deleted) - 1), deleted))
		target[length - (ssize_t)(sizeof(deleted) - 1)] = '\0';
	return !strncmp(target, directory, sizeof(directory) - 1) && !strchr(name, '/') &&
	       (!strcmp(name, "kvm") || !strncmp(name, qemu, sizeof(qemu) - 1));
}

/* Whether the process was started as that guest; takes the UUID from its command line. */
static bool is_started_as(const struct wss_root *proc, const char *vmid,
			  char ret_uuid[WSS_UUID_TEXT_MAX])
{
	wss_auto_free char *cmdline = NULL;
	const char *id;
	size_t length;

	if (wss_root_read(proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &length) < 0)
		return false;
	id = wss_procfile_option(cmdline, length, "id");
	if (!id || strcmp(id, vmid) != 0)
		return false;
	wss_procfile_uuid(cmdline, length, ret_uuid);
	for (char *at = ret_uuid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return true;
}

static void doubt(struct wss_inventory_guest *guest, pid_t pid, const char *what)
{
	guest->state = WSS_INVENTORY_UNKNOWN;
	snprintf(guest->why, sizeof(guest->why), "/%s/%.9s.pid names process %d, which %s", RUN,
		 guest->id, pid, what);
}

static void check_process(const struct wss_root *root, const struct wss_vm *vm,
			  struct wss_inventory_guest *guest)
{
	wss_cleanup(wss_root_close) struct wss_root proc = {.dirfd = -1};
	char path[32], uuid[WSS_UUID_TEXT_MAX] = "", what[128];

	snprintf(path, sizeof(path), "proc/%d", vm->pid);
	proc.dirfd = wss_root_openat(root, path, O_PATH | O_DIRECTORY);
	snprintf(what, sizeof(what), "is not in the cgroup /qemu.slice/%s.scope", guest->id);
	if (proc.dirfd < 0)
		guest->state = WSS_INVENTORY_OFF;
	else if (wss_procfile_is_owned_by(&proc, 0) != 1)
		doubt(guest, vm->pid, "is not root's");
	else if (!is_executable(&proc))
		doubt(guest, vm->pid, "is neither /usr/bin/kvm nor /usr/bin/qemu-system-*");
	else if (!is_in_scope(&proc, guest->id))
		doubt(guest, vm->pid, what);
	else if (!is_started_as(&proc, guest->id, uuid))
		doubt(guest, vm->pid, "was not started with its -id");
	else if (vm->shares_process)
		doubt(guest, vm->pid, "has several VMs");
	else {
		guest->state = WSS_INVENTORY_RUNNING;
		guest->vm = *vm;
		/* Changes of the configuration count from the next start on. */
		strcpy(guest->uuid, uuid);
		snprintf(guest->monitor, sizeof(guest->monitor), "/var/run/qemu-server/%s.qmp",
			 guest->id);
	}
}

static const struct wss_vm *find_pid(const struct known_vms *known, pid_t pid)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->vms[i].pid == pid)
			return &known->vms[i];
	return NULL;
}

/* A guest of Proxmox VE whose pid file is missing still runs; and so does one that emulates its processor. */
static void find_process(const struct wss_root *root, const struct known_vms *known,
			 struct wss_inventory_guest *guest)
{
	struct wss_procfile_stat stat;
	const struct wss_vm *vm;
	uint64_t pid = 0;
	char path[128];

	snprintf(path, sizeof(path), RUN "/%s.pid", guest->id);
	if (wss_root_read_u64(root, path, &pid) == 0 && pid <= INT_MAX) {
		vm = find_pid(known, (pid_t)pid);
		snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
		if (vm)
			check_process(root, vm, guest);
		else if (wss_procfile_read_stat(root, path, &stat) == 0 &&
			 !wss_procfile_exited(stat.state))
			doubt(guest, (pid_t)pid, "has no VM of KVM's");
		return;
	}
	for (size_t i = 0; i < known->n; i++) {
		if (strcmp(known->vmids[i], guest->id) != 0)
			continue;
		guest->state = WSS_INVENTORY_UNKNOWN;
		snprintf(guest->why, sizeof(guest->why),
			 "process %d runs in its cgroup, but /%s/%s.pid names none",
			 known->vms[i].pid, RUN, guest->id);
	}
}

static void describe(const struct wss_proxmox_config *config, struct wss_inventory_guest *guest)
{
	/* Without a name, Proxmox VE calls it so, too. */
	if (config->name[0])
		strcpy(guest->name, config->name);
	else
		snprintf(guest->name, sizeof(guest->name), "vm%s", guest->id);
	strcpy(guest->uuid, config->uuid);
	strcpy(guest->tags, config->tags);
	guest->memory_bytes = config->memory_bytes;
	guest->has_balloon = config->has_balloon;
	guest->balloon_minimum_bytes = config->balloon_minimum_bytes;
	guest->balloon_shares = config->balloon_shares;
	guest->monitor_ms = WSS_PROXMOX_MONITOR_MS;
	/* A guest's start switches its statistics on (vm_start_nolock() in PVE/QemuServer.pm). */
	if (config->has_balloon) {
		guest->balloon_device = "balloon0";
		guest->balloon_period_s = 2;
	}
	guest->balloon_owner =
		!config->has_balloon ? "no balloon device: its configuration has balloon: 0"
		: config->balloon_minimum_bytes.known && config->balloon_shares.value
			? "Proxmox VE's pvestatd sets its balloon, by its minimum and shares"
			: "Proxmox VE sets its balloon, by its configuration alone";
}

static int proxmox_guest_read(const struct wss_root *root, const struct known_vms *known,
			      struct wss_inventory_guest *guest)
{
	wss_auto_free struct wss_proxmox_config *config = malloc(sizeof(*config));
	wss_auto_free char *text = NULL;
	char path[128];
	int r;

	if (!config)
		return -ENOMEM;
	snprintf(path, sizeof(path), CONFIGS "/%s.conf", guest->id);
	r = wss_root_read(root, path, WSS_PROXMOX_CONFIG_MAX, &text, NULL);
	if (r < 0)
		return r;
	wss_proxmox_config_parse(text, config);
	describe(config, guest);
	find_process(root, known, guest);
	if (config->is_template && guest->state == WSS_INVENTORY_OFF)
		guest->state = WSS_INVENTORY_TEMPLATE;
	return 0;
}

/* One entry that nobody can read, such as a directory or a file too long, must not hide the others. */
static void describe_unread(struct wss_inventory_guest *guest, int error)
{
	snprintf(guest->name, sizeof(guest->name), "vm%s", guest->id);
	guest->state = WSS_INVENTORY_UNKNOWN;
	snprintf(guest->why, sizeof(guest->why), "cannot read /%s/%s.conf: %s", CONFIGS, guest->id,
		 strerror(error));
}

static int proxmox_list(const struct wss_root *root, const struct wss_vm *vms, size_t n,
			struct wss_inventory_guest **ret_guests, size_t *ret_n,
			struct wss_error *err)
{
	wss_auto_free struct wss_inventory_guest *guests = NULL;
	wss_auto_free char(*vmids)[VMID_DIGITS + 1] = calloc(n + 1, sizeof(*vmids));
	struct known_vms known = {.vms = vms, .n = n, .vmids = vmids};
	wss_auto_dir DIR *directory = NULL;
	size_t used = 0, room = 16;
	int r = wss_root_opendir(root, CONFIGS, &directory);

	if (r < 0)
		return wss_error_errno(err, WSS_ERR_CONNECT, -r,
				       "cannot read /%s: is this host one of Proxmox VE, and "
				       "does pve-cluster run?",
				       CONFIGS);
	if (!vmids)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++)
		take_scope(root, vms[i].pid, vmids[i]);
	for (struct dirent *entry; (entry = readdir(directory)) && used < GUESTS_MAX;) {
		if (!guests || used == room) {
			struct wss_inventory_guest *more =
				realloc(guests, (room *= 2) * sizeof(*guests));

			if (!more)
				return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
			guests = more;
		}
		guests[used] = (struct wss_inventory_guest){.state = WSS_INVENTORY_OFF};
		if (!take_vmid(entry->d_name, guests[used].id))
			continue;
		r = proxmox_guest_read(root, &known, &guests[used]);
		if (r == -ENOMEM)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		/* It was removed, or has moved to another node. */
		if (r == -ENOENT)
			continue;
		if (r < 0)
			describe_unread(&guests[used], -r);
		used++;
	}
	*ret_guests = wss_steal_ptr(guests);
	*ret_n = used;
	return 0;
}

static bool proxmox_is_here(const struct wss_root *root)
{
	wss_auto_close int fd = wss_root_openat(root, "etc/pve", O_PATH | O_DIRECTORY);

	return fd >= 0;
}

const struct wss_inventory_ops wss_inventory_proxmox = {
	.uri = "proxmox:///",
	.statistics_by =
		"the balloon driver in a guest reports them, which the one of Windows does by its service",
	.ids_last = true,
	.is_here = proxmox_is_here,
	.list = proxmox_list,
};
