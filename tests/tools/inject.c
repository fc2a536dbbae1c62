/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fails one call of a program that loads this by LD_PRELOAD. Only tests do.
 *
 * WSS_INJECT=KIND:N[/EVERY][:ACTION] fails the N-th call of a kind, counted from 1 over the process
 * and its children, and each EVERY-th after it; N = 0 only counts. Kinds:
 *
 *   alloc    what allocates, pthread_create() and fork(), called by the program itself; what
 *            libc allocates for such a call is the program's too, except in getpwnam(): glibc
 *            aborts if it cannot read nsswitch.conf for lack of memory
 *   library  the same in json-c, libxml2, SQLite and libbpf, called by the program. Not in
 *            libvirt nor in glib: their allocator ends the process by design
 *   io       what changes the files below the directory WSS_INJECT_DIR, and locks on them by
 *            flock() or of an open file description
 *   stdout   writes to the standard output
 *
 * ACTION is EIO (default), ENOSPC, kill (SIGKILL once the call has succeeded) or short (half
 * of a write); alloc and library know only their own failure.
 *
 * WSS_INJECT_STATE names a file of struct inject_state (inject.h), which survives the process.
 */
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

/* A replacement of a C library function may be given NULL, whatever the header declares. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wnonnull-compare"
#endif

#define EXPORT __attribute__((visibility("default")))
#define OBJECTS_MAX 128
#define BOOT_BYTES 65536

enum kind { KIND_NONE, KIND_ALLOC, KIND_LIBRARY, KIND_IO, KIND_STDOUT };
enum action { ACTION_FAIL, ACTION_KILL, ACTION_SHORT };
enum owner { OWNER_OTHER, OWNER_PROGRAM, OWNER_LIBRARY, OWNER_LIBC };

struct object {
	uintptr_t start, end;
	enum owner owner;
};

static struct {
	enum kind kind;
	enum action action;
	int errnum;
	uint64_t at, every; /* every: 0 if only one call fails */
	char directory[PATH_MAX];
	struct inject_state *state;
} plan;

static struct object objects[OBJECTS_MAX];
static size_t n_objects;
static uintptr_t program_start;
static uintptr_t lookup_start; /* of getpwnam() */

/* Set while one of our functions runs: calls that it makes are not counted. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

/* Memory that dlsym() itself allocates before the real functions are known. */
static _Alignas(16) char boot[BOOT_BYTES];
static atomic_size_t boot_used;

static void *boot_alloc(size_t size)
{
	size_t at = atomic_fetch_add(&boot_used, (size + 15) & ~(size_t)15);

	return at + size <= sizeof(boot) ? boot + at : NULL;
}

static bool in_boot(const void *p)
{
	return (const char *)p >= boot && (const char *)p < boot + sizeof(boot);
}

static void *next(const char *name)
{
	bool before = inside;
	void *symbol;

	inside = true;
	symbol = dlsym(RTLD_NEXT, name);
	inside = before;
	return symbol;
}

/* Finds the next definition of the function of this name, once. */
#define REAL(name)                                                    \
	({                                                            \
		static __typeof__(&name) real_##name;                 \
		if (!real_##name)                                     \
			real_##name = (__typeof__(&name))next(#name); \
		real_##name;                                          \
	})

static enum owner owner_of_name(const char *path)
{
	static const struct {
		const char *start;
		enum owner owner;
	} names[] = {
		{"libjson-c.", OWNER_LIBRARY},	{"libxml2.", OWNER_LIBRARY},
		{"libsqlite3.", OWNER_LIBRARY}, {"libbpf.", OWNER_LIBRARY},
		{"libc.", OWNER_LIBC},		{"ld-linux", OWNER_LIBC},
		{"libasan.", OWNER_LIBC},	{"inject.so", OWNER_LIBC},
	};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i].start, strlen(names[i].start)))
			return names[i].owner;
	return OWNER_OTHER;
}

/* The first object in the list is the program. */
static int add_object(struct dl_phdr_info *info, size_t size, void *opaque)
{
	bool *first = opaque;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && n_objects < OBJECTS_MAX; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		objects[n_objects].start = info->dlpi_addr + segment->p_vaddr;
		objects[n_objects].end = objects[n_objects].start + segment->p_memsz;
		objects[n_objects].owner = *first ? OWNER_PROGRAM : owner_of_name(info->dlpi_name);
		n_objects++;
	}
	if (*first)
		program_start = info->dlpi_addr;
	*first = false;
	return 0;
}

static enum owner owner_of(uintptr_t address)
{
	for (size_t i = 0; i < n_objects; i++)
		if (address >= objects[i].start && address < objects[i].end)
			return objects[i].owner;
	/* A library loaded later, such as a plugin, is never one of ours. */
	return OWNER_OTHER;
}

struct caller {
	enum owner decided;
	bool library;
	unsigned n_frames;
	uint64_t frames[INJECT_FRAMES];
};

/*
 * The first frame that belongs neither to libc nor to one of the libraries decides whose call
 * it is; the program's frames after it are kept for the report.
 */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *opaque)
{
	struct caller *caller = opaque;
	uintptr_t address = _Unwind_GetIP(context) - 1;
	enum owner owner = owner_of(address);

	if (owner == OWNER_LIBRARY)
		caller->library = true;
	if (owner == OWNER_LIBC && _Unwind_GetRegionStart(context) == lookup_start)
		return _URC_END_OF_STACK;
	if (owner == OWNER_LIBC || owner == OWNER_LIBRARY)
		return _URC_NO_REASON;
	if (caller->decided == OWNER_LIBC)
		caller->decided = owner;
	if (caller->decided != OWNER_PROGRAM || owner != OWNER_PROGRAM ||
	    caller->n_frames == INJECT_FRAMES)
		return _URC_END_OF_STACK;
	caller->frames[caller->n_frames++] = address - program_start;
	return _URC_NO_REASON;
}

static bool is_counted(struct caller *caller)
{
	*caller = (struct caller){.decided = OWNER_LIBC};
	_Unwind_Backtrace(look_at_frame, caller);
	if (plan.kind == KIND_IO || plan.kind == KIND_STDOUT)
		return true;
	return caller->decided == OWNER_PROGRAM && caller->library == (plan.kind == KIND_LIBRARY);
}

static bool is_planned(uint64_t call)
{
	return call == plan.at ||
	       (plan.every && call > plan.at && (call - plan.at) % plan.every == 0);
}

/* Whether this is the call to fail; name is that of the function. */
static bool is_the_one(const char *name)
{
	struct caller caller;
	bool before = inside, counted;

	inside = true;
	counted = is_counted(&caller);
	inside = before;
	if (!counted || !is_planned(atomic_fetch_add(&plan.state->calls, 1) + 1))
		return false;
	strncpy(plan.state->function, name, sizeof(plan.state->function) - 1);
	memcpy(plan.state->frames, caller.frames, sizeof(caller.frames));
	atomic_fetch_add(&plan.state->fired, 1);
	return true;
}

static bool alloc_fails(const char *name)
{
	if (inside || (plan.kind != KIND_ALLOC && plan.kind != KIND_LIBRARY) || !is_the_one(name))
		return false;
	errno = ENOMEM;
	return true;
}

/* --- allocation --- */

/*
 * dlsym() itself allocates and frees. Until these functions are known it gets memory from
 * boot, and what it frees stays allocated.
 */
static struct {
	__typeof__(&malloc) malloc;
	__typeof__(&calloc) calloc;
	__typeof__(&free) free;
} real;

static bool is_ready(void)
{
	static _Thread_local bool looking __attribute__((tls_model("initial-exec")));

	if (looking)
		return false;
	if (!real.free) {
		looking = true;
		real.malloc = (__typeof__(&malloc))next("malloc");
		real.calloc = (__typeof__(&calloc))next("calloc");
		real.free = (__typeof__(&free))next("free");
		looking = false;
	}
	return true;
}

EXPORT void *malloc(size_t size)
{
	if (!is_ready())
		return boot_alloc(size);
	return alloc_fails("malloc") ? NULL : real.malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	if (!is_ready())
		return boot_alloc(n * size);
	return alloc_fails("calloc") ? NULL : real.calloc(n, size);
}

EXPORT void free(void *p)
{
	if (!in_boot(p) && is_ready())
		real.free(p);
}

EXPORT void *realloc(void *p, size_t size)
{
	if (in_boot(p)) {
		void *copy = malloc(size);

		if (copy)
			memcpy(copy, p, size);
		return copy;
	}
	return alloc_fails("realloc") ? NULL : REAL(realloc)(p, size);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	bool before = inside;
	void *result;

	if (alloc_fails("reallocarray"))
		return NULL;
	inside = true;
	result = REAL(reallocarray)(p, n, size);
	inside = before;
	return result;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return alloc_fails("aligned_alloc") ? NULL : REAL(aligned_alloc)(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	return alloc_fails("posix_memalign") ? ENOMEM : REAL(posix_memalign)(ret, alignment, size);
}

/* ASan has its own versions of these two, which do not call malloc(). */
EXPORT char *strdup(const char *text)
{
	bool before = inside;
	char *copy;

	if (alloc_fails("strdup"))
		return NULL;
	inside = true;
	copy = REAL(strdup)(text);
	inside = before;
	return copy;
}

EXPORT char *strndup(const char *text, size_t size)
{
	bool before = inside;
	char *copy;

	if (alloc_fails("strndup"))
		return NULL;
	inside = true;
	copy = REAL(strndup)(text, size);
	inside = before;
	return copy;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *opaque)
{
	bool before = inside;
	int r;

	if (alloc_fails("pthread_create"))
		return EAGAIN;
	inside = true;
	r = REAL(pthread_create)(thread, attributes, start, opaque);
	inside = before;
	return r;
}

EXPORT pid_t fork(void)
{
	bool before = inside;
	pid_t pid;

	if (alloc_fails("fork"))
		return -1;
	inside = true;
	pid = REAL(fork)();
	inside = before;
	return pid;
}

/* --- files --- */

static bool below(const char *path)
{
	size_t len = strlen(plan.directory);

	return !strncmp(path, plan.directory, len) && path[len] == '/';
}

static bool fd_below(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return below(path);
}

static bool path_below(int dirfd, const char *path)
{
	char link[64], directory[PATH_MAX], whole[2 * PATH_MAX + 2];
	ssize_t n;

	if (path[0] == '/')
		return below(path);
	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = readlink(link, directory, sizeof(directory) - 1);
	if (n <= 0)
		return false;
	directory[n] = '\0';
	snprintf(whole, sizeof(whole), "%s/%s", directory, path);
	return below(whole);
}

/* What to do with a call: let it proceed, or treat it according to the plan. */
enum verdict { GO_ON, FAIL, KILL_AFTER, HALF };

static enum verdict judge(const char *name)
{
	if (!is_the_one(name))
		return GO_ON;
	switch (plan.action) {
	case ACTION_KILL:
		return KILL_AFTER;
	case ACTION_SHORT:
		return HALF;
	default:
		errno = plan.errnum;
		return FAIL;
	}
}

static enum verdict judge_fd(const char *name, int fd)
{
	if (inside || plan.kind != KIND_IO || !fd_below(fd))
		return GO_ON;
	return judge(name);
}

static enum verdict judge_path(const char *name, int dirfd, const char *path)
{
	if (inside || plan.kind != KIND_IO || !path_below(dirfd, path))
		return GO_ON;
	return judge(name);
}

/* Returns result, unless the plan ends the process here. */
static long finish(enum verdict verdict, long result)
{
	if (verdict == KILL_AFTER && result >= 0)
		kill(getpid(), SIGKILL);
	return result;
}

static size_t part(enum verdict verdict, size_t size)
{
	return verdict == HALF && size > 1 ? size / 2 : size;
}

#define ON_FD(type, name, fd, ...)                                                                \
	do {                                                                                      \
		enum verdict verdict = judge_fd(#name, fd);                                       \
                                                                                                  \
		return verdict == FAIL ? -1 : (type)finish(verdict, REAL(name)(fd, __VA_ARGS__)); \
	} while (0)

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	ON_FD(ssize_t, write, fd, data, part(verdict, size));
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	ON_FD(ssize_t, pwrite, fd, data, part(verdict, size), offset);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	ON_FD(ssize_t, pwrite64, fd, data, part(verdict, size), offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int n)
{
	ON_FD(ssize_t, writev, fd, parts, verdict == HALF && n > 1 ? n / 2 : n);
}

EXPORT int ftruncate(int fd, off_t size)
{
	ON_FD(int, ftruncate, fd, size);
}

EXPORT int ftruncate64(int fd, off64_t size)
{
	ON_FD(int, ftruncate64, fd, size);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t size)
{
	ON_FD(int, fallocate, fd, mode, offset, size);
}

EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
	ON_FD(int, fallocate64, fd, mode, offset, size);
}

/* These two return the error instead of setting errno. */
EXPORT int posix_fallocate(int fd, off_t offset, off_t size)
{
	enum verdict verdict = judge_fd("posix_fallocate", fd);

	return verdict == FAIL ? plan.errnum
			       : (int)finish(verdict, REAL(posix_fallocate)(fd, offset, size));
}

EXPORT int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	enum verdict verdict = judge_fd("posix_fallocate64", fd);

	return verdict == FAIL ? plan.errnum
			       : (int)finish(verdict, REAL(posix_fallocate64)(fd, offset, size));
}

EXPORT int fsync(int fd)
{
	enum verdict verdict = judge_fd("fsync", fd);

	return verdict == FAIL ? -1 : (int)finish(verdict, REAL(fsync)(fd));
}

EXPORT int fdatasync(int fd)
{
	enum verdict verdict = judge_fd("fdatasync", fd);

	return verdict == FAIL ? -1 : (int)finish(verdict, REAL(fdatasync)(fd));
}

EXPORT int fchmod(int fd, mode_t mode)
{
	ON_FD(int, fchmod, fd, mode);
}

EXPORT int fchown(int fd, uid_t user, gid_t group)
{
	ON_FD(int, fchown, fd, user, group);
}

EXPORT int flock(int fd, int operation)
{
	ON_FD(int, flock, fd, operation);
}

/* SQLite's own locks are of another kind. */
#define ON_FCNTL(name, fd, command)                              \
	do {                                                     \
		va_list list;                                    \
		void *argument;                                  \
                                                                 \
		va_start(list, command);                         \
		argument = va_arg(list, void *);                 \
		va_end(list);                                    \
		if ((command) == F_OFD_SETLK)                    \
			ON_FD(int, name, fd, command, argument); \
		return REAL(name)(fd, command, argument);        \
	} while (0)

EXPORT int fcntl(int fd, int command, ...)
{
	ON_FCNTL(fcntl, fd, command);
}

EXPORT int fcntl64(int fd, int command, ...)
{
	ON_FCNTL(fcntl64, fd, command);
}

#define ON_PATH(name, dirfd, path, ...)                                                      \
	do {                                                                                 \
		enum verdict verdict = judge_path(#name, dirfd, path);                       \
                                                                                             \
		return verdict == FAIL ? -1 : (int)finish(verdict, REAL(name)(__VA_ARGS__)); \
	} while (0)

EXPORT int rename(const char *from, const char *to)
{
	ON_PATH(rename, AT_FDCWD, to, from, to);
}

EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	ON_PATH(renameat, to_dir, to, from_dir, from, to_dir, to);
}

EXPORT int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	ON_PATH(renameat2, to_dir, to, from_dir, from, to_dir, to, flags);
}

EXPORT int link(const char *from, const char *to)
{
	ON_PATH(link, AT_FDCWD, to, from, to);
}

EXPORT int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	ON_PATH(linkat, to_dir, to, from_dir, from, to_dir, to, flags);
}

EXPORT int unlink(const char *path)
{
	ON_PATH(unlink, AT_FDCWD, path, path);
}

EXPORT int unlinkat(int dirfd, const char *path, int flags)
{
	ON_PATH(unlinkat, dirfd, path, dirfd, path, flags);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
	ON_PATH(mkdir, AT_FDCWD, path, path, mode);
}

EXPORT int mkdirat(int dirfd, const char *path, mode_t mode)
{
	ON_PATH(mkdirat, dirfd, path, dirfd, path, mode);
}

/* The mode of an open() that may create the file. */
#define MODE_OF(flags)                                                       \
	({                                                                   \
		mode_t given = 0;                                            \
                                                                             \
		if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) { \
			va_list list;                                        \
                                                                             \
			va_start(list, flags);                               \
			given = va_arg(list, mode_t);                        \
			va_end(list);                                        \
		}                                                            \
		given;                                                       \
	})

static enum verdict judge_open(const char *name, int dirfd, const char *path, int flags)
{
	if (!(flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE)
		return GO_ON;
	return judge_path(name, dirfd, path);
}

EXPORT int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);
	enum verdict verdict = judge_open("open", AT_FDCWD, path, flags);

	return verdict == FAIL ? -1 : (int)finish(verdict, REAL(open)(path, flags, mode));
}

EXPORT int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);
	enum verdict verdict = judge_open("open64", AT_FDCWD, path, flags);

	return verdict == FAIL ? -1 : (int)finish(verdict, REAL(open64)(path, flags, mode));
}

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);
	enum verdict verdict = judge_open("openat", dirfd, path, flags);

	return verdict == FAIL ? -1 : (int)finish(verdict, REAL(openat)(dirfd, path, flags, mode));
}

EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);
	enum verdict verdict = judge_open("openat64", dirfd, path, flags);

	return verdict == FAIL ? -1
			       : (int)finish(verdict, REAL(openat64)(dirfd, path, flags, mode));
}

/* --- streams, whose writes libc makes by itself --- */

static ssize_t stream_write(void *cookie, const char *data, size_t size)
{
	ssize_t n = write((int)(intptr_t)cookie, data, size);

	return n < 0 ? 0 : n;
}

static int stream_close(void *cookie)
{
	return close((int)(intptr_t)cookie);
}

/* The last stream that was opened, for fileno(). */
static FILE *made;
static int made_fd;

static FILE *stream_of(int fd)
{
	FILE *f =
		fopencookie((void *)(intptr_t)fd, "w",
			    (cookie_io_functions_t){.write = stream_write, .close = stream_close});

	made = f;
	made_fd = fd;
	return f;
}

EXPORT int fileno(FILE *f)
{
	return f == made ? made_fd : REAL(fileno)(f);
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
	if (plan.kind == KIND_IO && mode[0] != 'r' && fd_below(fd))
		return stream_of(fd);
	return REAL(fdopen)(fd, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	int fd;

	if (plan.kind != KIND_IO || mode[0] == 'r' || !path_below(AT_FDCWD, path))
		return REAL(fopen)(path, mode);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (mode[0] == 'a' ? O_APPEND : O_TRUNC),
		  0666);
	return fd < 0 ? NULL : stream_of(fd);
}

static ssize_t stdout_write(void *cookie, const char *data, size_t size)
{
	enum verdict verdict = inside ? GO_ON : judge("write");
	ssize_t n;

	(void)cookie;
	if (verdict == FAIL)
		return 0;
	n = REAL(write)(STDOUT_FILENO, data, part(verdict, size));
	finish(verdict, n);
	return n < 0 ? 0 : n;
}

/* --- the plan --- */

static bool parse_plan(const char *text)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{"alloc", KIND_ALLOC},
		{"library", KIND_LIBRARY},
		{"io", KIND_IO},
		{"stdout", KIND_STDOUT},
	};
	char kind[16] = "", action[16] = "EIO";
	unsigned long long at, every = 0;

	if (sscanf(text, "%15[a-z]:%llu/%llu:%15s", kind, &at, &every, action) < 3 &&
	    sscanf(text, "%15[a-z]:%llu:%15s", kind, &at, action) < 2)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i].name))
			plan.kind = kinds[i].kind;
	plan.at = at;
	plan.every = every;
	plan.action = !strcmp(action, "kill")	 ? ACTION_KILL
		      : !strcmp(action, "short") ? ACTION_SHORT
						 : ACTION_FAIL;
	plan.errnum = !strcmp(action, "ENOSPC") ? ENOSPC : EIO;
	return plan.kind != KIND_NONE &&
	       (plan.action != ACTION_FAIL || !strcmp(action, "EIO") || !strcmp(action, "ENOSPC"));
}

static bool map_state(const char *path)
{
	int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
	void *map;

	if (fd < 0)
		return false;
	map = mmap(NULL, sizeof(struct inject_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	plan.state = map == MAP_FAILED ? NULL : map;
	return plan.state;
}

static void refuse(void)
{
	static const char text[] = "inject.so: WSS_INJECT, WSS_INJECT_STATE or WSS_INJECT_DIR is "
				   "missing or wrong\n";
	ssize_t ignored = REAL(write)(STDERR_FILENO, text, sizeof(text) - 1);

	(void)ignored;
	_exit(126);
}

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("WSS_INJECT"), *state = getenv("WSS_INJECT_STATE");
	const char *directory = getenv("WSS_INJECT_DIR");
	bool first = true;

	inside = true;
	dl_iterate_phdr(add_object, &first);
	lookup_start = (uintptr_t)next("getpwnam");
	if (!text || !state || !parse_plan(text) || !map_state(state) ||
	    (plan.kind == KIND_IO && (!directory || !realpath(directory, plan.directory))))
		refuse();
	if (plan.kind == KIND_STDOUT)
		stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = stdout_write});
	inside = false;
}
