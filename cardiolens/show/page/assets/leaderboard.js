// The table of models: filters and order stand in the address, so that a link shows the same rows.

const FORM = JSON.parse(document.getElementById("form").textContent);
const CHOICES = ["kind", "setting"]; // columns of which one value may be chosen
const ALL = ""; // a choice that leaves every row

tableNamed("standings").then((table) => {
  const at = Object.fromEntries(table.columns.map(([name], place) => [name, place]));
  const tiers = FORM.tiers.filter(([name]) => table.rows.some((row) => row[at[name]] !== null));
  const parts = new Set(tiers.flatMap(([name]) => ["low", "high", "skill", "items", "patients", "note"].map((part) => `${name}_${part}`)));
  const absent = FORM.tiers.filter(([name]) => !tiers.some(([present]) => present === name)).map(([name]) => name);
  const columns = table.columns.filter(([name]) => !parts.has(name) && !absent.some((tier) => name === tier || name.startsWith(`${tier}_`)));
  const values = (name) => [...new Set(table.rows.map((row) => row[at[name]]))];
  const first = {
    kind: ALL,
    setting: values("setting").includes(FORM.headline) ? FORM.headline : ALL,
    words: "",
    sort: tiers.length ? tiers[0][0] : "model",
    order: tiers.length ? "down" : "up",
  };
  const state = { ...first };
  const body = element("tbody");
  const heads = new Map(columns.map(([name, title, kind]) => [name, head(title, kind, () => sortBy(name))]));

  // Only what differs from the first view stands in the address; a name that no one knows is left out.
  function read() {
    const told = new URLSearchParams(location.hash.slice(1));
    Object.assign(state, first);
    for (const name of Object.keys(first)) if (told.has(name)) state[name] = told.get(name);
    if (!heads.has(state.sort)) state.sort = first.sort;
    fill();
  }

  function write() {
    const told = Object.entries(state).filter(([name, value]) => value !== first[name]);
    history.replaceState(null, "", `#${new URLSearchParams(told)}`);
    fill();
  }

  function sortBy(name) {
    const down = state.sort === name ? state.order !== "down" : table.columns[at[name]][2] !== "text";
    Object.assign(state, { sort: name, order: down ? "down" : "up" });
    write();
  }

  function rows() {
    const words = state.words.toLowerCase();
    const wanted = CHOICES.filter((name) => state[name] !== ALL);
    return table.rows
      .filter((row) => wanted.every((name) => row[at[name]] === state[name]))
      .filter((row) => !words || String(row[at.model]).toLowerCase().includes(words))
      .sort((a, b) => order(a[at[state.sort]], b[at[state.sort]], state.order === "down"));
  }

  function cell(row, [name, , kind]) {
    const value = row[at[name]];
    const made = element("td", { class: kind === "text" ? "" : "number" }, written(value, kind));
    if (!tiers.some(([tier]) => tier === name) || value === null) return made;
    const part = (of) => row[at[`${name}_${of}`]];
    const told = part("note") ?? "";
    if (/^(highest|not shown to be lower)/.test(told)) made.classList.add("best");
    const interval = part("low") === null ? "no interval" : `${written(part("low"), "score")} to ${written(part("high"), "score")}`;
    made.append(
      element("span", { class: "interval" }, interval),
      element("span", { class: "interval" }, `skill ${written(part("skill"), "score")}, ${written(part("items"), "count")} items`),
    );
    if (told) made.append(element("span", { class: "interval" }, told));
    return made;
  }

  function fill() {
    const shown = rows();
    body.replaceChildren(...shown.map((row) => element("tr", {}, ...columns.map((column) => cell(row, column)))));
    heads.forEach((made, name) =>
      made.setAttribute("aria-sort", name !== state.sort ? "none" : state.order === "down" ? "descending" : "ascending"),
    );
    document.getElementById("count").textContent = `${shown.length} of ${table.rows.length} rows`;
    for (const made of document.querySelectorAll("#filters [data-filter]")) made.value = state[made.dataset.filter];
  }

  const choice = (name) => {
    const title = table.columns[at[name]][1];
    const options = [[ALL, "all"], ...values(name).map((value) => [value, value])];
    const made = element("select", { "data-filter": name }, ...options.map(([value, text]) => element("option", { value }, text)));
    made.addEventListener("change", () => ((state[name] = made.value), write()));
    return element("label", {}, element("span", {}, title), made);
  };
  const search = element("input", { type: "search", "data-filter": "words", placeholder: "Model", "aria-label": "Words of a model's name" });
  search.addEventListener("input", () => ((state.words = search.value), write()));

  const shownTable = () => ({ ...table, rows: rows() });
  const said = element("span", { class: "quiet", role: "status" });
  async function copy() {
    said.textContent = (await copied(csv(shownTable()))) ? "Copied." : "This browser does not let the page copy: save the file.";
  }
  document.getElementById("filters").append(
    ...CHOICES.filter((name) => values(name).length > 1).map(choice),
    search,
    element("button", { type: "button", id: "copy", onclick: copy }, "Copy as CSV"),
    element("button", { type: "button", onclick: () => save("leaderboard.csv", csv(shownTable())) }, "Save CSV"),
    said,
  );
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("models").append(
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": table.title },
      element("table", {}, element("caption", { class: "unseen" }, table.title), element("thead", {}, element("tr", {}, ...heads.values())), body),
    ),
  );
  addEventListener("hashchange", read);
  read();
  document.documentElement.dataset.drawn = "true";
});

// The clipboard of a page that is not served over https is reached by a selected text alone.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

for (const block of document.querySelectorAll("details.table")) showTable(block.querySelector(".rows"), block.dataset.of);
