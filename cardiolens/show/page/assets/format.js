// Numbers as the tables of the run print them, and CSV.

const MINUS = "\u2212";

// Decimal places with exact ties to the even digit, as Python prints them; toFixed rounds ties away from zero.
function fixed(value, places) {
  const scaled = Math.abs(value) * 10 ** places;
  const floor = Math.floor(scaled);
  const tie = scaled - floor === 0.5 && Number.isInteger(value * 2 ** (places + 1));
  const text = tie ? ((floor + (floor % 2)) / 10 ** places).toFixed(places) : Math.abs(value).toFixed(places);
  return (value < 0 && Number(text) !== 0 ? MINUS : "") + text;
}

const WRITTEN = {
  text: String,
  count: (value) => value.toLocaleString("en"),
  score: (value) => fixed(value, 1),
  points: (value) => (value > 0 && fixed(value, 1) !== "0.0" ? "+" : "") + fixed(value, 1),
  p: (value) => (value < 0.001 ? "< 0.001" : fixed(value, 3)),
  number: (value) => (Number.isInteger(value) ? value.toLocaleString("en") : fixed(value, 3)),
};

function written(value, kind) {
  if (value === null || value === undefined) return "\u2013";
  if (typeof value === "number") return (WRITTEN[kind] || WRITTEN.number)(value);
  return String(value);
}

// Text that a spreadsheet would compute gets an apostrophe before it; numbers stay numbers.
function asText(text) {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?\d+(\.\d*)?(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
}

function csv(table) {
  const cell = (value) => {
    const text = value === null ? "" : typeof value === "string" ? asText(value) : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [table.columns.map(([name]) => cell(name)), ...table.rows.map((row) => row.map(cell))];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// An element with attributes and children; text never becomes markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}
