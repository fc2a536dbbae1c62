/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metrics about the host and the service itself: one series each, whatever the guests are. */
#pragma once

#include "serve/guest-metrics.h"

void wss_service_metrics_write(struct wss_metrics *metrics, const struct wss_watch *watch,
			       const struct wss_service_facts *facts);
