/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a fuzz target as a test, without libFuzzer:
 *
 *   fuzz-NAME                   run the seeds, with cuts and mutations of them that are the same
 *                               in each run; prints TAP
 *   fuzz-NAME -n MUTATIONS      make this number of mutations
 *   fuzz-NAME FILE...           run these inputs unchanged
 *
 * The inputs run in a child, so that an input that crashes it can be kept as fuzz-NAME.crash in
 * the working directory. Under valgrind, which looks at one process, there is no child.
 */
#include "fuzz.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../files.h"
#include "../random.h"
#include "base/cleanup.h"
#include "mutate.h"

#define SEEDS_MAX 256
#define WORDS_MAX 512
#define WORD_MAX 256
/*
 * Number of cuts of a seed: all of a short one, evenly spread ones of a longer one; never more than
 * mutations.
 */
#define CUTS_MAX 512
/* Ends an input that waits. */
#define DEADLINE_S 600
#define VALGRIND_SHARE 100

struct seed {
	uint8_t *data;
	size_t size;
};

static struct seed seeds[SEEDS_MAX];
static unsigned n_seeds;
static const char *words[WORDS_MAX];
static unsigned n_words;
static unsigned long n_runs;

/* The input being run, for the parent. */
static struct under_way {
	size_t size;
	uint8_t data[];
} * under_way;

static void run(const uint8_t *data, size_t size)
{
	/* Copied to a block of exactly this size, so that a read past the end is detected. */
	uint8_t *copy = malloc(size ? size : 1);

	fuzz_require(copy);
	memcpy(copy, data, size);
	memcpy(under_way->data, data, size);
	under_way->size = size;
	alarm(DEADLINE_S);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_runs++;
}

static void add_seed(const uint8_t *data, size_t size)
{
	struct seed *seed = &seeds[n_seeds];

	fuzz_require(n_seeds < SEEDS_MAX);
	seed->data = malloc(size ? size : 1);
	fuzz_require(seed->data);
	memcpy(seed->data, data, size);
	seed->size = size;
	n_seeds++;
}

static int add_file(const char *path)
{
	wss_auto_file FILE *f = fopen(path, "re");
	wss_auto_free uint8_t *data = malloc(fuzz_target.max_bytes + 1);
	size_t size;

	fuzz_require(data);
	if (!f) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, fuzz_target.max_bytes + 1, f);
	if (size > fuzz_target.max_bytes) {
		fprintf(stderr, "%s: longer than %zu bytes\n", path, fuzz_target.max_bytes);
		return -1;
	}
	add_seed(data, size);
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int add_directory(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_visible, alphasort), r = 0;

	for (int i = 0; i < n; i++) {
		wss_auto_free char *file = NULL;

		fuzz_require(asprintf(&file, "%s/%s", path, entries[i]->d_name) > 0);
		if (add_file(file) < 0)
			r = -1;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return r;
}

static void add_made(void)
{
	wss_auto_free uint8_t *data = malloc(fuzz_target.max_bytes);
	size_t size;

	fuzz_require(data);
	for (unsigned n = 0;
	     fuzz_target.seed && (size = fuzz_target.seed(n, data, fuzz_target.max_bytes)); n++)
		add_seed(data, size);
}

/*
 * Returns the bytes between the quotes of a line of libFuzzer's dictionaries; NULL if there are
 * none.
 */
static char *read_word(const char *line)
{
	const char *at = strchr(line, '"'), *end = strrchr(line, '"');
	char *word = at && end > at ? malloc((size_t)(end - at)) : NULL, *to = word;

	if (!word || line[0] == '#') {
		free(word);
		return NULL;
	}
	for (at++; at < end; at++) {
		if (at[0] == '\\' && at[1] == 'x' && end - at > 3 &&
		    isxdigit((unsigned char)at[2]) && isxdigit((unsigned char)at[3])) {
			*to++ = (char)strtoul((char[]){at[2], at[3], '\0'}, NULL, 16);
			at += 3;
		} else {
			at += at[0] == '\\' && end - at > 1;
			*to++ = *at;
		}
	}
	*to = '\0';
	return word;
}

static void read_words(const char *path)
{
	wss_auto_file FILE *f = fopen(path, "re");
	char line[WORD_MAX];

	words[n_words++] = "99999999999999999999";
	words[n_words++] = "-1";
	words[n_words++] = "\xff";
	while (f && fgets(line, sizeof(line), f)) {
		char *word = read_word(line);

		fuzz_require(n_words < WORDS_MAX);
		if (word)
			words[n_words++] = word;
	}
}

static void run_cuts(unsigned mutations)
{
	for (unsigned i = 0; i < n_seeds; i++) {
		size_t size = seeds[i].size, cuts = size < CUTS_MAX ? size : CUTS_MAX;

		if (cuts > mutations / n_seeds)
			cuts = mutations / n_seeds;
		for (size_t k = 0; k < cuts; k++)
			run(seeds[i].data, size * k / cuts);
	}
}

static void run_mutations(unsigned mutations)
{
	wss_auto_free uint8_t *data = malloc(fuzz_target.max_bytes);

	fuzz_require(data);
	for (unsigned i = 0; i < mutations; i++) {
		const struct seed *seed = &seeds[i % n_seeds];
		size_t size = seed->size;

		memcpy(data, seed->data, size);
		for (unsigned n = 1 + (unsigned)random_below(4); n && size; n--)
			size = mutate(data, size, fuzz_target.max_bytes, words, n_words);
		run(data, size);
	}
}

static void result(unsigned n, const char *what)
{
	dprintf(STDERR_FILENO, "ok %u - %lu %s, the longest %.3f s\n", n, n_runs, what,
		fuzz_longest());
	n_runs = 0;
}

/* Runs everything in the child. The target owns stdout, so TAP goes to stderr. */
static void run_all(unsigned mutations)
{
	for (unsigned i = 0; i < n_seeds; i++)
		run(seeds[i].data, seeds[i].size);
	result(1, "seeds");
	if (!mutations)
		return;
	run_cuts(mutations);
	result(2, "cuts of the seeds");
	run_mutations(mutations);
	result(3, "mutations of the seeds");
}

static void keep_input(void)
{
	wss_auto_free char *path = NULL;
	wss_auto_file FILE *f = NULL;

	fuzz_require(asprintf(&path, "fuzz-%s.crash", fuzz_target.name) > 0);
	f = fopen(path, "we");
	if (f && fwrite(under_way->data, 1, under_way->size, f) == under_way->size)
		fprintf(stderr, "# the input is kept: fuzz-%s %s\n", fuzz_target.name, path);
}

/* Interrupts the wait for the child, because its files in memory must be removed. */
static void on_signal(int number)
{
	(void)number;
}

static int supervise(unsigned mutations)
{
	wss_auto_free char *path = NULL;
	int status;
	pid_t pid;

	fuzz_require(asprintf(&path, "%s/wss-fuzz.XXXXXX", fuzz_memory_directory()) > 0);
	fuzz_require(mkdtemp(path) && setenv("WSS_FUZZ_SCRATCH", path, 1) == 0);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
	pid = fork();
	fuzz_require(pid >= 0);
	if (pid == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_all(mutations);
		exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		kill(pid, SIGKILL);
	files_remove(path);
	if (status == 0)
		return 0;
	fprintf(stderr, "not ok - fuzz-%s ended by %s %d\n", fuzz_target.name,
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	keep_input();
	return 1;
}

static int read_seeds(void)
{
	wss_auto_free char *path = NULL, *words_path = NULL;

	fuzz_require(asprintf(&path, FUZZ_SOURCES "/seeds/%s", fuzz_target.name) > 0 &&
		     asprintf(&words_path, FUZZ_SOURCES "/%s.dict", fuzz_target.name) > 0);
	if (add_directory(path) < 0)
		return -1;
	add_made();
	read_words(words_path);
	/* Without a seed the test could not fail. */
	if (!n_seeds)
		fprintf(stderr, "%s: no seeds\n", path);
	return n_seeds ? 0 : -1;
}

int main(int argc, char **argv)
{
	unsigned mutations = fuzz_target.mutations;
	int first = 1;

	under_way = mmap(NULL, sizeof(*under_way) + fuzz_target.max_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fuzz_require(under_way != MAP_FAILED);
	if (getenv("WSS_VALGRIND"))
		mutations = mutations / VALGRIND_SHARE + 1;
	if (argc > 2 && !strcmp(argv[1], "-n")) {
		mutations = (unsigned)strtoul(argv[2], NULL, 10);
		first = 3;
	}
	if (first < argc)
		mutations = 0;
	for (int i = first; i < argc; i++)
		if (add_file(argv[i]) < 0)
			return 1;
	if (first >= argc && read_seeds() < 0)
		return 1;
	fprintf(stderr, "1..%d\n", mutations ? 3 : 1);
	if (!getenv("WSS_VALGRIND"))
		return supervise(mutations);
	run_all(mutations);
	return 0;
}
