/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines for a host that reads them over a serial line: how many there were at the end, and the
 * CRC-32 (ISO 3309) of the head and them. */
#ifndef MUNACL_REPORT_H
#define MUNACL_REPORT_H

#include "start.h"

static uint32_t report_crc = UINT32_MAX, report_rows;

static void report_head(const char *text)
{
    munacl_print(text);
    for (; *text; text++) {
        report_crc ^= (unsigned char)*text;
        for (int bit = 0; bit < 8; bit++)
            report_crc = report_crc >> 1 ^ (report_crc & 1 ? 0xedb88320 : 0);
    }
}

static void report_head_number(uint32_t value)
{
    char text[11];
    munacl_number(text, value);
    report_head(text);
}

/* A line, or a part of one. */
static void report(const char *text)
{
    report_head(text);
    for (; *text; text++)
        report_rows += *text == '\n';
}

static void report_end(void)
{
    munacl_print("# end rows=");
    munacl_print_number(report_rows);
    munacl_print(" crc32=");
    munacl_print_number(~report_crc);
    munacl_print("\n");
}

#endif
