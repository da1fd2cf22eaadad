// The tables of the page: inside it, or in a script beside it that is loaded when first needed.

const RUN = JSON.parse(document.getElementById("run").textContent);
const promised = new Map();
const waiting = new Map();

window.cardiolens = {
  receive(name, table) {
    waiting.get(name)?.({ ...table, rows: rowsOf(table.cells) });
  },
};

// Rows of columns, in which a cell may be named by its place among the distinct ones.
function rowsOf(columns) {
  const cell = columns.map(({ values, at }) => (at ? (row) => values[at[row]] : (row) => values[row]));
  return Array.from({ length: (columns[0].at ?? columns[0].values).length }, (_, row) => cell.map((of) => of(row)));
}

function tableNamed(name) {
  if (!promised.has(name)) promised.set(name, open(name));
  return promised.get(name);
}

async function open(name) {
  const holder = document.querySelector(`script[data-table="${CSS.escape(name)}"]`);
  const chunk = holder.dataset.chunk;
  return chunk ? await load(name, chunk) : JSON.parse(holder.textContent);
}

function load(name, chunk) {
  return new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const script = element("script", { src: chunk });
    script.addEventListener("error", () =>
      reject(new Error(`${chunk} is not beside this page: copy the folder with it, or make the page again`)),
    );
    document.head.append(script);
  });
}

// Rows as objects, those that have the wanted cells.
function records(table, wanted = {}) {
  const names = table.columns.map(([name]) => name);
  const tests = Object.entries(wanted).map(([name, value]) => [names.indexOf(name), value]);
  return table.rows
    .filter((row) => tests.every(([at, value]) => row[at] === value))
    .map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
}

// Distinct cells of a column in the order in which they stand.
function distinct(table, name, wanted = {}) {
  return [...new Set(records(table, wanted).map((record) => record[name]))];
}

// A list to choose from for each column, where there is more than one value; calls back with the choice.
function chooser(holder, table, figure, changed) {
  const chosen = { ...figure.where };
  const build = () => {
    holder.replaceChildren();
    const wanted = { ...figure.where };
    for (const name of figure.choices) {
      const values = distinct(table, name, wanted);
      if (!values.includes(chosen[name])) chosen[name] = values[0];
      wanted[name] = chosen[name];
      if (values.length > 1) holder.append(list(name, values));
    }
    for (const name of Object.keys(chosen)) if (!(name in wanted)) delete chosen[name];
  };
  const list = (name, values) => {
    const title = table.columns.find(([column]) => column === name)[1];
    const select = element(
      "select",
      {
        "data-choice": name,
        onchange: () => {
          chosen[name] = values[select.selectedIndex];
          build();
          changed({ ...chosen });
          holder.querySelector(`[data-choice="${name}"]`)?.focus();
        },
      },
      ...values.map((value) => element("option", { selected: value === chosen[name] }, String(value))),
    );
    return element("label", {}, element("span", {}, title), select);
  };
  build();
  changed({ ...chosen });
}
