/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a page of metrics of an invented host, by the code of the service:
 *
 *   metrics-page [--openmetrics] [--level LEVEL] [--memory MIB] [--held] [GUEST...]
 *
 * GUEST is NAME,WSS,BALLOON,RSS in MiB: a week of windows with a constant working set. With WSS 0 the guest
 * was never measured. Its UUID follows from the name.
 */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "history/history.h"
#include "serve/guest-metrics.h"
#include "watch/advisor.h"
#include "watch/watch.h"

#define GUESTS_MAX 5000
#define HOURS 168

struct invented {
	char name[64];
	char uuid[WSS_UUID_TEXT_MAX];
	unsigned wss_mib, balloon_mib, rss_mib;
};

static struct invented guests[GUESTS_MAX];
static size_t n_guests;

static _Noreturn void fail(const char *what, const struct wss_error *err)
{
	fprintf(stderr, "metrics-page: %s: %s\n", what,
		err && err->code ? err->text : "out of memory");
	exit(1);
}

static void guest_parse(const char *text)
{
	struct invented *guest = &guests[n_guests];
	uint64_t hash = 14695981039346656037ULL;

	if (n_guests == GUESTS_MAX || sscanf(text, "%63[^,],%u,%u,%u", guest->name, &guest->wss_mib,
					     &guest->balloon_mib, &guest->rss_mib) != 4) {
		fprintf(stderr, "metrics-page: %s: not NAME,WSS,BALLOON,RSS\n", text);
		exit(2);
	}
	/* FNV-1a. */
	for (const char *c = guest->name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ULL;
	snprintf(guest->uuid, sizeof(guest->uuid), "%08x-%04x-4%03x-8000-%012zx",
		 (unsigned)(hash & 0xffffffff), (unsigned)(hash >> 32 & 0xffff),
		 (unsigned)(hash >> 48 & 0xfff), n_guests);
	n_guests++;
}

static int source_list(void *unused, bool inactive_too, struct wss_conn_domain **ret_domains,
		       size_t *ret_n, struct wss_error *err)
{
	struct wss_conn_domain *domains = calloc(n_guests + 1, sizeof(*domains));

	(void)unused;
	(void)inactive_too;
	for (size_t i = 0; domains && i < n_guests; i++) {
		domains[i].name = strdup(guests[i].name);
		memcpy(domains[i].uuid, guests[i].uuid, sizeof(guests[i].uuid));
	}
	if (!domains)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*ret_domains = domains;
	*ret_n = n_guests;
	return 0;
}

static struct wss_sample sample_of(const struct invented *guest, time_t when)
{
	uint64_t bytes = guest->wss_mib * WSS_MIB;
	struct wss_sample sample = {
		.wall = when,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4 * WSS_NS_PER_S,
		.window_ns = wss_amount_of(4 * WSS_NS_PER_S),
		.wss_bytes = wss_amount_of(bytes),
		.low_bytes = wss_amount_of(bytes),
		.high_bytes = wss_amount_of(bytes),
		.written_bytes = wss_amount_of(bytes / 2),
		.memory = {.maximum_bytes = wss_amount_of(guest->balloon_mib * WSS_MIB),
			   .balloon_bytes = wss_amount_of(guest->balloon_mib * WSS_MIB),
			   .unreclaimable_bytes = wss_amount_of(WSS_MIB),
			   .rss_bytes = wss_amount_of(guest->rss_mib * WSS_MIB),
			   .qemu_bytes = wss_amount_of(20 * WSS_MIB)},
	};

	memcpy(sample.domain, guest->name, sizeof(guest->name));
	memcpy(sample.uuid, guest->uuid, sizeof(guest->uuid));
	for (uint64_t ns = WSS_NS_PER_MS; ns < 4 * WSS_NS_PER_S; ns *= 4)
		wss_sample_curve_add(&sample, ns, ns < WSS_NS_PER_S ? bytes / 2 : bytes);
	wss_sample_curve_add(&sample, 4 * WSS_NS_PER_S, bytes);
	return sample;
}

static struct wss_history *history_make(const char *directory)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history;
	time_t now = wss_clock_wall_seconds();
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/history.db", directory) >= PATH_MAX)
		fail(directory, NULL);
	if (wss_history_open(path, &history, &err) < 0)
		fail(path, &err);
	for (size_t i = 0; i < n_guests; i++)
		for (int hour = HOURS; guests[i].wss_mib && hour > 0; hour--) {
			struct wss_sample sample = sample_of(&guests[i], now - hour * 3600);

			if (wss_history_add(history, &sample, &err) < 0)
				fail(path, &err);
		}
	return history;
}

/* Held, so that nothing is opened; what windows would have shown is filled in. */
static struct wss_watch *watch_make(struct wss_watch_options *options)
{
	static const struct wss_guest_source source = {.list = source_list};
	static const struct wss_host host = {.root = {.dirfd = -1}};
	static const struct wss_watch_events events = {.sample = NULL};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_hypervisor *hypervisor;
	struct wss_watch *watch = NULL;

	wss_watch_options_init(options);
	if (wss_hypervisor_new(&host, &source, NULL, &hypervisor, &err) < 0 ||
	    wss_watch_new_with(hypervisor, options, &events, NULL, &watch, &err) < 0)
		fail("watch", &err);
	wss_hypervisor_unref(hypervisor);
	wss_watch_hold(watch, "nothing is to be measured");
	while (!wss_watch_listed(watch))
		wss_watch_step(watch);
	wss_watch_hold(watch, NULL);
	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		struct wss_watched *watched = (struct wss_watched *)wss_watch_guest(watch, i);

		watched->maximum_bytes = wss_amount_of(guests[i].balloon_mib * WSS_MIB);
		watched->n_vcpus = 2;
		watched->examined = true;
		if (!guests[i].wss_mib)
			continue;
		watched->measured = true;
		watched->measured_ns = wss_clock_now_ns();
		watched->kind = WSS_WINDOW_COARSE;
		watched->windows = HOURS;
		watched->spent_ns = HOURS * 10 * WSS_NS_PER_MS;
		watched->sample = sample_of(&guests[i], wss_clock_wall_seconds());
	}
	return watch;
}

static struct wss_advisor *advisor_make(struct wss_history *history, const struct wss_watch *watch,
					uint64_t memory_mib)
{
	struct wss_advisor_options options;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_advisor *advisor;

	wss_advisor_options_init(&options);
	options.host_bytes = wss_amount_of(memory_mib * WSS_MIB);
	options.pauses = 0;
	advisor = wss_advisor_new(history, &options);
	while (advisor && !wss_advisor_host(advisor))
		if (wss_advisor_step(advisor, watch, &err) < 0)
			fail("advisor", &err);
	if (!advisor)
		fail("advisor", NULL);
	return advisor;
}

static void directory_remove(const char *directory)
{
	static const char *const names[] = {"history.db", "history.db-wal", "history.db-shm",
					    "history.db.lock"};
	char path[PATH_MAX];

	for (int i = 0; i < 4; i++)
		if (snprintf(path, sizeof(path), "%s/%s", directory, names[i]) < PATH_MAX)
			unlink(path);
	rmdir(directory);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {{"openmetrics", no_argument, NULL, 'o'},
						     {"level", required_argument, NULL, 'l'},
						     {"memory", required_argument, NULL, 'm'},
						     {"held", no_argument, NULL, 'h'},
						     {NULL, 0, NULL, 0}};
	struct wss_watch_options options;
	struct wss_service_facts facts = {.options = &options, .connected = true};
	enum wss_metrics_form form = WSS_METRICS_PROMETHEUS;
	struct wss_error err = WSS_ERROR_INIT;
	const char *base = getenv("TMPDIR");
	char directory[PATH_MAX];
	struct wss_history *history;
	struct wss_advisor *advisor;
	struct wss_watch *watch;
	uint64_t memory_mib = 65536;
	bool held = false;
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (c == 'o')
			form = WSS_METRICS_OPENMETRICS;
		else if (c == 'm')
			memory_mib = strtoull(optarg, NULL, 10);
		else if (c == 'h')
			held = true;
		else if (c != 'l' || wss_metrics_level_parse(optarg, &facts.level, &err) < 0)
			return 2;
	while (optind < argc)
		guest_parse(argv[optind++]);
	if (snprintf(directory, sizeof(directory), "%s/metrics-page-XXXXXX",
		     base ? base : "/tmp") >= PATH_MAX ||
	    !mkdtemp(directory))
		fail(directory, NULL);
	history = history_make(directory);
	watch = watch_make(&options);
	facts.advisor = advisor = advisor_make(history, watch, memory_mib);
	if (held)
		wss_watch_hold(watch, "it is to be held");
	wss_metrics_write(stdout, form, watch, &facts);
	wss_advisor_free(advisor);
	wss_watch_free(watch);
	wss_history_close(history);
	directory_remove(directory);
	return ferror(stdout) | fflush(stdout) ? 1 : 0;
}
