/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inventory of Proxmox VE on an invented host, whose VMs the kernel is taken to know. */
#include "hosttest.h"

#include "host/inventories.h"
#include "host/procfile.h"
#include "host/proxmox.h"

#define MIB (1ULL << 20)
#define CMDLINE               \
	"/usr/bin/kvm\0-id\0" \
	"100\0-name\0web,debug-threads=on\0-smbios\0type=1,uuid=A1B2C3D4-0000-4000-8000-00000000AAAA\0"
#define CONFIG "name: web\nmemory: 2048\nsmbios1: uuid=" UUID_A "\n"

static char *tree;
static struct wss_root root;
static struct wss_vm vms[1];
static struct wss_inventory_guest *guests;
static size_t n_guests;

static int set_up(void **unused)
{
	tree = make_tree();
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	vms[0] = (struct wss_vm){.vm = 7, .pid = 4242, .fd = 9};
	return 0;
}

static int tear_down(void **unused)
{
	free(guests);
	guests = NULL;
	wss_root_close(&root);
	remove_tree(tree);
	return 0;
}

static void put_exe(const char *target)
{
	char path[PATH_MAX];

	make_path(path, "%s/proc/4242/exe", tree);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

/* VM 100, as it is on a real host. */
static void put_vm_100(void)
{
	put_text(tree, "etc/pve/qemu-server/100.conf", CONFIG);
	put_text(tree, "run/qemu-server/100.pid", "4242\n");
	put_text(tree, "proc/4242/stat",
		 "4242 (kvm) S 1 1 1 0 -1 0 0 0 0 0 10 20 0 0 20 0 4 0 5000 0 0\n");
	put_text(tree, "proc/4242/status", "Name:\tkvm\nUid:\t0\t0\t0\t0\n");
	put_text(tree, "proc/4242/cgroup", "1:cpu:/x\n0::/qemu.slice/100.scope\n");
	put_bytes(tree, "proc/4242/cmdline", CMDLINE, sizeof(CMDLINE) - 1);
	put_exe("/usr/bin/qemu-system-x86_64");
}

static int list(size_t n_vms, struct wss_error *err)
{
	free(guests);
	guests = NULL;
	n_guests = 0;
	return wss_inventory_proxmox.list(&root, vms, n_vms, &guests, &n_guests, err);
}

/* Lists the one guest that there is. */
static const struct wss_inventory_guest *list_one(size_t n_vms)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (list(n_vms, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(n_guests, 1);
	return guests;
}

/* A template has a configuration like any guest's, and never runs. */
TEST(test_template)
{
	put_text(tree, "etc/pve/qemu-server/100.conf", CONFIG "template: 1\n");
	assert_int_equal(list_one(0)->state, WSS_INVENTORY_TEMPLATE);
	put_text(tree, "etc/pve/qemu-server/100.conf", CONFIG "template: 0\n");
	assert_int_equal(list_one(0)->state, WSS_INVENTORY_OFF);
}

static void assert_unknown(const char *part)
{
	const struct wss_inventory_guest *guest = list_one(1);

	if (guest->state != WSS_INVENTORY_UNKNOWN || !strstr(guest->why, part))
		fail_msg("state %d, '%s' instead of '%s'", (int)guest->state, guest->why, part);
	assert_string_equal(guest->monitor, "");
	assert_int_equal(guest->vm.pid, 0);
}

TEST(test_a_guest_whose_process_fits_runs)
{
	const struct wss_inventory_guest *guest;

	put_vm_100();
	guest = list_one(1);
	assert_int_equal(guest->state, WSS_INVENTORY_RUNNING);
	assert_string_equal(guest->id, "100");
	assert_string_equal(guest->name, "web");
	assert_string_equal(guest->uuid, UUID_A);
	assert_string_equal(guest->monitor, "/var/run/qemu-server/100.qmp");
	assert_int_equal(guest->vm.pid, 4242);
	assert_int_equal(guest->memory_bytes.value, 2048 * MIB);
	/* After an upgrade of QEMU, and as another machine's. */
	put_exe("/usr/bin/qemu-system-x86_64 (deleted)");
	assert_int_equal(list_one(1)->state, WSS_INVENTORY_RUNNING);
	put_exe("/usr/bin/kvm");
	assert_int_equal(list_one(1)->state, WSS_INVENTORY_RUNNING);
}

TEST(test_a_process_that_does_not_fit_is_not_believed)
{
	static const char other_id[] = "/usr/bin/kvm\0-id\0"
				       "101\0";
	static const char no_id[] = "/usr/bin/kvm\0-name\0web\0id\0"
				    "100\0";

	put_vm_100();
	put_text(tree, "proc/4242/status", "Name:\tkvm\nUid:\t0\t1000\t0\t0\n");
	assert_unknown("is not root's");
	put_vm_100();
	put_exe("/usr/bin/qemu/qemu-system-x86_64");
	assert_unknown("is neither /usr/bin/kvm nor");
	put_exe("/home/u/kvm");
	assert_unknown("is neither /usr/bin/kvm nor");
	put_exe("/usr/bin/kvm (deleted) (deleted)");
	assert_unknown("is neither /usr/bin/kvm nor");
	put_vm_100();
	put_text(tree, "proc/4242/cgroup", "0::/qemu.slice/1000.scope\n");
	assert_unknown("is not in the cgroup /qemu.slice/100.scope");
	put_text(tree, "proc/4242/cgroup", "0::/qemu.slice/100.scope/below\n");
	assert_unknown("is not in the cgroup");
	put_text(tree, "proc/4242/cgroup", "0::/user.slice/x:/qemu.slice/100.scope\n");
	assert_unknown("is not in the cgroup");
	put_vm_100();
	put_bytes(tree, "proc/4242/cmdline", other_id, sizeof(other_id) - 1);
	assert_unknown("was not started with its -id");
	put_bytes(tree, "proc/4242/cmdline", no_id, sizeof(no_id) - 1);
	assert_unknown("was not started with its -id");
	put_vm_100();
	vms[0].shares_process = true;
	assert_unknown("has several VMs");
	vms[0].shares_process = false;
	vms[0].pid = 4243;
	assert_unknown("names process 4242, which has no VM");
}

TEST(test_a_guest_without_a_process_is_off)
{
	put_vm_100();
	/* Stale: no such process. */
	put_text(tree, "run/qemu-server/100.pid", "4244\n");
	assert_int_equal(list_one(1)->state, WSS_INVENTORY_OFF);
	assert_string_equal(guests->uuid, UUID_A);
	put_text(tree, "run/qemu-server/100.pid", "99999999999\n");
	assert_unknown("process 4242 runs in its cgroup, but /run/qemu-server/100.pid names none");
	assert_int_equal(list_one(0)->state, WSS_INVENTORY_OFF);
	put_text(tree, "proc/4242/cgroup", "0::/qemu.slice/1000.scope\n");
	assert_int_equal(list_one(1)->state, WSS_INVENTORY_OFF);
	put_text(tree, "proc/4242/cgroup", "0::/qemu.slice/100.scope/below\n");
	assert_int_equal(list_one(1)->state, WSS_INVENTORY_OFF);
}

TEST(test_only_configurations_of_guests_count)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(list(0, &err), -1);
	assert_error(&err, WSS_ERR_CONNECT, "cannot read /etc/pve/qemu-server");
	assert_false(wss_inventory_proxmox.is_here(&root));
	put_text(tree, "etc/pve/qemu-server/100.conf.tmp.1", CONFIG);
	put_text(tree, "etc/pve/qemu-server/99.conf", CONFIG);
	put_text(tree, "etc/pve/qemu-server/0100.conf", CONFIG);
	put_text(tree, "etc/pve/qemu-server/1000000000.conf", CONFIG);
	assert_int_equal(list(0, NULL), 0);
	assert_int_equal(n_guests, 0);
	assert_true(wss_inventory_proxmox.is_here(&root));
	put_text(tree, "etc/pve/qemu-server/999999999.conf", "");
	assert_string_equal(list_one(0)->name, "vm999999999");
	assert_string_equal(guests->uuid, "");
}

static struct wss_proxmox_config parse(const char *text)
{
	struct wss_proxmox_config config;

	wss_proxmox_config_parse(text, &config);
	return config;
}

TEST(test_the_configuration_is_that_before_the_sections)
{
	struct wss_proxmox_config config =
		parse("#name: not\nname:  web.example \r\nballoon: 512\nshares: 50\ntags: a;b\n"
		      "memory: current=4096\n"
		      "smbios1: base64=1,uuid=A1B2C3D4-0000-4000-8000-00000000AAAA,sku=eA==\n"
		      "[PENDING]\nname: new\nmemory: 1\nballoon: 0\n");

	assert_string_equal(config.name, "web.example");
	assert_string_equal(config.tags, "a;b");
	assert_string_equal(config.uuid, UUID_A);
	assert_int_equal(config.memory_bytes.value, 4096 * MIB);
	assert_int_equal(config.balloon_minimum_bytes.value, 512 * MIB);
	assert_int_equal(config.balloon_shares.value, 50);
	assert_true(config.has_balloon);
	config = parse("[snap]\nname: web\nsmbios1: uuid=" UUID_A "\n");
	assert_string_equal(config.name, "");
	assert_string_equal(config.uuid, "");
}

TEST(test_what_is_not_legible_is_unknown_and_what_is_missing_has_its_default)
{
	struct wss_proxmox_config config = parse("");

	assert_int_equal(config.memory_bytes.value, 512 * MIB);
	assert_true(config.has_balloon);
	assert_false(config.balloon_minimum_bytes.known);
	assert_false(config.balloon_shares.known);
	config = parse("memory: 4G\nballoon: -1\nsmbios1: uuid=none\n");
	assert_false(config.memory_bytes.known);
	assert_false(config.balloon_minimum_bytes.known);
	assert_true(config.has_balloon);
	assert_string_equal(config.uuid, "");
	config = parse("memory: 99999999999999999999\nballoon: 0\nshares: 0\n");
	assert_false(config.memory_bytes.known);
	assert_false(config.has_balloon);
	assert_false(config.balloon_minimum_bytes.known);
}

TEST(test_the_balloon_is_its_managers)
{
	put_vm_100();
	put_text(tree, "etc/pve/qemu-server/100.conf", "balloon: 128\n");
	assert_non_null(strstr(list_one(1)->balloon_owner, "pvestatd"));
	put_text(tree, "etc/pve/qemu-server/100.conf", "balloon: 128\nshares: 0\n");
	assert_non_null(strstr(list_one(1)->balloon_owner, "configuration alone"));
}

/* A directory in the place of a configuration, or a file of megabytes. */
TEST(test_an_entry_that_cannot_be_read_hides_no_other)
{
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_inventory_guest *broken;

	put_vm_100();
	put_text(tree, "etc/pve/qemu-server/213.conf/x", "");
	assert_int_equal(list(1, &err), 0);
	assert_int_equal(n_guests, 2);
	broken = strcmp(guests[0].id, "213") ? &guests[1] : &guests[0];
	assert_string_equal(broken->id, "213");
	assert_string_equal(broken->name, "vm213");
	assert_int_equal(broken->state, WSS_INVENTORY_UNKNOWN);
	assert_non_null(
		strstr(broken->why, "cannot read /etc/pve/qemu-server/213.conf: Is a directory"));
	assert_int_equal((broken == guests ? &guests[1] : guests)->state, WSS_INVENTORY_RUNNING);
}

static void assert_picked(const struct wss_inventory_guest *list, size_t n, const char *word,
			  const char *name)
{
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_inventory_guest *guest = wss_inventory_pick(list, n, word, &err);

	assert_non_null(guest);
	assert_string_equal(guest->name, name);
}

static void assert_not_picked(const struct wss_inventory_guest *list, size_t n, const char *word,
			      int code, const char *why)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_null(wss_inventory_pick(list, n, word, &err));
	assert_error(&err, code, why);
}

/* A VMID is one, whatever another guest is called; a name that two had names both. */
TEST(test_pick)
{
	static const struct wss_inventory_guest list[] = {
		{.id = "100", .name = "mail:100", .own_name = "mail", .uuid = "u-1"},
		{.id = "101", .name = "mail:101", .own_name = "mail", .uuid = "u-2"},
		{.id = "102", .name = "100", .own_name = "100", .uuid = "u-3"},
		{.id = "7",
		 .name = "kvm-7",
		 .own_name = "kvm-7",
		 .uuid = "u-4",
		 .vm.disputed = "db"},
	};

	assert_picked(list, 4, "100", "mail:100");
	assert_picked(list, 4, "102", "100");
	assert_picked(list, 4, "mail:101", "mail:101");
	assert_picked(list, 4, "U-3", "100");
	assert_not_picked(list, 4, "mail", WSS_ERR_AMBIGUOUS,
			  "matches two guests, 'mail:100' and 'mail:101'");
	assert_not_picked(list, 4, "db", WSS_ERR_GONE, "listed as 'kvm-7'");
	assert_not_picked(list, 4, "", WSS_ERR_GONE, "no such VM");
	assert_not_picked(list, 4, "103", WSS_ERR_GONE, "no such VM");
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
