"use strict";
// Keys and buttons: each decision is sent at once, and kept by the server before it is shown as made.
(() => {
  const { testId, number } = document.body.dataset;
  const items = Array.from(document.querySelectorAll(".item[data-item]"));
  let current = -1;

  const mostKeptAlive = 60000; // bytes that a browser sends to the end although the page is left

  const send = async (path, content) => {
    const body = JSON.stringify(content);
    const keepalive = body.length < mostKeptAlive;
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      keepalive,
    });
    const said = await answer.json().catch(() => ({ problem: `the server answered ${answer.status}` }));
    if (!answer.ok) throw new Error(said.problem ?? `the server answered ${answer.status}`);
    return said;
  };

  const tell = (output, text, isProblem) => {
    output.textContent = text;
    output.classList.toggle("problem", isProblem);
  };

  // One after the other: a decision that follows another one knows of it, and so does not contradict it.
  let sent = Promise.resolve();
  const attempt = (output, action) => {
    sent = sent.then(action).catch((error) => {
      const lost = error instanceof TypeError ? "not kept: safe review does not answer" : `not kept: ${error.message}`;
      tell(output, lost, true);
    });
    return sent;
  };

  const select = (place) => {
    items[current]?.classList.remove("current");
    current = place;
    items[current].classList.add("current");
    items[current].focus({ preventScroll: true });
    items[current].scrollIntoView({ block: "nearest" });
  };

  const goesOn = new Set(["accepted", "paraphrase"]);

  const decide = (item, choice) => {
    const output = item.querySelector(".decided");
    const form = item.querySelector("form");
    return attempt(output, async () => {
      const replacement = choice === "edited" ? form.elements.replacement.value.split("\n") : [];
      const said = await send(`${number}/term`, {
        item: Number(item.dataset.item),
        choice,
        seen: item.dataset.seen,
        test_id: testId,
        term: item.dataset.term,
        comment: form.elements.comment.value,
        replacement,
      });
      item.dataset.seen = said.seen;
      if (choice !== "commented") form.querySelector(".editor").hidden = true;
      if (choice === "withdrawn") form.elements.comment.value = "";
      if (choice !== "commented") item.toggleAttribute("data-undecided", choice === "withdrawn");
      item.querySelector('[data-choice="withdrawn"]').hidden = said.seen === "";
      tell(output, said.words || "withdrawn: nothing is decided", false);
      output.scrollIntoView({ block: "nearest" });
      if (goesOn.has(choice) && items[current] === item) moveToUndecided();
    });
  };

  const edit = (item) => {
    const editor = item.querySelector(".editor");
    editor.hidden = false;
    const text = editor.querySelector("textarea");
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  };

  const judge = (verdict) => {
    const form = document.getElementById("verdict");
    const output = form.querySelector(".decided");
    return attempt(output, async () => {
      const comment = form.elements.comment.value;
      const said = await send(`${number}/verdict`, { verdict, seen: form.dataset.seen, test_id: testId, comment });
      form.dataset.seen = said.seen;
      form.dataset.verdict = said.seen ? verdict : "";
      if (verdict === "withdrawn") form.elements.comment.value = "";
      form.querySelector('button[data-verdict="withdrawn"]').hidden = said.seen === "";
      tell(output, said.words || "withdrawn: there is no verdict", false);
    });
  };

  const giveReason = () => {
    const form = document.getElementById("verdict");
    sent.then(() => { // a verdict that is under way counts
      if (form.dataset.verdict) judge(form.dataset.verdict);
      else tell(form.querySelector(".decided"), "not kept yet: choose Safe or Unsafe", true);
    });
  };

  const move = (step) => {
    const place = current + step;
    if (place >= 0 && place < items.length) select(place);
    else if (step > 0) sent.then(() => document.getElementById("next")?.click());
    else if (step < 0 && current <= 0) sent.then(() => document.getElementById("previous")?.click());
  };

  // The next term that nobody has decided on: on this page, or on the next page that has one.
  const undecided = "#undecided";
  const moveToUndecided = () => {
    const place = items.findIndex((item, at) => at > current && item.hasAttribute("data-undecided"));
    if (place >= 0) select(place);
    else attempt(document.getElementById("nothing-left"), openNext);
  };
  const openNext = async () => {
    const asked = testId ? `${number}/undecided` : "undecided";
    const found = (await (await fetch(asked + location.search)).json()).number;
    if (found === null) tell(document.getElementById("nothing-left"), "No later term is undecided.", false);
    else location.assign(`${testId ? "" : "case/"}${found}${location.search}${undecided}`);
  };

  const help = () => {
    const keysHelp = document.getElementById("keys");
    keysHelp.focus();
    keysHelp.scrollIntoView({ block: "nearest" });
  };

  const nothing = {
    accepted: "there is no proposal to accept",
    edit: "this term cannot be edited here",
    paraphrase: "SAFE does not find one passage of the output that says all of this in other words",
    withdrawn: "there is no decision to withdraw",
  };

  const press = (choice) => {
    const item = items[current];
    const button = item?.querySelector(`[data-choice="${choice}"]:not([hidden])`);
    if (button) button.click();
    else if (item) tell(item.querySelector(".decided"), nothing[choice], true);
  };

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    a: () => press("accepted"),
    e: () => press("edit"),
    r: () => press("rejected"),
    p: () => press("paraphrase"),
    c: () => items[current]?.querySelector("form").elements.comment.focus(),
    w: () => press("withdrawn"),
    s: () => judge("safe"),
    u: () => judge("unsafe"),
    v: () => document.querySelector('button[data-verdict="withdrawn"]:not([hidden])')?.click(),
    y: () => document.getElementById("verdict").elements.comment.focus(),
    n: moveToUndecided,
    "?": help,
  };
  const keysOfTheList = new Set(["n", "?"]);

  for (const item of items) {
    item.addEventListener("click", (event) => {
      select(items.indexOf(item));
      const choice = event.target.closest("[data-choice]")?.dataset.choice;
      if (choice === "edit") edit(item);
      else if (choice) decide(item, choice);
      else if (event.target.matches("input, textarea")) event.target.focus();
    });
    item.querySelector("form").elements.comment.addEventListener("change", () => decide(item, "commented"));
    item.addEventListener("focusin", () => {
      items[current]?.classList.remove("current");
      current = items.indexOf(item);
      item.classList.add("current");
    });
  }
  for (const form of document.querySelectorAll("form:not([method])")) form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("button[data-verdict]")) {
    button.addEventListener("click", () => judge(button.dataset.verdict));
  }
  document.getElementById("verdict")?.elements.comment.addEventListener("change", giveReason);

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("textarea") && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.target.closest(".editor").querySelector('[data-choice="edited"]').click();
      items[current]?.focus();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, textarea")) {
      const isDone = event.key === "Escape" || (event.key === "Enter" && event.target.matches("input"));
      if (!isDone) return;
      event.target.blur(); // which keeps a comment
      const editor = event.target.closest(".editor");
      if (editor) editor.hidden = true;
      items[current]?.focus();
      return;
    }
    const action = keys[event.key];
    if (!action || !(testId || keysOfTheList.has(event.key))) return;
    event.preventDefault();
    action();
  });

  const status = document.getElementById("status");
  const write = (path, content, done) => {
    const buttons = document.querySelectorAll("#apply, #undo");
    for (const button of buttons) button.disabled = true;
    return attempt(status, async () => {
      const { written } = await send(path, content);
      sessionStorage.setItem("written", `${done}: ${written.join(", ")}. The cases were scored again.`);
      location.reload(); // labels and counts are others now
    }).finally(() => {
      if (status.classList.contains("problem")) for (const button of buttons) button.disabled = false;
    });
  };
  const apply = document.getElementById("apply");
  apply?.addEventListener("click", () => write("apply", { seen: apply.dataset.seen }, "Written"));
  document.getElementById("undo")?.addEventListener("click", () => write("undo", {}, "As before again"));
  const written = status && sessionStorage.getItem("written");
  if (written) {
    sessionStorage.removeItem("written");
    tell(status, written, false);
  }

  // While cases are being explained, the list is brought up to date, unless somebody is at work in it.
  const pause = 3000; // milliseconds
  const growing = ["#explaining", "#totals", ".cases"];
  const follow = async () => {
    const { explained } = await (await fetch("explained")).json();
    document.querySelector("#explaining span").textContent = explained;
    document.querySelector("#explaining progress").value = explained;
    if (!document.querySelector(".cases").contains(document.activeElement)) {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      for (const each of growing) document.querySelector(each).replaceWith(page.querySelector(each) ?? "");
    }
    if (document.getElementById("explaining")) setTimeout(follow, pause);
  };
  if (document.getElementById("explaining")) setTimeout(follow, pause);

  if (location.hash === undecided && testId) {
    history.replaceState(null, "", location.pathname + location.search); // a page that is loaded again begins at its first term
    if (items.some((item) => item.hasAttribute("data-undecided"))) moveToUndecided();
  }
  if (items.length && current < 0) select(0);
})();
