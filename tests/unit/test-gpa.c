/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakekvm.h"

#include "host/gpa.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
/* Where two blocks of RAM and a graphics card's memory lie in the VMM. */
#define BLOCK_A 0x7f0000000000ULL
#define BLOCK_B 0x7e0000000000ULL
#define CARD 0x7d0000000000ULL

static struct wss_domxml config_of(const char *machine, uint64_t ram_bytes)
{
	struct wss_domxml config = {.arch = "x86_64", .initial_bytes = ram_bytes};

	snprintf(config.machine, sizeof(config.machine), "%s", machine);
	return config;
}

/* The layout of a guest of which only the configuration is known. */
static int derive(const struct wss_domxml *config, struct wss_gpa_layout *ret_layout,
		  struct wss_error *err)
{
	static struct wss_guest guest;

	guest.config = *config;
	return wss_gpa_of_guest(&guest, ret_layout, err);
}

/* Asserts how much RAM lies below 4 GiB, and how much above. */
static void assert_split(const struct wss_domxml *config, uint64_t below, uint64_t above)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_gpa_layout layout;

	if (derive(config, &layout, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(layout.n_ranges, above ? 3 : 2);
	assert_int_equal(layout.ranges[0].start, 0);
	assert_int_equal(layout.ranges[0].end, 0xa0000);
	assert_int_equal(layout.ranges[1].start, 0xc0000);
	assert_int_equal(layout.ranges[1].end, below);
	if (above) {
		assert_int_equal(layout.ranges[2].start, 4 * GIB);
		assert_int_equal(layout.ranges[2].end, 4 * GIB + above);
	}
}

static void assert_unknown(const struct wss_domxml *config, const char *part)
{
	struct wss_gpa_layout layout = {.n_ranges = 77};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(derive(config, &layout, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
	assert_int_equal(layout.n_ranges, 77);
}

TEST(test_pc)
{
	static const char *const names[] = {"pc", "pc-i440fx-7.2", "pc-i440fx-rhel7.6.0",
					    "pc-i440fx-jammy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wss_domxml config = config_of(names[i], 512 << 20);

		assert_split(&config, 512 << 20, 0);
		config.initial_bytes = 7 * GIB / 2 - 4096;
		assert_split(&config, 7 * GIB / 2 - 4096, 0);
		config.initial_bytes = 7 * GIB / 2;
		assert_split(&config, 3 * GIB, GIB / 2);
		config.initial_bytes = 64 * GIB;
		assert_split(&config, 3 * GIB, 61 * GIB);
	}
}

TEST(test_q35)
{
	struct wss_domxml config = config_of("pc-q35-7.2", 11 * GIB / 4 - 4096);

	assert_split(&config, 11 * GIB / 4 - 4096, 0);
	config.initial_bytes = 11 * GIB / 4;
	assert_split(&config, 2 * GIB, 3 * GIB / 4);
	config.initial_bytes = 64 * GIB;
	assert_split(&config, 2 * GIB, 62 * GIB);
	snprintf(config.machine, sizeof(config.machine), "q35");
	assert_split(&config, 2 * GIB, 62 * GIB);
}

/* QEMU's option moves the hole; if nobody set it, it has its default value. */
TEST(test_limit)
{
	struct wss_domxml config = config_of("pc", 4 * GIB);

	config.max_ram_below_4g_bytes = 0xe0000000;
	assert_split(&config, 3 * GIB, GIB);
	config.max_ram_below_4g_bytes = 2 * GIB;
	assert_split(&config, 2 * GIB, 2 * GIB);
	config.initial_bytes = 31 * GIB / 8;
	config.max_ram_below_4g_bytes = 4 * GIB;
	assert_split(&config, 31 * GIB / 8, 0);
	config = config_of("q35", 4 * GIB);
	config.max_ram_below_4g_bytes = 4 * GIB;
	assert_split(&config, 2 * GIB, 2 * GIB);
	config.max_ram_below_4g_bytes = GIB;
	assert_split(&config, GIB, 3 * GIB);
}

TEST(test_unknown)
{
	static const char *const names[] = {"",	       "microvm",	"isapc", "virt-7.2",
					    "pc-0.12", "pc-i440fx-1.7", "pcx"};
	struct wss_domxml config;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		config = config_of(names[i], GIB);
		assert_unknown(&config, "is unknown");
	}
	config = config_of("pc", GIB);
	snprintf(config.arch, sizeof(config.arch), "aarch64");
	assert_unknown(&config, "is unknown");
	config = config_of("pc", GIB);
	config.qemu_passthrough = true;
	assert_unknown(&config, "qemu:commandline");
	/* QEMU may have moved the RAM past 1 TiB. */
	config = config_of("pc", 1000 * GIB);
	assert_unknown(&config, "of this size");
	config.initial_bytes = UINT64_MAX;
	assert_unknown(&config, "of this size");
	config.initial_bytes = 0;
	assert_unknown(&config, "is unknown");
}

TEST(test_devices)
{
	struct wss_domxml config = config_of("q35", GIB);
	struct wss_gpa_layout layout;

	/* Not in the order of their addresses; the first two are adjacent. */
	config.n_devices = 3;
	config.devices[0] = (struct wss_memory_device){5 * GIB, GIB, -1};
	config.devices[1] = (struct wss_memory_device){4 * GIB, GIB, -1};
	config.devices[2] = (struct wss_memory_device){8 * GIB, GIB / 2, -1};
	assert_int_equal(derive(&config, &layout, NULL), 0);
	assert_int_equal(layout.n_ranges, 4);
	assert_int_equal(layout.ranges[2].start, 4 * GIB);
	assert_int_equal(layout.ranges[2].end, 6 * GIB);
	assert_int_equal(layout.ranges[3].start, 8 * GIB);
	assert_int_equal(layout.ranges[3].end, 17 * GIB / 2);
	config.devices[2].gpa = 0;
	assert_unknown(&config, "address of a memory device");
	config.devices[2].gpa = 5 * GIB;
	assert_unknown(&config, "overlap");
	config.devices[2].gpa = UINT64_MAX - 4096;
	assert_unknown(&config, "of this size");
	config.n_devices = WSS_MEMORY_DEVICES_MAX;
	for (size_t i = 0; i < config.n_devices; i++)
		config.devices[i] = (struct wss_memory_device){(4 + 2 * i) * GIB, GIB, -1};
	assert_unknown(&config, "more than 256 address ranges");
}

/* An attached guest of a machine that no configuration describes. */
static void make_guest(struct wss_guest *guest, struct wss_range *ranges, size_t n)
{
	*guest = (struct wss_guest){.kvm = true, .ram_known = true, .vm = 77};
	guest->process.pid = 42;
	guest->ram = (struct wss_ram){.n_ranges = n, .ranges = ranges};
	memset(&fake_kvm, 0, sizeof(fake_kvm));
}

static void add_slot(uint64_t start, uint64_t bytes, uint64_t host)
{
	assert_true(fake_kvm.n_slots < FAKE_SLOTS);
	fake_kvm.slots[fake_kvm.n_slots++] = (struct wss_kvm_slot_record){
		.first_page = start >> 12, .n_pages = bytes >> 12, .host_address = host};
}

static void assert_range(const struct wss_gpa_layout *layout, size_t i, uint64_t start,
			 uint64_t end, uint64_t host)
{
	assert_true(i < layout->n_ranges);
	assert_int_equal(layout->ranges[i].start, start);
	assert_int_equal(layout->ranges[i].end, end);
	assert_int_equal(layout->ranges[i].host, host);
}

static void end_guest(struct wss_guest *guest)
{
	wss_kvm.close(guest->kernel_vm);
	assert_int_equal(fake_kvm.open, 0);
}

/* Adjacent pieces of one block are one; those of two are not, as the VMM has them at different places. */
TEST(test_slots)
{
	struct wss_range ranges[] = {{BLOCK_B, BLOCK_B + 64 * MIB}, {BLOCK_A, BLOCK_A + 128 * MIB}};
	struct wss_gpa_layout layout;
	struct wss_guest guest;

	make_guest(&guest, ranges, 2);
	add_slot(128 * MIB, 64 * MIB, BLOCK_B);
	add_slot(0xfd000000, 16 * MIB, CARD);
	add_slot(16 * MIB, 112 * MIB, BLOCK_A + 16 * MIB);
	add_slot(0, 16 * MIB, BLOCK_A);
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), 0);
	assert_int_equal(fake_kvm.vm, 77);
	assert_int_equal(layout.n_ranges, 2);
	assert_range(&layout, 0, 0, 128 * MIB, BLOCK_A);
	assert_range(&layout, 1, 128 * MIB, 192 * MIB, BLOCK_B);
	/* The kernel's answer is the only one. */
	fake_kvm.slots_fail = true;
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), -1);
	end_guest(&guest);
}

/* The same RAM whichever part of it the firmware of a PC shows, as the configuration has it. */
TEST(test_firmware)
{
	static const uint64_t shown[] = {0xc0000, 0xe8000, MIB};
	struct wss_range ranges[] = {{BLOCK_A, BLOCK_A + 512 * MIB}};
	struct wss_domxml config = config_of("q35", 512 * MIB);
	struct wss_gpa_layout layout, derived;
	struct wss_guest guest;

	assert_int_equal(derive(&config, &derived, NULL), 0);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		make_guest(&guest, ranges, 1);
		add_slot(0, 0xa0000, BLOCK_A);
		add_slot(shown[i], 512 * MIB - shown[i], BLOCK_A + shown[i]);
		assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), 0);
		assert_int_equal(layout.n_ranges, derived.n_ranges);
		for (size_t k = 0; k < layout.n_ranges; k++)
			assert_range(&layout, k, derived.ranges[k].start, derived.ranges[k].end,
				     BLOCK_A + derived.ranges[k].start);
		end_guest(&guest);
	}
	/* Another block is not what lies there. */
	ranges[0].end = BLOCK_A + MIB;
	make_guest(&guest, (struct wss_range[]){ranges[0], {BLOCK_B, BLOCK_B + MIB}}, 2);
	add_slot(0, 0xa0000, BLOCK_A);
	add_slot(0xf0000, 0x10000, BLOCK_B);
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), 0);
	assert_range(&layout, 1, 0xf0000, MIB, BLOCK_B);
	end_guest(&guest);
}

/* Where the kernel cannot be asked: with a single block its pieces follow each other in it. */
TEST(test_without_kernel)
{
	struct wss_range ranges[] = {{BLOCK_A, BLOCK_A + 3 * GIB}};
	struct wss_gpa_layout layout;
	struct wss_guest guest;

	make_guest(&guest, ranges, 1);
	fake_kvm.probe_fails = true;
	guest.config = config_of("q35", 3 * GIB);
	guest.config.n_blocks = 1;
	guest.ram.total_bytes = 3 * GIB;
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), 0);
	assert_int_equal(layout.n_ranges, 3);
	assert_range(&layout, 1, 0xc0000, 2 * GIB, BLOCK_A + 0xc0000);
	assert_range(&layout, 2, 4 * GIB, 5 * GIB, BLOCK_A + 2 * GIB);
	guest.config.n_blocks = 2;
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), 0);
	assert_range(&layout, 2, 4 * GIB, 5 * GIB, 0);
	strcpy(guest.config.machine, "microvm");
	assert_int_equal(wss_gpa_of_guest(&guest, &layout, NULL), -1);
	end_guest(&guest);
}

int main(void)
{
	return tests_run();
}
