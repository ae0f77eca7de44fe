// What runs on the device. Compiled to PTX by tools/compile_kernels.py, and for tests by an ordinary C++ compiler, which
// then runs thread after thread.
//
// A block has 4,096 events. A mask has a bit for each of them: 128 words. The 32 threads of a warp share a mask: a thread
// has four words, the events 128 * lane to 128 * lane + 127. No thread reads what another writes in the same launch, but for
// counters, which are integers: the order in which they are added to does not matter.

typedef unsigned int u32;
typedef unsigned long long u64;

#define WORDS 128
#define EVENTS 4096
#define SAVED 24
#define DIGITS 18
#define PLANES 12

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
INLINE bool any_lane(bool is) { return __any_sync(0xffffffffu, is); }
INLINE void set_bits(u32 *word, u32 bits) { atomicOr(word, bits); }
INLINE void add_to(u32 *count, u32 more) { atomicAdd(count, more); }
#else
#define ON_DEVICE 0
#define INLINE static inline
#define UNROLL
INLINE bool any_lane(bool is) { return is; }
INLINE void set_bits(u32 *word, u32 bits) { *word |= bits; }
INLINE void add_to(u32 *count, u32 more) { *count += more; }
#endif

struct Mask { u32 w[4]; };

INLINE Mask all_of(u32 word) { Mask m; UNROLL for (int j = 0; j < 4; ++j) m.w[j] = word; return m; }
INLINE Mask both(Mask a, Mask b) { UNROLL for (int j = 0; j < 4; ++j) a.w[j] &= b.w[j]; return a; }
INLINE Mask either(Mask a, Mask b) { UNROLL for (int j = 0; j < 4; ++j) a.w[j] |= b.w[j]; return a; }
INLINE Mask odd_one(Mask a, Mask b) { UNROLL for (int j = 0; j < 4; ++j) a.w[j] ^= b.w[j]; return a; }
INLINE Mask choose(Mask test, Mask t, Mask f) {
    UNROLL for (int j = 0; j < 4; ++j) t.w[j] = (test.w[j] & t.w[j]) | (~test.w[j] & f.w[j]);
    return t;
}
INLINE bool is_set(Mask m) { return (m.w[0] | m.w[1] | m.w[2] | m.w[3]) != 0; }

INLINE Mask load(const u32 *masks, u32 number, u32 lane) {
    const u32 *from = masks + (u64)number * WORDS + lane * 4;
    Mask m;
#if ON_DEVICE
    uint4 words = *reinterpret_cast<const uint4 *>(from);
    m.w[0] = words.x; m.w[1] = words.y; m.w[2] = words.z; m.w[3] = words.w;
#else
    for (int j = 0; j < 4; ++j) m.w[j] = from[j];
#endif
    return m;
}

INLINE void store(u32 *masks, u32 number, u32 lane, Mask m) {
    u32 *to = masks + (u64)number * WORDS + lane * 4;
#if ON_DEVICE
    *reinterpret_cast<uint4 *>(to) = make_uint4(m.w[0], m.w[1], m.w[2], m.w[3]);
#else
    for (int j = 0; j < 4; ++j) to[j] = m.w[j];
#endif
}

// A leaf is the number of a mask, shifted by one; the lowest bit says that it must be clear.
INLINE Mask leaf(const u32 *masks, u32 word, u32 lane) {
    Mask m = load(masks, word >> 1, lane);
    u32 flip = 0u - (word & 1);
    UNROLL for (int j = 0; j < 4; ++j) m.w[j] ^= flip;
    return m;
}

// --- from tokens to masks of predicates -------------------------------------------------------------

INLINE void touch(u32 *masks, u32 mask, u32 event, bool clears) {
    u32 *word = masks + (u64)mask * WORDS + event / 32;
    if (clears) *word = 0; else set_bits(word, 1u << (event % 32));
}

// Tokens are pairs of event and predicate.
INLINE void scatter_bits_thread(u64 thread, const u32 *tokens, u64 count, u32 *masks, u64 clears) {
    if (thread < count) touch(masks, tokens[2 * thread + 1], tokens[2 * thread], clears != 0);
}

// Tokens are pairs of event and point; a point has several predicates.
INLINE void scatter_points_thread(u64 thread, const u32 *tokens, u64 count, const u32 *offsets, const u32 *bits,
                                  u32 *masks, u64 clears) {
    if (thread >= count) return;
    u32 event = tokens[2 * thread], point = tokens[2 * thread + 1];
    for (u32 at = offsets[point]; at < offsets[point + 1]; ++at) touch(masks, bits[at], event, clears != 0);
}

// Tokens are pairs of table and event, and rank.
INLINE void scatter_ranks_thread(u64 thread, const u32 *tokens, u64 count, u32 *ranks, u32 *present, u64 clears) {
    if (thread >= count) return;
    u32 place = tokens[2 * thread];
    ranks[place] = tokens[2 * thread + 1];
    touch(present, place / EVENTS, place % EVENTS, clears != 0);
}

// Items are pairs of table and first cut; each stands for 32 cuts. Cut c has a value of rank r above it if c < r.
INLINE void cuts_thread(u32 lane, u64 item, const u32 *items, const u32 *tables, const u32 *ranks, const u32 *present,
                        u32 *masks) {
    u32 table = items[2 * item], first = items[2 * item + 1];
    u32 below = tables[3 * table], above = tables[3 * table + 1], cuts = tables[3 * table + 2];
    u32 end = first + 32 < cuts ? first + 32 : cuts;
    Mask there = load(present, table, lane);
    const u32 *own = ranks + (u64)table * EVENTS + lane * 128;
    for (u32 cut = first; cut < end; ++cut) {
        Mask under = all_of(0);
        UNROLL for (int j = 0; j < 4; ++j) {
            for (u32 rest = there.w[j]; rest != 0; rest &= rest - 1) {
                u32 bit = rest & (0u - rest);
#if ON_DEVICE
                u32 event = 31 - __clz(bit);
#else
                u32 event = 31 - __builtin_clz(bit);
#endif
                if (own[32 * j + event] <= cut) under.w[j] |= bit;
            }
        }
        store(masks, below + cut, lane, under);
        store(masks, above + cut, lane, odd_one(there, under));
    }
}

// --- units ------------------------------------------------------------------------------------------

struct Unit { u32 code, leaves, mask, rows; };

INLINE Mask taken(u32 what, Mask last, const Mask *saved) {
    if (what == 255) return last;
    if (what == 254) return all_of(~0u);
    if (what == 253) return all_of(0);
    return saved[what];
}

INLINE Mask run_choices(const u32 *code, u32 choices, const u32 *masks, u32 lane) {
    Mask guard = all_of(~0u);
    u32 guards = *code++;
    for (u32 at = 0; at < guards; ++at) {
        guard = both(guard, leaf(masks, *code++, lane));
        if (!any_lane(is_set(guard))) return all_of(0);
    }
    Mask saved[SAVED];
    Mask last = all_of(0);
    for (u32 at = 0; at < choices; ++at, code += 2) {
        u32 word = code[1];
        Mask t = taken(word & 255, last, saved), f = taken((word >> 8) & 255, last, saved);
        last = choose(leaf(masks, code[0], lane), t, f);
        u32 place = (word >> 16) & 255;
        if (place != 255) saved[place] = last;
    }
    return both(guard, last);
}

INLINE Mask run_threshold(const u32 *code, u32 leaves, const u32 *masks, u32 lane) {
    u32 least = *code++;
    Mask digits[DIGITS];
    u32 used = 1;
    while ((leaves >> used) != 0) ++used;
    if (used > DIGITS || (least >> used) != 0) return all_of(0);
    for (u32 at = 0; at < used; ++at) digits[at] = all_of(0);
    for (u32 at = 0; at < leaves; ++at) {
        Mask carry = leaf(masks, code[at], lane);
        for (u32 digit = 0; digit < used; ++digit) {
            Mask more = both(digits[digit], carry);
            digits[digit] = odd_one(digits[digit], carry);
            carry = more;
        }
    }
    Mask greater = all_of(0), same = all_of(~0u);
    for (u32 digit = used; digit-- > 0;) {
        if ((least >> digit) & 1) {
            same = both(same, digits[digit]);
        } else {
            greater = either(greater, both(same, digits[digit]));
            same = both(same, odd_one(digits[digit], all_of(~0u)));
        }
    }
    return either(greater, same);
}

INLINE Mask run_unit(const Unit *unit, const u32 *all_code, const u32 *masks, u32 lane) {
    const u32 *code = all_code + unit->code;
    u32 kind = unit->leaves >> 28, leaves = unit->leaves & 0x0fffffffu;
    if (kind == 0) {
        Mask m = all_of(~0u);
        for (u32 at = 0; at < leaves; ++at) {
            m = both(m, leaf(masks, code[at], lane));
            if (!any_lane(is_set(m))) break;
        }
        return m;
    }
    if (kind == 1) {
        Mask m = all_of(0);
        for (u32 at = 0; at < leaves; ++at) m = either(m, leaf(masks, code[at], lane));
        return m;
    }
    if (kind == 2) return run_choices(code, leaves, masks, lane);
    if (kind == 3) {
        u32 wanted = *code++;
        Mask even = all_of(~0u), odd = all_of(0);
        for (u32 at = 0; at < leaves; at += 2) {
            Mask t = leaf(masks, code[at], lane), f = leaf(masks, code[at + 1], lane);
            Mask now_even = either(both(even, f), both(odd, t));
            odd = either(both(odd, f), both(even, t));
            even = now_even;
        }
        return wanted ? odd : even;
    }
    return run_threshold(code, leaves, masks, lane);
}

// --- counting ---------------------------------------------------------------------------------------

// A number for each event of a thread, bit by bit: the first plane has the ones, the next one the twos, and so on.
struct Counter { Mask planes[PLANES]; u32 total; };

INLINE void reset(Counter *counter) {
    UNROLL for (int plane = 0; plane < PLANES; ++plane) counter->planes[plane] = all_of(0);
    counter->total = 0;
}

INLINE void add_power(Counter *counter, Mask m, int power) {
    UNROLL for (int plane = 0; plane < PLANES; ++plane) {
        if (plane < power) continue;
        Mask more = both(counter->planes[plane], m);
        counter->planes[plane] = odd_one(counter->planes[plane], m);
        m = more;
        if (!any_lane(is_set(m))) return;
    }
}

INLINE u32 count_of(const Counter *counter, int word, u32 bit) {
    u32 count = 0;
    UNROLL for (int plane = 0; plane < PLANES; ++plane) count |= ((counter->planes[plane].w[word] >> bit) & 1) << plane;
    return count;
}

// Lanes begin with different bits: they would otherwise wait for one another at the same bank of memory.
INLINE void flush(Counter *counter, u32 *counts, u32 lane) {
    if (counter->total == 0) return;
    for (u32 at = 0; at < 32; ++at) {
        u32 bit = (at + lane) & 31;
        UNROLL for (int word = 0; word < 4; ++word) {
            u32 count = count_of(counter, word, bit);
            if (count != 0) add_to(counts + lane * 128 + 32 * word + bit, count);
        }
    }
    reset(counter);
}

INLINE void add_rows(Counter *counter, Mask m, u32 rows, u32 *counts, u32 lane) {
    const u32 most = (1u << PLANES) - 1;
    while (rows > 0) {
        u32 now = rows < most ? rows : most;
        if (counter->total + now > most) flush(counter, counts, lane);
        UNROLL for (int power = 0; power < PLANES; ++power) if ((now >> power) & 1) add_power(counter, m, power);
        counter->total += now;
        rows -= now;
    }
}

// Runs the units of a level, a part of them for each warp; stores masks below `stored`, and counts rows if there are counts.
INLINE void evaluate_thread(u32 lane, u64 warp, u64 warps, const Unit *units, u64 first, u64 last, const u32 *code,
                            u32 *masks, u64 stored, u32 *counts) {
    u64 each = (last - first + warps - 1) / warps;
    u64 from = first + warp * each, to = from + each < last ? from + each : last;
    Counter counter;
    reset(&counter);
    for (u64 at = from; at < to; ++at) {
        const Unit *unit = units + at;
        Mask m = run_unit(unit, code, masks, lane);
        if (unit->mask < stored) store(masks, unit->mask, lane, m);
        if (counts != 0 && unit->rows > 0 && any_lane(is_set(m))) add_rows(&counter, m, unit->rows, counts, lane);
    }
    if (counts != 0) flush(&counter, counts, lane);
}

// --- rows -------------------------------------------------------------------------------------------

#define CHUNK 512

INLINE u32 row_at(const u32 *order, u64 place) { return order ? order[place] : (u32)place; }
INLINE bool is_kept(const u32 *kept, u32 row) { return !kept || ((kept[row / 32] >> (row % 32)) & 1); }

// How many of the next 512 rows hold for each event.
INLINE void count_chunk_thread(u32 lane, u64 chunk, const u32 *mask_of_row, const u32 *order, u64 rows, const u32 *kept,
                               const u32 *masks, u32 *counts) {
    Counter counter;
    reset(&counter);
    u64 end = (chunk + 1) * CHUNK < rows ? (chunk + 1) * CHUNK : rows;
    for (u64 place = chunk * CHUNK; place < end; ++place) {
        u32 row = row_at(order, place);
        if (!is_kept(kept, row)) continue;
        Mask m = load(masks, mask_of_row[row], lane);
        if (any_lane(is_set(m))) { add_power(&counter, m, 0); counter.total += 1; }
    }
    u32 *own = counts + chunk * EVENTS + lane * 128;
    for (u32 bit = 0; bit < 32; ++bit)
        UNROLL for (int word = 0; word < 4; ++word) own[32 * word + bit] = count_of(&counter, word, bit);
}

// Turns the counts of chunks into places: how many rows of the event are in the chunks before.
INLINE void scan_thread(u64 event, u32 *counts, u64 chunks, u32 *totals) {
    if (event >= EVENTS) return;
    u32 sum = 0;
    for (u64 chunk = 0; chunk < chunks; ++chunk) {
        u32 *here = counts + chunk * EVENTS + event;
        u32 count = *here;
        *here = sum;
        sum += count;
    }
    totals[event] = sum;
}

// Lists rows in order: those of an event from its offset on, at most `most`. Events from `events` on are left out.
INLINE void list_chunk_thread(u32 lane, u64 chunk, const u32 *mask_of_row, const u32 *order, u64 rows, const u32 *kept,
                              const u32 *masks, u32 *places, const u64 *offsets, u64 first, u64 events, u64 most, u32 *listed) {
    u32 *own = places + chunk * EVENTS + lane * 128;
    Mask wanted = all_of(0);
    for (u32 at = 0; at < 128; ++at) {
        u32 event = lane * 128 + at;
        if (event >= first && event < events && own[at] < most) wanted.w[at / 32] |= 1u << (at % 32);
    }
    if (!any_lane(is_set(wanted))) return;
    u64 end = (chunk + 1) * CHUNK < rows ? (chunk + 1) * CHUNK : rows;
    for (u64 place = chunk * CHUNK; place < end; ++place) {
        u32 row = row_at(order, place);
        if (!is_kept(kept, row)) continue;
        Mask m = both(wanted, load(masks, mask_of_row[row], lane));
        UNROLL for (int word = 0; word < 4; ++word) {
            for (u32 rest = m.w[word]; rest != 0; rest &= rest - 1) {
#if ON_DEVICE
                u32 bit = __ffs(rest) - 1;
#else
                u32 bit = __builtin_ctz(rest);
#endif
                u32 at = 32 * word + bit, before = own[at]++;
                if (before < most) listed[offsets[lane * 128 + at] - offsets[first] + before] = row;
                else wanted.w[word] &= ~(1u << bit);
            }
        }
    }
}

// --- launches ---------------------------------------------------------------------------------------

#define P(type, number) reinterpret_cast<type *>(a##number)

#if ON_DEVICE
#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

KERNEL scatter_bits(u64 a0, u64 a1, u64 a2, u64 a3) { scatter_bits_thread(THREAD, P(u32, 0), a1, P(u32, 2), a3); }
KERNEL scatter_points(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5) {
    scatter_points_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), P(u32, 4), a5);
}
KERNEL scatter_ranks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) {
    scatter_ranks_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), a4);
}
KERNEL cuts(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5) {
    u64 item = THREAD / 32;
    if (item < a1) cuts_thread(threadIdx.x % 32, item, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), P(u32, 5));
}
KERNEL evaluate(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    __shared__ u32 counts[EVENTS];
    if (a6 != 0) {
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) counts[event] = 0;
        __syncthreads();
    }
    evaluate_thread(threadIdx.x % 32, THREAD / 32, (u64)gridDim.x * blockDim.x / 32, P(Unit, 0), a1, a2, P(u32, 3),
                    P(u32, 4), a5, a6 != 0 ? counts : 0);
    if (a6 != 0) {
        __syncthreads();
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x)
            if (counts[event] != 0) atomicAdd(P(u32, 6) + event, counts[event]);
    }
}
KERNEL count_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    u64 chunk = THREAD / 32;
    if (chunk < a6) count_chunk_thread(threadIdx.x % 32, chunk, P(u32, 0), P(u32, 1), a2, P(u32, 3), P(u32, 4), P(u32, 5));
}
KERNEL scan(u64 a0, u64 a1, u64 a2) { scan_thread(THREAD, P(u32, 0), a1, P(u32, 2)); }
KERNEL list_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11) {
    u64 chunk = THREAD / 32;
    if (chunk < a11)
        list_chunk_thread(threadIdx.x % 32, chunk, P(u32, 0), P(u32, 1), a2, P(u32, 3), P(u32, 4), P(u32, 5), P(u64, 6), a7, a8,
                          a9, P(u32, 10));
}
#else
#define A(type, number) reinterpret_cast<type *>(a[number])
#define FOR_THREADS for (u64 thread = 0; thread < threads; ++thread)
#define FOR_WARPS for (u64 warp = 0; warp < threads / 32; ++warp) for (u32 lane = 0; lane < 32; ++lane)

extern "C" void tamis_launch(u32 kernel, u64 threads, const u64 *a) {
    switch (kernel) {
    case 0: FOR_THREADS scatter_bits_thread(thread, A(u32, 0), a[1], A(u32, 2), a[3]); break;
    case 1:
        FOR_THREADS scatter_points_thread(thread, A(u32, 0), a[1], A(u32, 2), A(u32, 3), A(u32, 4), a[5]);
        break;
    case 2: FOR_THREADS scatter_ranks_thread(thread, A(u32, 0), a[1], A(u32, 2), A(u32, 3), a[4]); break;
    case 3:
        FOR_WARPS if (warp < a[1]) cuts_thread(lane, warp, A(u32, 0), A(u32, 2), A(u32, 3), A(u32, 4), A(u32, 5));
        break;
    case 4:
        FOR_WARPS evaluate_thread(lane, warp, threads / 32, A(Unit, 0), a[1], a[2], A(u32, 3), A(u32, 4), a[5], A(u32, 6));
        break;
    case 5:
        FOR_WARPS if (warp < a[6])
            count_chunk_thread(lane, warp, A(u32, 0), A(u32, 1), a[2], A(u32, 3), A(u32, 4), A(u32, 5));
        break;
    case 6: FOR_THREADS scan_thread(thread, A(u32, 0), a[1], A(u32, 2)); break;
    case 7:
        FOR_WARPS if (warp < a[11])
            list_chunk_thread(lane, warp, A(u32, 0), A(u32, 1), a[2], A(u32, 3), A(u32, 4), A(u32, 5), A(u64, 6), a[7], a[8], a[9],
                              A(u32, 10));
        break;
    }
}
#endif
