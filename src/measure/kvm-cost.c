/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/kvm-cost.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

#ifdef __x86_64__

#define PAGE_BYTES 4096
/* What the program writes to. Its addresses are below 1 GiB, which one table of large pages reaches. */
#define PAGES 512
#define PAGES_AT (16UL << 20)
/* The program, and its page tables of level 4, 3 and 2. */
#define CODE_AT 0x1000UL
#define TABLES_AT 0x2000UL
#define LOW_BYTES (5 * PAGE_BYTES)
#define ENTRY_FLAGS 7UL /* present, writable, for ring 3 */
#define LARGE_PAGE 0x80UL
/* Further apart than the pages that KVM maps together. */
#define STRIDE 8
/* The fastest of several: caches that others have filled are no property of the host. */
#define PASSES 5
#define CPUID_ENTRIES 256 /* as many as KVM takes */
#define TIMEOUT_NS WSS_NS_PER_S

/* rdi: first page; rsi: distance to the next; rcx: number of pages. */
static const uint8_t program[] = {
	0xfe, 0x07,	  /* next: incb (%rdi) */
	0x48, 0x01, 0xf7, /*       add %rsi, %rdi */
	0x48, 0xff, 0xc9, /*       dec %rcx */
	0x75, 0xf6,	  /*       jnz next */
	0xe6, 0x80,	  /*       out %al, $0x80 */
};

struct machine {
	int kvm, vm, vcpu, clear_refs;
	struct kvm_run *run;
	struct kvm_sregs sregs;
};

enum outcome { OUTCOME_NO_KVM, OUTCOME_FAILED, OUTCOME_MEASURED };

struct result {
	enum outcome outcome;
	uint64_t fault_ns,
		mapped_ns; /* of a run over every eighth page, with all of them dropped and mapped */
	uint64_t full_ns, empty_ns; /* of a clear_refs with all pages mapped by KVM, and none */
};

/* All of it is resident: what is measured are KVM's faults, not the host's. */
static uint8_t *machine_add_memory(const struct machine *machine, uint32_t slot, uint64_t address,
				   size_t bytes)
{
	uint8_t *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = address,
		.memory_size = bytes,
		.userspace_addr = (uintptr_t)memory,
	};

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) < 0)
		return NULL;
	memset(memory, 1, bytes);
	return ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0 ? NULL : memory;
}

static int machine_add_ram(const struct machine *machine)
{
	uint8_t *low = machine_add_memory(machine, 0, 0, LOW_BYTES);
	uint64_t *tables;

	if (!low || !machine_add_memory(machine, 1, PAGES_AT, PAGES * PAGE_BYTES))
		return -1;
	memset(low, 0, LOW_BYTES);
	memcpy(low + CODE_AT, program, sizeof(program));
	tables = (uint64_t *)(void *)(low + TABLES_AT);
	tables[0] = (TABLES_AT + PAGE_BYTES) | ENTRY_FLAGS;
	tables[512] = (TABLES_AT + 2 * PAGE_BYTES) | ENTRY_FLAGS;
	for (uint64_t i = 0; i < 512; i++)
		tables[1024 + i] = i << 21 | LARGE_PAGE | ENTRY_FLAGS;
	return 0;
}

/* Long mode, ring 3 (Intel SDM volume 3, 4.5 and 26.3: what the registers must be). */
static int machine_set_vcpu(struct machine *machine)
{
	static _Alignas(struct kvm_cpuid2) uint8_t
		memory[sizeof(struct kvm_cpuid2) + CPUID_ENTRIES * sizeof(struct kvm_cpuid_entry2)];
	struct kvm_cpuid2 *cpuid = (void *)memory;
	struct kvm_sregs *sregs = &machine->sregs;

	cpuid->nent = CPUID_ENTRIES;
	if (ioctl(machine->kvm, KVM_GET_SUPPORTED_CPUID, cpuid) < 0 ||
	    ioctl(machine->vcpu, KVM_SET_CPUID2, cpuid) < 0 ||
	    ioctl(machine->vcpu, KVM_GET_SREGS, sregs) < 0)
		return -1;
	sregs->cs = (struct kvm_segment){.limit = UINT32_MAX,
					 .selector = 0x33,
					 .type = 11,
					 .present = 1,
					 .dpl = 3,
					 .s = 1,
					 .l = 1,
					 .g = 1};
	sregs->ss = (struct kvm_segment){.limit = UINT32_MAX,
					 .selector = 0x2b,
					 .type = 3,
					 .present = 1,
					 .dpl = 3,
					 .db = 1,
					 .s = 1,
					 .g = 1};
	sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss;
	sregs->cr3 = TABLES_AT;
	sregs->cr4 = 0x20;	 /* PAE */
	sregs->cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	sregs->efer = 0x500;	 /* LMA, LME */
	return 0;
}

static int machine_add_vcpu(struct machine *machine)
{
	int size = ioctl(machine->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	machine->vcpu = ioctl(machine->vm, KVM_CREATE_VCPU, 0);
	if (size < (int)sizeof(*machine->run) || machine->vcpu < 0)
		return -1;
	machine->run =
		mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, machine->vcpu, 0);
	return machine->run == MAP_FAILED ? -1 : machine_set_vcpu(machine);
}

/*
 * Runs the program over every so many pages. Returns the CPU time that it took in ns, or 0 if it did not come to its end:
 * on a busy host the thread waits for a CPU at times, which is no part of any cost.
 */
static uint64_t machine_run(const struct machine *machine, uint64_t stride)
{
	/* With I/O privileges for ring 3. */
	const struct kvm_regs regs = {.rip = CODE_AT,
				      .rflags = 0x3002,
				      .rdi = PAGES_AT,
				      .rsi = stride * PAGE_BYTES,
				      .rcx = PAGES / stride};
	uint64_t start_ns;

	/* Without these it would first complete the output. */
	machine->run->immediate_exit = 1;
	ioctl(machine->vcpu, KVM_RUN, 0);
	machine->run->immediate_exit = 0;
	if (ioctl(machine->vcpu, KVM_SET_SREGS, &machine->sregs) < 0 ||
	    ioctl(machine->vcpu, KVM_SET_REGS, &regs) < 0)
		return 0;
	start_ns = wss_clock_thread_ns();
	if (ioctl(machine->vcpu, KVM_RUN, 0) < 0 || machine->run->exit_reason != KVM_EXIT_IO)
		return 0;
	return wss_clock_thread_ns() - start_ns;
}

static uint64_t machine_clear_refs(const struct machine *machine)
{
	uint64_t start_ns = wss_clock_thread_ns();

	return write(machine->clear_refs, "4\n", 2) == 2 ? wss_clock_thread_ns() - start_ns : 0;
}

/* Keeps the smaller of both. Returns whether there is a figure. */
static bool keep_least(uint64_t *least_ns, uint64_t ns)
{
	if (ns < *least_ns)
		*least_ns = ns;
	return ns != 0;
}

static int machine_measure(const struct machine *machine, struct result *result)
{
	result->fault_ns = result->mapped_ns = result->full_ns = result->empty_ns = UINT64_MAX;
	for (int i = 0; i < PASSES; i++) {
		if (!machine_run(machine, 1) ||
		    !keep_least(&result->full_ns, machine_clear_refs(machine)) ||
		    !keep_least(&result->empty_ns, machine_clear_refs(machine)) ||
		    !keep_least(&result->fault_ns, machine_run(machine, STRIDE)) ||
		    !keep_least(&result->mapped_ns, machine_run(machine, STRIDE)))
			return -1;
	}
	return 0;
}

/* The child's end closes all that it has opened. */
static void measure_child(void *opaque)
{
	struct result *result = opaque;
	struct machine machine = {.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC),
				  .clear_refs = wss_child_open_clear_refs()};

	result->outcome = OUTCOME_NO_KVM;
	if (machine.kvm < 0 || (machine.vm = ioctl(machine.kvm, KVM_CREATE_VM, 0)) < 0)
		return;
	result->outcome = OUTCOME_FAILED;
	if (machine_add_ram(&machine) == 0 && machine_add_vcpu(&machine) == 0 &&
	    machine_measure(&machine, result) == 0)
		result->outcome = OUTCOME_MEASURED;
}

int wss_kvm_cost_measure(struct wss_kvm_cost *ret_cost, struct wss_error *err)
{
	struct result result = {.outcome = OUTCOME_NO_KVM};

	if (wss_child_run(measure_child, &result, sizeof(result), TIMEOUT_NS, err) < 0)
		return wss_error_prefix(err, "what KVM's mappings cost could not be measured");
	if (result.outcome == OUTCOME_NO_KVM)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"what KVM's mappings cost could not be measured: /dev/kvm cannot be used");
	/* Where nothing is dropped, or nothing comes back, the guest did not do what it is made for. */
	if (result.outcome == OUTCOME_FAILED || result.fault_ns <= result.mapped_ns ||
	    result.full_ns <= result.empty_ns)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"what KVM's mappings cost could not be measured: the test guest did not run");
	*ret_cost = (struct wss_kvm_cost){
		.fault_ns = (double)(result.fault_ns - result.mapped_ns) / (PAGES / STRIDE),
		.entry_ns = (double)(result.full_ns - result.empty_ns) / PAGES,
	};
	return 0;
}

#else

int wss_kvm_cost_measure(struct wss_kvm_cost *ret_cost, struct wss_error *err)
{
	(void)ret_cost;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "what KVM's mappings cost can be measured on x86-64 only");
}

#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wss_kvm_cost measured = WSS_KVM_COST_FALLBACK;

static void measure_once(void)
{
	struct wss_error unused = WSS_ERROR_INIT;

	wss_kvm_cost_measure(&measured, &unused);
}

const struct wss_kvm_cost *wss_kvm_cost(void)
{
	pthread_once(&once, measure_once);
	return &measured;
}
