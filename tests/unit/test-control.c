/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include <sys/file.h>

#include "measure/control.h"

static struct fake *fake;

static int set_up(void **unused)
{
	fake = fake_new("control");
	return wss_guest_attach(fake->guest, NULL, NULL);
}

static int tear_down(void **unused)
{
	fake_free(fake);
	return 0;
}

/* Starts a child that locks the guest until the child ends. */
static pid_t start_holder(void)
{
	int fds[2];
	pid_t pid;
	char c = '?';

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c = wss_control_take(&fake->guest->process, NULL) == 0 ? 'y' : 'n';
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(fds[0]);
	close(fds[1]);
	return pid;
}

TEST(test_excludes)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_process *process = &fake->guest->process, second = *process;
	unsigned fds = count_fds();

	assert_int_equal(wss_control_take(process, &err), 0);
	assert_true(fcntl(process->clear_refs, F_GETFD) & FD_CLOEXEC);
	/* Not even this process can take it again, through the same handle or another. */
	assert_int_equal(wss_control_take(process, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "another virt-wss");
	assert_true(process->clear_refs >= 0);
	wss_error_clear(&err);
	assert_int_equal(wss_control_take(&second, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "another virt-wss");
	assert_int_equal(second.clear_refs, -1);
	wss_control_release(process);
	assert_int_equal(wss_control_take(&second, NULL), 0);
	wss_control_release(&second);
	wss_control_release(&second);
	assert_int_equal(count_fds(), fds);
}

/* Another process has the lock until it is killed. */
TEST(test_dies_with_holder)
{
	struct wss_error err = WSS_ERROR_INIT;
	pid_t holder = start_holder();

	assert_int_equal(wss_control_take(&fake->guest->process, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, NULL);
	end_child(holder);
	assert_int_equal(wss_control_take(&fake->guest->process, NULL), 0);
	wss_control_release(&fake->guest->process);
}

/* A helper that was forked while the guest was locked has the descriptors, too, and lives on. */
TEST(test_free_despite_child)
{
	struct wss_process *process = &fake->guest->process;
	struct wss_error err = WSS_ERROR_INIT;
	pid_t child;

	assert_int_equal(wss_control_take(process, NULL), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	wss_control_release(process);
	wss_control_take(process, &err);
	wss_control_release(process);
	end_child(child);
	assert_string_equal(err.text, "");
}

/* Starts a process of another user that locks the guest's clear_refs, as each of QEMU's user can. */
static pid_t start_intruder(uid_t user)
{
	int fds[2], fd = wss_root_openat(&fake->guest->process.proc, "clear_refs", O_WRONLY);
	pid_t pid;
	char c = '?';

	assert_true(fd >= 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c = setresuid(user, user, user) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? 'y'
											  : 'n';
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fd);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(fds[0]);
	close(fds[1]);
	return pid;
}

/* A process of QEMU's user cannot keep root from measuring; one of root's can, and is named. */
TEST(test_lock_of_others)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_process *process = &fake->guest->process;
	char name[64];
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = start_intruder(65534);
	if (wss_control_take(process, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(process->intruder, pid);
	/* Root's lock holds all the same. */
	struct wss_process second = *process;

	second.clear_refs = second.lock = -1;
	assert_int_equal(wss_control_take(&second, &err), -1);
	snprintf(name, sizeof(name), "process %d (", getpid());
	assert_error(&err, WSS_ERR_BUSY, name);
	wss_control_release(process);
	end_child(pid);
	wss_error_clear(&err);

	pid = start_intruder(0);
	assert_int_equal(wss_control_take(process, &err), -1);
	snprintf(name, sizeof(name), "process %d (", pid);
	assert_error(&err, WSS_ERR_BUSY, name);
	end_child(pid);
	assert_int_equal(wss_control_take(process, NULL), 0);
	assert_int_equal(process->intruder, 0);
	wss_control_release(process);
}

/* Each guest has its own lock. */
TEST(test_other_guest)
{
	struct fake *other = fake_new("other");
	pid_t holder = start_holder();
	unsigned fds;

	fds = count_fds();
	assert_int_equal(wss_guest_attach(other->guest, NULL, NULL), 0);
	assert_int_equal(wss_control_take(&other->guest->process, NULL), 0);
	/* Releasing the process releases its lock, too. */
	wss_process_release(&other->guest->process);
	assert_int_equal(count_fds(), fds);
	end_child(holder);
	fake_free(other);
}

TEST(test_clear)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_span span = {0, 0};
	struct wss_process *process = &fake->guest->process;
	uint64_t before = wss_clock_now_ns();

	assert_int_equal(wss_control_probe(process, &err), 0);
	/* Nothing can be cleared without the lock. */
	assert_int_equal(wss_control_clear(process, '1', &span, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "the lock on the guest is lost");
	wss_error_clear(&err);
	assert_int_equal(wss_control_take(process, &err), 0);
	assert_int_equal(wss_control_clear(process, '1', &span, &err), 0);
	assert_true(span.start_ns >= before);
	assert_true(span.end_ns >= span.start_ns);
	assert_true(span.end_ns <= wss_clock_now_ns());
	assert_int_equal(wss_control_clear(process, '4', &span, &err), 0);
	/* And again through the same descriptor, whether its position has moved or not. */
	assert_int_equal(wss_control_clear(process, '1', &span, &err), 0);
	assert_int_equal(wss_control_clear(process, 'x', &span, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "clear_refs");
	wss_control_release(process);
}

TEST(test_gone)
{
	struct fake *gone = fake_new("gone");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_span span;

	assert_int_equal(wss_guest_attach(gone->guest, NULL, NULL), 0);
	assert_int_equal(wss_control_take(&gone->guest->process, NULL), 0);
	fake_end(gone);
	/* Opened before the end of the process, and after it. */
	assert_int_equal(wss_control_clear(&gone->guest->process, '4', &span, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_control_release(&gone->guest->process);
	wss_error_clear(&err);
	assert_int_equal(wss_control_take(&gone->guest->process, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	assert_int_equal(gone->guest->process.clear_refs, -1);
	wss_error_clear(&err);
	assert_int_equal(wss_control_probe(&gone->guest->process, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	fake_free(gone);
}

/* Tried as a user other than the guest's. */
static int use_without_permission(void)
{
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT, probed = WSS_ERROR_INIT;

	if (geteuid() == 0) {
		process = fake->guest->process;
		if (setuid(65534) < 0)
			return 1;
	} else if (wss_root_open("/proc/1", &process.proc, NULL) < 0) {
		return 2;
	}
	if (wss_control_take(&process, &err) == 0 || process.clear_refs != -1 ||
	    err.code != WSS_ERR_UNSUPPORTED || !strstr(err.text, "lacks CAP_DAC_OVERRIDE"))
		return 3;
	return wss_control_probe(&process, &probed) == 0 || probed.code != WSS_ERR_UNSUPPORTED;
}

TEST(test_no_permission)
{
	assert_int_equal(in_child(use_without_permission), 0);
}

int main(void)
{
	return tests_run_within(set_up, tear_down);
}
