@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Secrets stored to memory and loaded in other widths.
    .include "taint.inc"

    begin
    run leak_spilled
    run leak_pushed
    run leak_byte_by_byte
    run leak_one_byte_of_word
    run leak_unaligned
    run leak_half_of_dual
    run leak_multiple
    run leak_exclusive
    run leak_mark
    run leak_mark_cleared
    run leak_bit_band_load
    run leak_bit_band_store
    run leak_system_register
    run clean_system_register
    run leak_link_register
    run leak_frame_pointer
    run clean_neighbours
    run clean_overwritten
    run clean_popped
    run clean_bit_band
    run clean_exclusive
    run clean_link_register
    run clean_unpoisoned
    finish

    function leak_spilled
    ldr r2, [r0]
    sub sp, sp, #8
    str r2, [sp, #4]
    movs r2, #0
    ldr r3, [sp, #4]
    add sp, sp, #8
    cbz r3, 1f
    nop
1:  bx lr
    end leak_spilled

    function leak_pushed
    ldr r3, [r0]
    push {r2, r3}
    pop {r2, r3}
    cbz r2, 1f
    nop
1:  cbz r3, 2f
    nop
2:  bx lr
    end leak_pushed

    function leak_byte_by_byte
    ldrb r2, [r0]
    strb r2, [r1]
    ldrb r2, [r0, #1]
    strb r2, [r1, #1]
    movs r2, #0
    strh r2, [r1, #2]
    ldr r3, [r1]
    cbz r3, 1f
    nop
1:  bx lr
    end leak_byte_by_byte

    function leak_one_byte_of_word
    movs r3, #0
    str r3, [r1]
    ldr r2, [r0]
    strb r2, [r1, #3]
    ldrsh r3, [r1, #2]
    cbz r3, 1f
    nop
1:  ldr r3, [r1]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_one_byte_of_word

    @ Across two words, the second of which is secret.
    function leak_unaligned
    movs r3, #0
    str r3, [r1]
    str r3, [r1, #8]
    ldr r2, [r0]
    str r2, [r1, #4]
    ldr r3, [r1, #1]
    cbz r3, 1f
    nop
1:  bx lr
    end leak_unaligned

    function leak_half_of_dual
    ldr r2, [r0]
    movs r3, #0
    strd r2, r3, [r1]
    ldrd r3, r2, [r1]
    cbz r2, 1f
    nop
1:  cbz r3, 2f
    nop
2:  bx lr
    end leak_half_of_dual

    function leak_multiple
    movs r2, #0
    ldr r3, [r0]
    stmia r1, {r2, r3}
    ldmia r1, {r0, r2}
    cbz r0, 1f
    nop
1:  cbz r2, 2f
    nop
2:  bx lr
    end leak_multiple

    function leak_exclusive
    ldr r2, [r0]
    ldrex r3, [r1]
    strex r3, r2, [r1]
    cbz r3, 1f
    nop
1:  ldrex r3, [r1]
    clrex
    cbz r3, 2f
    nop
2:  bx lr
    end leak_exclusive

    @ The success of STREX depends on the state of the monitor. The address of LDREX leaks, but the
    @ monitor does not record it.
    function leak_mark
    ldr r2, [r0]
    and r2, r2, #0
    add r2, r2, r1
    ldrex r3, [r2]
    strex r3, r1, [r1]
    cbz r3, 1f
    nop
1:  ldr r3, [r1]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_mark

    function leak_mark_cleared
    ldr r2, [r0]
    ldrex r3, [r1]
    cmp r2, #0
    it eq
    clrexeq
    strex r3, r1, [r1]
    cbz r3, 1f
    nop
1:  bx lr
    end leak_mark_cleared

    @ The alias of bit 0 of the secret's first byte.
    function leak_bit_band_load
    ubfx r2, r0, #0, #20
    lsls r2, r2, #5
    add r2, r2, #0x22000000
    ldr r3, [r2]
    cbz r3, 1f
    nop
1:  bx lr
    end leak_bit_band_load

    function leak_bit_band_store
    movs r3, #0
    str r3, [r1]
    ubfx r2, r1, #0, #20
    lsls r2, r2, #5
    add r2, r2, #0x22000000
    ldr r3, [r0]
    str r3, [r2, #4]
    ldrb r3, [r1]
    cbz r3, 1f
    nop
1:  ldrb r3, [r1, #1]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_bit_band_store

    function leak_link_register
    mov r12, lr
    ldr lr, [r0]
    cmp lr, #1
    beq 1f
    nop
1:  bx r12
    end leak_link_register

    function leak_frame_pointer
    push {r7, lr}
    sub sp, sp, #8
    mov r7, sp
    ldr r2, [r0]
    str r2, [r7]
    ldr r3, [r7]
    cbz r3, 1f
    nop
1:  add sp, sp, #8
    pop {r7, pc}
    end leak_frame_pointer

    @ A word beside secret ones.
    function clean_neighbours
    movs r3, #0
    str r3, [r1]
    str r3, [r1, #4]
    ldr r2, [r0]
    strb r2, [r1, #3]
    strh r2, [r1, #6]
    ldrh r3, [r1]
    cbz r3, 1f
    nop
1:  ldrb r3, [r1, #2]
    cbz r3, 2f
    nop
2:  ldrh r3, [r1, #4]
    cbz r3, 3f
    nop
3:  bx lr
    end clean_neighbours

    function clean_overwritten
    ldr r2, [r0]
    str r2, [r1]
    movs r3, #1
    strh r3, [r1]
    strb r3, [r1, #2]
    strb r3, [r1, #3]
    ldr r3, [r1]
    cbz r3, 1f
    nop
1:  bx lr
    end clean_overwritten

    @ Registers that a function saves, uses for a secret and restores.
    function clean_popped
    push {r4, r5, lr}
    movs r4, #1
    push {r4, r5}
    ldr r4, [r0]
    ldr r5, [r0, #4]
    eors r4, r5
    str r4, [r1]
    pop {r4, r5}
    cbz r4, 1f
    nop
1:  pop {r4, r5, pc}
    end clean_popped

    @ A public bit leaves the other bits of its byte unchanged and the next byte public.
    function clean_bit_band
    movs r3, #0
    str r3, [r1]
    ldr r3, [r0]
    strb r3, [r1, #1]
    ubfx r2, r1, #0, #20
    lsls r2, r2, #5
    add r2, r2, #0x22000000
    movs r3, #1
    str r3, [r2]
    ldrb r3, [r1]
    cbz r3, 1f
    nop
1:  bx lr
    end clean_bit_band

    @ The success of STREX does not depend on the stored data.
    function clean_exclusive
    ldr r2, [r0]
1:  ldrex r3, [r1]
    eors r2, r3
    strex r3, r2, [r1]
    cmp r3, #0
    bne 1b
    bx lr
    end clean_exclusive

    @ BL overwrites LR.
    function clean_link_register
    push {r4, lr}
    ldr lr, [r0]
    bl 1f
    cmp lr, #0
    beq 2f
    nop
2:  ldr lr, [r0]
    adr r2, 1f
    adds r2, #1
    blx r2
    cmp lr, #0
    beq 3f
    nop
3:  pop {r4, pc}
    .align 2
1:  bx lr
    end clean_link_register

    @ A declassified result.
    function clean_unpoisoned
    ldr r2, [r0]
    str r2, [r1]
    mov r3, #0xf0000000
    str r1, [r3]
    movs r2, #4
    str r2, [r3, #4]
    movs r2, #0
    str r2, [r3, #8]
    ldr r2, [r1]
    cbz r2, 1f
    nop
1:  bx lr
    end clean_unpoisoned

    @ Registers that control interrupts, written and read back.
    function leak_system_register
    ldr r2, [r0]
    ldr r3, =0xe000e280
    str r2, [r3]
    ldr r3, =0xe000e014
    str r2, [r3]
    ldr r2, [r3]
    cbz r2, 1f
    nop
1:  ldr r3, =0xe0001004
    ldrb r2, [r0]
    strb r2, [r3]
    movs r2, #0
    ldr r2, [r3]
    cbz r2, 2f
    nop
2:  bx lr
    .ltorg
    end leak_system_register

    @ A public word overwrites the secret; a store to CYCCNT does not leak.
    function clean_system_register
    ldr r2, [r0]
    ldr r3, =0xe0001004
    str r2, [r3]
    movs r2, #1
    str r2, [r3]
    ldr r2, [r3]
    cbz r2, 1f
    nop
1:  bx lr
    .ltorg
    end clean_system_register
