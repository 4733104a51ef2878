// SPDX-License-Identifier: Apache-2.0 OR MIT
// A setuid program that uses PKCS#11: loads the module of its first argument, and prints the
// address of its first slot. Run with the ids of another user's file, so AT_SECURE is set.
#include <dlfcn.h>
#include <stdio.h>

typedef unsigned long (*Function)();

int main(int argc, char **argv) {
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (module == NULL) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: setuid MODULE");
        return 2;
    }
    Function initialise = (Function)dlsym(module, "C_Initialize");
    Function list = (Function)dlsym(module, "C_GetSlotList");
    Function about = (Function)dlsym(module, "C_GetSlotInfo");
    unsigned long rv = initialise(NULL);
    if (rv != 0) {
        printf("C_Initialize %lx\n", rv);
        return 1;
    }
    unsigned long slots[16], count = 16;
    unsigned char info[512] = {0};
    list((unsigned char)0, slots, &count);
    for (unsigned long at = 0; at < count; at++) {
        about(slots[at], info);
        printf("%.64s\n", (const char *)info);
    }
    return 0;
}
