// Masks, and what the threads of a warp do together, on a device and on this processor.
typedef unsigned int u32;
typedef unsigned long long u64;

#define WORDS 128
#define EVENTS 4096
#define SAVED 24
#define DIGITS 18
#define WARPS 8
#define ALL_LANES 0xffffffffu
// Masks that a warp waits for together.
#define AT_ONCE 4

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
INLINE bool any_lane(bool is) { return __any_sync(ALL_LANES, is); }
INLINE void wait_for_lanes() { __syncwarp(); }
INLINE u32 lanes_that(bool is, u32) { return __ballot_sync(ALL_LANES, is); }
INLINE u32 first_bit(u32 word) { return __ffs(word) - 1; }
INLINE void set_bits(u32 *word, u32 bits) { atomicOr(word, bits); }
INLINE void add_to(u32 *count, u32 more) { atomicAdd(count, more); }
INLINE u32 fetch_and_add(u32 *count, u32 more) { return atomicAdd(count, more); }
INLINE u32 seen(const u32 *count) { return __ldcg(count); }
INLINE u32 flip_bits(u32 *word, u32 bits) { return atomicXor(word, bits); }
INLINE u32 count_bits(u32 word) { return __popc(word); }
#else
#define ON_DEVICE 0
#define INLINE static inline
#define UNROLL
// Lanes run one after the other: each sees itself alone.
INLINE bool any_lane(bool is) { return is; }
INLINE void wait_for_lanes() {}
INLINE u32 lanes_that(bool is, u32 lane) { return is ? 1u << lane : 0; }
INLINE u32 first_bit(u32 word) { return __builtin_ctz(word); }
INLINE void set_bits(u32 *word, u32 bits) { *word |= bits; }
INLINE void add_to(u32 *count, u32 more) { *count += more; }
INLINE u32 fetch_and_add(u32 *count, u32 more) { u32 before = *count; *count += more; return before; }
INLINE u32 seen(const u32 *count) { return *count; }
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

// The same from where the lane's own words of the first mask are.
INLINE Mask load_own(const u32 *own, u32 number) {
#if ON_DEVICE
    const u32 *from;
    asm("mad.wide.u32 %0, %1, 512, %2;" : "=l"(from) : "r"(number), "l"(own)); // in one step
    static_assert(WORDS * sizeof(u32) == 512, "");
    return load(from, 0, 0);
#else
    return load(own, number, 0);
#endif
}

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
