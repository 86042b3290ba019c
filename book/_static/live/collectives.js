// The live model of the lesson collectives: drag the fields of three spins in the plane, see where the spins point on
// average and, if the couplings read the fields, the whole response. The arithmetic stands first, exported for tests.
(() => {
  "use strict";

  const NODES = 24;
  const TURNS = Array.from({ length: NODES }, (_, k) => (2 * Math.PI * k) / NODES);
  const CIRCLE = TURNS.map((angle) => [Math.SQRT2 * Math.cos(angle), Math.SQRT2 * Math.sin(angle)]);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const add = (a, b, factor = 1) => [a[0] + factor * b[0], a[1] + factor * b[1]];
  const times = (A, h) => A.map((row) => dot(row, h));
  const transposed = (A) => [[A[0][0], A[1][0]], [A[0][1], A[1][1]]];

  // Means <s_i> and products <s_i . s_j> of three spins, summed over all their directions, as the library does.
  function moments(couplings, fields, beta) {
    const alone = fields.map((field) => CIRCLE.map((spin) => beta * dot(field, spin)));
    const both = (i, j) => TURNS.map((angle) => 2 * beta * (couplings[i][j] + couplings[j][i]) * Math.cos(angle));
    const joined = [both(0, 1), both(0, 2), both(1, 2)];
    const turn = (a, b) => (a - b + NODES) % NODES;
    const logits = new Float64Array(NODES ** 3);
    let highest = -Infinity;
    let k = 0;
    for (let a = 0; a < NODES; a += 1) {
      for (let b = 0; b < NODES; b += 1) {
        for (let c = 0; c < NODES; c += 1) {
          const value = alone[0][a] + alone[1][b] + alone[2][c] +
            joined[0][turn(a, b)] + joined[1][turn(a, c)] + joined[2][turn(b, c)];
          if (value > highest) highest = value;
          logits[k] = value;
          k += 1;
        }
      }
    }
    const seen = [0, 1, 2].map(() => new Float64Array(NODES));
    const turns = [0, 1, 2].map(() => new Float64Array(NODES));
    let total = 0;
    k = 0;
    for (let a = 0; a < NODES; a += 1) {
      for (let b = 0; b < NODES; b += 1) {
        for (let c = 0; c < NODES; c += 1) {
          const weight = Math.exp(logits[k] - highest);
          total += weight;
          seen[0][a] += weight;
          seen[1][b] += weight;
          seen[2][c] += weight;
          turns[0][turn(a, b)] += weight;
          turns[1][turn(a, c)] += weight;
          turns[2][turn(b, c)] += weight;
          k += 1;
        }
      }
    }
    const means = seen.map((shares) => CIRCLE.reduce((sum, spin, a) => add(sum, spin, shares[a] / total), [0, 0]));
    const [p, q, r] = turns.map((shares) =>
      TURNS.reduce((sum, angle, a) => sum + (2 * Math.cos(angle) * shares[a]) / total, 0));
    return { means, products: [[2, p, q], [p, 2, r], [q, r, 2]] };
  }

  // Rows of softmax(h A h^T).
  function shares(fields, scores) {
    return fields.map((query) => {
      const logits = fields.map((key) => dot(query, times(scores, key)));
      const highest = Math.max(...logits);
      const terms = logits.map((logit) => Math.exp(logit - highest));
      const sum = terms.reduce((a, b) => a + b, 0);
      return terms.map((term) => term / sum);
    });
  }

  // Mean spins and the induced term, sum_mn <s_m . s_n> dJ_mn/dh_i; with `reads` J = coupling softmax(h A h^T), else the
  // same number between any two spins.
  function response(fields, { beta, coupling, scores, reads }) {
    const read = shares(fields, scores);
    const J = fields.map((_, i) => fields.map((__, j) => coupling * (reads ? read[i][j] : i === j ? 0 : 0.5)));
    const { means, products } = moments(J, fields, beta);
    let induced = fields.map(() => [0, 0]);
    if (reads) {
      const slopes = J.map((row, m) => {
        const typical = products[m].reduce((sum, value, n) => sum + value * read[m][n], 0);
        return row.map((value, n) => value * (products[m][n] - typical));
      });
      const back = transposed(scores);
      induced = fields.map((_, i) =>
        fields.reduce((sum, field, j) =>
          add(add(sum, times(scores, field), slopes[i][j]), times(back, field), slopes[j][i]), [0, 0]));
    }
    return { means, induced, response: means.map((mean, i) => add(mean, induced[i])) };
  }

  const model = { moments, response };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models.collectives = model;

  const { number } = window.Live;
  const NAMES = ["top", "left", "right"];
  const length = (vector) => Math.hypot(...vector) / Math.SQRT2;

  window.Live.mount("collectives-live", (live, data) => {
    const { sites, scale, scores } = data;
    const copies = () => ({ fields: data.fields.map((h) => [...h]), beta: data.beta, coupling: data.coupling, reads: false });
    let state = copies();
    const found = () => response(state.fields, { ...state, scores });
    let now = found();
    live.name("Three spins in the plane: drag the fields, turn the coupling and beta");
    const stage = live.stage("", { x: [-3.1, 3.1], y: [-2.8, 3], shape: 5.8 / 6.2, draw: drawSpins });
    stage.box.style.maxWidth = "34rem";
    NAMES.forEach((name, k) => {
      live.point(stage, `Field of the ${name} spin`, {
        at: () => add(sites[k], state.fields[k], scale),
        step: 0.05,
        moved: (place) => {
          const field = add(place, sites[k], -1).map((value) => value / scale);
          const far = Math.max(1, Math.hypot(...field) / 2);
          state.fields[k] = field.map((value) => value / far);
        },
      });
    });
    const coupling = live.slider("coupling", {
      min: 0, max: 1, value: state.coupling, steps: 100, changed: (value) => { state.coupling = value; },
    });
    const beta = live.slider("β", {
      min: 0.1, max: 2, value: state.beta, log: true, changed: (value) => { state.beta = value; },
    });
    const reads = live.button("Let the couplings read the fields", () => { state.reads = !state.reads; });
    reads.setAttribute("aria-pressed", "false");
    live.button("Start again", () => {
      state = copies();
      coupling.set(state.coupling);
      beta.set(state.beta);
    });
    live.help(
      "Drag the tips of the green arrows, or tab to a tip and use the arrow keys. Lengths are in units of a spin.",
    );

    const draw = live.draw.bind(live);
    live.draw = () => {
      now = found();
      reads.setAttribute("aria-pressed", String(state.reads));
      reads.textContent = state.reads ? "Let the couplings be one number" : "Let the couplings read the fields";
      draw();
      const lengths = now.response.map(length);
      const best = lengths.indexOf(Math.max(...lengths));
      live.says(
        `β = ${number(state.beta)}, coupling ${number(state.coupling)}: the mean spins are ` +
          `${now.means.map((mean) => number(length(mean))).join(", ")} spins long (top, left, right). ` +
          (state.reads
            ? `The longest response, at the ${NAMES[best]} spin, is ${number(lengths[best])} spins long` +
              `${lengths[best] > 1 ? ", which no mean can be." : "."}`
            : state.coupling === 0
              ? "Each spin follows its own field alone."
              : "Each of them depends on all three fields."),
      );
    };

    function drawSpins(pen, drawn, colours) {
      const { toX, toY } = drawn;
      const unit = toX(1) - toX(0);
      sites.forEach((site, k) => {
        pen.beginPath();
        pen.arc(toX(site[0]), toY(site[1]), Math.SQRT2 * scale * unit, 0, 2 * Math.PI);
        pen.lineWidth = 1;
        pen.strokeStyle = colours.grey;
        pen.stroke();
        arrow(pen, drawn, site, state.fields[k], colours.green, 2, true);
        arrow(pen, drawn, site, now.means[k], colours.blue, 4.5, false);
        if (state.reads) arrow(pen, drawn, site, now.response[k], colours.purple, 2.5, false);
      });
      const list = NAMES.map((name, k) => `${name} ${number(length(now.means[k]))}`).join(", ");
      drawn.describe(`Three circles with arrows: fields and mean spins. Lengths of the means in spins: ${list}.`);
    }

    function arrow(pen, drawn, site, vector, colour, width, tip) {
      const [x, y] = [drawn.toX(site[0]), drawn.toY(site[1])];
      const end = add(site, vector, scale);
      const [left, top] = [drawn.toX(end[0]), drawn.toY(end[1])];
      const angle = Math.atan2(top - y, left - x);
      const head = 5 + 1.6 * width;
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(left, top);
      pen.stroke();
      pen.beginPath();
      if (tip) pen.arc(left, top, 7, 0, 2 * Math.PI);
      else {
        pen.moveTo(left + 0.4 * head * Math.cos(angle), top + 0.4 * head * Math.sin(angle));
        for (const side of [2.6, -2.6]) pen.lineTo(left + head * Math.cos(angle + side), top + head * Math.sin(angle + side));
      }
      pen.fill();
    }
  });
})();
