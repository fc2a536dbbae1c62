/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The controller's watchdog. Its command is this program, which records the guests that it was
 * run for, and fails for guests named in a file.
 */
#include "hosttest.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "../divert.h"
#include "balloon/watchdog.h"

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

/* How often the watchdog has waited in vain for a sign of life. */
static volatile unsigned *silences;

static __typeof__(&poll) real_poll;

static int counting_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int r = real_poll(fds, n, timeout_ms);

	if (r == 0)
		++*silences;
	return r;
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

/* The only child of this process. */
static pid_t child_pid(void)
{
	wss_auto_free char *text = NULL;
	char path[PATH_MAX];

	text = read_text(make_path(path, "/proc/self/task/%d/children", (int)getpid()));
	return (pid_t)strtol(text, NULL, 10);
}

static int start(void)
{
	const char *const command[] = {"any", "--play-restore", history, NULL};
	struct wss_error err = WSS_ERROR_INIT;
	pid_t watchdog;
	int fd = -1;

	dir = make_tree();
	make_path(history, "%s/history", dir);
	assert_int_equal(wss_watchdog_start(command, &fd, &err), 0);
	/* It hears of both guests at once, also if it loses patience soon. */
	watchdog = child_pid();
	kill(watchdog, SIGSTOP);
	assert_int_equal(wss_watchdog_guard(fd, UUID_A, &err), 0);
	assert_int_equal(wss_watchdog_guard(fd, UUID_B, &err), 0);
	assert_int_equal(wss_watchdog_guard(fd, NULL, &err), 0);
	kill(watchdog, SIGCONT);
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

TEST(test_all_is_well)
{
	wss_watchdog_dismiss(start());
	wait_for_its_end();
	assert_log("");
}

TEST(test_killed)
{
	close(start());
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/* The watchdog knows how the command ended even if whoever started us ignores SIGCHLD. */
TEST(test_ignored_sigchld)
{
	int fd;

	signal(SIGCHLD, SIG_IGN);
	fd = start();
	signal(SIGCHLD, SIG_DFL);
	close(fd);
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/* Each guest is added, however often an allocation for it fails. */
TEST(test_out_of_memory)
{
	memory.ours = getpid();
	memory.reallocarray = 2;
	memory.strndup = 3;
	close(start());
	memory.reallocarray = memory.strndup = 0;
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n");
}

/*
 * A guest that has all of its memory is dropped, because another controller may look after it by the
 * next run.
 */
TEST(test_one_fails)
{
	char path[PATH_MAX];
	int fd;

	fd = start();
	put_text(dir, "history.bad", UUID_B "\n");
	close(fd);
	wait_for_log(UUID_B);
	unlink(make_path(path, "%s.bad", history));
	wait_for_its_end();
	assert_log(UUID_A " " UUID_B "\n" UUID_A "\n" UUID_B "\n" UUID_B "\n");
}

/* A controller that dies leaves its locks to nobody, though its watchdog still tries to restore. */
TEST(test_holds_no_lock)
{
	char path[PATH_MAX], name[PATH_MAX];
	int fd, lock, locked, ended;
	pid_t holder;

	dir = make_tree();
	make_path(history, "%s/history", dir);
	put_text(dir, "history.bad", UUID_A "\n");
	put_text(dir, "lock", "");
	make_path(name, "%s/lock", dir);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	holder = fork();
	if (holder == 0) {
		const char *const command[] = {"any", "--play-restore", history, NULL};
		int held = open(name, O_RDWR | O_CLOEXEC);

		if (flock(held, LOCK_EX) < 0 || wss_watchdog_start(command, &fd, NULL) < 0 ||
		    wss_watchdog_guard(fd, UUID_A, NULL) < 0)
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

/* Each silence counts once, however long it lasts, and does not end the watchdog. */
TEST(test_stands_still)
{
	char log[PATH_MAX], first[PATH_MAX];
	int fd;

	setenv("VIRT_WSS_FAULT", "short-silence", 1);
	fd = start();
	unsetenv("VIRT_WSS_FAULT");
	wait_for_log(UUID_A " " UUID_B);
	for (unsigned further = *silences + 2; *silences < further;)
		assert_int_equal(usleep(1000), 0);
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
	if (argc > 3 && !strcmp(argv[1], "--play-restore"))
		return play_restore(argc, argv);
	divert(reallocarray, short_reallocarray, &real_reallocarray);
	divert(strndup, short_strndup, &real_strndup);
	divert(poll, counting_poll, &real_poll);
	silences = mmap(NULL, sizeof(*silences), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (silences == MAP_FAILED)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	return tests_run();
}
