/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A handler that changes the return address of the interrupted code. */
static volatile unsigned sink;

__attribute__((noipa)) void elsewhere(void)
{
    sink += 1;
}

__attribute__((naked)) void sv_call(void)
{
    __asm__("ldr r0, =elsewhere\n\tbic r0, #1\n\tstr r0, [sp, #24]\n\tbx lr");
}

__attribute__((naked, noipa)) void redirected(void)
{
    __asm__("svc 0\n\tudf #0");
}

int main(void)
{
    for (int i = 0; i < 5; i++)
        redirected();
    return 0;
}
