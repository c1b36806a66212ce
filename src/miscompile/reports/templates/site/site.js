"use strict";
(() => {
  const form = document.getElementById("filters");
  const rows = [...document.querySelectorAll("#findings tbody tr")];
  const names = ["store", "group", "kind", "target", "arm", "check", "pass"];
  const values = (row, name) => row.getAttribute("data-" + name).split("\n").filter(Boolean);
  const texts = new Map(rows.map((row) => [row, (row.textContent + " " + row.getAttribute("data-text")).toLowerCase()]));

  function fill() {
    for (const name of names) {
      const select = form.elements.namedItem(name);
      const found = [...new Set(rows.flatMap((row) => values(row, name)))].sort();
      for (const value of found) {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = value;
        select.append(option);
      }
      select.parentElement.hidden = found.length < 2;
    }
  }

  function apply() {
    const words = form.elements.namedItem("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = names.map((name) => [name, form.elements.namedItem(name).value]).filter((pair) => pair[1]);
    let count = 0;
    for (const row of rows) {
      const fits = wanted.every(([name, value]) => values(row, name).includes(value))
        && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    document.getElementById("shown").textContent = count + " of " + rows.length;
  }

  function remember() {
    const state = new URLSearchParams();
    for (const name of ["q", ...names]) {
      const value = form.elements.namedItem(name).value;
      if (value) state.set(name, value);
    }
    const text = state.toString().replaceAll("+", "%20");
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    if (![...state.keys()].some((name) => name === "q" || names.includes(name))) return false;
    for (const name of ["q", ...names]) form.elements.namedItem(name).value = state.get(name) ?? "";
    return true;
  }

  if (form) {
    fill();
    recall();
    apply();
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => { apply(); remember(); });
    form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
    addEventListener("hashchange", () => {
      if (recall()) { apply(); document.getElementById("list").scrollIntoView(); }
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.getAttribute("data-copy"));
      let done = true;
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch {
        getSelection().selectAllChildren(source);
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Selected: press Ctrl-C";
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }

  const seconds = Number(document.body.getAttribute("data-refresh"));
  if (seconds > 0) {
    setInterval(() => {
      const busy = document.activeElement && document.activeElement.closest("#filters");
      if (!busy && getSelection().isCollapsed) location.reload();
    }, seconds * 1000);
  }
})();
