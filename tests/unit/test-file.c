/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "base/io.h"
#include "base/newfile.h"
#include "base/stop.h"

#define NOBODY 65534

static char *tree;
static char path[PATH_MAX];

static int set_up(void **unused)
{
	tree = make_tree();
	make_path(path, "%s/file", tree);
	return 0;
}

static int tear_down(void **unused)
{
	remove_tree(tree);
	return 0;
}

static void put(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Makes a complete new file with a text. */
static int replace(const char *text, bool over, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;

	if (wss_newfile_make(path, 0600, &file, err) < 0)
		return -1;
	assert_int_equal(wss_io_pwrite(file.fd, text, strlen(text), 0), 0);
	return wss_newfile_name(&file, over, err);
}

static int files_in_tree(void)
{
	wss_auto_dir DIR *dir = opendir(tree);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n - 2;
}

TEST(test_new_file)
{
	struct stat old, new;

	assert_int_equal(replace("first", false, NULL), 0);
	assert_file_holds(path, "first");
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(stat(path, &old), 0);
	assert_int_equal(replace("second", true, NULL), 0);
	assert_file_holds(path, "second");
	assert_int_equal(stat(path, &new), 0);
	assert_int_equal(new.st_mode & 07777, 0600);
	assert_true(old.st_ino != new.st_ino);
	assert_int_equal(files_in_tree(), 1);
}

/* A file that is open or has another link is neither written to nor truncated. */
TEST(test_old_file_stays)
{
	char other[PATH_MAX];

	put(path, "old", 0644);
	assert_int_equal(link(path, make_path(other, "%s/other", tree)), 0);
	assert_int_equal(replace("new", true, NULL), 0);
	assert_file_holds(other, "old");
	assert_file_holds(path, "new");
}

/* A picture never replaces what it may be drawn from. */
TEST(test_measurements_are_known)
{
	assert_false(wss_newfile_is_measured(path));
	put(path, "VWSSREC\nand more", 0600);
	assert_true(wss_newfile_is_measured(path));
	put(path, "VWSSREC", 0600);
	assert_false(wss_newfile_is_measured(path));
	put(path, "<svg", 0600);
	assert_false(wss_newfile_is_measured(path));
	remove(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_false(wss_newfile_is_measured(path));
}

TEST(test_name_is_taken)
{
	struct wss_error err = WSS_ERROR_INIT;

	put(path, "theirs", 0600);
	assert_int_equal(replace("ours", false, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "just created it");
	assert_file_holds(path, "theirs");
	assert_int_equal(files_in_tree(), 1);
}

TEST(test_nothing_stays_of_what_is_given_up)
{
	struct wss_newfile file = WSS_NEWFILE_INIT;

	assert_int_equal(wss_newfile_make(path, 0600, &file, NULL), 0);
	/* A process that is killed now leaves nothing. */
	assert_int_equal(files_in_tree(), 0);
	wss_newfile_release(&file);
	wss_newfile_release(&file);
	assert_int_equal(files_in_tree(), 0);
	assert_int_equal(wss_newfile_make_named(path, 0600, &file, NULL), 0);
	assert_int_equal(files_in_tree(), 1);
	wss_newfile_release(&file);
	assert_int_equal(files_in_tree(), 0);
}

/* A file system without unnamed files. */
TEST(test_named_file)
{
	struct wss_newfile file = WSS_NEWFILE_INIT;

	assert_int_equal(setenv("VIRT_WSS_FAULT", "no-tmpfile", 1), 0);
	assert_int_equal(wss_newfile_make(path, 0600, &file, NULL), 0);
	assert_int_equal(files_in_tree(), 1);
	wss_newfile_release(&file);
	assert_int_equal(files_in_tree(), 0);
	test_new_file(NULL);
	test_name_is_taken(NULL);
	assert_int_equal(unsetenv("VIRT_WSS_FAULT"), 0);
}

#define LEFTOVER ".virt-wss-0123456789abcdef.new"

static const char *in_tree(const char *name)
{
	static char other[PATH_MAX];

	return make_path(other, "%s/%s", tree, name);
}

/* Whether the next write to the directory removes a file of that name. */
static bool is_removed(const char *name)
{
	assert_int_equal(access(in_tree(name), F_OK), 0);
	assert_int_equal(replace("text", true, NULL), 0);
	assert_file_holds(path, "text");
	return access(in_tree(name), F_OK) < 0;
}

TEST(test_leftovers)
{
	static const char *const others[] = {
		".virt-wss-0123456789abcde.new",  ".virt-wss-0123456789abcdef0.new",
		".virt-wss-0123456789abcdeF.new", ".virt-wss-0123456789abcdef.new~",
		"virt-wss-0123456789abcdef.new",  ".virt-wss-0123456789abcdef",
	};
	struct wss_newfile file = WSS_NEWFILE_INIT;

	put(in_tree(LEFTOVER), "half", 0600);
	assert_true(is_removed(LEFTOVER));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put(in_tree(others[i]), "theirs", 0600);
		assert_false(is_removed(others[i]));
	}
	/* One that is being written. */
	assert_int_equal(wss_newfile_make_named(path, 0600, &file, NULL), 0);
	assert_false(is_removed(file.temporary));
	wss_newfile_release(&file);
}

/* Files that may not be ours: with a second name, with any lock, or not regular. */
TEST(test_no_leftovers)
{
	struct flock byte = {.l_type = F_RDLCK, .l_start = 5, .l_len = 1};
	int fd;

	put(in_tree("mine"), "mine", 0600);
	assert_int_equal(symlinkat("mine", AT_FDCWD, in_tree(LEFTOVER)), 0);
	assert_false(is_removed(LEFTOVER));
	unlink(in_tree(LEFTOVER));
	assert_int_equal(mkdir(in_tree(LEFTOVER), 0700), 0);
	assert_false(is_removed(LEFTOVER));
	rmdir(in_tree(LEFTOVER));
	assert_int_equal(mkfifo(in_tree(LEFTOVER), 0600), 0);
	assert_false(is_removed(LEFTOVER));
	unlink(in_tree(LEFTOVER));
	assert_int_equal(linkat(AT_FDCWD, path, AT_FDCWD, in_tree(LEFTOVER), 0), 0);
	/* The other name is replaced, so the second write removes the file. */
	assert_false(is_removed(LEFTOVER));
	assert_true(is_removed(LEFTOVER));
	put(in_tree(LEFTOVER), "in use", 0600);
	fd = open(in_tree(LEFTOVER), O_RDONLY);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &byte), 0);
	assert_false(is_removed(LEFTOVER));
	close(fd);
	assert_true(is_removed(LEFTOVER));
	if (geteuid() != 0)
		return;
	put(in_tree(LEFTOVER), "theirs", 0666);
	assert_int_equal(chown(in_tree(LEFTOVER), NOBODY, NOBODY), 0);
	assert_false(is_removed(LEFTOVER));
	assert_int_equal(chmod(tree, 01777), 0);
	assert_false(is_removed(LEFTOVER));
}

/*
 * Killed after it was created, with a name from the start or none: nothing is left that the next
 * write does not remove.
 */
TEST(test_killed)
{
	for (int named = 0; named < 2; named++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			struct wss_newfile file = WSS_NEWFILE_INIT;

			if ((named ? wss_newfile_make_named : wss_newfile_make)(path, 0600, &file,
										NULL) == 0)
				kill(getpid(), SIGKILL);
			_exit(1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(files_in_tree(), named);
	}
	assert_int_equal(replace("text", false, NULL), 0);
	assert_int_equal(files_in_tree(), 1);
}

/* Every function that opens files refuses this one, and leaves it unchanged. */
static void refused(const char *what)
{
	wss_auto_place struct wss_place place = WSS_PLACE_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	struct stat before, after;
	int fd = -1;

	assert_int_equal(lstat(path, &before), 0);
	assert_int_equal(wss_newfile_check(path, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, what);
	assert_int_equal(replace("x", true, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, what);
	assert_int_equal(wss_place_find(path, &place, NULL), 0);
	assert_int_equal(wss_place_open(&place, &fd, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, what);
	assert_int_equal(fd, -1);
	assert_int_equal(lstat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
}

TEST(test_special_files)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct wss_error err = WSS_ERROR_INIT;
	char other[PATH_MAX];
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	refused("a FIFO, not a regular file");
	assert_int_equal(wss_file_open(path, &fd, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "a FIFO");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused("a directory");
	rmdir(path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	refused("a socket");
	close(fd);
	unlink(path);
	put(make_path(other, "%s/other", tree), "theirs", 0644);
	assert_int_equal(symlink("other", path), 0);
	refused("a symbolic link");
	/* Reading follows it. */
	assert_int_equal(wss_file_open(path, &fd, NULL), 0);
	close(fd);
	assert_file_holds(other, "theirs");
	unlink(other);
	refused("a symbolic link");
}

TEST(test_places)
{
	struct wss_place place = WSS_PLACE_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_place_find("", &place, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "no file named");
	assert_int_equal(wss_place_find("/", &place, NULL), -1);
	assert_int_equal(wss_place_find(".", &place, NULL), -1);
	assert_int_equal(wss_place_find("x/..", &place, NULL), -1);
	assert_int_equal(wss_place_find("/nowhere/at/all", &place, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "its directory");
	assert_int_equal(wss_place_find("/dev/null/x", &place, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "its directory");
	assert_int_equal(wss_place_find("file", &place, NULL), 0);
	assert_string_equal(place.name, "file");
	wss_place_release(&place);
	wss_place_release(&place);
}

/* Runs fn as another user, whose access to the directory depends on its mode. */
static int as_nobody(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setgid(NOBODY) < 0 || setuid(NOBODY) < 0 ? 99 : fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int replace_as_other(void)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (replace("mine", true, &err) < 0)
		return strstr(err.text, "belongs to another user") ? 2 : 3;
	return 0;
}

static int make_as_other(void)
{
	put(path, "theirs", 0666);
	return 0;
}

static int check_as_other(void)
{
	struct wss_error err = WSS_ERROR_INIT;

	return wss_newfile_check(path, &err) < 0 ? 1 : 0;
}

/* In /tmp not even root writes to or replaces another user's file. */
TEST(test_sticky_directory)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct stat st;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(tree, 01777), 0);
	assert_int_equal(as_nobody(make_as_other), 0);
	refused("belongs to another user (uid 65534)");
	assert_file_holds(path, "theirs");
	unlink(path);
	put(path, "root's", 0666);
	assert_int_equal(as_nobody(replace_as_other), 2);
	assert_file_holds(path, "root's");
	/* Elsewhere the file is replaced, and belongs to the user who made the new one. */
	assert_int_equal(chmod(tree, 0777), 0);
	assert_int_equal(as_nobody(replace_as_other), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, NOBODY);
	assert_int_equal(replace("root's", true, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* A directory without write permission is noticed beforehand. */
	assert_int_equal(chmod(tree, 0755), 0);
	assert_int_equal(as_nobody(check_as_other), 1);
}

/* A path may name inherited descriptors, which are used as they are. */
TEST(test_descriptors)
{
	struct wss_error err = WSS_ERROR_INIT;
	char name[32], data[8] = "";
	int fds[2], fd = -1, own;

	assert_int_equal(pipe(fds), 0);
	own = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	assert_int_equal(wss_file_open_special(name, true, &fd, NULL), 1);
	assert_int_equal(wss_file_write(fd, "text", 4, NULL), 0);
	assert_int_equal(read(fds[0], data, sizeof(data)), 4);
	assert_string_equal(data, "text");
	close(fd);
	snprintf(name, sizeof(name), "/dev/fd/%d", own);
	assert_int_equal(wss_file_open_special(name, true, &fd, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "no such descriptor");
	assert_int_equal(wss_file_open_special("/dev/fd/99999999999", true, &fd, &err), 0);
	assert_int_equal(wss_file_open_special("/dev/fd/", true, &fd, &err), 0);
	assert_int_equal(wss_file_open_special("/dev/fd/1x", true, &fd, &err), 0);
	assert_int_equal(wss_file_open_special(path, true, &fd, &err), 0);
	assert_int_equal(wss_file_open_special("/dev/shm", true, &fd, &err), 0);
	assert_int_equal(wss_file_open_special("/dev/full", true, &fd, NULL), 1);
	assert_int_equal(wss_file_write(fd, "text", 4, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "No space left");
	close(fd);
	/* Its reader has gone. */
	close(fds[0]);
	assert_int_equal(wss_file_write(own, "text", 4, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "Broken pipe");
	close(fds[1]);
	close(own);
}

TEST(test_read)
{
	struct wss_error err = WSS_ERROR_INIT;
	char name[32], *text;
	size_t len;
	int fds[2];

	put(path, "12345", 0600);
	assert_int_equal(wss_file_read(path, 5, &text, &len, NULL), 0);
	assert_string_equal(text, "12345");
	assert_int_equal(len, 5);
	free(text);
	assert_int_equal(wss_file_read(path, 4, &text, &len, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "longer than 4 bytes");
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	close(fds[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[0]);
	assert_int_equal(wss_file_read(name, 5, &text, &len, NULL), 0);
	assert_string_equal(text, "abc");
	free(text);
	close(fds[0]);
}

TEST(test_lock)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t began_ns;
	int one, two;

	put(path, "", 0600);
	one = open(path, O_RDWR);
	two = open(path, O_RDWR);
	assert_int_equal(wss_file_lock(one, 7, 0, NULL), 0);
	assert_int_equal(wss_file_lock(two, 8, 0, NULL), 0);
	assert_int_equal(wss_file_lock(two, 7, 0, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "locked");
	began_ns = wss_clock_now_ns();
	assert_int_equal(wss_file_lock(two, 7, 50 * WSS_NS_PER_MS, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "locked");
	assert_true(wss_clock_now_ns() - began_ns >= 50 * WSS_NS_PER_MS);
	wss_file_unlock(one, 7);
	assert_int_equal(wss_file_lock(two, 7, 0, NULL), 0);
	close(one);
	close(two);
}

/*
 * A stop request ends waiting for a lock, and for the reader of a pipe. This test is the last,
 * because the flag stays set.
 */
TEST(test_stop)
{
	struct wss_error err = WSS_ERROR_INIT;
	static char data[1 << 20];
	int one, two, fds[2];

	put(path, "", 0600);
	one = open(path, O_RDWR);
	two = open(path, O_RDWR);
	assert_int_equal(wss_file_lock(one, 0, 0, NULL), 0);
	assert_int_equal(pipe(fds), 0);
	wss_stop_install();
	/* Ends what hangs. */
	alarm(300);
	raise(SIGTERM);
	assert_int_equal(wss_file_lock(two, 0, 3600 * WSS_NS_PER_S, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, NULL);
	assert_int_equal(wss_file_write(fds[1], data, sizeof(data), &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, NULL);
	alarm(0);
	/* A free lock can still be taken, because ending a recording needs it. */
	wss_file_unlock(one, 0);
	assert_int_equal(wss_file_lock(two, 0, 60 * WSS_NS_PER_S, NULL), 0);
	close(one);
	close(two);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	/* Ignored, as in the program. */
	signal(SIGPIPE, SIG_IGN);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return tests_run_each(set_up, tear_down);
}
