// The live model of the lesson entropy-production: films of three spins in a ring, shown as they were taken or reversed.
// The reader guesses; then the evidence of the film is shown, and the entropy production, its mean over films per step.
// The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  const SPINS = 3;
  const STATES = 2 ** SPINS;
  const spin = (state, i) => ((state >> i) & 1 ? 1 : -1);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  // Each spin listens to its left neighbour with weight 1 and to its right one with weight 1 - asymmetry.
  function ring(asymmetry) {
    return range(SPINS).map((i) =>
      range(SPINS).map((j) => (j === (i + SPINS - 1) % SPINS ? 1 : j === (i + 1) % SPINS ? 1 - asymmetry : 0)),
    );
  }

  // P[new][old], all spins updated at once, each by 1 / (1 + exp(-2 beta s_i H_i)) with H_i = sum_j J_ij s'_j.
  function transitions(couplings, beta) {
    return range(STATES).map((now) =>
      range(STATES).map((old) =>
        range(SPINS).reduce((product, i) => {
          const field = sum(range(SPINS).map((j) => couplings[i][j] * spin(old, j)));
          return product / (1 + Math.exp(-2 * beta * spin(now, i) * field));
        }, 1),
      ),
    );
  }

  // p = P p with sum 1, by elimination.
  function stationary(P) {
    const rows = range(STATES).map((i) => [...P[i].map((value, j) => value - (i === j ? 1 : 0)), 0]);
    rows[STATES - 1] = [...Array(STATES).fill(1), 1];
    for (let k = 0; k < STATES; k += 1) {
      const best = range(STATES).slice(k).reduce((a, b) => (Math.abs(rows[b][k]) > Math.abs(rows[a][k]) ? b : a), k);
      [rows[k], rows[best]] = [rows[best], rows[k]];
      for (let i = 0; i < STATES; i += 1) {
        const factor = i === k ? 0 : rows[i][k] / rows[k][k];
        for (let j = k; factor && j <= STATES; j += 1) rows[i][j] -= factor * rows[k][j];
      }
    }
    return rows.map((row, k) => row[STATES] / row[k]);
  }

  // sum P(s|s') p(s') log(P(s|s') / P(s'|s)), in nats per step.
  function production(P, p) {
    return sum(P.flatMap((row, now) => row.map((value, old) => value * p[old] * Math.log(value / P[old][now]))));
  }

  // States at 0, 1, ..., one for each number in [0, 1): the first from p, the others from P.
  function film(uniforms, P, p) {
    const draw = (chances, u) => {
      let left = u;
      const found = chances.findIndex((chance) => (left -= chance) < 0);
      return found < 0 ? STATES - 1 : found;
    };
    const seen = [];
    uniforms.forEach((u, t) => seen.push(t ? draw(P.map((row) => row[seen[t - 1]]), u) : draw(p, u)));
    return seen;
  }

  // log of the probability of the first t steps over that of their reverse, for t = 0, 1, ...
  function evidence(seen, P, p) {
    let total = Math.log(p[seen[0]]);
    return seen.map((now, t) => {
      if (t) total += Math.log(P[now][seen[t - 1]] / P[seen[t - 1]][now]);
      return total - Math.log(p[now]);
    });
  }

  const model = { ring, transitions, stationary, production, film, evidence };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["entropy-production"] = model;

  // Mulberry32: numbers in [0, 1), the same for the same seed.
  function random(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let x = Math.imul(state ^ (state >>> 15), state | 1);
      x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
      return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
  }

  const { number } = window.Live;

  window.Live.mount("entropy-production-live", (live, data) => {
    const { steps } = data;
    const next = random(data.seed);
    let [asymmetry, beta] = [data.asymmetry, data.beta];
    const score = { films: 0, reader: 0, judge: 0 };
    let P, p, sigma, shown, nats, reversed, guess, at;
    live.name("Films of three spins: does each run forwards or backwards?");
    for (const [shape, draw] of [[0.17, drawFilm], [0.22, drawEvidence]]) {
      live.stage("", { shape, draw }).box.style.flexBasis = "100%";
    }

    function take() {
      live.stop();
      P = transitions(ring(asymmetry), beta);
      p = stationary(P);
      sigma = production(P, p);
      const seen = film(range(steps + 1).map(next), P, p);
      reversed = next() < 0.5;
      shown = reversed ? seen.reverse() : seen;
      nats = evidence(shown, P, p);
      guess = null;
      at = steps;
    }
    take();

    function play() {
      live.animate(160 * steps, (share) => { at = Math.round(share * steps); });
    }

    function answer(backwards) {
      if (guess !== null) return;
      guess = backwards;
      const last = nats[steps];
      score.films += 1;
      score.reader += backwards === reversed ? 1 : 0;
      score.judge += Math.abs(last) < 1e-9 ? 0.5 : (last < 0) === reversed ? 1 : 0;
    }

    live.button("Play", play);
    live.button("It runs forwards", () => answer(false));
    live.button("It runs backwards", () => answer(true));
    live.button("Next film", () => { take(); play(); });
    live.slider("asymmetry", { min: 0, max: 1, value: asymmetry, steps: 20, changed: (value) => { asymmetry = value; take(); } });
    live.slider("β (coldness)", { min: 0.2, max: 2, value: beta, steps: 18, changed: (value) => { beta = value; take(); } });
    live.help(
      "The circle shows the marked moment. Asymmetry 0: both neighbours count alike; 1: only the left one counts, which " +
        "is the line above (the first spin's is the last).",
    );

    const draw = live.draw.bind(live);
    live.draw = () => {
      draw();
      const last = nats[steps];
      const odds = Math.exp(Math.abs(last));
      const likelier = odds < 1.005 ? "as likely either way" :
        `${odds > 1e4 ? "over ten thousand" : number(odds)} times likelier ${last < 0 ? "backwards" : "forwards"}`;
      live.says(
        guess === null
          ? `Asymmetry ${number(asymmetry)}, β ${number(beta)}: does this film of ${steps} steps run forwards or backwards? ` +
            "Guess, with a button."
          : `${guess === reversed ? "Right" : "Wrong"}: it runs ${reversed ? "backwards" : "forwards"}. By what is ` +
            `shown it is ${likelier} (${number(last)} nats). Entropy production: ${number(sigma)} nats per step, ` +
            `${number(sigma * steps)} in a film on average. Right so far: you ${score.reader}, the best judge ` +
            `${score.judge}, of ${score.films}.`,
      );
    };

    function drawFilm(pen, stage, colours) {
      const { width, height } = stage;
      const left = Math.min(0.2 * width, 120);
      const cell = Math.min((width - left) / (steps + 1), height / SPINS);
      const top = (height - SPINS * cell) / 2;
      shown.forEach((state, t) => {
        for (let i = 0; i < SPINS; i += 1) {
          const [x, y] = [left + t * cell + 1, top + i * cell + 1];
          pen.fillStyle = spin(state, i) > 0 ? colours.blue : colours.faint;
          pen.globalAlpha = t > at ? 0.15 : 1;
          pen.fillRect(x, y, cell - 2, cell - 2);
        }
      });
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.orange;
      pen.lineWidth = 2;
      pen.strokeRect(left + at * cell, top - 3, cell, SPINS * cell + 6);
      const [middle, centre, radius] = [left * 0.42, height / 2, Math.min(left * 0.27, height * 0.3)];
      range(SPINS).forEach((i) => {
        const angle = (2 * Math.PI * i) / SPINS - Math.PI / 2;
        pen.beginPath();
        pen.arc(middle + radius * Math.cos(angle), centre + radius * Math.sin(angle), radius * 0.42, 0, 2 * Math.PI);
        pen.fillStyle = spin(shown[at], i) > 0 ? colours.blue : colours.paper;
        pen.fill();
        pen.strokeStyle = colours.blue;
        pen.stroke();
      });
      const ups = shown.map((state) => sum(range(SPINS).map((i) => (spin(state, i) > 0 ? 1 : 0))));
      stage.describe(`A film of three spins, ${steps + 1} moments. Spins up, moment by moment: ${ups.join(" ")}.`);
    }

    function drawEvidence(pen, stage, colours) {
      const { width, height } = stage;
      const most = Math.max(4, 1.15 * sigma * steps, ...nats.map(Math.abs));
      const place = (t, value) => [34 + ((width - 40) * t) / steps, height / 2 - (value / most) * (height / 2 - 16)];
      pen.lineWidth = 1;
      pen.strokeStyle = colours.grey;
      trace(pen, [place(0, 0), place(steps, 0)]);
      pen.fillStyle = colours.grey;
      pen.fillText("evidence (nats)", 0, 12);
      pen.fillText("forwards", 36, 28);
      pen.fillText("backwards", 36, height - 6);
      pen.fillText("0", 20, height / 2 + 5);
      pen.fillText("step", width - 34, height / 2 + 14);
      // Before the guess both directions have their average; afterwards the film's own is left.
      for (const way of guess === null ? [1, -1] : [reversed ? -1 : 1]) {
        pen.setLineDash([3, 3]);
        trace(pen, [place(0, 0), place(steps, way * sigma * steps)]);
        pen.setLineDash([]);
      }
      const [x, y] = place(steps / 2, sigma * steps / 2);
      if (guess === null) {
        pen.fillText("average of such films, either way", Math.max(36, x - 210), Math.max(44, y - 8));
        stage.describe(`The evidence of the film is hidden until you have guessed; films hold ${number(sigma * steps)} nats on average.`);
        return;
      }
      pen.lineWidth = 2;
      pen.strokeStyle = colours.orange;
      trace(pen, nats.map((value, t) => place(t, value)));
      stage.describe(`The evidence grows to ${number(nats[steps])} nats; on average films hold ${number(sigma * steps)}.`);
    }
  });

  function trace(pen, places) {
    pen.beginPath();
    places.forEach(([x, y], k) => (k ? pen.lineTo : pen.moveTo).call(pen, x, y));
    pen.stroke();
  }
})();
