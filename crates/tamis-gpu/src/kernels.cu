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
#define WARPS 8
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
    UNROLL for (int j = 0; j < 4; ++j) {
        for (u32 rest = there.w[j]; rest != 0; rest &= rest - 1) {
            u32 bit = rest & (0u - rest), rank = own[32 * j + first_bit(rest)];
            UNROLL for (u32 at = 0; at < CUTS_PER_ITEM; ++at) if (rank <= first + at) under[at].w[j] |= bit;
        }
    }
    UNROLL for (u32 at = 0; at < CUTS_PER_ITEM; ++at) {
        Mask over = odd_one(there, under[at]);
        if ((read >> at) & 1) {
            if (is_set(under[at])) store(to.masks, below + at, lane, under[at]);
            summarize(to.summaries, below + at, lane, is_set(under[at]));
        }
        if ((read >> (CUTS_PER_ITEM + at)) & 1) {
            if (is_set(over)) store(to.masks, above + at, lane, over);
            summarize(to.summaries, above + at, lane, is_set(over));
        }
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

INLINE Outlook outlook_of_all(const u32 *code, u32 count, Inputs in) {
    Outlook found = { ALL_LANES, ALL_LANES };
    for (u32 first = 0; first < count && found.lanes != 0; first += 4) {
        u32 leaves[4]; // all are asked for before the first is needed
        UNROLL for (u32 at = 0; at < 4; ++at) leaves[at] = first + at < count ? code[first + at] : 0;
        UNROLL for (u32 at = 0; at < 4; ++at) found.lanes &= lanes_of(leaves[at], in);
    }
    return found;
}

INLINE Outlook outlook_of_any(const u32 *code, u32 count, Inputs in) {
    Outlook found = { 0, 0 };
    for (u32 first = 0; first < count; first += 4) {
        u32 lanes[4];
        UNROLL for (u32 at = 0; at < 4; ++at) lanes[at] = first + at < count ? lanes_of(code[first + at], in) : 0;
        UNROLL for (u32 at = 0; at < 4; ++at) {
            found.lanes |= lanes[at];
            if (lanes[at] != 0) found.needed |= 1u << ((first + at) & 31);
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
    for (u32 first = guards & ~3u; first < count && guard != 0; first += 4) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        u32 of[4];
        UNROLL for (u32 at = 0; at < 4; ++at)
            of[at] = first + at >= guards && first + at < count ? lanes_of(code[first + at], in) : ALL_LANES;
        UNROLL for (u32 at = 0; at < 4; ++at) {
            if (first + at < guards) continue;
            u32 bit = (first + at) & 31;
            lanes &= of[at];
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
    for (u32 first = guards & ~3u; first < count && found.lanes != 0; first += 4) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        u32 of[4];
        UNROLL for (u32 at = 0; at < 4; ++at)
            of[at] = first + at >= guards && first + at < count ? lanes_of(code[first + at], in) : 0;
        UNROLL for (u32 at = 0; at < 4; ++at) {
            if (first + at < guards) continue;
            u32 bit = (first + at) & 31, is_end = (ends >> bit) & 1;
            some |= of[at];
            if (of[at] != 0 || is_end) found.needed |= 1u << bit;
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

template <int KINDS> INLINE Outlook outlook_of(Unit unit, Inputs in) {
    const u32 *code = in.code + unit.code;
    u32 kind = KIND(unit), count = LEAVES(unit), guards = GUARDS(unit);
    if (KINDS == FLAT) return kind == 0 ? outlook_of_all(code, count, in) : outlook_of_any(code, count, in);
    if (KINDS == GROUPS)
        return kind == 5 ? outlook_of_any_group(code, count, guards, in) : outlook_of_all_groups(code, count, guards, in);
    if (KINDS == SETS) return outlook_of_all_groups(code, count, 0, in);
    if (kind == 3) return outlook_of_parity(code, count, in);
    Outlook found = { kind == 2 ? lanes_of_guards(code, guards, in) : ALL_LANES, ALL_LANES };
    return found;
}

// The leaves of a unit that a whole warp runs. Each lane has one of 32 consecutive leaves, with its summary: they come from memory
// at once, ahead of their use.
struct Leaves { u32 code, count, needed, first, word, summary; };

INLINE u32 word_at(const Leaves *l, u32 at, Inputs in) { return in.code[l->code + at]; }
INLINE void fetch_words(Leaves *l, Inputs in, u32 lane) {
    u32 at = l->first + lane;
    l->word = at < l->count ? word_at(l, at, in) : 0;
}
INLINE void fetch_summaries(Leaves *l, Inputs in) { l->summary = in.summaries[l->word >> 1]; }

// Makes those of the 32 leaves available that `at` is among.
INLINE void turn_to(Leaves *l, u32 at, Inputs in, u32 lane) {
    u32 first = at & ~31u;
    if (first == l->first) return;
    l->first = first;
    fetch_words(l, in, lane);
    fetch_summaries(l, in);
}

// Which of the available leaves have a say.
INLINE u32 needed_now(const Leaves *l) {
    u32 left = l->count - l->first;
    return left < 32 ? l->needed & ((1u << left) - 1) : l->needed;
}

struct Leaf { u32 word, summary; };

// Leaf `at`, which must be available.
INLINE Leaf leaf_at(const Leaves *l, u32 at, Inputs in) {
#if ON_DEVICE
    Leaf leaf = { __shfl_sync(ALL_LANES, l->word, at & 31), __shfl_sync(ALL_LANES, l->summary, at & 31) };
#else
    Leaf leaf = { word_at(l, at, in), in.summaries[word_at(l, at, in) >> 1] };
#endif
    return leaf;
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

// The next four of the available leaves whose bits are set in `rest`, and where they are.
struct NextFour { Mask m[4]; u32 at[4]; };

INLINE NextFour next_four(const Leaves *l, u32 *rest, Inputs in, u32 lane, bool is_wanted, u32 idle) {
    NextFour four;
    UNROLL for (u32 at = 0; at < 4; ++at) {
        four.m[at] = all_of(idle);
        four.at[at] = 32;
        if (*rest == 0) continue;
        four.at[at] = first_bit(*rest);
        *rest &= *rest - 1;
        four.m[at] = value_of(leaf_at(l, l->first + four.at[at], in), in, lane, is_wanted);
    }
    return four;
}

INLINE Mask run_all(Leaves *l, Inputs in, u32 lane, bool is_wanted) {
    Mask m = all_of(is_wanted ? ~0u : 0);
    for (u32 first = 0; first < l->count; first += 4) {
        is_wanted = is_set(m);
        if (!any_lane(is_wanted)) return m;
        Four four = four_from(l, first, in, lane, is_wanted, ~0u);
        UNROLL for (int at = 0; at < 4; ++at) m = both(m, four.m[at]);
    }
    return m;
}

INLINE Mask run_any(Leaves *l, Inputs in, u32 lane) {
    Mask m = all_of(0);
    for (u32 first = 0; first < l->count; first += 32) {
        turn_to(l, first, in, lane);
        for (u32 rest = needed_now(l); rest != 0;) {
            NextFour four = next_four(l, &rest, in, lane, true, 0);
            UNROLL for (int at = 0; at < 4; ++at) m = either(m, four.m[at]);
        }
    }
    return m;
}

// What is left of a mask under the guards, which come before the other leaves: at most three.
INLINE Mask under_guards(Mask m, const Leaves *l, u32 guards, Inputs in, u32 lane) {
    UNROLL for (u32 at = 0; at < 3; ++at)
        if (at < guards) m = both(m, value_of(leaf_at(l, at, in), in, lane, is_set(m)));
    return m;
}

// Groups of leaves, all of which hold in one group; or, with everything negated, some of which hold in each group. Behind the
// leaves there is a bit for each, set for the last one of a group; guards have clear bits. Guards come first where they rule much
// out, which is where each group has to hold.
INLINE Mask run_groups(Leaves *l, u32 guards, u32 flip, Inputs in, u32 lane, bool is_wanted) {
    Mask any = all_of(is_wanted ? flip : 0), all = all_of(~0u);
    if (flip != 0) {
        any = under_guards(any, l, guards, in, lane);
        is_wanted = is_set(any);
        if (!any_lane(is_wanted)) return any;
        UNROLL for (int j = 0; j < 4; ++j) any.w[j] = ~any.w[j];
    }
    for (u32 first = 0; first < l->count; first += 32) {
        turn_to(l, first, in, lane);
        u32 ends = word_at(l, l->count + first / 32, in), rest = needed_now(l);
        if (first == 0) rest &= ~0u << guards;
        while (rest != 0) {
            NextFour four = next_four(l, &rest, in, lane, is_wanted, ~flip);
            UNROLL for (u32 at = 0; at < 4; ++at) {
                UNROLL for (int j = 0; j < 4; ++j) all.w[j] &= four.m[at].w[j] ^ flip;
                // Behind the last leaf there is none, which ends nothing.
                if (four.at[at] == 32 || !((ends >> four.at[at]) & 1)) continue;
                any = either(any, all);
                all = all_of(~0u);
            }
        }
    }
    UNROLL for (int j = 0; j < 4; ++j) any.w[j] ^= flip;
    if (flip == 0 && guards > 0) {
        turn_to(l, 0, in, lane);
        any = under_guards(any, l, guards, in, lane);
    }
    return any;
}

INLINE Mask taken(u32 what, Mask last, const Mask *saved) {
    if (what == 255) return last;
    if (what == 254) return all_of(~0u);
    if (what == 253) return all_of(0);
    return saved[what];
}

// Choices, the last one first. Behind the leaves there is a word for each: what to take if the leaf holds, if it does not, and
// where to save what came out.
INLINE Mask run_choices(Leaves *l, u32 guards, Inputs in, u32 lane, bool is_wanted) {
    Mask guard = under_guards(all_of(is_wanted ? ~0u : 0), l, guards, in, lane);
    is_wanted = is_set(guard);
    if (!any_lane(is_wanted)) return guard;
    Mask saved[SAVED];
    Mask last = all_of(0);
    for (u32 first = 0; first < l->count; first += 4) {
        Four four = four_from(l, first, in, lane, is_wanted, 0);
        UNROLL for (u32 at = 0; at < 4; ++at) {
            if (first + at < guards || first + at >= l->count) continue;
            u32 word = word_at(l, l->count + first + at, in);
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
    return word_at(l, l->count, in) ? odd : even;
}

// The word behind the leaves says how many have to hold at least.
INLINE Mask run_threshold(Leaves *l, Inputs in, u32 lane) {
    u32 least = word_at(l, l->count, in);
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

template <int KINDS> INLINE Mask run_unit(u32 leaves, Leaves *l, Inputs in, u32 lane, bool is_wanted) {
    Unit unit = { 0, leaves, 0, 0 };
    u32 kind = KIND(unit);
    if (KINDS == FLAT) return kind == 0 ? run_all(l, in, lane, is_wanted) : run_any(l, in, lane);
    if (KINDS == GROUPS) return run_groups(l, GUARDS(unit), kind == 5 ? 0 : ~0u, in, lane, is_wanted);
    if (KINDS == SETS) return run_groups(l, 0, ~0u, in, lane, is_wanted);
    if (kind == 2) return run_choices(l, GUARDS(unit), in, lane, is_wanted);
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
#define PLANES 7
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

#if ON_DEVICE
// Adds what the warps of a block have counted: their planes together first, one column of bits for each thread, and then what comes
// out, once for the block.
INLINE void flush_block(const Mask *planes, u32 *counts) {
    const u32 sums = PLANES + 3; // of eight warps
    if (threadIdx.x >= WORDS) return;
    const u32 *words = reinterpret_cast<const u32 *>(planes) + threadIdx.x;
    u32 sum[sums];
    UNROLL for (u32 plane = 0; plane < sums; ++plane) sum[plane] = 0;
    for (u32 warp = 0; warp < WARPS; ++warp) {
        u32 carry = 0;
        UNROLL for (u32 plane = 0; plane < sums; ++plane) {
            u32 more = plane < PLANES ? words[(warp * PLANES + plane) * WORDS] : 0;
            u32 both = (sum[plane] & more) | (carry & (sum[plane] ^ more));
            sum[plane] ^= more ^ carry;
            carry = both;
        }
    }
    for (u32 at = 0; at < 32; ++at) {
        u32 bit = (at + threadIdx.x) & 31, count = 0; // at different banks of memory
        UNROLL for (u32 plane = 0; plane < sums; ++plane) count |= ((sum[plane] >> bit) & 1) << plane;
        counts[threadIdx.x * 32 + bit] += count;
    }
}
#endif

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

// Adds the rows of a unit to the events of one lane, one after the other: for masks that are nearly empty.
INLINE void add_rows_alone(Mask m, u32 rows, u32 *counts, u32 lane) {
    UNROLL for (int word = 0; word < 4; ++word)
        for (u32 rest = m.w[word]; rest != 0; rest &= rest - 1)
            add_to(counts + lane * 128 + 32 * word + first_bit(rest), rows);
}

// A unit that may hold in no more lanes than this is run by each of them alone.
#define FEW_LANES 12

// Which units a warp runs next. On the device, the warps of a block share every so many turns, and take them as they go.
#if ON_DEVICE
struct Turns { u32 *taken; };
INLINE u32 next_turn(Turns *turns) {
    u32 turn = 0;
    if (threadIdx.x % 32 == 0) turn = atomicAdd(turns->taken, 1) * gridDim.x + blockIdx.x;
    return __shfl_sync(ALL_LANES, turn, 0);
}
#else
struct Turns { u32 next, step; };
INLINE u32 next_turn(Turns *turns) {
    u32 turn = turns->next;
    turns->next += turns->step;
    return turn;
}
#endif

// Runs units of a level; stores masks below `stored`, and counts rows if there are counts. A warp takes up to 32 units at a time. Each
// lane reads the summaries of one: most units are found to be empty that way. Then the warp runs those that are left, and each lane its part
// of those of which little is left.
template <int KINDS>
INLINE void evaluate_warp(Turns *turns, u32 warps, const Unit *units, u32 first, u32 last, const u32 *code, u32 *masks, u32 stored,
                          u32 *counts, u32 *summaries, PerLane<Mask *> planes) {
    Inputs in = { code, masks, summaries };
    PerLane<Counter> counter;
    EACH_LANE {
        Counter empty = { planes[lane], 0 };
        counter[lane] = empty;
        if (counts != 0) reset<PLANES>(&counter[lane]);
    }
    // Every warp has several turns, so that none has to wait long for another.
    u32 each = (last - first + 8 * warps - 1) / (8 * warps);
    if (each > 32) each = 32;
    u32 count = (last - first + each - 1) / each;
    for (u32 turn = next_turn(turns); turn < count; turn = next_turn(turns)) {
        u32 from = first + turn * each, number = last - from < each ? last - from : each;
        const Unit *taken = units + from;
        PerLane<u32> lanes, needed, found, alone;
        PerLane<bool> is_for_warp;
        EACH_LANE {
            Outlook outlook = { 0, 0 };
            bool is_alone = false;
            if (lane < number) {
                Unit unit = taken[lane];
                outlook = outlook_of<KINDS>(unit, in);
                is_alone = (KINDS == SETS || (KINDS == FLAT && KIND(unit) == 0)) && count_bits(outlook.lanes) <= FEW_LANES;
            }
            lanes[lane] = outlook.lanes;
            needed[lane] = outlook.needed;
            alone[lane] = is_alone ? outlook.lanes : 0;
            is_for_warp[lane] = !is_alone && outlook.lanes != 0;
            found[lane] = 0;
        }
        for (u32 rest = lanes_where(is_for_warp); rest != 0; rest &= rest - 1) {
            u32 at = first_bit(rest), wanted = from_lane(lanes, at), of = from_lane(needed, at);
            Unit unit = taken[at];
            PerLane<bool> is;
            EACH_LANE {
                Leaves leaves = { unit.code, LEAVES(unit), of, 0, 0, 0 };
                fetch_words(&leaves, in, lane);
                fetch_summaries(&leaves, in);
                Mask m = run_unit<KINDS>(unit.leaves, &leaves, in, lane, has_lane(wanted, lane));
                is[lane] = is_set(m);
                if (is[lane] && unit.mask < stored) store(masks, unit.mask, lane, m);
                if (counts != 0 && unit.rows > 0 && any_lane(is[lane])) add_rows(&counter[lane], m, unit.rows, counts, lane);
            }
            u32 holds = lanes_where(is);
            EACH_LANE if (lane == at) found[lane] = holds;
        }
        if (KINDS == FLAT || KINDS == SETS) {
            PerLane<u32> units_of = transposed(alone), held_by;
            EACH_LANE {
                held_by[lane] = 0;
                for (u32 left = units_of[lane]; left != 0; left &= left - 1) {
                    u32 at = first_bit(left);
                    Unit unit = taken[at];
                    Mask m = KINDS == FLAT ? run_all_alone(unit, in, lane) : run_sets_alone(unit, in, lane);
                    if (!is_set(m)) continue;
                    held_by[lane] |= 1u << at;
                    if (unit.mask < stored) store(masks, unit.mask, lane, m);
                    if (counts != 0 && unit.rows > 0) add_rows_alone(m, unit.rows, counts, lane);
                }
            }
            PerLane<u32> holds = transposed(held_by);
            EACH_LANE found[lane] |= holds[lane];
        }
        EACH_LANE if (lane < number && taken[lane].mask < stored) summaries[taken[lane].mask] = found[lane];
    }
#if !ON_DEVICE
    if (counts != 0) EACH_LANE flush(&counter[lane], counts, lane);
#endif
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
// Four blocks fit into a multiprocessor: memory is waited for by some warps while others compute.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)

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
#define EVALUATE(KINDS) \
    __shared__ u32 counts[EVENTS]; \
    __shared__ Mask planes[WARPS * PLANES * 32]; \
    __shared__ u32 taken; \
    if (threadIdx.x == 0) taken = 0; \
    if (a6 != 0) for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) counts[event] = 0; \
    __syncthreads(); \
    PerLane<Mask *> own = { planes + threadIdx.x / 32 * PLANES * 32 + LANE }; \
    Turns turns = { &taken }; \
    evaluate_warp<KINDS>(&turns, gridDim.x * WARPS, P(Unit, 0), a1, a2, P(u32, 3), P(u32, 4), a5, a6 != 0 ? counts : 0, \
                         P(u32, 7), own); \
    if (a6 != 0) { \
        __syncthreads(); \
        flush_block(planes, counts); \
        __syncthreads(); \
        for (u32 event = threadIdx.x; event < EVENTS; event += blockDim.x) \
            if (counts[event] != 0) atomicAdd(P(u32, 6) + event, counts[event]); \
    }
KERNEL evaluate_flat(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(FLAT) }
KERNEL evaluate_groups(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(GROUPS) }
KERNEL evaluate_other(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(OTHER) }
KERNEL evaluate_sets(u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) { EVALUATE(SETS) }
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
    Mask planes[32][PLANES];
    PerLane<Mask *> own;
    EACH_LANE own[lane] = planes[lane];
    for (u64 warp = 0; warp < threads / 32; ++warp) {
        Turns turns = { (u32)warp, (u32)threads / 32 };
        evaluate_warp<KINDS>(&turns, threads / 32, P(Unit, 0), a[1], a[2], P(u32, 3), P(u32, 4), a[5], P(u32, 6), P(u32, 7), own);
    }
}

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
    }
}
#endif
