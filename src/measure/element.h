/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Elements in a domain's metadata: shared by the readers and writers of profile and policy.
 * The text may come from anyone who is allowed to edit a domain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/xml.h"
#include "measure/sample.h"

/* Our own elements have about 800 bytes; virt-wss does not write larger ones. */
#define WSS_ELEMENT_MAX (64 * 1024)

/*
 * Parses at most WSS_ELEMENT_MAX bytes. A document type declaration is refused, so there are
 * no entities. Returns NULL, with err set to "what: …", unless this is a single element of
 * this name without namespace prefixes on attributes (WSS_ERR_FAILED), or when out of memory
 * (WSS_ERR_NO_MEMORY). The caller frees the document.
 */
xmlDocPtr wss_element_parse(const char *xml, const char *name, const char *what,
			    struct wss_error *err);

/* Copies an attribute into a buffer, sanitized. Returns -1 if it is absent or does not fit. */
int wss_element_text(xmlNodePtr node, const char *name, char *buf, size_t size);

/* Returns the first child element of this name, or NULL. */
xmlNodePtr wss_element_child(xmlNodePtr node, const char *name);

/*
 * Parses decimal digits, which may be surrounded by blanks as in XML Schema; -1 for anything
 * else.
 */
int wss_element_u64(const char *text, uint64_t *ret_value);

/* Parses seconds, with an optional decimal fraction, into ns; at most 10^9 s. */
int wss_element_seconds(const char *text, uint64_t *ret_ns);

/*
 * Whether the content of an element has this unit. An element without a unit attribute matches
 * any unit except bytes, because libvirt takes a size without a unit as KiB.
 */
bool wss_element_is_in(xmlNodePtr node, const char *unit);

/*
 * Reads the content of a child as a number. Returns -1 for malformed content or another unit;
 * an absent child is not an error. A NULL unit accepts any.
 */
int wss_element_number(xmlNodePtr node, const char *name, const char *unit,
		       struct wss_amount *ret_amount);

/* Sets an attribute. Returns false when out of memory. */
bool wss_element_set(xmlNodePtr node, const char *name, const char *value);

/* Adds <name unit="unit">number</name> if the amount is known. Returns false when out of memory. */
bool wss_element_add(xmlNodePtr node, const char *name, const char *unit, struct wss_amount amount);

/*
 * Writes an element of this name without a namespace prefix. fill sets its attributes, adds
 * its children, and returns false when out of memory. The caller frees the string.
 */
int wss_element_write(const char *name, bool (*fill)(xmlNodePtr root, const void *opaque),
		      const void *opaque, char **ret_xml, struct wss_error *err);
