// What runs on the device. Compiled to PTX by tools/compile_kernels.py, and for tests by an ordinary C++ compiler, which
// then runs thread after thread.
//
// A block has 8,192 events. A mask has a bit for each of them, in 64 lanes of four words: lane l has the events 128 * l to
// 128 * l + 127. The 32 threads of a warp share a mask: thread t has lanes t and t + 32, so that what a warp does once for a unit
// serves two lanes of each thread. A mask has a summary: bit l says whether lane l has any event. What a summary leaves out is never
// read, and may be anything: most of the memory of most masks is not touched. Lanes of predicates that are set bit by bit are the
// exception: they are empty between blocks.
//
// No thread reads what another writes in the same launch, but for counters and lists: the order in which integers are added does
// not matter, and neither does that of units in a list. The threads of a warp share what is in its own part of shared memory.
//
// What they do is in the files below; here is how they are launched.

#include "kernels/masks.cuh"
#include "kernels/predicates.cuh"
#include "kernels/units.cuh"
#include "kernels/counting.cuh"
#include "kernels/levels.cuh"
#include "kernels/rows.cuh"
#include "kernels/relevance.cuh"

#if ON_DEVICE
#define P(type, number) reinterpret_cast<type *>(a##number)
#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define LANE (threadIdx.x % 32)
#else
#define P(type, number) reinterpret_cast<type *>(a[number])
#endif
#define TO(masks, summaries) Predicates{ P(u32, masks), P(u64, summaries) }
// Arguments 0 to 3: values; 4 to 10: tables; 11 and 12: ranks.
#define VALUES(count) Values{ P(u32, 0), P(u64, 1), P(u32, 2), count }
#define VALUE_TABLES ValueTables{ P(ValueTable, 4), { P(u64, 5), P(u32, 6) }, { P(u64, 7), P(u32, 8) }, P(u32, 9), P(u32, 10) }
#define RANKS Ranks{ P(u32, 11), P(u32, 12) }
// Arguments 0 to 5: masks of rows, order, kept rows, masks, summaries, number of rows.
#define ROWS(rows) RowInputs{ P(u32, 0), P(u32, 1), P(u32, 2), P(u32, 3), P(u64, 4), rows }
// From argument 6 on: bounds, programs, code, the highest bar, first row, rows of a warp and of a chunk, and what is wanted of each.
#define SCORED_ROWS(rows, first, step, in_chunk) \
    ScoredRows{ ROWS(rows), P(u64, 6), P(u32, 7), P(Record, 8), P(u64, 9), first, step, in_chunk, P(u32, 13), P(u64, 14) }
#define BINS(least, counts, entries, room) Bins{ P(Entry, least), P(u32, counts), P(Entry, entries), room }
#define BEST(k) Best{ k, P(u32, 5), P(Entry, 6), P(u32, 7), P(Entry, 8), P(u32, 9), P(u32, 10) }

#if ON_DEVICE
// Four blocks fit into a multiprocessor: memory is waited for by some warps while others compute.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)

KERNEL scatter_bits(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) { scatter_bits_thread(THREAD, P(u32, 0), a1, TO(2, 3), a4); }
KERNEL scatter_points(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    scatter_points_warp(THREAD / 32, P(u32, 0), a1, P(u32, 2), P(u32, 3), TO(4, 5), a6);
}
KERNEL scatter_ranks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) {
    scatter_ranks_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), a4);
}
KERNEL look_up(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12, u64 a13,
               u64 a14, u64 a15) {
    look_up_warp(THREAD / 32, VALUES(a3), VALUE_TABLES, RANKS, TO(13, 14), a15);
}
KERNEL cuts(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    u64 item = THREAD / 64;
    if (item < a1) cuts_thread(LANE, THREAD / 32 % 2, item, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), TO(5, 6));
}
// Arguments 0 to 7: units of the level, where those of each kind end, tasks, singles, how many of them are listed.
#define LEVEL Level{ P(Unit, 0), { (u32)a1, (u32)a2, (u32)a3, (u32)a4 }, P(Task, 5), P(Single, 6), P(u32, 7) }
KERNEL look_ahead(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11) {
    look_ahead_thread(THREAD, LEVEL, P(u32, 8), P(u64, 9), a10, a11);
}
KERNEL run_singles(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12) {
    run_single_thread(THREAD, LEVEL, P(u32, 8), P(u32, 9), a10, P(u32, 11), P(u64, 12));
}
#define EVALUATE(KINDS) \
    u32 listed = *P(u32, 1); \
    if (blockIdx.x * WARPS >= listed) return; \
    __shared__ Mask planes[WARPS * WARP_PLANES * LANES_OF_THREAD * 32]; \
    __shared__ u32 sums[BLOCK_PLANES * WORDS]; \
    __shared__ Leaf lists[WARPS * LISTED_LEAVES]; \
    u32 own = threadIdx.x / 32; \
    PerLane<Workspace> space; \
    space.own.list = lists + own * LISTED_LEAVES; \
    space.own.counter = Counter{ planes + own * WARP_PLANES * LANES_OF_THREAD * 32 + LANE, sums, P(u32, 5), 0 }; \
    reset(&space.own.counter); \
    if (a5 != 0) { \
        for (u32 word = threadIdx.x; word < BLOCK_PLANES * WORDS; word += blockDim.x) sums[word] = 0; \
        __syncthreads(); \
    } \
    evaluate_warp<KINDS>(THREAD / 32, gridDim.x * WARPS, P(Task, 0), listed, P(u32, 2), P(u32, 3), a4, P(u64, 6), &space); \
    if (a5 != 0) { \
        clear_idle(&space.own.counter); \
        __syncthreads(); \
        sum_up(planes, sums); \
        __syncthreads(); \
        const u32 *counts = reinterpret_cast<const u32 *>(planes); \
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) \
            if (counts[event] != 0) atomicAdd(P(u32, 5) + event, counts[event]); \
    }
KERNEL evaluate_flat(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(FLAT) }
KERNEL evaluate_groups(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(GROUPS) }
KERNEL evaluate_sets(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(SETS) }
KERNEL evaluate_other(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(OTHER) }
// Argument 6: columns of events.
KERNEL count_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8) {
    if (THREAD / 32 < a8) count_chunk_warp(THREAD / 32, (u32)a6, ROWS(a5), P(u32, 7));
}
KERNEL scan(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) { scan_thread(THREAD, P(u32, 0), a1, a2, P(u32, 3), (u32)a4); }
KERNEL list_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12,
                   u64 a13, u64 a14, u64 a15) {
    Listing to = { P(u32, 6), P(u32, 7), P(u64, 8), P(u32, 9), a10, a11, a12, a13 };
    if (THREAD / 32 < a15) list_chunk_warp(THREAD / 32, (u32)a14, ROWS(a5), to);
}
KERNEL take_first(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9) {
    if (32 * (THREAD / 32) < a6) take_first_warp(THREAD / 32, ROWS(a5), a6, a7, P(u32, 8), P(u32, 9));
}
KERNEL list_few(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9) {
    list_few_thread(THREAD, ROWS(a5), a6, P(u32, 7), a8, P(Match, 9));
}
KERNEL count_events(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) {
    count_events_thread(THREAD, ROWS(a5), a6, P(u32, 7));
}
KERNEL start_best(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5) { start_best_thread(THREAD, a5, BINS(0, 1, 2, a3), P(u32, 4)); }
KERNEL want(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10) {
    if (THREAD / 32 < a10) want_warp(THREAD / 32, P(u64, 0), a1, a2, a3, a4, P(u32, 5), P(Entry, 6), P(u32, 7), P(u64, 8), P(u64, 9));
}
KERNEL score_rows(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12, u64 a13,
                  u64 a14, u64 a15, u64 a16, u64 a17, u64 a18) {
    __shared__ unsigned short lists[WARPS * LISTED_EVENTS];
    score_rows_warp(THREAD / 32, gridDim.x * WARPS, SCORED_ROWS(a5, a10, a11, a12), BINS(15, 16, 17, a18),
                    lists + threadIdx.x / 32 * LISTED_EVENTS);
}
KERNEL keep_best(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11) {
    if (THREAD / 32 < a11) keep_best_warp(THREAD / 32, BINS(0, 1, 2, a3), BEST(a4));
}
#else
#define FOR_THREADS for (u64 thread = 0; thread < threads; ++thread)
#define FOR_WARPS for (u64 warp = 0; warp < threads / 32; ++warp)

template <int KINDS> static void evaluate_on_host(u64 threads, const u64 *a) {
    FOR_WARPS {
        Mask planes[32][WARP_PLANES * LANES_OF_THREAD];
        Leaf lists[32][LISTED_LEAVES];
        u32 sums[BLOCK_PLANES * WORDS] = {};
        PerLane<Workspace> space;
        EACH_LANE {
            Workspace own = { lists[lane], { planes[lane], sums, P(u32, 5), 0 } };
            space[lane] = own;
            reset(&space[lane].counter);
        }
        evaluate_warp<KINDS>(warp, threads / 32, P(Task, 0), *P(u32, 1), P(u32, 2), P(u32, 3), a[4], P(u64, 6), &space);
        if (a[5] == 0) continue;
        EACH_LANE clear_idle(&space[lane].counter);
        for (u32 word = 0; word < WORDS; ++word) {
            Sum sum = shared_sum(sums, word);
            u32 lane = word / 4, each = lane / 32;
            for (u32 half = 0; half < 2; ++half)
                add_digits(&sum, plane_at(&space[lane % 32].counter, half * WARP_DIGITS, each)->w + word % 4,
                           LANES_OF_THREAD * sizeof(Mask) / sizeof(u32));
            for (u32 bit = 0; bit < 32; ++bit) add_to(P(u32, 5) + 32 * word + bit, sum_of(&sum, bit));
        }
    }
}

#define LEVEL Level{ P(Unit, 0), { (u32)a[1], (u32)a[2], (u32)a[3], (u32)a[4] }, P(Task, 5), P(Single, 6), P(u32, 7) }

extern "C" void tamis_launch(u32 kernel, u64 threads, const u64 *a) {
    switch (kernel) {
    case 0: FOR_THREADS scatter_bits_thread(thread, P(u32, 0), a[1], TO(2, 3), a[4]); break;
    case 1:
        FOR_WARPS scatter_points_warp(warp, P(u32, 0), a[1], P(u32, 2), P(u32, 3), TO(4, 5), a[6]);
        break;
    case 2: FOR_THREADS scatter_ranks_thread(thread, P(u32, 0), a[1], P(u32, 2), P(u32, 3), a[4]); break;
    case 3: FOR_WARPS EACH_LANE if (warp / 2 < a[1]) cuts_thread(lane, warp % 2, warp / 2, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), TO(5, 6)); break;
    case 4: evaluate_on_host<FLAT>(threads, a); break;
    case 5: evaluate_on_host<GROUPS>(threads, a); break;
    case 6: evaluate_on_host<OTHER>(threads, a); break;
    case 7: FOR_WARPS if (warp < a[8]) count_chunk_warp(warp, (u32)a[6], ROWS(a[5]), P(u32, 7)); break;
    case 8: FOR_THREADS scan_thread(thread, P(u32, 0), a[1], a[2], P(u32, 3), (u32)a[4]); break;
    case 9: {
        Listing to = { P(u32, 6), P(u32, 7), P(u64, 8), P(u32, 9), a[10], a[11], a[12], a[13] };
        FOR_WARPS if (warp < a[15]) list_chunk_warp(warp, (u32)a[14], ROWS(a[5]), to);
        break;
    }
    case 10: FOR_THREADS count_events_thread(thread, ROWS(a[5]), a[6], P(u32, 7)); break;
    case 16: FOR_THREADS list_few_thread(thread, ROWS(a[5]), a[6], P(u32, 7), a[8], P(Match, 9)); break;
    case 11:
        FOR_WARPS if (32 * warp < a[6]) take_first_warp(warp, ROWS(a[5]), a[6], a[7], P(u32, 8), P(u32, 9));
        break;
    case 12: evaluate_on_host<SETS>(threads, a); break;
    case 15:
        FOR_WARPS look_up_warp(warp, VALUES(a[3]), VALUE_TABLES, RANKS, TO(13, 14), a[15]);
        break;
    case 13: FOR_THREADS look_ahead_thread(thread, LEVEL, P(u32, 8), P(u64, 9), a[10], a[11]); break;
    case 17: FOR_THREADS start_best_thread(thread, a[5], BINS(0, 1, 2, a[3]), P(u32, 4)); break;
    case 18:
        FOR_WARPS if (warp < a[10])
            want_warp(warp, P(u64, 0), a[1], a[2], a[3], a[4], P(u32, 5), P(Entry, 6), P(u32, 7), P(u64, 8), P(u64, 9));
        break;
    case 19:
        FOR_WARPS {
            unsigned short list[LISTED_EVENTS];
            score_rows_warp(warp, threads / 32, SCORED_ROWS(a[5], a[10], a[11], a[12]), BINS(15, 16, 17, a[18]), list);
        }
        break;
    case 20:
        FOR_WARPS if (warp < a[11]) keep_best_warp(warp, BINS(0, 1, 2, a[3]), BEST(a[4]));
        break;
    case 14: FOR_THREADS run_single_thread(thread, LEVEL, P(u32, 8), P(u32, 9), a[10], P(u32, 11), P(u64, 12)); break;
    }
}
#endif
