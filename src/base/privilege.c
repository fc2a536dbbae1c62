/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/privilege.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	uint64_t capability;
	const char *name;
} names[] = {
	{WSS_CAP(CAP_SYS_PTRACE), "CAP_SYS_PTRACE"},
	{WSS_CAP(CAP_DAC_OVERRIDE), "CAP_DAC_OVERRIDE"},
	{WSS_CAP(CAP_KILL), "CAP_KILL"},
	{WSS_CAP(CAP_BPF), "CAP_BPF"},
	{WSS_CAP(CAP_PERFMON), "CAP_PERFMON"},
};

/* Returns the effective capabilities of this thread. With libcap-ng, all that links base/ would depend on it. */
static uint64_t effective(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, sets) < 0)
		return 0;
	return (uint64_t)sets[1].effective << 32 | sets[0].effective;
}

bool wss_privilege_has(uint64_t needed)
{
	return !(needed & ~effective());
}

/* Formats "CAP_X and CAP_Y". */
static void names_format(uint64_t capabilities, char *ret_text, size_t size)
{
	size_t len = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (capabilities & names[i].capability)
			len += (size_t)snprintf(ret_text + len, size - len, "%s%s",
						len ? " and " : "", names[i].name);
}

static void advise(uint64_t needed, char *ret_text, size_t size)
{
	uint64_t lacks = needed & ~effective();
	char list[160];

	names_format(lacks ? lacks : needed, list, sizeof(list));
	if (!lacks)
		snprintf(
			ret_text, size,
			" although virt-wss has %s: a security module, a lockdown of the kernel or a user namespace "
			"forbids it",
			list);
	else if (geteuid() != 0)
		snprintf(ret_text, size, ": run virt-wss as root; this user lacks %s", list);
	else
		snprintf(
			ret_text, size,
			": give virt-wss %s, which it lacks (CapabilityBoundingSet= of its unit, or the options of its "
			"container)",
			list);
}

int wss_privilege_errno(struct wss_error *err, enum wss_error_code code, int errnum,
			uint64_t needed, const char *fmt, ...)
{
	bool denied = errnum == EACCES || errnum == EPERM;
	char what[256], advice[300] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (!denied)
		return wss_error_errno(err, code, errnum, "%s", what);
	advise(needed, advice, sizeof(advice));
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "%s: %s%s", what, strerror(errnum), advice);
}
