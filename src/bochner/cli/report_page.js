"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const COLORS = ["#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f"];

function element(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// Numbers on axes: 1, 2 and 5 in every decade of a logarithmic axis, or only 1 if there are many; round steps otherwise.
function ticks(low, high, log, most) {
  if (!log) {
    const step = [1, 2, 5, 10].map(k => k * 10 ** Math.floor(Math.log10((high - low) / most))).find(s => (high - low) / s <= most);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, k) => (first + k) * step);
  }
  const decades = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) decades.push(e);
  for (const digits of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const found = decades.flatMap(e => digits.map(k => k * 10 ** e)).filter(v => v >= low * .999 && v <= high * 1.001);
    if (found.length <= most || digits.length === 1) return found.filter((_, k) => k % Math.ceil(found.length / most) === 0);
  }
}
const written = v => Math.abs(v) >= 1e4 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(0) : String(Number(v.toPrecision(3)));

class Chart {
  constructor(figure, spec) {
    this.figure = figure; this.spec = spec; this.hidden = new Set();
    this.host = figure.querySelector(".plot");
    this.tip = document.createElement("div"); this.tip.className = "tip"; this.tip.hidden = true;
    figure.prepend(this.tip);
    this.legend();
    new ResizeObserver(() => this.draw()).observe(this.host);
    this.draw();
  }
  color(k) { return this.spec.series[k].color || COLORS[k % COLORS.length]; }
  legend() {
    const list = document.createElement("ul"); list.className = "legend";
    this.spec.series.forEach((series, k) => {
      if (!series.name) return;
      const item = document.createElement("li"), button = document.createElement("button"), dot = document.createElement("i");
      dot.style.background = this.color(k);
      button.append(dot, series.name); button.type = "button"; button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        this.hidden.has(k) ? this.hidden.delete(k) : this.hidden.add(k);
        button.setAttribute("aria-pressed", String(!this.hidden.has(k)));
        this.draw();
      });
      item.append(button); list.append(item);
    });
    this.host.after(list);
  }
  draw() {
    const width = Math.max(Math.round(this.host.clientWidth), 200), height = Math.round(Math.min(Math.max(width * .62, 240), 440));
    if (width === this.width && this.key === [...this.hidden].join()) return;
    this.width = width; this.key = [...this.hidden].join();
    const { x, y, series } = this.spec, left = 62, bottom = height - 46, top = 10, right = width - 16;
    const place = (axis, from, to) => {
      const f = axis.log ? Math.log : v => v, low = f(axis.range[0]), high = f(axis.range[1]);
      return v => from + (to - from) * (Math.min(Math.max(f(v), low), high) - low) / (high - low);
    };
    const X = place(x, left, right), Y = place(y, bottom, top);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${y.label} against ${x.label}` });
    for (const v of ticks(...y.range, y.log, 7)) {
      svg.append(element("line", { class: "grid", x1: left, x2: right, y1: Y(v), y2: Y(v) }));
      svg.append(element("text", { x: left - 7, y: Y(v) + 4, "text-anchor": "end" }, written(v)));
    }
    for (const v of ticks(...x.range, x.log, Math.max(Math.floor(width / 75), 3))) {
      svg.append(element("line", { class: "grid", x1: X(v), x2: X(v), y1: top, y2: bottom }));
      svg.append(element("text", { x: X(v), y: bottom + 18, "text-anchor": "middle" }, written(v)));
    }
    svg.append(element("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
    svg.append(element("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, x.label));
    svg.append(element("text", { transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
    this.points = [];
    series.forEach((one, k) => {
      if (this.hidden.has(k)) return;
      const color = this.color(k), line = one.line || [];
      if (line.length) {
        const path = line.map(([u, v], i) => `${i ? "L" : "M"}${X(u)} ${Y(v)}`).join("");
        svg.append(element("path", { d: path, fill: "none", stroke: color, "stroke-width": 1.5, "stroke-dasharray": one.dashed ? "4 4" : "none" }));
      }
      for (const point of one.points || []) {
        const at = { x: X(point.x), y: Y(point.y), text: point.text };
        if (point.low !== undefined)
          svg.append(element("line", { x1: at.x, x2: at.x, y1: Y(point.low), y2: Y(point.high), stroke: color, opacity: .5 }));
        svg.append(element("circle", { class: "point", cx: at.x, cy: at.y, r: one.large ? 5.5 : 4, fill: color, "fill-opacity": .85 }));
        this.points.push(at);
      }
    });
    this.ring = element("circle", { r: 8, fill: "none", stroke: "currentColor", "stroke-width": 1.5, visibility: "hidden" });
    svg.append(this.ring);
    svg.addEventListener("pointermove", event => this.point(event, svg, width));
    svg.addEventListener("pointerdown", event => this.point(event, svg, width));
    svg.addEventListener("pointerleave", () => { this.tip.hidden = true; this.ring.setAttribute("visibility", "hidden"); });
    this.host.replaceChildren(svg);
  }
  point(event, svg, width) {
    const box = svg.getBoundingClientRect(), u = event.clientX - box.left, v = event.clientY - box.top;
    const near = this.points.map(p => [Math.hypot(p.x - u, p.y - v), p]).sort((a, b) => a[0] - b[0])[0];
    this.tip.hidden = !near || near[0] > 24;
    this.ring.setAttribute("visibility", this.tip.hidden ? "hidden" : "visible");
    if (this.tip.hidden) return;
    const p = near[1];
    this.ring.setAttribute("cx", p.x); this.ring.setAttribute("cy", p.y);
    this.tip.textContent = p.text;
    this.tip.style.top = `${p.y + 14}px`;
    this.tip.style.left = `${Math.max(0, Math.min(p.x - 60, width - this.tip.offsetWidth))}px`;
  }
}

const ramp = stops => t => {
  const s = Math.min(Math.max(t, 0), 1) * (stops.length - 1), k = Math.min(Math.floor(s), stops.length - 2);
  return stops[k].map((c, i) => c + (s - k) * (stops[k + 1][i] - c));
};
const VIRIDIS = ramp([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]);
const ERRORS = ramp([[33, 102, 172], [146, 197, 222], [247, 247, 247], [244, 165, 130], [178, 24, 43]]);

// A matrix of bytes, from low to high, as pixels; the title of the canvas follows the pointer.
function picture(canvas, { size, bytes, low, high, errors }) {
  const values = Uint8Array.from(atob(bytes), c => c.charCodeAt(0)), context = canvas.getContext("2d");
  canvas.width = canvas.height = size;
  const image = context.createImageData(size, size);
  values.forEach((v, k) => image.data.set([...(errors ? ERRORS : VIRIDIS)(v / 255), 255], 4 * k));
  context.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", event => {
    const box = canvas.getBoundingClientRect(), cell = (a, b) => Math.min(Math.floor(size * a / b), size - 1);
    const i = cell(event.clientY - box.top, box.height), j = cell(event.clientX - box.left, box.width);
    canvas.title = `row ${i + 1}, column ${j + 1}: ${(low + (high - low) * values[i * size + j] / 255).toPrecision(2)}`;
  });
}

for (const [id, spec] of Object.entries(data.charts)) new Chart(document.getElementById(id), spec);
for (const [id, spec] of Object.entries(data.pictures)) picture(document.getElementById(id), spec);

const tables = [...document.querySelectorAll("table")];
for (const table of tables) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const value = row => row.cells[column].dataset.value, number = text => text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    const compare = (a, b) => number(a) !== null && number(b) !== null ? number(a) - number(b) : a.localeCompare(b);
    body.append(...[...body.rows].sort((a, b) => direction * compare(value(a), value(b))));
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
  }));
}
document.getElementById("filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase(), folded = document.querySelector("details.folded");
  for (const table of tables)
    for (const row of table.tBodies[0].rows) row.hidden = !row.cells[0].dataset.value.toLowerCase().includes(words);
  if (folded && words) folded.open = [...folded.querySelectorAll("tbody tr")].some(row => !row.hidden);
});
