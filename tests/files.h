/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes what tests have made, in the process itself: the address space of a program with sanitizers is
 * large, and copying it for rm(1) takes longer than most tests do.
 */
#pragma once

#include <ftw.h>
#include <stdio.h>

static inline int files_remove_entry(const char *path, const struct stat *st, int type,
				     struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

/* Removes a directory with all that is in it, as far as possible. */
static inline void files_remove(const char *directory)
{
	nftw(directory, files_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
