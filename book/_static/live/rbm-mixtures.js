// The live model of the lesson rbm-mixtures: drag a query among patterns, turn beta, see the weights that softmax gives
// and what attention returns, after one step and at the end. The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const apart = (a, b) => Math.hypot(...a.map((value, i) => value - b[i]));

  // softmax of beta x . q over the patterns x.
  function weights(query, patterns, beta) {
    const logits = patterns.map((pattern) => beta * dot(pattern, query));
    const highest = Math.max(...logits);
    const terms = logits.map((logit) => Math.exp(logit - highest));
    const total = terms.reduce((sum, term) => sum + term, 0);
    return terms.map((term) => term / total);
  }

  function mix(shares, things) {
    return things[0].map((_, i) => shares.reduce((sum, share, k) => sum + share * things[k][i], 0));
  }

  // One step of attention: the patterns, averaged with their weights.
  function retrieve(query, patterns, beta) {
    return mix(weights(query, patterns, beta), patterns);
  }

  // Steps until nothing moves: the path with its start, and whether it came to rest.
  function converge(query, patterns, beta, { tolerance = 1e-10, most = 2000 } = {}) {
    const path = [query];
    while (path.length <= most) {
      const last = path[path.length - 1];
      const next = retrieve(last, patterns, beta);
      path.push(next);
      if (apart(last, next) <= tolerance) return { path, converged: true };
    }
    return { path, converged: false };
  }

  // |v|^2 / 2 - (1 / beta) log sum exp(beta x . v).
  function energy(visible, patterns, beta) {
    const logits = patterns.map((pattern) => beta * dot(pattern, visible));
    const highest = Math.max(...logits);
    const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
    return dot(visible, visible) / 2 - (highest + Math.log(sum)) / beta;
  }

  const model = { weights, retrieve, converge, energy };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["rbm-mixtures"] = model;

  const LEVELS = [0.05, 0.15, 0.35, 0.65, 1.1, 1.7, 2.5, 3.5, 5.0];
  const CELLS = 72;
  const { number } = window.Live;
  const percent = (share) => `${Math.round(100 * share)} %`;

  window.Live.mount("rbm-mixtures-live", (live, data) => {
    const { names, pictures, reach } = data;
    const copies = () => ({ query: [...data.query], beta: data.beta, patterns: data.patterns.map((x) => [...x]) });
    let state = copies();
    live.name("Attention in the plane: drag the query or a pattern, turn beta");
    const axis = [-reach, reach];
    const plane = live.stage("", { x: axis, y: axis, grow: 1.3, draw: drawPlane });
    live.stage("", { shape: 0.77, draw: drawAnswer });

    const found = () => {
      const { query, patterns, beta } = state;
      const { path, converged } = converge(query, patterns, beta);
      return { shares: weights(query, patterns, beta), once: path[1], end: path[path.length - 1], path, converged };
    };
    let now = found();

    names.forEach((name, k) => {
      const at = () => state.patterns[k];
      live.point(plane, `Pattern ${name}`, { at, step: 0.05, moved: (place) => { live.stop(); state.patterns[k] = place; } });
    });
    const moved = (place) => { live.stop(); state.query = place; };
    live.point(plane, "Query", { at: () => state.query, step: 0.05, moved });
    const slider = live.slider("β", {
      min: 0.1, max: 10, value: state.beta, log: true, changed: (beta) => { live.stop(); state.beta = beta; },
    });
    live.button("One step", () => {
      const [from, to] = [state.query, now.once];
      live.animate(500, (share) => { state.query = from.map((value, i) => value + share * (to[i] - value)); });
    });
    live.button("To the end", () => {
      const path = now.path;
      live.animate(900, (share) => { state.query = along(path, share); });
    });
    live.button("Start again", () => {
      live.stop();
      state = copies();
      slider.set(state.beta);
    });
    live.help(
      "The letters can be dragged too. Shades: an energy that every step lowers. Keys: tab to a point, then arrows.",
    );

    const draw = live.draw.bind(live);
    live.draw = () => {
      now = found();
      draw();
      const best = now.shares.indexOf(Math.max(...now.shares));
      const distances = state.patterns.map((pattern) => apart(pattern, now.end));
      const closest = distances.indexOf(Math.min(...distances));
      const steps = now.path.findIndex((place) => apart(place, now.end) < 0.01);
      live.says(
        `β = ${number(state.beta)}: pattern ${names[best]} has ${percent(now.shares[best])} of the weight. One step leads to ` +
          `(${number(now.once[0])}, ${number(now.once[1])}). ` +
          (now.converged
            ? `The query comes to rest ${distances[closest] < 0.1 ? "at" : `${number(distances[closest])} from`} pattern ` +
              `${names[closest]}, ${steps === 1 ? "in that one step." : `to within 0.01 after ${steps} steps.`}`
            : "It has not come to rest after two thousand steps."),
      );
    };

    // A point on the path that the share has reached, if every step takes the same time.
    function along(path, share) {
      const last = Math.min(path.length - 1, 12);
      const place = share * last;
      const k = Math.min(Math.floor(place), last - 1);
      if (share >= 1) return path[path.length - 1];
      return path[k].map((value, i) => value + (place - k) * (path[k + 1][i] - value));
    }

    function drawPlane(pen, stage, colours) {
      const { toX, toY } = stage;
      const depth = [];
      for (let row = 0; row < CELLS; row += 1) {
        for (let column = 0; column < CELLS; column += 1) {
          const place = [(2 * (column + 0.5)) / CELLS - 1, 1 - (2 * (row + 0.5)) / CELLS].map((value) => reach * value);
          depth.push(energy(place, state.patterns, state.beta));
        }
      }
      const deepest = Math.min(...depth);
      // Whole pixels, so that cells neither overlap nor leave seams.
      const edge = (k) => Math.round((k * stage.width) / CELLS);
      pen.fillStyle = colours.blue;
      depth.forEach((value, cell) => {
        const band = LEVELS.findIndex((level) => value - deepest < level);
        if (band < 0) return;
        pen.globalAlpha = 0.5 * (1 - band / LEVELS.length);
        const [column, row] = [cell % CELLS, Math.floor(cell / CELLS)];
        const [left, top] = [edge(column), edge(row)];
        pen.fillRect(left, top, edge(column + 1) - left, edge(row + 1) - top);
      });
      pen.globalAlpha = 1;
      state.patterns.forEach((pattern, k) => {
        line(pen, colours.orange, 0.5 + 7 * now.shares[k], [state.query, pattern], stage);
      });
      pen.setLineDash([2, 3]);
      line(pen, colours.ink, 1.2, now.path.slice(0, 200), stage);
      pen.setLineDash([]);
      names.forEach((name, k) => {
        const [left, top] = [toX(state.patterns[k][0]), toY(state.patterns[k][1])];
        disc(pen, left, top, 11, colours.orange, colours.paper);
        letter(pen, name, left, top, colours.paper);
      });
      disc(pen, toX(now.once[0]), toY(now.once[1]), 7, "", colours.ink);
      const [endX, endY] = [toX(now.end[0]), toY(now.end[1])];
      pen.lineWidth = 2;
      pen.strokeStyle = colours.ink;
      pen.beginPath();
      for (const way of [1, -1]) {
        pen.moveTo(endX - 6, endY - 6 * way);
        pen.lineTo(endX + 6, endY + 6 * way);
      }
      pen.stroke();
      disc(pen, toX(state.query[0]), toY(state.query[1]), 8, colours.blue, colours.paper);
      const list = names.map((name, k) => `${name} ${percent(now.shares[k])}`).join(", ");
      stage.describe(`A plane with ${names.length} patterns and the query. Weights: ${list}.`);
    }

    function drawAnswer(pen, stage, colours) {
      const side = Math.min(stage.width / 2.4, stage.height * 0.62);
      const left = stage.width - side;
      const seen = mix(now.shares, pictures);
      picture(pen, seen, left, 20, side, colours);
      pen.fillStyle = colours.ink;
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.fillText("attention returns", left, 13);
      pen.fillText("weights", 0, 13);
      const row = (stage.height - 24) / names.length;
      const small = Math.min(row - 4, 34);
      const room = left - small - 82;
      names.forEach((name, k) => {
        const top = 20 + k * row;
        pen.fillStyle = colours.ink;
        pen.fillText(name, 0, top + small / 2 + 5);
        picture(pen, pictures[k], 16, top, small, colours);
        pen.fillStyle = colours.orange;
        pen.fillRect(22 + small, top + small / 2 - 6, Math.max(1, room * now.shares[k]), 12);
        pen.fillStyle = colours.ink;
        pen.fillText(percent(now.shares[k]), 27 + small + Math.max(1, room * now.shares[k]), top + small / 2 + 5);
      });
      const list = names.map((name, k) => `${percent(now.shares[k])} of ${name}`).join(", ");
      stage.describe(`The picture that attention returns: ${list}.`);
    }
  });

  function line(pen, colour, width, places, stage) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    places.forEach((place, k) => (k ? pen.lineTo : pen.moveTo).call(pen, stage.toX(place[0]), stage.toY(place[1])));
    pen.stroke();
  }

  function disc(pen, x, y, radius, face, edge) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    if (face) {
      pen.fillStyle = face;
      pen.fill();
    }
    pen.lineWidth = 2;
    pen.strokeStyle = edge;
    pen.stroke();
  }

  function letter(pen, text, x, y, colour) {
    pen.fillStyle = colour;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, x, y + 1);
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
  }

  // Ink from 0 (paper) to 1, row by row.
  function picture(pen, ink, left, top, side, colours) {
    const width = Math.round(Math.sqrt(ink.length));
    const edge = (place) => Math.round((place * side) / width);
    pen.fillStyle = colours.ink;
    ink.forEach((share, k) => {
      pen.globalAlpha = Math.max(0, Math.min(1, share));
      const [x, y] = [left + edge(k % width), top + edge(Math.floor(k / width))];
      pen.fillRect(x, y, edge((k % width) + 1) - edge(k % width), edge(Math.floor(k / width) + 1) - y + top);
    });
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    pen.strokeStyle = colours.grey;
    pen.strokeRect(left, top, side, side);
  }
})();
