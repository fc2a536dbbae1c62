/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tests of src/host: temporary trees that stand for "/", and children that look
 * like QEMU in /proc. Everything aborts the test on failure.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/root.h"
#include "host/process.h"
#include "tests/files.h"
#include "tests/patient.h"
#include "tests/testing.h"

#define UUID_A "a1b2c3d4-0000-4000-8000-00000000aaaa"
#define UUID_B "a1b2c3d4-0000-4000-8000-00000000bbbb"

/* Argument that turns the test program itself into a child that only waits. */
#define PLAY_QEMU "--play-qemu"

static inline void assert_error(const struct wss_error *err, enum wss_error_code code,
				const char *part)
{
	if (err->code != code || (part && !strstr(err->text, part)))
		fail_msg("error %d '%s' instead of %d '%s'", (int)err->code, err->text, (int)code,
			 part ? part : "");
}

/* Like snprintf() into a buffer of PATH_MAX, returned. */
static inline const char *make_path(char *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline const char *make_path(char *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, PATH_MAX, fmt, ap);
	va_end(ap);
	return buf;
}

/* An empty directory; the caller removes it with remove_tree(). */
static inline char *make_tree(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX];

	make_path(path, "%s/wss-test.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
	return strdup(path);
}

static inline void remove_tree(char *path)
{
	files_remove(path);
	free(path);
}

/* Writes tree/path, with the directories that lead to it. */
static inline void put_bytes(const char *tree, const char *path, const void *data, size_t len)
{
	char full[PATH_MAX];
	FILE *f;

	make_path(full, "%s/%s", tree, path);
	for (char *slash = full + strlen(tree) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *tree, const char *path, const char *text)
{
	put_bytes(tree, path, text, strlen(text));
}

static inline char *read_text(const char *path)
{
	struct wss_root root;
	char *text = NULL;

	assert_int_equal(wss_root_open("/", &root, NULL), 0);
	assert_int_equal(wss_root_read(&root, path + 1, 16 << 20, &text, NULL), 0);
	wss_root_close(&root);
	return text;
}

/* Copies the test program to tree/name, so that a child's executable has that name. */
static inline void copy_self(const char *tree, const char *name)
{
	wss_auto_free char *data = NULL;
	struct wss_root root;
	char path[PATH_MAX];
	ssize_t n;
	size_t len;

	/*
	 * Opened by name, because under valgrind the link reads correctly but opening it leads
	 * to valgrind itself.
	 */
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(wss_root_open("/", &root, NULL), 0);
	assert_int_equal(wss_root_read(&root, path + 1, SIZE_MAX / 4, &data, &len), 0);
	wss_root_close(&root);
	put_bytes(tree, name, data, len);
	assert_int_equal(chmod(make_path(path, "%s/%s", tree, name), 0755), 0);
}

/* main() of the test program in such a child: reports that it runs, and waits. */
static inline int play_qemu(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(STDOUT_FILENO, "r", 1) != 1)
		return 1;
	for (;;)
		pause();
}

/*
 * In a fork()ed child: becomes exe, with "-uuid UUID" (none if NULL) and one more
 * argument if not NULL. Reports on descriptor out.
 */
static inline void exec_qemu(const char *exe, const char *uuid, const char *extra, int out)
{
	const char *argv[8] = {"qemu-system-x86_64", PLAY_QEMU};
	int n = 2;

	if (uuid) {
		argv[n++] = "-uuid";
		argv[n++] = uuid;
	}
	if (extra)
		argv[n++] = extra;
	dup2(out, STDOUT_FILENO);
	execv(exe, (char *const *)argv);
	_exit(127);
}

/* Starts such a child and returns once it runs. */
static inline pid_t start_qemu(const char *exe, const char *uuid, const char *extra)
{
	int out[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		exec_qemu(exe, uuid, extra, out[1]);
	close(out[1]);
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	return pid;
}

/* Kills a child and leaves it a zombie. Does not sleep until it is one: see tests/leaping.h. */
static inline void make_zombie(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	kill(pid, SIGKILL);
	while (info.si_pid != pid) {
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG), 0);
		sched_yield();
	}
}

static inline void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * Whether processes can be held: not before Linux 5.3, and not under valgrind 3.19. The answer is kept:
 * a benchmark asks for every window.
 */
static inline bool have_pidfd(void)
{
	static atomic_int have = -1;
	int fd;

	if (have < 0) {
		fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
		have = fd >= 0 || errno != ENOSYS;
		if (fd >= 0)
			close(fd);
	}
	return have;
}

/* Takes the place of all tests that need a pidfd, in a run without pidfds. */
static inline void test_needs_pidfd(void **unused)
{
	(void)unused;
	print_message("# no pidfd_open here (old kernel, or valgrind)\n");
	skip();
}

/* Asserts that a file holds a short text and nothing else. */
static inline void assert_file_holds(const char *name, const char *text)
{
	char data[64] = "";
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, data, sizeof(data) - 1) >= 0);
	close(fd);
	assert_string_equal(data, text);
}

/* Runs fn in a child, because its effects cannot be undone. Returns 0 if it succeeds. */
static inline int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/*
 * Holds a child as a guest's process; under a valgrind without pidfd_open, through its
 * directory only.
 */
static inline int hold_child(pid_t child, struct wss_process *process, struct wss_error *err)
{
	char path[PATH_MAX];
	struct wss_root real;
	int r;

	if (!have_pidfd()) {
		process->pid = child;
		assert_int_equal(
			wss_root_open(make_path(path, "/proc/%d", child), &process->proc, NULL), 0);
		return 0;
	}
	assert_int_equal(wss_root_open("/", &real, NULL), 0);
	r = wss_process_hold(&real, child, NULL, process, err);
	wss_root_close(&real);
	return r;
}
