/* A management library with one GPU; whatever is not here, the real package reports as not found. */
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3 };

int nvmlInitWithFlags(unsigned flags) { return (int)flags; }
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    strncpy(text, "575.57.08", size);
    return OK;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 12090;
    return OK;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(index + 64UL);
    return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    (void)device;
    strncpy(text, "NVIDIA Test", size);
    return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
    (void)device;
    memory[0] = 1000000, memory[1] = 600000, memory[2] = 400000; /* total, free, used */
    return OK;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    *major = 9, *minor = 0;
    return OK;
}
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = 650500;
    return OK;
}
int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    (void)device;
    *current = 1, *pending = 0;
    return OK;
}
int nvmlDeviceGetPersistenceMode(void *device, unsigned *mode) {
    (void)device;
    *mode = 0;
    return OK;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    (void)device, (void)current, (void)pending;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *mhz) {
    (void)device;
    *mhz = kind == 1 ? 1980 : 2619; /* SM, memory */
    return OK;
}
