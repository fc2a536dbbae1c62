/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WSS_HOST_DOMXML_PRIVATE_H
#define WSS_HOST_DOMXML_PRIVATE_H

#include "host/domxml.h"
#include "host/xml.h"

/* Fills better_balloon and better_backing from the root of a domain's XML. */
void wss_domxml_improve(const xmlNode *domain, struct wss_domxml *ret);

#endif
