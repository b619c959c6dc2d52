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

  const openNamed = () => {
    const named = document.getElementById(location.hash.slice(1));
    if (!named?.matches("details.case")) return;
    if (named.hidden) {
      filters.reset();
      apply();
    }
    named.open = true;
    named.scrollIntoView();
  };

  const setOpen = (open) => {
    for (const { node } of cases) if (!node.hidden) node.open = open;
  };

  filters.addEventListener("input", apply);
  filters.addEventListener("reset", () => setTimeout(apply)); // once the fields are empty
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open-all").addEventListener("click", () => setOpen(true));
  document.getElementById("close-all").addEventListener("click", () => setOpen(false));
  addEventListener("hashchange", openNamed);
  addEventListener("pageshow", apply); // a browser may fill in the fields of an earlier visit
  filters.hidden = false;
  apply();
  openNamed();
})();
