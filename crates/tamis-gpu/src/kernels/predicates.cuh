// From the values of events, and from what the host found out about them, to masks of predicates.
struct Predicates { u32 *masks; u64 *summaries; };

INLINE void touch(Predicates to, u32 mask, u32 event, bool clears) {
    u32 *word = to.masks + (u64)mask * WORDS + event / 32;
    if (clears) {
        *word = 0;
        to.summaries[mask] = 0;
    } else {
        set_bits(word, 1u << (event % 32));
        set_bits(to.summaries + mask, 1ull << (event / 128));
    }
}

// Tokens are pairs of event and predicate.
INLINE void scatter_bits_thread(u64 thread, const u32 *tokens, u64 count, Predicates to, u64 clears) {
    if (thread < count) touch(to, tokens[2 * thread + 1], tokens[2 * thread], clears != 0);
}

// Each lane has a point, or none: an event, and where the masks of the point begin and end.
INLINE void set_predicates_of_points(PerLane<u32> events, PerLane<u32> begins, PerLane<u32> ends, const u32 *bits, Predicates to,
                                     bool clears) {
    for (u32 token = 0; token < 32; ++token) {
        u32 event = from_lane(events, token), begin = from_lane(begins, token), end = from_lane(ends, token);
        EACH_LANE for (u32 at = begin + lane; at < end; at += 32) touch(to, bits[at], event, clears);
    }
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
    set_predicates_of_points(events, begins, ends, bits, to, clears != 0);
}

// Tokens are pairs of table and event, and rank.
INLINE void scatter_ranks_thread(u64 thread, const u32 *tokens, u64 count, u32 *ranks, u32 *present, u64 clears) {
    if (thread >= count) return;
    u32 place = tokens[2 * thread], event = place % EVENTS;
    ranks[place] = tokens[2 * thread + 1];
    u32 *word = present + (u64)(place / EVENTS) * WORDS + event / 32;
    if (clears) *word = 0; else set_bits(word, 1u << (event % 32));
}

#define NONE 0xffffffffu

// What values of one attribute and kind are compared with.
struct ValueTable { u32 first_point, points, first_cut, cuts, cut_table, masks[2], rest; };

// Keys have 96 bits.
struct Keys { const u64 *heads; const u32 *rests; };

// How many of so many sorted keys are smaller.
INLINE u32 count_smaller(Keys keys, u32 first, u32 count, u64 head, u32 rest) {
    u32 smaller = 0;
    while (count > 0) {
        u32 half = count / 2, at = first + smaller + half;
        u64 other = keys.heads[at];
        bool is_smaller = other < head || (other == head && keys.rests[at] < rest);
        smaller = is_smaller ? smaller + half + 1 : smaller;
        count = is_smaller ? count - half - 1 : half;
    }
    return smaller;
}

// The point that a value is, if it is one.
INLINE u32 point_of(Keys keys, ValueTable table, u64 head) {
    u32 smaller = count_smaller(keys, table.first_point, table.points, head, table.rest), at = table.first_point + smaller;
    bool is_point = smaller < table.points && keys.heads[at] == head && keys.rests[at] == table.rest;
    return is_point ? at : NONE;
}

struct Values { const u32 *places; const u64 *heads; u32 *found; u64 count; };
struct ValueTables { const ValueTable *tables; Keys points, cuts; const u32 *offsets, *masks; };
struct Ranks { u32 *ranks, *present; };

// What becomes of the masks that values set.
#define SETS_MASKS 0
#define CLEARS_MASKS 1
#define LEAVES_MASKS 2

// Looks values up: each is the place of table and event, and the head of its key. A warp has 32 of them, and sets the predicates of
// each point together. What was found is kept, so that it need not be looked for again when masks are cleared.
INLINE void look_up_warp(u64 warp, Values values, ValueTables in, Ranks ranks, Predicates to, u64 does) {
    PerLane<u32> events, begins, ends;
    EACH_LANE {
        u64 at = 32 * warp + lane;
        events[lane] = begins[lane] = ends[lane] = 0;
        if (at >= values.count) continue;
        u32 place = values.places[at], event = place % EVENTS;
        ValueTable table = in.tables[place / EVENTS];
        if (table.cuts > 0) {
            u32 *word = ranks.present + (u64)table.cut_table * WORDS + event / 32;
            if (does == SETS_MASKS) {
                u32 rank = count_smaller(in.cuts, table.first_cut, table.cuts, values.heads[at], table.rest | 1);
                ranks.ranks[(u64)table.cut_table * EVENTS + event] = rank;
                set_bits(word, 1u << (event % 32));
            } else {
                *word = 0;
            }
        }
        if (does == LEAVES_MASKS) continue;
        UNROLL for (int each = 0; each < 2; ++each)
            if (table.masks[each] != NONE) touch(to, table.masks[each], event, does == CLEARS_MASKS);
        u32 point = does == SETS_MASKS ? point_of(in.points, table, values.heads[at]) : values.found[at];
        if (does == SETS_MASKS) values.found[at] = point;
        if (point == NONE) continue;
        events[lane] = event;
        begins[lane] = in.offsets[point];
        ends[lane] = in.offsets[point + 1];
    }
    set_predicates_of_points(events, begins, ends, in.masks, to, does == CLEARS_MASKS);
}

// Items are table, first cut, and which masks are read: a bit for "below" each of so many cuts, and then one for "above" each. Cut
// c has a value of rank r above it if c < r.
#define CUTS_PER_ITEM 8

// The threads of a warp have 32 lanes: the first ones, or the others.
INLINE void cuts_thread(u32 thread, u32 each, u64 item, const u32 *items, const u32 *tables, const u32 *ranks, const u32 *present,
                        Predicates to) {
    u32 lane = 32 * each + thread, table = items[3 * item], first = items[3 * item + 1], read = items[3 * item + 2];
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
    UNROLL for (u32 at = 0; at < 2 * CUTS_PER_ITEM; ++at) {
        if (!((read >> at) & 1)) continue;
        bool is_below = at < CUTS_PER_ITEM;
        u32 mask = is_below ? below + at : above + at - CUTS_PER_ITEM;
        Mask m = is_below ? under[at] : odd_one(there, under[at - CUTS_PER_ITEM]);
        note_lanes(to.summaries, mask, thread, each, store_where_set(to.masks, mask, thread, each, m));
    }
}
