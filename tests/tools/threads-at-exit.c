/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For LD_PRELOAD: prints on stderr how many threads the process has when it calls exit().
 * Prints nothing if it ends by _exit() or a signal.
 */
#include <dirent.h>
#include <stdio.h>

__attribute__((destructor)) static void count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	dprintf(2, "threads at exit: %d\n", n);
}
