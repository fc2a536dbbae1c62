/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-serve [GUESTS [PERIOD-SECONDS [PERIODS]]]: what the whole service costs over invented guests, whose windows
 * cost nothing themselves; by default 500 guests every 60 s for 3 periods. One of them hangs whenever
 * it is opened. The service has history, ages, a file of metrics and a socket, at which nobody asks: its pages
 * are rendered all the same.
 *
 * Prints its share of a processor, its largest resident set, and how old the oldest sample of a guest that
 * does not hang has become, each as a part of what it may be. The exit status is 0 whatever they are. A shorter
 * period has shorter windows, and more metrics are written than the service would: its share of a processor is
 * not that of the service then.
 */
#include "invented.h"

#include <sys/resource.h>

#include "base/cancel.h"
#include "base/stop.h"
#include "base/thread.h"
#include "serve/http-child.h"
#include "serve/serve.h"

#define CPU_SHARE_MAX 0.005
#define RSS_MAX (64 * WSS_MIB)
#define AGE_MAX 1.5 /* periods */
/* As many windows at the same time, whatever the period. */
#define PERIOD_WINDOWS 15
#define SHORT_S 20
#define PERIOD_MIN_S 3

static struct wss_cancel cancel;
static size_t hanging;

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static double cpu_seconds(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/* The age of the oldest sample among the guests that do not hang; how many have one. */
static double oldest_seconds(const char *path, size_t *ret_n)
{
	char line[512], hung[32];
	double oldest = 0, age;
	FILE *f = fopen(path, "re");

	*ret_n = 0;
	snprintf(hung, sizeof(hung), "\"%s\"", guests[hanging].name);
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "virt_wss_sample_age_seconds{", 28) != 0 || strstr(line, hung) ||
		    !strchr(line, '}'))
			continue;
		age = strtod(strchr(line, '}') + 1, NULL);
		oldest = age > oldest ? age : oldest;
		++*ret_n;
	}
	if (f)
		fclose(f);
	return oldest;
}

struct bench {
	const char *metrics;
	double period_s, periods;
	double cpu_share, oldest_s;
	size_t n; /* guests with a sample */
};

/* In a thread of its own, whose own time does not count. The first period only settles. */
static void bench_watch(void *opaque)
{
	struct bench *bench = opaque;
	uint64_t period_ns = (uint64_t)(bench->period_s * WSS_NS_PER_S);
	uint64_t from_ns =
		wss_clock_now_ns() + period_ns + period_ns / PERIOD_WINDOWS + WSS_NS_PER_S;
	uint64_t now_ns;
	double cpu_s, own_s;

	wss_clock_sleep_until_ns(from_ns);
	cpu_s = cpu_seconds(RUSAGE_SELF);
	own_s = cpu_seconds(RUSAGE_THREAD);
	do {
		double oldest_s = oldest_seconds(bench->metrics, &bench->n);

		bench->oldest_s = oldest_s > bench->oldest_s ? oldest_s : bench->oldest_s;
		now_ns = wss_clock_now_ns();
		if (wss_clock_sleep_until_ns(now_ns + WSS_NS_PER_S) < 0)
			break;
	} while ((double)(now_ns - from_ns) < bench->periods * (double)period_ns);
	cpu_s = cpu_seconds(RUSAGE_SELF) - cpu_s - (cpu_seconds(RUSAGE_THREAD) - own_s);
	bench->cpu_share = cpu_s / ((double)(wss_clock_now_ns() - from_ns) / 1e9);
	wss_cancel_request(&cancel);
}

static void print_ratio(const char *what, double value, double most, double unit, const char *name)
{
	printf("%-28s %8.3f of %g %s: %.2f\n", what, value / unit, most / unit, name, value / most);
}

static void print_results(const struct bench *bench)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("%zu guests every %g s, %zu of %zu have a sample\n", n_guests, bench->period_s,
	       bench->n, n_guests - 1);
	print_ratio("share of a processor", bench->cpu_share, CPU_SHARE_MAX, 0.01, "%");
	print_ratio("largest resident set", (double)usage.ru_maxrss * 1024, (double)RSS_MAX,
		    (double)WSS_MIB, "MiB");
	print_ratio("oldest sample", bench->oldest_s, AGE_MAX * bench->period_s, bench->period_s,
		    "periods");
}

static void serve(struct bench *bench, const char *history, const char *address)
{
	struct wss_serve_options options = {.history = history, .textfile = bench->metrics};
	struct wss_watch_options *watch = &options.watch;
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_thread *thread;

	wss_watch_options_init(watch);
	watch->measure.method = &method_ops;
	watch->period_ns = (uint64_t)(bench->period_s * WSS_NS_PER_S);
	if (bench->period_s < SHORT_S) {
		wss_measure_options_init(&watch->measure, watch->period_ns / PERIOD_WINDOWS);
		watch->measure.method = &method_ops;
		options.refresh_ns = watch->period_ns / PERIOD_WINDOWS;
	}
	watch->boot_ns = 0;
	watch->budget.stall_ns = WSS_NS_PER_S;
	watch->budget.guest_share = 1;
	watch->pressure_share = 0;
	watch->cancel = &cancel;
	options.metrics = WSS_METRICS_STANDARD;
	options.limits = (struct wss_history_limits)WSS_HISTORY_LIMITS_DEFAULT;
	assert_int_equal(
		wss_http_address_parse(address, "address", &options.http.addresses[0], NULL), 0);
	options.http.n_addresses = 1;
	options.hypervisor = hypervisor_new();
	assert_int_equal(wss_thread_start(bench_watch, bench, &thread, NULL), 0);
	if (wss_serve_run(&options, &error) < 0)
		printf("the service could not begin: %s\n", error.text);
	wss_thread_join(thread);
	wss_hypervisor_unref(options.hypervisor);
}

int main(int argc, char **argv)
{
	struct bench bench = {
		.period_s = argc > 2 ? atof(argv[2]) : 60,
		.periods = argc > 3 ? atof(argv[3]) : 3,
	};
	size_t n = argc > 1 ? (size_t)atoi(argv[1]) : 500;
	char *tree, metrics[PATH_MAX], history[PATH_MAX], address[PATH_MAX];

	if (wss_http_child_is(argc, argv))
		return wss_http_child_main(argc, argv);
	if (n < 2 || n > GUESTS_MAX || bench.period_s < PERIOD_MIN_S)
		return 2;
	tree = make_tree();
	wss_stop_install();
	invent_guests(n);
	arming_us = 0;
	hanging = n / 2;
	guests[hanging].hang = HANG_OPEN;
	bench.metrics = make_path(metrics, "%s/metrics", tree);
	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	serve(&bench, make_path(history, "%s/history.db", tree),
	      make_path(address, "unix:%s/sock", tree));
	print_results(&bench);
	forget();
	wss_cancel_close(&cancel);
	remove_tree(tree);
	return 0;
}
