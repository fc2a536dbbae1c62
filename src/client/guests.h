/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The guests of a host as a front end sees them: what the service answers at /api/v1/guests
 * (docs/http-api.md), in structs. Texts come from outside: they are UTF-8, but may hold characters
 * that must not reach a terminal (base/text.h).
 */
#ifndef WSS_CLIENT_GUESTS_H
#define WSS_CLIENT_GUESTS_H

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

/* The last sample of a guest; what is not known is absent, a text is "". */
struct wss_guest_sample {
	char quality[16], method[16], observes[16];
	struct wss_amount granularity_bytes, window_ns;
	struct wss_amount wss_bytes, low_bytes, high_bytes, written_bytes;
	struct {
		struct wss_amount maximum_bytes, balloon_bytes, rss_bytes, swap_bytes;
	} memory;
};

/* What the windows have cost so far. */
struct wss_guest_spent {
	struct wss_amount windows, dearer_windows;
	struct wss_amount vcpu_ns, cpu_ns, longest_stall_ns, since_ns;
	struct wss_amount vcpu_share_ppb; /* share of the virtual CPUs' time, in 1e-9 */
};

struct wss_guest_cold {
	struct wss_amount since_ns;   /* how long the guest has been watched */
	struct wss_amount high_bytes; /* untouched for 10 minutes, at most; unknown before it was watched for as long */
};

struct wss_guest_advice {
	struct wss_amount recommended_bytes, reclaimable_bytes;
};

struct wss_guest_view {
	char name[256];
	char uuid[37];
	char state[24]; /* "waiting", "measuring", "refused", "left out", "paused" ... */
	char why[512];	/* why the last attempt gave no sample; "": it did */
	char coarse_why[512]; /* why it is not measured by 4 KiB; "": it is, or needs it not */
	char blocked_why[256]; /* what keeps its memory on the host; "": nothing that is known */
	char kind[16];	/* "canary", "coarse", "fine"; "": no sample yet */
	struct wss_amount period_ns;
	struct wss_amount age_ns; /* of the sample */
	struct wss_guest_spent spent;
	struct wss_guest_cold cold;
	struct wss_guest_advice advice;
	struct wss_guest_sample sample;
};

struct wss_guests {
	char state[16];	      /* "starting": the service has not listed the guests yet; "": it has */
	struct wss_amount since_ns; /* since it started, while it is starting */
	char held[512];	      /* why no window is armed; "": windows are */
	struct wss_amount libvirt_up; /* whether libvirt answers, else the guests are those it last listed */
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

#endif
