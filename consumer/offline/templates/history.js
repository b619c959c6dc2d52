"use strict";
// Filters the cases of all runs, and shows two runs side by side. The cases of each run, and the texts of its outputs
// where they are shown, are in a script of their own, which is loaded when a case is opened: a page that is opened from a
// disk may load scripts, but may not fetch.
(() => {
  const { runs, cases, scripts } = JSON.parse(document.getElementById("index").textContent);
  const LABELS = { P: "Pass", R: "Review", F: "Fail" };
  const AT_ONCE = 100;
  const LONGEST_DIFF = 4_000_000; // cells of a table of words
  const filters = document.getElementById("filters");
  const fields = filters.elements;
  const rows = document.getElementById("cases");
  const more = document.getElementById("more");
  const dialog = document.getElementById("case");
  let chosen = [];
  let shown = 0;

  const make = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };
  const labelOf = (letter) => LABELS[letter.toUpperCase()] ?? "none";
  const differs = (each, a, b) =>
    each.labels[a] !== each.labels[b] || each.terms.some(([, , marks]) => marks[a] !== marks[b]);
  for (const each of cases) each.text = [each.id, ...each.terms.map(([, term]) => term)].join("\n").toLowerCase();

  // --- the choice, which the address keeps: names of runs, ids, labels; what is searched for only if it is part of an id

  const kept = ["a", "b", "label", "batch", "kind"];
  const usual = { a: String(Math.max(0, runs.length - 2)), b: String(runs.length - 1) };
  const valueOf = (name) => fields[name].value;

  const keep = () => {
    const said = new URLSearchParams();
    for (const name of kept) {
      const value = valueOf(name);
      if (value && value !== usual[name]) said.set(name, name in usual ? runs[Number(value)].name : value);
    }
    const search = valueOf("search").trim().toLowerCase();
    if (search && cases.some(({ id }) => id.toLowerCase().includes(search))) said.set("search", search);
    if (dialog.open) said.set("case", dialog.dataset.id);
    const address = String(said) ? `#${said}` : location.pathname + location.search;
    history.replaceState(null, "", address);
  };

  const restore = () => {
    const said = new URLSearchParams(location.hash.slice(1));
    fields.search.value = said.get("search") ?? "";
    for (const name of kept) {
      const number = name in usual ? runs.findIndex((run) => run.name === said.get(name)) : -1;
      fields[name].value = number >= 0 ? String(number) : name in usual ? usual[name] : (said.get(name) ?? "");
      if (fields[name].selectedIndex < 0) fields[name].value = "";
    }
    apply();
    const at = cases.findIndex(({ id }) => id === said.get("case"));
    if (at >= 0) open(at);
  };

  const apply = () => {
    const [a, b] = [Number(valueOf("a")), Number(valueOf("b"))];
    const search = valueOf("search").trim().toLowerCase();
    const [label, batch, kind] = [valueOf("label"), valueOf("batch"), valueOf("kind")];
    chosen = cases.filter(
      (each) =>
        each.text.includes(search) &&
        (!batch || each.batch === batch) &&
        (!label || labelOf(each.labels[b]) === label) &&
        (!kind || (kind === "differs" ? differs(each, a, b) : each.kinds.includes(kind))),
    );
    rows.replaceChildren();
    shown = 0;
    for (const head of document.querySelectorAll("#heads [data-run]"))
      head.classList.toggle("chosen", [a, b].includes(Number(head.dataset.run)));
    show();
    document.getElementById("count").value = `${chosen.length} of ${cases.length} cases`;
    drawTrend();
  };

  // --- the table

  const show = () => {
    const [a, b] = [Number(valueOf("a")), Number(valueOf("b"))];
    const next = chosen.slice(shown, shown + AT_ONCE);
    rows.append(...next.map((each) => rowOf(each, a, b)));
    shown += next.length;
    more.hidden = shown >= chosen.length;
    more.textContent = `Show ${Math.min(AT_ONCE, chosen.length - shown)} more`;
  };

  const rowOf = (each, a, b) => {
    const id = make("button", { type: "button", className: "text", textContent: each.id });
    id.addEventListener("click", () => open(cases.indexOf(each)));
    const cells = Array.from(each.labels, (letter, run) => {
      const star = letter === "." || letter === letter.toUpperCase() ? "" : "*";
      const said = letter === "." ? "." : `${letter.toUpperCase()}${each.found[run]}${star}`;
      return make("td", { className: labelOf(letter).toLowerCase(), textContent: said });
    });
    for (const run of [a, b]) cells[run].classList.add("chosen");
    const sign = make("td", { textContent: differs(each, a, b) ? "≠" : "" });
    return make("tr", {}, make("th", { scope: "row" }, id), sign, ...cells);
  };

  const drawTrend = () => {
    const line = document.getElementById("chosen-rate");
    const isAll = chosen.length === cases.length || !chosen.length;
    document.getElementById("trend").hidden = isAll;
    const dots = Array.from(document.querySelectorAll(".rate circle"));
    const points = dots.map((dot, run) => {
      const answered = chosen.filter(({ labels }) => labels[run] !== ".");
      if (!answered.length) return "";
      const rate = answered.filter(({ labels }) => labelOf(labels[run]) === "Pass").length / answered.length;
      return `${dot.getAttribute("cx")},${20 + (1 - rate) * 160}`;
    });
    line.setAttribute("points", isAll ? "" : points.join(" "));
  };

  // --- two runs side by side

  const loading = new Map(); // by run: both sides may be the same one
  const waiting = new Map();
  globalThis.safeRun = (run, said) => waiting.get(run)(said);
  const load = (run) => {
    if (!scripts) return Promise.resolve({});
    if (!loading.has(run)) loading.set(run, new Promise((done) => {
      const script = make("script", { src: `runs/run-${run + 1}.js` });
      waiting.set(run, done);
      script.addEventListener("error", () => {
        loading.delete(run);
        done(null);
      });
      document.head.append(script);
    }));
    return loading.get(run);
  };

  const open = async (at) => {
    const each = cases[at];
    const sides = [Number(valueOf("a")), Number(valueOf("b"))];
    dialog.dataset.id = each.id;
    document.getElementById("case-id").textContent = each.id;
    document.getElementById("case-batch").textContent = each.batch && `Batch ${each.batch}`;
    const body = document.getElementById("case-body");
    body.replaceChildren(make("p", { textContent: "Loading …" }));
    if (!dialog.open) dialog.showModal();
    keep();
    const said = await Promise.all(sides.map(load));
    if (dialog.dataset.id !== each.id) return;
    const missing = sides.filter((_, side) => said[side] === null).map((run) => `runs/run-${run + 1}.js`);
    const problem = missing.length ? [make("p", { className: "loud", textContent: `Not found: ${missing.join(", ")}` })] : [];
    body.replaceChildren(...problem, sideBySide(each, sides, said.map((run) => run?.[at] ?? {})));
  };

  const sideBySide = (each, sides, said) => {
    const heads = sides.map((run) => make("th", { scope: "col" }, make("span", { className: "text", textContent: runs[run].name })));
    const table = make("table", { className: "sides" }, make("thead", {}, make("tr", {}, make("td"), ...heads)));
    const body = table.appendChild(make("tbody"));
    const row = (name, values) => {
      const isSame = values[0] === values[1];
      const cells = values.map((value) => make("td", {}, make(isSame ? "span" : "mark", { className: "text", textContent: value })));
      body.append(make("tr", {}, make("th", { scope: "row" }, make("span", { className: "text", textContent: name })), ...cells));
    };
    row("Label", sides.map((run) => labelOf(each.labels[run])));
    if (said.every(({ scores }) => scores))
      for (const name of Object.keys(said[0].scores)) row(name, said.map(({ scores }) => scores[name].toFixed(2)));
    else row("Composite", sides.map((run) => (each.scores[run] === null ? "-" : (each.scores[run] / 100).toFixed(2))));
    const words = { CR: { "+": "found", "-": "missed" }, AC: { "+": "found", "-": "missed" }, AH: { "+": "not used", "-": "used" } };
    for (const [criterion, term, marks] of each.terms) {
      const isDoubtful = (side) => said[side].doubtful?.some(([in_, of]) => in_ === criterion && of === term);
      const told = sides.map((run, side) => (words[criterion][marks[run]] ?? "-") + (isDoubtful(side) ? ", doubtful" : ""));
      row(`${criterion}: ${term}`, told);
    }
    for (const [name, heading] of [["near_violations", "Near violations"], ["unsupported", "Unsupported values"]])
      if (said.some((side) => side[name])) row(heading, said.map((side) => (side[name] ?? []).join(", ") || "none"));
    if (said.some(({ outputs }) => outputs)) textRows(body, said);
    return table;
  };

  const textRows = (body, said) => {
    const texts = said.map(({ outputs }) => (outputs ?? []).map(written).join("\n\n"));
    const differences = differing(...texts.map((text) => text.split(/(\s+)/)));
    const cells = differences.map((parts) =>
      make("td", {}, make("div", { className: "text" }, ...parts.map(([text, isSame]) => (isSame ? text : make("mark", { textContent: text }))))),
    );
    body.append(make("tr", {}, make("th", { scope: "row", textContent: "Output" }), ...cells));
  };

  const written = (output) =>
    [
      ...(output.signals ?? []).map((text) => `• ${text}`),
      output.summary,
      ...(output.followup_questions ?? []).map((text) => `? ${text}`),
      output.error_message && `Error: ${output.error_message}`,
    ]
      .filter(Boolean)
      .join("\n");

  // The words that only one of two texts has, by their longest common subsequence; of very long texts, all.
  const differing = (one, other) => {
    if (one.length * other.length > LONGEST_DIFF) return [[[one.join(""), false]], [[other.join(""), false]]];
    const width = other.length + 1;
    const lengths = new Uint32Array((one.length + 1) * width);
    for (let i = one.length - 1; i >= 0; i--)
      for (let j = other.length - 1; j >= 0; j--)
        lengths[i * width + j] =
          one[i] === other[j]
            ? lengths[(i + 1) * width + j + 1] + 1
            : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    const sides = [[], []];
    const put = (side, text, isSame) => {
      const last = side.at(-1);
      if (last?.[1] === isSame) last[0] += text;
      else side.push([text, isSame]);
    };
    let [i, j] = [0, 0];
    while (i < one.length || j < other.length) {
      if (i < one.length && j < other.length && one[i] === other[j]) {
        put(sides[0], one[i++], true);
        put(sides[1], other[j++], true);
      } else if (j >= other.length || (i < one.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) put(sides[0], one[i++], false);
      else put(sides[1], other[j++], false);
    }
    return sides;
  };

  // --- the start

  const option = (value, textContent) => make("option", { value, textContent });
  runs.forEach(({ name, when }, run) => {
    const head = make("th", { scope: "col", title: name, textContent: String(run + 1) });
    head.dataset.run = String(run);
    document.getElementById("heads").append(head);
    for (const side of ["a", "b"]) fields[side].append(option(String(run), `${run + 1}: ${name}${when && `, ${when}`}`));
  });
  const batches = new Set(cases.map(({ batch }) => batch).filter(Boolean));
  fields.batch.append(...Array.from(batches, (batch) => option(batch, batch)));

  const change = () => {
    apply();
    keep();
  };
  filters.addEventListener("input", change);
  filters.addEventListener("reset", () =>
    setTimeout(() => {
      for (const side of ["a", "b"]) fields[side].value = usual[side];
      change();
    }),
  );
  filters.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", show);
  dialog.addEventListener("close", keep);
  addEventListener("hashchange", restore);
  filters.hidden = false;
  restore();
})();
