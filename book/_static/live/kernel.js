// What every live model of the book shares: a stage to draw on, points to drag, sliders, buttons, a line that says what
// is seen. A model gives numbers and draws; nothing here knows what the numbers mean.
//
//   Live.mount("FIGURE-ID", (stage, data) => { ... });
//
// The figure FIGURE-ID of the page holds a still picture, script#FIGURE-ID-data the numbers. Nothing is fetched, so that
// file:// works. Without scripts, and on paper, the still picture stays. Everything that the mouse does the keyboard does.
(() => {
  "use strict";
  const CSS = `
.live { --live-ink: #1b1f24; --live-paper: #ffffff; --live-grey: #5f6773; --live-faint: #d5d9df; --live-blue: #0069a8;
  --live-orange: #c94f00; --live-green: #00805c; --live-purple: #9a4294; --live-ochre: #9a7400; --live-brown: #7a2e2e;
  margin: 0 0 0.8rem; text-align: left; }
html[data-theme="dark"] .live { --live-ink: #e6e9ee; --live-paper: #14181e; --live-grey: #a3acb9; --live-faint: #3a4150;
  --live-blue: #5ab8f0; --live-orange: #ff9a57; --live-green: #3ecfa3; --live-purple: #dd97d8; --live-ochre: #e8c455;
  --live-brown: #e58f8f; }
.live-stages { display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; }
.live-stage { position: relative; flex: 1 1 15rem; min-width: 0; }
/* Three stand side by side on a tablet; a third one that is alone in its row does not push the sliders out of sight. */
.live-stages:has(> :nth-child(3)) > .live-stage { flex-basis: 13rem; }
.live-stage:nth-child(3) { max-width: 24rem; }
.live-stage canvas { display: block; width: 100%; border-radius: 4px; }
.live-point { position: absolute; width: 2.2rem; height: 2.2rem; margin: -1.1rem 0 0 -1.1rem; padding: 0; border: 0;
  border-radius: 50%; background: none; cursor: grab; touch-action: none; }
.live-point:active { cursor: grabbing; }
.live-bar { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; align-items: center; margin: 0.5rem 0; }
.live-slide { flex: 1 1 15rem; display: flex; align-items: center; gap: 0.6rem; margin: 0; }
.live-slide input { flex: 1; min-width: 6rem; accent-color: var(--live-blue); height: 1.6rem; }
.live-slide output { min-width: 4.5ch; font-variant-numeric: tabular-nums; }
.live button.live-button { font: inherit; min-height: 2rem; border: 1px solid var(--live-grey); border-radius: 4px;
  background: none; color: inherit; padding: 0.1rem 0.7rem; cursor: pointer; }
.live button.live-button[aria-pressed="true"] { border-color: currentColor; font-weight: 700; }
.live-says { margin: 0.3rem 0; min-height: 3em; }
.live-help { margin: 0.3rem 0; font-size: 0.88rem; color: var(--live-grey); }
.live :focus-visible { outline: 2px solid var(--live-blue); outline-offset: 2px; }
/* A fingertip needs more room than a mouse. */
@media (pointer: coarse) { .live button.live-button { min-height: 2.75rem; } .live-slide input { height: 2.75rem; } }
@media screen { .live-replaced { display: none !important; } }
@media print { .live { display: none; } }
`;
  const NAMES = ["ink", "paper", "grey", "faint", "blue", "orange", "green", "purple", "ochre", "brown"];
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  // With the next frame, or soon where no frames are drawn, as in a window that is not seen.
  function soon(action) {
    let done = false;
    const once = () => {
      if (done) return;
      done = true;
      action(performance.now());
    };
    requestAnimationFrame(once);
    setTimeout(once, 80);
  }

  function element(name, attributes = {}, text = "") {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.append(document.createTextNode(text));
    return node;
  }

  function mount(id, build) {
    const begin = () => {
      const figure = document.getElementById(id);
      const source = document.getElementById(`${id}-data`);
      if (!figure || !source || figure.querySelector(".live")) return;
      if (!document.getElementById("live-style")) {
        const style = element("style", { id: "live-style" });
        style.textContent = CSS;
        document.head.append(style);
      }
      const still = figure.querySelector(".book-picture, img");
      const live = new Live(id);
      figure.prepend(live.root);
      try {
        build(live, JSON.parse(source.textContent));
      } catch (error) {
        // The reader keeps the still picture.
        live.root.remove();
        throw error;
      }
      if (still) still.classList.add("live-replaced");
      live.watch();
    };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  }

  class Live {
    constructor(id) {
      this.root = element("div", { class: "live", role: "group", id: `${id}-live` });
      this.stages = element("div", { class: "live-stages" });
      this.bar = element("div", { class: "live-bar" });
      this.line = element("p", { class: "live-says", "aria-live": "polite" });
      this.root.append(this.stages, this.bar, this.line);
      this.drawn = [];
      this.pending = false;
      this.spoken = 0;
    }

    name(text) {
      this.root.setAttribute("aria-label", text);
    }

    // A square canvas (or of another height per width) with coordinates from x[0] to x[1] and y[0] to y[1], upwards.
    stage(label, { x = [0, 1], y = [0, 1], shape = 1, grow = 1, draw }) {
      const box = element("div", { class: "live-stage" });
      box.style.flexGrow = String(grow);
      const canvas = element("canvas", { role: "img", "aria-label": label });
      box.append(canvas);
      this.stages.append(box);
      const stage = {
        box, canvas, x, y, shape, draw, width: 0, height: 0,
        toX: (value) => ((value - x[0]) / (x[1] - x[0])) * stage.width,
        toY: (value) => ((y[1] - value) / (y[1] - y[0])) * stage.height,
        describe: (text) => canvas.setAttribute("aria-label", text),
      };
      this.drawn.push(stage);
      return stage;
    }

    // A point of a stage that can be dragged, or moved by arrow keys (with shift ten times as far).
    point(stage, label, { at, step, moved }) {
      const handle = element("button", {
        type: "button", class: "live-point", "aria-label": label, "aria-roledescription": "point to drag",
      });
      const inside = (value, [low, high]) => Math.max(low, Math.min(high, value));
      const place = () => {
        const [px, py] = at();
        handle.style.left = `${(100 * (px - stage.x[0])) / (stage.x[1] - stage.x[0])}%`;
        handle.style.top = `${(100 * (stage.y[1] - py)) / (stage.y[1] - stage.y[0])}%`;
        handle.setAttribute("aria-label", `${label}, at ${number(px)}, ${number(py)}; arrow keys move it`);
      };
      const move = (px, py) => {
        moved([inside(px, stage.x), inside(py, stage.y)]);
        this.refresh();
      };
      handle.addEventListener("pointerdown", (event) => {
        handle.setPointerCapture(event.pointerId);
        handle.focus({ preventScroll: true });
        event.preventDefault();
      });
      handle.addEventListener("pointermove", (event) => {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const frame = stage.canvas.getBoundingClientRect();
        move(
          stage.x[0] + ((event.clientX - frame.left) / frame.width) * (stage.x[1] - stage.x[0]),
          stage.y[1] - ((event.clientY - frame.top) / frame.height) * (stage.y[1] - stage.y[0]),
        );
      });
      handle.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if (!way) return;
        event.preventDefault();
        const far = event.shiftKey ? 10 * step : step;
        const [px, py] = at();
        move(px + far * way[0], py + far * way[1]);
      });
      stage.box.append(handle);
      this.drawn.push({ place });
      return handle;
    }

    // A slider whose positions are equally far apart in the logarithm of the value if `log` is set.
    slider(label, { min, max, value, log = false, steps = 200, format = number, changed }) {
      const low = log ? Math.log(min) : min;
      const high = log ? Math.log(max) : max;
      const valueOf = (place) => {
        const inner = low + (place / steps) * (high - low);
        return log ? Math.exp(inner) : inner;
      };
      const placeOf = (wanted) => Math.round((((log ? Math.log(wanted) : wanted) - low) / (high - low)) * steps);
      const row = element("label", { class: "live-slide" });
      const input = element("input", { type: "range", min: "0", max: String(steps), step: "1" });
      // Hidden from those who listen: the slider itself says its value.
      const shown = element("output", { "aria-hidden": "true" });
      const show = (current) => {
        shown.textContent = format(current);
        input.setAttribute("aria-valuetext", `${label} ${format(current)}`);
      };
      input.addEventListener("input", () => {
        const current = valueOf(Number(input.value));
        show(current);
        changed(current);
        this.refresh();
      });
      row.append(element("span", {}, label), input, shown);
      this.bar.append(row);
      const set = (wanted) => {
        input.value = String(placeOf(wanted));
        show(wanted);
      };
      set(value);
      return { input, set };
    }

    button(label, pressed) {
      const button = element("button", { type: "button", class: "live-button" }, label);
      button.addEventListener("click", () => {
        pressed();
        this.refresh();
      });
      this.bar.append(button);
      return button;
    }

    help(text) {
      this.root.append(element("p", { class: "live-help" }, text));
    }

    // Said to all readers; to those who listen only once the numbers have stood still for a moment.
    says(text) {
      this.line.textContent = text;
      this.line.setAttribute("aria-live", "off");
      clearTimeout(this.spoken);
      this.spoken = setTimeout(() => {
        this.line.setAttribute("aria-live", "polite");
        this.line.textContent = text;
      }, 600);
    }

    // Runs through shares 0 to 1; at once for readers who asked for less motion.
    animate(milliseconds, each) {
      const turn = (this.turn = (this.turn || 0) + 1);
      if (calm.matches || milliseconds <= 0) {
        each(1);
        this.refresh();
        return;
      }
      const begin = performance.now();
      const frame = (now) => {
        if (turn !== this.turn) return;
        const share = Math.max(0, Math.min(1, (now - begin) / milliseconds));
        each(share * share * (3 - 2 * share));
        this.refresh();
        if (share < 1) soon(frame);
      };
      soon(frame);
    }

    stop() {
      this.turn = (this.turn || 0) + 1;
    }

    refresh() {
      if (this.pending) return;
      this.pending = true;
      soon(() => {
        this.pending = false;
        this.draw();
      });
    }

    draw() {
      const style = getComputedStyle(this.root);
      const colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--live-${name}`).trim()]));
      const dense = window.devicePixelRatio || 1;
      for (const item of this.drawn) {
        if (item.place) {
          item.place();
          continue;
        }
        item.width = item.box.clientWidth;
        item.height = item.width * item.shape;
        // Not a height in pixels: until it is drawn anew, a stage that becomes narrower would be distorted.
        item.canvas.style.aspectRatio = String(1 / item.shape);
        const [wide, high] = [Math.round(dense * item.width), Math.round(dense * item.height)];
        if (item.canvas.width !== wide || item.canvas.height !== high) {
          item.canvas.width = wide;
          item.canvas.height = high;
        }
        const pen = item.canvas.getContext("2d");
        pen.setTransform(dense, 0, 0, dense, 0, 0);
        pen.clearRect(0, 0, item.width, item.height);
        pen.font = `13px ${style.fontFamily}`;
        item.draw(pen, item, colours);
      }
    }

    watch() {
      new ResizeObserver(() => this.refresh()).observe(this.stages);
      new MutationObserver(() => this.refresh()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
      this.draw();
    }
  }

  // Two decimals and a proper minus sign, which zero has not.
  function number(value) {
    const digits = value.toFixed(2);
    return Number(digits) === 0 ? "0.00" : digits.replace("-", "−");
  }

  window.Live = { mount, number, models: {} };
})();
