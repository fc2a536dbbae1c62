/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints what virt-wss reads from the inputs of libvirt's tests, for tests/shell/libvirt-inputs.bats:
 *
 *	guest-facts xml|status|replies|models <NAMES
 *
 * A line for each name on stdin, of a file or (models) of a device of QEMU: the name, then pairs of key=value or
 * "error TEXT", separated by tabs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "host/devices.h"
#include "host/domxml.h"
#include "qmp/jsonline.h"

static void print_xml(const char *text, struct wss_error *err)
{
	struct wss_domxml dom;

	if (wss_domxml_parse(text, &dom, err) < 0)
		return;
	printf("uuid=%s\tlocked=%d\tpinned=%d\tballoon=%d", dom.uuid, dom.locked, dom.hostdevs > 0,
	       dom.has_balloon);
}

static void print_status(const char *text, struct wss_error *err)
{
	char uuid[WSS_UUID_TEXT_MAX];
	int pid;

	if (wss_domxml_parse_status(text, &pid, uuid, err) == 0)
		printf("pid=%d\tuuid=%s", pid, uuid);
}

/* A file of replies has JSON objects, with empty lines between them. */
static void print_replies(char *text, struct wss_error *err)
{
	const struct qmp_limits limits = QMP_LIMITS_DEFAULT;
	unsigned n = 0;

	for (char *at = text, *next; at; at = next, n++) {
		qmp_auto_json struct json_object *object = NULL;

		next = strstr(at, "\n\n");
		if (next)
			*next++ = '\0';
		if (qmp_json_parse(at, strlen(at), &limits, &object, NULL, err) < 0) {
			wss_error_prefix(err, "object %u", n);
			return;
		}
	}
	printf("objects=%u", n);
}

static void print_model(const char *name)
{
	const char *hazard = wss_device_model_hazard(name);

	printf("hazard=%s", hazard ? hazard : "");
}

int main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		struct wss_error err = WSS_ERROR_INIT;
		wss_auto_free char *text = NULL;
		size_t len;

		line[strcspn(line, "\n")] = '\0';
		printf("%s\t", line);
		if (!strcmp(mode, "models"))
			print_model(line);
		else if (wss_file_read(line, 64 << 20, &text, &len, &err) < 0)
			return fprintf(stderr, "%s\n", err.text), 1;
		else if (!strcmp(mode, "xml"))
			print_xml(text, &err);
		else if (!strcmp(mode, "status"))
			print_status(text, &err);
		else if (!strcmp(mode, "replies"))
			print_replies(text, &err);
		else
			return 2;
		printf("%s%s\n", err.code ? "error " : "", err.code ? err.text : "");
	}
	free(line);
	return 0;
}
