/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kvm/kvm.h"

/* Replaces vm-bpf.c if configure did not find its prerequisites. */

static const char *none_version(void)
{
	return "not built in: " WSS_WHY_NO_BPF;
}

static int none_probe(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "BPF is not built in (%s)", WSS_WHY_NO_BPF);
}

static int none_list(struct wss_kvm_entry **ret_entries, size_t *ret_n, struct wss_error *err)
{
	(void)ret_entries;
	(void)ret_n;
	return none_probe(err);
}

static int none_open(pid_t pid, uint64_t vm, struct wss_kvm_vm **ret_vm, struct wss_error *err)
{
	(void)pid;
	(void)vm;
	(void)ret_vm;
	return none_probe(err);
}

static void none_close(struct wss_kvm_vm *vm)
{
	(void)vm;
}

/* Nothing is opened, so nothing is read. */
const struct wss_kvm_ops wss_kvm = {
	.version = none_version,
	.probe = none_probe,
	.list = none_list,
	.open = none_open,
	.close = none_close,
};
