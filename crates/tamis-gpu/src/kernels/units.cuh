// Units: their code, which of them may hold, and what they come to.
struct Unit { u32 code, leaves, mask, rows; };

#define KIND(unit) ((unit).leaves >> 28)
#define GUARDS(unit) (((unit).leaves >> 26) & 3)
#define LEAVES(unit) ((unit).leaves & 0x03ffffffu)

// `lanes` are those that have events.
struct Inputs { const u32 *code, *masks; const u64 *summaries; u64 lanes; };

// The code of a unit begins with its leaves. A leaf is the number of a mask, shifted by one; the lowest bit says that it must be
// clear.

INLINE bool must_be_clear(u32 leaf) { return leaf & 1; }

// The lanes in which a leaf may hold.
INLINE u64 lanes_of(u32 leaf, Inputs in) { return must_be_clear(leaf) ? in.lanes : in.summaries[leaf >> 1]; }

// What summaries say of a unit before any mask is read: the lanes in which it may hold, and which of its leaves have a say in
// them. Leaves are numbered up to 32 this way; of a unit with more, all have.
struct Outlook { u64 lanes; u32 needed; };
#define ALL_LEAVES 0xffffffffu

// The lanes of eight leaves from `first` on; `idle` of those that are not from `begin` to `end`. All are asked for before the first is
// needed. `first` is a multiple of eight, and code is aligned to four words.
struct Eight { u64 lanes[8]; };

INLINE Eight eight_from(const u32 *code, u32 first, u32 begin, u32 end, Inputs in, u64 idle) {
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
    Outlook found = { in.lanes, ALL_LEAVES };
    for (u32 first = 0; first < count && found.lanes != 0; first += 8) {
        Eight next = eight_from(code, first, 0, count, in, in.lanes);
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
    if (count > 32) found.needed = ALL_LEAVES;
    return found;
}

INLINE u64 lanes_of_guards(const u32 *code, u32 guards, Inputs in) {
    u64 lanes = in.lanes;
    for (u32 at = 0; at < guards; ++at) lanes &= lanes_of(code[at], in);
    return lanes;
}

// A group of which some leaf is empty cannot hold as a whole: none of its leaves has a say.
INLINE Outlook outlook_of_any_group(const u32 *code, u32 count, u32 guards, Inputs in) {
    u64 guard = lanes_of_guards(code, guards, in), lanes = guard;
    u32 ends = 0, group = 0;
    Outlook found = { 0, (1u << guards) - 1 };
    for (u32 first = 0; first < count && guard != 0; first += 8) {
        if ((first & 31) == 0) ends = code[count + first / 32];
        Eight next = eight_from(code, first, guards, count, in, in.lanes);
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
    if (count > 32) found.needed = ALL_LEAVES;
    return found;
}

// Leaves that are empty have no say, but the last one of a group is kept: it ends the group.
INLINE Outlook outlook_of_all_groups(const u32 *code, u32 count, u32 guards, Inputs in) {
    Outlook found = { lanes_of_guards(code, guards, in), (1u << guards) - 1 };
    u64 some = 0;
    u32 ends = 0;
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
    if (count > 32) found.needed = ALL_LEAVES;
    return found;
}

// One leaf of each pair holds: otherwise the parity is unknown.
INLINE Outlook outlook_of_parity(const u32 *code, u32 count, Inputs in) {
    Outlook found = { in.lanes, ALL_LEAVES };
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
    Outlook found = { kind == 2 ? lanes_of_guards(code, guards, in) : in.lanes, ALL_LEAVES };
    return found;
}

// The leaves of a unit that a whole warp runs. Those that have a say, of 32 consecutive ones, are written down by the threads, each
// of which reads one: the number of its mask, whether it is negated, whether it ends a group, and its summary.
struct alignas(16) Leaf { u32 mask, lanes[LANES_OF_THREAD], unused; };
#define LISTED_LEAVES (32 + AT_ONCE)
#define NEGATED 0x80000000u
#define ENDS 0x40000000u

// `masks` begins with the thread's own words.
struct Leaves { u32 code, count, needed, guards; Leaf *list; const u32 *masks; u32 word, ends; u64 summary; };

INLINE u32 word_at(const Leaves *l, u32 at, Inputs in) { return in.code[l->code + at]; }

INLINE Leaf leaf_of(u32 word, u32 flip, u32 is_end, u64 summary) {
    Leaf leaf = { word >> 1 | (word ^ flip) << 31 | is_end << 30, { (u32)summary, (u32)(summary >> 32) }, 0 };
    return leaf;
}

// Writes down the leaves from `first` on, the first 32 of which were fetched before; each negated once more, if `flip` is set. Returns
// how many have a say. Behind them come as many as are brought at once that hold everywhere.
INLINE u32 write_down(const Leaves *l, u32 first, u32 ends, u32 flip, Inputs in, u32 thread) {
    u32 left = l->count - first, bits = l->needed & (left < 32 ? (1u << left) - 1 : ~0u), count = count_bits(bits);
    Leaf idle = { NEGATED, { 0, 0 }, 0 };
#if ON_DEVICE
    u32 word = l->word;
    u64 summary = l->summary;
    if (first > 0) {
        word = thread < left ? word_at(l, first + thread, in) : 0;
        summary = in.summaries[word >> 1];
    }
    __syncwarp(); // nobody reads the list any more
    if ((bits >> thread) & 1) l->list[__popc(bits & ((1u << thread) - 1))] = leaf_of(word, flip, (ends >> thread) & 1, summary);
    if (thread < AT_ONCE) l->list[count + thread] = idle;
    __syncwarp();
#else
    u32 i = 0;
    for (u32 rest = bits; rest != 0; rest &= rest - 1, ++i) {
        u32 at = first_bit(rest), word = word_at(l, first + at, in);
        l->list[i] = leaf_of(word, flip, (ends >> at) & 1, in.summaries[word >> 1]);
    }
    for (; i < count + AT_ONCE; ++i) l->list[i] = idle;
#endif
    return count;
}

INLINE Pair load_where(const Leaves *l, Leaf leaf, Wanted wanted) {
    Pair found = pair_of(0);
    EACH_OF_TWO if ((leaf.lanes[each] & wanted.of[each]) != 0) found.of[each] = load_own(l->masks, leaf.mask & ~(NEGATED | ENDS), each);
    return found;
}

// Masks of leaves before they are flipped, with what the list says of them.
struct Brought { Pair m[AT_ONCE]; u32 said[AT_ONCE]; };

// Brings leaves from the list, where they are wanted: `from` and those behind it. What takes long is waiting for memory, so they
// are waited for together.
INLINE Brought bring(const Leaves *l, u32 from, Wanted wanted) {
    Brought got;
    UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
        Leaf leaf = l->list[from + i];
        got.said[i] = leaf.mask;
        got.m[i] = load_where(l, leaf, wanted);
    }
    return got;
}

INLINE u32 flip_of(u32 said) { return (said & NEGATED) != 0 ? ~0u : 0; }

// All leaves hold; or, with everything negated, some leaf holds.
INLINE Pair run_flat(const Leaves *l, u32 flip, Inputs in, u32 thread, Wanted wanted) {
    Pair all = where(wanted, pair_of(~0u), flip);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, flip, in, thread);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            if (flip == 0) wanted = lanes_set(all, thread);
            if (!any_lane(is_any(wanted))) return flipped(all, flip);
            Brought got = bring(l, from, wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) all = both_flipped(all, got.m[i], flip_of(got.said[i]));
        }
    }
    return where(wanted, flipped(all, flip), 0);
}

// What is left of a mask under the guards, which are the first on the list: at most three.
INLINE Pair under_guards(Pair m, const Leaves *l, u32 thread) {
    if (l->guards == 0 || !any_lane(is_set(m))) return m;
    Wanted wanted = lanes_set(m, thread);
    UNROLL for (u32 i = 0; i < 3; ++i) {
        if (i >= l->guards) break;
        Leaf leaf = l->list[i];
        m = both_flipped(m, load_where(l, leaf, wanted), flip_of(leaf.mask));
    }
    return m;
}

// Groups of leaves, all of which hold in one group; or, with everything negated, some of which hold in each group. Behind the
// leaves there is a bit for each, set for the last one of a group; guards have clear bits. Where each group has to hold, a guard is
// a group of its own.
INLINE Pair run_groups(const Leaves *l, u32 flip, Inputs in, u32 thread, Wanted wanted) {
    Pair any = where(wanted, pair_of(0), flip), all = pair_of(~0u);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 ends = first == 0 ? l->ends : word_at(l, l->count + first / 32, in), guards = first == 0 ? l->guards : 0;
        if (flip != 0) ends |= (1u << guards) - 1;
        u32 count = write_down(l, first, ends, flip, in, thread);
        for (u32 from = flip != 0 ? 0 : guards; from < count; from += AT_ONCE) {
            if (flip != 0) wanted = lanes_set(flipped(any, ~0u), thread);
            if (!any_lane(is_any(wanted))) return flipped(any, flip);
            Brought got = bring(l, from, wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                all = both_flipped(all, got.m[i], flip_of(got.said[i]));
                if ((got.said[i] & ENDS) == 0) continue;
                any = either(any, all);
                all = pair_of(~0u);
            }
        }
    }
    if (flip != 0) return flipped(any, flip);
    any = where(wanted, any, 0);
    if (l->guards > 0 && l->count > 32) write_down(l, 0, 0, flip, in, thread);
    return under_guards(any, l, thread);
}

INLINE Pair taken(u32 what, Pair last, const Pair *saved) {
    if (what == 255) return last;
    if (what == 254) return pair_of(~0u);
    if (what == 253) return pair_of(0);
    return saved[what];
}

// Choices, the last one first. Behind the leaves there is a word for each: what to take if the leaf holds, if it does not, and
// where to save what came out.
INLINE Pair run_choices(const Leaves *l, Inputs in, u32 thread, Wanted wanted) {
    Pair guard = where(wanted, pair_of(~0u), 0), last = pair_of(0);
    Pair saved[SAVED];
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, 0, in, thread), from = 0;
        if (first == 0) {
            guard = under_guards(guard, l, thread);
            from = l->guards;
            wanted = lanes_set(guard, thread);
            if (!any_lane(is_any(wanted))) return guard;
        }
        for (; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, wanted);
            u32 words[AT_ONCE];
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) words[i] = from + i < count ? word_at(l, l->count + first + from + i, in) : 0;
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= count) break;
                u32 word = words[i], place = (word >> 16) & 255;
                Pair t = taken(word & 255, last, saved), f = taken((word >> 8) & 255, last, saved);
                last = choose(flipped(got.m[i], flip_of(got.said[i])), t, f);
                if (place != 255) saved[place] = last;
            }
        }
    }
    return both(guard, last);
}

// Pairs of leaves, true and false; the word behind them says whether an odd number is to be true.
INLINE Pair run_parity(const Leaves *l, Inputs in, u32 thread, Wanted wanted) {
    Pair even = where(wanted, pair_of(~0u), 0), odd = pair_of(0);
    static_assert(AT_ONCE % 2 == 0, "a pair is brought at once");
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, 0, in, thread);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, wanted);
            UNROLL for (u32 i = 0; i + 1 < AT_ONCE; i += 2) {
                if (from + i >= count) break;
                Pair t = flipped(got.m[i], flip_of(got.said[i])), f = flipped(got.m[i + 1], flip_of(got.said[i + 1]));
                Pair now_even = either(both(even, f), both(odd, t));
                odd = either(both(odd, f), both(even, t));
                even = now_even;
            }
        }
    }
    return word_at(l, l->count, in) ? odd : even;
}

// The word behind the leaves says how many have to hold at least.
INLINE Pair run_threshold(const Leaves *l, Inputs in, u32 thread, Wanted wanted) {
    u32 least = word_at(l, l->count, in);
    Pair digits[DIGITS];
    u32 used = 1;
    while ((l->count >> used) != 0) ++used;
    if ((least >> used) != 0) return pair_of(0);
    for (u32 at = 0; at < used; ++at) digits[at] = pair_of(0);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, 0, in, thread);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= count) break;
                Pair carry = flipped(got.m[i], flip_of(got.said[i]));
                for (u32 digit = 0; digit < used; ++digit) {
                    Pair more = both(digits[digit], carry);
                    digits[digit] = odd_one(digits[digit], carry);
                    carry = more;
                }
            }
        }
    }
    Pair greater = pair_of(0), same = where(wanted, pair_of(~0u), 0);
    for (u32 digit = used; digit-- > 0;) {
        if ((least >> digit) & 1) {
            same = both(same, digits[digit]);
        } else {
            greater = either(greater, both(same, digits[digit]));
            same = both(same, odd_one(digits[digit], pair_of(~0u)));
        }
    }
    return either(greater, same);
}

template <int KINDS> INLINE Pair run_unit(u32 kind, const Leaves *l, Inputs in, u32 thread, Wanted wanted) {
    if (KINDS == FLAT) return run_flat(l, kind == 0 ? 0 : ~0u, in, thread, wanted);
    if (KINDS == GROUPS) return run_groups(l, kind == 5 ? 0 : ~0u, in, thread, wanted);
    if (KINDS == SETS) return run_groups(l, ~0u, in, thread, wanted);
    if (kind == 2) return run_choices(l, in, thread, wanted);
    if (kind == 3) return run_parity(l, in, thread, wanted);
    return run_threshold(l, in, thread, wanted);
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
