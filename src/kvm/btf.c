/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kvm/btf.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)

struct btf_file {
	char *data;
	struct btf_header header;
};

static void btf_file_free(struct btf_file *file)
{
	free(file->data);
}

/* Returns 0, or a negative errno. */
static int btf_file_read(const struct wss_root *root, const char *path, struct btf_file *file)
{
	const struct btf_header *header = &file->header;
	size_t size;
	int r = wss_root_read(root, path, FILE_MAX_BYTES, &file->data, &size);

	if (r < 0)
		return r;
	if (size < sizeof(*header))
		return -EINVAL;
	memcpy(&file->header, file->data, sizeof(*header));
	if (header->magic != BTF_MAGIC || header->hdr_len > size ||
	    header->type_off > size - header->hdr_len ||
	    header->type_len > size - header->hdr_len - header->type_off ||
	    header->str_off > size - header->hdr_len ||
	    header->str_len > size - header->hdr_len - header->str_off)
		return -EINVAL;
	return 0;
}

static bool write_all(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t done = write(fd, data, n);

		if (done < 0 && errno != EINTR)
			return false;
		if (done > 0) {
			data += done;
			n -= (size_t)done;
		}
	}
	return true;
}

static bool write_types(int fd, const struct btf_file *file)
{
	return write_all(fd, file->data + file->header.hdr_len + file->header.type_off,
			 file->header.type_len);
}

static bool write_strings(int fd, const struct btf_file *file)
{
	return write_all(fd, file->data + file->header.hdr_len + file->header.str_off,
			 file->header.str_len);
}

/* A module numbers its types and strings on from the kernel's (Documentation/bpf/btf.rst), so that one follows the other. */
static bool btf_write(int fd, const struct btf_file *kernel, const struct btf_file *module)
{
	struct btf_header header = {
		.magic = BTF_MAGIC,
		.version = kernel->header.version,
		.hdr_len = sizeof(header),
		.type_len = kernel->header.type_len + module->header.type_len,
		.str_off = kernel->header.type_len + module->header.type_len,
		.str_len = kernel->header.str_len + module->header.str_len,
	};

	return write_all(fd, (const char *)&header, sizeof(header)) && write_types(fd, kernel) &&
	       write_types(fd, module) && write_strings(fd, kernel) && write_strings(fd, module);
}

int wss_kvm_btf_join(struct wss_error *err)
{
	wss_cleanup(btf_file_free) struct btf_file kernel = {.data = NULL};
	wss_cleanup(btf_file_free) struct btf_file module = {.data = NULL};
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	wss_auto_close int fd = -1;
	int r;

	/* These are this kernel's, also in a test with an invented /sys. */
	if (wss_root_open("/", &root, err) < 0)
		return -1;
	r = btf_file_read(&root, "sys/kernel/btf/kvm", &module);
	if (r == -ENOENT)
		return -1;
	if (r == 0)
		r = btf_file_read(&root, "sys/kernel/btf/vmlinux", &kernel);
	if (r == 0 && ((fd = memfd_create("virt-wss-btf", MFD_CLOEXEC)) < 0 ||
		       !btf_write(fd, &kernel, &module)))
		r = -errno;
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_UNSUPPORTED, -r,
				       "cannot read the kernel's types in /sys/kernel/btf");
	return wss_steal_fd(&fd);
}
