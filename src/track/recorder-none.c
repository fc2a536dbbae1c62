/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/recorder-backend.h"

/* In the place of recorder-bpf.c where configure did not find what that needs. */

const char *wss_recorder_backend_version(void)
{
	return "not built in: " WSS_WHY_NO_BPF;
}

int wss_recorder_backend_probe(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "the BPF recorder is not built in (%s)",
			     WSS_WHY_NO_BPF);
}

int wss_recorder_backend_open(const struct wss_recorder_plan *plan,
			      struct wss_recorder_backend **ret_backend,
			      struct wss_recorder_state *ret_state, struct wss_error *err)
{
	(void)plan;
	(void)ret_backend;
	(void)ret_state;
	return wss_recorder_backend_probe(err);
}

int wss_recorder_backend_start(struct wss_recorder_backend *backend, struct wss_error *err)
{
	(void)backend;
	return wss_recorder_backend_probe(err);
}

uint64_t wss_recorder_backend_missed(const struct wss_recorder_backend *backend)
{
	(void)backend;
	return 0;
}

void wss_recorder_backend_stop(struct wss_recorder_backend *backend)
{
	(void)backend;
}

void wss_recorder_backend_close(struct wss_recorder_backend *backend)
{
	(void)backend;
}
