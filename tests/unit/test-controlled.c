/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under the controller, and outside events. The tests call the looking thread as a
 * function; the guest is invented, and its time advances with each look.
 */
#include "hosttest.h"

#include "../divert.h"
#include "ways.h"
#include "balloon/controlled.h"
#include "balloon/give-back.h"
#include "balloon/journal.h"
#include "balloon/plan.h"
#include "balloon/watchdog.h"
#include "base/stop.h"
#include "base/thread.h"
#include "history/db.h"
#include "sizing/config-advice.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define LOOKS_MAX 1000
/* Time between the guest's own reports: longer than that between looks. */
#define REPORT_S 15

struct made_up;
typedef void (*happening)(struct made_up *guest);

static struct made_up {
	struct controller controller;
	struct controlled controlled;
	happening at_look, at_ask;
	unsigned looks;
	uint64_t now_ns;
	uint64_t actual, maximum, rss; /* resident, 0: not known */
	uint64_t qemu;		       /* memory of QEMU itself, which is resident as well */
	unsigned attached;	       /* number of times that its QEMU was looked for */
	bool is_here;		       /* its QEMU runs on this host */
	uint64_t set, least;	       /* last and smallest size that the balloon was set to */
	unsigned sets;		       /* how often it was set */
	unsigned shrunk_looks;
	bool autodeflate;
	uint64_t used;	    /* that it cannot give up */
	time_t said, set_s; /* when it reported; how far the time of day was set ahead */
	enum wss_guest_state state;
	bool kept, gone, ended, silent;
	unsigned happened; /* time of the event that happens to it */
	bool was_away;
	unsigned bad, moves[WSS_CONTROL_GAVE_BACK + 1];
	int watchdog;
	char why[512];
	char *dir, path[PATH_MAX];
} made_up;

/*
 * Number, from 1, of the allocation that fails while the guest is looked after, counting ours
 * and SQLite's; 0: none. Until that time all of them fail.
 */
static struct {
	bool counting, noting;
	unsigned long made, fails;
	uint64_t short_until_ns;
} memory;

static bool memory_is_short(void)
{
	if (!memory.counting)
		return false;
	memory.made++;
	if (memory.noting)
		ways_note();
	return memory.made == memory.fails || made_up.now_ns < memory.short_until_ns;
}

static __typeof__(&malloc) real_malloc;
static __typeof__(&calloc) real_calloc;
static __typeof__(&reallocarray) real_reallocarray;

static void *short_malloc(size_t size)
{
	return memory_is_short() ? NULL : real_malloc(size);
}

static void *short_calloc(size_t n, size_t size)
{
	return memory_is_short() ? NULL : real_calloc(n, size);
}

static void *short_reallocarray(void *p, size_t n, size_t size)
{
	return memory_is_short() ? NULL : real_reallocarray(p, n, size);
}

static void take_our_memory(void)
{
	divert(malloc, short_malloc, &real_malloc);
	divert(calloc, short_calloc, &real_calloc);
	divert(reallocarray, short_reallocarray, &real_reallocarray);
}

static sqlite3_mem_methods sqlite_memory;

static void *sqlite_malloc(int size)
{
	return memory_is_short() ? NULL : sqlite_memory.xMalloc(size);
}

static void *sqlite_realloc(void *p, int size)
{
	return memory_is_short() ? NULL : sqlite_memory.xRealloc(p, size);
}

/* Called before SQLite is used. */
static int take_sqlite_memory(void **unused)
{
	sqlite3_mem_methods ours;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory) != SQLITE_OK)
		return -1;
	ours = sqlite_memory;
	ours.xMalloc = sqlite_malloc;
	ours.xRealloc = sqlite_realloc;
	return sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) == SQLITE_OK ? 0 : -1;
}

/*
 * A stat() of the history that hangs until a later look, or for five minutes. Meanwhile time passes, also for one who begins
 * to wait for it only when it hangs already.
 */
static struct {
	atomic_bool hangs, was_late;
	atomic_uint_fast64_t passed_ns;
	int (*real)(const char *path, struct stat *st);
} history_stat;

static int stat_slowly(const char *path, struct stat *st)
{
	if (history_stat.hangs && !strcmp(path, made_up.path)) {
		for (int i = 0; history_stat.hangs && i < 30000; i++) {
			history_stat.passed_ns += 10 * WSS_NS_PER_MS;
			usleep(10000);
		}
		history_stat.was_late = history_stat.was_late || history_stat.hangs;
	}
	return history_stat.real(path, st);
}

static uint64_t now_ns(void *unused)
{
	return made_up.now_ns + history_stat.passed_ns;
}

static void sleep_until_ns(void *unused, uint64_t when_ns)
{
	made_up.now_ns = when_ns > made_up.now_ns ? when_ns : made_up.now_ns;
}

/* The time of day, which may be set. */
static time_t wall_seconds(void *unused)
{
	return (time_t)(1700000000 + made_up.now_ns / WSS_NS_PER_S) + made_up.set_s;
}

static const struct wss_clock_source clock_source = {
	.now_ns = now_ns, .sleep_until_ns = sleep_until_ns, .wall_seconds = wall_seconds};

static int refresh(struct wss_guest *guest, struct wss_error *err)
{
	guest->ended = made_up.ended;
	if (made_up.gone)
		return wss_error_set(err, WSS_ERR_GONE, "no such domain");
	guest->state = made_up.state;
	guest->kept = made_up.kept;
	guest->config.maximum_bytes = made_up.maximum;
	guest->config.balloon_autodeflate = made_up.autodeflate;
	return 0;
}

static int balloon_stats(struct wss_guest *guest, struct wss_balloon_stats *ret_stats,
			 struct wss_error *err)
{
	if (++made_up.looks > LOOKS_MAX)
		made_up.controller.ending = true;
	if (made_up.looks % REPORT_S == 1 && !made_up.silent && made_up.state == WSS_GUEST_RUNNING)
		made_up.said = wss_clock_wall_seconds();
	made_up.at_look(&made_up);
	if (made_up.state == WSS_GUEST_SHUTOFF)
		return wss_error_set(err, WSS_ERR_GONE, "the domain is not running any more");
	if (made_up.now_ns < memory.short_until_ns)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*ret_stats = (struct wss_balloon_stats){
		.actual_bytes = {true, made_up.actual},
		.rss_bytes = {made_up.rss != 0, made_up.rss + made_up.qemu},
		.usable_bytes = {true, made_up.actual - made_up.used},
		.update_s = {true, (uint64_t)made_up.said},
	};
	return 0;
}

static int balloon_size(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err)
{
	if (made_up.at_ask)
		made_up.at_ask(&made_up);
	*ret_bytes = made_up.actual;
	return 0;
}

static int set_balloon(struct wss_guest *guest, uint64_t bytes, struct wss_error *err)
{
	if (made_up.state != WSS_GUEST_RUNNING) {
		/* Somebody starts the guest again while its thread keeps trying to give back. */
		made_up.at_look(&made_up);
		return wss_error_set(err, WSS_ERR_FAILED, "cannot set the balloon");
	}
	if (bytes > made_up.maximum)
		return wss_error_set(err, WSS_ERR_FAILED, "more than its maximum");
	made_up.actual = made_up.set = bytes;
	made_up.sets++;
	if (!made_up.least || bytes < made_up.least)
		made_up.least = bytes;
	return 0;
}

/* Invents the files of a QEMU that has 1 GiB of RAM. */
static int attach(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err)
{
	static const char ram[] = "7f0000000000-7f0040000000 rw-p 00000000 00:00 0\n",
			  guard[] = "7f0040000000-7f0040001000 ---p 00000000 00:00 0\n",
			  own[] = "7f1000000000-7f1080000000 rw-p 00000000 00:00 0\n";
	char text[1024];

	made_up.attached++;
	if (!made_up.is_here)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "it runs on another host");
	snprintf(text, sizeof(text), "%s%s%s", ram, guard, own);
	put_text(made_up.dir, "maps", text);
	snprintf(text, sizeof(text), "%sRss: %llu kB\n%sRss: 0 kB\n%sRss: %llu kB\n", ram,
		 (unsigned long long)made_up.rss / 1024, guard, own,
		 (unsigned long long)made_up.qemu / 1024);
	put_text(made_up.dir, "smaps", text);
	put_text(made_up.dir, "stat", "1 (q) S 1 1 1 0 -1 0 1 0 0 0 1 1 0 0 20 0 3 0 9 1 2\n");
	return wss_root_open(made_up.dir, &guest->process.proc, err);
}

static void release(struct wss_guest *guest)
{
}

static const struct wss_guest_ops ops = {
	.refresh = refresh,
	.balloon_stats = balloon_stats,
	.balloon_size = balloon_size,
	.set_balloon = set_balloon,
	.attach = attach,
	.release = release,
};

static int open_guest(void *unused, const struct wss_domain_ref *ref,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err)
{
	struct wss_guest *guest = wss_guest_new(&ops, NULL, deadline);

	if (!guest)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	snprintf(guest->config.name, sizeof(guest->config.name), "%s", ref->name);
	snprintf(guest->config.uuid, sizeof(guest->config.uuid), "%s", UUID_A);
	guest->config.has_balloon = true;
	guest->config.block_bytes[0] = GIB;
	guest->config.n_blocks = 1;
	*ret_guest = guest;
	return 0;
}

static const char *source_uri(void *unused)
{
	return "test:///made-up";
}

static const struct wss_guest_source source = {.open = open_guest, .uri = source_uri};

static void moved(const struct wss_control_move *move, void *unused)
{
	assert_string_equal(move->guest, "web1");
	made_up.moves[move->verb]++;
}

static void trouble(const char *guest, const struct wss_error *error, void *unused)
{
	assert_string_equal(guest, "web1");
	made_up.bad++;
	snprintf(made_up.why, sizeof(made_up.why), "%s", error->text);
}

static void progress(const char *guest, const char *text, void *unused)
{
	assert_string_equal(guest, "web1");
	snprintf(made_up.why, sizeof(made_up.why), "%s", text);
}

static void none_running(const char *unused, void *nor_this)
{
	fail();
}

static const struct wss_control_events events = {moved, trouble, progress, none_running, NULL};

/* Others take the windows and store them in the history. */
static const struct wss_balloon_options options = {
	.advice = {.rule = {.percentile = 0.99, .headroom_percent = 20, .minimum_bytes = 256 * MIB},
		   .span_ns = 86400 * WSS_NS_PER_S},
	.period_ns = 3600 * WSS_NS_PER_S,
	.pause_ns = 10 * WSS_NS_PER_S,
};

/* What the controller is to do; NULL: reclaim memory. */
static const struct wss_control_squeeze *squeezing;

static size_t unfinished(void)
{
	wss_auto_free struct wss_journal_open *open = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	size_t n = 0;

	assert_int_equal(
		wss_journal_unfinished(made_up.controller.journal.history, NULL, &open, &n, &err),
		0);
	return n;
}

static void add_window(time_t wall)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_sample sample = {.method = "mmu",
				    .wall = wall,
				    .requested_window_ns = WSS_NS_PER_S,
				    .quality = WSS_QUALITY_OK,
				    .window_ns = wss_amount_of(WSS_NS_PER_S),
				    .granularity_bytes = wss_amount_of(4096),
				    .wss_bytes = wss_amount_of(100 * MIB)};

	snprintf(sample.uuid, sizeof(sample.uuid), "%s", UUID_A);
	snprintf(sample.domain, sizeof(sample.domain), "web1");
	if (wss_history_add(made_up.controller.history.history, &sample, &err) < 0)
		fail_msg("%s", err.text);
}

/* Opens the pipe to a watchdog that only counts messages. */
static void open_watchdog(struct controller *controller)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	made_up.watchdog = fds[0];
	controller->watchdog = fds[1];
}

/* Returns the number of guests that it guards. */
static size_t guarded(void)
{
	char said[4096];
	ssize_t n = read(made_up.watchdog, said, sizeof(said));

	return n > 0 ? (size_t)n / (WSS_UUID_TEXT_MAX - 1) : 0;
}

/* Tends a guest of 1 GiB that needs 256 MiB, until it is left alone or the controller ends. */
static void look_with(happening at_look)
{
	const struct wss_domain_ref ref = {.name = "web1"};
	const struct wss_host host = {.root = {.dirfd = -1}};
	struct controller *controller = &made_up.controller;
	struct wss_error err = WSS_ERROR_INIT;

	made_up = (struct made_up){.at_look = at_look,
				   .now_ns = 1000 * WSS_NS_PER_S,
				   .actual = GIB,
				   .maximum = GIB,
				   .used = 200 * MIB,
				   .state = WSS_GUEST_RUNNING};
	history_stat.passed_ns = 0;
	wss_clock_inject(&clock_source);
	made_up.dir = make_tree();
	make_path(made_up.path, "%s/history.db", made_up.dir);
	wss_controller_init(controller, &options, &events);
	controller->options.squeeze = squeezing;
	controller->busy = controller->threads = 1;
	assert_int_equal(
		wss_hypervisor_new(&host, &source, NULL, &controller->targets.hypervisor, &err), 0);
	made_up.controlled.target =
		wss_target_new(controller->targets.hypervisor, &ref, 0, NULL, &err);
	assert_non_null(made_up.controlled.target);
	open_watchdog(controller);
	assert_int_equal(wss_controller_open_history(controller, made_up.path, &err), 0);
	wss_history_set_patience(controller->journal.history, 0);
	for (time_t i = 12; i > 0; i--)
		add_window(wss_clock_wall_seconds() - i);
	made_up.controlled.controller = controller;
	made_up.controlled.name = made_up.controlled.target->name;
	memory.made = memory.short_until_ns = 0;
	memory.counting = true;
	wss_controlled_look(&made_up.controlled);
	memory.counting = false;
	wss_clock_inject(NULL);
}

static void clean_up(void)
{
	/* None of their work may meet the next test. */
	assert_true(wss_background_end(made_up.controlled.background, 300 * WSS_NS_PER_S));
	assert_true(wss_background_end(made_up.controller.place, 300 * WSS_NS_PER_S));
	made_up.controller.place = NULL;
	free(made_up.controlled.squeeze);
	wss_target_free(made_up.controlled.target);
	wss_hypervisor_unref(made_up.controller.targets.hypervisor);
	wss_shared_history_close(&made_up.controller.history);
	wss_shared_history_close(&made_up.controller.journal);
	close(made_up.watchdog);
	close(made_up.controller.watchdog);
	remove_tree(made_up.dir);
}

static struct squeezed {
	unsigned times;
	size_t points;
	struct wss_edges edges;
} squeezed;

static void on_squeezed(const struct wss_target *target, const struct wss_squeeze *squeeze,
			void *opaque)
{
	struct squeezed *result = opaque;

	assert_string_equal(target->guest->config.uuid, UUID_A);
	/* It has its memory back by then. */
	assert_int_equal(made_up.actual, GIB);
	assert_true(memory.fails || unfinished() == 0);
	result->times++;
	result->points = squeeze->n_points;
	wss_edges_find(squeeze->points, squeeze->n_points, &result->edges);
}

static const struct wss_control_squeeze squeeze_control = {
	.options = {.step_percent = 20, .settle_s = 1, .interval_s = 1, .floor_bytes = 64 * MIB},
	.done = on_squeezed,
	.opaque = &squeezed,
};

static void squeeze(happening at_look)
{
	squeezed = (struct squeezed){.times = 0};
	squeezing = &squeeze_control;
	look_with(at_look);
	squeezing = NULL;
}

static bool is_shrunk(void)
{
	return made_up.actual < GIB - 200 * MIB;
}

static void end_at_once(struct made_up *guest)
{
	guest->controller.ending = true;
}

static void nothing(struct made_up *guest)
{
	guest->happened++;
}

TEST(test_to_the_floor)
{
	look_with(nothing);
	assert_true(made_up.looks > LOOKS_MAX);
	/* The guest was shrunk until the controller ended and gave everything back. */
	assert_in_range(made_up.least, 256 * MIB, 257 * MIB);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	assert_int_equal(made_up.bad, 0);
	assert_true(made_up.moves[WSS_CONTROL_SHRINKS] > 10);
	assert_int_equal(made_up.moves[WSS_CONTROL_GROWS], 0);
	assert_int_equal(made_up.moves[WSS_CONTROL_GAVE_BACK], 1);
	clean_up();
}

/* The guest touches its memory after a while, and gives up what it is told to. */
static void touch_late(struct made_up *guest)
{
	if (guest->looks == 1)
		guest->rss = 280 * MIB;
	if (guest->looks == 300) {
		assert_int_equal(guest->set, 0);
		guest->rss = GIB;
	}
	if (guest->rss > guest->actual)
		guest->rss = guest->actual;
}

/*
 * A guest that the host would gain nothing from is looked after, and shrunk once there is a
 * gain.
 */
TEST(test_nothing_to_gain)
{
	look_with(touch_late);
	assert_non_null(strstr(made_up.why, "would free 24 MiB; the minimum is 51.2 MiB"));
	assert_int_equal(made_up.bad, 0);
	assert_in_range(made_up.least, 256 * MIB, 257 * MIB);
	assert_int_equal(made_up.actual, GIB);
	clean_up();
}

/* All of its memory is resident, and QEMU allocates more than the guest gives up. */
static void follow_and_grow(struct made_up *guest)
{
	if (guest->looks == 1) {
		guest->is_here = true;
		guest->rss = GIB;
	}
	if (guest->rss > guest->actual)
		guest->rss = guest->actual;
	guest->qemu = GIB + (GIB - guest->actual);
}

/* The memory of QEMU itself is read again before it would count as the guest's. */
TEST(test_growth_of_qemu)
{
	look_with(follow_and_grow);
	assert_int_equal(made_up.bad, 0);
	assert_in_range(made_up.least, 256 * MIB, 257 * MIB);
	assert_int_equal(made_up.actual, GIB);
	/* That is expensive, so it is done rarely. */
	assert_in_range(made_up.attached, 2, 12);
	assert_int_equal(made_up.controlled.target->guest->process.proc.dirfd, -1);
	clean_up();
}

/* It claims to give up memory, which remains resident. */
static void keep_all(struct made_up *guest)
{
	guest->is_here = true;
	guest->rss = GIB;
}

/* A guest that the host gains nothing from is left alone. */
TEST(test_no_gain)
{
	look_with(keep_all);
	assert_string_equal(made_up.why, "the host reclaims nothing from the guest: left alone");
	assert_int_equal(made_up.attached, 2);
	assert_int_equal(made_up.actual, GIB);
	clean_up();
}

/* The same, on another host. */
static void keep_all_elsewhere(struct made_up *guest)
{
	guest->rss = GIB;
}

TEST(test_no_gain_elsewhere)
{
	look_with(keep_all_elsewhere);
	assert_string_equal(made_up.why, "the host reclaims nothing from the guest: left alone");
	assert_int_equal(made_up.actual, GIB);
	clean_up();
}

static void shrink_and_end(struct made_up *guest)
{
	guest->happened += is_shrunk();
	if (guest->happened > 3)
		guest->controller.ending = true;
}

/* Fails one allocation in each run of work(), on each way that leads to any (ways.h). check() sees how the run has ended. */
static void fail_each_way(void (*work)(void), void (*check)(void))
{
	ways_forget();
	memory.noting = true;
	work();
	memory.noting = false;
	clean_up();
	assert_true(ways.n > 20);
	for (size_t i = 0; i < ways.n_allocations; i++) {
		if (!ways_choose(i))
			continue;
		memory.fails = i + 1;
		work();
		memory.fails = 0;
		check();
		clean_up();
	}
}

static void look_and_end(void)
{
	look_with(shrink_and_end);
	assert_true(made_up.least < GIB);
}

static void check_looked(void)
{
	assert_null(made_up.controlled.end);
	assert_true(made_up.happened > 3);
	assert_int_equal(made_up.actual, GIB);
	assert_true(unfinished() == 0 || (made_up.bad > 0 && made_up.controlled.shrunk));
	assert_int_equal(made_up.controller.busy, made_up.controlled.shrunk ? 1 : 0);
}

/*
 * Whichever allocation fails, the guest is not left alone: it is still shrunk, and has all its
 * memory in the end. If the controller could not close the journal at its end, it has reported
 * that, and the watchdog has the guest and finds it in the journal.
 */
TEST(test_out_of_memory)
{
	fail_each_way(look_and_end, check_looked);
}

/* Shrunk, and then without any memory for a few looks. */
static void shrink_and_go_short(struct made_up *guest)
{
	guest->happened += is_shrunk();
	if (guest->happened == 3)
		memory.short_until_ns = guest->now_ns + 5 * WSS_NS_PER_S;
	if (guest->happened > 30)
		guest->controller.ending = true;
}

/* The controller continues to look after it. */
TEST(test_short_of_memory_for_a_moment)
{
	look_with(shrink_and_go_short);
	assert_null(made_up.controlled.end);
	assert_true(made_up.happened > 30);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	assert_int_equal(made_up.bad, 0);
	clean_up();
}

/* Shrunk, and then without any memory for five minutes. */
static void shrink_and_starve(struct made_up *guest)
{
	guest->happened += is_shrunk();
	if (guest->happened == 3)
		memory.short_until_ns = guest->now_ns + 300 * WSS_NS_PER_S;
}

/* The guest does not wait that long: it gets its memory back, and the journal is closed later. */
TEST(test_short_of_memory_for_long)
{
	look_with(shrink_and_starve);
	assert_in_range(made_up.happened, 3, 30);
	assert_non_null(made_up.controlled.end);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	assert_int_equal(made_up.bad, 1);
	assert_string_equal(made_up.why, "out of memory");
	assert_true(made_up.now_ns >= memory.short_until_ns);
	clean_up();
}

/* The balloon keeps what it has taken when memory is plugged in. */
static void plug_in(struct made_up *guest)
{
	if (guest->happened || !is_shrunk())
		return;
	guest->happened++;
	guest->maximum += GIB;
	guest->actual += GIB;
	guest->least = UINT64_MAX;
}

TEST(test_memory_that_is_plugged_in)
{
	look_with(plug_in);
	assert_int_equal(made_up.happened, 1);
	assert_int_equal(made_up.actual, 2 * GIB);
	assert_int_equal(made_up.least, 2 * GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

static void unplug(struct made_up *guest)
{
	if (guest->happened || !is_shrunk())
		return;
	guest->happened++;
	guest->maximum -= 512 * MIB;
	guest->actual -= 512 * MIB;
}

TEST(test_memory_that_is_unplugged)
{
	look_with(unplug);
	assert_int_equal(made_up.happened, 1);
	assert_int_equal(made_up.actual, 512 * MIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

/* What somebody else does to a guest that is shrunk, and how long after that the controller
 * ends. */
static struct {
	uint64_t bytes;	    /* to which they set its balloon */
	unsigned end_looks; /* 0: it does not end */
	unsigned later;	    /* looks after which they do so once more, by a GiB more */
	bool autodeflate;
} another;

static unsigned sets_before;

static void set_by_another(struct made_up *guest)
{
	/* Its balloon has taken some memory from the start. */
	guest->maximum = 4 * GIB;
	guest->autodeflate = another.autodeflate;
	guest->shrunk_looks += is_shrunk();
	if (!guest->happened && guest->shrunk_looks < 2)
		return;
	if (!guest->happened++) {
		sets_before = guest->sets;
		guest->actual = another.bytes;
	}
	if (another.later && guest->happened == another.later)
		guest->actual += GIB;
	/* It reports every 15 s. */
	guest->controller.ending |= another.end_looks && guest->happened == another.end_looks;
}

static void assert_others_won(uint64_t bytes)
{
	assert_int_equal(made_up.actual, bytes);
	/* Where it stopped on the way to our size, that is withdrawn. */
	assert_true(made_up.sets == sets_before ||
		    (made_up.sets == sets_before + 1 && made_up.set == bytes));
	assert_int_equal(unfinished(), 0);
	assert_int_equal(made_up.controller.busy, 0);
	assert_false(made_up.controlled.shrunk);
	assert_non_null(strstr(made_up.why, "somebody else set its balloon (now "));
	assert_int_equal(made_up.moves[WSS_CONTROL_GAVE_BACK], 0);
}

/* Whoever sets the balloon, to whichever size, keeps it, however and whenever the controller
 * ends. */
TEST(test_somebody_else_sets_the_balloon)
{
	static const uint64_t sizes[] = {200 * MIB, 300 * MIB,	     500 * MIB, 1000 * MIB,
					 GIB,	    GIB + 512 * MIB, 4 * GIB};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned end = 0; end < 4; end++) {
			another.bytes = sizes[i];
			another.end_looks = end;
			another.autodeflate = end % 2;
			look_with(set_by_another);
			assert_others_won(sizes[i]);
			/* Only a controller that goes on has to say so as trouble. */
			assert_true(end > 0 || made_up.bad == 1);
			clean_up();
		}
	}
}

/* A little more, of which a guest with autodeflate is capable itself, but has no need. */
static void set_a_little_more(struct made_up *guest)
{
	guest->maximum = 4 * GIB;
	guest->autodeflate = true;
	guest->shrunk_looks += guest->set && guest->set <= 257 * MIB;
	if (guest->shrunk_looks < 2 * REPORT_S + 2)
		return;
	if (!guest->happened++) {
		sets_before = guest->sets;
		guest->actual += another.bytes;
	}
	guest->controller.ending |= another.end_looks && guest->happened == another.end_looks;
}

TEST(test_somebody_else_sets_it_a_little_higher)
{
	for (another.bytes = 2 * MIB; another.bytes <= 8 * MIB; another.bytes += 2 * MIB) {
		for (another.end_looks = 0; another.end_looks < 3; another.end_looks++) {
			look_with(set_a_little_more);
			assert_others_won(made_up.actual);
			assert_in_range(made_up.actual, 256 * MIB + another.bytes,
					257 * MIB + another.bytes);
			clean_up();
		}
	}
}

/* A balloon that is empty, as without its driver, must not be filled later to the size that we
 * set. */
TEST(test_an_empty_balloon_stays_empty)
{
	another.bytes = 4 * GIB;
	for (another.end_looks = 0; another.end_looks < 4; another.end_looks++) {
		another.autodeflate = another.end_looks % 2;
		look_with(set_by_another);
		assert_int_equal(made_up.set, 4 * GIB);
		assert_int_equal(unfinished(), 0);
		clean_up();
	}
}

/* Somebody sets it again while it is still looked at. */
TEST(test_somebody_else_sets_the_balloon_twice)
{
	another.end_looks = 0;
	for (another.later = 2; another.later < 6; another.later++) {
		another.bytes = GIB + 512 * MIB;
		look_with(set_by_another);
		assert_others_won(2 * GIB + 512 * MIB);
		clean_up();
	}
	another.later = 0;
}

static void set_when_asked(struct made_up *guest)
{
	guest->at_ask = NULL;
	sets_before = guest->sets;
	guest->actual = another.bytes;
	guest->controller.ending = another.end_looks;
}

static void set_within_a_step(struct made_up *guest)
{
	guest->maximum = 4 * GIB;
	guest->shrunk_looks += is_shrunk();
	if (guest->shrunk_looks == 2 && !guest->happened++)
		guest->at_ask = set_when_asked;
}

/* Somebody sets it between a look and the step that it leads to, while that is written to the journal. */
TEST(test_somebody_else_sets_the_balloon_within_a_step)
{
	static const uint64_t sizes[] = {300 * MIB, 1000 * MIB, 2 * GIB};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		another.bytes = sizes[i];
		for (another.end_looks = 0; another.end_looks < 2; another.end_looks++) {
			look_with(set_within_a_step);
			assert_null(made_up.at_ask);
			assert_others_won(sizes[i]);
			clean_up();
			squeeze(set_within_a_step);
			assert_null(made_up.at_ask);
			assert_others_won(sizes[i]);
			clean_up();
		}
	}
}

/* It is set while the guest waits for a processor, which follows and reports only when it runs again. */
static void starve_and_follow(struct made_up *guest)
{
	guest->maximum = 4 * GIB;
	guest->silent = true;
	guest->shrunk_looks += is_shrunk();
	guest->happened += guest->shrunk_looks > 2;
	if (guest->happened < 1 || guest->happened > 4)
		guest->said = wss_clock_wall_seconds();
	if (guest->happened == 1) {
		sets_before = guest->sets;
		guest->controller.ending = true;
	}
	if (guest->happened == 6)
		guest->actual = another.bytes;
}

TEST(test_somebody_else_sets_the_balloon_of_a_starved_guest)
{
	static const uint64_t sizes[] = {300 * MIB, 1000 * MIB, 2 * GIB};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		another.bytes = sizes[i];
		look_with(starve_and_follow);
		assert_others_won(sizes[i]);
		clean_up();
	}
}

TEST(test_squeeze_and_somebody_else)
{
	static const uint64_t sizes[] = {300 * MIB, 900 * MIB, GIB + 512 * MIB};

	another.autodeflate = false;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		another.bytes = sizes[i];
		for (another.end_looks = 0; another.end_looks < 3; another.end_looks++) {
			squeeze(set_by_another);
			assert_int_equal(squeezed.times, 0);
			assert_others_won(sizes[i]);
			clean_up();
		}
	}
}

/* A guest that is slow: its balloon takes several looks to each size. */
static void follow_slowly(struct made_up *guest)
{
	static uint64_t now;
	uint64_t to = guest->set ? guest->set : GIB;

	if (guest->looks == 1)
		now = GIB;
	now = to < now ? now - (now - to + 2) / 3 : to;
	guest->rss = 0;
	guest->actual = now;
	guest->controller.ending = another.end_looks && guest->looks == another.end_looks;
}

/* Sizes between the old one and ours are nobody's will, whenever the controller ends. */
TEST(test_slow_balloon)
{
	for (another.end_looks = 20; another.end_looks < 40; another.end_looks++) {
		look_with(follow_slowly);
		assert_int_equal(made_up.set, GIB);
		assert_int_equal(made_up.bad, 0);
		assert_int_equal(unfinished(), 0);
		clean_up();
	}
}

/* Its balloon is empty after a reset, and then goes back to the size that was set. */
static void reset(struct made_up *guest)
{
	guest->maximum = 4 * GIB;
	guest->autodeflate = another.autodeflate;
	if (!guest->happened && !is_shrunk())
		return;
	guest->happened++;
	guest->silent = true;
	if (guest->happened < 12 && !guest->moves[WSS_CONTROL_GAVE_BACK])
		guest->actual = 4 * GIB - guest->happened * 256 * MIB;
	else if (!guest->moves[WSS_CONTROL_GAVE_BACK])
		guest->actual = guest->set;
	guest->controller.ending |= guest->happened == another.end_looks;
}

/* That is nobody's will either: the guest gets what it had, not what it seemed to have. */
TEST(test_reset)
{
	for (another.end_looks = 1; another.end_looks < 20; another.end_looks++) {
		another.autodeflate = another.end_looks % 2;
		look_with(reset);
		assert_int_equal(made_up.actual, GIB);
		assert_int_equal(unfinished(), 0);
		assert_int_equal(made_up.moves[WSS_CONTROL_GAVE_BACK], 1);
		clean_up();
	}
}

/* Without memory, with autodeflate: its kernel takes some back. */
static void take_back(struct made_up *guest)
{
	guest->autodeflate = true;
	if (!guest->happened && !is_shrunk())
		return;
	if (guest->moves[WSS_CONTROL_GAVE_BACK])
		return;
	guest->actual += ++guest->happened < 10 ? 8 * MIB : 0;
	guest->used = guest->actual - 4 * MIB;
	guest->controller.ending |= guest->happened == another.end_looks;
}

TEST(test_autodeflate)
{
	for (another.end_looks = 0; another.end_looks < 20; another.end_looks += 3) {
		look_with(take_back);
		assert_int_equal(made_up.actual, GIB);
		assert_int_equal(unfinished(), 0);
		assert_int_equal(made_up.moves[WSS_CONTROL_GAVE_BACK], 1);
		clean_up();
	}
}

/* It is started again after a while, with its reduced size. */
static void save_and_start(struct made_up *guest)
{
	if (!guest->happened && !is_shrunk())
		return;
	guest->state = ++guest->happened < 10 ? WSS_GUEST_SHUTOFF : WSS_GUEST_RUNNING;
	guest->kept = guest->state == WSS_GUEST_SHUTOFF;
	guest->was_away |= guest->controlled.away;
}

TEST(test_saved_and_started_again)
{
	look_with(save_and_start);
	assert_true(made_up.was_away);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	assert_false(made_up.controlled.shrunk);
	assert_int_equal(made_up.bad, 1);
	assert_non_null(strstr(made_up.why, "stays shrunk where it resumes"));
	clean_up();
}

static void save_and_end(struct made_up *guest)
{
	if (!guest->happened && !is_shrunk())
		return;
	guest->state = WSS_GUEST_SHUTOFF;
	guest->kept = true;
	guest->controller.ending = ++guest->happened >= 10;
}

/* At the end of the controller the watchdog takes over the guest. */
TEST(test_saved_at_the_end)
{
	look_with(save_and_end);
	assert_true(made_up.happened >= 10);
	assert_int_equal(unfinished(), 1);
	assert_true(made_up.controlled.shrunk);
	assert_int_equal(made_up.controller.busy, 1);
	clean_up();
}

static void end_for_good(struct made_up *guest)
{
	guest->gone = guest->ended = is_shrunk();
	if (guest->gone)
		guest->state = WSS_GUEST_SHUTOFF;
}

/* libvirt does not know it for a while, and nobody saw it end. */
static void vanish(struct made_up *guest)
{
	if (!guest->happened && !is_shrunk())
		return;
	guest->gone = ++guest->happened < 10 || another.end_looks;
	guest->state = guest->gone ? WSS_GUEST_SHUTOFF : WSS_GUEST_RUNNING;
	guest->controller.ending |= another.end_looks && guest->happened >= another.end_looks;
}

/* It gets its memory back once it is there again, from this controller or from a later
 * restore. */
TEST(test_vanished)
{
	another.end_looks = 0;
	look_with(vanish);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
	another.end_looks = 20;
	look_with(vanish);
	assert_true(made_up.gone);
	assert_int_equal(unfinished(), 1);
	assert_true(made_up.controlled.shrunk);
	clean_up();
}

TEST(test_ended)
{
	look_with(end_for_good);
	assert_true(made_up.gone);
	assert_int_equal(unfinished(), 0);
	assert_string_equal(made_up.why, "the guest is not running any more");
	clean_up();
}

static void remove_history(struct made_up *guest)
{
	unlink(guest->path);
}

/* Without the history nobody would know what was taken. */
TEST(test_history_removed_before_the_first_step)
{
	look_with(remove_history);
	assert_int_equal(made_up.set, 0);
	assert_non_null(strstr(made_up.why, "removed or replaced"));
	clean_up();
}

static void let_stat_hang(struct made_up *guest)
{
	guest->happened += is_shrunk();
	if (guest->happened == 3)
		history_stat.hangs = true;
	if (guest->happened == 10) {
		history_stat.hangs = false;
		guest->controller.ending = true;
	}
}

/* The guest is looked at as before, and keeps what it has. */
TEST(test_the_disk_of_the_history_hangs)
{
	divert(stat, stat_slowly, &history_stat.real);
	look_with(let_stat_hang);
	assert_false(history_stat.was_late);
	assert_false(history_stat.hangs);
	assert_true(history_stat.passed_ns > 0);
	assert_int_equal(made_up.bad, 0);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

static void keep_history_busy(struct made_up *guest)
{
	static struct wss_history *other;
	struct wss_error err = WSS_ERROR_INIT;

	if (guest->looks == 2) {
		assert_int_equal(wss_history_open(guest->path, &other, &err), 0);
		assert_int_equal(wss_db_exec(other, "BEGIN IMMEDIATE", "", &err), 0);
	} else if (guest->looks == 100) {
		assert_int_equal(guest->set, 0);
		wss_history_close(other);
	}
	guest->controller.ending = is_shrunk();
}

/* The watchdog remembers each UUID, so steps that are put off must not repeat it. */
TEST(test_watchdog_is_told_once)
{
	look_with(keep_history_busy);
	assert_true(made_up.least < GIB);
	assert_int_equal(guarded(), 1);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

static void set_ahead(struct made_up *guest)
{
	/* Set after the report, which then seems to be from yesterday. */
	if (is_shrunk() && guest->looks % REPORT_S == 2)
		guest->set_s = 86400;
}

TEST(test_clock_set_ahead)
{
	look_with(set_ahead);
	assert_int_equal(made_up.set_s, 86400);
	assert_true(made_up.looks > LOOKS_MAX);
	assert_in_range(made_up.least, 256 * MIB, 257 * MIB);
	assert_int_equal(made_up.bad, 0);
	clean_up();
}

static void set_back_and_silent(struct made_up *guest)
{
	if (!is_shrunk() || guest->silent)
		return;
	guest->silent = true;
	guest->set_s = -86400;
	guest->happened = guest->looks;
}

TEST(test_silent_while_the_clock_is_set_back)
{
	look_with(set_back_and_silent);
	assert_in_range(made_up.looks - made_up.happened, 50, 75);
	assert_non_null(strstr(made_up.why, "no balloon statistics"));
	assert_int_equal(made_up.actual, GIB);
	clean_up();
}

static void pause_and_resume(struct made_up *guest)
{
	if (!guest->happened && is_shrunk()) {
		guest->happened = guest->looks;
		guest->state = WSS_GUEST_PAUSED;
	}
	/* Its next report is a while off. */
	if (guest->looks > guest->happened + 200 && guest->looks % REPORT_S == 2)
		guest->state = WSS_GUEST_RUNNING;
}

/* A paused guest cannot report, and does not report at once after it was resumed. */
TEST(test_paused_and_resumed)
{
	look_with(pause_and_resume);
	assert_true(made_up.happened > 0);
	assert_true(made_up.looks > LOOKS_MAX);
	assert_in_range(made_up.least, 256 * MIB, 257 * MIB);
	assert_int_equal(made_up.bad, 0);
	clean_up();
}

/* Whether the window is current, as in a dry run. */
static bool is_current(void)
{
	const struct wss_policy policy = {.opt_out = false};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_look look = {.limits = {0}};
	struct wss_need need;

	assert_int_equal(wss_need_read(&options.advice, made_up.controller.history.history, UUID_A,
				       &policy, &need, &err),
			 0);
	wss_look_join(&need, &look);
	return look.facts.current;
}

/* A window from the future does not count. */
TEST(test_age_of_the_newest_window)
{
	look_with(end_at_once);
	assert_false(is_current());
	add_window(wss_clock_wall_seconds() + 3600);
	assert_false(is_current());
	add_window(wss_clock_wall_seconds() - 3600);
	assert_false(is_current());
	add_window(wss_clock_wall_seconds() - 60);
	assert_true(is_current());
	clean_up();
}

static struct wss_balloon_stats said;

static int say(struct wss_guest *guest, struct wss_balloon_stats *ret_stats, struct wss_error *err)
{
	*ret_stats = said;
	return 0;
}

static uint64_t reserve_of(bool autodeflate, uint64_t actual, uint64_t managed)
{
	static const struct wss_guest_ops talks = {.balloon_stats = say};
	struct wss_guest guest = {
		.ops = &talks,
		.state = WSS_GUEST_RUNNING,
		.config = {.initial_bytes = GIB, .balloon_autodeflate = autodeflate}};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reports reports = {0};
	struct wss_look look = {.facts = {0}};

	said = (struct wss_balloon_stats){
		.actual_bytes = {true, actual},
		.usable_bytes = {true, 300 * MIB},
		.managed_bytes = {true, managed},
		.update_s = {true, (uint64_t)wss_clock_wall_seconds()},
	};
	assert_int_equal(wss_look_statistics(&guest, &reports, &look, &err), 0);
	assert_true(look.facts.statistics);
	return wss_balloon_reserve(&look.view);
}

/* A guest's clock may show anything; an impossible time is not a report. */
TEST(test_times_that_cannot_be)
{
	static const uint64_t forged[] = {UINT64_MAX, 1ULL << 63, INT64_MAX, (1ULL << 63) + 5,
					  1ULL << 40};
	static const struct wss_guest_ops talks = {.balloon_stats = say};
	struct wss_guest guest = {.ops = &talks, .state = WSS_GUEST_RUNNING};

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_reports reports = {0};
		struct wss_look look = {.facts = {0}};

		said = (struct wss_balloon_stats){
			.actual_bytes = {true, GIB},
			.usable_bytes = {true, 300 * MIB},
			.update_s = {true, forged[i]},
		};
		/* By the second look it is no longer new. */
		for (int k = 0; k < 2; k++) {
			assert_int_equal(wss_look_statistics(&guest, &reports, &look, &err), 0);
			assert_false(look.facts.statistics);
			assert_true(look.view.actual_bytes.known);
		}
	}
}

/* Whether the gain of free page reporting, which rests on a report of that age, is given. */
static bool gain_is_given(uint64_t period_s, int64_t age_s)
{
	const struct wss_domxml config = {.has_balloon = true,
					  .balloon_statistics = period_s != 0,
					  .balloon_period_s = period_s};
	const struct wss_balloon_stats stats = {
		.rss_bytes = {true, GIB},
		.free_bytes = {true, 300 * MIB},
		.update_s = {true, (uint64_t)(wss_clock_wall_seconds() - age_s)},
	};
	struct wss_config_finding findings[WSS_CONFIG_SETTINGS];
	struct wss_config_facts facts = wss_config_facts_of(&config, &stats);

	for (size_t i = 0; i < wss_config_advise(&config, &facts, findings); i++) {
		if (findings[i].setting != WSS_CONFIG_REPORTING)
			continue;
		if (!findings[i].gain_bytes.known) {
			assert_non_null(strstr(findings[i].no_gain, "too long ago"));
			return false;
		}
		assert_int_equal(findings[i].gain_bytes.value, 300 * MIB);
		assert_int_equal(findings[i].gain_age_s.value, age_s);
		return true;
	}
	fail();
	return false;
}

/* What a guest said once, when it booted, is not its state for ever; nor what it will have
 * said. */
TEST(test_age_of_reports)
{
	wss_clock_inject(&clock_source);
	assert_true(gain_is_given(0, 0));
	assert_true(gain_is_given(0, 600));
	assert_false(gain_is_given(0, 601));
	assert_false(gain_is_given(0, 86400 * 30));
	assert_true(gain_is_given(2, 10));
	assert_false(gain_is_given(2, 11));
	assert_true(gain_is_given(10, 20));
	assert_false(gain_is_given(10, 21));
	assert_true(gain_is_given(100, 200));
	assert_false(gain_is_given(100, 201));
	assert_true(gain_is_given(3600, 600));
	assert_false(gain_is_given(3600, 3600));
	assert_false(gain_is_given(2, -86400));
	wss_clock_inject(NULL);
}

/* The total that Linux reports: with autodeflate it includes the memory in the balloon. */
TEST(test_what_a_kernel_keeps)
{
	assert_int_equal(reserve_of(false, 512 * MIB, 462 * MIB), 50 * MIB);
	assert_int_equal(reserve_of(true, GIB, GIB - 50 * MIB), 50 * MIB);
	assert_int_equal(reserve_of(true, 512 * MIB, GIB - 50 * MIB), 50 * MIB);
	/* With memory that was plugged in. */
	assert_int_equal(reserve_of(true, 2 * GIB, 2 * GIB - 50 * MIB), 50 * MIB);
	assert_int_equal(reserve_of(false, 512 * MIB, 0), 512 * MIB);
}

/* A reason that is wider would make the table of a dry run wider than 80 columns. */
static void assert_reason_fits(struct wss_look *look, enum wss_balloon_plan_action action,
			       const char *part)
{
	struct wss_balloon_plan plan;

	wss_balloon_plan_make(look, &plan);
	assert_int_equal(plan.action, action);
	if (!strstr(plan.reason, part))
		fail_msg("%s", plan.reason);
	assert_in_range(strlen(plan.reason), 1, 27);
}

static void assert_hazard(const struct wss_domxml *config, const char *part)
{
	static const struct wss_guest_ops talks = {.balloon_stats = say,
						   .set_balloon = set_balloon};
	const struct wss_policy policy = {.opt_out = false};
	struct wss_guest guest = {.ops = &talks, .state = WSS_GUEST_RUNNING, .config = *config};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reports reports = {0};
	struct wss_look look;

	guest.config.has_balloon = true;
	assert_int_equal(wss_look_take(&guest, &policy, &reports, &look, &err), 0);
	assert_reason_fits(&look, WSS_BALLOON_PLAN_REFUSED, part);
}

TEST(test_reasons_fit)
{
	struct wss_look look = {
		.facts = {.running = true, .has_device = true, .answers = true, .statistics = true},
		.limits = {.needed_bytes = 512 * MIB, .headroom_percent = 20},
		.view = {.actual_bytes = {true, GIB}, .rss_bytes = {true, GIB}}};

	assert_hazard(&(struct wss_domxml){.hostdevs = 1}, "host device");
	assert_hazard(&(struct wss_domxml){.launch_security = "sev"}, "encrypted");
	assert_hazard(&(struct wss_domxml){.launch_security = "?", .security_unseen = true},
		      "may be encrypted");
	assert_hazard(&(struct wss_domxml){.locked = true}, "locked");
	assert_hazard(&(struct wss_domxml){.hugepages = true}, "huge pages");
	assert_reason_fits(&look, WSS_BALLOON_PLAN_REFUSED, "too early: 0 of 10 windows");
	look.facts.confidence = WSS_CONFIDENCE_HIGH;
	look.view.wss_age_s = 400 * 86400;
	assert_reason_fits(&look, WSS_BALLOON_PLAN_REFUSED, "last measured 400 d ago");
	look.facts.current = true;
	for (int i = 0; i < WSS_SIZING_REASONS; i++) {
		look.reason = i;
		assert_reason_fits(&look, WSS_BALLOON_PLAN_SHRINK,
				   wss_sizing_reason_name(look.reason));
	}
	/* What limits it is named, in turn: the newest window, the guest's own report, the
	 * minimum. */
	look.view.wss_bytes = wss_amount_of(500 * MIB);
	assert_reason_fits(&look, WSS_BALLOON_PLAN_SHRINK, "limit: newest window");
	look.view.usable_bytes = wss_amount_of(GIB - 600 * MIB);
	assert_reason_fits(&look, WSS_BALLOON_PLAN_SHRINK, "limit: memory in use");
	look.limits.minimum_bytes = 800 * MIB;
	assert_reason_fits(&look, WSS_BALLOON_PLAN_SHRINK, "limit: minimum");
	look.view.rss_bytes = wss_amount_of(801 * MIB);
	assert_reason_fits(&look, WSS_BALLOON_PLAN_FUTILE, "would free under 51.2 MiB");
	look.limits.minimum_bytes = GIB;
	assert_reason_fits(&look, WSS_BALLOON_PLAN_NONE, "needs what it has");
}

static unsigned asked;
static bool silent_disks;

static int tell_reads(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err)
{
	asked++;
	*ret_bytes = 0;
	return silent_disks ? wss_error_set(err, WSS_ERR_UNSUPPORTED, "a job is under way") : 0;
}

/*
 * A request to QEMU, made neither with each look nor while a job may delay it, which a look
 * without statistics shows. Without an answer the total is unknown.
 */
TEST(test_disks_are_asked_now_and_then)
{
	static const struct wss_guest_ops talks = {.disk_reads = tell_reads}, mute = {0};
	struct wss_guest guest = {.ops = &talks};
	struct wss_reports reports = {0};
	unsigned known = 0;

	made_up.now_ns = 1000 * WSS_NS_PER_S;
	wss_clock_inject(&clock_source);
	for (unsigned i = 0; i < 31; i++) {
		struct wss_look look = {.view = {.usable_bytes = {i != 0, 0}}};

		silent_disks = i == 11;
		guest.ops = i == 30 ? &mute : &talks;
		wss_look_disks(&guest, &reports, WSS_LOOK_READS_PERIOD_S, &look);
		known += look.view.read_bytes.known;
		assert_true(i > 0 || !asked);
		made_up.now_ns += WSS_NS_PER_S;
	}
	wss_clock_inject(NULL);
	assert_int_equal(asked, 3);
	assert_int_equal(known, 2);
}

TEST(test_squeeze)
{
	squeeze(nothing);
	assert_int_equal(squeezed.times, 1);
	assert_int_equal(made_up.bad, 0);
	assert_int_equal(made_up.moves[WSS_CONTROL_GAVE_BACK], 1);
	assert_true(made_up.moves[WSS_CONTROL_SHRINKS] > 5);
	/* All but 200 MiB can be given up. */
	assert_in_range(squeezed.edges.paging.high_bytes.value, 200 * MIB, 212 * MIB);
	assert_in_range(squeezed.edges.paging.low_bytes.value, 190 * MIB, 200 * MIB);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	assert_int_equal(guarded(), 1);
	assert_int_equal(made_up.controller.busy, 0);
	clean_up();
}

static unsigned attached_at_first;

static void note_attached(struct made_up *guest)
{
	guest->is_here = true;
	attached_at_first = guest->looks == 2 ? guest->attached : attached_at_first;
}

/* The pressure of this host means nothing to a guest on another one, which is found out once.
 */
TEST(test_squeeze_finds_its_host)
{
	squeeze(nothing);
	assert_false(made_up.controlled.is_here);
	clean_up();
	squeeze(note_attached);
	assert_true(made_up.controlled.is_here);
	assert_int_equal(made_up.attached, attached_at_first);
	assert_int_equal(squeezed.times, 1);
	clean_up();
}

TEST(test_squeeze_is_ended)
{
	squeeze(shrink_and_end);
	assert_int_equal(squeezed.times, 0);
	assert_true(made_up.least < GIB);
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

static void squeeze_to_the_end(void)
{
	squeeze(nothing);
}

static void check_squeezed(void)
{
	assert_int_equal(made_up.actual, GIB);
	assert_true(unfinished() == 0 || made_up.controlled.shrunk);
	assert_int_equal(squeezed.times + made_up.bad, 1);
}

/* Whichever allocation fails, the guest has all its memory in the end. */
TEST(test_squeeze_out_of_memory)
{
	fail_each_way(squeeze_to_the_end, check_squeezed);
}

static void go_silent(struct made_up *guest)
{
	guest->silent = is_shrunk();
}

/* Autodeflate alone does not show whether it pages. */
TEST(test_squeeze_without_reports)
{
	squeeze(go_silent);
	assert_int_equal(squeezed.times, 0);
	assert_int_equal(made_up.bad, 1);
	assert_non_null(strstr(made_up.why, "left alone"));
	assert_int_equal(made_up.actual, GIB);
	assert_int_equal(unfinished(), 0);
	clean_up();
}

static bool is_calm(struct wss_give_back_watch *watch, uint64_t bytes, uint64_t report)
{
	const struct wss_balloon_view view = {.actual_bytes = wss_amount_of(bytes),
					      .usable_bytes = {.known = report > 0}};
	const struct wss_reports reports = {.update_s = report};

	return wss_give_back_is_calm(watch, &view, &reports);
}

/* What somebody else has just set shows late on a busy guest: three looks must find the same size. */
TEST(test_calm)
{
	struct wss_give_back_watch watch = {.looks = 0};

	assert_false(is_calm(&watch, GIB, 0));
	assert_false(is_calm(&watch, GIB, 0));
	assert_false(is_calm(&watch, GIB + 1, 0));
	assert_false(is_calm(&watch, GIB + 1, 0));
	assert_true(is_calm(&watch, GIB + 1, 0));
	/* One that never rests is not watched forever. */
	watch = (struct wss_give_back_watch){.looks = 0};
	for (uint64_t i = 0; i < 5; i++)
		assert_false(is_calm(&watch, GIB + i, 0));
	assert_true(is_calm(&watch, GIB + 5, 0));
	/* Of a guest that reports, looks count that find a new report. Nor is that waited for forever. */
	watch = (struct wss_give_back_watch){.looks = 0};
	for (uint64_t i = 0; i < 3; i++)
		assert_false(is_calm(&watch, GIB, 1));
	assert_false(is_calm(&watch, GIB, 2));
	assert_true(is_calm(&watch, GIB, 2));
	watch = (struct wss_give_back_watch){.looks = 0};
	for (uint64_t i = 0; i < 5; i++)
		assert_false(is_calm(&watch, GIB, 1));
	assert_true(is_calm(&watch, GIB, 1));
}

/* The guest follows two seconds later, as each of them does that is busy. */
static void set_and_raise(struct made_up *guest)
{
	static uint64_t set_ns;

	guest->maximum = 4 * GIB;
	guest->shrunk_looks += is_shrunk();
	if (guest->shrunk_looks == 2 && !guest->happened++) {
		sets_before = guest->sets;
		set_ns = guest->now_ns;
		raise(SIGTERM);
	}
	if (guest->happened == 1 && guest->now_ns >= set_ns + 2 * WSS_NS_PER_S) {
		guest->actual = another.bytes;
		guest->happened++;
	}
}

/* This test is the last, because the request to stop stays. */
TEST(test_somebody_else_sets_the_balloon_and_a_signal_ends_all)
{
	another.bytes = GIB + 512 * MIB;
	wss_stop_install();
	look_with(set_and_raise);
	assert_others_won(another.bytes);
	clean_up();
}

static int end_threads(void **unused)
{
	(void)unused;
	return wss_threads_end(300 * WSS_NS_PER_S) ? 0 : -1;
}

int main(void)
{
	take_our_memory();
	return tests_run_within(take_sqlite_memory, end_threads);
}
