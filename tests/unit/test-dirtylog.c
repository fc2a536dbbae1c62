/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dirty log: for which guests it is allowed, and the steps until it is on, with a guest
 * that acts as QEMU.
 */
#include "tests/testing.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "host/devices.h"
#include "measure/dirtylog.h"

static uint64_t now_ns;
static struct wss_dirty_log log_now;
static unsigned starts, started_seconds;
static bool start_fails, query_fails;

static uint64_t fake_now(void *unused)
{
	return now_ns;
}

static const struct wss_clock_source fake_clock = {.now_ns = fake_now};

static int fake_start(struct wss_guest *guest, unsigned seconds, struct wss_error *err)
{
	if (start_fails)
		return wss_error_set(err, WSS_ERR_FAILED, "refused by QEMU");
	/* Two calculations at the same time corrupt QEMU's memory and must never happen. */
	assert_false(log_now.measuring);
	starts++;
	started_seconds = seconds;
	return 0;
}

static int fake_query(struct wss_guest *guest, struct wss_dirty_log *ret_log, struct wss_error *err)
{
	if (query_fails)
		return wss_error_set(err, WSS_ERR_GONE, "no answer");
	*ret_log = log_now;
	return 0;
}

static const struct wss_guest_ops ops = {.dirty_log_start = fake_start,
					 .dirty_log_query = fake_query};

/* Does what a tracker does before the steps: starts only if no calculation is running. */
static int start_if_free(struct wss_dirtylog *log, struct wss_guest *guest, uint64_t window_ns,
			 struct wss_error *err)
{
	int r = wss_dirtylog_free(log, guest, err);

	return r > 0 ? wss_dirtylog_start(log, guest, window_ns, err) : r;
}

static int setup(void **state)
{
	now_ns = 100 * WSS_NS_PER_S;
	log_now = (struct wss_dirty_log){.measuring = false};
	starts = started_seconds = 0;
	start_fails = query_fails = false;
	wss_clock_inject(&fake_clock);
	return 0;
}

static int teardown(void **state)
{
	wss_clock_inject(NULL);
	return 0;
}

TEST(test_check)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_dirtylog_check(&guest, 50 * WSS_NS_PER_S, &err), 0);
	assert_int_equal(wss_dirtylog_check(&guest, 51 * WSS_NS_PER_S, &err), -1);
	assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
	strcpy(guest.config.dirty_log_hazard, "interface type='vhostuser'");
	assert_int_equal(wss_dirtylog_check(&guest, WSS_NS_PER_S, &err), -1);
	assert_non_null(strstr(err.text, "vhostuser"));
	guest.config.dirty_log_hazard[0] = '\0';
	guest.kvm = false;
	assert_int_equal(wss_dirtylog_check(&guest, WSS_NS_PER_S, &err), -1);
	assert_non_null(strstr(err.text, "KVM"));
}

TEST(test_steps)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_kvm_counts counts = {.pages_2m = 7};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(start_if_free(&log, &guest, 4 * WSS_NS_PER_S, &err), 0);
	assert_int_equal(starts, 1);
	/* The shortest calculation in which the window and its preparation fit. */
	assert_int_equal(started_seconds, 6);
	assert_true(log.ends_ns == now_ns + 6 * WSS_NS_PER_S);
	/* Not measuring yet; measuring but still mapped large. */
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 0);
	log_now = (struct wss_dirty_log){.measuring = true, .bitmap = true};
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 0);
	counts.pages_2m = 0;
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 1);
	assert_int_equal(starts, 1);
}

TEST(test_large_entries_stay)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_kvm_counts counts = {.pages_2m = 7};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	log_now = (struct wss_dirty_log){.measuring = true, .bitmap = true};
	now_ns += 2 * WSS_NS_PER_S;
	/* Write-protected instead of split: the zap drops them. */
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 1);
}

TEST(test_never_starts)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_kvm_counts counts = {0};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	/* A page-sampling run of another client also says "measuring". */
	log_now = (struct wss_dirty_log){.measuring = true, .bitmap = false};
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 0);
	now_ns += 2 * WSS_NS_PER_S;
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), -1);
	assert_int_equal(err.code, WSS_ERR_FAILED);
	assert_int_equal(starts, 1);
	/* The next window does not wait for a log that never came. */
	assert_int_equal(log.state, WSS_DIRTYLOG_OFF);
	log_now.measuring = false;
	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	assert_int_equal(starts, 2);
}

TEST(test_start_refused)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	start_fails = true;
	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), -1);
	assert_int_equal(log.state, WSS_DIRTYLOG_OFF);
}

TEST(test_somebody_elses)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	log_now = (struct wss_dirty_log){.measuring = true, .bitmap = true, .left_s = 11};
	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), -1);
	assert_int_equal(err.code, WSS_ERR_BUSY);
	assert_non_null(strstr(err.text, "running for the guest, for 11 s more"));
	assert_int_equal(starts, 0);
}

/* As another process that has just measured the guest leaves it. */
TEST(test_one_that_ends_soon_is_waited_for)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	for (int again = 0; again < 2; again++) {
		for (log_now.left_s = 9; log_now.left_s; log_now.left_s--) {
			log_now.measuring = true;
			assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 0);
			now_ns += WSS_NS_PER_S;
		}
		/* It may end late. */
		assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 0);
		log_now.measuring = false;
		assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 1);
	}
	/* Others follow each other without a gap. */
	log_now = (struct wss_dirty_log){.measuring = true, .left_s = 5};
	assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 0);
	now_ns += 10 * WSS_NS_PER_S;
	assert_int_equal(wss_dirtylog_free(&log, &guest, &err), -1);
	assert_int_equal(err.code, WSS_ERR_BUSY);
}

TEST(test_own_earlier_one_is_waited_for)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_kvm_counts counts = {0};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	log_now = (struct wss_dirty_log){.measuring = true, .bitmap = true};
	assert_int_equal(wss_dirtylog_step(&log, &guest, &counts, &err), 1);
	wss_dirtylog_done(&log);
	now_ns += WSS_NS_PER_S;
	assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 0);
	log_now.measuring = false;
	assert_int_equal(wss_dirtylog_free(&log, &guest, &err), 1);
	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	assert_int_equal(starts, 2);
	/* A calculation that is still running long after its time is somebody else's. */
	wss_dirtylog_done(&log);
	log_now.measuring = true;
	log_now.left_s = 30;
	now_ns += 20 * WSS_NS_PER_S;
	assert_int_equal(wss_dirtylog_free(&log, &guest, &err), -1);
	assert_int_equal(err.code, WSS_ERR_BUSY);
	/* An interrupted recording leaves one, too. */
	assert_non_null(strstr(err.text, "or of a recording that was interrupted"));
}

TEST(test_end)
{
	struct wss_guest guest = {.ops = &ops, .kvm = true};
	struct wss_dirtylog log = {0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(start_if_free(&log, &guest, WSS_NS_PER_S, &err), 0);
	/* Before its time it counts as running, whatever QEMU reports. */
	assert_int_equal(wss_dirtylog_ended(&log, &guest), WSS_DIRTYLOG_LASTS);
	now_ns = log.ends_ns;
	assert_int_equal(wss_dirtylog_ended(&log, &guest), WSS_DIRTYLOG_ENDED);
	log_now.measuring = true;
	assert_int_equal(wss_dirtylog_ended(&log, &guest), WSS_DIRTYLOG_LASTS);
	/* QEMU defers the end while the guest is paused. */
	now_ns += 20 * WSS_NS_PER_S;
	assert_int_equal(wss_dirtylog_ended(&log, &guest), WSS_DIRTYLOG_OVERDUE);
	query_fails = true;
	assert_int_equal(wss_dirtylog_ended(&log, &guest), WSS_DIRTYLOG_UNKNOWN);
}

static const char *hazard_of(const char *devices, const char *rest)
{
	static struct wss_domxml config;
	struct wss_error err = WSS_ERROR_INIT;
	char xml[2048];

	snprintf(xml, sizeof(xml),
		 "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"
		 "<name>g</name><uuid>a1b2c3d4-0000-4000-8000-00000000aaaa</uuid>"
		 "<memory unit='MiB'>512</memory>%s<devices>%s</devices></domain>",
		 rest, devices);
	if (wss_domxml_parse(xml, &config, &err) < 0)
		fail_msg("%s", err.text);
	return config.dirty_log_hazard;
}

TEST(test_devices)
{
	static const char *const allowed[] = {
		"<emulator>/usr/bin/qemu-system-x86_64</emulator>",
		"<disk type='file' device='disk'><source file='/a'/><target "
		"dev='vda'/></disk>",
		"<interface type='bridge'><model type='virtio'/></interface>",
		"<interface type='network'><driver name='vhost' queues='4'/></interface>",
		"<controller type='usb' model='none'/><controller type='pci' index='0'/>",
		"<memory model='dimm'><target><size unit='MiB'>64</size></target></memory>",
		"<video><model type='virtio'/></video><memballoon model='virtio'/>",
		"<filesystem type='mount'><driver type='path'/></filesystem>",
		"<redirdev bus='usb' type='spicevmc'/><redirfilter><usbdev "
		"allow='no'/></redirfilter>",
		"<smartcard mode='host'/><smartcard mode='passthrough' type='spicevmc'/>",
		"<input type='evdev'><source dev='/dev/input/event1' grab='all'/></input>",
		"<input type='passthrough' bus='virtio'><source "
		"evdev='/dev/input/event1'/></input>",
		"<vsock model='virtio'><cid auto='no' address='3'/></vsock>",
		"<iommu model='intel'/><iommu model='virtio'/><iommu model='smmuv3'/>",
		"<nvram><address type='spapr-vio' reg='0x4000'/></nvram>",
		"<pstore backend='acpi-erst'><path>/p</path></pstore>",
		"<hostdev mode='subsystem' type='usb'/><hostdev mode='subsystem' "
		"type='scsi'/>",
		"<controller type='nvme' index='0'/><controller type='isa' index='0'/>",
		"<crypto model='virtio' type='qemu'><backend model='builtin'/></crypto>",
		"<filesystem type='mount'><driver type='mtp'/></filesystem>",
	};
	static const char *const refused[] = {
		"<interface type='vhostuser'/>",
		"<interface type='vdpa'/>",
		"<interface type='hostdev'/>",
		"<hostdev mode='subsystem' type='pci'/>",
		"<hostdev mode='subsystem' type='mdev'/>",
		"<disk type='vhostuser' device='disk'/>",
		"<disk type='nvme' device='disk'/>",
		"<disk type='vhostvdpa' device='disk'/>",
		"<filesystem type='mount'><driver type='virtiofs'/></filesystem>",
		"<video><driver name='vhostuser'/><model type='virtio'/></video>",
		"<shmem name='s'/>",
		"<hostdev mode='subsystem' type='scsi_host'/>",
		"<hostdev mode='subsystem' type='something-new'/>",
		"<controller type='xenbus'/>",
		"<iommu model='something-new'/>",
		"<memory model='virtio-mem'><target><size unit='MiB'>64</size></target></memory>",
		"<memory model='sgx-epc'><target><size unit='MiB'>64</size></target></memory>",
		"<memory model='nvdimm'><target><size unit='MiB'>64</size></target></memory>",
		"<crypto model='virtio'><backend model='something-new'/></crypto>",
		"<something-new/>",
		"<disk type='file network'/>",
		"<interface type=''/>",
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		assert_string_equal(hazard_of(allowed[i], ""), "");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_string_not_equal(hazard_of(refused[i], ""), "");
	assert_string_equal(hazard_of("<interface type='vhostuser'/>", ""),
			    "interface type='vhostuser' (it writes to guest memory from outside "
			    "QEMU, which aborts if it cannot log that)");
	assert_string_equal(hazard_of("<shmem name='s'/>", ""),
			    "shmem (memory beside the guest's RAM, with which the dirty log was "
			    "not tried)");
	assert_string_equal(hazard_of("<something-new/>", ""),
			    "something-new (virt-wss does not know it)");
	assert_string_equal(hazard_of("", "<features><kvm><dirty-ring state='on' "
					  "size='4096'/></kvm></features>"),
			    "dirty-ring (it takes the place of the dirty log)");
	assert_string_equal(
		hazard_of("", "<qemu:commandline><qemu:arg value='-x'/></qemu:commandline>"),
		"qemu:commandline or qemu:override (what they add is not known)");
}

/* A machine may have devices that no list shows. */
TEST(test_machines)
{
	static const char *const allowed[] = {
		"",	     "pc",	"pc-i440fx-7.2+pve0", "pc-q35-rhel9.4.0",     "q35",
		"rhel6.6.0", "microvm", "virt-9.2",	      "s390-ccw-virtio-10.0", "pseries-7.2",
		"isapc"};
	static const char *const refused[] = {"nitro-enclave", "xenpv",	   "virtual", "pcnet",
					      "rhel",	       "x-remote", "*"};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		assert_null(wss_machine_hazard(allowed[i]));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_non_null(wss_machine_hazard(refused[i]));
	assert_string_equal(
		hazard_of("", "<os><type arch='x86_64' machine='nitro-enclave'>hvm</type></os>"),
		"machine type 'nitro-enclave' (virt-wss does not know it)");
}

TEST(test_models)
{
	static const char *const allowed[] = {
		"AC97",
		"tap",
		"user",
		"virtio-net-pci",
		"virtio-net-pci-non-transitional",
		"virtio-net-pci-transitional",
		"virtio-blk-device",
		"virtio-blk-ccw",
		"xio3130-downstream",
		"usb-redir",
		"ccid-card-passthru",
		"virtio-input-host-pci",
		"vhost-vsock-pci",
		"intel-iommu",
		"spapr-nvram",
		"vmgenid",
		"nvme",
		"nvme-ns",
		"host-x86_64-cpu",
		"pc-dimm",
	};
	static const char *const refused[] = {
		"vfio-pci",
		"vfio-ap",
		"vfio-pci-nohotplug",
		"vhost-user",
		"vhost-vdpa",
		"vhost-user-fs-pci",
		"vhost-user-vsock-pci",
		"vhost-scsi-pci",
		"x-pci-proxy-dev",
		"virtio-crypto-pci",
		"ivshmem-plain",
		"nvdimm",
		"virtio-mem-pci",
		"something-new",
		"",
		"*",
		"nvm",
		"nvme-something-new",
		"virtio-pci",
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		assert_null(wss_device_model_hazard(allowed[i]));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_non_null(wss_device_model_hazard(refused[i]));
}

int main(void)
{
	return tests_run_each(setup, teardown);
}
