/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MUNACL_SECRETS_H
#define MUNACL_SECRETS_H
#include <string.h>

#include "munacl.h"
#include "munacl_random.h"
#include "start.h"
#ifdef TAINT
#include "warifu_m3.h"
#define POISON(at, bytes) WARIFU_POISON(at, bytes)
#define UNPOISON(at, bytes) WARIFU_UNPOISON(at, bytes)
#define ROUNDS 1
#else
#define POISON(at, bytes) ((void)(at))
#define UNPOISON(at, bytes) ((void)(at))
#ifndef ROUNDS
#define ROUNDS 32
#endif
#endif
#endif
