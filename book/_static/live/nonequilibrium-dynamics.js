// The live model of the lesson nonequilibrium-dynamics: four tokens start from their values and make K updates towards
// the state of rest of their fields. Fields lie in a plane, so that only the radius knows of the other components.
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

  // sum_i R^2 (log((1 - r^2) / (1 - m^2)) + 2 (r^2 - m . r) / (1 - r^2)), in nats, for m and r over R.
  const mismatch = (m, rest, radius) =>
    radius ** 2 *
    sum(m.map((a, i) => {
      const [own, square] = [1 - dot(a, a), 1 - dot(rest[i], rest[i])];
      return Math.log(square / own) + (2 * (1 - square - dot(a, rest[i]))) / square;
    }));

  const model = { response, couplings, relax, mismatch };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["nonequilibrium-dynamics"] = model;
  const { number } = window.Live;
  const small = (value) => (value >= 0.01 ? number(value) : value > 1e-9 ? value.toExponential(1).replace("-", "−") : "0");

  window.Live.mount("nonequilibrium-dynamics-live", (live, data) => {
    const fields = data.fields.map((x) => [...x]);
    let [beta, shown] = [data.beta, data.updates];
    let found, nats;
    const settle = () => {
      found = relax(fields, data, beta);
      nats = found.path.map((m) => Math.max(0, mismatch(m, found.rest, data.radius)));
    };
    settle();
    live.name("Four tokens make updates towards their state of rest");
    const stage = live.stage("", { x: [-1.4, 8.6], y: [-1.9, 1.9], shape: 0.38, draw: drawTokens });
    stage.box.style.flexBasis = "100%";
    live.stage("", { shape: 0.26, draw: drawMismatch }).box.style.flexBasis = "100%";
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
      "Green: the field of a token, to drag. Blue: its magnetization after K updates. Orange: where it will come to " +
        "rest. Each token listens to itself and to those on its left. Below: the mismatch after every number of updates.",
    );

    const draw = live.draw.bind(live);
    live.draw = () => {
      draw();
      const gap = Math.sqrt(sum(found.path[shown].map((m, i) => dot2(m, found.rest[i]))));
      const length = Math.sqrt(sum(found.rest.map((m) => dot(m, m))));
      live.says(
        `After ${shown} ${shown === 1 ? "update" : "updates"} at β ${number(beta)} the tokens are ` +
          `${small(gap / length)} of the length of their state of rest away from it; the mismatch is ` +
          `${small(nats[shown])} nats.`,
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

    function drawMismatch(pen, stage, colours) {
      const { width, height } = stage;
      const [top, bottom] = [2.5, -12];
      const place = (k) => {
        const level = Math.max(bottom, Math.min(top, Math.log10(Math.max(nats[k], 1e-12))));
        return [44 + ((width - 54) * k) / UPDATES, 8 + ((top - level) / (top - bottom)) * (height - 30)];
      };
      pen.fillStyle = colours.grey;
      for (const power of [2, -2, -6, -10]) {
        const y = 8 + ((top - power) / (top - bottom)) * (height - 30);
        pen.fillText(power === 2 ? "100" : `1e−${-power}`, 0, y + 4);
      }
      pen.fillText("mismatch (nats)", 60, height - 6);
      pen.fillText("K", width - 12, height - 6);
      pen.strokeStyle = colours.blue;
      pen.lineWidth = 2;
      pen.beginPath();
      nats.forEach((_, k) => (k ? pen.lineTo : pen.moveTo).call(pen, ...place(k)));
      pen.stroke();
      pen.fillStyle = colours.orange;
      pen.beginPath();
      pen.arc(...place(shown), 5.5, 0, 2 * Math.PI);
      pen.fill();
      stage.describe(`Mismatch after 0 to ${UPDATES} updates: ${nats.map(small).join(", ")} nats.`);
    }
  });

  function dot2(a, b) {
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;
  }
})();
