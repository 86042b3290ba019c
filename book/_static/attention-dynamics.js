// The interactive figure of the chapter attention-dynamics: choose beta, see the orbit, its spectrum and its exponents.
// The numbers stand in the page (script#attention-dynamics-data), so nothing is fetched and file:// works. Without
// scripts the still figure stays as it is; when printed it comes back.
(() => {
  "use strict";
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const BOX = { width: 330, height: 178, left: 46, right: 16, top: 10, bottom: 30 };
  const CSS = `
.dyn { --dyn-periodic: #0069a8; --dyn-quasi: #c94f00; --dyn-chaotic: #9a4294; --dyn-fixed: #5f6773;
  --dyn-second: #00805c; --dyn-axis: #5f6773; --dyn-faint: #d5d9df; margin-bottom: 0.8rem; }
html[data-theme="dark"] .dyn { --dyn-periodic: #5ab8f0; --dyn-quasi: #ff9a57; --dyn-chaotic: #dd97d8;
  --dyn-fixed: #a3acb9; --dyn-second: #3ecfa3; --dyn-axis: #a3acb9; --dyn-faint: #3a4150; }
.dyn-controls { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; align-items: center; margin-bottom: 0.4rem; }
.dyn-controls label, .dyn-controls fieldset { display: inline-flex; align-items: center; gap: 0.4rem; margin: 0;
  border: 0; padding: 0; }
.dyn-controls legend { float: left; padding: 0 0.4rem 0 0; margin: 0; font-size: inherit; width: auto; }
.dyn-slide { flex: 1 1 16rem; display: flex; align-items: center; gap: 0.5rem; }
.dyn-slide input { flex: 1; min-width: 6rem; }
.dyn-jumps { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: center; font-size: 0.88rem; }
.dyn-jumps button { font: inherit; border: 1px solid var(--dyn-axis); border-radius: 4px; background: none;
  color: inherit; padding: 0.05rem 0.45rem; cursor: pointer; }
.dyn-jumps button[aria-pressed="true"] { border-width: 2px; font-weight: 600; }
.dyn-says { min-height: 3em; margin: 0.3rem 0; }
.dyn-panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 0.4rem 1rem; }
.dyn-panels figure { margin: 0; }
.dyn-panels figcaption { font-size: 0.85rem; text-align: left; margin: 0; }
.dyn-panels svg { display: block; width: 100%; height: auto; background: none; }
.dyn-panels text { fill: currentColor; font-size: 11px; }
.dyn :focus-visible { outline: 2px solid var(--pst-color-primary, #0069a8); outline-offset: 2px; }
@media screen { .dyn-replaced { display: none; } }
@media print { .dyn { display: none; } }
`;
  const REGIMES = [
    { name: "fixed point", colour: "var(--dyn-fixed)" },
    { name: "periodic", colour: "var(--dyn-periodic)" },
    { name: "quasi-periodic", colour: "var(--dyn-quasi)" },
    { name: "chaotic", colour: "var(--dyn-chaotic)" },
    { name: "undecided", colour: "var(--dyn-fixed)" },
  ];

  document.addEventListener("DOMContentLoaded", () => {
    const source = document.getElementById("attention-dynamics-data");
    const figure = document.getElementById("attention-dynamics-explorer");
    if (!source || !figure) return;
    const data = JSON.parse(source.textContent);
    const still = figure.querySelector(".book-picture");
    const style = document.createElement("style");
    style.textContent = CSS;
    document.head.append(style);
    const widget = build(data);
    figure.prepend(widget);
    if (still) still.classList.add("dyn-replaced");
  });

  // Unsigned bytes or 16-bit integers (little endian), one row for each beta.
  function decode(text, width, rows) {
    const raw = atob(text);
    const bytes = Uint8Array.from(raw, (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const count = bytes.length / width;
    const all = new Float64Array(count);
    for (let i = 0; i < count; i += 1) all[i] = width === 1 ? view.getUint8(i) : view.getUint16(2 * i, true);
    const length = count / rows;
    return Array.from({ length: rows }, (_, row) => all.subarray(row * length, (row + 1) * length));
  }

  function build(data) {
    const ranges = data.ranges.map((range) => ({
      ...range,
      orbits: decode(range.orbit, 2, range.beta.length),
      spectra: decode(range.spectrum, 1, range.beta.length),
      planes: decode(range.plane, 1, range.beta.length),
    }));
    let range = ranges[ranges.length - 1];
    let index = 0;

    const root = element("div", { class: "dyn", role: "group", "aria-label": "Explore the attractor for every beta" });
    const controls = element("div", { class: "dyn-controls" });
    const chooser = element("fieldset", {});
    chooser.append(element("legend", {}, "Range of β:"));
    ranges.forEach((one) => {
      const label = element("label", {});
      const radio = element("input", { type: "radio", name: "dyn-range" });
      radio.checked = one === range;
      radio.addEventListener("change", () => {
        const beta = range.beta[index];
        range = one;
        select(nearest(range.beta, beta));
      });
      one.radio = radio;
      label.append(radio, document.createTextNode(one.name));
      chooser.append(label);
    });
    const slide = element("label", { class: "dyn-slide" }, "β");
    const slider = element("input", { type: "range", min: "0", step: "1" });
    slider.addEventListener("input", () => select(Number(slider.value)));
    slide.append(slider);
    controls.append(chooser, slide);

    const jumps = element("div", { class: "dyn-jumps" }, "The source's temperatures:");
    const buttons = data.marks.map((beta) => {
      const button = element("button", { type: "button" }, String(beta));
      button.addEventListener("click", () => {
        range = ranges.find((one) => one.beta.some((value) => Math.abs(value - beta) < 1e-9)) || range;
        range.radio.checked = true;
        select(nearest(range.beta, beta));
      });
      jumps.append(button);
      return button;
    });
    const says = element("p", { class: "dyn-says", "aria-live": "polite" });
    const panels = element("div", { class: "dyn-panels" });
    const overview = panel(panels, "Exponents λ₁ (solid) and λ₂ (dashed) against β");
    const orbit = panel(panels, "First output overlap against the step");
    const spectrum = panel(panels, "Its power against the frequency, logarithmic");
    const plane = panel(panels, "First and second output overlap");
    overview.addEventListener("click", (event) => {
      const area = overview.getBoundingClientRect();
      const x = ((event.clientX - area.left) / area.width) * BOX.width;
      const share = (x - BOX.left) / (BOX.width - BOX.left - BOX.right);
      const [low, high] = [range.beta[0], range.beta[range.beta.length - 1]];
      select(nearest(range.beta, low + share * (high - low)));
    });
    root.append(controls, jumps, says, panels);

    function select(next) {
      index = Math.max(0, Math.min(range.beta.length - 1, next));
      const beta = range.beta[index];
      const regime = REGIMES[range.regime[index]];
      const [first, second] = [range.first[index], range.second[index]];
      slider.max = String(range.beta.length - 1);
      slider.value = String(index);
      const period = range.period[index] > 1 ? `, period ${range.period[index]}` : "";
      const text =
        `β = ${Number(beta.toFixed(5))}: ${regime.name}${period}. ` +
        `λ₁ = ${signed(first)} ± ${range.error[index].toFixed(4)}, λ₂ = ${signed(second)} per step` +
        (first > 0 && regime.name === "chaotic" ? `; an error grows tenfold in ${Math.round(Math.LN10 / first)} steps.` : ".");
      says.textContent = text;
      slider.setAttribute("aria-valuetext", text);
      buttons.forEach((button, number) =>
        button.setAttribute("aria-pressed", String(Math.abs(data.marks[number] - beta) < 1e-9)),
      );
      drawOverview(overview, range, index, regime);
      const scale = range.scale[index];
      const values = Array.from(range.orbits[index], (value) => (value / 65535) * 2 * scale[0] - scale[0]);
      drawLine(orbit, values.map((_, step) => step), values, {
        x: [0, values.length - 1], y: padded(-scale[0], scale[0]), colour: regime.colour, xname: "step",
        label: `Orbit of ${values.length} steps, ${regime.name}, amplitude ${scale[0].toFixed(3)}`,
      });
      const [floor, ceiling] = data.power;
      const powers = Array.from(range.spectra[index], (value) => floor + (value / 255) * (ceiling - floor));
      drawLine(spectrum, powers.map((_, bin) => (0.5 * bin) / (powers.length - 1)), powers, {
        x: [0, 0.5], y: [floor, ceiling], colour: regime.colour, xname: "frequency per step", decades: true,
        label: `Power spectrum; strongest away from f = 0 at ${strongest(powers)}`,
      });
      drawPlane(plane, range.planes[index], scale, regime);
    }
    select(nearest(range.beta, data.start));
    return root;
  }

  function strongest(powers) {
    let best = 1;
    for (let bin = 1; bin < powers.length; bin += 1) if (powers[bin] > powers[best]) best = bin;
    return `f = ${((0.5 * best) / (powers.length - 1)).toFixed(3)}`;
  }

  function panel(parent, caption) {
    const figure = element("figure", {});
    const picture = svg("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img" });
    figure.append(element("figcaption", {}, caption), picture);
    parent.append(figure);
    return picture;
  }

  function frame(picture, x, y, options) {
    picture.replaceChildren();
    const right = BOX.width - BOX.right;
    const bottom = BOX.height - BOX.bottom;
    const toX = (value) => BOX.left + ((value - x[0]) / (x[1] - x[0])) * (right - BOX.left);
    const toY = (value) => bottom - ((value - y[0]) / (y[1] - y[0])) * (bottom - BOX.top);
    const axis = { stroke: "var(--dyn-axis)", "stroke-width": 1, fill: "none" };
    picture.append(svg("path", { d: `M${BOX.left} ${BOX.top}V${bottom}H${right}`, ...axis }));
    for (const value of ticks(x[0], x[1], 5)) {
      picture.append(svg("path", { d: `M${toX(value)} ${bottom}v4`, ...axis }));
      picture.append(svg("text", { x: toX(value), y: bottom + 15, "text-anchor": "middle" }, short(value)));
    }
    for (const value of ticks(y[0], y[1], 6)) {
      picture.append(svg("path", { d: `M${BOX.left} ${toY(value)}h-4`, ...axis }));
      const name = options.decades ? `10${superscript(value)}` : short(value);
      picture.append(svg("text", { x: BOX.left - 6, y: toY(value) + 4, "text-anchor": "end" }, name));
    }
    picture.append(svg("text", { x: right, y: BOX.height - 3, "text-anchor": "end" }, options.xname));
    picture.setAttribute("aria-label", options.label);
    return [toX, toY];
  }

  function drawLine(picture, xs, ys, options) {
    const [toX, toY] = frame(picture, options.x, options.y, options);
    picture.append(svg("path", { d: path(xs, ys, toX, toY), fill: "none", stroke: options.colour, "stroke-width": 1.2 }));
  }

  function drawOverview(picture, range, index, regime) {
    const x = [range.beta[0], range.beta[range.beta.length - 1]];
    const top = Math.max(...range.first);
    const y = [-1.5 * top, 1.2 * top];
    const clipped = (values) => values.map((value) => Math.max(value, y[0]));
    const beta = range.beta[index];
    const [toX, toY] = frame(picture, x, y, {
      xname: "β", label: `Exponents against beta; the chosen one is ${beta.toFixed(4)}, ${regime.name}`,
    });
    const line = { fill: "none", "stroke-width": 1.2 };
    picture.append(svg("path", { d: `M${toX(x[0])} ${toY(0)}H${toX(x[1])}`, ...line, stroke: "var(--dyn-faint)" }));
    const second = path(range.beta, clipped(range.second), toX, toY);
    picture.append(svg("path", { d: second, ...line, stroke: "var(--dyn-second)", "stroke-dasharray": "4 2" }));
    const first = path(range.beta, clipped(range.first), toX, toY);
    picture.append(svg("path", { d: first, ...line, stroke: "var(--dyn-chaotic)" }));
    picture.append(svg("path", { d: `M${toX(beta)} ${BOX.top}V${BOX.height - BOX.bottom}`, ...line, stroke: "currentColor" }));
  }

  function drawPlane(picture, bytes, scale, regime) {
    const [toX, toY] = frame(picture, padded(-scale[0], scale[0]), padded(-scale[1], scale[1]), {
      xname: "first overlap", label: `Plane of the first two output overlaps, ${regime.name}`,
    });
    let dots = "";
    for (let point = 0; point < bytes.length; point += 2) {
      const x = toX((bytes[point] / 255) * 2 * scale[0] - scale[0]);
      const y = toY((bytes[point + 1] / 255) * 2 * scale[1] - scale[1]);
      dots += `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
    }
    picture.append(svg("path", { d: dots, stroke: regime.colour, "stroke-width": 2.2, "stroke-linecap": "round" }));
  }

  function path(xs, ys, toX, toY) {
    let text = "";
    for (let i = 0; i < xs.length; i += 1) text += `${i ? "L" : "M"}${toX(xs[i]).toFixed(1)} ${toY(ys[i]).toFixed(1)}`;
    return text;
  }

  // Round numbers inside [low, high], about `count` of them.
  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * ([1, 2, 5, 10].find((factor) => factor * unit >= rough) || 10);
    const values = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(k * step);
    return values;
  }

  const padded = (low, high) => [1.06 * low, 1.06 * high];
  const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");
  const signed = (value) => (value <= -99 ? "−∞" : (value < 0 ? "−" : "") + Math.abs(value).toFixed(4));
  const superscript = (value) => [...String(Math.round(value))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  function nearest(values, wanted) {
    let best = 0;
    values.forEach((value, i) => {
      if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = i;
    });
    return best;
  }

  function element(name, attributes, text) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.append(document.createTextNode(text));
    return node;
  }

  function svg(name, attributes, text) {
    const node = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.append(document.createTextNode(text));
    return node;
  }
})();
