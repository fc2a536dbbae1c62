/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-holds [all|even|odd] DIRECTORY...: holds the recommended sizes and their rivals against traces of real VMs,
 * which are read from the directories: N.csv in each is a part of VM N, separated by semicolons, with the columns
 * "Timestamp [ms]" (in truth seconds), "Memory capacity provisioned [KB]" and "Memory usage [KB]", as in GWA-T-12.
 * even and odd take every other VM.
 *
 * An hour's need is its largest usage. At the start of each hold, from day 28 on, a rule sees all hours before and
 * says a size, which is cut to what the VM has. In GiB, means over all hours of all VMs:
 *
 *     waste    the size less the need, where it is above
 *     missing  the need less the size, where it is above
 *     broken   the share of holds in which an hour needed more than 1.1 times the size
 *
 * Each rule is multiplied by what brings it to a given missing, or to 10 % of holds broken, and the waste that it then
 * has is printed: the constants of a rule are thus of no advantage.
 */
#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "sizing/learner.h"

#define HOUR_S 3600
#define DAY_H 24
#define FIRST_H (28 * DAY_H)
#define HOURS_MAX (120 * DAY_H)
#define VMS_MAX 2000
#define KIB_PER_GIB 1048576.0
#define GIB 1073741824.0
/* A VM of which less was recorded says nothing of a hold of four weeks. */
#define HOURS_MIN (40 * DAY_H)

struct vm {
	int number;
	size_t n;				/* hours */
	double need[HOURS_MAX], has[HOURS_MAX]; /* GiB; need NAN: not recorded */
	time_t start;
};

struct weighted {
	double value, weight;
};

enum rule { OURS, VPA, KRR, P99_7, P99_28, MAX28, RULES };

static const char *const rule_names[] = {"ours", "vpa", "krr", "p99_7", "p99_28", "max28"};
/* The margins that the rules have as they are published. */
static const double rule_factors[] = {1, 1.15, 1.15, 1.2, 1.2, 1};

struct score {
	double waste, missing, violations, broken;
};

static struct vm *vms;
static size_t n_vms;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "bench-holds: %s: %s\n", name, what);
	exit(99);
}

/* --- reading --- */

static struct vm *vm_of(int number)
{
	for (size_t i = 0; i < n_vms; i++)
		if (vms[i].number == number)
			return &vms[i];
	if (n_vms == VMS_MAX)
		die("too many VMs", "traces");
	vms[n_vms] = (struct vm){.number = number};
	for (size_t h = 0; h < HOURS_MAX; h++)
		vms[n_vms].need[h] = NAN;
	return &vms[n_vms++];
}

/* Returns the number of the column whose title contains the text. */
static int column(const char *header, const char *text)
{
	const char *at = strstr(header, text);
	int n = 0;

	if (!at)
		return -1;
	for (const char *s = header; s < at; s++)
		n += *s == ';';
	return n;
}

static double field(const char *line, int n)
{
	while (n-- > 0) {
		line = strchr(line, ';');
		if (!line)
			return NAN;
		line++;
	}
	return strtod(line, NULL);
}

static void vm_add(struct vm *vm, double seconds, double has_kib, double used_kib)
{
	size_t hour;

	if (!(has_kib > 0) || !(seconds > 0) || isnan(used_kib))
		return;
	if (!vm->start)
		vm->start = (time_t)seconds - (time_t)seconds % HOUR_S;
	hour = (size_t)(((time_t)seconds - vm->start) / HOUR_S);
	if ((time_t)seconds < vm->start || hour >= HOURS_MAX)
		return;
	if (!(vm->need[hour] >= used_kib / KIB_PER_GIB))
		vm->need[hour] = used_kib / KIB_PER_GIB;
	vm->has[hour] = fmax(vm->has[hour], has_kib / KIB_PER_GIB);
	if (hour >= vm->n)
		vm->n = hour + 1;
}

static void read_file(const char *path, int number)
{
	FILE *file = fopen(path, "r");
	char line[1024];
	int time, has, used;

	if (!file || !fgets(line, sizeof(line), file))
		die("cannot read it", path);
	time = column(line, "Timestamp");
	has = column(line, "Memory capacity provisioned [KB]");
	used = column(line, "Memory usage [KB]");
	if (time < 0 || has < 0 || used < 0)
		die("no such columns", path);
	while (fgets(line, sizeof(line), file))
		vm_add(vm_of(number), field(line, time), field(line, has), field(line, used));
	fclose(file);
}

static void read_directory(const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, versionsort);
	char name[4096];

	if (n < 0)
		die("cannot read it", path);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, list[i]->d_name);
		if (strstr(list[i]->d_name, ".csv"))
			read_file(name, atoi(list[i]->d_name));
		free(list[i]);
	}
	free(list);
}

/* Leaves out VMs of which little is known. */
static void vms_choose(const char *which)
{
	size_t kept = 0, seen = 0;

	for (size_t i = 0; i < n_vms; i++) {
		size_t hours = 0;
		double sum = 0;

		for (size_t h = 0; h < vms[i].n; h++)
			if (!isnan(vms[i].need[h])) {
				hours++;
				sum += vms[i].need[h];
			}
		if (hours < HOURS_MIN || !(sum > 0))
			continue;
		seen++;
		if (!strcmp(which, "all") || (strcmp(which, "odd") == 0) == (seen % 2 == 1))
			vms[kept++] = vms[i];
	}
	n_vms = kept;
}

/* --- rules --- */

static int compare(const void *a, const void *b)
{
	double x = ((const struct weighted *)a)->value, y = ((const struct weighted *)b)->value;

	return (x > y) - (x < y);
}

static double quantile(struct weighted *list, size_t n, double p)
{
	double all = 0, below = 0;

	if (!n)
		return 0;
	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 0; i < n; i++)
		all += list[i].weight;
	for (size_t i = 0; i < n; i++) {
		below += list[i].weight;
		if (below >= p * all - 1e-12)
			return list[i].value;
	}
	return list[n - 1].value;
}

static double of_last(const struct vm *vm, size_t hour, size_t days, double p)
{
	static struct weighted list[HOURS_MAX];
	size_t n = 0;

	for (size_t h = hour - days * DAY_H; h < hour; h++)
		if (!isnan(vm->need[h]))
			list[n++] = (struct weighted){vm->need[h], 1};
	return quantile(list, n, p);
}

/*
 * Returns the end of the class of the memory histogram of Kubernetes' Vertical Pod Autoscaler: the first one ends at
 * 10 MB, and each is 5 % wider than the one before.
 */
static double vpa_class_end(double gib)
{
	double bytes = gib * GIB, first = 1e7, ratio = 1.05;
	double n = floor(log1p(bytes * (ratio - 1) / first) / log(ratio));

	return first * (pow(ratio, n + 1) - 1) / (ratio - 1) / GIB;
}

/* What a Vertical Pod Autoscaler has given a VM. */
struct vpa {
	double size; /* 0: nothing yet */
	size_t hour; /* since when */
};

/*
 * The recommender and updater of the Vertical Pod Autoscaler. The memory estimator is the 90th percentile of the peaks of
 * the days, which halve in weight each 24 hours, as the end of its class; its margin is in the multiplier. The bounds are
 * the 50th and 95th percentile, the wider the fewer days there are. A size is replaced when it is out of the bounds, or after
 * 12 hours when the estimate differs by a tenth.
 */
static double of_vpa(const struct vm *vm, size_t hour, struct vpa *vpa)
{
	static struct weighted list[HOURS_MAX];
	double days = (double)hour / DAY_H, target, low, high;
	size_t n = 0;

	for (size_t day = 0; day * DAY_H < hour; day++) {
		double peak = NAN;

		for (size_t h = day * DAY_H; h < hour && h < (day + 1) * DAY_H; h++)
			peak = fmax(peak, vm->need[h]);
		if (!isnan(peak))
			list[n++] = (struct weighted){peak, exp2((double)day - days)};
	}
	target = vpa_class_end(quantile(list, n, 0.9));
	low = vpa_class_end(quantile(list, n, 0.5)) * pow(1 + 0.001 / days, -2);
	high = vpa_class_end(quantile(list, n, 0.95)) * (1 + 1 / days);
	if (vpa->size < low || vpa->size > high ||
	    (hour - vpa->hour >= 12 && fabs(target - vpa->size) >= 0.1 * vpa->size))
		*vpa = (struct vpa){target, hour};
	return vpa->size;
}

static double rival(enum rule rule, const struct vm *vm, size_t hour, struct vpa *vpa)
{
	switch (rule) {
	case VPA:
		return of_vpa(vm, hour, vpa);
	case KRR:
		return of_last(vm, hour, 14, 1);
	case P99_7:
		return of_last(vm, hour, 7, 0.99);
	case P99_28:
		return of_last(vm, hour, 28, 0.99);
	default:
		return of_last(vm, hour, 28, 1);
	}
}

/* --- sizes and scores --- */

struct hold {
	double sizes[RULES], holds_kept;
	bool is_high;
};

static struct hold *holds; /* of all VMs, in their order */

static void holds_make(size_t hold_h)
{
	size_t at = 0;

	for (size_t i = 0; i < n_vms; i++) {
		struct wss_learner *learner = wss_learner_new(hold_h * HOUR_S);
		struct vpa vpa = {0};

		if (!learner)
			die("out of memory", "bench-holds");
		for (size_t h = 0; h < vms[i].n; h++) {
			time_t start = vms[i].start + (time_t)h * HOUR_S;

			if (h >= FIRST_H && (h - FIRST_H) % hold_h == 0) {
				struct wss_learned learned = wss_learner_advise(learner, start);

				holds[at] = (struct hold){.is_high = learned.confidence ==
								     WSS_CONFIDENCE_HIGH};
				/* Without a recommendation a guest keeps what it has. */
				holds[at].sizes[OURS] = learned.known
								? (double)learned.target_bytes / GIB
								: INFINITY;
				for (int rule = VPA; rule < RULES; rule++)
					holds[at].sizes[rule] =
						rival((enum rule)rule, &vms[i], h, &vpa);
				at++;
			}
			if (!isnan(vms[i].need[h]))
				wss_learner_add(
					learner, start,
					wss_u64_max(1, wss_u64_from_double(vms[i].need[h] * GIB)));
		}
		wss_learner_free(learner);
	}
}

/* Judges a hold; adds to the score's sums. Returns whether any hour was recorded. */
static bool hold_judge(const struct vm *vm, size_t from, size_t end, double size,
		       struct score *score, double *hours, bool *ret_broken)
{
	double before = *hours;

	*ret_broken = false;
	for (size_t h = from; h < end && h < vm->n; h++) {
		double need = vm->need[h], cut = fmin(size, vm->has[h]);

		if (isnan(need))
			continue;
		++*hours;
		score->waste += fmax(0, cut - need);
		score->missing += fmax(0, need - cut);
		score->violations += need > cut;
		*ret_broken |= need > 1.1 * cut;
	}
	return *hours > before;
}

static struct score judge(enum rule rule, size_t hold_h, double factor)
{
	struct score score = {0};
	double hours = 0, n = 0;
	size_t at = 0;

	for (size_t i = 0; i < n_vms; i++)
		for (size_t h = FIRST_H; h < vms[i].n; h += hold_h) {
			bool broken;

			n += hold_judge(&vms[i], h, h + hold_h, factor * holds[at++].sizes[rule],
					&score, &hours, &broken);
			score.broken += broken;
		}
	score.waste /= hours;
	score.missing /= hours;
	score.violations /= hours;
	score.broken /= n;
	return score;
}

/* Returns the waste at the factor at which no more is missing, or no more holds are broken; NAN: not reached. */
static double waste_at(enum rule rule, size_t hold_h, double missing, double broken)
{
	double low = 0.3, high = 8;
	struct score score = judge(rule, hold_h, high);

	if (score.missing > missing || score.broken > broken)
		return NAN;
	for (int i = 0; i < 24; i++) {
		double middle = sqrt(low * high);

		score = judge(rule, hold_h, middle);
		if (score.missing > missing || score.broken > broken)
			low = middle;
		else
			high = middle;
	}
	return judge(rule, hold_h, high).waste;
}

static void print_waste(double waste)
{
	if (isnan(waste))
		puts("-");
	else
		printf("%.2f\n", waste);
}

static void print_confidence(size_t hold_h, const char *name)
{
	size_t at = 0, n = 0, high = 0, high_broken = 0;

	for (size_t i = 0; i < n_vms; i++)
		for (size_t h = FIRST_H; h < vms[i].n; h += hold_h, at++) {
			struct score unused = {0};
			double hours = 0;
			bool broken;

			if (!hold_judge(&vms[i], h, h + hold_h, holds[at].sizes[OURS], &unused,
					&hours, &broken))
				continue;
			n++;
			high += holds[at].is_high;
			high_broken += holds[at].is_high && broken;
		}
	printf("hold %s confidence high %.0f%% broken_holds %.1f%%\n", name,
	       100.0 * (double)high / (double)n,
	       high ? 100.0 * (double)high_broken / (double)high : 0.0);
}

static void bench(size_t hold_h, const char *name)
{
	static const double missing[] = {0.01, 0.005};
	struct score score;

	holds_make(hold_h);
	for (size_t m = 0; m < 2; m++)
		for (int rule = 0; rule < RULES; rule++) {
			printf("hold %s missing %g rule %s waste_gib ", name, missing[m],
			       rule_names[rule]);
			print_waste(waste_at((enum rule)rule, hold_h, missing[m], 1));
		}
	for (int rule = 0; rule < RULES; rule++) {
		printf("hold %s broken_holds 10%% rule %s waste_gib ", name, rule_names[rule]);
		print_waste(waste_at((enum rule)rule, hold_h, INFINITY, 0.1));
	}
	print_confidence(hold_h, name);
	/* Ours comes last, as that is what a reader looks for. */
	for (int rule = RULES - 1; rule >= 0; rule--) {
		score = judge((enum rule)rule, hold_h, rule_factors[rule]);
		printf("hold %s default rule %s waste_gib %.2f missing_gib %.4f violation_hours %.2f%% broken_holds %.1f%%\n",
		       name, rule_names[rule], score.waste, score.missing, 100 * score.violations,
		       100 * score.broken);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3 || !strstr("all even odd", argv[1]))
		die("usage: bench-holds all|even|odd DIRECTORY...", "arguments");
	vms = calloc(VMS_MAX, sizeof(*vms));
	holds = calloc((size_t)VMS_MAX * HOURS_MAX, sizeof(*holds));
	if (!vms || !holds)
		die("out of memory", "bench-holds");
	for (int i = 2; i < argc; i++)
		read_directory(argv[i]);
	vms_choose(argv[1]);
	if (!n_vms)
		die("no VM with 40 days of hours", argv[2]);
	printf("%zu VMs\n", n_vms);
	bench(1, "1h");
	bench(24, "24h");
	bench(168, "7d");
	bench(672, "28d");
	free(vms);
	free(holds);
	return 0;
}
