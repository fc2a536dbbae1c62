/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Jobs of a domain, which no measurement may disturb: libvirt's jobs of the whole domain (migration, save,
 * dump, backup, snapshot), and those of single disks (block copy, commit, pull), which are none of them.
 * Private to host/.
 */
#pragma once

#include <libvirt/libvirt.h>
#include <stddef.h>

#include "base/deadline.h"
#include "base/error.h"
#include "host/guest.h"

/*
 * Names a job that the running domain has: "backup", "block copy of vda"; "" if it has none, or if its driver
 * has no jobs. config is its current XML. Does not wait for the monitor unless a disk has a job. 0, or -1 with
 * err set, also when the deadline (may be NULL) has passed.
 */
int wss_jobs_find(virDomainPtr dom, const struct wss_domxml *config,
		  const struct wss_deadline *deadline, char ret_job[WSS_JOB_MAX],
		  struct wss_error *err);
