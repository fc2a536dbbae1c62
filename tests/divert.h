/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Diverts this program's own calls of a function in a shared library, such as malloc() or one
 * of libvirt's, to a function of the test, so that it can let them fail. Calls from one
 * library to another are not diverted. The program is linked as usual; its table of addresses
 * is changed at run time, in a way that works under valgrind and the sanitizers.
 */
#pragma once

/*
 * Diverts calls of function to replacement, which has the same type. *ret_real is set to the
 * real function before the first call is diverted. Ends the program if it never calls
 * function.
 */
#define divert(function, replacement, ret_real)                                               \
	do {                                                                                  \
		__typeof__(&(function)) divert_to = (replacement), *divert_real = (ret_real); \
                                                                                              \
		divert_calls(#function, (void *)divert_to, (void **)divert_real);             \
	} while (0)

void divert_calls(const char *function, void *replacement, void **ret_real);
