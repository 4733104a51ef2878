/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "warifu_m3.h"
#define MUNACL_DECLASSIFY(at, bytes) WARIFU_UNPOISON(at, bytes)
