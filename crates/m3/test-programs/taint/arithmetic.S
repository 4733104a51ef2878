@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Multiplications with early termination, divisions, and conditional instructions.
    .include "taint.inc"

    begin
    run leak_umull
    run leak_umull_second
    run leak_smull
    run leak_umlal
    run leak_smlal
    run leak_umlal_sum
    run leak_udiv
    run leak_sdiv_second
    run leak_derived
    run leak_it
    run leak_it_skipped
    run leak_it_store
    run leak_it_else
    run leak_it_result
    run clean_multiply
    run clean_public_operands
    run leak_return_not_taken
    run leak_frame_not_left
    run leak_call_not_made
    run clean_public_it
    run clean_calls_after
    finish

    function leak_umull
    ldr r2, [r0]
    movs r3, #5
    umull r2, r3, r2, r3
    bx lr
    end leak_umull

    function leak_umull_second
    ldr r2, [r0]
    movs r3, #5
    umull r2, r3, r3, r2
    bx lr
    end leak_umull_second

    function leak_smull
    ldrsb r2, [r0, #5]
    movs r3, #5
    smull r2, r3, r2, r3
    bx lr
    end leak_smull

    function leak_umlal
    ldr r12, [r0]
    movs r2, #0
    movs r3, #0
    umlal r2, r3, r12, r2
    bx lr
    end leak_umlal

    function leak_smlal
    ldr r12, [r0]
    movs r2, #0
    movs r3, #0
    smlal r2, r3, r3, r12
    bx lr
    end leak_smlal

    @ Arm does not say which operand decides the cycles of UMLAL.
    function leak_umlal_sum
    ldr r2, [r0]
    movs r3, #0
    mov r12, #9
    umlal r2, r3, r12, r12
    bx lr
    end leak_umlal_sum

    function leak_udiv
    ldr r2, [r0]
    movs r3, #5
    udiv r2, r2, r3
    bx lr
    end leak_udiv

    function leak_sdiv_second
    ldr r2, [r0]
    movs r3, #5
    sdiv r2, r3, r2
    bx lr
    end leak_sdiv_second

    @ Through every operation with a result.
    function leak_derived
    ldr r2, [r0]
    mvn r2, r2
    rev r2, r2
    rbit r2, r2
    clz r2, r2
    add r3, r1, r2, lsl #3
    rsb r3, r3, #7
    bfi r2, r3, #4, #8
    movs r3, #0
    bfi r3, r2, #0, #5
    mul r2, r3, r1
    movs r3, #2
    mla r3, r3, r3, r2
    mls r2, r3, r1, r1
    ssat r2, #9, r2
    lsls r2, r2, #1
    sxtb r2, r2, ror #8
    movt r2, #77
    bfc r2, #3, #20
    mov r3, r2
    udiv r2, r1, r3
    bx lr
    end leak_derived

    function leak_it
    ldr r2, [r0]
    cmp r2, #3
    it eq
    moveq r3, #1
    bx lr
    end leak_it

    function leak_it_skipped
    ldr r2, [r0]
    cmp r2, #3
    itt ne
    addne r3, r3, #1
    addne r3, r3, #1
    bx lr
    end leak_it_skipped

    function leak_it_store
    ldr r2, [r0]
    cmp r2, #3
    it hi
    strhi r1, [r1]
    bx lr
    end leak_it_store

    function leak_it_else
    ldr r2, [r0]
    tst r2, #1
    ite mi
    movmi r3, #1
    movpl r3, #2
    bx lr
    end leak_it_else

    @ Results under a secret condition are secret, whether it holds or not.
    function leak_it_result
    ldr r2, [r0]
    movs r3, #0
    str r3, [r1]
    cmp r2, #9
    itt eq
    moveq r3, #1
    streq r3, [r1]
    cbz r3, 1f
    nop
1:  ldr r3, [r1]
    cbz r3, 2f
    nop
2:  bx lr
    end leak_it_result

    @ A return or call under a secret condition that fails leaves SP, LR and the stack unchanged.
    function leak_return_not_taken
    push {r4, lr}
    ldr r2, [r0]
    cmp r2, #0
    it eq
    popeq {r4, pc}
    push {r3}
    pop {r3}
    pop {r4, pc}
    end leak_return_not_taken

    function leak_frame_not_left
    push {r4, lr}
    sub sp, sp, #8
    ldr r2, [r0]
    cmp r2, #0
    itt eq
    addeq sp, sp, #8
    popeq {r4, pc}
    push {r3}
    pop {r3}
    add sp, sp, #8
    pop {r4, pc}
    end leak_frame_not_left

    function leak_call_not_made
    push {r4, lr}
    mov r4, lr
    ldr r2, [r0]
    cmp r2, #0
    it eq
    bleq clean_multiply
    mov lr, r4
    bl clean_calls_after
    pop {r4, pc}
    end leak_call_not_made

    function clean_calls_after
    push {r4, r5, lr}
    ldr r4, [r1]
    pop {r4, r5, pc}
    end clean_calls_after

    function clean_multiply
    ldr r2, [r0]
    mul r3, r2, r1
    muls r2, r3, r2
    mla r2, r3, r2, r1
    mls r2, r3, r2, r1
    bx lr
    end clean_multiply

    @ Secret results that are overwritten by public ones.
    function clean_public_operands
    ldr r2, [r0]
    ldr r3, [r0, #4]
    movs r2, #3
    movw r3, #70
    umull r2, r3, r2, r3
    ldr r2, [r0]
    ldr r3, =1000
    mov r2, r3
    udiv r2, r2, r3
    ldr r2, [r0]
    adr r2, clean_public_operands
    smull r2, r3, r2, r2
    ldr r2, [r0]
    eors r2, r2, r2
    udiv r2, r1, r2
    ldr r2, [r0]
    sub r2, r2, r2
    udiv r2, r1, r2
    ldr r2, [r0]
    bfc r2, #0, #32
    udiv r2, r1, r2
    ldr r2, [r0]
    bfi r2, r1, #0, #32
    udiv r2, r1, r2
    bx lr
    .ltorg
    end clean_public_operands

    function clean_public_it
    ldr r2, [r0]
    cmp r2, #3
    cmp r1, #4
    ite eq
    moveq r3, r2
    movne r3, #1
    udiv r3, r1, r3
    bx lr
    end clean_public_it
