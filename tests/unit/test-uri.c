/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "host/uri.h"

static struct wss_uri parsed(const char *text)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_uri uri;

	if (wss_uri_parse(text, "/run/user/7", "/home/u/.cache", &uri, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return uri;
}

TEST(test_kinds)
{
	static const struct {
		const char *text;
		enum wss_uri_kind kind;
		bool has_server;
		bool own_socket;
		const char *run_dir;
	} table[] = {
		{"qemu:///system", WSS_URI_SYSTEM, false, false, "/run/libvirt/qemu"},
		{"qemu+unix:///system", WSS_URI_SYSTEM, false, false, "/run/libvirt/qemu"},
		{"qemu:///system?no_verify=1", WSS_URI_SYSTEM, false, false, "/run/libvirt/qemu"},
		{"qemu+ssh://root@far/system", WSS_URI_SYSTEM, true, true, "/run/libvirt/qemu"},
		{"qemu://far/system", WSS_URI_SYSTEM, true, false, "/run/libvirt/qemu"},
		/* No server, but not libvirt's own socket either. */
		{"qemu+ext:///system?command=x", WSS_URI_SYSTEM, false, true, "/run/libvirt/qemu"},
		{"qemu+ssh:///system", WSS_URI_SYSTEM, false, true, "/run/libvirt/qemu"},
		{"qemu+unix:///system?socket=/tmp/s", WSS_URI_SYSTEM, false, true,
		 "/run/libvirt/qemu"},
		{"qemu+unix:///system?a=b&socket=/tmp/s", WSS_URI_SYSTEM, false, true,
		 "/run/libvirt/qemu"},
		{"qemu+unix:///system?mysocket=/tmp/s", WSS_URI_SYSTEM, false, false,
		 "/run/libvirt/qemu"},
		{"qemu:///session", WSS_URI_SESSION, false, false, "/run/user/7/libvirt/qemu/run"},
		{"qemu:///embed?root=/srv/x", WSS_URI_EMBED, false, false, "/srv/x/run/qemu"},
		{"qemu:///embed?a=b&root=/srv/a%20b", WSS_URI_EMBED, false, false,
		 "/srv/a b/run/qemu"},
		{"qemu:///embed?root=/srv/x&a=b", WSS_URI_EMBED, false, false, "/srv/x/run/qemu"},
		{"qemu:///systems", WSS_URI_OTHER, false, false, ""},
		{"qemu:///", WSS_URI_OTHER, false, false, ""},
		{"qemux:///system", WSS_URI_OTHER, false, false, ""},
		{"test:///default", WSS_URI_OTHER, false, false, ""},
		{"test+unix:///default", WSS_URI_OTHER, false, false, ""},
		{"lxc:///system", WSS_URI_OTHER, false, false, ""},
		{"xen+ssh://far/system", WSS_URI_OTHER, true, true, ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_uri uri = parsed(table[i].text);

		if (uri.kind != table[i].kind || uri.has_server != table[i].has_server ||
		    uri.own_socket != table[i].own_socket ||
		    strcmp(uri.run_dir, table[i].run_dir) != 0)
			fail_msg("%s: kind %d, server %d, own socket %d, '%s'", table[i].text,
				 (int)uri.kind, uri.has_server, uri.own_socket, uri.run_dir);
	}
}

TEST(test_session_dirs)
{
	struct wss_uri uri;
	char longer[2000];

	assert_int_equal(wss_uri_parse("qemu:///session", NULL, "/home/u/.cache", &uri, NULL), 0);
	assert_string_equal(uri.run_dir, "/home/u/.cache/libvirt/qemu/run");
	assert_int_equal(wss_uri_parse("qemu:///session", NULL, NULL, &uri, NULL), 0);
	assert_string_equal(uri.run_dir, "");
	/* A directory that does not fit is unknown, not truncated. */
	memset(longer, 'd', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(wss_uri_parse("qemu:///session", longer, NULL, &uri, NULL), 0);
	assert_string_equal(uri.run_dir, "");
}

TEST(test_malformed)
{
	static const char *const bad[] = {
		"",
		"qemu",
		"/system",
		"qemu:system",
		"qemu:///embed",
		"qemu:///embed?root=",
		"qemu:///embed?root",
		"qemu:///embed?root=relative",
		"qemu:///embed?root=/a%00b",
		"qemu:///embed?boot=/a",
	};
	struct wss_uri uri = {.kind = WSS_URI_SYSTEM};
	char longer[3000] = "qemu:///embed?root=/";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_uri_parse(bad[i], NULL, NULL, &uri, &err) == 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_error(&err, WSS_ERR_FAILED, NULL);
	}
	memset(longer + strlen(longer), 'x', sizeof(longer) - strlen(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(wss_uri_parse(longer, NULL, NULL, &uri, NULL), -1);
	assert_int_equal(uri.kind, WSS_URI_SYSTEM);
	/* Incomplete escapes at the end are taken literally. */
	assert_string_equal(parsed("qemu:///embed?root=/a%2").run_dir, "/a%2/run/qemu");
	assert_string_equal(parsed("qemu:///embed?root=/a%").run_dir, "/a%/run/qemu");
	assert_string_equal(parsed("qemu:///embed?root=/a%zz").run_dir, "/a%zz/run/qemu");
}

int main(void)
{
	return tests_run();
}
