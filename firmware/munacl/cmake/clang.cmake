# SPDX-License-Identifier: Apache-2.0 OR MIT
# clang with the headers of Debian's newlib, which GCC links.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER clang)
set(CMAKE_ASM_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET thumbv7m-none-eabi)
set(CMAKE_ASM_COMPILER_TARGET thumbv7m-none-eabi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_LINK_EXECUTABLE "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb <CMAKE_C_LINK_FLAGS> \
<LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
add_compile_options(-mcpu=cortex-m3 -mthumb -fshort-enums -isystem /usr/lib/arm-none-eabi/include)
