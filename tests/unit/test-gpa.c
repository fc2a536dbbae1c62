/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "host/gpa.h"

#define GIB (1ULL << 30)

static struct wss_domxml config_of(const char *machine, uint64_t ram_bytes)
{
	struct wss_domxml config = { .arch = "x86_64", .initial_bytes = ram_bytes };

	snprintf(config.machine, sizeof(config.machine), "%s", machine);
	return config;
}

/* Asserts how much RAM lies below 4 GiB, and how much above. */
static void assert_split(const struct wss_domxml *config, uint64_t below, uint64_t above)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_gpa_layout layout;

	if (wss_gpa_layout(config, &layout, &err) < 0)
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
	assert_int_equal(wss_gpa_end(&layout), above ? 4 * GIB + above : below);
}

static void assert_unknown(const struct wss_domxml *config, const char *part)
{
	struct wss_gpa_layout layout = { .n_ranges = 77 };
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_gpa_layout(config, &layout, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
	assert_int_equal(layout.n_ranges, 77);
}

static void test_pc(void **unused)
{
	static const char *const names[] = { "pc", "pc-i440fx-7.2", "pc-i440fx-rhel7.6.0",
					     "pc-i440fx-jammy" };

	(void)unused;
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

static void test_q35(void **unused)
{
	struct wss_domxml config = config_of("pc-q35-7.2", 11 * GIB / 4 - 4096);

	(void)unused;
	assert_split(&config, 11 * GIB / 4 - 4096, 0);
	config.initial_bytes = 11 * GIB / 4;
	assert_split(&config, 2 * GIB, 3 * GIB / 4);
	config.initial_bytes = 64 * GIB;
	assert_split(&config, 2 * GIB, 62 * GIB);
	snprintf(config.machine, sizeof(config.machine), "q35");
	assert_split(&config, 2 * GIB, 62 * GIB);
}

/* QEMU's option moves the hole; if nobody set it, it has its default value. */
static void test_limit(void **unused)
{
	struct wss_domxml config = config_of("pc", 4 * GIB);

	(void)unused;
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

static void test_unknown(void **unused)
{
	static const char *const names[] = { "", "microvm", "isapc", "virt-7.2", "pc-0.12",
					     "pc-i440fx-1.7", "pcx" };
	struct wss_domxml config;

	(void)unused;
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

static void test_devices(void **unused)
{
	struct wss_domxml config = config_of("q35", GIB);
	struct wss_gpa_layout layout;

	(void)unused;
	/* Not in the order of their addresses; the first two are adjacent. */
	config.n_devices = 3;
	config.devices[0] = (struct wss_memory_device){ 5 * GIB, GIB, -1 };
	config.devices[1] = (struct wss_memory_device){ 4 * GIB, GIB, -1 };
	config.devices[2] = (struct wss_memory_device){ 8 * GIB, GIB / 2, -1 };
	assert_int_equal(wss_gpa_layout(&config, &layout, NULL), 0);
	assert_int_equal(layout.n_ranges, 4);
	assert_int_equal(layout.ranges[2].start, 4 * GIB);
	assert_int_equal(layout.ranges[2].end, 6 * GIB);
	assert_int_equal(layout.ranges[3].start, 8 * GIB);
	assert_int_equal(wss_gpa_end(&layout), 17 * GIB / 2);
	config.devices[2].gpa = 0;
	assert_unknown(&config, "address of a memory device");
	config.devices[2].gpa = 5 * GIB;
	assert_unknown(&config, "overlap");
	config.devices[2].gpa = UINT64_MAX - 4096;
	assert_unknown(&config, "of this size");
	config.n_devices = WSS_MEMORY_DEVICES_MAX;
	for (size_t i = 0; i < config.n_devices; i++)
		config.devices[i] = (struct wss_memory_device){ (4 + 2 * i) * GIB, GIB, -1 };
	assert_unknown(&config, "more than 16 address ranges");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pc),	cmocka_unit_test(test_q35),
		cmocka_unit_test(test_limit),	cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
