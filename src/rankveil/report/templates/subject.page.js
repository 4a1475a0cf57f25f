// What the subject sees: her values are read from the form, checked, and answered in words, tables and a picture.
"use strict";
(() => {
  const { released, check, recordOf, momentIn } = rankveil;
  const { percent } = recognition;
  const DASH = "\u2013";
  const LISTED = 20; // equally near records that are named
  const BARS = 40;
  const element = (id) => document.getElementById(id);
  const fields = released.columns.map((column, j) => ({ column, input: element(`value-${j}`) }));
  let current = 0;

  class Stopped extends Error {}

  function make(name, text = "", kind = "") {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // The number that a text means; an Error says what is wrong with it.
  function numberIn(text) {
    const plain = text.trim().replace(/^\u2212/, "-");
    if (/[.,].*[.,]/.test(plain) || /\d[\s']\d/.test(plain)) {
      throw new Error("Leave out the marks between thousands, as in 31000 or 31000.50.");
    }
    const other = released.decimal === "," ? "\\." : ",";
    if (new RegExp(`^[+-]?[1-9]\\d{0,2}${other}\\d{3}$`).test(plain)) {
      const [whole, decimals] = plain.split(/[.,]/);
      const mark = released.decimal;
      throw new Error(`Does this mean ${whole}${decimals} or ${whole}${mark}${decimals}? Write one of the two.`);
    }
    if (!/^[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$/.test(plain)) {
      throw new Error("This is not a number. Write it with digits, as in 31000 or 12.5.");
    }
    const number = Number(plain.replace(",", "."));
    if (!Number.isFinite(number)) throw new Error("This number is too large.");
    return number;
  }

  // A date or time as it was typed, if there is one like it.
  function momentTyped(text, clock) {
    const { kind, utc } = clock;
    if (Number.isNaN(momentIn(text, clock))) {
      const example = { date: "2024-01-31", timestamp: "2024-01-31 23:59:30", time: "23:59:30" }[kind];
      throw new Error(`Write it as in ${example}${utc ? "Z or with its offset, as in +01:00" : ""}.`);
    }
    return text;
  }

  // What a field's text means: a level by its place, a date or time, or a number.
  function meant(column, text) {
    if (column.levels.length) return [...column.levels, ...column.others][Number(text)];
    return column.clock ? momentTyped(text, column.clock) : numberIn(text);
  }

  function mark(input, problem) {
    const place = element(`${input.id}-error`);
    place.textContent = problem;
    place.hidden = !problem;
    if (problem) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
  }

  // Runs a reader of one field; a problem is shown beside the field.
  function tried(input, read) {
    try {
      mark(input, "");
      return read();
    } catch (problem) {
      mark(input, problem.message);
      return undefined;
    }
  }

  function chosenF() {
    const way = element("way").value;
    if (way !== "record") return way;
    const number = element("record").value.trim();
    if (!/^\d+$/.test(number) || Number(number) < 1 || Number(number) > released.records) {
      throw new Error(`Give the number of a released record, from 1 to ${released.records}.`);
    }
    return String(Number(number));
  }

  // The values given; undefined when something is wrong, which then stands beside its field.
  function given() {
    const values = [];
    for (const { column, input } of fields) {
      const text = input.value.trim();
      mark(input, "");
      if (text === "") continue;
      values.push([column.name, tried(input, () => meant(column, text))]);
    }
    const f = tried(element("record"), chosenF);
    if (values.length === 0) mark(fields[0].input, "Fill in at least one value.");
    const wrong = document.querySelector("[aria-invalid]");
    if (!wrong) return { values: Object.fromEntries(values), f };
    if (element("ways").contains(wrong)) element("ways").open = true;
    wrong.focus();
    return undefined;
  }

  // A number for people: four significant digits, but never fewer than its whole part has.
  function number(value) {
    if (value === null) return DASH;
    const size = Math.abs(value);
    if (value !== 0 && (size < 1e-4 || size >= 1e15)) return String(Number(value.toPrecision(4)));
    const decimals = value === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
    const text = value.toFixed(decimals);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function counted(many, word) {
    return `${many} ${word}${many === 1 ? "" : "s"}`;
  }

  // A probability as people count it.
  function often(p) {
    if (p === 1) return "always";
    if (p >= 0.995) return "in more than 99 of 100 cases";
    if (p >= 0.01) return `in about ${Math.round(100 * p)} of 100 cases`;
    if (p >= 0.0001) return `in about ${Math.round(10000 * p)} of 10,000 cases`;
    return "in fewer than 1 of 10,000 cases";
  }

  function verdict(found) {
    const { chance, f } = found;
    const others = found.records.filter((row) => row !== found.record);
    const named = others.slice(0, LISTED).join(", ") + (others.length > LISTED ? ", ..." : "");
    const same = others.length ? `, with ${counted(others.length, "other")} equally near (${named})` : "";
    const nearest = f === "minimax" || f === "euclidean";
    const which = nearest
      ? `The released record nearest to your values is number ${found.record} of ${released.records}${same}.`
      : `You chose the released record ${found.record} of ${released.records}.`;
    const about = chance.approximate || !chance.exhaustive ? "about " : "";
    const lines = [];
    if (found.probability > 0) {
      const likely = found.likeliest.slice(0, LISTED).join(", ") + (found.likeliest.length > LISTED ? ", ..." : "");
      lines.push(`Likeliest: record${found.likeliest.length === 1 ? "" : "s"} ${likely} of ${released.records}.`);
    }
    const own = found.record_probability === null || found.likeliest.includes(found.record)
      ? "" : ` It is yours with probability ${percent(found.record_probability)}.`;
    lines.push(
      `${which} It is ${counted(chance.distance, "rank")} away from them where it differs most.${own}`,
      `A record of random values finds a released record that near ${often(chance.p_value)} `
        + `(probability ${about}${number(chance.p_value)}).`,
    );
    if (found.attributes.length === 1) {
      lines.push("With one value alone some released record is always near. Fill in more values to learn more.");
    }
    return lines;
  }

  // The body of a table. Roles are written out because a narrow window shows the cells as blocks, not as a table.
  function fill(body, rows) {
    const headings = [...body.parentElement.querySelectorAll("thead th")].map((heading) => heading.textContent);
    body.replaceChildren(...rows.map((row) => {
      const line = make("tr");
      line.setAttribute("role", "row");
      line.append(...row.map((text, place) => {
        const cell = place === 0 ? make("th", text) : make("td", text, Number.isNaN(Number(text)) ? "word" : "number");
        cell.setAttribute("role", place === 0 ? "rowheader" : "cell");
        if (place === 0) cell.scope = "row"; else cell.dataset.heading = headings[place];
        return cell;
      }));
      return line;
    }));
  }

  function show(found, values) {
    const { chance, diversity } = found;
    // 0.09: the largest probability that the European Medicines Agency and Health Canada accept
    element("answer").className = found.probability !== null && found.probability <= 0.09 ? "chance" : "found";
    element("verdict").textContent = found.sentence;
    element("words").replaceChildren(...verdict(found).map((line) => make("p", line)));
    const theirs = recordOf(found.record, found.attributes);
    element("theirs").textContent = `record ${found.record} has`;
    fill(element("distances"), found.attributes.map((name, j) => [
      name, ...[values[name], found.nearest[j], found.ranks[j], theirs[j], found.d[j]].map(String),
    ]));
    fill(element("diversity"), found.attributes.map((name, j) => [
      name, String(diversity.distinct[j]), number(diversity.variance[j]), number(diversity.entropy[j]),
      number(diversity.closeness[j]),
    ]));
    draw(chance);
    const notes = found.notes.map((note) => make("li", `${note[0].toUpperCase()}${note.slice(1)}.`));
    element("notes").replaceChildren(...notes);
    element("answer").hidden = false;
    element("verdict").focus();
  }

  function drawn(name, facts, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [fact, value] of Object.entries(facts)) made.setAttribute(fact, value);
    made.textContent = text;
    return made;
  }

  // Bars for the distances of random records, dark where they are as near as hers.
  function draw(chance) {
    const distances = Object.entries(chance.null).map(([distance, share]) => [Number(distance), share]);
    const most = Math.max(chance.distance, ...distances.map(([distance]) => distance));
    const step = Math.max(1, Math.ceil((most + 1) / BARS));
    const bars = Array.from({ length: Math.floor(most / step) + 1 }, () => [0, 0]);
    for (const [distance, share] of distances) {
      bars[Math.floor(distance / step)][distance <= chance.distance ? 0 : 1] += share;
    }
    const highest = Math.max(...bars.map(([near, far]) => near + far));
    const width = 400, height = 110, wide = width / bars.length;
    const picture = element("picture");
    const parts = [];
    bars.forEach(([near, far], k) => {
      let top = height;
      for (const [share, kind] of [[near, "near"], [far, "far"]]) {
        const tall = 100 * share / highest;
        top -= tall;
        const box = { x: k * wide + wide * 0.08, y: top, width: wide * 0.84, height: tall, class: kind };
        if (share > 0) parts.push(drawn("rect", box));
      }
    });
    const yours = (chance.distance / step + (step === 1 ? 0.5 : 0)) * wide;
    const side = yours < 60 ? "start" : yours > width - 60 ? "end" : "middle";
    parts.push(drawn("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }));
    parts.push(drawn("path", { d: `M${yours} ${height + 2} l5 8 h-10 z`, class: "mark" }));
    parts.push(drawn("text", { x: yours, y: height + 24, "text-anchor": side }, `yours: ${chance.distance}`));
    if (yours > 90) parts.push(drawn("text", { x: 0, y: height + 24 }, "0"));
    if (yours < width - 90) parts.push(drawn("text", { x: width, y: height + 24, "text-anchor": "end" }, String(most)));
    picture.replaceChildren(...parts);
    picture.setAttribute("aria-label", `Distances of random records, from 0 to ${most} ranks; yours is `
      + `${chance.distance}, and a random record is that near ${often(chance.p_value)}.`);
  }

  function waiting(share) {
    element("progress").value = share;
    return new Promise((go) => setTimeout(go));
  }

  async function answer() {
    const mine = ++current;
    const pause = async (share) => {
      await waiting(share);
      if (mine !== current) throw new Stopped(); // she asked again, or cleared the form
    };
    element("answer").hidden = true;
    const asked = given();
    working(Boolean(asked), "");
    if (!asked) return;
    working(true, "Comparing your values with the release and with chance ...");
    try {
      await pause(0);
      const found = await check(asked.values, { f: asked.f, pause });
      await pause(1);
      working(false, "");
      show(found, asked.values);
    } catch (problem) {
      if (problem instanceof Stopped) return;
      working(false, `This check cannot be made: ${problem.message}.`);
    }
  }

  function working(busy, status) {
    element("status").textContent = status;
    element("progress").hidden = !busy;
    element("progress").value = 0;
    element("form").setAttribute("aria-busy", String(busy));
  }

  function clear() {
    current++;
    working(false, "");
    for (const { input } of fields) mark(input, "");
    mark(element("record"), "");
    element("answer").hidden = true;
    element("which").hidden = true;
    fields[0].input.focus();
  }

  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  element("form").addEventListener("reset", clear);
  element("way").addEventListener("change", () => {
    element("which").hidden = element("way").value !== "record";
  });
  element("form").hidden = false;
})();
