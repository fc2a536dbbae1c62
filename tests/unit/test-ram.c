/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <linux/mempolicy.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/units.h"
#include "host/ram.h"

#define CAPTURED_PID 4242

static void release(struct wss_process *process)
{
	wss_process_release(process);
}

#define AUTO_PROCESS wss_cleanup(release) struct wss_process

/* Holds the process of a captured machine below dir. */
static void hold_captured(const char *dir, struct wss_process *ret)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_root root;

	assert_int_equal(wss_root_open(dir, &root, &err), 0);
	if (wss_process_hold(&root, CAPTURED_PID, NULL, ret, &err) < 0)
		fail_msg("%s: %s", dir, err.text);
	wss_root_close(&root);
}

static void hold_fixture(const char *name, struct wss_process *ret)
{
	char path[PATH_MAX];

	hold_captured(make_path(path, "%s/qemu-7.2/%s", WSS_FIXTURES, name), ret);
}

struct expected {
	const char *fixture;
	size_t n;
	uint64_t mib[4];
	bool all_shared;
	uint64_t starts[4]; /* by address, read from the fixture's maps by hand */
};

/* Every way to give a guest its RAM, as QEMU 7.2 maps it. */
static void test_fixtures(void **unused)
{
	static const struct expected table[] = {
		{"anon", 1, {512}, false, {0x7f2b19e00000}},
		{"memfd", 1, {512}, true, {0x7fdf69fff000}},
		{"shared", 1, {512}, true, {0x7fda59e00000}},
		{"file", 1, {512}, false, {0x7ff1b7fff000}},
		{"hugetlb", 1, {128}, true, {0x7fa34de00000}},
		{"mlock", 1, {64}, false, {0x7f1e61e00000}},
		/* A stack of 8 MiB lies right before the first cell. */
		{"numa", 2, {256, 256}, false, {0x7f3e2dc00000, 0x7f3e3de00000}},
		{"dimm", 2, {512, 128}, false, {0x7f2c75c00000, 0x7f2c95e00000}},
		{"libvirt",
		 3,
		 {256, 256, 128},
		 true,
		 {0x7ffb3bffd000, 0x7ffb43ffe000, 0x7ffb53fff000}},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		AUTO_PROCESS process = WSS_PROCESS_INIT;
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_ram ram = WSS_RAM_INIT;
		uint64_t sizes[4], total = 0;

		for (size_t j = 0; j < table[i].n; j++)
			total += sizes[j] = table[i].mib[j] * WSS_MIB;
		hold_fixture(table[i].fixture, &process);
		if (wss_ram_find(&process, sizes, table[i].n, &ram, &err) < 0)
			fail_msg("%s: %s", table[i].fixture, err.text);
		assert_int_equal(ram.n_ranges, table[i].n);
		assert_int_equal(ram.total_bytes, total);
		assert_int_equal(ram.all_shared, table[i].all_shared);
		for (size_t j = 0; j < ram.n_ranges; j++)
			assert_int_equal(ram.ranges[j].start, table[i].starts[j]);
		wss_ram_free(&ram);
		assert_null(ram.ranges);
	}
}

static void assert_not_found(const struct wss_process *process, const uint64_t *sizes, size_t n,
			     const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_ram ram = WSS_RAM_INIT;

	assert_int_equal(wss_ram_find(process, sizes, n, &ram, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, part);
	assert_null(ram.ranges);
}

static void test_no_guess(void **unused)
{
	AUTO_PROCESS vga = WSS_PROCESS_INIT;
	AUTO_PROCESS numa = WSS_PROCESS_INIT;
	AUTO_PROCESS libvirt = WSS_PROCESS_INIT;
	uint64_t sizes[3] = {16 * WSS_MIB};

	/* RAM and VGA memory of the same size cannot be told apart. */
	hold_fixture("vga16", &vga);
	assert_not_found(&vga, sizes, 1, "has 2 mappings of that size, which cannot be told apart");
	/* A stack is not RAM, although it has the right size and an inaccessible page behind it. */
	hold_fixture("numa", &numa);
	sizes[0] = 8 * WSS_MIB;
	assert_not_found(&numa, sizes, 1, "expected 1 block of 8192 KiB, but QEMU has 0");
	/* One cell too many, too few, a size that is not there, none. */
	sizes[0] = sizes[1] = sizes[2] = 256 * WSS_MIB;
	assert_not_found(&numa, sizes, 3, "3 blocks");
	assert_not_found(&numa, sizes, 1, "has 2");
	sizes[0] = 512 * WSS_MIB;
	assert_not_found(&numa, sizes, 1, "has 0");
	assert_not_found(&numa, sizes, 0, "its size is unknown");
	sizes[0] = 0;
	assert_not_found(&numa, sizes, 1, "its size is unknown");
	/* Neighbours with a page between them do not form a block. */
	hold_fixture("libvirt", &libvirt);
	assert_not_found(&libvirt, (uint64_t[]){384 * WSS_MIB + 4096}, 1, "has 0");
}

/* Writes maps and smaps of an invented process from lines "header|flags". */
static void put_maps(const char *tree, const char *const *lines)
{
	char maps[8192] = "", smaps[16384] = "";

	for (; *lines; lines++) {
		int len = (int)strcspn(*lines, "|");

		snprintf(maps + strlen(maps), sizeof(maps) - strlen(maps), "%.*s\n", len, *lines);
		snprintf(smaps + strlen(smaps), sizeof(smaps) - strlen(smaps),
			 "%.*s\nSize: 4 kB\nKernelPageSize:     %s kB\nVmFlags: rd wr mr %s \n",
			 len, *lines, strstr(*lines, "ht") ? "1048576" : "4", *lines + len + 1);
	}
	put_text(tree, "proc/4242/maps", maps);
	put_text(tree, "proc/4242/smaps", smaps);
	put_text(tree, "proc/4242/stat",
		 "4242 (q) S 1 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1 2\n");
}

/* Finds blocks in invented maps; returns their number, 0 where that failed. */
static size_t find_in(const char *const *lines, const uint64_t *sizes, size_t n,
		      uint64_t *ret_first)
{
	char *tree = make_tree();
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_ram ram = WSS_RAM_INIT;
	size_t found = 0;

	put_maps(tree, lines);
	hold_captured(tree, &process);
	if (wss_ram_find(&process, sizes, n, &ram, &err) == 0) {
		found = ram.n_ranges;
		*ret_first = ram.ranges[0].start;
	}
	wss_ram_free(&ram);
	remove_tree(tree);
	return found;
}

static void test_preference(void **unused)
{
	/* 16 MiB each */
	static const char *const memfd_and_vga[] = {
		"7f0000000000-7f0001000000 rw-p 00000000 00:00 0 |dc",
		"7f0001000000-7f0001001000 ---p 00000000 00:00 0 |",
		"7f0002000000-7f0003000000 rw-s 00000000 00:01 9   /memfd:memory-backend-memfd (deleted)|dc",
		"7f0003000000-7f0003001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	/*
	 * An image of persistent memory, or memory shared with another guest, is not known to
	 * be RAM.
	 */
	static const char *const file_and_anon[] = {
		"7f0000000000-7f0001000000 rw-p 00000000 00:00 0 |dc",
		"7f0001000000-7f0001001000 ---p 00000000 00:00 0 |",
		"7f0002000000-7f0003000000 rw-s 00000000 00:01 9   /srv/pmem.img|dc",
		"7f0003000000-7f0003001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	/* vhost's log is a memfd, too, but not a block of QEMU's. */
	static const char *const log[] = {
		"7f0000000000-7f0001000000 rw-p 00000000 00:00 0 |dc",
		"7f0001000000-7f0001001000 ---p 00000000 00:00 0 |",
		"7f0002000000-7f0003000000 rw-s 00000000 00:01 9   /memfd:vhost-log (deleted)|",
		NULL,
	};
	/* 1000 MiB of RAM on pages of 1 GiB are mapped as 1 GiB. */
	static const char *const gigantic[] = {
		"7f0040000000-7f0080000000 rw-s 00000000 00:01 9   /dev/hugepages/x|dc ht",
		"7f0080000000-7f0080001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	uint64_t size = 16 * WSS_MIB, two[2] = {size, size}, start = 0;

	assert_int_equal(find_in(memfd_and_vga, &size, 1, &start), 1);
	assert_int_equal(start, 0x7f0002000000);
	assert_int_equal(find_in(memfd_and_vga, two, 2, &start), 2);
	assert_int_equal(find_in(file_and_anon, &size, 1, &start), 0);
	assert_int_equal(find_in(log, &size, 1, &start), 1);
	assert_int_equal(start, 0x7f0000000000);
	size = 1000 * WSS_MIB;
	assert_int_equal(find_in(gigantic, &size, 1, &start), 1);
}

static void test_splits(void **unused)
{
	/* 128 MiB whose first half is locked, and 64 MiB. */
	static const char *const anon[] = {
		"7f0000000000-7f0004000000 rw-p 00000000 00:00 0 |lo dc",
		"7f0004000000-7f0008000000 rw-p 00000000 00:00 0 |dc",
		"7f0008000000-7f0008001000 ---p 00000000 00:00 0 |",
		"7f0009000000-7f000d000000 rw-p 00000000 00:00 0 |dc",
		"7f000d000000-7f000d001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	/* 128 MiB of one file, in three parts; then offsets that do not continue. */
	static const char *const file[] = {
		"7f0000000000-7f0002000000 rw-s 00000000 00:01 9   /memfd:memory-backend-memfd (deleted)|dc",
		"7f0002000000-7f0004000000 rw-s 02000000 00:01 9   /memfd:memory-backend-memfd (deleted)|lo dc",
		"7f0004000000-7f0008000000 rw-s 04000000 00:01 9   /memfd:memory-backend-memfd (deleted)|dc",
		"7f0008000000-7f0008001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	static const char *const broken[] = {
		"7f0000000000-7f0004000000 rw-s 00000000 00:01 9   /memfd:memory-backend-memfd (deleted)|dc",
		"7f0004000000-7f0008000000 rw-s 08000000 00:01 9   /memfd:memory-backend-memfd (deleted)|dc",
		"7f0008000000-7f0008001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	/* Without a guard, or executable, or not writable: not a block. */
	static const char *const none[] = {
		"7f0000000000-7f0008000000 rw-p 00000000 00:00 0 |dc",
		"7f0010000000-7f0018000000 rwxp 00000000 00:00 0 |dc",
		"7f0018000000-7f0018001000 ---p 00000000 00:00 0 |",
		"7f0020000000-7f0028000000 r--p 00000000 00:00 0 |dc",
		"7f0028000000-7f0028001000 ---p 00000000 00:00 0 |",
		"7f0030000000-7f0038000000 rw-p 00000000 00:00 0   [heap]|dc",
		"7f0038000000-7f0038001000 ---p 00000000 00:00 0 |",
		NULL,
	};
	uint64_t both[2] = {64 * WSS_MIB, 128 * WSS_MIB}, start = 0;

	assert_int_equal(find_in(anon, both, 2, &start), 2);
	assert_int_equal(start, 0x7f0000000000);
	assert_int_equal(find_in(anon, both + 1, 1, &start), 1);
	/* Half of a block is not a block of 64 MiB. */
	assert_int_equal(find_in(anon, both, 1, &start), 1);
	assert_int_equal(start, 0x7f0009000000);
	assert_int_equal(find_in(file, both + 1, 1, &start), 1);
	assert_int_equal(start, 0x7f0000000000);
	assert_int_equal(find_in(broken, both + 1, 1, &start), 0);
	assert_int_equal(find_in(none, both + 1, 1, &start), 0);
}

static void test_bad_files(void **unused)
{
	static const char *const bad[] = {
		"garbage\n",	"7f00-7f00 rw-p 0 0:0 0\n", "7f10-7f00 rw-p 0 0:0 0\n",
		"Size: 4 kB\n", "7f00-7f10 rw 0 0:0 0\n",   "7f00-7f10\n"};
	char *tree = make_tree(), path[PATH_MAX];
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_ram ram = WSS_RAM_INIT;
	struct wss_smaps smaps;
	uint64_t size = 128 * WSS_MIB;

	put_maps(tree, (const char *const[]){NULL});
	hold_captured(tree, &process);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_text(tree, "proc/4242/maps", bad[i]);
		put_text(tree, "proc/4242/smaps", bad[i]);
		assert_int_equal(wss_ram_find(&process, &size, 1, &ram, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "maps of process 4242");
		assert_int_equal(wss_smaps_read(&process, NULL, &smaps, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "smaps of process 4242");
	}
	unlink(make_path(path, "%s/proc/4242/maps", tree));
	assert_int_equal(wss_ram_find(&process, &size, 1, &ram, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "maps");
	assert_int_equal(wss_resident_read(&process, &size, NULL, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "status");
	put_text(tree, "proc/4242/status", "Name:\tkthreadd\n");
	assert_int_equal(wss_resident_read(&process, &size, NULL, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "status");
	remove_tree(tree);
}

/* The sums were computed by hand from the fixtures. */
static void test_smaps_fixtures(void **unused)
{
	AUTO_PROCESS mlock_process = WSS_PROCESS_INIT;
	AUTO_PROCESS hugetlb = WSS_PROCESS_INIT;
	struct wss_smaps smaps;
	struct wss_ram ram = WSS_RAM_INIT;
	uint64_t rss, tlb;

	hold_fixture("mlock", &mlock_process);
	assert_int_equal(wss_ram_find(&mlock_process, (uint64_t[]){64 * WSS_MIB}, 1, &ram, NULL),
			 0);
	assert_int_equal(wss_smaps_read(&mlock_process, &ram, &smaps, NULL), 0);
	assert_int_equal(smaps.guest.rss, 64 * WSS_MIB);
	assert_int_equal(smaps.guest.pss, 64 * WSS_MIB);
	assert_int_equal(smaps.guest.hugetlb, 0);
	assert_int_equal(smaps.guest.hugetlb_page, 0);
	assert_false(smaps.guest.all_hugetlb);
	assert_false(smaps.guest.any_hugetlb);
	assert_true(smaps.qemu.rss > 10 * WSS_MIB);
	/* A range that is no longer mapped is reported, not left out silently. */
	ram.ranges[0].start -= WSS_GIB;
	ram.ranges[0].end -= WSS_GIB;
	assert_int_equal(wss_smaps_read(&mlock_process, &ram, &smaps, NULL), -1);
	wss_ram_free(&ram);

	hold_fixture("hugetlb", &hugetlb);
	assert_int_equal(wss_ram_find(&hugetlb, (uint64_t[]){128 * WSS_MIB}, 1, &ram, NULL), 0);
	assert_int_equal(wss_smaps_read(&hugetlb, &ram, &smaps, NULL), 0);
	assert_int_equal(smaps.guest.rss, 128 * WSS_MIB);
	assert_int_equal(smaps.guest.huge, 128 * WSS_MIB);
	assert_int_equal(smaps.guest.hugetlb, 128 * WSS_MIB);
	assert_int_equal(smaps.guest.hugetlb_page, 2 * WSS_MIB);
	assert_true(smaps.guest.all_hugetlb);
	assert_true(smaps.guest.any_hugetlb);
	assert_false(smaps.qemu.all_hugetlb);
	assert_int_equal(smaps.qemu.hugetlb, 0);
	wss_ram_free(&ram);
	assert_int_equal(wss_resident_read(&hugetlb, &rss, &tlb, NULL), 0);
	assert_int_equal(tlb, 128 * WSS_MIB);
	assert_int_equal(rss, 128 * WSS_MIB + 37912 * WSS_KIB);
}

static void test_smaps_sums(void **unused)
{
	static const char text[] =
		"7f0000000000-7f0001000000 rw-p 00000000 00:00 0 \n"
		"Size:              16384 kB\nKernelPageSize:        4 kB\nRss:    100 kB\n"
		"Pss:                  90 kB\nPss_Dirty:      7 kB\nReferenced:      50 kB\n"
		"AnonHugePages:      2048 kB\nShmemPmdMapped:  4096 kB\nFilePmdMapped:  8192 kB\n"
		"Swap:                 11 kB\nSwapPss:        10 kB\n"
		"VmFlags: rd wr mr mw me dc ac sd \n"
		"7f0001000000-7f0002000000 rw-p 00000000 00:00 0 \n"
		"KernelPageSize:        4 kB\nRss:    1 kB\nPss:    1 kB\nReferenced:    1 kB\n"
		"Swap:                  1 kB\nVmFlags: rd wr mr mw me dc ac sd \n"
		"7f0003000000-7f0004000000 rw-p 00000000 00:00 0                  [stack]\n"
		"KernelPageSize:        4 kB\nRss:    7 kB\nVmFlags: rd wr \n";
	char *tree = make_tree();
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_range range = {0x7f0000000000, 0x7f0002000000};
	struct wss_ram ram = {1, &range, 0x2000000, false, false};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_smaps smaps;

	put_maps(tree, (const char *const[]){NULL});
	hold_captured(tree, &process);
	put_text(tree, "proc/4242/smaps", text);
	assert_int_equal(wss_smaps_read(&process, &ram, &smaps, &err), 0);
	assert_int_equal(smaps.guest.rss, 101 * WSS_KIB);
	assert_int_equal(smaps.guest.pss, 91 * WSS_KIB);
	assert_int_equal(smaps.guest.referenced, 51 * WSS_KIB);
	assert_int_equal(smaps.guest.swap, 12 * WSS_KIB);
	assert_int_equal(smaps.guest.huge, 14336 * WSS_KIB);
	assert_true(smaps.guest.soft_dirty);
	assert_int_equal(smaps.qemu.rss, 7 * WSS_KIB);
	assert_false(smaps.qemu.soft_dirty);
	assert_int_equal(wss_smaps_read(&process, NULL, &smaps, &err), 0);
	assert_int_equal(smaps.qemu.rss, 108 * WSS_KIB);
	assert_int_equal(smaps.guest.rss, 0);
	assert_false(smaps.guest.soft_dirty);
	assert_false(smaps.qemu.soft_dirty);
	/* The captured process ends. */
	put_text(tree, "proc/4242/stat",
		 "4242 (q) Z 1 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1 2\n");
	assert_int_equal(wss_smaps_read(&process, &ram, &smaps, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	assert_int_equal(wss_ram_find(&process, &range.end, 1, &ram, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	remove_tree(tree);
}

/*
 * Maps a block as qemu_ram_mmap() does: reserved, activated at an aligned address, with a
 * guard behind it.
 */
static char *map_block(size_t size, int fd)
{
	size_t align = 2 * WSS_MIB, total = size + align;
	char *reserved = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t offset = (align - (uintptr_t)reserved % align) % align;
	char *block = mmap(
		reserved + offset, size, PROT_READ | PROT_WRITE,
		fd < 0 ? MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS : MAP_FIXED | MAP_SHARED, fd, 0);

	if (reserved == MAP_FAILED || block == MAP_FAILED)
		_exit(1);
	if (offset)
		munmap(reserved, offset);
	munmap(block + size + 4096, total - offset - size - 4096);
	madvise(block, size, MADV_DONTFORK);
	return block;
}

/* A child with three blocks that the kernel has split, and similar mappings. */
static void play_blocks(int out)
{
	unsigned long nodes = 1;
	int fd = (int)syscall(SYS_memfd_create, "memory-backend-memfd", 0);
	char *anon, *other, *shared;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || ftruncate(fd, 96 * (off_t)WSS_MIB) < 0)
		_exit(1);
	anon = map_block(96 * WSS_MIB, -1);
	other = map_block(32 * WSS_MIB, -1);
	shared = map_block(96 * WSS_MIB, fd);
	/* Three pages of 4 KiB, whatever the host's setting for huge pages. */
	madvise(anon, 96 * WSS_MIB, MADV_NOHUGEPAGE);
	madvise(other, 32 * WSS_MIB, MADV_NOHUGEPAGE);
	anon[0] = anon[48 * WSS_MIB] = other[31 * WSS_MIB] = 1;
	shared[5 * WSS_MIB] = 1;
	if (mlock2(anon + 48 * WSS_MIB, 4096, MLOCK_ONFAULT) < 0 &&
	    madvise(anon + 48 * WSS_MIB, 4096, MADV_DONTDUMP) < 0)
		_exit(1);
	/* Not every kernel has NUMA. */
	syscall(SYS_mbind, other, 16 * WSS_MIB, MPOL_BIND, &nodes, 8, 0);
	madvise(other + 24 * WSS_MIB, WSS_MIB, MADV_DONTDUMP);
	madvise(shared + 32 * WSS_MIB, 32 * WSS_MIB, MADV_DONTDUMP);
	if (write(out, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static unsigned count_mappings(pid_t pid, const struct wss_range *range)
{
	char path[PATH_MAX];
	wss_auto_free char *maps = read_text(make_path(path, "/proc/%d/maps", pid));
	unsigned n = 0;

	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
		uint64_t start = strtoull(line, NULL, 16);

		n += start >= range->start && start < range->end;
	}
	return n;
}

static void test_live_splits(void **unused)
{
	uint64_t sizes[] = {32 * WSS_MIB, 96 * WSS_MIB, 96 * WSS_MIB};
	AUTO_PROCESS process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_ram ram = WSS_RAM_INIT;
	struct wss_smaps smaps;
	struct wss_root root;
	uint64_t rss;
	int out[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		play_blocks(out[1]);
	close(out[1]);
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	assert_int_equal(wss_root_open("/", &root, NULL), 0);
	assert_int_equal(wss_process_hold(&root, pid, NULL, &process, &err), 0);
	wss_root_close(&root);
	if (wss_ram_find(&process, sizes, 3, &ram, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ram.n_ranges, 3);
	assert_int_equal(ram.total_bytes, 224 * WSS_MIB);
	assert_false(ram.all_shared);
	for (size_t i = 0; i < 3; i++)
		assert_true(count_mappings(pid, &ram.ranges[i]) > 1);
	assert_int_equal(wss_smaps_read(&process, &ram, &smaps, &err), 0);
	assert_int_equal(smaps.guest.rss, 4 * 4 * WSS_KIB);
	assert_true(smaps.qemu.rss > 0);
	assert_int_equal(wss_resident_read(&process, &rss, NULL, &err), 0);
	assert_true(rss >= smaps.guest.rss);

	end_child(pid);
	assert_int_equal(wss_smaps_read(&process, &ram, &smaps, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	assert_int_equal(wss_resident_read(&process, &rss, NULL, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_ram_free(&ram);
	assert_int_equal(wss_ram_find(&process, sizes, 3, &ram, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
}

/* Reads from fd until text came or 30 s are over. */
static bool wait_for_text(int fd, const char *text)
{
	uint64_t deadline = wss_clock_now_ns() + 300 * WSS_NS_PER_S;
	char got[8192] = "";
	size_t len = 0;

	while (!strstr(got, text)) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&pfd, 1, wss_clock_poll_ms(deadline)) != 1)
			return false;
		n = read(fd, got + len, sizeof(got) - len - 1);
		if (n <= 0)
			return false;
		len += (size_t)n;
		got[len] = '\0';
	}
	return true;
}

/* Starts a real QEMU, paused, and returns once its machine is there; -1 without QEMU. */
static pid_t start_real_qemu(const char *const *extra)
{
	static const char *const base[] = {
		"qemu-system-x86_64", "-accel", "tcg",	"-S",	"-display", "none",
		"-nodefaults",	      "-uuid",	UUID_A, "-qmp", "stdio"};
	static const char hello[] = "{\"execute\":\"qmp_capabilities\"}\n";
	const char *argv[40] = {NULL};
	int to[2], from[2];
	size_t n = 0;
	pid_t pid;

	for (; n < sizeof(base) / sizeof(base[0]); n++)
		argv[n] = base[n];
	while (*extra)
		argv[n++] = *extra++;
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	/* Commands are answered only after the machine has been made. */
	if (write(to[1], hello, sizeof(hello) - 1) < 0 || !wait_for_text(from[0], "\"return\"")) {
		end_child(pid);
		pid = -1;
	}
	/* to[1] stays open: QEMU ends at the end of its input. */
	close(from[0]);
	return pid;
}

/* The mappings of this host's QEMU, whichever version it is. */
static void test_live_qemu(void **unused)
{
	static const struct {
		const char *const args[16];
		size_t n;
		uint64_t mib[3];
		bool is_ambiguous;
	} guests[] = {
		{{"-m", "128"}, 1, {128}, false},
		{{"-m", "128", "-vga", "std"}, 1, {128}, false},
		{{"-m", "16", "-vga", "std"}, 1, {16}, true},
		{{"-m", "8"}, 1, {8}, false},
		{{"-m", "16", "-vga", "std", "-object", "memory-backend-memfd,id=r,size=16M",
		  "-machine", "memory-backend=r"},
		 1,
		 {16},
		 false},
		{{"-m", "128", "-smp", "2", "-object", "memory-backend-ram,id=a,size=64M",
		  "-object", "memory-backend-ram,id=b,size=64M", "-numa", "node,memdev=a", "-numa",
		  "node,memdev=b"},
		 2,
		 {64, 64},
		 false},
		{{"-m", "128,slots=2,maxmem=1G", "-object", "memory-backend-ram,id=d,size=128M",
		  "-device", "pc-dimm,memdev=d"},
		 2,
		 {128, 128},
		 false},
	};
	struct wss_root root;

	if (system("command -v qemu-system-x86_64 >/dev/null") != 0) {
		print_message("# no qemu-system-x86_64\n");
		skip();
	}
	assert_int_equal(wss_root_open("/", &root, NULL), 0);
	for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++) {
		AUTO_PROCESS process = WSS_PROCESS_INIT;
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_ram ram = WSS_RAM_INIT;
		pid_t pid = start_real_qemu(guests[i].args);
		uint64_t sizes[3], total = 0;
		int r;

		assert_true(pid > 0);
		for (size_t j = 0; j < guests[i].n; j++)
			total += sizes[j] = guests[i].mib[j] * WSS_MIB;
		assert_int_equal(wss_process_hold(&root, pid, UUID_A, &process, &err), 0);
		r = wss_ram_find(&process, sizes, guests[i].n, &ram, &err);
		if (r < 0 && !guests[i].is_ambiguous)
			fail_msg("guest %zu: %s", i, err.text);
		assert_int_equal(r < 0, guests[i].is_ambiguous);
		assert_int_equal(ram.total_bytes, r < 0 ? 0 : total);
		wss_ram_free(&ram);
		end_child(pid);
	}
	wss_root_close(&root);
}

int main(void)
{
	const struct CMUnitTest captured[] = {
		cmocka_unit_test(test_fixtures),   cmocka_unit_test(test_no_guess),
		cmocka_unit_test(test_preference), cmocka_unit_test(test_splits),
		cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_smaps_fixtures),
		cmocka_unit_test(test_smaps_sums),
	};
	const struct CMUnitTest live[] = {
		cmocka_unit_test(test_live_splits),
		cmocka_unit_test(test_live_qemu),
	};
	const struct CMUnitTest skipped[] = {cmocka_unit_test(test_needs_pidfd)};
	int failed = cmocka_run_group_tests(captured, NULL, NULL);

	failed += have_pidfd() ? cmocka_run_group_tests(live, NULL, NULL)
			       : cmocka_run_group_tests(skipped, NULL, NULL);
	return failed;
}
