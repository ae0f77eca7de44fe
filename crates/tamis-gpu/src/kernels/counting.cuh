// Numbers of rows, one for each event, as planes of bits.
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
