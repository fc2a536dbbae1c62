/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Against libvirt's test driver, which runs inside this process. */
#include "hosttest.h"

#include <libvirt/libvirt.h>
#include <sched.h>

#include "../divert.h"
#include "base/thread.h"
#include "host/conn-private.h"
#include "host/inventory.h"
#include "measure/pool.h"

#define DEFAULT_UUID "6695eb01-f6a4-8304-79aa-97f2502e193f"

static struct wss_conn *conn;
static bool refuse_writing;
static __typeof__(&virConnectOpenAuth) real_open;
static __typeof__(&virConnectOpen) real_open_side;
static __typeof__(&virConnectClose) real_close;
static atomic_int n_open;

/* The test driver never refuses anybody. */
static virConnectPtr refusing_open(const char *uri, virConnectAuthPtr auth, unsigned flags)
{
	n_open += !refuse_writing;
	return refuse_writing ? NULL : real_open(uri, auth, flags);
}

static virConnectPtr counting_open(const char *uri)
{
	n_open++;
	return real_open_side(uri);
}

static int counting_close(virConnectPtr vir)
{
	n_open--;
	return real_close(vir);
}

/* --- jobs, of which the test driver has none --- */

static struct {
	const char *disks; /* NULL: the XML is the driver's */
	int operation;	   /* of the domain's job; -1: it has none */
	const char *disk;  /* that has a job of this type; NULL: none has */
	int type;
	int asked;  /* about jobs of disks */
	bool fails; /* such a call, because of its arguments */
} jobs = {.operation = -1};

static int domain_state; /* 0: the driver's */
static __typeof__(&virDomainGetState) real_state;
static __typeof__(&virDomainGetXMLDesc) real_xml;
static __typeof__(&virDomainGetJobInfo) real_job_info;
static __typeof__(&virDomainGetJobStats) real_job_stats;
static __typeof__(&virDomainGetBlockJobInfo) real_block_job;

static char *xml_with_disks(virDomainPtr dom, unsigned flags)
{
	char *xml = NULL;

	if (!jobs.disks)
		return real_xml(dom, flags);
	assert_true(asprintf(&xml,
			     "<domain type='kvm'><name>test</name><uuid>" DEFAULT_UUID "</uuid>"
			     "<memory>4096</memory><devices>%s</devices></domain>",
			     jobs.disks) > 0);
	return xml;
}

static int state_of(virDomainPtr dom, int *state, int *reason, unsigned flags)
{
	int r = real_state(dom, state, reason, flags);

	if (domain_state)
		*state = domain_state;
	return r;
}

static int job_info(virDomainPtr dom, virDomainJobInfoPtr info)
{
	if (!jobs.disks)
		return real_job_info(dom, info);
	*info = (virDomainJobInfo){.type = jobs.operation < 0 ? VIR_DOMAIN_JOB_NONE
							      : VIR_DOMAIN_JOB_UNBOUNDED};
	return 0;
}

static int job_stats(virDomainPtr dom, int *type, virTypedParameterPtr *params, int *n,
		     unsigned flags)
{
	int max = 0;

	*type = VIR_DOMAIN_JOB_UNBOUNDED;
	*params = NULL;
	*n = 0;
	return virTypedParamsAddInt(params, n, &max, VIR_DOMAIN_JOB_OPERATION, jobs.operation);
}

static int block_job_info(virDomainPtr dom, const char *disk, virDomainBlockJobInfoPtr info,
			  unsigned flags)
{
	jobs.asked++;
	if (jobs.fails)
		return real_block_job(dom, NULL, info, flags);
	*info = (virDomainBlockJobInfo){.type = jobs.type};
	return jobs.disk && !strcmp(jobs.disk, disk);
}

static int set_up(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_conn_open("test:///default", &conn, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **unused)
{
	wss_conn_close(conn);
	wss_conn_close(NULL);
	wss_conn_end_events();
	return wss_threads_end(300 * WSS_NS_PER_S) ? 0 : -1;
}

/* Opens a guest by a typed word. */
static int open_word(const char *word, struct wss_guest **ret_guest, struct wss_error *err)
{
	return wss_conn_guest(conn, &(struct wss_domain_ref){.name = word}, NULL, ret_guest, err);
}

/* Opens a guest by the UUID of a listed domain. */
static int open_uuid(const char *uuid, struct wss_guest **ret_guest, struct wss_error *err)
{
	return wss_conn_guest(conn, &(struct wss_domain_ref){"listed", uuid}, NULL, ret_guest, err);
}

static int read_element(const char *word, struct wss_conn_entry *ret_entry, struct wss_error *err)
{
	return wss_conn_metadata(conn, &(struct wss_domain_ref){.name = word},
				 WSS_PROFILE_NAMESPACE, ret_entry, err);
}

static struct wss_guest *open_guest(const char *name)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_guest *guest = NULL;

	if (open_word(name, &guest, &err) < 0)
		fail_msg("%s", err.text);
	return guest;
}

TEST(test_list)
{
	struct wss_conn_domain *domains = NULL;
	size_t n = 0;

	for (int inactive_too = 0; inactive_too < 2; inactive_too++) {
		assert_int_equal(wss_conn_list(conn, inactive_too, &domains, &n, NULL), 0);
		assert_int_equal(n, 1);
		assert_string_equal(domains[0].name, "test");
		assert_string_equal(domains[0].uuid, DEFAULT_UUID);
		wss_conn_free_list(domains, n);
	}
	wss_conn_free_list(NULL, 0);
}

TEST(test_lookup)
{
	static const char *const known[] = {"test", "1", DEFAULT_UUID,
					    "6695EB01-F6A4-8304-79AA-97F2502E193F"};
	static const char *const unknown[] = {
		"",   "tes",  "99",  "12345678901234567890",
		"-1", UUID_A, "a b", "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct wss_guest *guest = open_guest(known[i]);

		assert_string_equal(guest->config.name, "test");
		assert_string_equal(guest->config.uuid, DEFAULT_UUID);
		assert_string_equal(guest->config.type, "test");
		assert_false(guest->kvm);
		assert_int_equal(guest->state, WSS_GUEST_RUNNING);
		assert_int_equal(guest->process.pidfd, -1);
		wss_guest_free(guest);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_guest *guest = NULL;

		assert_int_equal(open_word(unknown[i], &guest, &err), -1);
		assert_error(&err, WSS_ERR_GONE, "no such domain");
		assert_null(guest);
	}
}

static virDomainPtr start_domain(const char *name, const char *uuid)
{
	wss_auto_free char *xml = NULL;
	virDomainPtr dom;

	assert_true(asprintf(&xml,
			     "<domain type='test'><name>%s</name><uuid>%s</uuid>"
			     "<memory>8388608</memory><os><type>hvm</type></os></domain>",
			     name, uuid) > 0);
	dom = virDomainCreateXML(conn->vir, xml, 0);
	assert_non_null(dom);
	return dom;
}

static void stop_domain(virDomainPtr dom)
{
	assert_int_equal(virDomainDestroy(dom), 0);
	virDomainFree(dom);
}

static void assert_uuid(const char *uuid)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_guest *guest = NULL;

	assert_int_equal(open_uuid(uuid, &guest, &err), 0);
	assert_string_equal(guest->config.uuid, uuid);
	wss_guest_free(guest);
}

static void assert_refused(const char *word, const char *uuid, const char *other)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn_entry entry;
	struct wss_guest *guest = NULL;

	assert_int_equal(open_word(word, &guest, &err), -1);
	assert_error(&err, WSS_ERR_AMBIGUOUS, "matches two domains");
	assert_error(&err, WSS_ERR_AMBIGUOUS, uuid);
	assert_error(&err, WSS_ERR_AMBIGUOUS, other);
	wss_error_clear(&err);
	assert_int_equal(read_element(word, &entry, &err), -1);
	assert_error(&err, WSS_ERR_AMBIGUOUS, "matches two domains");
}

/*
 * Domains named like the ID or UUID of another one can be opened, and are not mistaken for
 * that one.
 */
TEST(test_pretenders)
{
	virDomainPtr by_id = start_domain("1", UUID_A);
	virDomainPtr by_uuid = start_domain(DEFAULT_UUID, UUID_B);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn_domain *domains;
	struct wss_guest *guest;
	size_t n;

	assert_int_equal(wss_conn_list(conn, false, &domains, &n, NULL), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_uuid(domains[i].uuid);
	wss_conn_free_list(domains, n);
	assert_refused("1", DEFAULT_UUID, UUID_A);
	assert_refused(DEFAULT_UUID, DEFAULT_UUID, UUID_B);
	guest = open_guest(UUID_A);
	assert_string_equal(guest->config.name, "1");
	wss_guest_free(guest);

	/* A UUID that no domain has is not looked up as a name. */
	stop_domain(by_id);
	stop_domain(by_uuid);
	by_uuid = start_domain(UUID_A, UUID_B);
	assert_int_equal(open_uuid(UUID_A, &guest, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "no such domain");
	wss_error_clear(&err);
	assert_int_equal(wss_conn_set_metadata(conn, UUID_A, "urn:test", "t", "<t/>", &err), -1);
	assert_error(&err, WSS_ERR_GONE, "no such domain");
	assert_false(wss_conn_size(conn, UUID_A).assigned_bytes.known);
	/* A word that matches one domain in two ways is not ambiguous. */
	guest = open_guest(UUID_A);
	assert_string_equal(guest->config.uuid, UUID_B);
	wss_guest_free(guest);
	stop_domain(by_uuid);
	by_uuid = start_domain(UUID_B, UUID_B);
	guest = open_guest(UUID_B);
	assert_string_equal(guest->config.uuid, UUID_B);
	wss_guest_free(guest);
	stop_domain(by_uuid);
}

/* That driver runs no process on this host that could be measured. */
TEST(test_attach_refused)
{
	struct wss_host host = {.root = {.dirfd = -1}};
	struct wss_guest *guest = open_guest("test");
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_guest_check_ready(guest, &err), 0);
	assert_int_equal(wss_guest_attach(guest, &host, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "no QEMU");
	assert_int_equal(guest->process.pidfd, -1);
	wss_guest_free(guest);
}

/* What does not run but still has a QEMU, and with it its memory. */
TEST(test_held_states)
{
	static const int states[] = {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PMSUSPENDED, VIR_DOMAIN_CRASHED};
	struct wss_guest *guest = open_guest("test");
	struct wss_error err = WSS_ERROR_INIT;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		domain_state = states[i];
		assert_int_equal(wss_guest_check_ready(guest, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "not running");
		assert_int_equal(guest->state, WSS_GUEST_PAUSED);
		wss_error_clear(&err);
	}
	domain_state = 0;
	wss_guest_free(guest);
}

TEST(test_metadata)
{
	struct wss_guest *guest = open_guest("test");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn_entry none, entry, again;

	/* A missing element is not an error. */
	assert_int_equal(read_element("test", &none, &err), 0);
	assert_null(none.xml);
	assert_string_equal(none.name, "test");
	assert_string_equal(none.uuid, DEFAULT_UUID);
	if (guest->ops->publish(guest, "<profile version='1'><a>&lt;1</a></profile>", false, &err) <
	    0)
		fail_msg("%s", err.text);
	assert_int_equal(read_element("test", &entry, &err), 0);
	assert_non_null(entry.xml);
	assert_non_null(strstr(entry.xml, ">&lt;1</"));
	/* The next one replaces it. */
	assert_int_equal(guest->ops->publish(guest, "<profile version='2'/>", false, &err), 0);
	assert_int_equal(read_element(DEFAULT_UUID, &again, &err), 0);
	assert_null(strstr(again.xml, "&lt;1"));
	/* libvirt gets neither text that is not XML nor a prefix. */
	assert_int_equal(guest->ops->publish(guest, "<profile", false, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "metadata not written");
	assert_int_equal(guest->ops->publish(guest, "<profile wss:a='1'/>", false, &err), -1);
	assert_error(&err, WSS_ERR_FAILED,
		     "metadata not written: the element has namespace prefixes");
	wss_error_clear(&err);
	assert_int_equal(read_element("none", &none, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "no such domain");
	free(entry.xml);
	free(again.xml);
	wss_guest_free(guest);
}

TEST(test_counters)
{
	struct wss_guest *guest = open_guest("test");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_counts counts;
	uint64_t bytes;

	assert_int_equal(guest->ops->disk_reads(guest, &bytes, &err), -1);
	assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
	wss_error_clear(&err);
	assert_int_equal(guest->ops->kvm_counts(guest, &counts, &err), -1);
	assert_true(err.code == WSS_ERR_UNSUPPORTED || err.code == WSS_ERR_FAILED);
	wss_guest_free(guest);
}

TEST(test_cannot_connect)
{
	static const char *const uris[] = {
		"qemu+unix:///system?socket=/does/not/exist",
		"test:///does/not/exist.xml",
		"nosuch:///system",
		"not a URI",
	};

	for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_conn *none = NULL;

		assert_int_equal(wss_conn_open(uris[i], &none, &err), -1);
		assert_error(&err, WSS_ERR_CONNECT, NULL);
		assert_null(none);
	}
}

/* A user who may not write may read. */
TEST(test_reader)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn *reader = NULL;
	struct wss_conn_domain *domains = NULL;
	size_t n = 0;

	refuse_writing = true;
	assert_int_equal(wss_conn_open("test:///default", &reader, &err), -1);
	assert_int_equal(err.code, WSS_ERR_CONNECT);
	wss_error_clear(&err);
	assert_int_equal(wss_conn_open_reader("test:///default", &reader, &err), 0);
	assert_int_equal(err.code, WSS_OK);
	refuse_writing = false;
	assert_int_equal(wss_conn_list(reader, false, &domains, &n, NULL), 0);
	assert_int_equal(n, 1);
	wss_conn_free_list(domains, n);
	assert_int_equal(wss_conn_set_metadata(reader, DEFAULT_UUID, "urn:test", "t", "<t/>", &err),
			 -1);
	assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
	wss_conn_close(reader);
	/* If neither connection succeeds, the error is that of the first. */
	assert_int_equal(wss_conn_open_reader("nonsense:///", &reader, &err), -1);
	assert_int_equal(err.code, WSS_ERR_CONNECT);
}

static const char transient_xml[] =
	"<domain type='test'><name>transient</name><memory>8388608</memory>"
	"<os><type>hvm</type></os></domain>";

/* The error of a refresh once the domain is gone. */
static void assert_gone(struct wss_guest *guest)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(guest->ops->refresh(guest, &err), -1);
	assert_int_equal(err.code, WSS_ERR_GONE);
}

/* A transient domain disappears entirely; kept shows whether it was saved. */
TEST(test_gone)
{
	char *dir = make_tree(), path[PATH_MAX];
	struct wss_guest *guest;
	virDomainPtr dom;

	dom = virDomainCreateXML(conn->vir, transient_xml, 0);
	assert_non_null(dom);
	guest = open_guest("transient");
	assert_int_equal(virDomainSave(dom, make_path(path, "%s/saved", dir)), 0);
	/* The event that reports this arrives by itself. */
	do
		assert_gone(guest);
	while (!guest->kept);
	wss_guest_free(guest);
	virDomainFree(dom);

	dom = virDomainCreateXML(conn->vir, transient_xml, 0);
	assert_non_null(dom);
	guest = open_guest("transient");
	assert_int_equal(virDomainDestroy(dom), 0);
	while (!guest->ops->disturbed(guest).stopped)
		sched_yield();
	assert_gone(guest);
	assert_false(guest->kept);
	wss_guest_free(guest);
	virDomainFree(dom);
	remove_tree(dir);
}

static void assert_job(const char *job)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_guest *guest = open_guest("test");

	assert_string_equal(guest->job, job);
	assert_int_equal(wss_guest_check_ready(guest, &err), job[0] ? -1 : 0);
	if (job[0])
		assert_error(&err, WSS_ERR_BUSY, job);
	wss_guest_free(guest);
}

#define CHAINED "<disk><target dev='vda'/><backingStore><source/></backingStore></disk>"

/* Each job is known by its name, and libvirt is asked only about disks that may have one. */
TEST(test_jobs)
{
	jobs.disks =
		"<disk><target dev='vda'/></disk><disk><target dev='vdb'/><backingStore/></disk>";
	assert_job("");
	assert_int_equal(jobs.asked, 0);
	jobs.operation = VIR_DOMAIN_JOB_OPERATION_BACKUP;
	assert_job("backup");
	jobs.operation = VIR_DOMAIN_JOB_OPERATION_SNAPSHOT;
	assert_job("snapshot");
	jobs.operation = VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
	assert_job("migration");
	jobs.operation = 1000;
	assert_job("migration, save, dump or backup");
	jobs.operation = -1;
	jobs.disks = "<disk><target dev='vdb'/><mirror job='copy'/></disk>";
	assert_job("block copy of vdb");
	jobs.disks = "<disk><target dev='vdb'/><mirror job='active-commit'/></disk>";
	assert_job("block commit of vdb");
	assert_int_equal(jobs.asked, 0);
	jobs.disks = CHAINED;
	assert_job("");
	assert_true(jobs.asked > 0);
	jobs.disk = "vda";
	jobs.type = VIR_DOMAIN_BLOCK_JOB_TYPE_PULL;
	assert_job("block pull of vda");
	jobs.type = VIR_DOMAIN_BLOCK_JOB_TYPE_COMMIT;
	assert_job("block commit of vda");
	jobs.type = 1000;
	assert_job("block job of vda");
	/* The disk has been unplugged meanwhile. */
	jobs.fails = true;
	assert_job("");
	jobs.fails = false;
	jobs.disk = jobs.disks = NULL;
	assert_job("");
}

/* --- connections that are not used any more --- */

#define BURST 5

static uint64_t injected_ns;

static uint64_t injected_now_ns(void *unused)
{
	return injected_ns;
}

static void inject_clock(void)
{
	static const struct wss_clock_source source = {.now_ns = injected_now_ns};

	injected_ns = wss_clock_now_ns();
	wss_clock_inject(&source);
}

/* Calls about a domain at the same time, on connections of their own. */
static void call_at_once(struct wss_conn *of, virDomainPtr dom, int n)
{
	struct wss_conn_call calls[BURST];

	for (int i = 0; i < n; i++)
		assert_int_equal(wss_conn_call_begin(of, dom, NULL, "testing", &calls[i], NULL), 0);
	for (int i = 0; i < n; i++)
		wss_conn_call_end(&calls[i]);
}

TEST(test_side_connections_end_when_idle)
{
	struct wss_conn *of = NULL;
	virDomainPtr dom;
	int before;

	assert_int_equal(wss_conn_open("test:///default", &of, NULL), 0);
	of->sides = wss_conn_sides_new(false);
	dom = virDomainLookupByName(of->vir, "test");
	assert_non_null(dom);
	before = n_open;
	inject_clock();
	call_at_once(of, dom, 4);
	assert_int_equal(n_open, before + 4);
	injected_ns += 59 * WSS_NS_PER_S;
	call_at_once(of, dom, 2);
	assert_int_equal(n_open, before + 4);
	/* Two have been idle for a minute now. */
	injected_ns += 2 * WSS_NS_PER_S;
	call_at_once(of, dom, 1);
	assert_int_equal(n_open, before + 2);
	injected_ns += 61 * WSS_NS_PER_S;
	call_at_once(of, dom, 1);
	assert_int_equal(n_open, before + 1);
	call_at_once(of, dom, 3);
	assert_int_equal(n_open, before + 3);
	wss_clock_inject(NULL);
	virDomainFree(dom);
	wss_conn_close(of);
	assert_int_equal(n_open, before - 1);
}

/* Opens a guest by each of n leases at the same time. */
static void lease_at_once(struct wss_pool *pool, struct wss_hypervisor *other, int n)
{
	const struct wss_domain_ref ref = {.name = "test"};
	struct wss_hypervisor *leases[BURST];
	struct wss_guest *guests[BURST];

	for (int i = 0; i < n; i++) {
		assert_int_equal(wss_pool_lease(pool, other, &leases[i], NULL), 0);
		assert_int_equal(wss_hypervisor_guest(leases[i], &ref, NULL, &guests[i], NULL), 0);
	}
	for (int i = 0; i < n; i++) {
		wss_guest_free(guests[i]);
		wss_hypervisor_unref(leases[i]);
	}
}

TEST(test_pool_shrinks_after_a_burst)
{
	const struct wss_hypervisor_options options = {.uri = "test:///default"};
	struct wss_hypervisor *other = NULL;
	struct wss_pool *pool;
	int before;

	assert_int_equal(wss_hypervisor_open(&options, &other, NULL), 0);
	pool = wss_pool_new(&options);
	assert_non_null(pool);
	before = n_open;
	inject_clock();
	lease_at_once(pool, other, BURST);
	assert_int_equal(n_open, before + BURST);
	injected_ns += 59 * WSS_NS_PER_S;
	wss_pool_shrink(pool);
	assert_int_equal(n_open, before + BURST);
	lease_at_once(pool, other, 1);
	injected_ns += 2 * WSS_NS_PER_S;
	wss_pool_shrink(pool);
	assert_int_equal(n_open, before + 1);
	lease_at_once(pool, other, 2);
	assert_int_equal(n_open, before + 2);
	injected_ns += 61 * WSS_NS_PER_S;
	wss_pool_shrink(pool);
	assert_int_equal(n_open, before);
	wss_clock_inject(NULL);
	wss_pool_free(pool);
	wss_hypervisor_unref(other);
	assert_int_equal(n_open, before - 1);
}

static __typeof__(&virConnectGetCapabilities) real_capabilities;
static enum { SUCCEED, FAIL, LOSE_CONNECTION } capabilities;
static int n_capabilities;

static char *counted_capabilities(virConnectPtr vir)
{
	n_capabilities++;
	if (capabilities == FAIL) {
		/* Any error of libvirt's. */
		assert_null(virDomainLookupByName(vir, "none"));
		return NULL;
	}
	return real_capabilities(capabilities == SUCCEED ? vir : NULL);
}

/* Asks about a guest's host, and expects this failure. */
static void expect_locality(struct wss_conn *of, enum wss_error_code code, const char *part)
{
	struct wss_host host = {.name = "elsewhere",
				.uuid = "a1b2c3d4-0000-4000-8000-00000000aaaa"};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_conn_check_locality(of, &host, NULL, &err), -1);
	assert_error(&err, code, part);
}

/* libvirt may take seconds to fail: it is asked once for all guests, and again after a minute. */
TEST(test_failing_capabilities_are_asked_for_once)
{
	struct wss_conn *of = NULL;

	assert_int_equal(wss_conn_open("test:///default", &of, NULL), 0);
	of->uri.kind = WSS_URI_SYSTEM;
	inject_clock();
	/* A connection that is lost says nothing about the next one. */
	capabilities = LOSE_CONNECTION;
	expect_locality(of, WSS_ERR_CONNECT, "cannot read libvirt's capabilities");
	capabilities = FAIL;
	for (int i = 0; i < 5; i++)
		expect_locality(of, WSS_ERR_GONE,
				"cannot read libvirt's capabilities: Domain not found");
	assert_int_equal(n_capabilities, 2);
	injected_ns += 59 * WSS_NS_PER_S;
	expect_locality(of, WSS_ERR_GONE, "Domain not found");
	assert_int_equal(n_capabilities, 2);
	capabilities = SUCCEED;
	injected_ns += 2 * WSS_NS_PER_S;
	for (int i = 0; i < 5; i++)
		expect_locality(of, WSS_ERR_UNSUPPORTED, "");
	assert_int_equal(n_capabilities, 3);
	wss_conn_close(of);
	wss_clock_inject(NULL);
}

int main(void)
{
	divert(virConnectOpenAuth, refusing_open, &real_open);
	divert(virConnectOpen, counting_open, &real_open_side);
	divert(virConnectClose, counting_close, &real_close);
	divert(virConnectGetCapabilities, counted_capabilities, &real_capabilities);
	divert(virDomainGetState, state_of, &real_state);
	divert(virDomainGetXMLDesc, xml_with_disks, &real_xml);
	divert(virDomainGetJobInfo, job_info, &real_job_info);
	divert(virDomainGetJobStats, job_stats, &real_job_stats);
	divert(virDomainGetBlockJobInfo, block_job_info, &real_block_job);
	return tests_run_within(set_up, tear_down);
}
