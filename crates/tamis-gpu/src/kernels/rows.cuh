// Rows: which hold for each event, and for how many events each holds.
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

// The events of a word that come before the last one. Those behind it satisfy whatever must be absent.
INLINE u32 before_last(u64 first, u64 events) {
    return first >= events ? 0 : events - first >= 32 ? ~0u : (1u << (events - first)) - 1;
}

// For how many events each row holds. A thread has a row: lanes that its summary leaves out are not read.
INLINE void count_events_thread(u64 thread, RowInputs in, u64 events, u32 *counts) {
    if (thread >= in.rows) return;
    Row row = row_in_order(in, thread);
    u32 found = 0;
    for (u32 lanes = row.lanes; lanes != 0; lanes &= lanes - 1) {
        u32 lane = first_bit(lanes);
        Mask m = load(in.masks, row.mask, lane);
        UNROLL for (u32 word = 0; word < 4; ++word) found += count_bits(m.w[word] & before_last(lane * 128 + 32 * word, events));
    }
    counts[thread] = found;
}

struct Match { u32 event, place, row; };

// Lists the events for which each row holds, in no order, and counts them. If there are more than there is room for, nobody reads the
// list, and threads end as soon as they see it. A thread has a row.
INLINE void list_few_thread(u64 thread, RowInputs in, u64 events, u32 *count, u64 room, Match *listed) {
    if (thread >= in.rows) return;
    Row row = row_in_order(in, thread);
    for (u32 lanes = row.lanes; lanes != 0 && seen(count) <= room; lanes &= lanes - 1) {
        u32 lane = first_bit(lanes), found = 0;
        Mask m = load(in.masks, row.mask, lane);
        UNROLL for (u32 word = 0; word < 4; ++word) {
            m.w[word] &= before_last(lane * 128 + 32 * word, events);
            found += count_bits(m.w[word]);
        }
        if (found == 0) continue;
        u32 at = fetch_and_add(count, found);
        UNROLL for (u32 word = 0; word < 4; ++word) {
            for (u32 rest = m.w[word]; rest != 0; rest &= rest - 1, ++at) {
                Match match = { lane * 128 + 32 * word + first_bit(rest), (u32)thread, row.row };
                if (at < room) listed[at] = match;
            }
        }
    }
}
