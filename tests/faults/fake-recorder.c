/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A VM that needs neither KVM nor BPF: linked with virt-wss's own objects it makes a virt-wss whose
 * recorder works on a fake guest of 16 MiB (tests/qmp/). Each window maps 320 pages, half of them writable, 128 pages further
 * on than the window before. Prints "window" on standard output when each one is first looked at; all windows before
 * it must then be in the file.
 */
#include "fake-recorder.h"

#include <stdio.h>
#include <stdlib.h>

#include "kvm/kvm.h"
#include "qmp/fake-qmp.h"

#define WORD_PAGES 64
#define WORDS_TOUCHED 5
#define WORDS_SHIFT 2
#define FIRST_WORD 8
#define WORDS_MOVED 48
#define RAM_PAGES 4096

void (*fake_recorder_window)(void);

struct wss_kvm_vm {
	uint64_t windows;
	unsigned asked; /* for the slots, since the last walk */
};

static const char *fake_version(void)
{
	return "fake";
}

static int fake_probe(struct wss_error *err)
{
	(void)err;
	return 0;
}

static void fake_close(struct wss_kvm_vm *vm)
{
	free(vm);
}

static int fake_open(pid_t pid, uint64_t id, struct wss_kvm_vm **ret_vm, struct wss_error *err)
{
	(void)pid;
	(void)id;
	*ret_vm = calloc(1, sizeof(**ret_vm));
	return *ret_vm ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static void fake_begin(struct wss_kvm_vm *vm)
{
	vm->windows++;
	if (fake_recorder_window) {
		fake_recorder_window();
	} else {
		puts("window");
		fflush(stdout);
	}
}

/* Called as a window begins, and before each walk: twice in turn before the first walk of a window. */
static int fake_slots(const struct wss_kvm_vm *const_vm, struct wss_kvm_slots *ret_slots,
		      struct wss_error *err)
{
	struct wss_kvm_vm *vm = (struct wss_kvm_vm *)const_vm;
	struct wss_kvm_slot_record *ram = malloc(sizeof(*ram));

	if (!ram)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*ram = (struct wss_kvm_slot_record){.n_pages = RAM_PAGES, .host_address = FAKE_RAM_ADDRESS};
	*ret_slots = (struct wss_kvm_slots){.n_slots = 1, .slots = ram};
	vm->asked++;
	return 0;
}

static int fake_count(const struct wss_kvm_vm *vm, struct wss_kvm_counters *ret_counters,
		      struct wss_error *err)
{
	(void)vm;
	(void)ret_counters;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no counters");
}

static int fake_walk(const struct wss_kvm_vm *const_vm, const struct wss_kvm_slots *slots,
		     enum wss_kvm_accessed accessed, wss_kvm_leaf_fn visit, void *opaque,
		     struct wss_error *err)
{
	struct wss_kvm_vm *vm = (struct wss_kvm_vm *)const_vm;
	uint64_t first;

	(void)slots;
	(void)accessed;
	(void)err;
	if (vm->asked >= 2)
		fake_begin(vm);
	vm->asked = 0;
	first = FIRST_WORD + (vm->windows - 1) * WORDS_SHIFT % WORDS_MOVED;
	for (uint64_t i = first; i < first + WORDS_TOUCHED; i++) {
		struct wss_kvm_leaf_record leaf = {
			.first_page = i * WORD_PAGES,
			.n_pages = WORD_PAGES,
			.mapped = UINT64_MAX,
			.writable = 0x5555555555555555,
			.accessed = UINT64_MAX,
		};

		visit(&leaf, opaque);
	}
	return 0;
}

const struct wss_kvm_ops wss_kvm = {
	.version = fake_version,
	.probe = fake_probe,
	.open = fake_open,
	.slots = fake_slots,
	.count = fake_count,
	.walk = fake_walk,
	.close = fake_close,
};
