@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Secrets in single flags. Each branch tests one flag; the flags tested in `clean_` functions are
@ public.
    .include "taint.inc"

    begin
    run leak_carry_chain
    run leak_carry_to_register
    run leak_carry_mask
    run leak_shifted_carry
    run leak_register_shift_carry
    run leak_secret_amount
    run leak_rrx
    run leak_overflow
    run leak_muls
    run leak_logical_keeps_carry
    run leak_shift_by_zero
    run leak_saturation
    run leak_saturation_or_not
    run leak_mrs
    run leak_msr
    run clean_logical_flags
    run clean_public_compare
    run clean_carry_overwritten
    run clean_immediate_carry
    run clean_muls_keeps_carry
    run clean_shift_by_amount
    run clean_msr
    run clean_same_operands
    finish

    @ A 64-bit sum whose lower half is secret: the carry makes the upper half secret.
    function leak_carry_chain
    ldr r2, [r0]
    movs r3, #0
    adds r2, r2, #1
    adc r3, r3, #0
    cbz r3, 1f
    nop
1:  bx lr
    end leak_carry_chain

    function leak_carry_to_register
    ldr r2, [r0]
    subs r2, r2, r1
    sbcs r3, r1, r1
    bmi 1f
    nop
1:  bx lr
    end leak_carry_to_register

    function leak_carry_mask
    ldr r2, [r0]
    cmp r2, #4
    sbc r3, r3, r3
    udiv r3, r1, r3
    bx lr
    end leak_carry_mask

    function leak_shifted_carry
    ldr r2, [r0]
    movs r3, #0
    lsrs r2, r2, #1
    movs r2, #0
    bcs 1f
    nop
1:  bx lr
    end leak_shifted_carry

    function leak_register_shift_carry
    ldr r2, [r0]
    movs r3, #1
    lsrs r2, r3
    movs r2, #0
    bcs 1f
    nop
1:  bx lr
    end leak_register_shift_carry

    @ A public value, shifted by a secret amount.
    function leak_secret_amount
    ldr r2, [r0]
    movs r3, #1
    lsls r3, r2
    movs r2, #0
    bcs 1f
    nop
1:  cbz r3, 2f
    nop
2:  bx lr
    end leak_secret_amount

    function leak_rrx
    ldr r2, [r0]
    lsrs r2, r2, #1
    rrx r3, r1
    movs r2, #0
    udiv r3, r3, r1
    bx lr
    end leak_rrx

    function leak_overflow
    ldr r2, [r0]
    adds r2, r2, r1
    movs r2, #0
    bvs 1f
    nop
1:  bx lr
    end leak_overflow

    function leak_muls
    ldr r2, [r0]
    muls r2, r1, r2
    bpl 1f
    nop
1:  bx lr
    end leak_muls

    @ A public AND sets N and Z and leaves the secret C unchanged.
    function leak_logical_keeps_carry
    ldr r2, [r0]
    cmp r2, r1
    ands r3, r1, #1
    bcs 1f
    nop
1:  bx lr
    end leak_logical_keeps_carry

    function leak_shift_by_zero
    ldr r2, [r0]
    cmp r2, r1
    movs r3, #0
    lsls r1, r3
    bcs 1f
    nop
1:  bx lr
    end leak_shift_by_zero

    @ Q depends on whether a secret condition executed SSAT; the other flags are public again.
    function leak_saturation_or_not
    movs r3, #0
    msr apsr_nzcvq, r3
    movw r3, #0x8000
    ldr r2, [r0]
    cmp r2, #0
    it eq
    ssateq r12, #4, r3
    cmp r1, r1
    mrs r2, apsr
    tst r2, #0x8000000
    beq 1f
    nop
1:  movs r3, #0
    msr apsr_nzcvq, r3
    bx lr
    end leak_saturation_or_not

    function leak_saturation
    ldr r2, [r0]
    ssat r2, #3, r2
    mrs r3, apsr
    ands r3, r3, #0x08000000
    beq 1f
    nop
1:  movs r2, #0
    msr apsr_nzcvq, r2
    bx lr
    end leak_saturation

    function leak_mrs
    ldr r2, [r0]
    cmp r2, r1
    mrs r3, apsr
    cmp r1, r1
    udiv r3, r3, r1
    bx lr
    end leak_mrs

    function leak_msr
    ldr r2, [r0]
    msr apsr_nzcvq, r2
    bvs 1f
    nop
1:  movs r2, #0
    msr apsr_nzcvq, r2
    bx lr
    end leak_msr

    @ A secret AND sets only N and Z: C and V stay public.
    function clean_logical_flags
    cmp r1, #0
    ldr r2, [r0]
    ands r2, r2, r1
    bcs 1f
    nop
1:  bvs 2f
    nop
2:  bx lr
    end clean_logical_flags

    function clean_public_compare
    ldr r2, [r0]
    cmp r2, #0
    cmp r1, #0
    beq 1f
    bcs 1f
    bvs 1f
    bmi 1f
1:  bx lr
    end clean_public_compare

    function clean_carry_overwritten
    ldr r2, [r0]
    adds r2, r2, r2
    adds r3, r1, r1
    adcs r3, r3, #0
    beq 1f
    bgt 1f
1:  bx lr
    end clean_carry_overwritten

    @ The expansion of the constant sets the carry.
    function clean_immediate_carry
    ldr r2, [r0]
    cmp r2, #5
    movs.w r3, #0x80000000
    bcs 1f
    nop
1:  bmi 2f
    nop
2:  bx lr
    end clean_immediate_carry

    function clean_muls_keeps_carry
    cmp r1, #0
    ldr r2, [r0]
    muls r2, r1, r2
    bcs 1f
    nop
1:  bvc 2f
    nop
2:  bx lr
    end clean_muls_keeps_carry

    @ A shift of a public word by more than zero overwrites a secret carry.
    function clean_shift_by_amount
    ldr r2, [r0]
    cmp r2, r1
    movs r3, #3
    lsls r1, r3
    bcs 1f
    nop
1:  bx lr
    end clean_shift_by_amount

    function clean_msr
    ldr r2, [r0]
    cmp r2, r1
    msr apsr_nzcvq, r1
    beq 1f
    bvs 1f
    bcs 1f
1:  bx lr
    end clean_msr

    @ x - x and x ^ x are zero for any x.
    function clean_same_operands
    ldr r2, [r0]
    subs r3, r2, r2
    beq 1f
    bcs 1f
1:  ldr r3, [r0]
    eors r3, r3
    beq 2f
    nop
2:  ldr r3, [r0]
    cmp r3, r3
    bvs 3f
    beq 3f
3:  bx lr
    end clean_same_operands
