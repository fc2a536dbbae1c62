/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/recorder-backend.h"

/* Replaces recorder-bpf.c if configure did not find its prerequisites. */

static const char *none_version(void)
{
	return "not built in: " WSS_WHY_NO_BPF;
}

static int none_probe(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "the BPF recorder is not built in (%s)",
			     WSS_WHY_NO_BPF);
}

const struct wss_recorder_backend_ops wss_recorder_backend_ops = {
	.version = none_version,
	.probe = none_probe,
};
