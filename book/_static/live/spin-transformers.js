// The live model of the lesson spin-transformers: twelve trembling arrows in space, one of which attends more or less
// sharply; its mean as it is measured and as mean-field theory predicts it. The arithmetic stands first.
(() => {
  "use strict";

  const RADIUS = Math.sqrt(0.5); // R^2 = D / 2 - 1 with three components
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const size = (a) => Math.sqrt(dot(a, a));

  // coth k - 1 / k over k, the mean of an arrow in three dimensions over its argument.
  function gain(k) {
    if (k > 0.3) return (1 / Math.tanh(k) - 1 / k) / k;
    // The power series of coth, where the difference would lose its digits.
    const t = k * k;
    const terms = [1 / 3, -1 / 45, 2 / 945, -1 / 4725, 2 / 93555, -1382 / 638512875, 4 / 18243225, -3617 / 162820783125];
    return terms.reduceRight((sum, term) => term + t * sum, 0);
  }

  // The mean of an arrow in the field h.
  function response(h, beta) {
    const scale = beta * RADIUS * RADIUS * gain(beta * RADIUS * size(h));
    return h.map((value) => scale * value);
  }

  // The first arrow attends to the others, by softmax of sharpness times logits; the others attend to nobody.
  function couplings(logits, sharpness) {
    const highest = Math.max(...logits);
    const terms = logits.map((logit) => Math.exp(sharpness * (logit - highest)));
    const total = terms.reduce((sum, term) => sum + term, 0);
    const first = [0, ...terms.map((term) => term / total)];
    return first.map((_, i) => first.map((share) => (i ? 0 : share)));
  }

  const attended = (row) => 1 / row.reduce((sum, share) => sum + share * share, 0);

  function field(i, J, arrows, fields) {
    const h = [...fields[i]];
    J[i].forEach((share, j) => {
      for (let c = 0; c < 3; c += 1) h[c] += share * arrows[j][c];
    });
    return h;
  }

  // m = response(x + J m), by updates until nothing moves.
  function predicted(J, fields, beta, most = 4000) {
    let m = fields.map((x) => response(x, beta));
    for (let step = 0; step < most; step += 1) {
      const next = m.map((_, i) => response(field(i, J, m, fields), beta));
      const moved = Math.max(...next.map((row, i) => Math.max(...row.map((value, c) => Math.abs(value - m[i][c])))));
      m = next;
      if (moved < 1e-16) break;
    }
    return m;
  }

  // The unit of every error on the page: how far attention moves the predicted mean from that without attention.
  const apart = (a, b) => size(a.map((value, c) => value - b[c]));
  const changed = (guess, alone) => Math.max(1e-9, apart(guess, alone));
  const missed = (guess, mean, alone) => apart(guess, mean) / changed(guess, alone);

  // Random numbers from 0 to 1 that a seed decides (mulberry32).
  function generator(seed) {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  // One arrow with density proportional to exp(beta s . h).
  function draw(h, beta, random) {
    const length = size(h);
    const k = beta * RADIUS * length;
    const turn = 2 * Math.PI * random();
    const chance = random();
    const along = k < 1e-9 ? 2 * chance - 1 : 1 + Math.log(chance + (1 - chance) * Math.exp(-2 * k)) / k;
    const across = Math.sqrt(Math.max(0, 1 - along * along));
    const n = length > 0 ? h.map((value) => value / length) : [0, 0, 1];
    const helper = Math.abs(n[0]) < 0.7 ? [1, 0, 0] : [0, 1, 0];
    const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const raw = cross(n, helper);
    const one = raw.map((value) => value / size(raw));
    const two = cross(n, one);
    const [c, s] = [across * Math.cos(turn), across * Math.sin(turn)];
    return n.map((value, i) => RADIUS * (along * value + c * one[i] + s * two[i]));
  }

  // All arrows of one copy of the system, drawn anew in the fields of those before.
  function tick(arrows, J, fields, beta, random) {
    return arrows.map((_, i) => draw(field(i, J, arrows, fields), beta, random));
  }

  const model = { gain, response, couplings, attended, predicted, missed, generator, draw, tick };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["spin-transformers"] = model;

  const COPIES = 120;
  const SETTLE = 15;
  const ENOUGH = 260;
  const { number } = window.Live;

  window.Live.mount("spin-transformers-live", (live, data) => {
    const fresh = () => ({
      fields: data.fields.map((x) => [...x]), sharpness: data.sharpness, beta: data.beta, logits: data.logits,
    });
    let state = fresh();
    const random = generator(2666);
    let copies = Array.from({ length: COPIES }, () => state.fields.map((x) => draw(x, state.beta, random)));
    let J, m, alone, ticks, sums, squares, trace = [];
    live.name("Twelve trembling arrows: sharpen the attention of the blue one, turn beta, drag its input");
    const reach = [-1.12 * RADIUS, 1.12 * RADIUS];
    const sky = live.stage("", { x: reach, y: reach, grow: 1.2, draw: drawSky });
    live.stage("", { x: [-0.2, data.logits.length + 0.6], y: [-0.2, 1.04], shape: 0.95, draw: drawChart });

    function advance() {
      copies = copies.map((arrows) => tick(arrows, J, state.fields, state.beta, random));
      ticks += 1;
      if (ticks <= SETTLE) return;
      // One average over the copies at a time: their scatter over time tells the error.
      const now = state.fields.map((_, i) => [0, 1, 2].map((c) => copies.reduce((sum, a) => sum + a[i][c], 0) / COPIES));
      sums = sums.map((row, i) => row.map((value, c) => value + now[i][c]));
      squares = squares.map((value, c) => value + now[0][c] ** 2);
    }

    function restart() {
      J = couplings(state.logits, state.sharpness);
      m = predicted(J, state.fields, state.beta);
      alone = response(state.fields[0], state.beta);
      ticks = 0;
      sums = state.fields.map(() => [0, 0, 0]);
      squares = [0, 0, 0];
      live.animate(9000, (share) => {
        const until = share === 1 ? ENOUGH : Math.min(ENOUGH, ticks + 2);
        while (ticks < until) advance();
        if (share === 1) trace = [...trace.slice(-40), [attended(J[0]), gap()]];
      });
    }

    const count = () => Math.max(1, ticks - SETTLE);
    const measured = (i) => sums[i].map((value) => value / count());
    const gap = () => missed(m[0], measured(0), alone);
    const error = () => {
      const spread = squares.reduce((sum, value, c) => sum + Math.max(0, value / count() - measured(0)[c] ** 2), 0);
      return Math.sqrt(spread / count()) / changed(m[0], alone);
    };

    const sharp = live.slider("sharpness", {
      min: 0, max: 12, value: state.sharpness, changed: (value) => { state.sharpness = value; restart(); },
    });
    const cold = live.slider("β", {
      min: 1, max: 16, value: state.beta, log: true, changed: (value) => { state.beta = value; trace = []; restart(); },
    });
    live.point(sky, "Input of the blue arrow", {
      at: () => state.fields[0].slice(0, 2), step: 0.02,
      moved: (place) => { state.fields[0].splice(0, 2, ...place); trace = []; restart(); },
    });
    live.button("Start again", () => {
      state = fresh();
      trace = [];
      sharp.set(state.sharpness);
      cold.set(state.beta);
      restart();
    });
    live.help(
      "First picture, the arrows seen from above: blue, measured mean and momentary tips of one arrow; orange square, " +
        "the prediction; cross, the mean without attention; grey, the other means; ring, the blue arrow's input, which can " +
        "be dragged. Second picture, the weights of its row, and the distance from the prediction to the measured mean over " +
        "that from the prediction to the cross, at most 1; open dots are settings that you have left.",
    );

    const drawAll = live.draw.bind(live);
    live.draw = () => {
      drawAll();
      live.says(
        `β = ${number(state.beta)}: the blue arrow attends to ${attended(J[0]).toFixed(1)} of ${m.length - 1}. Its mean is ` +
          `${number(size(m[0]) / RADIUS)} R long as predicted and ${number(size(measured(0)) / RADIUS)} R as measured; ` +
          `the prediction misses ${Math.round(100 * gap())} ± ${Math.max(1, Math.round(100 * error()))} per cent of what ` +
          `attention changes.`,
      );
    };

    function drawSky(pen, stage, colours) {
      const { toX, toY } = stage;
      pen.lineWidth = 1;
      pen.strokeStyle = colours.faint;
      pen.beginPath();
      pen.arc(toX(0), toY(0), toX(RADIUS) - toX(0), 0, 2 * Math.PI);
      pen.stroke();
      pen.fillStyle = colours.blue;
      pen.globalAlpha = 0.35;
      for (const arrows of copies) disc(pen, toX(arrows[0][0]), toY(arrows[0][1]), 2);
      pen.globalAlpha = 1;
      for (let i = 1; i < m.length; i += 1) arrow(pen, stage, measured(i), colours.grey, 1.5);
      arrow(pen, stage, measured(0), colours.blue, 4);
      arrow(pen, stage, m[0], colours.orange, 2, [6, 4]);
      pen.fillStyle = colours.orange;
      pen.fillRect(toX(m[0][0]) - 5, toY(m[0][1]) - 5, 10, 10);
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.beginPath();
      for (const side of [1, -1]) {
        pen.moveTo(toX(alone[0]) - 5, toY(alone[1]) - 5 * side);
        pen.lineTo(toX(alone[0]) + 5, toY(alone[1]) + 5 * side);
      }
      pen.stroke();
      pen.strokeStyle = colours.blue;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(toX(state.fields[0][0]), toY(state.fields[0][1]), 7, 0, 2 * Math.PI);
      pen.stroke();
      stage.describe(
        `A circle with twelve arrows from its centre; the predicted mean of the blue one misses ` +
          `${Math.round(100 * gap())} per cent of what attention changes.`,
      );
    }

    function drawChart(pen, stage, colours) {
      const { toX, toY } = stage;
      const floor = toY(0);
      pen.strokeStyle = colours.grey;
      pen.fillStyle = colours.ink;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(toX(0.6), toY(1));
      pen.lineTo(toX(0.6), floor);
      pen.lineTo(stage.width, floor);
      pen.stroke();
      for (let n = 1; n < m.length; n += 2) pen.fillText(String(n), toX(n) - 4, floor + 15);
      pen.fillText("arrows attended to", toX(3), floor + 31);
      pen.fillText("part missed; bars: weights", toX(0.8), toY(0.97));
      for (const level of [0.2, 0.4, 0.6, 0.8]) pen.fillText(level.toFixed(1), 0, toY(level) + 4);
      J[0].slice(1).forEach((share, j) => {
        pen.globalAlpha = 0.3;
        pen.fillStyle = colours.ochre;
        pen.fillRect(toX(j + 1) - 6, toY(0.8 * share), 12, floor - toY(0.8 * share));
      });
      pen.globalAlpha = 1;
      pen.lineWidth = 1.5;
      pen.strokeStyle = colours.blue;
      for (const [n, distance] of trace) {
        pen.beginPath();
        pen.arc(toX(n), toY(Math.min(1, distance)), 4, 0, 2 * Math.PI);
        pen.stroke();
      }
      pen.fillStyle = colours.blue;
      disc(pen, toX(attended(J[0])), toY(Math.min(1, gap())), 6);
      stage.describe(
        `Weights of the blue arrow's row: ${J[0].slice(1).map((share) => `${Math.round(100 * share)} %`).join(", ")}. Part missed ` +
          `${number(gap())} at ${attended(J[0]).toFixed(1)} arrows attended to.`,
      );
    }

    restart();
  });

  function disc(pen, x, y, radius) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  }

  function arrow(pen, stage, tip, colour, width, dash = []) {
    const [x0, y0, x1, y1] = [stage.toX(0), stage.toY(0), stage.toX(tip[0]), stage.toY(tip[1])];
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
    const way = Math.atan2(y1 - y0, x1 - x0);
    const head = 4 + 1.5 * width;
    pen.beginPath();
    pen.moveTo(x1, y1);
    for (const side of [0.42, -0.42]) pen.lineTo(x1 - head * Math.cos(way + side), y1 - head * Math.sin(way + side));
    pen.fill();
  }
})();
