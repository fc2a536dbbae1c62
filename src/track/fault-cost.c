/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/fault-cost.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/child.h"
#include "base/clock.h"

#ifdef __x86_64__

#define RAM_BYTES (1UL << 20)
#define PAGE_BYTES 4096
/* The first page is the program's, the last one is behind the program's end. */
#define PAGES_WRITTEN (RAM_BYTES / PAGE_BYTES - 2)
/* The fastest of several: caches that others have filled are no property of the host. */
#define PASSES 5
/*
 * With its pages mapped, the program takes one exit, and 254 more without them. A run that costs
 * less than twice as much has not faulted: where the hardware does not run real mode, KVM emulates
 * the program, and writes without the second-level mappings (emulate_invalid_guest_state).
 */
#define LEAST_RATIO 2
#define TIMEOUT_NS WSS_NS_PER_S

/* In real mode: a byte is written to each page from the second on, then the vCPU halts. */
static const uint8_t program[] = {
	0xb8, 0x00, 0x01, /*       mov $0x100, %ax: 4 KiB in units of 16 bytes */
	0x8e, 0xd8,	  /* next: mov %ax, %ds */
	0xa2, 0x00, 0x00, /*       mov %al, (0) */
	0x05, 0x00, 0x01, /*       add $0x100, %ax */
	0x3d, 0x00, 0xff, /*       cmp $0xff00, %ax */
	0x72, 0xf3,	  /*       jb next */
	0xf4,		  /*       hlt */
};

struct machine {
	int vm, vcpu;
	struct kvm_run *run;
	struct kvm_userspace_memory_region ram;
	struct kvm_sregs sregs;
	struct kvm_regs regs;
};

enum outcome { OUTCOME_NO_KVM, OUTCOME_FAILED, OUTCOME_MEASURED };

struct result {
	enum outcome outcome;
	uint64_t mapped_ns, dropped_ns; /* of a whole run of the program */
};

static int machine_add_ram(struct machine *machine)
{
	uint8_t *ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (ram == MAP_FAILED || madvise(ram, RAM_BYTES, MADV_NOHUGEPAGE) < 0)
		return -1;
	/* All of it is resident: what is measured are KVM's faults, not the host's. */
	memset(ram, program[sizeof(program) - 1], RAM_BYTES);
	memcpy(ram, program, sizeof(program));
	machine->ram = (struct kvm_userspace_memory_region){
		.memory_size = RAM_BYTES,
		.userspace_addr = (uintptr_t)ram,
	};
	return ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &machine->ram);
}

static int machine_add_vcpu(struct machine *machine, int kvm)
{
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	machine->vcpu = ioctl(machine->vm, KVM_CREATE_VCPU, 0);
	if (size < (int)sizeof(*machine->run) || machine->vcpu < 0)
		return -1;
	machine->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, machine->vcpu,
			    0);
	if (machine->run == MAP_FAILED || ioctl(machine->vcpu, KVM_GET_SREGS, &machine->sregs) < 0 ||
	    ioctl(machine->vcpu, KVM_GET_REGS, &machine->regs) < 0)
		return -1;
	machine->sregs.cs.base = 0;
	machine->sregs.cs.selector = 0;
	machine->regs.rip = 0;
	machine->regs.rflags = 2;
	return 0;
}

static int machine_drop_entries(struct machine *machine)
{
	struct kvm_userspace_memory_region none = machine->ram;

	none.memory_size = 0;
	return ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &none) < 0 ||
			       ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &machine->ram) < 0
		       ? -1
		       : 0;
}

/* On a busy host the thread waits for a CPU in every run, which is no part of the cost of a fault. */
static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * WSS_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Runs the program once. Returns the CPU time that it took in ns, or 0 if it did not come to its end. */
static uint64_t machine_run(struct machine *machine)
{
	uint64_t start_ns;

	if (ioctl(machine->vcpu, KVM_SET_SREGS, &machine->sregs) < 0 ||
	    ioctl(machine->vcpu, KVM_SET_REGS, &machine->regs) < 0)
		return 0;
	start_ns = thread_cpu_ns();
	if (ioctl(machine->vcpu, KVM_RUN, 0) < 0 || machine->run->exit_reason != KVM_EXIT_HLT)
		return 0;
	return thread_cpu_ns() - start_ns;
}

static int machine_measure(struct machine *machine, struct result *result)
{
	result->dropped_ns = result->mapped_ns = UINT64_MAX;
	for (int i = 0; i < PASSES; i++) {
		uint64_t dropped_ns, mapped_ns;

		if (machine_drop_entries(machine) < 0 || !(dropped_ns = machine_run(machine)) ||
		    !(mapped_ns = machine_run(machine)))
			return -1;
		if (dropped_ns < result->dropped_ns)
			result->dropped_ns = dropped_ns;
		if (mapped_ns < result->mapped_ns)
			result->mapped_ns = mapped_ns;
	}
	return 0;
}

/* The child's end closes all that it has opened. */
static void measure_child(void *opaque)
{
	struct result *result = opaque;
	struct machine machine = { 0 };
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	result->outcome = OUTCOME_NO_KVM;
	if (kvm < 0 || (machine.vm = ioctl(kvm, KVM_CREATE_VM, 0)) < 0)
		return;
	result->outcome = OUTCOME_FAILED;
	if (machine_add_ram(&machine) == 0 && machine_add_vcpu(&machine, kvm) == 0 &&
	    machine_measure(&machine, result) == 0)
		result->outcome = OUTCOME_MEASURED;
}

int wss_fault_cost_measure(double *ret_ns, struct wss_error *err)
{
	struct result result = { .outcome = OUTCOME_NO_KVM };

	if (wss_child_run(measure_child, &result, sizeof(result), TIMEOUT_NS, err) < 0)
		return wss_error_prefix(err, "the cost of a fault could not be measured");
	if (result.outcome == OUTCOME_NO_KVM)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the cost of a fault could not be measured: /dev/kvm cannot be used");
	if (result.outcome == OUTCOME_FAILED)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the cost of a fault could not be measured: the test guest did not run");
	if (result.dropped_ns / LEAST_RATIO < result.mapped_ns)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the cost of a fault could not be measured: KVM emulates the test guest");
	*ret_ns = (double)(result.dropped_ns - result.mapped_ns) / PAGES_WRITTEN;
	return 0;
}

#else

int wss_fault_cost_measure(double *ret_ns, struct wss_error *err)
{
	(void)ret_ns;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "the cost of a fault can be measured on x86-64 only");
}

#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static double cost_ns = WSS_FAULT_COST_FALLBACK_NS;

static void measure_once(void)
{
	struct wss_error unused = WSS_ERROR_INIT;

	wss_fault_cost_measure(&cost_ns, &unused);
}

double wss_fault_cost_ns(void)
{
	pthread_once(&once, measure_once);
	return cost_ns;
}
