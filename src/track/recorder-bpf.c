/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/recorder-backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/privilege.h"
#include "track/recorder.skel.h"

#define BPF_CAPS (WSS_CAP(CAP_BPF) | WSS_CAP(CAP_PERFMON))
#define WORD_BYTES (64 * 4096ULL) /* guest memory that one word of a bitmap stands for */

struct wss_recorder_backend {
	struct recorder_bpf *skeleton;
	const struct bpf_program *program; /* the skeleton's program that is loaded */
	uint64_t *touched;
	uint64_t *written;
	size_t map_bytes; /* size of each mapping */
	/*
	 * Number of events missed before this recording, because the kernel counts since
	 * loading.
	 */
	uint64_t missed_base;
};

static const char *bpf_version(void)
{
	static char text[48];

	snprintf(text, sizeof(text), "bpf (libbpf %u.%u)", libbpf_major_version(),
		 libbpf_minor_version());
	return text;
}

static int bpf_probe(struct wss_error *err)
{
	(void)err;
	return 0;
}

/* Prints libbpf's own messages for debugging only; the caller reports errors in one line. */
static int print_debug(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[1024];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	wss_debug("%s", text);
	return 0;
}

/*
 * Selects the program for this kernel's layout of the tracepoint's arguments; the other one is
 * not loaded.
 */
static struct bpf_program *choose_program(struct recorder_bpf *skeleton,
					  const struct wss_recorder_plan *plan)
{
	bool old = plan->event.address_arg == 0;

	bpf_program__set_autoload(skeleton->progs.record_fault, !old);
	bpf_program__set_autoload(skeleton->progs.record_fault_old, old);
	return old ? skeleton->progs.record_fault_old : skeleton->progs.record_fault;
}

static void configure_program(struct recorder_bpf *skeleton,
			      const struct wss_recorder_plan *plan)
{
	skeleton->rodata->tgid = (__u32)plan->tgid;
	skeleton->rodata->n_ranges = (__u32)plan->layout.n_ranges;
	for (size_t i = 0; i < plan->layout.n_ranges; i++) {
		skeleton->rodata->range_start[i] = plan->layout.ranges[i].start;
		skeleton->rodata->range_end[i] = plan->layout.ranges[i].end;
	}
}

static int load_program(struct wss_recorder_backend *backend,
			const struct wss_recorder_plan *plan, uint32_t words,
			struct wss_error *err)
{
	struct recorder_bpf *skeleton;
	int r;

	libbpf_set_print(print_debug);
	skeleton = backend->skeleton = recorder_bpf__open();
	if (!skeleton)
		return wss_error_errno(err, WSS_ERR_UNSUPPORTED, errno,
				       "libbpf cannot open the recorder's program");
	backend->program = choose_program(skeleton, plan);
	configure_program(skeleton, plan);
	r = bpf_map__set_max_entries(skeleton->maps.touched, words);
	if (r == 0)
		r = bpf_map__set_max_entries(skeleton->maps.written, words);
	if (r == 0)
		r = recorder_bpf__load(skeleton);
	if (r < 0)
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -r, BPF_CAPS,
					   "the kernel refuses the recorder's program");
	if (!skeleton->bss)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "cannot map the recorder's variables");
	return 0;
}

static uint64_t *map_bits(const struct bpf_map *map, size_t bytes, struct wss_error *err)
{
	void *bits = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (bits != MAP_FAILED)
		return bits;
	wss_error_errno(err, WSS_ERR_UNSUPPORTED, errno, "cannot map the recorder's bitmap");
	return NULL;
}

static int open_maps(struct wss_recorder_backend *backend, uint64_t words, struct wss_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	backend->map_bytes = (words * sizeof(uint64_t) + page - 1) & ~(page - 1);
	backend->touched = map_bits(backend->skeleton->maps.touched, backend->map_bytes, err);
	if (!backend->touched)
		return -1;
	backend->written = map_bits(backend->skeleton->maps.written, backend->map_bytes, err);
	return backend->written ? 0 : -1;
}

static void bpf_close(struct wss_recorder_backend *backend)
{
	if (!backend)
		return;
	recorder_bpf__destroy(backend->skeleton);
	if (backend->touched)
		munmap(backend->touched, backend->map_bytes);
	if (backend->written)
		munmap(backend->written, backend->map_bytes);
	free(backend);
}

static int bpf_open(const struct wss_recorder_plan *plan,
		    struct wss_recorder_backend **ret_backend,
		    struct wss_recorder_state *ret_state, struct wss_error *err)
{
	uint64_t words = (wss_gpa_end(&plan->layout) + WORD_BYTES - 1) / WORD_BYTES;
	struct wss_recorder_backend *backend = calloc(1, sizeof(*backend));

	if (!backend)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (load_program(backend, plan, (uint32_t)words, err) < 0 ||
	    open_maps(backend, words, err) < 0) {
		bpf_close(backend);
		return -1;
	}
	*ret_state = (struct wss_recorder_state){
		.origin_ns = (uint64_t *)&backend->skeleton->bss->origin_ns,
		.ram_faults = (uint64_t *)&backend->skeleton->bss->ram_faults,
		.outside_faults = (uint64_t *)&backend->skeleton->bss->outside_faults,
		.written_pages = (uint64_t *)&backend->skeleton->bss->written_pages,
		.first_touches = (uint64_t *)backend->skeleton->bss->first_touches,
		.touched = backend->touched,
		.written = backend->written,
		.words = words,
	};
	*ret_backend = backend;
	return 0;
}

/*
 * Returns the number of missed events: the kernel skips a program that would interrupt itself
 * on a CPU.
 */
static uint64_t read_missed(const struct wss_recorder_backend *backend)
{
	int fd = bpf_program__fd(backend->program);
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return 0;
	return info.recursion_misses;
}

static int bpf_start(struct wss_recorder_backend *backend, struct wss_error *err)
{
	int r;

	memset(backend->skeleton->bss, 0, sizeof(*backend->skeleton->bss));
	memset(backend->touched, 0, backend->map_bytes);
	memset(backend->written, 0, backend->map_bytes);
	backend->missed_base = read_missed(backend);
	r = recorder_bpf__attach(backend->skeleton);
	if (r < 0)
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -r, BPF_CAPS,
					   "cannot attach the recorder to kvm_page_fault");
	return 0;
}

static uint64_t bpf_missed(const struct wss_recorder_backend *backend)
{
	return read_missed(backend) - backend->missed_base;
}

static void bpf_stop(struct wss_recorder_backend *backend)
{
	recorder_bpf__detach(backend->skeleton);
}

const struct wss_recorder_backend_ops wss_recorder_backend_ops = {
	.version = bpf_version,
	.probe = bpf_probe,
	.open = bpf_open,
	.start = bpf_start,
	.missed = bpf_missed,
	.stop = bpf_stop,
	.close = bpf_close,
};
