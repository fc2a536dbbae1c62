/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../files.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

/* Largest number of arguments that the frame passes to libFuzzer. */
#define ARGUMENTS_MAX 4096

int LLVMFuzzerInitialize(int *argc, char ***argv);

static char directory[4096];
static int directory_fd = -1;
static uint64_t longest_ns;

/* A small quarantine, so that freed memory counts for an input no longer than necessary. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=32";
}

_Noreturn void fuzz_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "fuzz-%s: %s:%d: does not hold: %s\n", fuzz_target.name, file, line, what);
	abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	fuzz_require(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

void fuzz_check(int r, const struct wss_error *err)
{
	fuzz_require((r >= 0) == (err->code == WSS_OK));
	fuzz_require(r >= 0 || err->text[0]);
}

static pid_t directory_owner;

static void remove_directory(void)
{
	if (getpid() == directory_owner)
		files_remove(directory);
}

const char *fuzz_memory_directory(void)
{
	const char *set = getenv("TMPDIR");

	if (set && *set)
		return set;
	return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

const char *fuzz_directory(void)
{
	const char *above = getenv("WSS_FUZZ_SCRATCH");

	if (directory[0])
		return directory;
	if (!above)
		above = fuzz_memory_directory();
	snprintf(directory, sizeof(directory), "%s/wss-fuzz.XXXXXX", above);
	fuzz_require(mkdtemp(directory));
	directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fuzz_require(directory_fd >= 0);
	directory_owner = getpid();
	atexit(remove_directory);
	return directory;
}

int fuzz_dirfd(void)
{
	fuzz_directory();
	return directory_fd;
}

static void make_directories(const char *path)
{
	wss_auto_free char *copy = strdup(path);

	fuzz_require(copy);
	for (char *at = copy; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdirat(fuzz_dirfd(), copy, 0700);
	}
}

void fuzz_file(const char *path, const void *data, size_t size)
{
	wss_auto_close int fd = -1;

	if (!data) {
		unlinkat(fuzz_dirfd(), path, 0);
		return;
	}
	fd = openat(fuzz_dirfd(), path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		make_directories(path);
		fd = openat(fuzz_dirfd(), path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	}
	fuzz_require(fd >= 0 && wss_io_pwrite(fd, data, size, 0) == 0);
}

const uint8_t *fuzz_part(const uint8_t *data, size_t size, const char *name, size_t *ret_size)
{
	size_t len = strlen(name);
	const uint8_t *end = data + size, *next;

	for (const uint8_t *at = data; at < end; at = next) {
		const uint8_t *line_end = memchr(at, '\n', (size_t)(end - at));

		next = line_end ? line_end + 1 : end;
		if (at[0] != '@' || (size_t)(next - at) != len + 2 ||
		    memcmp(at + 1, name, len) != 0)
			continue;
		for (at = next; at < end && *at != '@';) {
			line_end = memchr(at, '\n', (size_t)(end - at));
			at = line_end ? line_end + 1 : end;
		}
		*ret_size = (size_t)(at - next);
		return next;
	}
	*ret_size = 0;
	return NULL;
}

int fuzz_memfd(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && (!size || wss_io_pwrite(fd, data, size, 0) == 0));
	return fd;
}

static unsigned errors;

static void count_error(enum wss_log_level level, const char *text)
{
	fuzz_require(text[0] && !strchr(text, '\n'));
	errors += level == WSS_LOG_ERROR;
}

void fuzz_begin_command(void)
{
	static bool silent;

	if (!silent)
		fuzz_require(freopen("/dev/null", "we", stdout));
	silent = true;
	wss_log_set_sink(count_error);
	errors = 0;
}

unsigned fuzz_errors(void)
{
	return errors;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Time and memory of valgrind itself do not count. Memory comes first: it is the same on any machine, and what takes much of it
 * takes time, too.
 */
static void check_limits(uint64_t took_ns)
{
	const char *seconds = getenv("WSS_FUZZ_SECONDS");
	uint64_t most_ns =
		(seconds ? strtoul(seconds, NULL, 10) : FUZZ_SECONDS_MAX) * 1000000000ULL;
	struct rusage usage;

	if (took_ns > longest_ns)
		longest_ns = took_ns;
	if (getenv("WSS_VALGRIND"))
		return;
	getrusage(RUSAGE_SELF, &usage);
	if (usage.ru_maxrss > FUZZ_MEMORY_MIB * 1024L) {
		fprintf(stderr, "fuzz-%s: large: one input took it to %ld MiB\n", fuzz_target.name,
			usage.ru_maxrss / 1024);
		abort();
	}
	if (took_ns > most_ns) {
		fprintf(stderr, "fuzz-%s: slow: one input took %.1f s\n", fuzz_target.name,
			(double)took_ns / 1e9);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t before_ns = cpu_ns();

	if (size > fuzz_target.max_bytes)
		return 0;
	fuzz_target.run(data, size);
	check_limits(cpu_ns() - before_ns);
	return 0;
}

double fuzz_longest(void)
{
	return (double)longest_ns / 1e9;
}

static void print_longest(void)
{
	fprintf(stderr, "fuzz-%s: longest %.3f s\n", fuzz_target.name, fuzz_longest());
}

/* Writes the seeds that are not files to a directory. */
static void write_seeds(const char *path)
{
	wss_auto_free uint8_t *data = malloc(fuzz_target.max_bytes);
	size_t size;

	fuzz_require(data);
	for (unsigned n = 0;
	     fuzz_target.seed && (size = fuzz_target.seed(n, data, fuzz_target.max_bytes)); n++) {
		wss_auto_free char *name = NULL;
		wss_auto_file FILE *f = NULL;

		fuzz_require(asprintf(&name, "%s/made-%u", path, n) > 0);
		f = fopen(name, "we");
		fuzz_require(f && fwrite(data, 1, size, f) == size && fflush(f) == 0);
	}
}

/* Passes the target's own limits before the given arguments, which may override them. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *arguments[ARGUMENTS_MAX];
	static char max_len[32], memory[32], timeout[] = "-timeout=120";
	const char *seeds = getenv("WSS_FUZZ_SEEDS");
	int n = 0;

	if (seeds) {
		write_seeds(seeds);
		exit(0);
	}
	fuzz_require(*argc < ARGUMENTS_MAX - 8);
	snprintf(max_len, sizeof(max_len), "-max_len=%zu", fuzz_target.max_bytes);
	snprintf(memory, sizeof(memory), "-rss_limit_mb=%d", FUZZ_MEMORY_MIB);
	arguments[n++] = (*argv)[0];
	arguments[n++] = max_len;
	arguments[n++] = memory;
	/*
	 * For inputs that wait: the processor time stops those that compute, however busy the
	 * machine is.
	 */
	arguments[n++] = timeout;
	for (int i = 1; i < *argc; i++)
		arguments[n++] = (*argv)[i];
	*argc = n;
	*argv = arguments;
	atexit(print_longest);
	return 0;
}
