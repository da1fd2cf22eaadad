// A table that can be sorted, searched and saved.

const SHOWN = 100; // rows at first
const MORE = 1000; // rows at a press: a table of hundreds of thousands is never drawn whole

async function showTable(holder, name) {
  const table = await tableNamed(name);
  const state = { sort: null, down: false, search: "", limit: SHOWN };
  const body = element("tbody");
  const said = element("span", { class: "quiet", role: "status" });
  const more = element("button", { type: "button", onclick: () => ((state.limit += MORE), fill()) });
  const heads = table.columns.map(([, title, kind], at) => head(title, kind, () => sortBy(at)));

  function sortBy(at) {
    state.down = state.sort === at ? !state.down : table.columns[at][2] !== "text";
    state.sort = at;
    heads.forEach((cell, place) =>
      cell.setAttribute("aria-sort", place === at ? (state.down ? "descending" : "ascending") : "none"),
    );
    fill();
  }

  function fill() {
    const word = state.search.toLowerCase();
    let rows = table.rows;
    if (word) rows = rows.filter((row) => row.some((cell) => String(cell).toLowerCase().includes(word)));
    if (state.sort !== null) rows = [...rows].sort((a, b) => order(a[state.sort], b[state.sort], state.down));
    body.replaceChildren(...rows.slice(0, state.limit).map((row) => line(table, row)));
    said.textContent = rows.length > state.limit ? `${state.limit.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
    const left = rows.length - state.limit;
    more.textContent = left <= MORE ? `Show all ${rows.length.toLocaleString("en")}` : `Show ${MORE.toLocaleString("en")} more`;
    more.hidden = rows.length <= state.limit;
  }

  const tools = element("div", { class: "tools" });
  if (table.rows.length > 12) {
    const search = element("input", { type: "search", placeholder: "Search rows", "aria-label": `Search ${table.title}` });
    search.addEventListener("input", () => ((state.search = search.value), fill()));
    tools.append(search);
  }
  const file = `${RUN.name}-${name}.csv`;
  tools.append(element("button", { type: "button", class: "csv", onclick: () => save(file, csv(table)) }, "Save CSV"), said, more);
  const scroll = element(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": table.title },
    element("table", {}, element("caption", { class: "unseen" }, table.title), element("thead", {}, element("tr", {}, ...heads)), body),
  );
  fill();
  holder.replaceChildren(tools, scroll);
}

function head(title, kind, sort) {
  const button = element("button", { type: "button", onclick: sort }, title || "what");
  return element("th", { scope: "col", class: kind === "text" ? "" : "number", "aria-sort": "none" }, button);
}

function line(table, row) {
  const cells = row.map((value, at) => {
    const [name, , kind] = table.columns[at];
    const attributes = { class: kind !== "text" ? "number" : name === "method" || name === "sentence" ? "wide" : "" };
    if (typeof value === "number") attributes["data-value"] = value;
    return element("td", attributes, written(value, kind));
  });
  return element("tr", {}, ...cells);
}

// Undefined cells come last in either direction; K as numbers, words by the alphabet.
function order(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const numbers = Number(a) - Number(b);
  const found = Number.isNaN(numbers) ? String(a).localeCompare(String(b), "en", { numeric: true }) : numbers;
  return down ? -found : found;
}
