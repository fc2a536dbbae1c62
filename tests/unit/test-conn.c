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
		assert_int_equal(wss_conn_call_begin(of, dom, WSS_CALL_NEEDS_QEMU, NULL, "testing",
						     &calls[i], NULL),
				 0);
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

/* --- calls that hang --- */

/* Time passes with each wait. */
static void passing_sleep(void *unused, uint64_t when_ns)
{
	injected_ns = when_ns > injected_ns ? when_ns : injected_ns;
}

static bool passing_wait(void *unused, pthread_cond_t *cond, pthread_mutex_t *lock,
			 uint64_t timeout_ns)
{
	injected_ns += timeout_ns;
	return false;
}

static void inject_passing_clock(void)
{
	static const struct wss_clock_source source = {
		.now_ns = injected_now_ns, .sleep_until_ns = passing_sleep, .wait = passing_wait};

	injected_ns = wss_clock_now_ns();
	wss_clock_inject(&source);
}

/* A libvirtd has few threads for all its clients. */
static struct wss_conn *open_limited(void)
{
	struct wss_conn *of = NULL;

	assert_int_equal(wss_conn_open("test:///default", &of, NULL), 0);
	wss_conn_calls_unref(of->calls);
	of->calls = wss_conn_calls_new(true);
	assert_non_null(of->calls);
	return of;
}

static virDomainPtr make_domain(struct wss_conn *of, int number)
{
	char xml[256];
	virDomainPtr dom;

	snprintf(xml, sizeof(xml),
		 "<domain type='test'><name>made%d</name>"
		 "<uuid>a1b2c3d4-0000-4000-8000-00000000%04d</uuid>"
		 "<memory>4096</memory><os><type>hvm</type></os></domain>",
		 number, number);
	dom = virDomainCreateXML(of->vir, xml, 0);
	assert_non_null(dom);
	return dom;
}

static int begin_call(struct wss_conn *of, virDomainPtr dom, uint64_t allowed_ns,
		      struct wss_conn_call *ret_call, struct wss_error *err)
{
	struct wss_deadline deadline = {.cancel = NULL};

	wss_error_clear(err);
	wss_deadline_allow(&deadline, allowed_ns);
	wss_deadline_run(&deadline, 0);
	return wss_conn_call_begin(of, dom, WSS_CALL_NEEDS_QEMU, &deadline, "testing", ret_call,
				   err);
}

/* Each guest has a connection of its own when the service measures it, and another one at its next visit. */
TEST(test_guest_that_hangs_gets_no_second_call_on_any_connection)
{
	struct wss_conn_shared *shared = wss_conn_shared_new();
	struct wss_conn_call hanging, other;
	struct wss_conn *ofs[2] = {NULL, NULL};
	struct wss_error err = WSS_ERROR_INIT;
	virDomainPtr doms[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(wss_conn_open("test:///default", &ofs[i], NULL), 0);
		wss_conn_share(ofs[i], shared);
		doms[i] = virDomainLookupByName(ofs[i]->vir, "test");
		assert_non_null(doms[i]);
	}
	inject_passing_clock();
	assert_int_equal(begin_call(ofs[0], doms[0], 30 * WSS_NS_PER_S, &hanging, &err), 0);
	/* It may only be slow. */
	injected_ns += 4 * WSS_NS_PER_S;
	assert_int_equal(begin_call(ofs[1], doms[1], 30 * WSS_NS_PER_S, &other, &err), 0);
	wss_conn_call_end(&other);
	injected_ns += 30 * WSS_NS_PER_S;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(begin_call(ofs[1], doms[1], 30 * WSS_NS_PER_S, &other, &err), -1);
		assert_error(&err, WSS_ERR_TIMEOUT, "its QEMU has not answered libvirt for 34.0 s");
	}
	wss_conn_call_end(&hanging);
	assert_int_equal(begin_call(ofs[1], doms[1], 30 * WSS_NS_PER_S, &other, &err), 0);
	wss_conn_call_end(&other);
	wss_clock_inject(NULL);
	for (int i = 0; i < 2; i++) {
		virDomainFree(doms[i]);
		wss_conn_close(ofs[i]);
	}
	wss_conn_shared_unref(shared);
}

#define HUNG 20

/* Of twenty guests that hang few are called, and those that have answered before are called all the same. */
TEST(test_guests_that_hang_keep_none_waiting_that_answers)
{
	struct wss_conn *of = open_limited();
	virDomainPtr healthy = virDomainLookupByName(of->vir, "test"), hung[HUNG];
	struct wss_conn_call calls[HUNG], call;
	struct wss_error err = WSS_ERROR_INIT;
	int n = 0;

	inject_passing_clock();
	for (int i = 0; i < HUNG; i++)
		hung[i] = make_domain(of, i);
	assert_int_equal(begin_call(of, healthy, 30 * WSS_NS_PER_S, &call, &err), 0);
	wss_conn_call_end(&call);
	for (int i = 0; i < HUNG; i++) {
		if (begin_call(of, hung[i], 30 * WSS_NS_PER_S, &calls[n], &err) == 0)
			n++;
		else
			assert_error(
				&err, WSS_ERR_TIMEOUT,
				"while waiting for libvirt, whose calls about other guests hang");
	}
	assert_int_equal(n, 12);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(begin_call(of, healthy, 30 * WSS_NS_PER_S, &call, &err), 0);
		wss_conn_call_end(&call);
	}
	/* One that has hung is as unknown as the others. */
	wss_conn_call_end(&calls[--n]);
	assert_int_equal(begin_call(of, hung[HUNG - 1], 30 * WSS_NS_PER_S, &calls[n++], &err), 0);
	assert_int_equal(begin_call(of, hung[11], 30 * WSS_NS_PER_S, &call, &err), -1);
	/* Without a deadline none waits: it is made where it keeps others waiting, which not every caller wants. */
	assert_int_equal(wss_conn_call_begin(of, hung[11], WSS_CALL_NEEDS_TURN, NULL, "testing",
					     &call, &err),
			 0);
	assert_true(call.in_the_way);
	wss_conn_call_end(&call);
	while (n > 0)
		wss_conn_call_end(&calls[--n]);
	wss_clock_inject(NULL);
	for (int i = 0; i < HUNG; i++) {
		virDomainDestroy(hung[i]);
		virDomainFree(hung[i]);
	}
	virDomainFree(healthy);
	wss_conn_close(of);
}

static __typeof__(&virDomainGetControlInfo) real_control;
static virDomainControlInfo control; /* state 0: the driver's */
static int n_control;

static int control_info(virDomainPtr dom, virDomainControlInfoPtr info, unsigned flags)
{
	n_control++;
	*info = control;
	return control.state ? 0 : real_control(dom, info, flags);
}

TEST(test_guest_about_which_the_call_of_another_program_hangs_gets_none)
{
	struct wss_conn *of = open_limited();
	virDomainPtr dom = virDomainLookupByName(of->vir, "test");
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn_call call;

	control = (virDomainControlInfo){.state = VIR_DOMAIN_CONTROL_OCCUPIED, .stateTime = 61000};
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), -1);
	assert_error(&err, WSS_ERR_TIMEOUT, "its QEMU has not answered libvirt for 61.0 s");
	/* The other program has only just asked, or has a job that needs no answer of QEMU's. */
	control.stateTime = 1000;
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	wss_conn_call_end(&call);
	/* It has answered, so libvirt is not asked again, unless it hangs. */
	n_control = 0;
	control = (virDomainControlInfo){.state = VIR_DOMAIN_CONTROL_JOB, .stateTime = 61000};
	inject_passing_clock();
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	assert_int_equal(n_control, 0);
	injected_ns += 31 * WSS_NS_PER_S;
	wss_conn_call_end(&call);
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	assert_int_equal(n_control, 1);
	wss_conn_call_end(&call);
	wss_clock_inject(NULL);
	control.state = 0;
	virDomainFree(dom);
	wss_conn_close(of);
}

/* Makes libvirt's files for a domain whose process is the child. */
static struct wss_conn *open_with_process(const char *tree, pid_t pid)
{
	struct wss_conn *of = NULL;
	char path[PATH_MAX], text[32];

	assert_int_equal(wss_conn_open("test:///default", &of, NULL), 0);
	put_text(tree, "run/test.pid", make_path(text, "%d", pid));
	assert_int_equal(symlink("/proc", make_path(path, "%s/proc", tree)), 0);
	assert_int_equal(setenv("VIRT_WSS_SYSROOT", tree, 1), 0);
	of->qemu_driver = true;
	of->uri.kind = WSS_URI_SYSTEM;
	strcpy(of->uri.run_dir, "/run");
	return of;
}

TEST(test_qemu_that_is_stopped_is_not_called)
{
	char *tree = make_tree(), path[PATH_MAX], pid_text[64];
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn_call call;
	struct wss_guest *guest;
	struct wss_conn *of;
	virDomainPtr dom;
	pid_t pid;

	copy_self(tree, "qemu-system-test");
	pid = start_qemu(make_path(path, "%s/qemu-system-test", tree), DEFAULT_UUID, NULL);
	of = open_with_process(tree, pid);
	dom = virDomainLookupByName(of->vir, "test");
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	wss_conn_call_end(&call);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	snprintf(pid_text, sizeof(pid_text), "stopped by a signal (SIGSTOP): kill -CONT %d ", pid);
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), -1);
	assert_error(&err, WSS_ERR_STOPPED, pid_text);
	wss_error_clear(&err);
	assert_int_equal(
		wss_conn_guest(of, &(struct wss_domain_ref){.name = "test"}, NULL, &guest, &err),
		-1);
	assert_error(&err, WSS_ERR_STOPPED, pid_text);
	/* A policy can be written all the same, and memory given back. */
	assert_int_equal(
		wss_conn_call_begin(of, dom, WSS_CALL_NEEDS_TURN, NULL, "testing", &call, &err), 0);
	wss_conn_call_end(&call);
	/* libvirt runs elsewhere: the process is that of another guest. */
	of->uri.has_server = true;
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	wss_conn_call_end(&call);
	of->uri.has_server = false;
	kill(pid, SIGCONT);
	waitpid(pid, NULL, WCONTINUED);
	assert_int_equal(begin_call(of, dom, 30 * WSS_NS_PER_S, &call, &err), 0);
	wss_conn_call_end(&call);
	end_child(pid);
	virDomainFree(dom);
	wss_conn_close(of);
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
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

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], PLAY_QEMU))
		return play_qemu();
	divert(virConnectOpenAuth, refusing_open, &real_open);
	divert(virConnectOpen, counting_open, &real_open_side);
	divert(virConnectClose, counting_close, &real_close);
	divert(virConnectGetCapabilities, counted_capabilities, &real_capabilities);
	divert(virDomainGetControlInfo, control_info, &real_control);
	divert(virDomainGetState, state_of, &real_state);
	divert(virDomainGetXMLDesc, xml_with_disks, &real_xml);
	divert(virDomainGetJobInfo, job_info, &real_job_info);
	divert(virDomainGetJobStats, job_stats, &real_job_stats);
	divert(virDomainGetBlockJobInfo, block_job_info, &real_block_job);
	return tests_run_within(set_up, tear_down);
}
