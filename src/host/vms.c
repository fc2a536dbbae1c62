/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/vms.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/privilege.h"
#include "base/text.h"
#include "host/namers.h"
#include "host/procfile.h"
#include "kvm/kvm.h"

/* By the hash FNV-1a, twice with different starts. */
void wss_vms_make_uuid(const char *text, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	uint64_t high = 0xcbf29ce484222325, low = 0x84222325cbf29ce4;

	for (const char *at = text; *at; at++) {
		high = (high ^ (unsigned char)*at) * 0x100000001b3;
		low = (low ^ (unsigned char)*at) * 0x100000001b3;
	}
	snprintf(ret_uuid, WSS_UUID_TEXT_MAX, "%08x-%04x-8%03x-%04x-%012llx",
		 (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
		 (unsigned)(low >> 48 & 0x3fff) | 0x8000,
		 (unsigned long long)(low & 0xffffffffffff));
}

/* Withdraws what the process claims, and names the guest after its program. */
static void give_own_name(struct wss_vm *vm)
{
	char text[WSS_NAME_MAX + 32];
	const char *program = vm->program[0] ? vm->program : "vm";

	if (vm->name[0])
		strcpy(vm->why, "another VM has the same name or UUID");
	strcpy(vm->manager, "unknown");
	vm->claims = vm->has_uuid = false;
	vm->monitor[0] = '\0';
	snprintf(vm->name, sizeof(vm->name), vm->shares_process ? "%s-%d.%d" : "%s-%d", program,
		 vm->pid, vm->fd);
	snprintf(text, sizeof(text), "%s %llu", vm->name, (unsigned long long)vm->start_ticks);
	wss_vms_make_uuid(text, vm->uuid);
}

static void read_user(const struct wss_root *proc, struct wss_vm *vm)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];

	if (wss_procfile_user(proc, &vm->user) == 0 &&
	    getpwuid_r(vm->user, &entry, buffer, sizeof(buffer), &found) == 0 && found)
		snprintf(vm->user_name, sizeof(vm->user_name), "%s", found->pw_name);
}

/* Returns whether the process can be seen; *ret_forbidden: but not what it runs. */
static bool read_process(const struct wss_root *root, struct wss_vm *vm, bool *ret_forbidden)
{
	wss_cleanup(wss_root_close) struct wss_root proc = {.dirfd = -1};
	struct wss_procfile_stat stat = {.start_ticks = 0};
	char path[32];

	snprintf(path, sizeof(path), "proc/%d", vm->pid);
	proc.dirfd = wss_root_openat(root, path, O_PATH | O_DIRECTORY);
	if (vm->pid <= 0 || proc.dirfd < 0)
		return false;
	*ret_forbidden = wss_procfile_program(&proc, vm->program, sizeof(vm->program)) == -EACCES;
	wss_text_sanitize(vm->program);
	vm->program[strcspn(vm->program, " ")] = '\0';
	wss_procfile_read_stat(&proc, "stat", &stat);
	vm->start_ticks = stat.start_ticks;
	vm->user = (uid_t)-1;
	read_user(&proc, vm);
	wss_namers_read(root, &proc, vm);
	return true;
}

static bool shares_process(const struct wss_vm *vms, size_t n, const struct wss_vm *vm)
{
	for (size_t i = 0; i < n; i++)
		if (&vms[i] != vm && vms[i].pid == vm->pid)
			return true;
	return false;
}

/* What a manager says is not disputed by a process that has none. */
static bool is_disputed(const struct wss_vm *vms, size_t n, const struct wss_vm *vm)
{
	bool is_managed = vm->claims && vm->manager[0];

	for (size_t i = 0; i < n; i++)
		if (&vms[i] != vm && (!is_managed || (vms[i].claims && vms[i].manager[0])) &&
		    (!strcmp(vms[i].name, vm->name) ||
		     (vm->uuid[0] && !strcmp(vms[i].uuid, vm->uuid))))
			return true;
	return false;
}

/* Whom two claim to be is nobody. */
static int settle_names(struct wss_vm *vms, size_t n, struct wss_error *err)
{
	wss_auto_free bool *disputed = calloc(n + 1, sizeof(*disputed));

	if (!disputed)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		vms[i].shares_process = shares_process(vms, n, &vms[i]);
		disputed[i] = !vms[i].name[0] || is_disputed(vms, n, &vms[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (disputed[i]) {
			strcpy(vms[i].disputed, vms[i].name);
			give_own_name(&vms[i]);
		}
	return 0;
}

static int vm_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct wss_vm *)a)->name, ((const struct wss_vm *)b)->name);
}

int wss_vms_list(const struct wss_root *root, struct wss_vm **ret_vms, size_t *ret_n,
		 struct wss_error *err)
{
	wss_auto_free struct wss_kvm_entry *entries = NULL;
	wss_auto_free struct wss_vm *vms = NULL;
	size_t n_entries = 0, n = 0;
	bool forbidden = false;

	if (wss_kvm.probe(err) < 0 || wss_kvm.list(&entries, &n_entries, err) < 0)
		return -1;
	vms = calloc(n_entries + 1, sizeof(*vms));
	if (!vms)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n_entries; i++) {
		vms[n] = (struct wss_vm){
			.vm = entries[i].vm,
			.pid = entries[i].pid,
			.fd = entries[i].fd,
			.n_vcpus = entries[i].n_vcpus,
			.memory_bytes = entries[i].memory_bytes,
		};
		n += read_process(root, &vms[n], &forbidden);
		/* Else each guest would look like an unknown program's, and Proxmox VE's like intruders. */
		if (forbidden && !wss_privilege_has(WSS_CAP(CAP_SYS_PTRACE)))
			return wss_privilege_errno(
				err, WSS_ERR_FAILED, EACCES, WSS_CAP(CAP_SYS_PTRACE),
				"cannot read /proc/%d/exe, which says what runs a VM",
				entries[i].pid);
	}
	if (settle_names(vms, n, err) < 0)
		return -1;
	qsort(vms, n, sizeof(*vms), vm_compare_names);
	*ret_vms = wss_steal_ptr(vms);
	*ret_n = n;
	return 0;
}
