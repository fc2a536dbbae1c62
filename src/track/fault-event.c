/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/fault-event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/privilege.h"

#define FORMAT_MAX 65536
#define FIELDS_MAX 8
#define FIELD_NAME_MAX 32

/* Copies the name at the end of a declaration such as "unsigned long guest_rip". */
static void field_name(const char *declaration, size_t len, char ret_name[FIELD_NAME_MAX])
{
	size_t start = len;

	while (start > 0 && declaration[start - 1] != ' ' && declaration[start - 1] != '\t')
		start--;
	snprintf(ret_name, FIELD_NAME_MAX, "%.*s", (int)(len - start), declaration + start);
}

/* Lists the tracepoint's own fields in order, without those common to all tracepoints. */
static size_t read_fields(const char *format, char ret_names[FIELDS_MAX][FIELD_NAME_MAX])
{
	size_t n = 0;

	while (n < FIELDS_MAX && (format = strstr(format, "field:"))) {
		size_t len;

		format += strlen("field:");
		len = strcspn(format, ";\n");
		field_name(format, len, ret_names[n]);
		if (strncmp(ret_names[n], "common_", 7) != 0)
			n++;
	}
	return n;
}

int wss_fault_event_parse(const char *format, struct wss_fault_event *ret_event,
			  struct wss_error *err)
{
	static const struct {
		const char *fields;
		struct wss_fault_event event;
	} known[] = {
		{"vcpu_id guest_rip fault_address error_code", {1, 2}},
		{"fault_address error_code", {0, 1}},
	};
	char names[FIELDS_MAX][FIELD_NAME_MAX], fields[FIELDS_MAX * FIELD_NAME_MAX] = "";
	size_t n = read_fields(format, names), len = 0;

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(fields + len, sizeof(fields) - len, "%s%s", i ? " " : "",
					names[i]);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(fields, known[i].fields)) {
			*ret_event = known[i].event;
			return 0;
		}
	}
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"this kernel's tracepoint kvm_page_fault has unknown fields: %.120s", fields);
}

int wss_fault_event_read(const struct wss_root *root, struct wss_fault_event *ret_event,
			 struct wss_error *err)
{
	static const char *const places[] = {"sys/kernel/tracing", "sys/kernel/debug/tracing"};
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		wss_auto_free char *text = NULL;
		char path[96];

		snprintf(path, sizeof(path), "%s/events/kvm/kvm_page_fault/format", places[i]);
		r = wss_root_read(root, path, FORMAT_MAX, &text, NULL);
		if (r == 0)
			return wss_fault_event_parse(text, ret_event, err);
		if (r == -ENOMEM)
			break;
	}
	return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -r, WSS_CAPS_FILE,
				   "cannot read the format of the tracepoint kvm_page_fault in tracefs");
}
