/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program calls a function of a shared library through a slot, which the dynamic linker
 * fills. Relocations list the slots and the function of each (System V ABI, "Dynamic
 * Linking").
 */
#include "divert.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF ELF64_R_SYM
#else
#define SYMBOL_OF ELF32_R_SYM
#endif

/* Returns the value of a tag of the program's dynamic section; 0 if it has no such tag. */
static ElfW(Addr) dynamic_value(const struct link_map *program, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *at = program->l_ld; at->d_tag != DT_NULL; at++)
		if (at->d_tag == tag)
			return at->d_un.d_ptr;
	return 0;
}

static const char *symbol_name(const struct link_map *program, const ElfW(Rel) * relocation)
{
	const ElfW(Sym) *symbols = (const ElfW(Sym) *)dynamic_value(program, DT_SYMTAB);
	const char *names = (const char *)dynamic_value(program, DT_STRTAB);

	return names + symbols[SYMBOL_OF(relocation->r_info)].st_name;
}

/* The slot may be read-only by now (RELRO). */
static void set_slot(void **slot, void *value)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = (uintptr_t)slot & ~(page_bytes - 1);

	if (mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) < 0) {
		perror("divert: mprotect");
		abort();
	}
	*slot = value;
}

/* A Rela begins as a Rel does: the size of an entry tells them apart. Returns the slots set.
 */
static unsigned divert_in_table(const struct link_map *program, ElfW(Addr) table, size_t bytes,
				size_t entry_bytes, const char *function, void *replacement)
{
	unsigned n = 0;

	for (size_t at = 0; table && at < bytes; at += entry_bytes) {
		const ElfW(Rel) *relocation = (const ElfW(Rel) *)(table + at);

		if (strcmp(symbol_name(program, relocation), function) != 0)
			continue;
		set_slot((void **)(program->l_addr + relocation->r_offset), replacement);
		n++;
	}
	return n;
}

void divert_calls(const char *function, void *replacement, void **ret_real)
{
	const struct link_map *program = dlopen(NULL, RTLD_NOW);
	bool has_addends = dynamic_value(program, DT_PLTREL) == DT_RELA;
	size_t entry_bytes = has_addends ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
	unsigned n;

	*ret_real = dlsym(RTLD_DEFAULT, function);
	n = divert_in_table(program, dynamic_value(program, DT_JMPREL),
			    dynamic_value(program, DT_PLTRELSZ), entry_bytes, function,
			    replacement);
	n += divert_in_table(program, dynamic_value(program, has_addends ? DT_RELA : DT_REL),
			     dynamic_value(program, has_addends ? DT_RELASZ : DT_RELSZ),
			     entry_bytes, function, replacement);
	if (*ret_real && n)
		return;
	fprintf(stderr, "divert: this program calls no %s() of a library\n", function);
	abort();
}
