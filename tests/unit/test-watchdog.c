/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The controller's watchdog. Its command is this program, which records the guests that it was
 * run for, and fails for guests named in a file.
 */
#include "hosttest.h"

#include <sys/file.h>

#include "../divert.h"
#include "control/watchdog.h"

static char *dir;
static char history[PATH_MAX];

/* Allocations of the watchdog (not of this process) that are still to fail. */
static struct {
	pid_t ours;
	unsigned reallocarray, strndup;
} memory;

static bool is_to_fail(unsigned *left)
{
	if (getpid() == memory.ours || !*left)
		return false;
	--*left;
	return true;
}

static __typeof__(&reallocarray) real_reallocarray;
static __typeof__(&strndup) real_strndup;

static void *short_reallocarray(void *p, size_t n, size_t size)
{
	return is_to_fail(&memory.reallocarray) ? NULL : real_reallocarray(p, n, size);
}

static char *short_strndup(const char *text, size_t n)
{
	return is_to_fail(&memory.strndup) ? NULL : real_strndup(text, n);
}

/* Acts as --restore: returns true if FILE.NAME contains the word. */
static bool has(const char *file, const char *name, const char *word)
{
	char path[PATH_MAX], line[256];
	bool found = false;
	FILE *f = fopen(make_path(path, "%s.%s", file, name), "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, word);
	}
	if (f)
		fclose(f);
	return found;
}

static int play_restore(int argc, char **argv)
{
	char path[PATH_MAX];
	FILE *log = fopen(make_path(path, "%s.log", argv[2]), "ae");
	int code = 0;

	for (int i = 3; i < argc; i++) {
		fprintf(log, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
		if (has(argv[2], "bad", argv[i]))
			code = 3;
	}
	fclose(log);
	return code;
}

static int start(void)
{
	const char *const command[] = { "any", "--play-restore", history, NULL };
	struct wss_error err = WSS_ERROR_INIT;
	int fd = -1;

	dir = make_tree();
	make_path(history, "%s/history", dir);
	assert_int_equal(wss_watchdog_start(command, &fd, &err), 0);
	assert_int_equal(wss_watchdog_charge(fd, UUID_A, &err), 0);
	assert_int_equal(wss_watchdog_charge(fd, UUID_B, &err), 0);
	assert_int_equal(wss_watchdog_charge(fd, NULL, &err), 0);
	return fd;
}

static void wait_for_log(const char *word)
{
	while (!has(history, "log", word))
		assert_int_equal(usleep(1000), 0);
}

static void assert_text(const char *name, const char *expected)
{
	char path[PATH_MAX], text[1024] = "";
	FILE *f = fopen(make_path(path, "%s.%s", history, name), "re");

	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	assert_string_equal(text, expected);
}

static void assert_log(const char *expected)
{
	assert_text("log", expected);
	remove_tree(dir);
}

static void wait_for_its_end(void)
{
	int status;

	assert_true(wait(&status) > 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_all_is_well(void **unused)
{
	(void)unused;
	wss_watchdog_dismiss(start());
	wait_for_its_end();
	assert_log("");
}

/* Under valgrind /proc/self/exe is valgrind. */
static void need_ourselves(void)
{
	if (getenv("WSS_VALGRIND"))
		skip();
}

static void test_killed(void **unused)
{
	(void)unused;
	need_ourselves();
	close(start());
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/* The watchdog knows how the command ended even if whoever started us ignores SIGCHLD. */
static void test_ignored_sigchld(void **unused)
{
	int fd;

	(void)unused;
	need_ourselves();
	signal(SIGCHLD, SIG_IGN);
	fd = start();
	signal(SIGCHLD, SIG_DFL);
	close(fd);
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/* Each guest is added, however often an allocation for it fails. */
static void test_out_of_memory(void **unused)
{
	(void)unused;
	need_ourselves();
	memory.ours = getpid();
	memory.reallocarray = 2;
	memory.strndup = 3;
	close(start());
	memory.reallocarray = memory.strndup = 0;
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/*
 * A guest that has all of its memory is dropped, because another controller may tend it by the
 * next run.
 */
static void test_one_fails(void **unused)
{
	char path[PATH_MAX];
	int fd;

	(void)unused;
	need_ourselves();
	fd = start();
	put_text(dir, "history.bad", UUID_B "\n");
	close(fd);
	wait_for_log(UUID_B);
	unlink(make_path(path, "%s.bad", history));
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n" UUID_A "\n" UUID_B "\n" UUID_B "\n");
}

/* A controller that dies leaves its locks to nobody, though its watchdog still tries to restore. */
static void test_holds_no_lock(void **unused)
{
	char path[PATH_MAX], name[PATH_MAX];
	int fd, lock, locked, ended;
	pid_t holder;

	(void)unused;
	need_ourselves();
	dir = make_tree();
	make_path(history, "%s/history", dir);
	put_text(dir, "history.bad", UUID_A "\n");
	put_text(dir, "lock", "");
	make_path(name, "%s/lock", dir);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	holder = fork();
	if (holder == 0) {
		const char *const command[] = { "any", "--play-restore", history, NULL };
		int held = open(name, O_RDWR | O_CLOEXEC);

		if (flock(held, LOCK_EX) < 0 || wss_watchdog_start(command, &fd, NULL) < 0 ||
		    wss_watchdog_charge(fd, UUID_A, NULL) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	wait_for_log(UUID_A);
	lock = open(name, O_RDWR | O_CLOEXEC);
	locked = flock(lock, LOCK_EX | LOCK_NB);
	close(lock);
	/* The watchdog is still there. */
	ended = waitpid(-1, NULL, WNOHANG);
	unlink(make_path(path, "%s.bad", history));
	wait_for_its_end();
	assert_int_equal(locked, 0);
	assert_int_equal(ended, 0);
	remove_tree(dir);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* Each silence counts once, and does not end the watchdog. */
static void test_stands_still(void **unused)
{
	char log[PATH_MAX], first[PATH_MAX];
	int fd;

	(void)unused;
	need_ourselves();
	setenv("VIRT_WSS_FAULT", "short-silence", 1);
	fd = start();
	unsetenv("VIRT_WSS_FAULT");
	wait_for_log(UUID_A " " UUID_B);
	assert_int_equal(usleep(500000), 0);
	rename(make_path(log, "%s.log", history), make_path(first, "%s.first", history));
	wss_watchdog_beat(fd);
	wait_for_log(UUID_A " " UUID_B);
	wss_watchdog_dismiss(fd);
	wait_for_its_end();
	assert_text("first", UUID_A " " UUID_B "\n");
	assert_log(UUID_A " " UUID_B "\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_well),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_ignored_sigchld),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_one_fails),
		cmocka_unit_test(test_holds_no_lock),
		cmocka_unit_test(test_stands_still),
	};

	if (argc > 3 && !strcmp(argv[1], "--play-restore"))
		return play_restore(argc, argv);
	divert(reallocarray, short_reallocarray, &real_reallocarray);
	divert(strndup, short_strndup, &real_strndup);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
