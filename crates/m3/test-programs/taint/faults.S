@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Effects of instructions before they fault. The handler continues at the address in R6.
    .include "taint.inc"

    begin
    run leak_popped
    run leak_loaded
    run leak_stored_multiple
    run leak_stored_downwards
    run leak_stored_dual
    run leak_stored_if
    run clean_not_stored
    run clean_link
    finish

    function fault
    cbz r2, 1f
    nop
1:  str r6, [sp, #24]
    ldr r3, [sp, #28]
    orr r3, r3, #0x01000000 @ EPSR.T
    bic r3, r3, #0x06000000 @ EPSR.IT
    bic r3, r3, #0xfc00
    str r3, [sp, #28]
    bx lr
    end fault

    @ r6 = the address at which the handler continues, without the Thumb bit.
    .macro resume label
    adr.w r6, \label
    .endm

    @ r12 = the last word of a memory, at its mirror, with nothing mapped after it.
    .macro last_word
    movw r12, #0xfffc
    movt r12, #0x7f
    .endm

    function leak_popped
    ldr r3, [r0]
    movs r2, #0
    resume 1f
    mov r12, r6
    push {r3, r12}
    pop {r2, pc}
    .align 2
1:  cbz r2, 2f
    nop
2:  movs r2, #0
    bx lr
    end leak_popped

    function leak_loaded
    push {r7, lr}
    movs r2, #0
    resume 1f
    str r6, [r1]
    ldr r3, [r0]
    str r3, [r1, #-4]!
    mov r7, r1
    ldmia.w r7!, {r3, pc}
    .align 2
1:  cbz r3, 2f
    nop
2:  cbz r7, 3f
    nop
3:  pop {r7, pc}
    end leak_loaded

    function leak_stored_multiple
    ldr r3, [r0]
    movs r2, #0
    last_word
    str r2, [r12]
    resume 1f
    stmia r12, {r3, lr}
    .align 2
1:  ldr r3, [r12]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_stored_multiple

    @ The lowest register first, also if descending.
    function leak_stored_downwards
    ldr r3, [r0]
    movs r2, #0
    last_word
    str r2, [r12]
    add r12, r12, #8
    resume 1f
    stmdb r12!, {r3, lr}
    .align 2
1:  ldr r3, [r12, #-8]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_stored_downwards

    function leak_stored_dual
    ldr r3, [r0]
    movs r2, #0
    last_word
    str r2, [r12]
    resume 1f
    strd r3, r1, [r12]
    .align 2
1:  ldr r3, [r12]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_stored_dual

    @ Whether the word was stored is secret.
    function leak_stored_if
    ldr r3, [r0]
    movs r2, #0
    last_word
    str r2, [r12]
    resume 1f
    cmp r3, #0
    it ne
    stmiane r12, {r1, r2}
    .align 2
1:  ldr r3, [r12]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_stored_if

    function clean_not_stored
    ldr r3, [r0]
    movs r2, #0
    last_word
    str r2, [r12]
    resume 1f
    stmia r12, {r1, r3}
    .align 2
1:  ldr r3, [r12]
    cbz r3, 2f
    nop
2:  bx lr
    end clean_not_stored

    @ BLX sets LR from its own address, whatever LR held.
    function clean_link
    push {lr}
    movs r2, #0
    ldr lr, [r0]
    resume 1f
    blx r6
    .align 2
1:  cmp lr, #0
    beq 2f
    nop
2:  pop {pc}
    end clean_link
