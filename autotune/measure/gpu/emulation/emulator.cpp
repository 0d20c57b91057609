/* Runs CUDA kernels on the CPU for their answers, not for their speed.
 *
 * The blocks of a launch run one after another, in a random order. Each thread of a block is a fibre that runs to its next
 * barrier; in which order is drawn anew for every stretch between barriers. The kernel is compiled with
 * ThreadSanitizer's instrumentation (the calls __tsan_read4 ... before each access), but these calls end
 * here: an access outside every buffer, a misaligned one, and two threads that use the same byte of shared
 * memory in one stretch, one of them writing, end the launch with a sentence that names the culprit.
 * (How races are told: Zheng et al., "GRace", PPoPP 2011, in its simplest form.)
 */
#include "cuda.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

static const size_t MOST_SHARED = 256 * 1024;
static const size_t STACK = 64 * 1024;

extern "C" {
EmulatorState emulator_state;
alignas(128) unsigned char shared_memory[MOST_SHARED];
}

namespace {

enum class At { START, BARRIER, END };

struct Fibre {
    ucontext_t context;
    At at = At::START;
};

struct Range {
    uintptr_t from, to;
};

/* Who used a byte of shared memory last, and in which stretch; -1: nobody, -2: several readers. */
struct Use {
    unsigned written_in = 0, read_in = 0;
    int writer = -1, reader = -1;
};

struct Launch {
    std::vector<Fibre> fibres;
    std::unique_ptr<unsigned char[]> stacks;
    std::vector<Range> buffers;
    std::vector<Use> uses;
    size_t shared_bytes;
    ucontext_t scheduler;
    int current = -1;
    unsigned stretch = 0;
    void (*run)(void *);
    void *with;
};

Launch *launch = nullptr;
char message[512];

void fail(const char *format, ...)
{
    if (message[0])
        return; /* the first one counts */
    int used = snprintf(message, sizeof message, "block (%u, %u, %u), thread (%u, %u, %u): ",
                        emulator_state.block.x, emulator_state.block.y, emulator_state.block.z,
                        emulator_state.thread.x, emulator_state.thread.y, emulator_state.thread.z);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    va_end(arguments);
}

/* Gives the processor back; a fibre that must not go on is never resumed. */
void leave(At at)
{
    Fibre &self = launch->fibres[launch->current];
    self.at = at;
    swapcontext(&self.context, &launch->scheduler);
}

void fibre_main()
{
    launch->run(launch->with);
    leave(At::END);
}

void check_shared(size_t offset, size_t size, bool writes)
{
    for (size_t byte = offset; byte < offset + size; byte++) {
        Use &use = launch->uses[byte];
        int self = launch->current, other = -1;
        if (use.written_in == launch->stretch && use.writer != self)
            other = use.writer;
        if (writes && use.read_in == launch->stretch && use.reader != self)
            other = use.reader;
        if (other != -1) {
            char who[32] = "other threads use";
            if (other >= 0)
                snprintf(who, sizeof who, "another thread (%d) uses", other);
            fail("%s byte %zu of shared memory, which %s with no barrier between", writes ? "writes" : "reads", byte,
                 who);
            return;
        }
        if (writes) {
            use.written_in = launch->stretch, use.writer = self;
        } else {
            bool several = use.read_in == launch->stretch && use.reader != self;
            use.read_in = launch->stretch, use.reader = several ? -2 : self;
        }
    }
}

bool own(uintptr_t from, size_t size)
{
    auto inside = [&](const void *start, size_t length) {
        uintptr_t low = reinterpret_cast<uintptr_t>(start);
        return from >= low && from + size <= low + length;
    };
    return inside(launch->stacks.get(), STACK * launch->fibres.size()) ||
           inside(&emulator_state, sizeof emulator_state);
}

void access(const void *address, size_t size, bool writes, size_t alignment)
{
    if (!launch || launch->current < 0)
        return;
    uintptr_t from = reinterpret_cast<uintptr_t>(address);
    uintptr_t shared = reinterpret_cast<uintptr_t>(shared_memory);
    const char *verb = writes ? "writes" : "reads";
    if (own(from, size))
        return;
    if (from % alignment) {
        fail("%s %zu bytes at an address that is no multiple of it", verb, alignment);
    } else if (from >= shared && from < shared + MOST_SHARED) {
        size_t offset = from - shared;
        if (offset + size > launch->shared_bytes)
            fail("%s byte %zu of shared memory, of which the block has %zu", verb, offset, launch->shared_bytes);
        else
            check_shared(offset, size, writes);
    } else {
        for (const Range &buffer : launch->buffers)
            if (from >= buffer.from && from + size <= buffer.to)
                return;
        fail("%s %zu bytes outside every buffer", verb, size);
    }
    if (message[0])
        leave(At::END); /* the access itself could end the process */
}

void begin_block(unsigned x, unsigned y, unsigned z)
{
    emulator_state.block = {x, y, z};
    memset(shared_memory, 0xFF, launch->shared_bytes); /* NaN: nobody has written it yet */
    std::fill(launch->uses.begin(), launch->uses.end(), Use{});
    launch->stretch = 0;
    for (size_t i = 0; i < launch->fibres.size(); i++) {
        Fibre &fibre = launch->fibres[i];
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = launch->stacks.get() + i * STACK;
        fibre.context.uc_stack.ss_size = STACK;
        fibre.context.uc_link = nullptr;
        makecontext(&fibre.context, fibre_main, 0);
        fibre.at = At::START;
    }
}

/* Every thread up to its next barrier, or its end; whether all have ended. */
bool run_stretch(std::vector<int> &order, std::mt19937 &random)
{
    size_t ended = 0;
    launch->stretch++;
    std::shuffle(order.begin(), order.end(), random);
    for (int index : order) {
        dim3 size = emulator_state.block_size;
        emulator_state.thread = {index % size.x, index / size.x % size.y, index / (size.x * size.y)};
        launch->current = index;
        swapcontext(&launch->scheduler, &launch->fibres[index].context);
        launch->current = -1;
        if (message[0])
            return true;
        ended += launch->fibres[index].at == At::END;
    }
    if (ended && ended < order.size())
        fail("is in a block of which %zu of %zu threads wait at a barrier that the others never reach",
             order.size() - ended, order.size());
    return ended;
}

} // namespace

extern "C" void emulator_barrier() { leave(At::BARRIER); }

/* Null, or what went wrong. */
extern "C" const char *emulator_launch(const unsigned grid[3], const unsigned block[3], size_t shared_bytes,
                                       unsigned seed, const void *const *buffers, const size_t *sizes,
                                       size_t count, void (*run)(void *), void *with)
{
    Launch here;
    size_t threads = size_t(block[0]) * block[1] * block[2];
    message[0] = 0;
    if (shared_bytes > MOST_SHARED) {
        snprintf(message, sizeof message, "%zu bytes of shared memory are more than any GPU has", shared_bytes);
        return message;
    }
    here.fibres.resize(threads);
    here.stacks.reset(new unsigned char[STACK * threads]);
    here.uses.resize(shared_bytes);
    here.shared_bytes = shared_bytes;
    here.run = run, here.with = with;
    for (size_t i = 0; i < count; i++) {
        uintptr_t from = reinterpret_cast<uintptr_t>(buffers[i]);
        here.buffers.push_back({from, from + sizes[i]});
    }
    emulator_state.grid_size = {grid[0], grid[1], grid[2]};
    emulator_state.block_size = {block[0], block[1], block[2]};
    std::vector<int> order(threads);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(seed);
    std::vector<size_t> blocks(size_t(grid[0]) * grid[1] * grid[2]);
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    launch = &here;
    for (size_t index : blocks) {
        begin_block(index % grid[0], index / grid[0] % grid[1], index / grid[0] / grid[1]);
        while (!run_stretch(order, random))
            ;
        if (message[0])
            break;
    }
    launch = nullptr;
    return message[0] ? message : nullptr;
}

/* The calls that the compiler puts before every access. */
#define HOOK(bytes)                                                                                    \
    extern "C" void __tsan_read##bytes(void *address) { access(address, bytes, false, bytes); }            \
    extern "C" void __tsan_write##bytes(void *address) { access(address, bytes, true, bytes); }            \
    extern "C" void __tsan_unaligned_read##bytes(void *address) { access(address, bytes, false, bytes); }  \
    extern "C" void __tsan_unaligned_write##bytes(void *address) { access(address, bytes, true, bytes); }
HOOK(1)
HOOK(2)
HOOK(4)
HOOK(8)
HOOK(16)
/* A structure at once, which lies where its members may (five floats at any multiple of four); or a number or a
 * vector that the compiler itself sees to be misaligned, whose size is a power of two. */
static size_t alignment_of(size_t size)
{
    size_t power = size & -size;
    return power == size && size <= 16 ? size : std::min(power, size_t(4));
}
extern "C" void __tsan_read_range(void *address, size_t size) { access(address, size, false, alignment_of(size)); }
extern "C" void __tsan_write_range(void *address, size_t size) { access(address, size, true, alignment_of(size)); }
extern "C" void __tsan_vptr_update(void **, void *) {}
extern "C" void __tsan_vptr_read(void **) {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
