// The subject's check against released data: her nearest released values and the record that could be hers
// (Algorithms 2 and 3 of Domingo-Ferrer and Muralidhar, 2016), the diversity around her values, and what chance gives.
// `rankveil verify` computes the same numbers; where order matters to rounding, both use the same order.
"use strict";
const rankveil = (() => {
  const ARRAYS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const SLICE = 20; // milliseconds of work before the page may draw and answer again
  const DAY = 86400000; // milliseconds
  const PER_SECOND = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 };
  const LEAF = 16; // records of a leaf of the search tree
  const NOTHING = { count: 0, first: 0, above: 0, squares: 0 };

  const released = JSON.parse(document.getElementById("released").textContent);
  const decodedColumns = new Map();
  let lastView = null;

  // Typed arrays use the byte order of the machine, which is little-endian wherever browsers run.
  function decoded(text, type) {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    return new ARRAYS[type](bytes.buffer);
  }

  function valuesOf(column) {
    if (!decodedColumns.has(column)) decodedColumns.set(column, decoded(column.values, column.type));
    return decodedColumns.get(column);
  }

  // The first place whose number is not below x, and the first whose number is above x.
  function lowerBound(sorted, x) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  }

  function upperBound(sorted, x) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle] <= x) low = middle + 1; else high = middle;
    }
    return low;
  }

  // A column sorted once: its different values, where each begins, how often it comes, its average rank; and the rank
  // of every record. Plain loops, because a page that holds 100,000 records must not stop for long.
  function sortedColumn(y) {
    const values = y.slice().sort();
    const starts = [0];
    for (let i = 1; i < values.length; i++) if (values[i] !== values[i - 1]) starts.push(i);
    const size = starts.length;
    starts.push(values.length);
    const distinct = new Float64Array(size), counts = new Float64Array(size), ranks = new Float64Array(size);
    for (let k = 0; k < size; k++) {
      distinct[k] = values[starts[k]];
      counts[k] = starts[k + 1] - starts[k];
      ranks[k] = (starts[k] + starts[k + 1] + 1) / 2;
    }
    const rankOf = new Float64Array(y.length);
    for (let i = 0; i < y.length; i++) rankOf[i] = ranks[lowerBound(distinct, y[i])];
    return { values, starts, distinct, counts, ranks, rankOf };
  }

  // The rows that have a value in every column.
  function completeRows(columns) {
    const missing = new Uint8Array(released.records);
    for (const values of columns) for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i])) missing[i] = 1;
    const rows = [];
    for (let i = 0; i < missing.length; i++) if (!missing[i]) rows.push(i);
    return rows;
  }

  // The records complete in some columns, ranked there; kept, because people try several values.
  async function viewOf(columns, pause) {
    if (lastView && lastView.columns.length === columns.length && lastView.columns.every((c, j) => c === columns[j])) {
      return lastView;
    }
    const read = [];
    for (const column of columns) {
      read.push(valuesOf(column));
      await pause(0);
    }
    const rows = completeRows(read);
    if (rows.length === 0) throw new Error("no released record has all the columns that were given");
    const sorted = [];
    for (const values of read) {
      await pause(0);
      const y = new Float64Array(rows.length);
      for (let i = 0; i < rows.length; i++) y[i] = values[rows[i]];
      sorted.push(sortedColumn(y));
    }
    lastView = { columns, rows, sorted, chance: null };
    return lastView;
  }

  // Lets the page breathe when a slice of work is done: `if (breath.due()) await breath.take(share)`.
  function breathing(pause) {
    let since = performance.now();
    return {
      due: () => performance.now() - since > SLICE,
      take: async (share) => {
        await pause(share);
        since = performance.now();
      },
    };
  }

  // A tree of boxes over the records in rank space, cut at medians of the widest side; leaves lie at the same depth.
  // The children of node k are 2k + 1 and 2k + 2; the records of a leaf lie side by side in `points`.
  async function treeOf(columns, n, breath) {
    const m = columns.length;
    const depth = Math.max(0, Math.ceil(Math.log2(n / LEAF)));
    const nodes = 2 ** (depth + 1) - 1, inner = 2 ** depth - 1;
    const low = new Float64Array(nodes * m).fill(Infinity), high = new Float64Array(nodes * m).fill(-Infinity);
    const begin = new Uint32Array(nodes), end = new Uint32Array(nodes);
    const order = Uint32Array.from({ length: n }, (_, i) => i);
    end[0] = n;
    for (let node = 0; node < nodes; node++) {
      let widest = 0;
      for (let j = 0; j < m; j++) {
        const ranks = columns[j];
        let least = Infinity, most = -Infinity;
        for (let i = begin[node]; i < end[node]; i++) {
          const rank = ranks[order[i]];
          if (rank < least) least = rank;
          if (rank > most) most = rank;
        }
        low[node * m + j] = least;
        high[node * m + j] = most;
        if (most - least > high[node * m + widest] - low[node * m + widest]) widest = j;
      }
      if (node < inner) {
        const middle = (begin[node] + end[node]) >>> 1;
        select(order, columns[widest], begin[node], end[node] - 1, middle);
        begin[2 * node + 1] = begin[node];
        end[2 * node + 1] = begin[2 * node + 2] = middle;
        end[2 * node + 2] = end[node];
      }
      if (breath.due()) await breath.take(0);
    }
    const points = new Float64Array(n * m);
    for (let j = 0; j < m; j++) for (let i = 0; i < n; i++) points[i * m + j] = columns[j][order[i]];
    // what waits during a search: of each level at most one node, and two of the last
    const waiting = new Uint32Array(depth + 2), bounds = new Float64Array(depth + 2);
    return { m, inner, low, high, begin, end, points, waiting, bounds };
  }

  // Reorders so that ranks before the place `middle` are not above those from it on (Hoare's selection).
  function select(order, ranks, low, high, middle) {
    while (low < high) {
      const pivot = ranks[order[(low + high) >>> 1]];
      let a = low, b = high;
      while (a <= b) {
        while (ranks[order[a]] < pivot) a++;
        while (ranks[order[b]] > pivot) b--;
        if (a <= b) {
          const kept = order[a];
          order[a++] = order[b];
          order[b--] = kept;
        }
      }
      if (middle <= b) high = b;
      else if (middle >= a) low = a;
      else return;
    }
  }

  // The least distance from a query to a record in a node's box, or any number of at least `best`.
  function boxDistance(tree, node, query, best) {
    const { low, high, m } = tree;
    let far = 0;
    for (let j = 0, at = node * m; j < m; j++, at++) {
      const rank = query[j];
      const apart = rank < low[at] ? low[at] - rank : rank - high[at];
      if (apart > far) {
        far = apart;
        if (far >= best) return far;
      }
    }
    return far;
  }

  // The smallest over records of the largest rank distance from a query.
  function distanceOf(tree, query) {
    const { m, inner, begin, end, points, waiting, bounds } = tree;
    let best = Infinity, depth = 1;
    waiting[0] = 0;
    bounds[0] = 0;
    while (depth > 0) {
      depth--;
      if (bounds[depth] >= best) continue;
      const node = waiting[depth];
      if (node < inner) {
        const left = boxDistance(tree, 2 * node + 1, query, best), right = boxDistance(tree, 2 * node + 2, query, best);
        const nearer = left <= right ? 1 : 2;
        waiting[depth] = 2 * node + 3 - nearer;
        bounds[depth++] = Math.max(left, right);
        waiting[depth] = 2 * node + nearer;
        bounds[depth++] = Math.min(left, right);
        continue;
      }
      for (let i = begin[node], at = i * m; i < end[node]; i++, at += m) {
        let far = 0;
        for (let j = 0; j < m; j++) {
          const apart = Math.abs(points[at + j] - query[j]);
          if (apart > far) {
            far = apart;
            if (far >= best) break;
          }
        }
        if (far < best) best = far;
      }
    }
    return best;
  }

  // How far the category of one place is from the levels, by the hierarchy: places among a few different distances.
  function apartOf(column) {
    if (!column.apart) return null;
    if (!column.apart.decoded) column.apart.decoded = decoded(column.apart.places, column.apart.type);
    const places = column.apart.decoded, wide = column.levels.length;
    return (from, to) => places[from * wide + to];
  }

  // The place of the different category closest to one by the hierarchy, the first of several.
  function nearestInMeaning(distinct, from, apart) {
    let best = 0;
    for (let k = 1; k < distinct.length; k++) if (apart(from, distinct[k]) < apart(from, distinct[best])) best = k;
    return best;
  }

  // The place of the different value closest to x, the smaller one when two are equally close.
  function nearest(distinct, x) {
    const above = Math.min(lowerBound(distinct, x), distinct.length - 1);
    const below = Math.max(above - 1, 0);
    if (distinct[above] === x) return above;
    // halves, so that values near the largest number do not overflow
    const high = distinct[above] / 2, low = distinct[below] / 2, half = x / 2;
    const whole = [x, distinct[above], distinct[below]].every((v) => Number.isInteger(v) && Math.abs(v) < 2 ** 53);
    // 1.2 is equally close to 1.1 and 1.3 for the person who typed it: forgive the rounding of decimals
    const slack = whole ? 0 : 4 * Number.EPSILON * Math.max(Math.abs(half), Math.abs(high), Math.abs(low));
    return Math.abs(half - low) <= Math.abs(high - half) + slack ? below : above;
  }

  // f(x): one record, and all that are equally near. Minimax (Algorithm 3): the smallest largest rank distance.
  function match(view, target, f) {
    if (f !== "minimax" && f !== "euclidean") {
      const place = view.rows.indexOf(Number(f) - 1);
      if (place < 0) throw new Error(`there is no complete released record ${f}`);
      return { chosen: place, found: [place] };
    }
    const ranks = view.sorted.map((column) => column.rankOf);
    let least = Infinity, leastSum = Infinity, chosen = 0, found = [];
    for (let i = 0; i < view.rows.length; i++) {
      let far = 0, sum = 0, squares = 0;
      for (let j = 0; j < target.length; j++) {
        const apart = Math.abs(ranks[j][i] - target[j]);
        if (apart > far) far = apart;
        sum += apart;
        squares += apart * apart;
      }
      const distance = f === "minimax" ? far : squares;
      if (distance < least) {
        least = distance;
        leastSum = Infinity;
        found = [];
      }
      if (distance === least) {
        found.push(i);
        if (f === "minimax" ? sum < leastSum : found.length === 1) {
          leastSum = sum;
          chosen = i;
        }
      }
    }
    return { chosen, found };
  }

  // How often each distance comes for records of independent values: all of them, or the sample that verify draws.
  async function byChance(view, pause) {
    const { sorted } = view;
    const n = view.rows.length, m = sorted.length;
    const exhaustive = n ** m <= released.exhaustive;
    const total = exhaustive ? n ** m : released.draws;
    // Values that come several times make equal records: each is tried once and counted as often as it comes.
    const tries = exhaustive ? sorted.reduce((product, column) => product * column.distinct.length, 1) : total;
    const uniform = exhaustive ? [] : released.uniform.slice(0, m).map((text) => decoded(text, "f8"));
    const tally = new Float64Array(2 * n + 1); // distances are halves
    const query = new Float64Array(m);
    const breath = breathing(pause);
    const tree = await treeOf(sorted.map((column) => column.rankOf), n, breath);
    for (let i = 0; i < tries; i++) {
      let weight = 1, number = i;
      for (let j = 0; j < m; j++) {
        const column = sorted[j];
        if (exhaustive) {
          const k = number % column.distinct.length;
          number = (number - k) / column.distinct.length;
          query[j] = column.ranks[k];
          weight *= column.counts[k];
        } else {
          query[j] = column.rankOf[Math.min(Math.floor(uniform[j][i] * n), n - 1)];
        }
      }
      tally[2 * distanceOf(tree, query)] += weight;
      if (i % 16 === 0 && breath.due()) await breath.take(i / tries);
    }
    return { tally, total, exhaustive };
  }

  function probability(chance, distance) {
    let below = 0;
    for (let half = 0; half <= 2 * distance; half++) below += chance.tally[half];
    return chance.exhaustive ? below / chance.total : (1 + below) / (1 + chance.total);
  }

  function distribution(chance) {
    const shares = {};
    chance.tally.forEach((count, half) => { if (count) shares[half / 2] = count / chance.total; });
    return shares;
  }

  // The diversity of the released values whose rank is within a reach of a rank.
  function diversityOf(column, given, rank, reach) {
    const first = lowerBound(column.ranks, rank - reach), last = upperBound(column.ranks, rank + reach);
    return {
      variance: given.nominal ? meanMarginality(column, given, first, last) : variance(column, first, last),
      distinct: last - first,
      entropy: entropy(column, first, last),
      closeness: closeness(column, first, last),
    };
  }

  // log N - sum c log c / N over the counts c of the different values, from running sums as verify has them.
  function entropy(column, first, last) {
    if (last - first === 1) return 0;
    let sum = 0, before = 0, size = 0;
    for (let k = 0; k < last; k++) {
      if (k === first) before = sum;
      if (k >= first) size += column.counts[k];
      sum += column.counts[k] * Math.log(column.counts[k]);
    }
    return Math.max(Math.log(size) - (sum - before) / size, 0);
  }

  // The mean over the values of the sum of their distances to each other; the pairs at each distance are counted first.
  function meanMarginality(column, given, first, last) {
    const { counts, distinct } = column;
    const apart = apartOf(given);
    const pairs = new Float64Array(apart ? given.apart.distances.length : 0);
    let size = 0, alike = 0, total = 0;
    for (let a = first; a < last; a++) {
      size += counts[a];
      alike += counts[a] * counts[a];
      if (apart) for (let b = first; b < last; b++) pairs[apart(distinct[a], distinct[b])] += counts[a] * counts[b];
    }
    if (!apart) return size - alike / size; // 1 for each two different categories
    pairs.forEach((many, place) => { total += given.apart.distances[place] * many; });
    return total / size;
  }

  // Joined from stretches of 1, 2, 4, ... values: running sums would lose what values at 1e9 differ by.
  function variance(column, first, last) {
    const { values } = column;
    const scale = scaleOf(values);
    const stretch = (level, place) => {
      const start = place * 2 ** level;
      if (start >= values.length) return NOTHING;
      if (level === 0) return { count: 1, first: values[start] / scale, above: 0, squares: 0 };
      return joined(stretch(level - 1, 2 * place), stretch(level - 1, 2 * place + 1));
    };
    let start = column.starts[first], stop = column.starts[last];
    const size = stop - start;
    let left = NOTHING, right = NOTHING;
    for (let level = 0; start < stop; level++) {
      if (start % 2 === 1) left = joined(left, stretch(level, start++));
      if (stop % 2 === 1) right = joined(stretch(level, --stop), right);
      start = Math.floor(start / 2);
      stop = Math.floor(stop / 2);
    }
    return joined(left, right).squares / size * scale * scale;
  }

  // Two stretches of sorted values as one (Chan, Golub and LeVeque 1983), means kept above the first value.
  function joined(a, b) {
    if (a.count === 0) return b;
    if (b.count === 0) return a;
    const count = a.count + b.count;
    const apart = b.first - a.first + b.above - a.above, share = b.count / count;
    return {
      count,
      first: a.first,
      above: a.above + apart * share,
      squares: a.squares + b.squares + apart * apart * a.count * share,
    };
  }

  // A power of two near the largest magnitude, so that dividing by it loses nothing.
  function scaleOf(values) {
    const largest = Math.max(Math.abs(values[0]), Math.abs(values[values.length - 1]));
    if (largest === 0) return 1;
    let exponent = Math.floor(Math.log2(largest)) + 1;
    while (largest >= 2 ** exponent) exponent++;
    while (largest < 2 ** (exponent - 1)) exponent--;
    return 2 ** Math.min(Math.max(exponent, -1000), 1023);
  }

  // Earth mover's distance, ordered as in t-closeness, between the values of the window and the whole column.
  function closeness(column, first, last) {
    const { counts } = column;
    const k = counts.length;
    if (k === 1) return 0;
    const upto = new Float64Array(k + 1), uptoSum = new Float64Array(k + 1);
    for (let i = 0; i < k; i++) {
      upto[i + 1] = upto[i] + counts[i];
      uptoSum[i + 1] = uptoSum[i] + upto[i + 1];
    }
    const n = upto[k], size = upto[last] - upto[first], slope = 1 / size - 1 / n;
    const below = uptoSum[first] / n;
    const above = (k - last) - (uptoSum[k] - uptoSum[last]) / n;
    let within = 0;
    if (slope > 0) {
      // within the window the difference of the two running shares rises, and changes its sign once
      const place = lowerBound(upto.subarray(1), upto[first] / size / slope);
      const turn = Math.min(Math.max(place, first), last);
      within = (turn - first) * upto[first] / size - (uptoSum[turn] - uptoSum[first]) * slope
        + ((uptoSum[last] - uptoSum[turn]) * slope - (last - turn) * upto[first] / size);
    }
    return Math.max(below + within + above, 0) / (k - 1);
  }

  // The level that contains a category which was not released, as a group or a band; undefined where there is none.
  function levelAround(column, value) {
    return column.levels.length ? column.levels[column.within[column.others.indexOf(value)]] : undefined;
  }

  // The place of a category among levels and others, or of the level that contains it.
  function placeOf(column, value) {
    const label = levelAround(column, value) ?? value;
    return [...column.levels, ...column.others].indexOf(label);
  }

  function asNumber(column, value) {
    let number = value;
    if (column.levels.length) {
      number = placeOf(column, value);
      if (number < 0) throw new Error(`column ${column.name}: not one of its levels`);
    } else if (column.clock) {
      number = momentIn(value, column.clock);
    }
    if (!Number.isFinite(number)) throw new Error(`column ${column.name}: not a number`);
    return number;
  }

  function shown(column, value) {
    if (column.clock && !Number.isNaN(value)) return momentText(value, column.clock);
    return column.levels.length ? column.levels[value] : value;
  }

  // The number that stands for a date or time such as 2024-01-31 or 2024-01-31 23:59:30, or NaN.
  function momentIn(text, { kind, unit, utc }) {
    const form = /^(?:(\d{4}-\d\d-\d\d))?(?:[ T]?(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?$/;
    const [whole, day, time, seconds, fraction, zone] = form.exec(String(text).trim()) ?? [];
    const wants = { date: [true, false], timestamp: [true, Boolean(time)], time: [false, true] }[kind];
    if (!whole || Boolean(day) !== wants[0] || Boolean(time) !== wants[1] || Boolean(zone) !== utc) return NaN;
    if (day && time && !" T".includes(whole[10])) return NaN;
    const clear = `${day ?? "1970-01-01"}T${time ?? "00:00"}:${seconds ?? "00"}`;
    const milliseconds = Date.parse(`${clear}Z`);
    // there is no 30 February, though a browser may know one
    if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 19) !== clear) return NaN;
    if (unit === "day") return milliseconds / DAY;
    const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone ?? "") ?? [];
    const offset = hours ? Number(`${sign}1`) * (60 * Number(hours) + Number(minutes ?? 0)) : 0;
    const perSecond = PER_SECOND[unit], digits = Math.round(Math.log10(perSecond));
    if (fraction && fraction.length > digits) return NaN; // finer than the column
    return (milliseconds / 1000 - 60 * offset) * perSecond + (fraction ? Number(fraction.padEnd(digits, "0")) : 0);
  }

  function momentText(value, { kind, unit, utc }) {
    if (unit === "day") return new Date(DAY * value).toISOString().slice(0, 10);
    const perSecond = PER_SECOND[unit], digits = Math.round(Math.log10(perSecond));
    const seconds = Math.floor(value / perSecond), rest = Math.round(value - seconds * perSecond);
    const iso = new Date(1000 * seconds).toISOString();
    if (kind === "date") return iso.slice(0, 10);
    const fraction = digits > 0 ? `.${String(rest).padStart(digits, "0")}` : "";
    return (kind === "time" ? "" : `${iso.slice(0, 10)} `) + iso.slice(11, 19) + fraction + (utc ? "Z" : "");
  }

  // Names for a sentence, the first five and how many more.
  function listing(names) {
    return names.length <= 5 ? names.join(", ") : `${names.slice(0, 5).join(", ")} and ${names.length - 5} more`;
  }

  // The check of a record {name: number or level}; the answer has the form of `rankveil verify --json`.
  // f is minimax, euclidean or the number of a released record; pause(share of the work done) lets the page breathe.
  async function check(record, { f = "minimax", pause = async () => {} } = {}) {
    const columns = released.columns.filter((column) => Object.hasOwn(record, column.name));
    if (columns.length === 0) throw new Error("give at least one value");
    const mine = columns.map((column) => asNumber(column, record[column.name]));
    const view = await viewOf(columns, pause);
    const { sorted, rows } = view;
    const where = sorted.map(({ distinct }, j) => {
      const apart = apartOf(columns[j]);
      return apart ? nearestInMeaning(distinct, mine[j], apart) : nearest(distinct, mine[j]);
    });
    const target = sorted.map((column, j) => column.ranks[where[j]]);
    const { chosen, found } = match(view, target, f);
    const d = sorted.map((column, j) => Math.abs(column.rankOf[chosen] - target[j]));
    const told = await recognition.recognise(
      columns.map((column, j) => ({
        name: column.name, values: valuesOf(column), hers: mine[j], labelled: column.levels.length > 0, law: column.law,
      })),
      released.records, released.recognition, breathing(pause), listing,
    );
    const notes = [];
    for (const column of columns) {
      const label = levelAround(column, record[column.name]);
      if (label !== undefined) notes.push(`column ${column.name}: the value given lies in ${label}, which was released`);
    }
    if (rows.length < released.records) {
      notes.push(`${released.records - rows.length} released records have missing values there and are left out`);
    }
    const nominal = columns.filter((column) => column.nominal).map((column) => column.name);
    if (nominal.length) {
      notes.push(...released.of_nominal.map((note) => `${note} (${listing(nominal)})`));
    }
    if (!view.chance) view.chance = await byChance(view, pause);
    const chance = view.chance;
    if (released.approximate) {
      notes.push("the chance check is approximate: the release is not known to be a pure permutation");
    } else if (rows.length < released.records) {
      notes.push(released.approximate_with_gaps);
    }
    if (!chance.exhaustive) notes.push(`chance is a seeded sample of ${chance.total} random records`);
    const around = sorted.map((column, j) => diversityOf(column, columns[j], target[j], d[j]));
    const diversity = {};
    for (const criterion of ["variance", "distinct", "entropy", "closeness"]) {
      diversity[criterion] = around.map((one) => {
        if (Number.isFinite(one[criterion])) return one[criterion];
        notes.push(`${criterion}: too large to be written as a number`);
        return null;
      });
    }
    notes.push(...told.notes);
    const distance = Math.max(...d);
    const pValue = probability(chance, distance);
    return {
      schema: released.schema,
      sentence: told.sentence,
      probability: told.probability,
      candidates: told.candidates,
      likeliest: told.likeliest.map((row) => row + 1),
      record_probability: told.chances ? told.chances[rows[chosen]] : null,
      attributes: columns.map((column) => column.name),
      rankings: Object.fromEntries(columns.filter(({ levels }) => levels.length).map((one) => [one.name, one.ranking])),
      f: String(f),
      nearest: sorted.map((column, j) => shown(columns[j], column.distinct[where[j]])),
      ranks: target,
      record: rows[chosen] + 1,
      records: found.map((place) => rows[place] + 1),
      d,
      diversity,
      chance: {
        distance,
        p_value: pValue,
        plausible: pValue >= released.plausible,
        approximate: released.approximate || rows.length < released.records,
        draws: chance.total,
        exhaustive: chance.exhaustive,
        null: distribution(chance),
      },
      notes,
    };
  }

  // What a released record holds in some columns, by their names.
  function recordOf(number, names) {
    return names.map((name) => {
      const column = released.columns.find((one) => one.name === name);
      return shown(column, valuesOf(column)[number - 1]);
    });
  }

  return { released, check, recordOf, momentIn };
})();
