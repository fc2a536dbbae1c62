/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/jobs.h"

#include <libvirt/virterror.h>
#include <stdio.h>

#include "host/conn-private.h"

/* By virDomainJobOperation. Newer ones have no name. */
static const char *const operations[] = {
	[VIR_DOMAIN_JOB_OPERATION_START] = "start",
	[VIR_DOMAIN_JOB_OPERATION_SAVE] = "save",
	[VIR_DOMAIN_JOB_OPERATION_RESTORE] = "restore",
	[VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN] = "migration",
	[VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT] = "migration",
	[VIR_DOMAIN_JOB_OPERATION_SNAPSHOT] = "snapshot",
	[VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT] = "revert to a snapshot",
	[VIR_DOMAIN_JOB_OPERATION_DUMP] = "dump",
	[VIR_DOMAIN_JOB_OPERATION_BACKUP] = "backup",
};

static const char *const block_jobs[] = {
	[VIR_DOMAIN_BLOCK_JOB_TYPE_PULL] = "block pull",
	[VIR_DOMAIN_BLOCK_JOB_TYPE_COPY] = "block copy",
	[VIR_DOMAIN_BLOCK_JOB_TYPE_COMMIT] = "block commit",
	[VIR_DOMAIN_BLOCK_JOB_TYPE_ACTIVE_COMMIT] = "block commit",
};

#define name_of(names, at, other) \
	((size_t)(at) < sizeof(names) / sizeof(*(names)) && (names)[at] ? (names)[at] : (other))

static void name_domain_job(virDomainPtr dom, char ret_job[WSS_JOB_MAX])
{
	virTypedParameterPtr params = NULL;
	int type, n = 0, operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;

	if (virDomainGetJobStats(dom, &type, &params, &n, 0) == 0)
		virTypedParamsGetInt(params, n, VIR_DOMAIN_JOB_OPERATION, &operation);
	virTypedParamsFree(params, n);
	snprintf(ret_job, WSS_JOB_MAX, "%s",
		 name_of(operations, operation, "migration, save, dump or backup"));
}

/* A driver without support for jobs runs none. */
static int find_domain_job(virDomainPtr dom, char ret_job[WSS_JOB_MAX], struct wss_error *err)
{
	virDomainJobInfo job;

	if (virDomainGetJobInfo(dom, &job) < 0)
		return virGetLastErrorCode() == VIR_ERR_NO_SUPPORT
			       ? 0
			       : wss_conn_error(err, "cannot read the domain's job state");
	if (job.type != VIR_DOMAIN_JOB_NONE)
		name_domain_job(dom, ret_job);
	return 0;
}

/* A disk that has been unplugged since the XML was read has no job. */
static int find_disk_job(virDomainPtr dom, const char *disk, char ret_job[WSS_JOB_MAX],
			 struct wss_error *err)
{
	virDomainBlockJobInfo job;
	int r = virDomainGetBlockJobInfo(dom, disk, &job, 0),
	    code = r < 0 ? virGetLastErrorCode() : 0;

	if (r > 0)
		snprintf(ret_job, WSS_JOB_MAX, "%s of %s",
			 name_of(block_jobs, job.type, "block job"), disk);
	return r >= 0 || code == VIR_ERR_NO_SUPPORT || code == VIR_ERR_INVALID_ARG
		       ? 0
		       : wss_conn_error(err, "cannot read the job of a disk");
}

/*
 * The XML shows disks that are copied or committed to (<mirror>). A pull, and a commit below the active image,
 * need a backing chain, which few disks have, so libvirt is asked about few.
 */
int wss_jobs_find(virDomainPtr dom, const struct wss_domxml *config,
		  const struct wss_deadline *deadline, char ret_job[WSS_JOB_MAX],
		  struct wss_error *err)
{
	ret_job[0] = '\0';
	if (find_domain_job(dom, ret_job, err) < 0)
		return -1;
	if (!ret_job[0] && config->mirrored[0])
		snprintf(ret_job, WSS_JOB_MAX, "block %s of %s",
			 config->mirror_commits ? "commit" : "copy", config->mirrored);
	for (size_t i = 0; !ret_job[0] && i < config->n_chained; i++)
		if (wss_deadline_check(deadline, err) < 0 ||
		    find_disk_job(dom, config->chained[i], ret_job, err) < 0)
			return -1;
	return 0;
}
