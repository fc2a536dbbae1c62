/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests to libvirt that need no open guest: our elements in domains' metadata, memory sizes, and
 * configurations.
 */
#include "base/number.h"
#include "base/text.h"
#include "host/conn-private.h"
#include "host/domain-stats.h"

#include <libvirt/virterror.h>
#include <string.h>

#include "host/domxml.h"
#include "host/fleet.h"
#include "host/xml.h"

/*
 * Not virDomainGetMetadata(): in it libvirt reads freed memory if an attribute has the
 * element's prefix, and anyone who may edit the domain can write such an attribute.
 * With qemu:///embed that happens in this process. See
 * docs/libvirt-metadata-prefix.md.
 */
int wss_conn_element(virDomainPtr dom, const char *namespace_uri, char **ret_xml,
		     struct wss_error *err)
{
	wss_auto_free char *xml = virDomainGetXMLDesc(dom, 0);

	if (!xml)
		return wss_conn_error(err, "cannot read the domain's metadata");
	if (wss_xml_metadata(xml, WSS_DOMXML_MAX, namespace_uri, ret_xml, err) < 0)
		return wss_error_prefix(err, "cannot read the domain's metadata");
	return 0;
}

/*
 * Returns which definitions to change: the live one of a running domain, the stored one of a
 * persistent domain.
 */
static int affected_flags(virDomainPtr dom, bool persistent, unsigned *ret_flags,
			  struct wss_error *err)
{
	int active = virDomainIsActive(dom), defined = virDomainIsPersistent(dom);

	if (active < 0 || defined < 0)
		return wss_conn_error(err, "cannot read the domain's state");
	*ret_flags = (active ? VIR_DOMAIN_AFFECT_LIVE : 0) |
		     (persistent && defined ? VIR_DOMAIN_AFFECT_CONFIG : 0);
	if (!*ret_flags)
		return wss_error_set(err, WSS_ERR_GONE, "the domain is not running");
	return 0;
}

int wss_conn_store(virDomainPtr dom, const char *namespace_uri, const char *prefix, const char *xml,
		   bool persistent, struct wss_error *err)
{
	virDomainJobInfo job;
	unsigned flags;

	if (xml && !wss_xml_is_plain(xml, WSS_FLEET_XML_MAX))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "metadata not written: the element has namespace "
				     "prefixes, or is not XML");
	/* Skip a busy domain instead of waiting for it. */
	if (virDomainGetJobInfo(dom, &job) == 0 && job.type != VIR_DOMAIN_JOB_NONE)
		return wss_error_set(err, WSS_ERR_BUSY,
				     "metadata not written: the domain has a job running");
	if (affected_flags(dom, persistent, &flags, err) < 0)
		return -1;
	if (virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, xml, xml ? prefix : NULL,
				 namespace_uri, flags) < 0)
		return wss_conn_error(err, "cannot write the domain's metadata");
	return 0;
}

int wss_conn_metadata(struct wss_conn *conn, const struct wss_domain_ref *ref,
		      const char *namespace_uri, struct wss_conn_entry *ret_entry,
		      struct wss_error *err)
{
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, ref, err);

	if (!dom || wss_conn_element(dom, namespace_uri, &ret_entry->xml, err) < 0)
		return -1;
	wss_text_fit(virDomainGetName(dom), ret_entry->name, sizeof(ret_entry->name));
	if (virDomainGetUUIDString(dom, ret_entry->uuid) < 0)
		ret_entry->uuid[0] = '\0';
	ret_entry->active = virDomainGetID(dom) != (unsigned)-1;
	return 0;
}

int wss_conn_set_metadata(struct wss_conn *conn, const char *uuid, const char *namespace_uri,
			  const char *prefix, const char *xml, struct wss_error *err)
{
	const struct wss_domain_ref ref = {.uuid = uuid};
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, &ref, err);

	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	if (!dom || wss_conn_call_begin(conn, dom, WSS_CALL_NEEDS_TURN, NULL,
					"writing the domain's metadata", &call, err) < 0)
		return -1;
	return wss_conn_store(call.dom, namespace_uri, prefix, xml, true, err);
}

/* Returns MemTotal of the host's /proc/meminfo, in KiB; 0 if the driver does not report it. */
static uint64_t meminfo_total(struct wss_conn *conn)
{
	int all = VIR_NODE_MEMORY_STATS_ALL_CELLS, n = 0;
	/*
	 * Room for more than the four parameters of today: a failure here would lead to
	 * another figure.
	 */
	virNodeMemoryStats stats[32];

	if (virNodeGetMemoryStats(conn->vir, all, NULL, &n, 0) < 0 ||
	    n > (int)(sizeof(stats) / sizeof(stats[0])) ||
	    virNodeGetMemoryStats(conn->vir, all, stats, &n, 0) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		if (!strcmp(stats[i].field, VIR_NODE_MEMORY_STATS_TOTAL))
			return stats[i].value;
	return 0;
}

/* virNodeGetInfo() sums the meminfo files of the NUMA nodes, which may lack hot-plugged memory. */
struct wss_amount wss_conn_host_memory(struct wss_conn *conn)
{
	uint64_t total_kib = meminfo_total(conn);
	virNodeInfo info;

	if (total_kib)
		return (struct wss_amount){true, wss_u64_mul(total_kib, 1024)};
	if (virNodeGetInfo(conn->vir, &info) < 0)
		return (struct wss_amount){0};
	return (struct wss_amount){true, wss_u64_mul(info.memory, 1024)};
}

struct wss_conn_size wss_conn_size(struct wss_conn *conn, const char *uuid)
{
	const struct wss_domain_ref ref = {.uuid = uuid};
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, &ref, NULL);
	virDomainInfo info;

	struct wss_conn_size size = {.assigned_bytes = {.known = false}};

	if (!dom || virDomainGetInfo(dom, &info) < 0)
		return size;
	size.maximum_bytes = wss_amount_of(wss_u64_mul(info.maxMem, 1024));
	size.assigned_bytes =
		wss_amount_of(virDomainIsActive(dom) == 1 ? size.maximum_bytes.value : 0);
	/* One that has crashed, and that libvirt preserved, still has a QEMU. */
	if (info.state == VIR_DOMAIN_PAUSED || info.state == VIR_DOMAIN_PMSUSPENDED ||
	    info.state == VIR_DOMAIN_CRASHED)
		size.paused_bytes = wss_amount_of(wss_u64_mul(info.memory, 1024));
	return size;
}

int wss_conn_config(struct wss_conn *conn, const struct wss_host *host, const char *uuid,
		    const struct wss_deadline *deadline, struct wss_domxml *ret_config,
		    struct wss_error *err)
{
	struct wss_process process = WSS_PROCESS_INIT;
	const struct wss_domain_ref ref = {.uuid = uuid};
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, &ref, err);
	wss_auto_free char *xml = dom ? virDomainGetXMLDesc(dom, 0) : NULL;
	struct wss_error ignored = WSS_ERROR_INIT;

	if (!dom)
		return -1;
	if (!xml)
		return wss_conn_error(err, "cannot read the domain's XML");
	if (wss_domxml_parse(xml, ret_config, err) < 0)
		return -1;
	if (wss_conn_process(conn, host, ret_config, deadline, &process, &ignored) == 0)
		wss_domxml_see_process(ret_config, &process);
	wss_process_release(&process);
	return 0;
}

int wss_conn_balloon_stats(struct wss_conn *conn, const char *uuid,
			   struct wss_balloon_stats *ret_stats, struct wss_error *err)
{
	const struct wss_domain_ref ref = {.uuid = uuid};
	wss_auto_domain virDomainPtr dom = wss_conn_lookup(conn, &ref, err);
	wss_auto_call struct wss_conn_call call = {.conn = NULL};

	/* They are not worth waiting for other calls that hang, nor a call on the connection that all share. */
	if (!dom || wss_conn_call_begin(conn, dom, WSS_CALL_NEEDS_QEMU, NULL,
					"reading the balloon's statistics", &call, err) < 0)
		return -1;
	if (call.in_the_way)
		return wss_error_set(err, WSS_ERR_BUSY, "libvirt's calls about other guests hang");
	return wss_domain_balloon_stats(call.dom, ret_stats, err);
}
