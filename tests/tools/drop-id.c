/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes the option "-id VMID", which only Proxmox VE's QEMU has, and "-readconfig FILE", as its files are missing here, from
 * the arguments of a program that loads this by LD_PRELOAD. /proc/PID/cmdline still shows them.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int main_function(int argc, char **argv, char **envp);
typedef int start_function(main_function *main, int argc, char **argv, void (*init)(void),
			   void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

__attribute__((visibility("default"))) start_function __libc_start_main;

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	start_function *start;
	int used = 0;

	*(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "-id") || !strcmp(argv[i], "-readconfig"))
			i++;
		else
			argv[used++] = argv[i];
	}
	argv[used] = NULL;
	return start(main, used, argv, init, fini, rtld_fini, stack_end);
}
