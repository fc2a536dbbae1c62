/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fail-each OPTION... -- COMMAND...: runs a command once for each of its calls of a class, fails
 * that call (inject.c), and checks how the run ends.
 *
 *   --name TEXT      name of the case, for the report
 *   --class CLASS    alloc, library, io or stdout
 *   --actions A,...  what happens to the call, with one run each; default EIO
 *   --most N         fail at most N of the calls, spread evenly; default all
 *   --jobs N         number of parallel runs; default 2
 *   --codes N,...    exit codes that are right; default 0,1
 *   --template DIR   files that a run finds in its directory, which is new for each run
 *   --verify CMD     shell command to run in that directory after each run, with ACTION, STATUS
 *                    (-1: killed), CALL (name of the call) and N (its number); OUT names a file
 *                    with the run's standard output
 *   --guest FILE     has the pid of a guest's process that must still run, unstopped
 *   --environ N=V    environment of the command
 *   --known NAME     count a library's crash after a failure in this function separately
 *   --timeout S      a run that takes longer hangs; default 300
 *   --preload FILE   inject.so
 *   --loose 1        the number of lines in a table or CSV depends on the clock
 *   --wrapper 1      COMMAND itself sets LD_PRELOAD, to WSS_INJECT_PRELOAD, where it wants to
 *   --totals FILE    gets the line CLASS<tab>FAILED<tab>WELL<tab>KNOWN
 *
 * %w in the command, the environment, --guest and --verify is the number of the job, from 0: jobs
 * share no guest. A run has ended well if
 *
 *   - it did not hang, crash, leak (built with ASan) or leave a process behind,
 *   - its exit code is one of --codes, and any other than 0 comes with a message, which says so
 *     where it is out of memory,
 *   - its standard output is complete, or empty where it failed: JSON parses, and each line of CSV
 *     has the columns of the heading; with exit code 0 it equals that of an undisturbed run, except
 *     for figures, unless a message says otherwise,
 *   - it left no file behind that an undisturbed run does not leave, except, if it was killed, a
 *     temporary one (base/newfile.h), about which --verify decides,
 *   - the guest runs, and --verify succeeds.
 *
 * The last line is "NAME: CLASS: N calls failed, N ended well"; the exit status is 1 unless all did.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "tools/inject.h"

#define OUTPUT_MAX (4U << 20)
#define NAMES_MAX 64
#define ACTIONS_MAX 8
#define JOBS_MAX 16
#define SHOWN_MAX 12

struct plan {
	const char *name, *class, *template, *verify, *guest, *environ, *preload, *totals, *known;
	const char *actions[ACTIONS_MAX];
	size_t n_actions;
	unsigned most, jobs, timeout_s;
	bool wrapper, loose;
	char codes[256];
	char **command;
	char work[64];
};

struct names {
	char list[NAMES_MAX][256];
	size_t n;
};

struct run {
	const char *action;
	uint64_t call; /* 0: no call fails */
	bool timed_out, left_process;
	int status; /* status as from waitpid() */
	char *out, *err;
	size_t out_size, err_size;
	struct names files;
	struct inject_state state;
};

static struct run baseline;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list list;

	fputs("fail-each: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(2);
}

/* Returns text with %w replaced. The caller frees it. */
static char *for_job(const char *text, unsigned job)
{
	char *whole = strdup(text), *at, *longer;

	while (whole && (at = strstr(whole, "%w"))) {
		*at = '\0';
		if (asprintf(&longer, "%s%u%s", whole, job, at + 2) < 0)
			die("out of memory");
		free(whole);
		whole = longer;
	}
	return whole;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- the directory of a run --- */

static void copy_file(const char *from, const char *to)
{
	char data[65536];
	struct stat st;
	ssize_t n;
	int in = open(from, O_RDONLY | O_CLOEXEC), out;

	if (in < 0 || fstat(in, &st) < 0)
		die("cannot read %s", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 07777);
	if (out < 0)
		die("cannot make %s", to);
	while ((n = read(in, data, sizeof(data))) > 0)
		if (write(out, data, (size_t)n) != n)
			die("cannot write %s", to);
	close(in);
	close(out);
}

static void copy_directory(const char *template, const char *directory);

static void copy_entry(const char *from, const char *to)
{
	struct stat st;

	if (stat(from, &st) < 0)
		die("cannot read %s", from);
	if (S_ISDIR(st.st_mode))
		copy_directory(from, to);
	else
		copy_file(from, to);
}

/* Makes the directory, with what is in the other one; NULL: empty. */
static void copy_directory(const char *template, const char *directory)
{
	struct dirent *entry;
	DIR *dir;

	if (mkdir(directory, 0700) < 0)
		die("cannot make %s", directory);
	if (!template)
		return;
	dir = opendir(template);
	if (!dir)
		die("cannot read %s", template);
	while ((entry = readdir(dir))) {
		char from[4096], to[4096];

		if (entry->d_name[0] == '.' && strspn(entry->d_name, ".") == strlen(entry->d_name))
			continue;
		snprintf(from, sizeof(from), "%s/%s", template, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s", directory, entry->d_name);
		copy_entry(from, to);
	}
	closedir(dir);
}

static void fresh_directory(const char *directory, const char *template)
{
	files_remove(directory);
	copy_directory(template, directory);
}

static void list_directory(const char *directory, struct names *names)
{
	struct dirent *entry;
	DIR *dir = opendir(directory);

	names->n = 0;
	while (dir && (entry = readdir(dir)) && names->n < NAMES_MAX)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			snprintf(names->list[names->n++], sizeof(names->list[0]), "%s",
				 entry->d_name);
	if (dir)
		closedir(dir);
}

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->list[i], name))
			return true;
	return false;
}

/* --- one run --- */

static void exec_command(const struct plan *plan, const struct run *run, unsigned job,
			 const char *directory, const char *state, int out, int err)
{
	char inject[128];
	char **argv;
	size_t n = 0;

	while (plan->command[n])
		n++;
	argv = calloc(n + 1, sizeof(*argv));
	if (!argv || chdir(directory) < 0)
		_exit(126);
	for (size_t i = 0; i < n; i++)
		argv[i] = for_job(plan->command[i], job);
	if (plan->environ)
		putenv(for_job(plan->environ, job));
	snprintf(inject, sizeof(inject), "%s:%llu:%s", plan->class, (unsigned long long)run->call,
		 run->action);
	setenv("WSS_INJECT", inject, 1);
	setenv("WSS_INJECT_STATE", state, 1);
	setenv("WSS_INJECT_DIR", directory, 1);
	/* Code without frame pointers is in most stacks. */
	setenv("ASAN_OPTIONS",
	       "verify_asan_link_order=0:exitcode=99:fast_unwind_on_malloc=0:malloc_context_"
	       "size=30",
	       1);
	setenv("LSAN_OPTIONS", "print_suppressions=0", 0);
	setenv(plan->wrapper ? "WSS_INJECT_PRELOAD" : "LD_PRELOAD", plan->preload, 1);
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(out, 1);
	dup2(err, 2);
	execv(argv[0], argv);
	_exit(126);
}

static char *take_output(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text;

	if (size > (off_t)OUTPUT_MAX)
		size = OUTPUT_MAX;
	text = calloc(1, (size_t)size + 1);
	if (!text || pread(fd, text, (size_t)size, 0) != size)
		die("cannot read the output");
	*ret_size = (size_t)size;
	close(fd);
	return text;
}

/*
 * Also kills processes that have left the command's process group: this process reaps
 * everything that it started.
 */
static void kill_children(void)
{
	char path[64];
	int pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

/* Waits for pid, with a deadline, then as long for its children, and ends the rest of them. */
static void wait_for(struct run *run, pid_t pid, unsigned timeout_s)
{
	uint64_t end = now_ms() + timeout_s * 1000ULL;
	const struct timespec pause = {.tv_nsec = 1000000};
	bool ended = false;
	pid_t child;
	int status;

	for (;;) {
		child = waitpid(-1, &status, WNOHANG);
		if (child == pid) {
			run->status = status;
			ended = true;
			end = now_ms() + timeout_s * 1000ULL;
		}
		if (child < 0)
			return;
		if (child > 0)
			continue;
		if (now_ms() > end)
			break;
		nanosleep(&pause, NULL);
	}
	run->timed_out = !ended;
	run->left_process = ended;
	kill(-pid, SIGKILL);
	kill_children();
	while (waitpid(-1, &status, 0) > 0)
		kill_children();
}

/* Drops the warning that a test switch is on, which is unrelated to the failure. */
static void drop_warnings(struct run *run)
{
	char *line = run->err, *end;

	while (*line) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		if (strstr(line, "VIRT_WSS_") && strstr(line, "VIRT_WSS_") < end)
			memmove(line, end, strlen(end) + 1);
		else
			line = end;
	}
	run->err_size = strlen(run->err);
}

static void run_once(const struct plan *plan, struct run *run, unsigned job)
{
	char directory[96], path[112];
	int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
	struct inject_state *state;
	pid_t pid;
	int fd;

	snprintf(directory, sizeof(directory), "%s/%u", plan->work, job);
	snprintf(path, sizeof(path), "%s.state", directory);
	fresh_directory(directory, plan->template);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*state)) < 0)
		die("cannot make %s", path);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		exec_command(plan, run, job, directory, path, out, err);
	}
	if (pid < 0)
		die("cannot fork");
	wait_for(run, pid, plan->timeout_s);
	if (pread(fd, &run->state, sizeof(run->state), 0) != sizeof(run->state))
		die("cannot read %s", path);
	close(fd);
	run->out = take_output(out, &run->out_size);
	run->err = take_output(err, &run->err_size);
	drop_warnings(run);
	list_directory(directory, &run->files);
}

static void free_run(struct run *run)
{
	free(run->out);
	free(run->err);
}

/* --- how it ended --- */

/* Returns text without figures, which differ from run to run. */
static char *without_figures(const char *text)
{
	char *plain = calloc(1, strlen(text) + 1), *to = plain;

	for (const char *s = text; plain && *s; s++) {
		bool figure =
			isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]));
		char c = figure ? '0' : *s == ' ' ? ' ' : *s;

		if (strchr("0 #", c) && to > plain && to[-1] == c)
			continue;
		*to++ = c;
	}
	return plain;
}

static bool alike(const char *a, const char *b)
{
	char *plain_a = without_figures(a), *plain_b = without_figures(b);
	bool same = plain_a && plain_b && !strcmp(plain_a, plain_b);

	free(plain_a);
	free(plain_b);
	return same;
}

/* Whether JSON text has every member, by name, that an undisturbed run prints. */
static bool has_members(const char *text)
{
	for (const char *s = baseline.out; (s = strchr(s, '"')); s++) {
		size_t len = strcspn(s + 1, "\"") + 3;
		char key[128];

		if (len < sizeof(key) && s[len - 1] == ':') {
			snprintf(key, sizeof(key), "%.*s", (int)len, s);
			if (!strstr(text, key))
				return false;
		}
		s += len - 2;
	}
	return true;
}

static bool is_json(const char *text)
{
	enum json_tokener_error error;
	struct json_object *object = json_tokener_parse_verbose(text, &error);

	json_object_put(object);
	return object && error == json_tokener_success;
}

/* Counts the columns of the line at *text and moves *text behind it. */
static unsigned csv_columns(const char **text)
{
	unsigned n = 1;
	bool quoted = false;
	const char *s = *text;

	for (; *s && (quoted || *s != '\n'); s++) {
		if (*s == '"')
			quoted = !quoted;
		n += *s == ',' && !quoted;
	}
	*text = *s ? s + 1 : s;
	return n;
}

static bool is_csv(const char *text)
{
	unsigned header = csv_columns(&text);

	while (*text)
		if (csv_columns(&text) != header)
			return false;
	return true;
}

static bool has_argument(const struct plan *plan, const char *argument)
{
	for (size_t i = 0; plan->command[i]; i++)
		if (!strcmp(plan->command[i], argument))
			return true;
	return false;
}

/*
 * Whether the output is like that of an undisturbed run. In JSON only the names of members
 * count, because the number of points in a curve, for example, depends on the clock.
 */
static bool is_like_baseline(const struct plan *plan, const struct run *run)
{
	if (has_argument(plan, "json"))
		return has_members(run->out);
	return plan->loose || alike(run->out, baseline.out);
}

static bool is_whole(const struct plan *plan, const struct run *run)
{
	if (run->out_size && run->out[run->out_size - 1] != '\n')
		return false;
	if (has_argument(plan, "json"))
		return is_json(run->out);
	return !has_argument(plan, "csv") || is_csv(run->out);
}

static bool is_sanitizer(const char *err)
{
	return strstr(err, "Sanitizer") || strstr(err, "runtime error:");
}

/* Returns the state of a process as a letter, or '\0' if there is no such process. */
static char process_state(const char *file)
{
	char path[64], text[512] = "";
	const char *end;
	int pid = 0;
	FILE *f = fopen(file, "re");

	if (!f || fscanf(f, "%d", &pid) != 1)
		die("cannot read %s", file);
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return '\0';
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '\0';
}

static bool guest_runs(const struct plan *plan, unsigned job)
{
	char *file = for_job(plan->guest, job);
	char state = process_state(file);

	free(file);
	return state && !strchr("TtZX", state);
}

/* Saves the run's standard output for --verify next to its directory, and returns the path. */
static void save_output(const struct plan *plan, const struct run *run, unsigned job,
			char *ret_path, size_t size)
{
	FILE *f;

	snprintf(ret_path, size, "%s/%u.out", plan->work, job);
	f = fopen(ret_path, "we");
	if (!f || fwrite(run->out, 1, run->out_size, f) != run->out_size || fclose(f) != 0)
		die("cannot write %s", ret_path);
}

static bool verified(const struct plan *plan, const struct run *run, unsigned job, char *said,
		     size_t size)
{
	char *command, out[112];
	size_t n;
	FILE *f;

	save_output(plan, run, job, out, sizeof(out));
	if (asprintf(&command,
		     "cd %s/%u && ACTION=%s STATUS=%d CALL=%s N=%llu OUT=%s; export ACTION "
		     "STATUS CALL N OUT; { %s\n} 2>&1",
		     plan->work, job, run->action,
		     WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1, run->state.function,
		     (unsigned long long)run->call, out, for_job(plan->verify, job)) < 0)
		die("out of memory");
	f = popen(command, "re");
	free(command);
	if (!f)
		die("cannot fork");
	n = fread(said, 1, size - 1, f);
	said[n] = '\0';
	while (n && getc(f) != EOF)
		;
	return pclose(f) == 0;
}

static const char *judge_output(const struct plan *plan, const struct run *run)
{
	int code = WEXITSTATUS(run->status);

	if ((code == 0 || run->out_size) && strcmp(plan->class, "stdout") != 0 &&
	    !is_whole(plan, run))
		return "its output is not whole";
	if (code == 0 && !run->err_size && !strstr(run->out, "out of memory") &&
	    !strstr(run->out, "allocate memory") && !strstr(run->out, "degraded") &&
	    !is_like_baseline(plan, run))
		return "its output differs without a word";
	if (code != 0 && !run->err_size)
		return "it failed without a word";
	return NULL;
}

static const char *judge_code(const struct plan *plan, const struct run *run)
{
	if (run->timed_out)
		return "it hangs";
	if (is_sanitizer(run->err))
		return "the sanitizer has something to say";
	if (WIFSIGNALED(run->status))
		return WTERMSIG(run->status) == SIGKILL && !strcmp(run->action, "kill")
			       ? NULL
			       : "it crashed";
	if (!plan->codes[WEXITSTATUS(run->status)])
		return "its exit code is wrong";
	return judge_output(plan, run);
}

static bool may_be_left(const struct run *run, const char *name)
{
	return has_name(&baseline.files, name) ||
	       (!strcmp(run->action, "kill") && !strncmp(name, ".virt-wss-", 10));
}

/* Returns why a run did not end well, or NULL if it did. */
static const char *judge(const struct plan *plan, const struct run *run, unsigned job)
{
	static char said[1024], why[1400];
	const char *reason = judge_code(plan, run);

	if (reason)
		return reason;
	if (run->left_process)
		return "it left a process behind";
	for (size_t i = 0; i < run->files.n; i++)
		if (!may_be_left(run, run->files.list[i])) {
			snprintf(why, sizeof(why), "it left the file %s behind",
				 run->files.list[i]);
			return why;
		}
	if (plan->guest && !guest_runs(plan, job))
		return "the guest does not run";
	if (plan->verify && !verified(plan, run, job, said, sizeof(said))) {
		snprintf(why, sizeof(why), "what it left is wrong: %s", said);
		return why;
	}
	return NULL;
}

/* --- all runs --- */

/* Prints the call's place in the program. */
static void print_where(FILE *to, const struct plan *plan, const struct run *run)
{
	char command[1024], line[512];
	int n = snprintf(command, sizeof(command), "addr2line -s -f -p -e %s", plan->command[0]);
	FILE *f;

	for (size_t i = 0; i < INJECT_FRAMES && run->state.frames[i]; i++)
		n += snprintf(command + n, sizeof(command) - (size_t)n, " %#llx",
			      (unsigned long long)run->state.frames[i]);
	f = run->state.frames[0] ? popen(command, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		fprintf(to, "    %s", line);
	if (f)
		pclose(f);
}

/* Prints how the output differs from that of an undisturbed run. */
static void print_difference(FILE *to, const struct run *run)
{
	char *plain = without_figures(run->out), *before = without_figures(baseline.out);
	size_t at = 0;

	while (plain && before && plain[at] && plain[at] == before[at])
		at++;
	if (plain && before && (plain[at] || before[at]))
		fprintf(to, "from here on: %.300s\ninstead of: %.300s\n", plain + at, before + at);
	free(plain);
	free(before);
}

/* Prints everything at once, because the jobs print at the same time. */
static void print_bad(const struct plan *plan, const struct run *run, const char *reason)
{
	size_t size = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		die("out of memory");
	fprintf(to, "# %s: %s: call %llu (%s, %s): %s\n", plan->name, plan->class,
		(unsigned long long)run->call, run->state.function, run->action, reason);
	if (WIFEXITED(run->status))
		fprintf(to, "exit code %d\n", WEXITSTATUS(run->status));
	else
		fprintf(to, "signal %d\n", WTERMSIG(run->status));
	print_where(to, plan, run);
	fprintf(to, "stdout: %.600s\nstderr: %.3000s\n", run->out, run->err);
	if (baseline.out)
		print_difference(to, run);
	fclose(to);
	fflush(stdout);
	if (write(STDOUT_FILENO, text, size) != (ssize_t)size)
		exit(2);
	free(text);
}

struct tally {
	uint64_t failed, well, known;
};

static bool is_known_crash(const struct plan *plan, const struct run *run)
{
	bool crashed = WIFSIGNALED(run->status) ? WTERMSIG(run->status) == SIGSEGV
						: is_sanitizer(run->err);

	return plan->known && !strcmp(plan->class, "library") && crashed && !run->timed_out &&
	       !strcmp(run->state.function, plan->known);
}

static void one_call(const struct plan *plan, struct run *run, unsigned job, struct tally *tally)
{
	const char *reason;

	run_once(plan, run, job);
	/* There were fewer calls than last time, because their number may depend on the clock. */
	if (run->state.fired && is_known_crash(plan, run)) {
		tally->known++;
	} else if (run->state.fired) {
		tally->failed++;
		reason = judge(plan, run, job);
		if (!reason)
			tally->well++;
		else if (tally->failed - tally->well <= SHOWN_MAX)
			print_bad(plan, run, reason);
	}
	free_run(run);
}

static void work(const struct plan *plan, unsigned job, struct tally *tally)
{
	uint64_t calls = baseline.state.calls, n = calls < plan->most ? calls : plan->most;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (size_t a = 0; a < plan->n_actions; a++)
		for (uint64_t i = job; i < n; i += plan->jobs) {
			struct run run = {.action = plan->actions[a], .call = 1 + i * calls / n};

			one_call(plan, &run, job, tally);
		}
}

/* Even the undisturbed run must end well. */
static void run_baseline(const struct plan *plan)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	baseline.action = plan->actions[0];
	run_once(plan, &baseline, 0);
	if (baseline.timed_out || !WIFEXITED(baseline.status) ||
	    (WEXITSTATUS(baseline.status) && !plan->codes[WEXITSTATUS(baseline.status)]) ||
	    is_sanitizer(baseline.err)) {
		print_bad(plan, &baseline, "undisturbed, it does not end well");
		files_remove(plan->work);
		exit(1);
	}
	if (!baseline.state.calls)
		printf("# %s: %s: no call\n", plan->name, plan->class);
}

static void add_totals(const struct plan *plan, const struct tally *tally)
{
	FILE *f = plan->totals ? fopen(plan->totals, "ae") : NULL;

	if (f) {
		fprintf(f, "%s\t%llu\t%llu\t%llu\n", plan->class, (unsigned long long)tally->failed,
			(unsigned long long)tally->well, (unsigned long long)tally->known);
		fclose(f);
	}
}

static void parse_codes(struct plan *plan, char *text)
{
	memset(plan->codes, 0, sizeof(plan->codes));
	for (char *item = strtok(text, ","); item; item = strtok(NULL, ","))
		plan->codes[atoi(item) & 255] = 1;
}

static void parse_actions(struct plan *plan, char *text)
{
	plan->n_actions = 0;
	for (char *item = strtok(text, ","); item && plan->n_actions < ACTIONS_MAX;
	     item = strtok(NULL, ","))
		plan->actions[plan->n_actions++] = item;
}

static bool parse_option(struct plan *plan, const char *option, char *value)
{
	const struct {
		const char *name;
		const char **value;
	} texts[] = {
		{"--name", &plan->name},	 {"--class", &plan->class},
		{"--template", &plan->template}, {"--verify", &plan->verify},
		{"--guest", &plan->guest},	 {"--environ", &plan->environ},
		{"--preload", &plan->preload},	 {"--totals", &plan->totals},
		{"--known", &plan->known},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(option, texts[i].name)) {
			*texts[i].value = value;
			return true;
		}
	if (!strcmp(option, "--most"))
		plan->most = (unsigned)atoi(value);
	else if (!strcmp(option, "--jobs"))
		plan->jobs = (unsigned)atoi(value);
	else if (!strcmp(option, "--timeout"))
		plan->timeout_s = (unsigned)atoi(value);
	else if (!strcmp(option, "--wrapper"))
		plan->wrapper = atoi(value);
	else if (!strcmp(option, "--loose"))
		plan->loose = atoi(value);
	else if (!strcmp(option, "--codes"))
		parse_codes(plan, value);
	else if (!strcmp(option, "--actions"))
		parse_actions(plan, value);
	else
		return false;
	return true;
}

static void parse_arguments(int argc, char **argv, struct plan *plan)
{
	int i = 1;

	*plan = (struct plan){.name = "",
			      .most = ~0U,
			      .jobs = 2,
			      .timeout_s = 300,
			      .actions = {"EIO"},
			      .n_actions = 1,
			      .work = "/tmp/wss-faults.XXXXXX"};
	plan->codes[0] = plan->codes[1] = 1;
	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2)
		if (!parse_option(plan, argv[i], argv[i + 1]))
			die("unknown option %s", argv[i]);
	plan->command = argv + i + 1;
	if (i + 1 >= argc || !plan->class || !plan->preload || !plan->most || !plan->jobs ||
	    plan->jobs > JOBS_MAX)
		die("see the top of fail-each.c");
}

int main(int argc, char **argv)
{
	struct tally *tallies, total = {0};
	struct plan plan;

	parse_arguments(argc, argv, &plan);
	tallies = mmap(NULL, JOBS_MAX * sizeof(*tallies), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tallies == MAP_FAILED || !mkdtemp(plan.work))
		die("cannot make %s", plan.work);
	run_baseline(&plan);
	fflush(stdout);
	for (unsigned job = 0; job < plan.jobs; job++)
		if (fork() == 0) {
			work(&plan, job, &tallies[job]);
			fflush(stdout);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (unsigned job = 0; job < plan.jobs; job++) {
		total.failed += tallies[job].failed;
		total.well += tallies[job].well;
		total.known += tallies[job].known;
	}
	files_remove(plan.work);
	add_totals(&plan, &total);
	printf("%s: %s: %llu calls failed, %llu ended well", plan.name, plan.class,
	       (unsigned long long)total.failed, (unsigned long long)total.well);
	if (total.known)
		printf("; %llu more crashed the library", (unsigned long long)total.known);
	putchar('\n');
	return total.well == total.failed ? 0 : 1;
}
