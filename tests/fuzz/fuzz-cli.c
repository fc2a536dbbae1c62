/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: a line of the input is a word. The whole command runs, up to the first
 * host, connection, history, recording or other file that it would open: the process cannot
 * get new descriptors during that time, so an input reaches nothing outside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/dispatch.h"
#include "fuzz.h"
#include "show/plugin.h"

#define WORDS_MAX 128

static struct {
	struct rlimit files; /* in force outside the command */
	int cwd;
	DIR *directory;
} outside;

static void outside_open(void)
{
	if (outside.directory)
		return;
	outside.directory = opendir(fuzz_directory());
	outside.cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fuzz_require(outside.directory && outside.cwd >= 0 &&
		     getrlimit(RLIMIT_NOFILE, &outside.files) == 0);
}

/* From here on every call that opens, connects or creates something fails with EMFILE. */
static void outside_deny(void)
{
	struct rlimit none = outside.files;

	none.rlim_cur = STDERR_FILENO + 1;
	fuzz_require(fchdir(fuzz_dirfd()) == 0 && setrlimit(RLIMIT_NOFILE, &none) == 0);
}

static void outside_allow(void)
{
	if (outside.directory)
		fuzz_require(setrlimit(RLIMIT_NOFILE, &outside.files) == 0 &&
			     fchdir(outside.cwd) == 0);
}

/* A relative name ends up here. */
static void check_nothing_made(void)
{
	const struct dirent *entry;

	/* valgrind keeps the limit itself: it closes a descriptor that the kernel has opened already. */
	if (getenv("WSS_VALGRIND"))
		return;
	rewinddir(outside.directory);
	while ((entry = readdir(outside.directory)))
		fuzz_require(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
}

/* ASan opens files to name the functions in its report. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	outside_allow();
}

static void no_version(void)
{
}

static void cli_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	char *argv[WORDS_MAX + 2] = {(char[]){"virt-wss"}}, *rest = text, *word;
	int argc = 1, code;

	while (argc <= WORDS_MAX && (word = strsep(&rest, "\n")))
		argv[argc++] = word;
	fuzz_begin_command();
	outside_open();
	outside_deny();
	code = wss_dispatch(argc, argv, no_version);
	outside_allow();
	check_nothing_made();
	/* check knows nothing, and says so on standard output; top has no terminal. */
	fuzz_require(code == WSS_EXIT_OK || code == WSS_EXIT_FAILED || code == WSS_EXIT_USAGE ||
		     code == WSS_EXIT_CONNECT || code == (int)WSS_PLUGIN_UNKNOWN ||
		     code == WSS_EXIT_UNSUPPORTED);
	/* Every failure has a message. */
	fuzz_require(code == WSS_EXIT_OK || code == (int)WSS_PLUGIN_UNKNOWN || fuzz_errors());
}

const struct fuzz_target fuzz_target = {
	.name = "cli",
	.run = cli_run,
	.max_bytes = 1024,
	.mutations = 40000,
};
