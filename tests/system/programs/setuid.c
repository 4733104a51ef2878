// SPDX-License-Identifier: Apache-2.0 OR MIT
// A setuid program that uses PKCS#11: loads MODULE, a path that is fixed when it is compiled, and
// prints the address of each slot. Run with the ids of another user's file, so AT_SECURE is set.
#include <dlfcn.h>
#include <stdio.h>

typedef unsigned long (*Function)();

int main(void) {
    void *module = dlopen(MODULE, RTLD_NOW);
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
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
