// The live model of the lesson adaptive-tap: three spins that all listen to each other, of which the first alone hears
// data. One coupling is moved; the exact means, those of naive mean field and those of adaptive TAP follow. The
// arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  const range = [0, 1, 2];
  const apart = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));
  // sum_j J_ij m_j for one coupling J between any two of the three.
  const heard = (coupling, means) => range.map((i) => coupling * (means[(i + 1) % 3] + means[(i + 2) % 3]));

  // <S_i> by going through the eight states, p(S) ~ exp(J (S_0 S_1 + S_0 S_2 + S_1 S_2) + x . S).
  function exact(coupling, fields) {
    const sums = [0, 0, 0];
    let total = 0;
    for (let state = 0; state < 8; state += 1) {
      const spins = range.map((i) => ((state >> i) & 1 ? 1 : -1));
      const pairs = spins[0] * spins[1] + spins[0] * spins[2] + spins[1] * spins[2];
      const weight = Math.exp(coupling * pairs + range.reduce((sum, i) => sum + fields[i] * spins[i], 0));
      total += weight;
      range.forEach((i) => { sums[i] += weight * spins[i]; });
    }
    return sums.map((sum) => sum / total);
  }

  // m = tanh(x + J m - V m) with V = echo(m), by steps of a part of the way.
  function settle(coupling, fields, echo, share) {
    let means = fields.map(Math.tanh);
    for (let step = 0; step < 6000; step += 1) {
      const variances = echo(means);
      const others = heard(coupling, means);
      const next = range.map((i) => Math.tanh(fields[i] + others[i] - variances[i] * means[i]));
      const change = apart(means, next);
      means = means.map((value, i) => value + share * (next[i] - value));
      if (change < 1e-15) break;
    }
    return { means, variances: echo(means) };
  }

  const naive = (coupling, fields) => settle(coupling, fields, () => [0, 0, 0], 0.5).means;

  // The inverse of a symmetric 3 x 3 matrix, by cofactors.
  function inverse(a) {
    const minor = (i, j) => {
      const [p, q] = range.filter((k) => k !== i);
      const [r, s] = range.filter((k) => k !== j);
      return a[p][r] * a[q][s] - a[p][s] * a[q][r];
    };
    const cofactors = range.map((i) => range.map((j) => ((i + j) % 2 ? -1 : 1) * minor(i, j)));
    const determinant = range.reduce((sum, j) => sum + a[0][j] * cofactors[0][j], 0);
    return range.map((i) => range.map((j) => cofactors[j][i] / determinant));
  }

  // V with 1 - m_i^2 = [(Lambda - J)^-1]_ii and Lambda_i = V_i + 1 / (1 - m_i^2): Newton's method on a convex function
  // of L_i = Lambda_i (1 - m_i^2), from outside, so that the matrix stays positive definite.
  function cavityVariances(coupling, means) {
    const own = means.map((m) => 1 - m * m);
    const W = range.map((i) => range.map((j) => (i === j ? 0 : coupling * Math.sqrt(own[i] * own[j]))));
    const K = (L) => inverse(range.map((i) => range.map((j) => (i === j ? L[i] : 0) - W[i][j])));
    let L = range.map((i) => 1 + W[i].reduce((sum, value) => sum + Math.abs(value), 0));
    for (let step = 0; step < 100; step += 1) {
      const inner = K(L);
      const excess = range.map((i) => inner[i][i] - 1);
      const bend = inverse(inner.map((row) => row.map((value) => value * value)));
      const move = bend.map((row) => row.reduce((sum, value, j) => sum + value * excess[j], 0));
      const decrement = Math.sqrt(Math.max(0, excess.reduce((sum, value, i) => sum + value * move[i], 0)));
      L = L.map((value, i) => value + move[i] * (decrement < 0.25 ? 1 : 1 / (1 + decrement)));
      if (decrement < 1e-12) break;
    }
    const inner = K(L);
    return range.map((i) => range.reduce((sum, j) => sum + W[i][j] * inner[j][i], 0) / own[i]);
  }

  const solved = (coupling, fields) => settle(coupling, fields, (means) => cavityVariances(coupling, means), 0.3);
  const adaptive = (coupling, fields) => solved(coupling, fields).means;

  const model = { exact, naive, adaptive, cavityVariances };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["adaptive-tap"] = model;

  const PLACES = [[0, 0.62], [-0.78, -0.5], [0.78, -0.5]];
  const { number } = window.Live;

  window.Live.mount("adaptive-tap-live", (live, data) => {
    const { fields, reach } = data;
    const couplings = Array.from({ length: 61 }, (_, k) => reach * (k / 30 - 1));
    const methods = [["true", exact, "ink"], ["naive", naive, "orange"], ["echo subtracted", adaptive, "green"]];
    const curves = methods.map(([, method]) => couplings.map((coupling) => method(coupling, fields)[0]));
    let coupling = data.coupling;
    live.name("Three spins that listen to each other: move the coupling");
    live.stage("", { x: [-1.35, 1.35], y: [-1.15, 1.25], shape: 0.8, draw: drawRing });
    live.stage("", { x: [-reach, reach], y: [-0.04, 1.04], shape: 0.8, grow: 1.2, draw: drawPlot });
    const slider = live.slider("coupling", {
      min: -reach, max: reach, value: coupling, changed: (value) => { live.stop(); coupling = value; },
    });
    live.button("Away from zero", () => {
      const from = 0;
      live.animate(1500, (share) => { coupling = from + share * reach; slider.set(coupling); });
    });
    live.button("Start again", () => { live.stop(); coupling = data.coupling; slider.set(coupling); });
    live.help(
      "Circles: the spins, with a bar for each mean from −1 to 1; the first alone hears data. Lines: the coupling, blue if " +
        "it aligns, brown if it opposes. Curves: the mean of the first spin against the coupling. Solid, and first bar: " +
        "true. Orange: naive mean field. Green: adaptive TAP. Keys: tab to the slider, then arrows.",
    );

    let now = [];
    const draw = live.draw.bind(live);
    live.draw = () => {
      now = methods.map(([, method]) => method(coupling, fields));
      draw();
      const [truth, loud, clean] = now.map((means) => number(means[0]));
      live.says(
        `Coupling ${number(coupling)}: the true mean of the first spin is ${truth}, as it is without any coupling. ` +
          `Naive mean field says ${loud}; with the echo subtracted it is ${clean}.`,
      );
    };

    function drawRing(pen, stage, colours) {
      const { toX, toY } = stage;
      const up = toY(0) - toY(0.34);
      pen.strokeStyle = coupling < 0 ? colours.brown : colours.blue;
      pen.lineWidth = 0.5 + 7 * Math.abs(coupling / reach);
      pen.beginPath();
      [...PLACES, PLACES[0]].forEach(([x, y], k) => (k ? pen.lineTo : pen.moveTo).call(pen, toX(x), toY(y)));
      pen.stroke();
      PLACES.forEach(([x, y], i) => {
        const [left, top] = [toX(x), toY(y)];
        pen.beginPath();
        pen.arc(left, top, 1.15 * up, 0, 2 * Math.PI);
        pen.fillStyle = colours.paper;
        pen.fill();
        pen.lineWidth = i ? 1 : 2.5;
        pen.strokeStyle = colours.grey;
        pen.stroke();
        methods.forEach(([, , colour], k) => {
          pen.fillStyle = colours[colour];
          const height = up * now[k][i];
          pen.fillRect(left + (k - 1.5) * 0.42 * up, top, 0.34 * up, -height);
        });
        pen.fillRect(left - 0.75 * up, top - 0.5, 1.5 * up, 1);
      });
      pen.fillStyle = colours.ink;
      pen.textAlign = "center";
      pen.fillText(`data ${number(fields[0])}`, toX(0), Math.max(12, toY(0.62) - 1.25 * up));
      const list = methods.map(([name], k) => `${name} ${now[k].map(number).join(", ")}`).join("; ");
      stage.describe(`Three spins. Means: ${list}.`);
    }

    function drawPlot(pen, stage, colours) {
      const { toX, toY } = stage;
      const line = (places) => {
        pen.beginPath();
        places.forEach(([x, y], k) => (k ? pen.lineTo : pen.moveTo).call(pen, toX(x), toY(y)));
        pen.stroke();
      };
      pen.lineWidth = 1;
      pen.strokeStyle = colours.grey;
      line([[-reach, 0], [reach, 0]]);
      pen.setLineDash([2, 3]);
      line([[coupling, 0], [coupling, 1]]);
      methods.forEach(([, , colour], k) => {
        pen.setLineDash([[], [7, 4], [7, 3, 2, 3]][k]);
        pen.strokeStyle = colours[colour];
        pen.lineWidth = 2;
        line(couplings.map((value, j) => [value, curves[k][j]]));
      });
      pen.setLineDash([]);
      methods.forEach(([, , colour], k) => {
        pen.fillStyle = colours[colour];
        pen.beginPath();
        pen.arc(toX(coupling), toY(now[k][0]), 5, 0, 2 * Math.PI);
        pen.fill();
      });
      pen.fillStyle = colours.grey;
      pen.textAlign = "left";
      pen.fillText("mean of the first spin", toX(-reach) + 4, toY(1) + 6);
      pen.fillText("coupling", toX(-reach) + 4, toY(0) - 5);
      pen.textAlign = "right";
      pen.fillText(number(reach), toX(reach) - 2, toY(0) - 5);
      stage.describe(
        `Mean of the first spin at coupling ${number(coupling)}: ` +
          methods.map(([name], k) => `${name} ${number(now[k][0])}`).join(", ") + ".",
      );
    }
  });
})();
