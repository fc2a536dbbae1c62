/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/worker.h"

/* Number of steps at the same time. One that hangs counts until it is left behind. */
#define PARALLEL 32

/* A request about the whole hypervisor, or to a QEMU, which libvirt may never answer. */
struct question {
	int (*ask)(struct question *question, struct wss_error *err);
	const char *what; /* what it does: the step of its deadline */
	struct wss_hypervisor *hypervisor;
	struct wss_deadline deadline;
	bool failed; /* error says why */
	struct wss_error error;
	bool inactive_too;
	struct wss_conn_domain *domains;
	size_t n;
	struct wss_hypervisor_facts facts;
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_balloon_stats stats;
};

static int ask_domains(struct question *question, struct wss_error *err)
{
	return wss_hypervisor_list(question->hypervisor, question->inactive_too, &question->domains,
				   &question->n, err);
}

static int ask_facts(struct question *question, struct wss_error *err)
{
	struct wss_conn *conn = wss_hypervisor_conn(question->hypervisor);

	/* Without libvirt the guests are those of this host. */
	if (!conn) {
		question->facts.memory_bytes = wss_host_memory();
		question->facts.name = strdup(wss_hypervisor_host(question->hypervisor)->name);
		return question->facts.name
			       ? 0
			       : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	question->facts.memory_bytes = wss_conn_host_memory(conn);
	wss_deadline_step(&question->deadline, "asking libvirt for its host's name");
	question->facts.name = wss_conn_hostname(conn);
	return 0;
}

static int ask_balloon(struct question *question, struct wss_error *err)
{
	return wss_conn_balloon_stats(wss_hypervisor_conn(question->hypervisor), question->uuid,
				      &question->stats, err);
}

static void question_run(void *opaque)
{
	struct question *question = opaque;

	question->failed = question->ask(question, &question->error) < 0;
}

static void question_free(void *opaque)
{
	struct question *question = opaque;

	if (!question)
		return;
	wss_conn_free_list(question->domains, question->n);
	free(question->facts.name);
	wss_hypervisor_unref(question->hypervisor);
	free(question);
}

/*
 * Asks in a worker, within deadline_ns. *ret_question has the answer; free it with
 * question_free().
 */
static int ask_hypervisor(struct wss_hypervisor *hypervisor, const struct question *template,
			  uint64_t deadline_ns, const struct wss_cancel *cancel,
			  struct question **ret_question, struct wss_error *err)
{
	struct question *question = malloc(sizeof(*question));
	struct wss_work work = {question_run, question_free, question, NULL};
	struct wss_error late = WSS_ERROR_INIT;

	if (!question)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*question = *template;
	work.deadline = &question->deadline;
	question->hypervisor = wss_hypervisor_ref(hypervisor);
	question->deadline.cancel = cancel;
	wss_deadline_allow(&question->deadline, deadline_ns);
	wss_deadline_run(&question->deadline, 0);
	wss_deadline_step(&question->deadline, template->what);
	if (wss_work_run(&work, 0, &late) == 0 && !question->failed) {
		*ret_question = question;
		return 0;
	}
	if (late.code == WSS_ERR_TIMEOUT && wss_cancel_requested(cancel))
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	*err = late.code ? late : question->error;
	if (late.code == WSS_ERR_TIMEOUT)
		return -1;
	question_free(question);
	return -1;
}

int wss_hypervisor_ask(struct wss_hypervisor *hypervisor, uint64_t deadline_ns,
		       struct wss_hypervisor_facts *ret_facts, struct wss_error *err)
{
	const struct question template = {.ask = ask_facts, .what = "asking for the host's memory"};
	struct question *question;

	if (ask_hypervisor(hypervisor, &template, deadline_ns, NULL, &question, err) < 0)
		return -1;
	*ret_facts = question->facts;
	question->facts.name = NULL;
	question_free(question);
	return 0;
}

int wss_hypervisor_balloon_stats(struct wss_hypervisor *hypervisor, const char *uuid,
				 uint64_t deadline_ns, struct wss_balloon_stats *ret_stats,
				 struct wss_error *err)
{
	struct question template = {.ask = ask_balloon, .what = "reading the balloon's statistics"};
	struct question *question;

	snprintf(template.uuid, sizeof(template.uuid), "%s", uuid);
	if (ask_hypervisor(hypervisor, &template, deadline_ns, NULL, &question, err) < 0)
		return -1;
	*ret_stats = question->stats;
	question_free(question);
	return 0;
}

static int targets_add(struct wss_targets *targets, const struct wss_domain_ref *refs, size_t n,
		       const struct wss_targets_query *query, struct wss_error *err)
{
	targets->list = calloc(n ? n : 1, sizeof(*targets->list));
	if (!targets->list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		targets->list[i] = wss_target_new(targets->hypervisor, &refs[i], query->deadline_ns,
						  query->cancel, err);
		if (!targets->list[i])
			return -1;
		targets->n++;
	}
	return 0;
}

static int targets_add_all(struct wss_targets *targets, const struct wss_targets_query *query,
			   struct wss_error *err)
{
	const struct question template = {.ask = ask_domains,
					  .what = "listing the domains",
					  .inactive_too = query->inactive_too};
	uint64_t deadline_ns = query->deadline_ns ? query->deadline_ns : WSS_TARGET_DEADLINE_NS;
	struct question *listing;
	struct wss_domain_ref *refs;
	int r;

	if (ask_hypervisor(targets->hypervisor, &template, deadline_ns, query->cancel, &listing,
			   err) < 0)
		return -1;
	refs = calloc(listing->n + 1, sizeof(*refs));
	for (size_t i = 0; refs && i < listing->n; i++)
		refs[i] = (struct wss_domain_ref){
			listing->domains[i].name,
			listing->domains[i].uuid[0] ? listing->domains[i].uuid : NULL};
	r = refs ? targets_add(targets, refs, listing->n, query, err)
		 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	free(refs);
	question_free(listing);
	return r;
}

int wss_targets_find(struct wss_hypervisor *hypervisor, const struct wss_targets_query *query,
		     struct wss_targets *ret_targets, struct wss_error *err)
{
	struct wss_targets targets = {.hypervisor = wss_hypervisor_ref(hypervisor),
				      .all = !query->n};
	int r = query->n ? targets_add(&targets, query->refs, query->n, query, err)
			 : targets_add_all(&targets, query, err);

	if (r < 0)
		wss_targets_free(&targets);
	else
		*ret_targets = targets;
	return r;
}

void wss_targets_free(struct wss_targets *targets)
{
	for (size_t i = 0; i < targets->n; i++)
		wss_target_free(targets->list[i]);
	free(targets->list);
	wss_hypervisor_unref(targets->hypervisor);
	*targets = (struct wss_targets){.n = 0};
}

/* One step of one target. If the worker is left behind, it owns this and the target. */
struct target_task {
	struct wss_target *target;
	void (*step)(struct wss_target *target);
};

static void task_run(void *opaque)
{
	struct target_task *task = opaque;
	struct wss_target *target = task->target;

	wss_deadline_run(&target->deadline, 0);
	task->step(target);
	wss_deadline_pause(&target->deadline);
}

static void task_release(void *opaque)
{
	struct target_task *task = opaque;

	wss_target_free(task->target);
	free(task);
}

/* The workers of a list, with one place for each target. */
struct target_workers {
	struct wss_targets *targets;
	struct wss_workers *workers;
	struct {
		struct wss_worker *worker;
		struct target_task *task;
		struct wss_target *spare; /* replaces the target if its worker is left behind */
	} * places;
	size_t running;
};

/* Makes a target with the same name, whose error explains why the original is gone. */
static struct wss_target *target_spare(const struct wss_target *target, struct wss_error *err)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};

	return wss_target_new(target->hypervisor, &ref, target->deadline.allowed_ns,
			      target->cancel.parent, err);
}

static int workers_start(struct target_workers *all, size_t i,
			 void (*step)(struct wss_target *target), struct wss_error *err)
{
	struct wss_target *target = all->targets->list[i];
	struct target_task *task = calloc(1, sizeof(*task));
	struct wss_work work = {task_run, task_release, task, &target->deadline};

	/* Made now, because leaving a late worker behind must not fail. */
	all->places[i].spare = target_spare(target, err);
	if (!task || !all->places[i].spare) {
		free(task);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	*task = (struct target_task){target, step};
	if (wss_worker_start(all->workers, &work, &all->places[i].worker, err) < 0) {
		free(task);
		return -1;
	}
	all->places[i].task = task;
	all->running++;
	return 0;
}

static void workers_join(struct target_workers *all, size_t i)
{
	wss_worker_join(all->places[i].worker);
	all->places[i].worker = NULL;
	free(all->places[i].task);
	all->running--;
}

static void workers_leave(struct target_workers *all, size_t i)
{
	struct wss_target *target = all->targets->list[i];
	struct wss_target *spare = all->places[i].spare;

	wss_deadline_error(&target->deadline, &spare->error);
	if (!wss_worker_leave(all->places[i].worker, &target->cancel)) {
		workers_join(all, i);
		return;
	}
	all->targets->list[i] = spare;
	all->places[i].spare = NULL;
	all->places[i].worker = NULL;
	all->running--;
}

static void workers_step(struct target_workers *all, bool cancelled)
{
	for (size_t i = 0; i < all->targets->n; i++) {
		struct wss_worker *worker = all->places[i].worker;

		if (worker && wss_worker_done(worker))
			workers_join(all, i);
		else if (worker && (cancelled || wss_worker_late(worker)))
			workers_leave(all, i);
	}
}

int wss_targets_run(struct wss_targets *targets, void (*step)(struct wss_target *target),
		    bool unopened_too, struct wss_error *err)
{
	struct target_workers all = {.targets = targets, .workers = wss_workers_new()};
	int r = 0;

	all.places = calloc(targets->n ? targets->n : 1, sizeof(*all.places));
	if (!all.workers || !all.places) {
		free(all.places);
		wss_workers_free(all.workers);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	for (size_t next = 0; r == 0 && (next < targets->n || all.running);) {
		if (wss_cancel_requested(NULL)) {
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		} else if (next < targets->n && all.running < PARALLEL) {
			if (unopened_too || targets->list[next]->guest)
				r = workers_start(&all, next, step, err);
			next++;
		} else {
			wss_workers_wait(all.workers);
		}
		workers_step(&all, false);
	}
	workers_step(&all, true);
	for (size_t i = 0; i < targets->n; i++)
		wss_target_free(all.places[i].spare);
	free(all.places);
	wss_workers_free(all.workers);
	return r;
}

static void targets_close_gaps(struct wss_targets *targets)
{
	size_t kept = 0;

	for (size_t i = 0; i < targets->n; i++)
		if (targets->list[i])
			targets->list[kept++] = targets->list[i];
	targets->n = kept;
}

/*
 * Whether an earlier target is the same guest under another name; this one would only wait for
 * its lock.
 */
static bool targets_repeat(const struct wss_targets *targets, size_t i)
{
	const struct wss_guest *guest = targets->list[i]->guest;

	for (size_t k = 0; guest && k < i; k++) {
		const struct wss_guest *other = targets->list[k] ? targets->list[k]->guest : NULL;

		if (other && !strcmp(other->config.uuid, guest->config.uuid))
			return true;
	}
	return false;
}

int wss_targets_open(struct wss_targets *targets, struct wss_error *err)
{
	if (wss_targets_run(targets, wss_target_open, true, err) < 0)
		return -1;
	for (size_t i = 0; i < targets->n; i++) {
		const struct wss_target *target = targets->list[i];

		/* Without a connection no other target can be opened either. */
		if (!target->guest && target->error.code == WSS_ERR_CONNECT && targets->n > 1) {
			*err = target->error;
			return -1;
		}
	}
	for (size_t i = 0; i < targets->n; i++)
		if (targets_repeat(targets, i) ||
		    (targets->all && wss_target_is_left_out(targets->list[i]))) {
			wss_target_free(targets->list[i]);
			targets->list[i] = NULL;
		}
	targets_close_gaps(targets);
	return 0;
}
