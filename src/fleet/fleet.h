/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room fleet/: which guests should run on which hosts, and what still fits on a host.
 *
 *   cluster.h    hosts and guests; cluster-file.c reads them from the JSON of recommend and list,
 *                prometheus.h from a Prometheus-compatible API
 *   plan.h       what is to be packed, the operator's constraints, and which guests have to shrink;
 *                plan-report.h has its tables
 *   pack.h       packs guests onto hosts, by moves in an order that can be kept; plan-chart.h draws
 *   room.h       what fits beside the guests of a host, and which of them to shrink first
 *   host-room.h  the same for this host, by the advice on its guests
 *
 * In: files, or answers of the API; for host-room.h struct wss_advice. Out: struct wss_pack_plan,
 * for a struct wss_pack_problem that plan-problem.c makes of a cluster; struct wss_host_room. It has
 * no thread, and keeps nothing between two plans.
 *
 * Begin with pack.c. A new figure of a guest is a member of struct wss_cluster_guest, a line in a
 * table of cluster-file.c, and a query in prometheus.c.
 */
#pragma once
