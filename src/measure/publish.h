/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishing: writing a guest's profile into libvirt's inventory. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "measure/profile.h"
#include "measure/target.h"

enum wss_publish_when {
	WSS_PUBLISH_NOW,
	/*
	 * Only if wss_profile_due(): each write makes libvirt write a file and notify its
	 * clients.
	 */
	WSS_PUBLISH_WHEN_DUE,
};

/*
 * Publishes the profile of a target whose guest is open, for as long as the domain runs; with
 * persistent also in its configuration. Calls libvirt, within the target's deadline. Does not
 * wait for a libvirt job: WSS_ERR_BUSY. Also WSS_ERR_UNSUPPORTED, WSS_ERR_CONNECT,
 * WSS_ERR_TIMEOUT.
 */
int wss_publish(struct wss_target *target, const struct wss_profile *profile,
		enum wss_publish_when when, bool persistent, struct wss_error *err);
