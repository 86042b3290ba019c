// The live model of the lesson kinetic-ising: a crowd of spins that influence each other, run many times with random
// numbers, beside its mean by the naive equation and by TAP. The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  // Couplings 1 / N + disorder z / sqrt(N), a row for each spin that they act on.
  function couplings(z, disorder) {
    const n = z.length;
    return z.map((row) => row.map((value) => 1 / n + (disorder * value) / Math.sqrt(n)));
  }

  function drive(m, J, x, beta) {
    return J.map((row, i) => beta * row.reduce((sum, value, j) => sum + value * m[j], x[i]));
  }

  // m = tanh(beta (x + J m)).
  const naive = (m, J, x, beta) => drive(m, J, x, beta).map(Math.tanh);

  // The m with m = tanh(a - b m): Newton's method for the field theta = a - b tanh(theta), from below.
  function respond(a, b) {
    const size = Math.abs(a);
    let theta = Math.max(size / (1 + b), size - b);
    for (let step = 0; step < 40; step += 1) {
      const m = Math.tanh(theta);
      const change = (size - theta - b * m) / (1 + b * (1 - m * m));
      theta += change;
      if (Math.abs(change) <= 1e-16 * size) break;
    }
    return Math.sign(a) * Math.tanh(theta);
  }

  function tap(m, J, x, beta) {
    const variance = J.map((row) => row.reduce((sum, value, j) => sum + value * value * (1 - m[j] * m[j]), 0));
    return drive(m, J, x, beta).map((a, i) => respond(a, beta * beta * variance[i]));
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // Means of the crowd at ticks 0, 1, ..., from all spins up.
  function course(step, J, x, beta, ticks) {
    let m = x.map(() => 1);
    const means = [1];
    for (let t = 0; t < ticks; t += 1) {
      m = step(m, J, x, beta);
      means.push(mean(m));
    }
    return means;
  }

  // Mulberry32: numbers from 0 to 1, the same for the same seed, so that the runs change smoothly with a slider.
  function generator(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let value = Math.imul(state ^ (state >>> 15), state | 1);
      value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
      return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
    };
  }

  // Independent runs: the mean over runs and spins at each tick, its standard error, and beta times the field
  // of one spin in the second half.
  function sample(J, x, beta, { ticks, runs, listener = 0, seed = 1 }) {
    const n = x.length;
    const random = generator(seed);
    const sums = Array.from({ length: ticks + 1 }, () => [0, 0]);
    const heard = [];
    const flat = Float64Array.from(J.flat());
    let [s, next] = [new Float64Array(n), new Float64Array(n)];
    for (let run = 0; run < runs; run += 1) {
      s.fill(1);
      for (let t = 0; t <= ticks; t += 1) {
        let total = 0;
        for (let i = 0; i < n; i += 1) total += s[i];
        sums[t][0] += total / n;
        sums[t][1] += (total / n) ** 2;
        if (t === ticks) break;
        for (let i = 0; i < n; i += 1) {
          let field = x[i];
          for (let j = 0, at = i * n; j < n; j += 1, at += 1) field += flat[at] * s[j];
          if (i === listener && 2 * t >= ticks) heard.push(beta * field);
          next[i] = random() * (1 + Math.exp(-2 * beta * field)) < 1 ? 1 : -1;
        }
        [s, next] = [next, s];
      }
    }
    const means = sums.map(([first]) => first / runs);
    const errors = sums.map(([, second], t) => Math.sqrt(Math.max(0, second / runs - means[t] ** 2) / (runs - 1)));
    return { means, errors, heard };
  }

  const model = { couplings, naive, tap, course, sample };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["kinetic-ising"] = model;

  const REACH = 4;
  const BINS = 48;
  const { number } = window.Live;

  window.Live.mount("kinetic-ising-live", (live, data) => {
    const z = data.z.map((row) => row.map((value) => value / 100));
    const x = data.x.map((value) => value / 100);
    const { ticks, runs, listener } = data;
    const first = () => ({ beta: data.beta, disorder: data.disorder, seed: 1 });
    let state = first();
    let now = null;
    live.name("A crowd of spins: turn beta and the disorder of the couplings, compare two equations with random runs");

    function found() {
      const { beta, disorder, seed } = state;
      const J = couplings(z, disorder);
      const runs_ = sample(J, x, beta, { ticks, runs, listener, seed });
      const courses = { naive: course(naive, J, x, beta, ticks), TAP: course(tap, J, x, beta, ticks) };
      const centre = mean(runs_.heard);
      now = { ...courses, ...runs_, centre, answer: mean(runs_.heard.map(Math.tanh)) };
      const end = (values) => number(values[ticks]);
      live.says(
        `β = ${number(beta)}, disorder ${number(disorder)}. After ${ticks} ticks: sampled ${end(now.means)} ± ` +
          `${number(now.errors[ticks])}, naive ${end(now.naive)}, TAP ${end(now.TAP)}. The field of one spin, times β, is ` +
          `${number(centre)} on average: tanh of the average ${number(Math.tanh(centre))}, average of tanh ${number(now.answer)}.`,
      );
    }

    const change = (part) => {
      state = { ...state, ...part };
      found();
    };
    const crowd = live.stage("", { x: [-1, ticks + 1], y: [-0.3, 1.12], shape: 0.72, grow: 1.25, draw: drawCrowd });
    const spin = live.stage("", { x: [-REACH, REACH], y: [-1.3, 1.15], shape: 0.9, draw: drawSpin });
    const betaSlider = live.slider("β", {
      min: 0.2, max: 4, value: state.beta, log: true, changed: (beta) => change({ beta }),
    });
    const disorderSlider = live.slider("disorder", {
      min: 0, max: 1, value: state.disorder, steps: 100, changed: (disorder) => change({ disorder }),
    });
    live.button("Other random numbers", () => change({ seed: state.seed + 1 }));
    live.button("Start again", () => {
      state = first();
      betaSlider.set(state.beta);
      disorderSlider.set(state.disorder);
      found();
    });
    live.help(
      "Grey: how often one of the spins meets which field. Curve: its answer, tanh. Square: the answer to the average " +
        "field. Diamond: the average of the answers.",
    );
    found();

    function axes(pen, stage, colours, from, to) {
      pen.strokeStyle = colours.faint;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(stage.toX(from), stage.toY(0));
      pen.lineTo(stage.toX(to), stage.toY(0));
      pen.stroke();
    }

    function line(pen, stage, values, colour, dash) {
      pen.strokeStyle = colour;
      pen.lineWidth = 2.2;
      pen.setLineDash(dash);
      pen.beginPath();
      values.forEach(([a, b], k) => (k ? pen.lineTo : pen.moveTo).call(pen, stage.toX(a), stage.toY(b)));
      pen.stroke();
      pen.setLineDash([]);
    }

    function write(pen, text, left, top, colour, align = "left") {
      pen.fillStyle = colour;
      pen.textAlign = align;
      pen.fillText(text, left, top);
      pen.textAlign = "left";
    }

    function dot(pen, px, py, colours) {
      pen.beginPath();
      pen.arc(px, py, 3.6, 0, 2 * Math.PI);
      pen.fillStyle = colours.paper;
      pen.fill();
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.5;
      pen.stroke();
    }

    function diamond(pen, px, py, colours) {
      pen.beginPath();
      [[0, -6], [6, 0], [0, 6], [-6, 0]].forEach(([dx, dy]) => pen.lineTo(px + dx, py + dy));
      pen.closePath();
      pen.fillStyle = colours.paper;
      pen.fill();
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.5;
      pen.stroke();
    }

    function drawCrowd(pen, stage, colours) {
      axes(pen, stage, colours, 0, ticks);
      const numbered = (values) => values.map((value, t) => [t, value]);
      line(pen, stage, numbered(now.naive), colours.orange, [7, 4]);
      line(pen, stage, numbered(now.TAP), colours.blue, []);
      for (let t = 0; t <= ticks; t += 2) {
        const [px, py] = [stage.toX(t), stage.toY(now.means[t])];
        pen.strokeStyle = colours.ink;
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(px, stage.toY(now.means[t] - now.errors[t]));
        pen.lineTo(px, stage.toY(now.means[t] + now.errors[t]));
        pen.stroke();
        dot(pen, px, py, colours);
      }
      const bottom = stage.height - 6;
      write(pen, "mean of the crowd", 4, 13, colours.ink);
      write(pen, "naive", stage.width - 96, 13, colours.orange);
      write(pen, "TAP", stage.width - 52, 13, colours.blue);
      for (const m of [0, 1]) write(pen, `${m}`, stage.toX(0) - 10, stage.toY(m) + 4, colours.grey);
      write(pen, `tick ${ticks}`, stage.toX(ticks), bottom, colours.grey, "right");
      const [a, b, c] = [now.means, now.naive, now.TAP].map((values) => number(values[ticks]));
      stage.describe(`Mean of the crowd against time. At the end: sampled ${a}, naive ${b}, TAP ${c}.`);
    }

    function drawSpin(pen, stage, colours) {
      const counts = new Array(BINS).fill(0);
      for (const value of now.heard) {
        const bin = Math.floor(((value + REACH) / (2 * REACH)) * BINS);
        if (bin >= 0 && bin < BINS) counts[bin] += 1;
      }
      const highest = Math.max(1, ...counts);
      pen.fillStyle = colours.faint;
      counts.forEach((count, k) => {
        const left = stage.toX(-REACH + (2 * REACH * k) / BINS);
        const right = stage.toX(-REACH + (2 * REACH * (k + 1)) / BINS);
        const top = stage.toY(-1.3 + (1.1 * count) / highest);
        pen.fillRect(left, top, right - left, stage.toY(-1.3) - top);
      });
      axes(pen, stage, colours, -REACH, REACH);
      const curve = Array.from({ length: 101 }, (_, k) => -REACH + (2 * REACH * k) / 100).map((h) => [h, Math.tanh(h)]);
      line(pen, stage, curve, colours.ink, []);
      const [px, py] = [stage.toX(now.centre), stage.toY(Math.tanh(now.centre))];
      pen.fillStyle = colours.orange;
      pen.fillRect(px - 5, py - 5, 10, 10);
      diamond(pen, px, stage.toY(now.answer), colours);
      write(pen, "its answer", 4, 13, colours.ink);
      for (const h of [-2, 2]) write(pen, number(h).replace(".00", ""), stage.toX(h) - 4, stage.toY(0) - 5, colours.grey);
      for (const m of [-1, 1]) write(pen, number(m).replace(".00", ""), stage.toX(0) + 4, stage.toY(m) + 4, colours.grey);
      write(pen, "field of one spin, times β", stage.width - 4, stage.toY(0) + 16, colours.grey, "right");
      stage.describe(
        `Field of one spin, and tanh. tanh of the average ${number(Math.tanh(now.centre))}, average of tanh ${number(now.answer)}.`,
      );
    }
  });
})();
