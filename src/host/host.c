/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

static enum wss_tristate read_module_switch(const struct wss_root *root, const char *path)
{
	char line[16];

	if (wss_root_read_line(root, path, line, sizeof(line)) < 0)
		return WSS_UNKNOWN;
	return line[0] == 'Y' || line[0] == 'y' || line[0] == '1' ? WSS_YES : WSS_NO;
}

/* Whether KVM maps guests by a second dimension of page tables in hardware, or shadows the guests' own. */
static void probe_paging(struct wss_host *host)
{
	wss_auto_dir DIR *kvm_pvm = NULL;

	host->two_dim_paging =
		read_module_switch(&host->root, "sys/module/kvm_intel/parameters/ept");
	host->ept = host->two_dim_paging == WSS_YES;
	if (host->two_dim_paging == WSS_UNKNOWN)
		host->two_dim_paging =
			read_module_switch(&host->root, "sys/module/kvm_amd/parameters/npt");
	/* KVM without hardware virtualisation. */
	if (host->two_dim_paging == WSS_UNKNOWN &&
	    wss_root_opendir(&host->root, "sys/module/kvm_pvm", &kvm_pvm) == 0)
		host->two_dim_paging = WSS_NO;
}

/*
 * A kernel with soft-dirty tracking marks every new mapping "sd" (fs/proc/task_mmu.c,
 * show_smap_vma_flags); one without it never does.
 */
static enum wss_tristate probe_soft_dirty(const struct wss_root *root)
{
	wss_auto_file FILE *f = NULL;
	wss_auto_free char *line = NULL;
	enum wss_tristate found = WSS_UNKNOWN;
	size_t size = 0;

	if (wss_root_fopen(root, "proc/self/smaps", &f) < 0)
		return WSS_UNKNOWN;
	while (getline(&line, &size, f) > 0) {
		if (strncmp(line, "VmFlags:", 8))
			continue;
		if (strstr(line, " sd"))
			return WSS_YES;
		found = WSS_NO;
	}
	/* A truncated read proves nothing. */
	return feof(f) ? found : WSS_UNKNOWN;
}

/*
 * Formats 32 hex digits, with or without dashes, as a UUID in lower case. Refuses repetitions
 * of a single digit, which identify nothing.
 */
static void host_normalize_uuid(const char *text, char ret_uuid[37])
{
	char digits[33];
	size_t n = 0;

	ret_uuid[0] = '\0';
	for (; *text; text++) {
		if (*text == '-')
			continue;
		if (!isxdigit((unsigned char)*text) || n == 32)
			return;
		digits[n++] = (char)tolower((unsigned char)*text);
	}
	if (n != 32)
		return;
	digits[n] = '\0';
	if (strspn(digits, (char[]){digits[0], '\0'}) == 32)
		return;
	snprintf(ret_uuid, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
		 digits + 16, digits + 20);
}

static void read_uuid(const struct wss_root *root, const char *path, char ret_uuid[37])
{
	char line[64];

	ret_uuid[0] = '\0';
	if (wss_root_read_line(root, path, line, sizeof(line)) == 0)
		host_normalize_uuid(line, ret_uuid);
}

int wss_host_open(const char *sysroot, struct wss_host *ret_host, struct wss_error *err)
{
	struct wss_host host = {.root = {.dirfd = -1}};
	wss_auto_dir DIR *debugfs = NULL;
	unsigned major, minor;

	if (wss_root_open(sysroot, &host.root, err) < 0)
		return -1;
	wss_root_read_line(&host.root, "proc/sys/kernel/osrelease", host.release,
			   sizeof(host.release));
	wss_root_read_line(&host.root, "proc/sys/kernel/hostname", host.name, sizeof(host.name));
	if (sscanf(host.release, "%u.%u", &major, &minor) == 2 && major < 1000 && minor < 1000)
		host.version = WSS_KERNEL_VERSION(major, minor);
	host.soft_dirty = probe_soft_dirty(&host.root);
	host.tdp_mmu = read_module_switch(&host.root, "sys/module/kvm/parameters/tdp_mmu");
	probe_paging(&host);
	host.kvm_debugfs = wss_root_opendir(&host.root, "sys/kernel/debug/kvm", &debugfs) == 0;
	host.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	/* A table of entries of 8 bytes fills a page. */
	if (wss_root_read_u64(&host.root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
			      &host.huge_page_bytes) < 0 ||
	    host.huge_page_bytes < host.page_bytes)
		host.huge_page_bytes = host.page_bytes / 8 * host.page_bytes;
	read_uuid(&host.root, "sys/class/dmi/id/product_uuid", host.uuid);
	read_uuid(&host.root, "etc/machine-id", host.machine_id);
	*ret_host = host;
	return 0;
}

int wss_host_copy(const struct wss_host *host, struct wss_host *ret_copy, struct wss_error *err)
{
	int fd = fcntl(host->root.dirfd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot open the host again");
	*ret_copy = *host;
	ret_copy->root.dirfd = fd;
	return 0;
}

void wss_host_close(struct wss_host *host)
{
	wss_root_close(&host->root);
}

void wss_host_boot_id(const char *sysroot, char ret_id[WSS_HOST_BOOT_ID_MAX])
{
	struct wss_root root = {.dirfd = -1};

	if (wss_root_open(sysroot, &root, NULL) < 0 ||
	    wss_root_read_line(&root, "proc/sys/kernel/random/boot_id", ret_id,
			       WSS_HOST_BOOT_ID_MAX) < 0)
		ret_id[0] = '\0';
	wss_root_close(&root);
}

struct wss_amount wss_host_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || size <= 0)
		return (struct wss_amount){.known = false};
	return wss_amount_of(wss_u64_mul((uint64_t)pages, (uint64_t)size));
}
