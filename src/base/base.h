/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room base/: what the other rooms need and that knows no guest. It uses libc, and libeconf in
 * config-file.c.
 *
 *   results   error.h; amount.h (a number that may be unknown), bound.h, cleanup.h
 *   text      units.h, number.h, text.h (what may reach a terminal), nearest.h, log.h, journal.h
 *   time      clock.h; deadline.h, cancel.h and stop.h, by which every wait ends; cond.h
 *   threads   worker.h for calls that may hang, background.h for a disk that may be slow, both on
 *             thread.h; child.h for a process
 *   files     root.h for /proc and /sys, file.h for names that others may have prepared, newfile.h
 *             to create a file, io.h; config-file.h
 *   rights    privilege.h
 *   tests     fault.h switches behaviour off
 *
 * In: arguments. Out: values, and errors, which only commands and the service print. What has a
 * handle belongs to one thread at a time, unless its header says otherwise; all else may be called
 * from any. Outside of handles there is only the log, the request to stop and what tests inject.
 *
 * Begin with error.h, cleanup.h and clock.h. A helper moves here when a second room needs it.
 */
#pragma once
