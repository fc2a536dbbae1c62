/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hangs libvirt calls in a program that loads this by LD_PRELOAD, as only tests do.
 *
 * WSS_HANG=FUNCTION:DOMAIN hangs a function for one domain, FUNCTION: for any. The first
 * WSS_HANG_AFTER of these calls pass. A call that hangs creates the file WSS_HANG_FILE first. With
 * WSS_HANG_SECONDS it only takes that long, and others wait for it, as for a slow libvirtd.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <libvirt/libvirt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void hang(void)
{
	const char *file = getenv("WSS_HANG_FILE"), *seconds = getenv("WSS_HANG_SECONDS");
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (file)
		close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (seconds) {
		pthread_mutex_lock(&lock);
		sleep((unsigned)atoi(seconds));
		pthread_mutex_unlock(&lock);
	}
	while (!seconds)
		pause();
}

static void hang_if_wanted(const char *function, const char *domain)
{
	const char *wanted = getenv("WSS_HANG"), *after = getenv("WSS_HANG_AFTER");
	static atomic_int calls;
	size_t len = strlen(function);

	if (!wanted || strncmp(wanted, function, len) != 0 || wanted[len] != ':')
		return;
	if (wanted[len + 1] && (!domain || strcmp(wanted + len + 1, domain) != 0))
		return;
	if (atomic_fetch_add(&calls, 1) >= (after ? atoi(after) : 0))
		hang();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

EXPORT char *virDomainGetXMLDesc(virDomainPtr dom, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainGetXMLDesc)(dom, flags);
}

EXPORT int virDomainGetInfo(virDomainPtr dom, virDomainInfoPtr info)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainGetInfo)(dom, info);
}

EXPORT int virDomainSetMetadata(virDomainPtr dom, int type, const char *metadata, const char *key,
				const char *uri, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainSetMetadata)(dom, type, metadata, key, uri, flags);
}

EXPORT int virDomainListGetStats(virDomainPtr *doms, unsigned stats,
				 virDomainStatsRecordPtr **records, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(doms[0]));
	return REAL(virDomainListGetStats)(doms, stats, records, flags);
}

EXPORT int virDomainSetMemoryFlags(virDomainPtr dom, unsigned long memory, unsigned flags)
{
	hang_if_wanted(__func__, virDomainGetName(dom));
	return REAL(virDomainSetMemoryFlags)(dom, memory, flags);
}

EXPORT int virConnectListAllDomains(virConnectPtr conn, virDomainPtr **doms, unsigned flags)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectListAllDomains)(conn, doms, flags);
}

EXPORT int virNodeGetMemoryStats(virConnectPtr conn, int cell, virNodeMemoryStatsPtr stats, int *n,
				 unsigned flags)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virNodeGetMemoryStats)(conn, cell, stats, n, flags);
}

EXPORT const char *virConnectGetType(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetType)(conn);
}

EXPORT char *virConnectGetCapabilities(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetCapabilities)(conn);
}

EXPORT char *virConnectGetHostname(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectGetHostname)(conn);
}

EXPORT int virConnectClose(virConnectPtr conn)
{
	hang_if_wanted(__func__, NULL);
	return REAL(virConnectClose)(conn);
}
