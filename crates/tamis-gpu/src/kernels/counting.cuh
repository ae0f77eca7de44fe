// The rows of each event, counted by a warp and by its block, as planes of bits: the first plane has the ones, the next one the twos,
// and so on.
//
// A warp has two planes for each of the lowest digits: a sum, and one that waits. The second mask of a digit is added to the sum
// together with the one that waits, and what they carry is one mask of the next digit. So a digit is touched half as often as the one
// below it, and nobody asks whether there is something to carry. What is carried beyond the warp's planes goes to planes that all
// warps of the block share. Whoever turns a bit off carries it on, so no order of additions loses any. What is carried beyond the last
// plane, which is rare, goes to the counts themselves.
//
// Planes lie in the memory that a block of threads shares, so that registers are left for masks; no thread looks at those of another.
#define WARP_DIGITS 2
#define WARP_PLANES (2 * WARP_DIGITS)
#define BLOCK_PLANES 10
// `waiting` has a bit for each digit of which a mask waits.
struct Counter { Mask *planes; u32 *shared, *counts, waiting; };

INLINE Mask *plane_at(const Counter *counter, u32 plane, u32 each) {
    return counter->planes + (LANES_OF_THREAD * plane + each) * NEXT_LANES;
}
INLINE Pair read_plane(const Counter *counter, u32 plane) {
    Pair p;
    EACH_OF_TWO p.of[each] = *plane_at(counter, plane, each);
    return p;
}
INLINE void write_plane(const Counter *counter, u32 plane, Pair p) { EACH_OF_TWO *plane_at(counter, plane, each) = p.of[each]; }

// The planes of sums come first.
INLINE u32 waiting_at(u32 digit) { return WARP_DIGITS + digit; }

INLINE void reset(const Counter *counter) { UNROLL for (u32 digit = 0; digit < WARP_DIGITS; ++digit) write_plane(counter, digit, pair_of(0)); }

INLINE void carry(const Counter *counter, Pair m, u32 power, u32 thread) {
    EACH_OF_TWO {
        Mask rest = m.of[each];
        u32 plane = power - WARP_DIGITS, lane = 32 * each + thread;
        for (; is_set(rest) && plane < BLOCK_PLANES; ++plane) {
            u32 *at = counter->shared + plane * WORDS + lane * 4;
            UNROLL for (int word = 0; word < 4; ++word)
                if (rest.w[word] != 0) rest.w[word] &= flip_bits(at + word, rest.w[word]);
        }
        UNROLL for (int word = 0; word < 4; ++word)
            for (u32 bits = rest.w[word]; bits != 0; bits &= bits - 1)
                add_to(counter->counts + lane * 128 + 32 * word + first_bit(bits), 1u << (plane + WARP_DIGITS));
    }
    wait_for_lanes(); // they go different ways above; where a block waits, the threads of a warp have to come together
}

INLINE Mask sum_of_three(Mask a, Mask b, Mask c) { UNROLL for (int j = 0; j < 4; ++j) a.w[j] ^= b.w[j] ^ c.w[j]; return a; }
INLINE Mask two_of_three(Mask a, Mask b, Mask c) {
    UNROLL for (int j = 0; j < 4; ++j) a.w[j] = (a.w[j] & b.w[j]) | (c.w[j] & (a.w[j] | b.w[j]));
    return a;
}

// Adds a power of two to the events of a mask. The threads of a warp do it together.
INLINE void add_power_of_two(Counter *counter, Pair m, u32 power, u32 thread) {
    UNROLL for (u32 digit = 0; digit < WARP_DIGITS; ++digit) {
        if (digit < power) continue;
        if (!((counter->waiting >> digit) & 1)) {
            write_plane(counter, waiting_at(digit), m);
            counter->waiting |= 1u << digit;
            return;
        }
        counter->waiting ^= 1u << digit;
        EACH_OF_TWO {
            Mask sum = *plane_at(counter, digit, each), other = *plane_at(counter, waiting_at(digit), each), more = m.of[each];
            *plane_at(counter, digit, each) = sum_of_three(sum, other, more);
            m.of[each] = two_of_three(sum, other, more);
        }
    }
    carry(counter, m, power > WARP_DIGITS ? power : WARP_DIGITS, thread);
}

INLINE void add_rows(Counter *counter, Pair m, u32 rows, u32 thread) {
    if (rows == 1) {
        add_power_of_two(counter, m, 0, thread);
        return;
    }
    for (u32 power = 0; power < 32 && rows >> power != 0; ++power)
        if ((rows >> power) & 1) add_power_of_two(counter, m, power, thread);
}

// Nothing waits in planes that are not told of.
INLINE void clear_idle(const Counter *counter) {
    UNROLL for (u32 digit = 0; digit < WARP_DIGITS; ++digit)
        if (!((counter->waiting >> digit) & 1)) write_plane(counter, waiting_at(digit), pair_of(0));
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
    static_assert(WARPS * 32 == WORDS, "there is a thread for each column");
    Sum sum = shared_sum(shared, threadIdx.x);
    for (u32 half = 0; half < 2 * WARPS; ++half)
        add_digits(&sum, reinterpret_cast<const u32 *>(planes) + half * WARP_DIGITS * WORDS + threadIdx.x, WORDS);
    __syncthreads();
    u32 *counts = reinterpret_cast<u32 *>(planes);
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
