/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

const char *wss_fault_text(void)
{
	const char *text = secure_getenv("VIRT_WSS_FAULT");

	return text && *text ? text : NULL;
}

bool wss_fault(const char *name)
{
	const char *text = wss_fault_text();
	size_t len = strlen(name);

	while (text && *text) {
		size_t item = strcspn(text, ",");

		if (item == len && !strncmp(text, name, len))
			return true;
		text += item + (text[item] == ',');
	}
	return false;
}

const char *wss_test_sysroot(void)
{
	const char *path = secure_getenv("VIRT_WSS_SYSROOT");

	return path && *path ? path : "/";
}
