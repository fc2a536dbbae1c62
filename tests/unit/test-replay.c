/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The replay says at each hour what recommend would have said then. */
#include "hosttest.h"

#include "../tools/histories.h"
#include "base/clock.h"
#include "sizing/replay.h"

#define UUID "11111111-2222-3333-4444-555555555555"
#define DAY 86400

static struct wss_backtest_hour hours[HISTORIES_HOURS];
static uint64_t granularity_bytes; /* of the windows */
static bool odd;		   /* the windows are those of odd_store() */
static time_t now;
static char *tree;
static unsigned reasons[WSS_SIZING_REASONS]; /* of the moments that were checked */

static time_t test_wall(void *unused)
{
	return now;
}

static uint64_t test_now(void *unused)
{
	return (uint64_t)now * WSS_NS_PER_S;
}

static void test_sleep(void *unused, uint64_t until_ns)
{
}

static const struct wss_clock_source test_clock = {
	.now_ns = test_now,
	.sleep_until_ns = test_sleep,
	.wall_seconds = test_wall,
};

/*
 * Stores windows that end before the guest has touched all that it needs. Every seventh is degraded.
 */
static void odd_store(struct wss_history *history, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct wss_sample sample = {
			.wall = hours[i].start + 1800,
			.quality = i % 7 == 3 ? WSS_QUALITY_DEGRADED : WSS_QUALITY_OK,
			.method = "mmu",
			.granularity_bytes = wss_amount_of(4096),
			.requested_window_ns = 4000000000,
			.window_ns = wss_amount_of(4000000000),
			.wss_bytes = wss_amount_of(hours[i].need_bytes),
			.low_bytes = wss_amount_of(hours[i].need_bytes / 8),
			.memory.maximum_bytes = wss_amount_of(hours[i].assigned_bytes),
			.memory.unreclaimable_bytes = wss_amount_of(WSS_MIB),
			.uuid = UUID,
		};

		for (uint64_t k = 1; k <= 64; k++)
			wss_sample_curve_add(&sample, k * 62500000, hours[i].need_bytes / 64 * k);
		assert_int_equal(wss_history_add(history, &sample, NULL), 0);
	}
}

/* Adds the hours from one to before another. */
static void history_add(struct wss_history *history, size_t from, size_t to)
{
	if (odd)
		odd_store(history, from, to);
	else
		assert_int_equal(histories_store(history, UUID, "guest", hours + from, to - from,
						 granularity_bytes, NULL),
				 0);
}

/* A history of the first n hours. */
static struct wss_history *history_open(const char *name, size_t n)
{
	struct wss_history *history = NULL;
	char path[PATH_MAX];

	assert_int_equal(wss_history_open(make_path(path, "%s/%s", tree, name), &history, NULL), 0);
	history_add(history, 0, n);
	return history;
}

#define TRACE_HOURS (60 * 24)

struct trace {
	size_t n;
	struct wss_backtest_moment moments[TRACE_HOURS];
};

static void trace_add(const struct wss_backtest_moment *moment, void *opaque)
{
	struct trace *trace = opaque;

	trace->moments[trace->n++] = *moment;
}

static void replay_all(size_t n, const struct wss_advice_options *advice,
		       const struct wss_policy *policy, struct trace *trace)
{
	struct wss_history *history = history_open("all.db", n);
	struct wss_backtest backtest = {0};
	struct wss_backtest_options options = {.train_s = 28 * DAY,
					       .test_s = 14 * DAY,
					       .size_at = wss_replay_size,
					       .begin = wss_replay_begin,
					       .hold_s = advice->hold_ns / WSS_NS_PER_S};
	const struct wss_backtest_hour *replayed;
	struct wss_replay *replay = NULL;
	size_t n_replayed;

	now = hours[n - 1].start + 3600;
	assert_int_equal(wss_replay_read(history, UUID, advice, policy, &replay, NULL), 1);
	replayed = wss_replay_hours(replay, &n_replayed);
	assert_int_equal(n_replayed, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(replayed[i].assigned_bytes, hours[i].assigned_bytes);
		assert_int_equal(replayed[i].need_bytes,
				 odd && i % 7 == 3 ? 0 : hours[i].need_bytes);
	}
	options.opaque = replay;
	trace->n = 0;
	assert_int_equal(wss_backtest_add(&backtest, replayed, n, HISTORIES_START + 28 * DAY,
					  &options, trace_add, trace),
			 0);
	assert_int_equal(trace->n, backtest.hours);
	wss_replay_free(replay);
	wss_history_close(history);
}

/* A history that has the hours before one moment, then also those before a later one. */
struct part {
	struct wss_history *history;
	size_t n; /* hours in it */
};

static void check_moment(struct part *part, const struct wss_backtest_moment *moment, size_t n,
			 const struct wss_advice_options *options, const struct wss_policy *policy)
{
	struct wss_advice advice;
	struct wss_advice_guest guest = {.uuid = UUID, .policy = policy, .active = true};
	size_t before = part->n;

	while (before < n && hours[before].start < moment->start)
		before++;
	history_add(part->history, part->n, before);
	part->n = before;
	now = moment->start;
	assert_int_equal(wss_advice_read(part->history, &guest, wss_advice_since(options, now),
					 options, &advice, NULL),
			 0);
	assert_int_equal(advice.sizing.recommended_bytes.value, moment->sizes[WSS_BACKTEST_ADVICE]);
	reasons[advice.sizing.reason]++;
	wss_advice_free(&advice);
}

/* Every step-th moment, in their order, with what was known then. */
static void check_moments(const struct trace *trace, size_t first, size_t step, size_t n,
			  const struct wss_advice_options *options, const struct wss_policy *policy)
{
	struct part part = {.history = history_open("part.db", 0)};
	char path[PATH_MAX];

	for (size_t i = first; i < trace->n; i += step)
		check_moment(&part, &trace->moments[i], n, options, policy);
	wss_history_close(part.history);
	assert_int_equal(unlink(make_path(path, "%s/part.db", tree)), 0);
}

static void check_kind(enum histories_kind kind, const struct wss_advice_options *options,
		       const struct wss_policy *policy)
{
	static struct trace trace;
	size_t n = histories_make(11, kind, hours);
	char path[PATH_MAX];

	replay_all(n, options, policy, &trace);
	assert_true(trace.n > 200);
	check_moments(&trace, 3, 50, n, options, policy);
	assert_int_equal(unlink(make_path(path, "%s/all.db", tree)), 0);
}

TEST(test_as_recommended)
{
	const struct wss_rounding rounding = {.step_bytes = 64 * WSS_MIB};
	struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	struct wss_policy policy = {.opt_out = false};

	/* So that each hour has a size of its own. */
	options.hold_ns = 3600 * WSS_NS_PER_S;
	granularity_bytes = 2 * WSS_MIB;
	check_kind(HISTORIES_DAILY, &options, &policy);
	granularity_bytes = 4096;
	check_kind(HISTORIES_DAILY, &options, &policy);
	options.rule.minimum_bytes = 0;
	check_kind(HISTORIES_RESIZES, &options, &policy);
	options.rule.rounding = &rounding;
	check_kind(HISTORIES_BOOTS, &options, &policy);
	check_kind(HISTORIES_GAPS, &options, &policy);
	options.learn = false;
	options.rule.percentile = 0.9;
	check_kind(HISTORIES_WEEKLY, &options, &policy);
	options.rule.rounding = NULL;
	options.rule.percentile = 0.5;
	options.rule.headroom_percent = 0;
	check_kind(HISTORIES_BURSTS, &options, &policy);
	options.learn = true;
	policy.headroom_percent = wss_amount_of(5);
	policy.minimum_bytes = wss_amount_of(100 * WSS_MIB);
	policy.maximum_bytes = wss_amount_of(300 * WSS_MIB);
	check_kind(HISTORIES_BURSTS, &options, &policy);
	policy.maximum_bytes.known = false;
	policy.minimum_bytes = wss_amount_of(64 * WSS_GIB);
	check_kind(HISTORIES_BURSTS, &options, &policy);
	assert_true(reasons[WSS_SIZING_PEAK] + reasons[WSS_SIZING_PERCENTILE] > 0);
	assert_true(reasons[WSS_SIZING_ROUNDING] > 0);
	assert_true(reasons[WSS_SIZING_MAXIMUM] > 0);
	assert_true(reasons[WSS_SIZING_MINIMUM] > 0);
}

/* What the guest was given later bounds no size, and degraded windows count in neither. */
TEST(test_odd_windows)
{
	static struct trace trace;
	struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_policy policy = {.opt_out = false};
	size_t n = histories_make(11, HISTORIES_STEADY, hours);
	uint64_t had = hours[0].assigned_bytes;

	options.hold_ns = 3600 * WSS_NS_PER_S;
	for (size_t i = 0; i < n; i++)
		hours[i].assigned_bytes = i < 20 * 24 ? had : i < 25 * 24 ? 2 * had : had / 8 * 7;
	odd = true;
	granularity_bytes = 4096;
	replay_all(n, &options, &policy, &trace);
	assert_true(trace.n > 200 && trace.n < 300);
	check_moments(&trace, 1, 20, n, &options, &policy);
	for (size_t i = 1; i < trace.n; i += 20)
		assert_true(trace.moments[i].start >= HISTORIES_START + 20 * DAY ||
			    trace.moments[i].sizes[WSS_BACKTEST_ADVICE] <= had + WSS_MIB);
	odd = false;
}

/* One hour that a wrong clock has dated in the future does not end the others' test. */
TEST(test_end)
{
	struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_policy policy = {.opt_out = false};
	size_t n = histories_make(12, HISTORIES_STEADY, hours);
	struct wss_history *history;
	struct wss_replay *replay;

	now = hours[n - 1].start;
	hours[n - 1].start += 3650 * DAY;
	granularity_bytes = 4096;
	history = history_open("end.db", n);
	assert_int_equal(wss_replay_read(history, UUID, &options, &policy, &replay, NULL), 1);
	assert_int_equal(wss_replay_end(replay), hours[n - 2].start + 3600);
	wss_replay_free(replay);
	wss_history_close(history);
}

/* A guest without hours has no replay. */
TEST(test_empty)
{
	const struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_policy policy = {.opt_out = false};
	struct wss_history *history = history_open("empty.db", 0);
	struct wss_replay *replay = NULL;

	assert_int_equal(wss_replay_read(history, UUID, &options, &policy, &replay, NULL), 0);
	wss_replay_free(replay);
	wss_history_close(history);
}

/* --- as a service stores it --- */

static struct wss_backtest_hour trace_hours[TRACE_HOURS];
static size_t trace_n;

/* Invents 60 days of a guest whose load is of that kind, and of the next one after each four weeks. */
static void trace_make(enum histories_kind kind)
{
	trace_n = 0;
	for (int part = 0; part < 3; part++) {
		size_t n = histories_make(7, (enum histories_kind)((kind + part) % HISTORIES_KINDS),
					  hours);

		for (size_t i = 0; i < n; i++) {
			hours[i].start += part * 28 * DAY;
			if (hours[i].start < HISTORIES_START + TRACE_HOURS * 3600)
				trace_hours[trace_n++] = hours[i];
		}
	}
}

/* Stores the windows of an hour, one each quarter, and deletes what is too old then. */
static void hour_serve(struct wss_history *history, const struct wss_backtest_hour *hour)
{
	const struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;

	for (int i = 0; i < 4; i++) {
		struct wss_sample sample = {
			.wall = hour->start + 300 + i * 900,
			.method = "mmu",
			.granularity_bytes = wss_amount_of(4096),
			.requested_window_ns = 4000000000,
			.window_ns = wss_amount_of(4000000000),
			.wss_bytes =
				wss_amount_of(i == 2 ? hour->need_bytes : hour->need_bytes / 8 * 7),
			.memory.maximum_bytes = wss_amount_of(64 * WSS_GIB),
			.memory.unreclaimable_bytes = wss_amount_of(WSS_MIB),
			.uuid = UUID,
		};

		wss_sample_curve_add(&sample, 2000000000, sample.wss_bytes.value);
		wss_sample_curve_add(&sample, 4000000000, sample.wss_bytes.value);
		assert_int_equal(wss_history_add(history, &sample, NULL), 0);
	}
	assert_int_equal(wss_history_prune(history, &limits, hour->start + 3600, NULL), 0);
}

/* Returns what is recommended at the start of that hour; 0: nothing yet. */
static uint64_t size_live(struct wss_history *history, const struct wss_advice_options *options,
			  time_t start)
{
	const struct wss_policy policy = {.opt_out = false};
	const struct wss_advice_guest guest = {.uuid = UUID, .policy = &policy, .active = true};
	struct wss_advice advice;
	uint64_t bytes;

	now = start;
	assert_int_equal(wss_advice_read(history, &guest, wss_advice_since(options, now), options,
					 &advice, NULL),
			 0);
	bytes = advice.learned.known ? advice.sizing.recommended_bytes.value : 0;
	wss_advice_free(&advice);
	return bytes;
}

/* A user who asks at the end of each hold, from the first learned size on. */
struct user {
	time_t until;
	uint64_t bytes;
};

static void user_ask(struct user *user, struct wss_history *history,
		     const struct wss_advice_options *options, time_t start)
{
	if (user->bytes && start < user->until)
		return;
	user->bytes = size_live(history, options, start);
	user->until = start + (time_t)(options->hold_ns / WSS_NS_PER_S);
}

static void check_backtest(struct wss_history *history, const struct wss_advice_options *options,
			   const uint64_t sizes[TRACE_HOURS])
{
	static struct trace trace;
	struct wss_backtest backtest = {0};
	const struct wss_policy policy = {.opt_out = false};
	struct wss_backtest_options judged = {.train_s = TRACE_HOURS * 3600,
					      .test_s = TRACE_HOURS * 3600,
					      .size_at = wss_replay_size,
					      .begin = wss_replay_begin,
					      .hold_s = options->hold_ns / WSS_NS_PER_S};
	const struct wss_backtest_hour *replayed;
	struct wss_replay *replay = NULL;
	size_t n, at = 0;

	assert_int_equal(wss_replay_read(history, UUID, options, &policy, &replay, NULL), 1);
	replayed = wss_replay_hours(replay, &n);
	judged.opaque = replay;
	trace.n = 0;
	assert_int_equal(wss_backtest_add(&backtest, replayed, n, wss_replay_end(replay), &judged,
					  trace_add, &trace),
			 0);
	assert_int_equal(trace.n, trace_n - WSS_LEARNER_HOURS_MIN);
	for (size_t i = 0; i < trace.n; i++) {
		while (trace_hours[at].start < trace.moments[i].start)
			at++;
		assert_int_equal(trace.moments[i].sizes[WSS_BACKTEST_ADVICE], sizes[at]);
	}
	wss_replay_free(replay);
}

/*
 * The users have sixty days of sizes, asked for while a service stored windows and deleted old ones; the backtest at the
 * end says the same, hour by hour. As each question costs as much as all windows before it, the impatient one asks every
 * five hours, which is at each hour of the day within five days.
 */
static void check_live(enum histories_kind kind)
{
	static uint64_t often[TRACE_HOURS], weekly[TRACE_HOURS];
	struct wss_advice_options hours5 = WSS_ADVICE_OPTIONS_INIT, week = WSS_ADVICE_OPTIONS_INIT;
	struct user impatient = {.bytes = 0}, patient = {.bytes = 0};
	struct wss_history *history = NULL;
	char path[PATH_MAX];

	hours5.hold_ns = 5 * 3600 * WSS_NS_PER_S;
	assert_int_equal(wss_history_open(make_path(path, "%s/live.db", tree), &history, NULL), 0);
	trace_make(kind);
	for (size_t i = 0; i < trace_n; i++) {
		user_ask(&impatient, history, &hours5, trace_hours[i].start);
		user_ask(&patient, history, &week, trace_hours[i].start);
		often[i] = impatient.bytes;
		weekly[i] = patient.bytes;
		hour_serve(history, &trace_hours[i]);
	}
	now = trace_hours[trace_n - 1].start + 3600;
	check_backtest(history, &hours5, often);
	check_backtest(history, &week, weekly);
	wss_history_close(history);
	assert_int_equal(unlink(path), 0);
}

TEST(test_live_and_backtest_agree)
{
	check_live(HISTORIES_WEEKLY);
}

static int set_up(void **unused)
{
	tree = make_tree();
	wss_clock_inject(&test_clock);
	return 0;
}

static int tear_down(void **unused)
{
	wss_clock_inject(NULL);
	remove_tree(tree);
	return 0;
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
