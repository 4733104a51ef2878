#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes table.c: the comb's points, from the curve's definition (RFC 8032 section 5.1)."""

import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1

Point = tuple[int, int]


def base_point() -> Point:
    """Its y is 4/5, its x even."""
    y = 4 * pow(5, -1, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    return (P - x if x & 1 else x), y


def add(a: Point, b: Point) -> Point:
    """The sum of two points."""
    k = D * a[0] * a[1] * b[0] * b[1] % P
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + k, -1, P) % P
    return x, (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, P) % P


def multiple(n: int, point: Point) -> Point:
    """A point, n times."""
    result = (0, 1)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def words(value: int) -> str:
    """Eight words of C, the lowest first."""
    texts = [f"0x{value >> 32 * i & 0xFFFFFFFF:08x}" for i in range(8)]
    return f"{', '.join(texts[:4])},\n        {', '.join(texts[4:])}"


def points(teeth: int, spacing: int) -> list[str]:
    """The top tooth is positive, tooth i as bit i of the index says."""
    rows = []
    for index in range(1 << teeth - 1):
        scalar = 1 << spacing * (teeth - 1)
        for tooth in range(teeth - 1):
            scalar += (1 if index >> tooth & 1 else -1) << spacing * tooth
        x, y = multiple(scalar % L, base_point())
        row = [(y + x) % P, (y - x) % P, 2 * D * x * y % P]
        rows.append("        " + ",\n        ".join(words(value) for value in row))
    return rows


def main() -> None:
    """Prints table.c for the numbers of teeth and bits between them."""
    teeth, spacing = int(sys.argv[1]), int(sys.argv[2])
    print("/* SPDX-License-Identifier: Apache-2.0 OR MIT */")
    print(
        f"/* Written by generate_table.py {teeth} {spacing}: y + x, y - x, 2dxy of each point. */"
    )
    print('#include "ed25519.h"\n')
    print("const uint32_t munacl_ed_table[MUNACL_ED_POINTS][24] = {")
    print("    {\n" + "\n    },\n    {\n".join(points(teeth, spacing)) + "\n    },\n};")


main()
