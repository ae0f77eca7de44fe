// Rows: which hold for each event, and for how many events each holds.
#define CHUNK 256

INLINE u32 row_at(const u32 *order, u64 place) { return order ? order[place] : (u32)place; }
INLINE bool is_kept(const u32 *kept, u32 row) { return !kept || ((kept[row / 32] >> (row % 32)) & 1); }

struct RowInputs { const u32 *mask_of_row, *order, *kept, *masks; const u64 *summaries; u64 rows; };

// A row, its mask, and the lanes in which it holds: none if it is not kept.
struct Row { u32 row, mask; u64 lanes; };

INLINE Row row_in_order(RowInputs in, u64 place) {
    Row found = { 0, 0, 0 };
    if (place >= in.rows) return found;
    found.row = row_at(in.order, place);
    if (!is_kept(in.kept, found.row)) return found;
    found.mask = in.mask_of_row[found.row];
    found.lanes = in.summaries[found.mask];
    return found;
}

// A warp has a column of 32 events. It looks at 32 rows at a time, one for each thread, and turns them into the rows of each event.
#define ROWS_AHEAD 4

struct Columns { PerLane<u32> rows[ROWS_AHEAD]; };

// The rows of each event among those from `first` on, up to `end`: as bits, and 32 in a word. All masks are asked for before the first
// is needed.
INLINE Columns rows_of_events(RowInputs in, u64 first, u64 end, u32 column) {
    Columns found;
    PerLane<u32> held[ROWS_AHEAD];
    UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
        EACH_LANE {
            u64 place = first + 32 * ahead + lane;
            Row row = { 0, 0, 0 };
            if (place < end) row = row_in_order(in, place);
            held[ahead][lane] = has_lane(row.lanes, column / 4) ? in.masks[(u64)row.mask * WORDS + column] : 0;
        }
    }
    UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) found.rows[ahead] = transposed(held[ahead]);
    return found;
}

// How many rows of a chunk hold for each event. Neighbouring warps have neighbouring columns, which share what is read.
INLINE void count_chunk_warp(u64 warp, u32 columns, RowInputs in, u32 *counts) {
    u64 chunk = warp / columns, end = (chunk + 1) * CHUNK < in.rows ? (chunk + 1) * CHUNK : in.rows;
    u32 column = (u32)(warp % columns);
    PerLane<u32> count;
    EACH_LANE count[lane] = 0;
    for (u64 first = chunk * CHUNK; first < end; first += 32 * ROWS_AHEAD) {
        Columns found = rows_of_events(in, first, end, column);
        UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) EACH_LANE count[lane] += count_bits(found.rows[ahead][lane]);
    }
    EACH_LANE counts[chunk * EVENTS + 32 * column + lane] = count[lane];
}

// Turns the counts of chunks into places: how many rows of the event are in the chunks before, of the same group of chunks.
// The totals of groups are counts themselves, which are turned into places next.
INLINE void scan_thread(u64 thread, u32 *counts, u64 chunks, u64 in_group, u32 *totals, u32 columns) {
    if (thread % EVENTS >= 32 * columns) return;
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

struct Listing { const u32 *places, *groups; const u64 *offsets; u32 *listed; u64 in_group, first, events, most; };

// Lists rows in order: those of an event from its offset on, at most `most`. Only events from `first` to `events` are. Warps have the
// columns of these.
INLINE void list_chunk_warp(u64 warp, u32 columns, RowInputs in, Listing to) {
    u64 chunk = warp / columns, end = (chunk + 1) * CHUNK < in.rows ? (chunk + 1) * CHUNK : in.rows, origin = to.offsets[to.first];
    u32 column = (u32)(to.first / 32 + warp % columns);
    PerLane<u64> next, last;
    PerLane<bool> is_open;
    EACH_LANE {
        u64 event = 32 * column + lane;
        next[lane] = last[lane] = 0;
        if (event >= to.first && event < to.events) {
            u64 start = to.offsets[event] - origin;
            next[lane] = start + to.places[chunk * EVENTS + event] + to.groups[chunk / to.in_group * EVENTS + event];
            last[lane] = start + to.most;
        }
        is_open[lane] = next[lane] < last[lane];
    }
    if (lanes_where(is_open) == 0) return;
    for (u64 first = chunk * CHUNK; first < end; first += 32 * ROWS_AHEAD) {
        Columns found = rows_of_events(in, first, end, column);
        UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
            EACH_LANE {
                for (u32 rest = found.rows[ahead][lane]; rest != 0 && next[lane] < last[lane]; rest &= rest - 1)
                    to.listed[next[lane]++] = row_at(in.order, first + 32 * ahead + first_bit(rest));
            }
        }
    }
}

// Lists the first rows of each event in order, at most `most`, and ends when all events have so many: for few of many.
INLINE void take_first_warp(u64 warp, RowInputs in, u64 events, u32 most, u32 *counts, u32 *listed) {
    u32 column = (u32)warp;
    PerLane<u32> found;
    EACH_LANE found[lane] = 32 * column + lane < events ? 0 : most;
    for (u64 first = 0; first < in.rows; first += 32 * ROWS_AHEAD) {
        PerLane<bool> is_short;
        EACH_LANE is_short[lane] = found[lane] < most;
        if (lanes_where(is_short) == 0) break;
        Columns held = rows_of_events(in, first, in.rows, column);
        UNROLL for (u32 ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
            EACH_LANE {
                for (u32 rest = held.rows[ahead][lane]; rest != 0 && found[lane] < most; rest &= rest - 1) {
                    u32 row = row_at(in.order, first + 32 * ahead + first_bit(rest));
                    listed[(u64)(32 * column + lane) * most + found[lane]++] = row;
                }
            }
        }
    }
    EACH_LANE {
        u32 event = 32 * column + lane;
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
    for (u64 lanes = row.lanes; lanes != 0; lanes &= lanes - 1) {
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
    for (u64 lanes = row.lanes; lanes != 0 && seen(count) <= room; lanes &= lanes - 1) {
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
