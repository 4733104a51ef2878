@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Load and store addresses that depend on a secret. The secret's first word is 3.
    .include "taint.inc"

    begin
    run leak_load_word
    run leak_load_byte_offset
    run leak_load_half_base
    run leak_load_signed
    run leak_load_pre
    run leak_load_post
    run leak_load_dual
    run leak_load_multiple
    run leak_load_exclusive
    run leak_store_word
    run leak_store_byte_offset
    run leak_store_half_base
    run leak_store_post
    run leak_store_dual
    run leak_store_multiple
    run leak_store_exclusive
    run leak_push
    run leak_sbox
    run leak_loaded_by_secret
    run clean_write_back
    run clean_multiple_write_back
    run clean_store_of_secret
    finish

    @ r2 = an offset of 0 that depends on the secret
    .macro secret_offset
    ldr r2, [r0]
    and r2, r2, #0
    .endm

    function leak_load_word
    secret_offset
    ldr r3, [r1, r2]
    bx lr
    end leak_load_word

    function leak_load_byte_offset
    secret_offset
    ldrb.w r3, [r1, r2, lsl #2]
    bx lr
    end leak_load_byte_offset

    function leak_load_half_base
    secret_offset
    ldrh r3, [r2, r1]
    bx lr
    end leak_load_half_base

    function leak_load_signed
    secret_offset
    ldrsb r3, [r1, r2]
    ldrsh r3, [r1, r2]
    bx lr
    end leak_load_signed

    function leak_load_pre
    secret_offset
    add r1, r1, r2
    ldr r3, [r1, #4]!
    bx lr
    end leak_load_pre

    function leak_load_post
    secret_offset
    add r1, r1, r2
    ldr r3, [r1], #4
    bx lr
    end leak_load_post

    function leak_load_dual
    secret_offset
    add r1, r1, r2
    ldrd r2, r3, [r1, #8]
    bx lr
    end leak_load_dual

    function leak_load_multiple
    secret_offset
    add r1, r1, r2
    ldmia r1!, {r2, r3}
    bx lr
    end leak_load_multiple

    function leak_load_exclusive
    secret_offset
    add r1, r1, r2
    ldrex r3, [r1]
    clrex
    bx lr
    end leak_load_exclusive

    function leak_store_word
    secret_offset
    movs r3, #1
    str r3, [r1, r2]
    bx lr
    end leak_store_word

    function leak_store_byte_offset
    secret_offset
    movs r3, #1
    strb.w r3, [r1, r2, lsl #3]
    bx lr
    end leak_store_byte_offset

    function leak_store_half_base
    secret_offset
    movs r3, #1
    strh r3, [r2, r1]
    bx lr
    end leak_store_half_base

    function leak_store_post
    secret_offset
    add r1, r1, r2
    str r3, [r1], #-4
    bx lr
    end leak_store_post

    function leak_store_dual
    secret_offset
    add r1, r1, r2
    strd r2, r3, [r1], #8
    bx lr
    end leak_store_dual

    function leak_store_multiple
    secret_offset
    add r1, r1, r2
    stmia r1!, {r2, r3}
    bx lr
    end leak_store_multiple

    function leak_store_exclusive
    secret_offset
    ldrex r3, [r1]
    add r1, r1, r2
    strex r3, r3, [r1]
    bx lr
    end leak_store_exclusive

    @ The stack pointer itself depends on the secret: the store, the load, and the one after it.
    function leak_push
    secret_offset
    mov r3, sp
    add sp, sp, r2
    push {r1, lr}
    pop {r1, r12}
    mov sp, r3
    bx lr
    end leak_push

    @ As an AES table: four look-ups by the bytes of a word.
    function leak_sbox
    ldr r2, [r0]
    uxtb r3, r2
    ldrb r12, [r1, r3]
    ubfx r3, r2, #8, #8
    ldrb r3, [r1, r3]
    eor r12, r12, r3
    ubfx r3, r2, #0, #4
    ldr r3, [r1, r3, lsl #2]
    str r12, [r1]
    bx lr
    end leak_sbox

    @ Data loaded from a secret address is secret, even if the table is public.
    function leak_loaded_by_secret
    secret_offset
    movs r3, #0
    str r3, [r1]
    ldr r3, [r1, r2]
    cmp r3, #0
    beq 1f
    nop
1:  bx lr
    end leak_loaded_by_secret

    @ A base register with write-back does not depend on the loaded data.
    function clean_write_back
    ldr r2, [r0], #4
    ldr r3, [r0, #4]!
    ldrb r2, [r0], #4
    ldrd r2, r3, [r0, #4]!
    ldr r2, [r0]
    strb r2, [r1], #2
    strh r3, [r1, #2]!
    strd r2, r3, [r1, #4]!
    ldr r2, [r1, #-4]
    bx lr
    end clean_write_back

    function clean_multiple_write_back
    ldmia r0!, {r2, r3}
    stmia r1!, {r2, r3}
    ldmia r0!, {r2, r3}
    stmdb r1!, {r2, r3}
    ldmdb r0!, {r2, r3}
    ldr r2, [r0]
    ldr r2, [r1]
    bx lr
    end clean_multiple_write_back

    function clean_store_of_secret
    ldr r2, [r0]
    str r2, [r1]
    strb r2, [r1, #5]
    strh r2, [r1, #6]
    bx lr
    end clean_store_of_secret
