/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "host/locality.h"

#define UUID_C "a1b2c3d4-0000-4000-8000-00000000cccc"

static struct wss_host host_of(const char *uuid, const char *machine_id, const char *name)
{
	struct wss_host host = {.root = {.dirfd = -1}};

	snprintf(host.uuid, sizeof(host.uuid), "%s", uuid);
	snprintf(host.machine_id, sizeof(host.machine_id), "%s", machine_id);
	snprintf(host.name, sizeof(host.name), "%s", name);
	return host;
}

static struct wss_uri uri_of(const char *text)
{
	struct wss_uri uri;

	assert_int_equal(wss_uri_parse(text, "/run/user/7", NULL, &uri, NULL), 0);
	return uri;
}

static bool is_local(const struct wss_host *host, const char *text, const char *their_uuid,
		     const char *their_name)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_uri uri = uri_of(text);

	if (wss_locality_check(host, &uri, their_uuid, their_name, &err) == 0)
		return true;
	assert_error(&err, WSS_ERR_UNSUPPORTED, NULL);
	return false;
}

/* If the host's firmware has a UUID, that is decisive. */
TEST(test_by_uuid)
{
	const struct wss_host host = host_of(UUID_A, UUID_B, "here");

	assert_true(is_local(&host, "qemu:///system", UUID_A, "here"));
	assert_true(
		is_local(&host, "qemu:///system", "A1B2C3D4-0000-4000-8000-00000000AAAA", NULL));
	/* libvirt was told to use /etc/machine-id. */
	assert_true(is_local(&host, "qemu:///system", UUID_B, NULL));
	/* A tunnel back to this host. */
	assert_true(is_local(&host, "qemu+ssh://here/system", UUID_A, "here"));
	assert_false(is_local(&host, "qemu+ssh://far/system", UUID_C, "far"));
	/* A forwarded socket, and a name that is the same by chance. */
	assert_false(is_local(&host, "qemu:///system", UUID_C, "here"));
	assert_false(is_local(&host, "qemu+unix:///system?socket=/tmp/s", UUID_C, "here"));
	assert_false(is_local(&host, "qemu:///system", NULL, "here"));
	assert_false(is_local(&host, "qemu:///session", UUID_C, "here"));
}

/* In a container, or on firmware without an identity, libvirt invents its UUID. */
TEST(test_without_uuid)
{
	const struct wss_host host = host_of("", UUID_B, "here.example.org");

	assert_true(is_local(&host, "qemu:///system", UUID_C, "here"));
	assert_true(is_local(&host, "qemu:///system", NULL, "HERE.example.org"));
	assert_true(is_local(&host, "qemu:///session", UUID_C, "here.other"));
	assert_false(is_local(&host, "qemu:///system", UUID_C, "her"));
	assert_false(is_local(&host, "qemu:///system", UUID_C, "hereabouts"));
	assert_false(is_local(&host, "qemu:///system", UUID_C, NULL));
	assert_false(is_local(&host, "qemu:///system", UUID_C, ""));
	/* A server, another socket or another transport is local only by its UUID. */
	assert_false(is_local(&host, "qemu+ssh://far/system", UUID_C, "here"));
	assert_false(is_local(&host, "qemu+ssh://far/system", NULL, "here"));
	assert_false(is_local(&host, "qemu://far/system", UUID_C, "here"));
	assert_true(is_local(&host, "qemu+ssh://far/system", UUID_B, "far"));
	assert_false(is_local(&host, "qemu+unix:///system?socket=/tmp/s", UUID_C, "here"));
	assert_false(is_local(&host, "qemu+ext:///system?command=x", UUID_C, "here"));
}

TEST(test_nothing_known)
{
	const struct wss_host host = host_of("", "", "");

	assert_false(is_local(&host, "qemu:///system", NULL, NULL));
	assert_false(is_local(&host, "qemu:///system", "", ""));
	assert_false(is_local(&host, "qemu:///system", NULL, ".x"));
	assert_false(is_local(&host, "qemu+ssh://far/system", "", NULL));
	/* The driver inside our own process. */
	assert_true(is_local(&host, "qemu:///embed?root=/srv", NULL, NULL));
}

TEST(test_other_drivers)
{
	const struct wss_host host = host_of(UUID_A, UUID_B, "here");

	assert_false(is_local(&host, "test:///default", UUID_A, "here"));
	assert_false(is_local(&host, "lxc:///system", UUID_A, "here"));
}

/* The message contains the UUID that is not ours. */
TEST(test_reason)
{
	struct wss_host host = host_of(UUID_A, "", "here");
	struct wss_uri uri = uri_of("qemu+ssh://far/system");
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_locality_check(&host, &uri, UUID_C, "far", &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, UUID_C);
	assert_int_equal(wss_locality_check(&host, &uri, NULL, NULL, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED,
		     "cannot tell whether the guests of this connection run on this host: libvirt");
	wss_error_clear(&err);
	/* Nor does what is missing on this host prove anything. */
	host.uuid[0] = '\0';
	assert_int_equal(wss_locality_check(&host, &uri, UUID_C, "far", &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "this host has no UUID that virt-wss can read");
}

int main(void)
{
	return tests_run();
}
