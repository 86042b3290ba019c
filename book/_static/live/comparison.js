// The live table of the lesson comparison: choose a task and a length of training, click on the module that you would
// give up, and read what each of the others costs or gains. The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  const mean = (a) => a.reduce((sum, value) => sum + value, 0) / a.length;
  const variance = (a) => {
    const middle = mean(a);
    return a.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (a.length - 1);
  };

  // Half the width of the interval of a mean; Infinity where one run tells nothing of the spread.
  function half(a, quantiles) {
    return a.length > 1 ? quantiles[a.length - 1] * Math.sqrt(variance(a) / a.length) : Infinity;
  }

  // Mean of a minus mean of b, its standard error, and the share of pairs in which a is better, ties by half.
  function compare(a, b) {
    const error = (c) => (c.length > 1 ? variance(c) / c.length : Infinity);
    const pairs = a.flatMap((x) => b.map((y) => (x > y ? 1 : x === y ? 0.5 : 0)));
    return { gap: mean(a) - mean(b), error: Math.sqrt(error(a) + error(b)), wins: mean(pairs) };
  }

  const model = { mean, half, compare };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models.comparison = model;

  const LOOK = `
.live-table { display: grid; grid-template-columns: minmax(9rem, max-content) 1fr 3.2rem 3rem; gap: 0 0.5rem; width: 100%; }
.live-table button, .live-table .head { grid-column: 1 / 5; }
.live-table button { display: grid; grid-template-columns: subgrid; align-items: center; font: inherit;
  font-size: 0.88rem; text-align: left; padding: 0 0.2rem; min-height: 1.6rem; border: 0; border-radius: 3px;
  background: none; color: var(--live-ink); cursor: pointer; }
.live-table .head { display: grid; grid-template-columns: subgrid; font-size: 0.8rem; color: var(--live-grey);
  padding: 0 0.2rem; }
.live-table button[aria-pressed="true"] { background: var(--live-faint); font-weight: 600; }
.live-table .track { position: relative; height: 1rem; }
.live-table .track i { position: absolute; top: 0.2rem; height: 0.6rem; background: var(--live-grey); opacity: 0.55; }
.live-table .track b { position: absolute; top: 0.44rem; height: 0.12rem; min-width: 2px; background: var(--live-ink); }
.live-table .track s { position: absolute; top: 0; height: 1rem; border-left: 1px dashed var(--live-grey); }
.live-table .worse i { background: var(--live-orange); }
.live-table .better i { background: var(--live-blue); }
.live-table .number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
@media (pointer: coarse) { .live-table button { min-height: 2.2rem; } }
@media (max-width: 480px) { .live-table { grid-template-columns: minmax(6.5rem, 9rem) 1fr 3rem 2.6rem; }
  .live-table button { font-size: 0.8rem; line-height: 1.15; } }
`;
  const percent = (share) => `${Math.round(100 * share)} %`;
  const digits = (value) => value.toFixed(3).replace("-", "−");

  function element(name, attributes = {}, text = "") {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  }

  window.Live.mount("comparison-live", (live, data) => {
    document.head.append(element("style", {}, LOOK));
    live.name("Accuracy of every module, with intervals: choose a task and the length of training");
    const choices = { task: Object.keys(data.chances), updates: [...new Set(data.rows.map((row) => row.updates))] };
    const first = data.rows.find((row) => row.task === data.task);
    let state = { task: data.task, updates: first.updates, start: data.start };
    const buttons = {};
    for (const [name, values] of Object.entries(choices)) {
      if (values.length < 2) continue;
      for (const value of values) {
        const label = name === "updates" ? `${value.toLocaleString("en")} updates` : value;
        const button = live.button(label, () => {
          state = { ...state, [name]: value };
          // What is chosen stays, and the other choice follows where nothing was run of both.
          if (!rows().length) {
            const { task, updates } = data.rows.find((row) => row[name] === value);
            state = { ...state, task, updates };
          }
        });
        buttons[`${name} ${value}`] = button;
      }
    }
    const rows = () => data.rows.filter((row) => row.task === state.task && row.updates === state.updates);
    const table = element("div", { class: "live-table", role: "group", "aria-label": "Modules" });
    live.stages.append(table);
    live.root.insertBefore(live.bar, live.stages);
    live.help(
      "Bars: mean accuracy; those of MNIST begin at 0.94. Lines in them: 95 % intervals. Dashes: guessing. Blue: better " +
        "than the chosen module in every pair of runs. Orange: worse in every pair. Grey: not told apart. Last column: " +
        "time of an update, in units of the vanilla block.",
    );

    live.draw = () => {
      const shown = rows();
      const held = shown.find((row) => row.module === state.start) || shown[0];
      for (const [key, button] of Object.entries(buttons)) {
        const [name, value] = key.split(" ");
        button.setAttribute("aria-pressed", String(String(state[name]) === value));
      }
      const focused = table.contains(document.activeElement) ? document.activeElement.dataset.module : "";
      table.replaceChildren(head(shown), ...shown.map((row) => line(row, held)));
      if (focused) table.querySelector(`[data-module="${CSS.escape(focused)}"]`)?.focus();
      live.says(sentence(held, shown));
    };

    function head(shown) {
      const node = element("div", { class: "head", "aria-hidden": "true" });
      const timed = shown.some((row) => row.time !== null);
      for (const [name, text] of [["", "module"], ["", ""], ["number", "accuracy"], ["number", timed ? "time" : ""]]) {
        node.append(element("span", { class: name }, text));
      }
      return node;
    }

    function line(row, held) {
      const a = row.accuracies;
      const pressed = String(row === held);
      const button = element("button", { type: "button", "aria-pressed": pressed, "data-module": row.module });
      const track = element("span", { class: "track", "aria-hidden": "true" });
      const wide = a.length ? half(a, data.quantiles) : 0;
      button.append(element("span", {}, row.module), track, element("span", { class: "number" }, a.length ? digits(mean(a)) : "failed"),
        element("span", { class: "number" }, row.time === null ? "" : `${row.time.toFixed(1)} ×`));
      if (a.length) {
        track.append(bar("i", 0, scaled(mean(a))));
        if (Number.isFinite(wide)) track.append(bar("b", scaled(mean(a) - wide), scaled(mean(a) + wide)));
      }
      const chance = data.chances[state.task];
      if (chance > data.from[state.task]) track.append(bar("s", scaled(chance), scaled(chance)));
      if (row !== held && a.length && held.accuracies.length) {
        const { wins } = compare(a, held.accuracies);
        if (a.length > 1 && (wins === 0 || wins === 1)) button.classList.add(wins ? "better" : "worse");
      }
      button.addEventListener("click", () => {
        state = { ...state, start: row.module };
        live.refresh();
      });
      return button;
    }

    // The part of the track up to an accuracy.
    function scaled(accuracy) {
      const from = data.from[state.task];
      return Math.max(0, Math.min(1, (accuracy - from) / (1 - from)));
    }

    function bar(name, from, to) {
      const node = document.createElement(name);
      node.style.left = `${100 * from}%`;
      node.style.width = `${100 * (to - from)}%`;
      return node;
    }

    function sentence(held, shown) {
      if (!held.accuracies.length) return `${held.module}: every run failed on ${state.task}.`;
      const wide = half(held.accuracies, data.quantiles);
      const others = shown.filter((row) => row !== held && row.accuracies.length > 1);
      const shares = others.map((row) => compare(row.accuracies, held.accuracies).wins);
      const [best, worse, open] = [1, 0].map((wanted) => shares.filter((share) => share === wanted).length).concat(
        shares.filter((share) => share > 0 && share < 1).length);
      const vanilla = shown.find((row) => row.module === data.start);
      let words = `You give up ${held.module} on ${state.task}, which has ${digits(mean(held.accuracies))}` +
        `${Number.isFinite(wide) ? ` ± ${digits(wide)}` : " in one run"}. Of the other rows ${best} ` +
        `${best === 1 ? "is" : "are"} better in every pair of runs, ${worse} worse in every pair, and ${open} cannot be told apart.`;
      if (vanilla && vanilla !== held) {
        const { gap, error, wins } = compare(vanilla.accuracies, held.accuracies);
        words += ` The ${data.start} block is ${digits(Math.abs(gap))} ${gap < 0 ? "below" : "above"} it` +
          `${Number.isFinite(error) ? ` (standard error ${digits(error)})` : ""}, and better in ${percent(wins)} of the pairs.`;
      }
      return words;
    }
  });
})();
