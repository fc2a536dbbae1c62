/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/worker.h"
#include "host/conn-private.h"

/*
 * The request to one host. Its worker fills in the answer, which the caller takes after the
 * worker has ended; the answer of a worker that was left behind is never taken.
 */
struct fleet_job {
	char *uri; /* NULL: libvirt's default */
	char *namespace_uri;
	/* Requested when the worker is left behind, so that it reads no more domains. */
	struct wss_cancel cancel;
	struct wss_deadline deadline;
	struct wss_fleet_host answer;
};

/* The caller's view of a job. */
struct slot {
	struct fleet_job
		*job; /* NULL once its answer has been taken or its worker left behind */
	struct wss_worker *worker; /* NULL before it has started and after it has ended */
	bool started;
	struct wss_fleet_host answer; /* valid once worker is NULL */
};

struct fleet {
	struct wss_workers *workers;
	uint64_t timeout_ns;
	size_t n;
	struct slot *slots;
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

static void job_free(void *opaque)
{
	struct fleet_job *job = opaque;

	if (!job)
		return;
	release_answer(&job->answer);
	wss_cancel_close(&job->cancel);
	free(job->uri);
	free(job->namespace_uri);
	free(job);
}

static struct fleet_job *job_new(const char *uri, const char *namespace_uri,
				 uint64_t timeout_ns, struct wss_error *err)
{
	struct fleet_job *job = calloc(1, sizeof(*job));

	if (!job || (uri && !(job->uri = strdup(uri))) ||
	    !(job->namespace_uri = strdup(namespace_uri))) {
		if (job)
			job->cancel.fd = -1;
		job_free(job);
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	job->deadline.cancel = &job->cancel;
	wss_deadline_allow(&job->deadline, timeout_ns);
	if (wss_cancel_open(&job->cancel, NULL, err) == 0)
		return job;
	job_free(job);
	return NULL;
}

/*
 * Reads one domain. Fails only if memory runs out; any other problem is stored as the domain's
 * error.
 */
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

static int read_domains(struct wss_conn *conn, const char *namespace_uri,
			const struct wss_cancel *cancel, struct wss_fleet_host *answer)
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
		if (r == 0 && !wss_cancel_requested(cancel))
			r = read_domain(doms[i], namespace_uri, &answer->domains[answer->n++]);
		virDomainFree(doms[i]);
	}
	free(doms);
	if (r < 0)
		return wss_error_set(&answer->error, WSS_ERR_NO_MEMORY, "out of memory");
	qsort(answer->domains, answer->n, sizeof(*answer->domains), by_name);
	return 0;
}

/* Runs after the host has answered, because closing may hang, too. */
static void close_conn(void *opaque)
{
	wss_conn_close(opaque);
}

static void close_behind(struct wss_conn *conn)
{
	struct wss_thread *thread;

	if (!conn)
		return;
	if (wss_thread_start(close_conn, conn, &thread, NULL) == 0)
		wss_thread_leave(thread);
	else
		wss_conn_close(conn);
}

static void job_run(void *opaque)
{
	struct fleet_job *job = opaque;
	struct wss_conn *conn = NULL;

	if (wss_conn_open_reader(job->uri, &conn, &job->answer.error) == 0 &&
	    read_domains(conn, job->namespace_uri, &job->cancel, &job->answer) < 0)
		release_answer(&job->answer);
	close_behind(conn);
}

static void slot_start(struct fleet *fleet, struct slot *slot)
{
	struct wss_work work = { job_run, job_free, slot->job, &slot->job->deadline };

	slot->started = true;
	wss_deadline_run(&slot->job->deadline, 0);
	if (wss_worker_start(fleet->workers, &work, &slot->worker, &slot->answer.error) < 0)
		slot->worker = NULL;
}

/* Takes over the answer of a worker that has ended. */
static void slot_end(struct slot *slot)
{
	const char *uri = slot->answer.uri;

	wss_worker_join(slot->worker);
	slot->worker = NULL;
	slot->answer = slot->job->answer;
	slot->answer.uri = uri;
	slot->job->answer = (struct wss_fleet_host){ .n = 0 };
}

/* Returns false if the worker has just ended. */
static bool slot_leave(struct slot *slot)
{
	if (!wss_worker_leave(slot->worker, &slot->job->cancel))
		return false;
	slot->worker = NULL;
	slot->job = NULL;
	return true;
}

static void slot_give_up(const struct fleet *fleet, struct slot *slot)
{
	char text[16];

	if (!slot_leave(slot)) {
		slot_end(slot);
		return;
	}
	wss_duration_format(fleet->timeout_ns, text, sizeof(text));
	wss_error_set(&slot->answer.error, WSS_ERR_CONNECT, "no answer within %s", text);
}

/* Takes over answers, leaves late workers behind, and starts others in their place. */
static void fleet_tend(struct fleet *fleet)
{
	size_t running = 0;

	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		if (slot->worker && wss_worker_done(slot->worker))
			slot_end(slot);
		else if (slot->worker && wss_deadline_overrun(&slot->job->deadline, 0))
			slot_give_up(fleet, slot);
		running += slot->worker != NULL;
	}
	for (size_t i = 0; i < fleet->n && running < WSS_FLEET_PARALLEL; i++) {
		if (fleet->slots[i].started)
			continue;
		slot_start(fleet, &fleet->slots[i]);
		running += fleet->slots[i].worker != NULL;
	}
}

static void fleet_close(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		if (slot->worker && !slot_leave(slot))
			slot_end(slot);
		release_answer(&slot->answer);
		job_free(slot->job);
	}
	free(fleet->slots);
	wss_workers_free(fleet->workers);
}

static int fleet_open(struct fleet *fleet, const char *const *uris, const char *namespace_uri,
		      struct wss_error *err)
{
	fleet->workers = wss_workers_new();
	fleet->slots = calloc(fleet->n ? fleet->n : 1, sizeof(*fleet->slots));
	if (!fleet->workers || !fleet->slots) {
		fleet->n = 0;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		slot->answer.uri = uris[i];
		slot->job = job_new(uris[i], namespace_uri, fleet->timeout_ns, err);
		if (!slot->job)
			return -1;
	}
	return 0;
}

/* Returns 0 once the host has answered or was given up, -1 on a stop request. */
static int slot_wait(struct fleet *fleet, const struct slot *slot)
{
	fleet_tend(fleet);
	while (!slot->started || slot->worker) {
		if (wss_stop_requested())
			return -1;
		wss_workers_wait(fleet->workers);
		fleet_tend(fleet);
	}
	return 0;
}

int wss_fleet_read(const char *const *uris, size_t n, const char *namespace_uri,
		   uint64_t timeout_ns, wss_fleet_emit emit, void *opaque, struct wss_error *err)
{
	struct fleet fleet = { .timeout_ns = timeout_ns, .n = n };
	int r = fleet_open(&fleet, uris, namespace_uri, err);

	for (size_t i = 0; i < n && r == 0; i++) {
		struct slot *slot = &fleet.slots[i];

		r = slot_wait(&fleet, slot);
		if (r < 0) {
			wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
			break;
		}
		emit(&slot->answer, opaque);
		release_answer(&slot->answer);
	}
	fleet_close(&fleet);
	return r;
}
