/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's types together with those of its module kvm, in one file for libbpf. libbpf itself asks the kernel
 * for modules' types, which needs CAP_SYS_ADMIN; files in /sys/kernel/btf need no right at all.
 */
#pragma once

#include "base/error.h"

/*
 * Returns a descriptor of an unlinked file with both, which the caller closes; -1 with err untouched if kvm is built
 * into the kernel, so that the kernel's types are all, or with err set if the files cannot be read.
 */
int wss_kvm_btf_join(struct wss_error *err);
