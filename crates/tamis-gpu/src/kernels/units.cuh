// Units: their code, which of them may hold, and what they come to.
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
#define LISTED_LEAVES (32 + AT_ONCE)
#define NEGATED 0x80000000u
#define ENDS 0x40000000u

// `masks` begins with the lane's own words.
struct Leaves { u32 code, count, needed, guards; Leaf *list; const u32 *masks; u32 word, ends, summary; };

INLINE u32 word_at(const Leaves *l, u32 at, Inputs in) { return in.code[l->code + at]; }

// Writes down the leaves from `first` on, the first 32 of which were fetched before; each negated once more, if `flip` is set. Returns
// how many have a say. Behind them come as many as are brought at once that hold everywhere.
INLINE u32 write_down(const Leaves *l, u32 first, u32 ends, u32 flip, Inputs in, u32 lane) {
    u32 left = l->count - first, bits = l->needed & (left < 32 ? (1u << left) - 1 : ~0u), count = count_bits(bits);
    Leaf idle = { NEGATED, 0 };
#if ON_DEVICE
    u32 word = l->word, summary = l->summary;
    if (first > 0) {
        word = lane < left ? word_at(l, first + lane, in) : 0;
        summary = in.summaries[word >> 1];
    }
    Leaf leaf = { word >> 1 | (word ^ flip) << 31 | ((ends >> lane) & 1) << 30, summary };
    __syncwarp(); // nobody reads the list any more
    if (has_lane(bits, lane)) l->list[__popc(bits & ((1u << lane) - 1))] = leaf;
    if (lane < AT_ONCE) l->list[count + lane] = idle;
    __syncwarp();
#else
    u32 i = 0;
    for (u32 rest = bits; rest != 0; rest &= rest - 1, ++i) {
        u32 at = first_bit(rest), word = word_at(l, first + at, in);
        Leaf leaf = { word >> 1 | (word ^ flip) << 31 | ((ends >> at) & 1) << 30, in.summaries[word >> 1] };
        l->list[i] = leaf;
    }
    for (; i < count + AT_ONCE; ++i) l->list[i] = idle;
#endif
    return count;
}

// Masks of leaves before they are flipped, with what the list says of them.
struct Brought { Mask m[AT_ONCE]; u32 said[AT_ONCE]; };

// Brings leaves from the list, where they are wanted: `from` and those behind it. What takes long is waiting for memory, so they
// are waited for together.
INLINE Brought bring(const Leaves *l, u32 from, u32 lane, bool is_wanted) {
    u32 own = is_wanted ? 1u << lane : 0;
    Brought got;
    UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
        Leaf leaf = l->list[from + i];
        got.said[i] = leaf.mask;
        got.m[i] = all_of(0);
        if ((leaf.summary & own) != 0) got.m[i] = load_own(l->masks, leaf.mask & ~(NEGATED | ENDS));
    }
    return got;
}

INLINE u32 flip_of(u32 said) { return (said & NEGATED) != 0 ? ~0u : 0; }

INLINE Mask both_flipped(Mask all, Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) all.w[j] &= m.w[j] ^ flip; return all; }
INLINE Mask flipped(Mask m, u32 flip) { UNROLL for (int j = 0; j < 4; ++j) m.w[j] ^= flip; return m; }

// All leaves hold; or, with everything negated, some leaf holds.
INLINE Mask run_flat(const Leaves *l, u32 flip, Inputs in, u32 lane, bool is_wanted) {
    Mask all = all_of(is_wanted ? ~0u : flip);
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, flip, in, lane);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            if (flip == 0) is_wanted = is_set(all);
            if (!any_lane(is_wanted)) return flipped(all, flip);
            Brought got = bring(l, from, lane, is_wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) all = both_flipped(all, got.m[i], flip_of(got.said[i]));
        }
    }
    return is_wanted ? flipped(all, flip) : all_of(0);
}

// What is left of a mask under the guards, which are the first on the list: at most three.
INLINE Mask under_guards(Mask m, const Leaves *l, u32 lane) {
    if (l->guards == 0 || !any_lane(is_set(m))) return m;
    u32 own = is_set(m) ? 1u << lane : 0;
    UNROLL for (u32 i = 0; i < 3; ++i) {
        if (i >= l->guards) break;
        Leaf leaf = l->list[i];
        Mask guard = all_of(0);
        if ((leaf.summary & own) != 0) guard = load_own(l->masks, leaf.mask & ~(NEGATED | ENDS));
        m = both_flipped(m, guard, flip_of(leaf.mask));
    }
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
        u32 count = write_down(l, first, ends, flip, in, lane);
        for (u32 from = flip != 0 ? 0 : guards; from < count; from += AT_ONCE) {
            if (flip != 0) is_wanted = is_set(flipped(any, ~0u));
            if (!any_lane(is_wanted)) return flipped(any, flip);
            Brought got = bring(l, from, lane, is_wanted);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                all = both_flipped(all, got.m[i], flip_of(got.said[i]));
                if ((got.said[i] & ENDS) == 0) continue;
                any = either(any, all);
                all = all_of(~0u);
            }
        }
    }
    if (flip != 0) return flipped(any, flip);
    if (!is_wanted) any = all_of(0);
    if (l->guards > 0 && l->count > 32) write_down(l, 0, 0, flip, in, lane);
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
        u32 count = write_down(l, first, 0, 0, in, lane), from = 0;
        if (first == 0) {
            guard = under_guards(guard, l, lane);
            from = l->guards;
            is_wanted = is_set(guard);
            if (!any_lane(is_wanted)) return guard;
        }
        for (; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, lane, is_wanted);
            u32 words[AT_ONCE];
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) words[i] = from + i < count ? word_at(l, l->count + first + from + i, in) : 0;
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= count) break;
                u32 word = words[i], place = (word >> 16) & 255;
                Mask t = taken(word & 255, last, saved), f = taken((word >> 8) & 255, last, saved);
                last = choose(flipped(got.m[i], flip_of(got.said[i])), t, f);
                if (place != 255) saved[place] = last;
            }
        }
    }
    return both(guard, last);
}

// Pairs of leaves, true and false; the word behind them says whether an odd number is to be true.
INLINE Mask run_parity(const Leaves *l, Inputs in, u32 lane) {
    Mask even = all_of(~0u), odd = all_of(0);
    static_assert(AT_ONCE % 2 == 0, "a pair is brought at once");
    for (u32 first = 0; first < l->count; first += 32) {
        u32 count = write_down(l, first, 0, 0, in, lane);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, lane, true);
            UNROLL for (u32 i = 0; i + 1 < AT_ONCE; i += 2) {
                if (from + i >= count) break;
                Mask t = flipped(got.m[i], flip_of(got.said[i])), f = flipped(got.m[i + 1], flip_of(got.said[i + 1]));
                Mask now_even = either(both(even, f), both(odd, t));
                odd = either(both(odd, f), both(even, t));
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
        u32 count = write_down(l, first, 0, 0, in, lane);
        for (u32 from = 0; from < count; from += AT_ONCE) {
            Brought got = bring(l, from, lane, true);
            UNROLL for (u32 i = 0; i < AT_ONCE; ++i) {
                if (from + i >= count) break;
                Mask carry = flipped(got.m[i], flip_of(got.said[i]));
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
