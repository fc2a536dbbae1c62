/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of the fake QMP server; fake-qmp.c describes the program and its scripts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_COMMAND_MAX 64

struct fake_action {
	char *verb;
	char *args; /* the rest of the line, "" for none */
};

struct fake_section {
	char command[FAKE_COMMAND_MAX]; /* "*": any other; "" for "connect" */
	struct fake_action *actions;
	size_t count;
	bool used;
};

/* Values in the built-in replies. */
struct fake_guest {
	char uuid[64];
	char name[64];
	char status[32];
	bool kvm;
	bool has_balloon;
	uint64_t balloon_bytes;
	unsigned int version[3];
	uint64_t ram_mib, touch_mib;
	bool anonymous;
	char *const *arguments; /* as QEMU has them, up to a NULL */
};

struct fake_script {
	struct fake_section *sections;
	size_t count;
	struct fake_guest guest;
	bool fork; /* the listener exits, its child serves */
};

/* Reads a script, or exits with a message that has the line number. */
void fake_script_load(const char *path, struct fake_script *ret_script);

/*
 * Finds the section for a command: the next unused one of that name, else the last one of that
 * name, else a section of "*" in the same way. NULL stands for the built-in reply.
 */
struct fake_section *fake_script_find(struct fake_script *script, const char *command);

/* Returns the built-in greeting, without the end of line. For free(). */
char *fake_default_greeting(const struct fake_guest *guest);

/*
 * Returns the built-in reply to a command (the "return" or "error" member alone, no braces). For
 * free().
 */
char *fake_default_reply(const struct fake_guest *guest, const char *command);

/*
 * Where the guest's RAM is, unless something else is there already: an address that no sanitizer keeps for
 * itself, for programs that invent the guest's KVM.
 */
#define FAKE_RAM_ADDRESS 0x7ec000000000UL

/* Maps the guest's RAM, fills it and starts the thread that keeps touching its front part. */
void fake_ram_start(const struct fake_guest *guest);

/* Prints "fake-qmp: " and the message, and exits with 1. */
void fake_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
