@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ One instruction of each kind of line of a trace; assembly, so that no compiler changes it.
    .syntax unified
    .cpu cortex-m3
    .thumb

    .macro function name
    .align 2
    .global \name
    .thumb_func
    .type \name, %function
\name:
    .endm

    .macro end name
    .size \name, . - \name
    .endm

    .section .vectors, "a"
    .word 0x20001000
    .word start
    .rept 9
    .word 0
    .endr
    .word sv_call

    .text
    function start
    ldr r4, =0x20000000
    bl accesses
    bl conditions
    bl accesses
    svc 1
    bl leave
    end start
    .ltorg

    function accesses
    push {r5, lr}
    ldr r0, =0x11223344
    str r0, [r4]
    strh r0, [r4, #4]
    strb r0, [r4, #6]!
    ldrb r1, [r4], #-6
    ldrsh r2, [r4]
    strd r0, r1, [r4, #8]
    ldrd r2, r3, [r4, #8]
    stmia r4, {r0, r1, r2}
    ldm r4, {r0-r2}
    ldrex r0, [r4]
    strex r1, r0, [r4]
    strex r1, r0, [r4]
    ldr r0, =0x22000000
    movs r1, #1
    str r1, [r0, #4]
    ldr r0, =0xe000e014
    str r1, [r0]
    pop {r5, pc}
    end accesses
    .ltorg

    function conditions
    movs r0, #0
    cmp r0, #1
    ite eq
    moveq r1, #1
    movne r1, #2
    bne 1f
    nop
1:  cbz r0, 2f
    nop
2:  tst r0, r0
    umull r2, r3, r1, r1
    mrs r0, primask
    tbb [pc, r1]
    .byte 2, 2, 2, 2
3:  bx lr
    end conditions

    function sv_call
    ldr r0, [sp, #24]
    bx lr
    end sv_call

    @ SYS_READC writes nothing, SYS_HEAPINFO writes its block; then a load from where nothing is.
    function leave
    movs r0, #7
    bkpt 0xab
    movs r0, #0x16
    mov r1, r4
    str r4, [r4, #16]
    adds r1, r4, #16
    bkpt 0xab
    mov r0, #0x60000000
    ldr r1, [r0]
    end leave
