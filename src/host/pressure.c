/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/pressure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HOST_FILE "proc/pressure/memory"
#define CGROUP_FILE "memory.pressure"
#define FILE_MAX_BYTES 4096
/* Hundredths of a percent: the kernel prints two digits after the point, whatever the locale. */
#define FORMAT "%u.%2u "

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", then the same for "full". */
static bool pressure_parse(const char *text, enum wss_psi kind, double *ret_percent)
{
	const char *line = text;
	unsigned whole, hundredths;

	if (kind == WSS_PSI_FULL && (line = strchr(text, '\n')))
		line++;
	if (!line ||
	    sscanf(line, kind == WSS_PSI_FULL ? "full avg10=" FORMAT : "some avg10=" FORMAT, &whole,
		   &hundredths) != 2 ||
	    whole > 100)
		return false;
	*ret_percent = whole + hundredths / 100.0;
	return true;
}

int wss_pressure_read(const struct wss_root *root, const char *cgroup, enum wss_psi kind,
		      double *ret_percent, struct wss_error *err)
{
	wss_auto_free char *text = NULL;
	char path[PATH_MAX] = HOST_FILE;
	size_t len;
	int r;

	if (cgroup && snprintf(path, sizeof(path), "%s/" CGROUP_FILE, cgroup) >= (int)sizeof(path))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the path of its cgroup is too long");
	r = wss_root_read(root, path, FILE_MAX_BYTES, &text, &len);
	/* With psi=0 on the kernel's command line the file exists but cannot be opened (EOPNOTSUPP). */
	if (r == -ENOENT || r == -EOPNOTSUPP)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the kernel does not report it (PSI)");
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "/%s", path);
	if (!pressure_parse(text, kind, ret_percent))
		return wss_error_set(err, WSS_ERR_FAILED, "/%s: not as expected: %.40s", path,
				     text);
	return 0;
}
