// What runs on the device. Compiled to PTX by tools/compile_kernels.py, and for tests by an ordinary C++ compiler, which
// then runs thread after thread.
//
// A block has 4,096 events. A mask has a bit for each of them: 128 words. The 32 threads of a warp share a mask: a thread
// has four words, the events 128 * lane to 128 * lane + 127. A mask has a summary: bit l says whether lane l has any event. What
// a summary leaves out is never read, and may be anything: most of the memory of most masks is not touched. Lanes of predicates
// that are set bit by bit are the exception: they are empty between blocks.
//
// No thread reads what another writes in the same launch, but for counters and lists: the order in which integers are added does
// not matter, and neither does that of units in a list. The lanes of a warp share what is in its own part of shared memory.

typedef unsigned int u32;
typedef unsigned long long u64;

#define WORDS 128
#define EVENTS 4096
#define SAVED 24
#define DIGITS 18
#define WARPS 8
#define ALL_LANES 0xffffffffu
// Masks that a warp waits for together.
#define AT_ONCE 7

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
INLINE bool any_lane(bool is) { return __any_sync(ALL_LANES, is); }
INLINE u32 lanes_that(bool is, u32) { return __ballot_sync(ALL_LANES, is); }
INLINE u32 first_bit(u32 word) { return __ffs(word) - 1; }
INLINE void set_bits(u32 *word, u32 bits) { atomicOr(word, bits); }
INLINE void add_to(u32 *count, u32 more) { atomicAdd(count, more); }
INLINE u32 flip_bits(u32 *word, u32 bits) { return atomicXor(word, bits); }
INLINE u32 count_bits(u32 word) { return __popc(word); }
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
INLINE u32 flip_bits(u32 *word, u32 bits) { u32 before = *word; *word ^= bits; return before; }
INLINE u32 count_bits(u32 word) { return __builtin_popcount(word); }
#endif

// A value for each lane of a warp, for what lanes do together. On this processor, EACH_LANE goes through all of them.
#if ON_DEVICE
#define EACH_LANE for (u32 lane = threadIdx.x % 32, is_done = 0; is_done == 0; is_done = 1)
template <class T> struct PerLane {
    T own;
    INLINE T &operator[](u32) { return own; }
};
INLINE u32 lanes_where(PerLane<bool> is) { return __ballot_sync(ALL_LANES, is.own); }
INLINE u32 from_lane(PerLane<u32> value, u32 lane) { return __shfl_sync(ALL_LANES, value.own, lane); }
#else
#define EACH_LANE for (u32 lane = 0; lane < 32; ++lane)
template <class T> struct PerLane {
    T of[32];
    T &operator[](u32 lane) { return of[lane]; }
};
INLINE u32 lanes_where(PerLane<bool> is) {
    u32 lanes = 0;
    EACH_LANE lanes |= (is[lane] ? 1u : 0u) << lane;
    return lanes;
}
INLINE u32 from_lane(PerLane<u32> value, u32 lane) { return value[lane]; }
#endif

// Bit a of lane b becomes bit b of lane a.
INLINE PerLane<u32> transposed(PerLane<u32> rows) {
    PerLane<u32> columns;
#if ON_DEVICE
    u32 word = rows.own, low = 0x0000ffffu;
    UNROLL for (u32 step = 16; step > 0; step /= 2, low ^= low << step) {
        u32 other = __shfl_xor_sync(ALL_LANES, word, step);
        word = threadIdx.x & step ? (word & ~low) | ((other >> step) & low) : (word & low) | ((other & low) << step);
    }
    columns.own = word;
#else
    EACH_LANE {
        columns[lane] = 0;
        for (u32 bit = 0; bit < 32; ++bit) columns[lane] |= ((rows[bit] >> lane) & 1) << bit;
    }
#endif
    return columns;
}

struct alignas(16) Mask { u32 w[4]; };

// From one mask of a lane to the next, in the memory that a block of threads shares.
#if ON_DEVICE
#define NEXT_LANES 32
#else
#define NEXT_LANES 1
#endif

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

// Copies a mask to the memory that a block of threads shares, or nothing where it is not wanted. It takes no registers, so that many
// are on their way at once; a lane that has waited sees its own part.
#if ON_DEVICE && __CUDA_ARCH__ >= 800
typedef u32 Place;
INLINE Place place_of(Mask *to) { return (u32)__cvta_generic_to_shared(to); }
INLINE void copy_if(Place to, bool is_wanted, const u32 *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_wanted ? 16 : 0) : "memory");
}
INLINE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
typedef char *Place;
INLINE Place place_of(Mask *to) { return reinterpret_cast<char *>(to); }
INLINE void copy_if(Place to, bool is_wanted, const u32 *from) {
    Mask m = all_of(0);
    if (is_wanted) m = load(from, 0, 0);
    *reinterpret_cast<Mask *>(to) = m;
}
INLINE void wait_for_copies() {}
#endif

INLINE void store(u32 *masks, u32 number, u32 lane, Mask m) {
    u32 *to = masks + (u64)number * WORDS + lane * 4;
#if ON_DEVICE
    *reinterpret_cast<uint4 *>(to) = make_uint4(m.w[0], m.w[1], m.w[2], m.w[3]);
#else
    for (int j = 0; j < 4; ++j) to[j] = m.w[j];
#endif
}

INLINE bool has_lane(u32 lanes, u32 lane) { return (lanes >> lane) & 1; }

// Lanes with their neighbours: two of them share 32 bytes. What is written in part has to be read from memory first, so both are
// written if one of them has events.
INLINE u32 in_pairs(u32 lanes) { return lanes | (lanes & 0x55555555u) << 1 | (lanes >> 1 & 0x55555555u); }

// Stores what a mask has, and notes in its summary which lanes have events.
INLINE void store_with_summary(u32 *masks, u32 *summaries, u32 mask, u32 lane, Mask m) {
#if ON_DEVICE
    u32 lanes = lanes_that(is_set(m), lane);
    if (has_lane(in_pairs(lanes), lane)) store(masks, mask, lane, m);
    if (lane == 0) summaries[mask] = lanes;
#else
    store(masks, mask, lane, m);
    summaries[mask] = is_set(m) ? summaries[mask] | 1u << lane : summaries[mask] & ~(1u << lane);
#endif
}

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

// Tokens are pairs of event and point; a point may have very many predicates. A warp has 32 tokens, and sets the predicates of
// each together.
INLINE void scatter_points_warp(u64 warp, const u32 *tokens, u64 count, const u32 *offsets, const u32 *bits, Predicates to,
                                u64 clears) {
    PerLane<u32> events, begins, ends;
    EACH_LANE {
        u64 at = 32 * warp + lane;
        events[lane] = begins[lane] = ends[lane] = 0;
        if (at >= count) continue;
        u32 point = tokens[2 * at + 1];
        events[lane] = tokens[2 * at];
        begins[lane] = offsets[point];
        ends[lane] = offsets[point + 1];
    }
    for (u32 token = 0; token < 32; ++token) {
        u32 event = from_lane(events, token), begin = from_lane(begins, token), end = from_lane(ends, token);
        EACH_LANE for (u32 at = begin + lane; at < end; at += 32) touch(to, bits[at], event, clears != 0);
    }
}

// Tokens are pairs of table and event, and rank.
INLINE void scatter_ranks_thread(u64 thread, const u32 *tokens, u64 count, u32 *ranks, u32 *present, u64 clears) {
    if (thread >= count) return;
    u32 place = tokens[2 * thread], event = place % EVENTS;
    ranks[place] = tokens[2 * thread + 1];
    u32 *word = present + (u64)(place / EVENTS) * WORDS + event / 32;
    if (clears) *word = 0; else set_bits(word, 1u << (event % 32));
}

// Items are table, first cut, and which masks are read: a bit for "below" each of so many cuts, and then one for "above" each. Cut
// c has a value of rank r above it if c < r.
#define CUTS_PER_ITEM 8

INLINE void cuts_thread(u32 lane, u64 item, const u32 *items, const u32 *tables, const u32 *ranks, const u32 *present,
                        Predicates to) {
    u32 table = items[3 * item], first = items[3 * item + 1], read = items[3 * item + 2];
    u32 below = tables[2 * table] + first, above = tables[2 * table + 1] + first;
    Mask there = load(present, table, lane);
    const u32 *own = ranks + (u64)table * EVENTS + lane * 128;
    Mask under[CUTS_PER_ITEM];
    UNROLL for (u32 at = 0; at < CUTS_PER_ITEM; ++at) under[at] = all_of(0);
    for (Mask rest = there; is_set(rest);) {
        u32 rank[4]; // all are asked for before the first is needed
        UNROLL for (int j = 0; j < 4; ++j) rank[j] = rest.w[j] != 0 ? own[32 * j + first_bit(rest.w[j])] : 0;
        UNROLL for (int j = 0; j < 4; ++j) {
            u32 bit = rest.w[j] & (0u - rest.w[j]);
            UNROLL for (u32 at = 0; at < CUTS_PER_ITEM; ++at) if (rank[j] <= first + at) under[at].w[j] |= bit;
            rest.w[j] ^= bit;
        }
    }
    UNROLL for (u32 at = 0; at < CUTS_PER_ITEM; ++at) {
        Mask over = odd_one(there, under[at]);
        if ((read >> at) & 1) store_with_summary(to.masks, to.summaries, below + at, lane, under[at]);
        if ((read >> (CUTS_PER_ITEM + at)) & 1) store_with_summary(to.masks, to.summaries, above + at, lane, over);
    }
}

// --- units ------------------------------------------------------------------------------------------

struct Unit { u32 code, leaves, mask, rows; };

#define KIND(unit) ((unit).leaves >> 28)
#define GUARDS(unit) (((unit).leaves >> 26) & 3)
#define LEAVES(unit) ((unit).leaves & 0x03ffffffu)

struct Inputs { const u32 *code, *masks, *summaries; };

// The code of a unit begins with its leaves. A leaf is the number of a mask, shifted by one; the lowest bit says that it must be
// clear.

INLINE bool must_be_clear(u32 leaf) { return leaf & 1; }

// The lanes in which a leaf may hold.
INLINE u32 lanes_of(u32 leaf, Inputs in) { return must_be_clear(leaf) ? ALL_LANES : in.summaries[leaf >> 1]; }

// What summaries say of a unit before any mask is read: the lanes in which it may hold, and which of its leaves have a say in
// them. Leaves are numbered up to 32 this way; of a unit with more, all have.
struct Outlook { u32 lanes, needed; };

// The lanes of eight leaves from `first` on; `idle` of those that are not from `begin` to `end`. All are asked for before the first is
// needed. `first` is a multiple of eight, and code is aligned to four words.
struct Eight { u32 lanes[8]; };

INLINE Eight eight_from(const u32 *code, u32 first, u32 begin, u32 end, Inputs in, u32 idle) {
    u32 leaves[8];
#if ON_DEVICE
    uint4 low = *reinterpret_cast<const uint4 *>(code + first), high = low;
    if (first + 4 < end) high = *reinterpret_cast<const uint4 *>(code + first + 4);
    leaves[0] = low.x; leaves[1] = low.y; leaves[2] = low.z; leaves[3] = low.w;
    leaves[4] = high.x; leaves[5] = high.y; leaves[6] = high.z; leaves[7] = high.w;
#else
    for (u32 at = 0; at < 8; ++at) leaves[at] = first + at < end ? code[first + at] : 0;
#endif
    Eight found;
    UNROLL for (u32 at = 0; at < 8; ++at)
        found.lanes[at] = first + at >= begin && first + at < end ? lanes_of(leaves[at], in) : idle;
    return found;
}

INLINE Outlook outlook_of_all(const u32 *code, u32 count, Inputs in) {
    Outlook found = { ALL_LANES, ALL_LANES };
    for (u32 first = 0; first < count && found.lanes != 0; first += 8) {
        Eight next = eight_from(code, first, 0, count, in, ALL_LANES);
        UNROLL for (u32 at = 0; at < 8; ++at) found.lanes &= next.lanes[at];
    }
    return found;
}

INLINE Outlook outlook_of_any(const u32 *code, u32 count, Inputs in) {
    Outlook found = { 0, 0 };
    for (u32 first = 0; first < count; first += 8) {
        Eight next = eight_from(code, first, 0, count, in, 0);
        UNROLL for (u32 at = 0; at < 8; ++at) {
            found.lanes |= next.lanes[at];
            if (next.lanes[at] != 0) found.needed |= 1u << ((first + at) & 31);
        }
    }
    if (count > 32) found.needed = ALL_LANES;
    return found;
}

INLINE u32 lanes_of_guards(const u32 *code, u32 guards, Inputs in) {
    u32 lanes = ALL_LANES;
    for (u32 at = 0; at < guards; ++at) lanes &= lanes_of(code[at], in);
    return lanes;
}

// A group of which some leaf is empty cannot hold as a whole: none of its leaves has a say.
INLINE Outlook outlook_of_any_group(const u32 *code, u32 count, u32 guards, Inputs in) {
    u32 guard = lanes_of_guards(code, guards, in), lanes = guard, ends = 0, group = 0;
    Outlook found = { 0, (1u << guards) - 1 };
    for (u32 first = 0; first < count && guard != 0; first += 8) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        Eight next = eight_from(code, first, guards, count, in, ALL_LANES);
        UNROLL for (u32 at = 0; at < 8; ++at) {
            if (first + at < guards || first + at >= count) continue;
            u32 bit = (first + at) & 31;
            lanes &= next.lanes[at];
            group |= 1u << bit;
            if (!((ends >> bit) & 1)) continue;
            found.lanes |= lanes;
            if (lanes != 0) found.needed |= group;
            lanes = guard;
            group = 0;
        }
    }
    if (count > 32) found.needed = ALL_LANES;
    return found;
}

// Leaves that are empty have no say, but the last one of a group is kept: it ends the group.
INLINE Outlook outlook_of_all_groups(const u32 *code, u32 count, u32 guards, Inputs in) {
    Outlook found = { lanes_of_guards(code, guards, in), (1u << guards) - 1 };
    u32 some = 0, ends = 0;
    for (u32 first = 0; first < count && found.lanes != 0; first += 8) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        Eight next = eight_from(code, first, guards, count, in, 0);
        UNROLL for (u32 at = 0; at < 8; ++at) {
            if (first + at < guards || first + at >= count) continue;
            u32 bit = (first + at) & 31, is_end = (ends >> bit) & 1;
            some |= next.lanes[at];
            if (next.lanes[at] != 0 || is_end) found.needed |= 1u << bit;
            if (!is_end) continue;
            found.lanes &= some;
            some = 0;
        }
    }
    if (count > 32) found.needed = ALL_LANES;
    return found;
}

// One leaf of each pair holds: otherwise the parity is unknown.
INLINE Outlook outlook_of_parity(const u32 *code, u32 count, Inputs in) {
    Outlook found = { ALL_LANES, ALL_LANES };
    for (u32 at = 0; at + 1 < count && found.lanes != 0; at += 2)
        found.lanes &= lanes_of(code[at], in) | lanes_of(code[at + 1], in);
    return found;
}

// Which kinds of units a kernel runs: the fewer, the fewer registers it needs.
#define FLAT 0
#define GROUPS 1
#define OTHER 2
#define SETS 3

INLINE Outlook outlook_of(Unit unit, Inputs in) {
    const u32 *code = in.code + unit.code;
    u32 kind = KIND(unit), count = LEAVES(unit), guards = GUARDS(unit);
    if (kind == 0) return outlook_of_all(code, count, in);
    if (kind == 1) return outlook_of_any(code, count, in);
    if (kind == 5) return outlook_of_any_group(code, count, guards, in);
    if (kind >= 6) return outlook_of_all_groups(code, count, guards, in);
    if (kind == 3) return outlook_of_parity(code, count, in);
    Outlook found = { kind == 2 ? lanes_of_guards(code, guards, in) : ALL_LANES, ALL_LANES };
    return found;
}

// The leaves of a unit that a whole warp runs. Those that have a say, of 32 consecutive ones, are written down by the lanes, each
// of which reads one: the number of its mask, whether it is negated, whether it ends a group, and its summary.
struct alignas(8) Leaf { u32 mask, summary; };
#define NEGATED 0x80000000u
#define ENDS 0x40000000u

struct Leaves { u32 code, count, needed, guards; Leaf *list; Mask *buffer; Place place; const u32 *masks; u32 word, ends, summary; };

INLINE u32 word_at(const Leaves *l, u32 at, Inputs in) { return in.code[l->code + at]; }

// Writes down the leaves from `first` on, the first 32 of which were fetched before. Returns how many have a say.
INLINE u32 write_down(const Leaves *l, u32 first, u32 ends, Inputs in, u32 lane) {
    u32 left = l->count - first, bits = l->needed & (left < 32 ? (1u << left) - 1 : ~0u);
#if ON_DEVICE
    u32 word = l->word, summary = l->summary;
    if (first > 0) {
        word = lane < left ? word_at(l, first + lane, in) : 0;
        summary = in.summaries[word >> 1];
    }
    Leaf leaf = { word >> 1 | (word & 1) << 31 | ((ends >> lane) & 1) << 30, summary };
    __syncwarp(); // nobody reads the list any more
    if (has_lane(bits, lane)) l->list[__popc(bits & ((1u << lane) - 1))] = leaf;
    __syncwarp();
#else
    for (u32 rest = bits, i = 0; rest != 0; rest &= rest - 1, ++i) {
        u32 at = first_bit(rest), word = word_at(l, first + at, in);
        Leaf leaf = { word >> 1 | (word & 1) << 31 | ((ends >> at) & 1) << 30, in.summaries[word >> 1] };
        l->list[i] = leaf;
    }
#endif
    return count_bits(bits);
}

// Brings leaves from the list into the buffer, where they are wanted: `from` and those behind it. What takes long is
// waiting for memory, so they are waited for together. Returns the first that is left.
INLINE u32 bring(const Leaves *l, u32 from, u32 to, u32 lane, bool is_wanted) {
    u32 own = is_wanted ? 1u << lane : 0;
    UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
        if (from + i >= to) break;
        Leaf leaf = l->list[from + i];
        u32 number = leaf.mask & ~(NEGATED | ENDS);
        copy_if(l->place + i * NEXT_LANES * sizeof(Mask), (leaf.summary & own) != 0, l->masks + (u64)number * WORDS);
    }
    wait_for_copies();
    return from + AT_ONCE < to ? from + AT_ONCE : to;
}

// What one of them is, before it is flipped.
INLINE Mask brought(const Leaves *l, u32 i) { return l->buffer[i * NEXT_LANES]; }
INLINE u32 flip_of(u32 mask) { return (mask & NEGATED) != 0 ? ~0u : 0; }

INLINE Mask both_flipped(Mask all, Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) all.w[j] &= m.w[j] ^ flip; return all; }
INLINE Mask flipped(Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) m.w[j] ^= flip; return m; }

// All leaves hold; or, with everything negated, some leaf holds.
INLINE Mask run_flat(const Leaves *l, u32 flip, Inputs in, u32 lane, bool is_wanted) {
    Mask all = all_of(is_wanted ? ~0u : flip);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, in, lane);
        for (u32 from = 0, next; from < count; from = next) {
            if (flip == 0) is_wanted = is_set(all);
            if (!any_lane(is_wanted)) return flipped(all, flip);
            next = bring(l, from, count, lane, is_wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= next) break;
                all = both_flipped(all, brought(l, i), flip_of(l->list[from + i].mask) ^ flip);
            }
        }
    }
    return is_wanted ? flipped(all, flip) : all_of(0);
}

// What is left of a mask under the guards, which are the first on the list: at most three.
INLINE Mask under_guards(Mask m, const Leaves *l, u32 lane) {
    if (l->guards == 0 || !any_lane(is_set(m))) return m;
    bring(l, 0, l->guards, lane, is_set(m));
    for (u32 i = 0; i < l->guards; ++i) m = both_flipped(m, brought(l, i), flip_of(l->list[i].mask));
    return m;
}

// Groups of leaves, all of which hold in one group; or, with everything negated, some of which hold in each group. Behind the
// leaves there is a bit for each, set for the last one of a group; guards have clear bits. Where each group has to hold, a guard is
// a group of its own.
INLINE Mask run_groups(const Leaves *l, u32 flip, Inputs in, u32 lane, bool is_wanted) {
    Mask any = all_of(is_wanted ? 0 : flip), all = all_of(~0u);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 ends = first == 0 ? l->ends : word_at(l, l->count + first / 32, in), guards = first == 0 ? l->guards : 0;
        if (flip != 0) ends |= (1u << guards) - 1;
        u32 count = write_down(l, first, ends, in, lane);
        for (u32 from = flip != 0 ? 0 : guards, next; from < count; from = next) {
            if (flip != 0) is_wanted = is_set(flipped(any, ~0u));
            if (!any_lane(is_wanted)) return flipped(any, flip);
            next = bring(l, from, count, lane, is_wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= next) break;
                u32 mask = l->list[from + i].mask;
                all = both_flipped(all, brought(l, i), flip_of(mask) ^ flip);
                if ((mask & ENDS) == 0) continue;
                any = either(any, all);
                all = all_of(~0u);
            }
        }
    }
    if (flip != 0) return flipped(any, flip);
    if (!is_wanted) any = all_of(0);
    if (l->guards > 0 && l->count > 32) write_down(l, 0, 0, in, lane);
    return under_guards(any, l, lane);
}

INLINE Mask taken(u32 what, Mask last, const Mask *saved) {
    if (what == 255) return last;
    if (what == 254) return all_of(~0u);
    if (what == 253) return all_of(0);
    return saved[what];
}

// Choices, the last one first. Behind the leaves there is a word for each: what to take if the leaf holds, if it does not, and
// where to save what came out.
INLINE Mask run_choices(const Leaves *l, Inputs in, u32 lane, bool is_wanted) {
    Mask guard = all_of(is_wanted ? ~0u : 0), last = all_of(0);
    Mask saved[SAVED];
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, in, lane), from = 0;
        if (first == 0) {
            guard = under_guards(guard, l, lane);
            from = l->guards;
            is_wanted = is_set(guard);
            if (!any_lane(is_wanted)) return guard;
        }
        for (u32 next; from < count; from = next) {
            next = bring(l, from, count, lane, is_wanted);
            for (u32 i = 0; from + i < next; ++i) {
                u32 word = word_at(l, l->count + first + from + i, in), place = (word >> 16) & 255;
                Mask t = taken(word & 255, last, saved), f = taken((word >> 8) & 255, last, saved);
                last = choose(flipped(brought(l, i), flip_of(l->list[from + i].mask)), t, f);
                if (place != 255) saved[place] = last;
            }
        }
    }
    return both(guard, last);
}

// Pairs of leaves, true and false; the word behind them says whether an odd number is to be true.
INLINE Mask run_parity(const Leaves *l, Inputs in, u32 lane) {
    Mask even = all_of(~0u), odd = all_of(0), t = odd;
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, in, lane);
        for (u32 from = 0, next; from < count; from = next) {
            next = bring(l, from, count, lane, true);
            for (u32 i = 0; from + i < next; ++i) {
                Mask m = flipped(brought(l, i), flip_of(l->list[from + i].mask));
                if ((from + i) % 2 == 0) {
                    t = m;
                    continue;
                }
                Mask now_even = either(both(even, m), both(odd, t));
                odd = either(both(odd, m), both(even, t));
                even = now_even;
            }
        }
    }
    return word_at(l, l->count, in) ? odd : even;
}

// The word behind the leaves says how many have to hold at least.
INLINE Mask run_threshold(const Leaves *l, Inputs in, u32 lane) {
    u32 least = word_at(l, l->count, in);
    Mask digits[DIGITS];
    u32 used = 1;
    while ((l->count >> used) != 0) ++used;
    if ((least >> used) != 0) return all_of(0);
    for (u32 at = 0; at < used; ++at) digits[at] = all_of(0);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, in, lane);
        for (u32 from = 0, next; from < count; from = next) {
            next = bring(l, from, count, lane, true);
            for (u32 i = 0; from + i < next; ++i) {
                Mask carry = flipped(brought(l, i), flip_of(l->list[from + i].mask));
                for (u32 digit = 0; digit < used; ++digit) {
                    Mask more = both(digits[digit], carry);
                    digits[digit] = odd_one(digits[digit], carry);
                    carry = more;
                }
            }
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

template <int KINDS> INLINE Mask run_unit(u32 kind, const Leaves *l, Inputs in, u32 lane, bool is_wanted) {
    if (KINDS == FLAT) return run_flat(l, kind == 0 ? 0 : ~0u, in, lane, is_wanted);
    if (KINDS == GROUPS) return run_groups(l, kind == 5 ? 0 : ~0u, in, lane, is_wanted);
    if (KINDS == SETS) return run_groups(l, ~0u, in, lane, is_wanted);
    if (kind == 2) return run_choices(l, in, lane, is_wanted);
    if (kind == 3) return run_parity(l, in, lane);
    return run_threshold(l, in, lane);
}

// A unit all of whose leaves have to hold, run by one lane alone. It is in the lane's outlook, so leaves that must hold are there.
INLINE Mask run_all_alone(Unit unit, Inputs in, u32 lane) {
    const u32 *code = in.code + unit.code;
    u32 count = LEAVES(unit);
    Mask m = all_of(~0u);
    for (u32 first = 0; first < count && is_set(m); first += 4) {
        u32 leaves[4];
        Mask loaded[4];
        UNROLL for (u32 at = 0; at < 4; ++at) leaves[at] = first + at < count ? code[first + at] : 0;
        UNROLL for (u32 at = 0; at < 4; ++at) {
            bool is_there = !must_be_clear(leaves[at]) || has_lane(in.summaries[leaves[at] >> 1], lane);
            loaded[at] = all_of(0);
            if (is_there) loaded[at] = load(in.masks, leaves[at] >> 1, lane); // mask 0 is always set
        }
        UNROLL for (u32 at = 0; at < 4; ++at) {
            u32 flip = 0u - (leaves[at] & 1);
            UNROLL for (int j = 0; j < 4; ++j) m.w[j] &= loaded[at].w[j] ^ flip;
        }
    }
    return m;
}

// The same for sets, some leaf of each of which has to hold: see run_groups.
INLINE Mask run_sets_alone(Unit unit, Inputs in, u32 lane) {
    const u32 *code = in.code + unit.code;
    u32 count = LEAVES(unit), ends = 0;
    Mask m = all_of(~0u), some = all_of(0);
    for (u32 first = 0; first < count && is_set(m); first += 4) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        u32 leaves[4];
        Mask loaded[4];
        UNROLL for (u32 at = 0; at < 4; ++at) leaves[at] = first + at < count ? code[first + at] : 0;
        UNROLL for (u32 at = 0; at < 4; ++at) {
            loaded[at] = all_of(0);
            if (has_lane(in.summaries[leaves[at] >> 1], lane)) loaded[at] = load(in.masks, leaves[at] >> 1, lane);
        }
        UNROLL for (u32 at = 0; at < 4; ++at) {
            u32 flip = 0u - (leaves[at] & 1);
            UNROLL for (int j = 0; j < 4; ++j) some.w[j] |= loaded[at].w[j] ^ flip;
            if (first + at >= count || !((ends >> ((first + at) & 31)) & 1)) continue;
            m = both(m, some);
            some = all_of(0);
        }
    }
    return m;
}

// --- counting ---------------------------------------------------------------------------------------

// A number for each event of a thread, bit by bit: the first plane has the ones, the next one the twos, and so on. They lie in
// the memory that a block of threads shares, so that registers are left for masks; no lane looks at those of another.
template <int COUNT> INLINE void reset(Mask *planes) {
    UNROLL for (int plane = 0; plane < COUNT; ++plane) planes[plane * NEXT_LANES] = all_of(0);
}

// Adds a power of two to the events of a mask; returns those for which there is something to carry beyond the last plane. The lanes
// of a warp do it together.
template <int COUNT> INLINE Mask add_power(Mask *planes, Mask m, int power) {
    UNROLL for (int plane = 0; plane < COUNT; ++plane) {
        if (plane < power) continue;
        Mask *at = planes + plane * NEXT_LANES, before = *at, more = both(before, m);
        *at = odd_one(before, m);
        m = more;
        if (!any_lane(is_set(m))) return m;
    }
    return m;
}

#define CHUNK_PLANES 9

INLINE u32 count_of(const Mask *planes, int word, u32 bit) {
    u32 count = 0;
    UNROLL for (int plane = 0; plane < CHUNK_PLANES; ++plane) count |= ((planes[plane * NEXT_LANES].w[word] >> bit) & 1) << plane;
    return count;
}

// The rows of each event, counted by a warp and by its block. A warp has planes of its own for the lowest digits; what it carries
// goes to planes that all warps share. Whoever turns a bit off carries it on, so no order of additions loses any. What is
// carried beyond the last plane, which is rare, goes to the counts themselves.
#define WARP_PLANES 3
#define BLOCK_PLANES 10
struct Counter { Mask *planes; u32 *shared, *counts; };

INLINE void carry(const Counter *counter, Mask m, u32 power, u32 lane) {
    UNROLL for (int word = 0; word < 4; ++word) {
        u32 bits = m.w[word], plane = power - WARP_PLANES;
        for (; bits != 0 && plane < BLOCK_PLANES; ++plane)
            bits &= flip_bits(counter->shared + plane * WORDS + lane * 4 + word, bits);
        for (; bits != 0; bits &= bits - 1)
            add_to(counter->counts + lane * 128 + 32 * word + first_bit(bits), 1u << (plane + WARP_PLANES));
    }
}

INLINE void add_rows(Counter *counter, Mask m, u32 rows, u32 lane) {
    if (rows == 1) {
        Mask more = add_power<WARP_PLANES>(counter->planes, m, 0);
        if (any_lane(is_set(more))) carry(counter, more, WARP_PLANES, lane);
        return;
    }
    for (u32 power = 0; power < 32 && rows >> power != 0; ++power) {
        if (!((rows >> power) & 1)) continue;
        Mask more = power < WARP_PLANES ? add_power<WARP_PLANES>(counter->planes, m, power) : m;
        if (any_lane(is_set(more))) carry(counter, more, power < WARP_PLANES ? WARP_PLANES : power, lane);
    }
}

// What warps and their block have counted of 32 events, as planes.
#define ALL_PLANES (WARP_PLANES + BLOCK_PLANES + 1)
struct Sum { u32 planes[ALL_PLANES]; };

INLINE void add_planes(Sum *sum, const u32 *more, u32 step) {
    u32 carried = 0;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) {
        u32 here = sum->planes[plane], other = plane < WARP_PLANES ? more[plane * step] : 0;
        sum->planes[plane] = here ^ other ^ carried;
        carried = (here & other) | (carried & (here ^ other));
    }
}

INLINE Sum shared_sum(const u32 *shared, u32 word) {
    Sum sum;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) {
        bool is_shared = plane >= WARP_PLANES && plane < WARP_PLANES + BLOCK_PLANES;
        sum.planes[plane] = is_shared ? shared[(plane - WARP_PLANES) * WORDS + word] : 0;
    }
    return sum;
}

INLINE u32 sum_of(const Sum *sum, u32 bit) {
    u32 count = 0;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) count |= ((sum->planes[plane] >> bit) & 1) << plane;
    return count;
}

#if ON_DEVICE
// Adds what a block has counted: one column of bits for each thread.
INLINE void sum_up(const Mask *planes, const u32 *shared, u32 *counts) {
    if (threadIdx.x >= WORDS) return;
    Sum sum = shared_sum(shared, threadIdx.x);
    for (u32 warp = 0; warp < WARPS; ++warp)
        add_planes(&sum, reinterpret_cast<const u32 *>(planes) + warp * WARP_PLANES * WORDS + threadIdx.x, WORDS);
    for (u32 at = 0; at < 32; ++at) {
        u32 bit = (at + threadIdx.x) & 31; // at different banks of memory
        counts[threadIdx.x * 32 + bit] = sum_of(&sum, bit);
    }
}
#endif

// Adds the rows of a unit to the events of one lane, one after the other: for masks that are nearly empty.
INLINE void add_rows_alone(Mask m, u32 rows, u32 *counts, u32 lane) {
    UNROLL for (int word = 0; word < 4; ++word)
        for (u32 rest = m.w[word]; rest != 0; rest &= rest - 1)
            add_to(counts + lane * 128 + 32 * word + first_bit(rest), rows);
}

// --- levels -----------------------------------------------------------------------------------------

// A level is evaluated in two steps. First a thread looks at the summaries of one unit: most units are found to be empty that way.
// The others are listed: those that may hold in few lanes lane by lane, the rest by kind. Then each list is run: a thread runs a
// unit in one lane, and a warp runs a unit as a whole.

// A conjunction that may hold in no more lanes than this is run lane by lane.
#define FEW_LANES 12

// A unit to run, with what is known of it.
struct alignas(16) Task { u32 code, leaves, mask, rows, lanes, needed, spare[2]; };

struct Single { u32 unit, lane; };

// Where the units of each kind end, counted from the first of the level. As many tasks of each may be listed.
#define KINDS_OF_TASKS 4
struct Level {
    const Unit *units;
    u32 ends[KINDS_OF_TASKS];
    Task *tasks;
    Single *singles;
    // How many tasks there are of each kind, and how many singles.
    u32 *listed;
};

// Takes a place in the list of a kind, if the unit of this thread has a task.
INLINE u32 place_for(bool is, u32 *listed) {
#if ON_DEVICE
    u32 who = __ballot_sync(ALL_LANES, is), lane = threadIdx.x % 32, first = 0;
    if (who == 0) return 0;
    if (lane == 0) first = atomicAdd(listed, __popc(who));
    return __shfl_sync(ALL_LANES, first, 0) + __popc(who & ((1u << lane) - 1));
#else
    return is ? (*listed)++ : 0;
#endif
}

// Takes so many places; there may be fewer than were taken.
INLINE u32 places_for(u32 count, u32 *listed) {
#if ON_DEVICE
    u32 lane = threadIdx.x % 32, end = count, first = 0;
    UNROLL for (u32 step = 1; step < 32; step *= 2) {
        u32 before = __shfl_up_sync(ALL_LANES, end, step);
        if (lane >= step) end += before;
    }
    u32 all = __shfl_sync(ALL_LANES, end, 31);
    if (all == 0) return 0;
    if (lane == 0) first = atomicAdd(listed, all);
    return __shfl_sync(ALL_LANES, first, 0) + end - count;
#else
    u32 first = *listed;
    *listed += count;
    return first;
#endif
}

// Every thread of a warp comes here, also those behind the last unit. There are as many places for singles as units. If these are
// used up, the unit is run as a whole.
INLINE void look_ahead_thread(u64 thread, Level level, const u32 *code, u32 *summaries, u32 stored) {
    Inputs in = { code, 0, summaries };
    u32 count = level.ends[KINDS_OF_TASKS - 1];
    Unit unit = { 0, 0, 0, 0 };
    Outlook found = { 0, 0 };
    if (thread < count) {
        unit = level.units[thread];
        found = outlook_of(unit, in);
    }
    u32 lanes = count_bits(found.lanes), kind = KIND(unit);
    bool is_alone = lanes > 0 && lanes <= FEW_LANES && (kind == 0 || kind == 7);
    u32 place = places_for(is_alone ? lanes : 0, level.listed + KINDS_OF_TASKS);
    if (is_alone && place + lanes <= count) {
        for (u32 rest = found.lanes; rest != 0; rest &= rest - 1) {
            Single single = { (u32)thread, first_bit(rest) };
            level.singles[place++] = single;
        }
        found.lanes = 0;
    } else if (is_alone) {
        for (; place < count; ++place) level.singles[place].lane = 32; // nothing
    }
    if (thread < count && found.lanes == 0 && unit.mask < stored) summaries[unit.mask] = 0;
    u32 begin = 0;
    for (u32 kind = 0; kind < KINDS_OF_TASKS; ++kind) {
        u32 end = level.ends[kind];
        bool is = found.lanes != 0 && thread >= begin && thread < end;
        u32 place = begin + place_for(is, level.listed + kind);
        begin = end;
        if (!is) continue;
        Task task = { unit.code, unit.leaves, unit.mask, unit.rows, found.lanes, found.needed, { 0, 0 } };
        level.tasks[place] = task;
    }
}

// Runs a unit in one lane.
INLINE void run_single_thread(u64 thread, Level level, const u32 *code, u32 *masks, u32 stored, u32 *counts, u32 *summaries) {
    u32 count = level.ends[KINDS_OF_TASKS - 1], singles = level.listed[KINDS_OF_TASKS];
    if (thread >= (singles < count ? singles : count)) return;
    Single single = level.singles[thread];
    if (single.lane == 32) return;
    Inputs in = { code, masks, summaries };
    Unit unit = level.units[single.unit];
    Mask m = KIND(unit) == 0 ? run_all_alone(unit, in, single.lane) : run_sets_alone(unit, in, single.lane);
    if (!is_set(m)) return;
    if (unit.mask < stored) {
        store(masks, unit.mask, single.lane, m);
        set_bits(summaries + unit.mask, 1u << single.lane);
    }
    if (counts != 0 && unit.rows > 0) add_rows_alone(m, unit.rows, counts, single.lane);
}

// What a lane works with.
struct Workspace { Leaf *list; Mask *buffer; Place place; Counter counter; };

// A task, with the first leaves of its unit, one for each lane.
struct Fetched { Task task; PerLane<u32> word, summary; u32 ends; };

INLINE Task task_at(const Task *tasks, u32 at, u32 count) {
    Task none = { 0, 0, 0, 0, 0, 0, { 0, 0 } };
    return at < count ? tasks[at] : none;
}

template <int KINDS> INLINE void fetch_words(Fetched *next, Inputs in) {
    Unit unit = { next->task.code, next->task.leaves, 0, 0 };
    EACH_LANE next->word[lane] = lane < LEAVES(unit) ? in.code[unit.code + lane] : 0;
    if (KINDS == GROUPS || KINDS == SETS) next->ends = in.code[unit.code + LEAVES(unit)];
}

INLINE void fetch_summaries(Fetched *next, Inputs in) { EACH_LANE next->summary[lane] = in.summaries[next->word[lane] >> 1]; }

// Runs tasks, every so many of them; stores masks below `stored`, and counts rows if there are counts. While one runs, the next is
// fetched, and its leaves while rows are counted.
template <int KINDS>
INLINE void evaluate_warp(u32 warp, u32 warps, const Task *tasks, u32 count, const u32 *code, u32 *masks, u32 stored,
                          u32 *summaries, PerLane<Workspace> *spaces) {
    Inputs in = { code, masks, summaries };
    Fetched now, next;
    now.task = task_at(tasks, warp, count);
    now.ends = next.ends = 0;
    fetch_words<KINDS>(&now, in);
    fetch_summaries(&now, in);
    for (u32 at = warp; at < count; at += warps) {
        next.task = task_at(tasks, at + warps, count);
        PerLane<Mask> m;
        EACH_LANE {
            Workspace *space = &(*spaces)[lane];
            Unit unit = { now.task.code, now.task.leaves, now.task.mask, now.task.rows };
            Leaves leaves = { unit.code, LEAVES(unit), now.task.needed, GUARDS(unit), space->list, space->buffer, space->place,
                              masks + lane * 4, now.word[lane], now.ends, now.summary[lane] };
            m[lane] = run_unit<KINDS>(KIND(unit), &leaves, in, lane, has_lane(now.task.lanes, lane));
        }
        fetch_words<KINDS>(&next, in);
        EACH_LANE {
            Counter *counter = &(*spaces)[lane].counter;
            if (now.task.mask < stored) store_with_summary(masks, summaries, now.task.mask, lane, m[lane]);
            if (counter->counts != 0 && now.task.rows > 0 && any_lane(is_set(m[lane]))) add_rows(counter, m[lane], now.task.rows, lane);
        }
        fetch_summaries(&next, in);
        now = next;
    }
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
    reset<CHUNK_PLANES>(planes);
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
            UNROLL for (u32 at = 0; at < 4; ++at)
                if (any_lane(is_set(loaded[at]))) add_power<CHUNK_PLANES>(planes, loaded[at], 0);
        }
    }
    u32 *own = counts + chunk * EVENTS + lane * 128;
    UNROLL for (int word = 0; word < 4; ++word) {
        for (u32 bit = 0; bit < 32; bit += 4) {
            Mask four;
            UNROLL for (u32 at = 0; at < 4; ++at) four.w[at] = count_of(planes, word, bit + at);
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

// Lists the first rows of each event in order, at most `most`, and ends when all events have so many: for few of many. A warp has 32
// events; it looks at 32 rows at a time, one for each lane, and turns them into the rows of each event.
#define ROWS_AHEAD 4

INLINE void take_first_warp(u64 warp, RowInputs in, u64 events, u32 most, u32 *counts, u32 *listed) {
    u32 word = (u32)warp;
    PerLane<u32> found;
    EACH_LANE found[lane] = 32 * word + lane < events ? 0 : most;
    for (u64 first = 0; first < in.rows; first += 32 * ROWS_AHEAD) {
        PerLane<bool> is_short;
        EACH_LANE is_short[lane] = found[lane] < most;
        if (lanes_where(is_short) == 0) break;
        PerLane<u32> held[ROWS_AHEAD]; // all are asked for before the first is needed
        UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
            EACH_LANE {
                Row row = row_in_order(in, first + 32 * ahead + lane);
                held[ahead][lane] = has_lane(row.lanes, word / 4) ? in.masks[(u64)row.mask * WORDS + word] : 0;
            }
        }
        UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
            PerLane<u32> rows = transposed(held[ahead]);
            EACH_LANE {
                for (u32 rest = rows[lane]; rest != 0 && found[lane] < most; rest &= rest - 1) {
                    u32 row = row_at(in.order, first + 32 * ahead + first_bit(rest));
                    listed[(u64)(32 * word + lane) * most + found[lane]++] = row;
                }
            }
        }
    }
    EACH_LANE {
        u32 event = 32 * word + lane;
        if (event >= events) continue;
        counts[event] = found[lane];
        for (u32 place = found[lane]; place < most; ++place) listed[(u64)event * most + place] = 0;
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
// Four blocks fit into a multiprocessor: memory is waited for by some warps while others compute. Where shared memory has no room for
// more than four, there are registers for a fifth, which is of another block of events.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
#define SMALL_KERNEL extern "C" __global__ void __launch_bounds__(256, 5)

KERNEL scatter_bits(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) { scatter_bits_thread(THREAD, P(u32, 0), a1, TO(2, 3), a4); }
KERNEL scatter_points(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    scatter_points_warp(THREAD / 32, P(u32, 0), a1, P(u32, 2), P(u32, 3), TO(4, 5), a6);
}
KERNEL scatter_ranks(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4) {
    scatter_ranks_thread(THREAD, P(u32, 0), a1, P(u32, 2), P(u32, 3), a4);
}
KERNEL cuts(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) {
    u64 item = THREAD / 32;
    if (item < a1) cuts_thread(LANE, item, P(u32, 0), P(u32, 2), P(u32, 3), P(u32, 4), TO(5, 6));
}
// Arguments 0 to 7: units of the level, where those of each kind end, tasks, singles, how many of them are listed.
#define LEVEL Level{ P(Unit, 0), { (u32)a1, (u32)a2, (u32)a3, (u32)a4 }, P(Task, 5), P(Single, 6), P(u32, 7) }
SMALL_KERNEL look_ahead(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10) {
    look_ahead_thread(THREAD, LEVEL, P(u32, 8), P(u32, 9), a10);
}
SMALL_KERNEL run_singles(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10, u64 a11, u64 a12) {
    run_single_thread(THREAD, LEVEL, P(u32, 8), P(u32, 9), a10, P(u32, 11), P(u32, 12));
}
#define EVALUATE(KINDS) \
    u32 listed = *P(u32, 1); \
    if (blockIdx.x * WARPS >= listed) return; \
    __shared__ Mask buffers[WARPS * AT_ONCE * 32]; \
    __shared__ Mask planes[WARPS * WARP_PLANES * 32]; \
    __shared__ u32 sums[BLOCK_PLANES * WORDS]; \
    __shared__ Leaf lists[WARPS * 32]; \
    u32 own = threadIdx.x / 32; \
    PerLane<Workspace> space; \
    space.own.list = lists + own * 32; \
    space.own.buffer = buffers + own * AT_ONCE * 32 + LANE; \
    space.own.place = place_of(space.own.buffer); \
    space.own.counter.shared = sums; \
    space.own.counter.counts = P(u32, 5); \
    space.own.counter.planes = planes + own * WARP_PLANES * 32 + LANE; \
    reset<WARP_PLANES>(space.own.counter.planes); \
    if (a5 != 0) { \
        for (u32 word = threadIdx.x; word < BLOCK_PLANES * WORDS; word += blockDim.x) sums[word] = 0; \
        __syncthreads(); \
    } \
    evaluate_warp<KINDS>(THREAD / 32, gridDim.x * WARPS, P(Task, 0), listed, P(u32, 2), P(u32, 3), a4, P(u32, 6), &space); \
    if (a5 != 0) { \
        __syncthreads(); \
        static_assert(sizeof(buffers) >= EVENTS * sizeof(u32), ""); \
        u32 *counts = reinterpret_cast<u32 *>(buffers); /* what was brought is of no use any more */ \
        sum_up(planes, sums, counts); \
        __syncthreads(); \
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) \
            if (counts[event] != 0) atomicAdd(P(u32, 5) + event, counts[event]); \
    }
SMALL_KERNEL evaluate_flat(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(FLAT) }
SMALL_KERNEL evaluate_groups(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(GROUPS) }
SMALL_KERNEL evaluate_sets(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(SETS) }
KERNEL evaluate_other(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6) { EVALUATE(OTHER) }
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
KERNEL take_first(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7, u64 a8, u64 a9) {
    if (32 * (THREAD / 32) < a6) take_first_warp(THREAD / 32, ROWS(a5), a6, a7, P(u32, 8), P(u32, 9));
}
KERNEL count_events(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) {
    count_events_thread(THREAD, ROWS(a5), a6, P(u32, 7));
}
#else
#define FOR_THREADS for (u64 thread = 0; thread < threads; ++thread)
#define FOR_WARPS for (u64 warp = 0; warp < threads / 32; ++warp) for (u32 lane = 0; lane < 32; ++lane)

template <int KINDS> static void evaluate_on_host(u64 threads, const u64 *a) {
    for (u64 warp = 0; warp < threads / 32; ++warp) {
        Mask buffers[32][AT_ONCE], planes[32][WARP_PLANES];
        Leaf lists[32][32];
        u32 sums[BLOCK_PLANES * WORDS] = {};
        PerLane<Workspace> space;
        EACH_LANE {
            Workspace own = { lists[lane], buffers[lane], place_of(buffers[lane]), { planes[lane], sums, P(u32, 5) } };
            space[lane] = own;
            reset<WARP_PLANES>(planes[lane]);
        }
        evaluate_warp<KINDS>(warp, threads / 32, P(Task, 0), *P(u32, 1), P(u32, 2), P(u32, 3), a[4], P(u32, 6), &space);
        if (a[5] == 0) continue;
        for (u32 word = 0; word < WORDS; ++word) {
            Sum sum = shared_sum(sums, word);
            add_planes(&sum, planes[word / 4][0].w + word % 4, sizeof(Mask) / sizeof(u32));
            for (u32 bit = 0; bit < 32; ++bit) add_to(P(u32, 5) + 32 * word + bit, sum_of(&sum, bit));
        }
    }
}

#define LEVEL Level{ P(Unit, 0), { (u32)a[1], (u32)a[2], (u32)a[3], (u32)a[4] }, P(Task, 5), P(Single, 6), P(u32, 7) }

extern "C" void tamis_launch(u32 kernel, u64 threads, const u64 *a) {
    Mask planes[CHUNK_PLANES];
    switch (kernel) {
    case 0: FOR_THREADS scatter_bits_thread(thread, P(u32, 0), a[1], TO(2, 3), a[4]); break;
    case 1:
        for (u64 warp = 0; warp < threads / 32; ++warp)
            scatter_points_warp(warp, P(u32, 0), a[1], P(u32, 2), P(u32, 3), TO(4, 5), a[6]);
        break;
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
    case 11:
        for (u64 warp = 0; warp < threads / 32; ++warp)
            if (32 * warp < a[6]) take_first_warp(warp, ROWS(a[5]), a[6], a[7], P(u32, 8), P(u32, 9));
        break;
    case 12: evaluate_on_host<SETS>(threads, a); break;
    case 13: FOR_THREADS look_ahead_thread(thread, LEVEL, P(u32, 8), P(u32, 9), a[10]); break;
    case 14: FOR_THREADS run_single_thread(thread, LEVEL, P(u32, 8), P(u32, 9), a[10], P(u32, 11), P(u32, 12)); break;
    }
}
#endif
