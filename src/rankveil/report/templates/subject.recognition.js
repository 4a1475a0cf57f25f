// How probable it is that a released record is hers: p(y | x) / p0(y) for every record, by the laws of the columns that
// the manifest tells. The same computation as rankveil/people/recognition.py, where it is explained.
"use strict";
const recognition = (() => {
  // log(erfcx(z) / t), t = 2 / (2 + z), as a Chebyshev series in 2 t - 1 (errors below 2e-15 for z >= 0)
  const SERIES = [
    -0.6513268598908547, 0.6419697923564903, 0.019476473204185968, -0.009561514786808722, -0.0009465953444819375,
    0.00036683949785266956, 4.25233248070242e-05, -2.0278578112646606e-05, -1.624290004569387e-06,
    1.303655835421802e-06, 1.562644181760109e-08, -8.523809624100265e-08, 6.529054567827597e-09,
    5.059343610724909e-09, -9.913641131967244e-10, -2.2736545632340288e-10, 9.646786494621473e-11,
    2.394039827491312e-12, -6.885994378869054e-12, 8.942152573965245e-13, 3.1305860681563047e-13,
    -1.1264600363602995e-13, 7.008282842946301e-16, 6.949302244763089e-15, -1.4094628242311558e-15,
    -9.71445146547012e-17, 9.540979117872439e-17, 2.498001805406602e-16,
  ];
  const LOG_TWO_PI = Math.log(2 * Math.PI);
  const HALVES = { normal: LOG_TWO_PI / 2, laplace: Math.LN2, uniform: Math.LN2 };

  function logErfc(z) {
    const t = 2 / (2 + z), x = 2 * t - 1;
    let next = 0, after = 0;
    for (let j = SERIES.length - 1; j > 0; j--) [next, after] = [2 * x * next - after + SERIES[j], next];
    return x * next - after + SERIES[0] + Math.log(t) - z * z;
  }

  // log P(e <= z) of a standard variable.
  function logBelow(law, z) {
    if (law === "normal") {
      const tail = logErfc(Math.abs(z) / Math.SQRT2) - Math.LN2;
      return z <= 0 ? tail : Math.log1p(-Math.exp(tail));
    }
    if (law === "laplace") return z < 0 ? z - Math.LN2 : Math.log1p(-Math.exp(-Math.abs(z)) / 2);
    return Math.log(Math.min(Math.max((z + 1) / 2, 0), 1));
  }

  // log P(low < e <= high), from the nearer tail.
  function logBetween(law, low, high) {
    const [a, b] = low > 0 ? [-high, -low] : [low, high];
    const less = logBelow(law, a), more = logBelow(law, b);
    return more > less ? more + Math.log1p(-Math.exp(Math.min(less - more, -1e-300))) : -Infinity;
  }

  // log p(y | x): a density, or the probability of a cell of the grid per unit, or of what lies beyond a limit.
  function logNoise({ law, grid }, y, x, scale, low, high) {
    const half = grid / 2;
    const width = half > 0 ? Math.log(2 * half) : 0;
    if (scale === 0) return Math.abs(y - x) <= half * (1 + 1e-9) ? -width : -Infinity;
    if (y >= high) return logBelow(law, (x + half - high) / scale) - width;
    if (y <= low) return logBelow(law, (low + half - x) / scale) - width;
    if (half > scale * (law === "uniform" ? 1e-6 : 0.05)) return logBetween(law, (y - half - x) / scale, (y + half - x) / scale) - width;
    const z = (y - x) / scale;
    const density = law === "normal" ? -z * z / 2 : law === "laplace" ? -Math.abs(z) : Math.abs(z) <= 1 + 1e-9 + half / scale ? 0 : -Infinity;
    return density - Math.log(scale) - HALVES[law];
  }

  function halfToEven(x) {
    const whole = Math.round(x);
    return Math.abs(x - Math.trunc(x)) === 0.5 ? 2 * Math.round(x / 2) : whole;
  }

  // Her value after the steps that need nothing but it.
  function ownValue(hers, steps) {
    let value = hers;
    for (const [kind, ...given] of steps) {
      if (kind === "round") {
        const unit = 10 ** Math.abs(given[0]);
        if (Math.abs(value) >= 2 ** 53 / 10 ** Math.max(given[0], 0)) continue;
        value = given[0] > 0 ? halfToEven(value * unit) / unit : halfToEven(value / unit) * unit;
      } else {
        if (given[0] !== null) value = Math.max(value, given[0]);
        if (given[1] !== null) value = Math.min(value, given[1]);
      }
    }
    return value;
  }

  function equal({ labelled }, value, hers, { nearly }) {
    return labelled ? value === hers : Math.abs(value - hers) <= nearly * Math.abs(hers);
  }

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

  const there = (values) => Float64Array.from(values).filter((value) => !Number.isNaN(value));

  function rankInterval(value, ordered) {
    const low = Math.min(lowerBound(ordered, value), ordered.length - 1);
    return [low, Math.max(low, upperBound(ordered, value) - 1)];
  }

  // Of columns that must be equal: -log of the share of records that are, by which of the cells are there.
  function equalRatios(columns, total, rules) {
    const own = columns.map((column) => ownValue(column.hers, column.law.own));
    const patterns = new Map();
    for (let i = 0; i < total.length; i++) {
      let pattern = "";
      const same = columns.every((column, j) => {
        const gone = Number.isNaN(column.values[i]);
        pattern += gone ? "1" : "0";
        return equal(column, column.values[i], own[j], rules) || (gone && column.law.hides);
      });
      if (!same) total[i] = -Infinity;
      else if (patterns.has(pattern)) patterns.get(pattern).push(i);
      else patterns.set(pattern, [i]);
    }
    for (const [pattern, rows] of patterns) {
      const kept = columns.map((_, j) => j).filter((j) => pattern[j] === "0");
      let alike = 0, complete = 0;
      for (let i = 0; i < total.length; i++) {
        if (kept.every((j) => !Number.isNaN(columns[j].values[i]))) complete++;
        if (kept.every((j) => equal(columns[j], columns[j].values[i], own[j], rules))) alike++;
      }
      for (const i of rows) total[i] += Math.log(complete) - Math.log(alike);
    }
  }

  // Coordinates in which a column is about normal, and log |dz / dy|.
  function coordinatesOf(column, pool) {
    const { law, values } = column;
    const n = values.length;
    const z = Float64Array.from(values), slope = new Float64Array(n);
    if (law.kind === "codes") return { z, slope };
    if (law.kind === "ranks") {
      const ordered = there(values).sort();
      for (let i = 0; i < n; i++) {
        const [low, high] = rankInterval(values[i], ordered), u = (low + high + 1) / (2 * ordered.length);
        z[i] = 4.91 * (u ** 0.14 - (1 - u) ** 0.14);
        slope[i] = Math.log(4.91 * 0.14 * (u ** -0.86 + (1 - u) ** -0.86));
      }
      return { z, slope };
    }
    let origin = 0, unit = 0;
    if (law.relative) { // amounts that differ by factors
      const sizes = Float64Array.from(pool, (i) => Math.abs(values[i])).filter((size) => size > 0).sort();
      unit = sizes.length ? sizes[Math.floor(sizes.length / 20)] : 1;
    } else if (law.law === "laplace") { // whose tails are longer than normal ones
      origin = Float64Array.from(pool, (i) => values[i]).sort()[Math.floor(pool.length / 2)];
      unit = law.scale;
    }
    for (let i = 0; i < n && unit > 0; i++) {
      slope[i] = -Math.log(unit) - Math.log1p(((z[i] - origin) / unit) ** 2) / 2;
      z[i] = Math.asinh((z[i] - origin) / unit);
    }
    let middle = 0, squares = 0;
    for (const i of pool) middle += z[i] / pool.length;
    for (const i of pool) squares += (z[i] - middle) ** 2 / pool.length;
    const spread = Math.sqrt(squares) || 1;
    for (let i = 0; i < n; i++) {
      z[i] = (z[i] - middle) / spread;
      slope[i] -= Math.log(spread);
    }
    return { z, slope };
  }

  function releasedShares({ values, law }, pool) {
    const counts = new Float64Array(law.matrix.length).fill(0.5);
    for (const i of pool) counts[values[i]]++;
    return counts.map((count) => count / (pool.length + 0.5 * counts.length));
  }

  // log p(y | x) of one column in its coordinates, added to the total; of categories over the released share.
  function addLikelihood(total, column, { z, slope }, pool, rules) {
    const { law, values } = column;
    const n = values.length;
    const hers = ownValue(column.hers, law.own ?? []);
    if (law.kind === "codes") {
      const shares = releasedShares(column, pool);
      const row = hers < law.matrix.length ? law.matrix[hers] : shares.map(() => 1);
      for (let i = 0; i < n; i++) if (total[i] > -Infinity) total[i] += Math.log(row[values[i]]) - Math.log(shares[values[i]]);
    } else if (law.kind === "ranks") {
      const made = displaced(law, values, hers);
      for (let i = 0; i < n; i++) total[i] += made[i] - slope[i];
    } else if (law.kind === "joint") {
      for (let i = 0; i < n; i++) total[i] -= slope[i];
    } else {
      addNoise(total, column, hers, z, slope, pool, rules);
    }
  }

  function addNoise(total, { law, values }, hers, z, slope, pool, { nearly }) {
    const scale = law.scale * (law.relative ? Math.abs(hers) : 1);
    const low = law.low ?? -Infinity, high = law.high ?? Infinity;
    const made = values.length ? Float64Array.from(values, (y, i) => logNoise(law, y, hers, scale, low, high) - slope[i]) : [];
    // values that many records have exactly, as limits are: the share of the records there stands for a density
    for (const end of scale > 0 ? new Set([low, high]) : [hers]) {
      if (!Number.isFinite(end)) continue;
      const reach = scale > 0 ? nearly * Math.abs(end) : law.grid / 2 * (1 + nearly) + nearly * Math.abs(end);
      const at = (i) => Math.abs(values[i] - end) <= reach;
      let first = 0, share = 0;
      while (first < values.length && !at(first)) first++;
      if (first === values.length) continue;
      for (const i of pool) if (at(i)) share += 1;
      let mass = logNoise(law, values[first], hers, scale, low, high);
      if (law.grid > 0) mass += Math.log(law.grid);
      for (let i = first; i < values.length; i++) {
        if (at(i)) made[i] = mass - Math.log(share / pool.length || 1) - z[i] ** 2 / 2 - LOG_TWO_PI / 2;
      }
    }
    for (let i = 0; i < values.length; i++) total[i] += made[i];
  }

  // log p of taking a record's place, relative to 1 / n: pairs of ranks that are near enough, over ties.
  function displaced({ least, most }, values, hers) {
    const ordered = there(values).sort();
    const [x0, x1] = rankInterval(hers, ordered);
    const triangle = (k) => (k > 0 ? k * (k + 1) / 2 : 0);
    const upto = (gap, y0, y1) => triangle(gap - y0 + x1 + 1) - triangle(gap - y1 + x1) - triangle(gap - y0 + x0)
      + triangle(gap - y1 + x0 - 1);
    let sum = 0;
    const shares = Float64Array.from(values, (value) => {
      if (Number.isNaN(value)) return 0;
      const [y0, y1] = rankInterval(value, ordered);
      let pairs = upto(most, y0, y1) - upto(-most - 1, y0, y1);
      if (least >= 1) pairs -= upto(least - 1, y0, y1) - upto(-least, y0, y1);
      if (least === 1) pairs += (most >= least ? 1e-6 : 1) * (upto(0, y0, y1) - upto(-1, y0, y1));
      const share = pairs / (y1 - y0 + 1);
      sum += share;
      return share;
    });
    return shares.map((share) => Math.log(share / (sum || 1)) + Math.log(ordered.length));
  }

  // The Cholesky factor of a correlation matrix; columns that follow from others keep a little spread.
  function lowerOf(correlation) {
    const made = correlation.map((row) => row.map(() => 0));
    correlation.forEach((row, i) => {
      for (let j = 0; j <= i; j++) {
        let rest = row[j];
        for (let k = 0; k < j; k++) rest -= made[i][k] * made[j][k];
        made[i][j] = i === j ? Math.sqrt(Math.max(rest, 1e-9)) : rest / made[j][j];
      }
    });
    return made;
  }

  // Columns of points times the inverse of a lower triangular matrix, in place.
  function solve(lower, points) {
    points.forEach((column, i) => {
      for (let a = 0; a < column.length; a++) {
        let value = column[a];
        for (let k = 0; k < i; k++) value -= points[k][a] * lower[i][k];
        column[a] = value / lower[i][i];
      }
    });
  }

  const logs = (lower) => lower.reduce((sum, row, i) => sum + Math.log(row[i]), 0);

  // The normal density of noise that was drawn for several columns together.
  function addJoint(total, columns) {
    const spread = columns.map((one) => Math.sqrt(Math.max(one.law.with[one.name], 1e-300)));
    const lower = lowerOf(columns.map((one, i) => columns.map((other, j) => one.law.with[other.name] / (spread[i] * spread[j]))));
    const apart = columns.map(({ values, hers }, j) => Float64Array.from(values, (value) => (value - hers) / spread[j]));
    solve(lower, apart);
    const constant = spread.reduce((sum, one) => sum + Math.log(one), 0) + logs(lower) + columns.length * LOG_TWO_PI / 2;
    for (let i = 0; i < total.length; i++) {
      let squares = 0;
      for (const column of apart) squares += column[i] ** 2;
      total[i] += Number.isNaN(squares) ? -Infinity : -squares / 2 - constant;
    }
  }

  function spaced(rows, most) {
    const step = Math.max(1, Math.ceil(rows.length / most));
    return rows.filter((_, place) => place % step === 0);
  }

  // log p0 of some records in their coordinates; of categories over their released shares.
  async function densityOf(columns, coordinates, pool, near, rules, breath) {
    const coded = columns.filter(({ law }) => law.kind === "codes");
    const shares = coded.map((column) => releasedShares(column, pool));
    const points = coordinates.filter((_, j) => columns[j].law.kind !== "codes").map(({ z }) => z.slice());
    const size = points.length;
    let constant = 0;
    if (size) {
      for (const column of points) {
        let middle = 0;
        for (const i of pool) middle += column[i] / pool.length;
        for (let i = 0; i < column.length; i++) column[i] -= middle;
      }
      const lower = lowerOf(points.map((one) => points.map((other) => {
        let sum = 0;
        for (const i of pool) sum += one[i] * other[i];
        return sum / pool.length;
      })));
      solve(lower, points);
      constant = -logs(lower) - size * LOG_TWO_PI / 2;
    }
    const references = spaced(pool, rules.references);
    const terms = new Float64Array(references.length);
    const broad = (i) => points.reduce((sum, column) => sum - column[i] ** 2 / 2, constant);
    // log mean over the references, but for the record itself
    const kernel = (i, r) => {
      const width = 1 - r * r, start = constant - size * Math.log(width) / 2;
      let top = -Infinity, others = references.length;
      for (let b = 0; b < references.length; b++) {
        const other = references[b];
        let log = start;
        if (other === i) {
          others--;
          log = -Infinity;
        } else {
          for (let j = 0; j < size; j++) {
            const apart = points[j][i] - r * points[j][other];
            log -= apart * apart / (2 * width);
          }
          for (let j = 0; j < coded.length; j++) {
            const code = coded[j].values[i];
            log += Math.log(code === coded[j].values[other] ? r / shares[j][code] + 1 - r : 1 - r);
          }
        }
        terms[b] = log;
        if (log > top) top = log;
      }
      if (top === -Infinity) top = 0;
      let sum = 0;
      for (let b = 0; b < references.length; b++) sum += Math.exp(terms[b] - top);
      return top + Math.log(sum) - Math.log(others);
    };
    const mixed = (i, r) => {
      const wide = broad(i);
      if (r === 0 || references.length < 2) return wide;
      const a = Math.log(1 - rules.broad) + kernel(i, r), b = Math.log(rules.broad) + wide;
      return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
    };
    let best = 0, most = -Infinity;
    const trials = spaced(references, rules.trials);
    for (const r of rules.closeness) {
      let score = 0;
      for (const i of trials) {
        score += mixed(i, r);
        if (breath.due()) await breath.take(0);
      }
      if (score / trials.length > most) [best, most] = [r, score / trials.length];
    }
    const made = [];
    for (const i of near) {
      made.push(mixed(i, best));
      if (breath.due()) await breath.take(0);
    }
    return made;
  }

  // log p(y_a | x) / p0(y_a) of every released record; -Infinity where it cannot be hers.
  async function logRatios(used, count, rules, breath) {
    const equals = used.filter(({ law }) => law.kind === "equal"), others = used.filter(({ law }) => law.kind !== "equal");
    const total = new Float64Array(count);
    if (equals.length) equalRatios(equals, total, rules);
    const complete = (i) => others.every(({ values }) => !Number.isNaN(values[i]));
    for (let i = 0; i < count; i++) if (!complete(i)) total[i] = -Infinity;
    const all = Array.from(total.keys());
    let pool = all.filter((i) => total[i] > -Infinity);
    if (pool.length < rules.few) pool = all.filter(complete);
    if (!others.length || !pool.length) return total;
    const coordinates = others.map((column) => coordinatesOf(column, pool));
    others.forEach((column, j) => addLikelihood(total, column, coordinates[j], pool, rules));
    const groups = new Map();
    for (const column of others.filter(({ law }) => law.kind === "joint")) {
      const key = JSON.stringify(Object.keys(column.law.with));
      groups.set(key, [...(groups.get(key) ?? []), column]);
    }
    for (const group of groups.values()) addJoint(total, group);
    const top = total.reduce((most, one) => (one > most ? one : most), -Infinity);
    const near = all.filter((i) => total[i] > top - rules.negligible);
    const density = await densityOf(others, coordinates, pool, near, rules, breath);
    const made = new Float64Array(count).fill(-Infinity);
    near.forEach((i, place) => { made[i] = total[i] - density[place]; });
    return made;
  }

  function percent(share) {
    const whole = Math.floor(100 * share + 0.5);
    if (share < 1 && whole > 99) return "more than 99 %";
    return whole ? `${whole} %` : "less than 1 %";
  }

  const counted = (number) => number.toLocaleString("en-US");

  function sentenceOf(best, candidates, count, likeliest, plain, sure) {
    if (best === 0) {
      return `By what the manifest tells, none of the ${counted(count)} released records can be yours: you are not among `
        + "them, or a value that you gave is not the one in the original.";
    }
    if (plain && likeliest === 1 && sure) return "Your values stand in this release once, unmasked: this record is yours.";
    if (plain) {
      const where = likeliest === 1 ? "once" : `in ${counted(likeliest)} records`;
      const which = likeliest === 1 ? "this record is" : "each of them is";
      return `Your values stand in this release ${where}, unmasked: ${which} yours with probability ${percent(best)}.`;
    }
    if (best >= 0.5) return `With probability ${percent(best)} this record is yours.`;
    return `Of ${counted(count)} records about ${counted(Math.max(1, Math.floor(candidates + 0.5)))} could be yours; the `
      + `likeliest is yours with probability ${percent(best)}.`;
  }

  function untold(why, notes = []) {
    const sentence = `How probable it is that a record is yours cannot be told: ${why}.`;
    return { probability: null, candidates: null, likeliest: [], chances: null, sentence, notes };
  }

  function withoutManifest(columns, count, rules) {
    const rows = [];
    for (let i = 0; i < count; i++) {
      if (columns.every((column) => equal(column, column.values[i], column.hers, rules))) rows.push(i);
    }
    const many = rows.length;
    if (many === 0) return untold(rules.no_manifest);
    const chances = new Float64Array(count);
    for (const i of rows) chances[i] = 1 / many;
    const sentence = many === 1
      ? "Your values stand in this release once, exactly as you gave them: unless it was masked, this record is yours."
      : `Your values stand in ${counted(many)} records exactly as you gave them; unless the release was masked, each of `
        + `them is yours with probability ${percent(1 / many)}.`;
    return { probability: 1 / many, candidates: many, likeliest: rows, chances, sentence, notes: [rules.no_manifest] };
  }

  // Which record is hers. Columns: {name, values, hers, labelled, law}; rules are those of the page.
  async function recognise(columns, count, rules, breath, listing) {
    if (!rules.told) return withoutManifest(columns, count, rules);
    if (rules.why_not) return untold(rules.why_not);
    const notes = columns.filter(({ law }) => law.kind === "unknown")
      .map(({ name, law }) => `column ${name} was not used: ${law.why}`);
    const silent = columns.filter(({ law }) => law.kind === "silent").map(({ name }) => name);
    if (silent.length) notes.push(`what was released has nothing to do with your value: ${listing(silent)}`);
    const used = columns.filter(({ law }) => law.kind !== "unknown" && law.kind !== "silent");
    if (!used.length && !silent.length) return untold(rules.nothing_to_compute, notes);
    if (used.filter(({ law }) => law.kind !== "equal").length > rules.many) notes.push(rules.many_columns);
    if (rules.inside < 1) notes.push(rules.inside_note);
    const weights = (await logRatios(used, count, rules, breath)).map((one) => (Number.isNaN(one) ? -Infinity : one));
    const top = weights.reduce((most, one) => (one > most ? one : most), -Infinity);
    const chances = new Float64Array(count);
    if (top > -Infinity) {
      let sum = rules.inside >= 1 ? 0 : Math.exp(Math.log((1 - rules.inside) / rules.inside * count) - top);
      for (const weight of weights) sum += Math.exp(weight - top);
      for (let i = 0; i < count; i++) chances[i] = Math.exp(weights[i] - top) / sum;
    }
    let best = 0, total = 0, spread = 0;
    for (const chance of chances) {
      best = Math.max(best, chance);
      total += chance;
    }
    const likeliest = [];
    for (let i = 0; i < count && best > 0; i++) {
      if (chances[i] >= best * (1 - rules.alike)) likeliest.push(i);
      if (chances[i] > 0) spread -= chances[i] / total * Math.log(chances[i] / total);
    }
    const candidates = best > 0 ? Math.exp(spread) : 0;
    const plain = columns.every(({ law }) => law.kind === "equal" && law.untouched);
    let sentence = sentenceOf(best, candidates, count, likeliest.length, plain, rules.inside === 1);
    const unused = columns.filter(({ law }) => law.kind === "unknown").map(({ name }) => name);
    if (unused.length) sentence += ` ${listing(unused)} may tell more, which cannot be computed from your record alone.`;
    return { probability: best, candidates, likeliest, chances, sentence, notes };
  }

  return { recognise, percent };
})();
