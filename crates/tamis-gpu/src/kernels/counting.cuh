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

// The rows of each event, counted by a warp and by its block.
//
// A warp has two planes for each of the lowest digits: a sum, and one that waits. The second mask of a digit is added to the sum
// together with the one that waits, and what they carry is one mask of the next digit. So a digit is touched half as often as the one
// below it, and nobody asks whether there is something to carry. What is carried beyond the warp's planes goes to planes that all
// warps of the block share. Whoever turns a bit off carries it on, so no order of additions loses any. What is carried beyond the last
// plane, which is rare, goes to the counts themselves.
#define WARP_DIGITS 4
#define WARP_PLANES (2 * WARP_DIGITS)
#define BLOCK_PLANES 10
// `waiting` has a bit for each digit of which a mask waits.
struct Counter { Mask *planes; u32 *shared, *counts, waiting; };

INLINE Mask *sum_at(const Counter *counter, u32 digit) { return counter->planes + digit * NEXT_LANES; }
INLINE Mask *waiting_at(const Counter *counter, u32 digit) { return counter->planes + (WARP_DIGITS + digit) * NEXT_LANES; }

INLINE void carry(const Counter *counter, Mask m, u32 power, u32 lane) {
    u32 plane = power - WARP_DIGITS;
    for (; is_set(m) && plane < BLOCK_PLANES; ++plane) {
        u32 *at = counter->shared + plane * WORDS + lane * 4;
        UNROLL for (int word = 0; word < 4; ++word)
            if (m.w[word] != 0) m.w[word] &= flip_bits(at + word, m.w[word]);
    }
    UNROLL for (int word = 0; word < 4; ++word)
        for (u32 bits = m.w[word]; bits != 0; bits &= bits - 1)
            add_to(counter->counts + lane * 128 + 32 * word + first_bit(bits), 1u << (plane + WARP_DIGITS));
    wait_for_lanes(); // they go different ways above; where a block waits, the lanes of a warp have to come together
}

INLINE Mask sum_of_three(Mask a, Mask b, Mask c) { UNROLL for (int j = 0; j < 4; ++j) a.w[j] ^= b.w[j] ^ c.w[j]; return a; }
INLINE Mask two_of_three(Mask a, Mask b, Mask c) {
    UNROLL for (int j = 0; j < 4; ++j) a.w[j] = (a.w[j] & b.w[j]) | (c.w[j] & (a.w[j] | b.w[j]));
    return a;
}

// Adds a power of two to the events of a mask. The lanes of a warp do it together.
INLINE void add_power_of_two(Counter *counter, Mask m, u32 power, u32 lane) {
    UNROLL for (u32 digit = 0; digit < WARP_DIGITS; ++digit) {
        if (digit < power) continue;
        if (!((counter->waiting >> digit) & 1)) {
            *waiting_at(counter, digit) = m;
            counter->waiting |= 1u << digit;
            return;
        }
        Mask sum = *sum_at(counter, digit), other = *waiting_at(counter, digit);
        *sum_at(counter, digit) = sum_of_three(sum, other, m);
        counter->waiting ^= 1u << digit;
        m = two_of_three(sum, other, m);
    }
    carry(counter, m, power > WARP_DIGITS ? power : WARP_DIGITS, lane);
}

INLINE void add_rows(Counter *counter, Mask m, u32 rows, u32 lane) {
    if (rows == 1) {
        add_power_of_two(counter, m, 0, lane);
        return;
    }
    for (u32 power = 0; power < 32 && rows >> power != 0; ++power)
        if ((rows >> power) & 1) add_power_of_two(counter, m, power, lane);
}

// Nothing waits in planes that are not told of.
INLINE void clear_idle(const Counter *counter) {
    UNROLL for (u32 digit = 0; digit < WARP_DIGITS; ++digit)
        if (!((counter->waiting >> digit) & 1)) *waiting_at(counter, digit) = all_of(0);
}

// What warps and their block have counted of 32 events, as planes.
#define ALL_PLANES (WARP_DIGITS + BLOCK_PLANES + 1)
struct Sum { u32 planes[ALL_PLANES]; };

// Adds the sums of a warp, or what waits to be added.
INLINE void add_digits(Sum *sum, const u32 *more, u32 step) {
    u32 carried = 0;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) {
        u32 here = sum->planes[plane], other = plane < WARP_DIGITS ? more[plane * step] : 0;
        sum->planes[plane] = here ^ other ^ carried;
        carried = (here & other) | (carried & (here ^ other));
    }
}

INLINE Sum shared_sum(const u32 *shared, u32 word) {
    Sum sum;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) {
        bool is_shared = plane >= WARP_DIGITS && plane < WARP_DIGITS + BLOCK_PLANES;
        sum.planes[plane] = is_shared ? shared[(plane - WARP_DIGITS) * WORDS + word] : 0;
    }
    return sum;
}

INLINE u32 sum_of(const Sum *sum, u32 bit) {
    u32 count = 0;
    UNROLL for (u32 plane = 0; plane < ALL_PLANES; ++plane) count |= ((sum->planes[plane] >> bit) & 1) << plane;
    return count;
}

#if ON_DEVICE
// Adds what a block has counted: one column of bits for each thread. The counts take the place of the planes.
INLINE void sum_up(Mask *planes, const u32 *shared) {
    static_assert(WARPS * WARP_PLANES * WORDS >= EVENTS, "there is room for the counts");
    bool has_column = threadIdx.x < WORDS;
    Sum sum;
    if (has_column) {
        sum = shared_sum(shared, threadIdx.x);
        for (u32 half = 0; half < 2 * WARPS; ++half)
            add_digits(&sum, reinterpret_cast<const u32 *>(planes) + half * WARP_DIGITS * WORDS + threadIdx.x, WORDS);
    }
    __syncthreads();
    u32 *counts = reinterpret_cast<u32 *>(planes);
    for (u32 at = 0; at < 32 && has_column; ++at) {
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
