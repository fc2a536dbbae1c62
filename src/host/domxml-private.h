/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WSS_HOST_DOMXML_PRIVATE_H
#define WSS_HOST_DOMXML_PRIVATE_H

#include "host/domxml.h"
#include "host/xml.h"

/* Parses an element's size by its unit. what names the element in the error, WSS_ERR_FAILED. */
int wss_domxml_size(const xmlNode *node, const char *what, uint64_t *ret_bytes,
		    struct wss_error *err);

/* Fills better_balloon and better_backing from the root of a domain's XML. */
void wss_domxml_improve(const xmlNode *domain, struct wss_domxml *ret);

#endif
