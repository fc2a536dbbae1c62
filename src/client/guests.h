/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The guests of a host in structs, as the service answers at /api/v1/guests (docs/http-api.md). Texts come from outside: they are UTF-8, but may hold characters
 * that must not reach a terminal (base/text.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/amount.h"
#include "base/error.h"

/*
 * A reply is refused that is longer, has more guests or nested objects and lists than these, or would
 * need more memory as json-c's tree.
 */
#define WSS_GUESTS_MAX 5000
#define WSS_GUESTS_DEPTH_MAX 32
#define WSS_GUESTS_REPLY_MAX ((size_t)32 << 20)
#define WSS_GUESTS_TREE_MAX ((size_t)256 << 20)

/*
 * The last sample of a guest; what is not known is absent, a text is "". The working set of a degraded one is its lower
 * bound, without an upper one, whatever its window shows.
 */
struct wss_guest_sample {
	char quality[16], method[16], observes[16];
	struct wss_amount granularity_bytes, window_ns;
	struct wss_amount wss_bytes, low_bytes, high_bytes;
	struct {
		struct wss_amount maximum_bytes, balloon_bytes, rss_bytes, swap_bytes;
	} memory;
};

struct wss_guest_cold {
	struct wss_amount since_ns; /* how long the guest has been watched */
	/* Untouched for 10 minutes, at least and at most; unknown before it was watched for as long. */
	struct wss_amount low_bytes, high_bytes;
};

struct wss_guest_advice {
	struct wss_amount recommended_bytes, reclaimable_bytes;
};

struct wss_guest_view {
	char name[256];
	char uuid[37];
	char state[24];	       /* "waiting", "measuring", "refused", "left out", "paused" ... */
	char why[512];	       /* why the last attempt gave no sample; "": it did */
	char coarse_why[512];  /* why it is not measured by 4 KiB; "": it is, or needs it not */
	char blocked_why[256]; /* what keeps its memory on the host; "": nothing that is known */
	char kind[16];	       /* "canary", "coarse", "fine"; "": no sample yet */
	struct wss_amount period_ns;
	struct wss_amount age_ns; /* of the sample */
	struct wss_guest_cold cold;
	struct wss_guest_advice advice;
	struct wss_guest_sample sample;
};

struct wss_guests {
	char state[16]; /* "starting": the service has not listed the guests yet; "": it has */
	struct wss_amount since_ns; /* since it started, while it is starting */
	char held[512];		    /* why no window is armed; "": windows are */
	/* Whether libvirt answers, else the guests are those it last listed. */
	struct wss_amount libvirt_up;
	uint64_t page_age_ns; /* since the service wrote this */
	size_t n, room;
	struct wss_guest_view *list;
};

/*
 * Reads an HTTP reply as it came from the service, head and all. Ages are as old as the page was when
 * it was sent, by its own time and the clock of this host. Release *ret_guests with
 * wss_guests_release(). WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int wss_guests_read(const char *reply, size_t len, struct wss_guests *ret_guests,
		    struct wss_error *err);

/*
 * Adds a guest without any figures, at the end: NULL when out of memory. Valid until the next
 * call.
 */
struct wss_guest_view *wss_guests_add(struct wss_guests *guests);

/* Whether the service has just started, so that no guests do not mean an empty host. */
bool wss_guests_starting(const struct wss_guests *guests);

/* Frees the list; accepts one that is all zero. */
void wss_guests_release(struct wss_guests *guests);

#define wss_auto_guests __attribute__((cleanup(wss_guests_release)))
