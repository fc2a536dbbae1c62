/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What systemd gets: fields of the journal, and a socket that the service closes again. */
#include "hosttest.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"
#include "serve/serve.h"

static char directory[64];
static int journal_fd, stderr_fd;

/* Standard error becomes the file that JOURNAL_STREAM names. */
static int setup(void **unused)
{
	char path[256], stream[64];
	struct stat st;

	snprintf(directory, sizeof(directory), "/tmp/wss-test-systemd-XXXXXX");
	assert_non_null(mkdtemp(directory));
	for (const char *const *name =
		     (const char *const[]){"run", "run/systemd", "run/systemd/journal", NULL};
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *name);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/stderr", directory);
	stderr_fd = dup(STDERR_FILENO);
	assert_non_null(freopen(path, "w+", stderr));
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	setenv("VIRT_WSS_SYSROOT", directory, 1);
	wss_log_open();
	return 0;
}

static int teardown(void **unused)
{
	fflush(stderr);
	dup2(stderr_fd, STDERR_FILENO);
	files_remove(directory);
	return 0;
}

static int socket_bind(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void assert_journal(const char *datagram)
{
	char got[4096] = "";

	recv(journal_fd, got, sizeof(got) - 1, 0);
	assert_string_equal(got, datagram);
}

static void assert_stderr(const char *text)
{
	char got[4096] = "";

	fflush(stderr);
	assert_true(pread(STDERR_FILENO, got, sizeof(got) - 1, 0) >= 0);
	assert_string_equal(got, text);
}

/* A journal that has gone away, or is too busy, does not lose a message. */
TEST(test_journal)
{
	wss_log_guest(WSS_LOG_WARNING, "web1", UUID_A, "it is %s", "slow");
	assert_stderr("<4>web1: it is slow\n");
	journal_fd = socket_bind("run/systemd/journal/socket");
	wss_log_guest(WSS_LOG_WARNING, "web1", UUID_A, "it is %s", "slow");
	assert_journal(
		"PRIORITY=4\nSYSLOG_IDENTIFIER=virt-wss\nDOMAIN_NAME=web1\nDOMAIN_UUID=" UUID_A
		"\nMESSAGE=web1: it is slow\n");
	/* A name cannot add a field. */
	wss_log_guest(WSS_LOG_INFO, "a\nPRIORITY=0", "", "b\nPRIORITY=1");
	assert_journal("PRIORITY=6\nSYSLOG_IDENTIFIER=virt-wss\nDOMAIN_NAME=a?PRIORITY=0\n"
		       "MESSAGE=a?PRIORITY=0: b?PRIORITY=1\n");
	wss_log_guest(WSS_LOG_DEBUG, "web1", UUID_A, "below the level");
	assert_journal("");
	wss_log(WSS_LOG_INFO, "about no guest");
	assert_journal("");
	assert_stderr("<4>web1: it is slow\n<6>about no guest\n");
	close(journal_fd);
}

TEST(test_notify_socket_closed)
{
	const struct wss_serve_options options = {.textfile = "/nonexistent/metrics"};
	struct wss_error err = WSS_ERROR_INIT;
	char path[128];
	int manager = socket_bind("notify"), before, after;

	snprintf(path, sizeof(path), "%s/notify", directory);
	setenv("NOTIFY_SOCKET", path, 1);
	before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(before);
	assert_int_equal(wss_serve_run(&options, &err), -1);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before);
	close(after);
	close(manager);
}

int main(void)
{
	return tests_run_within(setup, teardown);
}
