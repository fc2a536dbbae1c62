/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What check says of guests: the state of each, the line, and the performance data. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "client/guest-view.h"
#include "cmd/check.h"
#include "measure/sample.h"

/* Problems that the line names; it counts the others. */
#define NAMED_MAX 5
/* Room for why the guests are not known. */
#define UNKNOWN_MAX 100

struct finding {
	enum wss_plugin_state state;
	char text[700]; /* without the guest's name; "": nothing is wrong */
};

static bool is_state(const struct wss_guest_view *guest, const char *state)
{
	return !strcmp(guest->state, state);
}

/* Lets a finding become worse; the text is that of the worst. */
static void worsen(struct finding *finding, enum wss_plugin_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void worsen(struct finding *finding, enum wss_plugin_state state, const char *fmt, ...)
{
	va_list args;

	if (wss_plugin_worse(state, finding->state) == finding->state)
		return;
	finding->state = state;
	va_start(args, fmt);
	vsnprintf(finding->text, sizeof(finding->text), fmt, args);
	va_end(args);
}

static const char *bound_text(enum wss_bound bound)
{
	return bound == WSS_BOUND_AT_MOST    ? "at most "
	       : bound == WSS_BOUND_AT_LEAST ? "at least "
					     : "";
}

static enum wss_bound guest_bound(const struct wss_guest_view *guest)
{
	return wss_bound_of(guest->sample.wss_bytes.value, guest->sample.low_bytes,
			    guest->sample.high_bytes);
}

/*
 * Judges a figure that may lie anywhere between two percentages: by what is sure. Where one of them is well and the
 * other is not, nothing is.
 */
static enum wss_plugin_state judge_between(const struct wss_check_options *options, double low,
					   double high)
{
	enum wss_plugin_state at_low = wss_plugin_judge(&options->warning, &options->critical, low);
	enum wss_plugin_state at_high =
		wss_plugin_judge(&options->warning, &options->critical, high);

	if (at_low == at_high)
		return at_low;
	if (at_low == WSS_PLUGIN_OK || at_high == WSS_PLUGIN_OK)
		return WSS_PLUGIN_UNKNOWN;
	return WSS_PLUGIN_WARNING;
}

static void judge_wss(const struct wss_check_options *options, const struct wss_guest_view *guest,
		      struct finding *finding)
{
	const struct wss_guest_sample *sample = &guest->sample;
	enum wss_bound bound = guest_bound(guest);
	char size[16], shown[WSS_PLUGIN_NUMBER_MAX], least[40] = "";
	double percent, per_byte, low, high;

	if (!wss_view_percent(guest, &percent)) {
		worsen(finding, WSS_PLUGIN_UNKNOWN, "%s",
		       guest->why[0]			? guest->why
		       : !guest->sample.wss_bytes.known ? "not measured yet"
		       : wss_view_has_wss(guest)	? "the size of the guest is unknown"
							: "only writes were observed");
		return;
	}
	per_byte = 100 / (double)wss_view_size(guest).value;
	low = high = percent;
	if (bound == WSS_BOUND_AT_MOST)
		low = per_byte * (double)sample->low_bytes.value;
	if (bound == WSS_BOUND_AT_LEAST)
		high = sample->high_bytes.known ? per_byte * (double)sample->high_bytes.value
						: INFINITY;
	wss_size_format(wss_view_size(guest).value, size, sizeof(size));
	wss_plugin_number(percent, bound, 0, &options->warning, &options->critical, shown);
	if (bound == WSS_BOUND_AT_MOST)
		snprintf(least, sizeof(least), ", at least %.0f%%", floor(low));
	worsen(finding, judge_between(options, low, high), "working set %s%s%% of %s%s%s",
	       bound_text(bound), shown, size, least,
	       wss_view_is_degraded(guest) ? ", as its last window was degraded" : "");
}

static void judge_age(const struct wss_check_options *options, const struct wss_guest_view *guest,
		      struct finding *finding)
{
	double seconds = (double)guest->age_ns.value / (double)WSS_NS_PER_S;
	char age[16];

	if (!wss_view_has_wss(guest))
		return;
	if (!guest->age_ns.known) {
		worsen(finding, WSS_PLUGIN_UNKNOWN, "the age of the sample is unknown");
		return;
	}
	wss_age_format(guest->age_ns.value / WSS_NS_PER_S, age, sizeof(age));
	worsen(finding, wss_plugin_judge(&options->age_warning, &options->age_critical, seconds),
	       "last measured %s ago%s%s", age, guest->why[0] ? ": " : "", guest->why);
}

/* One that its operator has opted out, or that is paused, is not measured on purpose. */
static bool is_unmeasured(const struct wss_guest_view *guest)
{
	return is_state(guest, "left out") || is_state(guest, "paused");
}

/* Whoever names a guest wants to know of it. */
static struct finding judge_guest(const struct wss_check_options *options,
				  const struct wss_guest_view *guest, bool named)
{
	struct finding finding = {.state = WSS_PLUGIN_OK};

	if (is_unmeasured(guest)) {
		if (named)
			worsen(&finding, WSS_PLUGIN_UNKNOWN, "not measured: %s",
			       is_state(guest, "paused") ? "it is paused" : "its policy opts out");
		return finding;
	}
	if (is_state(guest, "refused"))
		worsen(&finding, options->refused, "refused by the budget: %s", guest->why);
	judge_wss(options, guest, &finding);
	judge_age(options, guest, &finding);
	return finding;
}

/* --- the line --- */

struct verdict {
	const struct wss_check_options *options;
	const struct wss_guests *guests;
	enum wss_plugin_state state;
	bool all; /* no guest was named */
	size_t judged, refused, problems;
	const struct wss_guest_view *fullest, *oldest;
	double percent; /* of the fullest */
	struct wss_view_sum wss;
	uint64_t size_bytes;
};

static void count_guest(struct verdict *v, const struct wss_guest_view *guest)
{
	struct finding finding = judge_guest(v->options, guest, !v->all);
	double percent;

	v->problems += finding.state != WSS_PLUGIN_OK;
	v->state = wss_plugin_worse(v->state, finding.state);
	if (is_unmeasured(guest))
		return;
	v->judged++;
	v->refused += is_state(guest, "refused");
	if (!wss_view_percent(guest, &percent))
		return;
	wss_view_sum_add(&v->wss, &guest->sample);
	v->size_bytes += wss_view_size(guest).value;
	if (!v->fullest || percent > v->percent) {
		v->fullest = guest;
		v->percent = percent;
	}
	if (!v->oldest || guest->age_ns.value > v->oldest->age_ns.value)
		v->oldest = guest;
}

/* Prints the problems of one state. */
static void print_problems(const struct verdict *v, enum wss_plugin_state state, size_t *named)
{
	for (size_t i = 0; i < v->guests->n; i++) {
		const struct wss_guest_view *guest = &v->guests->list[i];
		struct finding finding = judge_guest(v->options, guest, !v->all);

		if (finding.state != state || *named == NAMED_MAX)
			continue;
		if ((*named)++)
			fputs("; ", stdout);
		wss_plugin_name(stdout, guest->name);
		fputs(": ", stdout);
		wss_plugin_text(stdout, finding.text);
	}
}

/*
 * Reports why the guests are not known, in ret_text; false: they are. Guests that were named may come from the history,
 * without libvirt.
 */
static bool guests_unknown(const struct wss_guests *guests, char *ret_text, size_t size)
{
	char age[16];

	ret_text[0] = '\0';
	if (guests->libvirt_up.known && !guests->libvirt_up.value) {
		snprintf(ret_text, size, "libvirt does not answer");
	} else if (wss_guests_starting(guests) && guests->since_ns.known) {
		wss_age_format((guests->since_ns.value + guests->page_age_ns) / WSS_NS_PER_S, age,
			       sizeof(age));
		snprintf(ret_text, size,
			 "the service started %s ago and has not listed the guests yet", age);
	} else if (!guests->libvirt_up.known && !guests->n) {
		snprintf(ret_text, size, "the service has not asked libvirt yet");
	}
	return ret_text[0];
}

static void print_held(const struct verdict *v)
{
	char unknown[UNKNOWN_MAX];

	if (guests_unknown(v->guests, unknown, sizeof(unknown)))
		printf("%s; ", unknown);
	if (!v->guests->held[0])
		return;
	fputs("measuring is paused: ", stdout);
	wss_plugin_text(stdout, v->guests->held);
	fputs("; ", stdout);
}

static void print_well(const struct verdict *v)
{
	char age[16], shown[WSS_PLUGIN_NUMBER_MAX];

	if (!v->judged && v->guests->n)
		fputs("no guest to check", stdout);
	else
		printf("%zu guest%s", v->judged, wss_plural(v->judged));
	if (!v->fullest)
		return;
	wss_plugin_number(v->percent, guest_bound(v->fullest), 0, &v->options->warning,
			  &v->options->critical, shown);
	printf(", %sworking set %s%s%% of the balloon (", v->judged > 1 ? "largest " : "",
	       bound_text(guest_bound(v->fullest)), shown);
	wss_plugin_name(stdout, v->fullest->name);
	wss_age_format(v->oldest->age_ns.value / WSS_NS_PER_S, age, sizeof(age));
	printf("), %s %s old", v->judged > 1 ? "oldest sample" : "sample", age);
}

/* Names some of the guests of a state. */
static void print_unmeasured(const struct verdict *v, const char *state, const char *what)
{
	size_t n = 0;

	for (size_t i = 0; i < v->guests->n; i++)
		n += is_state(&v->guests->list[i], state);
	if (!n || !v->all)
		return;
	printf("; %zu %s: ", n, what);
	n = 0;
	for (size_t i = 0; i < v->guests->n && n < NAMED_MAX + 1; i++) {
		if (!is_state(&v->guests->list[i], state))
			continue;
		if (n++)
			fputs(", ", stdout);
		wss_plugin_name(stdout, n > NAMED_MAX ? "..." : v->guests->list[i].name);
	}
}

static void print_text(const struct verdict *v, const char *source)
{
	size_t named = 0;

	printf("WSS %s - ", wss_plugin_state_name(v->state));
	print_held(v);
	print_problems(v, WSS_PLUGIN_CRITICAL, &named);
	print_problems(v, WSS_PLUGIN_WARNING, &named);
	print_problems(v, WSS_PLUGIN_UNKNOWN, &named);
	if (v->problems > named)
		printf("; and %zu more", v->problems - named);
	if (!v->problems)
		print_well(v);
	print_unmeasured(v, "paused", "paused");
	print_unmeasured(v, "left out", "opted out");
	fputs(source, stdout);
}

/* --- performance data --- */

static void print_guest_figures(const struct wss_check_options *options,
				const struct wss_guest_view *guest)
{
	struct wss_plugin_figure figure = {
		.name = guest->name,
		.id = guest->uuid,
		.what = "wss",
		.unit = "B",
		.known = wss_view_has_wss(guest),
		.value = (double)guest->sample.wss_bytes.value,
		.max = (double)wss_view_size(guest).value,
	};
	double percent = 0;

	wss_plugin_figure(stdout, &figure);
	figure.known = wss_view_percent(guest, &percent);
	figure.what = "wss_percent";
	figure.unit = "%";
	figure.value = percent;
	figure.warning = &options->warning;
	figure.critical = &options->critical;
	figure.max = 100;
	wss_plugin_figure(stdout, &figure);
	figure.what = "age";
	figure.unit = "s";
	/* A canary (measure/budget.h) measures no working set, so it has no age to judge. */
	figure.known = guest->age_ns.known && wss_view_has_wss(guest);
	figure.value = (double)guest->age_ns.value / (double)WSS_NS_PER_S;
	figure.warning = &options->age_warning;
	figure.critical = &options->age_critical;
	figure.max = 0;
	wss_plugin_figure(stdout, &figure);
}

static void print_host_figures(const struct verdict *v)
{
	const struct wss_plugin_figure figures[] = {
		{.what = "guests", .unit = "", .known = true, .value = (double)v->judged},
		{.what = "problems", .unit = "", .known = true, .value = (double)v->problems},
		{.what = "refused", .unit = "", .known = true, .value = (double)v->refused},
		{.what = "held",
		 .unit = "",
		 .known = true,
		 .value = v->guests->held[0] != 0,
		 .max = 1},
		{.what = "wss",
		 .unit = "B",
		 .known = v->fullest != NULL,
		 .value = (double)v->wss.bytes,
		 .max = (double)v->size_bytes},
		{.what = "wss_low",
		 .unit = "B",
		 .known = v->fullest != NULL,
		 .value = (double)v->wss.low_bytes,
		 .max = (double)v->size_bytes},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		wss_plugin_figure(stdout, &figures[i]);
}

enum wss_plugin_state wss_check_print(const struct wss_check_options *options,
				      const struct wss_guests *guests, bool all, const char *source)
{
	struct verdict v = {
		.options = options, .guests = guests, .state = WSS_PLUGIN_OK, .all = all};
	char unknown[UNKNOWN_MAX];

	for (size_t i = 0; i < guests->n; i++)
		count_guest(&v, &guests->list[i]);
	if (guests->held[0])
		v.state = wss_plugin_worse(v.state, options->held);
	if (guests_unknown(guests, unknown, sizeof(unknown)))
		v.state = wss_plugin_worse(v.state, WSS_PLUGIN_UNKNOWN);
	else if (!guests->n)
		v.state = wss_plugin_worse(v.state, options->empty);
	print_text(&v, source);
	fputs(" |", stdout);
	if (all)
		print_host_figures(&v);
	for (size_t i = 0; i < guests->n && !options->brief; i++)
		if (!is_unmeasured(&guests->list[i]))
			print_guest_figures(options, &guests->list[i]);
	fputc('\n', stdout);
	return v.state;
}

enum wss_plugin_state wss_check_print_unknown(const struct wss_error *err)
{
	printf("WSS %s - ", wss_plugin_state_name(WSS_PLUGIN_UNKNOWN));
	wss_plugin_text(stdout, err->text);
	fputc('\n', stdout);
	return WSS_PLUGIN_UNKNOWN;
}
