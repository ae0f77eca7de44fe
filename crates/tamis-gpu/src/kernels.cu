// What runs on the device. Compiled to PTX by tools/compile_kernels.py, and for tests by an ordinary C++ compiler, which
// then runs thread after thread.
//
// A block has 4,096 events. A mask has a bit for each of them: 128 words. The 32 threads of a warp share a mask: a thread
// has four words, the events 128 * lane to 128 * lane + 127. A mask has a summary: bit l says whether lane l has any event. What
// a summary leaves out is never read, and may be anything: most of the memory of most masks is not touched. Lanes of predicates
// that are set bit by bit are the exception: they are empty between blocks.
//
// No thread reads what another writes in the same launch, but for counters, which are integers: the order in which they are
// added to does not matter.

typedef unsigned int u32;
typedef unsigned long long u64;

#define WORDS 128
#define EVENTS 4096
#define SAVED 24
#define DIGITS 18
#define ALL_LANES 0xffffffffu

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
INLINE bool any_lane(bool is) { return __any_sync(ALL_LANES, is); }
INLINE u32 lanes_that(bool is, u32) { return __ballot_sync(ALL_LANES, is); }
INLINE u32 first_bit(u32 word) { return __ffs(word) - 1; }
INLINE void set_bits(u32 *word, u32 bits) { atomicOr(word, bits); }
INLINE void add_to(u32 *count, u32 more) { atomicAdd(count, more); }
#else
#define ON_DEVICE 0
#define INLINE static inline
#define UNROLL
// Lanes run one after the other: each sees itself alone.
INLINE bool any_lane(bool is) { return is; }
INLINE u32 lanes_that(bool is, u32 lane) { return is ? 1u << lane : 0; }
INLINE u32 first_bit(u32 word) { return __builtin_ctz(word); }
INLINE void set_bits(u32 *word, u32 bits) { *word |= bits; }
INLINE void add_to(u32 *count, u32 more) { *count += more; }
#endif

struct alignas(16) Mask { u32 w[4]; };

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
    // Masks are seldom read twice by the same multiprocessor: its cache is left to code and summaries.
    uint4 words = __ldcg(reinterpret_cast<const uint4 *>(from));
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

// Notes in the summary of a mask which lanes have events.
INLINE void summarize(u32 *summaries, u32 mask, u32 lane, bool is) {
#if ON_DEVICE
    u32 lanes = lanes_that(is, lane);
    if (lane == 0) summaries[mask] = lanes;
#else
    summaries[mask] = is ? summaries[mask] | 1u << lane : summaries[mask] & ~(1u << lane);
#endif
}

INLINE bool has_lane(u32 lanes, u32 lane) { return (lanes >> lane) & 1; }

// --- from tokens to masks of predicates -------------------------------------------------------------

struct Predicates { u32 *masks, *summaries; };

INLINE void touch(Predicates to, u32 mask, u32 event, bool clears) {
    u32 *word = to.masks + (u64)mask * WORDS + event / 32;
    if (clears) {
        *word = 0;
        to.summaries[mask] = 0;
    } else {
        set_bits(word, 1u << (event % 32));
        set_bits(to.summaries + mask, 1u << (event / 128));
    }
}

// Tokens are pairs of event and predicate.
INLINE void scatter_bits_thread(u64 thread, const u32 *tokens, u64 count, Predicates to, u64 clears) {
    if (thread < count) touch(to, tokens[2 * thread + 1], tokens[2 * thread], clears != 0);
}

// Tokens are pairs of event and point; a point has several predicates.
INLINE void scatter_points_thread(u64 thread, const u32 *tokens, u64 count, const u32 *offsets, const u32 *bits,
                                  Predicates to, u64 clears) {
    if (thread >= count) return;
    u32 event = tokens[2 * thread], point = tokens[2 * thread + 1];
    for (u32 at = offsets[point]; at < offsets[point + 1]; ++at) touch(to, bits[at], event, clears != 0);
}

// Tokens are pairs of table and event, and rank.
INLINE void scatter_ranks_thread(u64 thread, const u32 *tokens, u64 count, u32 *ranks, u32 *present, u64 clears) {
    if (thread >= count) return;
    u32 place = tokens[2 * thread], event = place % EVENTS;
    ranks[place] = tokens[2 * thread + 1];
    u32 *word = present + (u64)(place / EVENTS) * WORDS + event / 32;
    if (clears) *word = 0; else set_bits(word, 1u << (event % 32));
}

// Items are pairs of table and first cut; each stands for 32 cuts. Cut c has a value of rank r above it if c < r.
INLINE void cuts_thread(u32 lane, u64 item, const u32 *items, const u32 *tables, const u32 *ranks, const u32 *present,
                        Predicates to) {
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
                if (own[32 * j + first_bit(rest)] <= cut) under.w[j] |= bit;
            }
        }
        Mask over = odd_one(there, under);
        if (is_set(under)) store(to.masks, below + cut, lane, under);
        if (is_set(over)) store(to.masks, above + cut, lane, over);
        summarize(to.summaries, below + cut, lane, is_set(under));
        summarize(to.summaries, above + cut, lane, is_set(over));
    }
}

// --- units ------------------------------------------------------------------------------------------

struct Unit { u32 code, leaves, mask, rows; };

#define KIND(unit) ((unit).leaves >> 28)
#define GUARDS(unit) (((unit).leaves >> 26) & 3)
#define LEAVES(unit) ((unit).leaves & 0x03ffffffu)

struct Inputs { const u32 *code, *masks, *summaries; };

// The code of a unit begins with its leaves. A leaf is the number of a mask, shifted by one; the lowest bit says that it must be
// clear. Each lane has one of 32 consecutive leaves, with its summary: they come from memory at once, ahead of their use.
struct Leaves { const u32 *code; u32 count, first, word, summary; };

INLINE Leaves fetch_words(Unit unit, Inputs in, u32 lane) {
    Leaves l = { in.code + unit.code, LEAVES(unit), 0, 0, 0 };
    if (lane < l.count) l.word = l.code[lane];
    return l;
}

INLINE void fetch_summaries(Leaves *l, Inputs in) { l->summary = in.summaries[l->word >> 1]; }

// Makes those of the 32 leaves available that `at` is among.
INLINE void turn_to(Leaves *l, u32 at, Inputs in, u32 lane) {
    u32 first = at & ~31u;
    if (first == l->first) return;
    l->first = first;
    l->word = first + lane < l->count ? l->code[first + lane] : 0;
    fetch_summaries(l, in);
}

struct Leaf { u32 word, summary; };

// Leaf `at`, which must be available.
INLINE Leaf leaf_at(const Leaves *l, u32 at, Inputs in) {
#if ON_DEVICE
    Leaf leaf = { __shfl_sync(ALL_LANES, l->word, at & 31), __shfl_sync(ALL_LANES, l->summary, at & 31) };
#else
    Leaf leaf = { l->code[at], in.summaries[l->code[at] >> 1] };
#endif
    return leaf;
}

// The lanes in which all available leaves may hold.
INLINE u32 common_lanes(const Leaves *l, Inputs in) {
#if ON_DEVICE
    u32 lanes = l->word & 1 ? ALL_LANES : l->summary;
    UNROLL for (int step = 16; step > 0; step /= 2) lanes &= __shfl_xor_sync(ALL_LANES, lanes, step);
#else
    u32 lanes = ALL_LANES;
    for (u32 at = l->first; at < l->count && at < l->first + 32; ++at)
        if (!(l->code[at] & 1)) lanes &= in.summaries[l->code[at] >> 1];
#endif
    return lanes;
}

// What a leaf is; anything where it is not wanted.
INLINE Mask value_of(Leaf leaf, Inputs in, u32 lane, bool is_wanted) {
    Mask m = all_of(0);
    if (is_wanted && has_lane(leaf.summary, lane)) m = load(in.masks, leaf.word >> 1, lane);
    u32 flip = 0u - (leaf.word & 1);
    UNROLL for (int j = 0; j < 4; ++j) m.w[j] ^= flip;
    return m;
}

// Four leaves from `first` on, of `count`; `idle` behind the last one. What takes long is waiting for memory, so all four are
// asked for before the first is used. `first` is a multiple of four.
struct Four { Mask m[4]; };

INLINE Four four_from(Leaves *l, u32 first, Inputs in, u32 lane, bool is_wanted, u32 idle) {
    turn_to(l, first, in, lane);
    Four four;
    UNROLL for (u32 at = 0; at < 4; ++at)
        four.m[at] = first + at < l->count ? value_of(leaf_at(l, first + at, in), in, lane, is_wanted) : all_of(idle);
    return four;
}

// All leaves: those lanes alone are read that are in all summaries.
INLINE Mask run_all(Leaves *l, Inputs in, u32 lane) {
    Mask m = all_of(~0u);
    for (u32 first = 0; first < l->count; first += 4) {
        turn_to(l, first, in, lane);
        if ((first & 31) == 0 && !has_lane(common_lanes(l, in), lane)) m = all_of(0);
        bool is_wanted = is_set(m);
        if (!any_lane(is_wanted)) return m;
        Four four = four_from(l, first, in, lane, is_wanted, ~0u);
        UNROLL for (int at = 0; at < 4; ++at) m = both(m, four.m[at]);
    }
    return m;
}

INLINE Mask run_any(Leaves *l, Inputs in, u32 lane) {
    Mask m = all_of(0);
    for (u32 first = 0; first < l->count; first += 4) {
        Four four = four_from(l, first, in, lane, true, 0);
        UNROLL for (int at = 0; at < 4; ++at) m = either(m, four.m[at]);
    }
    return m;
}

// The guards, which come before the other leaves: at most three.
INLINE Mask run_guards(const Leaves *l, u32 guards, Inputs in, u32 lane) {
    Mask guard = all_of(~0u);
    UNROLL for (u32 at = 0; at < 3; ++at)
        if (at < guards) guard = both(guard, value_of(leaf_at(l, at, in), in, lane, is_set(guard)));
    return guard;
}

// Groups of leaves, all of which hold in one group; or, with everything negated, some of which hold in each group. Behind the
// leaves there is a bit for each, set for the last one of a group; guards have clear bits.
INLINE Mask run_groups(Leaves *l, u32 guards, u32 flip, Inputs in, u32 lane) {
    Mask guard = run_guards(l, guards, in, lane);
    bool is_wanted = is_set(guard);
    if (!any_lane(is_wanted)) return guard;
    Mask any = all_of(0), all = all_of(~0u);
    u32 ends = 0;
    for (u32 first = 0; first < l->count; first += 4) {
        if ((first & 31) == 0) ends = l->code[l->count + first / 32];
        Four four = four_from(l, first, in, lane, is_wanted, 0);
        UNROLL for (u32 at = 0; at < 4; ++at, ends >>= 1) {
            if (first + at < guards) continue;
            u32 is_end = 0u - (ends & 1);
            UNROLL for (int j = 0; j < 4; ++j) {
                all.w[j] &= four.m[at].w[j] ^ flip;
                any.w[j] |= all.w[j] & is_end;
                all.w[j] |= is_end;
            }
        }
    }
    UNROLL for (int j = 0; j < 4; ++j) any.w[j] ^= flip;
    return both(guard, any);
}

INLINE Mask taken(u32 what, Mask last, const Mask *saved) {
    if (what == 255) return last;
    if (what == 254) return all_of(~0u);
    if (what == 253) return all_of(0);
    return saved[what];
}

// Choices, the last one first. Behind the leaves there is a word for each: what to take if the leaf holds, if it does not, and
// where to save what came out.
INLINE Mask run_choices(Leaves *l, u32 guards, Inputs in, u32 lane) {
    Mask guard = run_guards(l, guards, in, lane);
    bool is_wanted = is_set(guard);
    if (!any_lane(is_wanted)) return guard;
    Mask saved[SAVED];
    Mask last = all_of(0);
    for (u32 first = 0; first < l->count; first += 4) {
        Four four = four_from(l, first, in, lane, is_wanted, 0);
        UNROLL for (u32 at = 0; at < 4; ++at) {
            if (first + at < guards || first + at >= l->count) continue;
            u32 word = l->code[l->count + first + at];
            Mask t = taken(word & 255, last, saved), f = taken((word >> 8) & 255, last, saved);
            last = choose(four.m[at], t, f);
            u32 place = (word >> 16) & 255;
            if (place != 255) saved[place] = last;
        }
    }
    return both(guard, last);
}

// Pairs of leaves, true and false; the word behind them says whether an odd number is to be true.
INLINE Mask run_parity(Leaves *l, Inputs in, u32 lane) {
    Mask even = all_of(~0u), odd = all_of(0);
    for (u32 first = 0; first < l->count; first += 4) {
        Four four = four_from(l, first, in, lane, true, 0);
        UNROLL for (u32 at = 0; at < 4; at += 2) {
            if (first + at >= l->count) continue;
            Mask t = four.m[at], f = four.m[at + 1];
            Mask now_even = either(both(even, f), both(odd, t));
            odd = either(both(odd, f), both(even, t));
            even = now_even;
        }
    }
    return l->code[l->count] ? odd : even;
}

// The word behind the leaves says how many have to hold at least.
INLINE Mask run_threshold(Leaves *l, Inputs in, u32 lane) {
    u32 least = l->code[l->count];
    Mask digits[DIGITS];
    u32 used = 1;
    while ((l->count >> used) != 0) ++used;
    if ((least >> used) != 0) return all_of(0);
    for (u32 at = 0; at < used; ++at) digits[at] = all_of(0);
    for (u32 at = 0; at < l->count; ++at) {
        turn_to(l, at, in, lane);
        Mask carry = value_of(leaf_at(l, at, in), in, lane, true);
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

// Which kinds of units a kernel runs: the fewer, the fewer registers it needs.
#define FLAT 0
#define GROUPS 1
#define OTHER 2

template <int KINDS> INLINE Mask run_unit(Unit unit, Leaves *l, Inputs in, u32 lane) {
    u32 kind = KIND(unit);
    if (KINDS == FLAT) return kind == 0 ? run_all(l, in, lane) : run_any(l, in, lane);
    if (KINDS == GROUPS) return run_groups(l, GUARDS(unit), kind == 5 ? 0 : ~0u, in, lane);
    if (kind == 2) return run_choices(l, GUARDS(unit), in, lane);
    if (kind == 3) return run_parity(l, in, lane);
    return run_threshold(l, in, lane);
}

// --- counting ---------------------------------------------------------------------------------------

// A number for each event of a thread, bit by bit: the first plane has the ones, the next one the twos, and so on. They lie in
// the memory that a block of threads shares, so that registers are left for masks; no lane looks at those of another.
#define PLANES 6
#define CHUNK_PLANES 9
#if ON_DEVICE
#define NEXT_PLANE 32
#else
#define NEXT_PLANE 1
#endif
struct Counter { Mask *planes; u32 total; };

template <int COUNT> INLINE void reset(Counter *counter) {
    UNROLL for (int plane = 0; plane < COUNT; ++plane) counter->planes[plane * NEXT_PLANE] = all_of(0);
    counter->total = 0;
}

template <int COUNT> INLINE void add_power(Counter *counter, Mask m, int power) {
    UNROLL for (int plane = 0; plane < COUNT; ++plane) {
        if (plane < power) continue;
        Mask *at = counter->planes + plane * NEXT_PLANE;
        Mask before = *at, more = both(before, m);
        *at = odd_one(before, m);
        m = more;
        if (!is_set(m)) return;
    }
}

template <int COUNT> INLINE u32 count_of(const Counter *counter, int word, u32 bit) {
    u32 count = 0;
    UNROLL for (int plane = 0; plane < COUNT; ++plane)
        count |= ((counter->planes[plane * NEXT_PLANE].w[word] >> bit) & 1) << plane;
    return count;
}

// Lanes begin with different bits: they would otherwise wait for one another at the same bank of memory.
INLINE void flush(Counter *counter, u32 *counts, u32 lane) {
    if (counter->total == 0) return;
    UNROLL for (int word = 0; word < 4; ++word) {
        u32 planes[PLANES], some = 0;
        UNROLL for (int plane = 0; plane < PLANES; ++plane) {
            planes[plane] = counter->planes[plane * NEXT_PLANE].w[word];
            some |= planes[plane];
        }
        for (u32 at = 0; at < 32; ++at) {
            u32 bit = (at + lane) & 31, count = 0;
            if (!((some >> bit) & 1)) continue;
            UNROLL for (int plane = 0; plane < PLANES; ++plane) count |= ((planes[plane] >> bit) & 1) << plane;
            add_to(counts + lane * 128 + 32 * word + bit, count);
        }
    }
    reset<PLANES>(counter);
}

INLINE void add_rows(Counter *counter, Mask m, u32 rows, u32 *counts, u32 lane) {
    const u32 most = (1u << PLANES) - 1;
    while (rows > 0) {
        u32 now = rows < most ? rows : most;
        if (counter->total + now > most) flush(counter, counts, lane);
        if (is_set(m)) {
            if (now == 1) add_power<PLANES>(counter, m, 0);
            else for (int power = 0; power < PLANES; ++power) if ((now >> power) & 1) add_power<PLANES>(counter, m, power);
        }
        counter->total += now;
        rows -= now;
    }
}

// Runs units of a level, a part of them for each warp; stores masks below `stored`, and counts rows if there are counts. While
// one unit is computed, the summaries of the next one, the code of the one after it, and the record of a third are on their way.
template <int KINDS>
INLINE void evaluate_thread(u32 lane, u64 warp, u64 warps, const Unit *units, u64 first, u64 last, const u32 *code,
                            u32 *masks, u64 stored, u32 *counts, u32 *summaries, Mask *planes) {
    u64 each = (last - first + warps - 1) / warps;
    u64 from = first + warp * each, to = from + each < last ? from + each : last;
    if (from >= to) return;
    Inputs in = { code, masks, summaries };
    Counter counter = { planes, 0 };
    if (counts != 0) reset<PLANES>(&counter);
    Unit now = units[from], next = units[from + 1 < to ? from + 1 : from], later = units[from + 2 < to ? from + 2 : from];
    Leaves leaves = fetch_words(now, in, lane), of_next = fetch_words(next, in, lane);
    fetch_summaries(&leaves, in);
    for (u64 at = from; at < to; ++at) {
        fetch_summaries(&of_next, in);
        Leaves of_later = fetch_words(later, in, lane);
        Unit last_one = units[at + 3 < to ? at + 3 : at];
        Mask m = run_unit<KINDS>(now, &leaves, in, lane);
        bool is = is_set(m);
        if (now.mask < stored) {
            if (is) store(masks, now.mask, lane, m);
            summarize(summaries, now.mask, lane, is);
        }
        if (counts != 0 && now.rows > 0 && any_lane(is)) add_rows(&counter, m, now.rows, counts, lane);
        now = next;
        next = later;
        later = last_one;
        leaves = of_next;
        of_next = of_later;
    }
    if (counts != 0) flush(&counter, counts, lane);
}

// --- rows -------------------------------------------------------------------------------------------

#define CHUNK 256

INLINE u32 row_at(const u32 *order, u64 place) { return order ? order[place] : (u32)place; }
INLINE bool is_kept(const u32 *kept, u32 row) { return !kept || ((kept[row / 32] >> (row % 32)) & 1); }

struct RowInputs { const u32 *mask_of_row, *order, *kept, *masks, *summaries; u64 rows; };

// A row, its mask, and the lanes in which it holds: none if it is not kept.
struct Row { u32 row, mask, lanes; };

INLINE Row row_in_order(RowInputs in, u64 place) {
    Row found = { 0, 0, 0 };
    if (place >= in.rows) return found;
    found.row = row_at(in.order, place);
    if (!is_kept(in.kept, found.row)) return found;
    found.mask = in.mask_of_row[found.row];
    found.lanes = in.summaries[found.mask];
    return found;
}

// 32 consecutive rows, one for each lane.
INLINE Row row_of_lane(const Row *own, RowInputs in, u64 first, u32 lane) {
#if ON_DEVICE
    Row row = { __shfl_sync(ALL_LANES, own->row, lane), __shfl_sync(ALL_LANES, own->mask, lane),
                __shfl_sync(ALL_LANES, own->lanes, lane) };
    return row;
#else
    return row_in_order(in, first + lane);
#endif
}

// Which of the 32 rows hold in any lane.
INLINE u32 rows_that_hold(const Row *own, RowInputs in, u64 first, u32 lane) {
#if ON_DEVICE
    return __ballot_sync(ALL_LANES, own->lanes != 0);
#else
    u32 found = 0;
    for (u32 at = 0; at < 32; ++at) found |= (row_in_order(in, first + at).lanes != 0 ? 1u : 0u) << at;
    return found;
#endif
}

// How many rows of a chunk hold for each event. Masks are loaded several at a time.
INLINE void count_chunk_thread(u32 lane, u64 chunk, RowInputs in, u32 *counts, Mask *planes) {
    Counter counter = { planes, 0 };
    reset<CHUNK_PLANES>(&counter);
    for (u64 first = chunk * CHUNK; first < (chunk + 1) * CHUNK && first < in.rows; first += 32) {
        Row own = row_in_order(in, first + lane);
        for (u32 rest = rows_that_hold(&own, in, first, lane); rest != 0;) {
            Mask loaded[4];
            UNROLL for (u32 at = 0; at < 4; ++at) {
                loaded[at] = all_of(0);
                if (rest == 0) continue;
                Row row = row_of_lane(&own, in, first, first_bit(rest));
                rest &= rest - 1;
                if (has_lane(row.lanes, lane)) loaded[at] = load(in.masks, row.mask, lane);
            }
            UNROLL for (u32 at = 0; at < 4; ++at) if (is_set(loaded[at])) add_power<CHUNK_PLANES>(&counter, loaded[at], 0);
        }
    }
    u32 *own = counts + chunk * EVENTS + lane * 128;
    UNROLL for (int word = 0; word < 4; ++word) {
        for (u32 bit = 0; bit < 32; bit += 4) {
            Mask four;
            UNROLL for (u32 at = 0; at < 4; ++at) four.w[at] = count_of<CHUNK_PLANES>(&counter, word, bit + at);
            store(own, 0, 8 * word + bit / 4, four);
        }
    }
}

// Turns the counts of chunks into places: how many rows of the event are in the chunks before, of the same group of chunks.
// The totals of groups are counts themselves, which are turned into places next.
INLINE void scan_thread(u64 thread, u32 *counts, u64 chunks, u64 in_group, u32 *totals) {
    u64 group = thread / EVENTS, from = group * in_group, to = from + in_group < chunks ? from + in_group : chunks;
    if (from >= chunks) return;
    u32 sum = 0;
    u32 *here = counts + from * EVENTS + thread % EVENTS;
    for (u64 chunk = from; chunk < to; chunk += 16) {
        u32 loaded[16]; // all are asked for before the first is needed
        UNROLL for (u32 at = 0; at < 16; ++at) loaded[at] = chunk + at < to ? here[at * EVENTS] : 0;
        UNROLL for (u32 at = 0; at < 16; ++at) {
            if (chunk + at < to) here[at * EVENTS] = sum;
            sum += loaded[at];
        }
        here += 16 * EVENTS;
    }
    totals[thread] = sum;
}

struct Listing { u32 *places; const u32 *groups; const u64 *offsets; u32 *listed; u64 in_group, first, events, most; };

// Lists rows in order: those of an event from its offset on, at most `most`. Only events from `first` to `events` are.
INLINE void list_chunk_thread(u32 lane, u64 chunk, RowInputs in, Listing to) {
    u32 *own = to.places + chunk * EVENTS + lane * 128;
    const u32 *before = to.groups + chunk / to.in_group * EVENTS + lane * 128;
    Mask wanted = all_of(0);
    UNROLL for (u32 word = 0; word < 4; ++word) {
        for (u32 at = 32 * word; at < 32 * word + 32; ++at) {
            u32 event = lane * 128 + at;
            if (event < to.first || event >= to.events) continue;
            own[at] += before[at];
            if (own[at] < to.most) wanted.w[word] |= 1u << (at % 32);
        }
    }
    if (!any_lane(is_set(wanted))) return;
    for (u64 first = chunk * CHUNK; first < (chunk + 1) * CHUNK && first < in.rows; first += 32) {
        Row held = row_in_order(in, first + lane);
        for (u32 rest = rows_that_hold(&held, in, first, lane); rest != 0; rest &= rest - 1) {
            Row row = row_of_lane(&held, in, first, first_bit(rest));
            if (!has_lane(row.lanes, lane)) continue;
            Mask m = both(wanted, load(in.masks, row.mask, lane));
            UNROLL for (int word = 0; word < 4; ++word) {
                for (u32 left = m.w[word]; left != 0; left &= left - 1) {
                    u32 bit = first_bit(left), at = 32 * word + bit, place = own[at]++;
                    if (place < to.most) to.listed[to.offsets[lane * 128 + at] - to.offsets[to.first] + place] = row.row;
                    else wanted.w[word] &= ~(1u << bit);
                }
            }
        }
    }
}

// For how many events each row holds. A thread has a row: lanes that its summary leaves out are not read. Events behind the last
// one satisfy whatever must be absent: they are left out.
INLINE void count_events_thread(u64 thread, RowInputs in, u64 events, u32 *counts) {
    if (thread >= in.rows) return;
    Row row = row_in_order(in, thread);
    u32 found = 0;
    for (u32 lanes = row.lanes; lanes != 0; lanes &= lanes - 1) {
        u32 lane = first_bit(lanes);
        Mask m = load(in.masks, row.mask, lane);
        UNROLL for (u32 word = 0; word < 4; ++word) {
            u64 first = lane * 128 + 32 * word;
            u32 there = first >= events ? 0 : events - first >= 32 ? ~0u : (1u << (events - first)) - 1;
#if ON_DEVICE
            found += __popc(m.w[word] & there);
#else
            found += __builtin_popcount(m.w[word] & there);
#endif
        }
    }
    counts[thread] = found;
}

// --- launches ---------------------------------------------------------------------------------------

#if ON_DEVICE
#define P(type, number) reinterpret_cast<type *>(a##number)
#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define LANE (threadIdx.x % 32)
#else
#define P(type, number) reinterpret_cast<type *>(a[number])
#endif
#define TO(masks, summaries) Predicates{ P(u32, masks), P(u32, summaries) }
// Arguments 0 to 5: masks of rows, order, kept rows, masks, summaries, number of rows.
#define ROWS(rows) RowInputs{ P(u32, 0), P(u32, 1), P(u32, 2), P(u32, 3), P(u32, 4), rows }

#if ON_DEVICE
// Four blocks fit into a multiprocessor: memory is waited for by some warps while others compute.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
#define WARPS 8

KERNEL scatter_bits(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) { scatter_bits_thread(THREAD, P(u32, 0), a1, TO(2, 3), a4); }
KERNEL scatter_points(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    scatter_points_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), TO(4, 5), a6);
}
KERNEL scatter_ranks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) {
    scatter_ranks_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), a4);
}
KERNEL cuts(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    u64 item = THREAD / 32;
    if (item < a1) cuts_thread(LANE, item, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), TO(5, 6));
}
#define EVALUATE(KINDS) \
    __shared__ u32 counts[EVENTS]; \
    __shared__ Mask planes[WARPS * PLANES * 32]; \
    if (a6 != 0) { \
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) counts[event] = 0; \
        __syncthreads(); \
    } \
    evaluate_thread<KINDS>(LANE, THREAD / 32, (u64)gridDim.x * blockDim.x / 32, P(Unit, 0), a1, a2, P(u32, 3), P(u32, 4), a5, \
                           a6 != 0 ? counts : 0, P(u32, 7), planes + threadIdx.x / 32 * PLANES * 32 + LANE); \
    if (a6 != 0) { \
        __syncthreads(); \
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) \
            if (counts[event] != 0) atomicAdd(P(u32, 6) + event, counts[event]); \
    }
KERNEL evaluate_flat(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(FLAT) }
KERNEL evaluate_groups(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(GROUPS) }
KERNEL evaluate_other(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(OTHER) }
KERNEL count_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) {
    __shared__ Mask planes[WARPS * CHUNK_PLANES * 32];
    u64 chunk = THREAD / 32;
    if (chunk < a7) count_chunk_thread(LANE, chunk, ROWS(a5), P(u32, 6), planes + threadIdx.x / 32 * CHUNK_PLANES * 32 + LANE);
}
KERNEL scan(u64 a0, u64 a1, u64 a2, u64 a3) { scan_thread(THREAD, P(u32, 0), a1, a2, P(u32, 3)); }
KERNEL list_chunks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12,
                   u64 a13, u64 a14) {
    Listing to = { P(u32, 6), P(u32, 7), P(u64, 8), P(u32, 9), a10, a11, a12, a13 };
    u64 chunk = THREAD / 32;
    if (chunk < a14) list_chunk_thread(LANE, chunk, ROWS(a5), to);
}
KERNEL count_events(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) {
    count_events_thread(THREAD, ROWS(a5), a6, P(u32, 7));
}
#else
#define FOR_THREADS for (u64 thread = 0; thread < threads; ++thread)
#define FOR_WARPS for (u64 warp = 0; warp < threads / 32; ++warp) for (u32 lane = 0; lane < 32; ++lane)

template <int KINDS> static void evaluate_on_host(u64 threads, const u64 *a) {
    Mask planes[PLANES];
    FOR_WARPS evaluate_thread<KINDS>(lane, warp, threads / 32, P(Unit, 0), a[1], a[2], P(u32, 3), P(u32, 4), a[5], P(u32, 6),
                                     P(u32, 7), planes);
}

extern "C" void tamis_launch(u32 kernel, u64 threads, const u64 *a) {
    Mask planes[CHUNK_PLANES];
    switch (kernel) {
    case 0: FOR_THREADS scatter_bits_thread(thread, P(u32, 0), a[1], TO(2, 3), a[4]); break;
    case 1: FOR_THREADS scatter_points_thread(thread, P(u32, 0), a[1], P(u32, 2), P(u32, 3), TO(4, 5), a[6]); break;
    case 2: FOR_THREADS scatter_ranks_thread(thread, P(u32, 0), a[1], P(u32, 2), P(u32, 3), a[4]); break;
    case 3: FOR_WARPS if (warp < a[1]) cuts_thread(lane, warp, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), TO(5, 6)); break;
    case 4: evaluate_on_host<FLAT>(threads, a); break;
    case 5: evaluate_on_host<GROUPS>(threads, a); break;
    case 6: evaluate_on_host<OTHER>(threads, a); break;
    case 7: FOR_WARPS if (warp < a[7]) count_chunk_thread(lane, warp, ROWS(a[5]), P(u32, 6), planes); break;
    case 8: FOR_THREADS scan_thread(thread, P(u32, 0), a[1], a[2], P(u32, 3)); break;
    case 9: {
        Listing to = { P(u32, 6), P(u32, 7), P(u64, 8), P(u32, 9), a[10], a[11], a[12], a[13] };
        FOR_WARPS if (warp < a[14]) list_chunk_thread(lane, warp, ROWS(a[5]), to);
        break;
    }
    case 10: FOR_THREADS count_events_thread(thread, ROWS(a[5]), a[6], P(u32, 7)); break;
    }
}
#endif
