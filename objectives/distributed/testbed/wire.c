/* A switch with links of given bandwidth and latency, in user space.
 *
 *   wire SLOTS COUNT  FD BITS_PER_SECOND ... (COUNT pairs)  NANOSECONDS ... (COUNT x COUNT, one way)
 *
 * Each FD is the far end of a TUN interface with a virtio header (10 bytes) before each packet; device i
 * has the IPv4 address x.x.x.(i+1). A packet leaves its sender's link when all before it have left, enters
 * its receiver's link when all before it have entered (at the same time, where that one is free), and is handed
 * over so many nanoseconds after its last bit. Segments that the kernel leaves together (TSO) travel
 * together, and are charged the headers that each of them would have had.
 *
 * On standard input: "cut I" for device I, "stats"; its end is the end of the program. "stats" is answered by
 * one line of JSON, and counts begin anew.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, HEADER = 10, ROOM = 66 * 1024, BURST = 32, MOST_LEAD = 50000 };

typedef struct {
    int64_t start, due; /* when its first bit leaves; when it is to be handed over */
    uint32_t length, charged;
    int destination, next;
    unsigned char data[ROOM];
} Packet;

typedef struct {
    int head, tail;
} Queue;

static Packet *packets;
static int unused_head = -1, touched, slots; /* given back; ever used; at most */
static int count;
static int descriptor[MOST];
static double nanoseconds_per_byte[MOST];
static int64_t latency[MOST][MOST];
static int64_t leaves[MOST], enters[MOST]; /* when the link is free again, in each direction */
static Queue sending[MOST], travelling[MOST][MOST];
static int cut[MOST];
static uint64_t bytes[MOST][MOST], handed_over, lost;
static double late_sum, lead; /* by how much a sleep ends late, on the average: it is begun as much earlier */
static int64_t late_most;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void put(Queue *queue, int index) {
    packets[index].next = -1;
    if (queue->head < 0)
        queue->head = index;
    else
        packets[queue->tail].next = index;
    queue->tail = index;
}

static int take(Queue *queue) {
    int index = queue->head;
    queue->head = packets[index].next;
    return index;
}

/* -1 where there is no room. What was used last comes first: its pages are in the caches. */
static int unused(void) {
    if (unused_head < 0 && touched < slots)
        return touched;
    return unused_head;
}

static void occupy(int index) {
    if (index == touched)
        touched++;
    else
        unused_head = packets[index].next;
}

static void give_back(int index) {
    packets[index].next = unused_head;
    unused_head = index;
}

/* Bytes on the wire: what the kernel left together would have gone out in segments with headers. */
static uint32_t charge(const unsigned char *data, uint32_t length) {
    uint16_t header_length, segment;
    memcpy(&header_length, data + 2, 2);
    memcpy(&segment, data + 4, 2);
    uint32_t packet = length - HEADER;
    if (data[1] == 0 || segment == 0 || header_length >= packet)
        return packet;
    uint32_t segments = (packet - header_length + segment - 1) / segment;
    return packet + (segments - 1) * header_length;
}

static void receive(int source) {
    for (int i = 0; i < BURST && unused() >= 0; i++) {
        int index = unused();
        Packet *packet = &packets[index];
        ssize_t length = read(descriptor[source], packet->data, ROOM);
        if (length <= 0)
            return;
        const unsigned char *ip = packet->data + HEADER;
        int destination = length >= HEADER + 20 && ip[0] >> 4 == 4 ? ip[19] - 1 : -1;
        if (destination < 0 || destination >= count)
            continue; /* not IPv4, or for nobody here */
        packet->charged = charge(packet->data, length);
        bytes[source][destination] += packet->charged;
        if (cut[source] || cut[destination]) {
            lost++;
            continue;
        }
        occupy(index);
        packet->length = length;
        packet->destination = destination;
        int64_t at = now();
        packet->start = at > leaves[source] ? at : leaves[source];
        leaves[source] = packet->start + (int64_t)(packet->charged * nanoseconds_per_byte[source]);
        put(&sending[source], index);
    }
}

/* Those whose first bit leaves now are under way, and have their place in the receiver's link. */
static void depart(int source, int64_t at) {
    while (sending[source].head >= 0 && packets[sending[source].head].start <= at) {
        int index = take(&sending[source]);
        Packet *packet = &packets[index];
        int to = packet->destination;
        int64_t begin = packet->start > enters[to] ? packet->start : enters[to];
        enters[to] = begin + (int64_t)(packet->charged * nanoseconds_per_byte[to]);
        int64_t left = packet->start + (int64_t)(packet->charged * nanoseconds_per_byte[source]);
        packet->due = (left > enters[to] ? left : enters[to]) + latency[source][to];
        put(&travelling[source][to], index);
    }
}

static void arrive(int source, int destination, int64_t at) {
    Queue *queue = &travelling[source][destination];
    while (queue->head >= 0 && packets[queue->head].due <= at) {
        int index = take(queue);
        Packet *packet = &packets[index];
        int64_t late = now() - packet->due;
        if (cut[source] || cut[destination]
            || write(descriptor[destination], packet->data, packet->length) < 0) {
            lost++;
        } else {
            handed_over++;
            late_sum += late < 0 ? -late : late;
            if (late > late_most)
                late_most = late;
        }
        give_back(index);
    }
}

static int64_t next_event(void) {
    int64_t first = INT64_MAX;
    for (int i = 0; i < count; i++) {
        if (sending[i].head >= 0 && packets[sending[i].head].start < first)
            first = packets[sending[i].head].start;
        for (int j = 0; j < count; j++)
            if (travelling[i][j].head >= 0 && packets[travelling[i][j].head].due < first)
                first = packets[travelling[i][j].head].due;
    }
    return first;
}

static void say_stats(void) {
    printf("{\"packets\": %llu, \"lost\": %llu, \"late_mean\": %.9f, \"late_most\": %.9f, \"bytes\": [",
           (unsigned long long)handed_over, (unsigned long long)lost,
           handed_over ? late_sum / handed_over * 1e-9 : 0.0, late_most * 1e-9);
    for (int i = 0; i < count; i++) {
        printf(i ? ", [" : "[");
        for (int j = 0; j < count; j++)
            printf(j ? ", %llu" : "%llu", (unsigned long long)bytes[i][j]);
        printf("]");
    }
    printf("]}\n");
    fflush(stdout);
    memset(bytes, 0, sizeof bytes);
    handed_over = lost = 0;
    late_sum = 0;
    late_most = 0;
}

/* 0 at the end of the input. */
static int obey(void) {
    static char text[256];
    static int filled;
    ssize_t got = read(0, text + filled, sizeof text - 1 - filled);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        return 0;
    if (got < 0)
        return 1;
    filled += got;
    text[filled] = 0;
    char *line = text, *end;
    while ((end = strchr(line, '\n'))) {
        int device;
        *end = 0;
        if (sscanf(line, "cut %d", &device) == 1 && device >= 0 && device < count)
            cut[device] = 1;
        else if (strcmp(line, "stats") == 0)
            say_stats();
        line = end + 1;
    }
    filled = strlen(line);
    memmove(text, line, filled + 1);
    return filled < (int)sizeof text - 1;
}

static int64_t lead_now(void) {
    return lead < MOST_LEAD ? (int64_t)lead : MOST_LEAD;
}

static void run(void) {
    struct pollfd polled[MOST + 1];
    int64_t planned = 0;
    for (;;) {
        int64_t at = now();
        if (planned) /* a sleep that ended by itself */
            lead += 0.02 * (at - planned - lead);
        planned = 0;
        at += lead_now();
        for (int i = 0; i < count; i++)
            depart(i, at);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++)
                arrive(i, j, at);
        int64_t event = next_event(), wait = event;
        struct timespec timeout = {0, 0};
        if (wait != INT64_MAX && (wait -= now() + lead_now()) > 0) {
            timeout.tv_sec = wait / 1000000000;
            timeout.tv_nsec = wait % 1000000000;
        }
        for (int i = 0; i < count; i++)
            polled[i] = (struct pollfd){unused() >= 0 ? descriptor[i] : -1, POLLIN, 0};
        polled[count] = (struct pollfd){0, POLLIN, 0};
        int ready = ppoll(polled, count + 1, event == INT64_MAX ? NULL : &timeout, NULL);
        if (ready == 0 && wait > 0)
            planned = event - lead_now();
        if (ready <= 0)
            continue;
        for (int i = 0; i < count; i++)
            if (polled[i].revents & POLLIN)
                receive(i);
        if (polled[count].revents && !obey())
            return;
    }
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    slots = atoi(argv[1]);
    count = atoi(argv[2]);
    if (count < 1 || count > MOST || argc != 3 + 2 * count + count * count)
        return 2;
    for (int i = 0; i < count; i++) {
        descriptor[i] = atoi(argv[3 + 2 * i]);
        nanoseconds_per_byte[i] = 8e9 / atof(argv[4 + 2 * i]);
        fcntl(descriptor[i], F_SETFL, fcntl(descriptor[i], F_GETFL) | O_NONBLOCK);
        sending[i].head = -1;
        for (int j = 0; j < count; j++) {
            latency[i][j] = atoll(argv[3 + 2 * count + i * count + j]);
            travelling[i][j].head = -1;
        }
    }
    /* Pages that no packet has touched take no memory. */
    packets = mmap(NULL, (size_t)slots * sizeof *packets, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (packets == MAP_FAILED)
        return 3;
    prctl(PR_SET_TIMERSLACK, 1UL);
    struct sched_param priority = {.sched_priority = 1};
    int real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    if (!real_time)
        setpriority(PRIO_PROCESS, 0, -20);
    printf("{\"real_time\": %s}\n", real_time ? "true" : "false");
    fflush(stdout);
    run();
    return 0;
}
