/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The same queries against the installed QEMU, under TCG; no guest needs to boot. */
#include "fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qmp/jsonline.h"
#include "qmp/query.h"

#define QEMU "qemu-system-x86_64"
#define MIB ((uint64_t)1 << 20)
#define UUID "0a1b2c3d-1111-2222-3333-444455556666"

struct qemu {
	pid_t pid;
	char dir[64], socket[96], monitor[96];
};

static void exec_qemu(const struct qemu *qemu, const char *const *more)
{
	const char *args[64] = {QEMU, "-nodefaults", "-display", "none",
				"-S", "-accel",	     "tcg",	 "-qmp"};
	char qmp[128], monitor[128];
	size_t n = 8;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(qmp, sizeof(qmp), "unix:%s,server=on,wait=off", qemu->socket);
	snprintf(monitor, sizeof(monitor), "unix:%s,server=on,wait=off", qemu->monitor);
	args[n++] = qmp;
	args[n++] = "-monitor";
	args[n++] = monitor;
	while (*more && n < 63)
		args[n++] = *more++;
	execvp(QEMU, (char *const *)args);
	_exit(127);
}

/* Starts QEMU and connects as soon as its socket exists. */
static struct qmp *start(struct qemu *qemu, const char *const *more)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;
	uint64_t end = now_ms() + PLENTY_MS;

	strcpy(qemu->dir, "/tmp/test-qemu-XXXXXX");
	assert_non_null(mkdtemp(qemu->dir));
	snprintf(qemu->socket, sizeof(qemu->socket), "%s/qmp", qemu->dir);
	snprintf(qemu->monitor, sizeof(qemu->monitor), "%s/hmp", qemu->dir);
	qemu->pid = fork();
	assert_true(qemu->pid >= 0);
	if (!qemu->pid)
		exec_qemu(qemu, more);
	while (qmp_open_unix(qemu->socket, PLENTY_MS, NULL, &qmp, &err) < 0) {
		if (err.code != WSS_ERR_CONNECT || now_ms() > end ||
		    waitpid(qemu->pid, NULL, WNOHANG))
			fail_msg("%s", err.text);
		poll(NULL, 0, 10);
	}
	return qmp;
}

static void stop(struct qemu *qemu)
{
	kill(qemu->pid, SIGKILL);
	assert_int_equal(waitpid(qemu->pid, NULL, 0), qemu->pid);
	unlink(qemu->socket);
	unlink(qemu->monitor);
	rmdir(qemu->dir);
}

/* For functions with a variable err. */
#define OK(call)                                  \
	do {                                      \
		if ((call) < 0)                   \
			fail_msg("%s", err.text); \
	} while (0)

/* Checks properties of any guest under TCG. */
static void check_common(struct qmp *qmp, const struct qemu *qemu)
{
	struct qmp_stat stats[] = {{.name = "pages_4k"}, {.name = "pf_fixed"}};
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_migration migration;
	struct qmp_status status;
	char protection[QMP_NAME_MAX];
	struct qmp_peer peer;
	struct qmp_kvm kvm;

	OK(qmp_peer(qmp, &peer, &err));
	assert_int_equal(peer.pid, qemu->pid);
	OK(qmp_query_status(qmp, PLENTY_MS, &status, &err));
	assert_false(status.running);
	assert_string_equal(status.state, "prelaunch");
	OK(qmp_query_confidential(qmp, PLENTY_MS, protection, &err));
	assert_string_equal(protection, "");
	OK(qmp_query_kvm(qmp, PLENTY_MS, &kvm, &err));
	assert_false(kvm.enabled);
	OK(qmp_query_migrate(qmp, PLENTY_MS, &migration, &err));
	assert_string_equal(migration.state, "");
	assert_false(migration.in_progress);
	/* QEMU 7.1 and later. */
	OK(qmp_query_stats(qmp, QMP_STATS_VM, stats, 2, PLENTY_MS, &err));
	OK(qmp_query_stats(qmp, QMP_STATS_VCPU, stats, 2, PLENTY_MS, &err));
	assert_false(stats[0].found || stats[1].found);
	assert_int_equal(qmp_execute(qmp, "no-such-command", NULL, PLENTY_MS, NULL, &err), -1);
	assert_code(&err, WSS_ERR_UNSUPPORTED);
	assert_int_equal(qmp_last_class(qmp), QMP_CLASS_COMMAND_NOT_FOUND);
	wss_error_clear(&err);
	assert_int_equal(qmp_execute(qmp, "query-stats", NULL, PLENTY_MS, NULL, &err), -1);
	assert_int_equal(qmp_last_class(qmp), QMP_CLASS_GENERIC);
}

TEST(test_bare_machine)
{
	static const char *const args[] = {"-machine", "none", NULL};
	char uuid[QMP_UUID_TEXT_MAX], name[QMP_NAME_MAX];
	struct qmp_memory_device *devices = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_memdev *memdevs = NULL;
	struct qmp_memory_size size;
	struct qmp_balloon balloon;
	struct qemu qemu;
	struct qmp *qmp = start(&qemu, args);
	size_t count = 77;

	check_common(qmp, &qemu);
	OK(qmp_query_uuid(qmp, PLENTY_MS, uuid, &err));
	assert_string_equal(uuid, "00000000-0000-0000-0000-000000000000");
	OK(qmp_query_name(qmp, PLENTY_MS, name, &err));
	assert_string_equal(name, "");
	OK(qmp_query_memory_size(qmp, PLENTY_MS, &size, &err));
	assert_int_equal(size.base_bytes + size.plugged_bytes, 0);
	OK(qmp_query_balloon(qmp, PLENTY_MS, &balloon, &err));
	assert_false(balloon.present);
	OK(qmp_query_memdev(qmp, PLENTY_MS, &memdevs, &count, &err));
	assert_true(!memdevs && !count);
	OK(qmp_query_memory_devices(qmp, PLENTY_MS, &devices, &count, &err));
	assert_true(!devices && !count);
	qmp_close(qmp);
	stop(&qemu);
}

static void check_memory(struct qmp *qmp)
{
	struct qmp_memory_device *devices = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_memdev *memdevs = NULL;
	struct qmp_memory_size size;
	uint64_t total = 0;
	size_t count = 0;

	OK(qmp_query_memory_size(qmp, PLENTY_MS, &size, &err));
	assert_int_equal(size.base_bytes, 64 * MIB);
	assert_true(size.has_plugged);
	assert_int_equal(size.plugged_bytes, 32 * MIB);
	OK(qmp_query_memdev(qmp, PLENTY_MS, &memdevs, &count, &err));
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++)
		total += memdevs[i].size_bytes;
	assert_int_equal(total, (64 + 32 + 128) * MIB);
	free(memdevs);
	OK(qmp_query_memory_devices(qmp, PLENTY_MS, &devices, &count, &err));
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		bool dimm = !strcmp(devices[i].type, "dimm");

		assert_string_equal(devices[i].id, dimm ? "dimm0" : "vmem0");
		assert_string_equal(devices[i].memdev, dimm ? "/objects/m1" : "/objects/m2");
		assert_true(devices[i].gpa >= 4096 * MIB);
		assert_int_equal(devices[i].size_bytes, dimm ? 32 * MIB : 0);
		assert_int_equal(devices[i].max_bytes, dimm ? 32 * MIB : 128 * MIB);
	}
	free(devices);
}

static void check_devices(struct qmp *qmp)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_model *list = NULL;
	size_t count = 0;

	OK(qmp_query_children(qmp, "/machine/peripheral", PLENTY_MS, &list, &count, &err));
	assert_int_equal(count, 2);
	assert_string_equal(list[0].name[0] == 'p' ? list[0].name : list[1].name, "pc-dimm");
	free(list);
	OK(qmp_query_children(qmp, "/machine/peripheral-anon", PLENTY_MS, &list, &count, &err));
	assert_int_equal(count, 1);
	assert_string_equal(list[0].name, "virtio-balloon-pci");
	free(list);
	OK(qmp_query_network(qmp, PLENTY_MS, &list, &count, &err));
	assert_int_equal(count, 2);
	assert_string_equal(list[0].name, "nic");
	assert_string_equal(list[1].name, "user");
	free(list);
}

TEST(test_guest)
{
	static const char *const args[] = {
		"-machine", "pc,memory-backend=ram0",
		"-m",	    "64M,slots=4,maxmem=1G",
		"-object",  "memory-backend-memfd,id=ram0,size=64M,share=on",
		"-object",  "memory-backend-ram,id=m1,size=32M",
		"-device",  "pc-dimm,id=dimm0,memdev=m1",
		"-object",  "memory-backend-ram,id=m2,size=128M",
		"-device",  "virtio-mem-pci,id=vmem0,memdev=m2,requested-size=0",
		"-device",  "virtio-balloon-pci",
		"-nic",	    "user,model=e1000",
		"-uuid",    UUID,
		"-name",    "guest one",
		NULL};
	char uuid[QMP_UUID_TEXT_MAX], name[QMP_NAME_MAX];
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp_balloon balloon;
	struct qmp_machine machine;
	struct qmp_status status;
	struct qemu qemu;
	struct qmp *qmp = start(&qemu, args);

	check_common(qmp, &qemu);
	check_memory(qmp);
	check_devices(qmp);
	OK(qmp_query_uuid(qmp, PLENTY_MS, uuid, &err));
	assert_string_equal(uuid, UUID);
	OK(qmp_query_name(qmp, PLENTY_MS, name, &err));
	assert_string_equal(name, "guest one");
	OK(qmp_query_machine(qmp, PLENTY_MS, &machine, &err));
	/* The alias is resolved, and QEMU has set the default. */
	assert_memory_equal(machine.type, "pc-i440fx-", 10);
	assert_int_equal(machine.max_ram_below_4g_bytes, 0xe0000000);
	OK(qmp_query_balloon(qmp, PLENTY_MS, &balloon, &err));
	assert_true(balloon.present);
	assert_int_equal(balloon.actual_bytes, (64 + 32) * MIB);
	OK(qmp_execute(qmp, "cont", NULL, PLENTY_MS, NULL, &err));
	OK(qmp_query_status(qmp, PLENTY_MS, &status, &err));
	assert_true(status.running);
	assert_false(qmp_stops_seen(qmp).stopped);
	OK(qmp_execute(qmp, "stop", NULL, PLENTY_MS, NULL, &err));
	assert_true(qmp_stops_seen(qmp).stopped);
	OK(qmp_query_status(qmp, PLENTY_MS, &status, &err));
	assert_string_equal(status.state, "paused");
	assert_false(qmp_stops_seen(qmp).stopped);
	qmp_close(qmp);
	stop(&qemu);
}

/* The other kind of monitor, a second client, a stopped QEMU, and one that dies. */
TEST(test_trouble)
{
	static const char *const args[] = {"-machine", "none", NULL};
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *second = NULL;
	struct qemu qemu;
	struct qmp *qmp = start(&qemu, args);

	assert_int_equal(qmp_open_unix(qemu.monitor, PLENTY_MS, NULL, &second, &err), -1);
	assert_code(&err, WSS_ERR_CONNECT);
	assert_int_equal(qmp_open_unix(qemu.socket, 200, NULL, &second, &err), -1);
	assert_code(&err, WSS_ERR_CONNECT);
	assert_null(second);
	kill(qemu.pid, SIGSTOP);
	assert_int_equal(qmp_execute(qmp, "query-status", NULL, 200, NULL, &err), -1);
	assert_code(&err, WSS_ERR_TIMEOUT);
	kill(qemu.pid, SIGCONT);
	qmp_close(qmp);

	if (qmp_open_unix(qemu.socket, PLENTY_MS, NULL, &qmp, &err) < 0)
		fail_msg("%s", err.text);
	stop(&qemu);
	assert_int_equal(qmp_execute(qmp, "query-status", NULL, PLENTY_MS, NULL, &err), -1);
	assert_code(&err, WSS_ERR_GONE);
	qmp_close(qmp);
}

int main(void)
{
	if (system("command -v " QEMU " >/dev/null")) {
		puts("1..0 # SKIP no " QEMU);
		return 77;
	}
	return tests_run();
}
