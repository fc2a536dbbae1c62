/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/selftest.h"

#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fault.h"

#define HUGE_PAGE (2UL << 20)
#define TIMEOUT_NS (5 * WSS_NS_PER_S)

enum outcome { OUTCOME_CANNOT, OUTCOME_SAFE, OUTCOME_LOST };

struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array;
	struct io_uring_sqe *sqes;
};

static int ring_open(struct ring *ring)
{
	struct io_uring_params p = {0};
	char *sq;

	ring->fd = (int)syscall(__NR_io_uring_setup, 2, &p);
	if (ring->fd < 0)
		return -1;
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned), PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
			  MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || ring->sqes == MAP_FAILED)
		return -1;
	ring->sq_tail = (unsigned *)(sq + p.sq_off.tail);
	ring->sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
	ring->sq_array = (unsigned *)(sq + p.sq_off.array);
	return 0;
}

/* Makes the kernel write len bytes of the pinned buffer to fd, reading them as a device would. */
static int ring_write_fixed(struct ring *ring, int fd, const void *buffer, unsigned len)
{
	unsigned tail = *ring->sq_tail, index = tail & *ring->sq_mask;

	memset(&ring->sqes[index], 0, sizeof(ring->sqes[index]));
	ring->sqes[index].opcode = IORING_OP_WRITE_FIXED;
	ring->sqes[index].fd = fd;
	ring->sqes[index].addr = (uintptr_t)buffer;
	ring->sqes[index].len = len;
	ring->sq_array[index] = index;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	return syscall(__NR_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1
		       ? 0
		       : -1;
}

static int clear_own_soft_dirty(void)
{
	int fd = wss_child_open_clear_refs();
	ssize_t n = fd < 0 ? -1 : write(fd, "4\n", 2);

	if (fd >= 0)
		close(fd);
	return n == 2 ? 0 : -1;
}

/* page: private memory of at least 4096 bytes that has been written. */
static enum outcome test_page(volatile char *page)
{
	struct iovec iov = {.iov_base = (void *)page, .iov_len = 4096};
	struct ring ring;
	char seen[8];
	int pipe_fds[2];

	/*
	 * After the children of a fork have exited, the page becomes exclusive again only when
	 * written.
	 */
	page[0] = 'a';
	if (pipe(pipe_fds) < 0 || ring_open(&ring) < 0 ||
	    syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &iov, 1) < 0 ||
	    clear_own_soft_dirty() < 0)
		return OUTCOME_CANNOT;
	page[0] = 'b';
	if (ring_write_fixed(&ring, pipe_fds[1], (const void *)page, sizeof(seen)) < 0 ||
	    read(pipe_fds[0], seen, sizeof(seen)) != sizeof(seen))
		return OUTCOME_CANNOT;
	close(ring.fd);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return seen[0] == 'b' ? OUTCOME_SAFE : OUTCOME_LOST;
}

static void child_test(void *result)
{
	enum outcome *outcome = result;
	char *area = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	char *huge = (char *)(((uintptr_t)area + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	char *small = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*outcome = OUTCOME_CANNOT;
	if (area == MAP_FAILED || small == MAP_FAILED)
		return;
	*outcome = test_page(small);
	if (*outcome != OUTCOME_SAFE)
		return;
	/* If the host provides no huge page, this tests another small one. */
	madvise(huge, HUGE_PAGE, MADV_HUGEPAGE);
	memset(huge, 'x', HUGE_PAGE);
	*outcome = test_page(huge);
}

int wss_selftest_run(struct wss_error *err)
{
	enum outcome outcome = OUTCOME_CANNOT;
	struct wss_error why = WSS_ERROR_INIT;

	if (wss_fault("selftest-fails"))
		outcome = OUTCOME_LOST;
	else if (!wss_fault("selftest-cannot") &&
		 wss_child_run(child_test, &outcome, sizeof(outcome), TIMEOUT_NS, &why) < 0)
		outcome = OUTCOME_CANNOT;
	if (outcome == OUTCOME_LOST)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the self-test lost a write to pinned memory");
	if (outcome == OUTCOME_CANNOT)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED, "the self-test cannot be run here (io_uring, %s)",
			why.text[0] ? why.text : "soft-dirty tracking or a pipe is missing");
	return 0;
}

/*
 * Whether clear_refs never write-protects the guest's RAM, or writes never copy it, because it
 * is shared or hugetlb. Looks at the mappings themselves, not at the configuration.
 */
static bool never_copied(const struct wss_guest *guest)
{
	struct wss_smaps smaps;

	if (!guest || !guest->ram_known)
		return false;
	return guest->ram.all_shared ||
	       (wss_smaps_read(&guest->process, &guest->ram, &smaps, NULL) == 0 &&
		smaps.guest.all_hugetlb);
}

int wss_selftest_zap_safe(const struct wss_host *host, const struct wss_guest *guest,
			  struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;

	if (host->version >= WSS_KERNEL_VERSION(5, 19) || host->soft_dirty == WSS_NO ||
	    never_copied(guest) || wss_selftest_run(&why) == 0)
		return 0;
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"kernel %s tracks soft-dirty pages and may lose writes of devices when "
		"guest memory is unmapped: %s; a guest with shared (memfd) or hugetlb RAM can be measured",
		host->release[0] ? host->release : "(unknown)", why.text);
}
