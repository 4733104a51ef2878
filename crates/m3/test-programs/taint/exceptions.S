@ SPDX-License-Identifier: Apache-2.0 OR MIT
@ Secrets in exception frames.
    .include "taint.inc"

    begin
    run leak_in_handler
    run leak_after_return
    run leak_flag_after_return
    run leak_stacked_by_handler
    run leak_return_address
    run leak_process_stack
    run leak_behind_chain
    run clean_flags_after_return
    run clean_frame_of_public
    run clean_link_in_handler
    finish

    @ SVC 0 branches on the stacked R2. SVC 1 does nothing. SVC 2 stores R1 to the stacked R3. SVC 3
    @ makes the return address depend on R1. SVC 4 branches on the bytes of the stacked xPSR other
    @ than the flags. SVC 5 branches on LR. SVC 6 leaves the secret in R3 and public data in R2 for
    @ PendSV, which is tail-chained.
    function sv_call
    tst lr, #4
    ite eq
    mrseq r2, msp
    mrsne r2, psp
    ldr r3, [r2, #24]
    ldrb r3, [r3, #-2]
    cmp r3, #6
    bhi 7f
    tbb [pc, r3]
6:  .byte (0f - 6b) / 2, (7f - 6b) / 2, (2f - 6b) / 2, (3f - 6b) / 2
    .byte (4f - 6b) / 2, (5f - 6b) / 2, (8f - 6b) / 2, 0
0:  ldr r3, [r2, #8]
    cbz r3, 7f
    b 7f
2:  str r1, [r2, #12]
    b 7f
3:  and r3, r1, #0
    ldr r1, [r2, #24]
    add r1, r1, r3
    str r1, [r2, #24]
    b 7f
4:  ldrh r3, [r2, #28]
    cbz r3, 7f
    b 7f
5:  cmp lr, #0
    beq 7f
7:  bx lr
8:  ldr r3, =0xe000ed04
    mov r2, #0x10000000
    str r2, [r3]
    ldr r3, [r0]
    bx lr
    .ltorg
    end sv_call

    function pend_sv
    cbz r2, 1f
    nop
1:  cbz r3, 2f
    nop
2:  cmp lr, #0
    beq 3f
3:  bx lr
    end pend_sv

    function leak_in_handler
    ldr r2, [r0]
    svc 0
    bx lr
    end leak_in_handler

    function leak_after_return
    ldr r2, [r0]
    svc 1
    cbz r2, 1f
    nop
1:  bx lr
    end leak_after_return

    @ The handler changes the flags: after it the secret ones are restored.
    function leak_flag_after_return
    ldr r2, [r0]
    cmp r2, #3
    movs r2, #0
    svc 1
    bcs 1f
    nop
1:  bx lr
    end leak_flag_after_return

    function leak_stacked_by_handler
    ldr r1, [r0]
    movs r3, #0
    svc 2
    cbz r3, 1f
    nop
1:  bx lr
    end leak_stacked_by_handler

    function leak_return_address
    ldr r1, [r0]
    svc 3
    bx lr
    end leak_return_address

    function leak_process_stack
    mov r3, sp
    sub r3, r3, #256
    bic r3, r3, #7
    msr psp, r3
    movs r3, #2
    msr control, r3
    isb
    ldr r2, [r0]
    svc 1
    svc 0
    movs r3, #0
    msr control, r3
    isb
    cbz r2, 1f
    nop
1:  bx lr
    end leak_process_stack

    @ PendSV saw the registers of the previous handler; here they are restored.
    function leak_behind_chain
    ldr r2, [r0]
    movs r3, #0
    svc 6
    cbz r3, 1f
    nop
1:  cbz r2, 2f
    nop
2:  bx lr
    end leak_behind_chain

    @ N and Z are secret; C and V are public, also after the handler.
    function clean_flags_after_return
    cmp r1, #0
    ldr r2, [r0]
    ands r2, r2, #1
    mov r2, #0
    svc 1
    bcs 1f
    nop
1:  bvs 2f
    nop
2:  bx lr
    end clean_flags_after_return

    @ A secret in R1 labels only its own word of the frame.
    function clean_frame_of_public
    ldr r1, [r0]
    movs r2, #0
    svc 0
    svc 4
    cbz r2, 1f
    nop
1:  bx lr
    end clean_frame_of_public

    @ LR is secret outside the handler and EXC_RETURN in it.
    function clean_link_in_handler
    mov r12, lr
    ldr lr, [r0]
    svc 5
    bx r12
    end clean_link_in_handler
