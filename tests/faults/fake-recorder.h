/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a program with an invented VM (fake-recorder.c) hears of its windows. */
#pragma once

/* Called as each window begins, in the thread that measures. NULL: "window" is printed. */
extern void (*fake_recorder_window)(void);
