/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's room: what still fits beside the running guests at a stated risk, and which guests
 * to shrink first for more. Measures and changes nothing.
 */
#pragma once

#include "fleet/room.h"
#include "host/conn.h"
#include "sizing/advice.h"

/* Measured hours before a guest's risk means anything. */
#define WSS_HOST_ROOM_RISK_HOURS 24

/* Why a guest should shrink, or not. */
enum wss_host_room_why {
	WSS_HOST_ROOM_SHRINK,
	WSS_HOST_ROOM_LITTLE, /* it would give back less than balloon takes */
	WSS_HOST_ROOM_FULL,   /* its set fills its memory */
	WSS_HOST_ROOM_OPTED_OUT,
	WSS_HOST_ROOM_TOO_EARLY, /* no size yet */
	WSS_HOST_ROOM_NO_SIZE,	 /* what it cannot give up is unknown */
	WSS_HOST_ROOM_UNKNOWN,	 /* no windows, or what it holds is not known */
	WSS_HOST_ROOM_BLOCKED,	 /* its configuration keeps its memory */
	WSS_HOST_ROOM_PAUSED,	 /* it counts with what it has */
	WSS_HOST_ROOM_FAILED,	 /* its policy or history could not be read */
};

struct wss_host_room_guest {
	char *name, *uuid; /* uuid may be NULL */
	char *error;	   /* FAILED: why; BLOCKED: what keeps its memory */
	enum wss_host_room_why why;
	enum wss_confidence confidence;
	uint64_t windows; /* in the series */
	struct wss_amount held_bytes, assigned_bytes, recommended_bytes;
	struct wss_amount gain_bytes; /* what the host would get back */
	/* Measured hours of four weeks, and those of them that needed more than recommended. */
	uint64_t hours, above_hours;
	/* SHRINK only: */
	double risk;		      /* predicted share of hours that would need more */
	uint64_t rank;		      /* 1: shrink it first */
	struct wss_amount free_bytes; /* of the host, once it and those before it have shrunk */
};

struct wss_host_room {
	size_t n, space;
	/* After wss_host_room_finish(): by rank, then the others. */
	struct wss_host_room_guest *guests;
	uint64_t unsized; /* guests that count with all their memory */
	struct wss_room need;
	struct wss_amount held_bytes; /* of all guests; absent if that of one is not known */
	uint64_t overhead_bytes;      /* QEMU's own */
	bool held_unknown;
	double risk;
	struct wss_amount memory_bytes, reserve_bytes;
	/* Set by wss_host_room_finish(): */
	struct wss_room_host host;
	struct wss_room_answer answer;	    /* with memory_bytes */
	struct wss_amount free_bytes;	    /* limit less what guests and QEMU hold now */
	struct wss_amount free_after_bytes; /* once all have shrunk */
};

/* Facts about a running guest. */
struct wss_host_room_facts {
	const char *name, *uuid;
	const struct wss_advice *advice;  /* all zero: none could be read */
	const struct wss_conn_size *size; /* its maximum is used if the advice does not have it */
	const char *error;		  /* why it could not be read, or NULL */
	const char *blocked;		  /* what keeps its memory from coming back, or NULL */
};

/*
 * Starts with no guest; ret_room is untouched on failure. memory: of the host; reserve: what it
 * keeps for itself, unknown: a tenth. risk: share of the hours of a week in which guests may need
 * more than the rest, 0 to 0.5. WSS_ERR_FAILED if the reserve is above the memory.
 */
int wss_host_room_init(struct wss_host_room *ret_room, struct wss_amount memory,
		       struct wss_amount reserve, double risk, struct wss_error *err);

/*
 * Adds a running or paused guest. A guest without a size counts with all its memory, one that is paused with
 * what it has. The errors of wss_history_hours().
 */
int wss_host_room_add(struct wss_host_room *room, struct wss_history *history,
		      const struct wss_host_room_facts *facts, struct wss_error *err);

/* Computes the answer after the last guest, and ranks the guests. */
void wss_host_room_finish(struct wss_host_room *room);

/* Accepts one that is all zero. */
void wss_host_room_free(struct wss_host_room *room);
