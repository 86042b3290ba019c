// The live model of the lesson free-energy: four coupled arrows in four fields; drag the fields, turn temperature and
// coupling, see the mean directions, the weights V^-1 / 2 and the free energy. The arithmetic stands first and is exported
// for tests.
(() => {
  "use strict";

  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const range = (n) => [...Array(n).keys()];

  // The lower triangle L with L L^T = matrix, or null if the matrix is not positive definite.
  function cholesky(matrix) {
    const n = matrix.length;
    const L = range(n).map(() => Array(n).fill(0));
    for (let j = 0; j < n; j += 1) {
      const left = matrix[j][j] - dot(L[j].slice(0, j), L[j].slice(0, j));
      if (!(left > 0)) return null;
      L[j][j] = Math.sqrt(left);
      for (let i = j + 1; i < n; i += 1) L[i][j] = (matrix[i][j] - dot(L[i].slice(0, j), L[j].slice(0, j))) / L[j][j];
    }
    return L;
  }

  function solve(L, right) {
    const n = L.length;
    const x = [...right];
    for (let i = 0; i < n; i += 1) {
      for (let k = 0; k < i; k += 1) x[i] -= L[i][k] * x[k];
      x[i] /= L[i][i];
    }
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let k = i + 1; k < n; k += 1) x[i] -= L[k][i] * x[k];
      x[i] /= L[i][i];
    }
    return x;
  }

  // Everything at t: phi, half of V^-1, mean directions, slope of phi, its second derivative; null outside V > 0.
  function at(t, fields, couplings, beta) {
    const n = t.length;
    const V = couplings.map((row, i) => row.map((value, j) => (i === j ? t[i] : 0) - value));
    const L = cholesky(V);
    if (!L) return null;
    const inverse = range(n).map((j) => solve(L, range(n).map((i) => (i === j ? 1 : 0))));
    const weights = inverse.map((row) => row.map((value) => value / 2));
    const means = weights.map((row) => fields[0].map((_, a) => dot(row, fields.map((field) => field[a]))));
    const logDet = 2 * L.reduce((sum, row, i) => sum + Math.log(row[i]), 0);
    const follow = means.reduce((sum, mean, i) => sum + dot(mean, fields[i]), 0);
    const phi = beta * t.reduce((sum, value) => sum + value, 0) - logDet / 2 + (beta / 2) * follow;
    const slope = means.map((mean, i) => beta * (1 - dot(mean, mean)) - inverse[i][i] / 2);
    const curvature = inverse.map((row, i) =>
      row.map((value, j) => value * (value / 2 + 2 * beta * dot(means[i], means[j]))));
    const residual = Math.max(...slope.map(Math.abs)) / beta;
    return { t, phi, weights, means, slope, curvature, residual };
  }

  // The springs t at which every arrow has length one on average: the minimum of phi, by Newton's method with steps that
  // stay inside V > 0 and go down.
  function saddle(fields, couplings, beta, { tolerance = 1e-14, most = 200 } = {}) {
    const a = 1 / (2 * beta);
    const start = fields.map((field, i) =>
      (a + Math.sqrt(a * a + dot(field, field))) / 2 + couplings[i].reduce((sum, value) => sum + Math.abs(value), 0));
    let here = at(start, fields, couplings, beta);
    for (let step = 0; step < most && here.residual > tolerance; step += 1) {
      const way = solve(cholesky(here.curvature), here.slope);
      let next = null;
      for (let length = 1; length > 1e-6; length /= 2) {
        next = at(here.t.map((value, i) => value - length * way[i]), fields, couplings, beta);
        if (next && (next.phi < here.phi || next.residual < here.residual)) break;
        next = null;
      }
      if (!next) break;
      here = next;
    }
    const n = fields.length;
    return { ...here, freeEnergy: -(here.phi - (n / 2) * (1 + Math.log(2 * beta))) / beta };
  }

  // Ink or paper, whichever stands out more from a share of a colour laid over the paper.
  function readable(colour, share, { ink, paper }) {
    const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, part, k) => sum + part * linear(rgb[k]), 0.05);
    const under = channels(paper);
    const ground = light(channels(colour).map((c, k) => share * c + (1 - share) * under[k]));
    const apart = (text) => Math.abs(Math.log(light(channels(text)) / ground));
    return apart(ink) > apart(paper) ? ink : paper;
  }

  const model = { saddle, readable };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["free-energy"] = model;

  const REACH = 1.2;
  const COLDEST = 0.05;
  const HOTTEST = 5;
  const { number } = window.Live;

  window.Live.mount("free-energy-live", (live, data) => {
    const { names } = data;
    const fresh = () => ({ fields: data.fields.map((h) => [...h]), temperature: data.temperature, strength: 1 });
    let state = fresh();
    live.name("Four coupled arrows: drag the fields, turn temperature and coupling");
    const plane = live.stage("", { x: [-REACH, REACH], y: [-REACH, REACH], draw: drawPlane });
    live.stage("", { shape: 1, grow: 0.8, draw: drawTable });
    live.stage("", { shape: 0.8, grow: 0.8, draw: drawCurve });

    const couplings = () => data.couplings.map((row) => row.map((value) => state.strength * value));
    const found = (temperature) => saddle(state.fields, couplings(), 1 / temperature);
    const ladder = range(60).map((k) => COLDEST * (HOTTEST / COLDEST) ** (k / 59));
    let now;
    let energies;
    function update() {
      now = found(state.temperature);
      energies = ladder.map((temperature) => found(temperature).freeEnergy / names.length);
      tell();
    }

    names.forEach((name, k) => {
      const place = () => state.fields[k];
      live.point(plane, `Field at ${name}`, { at: place, step: 0.05, moved: (to) => { state.fields[k] = to; update(); } });
    });
    const heat = live.slider("temperature", {
      min: COLDEST, max: HOTTEST, value: state.temperature, log: true,
      changed: (value) => { state.temperature = value; update(); },
    });
    const bond = live.slider("coupling", {
      min: 0, max: 3, value: 1, changed: (value) => { state.strength = value; update(); },
    });
    live.button("Start again", () => {
      state = fresh();
      heat.set(state.temperature);
      bond.set(1);
      update();
    });
    live.help(
      "Arrow keys move a field too. The circle has radius one. A and B pull at each other, so do B and C; C and D push. "
      + "Other pairs are not coupled.",
    );

    function tell() {
      const lengths = names.map((name, k) => `${name} ${number(Math.hypot(...now.means[k]))}`).join(", ");
      const [first, third] = [0, 2];
      live.says(
        `Temperature ${number(state.temperature)}: lengths ${lengths}. The field of ${names[third]} has the weight `
        + `${number(now.weights[first][third])} in ${names[first]}, without a bond between them. `
        + `Free energy per arrow ${number(now.freeEnergy / names.length)}.`,
      );
    }

    function drawPlane(pen, stage, colours) {
      const [x, y] = [stage.toX(0), stage.toY(0)];
      pen.strokeStyle = colours.faint;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(x, y, stage.toX(1) - x, 0, 2 * Math.PI);
      pen.stroke();
      state.fields.forEach((field, k) => {
        const [endX, endY] = [stage.toX(field[0]), stage.toY(field[1])];
        arrow(pen, colours.grey, 1.5, x, y, endX, endY);
        pen.beginPath();
        pen.arc(endX, endY, 11, 0, 2 * Math.PI);
        pen.fillStyle = colours.grey;
        pen.fill();
        write(pen, names[k], endX, endY + 1, colours.paper);
      });
      now.means.forEach((mean, k) => {
        const [endX, endY] = [stage.toX(mean[0]), stage.toY(mean[1])];
        arrow(pen, colours.blue, 3, x, y, endX, endY);
        const far = 13 / Math.max(1, Math.hypot(endX - x, endY - y));
        write(pen, names[k], endX + far * (endX - x), endY + far * (endY - y), colours.blue);
      });
      const list = names.map((name, k) => `${name} at ${now.means[k].map(number).join(", ")}`).join("; ");
      stage.describe(`A plane with four fields and four mean directions: ${list}.`);
    }

    function drawTable(pen, stage, colours) {
      const n = names.length;
      const room = 24;
      const edge = (stage.width - room) / n;
      const top = Math.max(...now.weights.flat().map(Math.abs));
      write(pen, "weight of each field in each arrow", stage.width / 2, 8, colours.ink);
      names.forEach((name, k) => {
        write(pen, name, room + (k + 0.5) * edge, room + 2, colours.grey);
        write(pen, name, room / 2, 2 * room - 12 + (k + 0.5) * (edge - 6), colours.grey);
      });
      now.weights.forEach((row, i) => row.forEach((value, j) => {
        const [left, upper, high] = [room + j * edge, 2 * room - 12 + i * (edge - 6), edge - 6];
        pen.globalAlpha = Math.abs(value) / top;
        pen.fillStyle = value > 0 ? colours.blue : colours.orange;
        pen.fillRect(left + 1, upper + 1, edge - 2, high - 2);
        pen.globalAlpha = 1;
        const ground = value > 0 ? colours.blue : colours.orange;
        write(pen, number(value), left + edge / 2, upper + high / 2, readable(ground, Math.abs(value) / top, colours));
      }));
      const list = now.weights.map((row, i) => `${names[i]}: ${row.map(number).join(", ")}`).join("; ");
      stage.describe(`Table of weights, to each arrow from A, B, C, D. ${list}.`);
    }

    function drawCurve(pen, stage, colours) {
      const [left, right, top, bottom] = [8, stage.width - 8, 30, stage.height - 44];
      const [low, high] = [Math.min(...energies), Math.max(...energies)];
      const across = (temperature) =>
        left + (Math.log(temperature / COLDEST) / Math.log(HOTTEST / COLDEST)) * (right - left);
      const down = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
      write(pen, "free energy per arrow", stage.width / 2, 8, colours.ink);
      pen.strokeStyle = colours.faint;
      pen.lineWidth = 1;
      pen.strokeRect(left, top - 8, right - left, bottom - top + 16);
      pen.strokeStyle = colours.blue;
      pen.lineWidth = 2;
      pen.beginPath();
      energies.forEach((value, k) => (k ? pen.lineTo : pen.moveTo).call(pen, across(ladder[k]), down(value)));
      pen.stroke();
      pen.fillStyle = colours.blue;
      pen.beginPath();
      pen.arc(across(state.temperature), down(now.freeEnergy / names.length), 5, 0, 2 * Math.PI);
      pen.fill();
      [[0.05, "left"], [0.5, "center"], [5, "right"]].forEach(([temperature, side]) => {
        write(pen, String(temperature), across(temperature), bottom + 19, colours.grey, side);
      });
      write(pen, "temperature", stage.width / 2, bottom + 35, colours.grey);
      write(pen, number(high), left + 4, top + 1, colours.grey, "left");
      write(pen, number(low), right - 4, bottom - 1, colours.grey, "right");
      stage.describe(`Free energy per arrow, from ${number(low)} at T = 0.05 to ${number(high)} at T = 5.`);
    }

    update();
  });

  function arrow(pen, colour, width, x, y, endX, endY) {
    const length = Math.hypot(endX - x, endY - y);
    if (length < 2) return;
    const [ux, uy] = [(endX - x) / length, (endY - y) / length];
    const head = Math.min(length, 4 + 2.5 * width);
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(endX - head * ux, endY - head * uy);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(endX, endY);
    pen.lineTo(endX - head * ux - (head / 2) * uy, endY - head * uy + (head / 2) * ux);
    pen.lineTo(endX - head * ux + (head / 2) * uy, endY - head * uy - (head / 2) * ux);
    pen.fill();
  }

  function write(pen, text, x, y, colour, side = "center") {
    pen.fillStyle = colour;
    pen.textAlign = side;
    pen.textBaseline = "middle";
    pen.fillText(text, x, y);
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
  }
})();
