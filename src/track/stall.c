/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/stall.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

#define CALIBRATION_BYTES (16UL << 20)
#define CALIBRATION_PAGES (CALIBRATION_BYTES / 4096)
/*
 * Used if the calibration fails. Deliberately several times the 2 ns per entry (0.5 ms per GiB
 * of 4 KiB pages) that a walk takes on common hardware.
 */
#define FALLBACK_ENTRY_NS 10.0
/* No hardware walks faster: a smaller figure means that the calibration was disturbed. */
#define LEAST_ENTRY_NS 1.0
/* The fixed part: taking the lock, opening and closing the notifier, flushing TLBs. */
#define BASE_NS 200000ULL

/* Returns the time of one clear_refs over ourselves in ns; 0 if it failed. */
static uint64_t timed_clear(int fd)
{
	uint64_t start = wss_clock_now_ns();

	return write(fd, "4\n", 2) == 2 ? wss_clock_now_ns() - start : 0;
}

static void calibrate_child(void *result)
{
	double *entry_ns = result;
	uint64_t empty, full, again;
	int fd = wss_child_open_clear_refs();
	char *area = mmap(NULL, CALIBRATION_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*entry_ns = 0;
	if (fd < 0 || area == MAP_FAILED || madvise(area, CALIBRATION_BYTES, MADV_NOHUGEPAGE) < 0)
		return;
	timed_clear(fd);
	empty = timed_clear(fd);
	for (size_t i = 0; i < CALIBRATION_BYTES; i += 4096)
		*(volatile char *)(area + i) = 1;
	full = timed_clear(fd);
	again = timed_clear(fd);
	/* Keeps the faster of two runs, because the other may have had to wait for the CPU. */
	if (again && again < full)
		full = again;
	if (full > empty)
		*entry_ns = (double)(full - empty) / (double)CALIBRATION_PAGES;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static double measured_entry_ns;

static void stall_calibrate(void)
{
	double entry_ns = 0;

	wss_child_run(calibrate_child, &entry_ns, sizeof(entry_ns), WSS_NS_PER_S, NULL);
	if (entry_ns <= 0)
		entry_ns = FALLBACK_ENTRY_NS;
	measured_entry_ns = entry_ns > LEAST_ENTRY_NS ? entry_ns : LEAST_ENTRY_NS;
}

double wss_stall_entry_ns(void)
{
	pthread_once(&once, stall_calibrate);
	return measured_entry_ns;
}

/*
 * QEMU starts the log by clearing it for all of RAM, in one loop under mmu_lock (Linux 6.1,
 * virt/kvm/kvm_main.c, kvm_clear_dirty_log_protect). An iteration handles 64 pages and walks
 * KVM's tables a few times. Each page is assumed to cost as much as one entry:
 * docs/4k-cost.md.
 */
uint64_t wss_stall_predict_ns(const struct wss_stall_load *load, double entry_ns)
{
	double entries = (double)load->host_entries + (double)load->kvm_entries +
			 (double)load->logged_pages;
	double ns = (double)BASE_NS + entries * entry_ns;

	return ns > 1e18 ? (uint64_t)1e18 : (uint64_t)ns;
}
