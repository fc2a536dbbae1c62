/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/stall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

/* Many pages, because those of a guest do not fit in the processor's caches either. */
#define CALIBRATION_BYTES (64UL << 20)
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

/* Returns the CPU time of one clear_refs over ourselves in ns; 0 if it failed. */
static uint64_t timed_clear(int fd)
{
	uint64_t start_ns = wss_clock_thread_ns();

	return write(fd, "4\n", 2) == 2 ? wss_clock_thread_ns() - start_ns : 0;
}

/*
 * Maps pages by reading them: all are the zero page, so that no memory is used, and clear_refs walks their
 * entries like any others.
 */
static void map_pages(char *area)
{
	for (size_t i = 0; i < CALIBRATION_BYTES; i += 4096)
		(void)*(volatile char *)(area + i);
}

static void calibrate_child(void *result)
{
	struct wss_stall_times *times = result;
	int fd = wss_child_open_clear_refs();
	char *area = mmap(NULL, CALIBRATION_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || area == MAP_FAILED || madvise(area, CALIBRATION_BYTES, MADV_NOHUGEPAGE) < 0)
		return;
	for (size_t i = 0; i < WSS_STALL_PASSES; i++)
		times->empty_ns[i] = timed_clear(fd);
	map_pages(area);
	for (size_t i = 0; i < WSS_STALL_PASSES; i++)
		times->full_ns[i] = timed_clear(fd);
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t median_ns(const uint64_t ns[WSS_STALL_PASSES])
{
	uint64_t sorted[WSS_STALL_PASSES];

	memcpy(sorted, ns, sizeof(sorted));
	qsort(sorted, WSS_STALL_PASSES, sizeof(*sorted), compare_ns);
	return sorted[WSS_STALL_PASSES / 2];
}

double wss_stall_entry_of(const struct wss_stall_times *times, uint64_t n_entries)
{
	uint64_t empty_ns = median_ns(times->empty_ns), full_ns = median_ns(times->full_ns);
	double entry_ns;

	if (!empty_ns || full_ns <= empty_ns)
		return FALLBACK_ENTRY_NS;
	entry_ns = (double)(full_ns - empty_ns) / (double)n_entries;
	return entry_ns > LEAST_ENTRY_NS ? entry_ns : LEAST_ENTRY_NS;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static double measured_entry_ns;

static void stall_calibrate(void)
{
	struct wss_stall_times times = {.empty_ns = {0}};

	wss_child_run(calibrate_child, &times, sizeof(times), WSS_NS_PER_S, NULL);
	measured_entry_ns = wss_stall_entry_of(&times, CALIBRATION_PAGES);
}

double wss_stall_entry_ns(void)
{
	pthread_once(&once, stall_calibrate);
	return measured_entry_ns;
}

uint64_t wss_stall_predict_ns(const struct wss_stall_load *load, double host_entry_ns,
			      double kvm_entry_ns)
{
	double ns = (double)BASE_NS + (double)load->host_entries * host_entry_ns +
		    (double)load->kvm_entries * kvm_entry_ns;

	return ns > 1e18 ? (uint64_t)1e18 : (uint64_t)ns;
}

/*
 * QEMU starts the log by clearing it for all of RAM, in one loop under mmu_lock (Linux 6.1,
 * virt/kvm/kvm_main.c, kvm_clear_dirty_log_protect). An iteration handles 64 pages and walks
 * KVM's tables a few times. Each page is assumed to cost as much as one entry of the host's:
 * docs/measurements.md.
 */
uint64_t wss_stall_log_ns(uint64_t pages, double host_entry_ns)
{
	double ns = (double)pages * host_entry_ns;

	return ns > 1e18 ? (uint64_t)1e18 : (uint64_t)ns;
}
