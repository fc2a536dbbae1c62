/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The template of a domain and its maximum memory, from its XML. Guests of the same template resemble each other. */
#ifndef WSS_HOST_ORIGIN_H
#define WSS_HOST_ORIGIN_H

#include <stddef.h>

#include "base/amount.h"
#include "base/error.h"

#define WSS_ORIGIN_TEXT_MAX 256

/* Texts are "" where there are none, or longer ones than fit. */
struct wss_origin {
	char title[WSS_ORIGIN_TEXT_MAX]; /* <title> */
	char os[WSS_ORIGIN_TEXT_MAX];	 /* libosinfo's id of the operating system, in the metadata */
	struct wss_amount maximum_bytes; /* <memory>; unknown if it cannot be parsed */
};

/* Reads the XML of a domain, of at most max bytes. Fails as wss_xml_parse() does. */
int wss_origin_read(const char *domain_xml, size_t max, struct wss_origin *ret_origin,
		    struct wss_error *err);

#endif
