/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorder backend whose records come from the test. It is the backend of every program that
 * includes this file.
 */
#ifndef TESTS_UNIT_FAKERECORDER_H
#define TESTS_UNIT_FAKERECORDER_H

#include "hosttest.h"

#include "track/recorder-backend.h"

#define FAKE_WORDS 64

static struct fake_recorder {
	bool probe_fails, open_fails, start_fails;
	bool opened, attached;
	unsigned opens, starts;
	struct wss_recorder_plan plan; /* of the last open */
	uint64_t origin_ns, ram_faults, outside_faults, written_pages, missed;
	uint64_t first_touches[WSS_TOUCH_BUCKETS];
	uint64_t touched[FAKE_WORDS], written[FAKE_WORDS];
} fake_recorder;

static const char *fake_recorder_version(void)
{
	return "fake";
}

static int fake_recorder_probe(struct wss_error *err)
{
	return fake_recorder.probe_fails ?
		       wss_error_set(err, WSS_ERR_UNSUPPORTED, "no backend here") : 0;
}

static int fake_recorder_open(const struct wss_recorder_plan *plan,
			      struct wss_recorder_backend **ret_backend,
			      struct wss_recorder_state *ret_state, struct wss_error *err)
{
	struct fake_recorder *fake = &fake_recorder;

	if (fake->open_fails)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no program here");
	assert_false(fake->opened);
	fake->opened = true;
	fake->opens++;
	fake->plan = *plan;
	*ret_backend = (struct wss_recorder_backend *)fake;
	*ret_state = (struct wss_recorder_state){
		.origin_ns = &fake->origin_ns,
		.ram_faults = &fake->ram_faults,
		.outside_faults = &fake->outside_faults,
		.written_pages = &fake->written_pages,
		.first_touches = fake->first_touches,
		.touched = fake->touched,
		.written = fake->written,
		.words = FAKE_WORDS,
	};
	return 0;
}

static int fake_recorder_start(struct wss_recorder_backend *backend, struct wss_error *err)
{
	struct fake_recorder *fake = (struct fake_recorder *)backend;

	if (fake->start_fails)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no tracepoint here");
	assert_false(fake->attached);
	fake->attached = true;
	fake->starts++;
	return 0;
}

static uint64_t fake_recorder_missed(const struct wss_recorder_backend *backend)
{
	return ((const struct fake_recorder *)backend)->missed;
}

static void fake_recorder_stop(struct wss_recorder_backend *backend)
{
	((struct fake_recorder *)backend)->attached = false;
}

static void fake_recorder_close(struct wss_recorder_backend *backend)
{
	((struct fake_recorder *)backend)->opened = false;
	((struct fake_recorder *)backend)->attached = false;
}

const struct wss_recorder_backend_ops wss_recorder_backend_ops = {
	.version = fake_recorder_version,
	.probe = fake_recorder_probe,
	.open = fake_recorder_open,
	.start = fake_recorder_start,
	.missed = fake_recorder_missed,
	.stop = fake_recorder_stop,
	.close = fake_recorder_close,
};

#endif
