/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One element of a domain's metadata: what the readers and writers of profile and policy
 * share. Texts that are read come from whoever may edit a domain.
 */
#ifndef WSS_OUT_ELEMENT_H
#define WSS_OUT_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/xml.h"
#include "wss/sample.h"

/* An element of ours has about 800 bytes: more than this was not written by us. */
#define WSS_ELEMENT_MAX (64 * 1024)

/*
 * Parses at most WSS_ELEMENT_MAX bytes; a document type declaration is refused, so there are
 * no entities. NULL, with err set to "what: …", where it is not one element of this name, or an
 * attribute has a namespace prefix (WSS_ERR_FAILED), or where memory is short
 * (WSS_ERR_NO_MEMORY). The caller frees the document.
 */
xmlDocPtr wss_element_parse(const char *xml, const char *name, const char *what,
			    struct wss_error *err);

/* An attribute into a buffer, sanitized; -1 where it is absent or does not fit. */
int wss_element_text(xmlNodePtr node, const char *name, char *buf, size_t size);

/* The first child element of this name, or NULL. */
xmlNodePtr wss_element_child(xmlNodePtr node, const char *name);

/* Decimal digits, with blanks around them as XML Schema has it, and nothing else; -1 else. */
int wss_element_u64(const char *text, uint64_t *ret_value);

/* The same of seconds as a decimal fraction, to ns; at most 10^9 s. */
int wss_element_seconds(const char *text, uint64_t *ret_ns);

/* Is what an element holds in this unit? So it is where it says none. */
bool wss_element_is_in(xmlNodePtr node, const char *unit);

/*
 * A child's content as a number: absent is no error, malformed, or not in this unit, is -1. A unit
 * of NULL: whichever.
 */
int wss_element_number(xmlNodePtr node, const char *name, const char *unit,
		       struct wss_amount *ret_amount);

/* Sets an attribute; false when memory is short. */
bool wss_element_set(xmlNodePtr node, const char *name, const char *value);

/* Adds <name unit="unit">number</name> where the amount is known; false when memory is short. */
bool wss_element_add(xmlNodePtr node, const char *name, const char *unit,
		     struct wss_amount amount);

/*
 * Writes an element of this name, without a namespace prefix: fill sets its attributes and adds
 * its children, and returns false when memory is short. A malloc'ed string for the caller.
 */
int wss_element_write(const char *name, bool (*fill)(xmlNodePtr root, const void *opaque),
		      const void *opaque, char **ret_xml, struct wss_error *err);

#endif
