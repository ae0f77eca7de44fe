// The best rows of each event by relevance.
//
// Rows are looked at in runs, those with the highest bounds first. A warp has a row: it lists the events for which the row holds and
// may be among the best, and scores 32 of them at a time, each in a thread of its own. All of them run the same program in step; it
// adds up in written order, and nothing else adds in floating point. What is good enough goes to the bin of its event. Then a warp
// for each event takes the best of its bin, which says what is good enough in the next run. If a bin runs over, what is in it raises
// the bar, and the run is done again for that event alone.
#define PROGRAM_DEPTH 16
#define NO_PROGRAM 0xffffffffu
// Events of a row that are listed at once: those of half the words of each lane.
#define LISTED_EVENTS 2048

#if ON_DEVICE
INLINE double plus(double a, double b) { return __dadd_rn(a, b); }
INLINE double as_number(u64 bits) { return __longlong_as_double((long long)bits); }
INLINE u64 as_bits(double number) { return (u64)__double_as_longlong(number); }
INLINE u64 longer_from(u64 value, u32 step) { return __shfl_xor_sync(ALL_THREADS, value, step); }
INLINE u32 word_from(u32 value, u32 step) { return __shfl_xor_sync(ALL_THREADS, value, step); }
#else
INLINE double plus(double a, double b) { return a + b; }
INLINE double as_number(u64 bits) { double number; __builtin_memcpy(&number, &bits, sizeof bits); return number; }
INLINE u64 as_bits(double number) { u64 bits; __builtin_memcpy(&bits, &number, sizeof bits); return bits; }
#endif

// A score that is not negative, as its bits: these are in the same order.
struct alignas(16) Entry { u64 score; u32 row, unused; };

// Equal scores go to the smaller row.
INLINE bool is_better(Entry a, Entry b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

INLINE Entry best_of_lanes(PerLane<Entry> each) {
#if ON_DEVICE
    Entry best = each.own;
    UNROLL for (u32 step = 16; step > 0; step /= 2) {
        Entry other = { longer_from(best.score, step), word_from(best.row, step), 0 };
        if (is_better(other, best)) best = other;
    }
#else
    Entry best = each[0];
    EACH_LANE if (is_better(each[lane], best)) best = each[lane];
#endif
    return best;
}

// The sum of the lanes before each, and that of all.
INLINE PerLane<u32> sum_before(PerLane<u32> counts, u32 *total) {
    PerLane<u32> sums;
#if ON_DEVICE
    u32 own = threadIdx.x % 32, sum = counts.own;
    UNROLL for (u32 step = 1; step < 32; step *= 2) {
        u32 before = __shfl_up_sync(ALL_THREADS, sum, step);
        if (own >= step) sum += before;
    }
    *total = __shfl_sync(ALL_THREADS, sum, 31);
    sums.own = sum - counts.own;
#else
    *total = 0;
    EACH_LANE { sums[lane] = *total; *total += counts[lane]; }
#endif
    return sums;
}

// A program is a list of these. The next one is fetched before this one is run.
struct alignas(16) Record { u32 w[4]; };

INLINE Record record_at(const Record *code, u32 at) {
#if ON_DEVICE
    uint4 words = __ldg(reinterpret_cast<const uint4 *>(code + at));
    Record found = { { words.x, words.y, words.z, words.w } };
    return found;
#else
    return code[at];
#endif
}

// How many parts of a node hold, and what they count together.
struct Part { double sum; u32 held; };
INLINE Part both_parts(Part a, Part b) {
    Part none = { 0, 0 }, sum = { plus(a.sum, b.sum), 1 };
    return a.held && b.held ? sum : none;
}
INLINE Part either_part(Part a, Part b) { Part sum = { plus(a.sum, b.sum), a.held | b.held }; return sum; }
INLINE Part with_part(Part a, Part b) { Part sum = { plus(a.sum, b.sum), a.held + b.held }; return sum; }

enum Operation { LEAF = 0, OPEN = 1, CLOSE = 2, XOR_STEP = 3, XOR_END = 4, END = 5, RUN = 6 };

// Leaves of a run that are waited for together.
#define LEAVES_AT_ONCE 4

struct Program { const Record *code; const u32 *masks; const u64 *summaries; u32 start; };

// The word of an event in the mask of a test, which is in the bits above the two lowest.
INLINE u32 word_of(const Program *program, u32 test, u64 lanes, u32 event) {
    return has_lane(lanes, event / 128) ? program->masks[(u64)(test >> 2) * WORDS + event / 32] : 0;
}

// Whether a test holds for an event; its second bit says that the mask must be clear.
INLINE bool holds_in(u32 word, u32 test, u32 event) { return ((word >> (event % 32)) & 1) != ((test >> 1) & 1); }
INLINE bool holds_for(const Program *program, u32 test, u64 lanes, u32 event) {
    return holds_in(word_of(program, test, lanes, event), test, event);
}

// What a row counts for the event of each lane.
INLINE PerLane<double> score(Program program, PerLane<u32> event) {
    PerLane<Part> part, saved[PROGRAM_DEPTH];
    u32 depth = 0, at = program.start;
    Record next = record_at(program.code, at++);
    EACH_LANE { part[lane].sum = 0; part[lane].held = 0; }
    for (;;) {
        Record now = next;
        u32 number = now.w[0] & 0x0fffffffu, operation = now.w[0] >> 29;
        if (operation == END) break;
        next = record_at(program.code, at++);
        switch (operation) {
        case RUN: {
            // Leaves with one test each, in the records that follow: all that is needed is asked for before the first is waited for.
            u32 first = at - 1;
            for (u32 done = 0; done < number; done += LEAVES_AT_ONCE) {
                Record leaves[LEAVES_AT_ONCE];
                u64 lanes[LEAVES_AT_ONCE];
                PerLane<u32> words[LEAVES_AT_ONCE];
                UNROLL for (u32 leaf = 0; leaf < LEAVES_AT_ONCE; ++leaf)
                    leaves[leaf] = record_at(program.code, first + (done + leaf < number ? done + leaf : number - 1));
                UNROLL for (u32 leaf = 0; leaf < LEAVES_AT_ONCE; ++leaf) lanes[leaf] = program.summaries[leaves[leaf].w[1] >> 2];
                UNROLL for (u32 leaf = 0; leaf < LEAVES_AT_ONCE; ++leaf)
                    EACH_LANE words[leaf][lane] = word_of(&program, leaves[leaf].w[1], lanes[leaf], event[lane]);
                UNROLL for (u32 leaf = 0; leaf < LEAVES_AT_ONCE; ++leaf) {
                    double weight = as_number(leaves[leaf].w[2] | (u64)leaves[leaf].w[3] << 32);
                    EACH_LANE {
                        if (done + leaf >= number || !holds_in(words[leaf][lane], leaves[leaf].w[1], event[lane])) continue;
                        part[lane].sum = plus(part[lane].sum, weight);
                        ++part[lane].held;
                    }
                }
            }
            at = first + number;
            next = record_at(program.code, at++);
            break;
        }
        case LEAF: {
            double weight = as_number(now.w[2] | (u64)now.w[3] << 32);
            u64 lanes = program.summaries[now.w[1] >> 2];
            PerLane<bool> any, all;
            EACH_LANE { all[lane] = holds_for(&program, now.w[1], lanes, event[lane]); any[lane] = all[lane] && (now.w[1] & 1); }
            if (number > 1) {
                // The lowest bit ends a group of tests; the other tests are in the records that follow, four in each.
                EACH_LANE all[lane] = all[lane] || (now.w[1] & 1);
                Record more = next;
                for (u32 other = 1; other < number; ++other) {
                    if (other % 4 == 1) { more = next; next = record_at(program.code, at++); }
                    u32 test = more.w[0];
                    more.w[0] = more.w[1]; more.w[1] = more.w[2]; more.w[2] = more.w[3];
                    lanes = program.summaries[test >> 2];
                    EACH_LANE {
                        all[lane] = all[lane] && holds_for(&program, test, lanes, event[lane]);
                        if (test & 1) { any[lane] = any[lane] || all[lane]; all[lane] = true; }
                    }
                }
            }
            EACH_LANE if (any[lane]) { part[lane].sum = plus(part[lane].sum, weight); ++part[lane].held; }
            break;
        }
        case OPEN:
            EACH_LANE { saved[depth][lane] = part[lane]; part[lane].sum = 0; part[lane].held = 0; }
            ++depth;
            break;
        case CLOSE:
            --depth;
            EACH_LANE {
                Part own = { part[lane].sum, 1 }, none = { 0, 0 };
                part[lane] = with_part(saved[depth][lane], part[lane].held >= number ? own : none);
            }
            break;
        case XOR_STEP:
            depth -= 2;
            EACH_LANE {
                Part held = saved[depth - 1][lane], not_held = saved[depth][lane], holds = saved[depth + 1][lane], not_holds = part[lane];
                Part differ = either_part(both_parts(held, not_holds), both_parts(not_held, holds));
                Part agree = either_part(both_parts(held, holds), both_parts(not_held, not_holds));
                saved[depth - 1][lane] = number ? agree : differ;
                part[lane] = number ? differ : agree;
            }
            break;
        case XOR_END:
            depth -= 2;
            EACH_LANE part[lane] = with_part(saved[depth][lane], number ? part[lane] : saved[depth + 1][lane]);
            break;
        default: break;
        }
    }
    PerLane<double> sum;
    EACH_LANE sum[lane] = part[lane].sum;
    return sum;
}

// What is good enough for each event, and its bin.
struct Bins { Entry *least; u32 *counts; Entry *entries; u64 room; };

// Rows from `first` on, in the order of falling bounds; `step` of them for a warp at a time. Chunks of them share a mask of the events
// that the best of them may be good enough for.
struct ScoredRows { RowInputs in; const u64 *bounds; const u32 *starts; const Record *code; const u64 *highest; u64 first, step, in_chunk; const u32 *wanted; const u64 *wanted_lanes; };

// The events for which a row may be good enough.
INLINE Mask may_be_good(Mask held, u64 bound, u32 row, u32 lane, const Entry *least) {
    UNROLL for (u32 word = 0; word < 4; ++word) {
        for (u32 rest = held.w[word]; rest != 0; rest &= rest - 1) {
            u32 bit = first_bit(rest);
            Entry most = { bound, row, 0 };
            if (is_better(least[lane * 128 + 32 * word + bit], most)) held.w[word] &= ~(1u << bit);
        }
    }
    return held;
}

// Of the events in 32 lanes: the first ones, or the others.
INLINE void score_row(ScoredRows rows, Bins bins, u64 place, u32 row, u32 each, PerLane<Mask> held, unsigned short *list) {
    u64 bound = rows.bounds[place];
    u32 start = rows.starts[place];
    UNROLL for (u32 half = 0; half < 4; half += 2) {
        PerLane<u32> counts;
        u32 total;
        EACH_LANE counts[lane] = count_bits(held[lane].w[half]) + count_bits(held[lane].w[half + 1]);
        PerLane<u32> places = sum_before(counts, &total);
        EACH_LANE {
            u32 at = places[lane];
            UNROLL for (u32 word = half; word < half + 2; ++word)
                for (u32 rest = held[lane].w[word]; rest != 0; rest &= rest - 1)
                    list[at++] = (unsigned short)((32 * each + lane) * 128 + 32 * word + first_bit(rest));
        }
        wait_for_lanes();
        for (u32 first = 0; first < total; first += 32) {
            PerLane<u32> event;
            EACH_LANE event[lane] = list[first + lane < total ? first + lane : total - 1];
            PerLane<u64> scores;
            EACH_LANE scores[lane] = bound;
            if (start != NO_PROGRAM) {
                Program program = { rows.code, rows.in.masks, rows.in.summaries, start };
                PerLane<double> sums = score(program, event);
                EACH_LANE scores[lane] = as_bits(sums[lane]);
            }
            EACH_LANE {
                Entry entry = { scores[lane], row, 0 };
                if (first + lane >= total || is_better(bins.least[event[lane]], entry)) continue;
                u32 at = fetch_and_add(bins.counts + event[lane], 1);
                if (at < bins.room) bins.entries[event[lane] * bins.room + at] = entry;
            }
        }
        wait_for_lanes();
    }
}

INLINE void score_rows_warp(u64 warp, u64 warps, ScoredRows rows, Bins bins, unsigned short *list) {
    u64 highest = *rows.highest;
    for (u64 base = rows.first + warp * rows.step; base < rows.in.rows; base += warps * rows.step) {
        u32 chunk = (u32)((base - rows.first) / rows.in_chunk);
        u64 open = rows.wanted_lanes[chunk];
        if (open == 0) continue;
        PerLane<u32> row, mask, lanes[LANES_OF_THREAD];
        PerLane<bool> holds;
        EACH_LANE {
            Row own = { 0, 0, 0 };
            if (lane < rows.step) own = row_in_order(rows.in, base + lane);
            own.lanes &= open;
            row[lane] = own.row; mask[lane] = own.mask;
            EACH_OF_TWO lanes[each][lane] = (u32)(own.lanes >> (32 * each));
            holds[lane] = own.lanes != 0;
        }
        for (u32 rest = lanes_where(holds); rest != 0; rest &= rest - 1) {
            u32 at = first_bit(rest), number = from_lane(row, at), own = from_lane(mask, at);
            u64 bound = rows.bounds[base + at];
            for (u32 each = 0; each < LANES_OF_THREAD; ++each) {
                u32 held_in = from_lane(lanes[each], at);
                if (held_in == 0) continue;
                PerLane<Mask> held;
                PerLane<bool> is_any;
                EACH_LANE {
                    u32 here = 32 * each + lane;
                    held[lane] = all_of(0);
                    if (has_lane(held_in, lane)) held[lane] = both(load(rows.in.masks, own, here), load(rows.wanted, chunk, here));
                    if (bound <= highest) held[lane] = may_be_good(held[lane], bound, number, here, bins.least);
                    is_any[lane] = is_set(held[lane]);
                }
                if (lanes_where(is_any) != 0) score_row(rows, bins, base + at, number, each, held, list);
            }
        }
    }
}

// Nothing is found, and what scores this much is good enough.
INLINE void start_best_thread(u64 event, u64 min_score, Bins bins, u32 *found) {
    if (event >= EVENTS) return;
    Entry least = { min_score, ~0u, 0 };
    bins.least[event] = least;
    bins.counts[event] = 0;
    found[event] = 0;
}

// For each chunk of rows, the events for which the best of them may be good enough; of those that are open, unless all are. And what
// is good enough for all.
INLINE void want_warp(u64 chunk, const u64 *bounds, u64 first, u64 in_chunk, u64 events, u64 all, const u32 *open, const Entry *least,
                      u32 *wanted, u64 *wanted_lanes, u64 *highest) {
    u64 bound = bounds[first + chunk * in_chunk], lanes = 0;
    PerLane<Entry> most;
    EACH_LANE { Entry none = { 0, 0, 0 }; most[lane] = none; }
    EACH_OF_TWO {
        PerLane<bool> is_any;
        EACH_LANE {
            Mask m = all_of(0);
            UNROLL for (u32 word = 0; word < 4; ++word) {
                for (u32 bit = 0; bit < 32; ++bit) {
                    u32 event = (32 * each + lane) * 128 + 32 * word + bit;
                    if (event >= events) continue;
                    if (least[event].score > most[lane].score) most[lane].score = least[event].score;
                    if ((all || open[event]) && least[event].score <= bound) m.w[word] |= 1u << bit;
                }
            }
            store(wanted, (u32)chunk, 32 * each + lane, m);
            is_any[lane] = is_set(m);
        }
        lanes |= (u64)lanes_where(is_any) << (32 * each);
    }
    u64 highest_of_all = best_of_lanes(most).score;
    EACH_LANE {
        if (lane == 0) wanted_lanes[chunk] = lanes;
        if (lane == 0 && chunk == 0) *highest = highest_of_all;
    }
}

struct Best { u64 k; const u32 *found; const Entry *entries; u32 *next_found; Entry *next_entries; u32 *open, *again; };

// The best of what was found before and of the bin of an event, in order. If the bin ran over, they only raise the bar.
INLINE void keep_best_warp(u64 event, Bins bins, Best best) {
    u32 counted = bins.counts[event], before = best.found[event], found = 0;
    bool is_over = counted > bins.room;
    u32 in_bin = is_over ? (u32)bins.room : counted;
    const Entry *old = best.entries + event * best.k, *bin = bins.entries + event * bins.room;
    Entry *next = best.next_entries + event * best.k;
    const Entry none = { 0, ~0u, 0 };
    Entry last = none;
    while (found < best.k) {
        PerLane<Entry> top;
        EACH_LANE {
            top[lane] = none;
            for (u32 at = lane; at < before + in_bin; at += 32) {
                Entry entry = at < before ? old[at] : bin[at - before];
                if ((found == 0 || is_better(last, entry)) && is_better(entry, top[lane])) top[lane] = entry;
            }
        }
        Entry taken = best_of_lanes(top);
        if (taken.row == none.row) break;
        last = taken;
        EACH_LANE if (lane == 0 && !is_over) next[found] = taken;
        ++found;
    }
    u32 kept = is_over ? before : found;
    EACH_LANE {
        if (is_over) for (u32 at = lane; at < before; at += 32) next[at] = old[at];
        for (u32 at = kept + lane; at < best.k; at += 32) next[at] = none; // all of it is copied to the host
        if (lane != 0) continue;
        bins.counts[event] = 0;
        best.next_found[event] = kept;
        if (found == best.k) bins.least[event] = last;
        best.open[event] = is_over;
        if (is_over) add_to(best.again, 1);
    }
}
