@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Branches and jump targets that depend on a secret.
    .include "taint.inc"

    begin
    run leak_beq
    run leak_wide_blt
    run leak_cbz
    run leak_cbnz
    run leak_branch_in_it
    run leak_return_in_it
    run leak_bx
    run leak_blx
    run leak_mov_pc
    run leak_add_pc
    run leak_pop_pc
    run leak_ldr_pc
    run leak_ldm_pc
    run leak_tbb_index
    run leak_tbh_index
    run leak_tbb_entry
    run clean_loop
    finish

    @ r2 = the address given, as a secret
    .macro secret_address label
    ldr r3, [r0]
    and r3, r3, #0
    adr r2, \label
    adds r2, r2, #1
    add r2, r2, r3
    .endm

    function leak_beq
    ldr r2, [r0]
    cmp r2, #7
    beq 1f
    nop
1:  bx lr
    end leak_beq

    function leak_wide_blt
    ldr r2, [r0, #4]
    cmp r2, #7
    blt.w 1f
    nop
1:  bx lr
    end leak_wide_blt

    function leak_cbz
    ldrb r2, [r0]
    cbz r2, 1f
    nop
1:  bx lr
    end leak_cbz

    function leak_cbnz
    ldrb r2, [r0, #1]
    cbnz r2, 1f
    nop
1:  bx lr
    end leak_cbnz

    function leak_branch_in_it
    ldr r2, [r0]
    tst r2, #1
    it ne
    bne.n 1f
    nop
1:  bx lr
    end leak_branch_in_it

    function leak_return_in_it
    ldr r2, [r0]
    tst r2, #4
    it ne
    bxne lr
    bx lr
    end leak_return_in_it

    function leak_bx
    secret_address 1f
    bx r2
    .align 2
1:  bx lr
    end leak_bx

    function leak_blx
    push {r4, lr}
    secret_address 1f
    blx r2
    pop {r4, pc}
    .align 2
1:  bx lr
    end leak_blx

    function leak_mov_pc
    secret_address 1f
    mov pc, r2
    .align 2
1:  bx lr
    end leak_mov_pc

    function leak_add_pc
    ldr r2, [r0]
    and r2, r2, #0
    add pc, r2
    nop
    bx lr
    end leak_add_pc

    function leak_pop_pc
    secret_address 1f
    push {r2, r3}
    pop {r1}
    push {r1, r2}
    pop {r1, pc}
    .align 2
1:  pop {r1}
    bx lr
    end leak_pop_pc

    function leak_ldr_pc
    secret_address 1f
    str r2, [r1]
    ldr pc, [r1]
    .align 2
1:  bx lr
    end leak_ldr_pc

    function leak_ldm_pc
    secret_address 1f
    stmia r1, {r0, r2}
    ldmia r1, {r0, pc}
    .align 2
1:  bx lr
    end leak_ldm_pc

    function leak_tbb_index
    ldr r2, [r0]
    and r2, r2, #1
    tbb [pc, r2]
1:  .byte (2f - 1b) / 2, (3f - 1b) / 2
2:  nop
3:  bx lr
    end leak_tbb_index

    function leak_tbh_index
    ldr r2, [r0]
    and r2, r2, #1
    tbh [pc, r2, lsl #1]
1:  .hword (2f - 1b) / 2, (3f - 1b) / 2
2:  nop
3:  bx lr
    end leak_tbh_index

    @ The table is secret, its index is not.
    function leak_tbb_entry
    ldrb r2, [r0]
    and r2, r2, #0
    strb r2, [r1]
    movs r2, #0
    tbb [r1, r2]
    bx lr
    end leak_tbb_entry

    function clean_loop
    movs r3, #4
1:  ldr r2, [r0], #4
    str r2, [r1], #4
    subs r3, #1
    bne 1b
    bx lr
    end clean_loop
