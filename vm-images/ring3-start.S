/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the reset vector to ring 3: real mode, protected mode, long mode, then ring3_main(cpu) at
 * privilege level 3 with IOPL 3, so that it may use ports. KVM on shadow paging (kvm_pvm) runs ring 3
 * natively and emulates all of this, so it is as short as it can be: no interrupts, no TSS, no calls.
 *
 * The ROM is the last 64 KiB below 4 GiB, and appears at 0xf0000, too: the reset vector is entered at
 * ffff:fff0, a further processor at f000:0000 by the startup interrupt's vector 0xf0.
 *
 * RAM, all identity-mapped by entries of 2 MiB that user code may access:
 *   0x10000   PML4; 0x11000 page directory pointers; from 0x12000 on a page directory for each GiB
 *   0x200000  code and data, copied from the ROM by the first processor
 *   0x280000  end of the first processor's stack; 0x290000 end of the second's
 */
#define TABLES 0x10000
#define GIB_MAPPED 64
#define ROM 0xffff0000
#define USER_ENTRY 0x7	     /* present, writable, user */
#define USER_LARGE_ENTRY 0x87 /* and an entry of 2 MiB */
#define MSR_APIC_BASE 0x1b
#define MSR_EFER 0xc0000080

	.section .rom, "ax"
	.code16
	.globl rom_begin
rom_begin:
	jmp start16

	/* The accessed bits are set: a processor, or KVM's emulator, would write them into the ROM. */
	.balign 8
gdt:
	.quad 0
	.quad 0x00cf9b000000ffff /* 0x08: code, 32 bits */
	.quad 0x00cf93000000ffff /* 0x10: data */
	.quad 0x00af9b000000ffff /* 0x18: code, 64 bits */
	.quad 0x00cff3000000ffff /* 0x20: data, ring 3 */
	.quad 0x00affb000000ffff /* 0x28: code, 64 bits, ring 3 */
gdt_end:
gdt_pointer:
	.word gdt_end - gdt - 1
	.long ROM + (gdt - rom_begin)

start16:
	cli
	lgdtl %cs:(gdt_pointer - rom_begin)
	movl %cr0, %eax
	orl $1, %eax
	movl %eax, %cr0
	ljmpl $0x08, $(ROM + (start32 - rom_begin))

	.code32
start32:
	movw $0x10, %ax
	movw %ax, %ds
	movw %ax, %es
	movw %ax, %ss
	movl $MSR_APIC_BASE, %ecx
	rdmsr
	btl $8, %eax
	movl $1, %esi /* a further processor: the tables are there */
	jnc long_mode

	cld
	movl $TABLES, %edi
	movl $(2 * 1024), %ecx
	xorl %eax, %eax
	rep stosl
	movl $(TABLES + 0x1000 + USER_ENTRY), TABLES
	movl $(TABLES + 0x1000), %edi
	movl $(TABLES + 0x2000 + USER_ENTRY), %eax
	movl $GIB_MAPPED, %ecx
1:	movl %eax, (%edi)
	addl $0x1000, %eax
	addl $8, %edi
	decl %ecx
	jnz 1b
	movl $(TABLES + 0x2000), %edi
	movl $USER_LARGE_ENTRY, %eax
	xorl %edx, %edx
	movl $(GIB_MAPPED * 512), %ecx
2:	movl %eax, (%edi)
	movl %edx, 4(%edi)
	addl $0x200000, %eax
	adcl $0, %edx
	addl $8, %edi
	decl %ecx
	jnz 2b

	movl $(ROM + 0x1000), %esi
	movl $image_begin, %edi
	movl $image_words, %ecx
	rep movsl
	movl $bss_begin, %edi
	movl $bss_words, %ecx
	xorl %eax, %eax
	rep stosl /* a guest that was reset has old contents there */
	xorl %esi, %esi

long_mode:
	movl $0x20, %eax /* PAE */
	movl %eax, %cr4
	movl $TABLES, %eax
	movl %eax, %cr3
	movl $MSR_EFER, %ecx
	movl $0x100, %eax /* LME */
	xorl %edx, %edx
	wrmsr
	movl $0x80000011, %eax /* PG, ET, PE */
	movl %eax, %cr0
	ljmpl $0x18, $(ROM + (start64 - rom_begin))

	.code64
start64:
	movl %esi, %edi
	movl %esi, %eax
	shll $16, %eax
	addl $0x280000, %eax
	movl %eax, %esp
	pushq $0x23
	pushq %rax
	pushq $0x3002 /* IOPL 3, no interrupts */
	pushq $0x2b
	pushq $ring3_main
	iretq

	.section .reset, "ax"
	.code16
	/* A jump to the start of the ROM: the offset wraps at 64 KiB. The instruction ends at 0xfff3. */
	.byte 0xe9
	.word 0x10000 - 0xfff3
	.balign 16, 0
