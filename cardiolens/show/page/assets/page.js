// Brings the page to life: figures are drawn when they come near, the rest when the browser has time.

const drawn = new Set();

async function draw(holder) {
  if (drawn.has(holder)) return;
  drawn.add(holder);
  const figure = JSON.parse(holder.dataset.figure);
  const drawing = holder.querySelector(".drawing");
  const failed = (error) => drawing.replaceChildren(element("p", { class: "absent" }, error.message));
  try {
    const table = await tableNamed(figure.table);
    const paint = async (chosen) => (figure.form ? drawChart : drawGrid)(figure, drawing, table, chosen);
    let last = {};
    chooser(holder.querySelector(".choices"), table, figure, (chosen) => paint((last = chosen)).catch(failed));
    if (figure.form) onResize(drawing, () => paint(last).catch(failed));
  } catch (error) {
    failed(error);
  }
}

function onResize(drawing, paint) {
  let width = drawing.clientWidth;
  let timer = 0;
  new ResizeObserver(() => {
    if (Math.abs(drawing.clientWidth - width) < 8) return;
    width = drawing.clientWidth;
    clearTimeout(timer);
    timer = setTimeout(paint, 150);
  }).observe(drawing);
}

const figures = [...document.querySelectorAll("figure[data-figure]")];
const near = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
  { rootMargin: "400px" },
);
figures.forEach((holder) => near.observe(holder));

// In idle time, so that printing finds everything drawn; tables beside the page wait until they are wanted.
async function drawRest() {
  for (const holder of figures) {
    const { table } = JSON.parse(holder.dataset.figure);
    if (document.querySelector(`script[data-table="${CSS.escape(table)}"]`).dataset.chunk) continue;
    await new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve));
    await draw(holder);
  }
  document.documentElement.dataset.drawn = "true";
}
drawRest();

for (const block of document.querySelectorAll("details.table")) {
  const rows = block.querySelector(".rows");
  const show = () => {
    if (!block.open || rows.childElementCount) return;
    showTable(rows, block.dataset.of).catch((error) => rows.replaceChildren(element("p", { class: "absent" }, error.message)));
  };
  block.addEventListener("toggle", show);
  show();
}

const links = new Map([...document.querySelectorAll("nav a[href^='#']")].map((link) => [link.hash.slice(1), link]));
const here = new IntersectionObserver(
  (entries) =>
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }),
  { rootMargin: "-20% 0px -70% 0px" },
);
document.querySelectorAll(".sections > section").forEach((section) => here.observe(section));
