"use strict";
// The page is whole without this: it filters the cases, and opens the one that the address names.
(() => {
  const filters = document.getElementById("filters");
  const count = document.getElementById("count");
  const cases = Array.from(document.querySelectorAll("details.case"), (node) => ({
    node,
    id: node.querySelector(".id").textContent.toLowerCase(),
    label: [node.dataset.label],
    archetype: [node.dataset.archetype],
    missed: node.dataset.missed.split(" "),
    kind: node.dataset.kind.split(" "),
  }));

  const apply = () => {
    const wanted = filters.elements.search.value.trim().toLowerCase();
    const choices = Array.from(filters.querySelectorAll("select")).filter((choice) => choice.value);
    let shown = 0;
    for (const each of cases) {
      const fits = each.id.includes(wanted) && choices.every(({ name, value }) => each[name].includes(value));
      each.node.hidden = !fits;
      shown += fits;
    }
    count.value = `${shown} of ${cases.length} cases shown`;
  };

  // What is chosen is in the address: a link to it, and a page that is loaded again, show the same cases.
  const fields = Array.from(filters.elements).filter(({ name }) => name);

  const keep = () => {
    const chosen = fields.map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value);
    const address = chosen.length ? `#${new URLSearchParams(chosen)}` : location.pathname + location.search;
    history.replaceState(null, "", address);
  };

  const restore = () => {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) if (chosen.has(field.name)) field.value = chosen.get(field.name);
    apply();
  };

  const openNamed = () => {
    const named = document.getElementById(location.hash.slice(1));
    if (!named?.matches("details.case")) return;
    if (named.hidden) {
      for (const field of fields) field.value = "";
      apply();
    }
    named.open = true;
    named.scrollIntoView();
  };

  const setOpen = (open) => {
    for (const { node } of cases) if (!node.hidden) node.open = open;
  };

  const change = () => {
    apply();
    keep();
  };

  filters.addEventListener("input", change);
  filters.addEventListener("reset", () => setTimeout(change)); // once the fields are empty
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open-all").addEventListener("click", () => setOpen(true));
  document.getElementById("close-all").addEventListener("click", () => setOpen(false));
  addEventListener("hashchange", () => {
    restore();
    openNamed();
  });
  addEventListener("pageshow", apply); // a browser may fill in the fields of an earlier visit
  filters.hidden = false;
  restore();
  openNamed();
})();
