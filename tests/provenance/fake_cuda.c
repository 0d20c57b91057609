/* A CUDA driver with two GPUs that answers as cuda.h documents; the second refuses one question. */
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags) { return (int)flags; }

int cuDeviceGetCount(int *count) {
    *count = 2;
    return 0;
}

int cuDeviceGet(int *device, int index) {
    *device = index + 40; /* a handle is not an index */
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    strncpy(name, device == 40 ? "Big" : "Small", (size_t)size);
    return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
    memset(uuid, device, 16);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = device == 40 ? 150754820096UL : 8589934592UL;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int big = device == 40;
    switch (attribute) {
    case 1: *value = 1024; return 0;               /* MAX_THREADS_PER_BLOCK */
    case 10: *value = 32; return 0;                /* WARP_SIZE */
    case 12: *value = 65536; return 0;             /* MAX_REGISTERS_PER_BLOCK */
    case 16: *value = big ? 132 : 20; return 0;    /* MULTIPROCESSOR_COUNT */
    case 38: *value = 52428800; return 0;          /* L2_CACHE_SIZE */
    case 39: *value = 2048; return 0;              /* MAX_THREADS_PER_MULTIPROCESSOR */
    case 75: *value = big ? 9 : 8; return 0;       /* COMPUTE_CAPABILITY_MAJOR */
    case 76: *value = big ? 0 : 6; return 0;       /* COMPUTE_CAPABILITY_MINOR */
    case 81: *value = 233472; return 0;            /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    case 82: *value = 65536; return 0;             /* MAX_REGISTERS_PER_MULTIPROCESSOR */
    case 97: *value = 232448; return big ? 0 : 1;  /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    }
    return 1; /* CUDA_ERROR_INVALID_VALUE */
}
