// Levels of units: which of them have to be run, and running them.
// A level is evaluated in two steps. First a thread looks at the summaries of one unit: most units are found to be empty that way.
// The others are listed: those that may hold in few lanes lane by lane, the rest by kind. Then each list is run: a thread runs a
// unit in one lane, and a warp runs a unit as a whole.

// A conjunction that may hold in no more lanes than this is run lane by lane.
#define FEW_LANES 12
// As many of these are listed for each unit of a level, and so many lanes of each, on average.
#define SINGLES_PER_UNIT 2

// A unit to run, with what is known of it.
struct alignas(16) Task { u32 code, leaves, mask, rows; u64 lanes; u32 needed, unused; };

struct Single { u32 unit, lane; };
#define NO_LANE 64

// Where the units of each kind end, counted from the first of the level. As many tasks of each may be listed.
#define KINDS_OF_TASKS 4
struct Level {
    const Unit *units;
    u32 ends[KINDS_OF_TASKS];
    Task *tasks;
    Single *singles;
    // How many tasks there are of each kind, and how many singles.
    u32 *listed;
};

// Takes a place in the list of a kind, if the unit of this thread has a task.
INLINE u32 place_for(bool is, u32 *listed) {
#if ON_DEVICE
    u32 who = __ballot_sync(ALL_THREADS, is), lane = threadIdx.x % 32, first = 0;
    if (who == 0) return 0;
    if (lane == 0) first = atomicAdd(listed, __popc(who));
    return __shfl_sync(ALL_THREADS, first, 0) + __popc(who & ((1u << lane) - 1));
#else
    return is ? (*listed)++ : 0;
#endif
}

// Takes so many places; there may be fewer than were taken.
INLINE u32 places_for(u32 count, u32 *listed) {
#if ON_DEVICE
    u32 lane = threadIdx.x % 32, end = count, first = 0;
    UNROLL for (u32 step = 1; step < 32; step *= 2) {
        u32 before = __shfl_up_sync(ALL_THREADS, end, step);
        if (lane >= step) end += before;
    }
    u32 all = __shfl_sync(ALL_THREADS, end, 31);
    if (all == 0) return 0;
    if (lane == 0) first = atomicAdd(listed, all);
    return __shfl_sync(ALL_THREADS, first, 0) + end - count;
#else
    u32 first = *listed;
    *listed += count;
    return first;
#endif
}

// Every thread of a warp comes here, also those behind the last unit. If places for singles are used up, the unit is run as a whole.
INLINE void look_ahead_thread(u64 thread, Level level, const u32 *code, u64 *summaries, u32 stored, u64 lanes_with_events) {
    Inputs in = { code, 0, summaries, lanes_with_events };
    u32 count = level.ends[KINDS_OF_TASKS - 1], room = SINGLES_PER_UNIT * count;
    Unit unit = { 0, 0, 0, 0 };
    Outlook found = { 0, 0 };
    if (thread < count) {
        unit = level.units[thread];
        found = outlook_of(unit, in);
    }
    u32 lanes = count_bits(found.lanes), kind = KIND(unit);
    bool is_alone = lanes > 0 && lanes <= FEW_LANES && (kind == 0 || kind == 7);
    u32 place = places_for(is_alone ? lanes : 0, level.listed + KINDS_OF_TASKS);
    if (is_alone && place + lanes <= room) {
        for (u64 rest = found.lanes; rest != 0; rest &= rest - 1) {
            Single single = { (u32)thread, first_bit(rest) };
            level.singles[place++] = single;
        }
        found.lanes = 0;
    } else if (is_alone) {
        for (; place < room; ++place) level.singles[place].lane = NO_LANE;
    }
    if (thread < count && found.lanes == 0 && unit.mask < stored) summaries[unit.mask] = 0;
    u32 begin = 0;
    for (u32 kind = 0; kind < KINDS_OF_TASKS; ++kind) {
        u32 end = level.ends[kind];
        bool is = found.lanes != 0 && thread >= begin && thread < end;
        u32 place = begin + place_for(is, level.listed + kind);
        begin = end;
        if (!is) continue;
        Task task = { unit.code, unit.leaves, unit.mask, unit.rows, found.lanes, found.needed, 0 };
        level.tasks[place] = task;
    }
}

// Runs a unit in one lane.
INLINE void run_single_thread(u64 thread, Level level, const u32 *code, u32 *masks, u32 stored, u32 *counts, u64 *summaries) {
    u32 room = SINGLES_PER_UNIT * level.ends[KINDS_OF_TASKS - 1], singles = level.listed[KINDS_OF_TASKS];
    if (thread >= (singles < room ? singles : room)) return;
    Single single = level.singles[thread];
    if (single.lane == NO_LANE) return;
    Inputs in = { code, masks, summaries, 0 };
    Unit unit = level.units[single.unit];
    Mask m = KIND(unit) == 0 ? run_all_alone(unit, in, single.lane) : run_sets_alone(unit, in, single.lane);
    if (!is_set(m)) return;
    if (unit.mask < stored) {
        store(masks, unit.mask, single.lane, m);
        set_bits(summaries + unit.mask, 1ull << single.lane);
    }
    if (counts != 0 && unit.rows > 0) add_rows_alone(m, unit.rows, counts, single.lane);
}

// What a thread works with.
struct Workspace { Leaf *list; Counter counter; };

// A task, with the first leaves of its unit, one for each thread.
struct Fetched { Task task; PerLane<u32> word; PerLane<u64> summary; u32 ends; };

INLINE Task task_at(const Task *tasks, u32 at, u32 count) {
    Task none = { 0, 0, 0, 0, 0, 0, 0 };
    return at < count ? tasks[at] : none;
}

template <int KINDS> INLINE void fetch_words(Fetched *next, Inputs in) {
    Unit unit = { next->task.code, next->task.leaves, 0, 0 };
    EACH_LANE next->word[lane] = lane < LEAVES(unit) ? in.code[unit.code + lane] : 0;
    if (KINDS == GROUPS || KINDS == SETS) next->ends = in.code[unit.code + LEAVES(unit)];
}

INLINE void fetch_summaries(Fetched *next, Inputs in) { EACH_LANE next->summary[lane] = in.summaries[next->word[lane] >> 1]; }

// Runs tasks, every so many of them; stores masks below `stored`, and counts rows if there are counts. While one runs, the next is
// fetched, and its leaves while rows are counted.
template <int KINDS>
INLINE void evaluate_warp(u32 warp, u32 warps, const Task *tasks, u32 count, const u32 *code, u32 *masks, u32 stored,
                          u64 *summaries, PerLane<Workspace> *spaces) {
    Inputs in = { code, masks, summaries, 0 };
    Fetched now, next;
    now.task = task_at(tasks, warp, count);
    now.ends = next.ends = 0;
    fetch_words<KINDS>(&now, in);
    fetch_summaries(&now, in);
    for (u32 at = warp; at < count; at += warps) {
        next.task = task_at(tasks, at + warps, count);
        PerLane<Pair> m;
        EACH_LANE {
            Workspace *space = &(*spaces)[lane];
            Unit unit = { now.task.code, now.task.leaves, now.task.mask, now.task.rows };
            Leaves leaves = { unit.code, LEAVES(unit), now.task.needed, GUARDS(unit), space->list, masks + lane * 4,
                              now.word[lane], now.ends, now.summary[lane] };
            Wanted wanted = { { (u32)now.task.lanes & 1u << lane, (u32)(now.task.lanes >> 32) & 1u << lane } };
            m[lane] = run_unit<KINDS>(KIND(unit), &leaves, in, lane, wanted);
        }
        fetch_words<KINDS>(&next, in);
        EACH_LANE {
            Counter *counter = &(*spaces)[lane].counter;
            if (now.task.mask < stored) {
                EACH_OF_TWO {
                    u32 lanes = store_where_set(masks, now.task.mask, lane, each, m[lane].of[each]);
                    note_lanes(summaries, now.task.mask, lane, each, lanes);
                }
            }
            if (counter->counts != 0 && now.task.rows > 0 && any_lane(is_set(m[lane]))) add_rows(counter, m[lane], now.task.rows, lane);
        }
        fetch_summaries(&next, in);
        now = next;
    }
}
