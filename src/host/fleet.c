/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/fleet.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"
#include "host/conn-private.h"

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_DONE, JOB_LEFT };

struct job {
	enum job_state state; /* under the fleet's lock, as is the rest once it runs */
	uint64_t deadline_ns;
	char *uri;
	struct wss_fleet_host host;
};

/* Shared with threads that may outlive the call: it is freed by whoever lets go last. */
struct fleet {
	atomic_int references;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *namespace_uri;
	uint64_t timeout_ns;
	size_t n;
	struct job *jobs;
};

struct worker {
	struct fleet *fleet;
	struct job *job;
};

static void free_domains(struct wss_fleet_domain *domains, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(domains[i].name);
		free(domains[i].xml);
		free(domains[i].error);
	}
	free(domains);
}

static void release_answer(struct wss_fleet_host *host)
{
	free_domains(host->domains, host->n);
	free(host->asked);
	host->asked = NULL;
	host->domains = NULL;
	host->n = 0;
}

static void fleet_unref(struct fleet *fleet)
{
	if (!fleet || atomic_fetch_sub(&fleet->references, 1) != 1)
		return;
	for (size_t i = 0; i < fleet->n; i++) {
		release_answer(&fleet->jobs[i].host);
		free(fleet->jobs[i].uri);
	}
	pthread_mutex_destroy(&fleet->lock);
	pthread_cond_destroy(&fleet->changed);
	free(fleet->namespace_uri);
	free(fleet->jobs);
	free(fleet);
}

static struct fleet *fleet_new(const char *const *uris, size_t n, const char *namespace_uri,
			       uint64_t timeout_ns)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));
	bool ok;

	if (!fleet)
		return NULL;
	fleet->references = 1;
	fleet->timeout_ns = timeout_ns;
	pthread_mutex_init(&fleet->lock, NULL);
	wss_cond_init(&fleet->changed);
	fleet->namespace_uri = strdup(namespace_uri);
	fleet->jobs = calloc(n ? n : 1, sizeof(*fleet->jobs));
	ok = fleet->namespace_uri && fleet->jobs;
	for (size_t i = 0; ok && i < n; i++) {
		fleet->n++;
		ok = !uris[i] || (fleet->jobs[i].uri = strdup(uris[i]));
		fleet->jobs[i].host.uri = fleet->jobs[i].uri;
	}
	if (ok)
		return fleet;
	fleet_unref(fleet);
	return NULL;
}

static bool left_behind(struct worker *worker)
{
	bool left;

	pthread_mutex_lock(&worker->fleet->lock);
	left = worker->job->state == JOB_LEFT;
	pthread_mutex_unlock(&worker->fleet->lock);
	return left;
}

/* Nothing but memory that is short fails here: what is wrong with a domain is its error. */
static int read_domain(virDomainPtr dom, const char *namespace_uri, struct wss_fleet_domain *domain)
{
	struct wss_error err = WSS_ERROR_INIT;
	const char *name = virDomainGetName(dom);
	char *xml = NULL;

	if (virDomainGetUUIDString(dom, domain->uuid) < 0)
		domain->uuid[0] = '\0';
	if (wss_conn_element(dom, namespace_uri, &xml, &err) == 0 && xml &&
	    strnlen(xml, WSS_FLEET_XML_MAX + 1) > WSS_FLEET_XML_MAX) {
		free(xml);
		xml = NULL;
		wss_error_set(&err, WSS_ERR_FAILED, "its metadata is longer than 64 KiB");
	}
	domain->active = virDomainGetID(dom) != (unsigned)-1;
	domain->xml = xml;
	if (err.code && !(domain->error = strdup(err.text)))
		return -1;
	domain->name = strdup(name ? name : "");
	return domain->name ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wss_fleet_domain *)a)->name,
		      ((const struct wss_fleet_domain *)b)->name);
}

/* worker: whose caller may have left; NULL where it waits. */
static int read_domains(struct worker *worker, struct wss_conn *conn, const char *namespace_uri,
			struct wss_fleet_host *answer)
{
	virDomainPtr *doms = NULL;
	int n = virConnectListAllDomains(conn->vir, &doms, 0);
	int r = 0;

	if (n < 0)
		return wss_conn_error(&answer->error, "cannot list the domains");
	answer->asked = strdup(wss_conn_uri(conn));
	answer->domains = calloc((size_t)n + 1, sizeof(*answer->domains));
	if (!answer->asked || !answer->domains)
		r = -1;
	for (int i = 0; i < n; i++) {
		if (r == 0 && !(worker && left_behind(worker)))
			r = read_domain(doms[i], namespace_uri, &answer->domains[answer->n++]);
		virDomainFree(doms[i]);
	}
	free(doms);
	if (r < 0)
		return wss_error_set(&answer->error, WSS_ERR_NO_MEMORY, "out of memory");
	qsort(answer->domains, answer->n, sizeof(*answer->domains), by_name);
	return 0;
}

static void hand_over(struct worker *worker, struct wss_fleet_host *answer)
{
	struct fleet *fleet = worker->fleet;

	pthread_mutex_lock(&fleet->lock);
	if (worker->job->state == JOB_LEFT) {
		release_answer(answer);
	} else {
		answer->uri = worker->job->uri;
		worker->job->host = *answer;
		worker->job->state = JOB_DONE;
	}
	pthread_cond_broadcast(&fleet->changed);
	pthread_mutex_unlock(&fleet->lock);
}

static void work(void *opaque)
{
	struct worker *worker = opaque;
	struct wss_fleet_host answer = { .error = WSS_ERROR_INIT };
	struct wss_conn *conn = NULL;

	if (wss_conn_open_reader(worker->job->uri, &conn, &answer.error) == 0 &&
	    read_domains(worker, conn, worker->fleet->namespace_uri, &answer) < 0)
		release_answer(&answer);
	/* Before the connection is closed: a host that hangs in that has answered. */
	hand_over(worker, &answer);
	wss_conn_close(conn);
	fleet_unref(worker->fleet);
	free(worker);
}

/* Under the lock. */
static void start(struct fleet *fleet, struct job *job)
{
	struct worker *worker = malloc(sizeof(*worker));
	struct wss_thread *thread;

	job->state = JOB_RUNNING;
	job->deadline_ns = wss_clock_now_ns() + fleet->timeout_ns;
	if (worker) {
		*worker = (struct worker){ fleet, job };
		atomic_fetch_add(&fleet->references, 1);
		if (wss_thread_start(work, worker, &thread, NULL) == 0) {
			wss_thread_leave(thread);
			return;
		}
		atomic_fetch_sub(&fleet->references, 1);
		free(worker);
	}
	wss_error_set(&job->host.error, WSS_ERR_FAILED, "cannot start a thread");
	job->state = JOB_DONE;
}

/* Under the lock: gives up on those that are late, and starts others in their place. */
static void tend(struct fleet *fleet)
{
	uint64_t now = wss_clock_now_ns();
	size_t running = 0;
	char text[16];

	wss_duration_format(fleet->timeout_ns, text, sizeof(text));
	for (size_t i = 0; i < fleet->n; i++) {
		struct job *job = &fleet->jobs[i];

		if (job->state == JOB_RUNNING && now >= job->deadline_ns) {
			job->state = JOB_LEFT;
			wss_error_set(&job->host.error, WSS_ERR_CONNECT, "no answer within %s",
				      text);
		}
		running += job->state == JOB_RUNNING;
	}
	for (size_t i = 0; i < fleet->n && running < WSS_FLEET_PARALLEL; i++) {
		if (fleet->jobs[i].state != JOB_WAITING)
			continue;
		start(fleet, &fleet->jobs[i]);
		running++;
	}
}

/* Returns with the lock held once the job is done, or on a stop request. */
static void wait_for(struct fleet *fleet, const struct job *job)
{
	tend(fleet);
	while ((job->state == JOB_WAITING || job->state == JOB_RUNNING) && !wss_stop_requested()) {
		wss_cond_wait_a_moment(&fleet->changed, &fleet->lock);
		tend(fleet);
	}
}

int wss_fleet_read(const char *const *uris, size_t n, const char *namespace_uri,
		   uint64_t timeout_ns, wss_fleet_emit emit, void *opaque, struct wss_error *err)
{
	struct fleet *fleet = fleet_new(uris, n, namespace_uri, timeout_ns);
	bool stopped = false;

	if (!fleet)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n && !stopped; i++) {
		struct job *job = &fleet->jobs[i];

		pthread_mutex_lock(&fleet->lock);
		wait_for(fleet, job);
		stopped = job->state == JOB_WAITING || job->state == JOB_RUNNING;
		pthread_mutex_unlock(&fleet->lock);
		/* What is done is changed by nobody any more. */
		if (!stopped) {
			emit(&job->host, opaque);
			release_answer(&job->host);
		}
	}
	pthread_mutex_lock(&fleet->lock);
	for (size_t i = 0; i < n; i++)
		if (fleet->jobs[i].state == JOB_RUNNING)
			fleet->jobs[i].state = JOB_LEFT;
	pthread_mutex_unlock(&fleet->lock);
	fleet_unref(fleet);
	if (stopped)
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return 0;
}

int wss_fleet_read_one(struct wss_conn *conn, const char *namespace_uri, wss_fleet_emit emit,
		       void *opaque, struct wss_error *err)
{
	struct wss_fleet_host answer = { .error = WSS_ERROR_INIT };

	if (read_domains(NULL, conn, namespace_uri, &answer) < 0) {
		*err = answer.error;
		release_answer(&answer);
		return -1;
	}
	emit(&answer, opaque);
	release_answer(&answer);
	return 0;
}
