/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A VMM that is not QEMU: it runs VMs on the API of KVM alone, each of a single program in ring 3 that writes to each of
 * its pages in turn. Usage: small-vmm PAGES... [fork | exec PAGES... | OTHERS...] - a VM for each number of pages, all in this
 * process; with fork a child has their descriptors, too; with exec SIGUSR2 lets it execute itself with those arguments. Prints
 * "ready" once each VM has written to all of its pages.
 *
 * The memory of a VM: a slot of 1 MiB at 0 for the program and its page tables, and a slot of its pages at 4 GiB, in 4 KiB
 * pages of the host. Addresses are the same in the guest as in its memory.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096
#define LOW_BYTES (1 << 20)
#define PAGES_AT (4ULL << 30)
#define CODE_AT 0x1000
#define TABLES_AT 0x2000 /* the first of four: level 4, level 3, and two of level 2 */
#define ENTRY_FLAGS 7	 /* present, writable, for ring 3 */
#define LARGE 0x80
#define VMS_MAX 8

struct vm {
	size_t pages;
	uint8_t *low, *ram;
	int cpu;
	struct kvm_run *run;
};

static int kvm;
static size_t run_bytes;

static const uint8_t program[] = {
	0x48, 0x89, 0xf8,		    /* start: mov %rdi, %rax */
	0x48, 0x89, 0xca,		    /* mov %rcx, %rdx */
	0xfe, 0x00,			    /* next: incb (%rax) */
	0x48, 0x05, 0x00, 0x10, 0x00, 0x00, /* add $4096, %rax */
	0x48, 0xff, 0xca,		    /* dec %rdx */
	0x75, 0xf3,			    /* jnz next */
	0xeb, 0xeb,			    /* jmp start */
};

static void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	madvise(at, bytes, MADV_NOHUGEPAGE);
	return at;
}

static void add_slot(int vm, uint32_t slot, uint64_t guest, size_t bytes, void *host)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = guest,
		.memory_size = bytes,
		.userspace_addr = (uint64_t)(uintptr_t)host,
	};

	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		err(1, "KVM_SET_USER_MEMORY_REGION");
}

static void make_tables(struct vm *vm)
{
	uint64_t *level4 = (uint64_t *)(vm->low + TABLES_AT), *level3 = level4 + 512,
		 *low = level3 + 512, *high = low + 512;

	level4[0] = (TABLES_AT + PAGE) | ENTRY_FLAGS;
	level3[0] = (TABLES_AT + 2 * PAGE) | ENTRY_FLAGS;
	level3[4] = (TABLES_AT + 3 * PAGE) | ENTRY_FLAGS;
	low[0] = LARGE | ENTRY_FLAGS;
	for (uint64_t i = 0; i < 512; i++)
		high[i] = (PAGES_AT + (i << 21)) | LARGE | ENTRY_FLAGS;
}

static void set_cpu(const struct vm *vm)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entries[128];
	} cpuid = {.head = {.nent = 128}};
	struct kvm_segment code = {.limit = 0xffffffff,
				   .selector = 0x33,
				   .type = 11,
				   .present = 1,
				   .dpl = 3,
				   .s = 1,
				   .l = 1,
				   .g = 1};
	struct kvm_segment data = {.limit = 0xffffffff,
				   .selector = 0x2b,
				   .type = 3,
				   .present = 1,
				   .dpl = 3,
				   .db = 1,
				   .s = 1,
				   .g = 1};
	struct kvm_regs regs = {
		.rip = CODE_AT, .rflags = 2, .rdi = PAGES_AT, .rcx = vm->pages, .rsp = LOW_BYTES};
	struct kvm_sregs sregs;

	if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid) < 0 ||
	    ioctl(vm->cpu, KVM_SET_CPUID2, &cpuid) < 0 || ioctl(vm->cpu, KVM_GET_SREGS, &sregs) < 0)
		err(1, "KVM_SET_CPUID2");
	sregs.cs = code;
	sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
	sregs.cr3 = TABLES_AT;
	sregs.cr4 = 0x20;	/* PAE */
	sregs.cr0 = 0x80050033; /* PG AM WP NE ET MP PE */
	sregs.efer = 0x500;	/* LMA LME */
	if (ioctl(vm->cpu, KVM_SET_SREGS, &sregs) < 0 || ioctl(vm->cpu, KVM_SET_REGS, &regs) < 0)
		err(1, "KVM_SET_SREGS");
}

static void make_vm(struct vm *vm, size_t pages)
{
	int fd = ioctl(kvm, KVM_CREATE_VM, 0);

	if (fd < 0)
		err(1, "KVM_CREATE_VM");
	vm->pages = pages;
	vm->low = memory(LOW_BYTES);
	vm->ram = memory(pages * PAGE);
	memcpy(vm->low + CODE_AT, program, sizeof(program));
	make_tables(vm);
	add_slot(fd, 0, 0, LOW_BYTES, vm->low);
	add_slot(fd, 1, PAGES_AT, pages * PAGE, vm->ram);
	vm->cpu = ioctl(fd, KVM_CREATE_VCPU, 0);
	if (vm->cpu < 0)
		err(1, "KVM_CREATE_VCPU");
	vm->run = mmap(NULL, run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vm->cpu, 0);
	if (vm->run == MAP_FAILED)
		err(1, "mmap");
	set_cpu(vm);
}

/* Runs for a part of the time only, between the ticks of a timer. */
static void *run_vm(void *opaque)
{
	struct vm *vm = opaque;

	prctl(PR_SET_NAME, "vcpu");
	for (;;) {
		if (ioctl(vm->cpu, KVM_RUN, 0) < 0 && errno != EINTR && errno != EAGAIN)
			err(1, "KVM_RUN");
		if (vm->run->exit_reason != KVM_EXIT_INTR)
			errx(1, "the guest ended: KVM_EXIT %u", vm->run->exit_reason);
		usleep(5000);
	}
	return NULL;
}

static volatile sig_atomic_t is_over;

static void tick(int number)
{
	is_over |= number == SIGUSR2;
}

static void tick_all(const pthread_t *threads, size_t n)
{
	usleep(10000);
	for (size_t i = 0; i < n; i++)
		pthread_kill(threads[i], SIGUSR1);
}

static void wait_until_written(const struct vm *vm, pthread_t thread)
{
	while (!*(volatile uint8_t *)(vm->ram + (vm->pages - 1) * PAGE))
		tick_all(&thread, 1);
}

int main(int argc, char **argv)
{
	static struct vm vms[VMS_MAX];
	pthread_t threads[VMS_MAX];
	char **next = NULL;
	size_t n = 0;

	kvm = open("/dev/kvm", O_RDWR);
	if (kvm < 0)
		err(1, "/dev/kvm");
	run_bytes = (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	for (int i = 1; i < argc && n < VMS_MAX && atoi(argv[i]) > 0; i++)
		make_vm(&vms[n++], (size_t)atoi(argv[i]));
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "exec"))
			next = &argv[i];
		if (!strcmp(argv[i], "fork") && fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = tick}, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = tick}, NULL);
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run_vm, &vms[i]))
			errx(1, "pthread_create");
	for (size_t i = 0; i < n; i++)
		wait_until_written(&vms[i], threads[i]);
	puts("ready");
	fflush(stdout);
	while (!is_over || !next)
		tick_all(threads, n);
	next[0] = argv[0];
	execv("/proc/self/exe", next);
	err(1, "execv");
}
