// Masks, and what the threads of a warp do together, on a device and on this processor.
typedef unsigned int u32;
typedef unsigned long long u64;

#define WORDS 256
#define EVENTS 8192
#define SAVED 24
#define DIGITS 18
#define WARPS 8
#define ALL_THREADS 0xffffffffu
// Masks that a warp waits for together.
#define AT_ONCE 2

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
INLINE bool any_lane(bool is) { return __any_sync(ALL_THREADS, is); }
INLINE void wait_for_lanes() { __syncwarp(); }
INLINE u32 lanes_that(bool is, u32) { return __ballot_sync(ALL_THREADS, is); }
INLINE u32 first_bit(u32 word) { return __ffs(word) - 1; }
INLINE u32 first_bit(u64 word) { return __ffsll((long long)word) - 1; }
INLINE void set_bits(u32 *word, u32 bits) { atomicOr(word, bits); }
INLINE void set_bits(u64 *word, u64 bits) { atomicOr(word, bits); }
INLINE void add_to(u32 *count, u32 more) { atomicAdd(count, more); }
INLINE u32 fetch_and_add(u32 *count, u32 more) { return atomicAdd(count, more); }
INLINE u32 seen(const u32 *count) { return __ldcg(count); }
INLINE u32 flip_bits(u32 *word, u32 bits) { return atomicXor(word, bits); }
INLINE u32 count_bits(u32 word) { return __popc(word); }
INLINE u32 count_bits(u64 word) { return __popcll(word); }
#else
#define ON_DEVICE 0
#define INLINE static inline
#define UNROLL
// Lanes run one after the other: each sees itself alone.
INLINE bool any_lane(bool is) { return is; }
INLINE void wait_for_lanes() {}
INLINE u32 lanes_that(bool is, u32 lane) { return is ? 1u << lane : 0; }
INLINE u32 first_bit(u32 word) { return __builtin_ctz(word); }
INLINE u32 first_bit(u64 word) { return __builtin_ctzll(word); }
INLINE void set_bits(u32 *word, u32 bits) { *word |= bits; }
INLINE void set_bits(u64 *word, u64 bits) { *word |= bits; }
INLINE void add_to(u32 *count, u32 more) { *count += more; }
INLINE u32 fetch_and_add(u32 *count, u32 more) { u32 before = *count; *count += more; return before; }
INLINE u32 seen(const u32 *count) { return *count; }
INLINE u32 flip_bits(u32 *word, u32 bits) { u32 before = *word; *word ^= bits; return before; }
INLINE u32 count_bits(u32 word) { return __builtin_popcount(word); }
INLINE u32 count_bits(u64 word) { return __builtin_popcountll(word); }
#endif

// A value for each lane of a warp, for what lanes do together. On this processor, EACH_LANE goes through all of them.
#if ON_DEVICE
#define EACH_LANE for (u32 lane = threadIdx.x % 32, is_done = 0; is_done == 0; is_done = 1)
template <class T> struct PerLane {
    T own;
    INLINE T &operator[](u32) { return own; }
};
INLINE u32 lanes_where(PerLane<bool> is) { return __ballot_sync(ALL_THREADS, is.own); }
INLINE u32 from_lane(PerLane<u32> value, u32 lane) { return __shfl_sync(ALL_THREADS, value.own, lane); }
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
        u32 other = __shfl_xor_sync(ALL_THREADS, word, step);
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

// The events of one lane.
struct alignas(16) Mask { u32 w[4]; };

// From one mask of a thread to the next, in the memory that a block of threads shares.
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
INLINE Mask both_flipped(Mask all, Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) all.w[j] &= m.w[j] ^ flip; return all; }
INLINE Mask flipped(Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) m.w[j] ^= flip; return m; }
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

// A thread has two lanes: its own number, and 32 more than that.
#define LANES_OF_THREAD 2
#define EACH_OF_TWO UNROLL for (u32 each = 0; each < LANES_OF_THREAD; ++each)
struct Pair { Mask of[LANES_OF_THREAD]; };

INLINE Pair pair_of(u32 word) { Pair p; EACH_OF_TWO p.of[each] = all_of(word); return p; }
INLINE Pair both(Pair a, Pair b) { EACH_OF_TWO a.of[each] = both(a.of[each], b.of[each]); return a; }
INLINE Pair either(Pair a, Pair b) { EACH_OF_TWO a.of[each] = either(a.of[each], b.of[each]); return a; }
INLINE Pair odd_one(Pair a, Pair b) { EACH_OF_TWO a.of[each] = odd_one(a.of[each], b.of[each]); return a; }
INLINE Pair choose(Pair test, Pair t, Pair f) {
    EACH_OF_TWO t.of[each] = choose(test.of[each], t.of[each], f.of[each]);
    return t;
}
INLINE Pair both_flipped(Pair all, Pair m, u32 flip) {
    EACH_OF_TWO all.of[each] = both_flipped(all.of[each], m.of[each], flip);
    return all;
}
INLINE Pair flipped(Pair m, u32 flip) { EACH_OF_TWO m.of[each] = flipped(m.of[each], flip); return m; }
INLINE bool is_set(Pair p) { return is_set(p.of[0]) || is_set(p.of[1]); }

// Which lanes of a thread are asked for: its own bit among those of the first 32 lanes, and of the others.
struct Wanted { u32 of[LANES_OF_THREAD]; };

INLINE Wanted lanes_set(Pair p, u32 thread) {
    Wanted found;
    EACH_OF_TWO found.of[each] = is_set(p.of[each]) ? 1u << thread : 0;
    return found;
}
INLINE bool is_any(Wanted wanted) { return (wanted.of[0] | wanted.of[1]) != 0; }
// What a pair has in the lanes that are wanted, and the same word everywhere in the others.
INLINE Pair where(Wanted wanted, Pair p, u32 otherwise) {
    EACH_OF_TWO if (wanted.of[each] == 0) p.of[each] = all_of(otherwise);
    return p;
}

// The mask of a lane of this number, from where the thread's own words of the first mask are.
INLINE Mask load_own(const u32 *own, u32 number, u32 each) {
#if ON_DEVICE
    const u32 *from;
    asm("mad.wide.u32 %0, %1, 1024, %2;" : "=l"(from) : "r"(number), "l"(own)); // in one step
    static_assert(WORDS * sizeof(u32) == 1024, "");
    return load(from, 0, 32 * each);
#else
    return load(own, number, 32 * each);
#endif
}

INLINE bool has_lane(u64 lanes, u32 lane) { return (lanes >> lane) & 1; }

// Lanes with their neighbours: two of them share 32 bytes. What is written in part has to be read from memory first, so both are
// written if one of them has events.
INLINE u32 in_pairs(u32 lanes) { return lanes | (lanes & 0x55555555u) << 1 | (lanes >> 1 & 0x55555555u); }

// Stores what 32 lanes of a mask have, the first ones or the others, and says which of them have events.
INLINE u32 store_where_set(u32 *masks, u32 mask, u32 thread, u32 each, Mask m) {
    u32 lanes = lanes_that(is_set(m), thread);
#if ON_DEVICE
    if (has_lane(in_pairs(lanes), thread)) store(masks, mask, 32 * each + thread, m);
#else
    store(masks, mask, 32 * each + thread, m);
#endif
    return lanes;
}

// Notes in the summary of a mask which of 32 lanes have events.
INLINE void note_lanes(u64 *summaries, u32 mask, u32 thread, u32 each, u32 lanes) {
#if ON_DEVICE
    if (thread == 0) reinterpret_cast<u32 *>(summaries + mask)[each] = lanes;
#else
    u64 own = 1ull << (32 * each + thread);
    summaries[mask] = lanes != 0 ? summaries[mask] | own : summaries[mask] & ~own;
#endif
}
