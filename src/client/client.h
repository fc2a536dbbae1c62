/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room client/: requests to others over HTTP, and their answers in structs.
 *
 *   service.h      the service of this host, at its UNIX socket
 *   guests.h       its answer, struct wss_guests, for check and top; guest-view.h: what it says of a
 *                  guest, whether the service has measured it or virt-wss itself
 *   http-get.h     documents of a server, for fleet/prometheus.c
 *   json-fields.h  reads JSON into structs, by tables of the members that are wanted
 *
 * In: a path or a URL. Out: structs whose texts may hold characters that must not reach a terminal
 * (base/text.h). Nobody who answers is trusted: the service may be anybody's process. So each
 * request has a deadline, and each answer limits for its bytes, depth and memory (qmp/jsonline.h).
 *
 * It has no thread, and keeps nothing between two requests.
 *
 * Begin with guests.c. A further member of the answer is one in guests.h, and a line in a table of
 * guests.c.
 */
#pragma once
