/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/publish.h"

#include "base/cleanup.h"
#include "host/inventory.h"
#include "measure/metadata.h"

/* Whether to write the profile; an unreadable one is replaced. */
static bool profile_is_due(struct wss_guest *guest, const struct wss_profile *profile)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile old;

	return guest->ops->metadata(guest, WSS_PROFILE_NAMESPACE, &xml, NULL) < 0 || !xml ||
	       wss_metadata_read(xml, &old, NULL) < 0 || wss_profile_due(&old, profile);
}

int wss_publish(struct wss_target *target, const struct wss_profile *profile,
		enum wss_publish_when when, bool persistent, struct wss_error *err)
{
	struct wss_guest *guest = target->guest;
	wss_auto_free char *xml = NULL;
	int r = 0;

	if (!guest->ops->publish)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"not published: only libvirt has a place for a guest's profile");
	wss_deadline_run(&target->deadline, 0);
	if (when == WSS_PUBLISH_NOW || profile_is_due(guest, profile)) {
		r = wss_metadata_write(profile, &xml, err);
		if (r == 0)
			r = guest->ops->publish(guest, xml, persistent, err);
	}
	wss_deadline_pause(&target->deadline);
	return r;
}
