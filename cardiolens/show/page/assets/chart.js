// Vega-Lite charts whose colours are those of the style sheet, so that dark mode and print need no redrawing.

const FORMS = JSON.parse(document.getElementById("charts").textContent);

const NARROW = 520; // pixels
const TIPPED = // columns that a tooltip names
  ("model setting arm selector budget scope subtask measure reading ending value difference low high n share n_items n_patients " +
  "absolute_error constant_error bias limit_low limit_high confidence accuracy coverage risk collapse_index modal_share modal_excess flag").split(" ");

const CONFIG = {
  background: null,
  font: "ui-sans-serif, system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "var(--ink-soft)", titleColor: "var(--ink-soft)", gridColor: "var(--line)", domainColor: "var(--line)",
    tickColor: "var(--line)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, labelOverlap: false,
  },
  axisX: { labelOverlap: true, tickCount: 6 },
  header: { labelColor: "var(--ink)" },
  legend: { labelColor: "var(--ink)", titleColor: "var(--ink-soft)", labelFontSize: 12, symbolSize: 70, labelLimit: 240 },
  range: {
    category: ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)"],
    symbol: ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross"],
  },
  mark: { color: "var(--c0)" },
  rule: { color: "var(--c0)" },
  style: {
    band: { fill: "var(--band)", opacity: 1 },
    zero: { stroke: "var(--ink-soft)", strokeWidth: 1 },
    limit: { stroke: "var(--accent)", strokeWidth: 1, strokeDash: [4, 3] },
    interval: { strokeWidth: 1.5, stroke: "var(--c0)" },
    interval_90: { strokeWidth: 4, strokeOpacity: 0.55 },
  },
};

async function drawChart(figure, drawing, table, chosen) {
  const measure = FORMS[figure.form].usermeta?.measure ?? "value";
  const found = records(table, chosen).filter((record) => record[measure] !== null);
  if (!found.length) {
    drawing.replaceChildren(element("p", { class: "absent" }, "Undefined: there is no number to draw here."));
    return;
  }
  const spec = sized(ofSeries(structuredClone(FORMS[figure.form]), found), drawing.clientWidth, found);
  spec.data = { values: found };
  spec.config = CONFIG;
  spec.autosize = { type: spec.facet ? "pad" : "fit-x", contains: "padding" };
  const compiled = vegaLite.compile(spec, { logger: vega.logger(vega.Error) });
  const view = new vega.View(vega.parse(compiled.spec), { renderer: "svg", hover: true, logLevel: vega.Error });
  const tipped = table.columns.filter(([name]) => TIPPED.includes(name));
  view.tooltip((_, event, __, record) => showTip(event, record, tipped));
  const words = `${figure.title}. ${found.length} values; the table below has them all.`;
  const holder = element("div", { class: "vega", role: "img", "aria-label": words });
  view.initialize(holder);
  await view.runAsync();
  holder.querySelector("svg").setAttribute("aria-hidden", "true");
  drawing.replaceChildren(holder);
}

// Colours and shapes of the values that there are, so that one legend has both and names no other.
function ofSeries(spec, found) {
  const field = spec.usermeta?.series;
  const domain = [...new Set(found.map((record) => record[field]))].sort();
  for (const { encoding } of field ? (spec.spec ?? spec).layer : [])
    for (const channel of [encoding.color, encoding.shape]) if (channel) channel.scale = { domain };
  return spec;
}

function sized(spec, width, found) {
  const facet = spec.usermeta?.facets;
  delete spec.usermeta;
  if (!facet) return Object.assign(width < NARROW ? narrow(spec, width) : spec, { width });
  const count = new Set(found.map((record) => record[facet])).size;
  const columns = Math.max(1, Math.min(count, Math.floor(width / 230)));
  const { column } = spec.facet;
  Object.assign(spec, { facet: column, columns, spacing: { column: 18, row: 56 } });
  spec.spec.width = Math.max(120, (width - 62 - 18 * (columns - 1)) / columns);
  return spec;
}

// On a phone long labels stand above their line, and legends below each other.
function narrow(spec, width) {
  const above = { labelAlign: "left", labelBaseline: "bottom", labelPadding: -4, labelOffset: -7, labelLimit: width };
  for (const { encoding: { y, color } } of spec.layer ?? [spec]) {
    if (y?.field === "line" || y?.field === "arm") {
      Object.assign(y.axis, above, { ticks: false, domain: false });
      spec.height.step = 38;
    }
    if (color?.legend) color.legend.columns = 1;
  }
  return spec;
}

// The cells of a record, written as in its table.
function showTip(event, record, columns) {
  const tip = document.getElementById("tip");
  if (!record) return tip.replaceChildren();
  tip.replaceChildren(...columns.map(([name, title, kind]) => element("p", {}, element("span", {}, title), " ", written(record[name], kind))));
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}
