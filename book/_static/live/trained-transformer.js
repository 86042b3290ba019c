// The live model of the lesson trained-transformer: a map of all heads of a network, coloured by one of the lenses, and
// the window of the head that is chosen. Nothing is computed of weights but their place: values come with the page.
(() => {
  "use strict";

  // For each head the kept weights of every row: [place, weight] pairs of bytes, weights in 255 parts.
  function unpacked(text, layers, heads, tokens, kept) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return (layer, head) => {
      const begin = (layer * heads + head) * tokens * kept * 2;
      return Array.from({ length: tokens }, (_, i) =>
        Array.from({ length: kept }, (__, k) => {
          const at = begin + (i * kept + k) * 2;
          return [bytes[at], bytes[at + 1] / 255];
        }),
      );
    };
  }

  // Between the least and the largest of all heads, from 0 to 1.
  function scaled(values) {
    const all = values.flat();
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return { low, high, of: (value) => (high > low ? (value - low) / (high - low) : 0) };
  }

  // The words to which most is given in a row, without the token itself.
  function strongest(rows, tokens, row) {
    const [place, weight] = rows[row].reduce((best, pair) => (pair[1] > best[1] ? pair : best));
    return { place, weight, word: tokens[place] };
  }

  const model = { unpacked, scaled, strongest };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["trained-transformer"] = model;

  window.Live.mount("trained-transformer-live", (live, data) => {
    const { layers, heads, tokens, measures, kept } = data;
    const { number } = window.Live;
    const rowsOf = unpacked(data.weights, layers, heads, tokens.length, kept);
    const first = () => ({ lens: 0, layer: data.start[0], head: data.start[1], row: Math.floor(tokens.length / 2) });
    let state = first();
    let rows = rowsOf(state.layer - 1, state.head - 1);
    live.name("A map of all heads: choose a lens, choose a head, and see to whom its tokens listen");
    const short = (value) => (Math.abs(value) >= 10 ? value.toFixed(0) : number(value));

    function tell() {
      const measure = measures[state.lens];
      lenses.forEach((button, k) => button.setAttribute("aria-pressed", String(k === state.lens)));
      const value = measure.values[state.layer - 1][state.head - 1];
      const { word, weight } = strongest(rows, tokens, state.row);
      live.says(
        `Layer ${state.layer}, head ${state.head}: ${measure.words} ${short(value)}. ` +
          `“${tokens[state.row]}” listens most to “${word}”, with ${number(weight)} of its attention.`,
      );
    }

    function choose([x, y]) {
      const head = Math.max(1, Math.min(heads, Math.round(x)));
      const layer = Math.max(1, Math.min(layers, Math.round(y)));
      state = { ...state, head, layer };
      rows = rowsOf(layer - 1, head - 1);
      tell();
    }

    const map = live.stage("", { x: [0.5, heads + 0.5], y: [0.5, layers + 0.5], shape: 0.55, grow: 1.3, draw: drawMap });
    const seen = live.stage("", { x: [-0.5, tokens.length - 0.5], y: [-0.5, tokens.length - 0.5], draw: drawWindow });
    live.point(map, "The head that is chosen", { at: () => [state.head, state.layer], step: 1, moved: choose });
    const clicked = (stage, act) =>
      stage.canvas.addEventListener("click", (event) => {
        const frame = stage.canvas.getBoundingClientRect();
        const along = (event.clientX - frame.left) / frame.width;
        const down = (event.clientY - frame.top) / frame.height;
        act([
          stage.x[0] + along * (stage.x[1] - stage.x[0]),
          stage.y[1] - down * (stage.y[1] - stage.y[0]),
        ]);
        live.refresh();
      });
    clicked(map, choose);
    clicked(seen, ([, y]) => {
      state = { ...state, row: Math.max(0, Math.min(tokens.length - 1, Math.round(tokens.length - 1 - y))) };
      tell();
    });
    const lenses = measures.map((measure, k) =>
      live.button(measure.name, () => {
        state = { ...state, lens: k };
        tell();
      }),
    );
    const slider = live.slider("token", {
      min: 0, max: tokens.length - 1, value: state.row, steps: tokens.length - 1,
      format: (row) => tokens[Math.round(row)],
      changed: (row) => {
        state = { ...state, row: Math.round(row) };
        tell();
      },
    });
    live.button("Start again", () => {
      state = first();
      slider.set(state.row);
      rows = rowsOf(state.layer - 1, state.head - 1);
      tell();
    });
    live.help(
      "First picture: a row for each layer, the first below, a column for each head; the darker a cell, the larger its value. " +
        "Click a head, or move the frame with the arrow keys. Second picture: its window of text. A row is a token that " +
        "listens, from above, and a column one that is heard; the first column is [CLS]. Click a row to hear whom it listens to.",
    );
    tell();

    function drawMap(pen, stage, colours) {
      const measure = measures[state.lens];
      const scale = scaled(measure.values);
      const [wide, high] = [stage.width / heads, stage.height / layers];
      measure.values.forEach((line, k) =>
        line.forEach((value, h) => {
          pen.globalAlpha = 0.06 + 0.94 * scale.of(value);
          pen.fillStyle = colours.blue;
          pen.fillRect(stage.toX(h + 0.5) + 1, stage.toY(k + 1.5) + 1, wide - 2, high - 2);
        }),
      );
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.orange;
      pen.lineWidth = 3;
      pen.strokeRect(stage.toX(state.head - 0.5) + 1, stage.toY(state.layer + 0.5) + 1, wide - 2, high - 2);
      stage.describe(`${measure.words} of ${layers} layers by ${heads} heads, from ${short(scale.low)} to ${short(scale.high)}.`);
    }

    function drawWindow(pen, stage, colours) {
      const last = tokens.length - 1;
      const size = stage.width / tokens.length;
      pen.strokeStyle = colours.faint;
      pen.strokeRect(0.5, 0.5, stage.width - 1, stage.height - 1);
      pen.fillStyle = colours.blue;
      rows.forEach((row, i) =>
        row.forEach(([place, weight]) => {
          pen.globalAlpha = Math.min(1, Math.sqrt(weight));
          pen.fillRect(stage.toX(place - 0.5), stage.toY(last - i + 0.5), size, size);
        }),
      );
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.orange;
      pen.lineWidth = 1.5;
      pen.strokeRect(0, stage.toY(last - state.row + 0.5), stage.width, size);
      const { word, weight } = strongest(rows, tokens, state.row);
      stage.describe(`Attention of layer ${state.layer}, head ${state.head}; ${tokens[state.row]} listens to ${word}, ${number(weight)}.`);
    }
  });
})();
