/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "host/domxml.h"
#include "host/xml.h"

/* Fills better_balloon and better_backing from the root of a domain's XML. */
void wss_domxml_improve(const xmlNode *domain, struct wss_domxml *ret);
