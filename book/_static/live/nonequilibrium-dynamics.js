// The live model of the lesson nonequilibrium-dynamics: four tokens start from their values and make K updates towards
// the state of rest of their fields. Fields lie in a plane, so that the other components stay zero.
// The arithmetic stands first and is exported for tests. Vectors are over the radius R.
(() => {
  "use strict";

  const UPDATES = 12;
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const times = (matrix, v) => matrix.map((row) => dot(row, v));
  const direction = (v) => {
    const length = Math.hypot(...v) || 1;
    return [v[0] / length, v[1] / length];
  };

  // phi(h) = beta h / (1 + sqrt(1 + beta^2 |h|^2 / R^2)).
  const response = (h, beta) => {
    const gamma = Math.sqrt(1 + beta * beta * dot(h, h));
    return [(beta * h[0]) / (1 + gamma), (beta * h[1]) / (1 + gamma)];
  };

  // J_ij = softmax over j <= i of sharpness u_i . A u_j, with u the direction of a field.
  function couplings(fields, scores, sharpness) {
    const u = fields.map(direction);
    return u.map((a, i) => {
      const weights = u.map((b, j) => (j > i ? 0 : Math.exp(sharpness * dot(a, times(scores, b)))));
      const total = sum(weights);
      return weights.map((weight) => weight / total);
    });
  }

  const update = (fields, J, m, beta) =>
    fields.map((x, i) =>
      response([0, 1].map((c) => x[c] + sum(J[i].map((weight, j) => weight * m[j][c]))), beta),
    );

  // m(0), ..., m(UPDATES), and the state of rest.
  function relax(fields, { scores, values, sharpness }, beta) {
    const J = couplings(fields, scores, sharpness);
    const path = [fields.map((x) => response(times(values, direction(x)), beta))];
    while (path.length <= UPDATES) path.push(update(fields, J, path[path.length - 1], beta));
    let rest = path[UPDATES];
    for (let k = 0; k < 400; k += 1) rest = update(fields, J, rest, beta);
    return { J, path, rest };
  }

  const difference = (m, rest) => Math.sqrt(sum(m.map((a, i) => (a[0] - rest[i][0]) ** 2 + (a[1] - rest[i][1]) ** 2)));

  // |m(K) - m(rest)| / |m(0) - m(rest)| over all tokens, for K = 0, 1, ...
  const shares = ({ path, rest }) => path.map((m) => difference(m, rest) / (difference(path[0], rest) || 1));

  const model = { response, couplings, relax, shares };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["nonequilibrium-dynamics"] = model;
  const { number } = window.Live;
  const percent = (share) =>
    share > 0.1 ? (100 * share).toFixed(0) : share >= 1e-5 ? String(Number((100 * share).toPrecision(2))) : "less than 0.001";

  window.Live.mount("nonequilibrium-dynamics-live", (live, data) => {
    const fields = data.fields.map((x) => [...x]);
    let [beta, shown] = [data.beta, data.updates];
    let found, left;
    const settle = () => {
      found = relax(fields, data, beta);
      left = shares(found);
    };
    settle();
    live.name("Four tokens make updates towards their state of rest");
    const stage = live.stage("", { x: [-1.4, 8.6], y: [-1.9, 1.9], shape: 0.38, draw: drawTokens });
    stage.box.style.flexBasis = "100%";
    live.stage("", { shape: 0.26, draw: drawShares }).box.style.flexBasis = "100%";
    fields.forEach((x, i) => {
      const [left, up] = data.places[i];
      live.point(stage, `Field of token ${i + 1}`, {
        at: () => [left + x[0], up + x[1]],
        step: 0.05,
        moved: ([px, py]) => {
          [x[0], x[1]] = [px - left, py - up];
          const length = Math.hypot(...x);
          if (length > 1.6) [x[0], x[1]] = [(1.6 * x[0]) / length, (1.6 * x[1]) / length];
          if (length < 0.02) x[0] = 0.02;
          settle();
        },
      });
    });
    const updates = live.slider("updates K", {
      min: 0, max: UPDATES, value: shown, steps: UPDATES, format: (value) => String(Math.round(value)),
      changed: (value) => { shown = Math.round(value); },
    });
    const coldness = live.slider("β (coldness)", {
      min: 0.5, max: 8, value: beta, log: true, changed: (value) => { beta = value; settle(); },
    });
    live.button("Start again", () => {
      data.fields.forEach((x, i) => fields[i].splice(0, 2, ...x));
      [beta, shown] = [data.beta, data.updates];
      updates.set(shown);
      coldness.set(beta);
      settle();
    });
    live.help(
      "Green: the field of a token, to drag. Blue: its mean after K updates. Orange: its mean at rest. Each token attends " +
        "to itself and to those on its left.",
    );

    const draw = live.draw.bind(live);
    live.draw = () => {
      draw();
      live.says(
        `After ${shown} ${shown === 1 ? "update" : "updates"} at β ${number(beta)}, ${percent(left[shown])} per cent of ` +
          "the distance to rest is left.",
      );
    };

    function arrow(pen, stage, from, vector, colour, width) {
      const [x, y] = [stage.toX(from[0]), stage.toY(from[1])];
      const [tipX, tipY] = [stage.toX(from[0] + vector[0]), stage.toY(from[1] + vector[1])];
      const angle = Math.atan2(tipY - y, tipX - x);
      const head = Math.min(5 + 1.6 * width, Math.hypot(tipX - x, tipY - y));
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(tipX - 0.7 * head * Math.cos(angle), tipY - 0.7 * head * Math.sin(angle));
      pen.stroke();
      pen.beginPath();
      pen.moveTo(tipX, tipY);
      for (const turn of [-0.42, 0.42]) pen.lineTo(tipX - head * Math.cos(angle + turn), tipY - head * Math.sin(angle + turn));
      pen.fill();
    }

    function drawTokens(pen, stage, colours) {
      const radius = stage.toX(1) - stage.toX(0);
      data.places.forEach((place, i) => {
        pen.strokeStyle = colours.grey;
        pen.lineWidth = 1;
        pen.beginPath();
        pen.arc(stage.toX(place[0]), stage.toY(place[1]), radius, 0, 2 * Math.PI);
        pen.stroke();
        arrow(pen, stage, place, fields[i], colours.green, 1.4);
        arrow(pen, stage, place, found.rest[i], colours.orange, 2);
        arrow(pen, stage, place, found.path[shown][i], colours.blue, 3);
      });
      const lengths = found.path[shown].map((m) => number(Math.hypot(...m)));
      stage.describe(`Four tokens after ${shown} ${shown === 1 ? "update" : "updates"}; lengths of their magnetizations over R: ${lengths.join(", ")}.`);
    }

    function drawShares(pen, stage, colours) {
      const { width, height } = stage;
      const bottom = -8;
      const level = (power) => 18 + (power / bottom) * (height - 54);
      const across = (k) => 58 + ((width - 70) * k) / UPDATES;
      const place = (k) => [across(k), level(Math.max(bottom, Math.log10(Math.max(left[k], 1e-12))))];
      pen.fillStyle = colours.grey;
      for (const [power, label] of [[0, "100 %"], [-2, "1 %"], [-4, "0.01 %"], [-6, "10⁻⁴ %"], [-8, "10⁻⁶ %"]]) {
        pen.fillText(label, 0, level(power) + 4);
      }
      for (let k = 0; k <= UPDATES; k += 4) pen.fillText(String(k), across(k) - 4, height - 20);
      pen.fillText("updates K", across(UPDATES / 2) - 30, height - 4);
      pen.fillText("distance to rest that is left", across(3), 12);
      pen.strokeStyle = colours.blue;
      pen.lineWidth = 2;
      pen.beginPath();
      left.forEach((_, k) => (k ? pen.lineTo : pen.moveTo).call(pen, ...place(k)));
      pen.stroke();
      pen.fillStyle = colours.orange;
      pen.beginPath();
      pen.arc(...place(shown), 5.5, 0, 2 * Math.PI);
      pen.fill();
      stage.describe(`Per cent of the distance to rest left after 0 to ${UPDATES} updates: ${left.map(percent).join(", ")}.`);
    }
  });
})();
