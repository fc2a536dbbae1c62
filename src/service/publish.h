/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Publishing: writing a guest's profile into libvirt's inventory.
 */
#ifndef WSS_SERVICE_PUBLISH_H
#define WSS_SERVICE_PUBLISH_H

#include <stdbool.h>

#include "base/error.h"
#include "service/target.h"
#include "store/history.h"
#include "wss/profile.h"

/*
 * Makes a measured sample a profile; with what the history (NULL: none) has of windows of the same kind
 * in the last seven days. Without a history that can be read it says what the one window says.
 */
void wss_publish_profile(struct wss_history *history, const struct wss_sample *sample,
			 const struct wss_policy *policy, struct wss_profile *ret_profile);

enum wss_publish_when {
	WSS_PUBLISH_NOW,
	/* Only where wss_profile_due(): each write makes libvirt write a file and tell its clients. */
	WSS_PUBLISH_WHEN_DUE,
};

/*
 * Publishes the profile of a target whose guest is open: for as long as the domain runs, and in its
 * configuration, too, where persistent is set. Asks libvirt, within the target's deadline. WSS_ERR_BUSY,
 * without waiting, where a job is under way; WSS_ERR_UNSUPPORTED, WSS_ERR_CONNECT, WSS_ERR_TIMEOUT.
 */
int wss_publish(struct wss_target *target, const struct wss_profile *profile,
		enum wss_publish_when when, bool persistent, struct wss_error *err);

#endif
