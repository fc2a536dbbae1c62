/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a second-level fault costs while windows are open: one of the guest's own window, and one of a guest that has
 * none. Each guest is a process of its own with a VM of one vCPU, whose program runs in ring 3, so that KVM without
 * hardware virtualisation (kvm_pvm) runs it natively. Two guests fault; all others only have a window each, opened by
 * what the service opens one with: the lock, the recorder, the zap.
 *
 * A round opens each number of windows in turn, and compares the faults with those of the same round without windows.
 * Without windows it is done twice: how far those two differ is the noise.
 */
#include <stdio.h>

#define EXIT_SKIP 77

#ifdef __x86_64__

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/guest.h"
#include "host/host.h"
#include "measure/control.h"
#include "measure/recorder.h"
#include "measure/tracker.h"

#define PAGE_BYTES 4096UL
/* KVM with shadow pages maps up to eight neighbours in advance (direct_pte_prefetch() in arch/x86/kvm/mmu/mmu.c). */
#define STRIDE_BYTES (8 * PAGE_BYTES)
#define FAULTS 2048UL
#define FIRST_BYTE (4UL << 20)
#define RAM_BYTES (FIRST_BYTE + FAULTS * STRIDE_BYTES)
#define SMALL_RAM_BYTES FIRST_BYTE
#define CODE_BYTE 0x10000UL
#define PASSES 5
#define ROUNDS 24
#define WINDOWS_MAX 500

/* Writes to rcx pages from rdi on, then tells. */
static const uint8_t program[] = {
	0x88, 0x07,				  /* next: mov %al, (%rdi) */
	0x48, 0x81, 0xc7, 0x00, 0x80, 0x00, 0x00, /*       add $0x8000, %rdi */
	0x48, 0xff, 0xc9,			  /*       dec %rcx */
	0x75, 0xf2,				  /*       jnz next */
	0xe6, 0x10,				  /*       out %al, $0x10 */
};

/* --- in the process of a guest --- */

struct vm {
	int vm, vcpu;
	struct kvm_run *run;
	uint8_t *ram;
};

/* Identity-maps the first GiB by 2 MiB, for ring 3. */
static void vm_fill(struct vm *vm)
{
	uint64_t *table = (uint64_t *)vm->ram;

	table[0x1000 / 8] = 0x2007;
	table[0x2000 / 8] = 0x3007;
	for (uint64_t i = 0; i < 512; i++)
		table[0x3000 / 8 + i] = i << 21 | 0xe7;
	memcpy(vm->ram + CODE_BYTE, program, sizeof(program));
}

static int vm_set_ring3(const struct vm *vm)
{
	struct kvm_segment code = {.limit = 0xffffffff,
				   .selector = 0x1b,
				   .type = 0xb,
				   .present = 1,
				   .dpl = 3,
				   .l = 1,
				   .s = 1,
				   .g = 1};
	struct kvm_segment data = {.limit = 0xffffffff,
				   .selector = 0x23,
				   .type = 3,
				   .present = 1,
				   .dpl = 3,
				   .db = 1,
				   .s = 1,
				   .g = 1};
	struct kvm_sregs sregs;

	if (ioctl(vm->vcpu, KVM_GET_SREGS, &sregs) < 0)
		return -1;
	sregs.cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	sregs.cr3 = 0x1000;
	sregs.cr4 = 0x20;   /* PAE */
	sregs.efer = 0xd01; /* NXE, LMA, LME, SCE */
	sregs.cs = code;
	sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
	return ioctl(vm->vcpu, KVM_SET_SREGS, &sregs);
}

/* Uses KVM's own CPUID, without which it takes no long mode. */
static int vm_set_cpuid(const struct vm *vm, int kvm)
{
	enum { ROOM = 256 };
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + ROOM * sizeof(cpuid->entries[0]));
	int r = -1;

	if (cpuid) {
		cpuid->nent = ROOM;
		r = ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid) < 0
			    ? -1
			    : ioctl(vm->vcpu, KVM_SET_CPUID2, cpuid);
	}
	free(cpuid);
	return r;
}

static int vm_open(struct vm *vm, size_t ram_bytes)
{
	struct kvm_userspace_memory_region slot = {.memory_size = ram_bytes};
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), size;

	if (kvm < 0 || (vm->vm = ioctl(kvm, KVM_CREATE_VM, 0)) < 0)
		return -1;
	vm->ram = mmap(NULL, ram_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vm->ram == MAP_FAILED || madvise(vm->ram, ram_bytes, MADV_NOHUGEPAGE) < 0)
		return -1;
	/* Resident where the program writes: the faults are KVM's, not the host's. */
	for (size_t i = FIRST_BYTE; i < ram_bytes; i += STRIDE_BYTES)
		vm->ram[i] = 1;
	vm_fill(vm);
	slot.userspace_addr = (uintptr_t)vm->ram;
	size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (ioctl(vm->vm, KVM_SET_USER_MEMORY_REGION, &slot) < 0 ||
	    (vm->vcpu = ioctl(vm->vm, KVM_CREATE_VCPU, 0)) < 0 || size < (int)sizeof(*vm->run))
		return -1;
	vm->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vm->vcpu, 0);
	if (vm->run == MAP_FAILED || vm_set_cpuid(vm, kvm) < 0 || vm_set_ring3(vm) < 0)
		return -1;
	close(kvm);
	return 0;
}

/* Returns the CPU time of one run of the program in ns; 0: it did not come to its end. */
static uint64_t vm_run(const struct vm *vm)
{
	struct kvm_regs regs = {
		.rip = CODE_BYTE, .rdi = FIRST_BYTE, .rcx = FAULTS, .rflags = 0x3002};
	uint64_t began_ns;
	int r;

	if (ioctl(vm->vcpu, KVM_SET_REGS, &regs) < 0)
		return 0;
	began_ns = wss_clock_thread_ns();
	do
		r = ioctl(vm->vcpu, KVM_RUN, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0 || vm->run->exit_reason != KVM_EXIT_IO)
		return 0;
	return wss_clock_thread_ns() - began_ns;
}

/* Says where its RAM is, 0 if it has no VM; then runs its program each time it is asked to. */
static _Noreturn void guest_main(int fd, size_t ram_bytes)
{
	struct vm vm = {0};
	uint64_t answer;
	char asked;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	answer = vm_open(&vm, ram_bytes) < 0 ? 0 : (uintptr_t)vm.ram;
	while (write(fd, &answer, sizeof(answer)) == sizeof(answer) && read(fd, &asked, 1) == 1)
		answer = vm_run(&vm);
	_exit(0);
}

/* --- the guests, from outside --- */

struct bench_guest {
	pid_t pid;
	int fd;
	struct wss_range range;
	struct wss_guest guest;
	struct wss_recorder *recorder; /* NULL: it has no window */
};

static struct wss_host host;
static struct bench_guest
	guests[WINDOWS_MAX + 1]; /* the first has a window first; the last has none, ever */
#define OWN (&guests[0])
#define STRANGER (&guests[WINDOWS_MAX])

static _Noreturn void fail(const char *what, const struct wss_error *error)
{
	fprintf(stderr, "bench-recorder: %s%s%s\n", what, error ? ": " : "",
		error ? error->text : "");
	exit(1);
}

static _Noreturn void skip(const char *why)
{
	printf("skipped: %s\n", why);
	exit(EXIT_SKIP);
}

static uint64_t guest_answer(const struct bench_guest *guest)
{
	uint64_t answer;

	return read(guest->fd, &answer, sizeof(answer)) == sizeof(answer) ? answer : 0;
}

static uint64_t guest_run(const struct bench_guest *guest)
{
	uint64_t ns = write(guest->fd, "", 1) == 1 ? guest_answer(guest) : 0;

	if (!ns)
		fail("a guest did not run its program to its end", NULL);
	return ns;
}

static void guest_start(struct bench_guest *guest, size_t ram_bytes)
{
	struct wss_error error = WSS_ERROR_INIT;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    (guest->pid = fork()) < 0)
		fail("cannot start a guest", NULL);
	if (!guest->pid) {
		close(fds[0]);
		guest_main(fds[1], ram_bytes);
	}
	close(fds[1]);
	guest->fd = fds[0];
	guest->range.start = guest_answer(guest);
	guest->range.end = guest->range.start + ram_bytes;
	if (!guest->range.start)
		skip("/dev/kvm cannot be used, or has no VMs of this kind");
	guest->guest.ram =
		(struct wss_ram){.n_ranges = 1, .ranges = &guest->range, .total_bytes = ram_bytes};
	guest->guest.ram_known = true;
	if (wss_process_hold(&host.root, guest->pid, NULL, &guest->guest.process, &error) < 0)
		fail("cannot hold a guest", &error);
}

/* --- windows --- */

static void zap(struct bench_guest *guest)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_span span;

	if (wss_control_clear(&guest->guest.process, '4', &span, &error) < 0)
		fail("cannot drop what KVM has mapped", &error);
}

static void window_open(struct bench_guest *guest)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_recorder_open(&host, &guest->guest, &guest->recorder, &error) < 0 ||
	    wss_recorder_start(guest->recorder, &error) < 0)
		fail("cannot open a window", &error);
	zap(guest);
	if (wss_recorder_walk(guest->recorder, &error) < 0)
		fail("cannot read KVM's tables", &error);
}

static void window_close(struct bench_guest *guest)
{
	wss_recorder_close(guest->recorder);
	guest->recorder = NULL;
}

/* The window of the guest itself has found what its program writes to. */
static void check_own_window(void)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_recorder_walk(OWN->recorder, &error) < 0)
		fail("cannot read KVM's tables", &error);
	if (wss_recorder_counts(OWN->recorder).touched_pages < FAULTS)
		fail("a window has not seen the pages that its guest has touched", NULL);
}

/* --- what a fault costs --- */

static const unsigned windows[] = {0, 0, 8, 64, 500};
#define N_LEVELS (sizeof(windows) / sizeof(windows[0]))

/* The fastest of several passes: what else the host does is no part of the cost. */
static double fault_ns(struct bench_guest *guest)
{
	uint64_t best_ns = UINT64_MAX, mapped_ns = UINT64_MAX, ns;

	for (int i = 0; i < PASSES; i++) {
		zap(guest);
		ns = guest_run(guest);
		best_ns = ns < best_ns ? ns : best_ns;
		ns = guest_run(guest);
		mapped_ns = ns < mapped_ns ? ns : mapped_ns;
	}
	return best_ns > mapped_ns ? (double)(best_ns - mapped_ns) / FAULTS : 0;
}

struct level {
	double own_ns[ROUNDS], stranger_ns[ROUNDS];
};

static void level_measure(unsigned n, double *ret_own_ns, double *ret_stranger_ns)
{
	for (unsigned i = 0; i < n; i++)
		window_open(&guests[i]);
	*ret_own_ns = fault_ns(OWN);
	*ret_stranger_ns = fault_ns(STRANGER);
	if (n)
		check_own_window();
	for (unsigned i = 0; i < n; i++)
		window_close(&guests[i]);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const double *values)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(*sorted), compare);
	return (sorted[ROUNDS / 2 - 1] + sorted[ROUNDS / 2]) / 2;
}

/* Median of the ratios to the first level, round by round. */
static double ratio(const double *values, const double *base)
{
	double ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ratios[i] = values[i] / base[i];
	return median(ratios);
}

static void print(const struct level *levels)
{
	printf("%d rounds; ns a fault, and as a ratio to no window in the same round (medians)\n",
	       ROUNDS);
	printf("%8s %10s %8s %12s %8s\n", "windows", "own", "ratio", "stranger's", "ratio");
	for (size_t i = 0; i < N_LEVELS; i++)
		printf("%8u %10.0f %8.3f %12.0f %8.3f%s\n", windows[i], median(levels[i].own_ns),
		       ratio(levels[i].own_ns, levels[0].own_ns), median(levels[i].stranger_ns),
		       ratio(levels[i].stranger_ns, levels[0].stranger_ns),
		       i == 1 ? "  (again: noise)" : "");
}

/* Each window has some descriptors. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(void)
{
	static struct level levels[N_LEVELS];
	struct wss_error error = WSS_ERROR_INIT;

	if (geteuid() != 0)
		skip("needs root");
	raise_descriptors();
	if (wss_host_open("/", &host, &error) < 0)
		fail("cannot read the host", &error);
	if (wss_recorder_probe(&host, NULL, &error) < 0)
		skip(error.text);
	/* The first decides whether there is anything to measure. */
	guest_start(OWN, RAM_BYTES);
	if (write(OWN->fd, "", 1) != 1 || !guest_answer(OWN))
		skip("this KVM runs no guest in ring 3");
	guest_start(STRANGER, RAM_BYTES);
	for (unsigned i = 1; i < WINDOWS_MAX; i++)
		guest_start(&guests[i], SMALL_RAM_BYTES);
	for (unsigned i = 0; i <= WINDOWS_MAX; i++)
		if (wss_control_take(&guests[i].guest.process, &error) < 0)
			fail("cannot lock a guest", &error);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < N_LEVELS; i++) {
			size_t level = (i + (size_t)round) % N_LEVELS;

			level_measure(windows[level], &levels[level].own_ns[round],
				      &levels[level].stranger_ns[round]);
		}
	print(levels);
	for (unsigned i = 0; i <= WINDOWS_MAX; i++) {
		wss_control_release(&guests[i].guest.process);
		wss_process_release(&guests[i].guest.process);
		kill(guests[i].pid, SIGKILL);
		waitpid(guests[i].pid, NULL, 0);
	}
	wss_host_close(&host);
	return 0;
}

#else

int main(void)
{
	printf("skipped: runs on x86-64 only\n");
	return EXIT_SKIP;
}

#endif
