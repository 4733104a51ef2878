/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Prints what a part of memory came up with, for `warifu cells capture`: a section that start-up
 * leaves alone, above .data and .bss and below the stack. */
#include "report.h"

#ifndef CAPTURE_BYTES
#define CAPTURE_BYTES 4096
#endif
enum { LINE = 32 };

static unsigned char cells[CAPTURE_BYTES] __attribute__((section(".noinit")));

int main(void)
{
    munacl_console_begin();
    report_head("# munacl cells board=");
    report_head(munacl_console_board());
    report_head(" bytes=");
    report_head_number(CAPTURE_BYTES);
    report_head(" power_up=");
    report_head_number((uint32_t)munacl_console_is_power_up());
    report_head("\n");
    for (int at = 0; at < CAPTURE_BYTES; at += LINE) {
        char text[2 * LINE + 2];
        for (int i = 0; i < LINE; i++) {
            text[2 * i] = "0123456789abcdef"[cells[at + i] >> 4];
            text[2 * i + 1] = "0123456789abcdef"[cells[at + i] & 15];
        }
        text[2 * LINE] = '\n';
        text[2 * LINE + 1] = 0;
        report(text);
    }
    report_end();
    munacl_leave(0);
}
