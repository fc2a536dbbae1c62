/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who is believed to be which guest, on an invented host whose VMs the kernel is taken to know. */
#include "fakekvm.h"

#include "host/vms.h"

#define PID 4242
#define OTHER 4243
/* Has no account. */
#define PERSON 3999999

#define QEMU "/usr/bin/qemu-system-x86_64"
#define CH "/usr/bin/cloud-hypervisor"
#define INCUS "1:cpu:/x\n0::/system.slice/incus.service\n"
#define POD_UID "11111111-2222-4333-8444-555555555555"
#define POD                                                                  \
	"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" \
	"11111111_2222_4333_8444_555555555555.slice/cri-containerd-12.scope\n"
#define JAIL_OF(id) "9 8 0:1 /srv/jailer/firecracker/" id "/root / rw,relatime - ext4 /dev/a rw\n"

static char *tree;
static struct wss_root root;
static struct wss_vm *vms;
static size_t n_vms;

static void put_link(const char *directory, const char *name, const char *target)
{
	char path[PATH_MAX];

	make_path(path, "%s/%s/%s", tree, directory, name);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static void put_namespaces(const char *pid, const char *pids, const char *users)
{
	char path[PATH_MAX];

	put_text(tree, make_path(path, "proc/%s/ns/made", pid), "");
	make_path(path, "proc/%s/ns", pid);
	put_link(path, "pid", pids);
	put_link(path, "user", users);
}

/* Arguments are separated by blanks. */
static void put_process(int pid, unsigned uid, const char *exe, const char *cgroup,
			const char *arguments)
{
	char text[1024], path[PATH_MAX], number[16];
	size_t length = strlen(arguments) + 1;

	assert_true(length <= sizeof(text));
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(arguments[i] == ' ' ? '\0' : arguments[i]);
	put_bytes(tree, make_path(path, "proc/%d/cmdline", pid), text, length);
	snprintf(text, sizeof(text), "%d (vm) S 1 1 1 0 -1 0 0 0 0 0 10 20 0 0 20 0 4 0 5000 0 0\n",
		 pid);
	put_text(tree, make_path(path, "proc/%d/stat", pid), text);
	snprintf(text, sizeof(text), "Name:\tvm\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
	put_text(tree, make_path(path, "proc/%d/status", pid), text);
	put_text(tree, make_path(path, "proc/%d/cgroup", pid), cgroup);
	put_text(tree, make_path(path, "proc/%d/mountinfo", pid),
		 "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / /proc rw - proc proc rw\n");
	snprintf(number, sizeof(number), "%d", pid);
	put_namespaces(number, "pid:[1]", "user:[1]");
	put_link(make_path(path, "proc/%d", pid), "exe", exe);
}

static int set_up(void **unused)
{
	tree = make_tree();
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	put_namespaces("self", "pid:[1]", "user:[1]");
	fake_kvm = (struct fake_kvm){
		.n_entries = 1,
		.entries = {{.vm = 7, .pid = PID, .fd = 9}, {.vm = 8, .pid = OTHER, .fd = 9}}};
	return 0;
}

static int tear_down(void **unused)
{
	free(vms);
	vms = NULL;
	wss_root_close(&root);
	remove_tree(tree);
	return 0;
}

/* Returns the VM of that process. */
static const struct wss_vm *list(pid_t pid)
{
	struct wss_error err = WSS_ERROR_INIT;

	free(vms);
	vms = NULL;
	if (wss_vms_list(&root, &vms, &n_vms, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(n_vms, fake_kvm.n_entries);
	for (size_t i = 0; i < n_vms; i++)
		if (vms[i].pid == pid)
			return &vms[i];
	fail_msg("no VM of process %d", pid);
	return NULL;
}

static void assert_believed(const char *manager, const char *name)
{
	const struct wss_vm *vm = list(PID);

	if (!vm->claims || strcmp(vm->manager, manager) || strcmp(vm->name, name) || vm->why[0])
		fail_msg("'%s' of '%s' (%s) instead of '%s' of '%s'", vm->name, vm->manager,
			 vm->why, name, manager);
	assert_int_equal(strlen(vm->uuid), WSS_UUID_TEXT_MAX - 1);
}

static void assert_refused(const char *name, const char *why)
{
	const struct wss_vm *vm = list(PID);

	if (vm->claims || strcmp(vm->manager, "unknown") || strcmp(vm->name, name) ||
	    !strstr(vm->why, why))
		fail_msg("'%s' of '%s' (%s) instead of '%s' (%s)", vm->name, vm->manager, vm->why,
			 name, why);
	assert_string_equal(vm->monitor, "");
	assert_false(vm->has_uuid);
}

TEST(test_without_a_manager_root_and_services_are_believed)
{
	put_process(PID, 0, QEMU, "0::/a\n",
		    "qemu -name guest=web,x=1 -uuid A1B2C3D4-0000-4000-8000-00000000AAAA "
		    "-qmp unix:/run/web.qmp,server=on");
	assert_believed("", "web");
	assert_string_equal(vms->uuid, UUID_A);
	assert_string_equal(vms->monitor, "/run/web.qmp");
	put_process(PID, 999, "/opt/crosvm", "0::/a\n",
		    "crosvm run --name web --socket /run/x.sock");
	assert_believed("", "web");
	put_process(PID, 999, "/opt/crosvm", "0::/a\n", "crosvm run -s /run/db.sock");
	assert_believed("", "db");
	put_process(PID, 0, "/opt/firecracker", "0::/a\n", "firecracker --id vm-7");
	assert_believed("", "vm-7");
	put_process(PID, PERSON, QEMU, "0::/a\n", "qemu -name web -uuid " UUID_A);
	assert_refused("web@3999999", "its user is neither root nor");
	put_namespaces("4242", "pid:[2]", "user:[1]");
	assert_refused("web@3999999", "it runs in a container");
	put_process(PID, 0, "/opt/vmm", "0::/a\n", "vmm --name web");
	assert_refused("vmm-4242", "its arguments name no guest");
}

TEST(test_cloud_hypervisor_is_named_by_its_socket)
{
	put_process(PID, 0, CH, "0::/a\n", "ch --api-socket /run/ch/web.sock --memory size=1G");
	assert_believed("", "web");
	assert_false(vms->has_uuid);
	put_process(
		PID, 0, CH, "0::/a\n",
		"ch --api-socket path=/run/ch/db.socket --platform serial_number=1,uuid=" UUID_A);
	assert_believed("", "db");
	assert_string_equal(vms->uuid, UUID_A);
	put_process(PID, 0, CH, "0::/a\n",
		    "ch --api-socket path=web.1 --platform num_pci_segments=1,system_uuid=" UUID_B
		    ",x=1");
	assert_believed("", "web.1");
	assert_string_equal(vms->uuid, UUID_B);
	put_process(PID, 0, CH, "0::/a\n", "ch --api-socket fd=3 --kernel a");
	assert_refused("cloud-hypervisor-4242", "its arguments name no guest");
}

TEST(test_incus_and_lxd_name_theirs_by_the_directory_whatever_the_user)
{
	put_process(PID, 65534, QEMU, INCUS,
		    "qemu -name web -uuid " UUID_A " -readconfig /run/incus/web/qemu.conf "
		    "-qmp unix:/run/incus/web/qemu.monitor,server=on");
	assert_believed("incus", "web");
	assert_string_equal(vms->uuid, UUID_A);
	/* The daemon never leaves it. */
	assert_string_equal(vms->monitor, "");
	put_process(PID, 65534, QEMU, INCUS,
		    "qemu -name web -readconfig /run/incus/prod_web/qemu.conf");
	assert_believed("incus", "prod_web");
	put_process(PID, 0, "/snap/lxd/1/bin/qemu-system-x86_64",
		    "0::/system.slice/snap.lxd.daemon.service\n",
		    "qemu -name web -readconfig /var/snap/lxd/common/lxd/logs/web/qemu.conf");
	assert_believed("lxd", "web");
	put_process(PID, 0, QEMU, "0::/system.slice/lxd.service\n",
		    "qemu -name web -readconfig /var/log/lxd/web/qemu.conf");
	assert_believed("lxd", "web");
	put_process(PID, 0, QEMU, INCUS, "qemu -name web -readconfig /run/incus/db/qemu.conf");
	assert_refused("web@root", "not the file qemu.conf of an instance of that name");
	put_process(PID, 0, QEMU, INCUS, "qemu -name web -readconfig /run/incus/xweb/qemu.conf");
	assert_refused("web@root", "not the file qemu.conf");
	put_process(PID, 0, QEMU, INCUS, "qemu -name web -readconfig qemu.conf");
	assert_refused("web@root", "not the file qemu.conf");
	put_process(PID, 0, QEMU, INCUS, "qemu -name web");
	assert_refused("web@root", "not the file qemu.conf");
	put_process(PID, 0, QEMU, INCUS,
		    "qemu -name web -readconfig /run/incus/\x1b_web/qemu.conf");
	assert_believed("incus", "?_web");
	/* In another hierarchy it is Proxmox VE's. */
	put_process(PID, 0, QEMU, "1:cpu:/qemu.slice/100.scope\n" INCUS,
		    "qemu -name web -readconfig /run/incus/web/qemu.conf");
	assert_refused("web@root", "its VMID is not that of its cgroup");
	/* The same arguments outside of the service, in a cgroup that a user has named so. */
	put_process(PID, PERSON, QEMU, "0::/user.slice/x:/system.slice/incus.service\n",
		    "qemu -name web -readconfig /run/incus/web/qemu.conf");
	assert_refused("web@3999999", "its user is neither root nor");
}

static void put_pod(const char *name)
{
	char path[PATH_MAX];

	put_text(tree, make_path(path, "var/log/pods/%s/compute/0.log", name), "");
}

TEST(test_kubevirt_is_believed_in_the_pod_that_the_kubelet_calls_so)
{
	static const char in_pod[] = "qemu -name guest=prod_web,debug-threads=on -uuid " UUID_A;

	put_process(PID, PERSON, "/usr/libexec/qemu-kvm", POD, in_pod);
	put_namespaces("4242", "pid:[2]", "user:[1]");
	put_pod("prod_virt-launcher-web2-abcde_" POD_UID);
	put_pod("prod_virt-launcher-web-abcdef_" POD_UID);
	put_pod("dev_virt-launcher-web-abcde_" POD_UID);
	put_pod("prod_virt-launcher-web-abcde_" UUID_B);
	assert_refused("prod_web@3999999", "its pod " POD_UID " is not the launcher");
	put_pod("prod_virt-launcher-web-abcde_" POD_UID);
	assert_believed("kubevirt", "prod_web");
	/* Another namespace's may have the same. */
	assert_false(vms->has_uuid);
	put_process(PID, PERSON, "/usr/libexec/qemu-kvm",
		    "0::/kubepods/burstable/pod" POD_UID "/12\n", in_pod);
	put_namespaces("4242", "pid:[2]", "user:[1]");
	assert_believed("kubevirt", "prod_web");
	/* Kubernetes cuts the name. */
	put_process(
		PID, 107, "/usr/libexec/qemu-kvm", POD,
		"qemu -name guest=a_w23456789012345678901234567890123456789012345678901234567890");
	put_namespaces("4242", "pid:[2]", "user:[1]");
	put_pod("a_virt-launcher-w2345678901234567890123456789012345678901234abcde_" POD_UID);
	assert_believed("kubevirt",
			"a_w23456789012345678901234567890123456789012345678901234567890");
	/* Another's, such as Kata Containers'. */
	put_process(PID, 0, QEMU, POD, "qemu -name sandbox-1_2");
	assert_believed("", "sandbox-1_2");
	put_process(PID, PERSON, QEMU, "0::/kubepods/poddle\n", in_pod);
	put_namespaces("4242", "pid:[2]", "user:[1]");
	assert_refused("prod_web@3999999", "it runs in a container");
}

static void put_jail(const char *cgroup, const char *arguments, const char *mounts,
		     const char *users)
{
	put_process(PID, PERSON, "/firecracker", cgroup, arguments);
	put_text(tree, "proc/4242/mountinfo", mounts);
	put_namespaces("4242", "pid:[2]", users);
}

TEST(test_the_jail_of_firecracker_names_it)
{
	put_jail("1:cpu:/firecracker/vm-7\n0::/a\n", "/firecracker --id vm-7 --start-time-us 1",
		 JAIL_OF("vm-7"), "user:[1]");
	assert_believed("jailer", "vm-7");
	put_jail("0::/a\n", "/firecracker --id=vm-7", JAIL_OF("vm-7"), "user:[1]");
	assert_believed("jailer", "vm-7");
	put_jail("0::/a\n", "/firecracker --id vm-7", JAIL_OF("vm-7"), "user:[2]");
	assert_refused("vm-7@3999999", "user namespace");
	put_jail("0::/a\n", "/firecracker --id vm-7", JAIL_OF("vm-8"), "user:[1]");
	assert_refused("vm-7@3999999", "its jail is that of vm-8");
	put_jail("0::/firecracker/vm-70\n", "/firecracker --id vm-7", JAIL_OF("vm-7"), "user:[1]");
	assert_refused("vm-7@3999999", "its cgroup is that of vm-70");
	/* The last mount is on top. */
	put_jail("0::/a\n", "/firecracker --id vm-7", JAIL_OF("vm-7") "1 2 0:1 / / rw - a b rw\n",
		 "user:[1]");
	assert_refused("vm-7@3999999", "it runs in a container");
	put_jail("0::/a\n", "/firecracker --id vm-7",
		 "1 2 0:1 /firecracker/vm-7/root /x rw - a b rw\n", "user:[1]");
	assert_refused("vm-7@3999999", "it runs in a container");
	put_jail("0::/a\n", "/firecracker --id vm-7",
		 "9 8 0:1 /srv/jailer/fire/vm-7/root / rw - a b rw\n", "user:[1]");
	assert_refused("vm-7@3999999", "it runs in a container");
	/* Root would be believed without the jail. */
	put_process(PID, 0, "/firecracker", "0::/a\n", "/firecracker --id vm-7");
	put_text(tree, "proc/4242/mountinfo", JAIL_OF("vm-8"));
	assert_refused("vm-7@root", "its jail is that of vm-8");
}

TEST(test_libvirt_and_proxmox_are_known_by_their_cgroups)
{
	put_process(PID, PERSON, QEMU,
		    "0::/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt\n",
		    "qemu -name guest=web");
	assert_believed("libvirt", "web");
	put_process(PID, 0, QEMU, "0::/qemu.slice/100.scope\n", "kvm -id 100 -name web");
	assert_believed("proxmox", "web");
	put_process(PID, 0, QEMU, "0::/qemu.slice/100.scope/x\n", "kvm -id 100 -name web");
	assert_refused("web@root", "its VMID is not that of its cgroup /qemu.slice/100.scope/x");
	put_process(PID, 0, QEMU, "0::/qemu.slice/100.scope\n", "kvm -id 10 -name web");
	assert_refused("web@root", "its VMID is not that");
}

TEST(test_a_manager_outweighs_an_equal_claim_and_two_equal_claims_are_none)
{
	char uuid[WSS_UUID_TEXT_MAX];

	put_jail("0::/a\n", "/firecracker --id web", JAIL_OF("web"), "user:[1]");
	strcpy(uuid, list(PID)->uuid);
	fake_kvm.n_entries = 2;
	put_process(OTHER, 0, QEMU, "0::/a\n", "qemu -name web");
	assert_believed("jailer", "web");
	assert_string_equal(list(PID)->uuid, uuid);
	assert_string_equal(list(OTHER)->name, "qemu-system-x86_64-4243");
	assert_string_equal(list(OTHER)->why, "another VM has the same name or UUID");
	put_process(PID, 0, CH, "0::/a\n", "ch --api-socket /run/web.sock");
	assert_refused("cloud-hypervisor-4242", "another VM has the same name or UUID");
	put_process(PID, 0, CH, "0::/a\n", "ch --api-socket /run/db.sock --platform uuid=" UUID_A);
	put_process(OTHER, 0, QEMU, "0::/a\n", "qemu -name web -uuid " UUID_A);
	assert_refused("cloud-hypervisor-4242", "another VM has the same name or UUID");
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
