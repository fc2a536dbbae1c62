/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lets one call fail, as of malloc() or of libvirt: the calls that this program makes itself
 * to a function of a shared library go to another function of the test, from then on. What
 * libraries call among themselves is not diverted. The program is linked as any other; its
 * table of addresses is changed while it runs, in a way that valgrind and the sanitizers bear.
 */
#ifndef WSS_TESTS_DIVERT_H
#define WSS_TESTS_DIVERT_H

/*
 * Diverts the calls of function to replacement, which has its type; *ret_real becomes the
 * function itself, before the first call is diverted. Ends the program if it calls no such
 * function.
 */
#define divert(function, replacement, ret_real)                                               \
	do {                                                                                  \
		__typeof__(&(function)) divert_to = (replacement), *divert_real = (ret_real); \
                                                                                              \
		divert_calls(#function, (void *)divert_to, (void **)divert_real);             \
	} while (0)

void divert_calls(const char *function, void *replacement, void **ret_real);

#endif
