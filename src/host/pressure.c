/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "proc/pressure/memory"
/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", then the same for "full". */
#define START "some avg10="
/* Hundredths of a percent: the kernel prints two digits after the point, whatever the locale. */
#define FORMAT START "%u.%2u "

int wss_pressure_read(const struct wss_root *root, double *ret_percent, struct wss_error *err)
{
	unsigned whole, hundredths;
	char line[128];
	int r = wss_root_read_line(root, FILE_NAME, line, sizeof(line));

	/* With psi=0 on the kernel's command line the file exists but cannot be opened (EOPNOTSUPP). */
	if (r == -ENOENT || r == -EOPNOTSUPP)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "the kernel does not report it (PSI)");
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "/" FILE_NAME);
	if (sscanf(line, FORMAT, &whole, &hundredths) != 2 || whole > 100)
		return wss_error_set(err, WSS_ERR_FAILED, "/" FILE_NAME ": not as expected: %.40s",
				     line);
	*ret_percent = whole + hundredths / 100.0;
	return 0;
}
