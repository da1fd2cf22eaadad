// A coloured grid: confusion matrices, subtasks by model.

function drawGrid(figure, drawing, table, chosen) {
  const found = records(table, chosen);
  const across = figure.normalised ? matrixOrder(found, figure) : distinct(table, figure.across, chosen);
  const downs = distinct(table, figure.down, chosen);
  if (figure.normalised) downs.sort();
  const at = new Map(found.map((record) => [`${record[figure.down]}\n${record[figure.across]}`, record]));
  const cellOf = (down, name) => at.get(`${down}\n${name}`)?.[figure.value] ?? null;
  const title = (name) => table.columns.find(([column]) => column === name)[1];
  const state = { sort: null, down: true };
  const body = element("tbody");

  function fill() {
    const rows = [...downs];
    const key = (down) => (state.sort === "" ? down : cellOf(down, state.sort));
    if (state.sort !== null) rows.sort((a, b) => order(key(a), key(b), state.down));
    body.replaceChildren(...rows.map(row));
  }

  function row(down) {
    const total = across.reduce((sum, name) => sum + (cellOf(down, name) ?? 0), 0);
    const cells = across.map((name) => {
      const value = cellOf(down, name);
      if (value === null) return element("td", { class: "none" }, figure.normalised ? "" : "\u2013");
      const share = figure.normalised ? value / total : value / 100;
      const style = `--share:${Math.round(100 * Math.max(0, Math.min(1, share)))}%`;
      const right = figure.normalised && down === name;
      const hint = figure.normalised ? `${fixed(100 * share, 1)} % of ${down}` : hintOf(at.get(`${down}\n${name}`));
      const text = figure.normalised ? written(value, "count") : fixed(value, 1);
      return element("td", { style, class: right ? "cell right" : "cell", title: hint, "data-value": value }, text);
    });
    return element("tr", {}, element("th", { scope: "row" }, String(down)), ...cells);
  }

  const heads = ["", ...across].map((name, place) => {
    if (figure.normalised) {
      const text = place ? name : `${title(figure.down)} \u2193  ${title(figure.across)} \u2192`;
      return element("th", { scope: "col" }, text);
    }
    const button = element("button", { type: "button" }, place ? name : title(figure.down));
    const cell = element("th", { scope: "col", "aria-sort": "none" }, button);
    button.addEventListener("click", () => {
      const key = place ? name : "";
      state.down = state.sort === key ? !state.down : Boolean(place);
      state.sort = key;
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      fill();
    });
    return cell;
  });
  fill();
  const scroll = { class: "scroll", tabindex: "0", role: "group", "aria-label": figure.title };
  drawing.replaceChildren(
    element("div", scroll, element("table", { class: figure.normalised ? "matrix" : "heat" }, element("thead", {}, element("tr", {}, ...heads)), body)),
  );
}

// Called as named, in the order of the rows; what no row is called and the unreadable last.
function matrixOrder(found, figure) {
  const downs = [...new Set(found.map((record) => record[figure.down]))].sort();
  const others = [...new Set(found.map((record) => record[figure.across]))].filter((name) => !downs.includes(name));
  return [...downs, ...others.sort((a, b) => (a === "unparsed") - (b === "unparsed") || a.localeCompare(b))];
}

function hintOf(record) {
  const interval = record.low === null ? "no interval" : `95 % CI ${fixed(record.low, 1)} to ${fixed(record.high, 1)}`;
  return `${interval}; ${record.n_items} items of ${record.n_patients} patients`;
}
