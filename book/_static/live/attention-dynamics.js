// The live model of the lesson attention-dynamics: two copies of one loop that start one millionth apart; turn beta, see
// them stay together or part, and the exponent. The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  // Overlaps [kind][feature] of the token that the attention A makes at position t: output, value, query, key.
  function overlaps(net, A, t, beta) {
    const place = ((t % 4) + 4) % 4;
    const bits = [place & 2 ? 1 : -1, place & 1 ? 1 : -1];
    const segments = net.semantic[0][0].length;
    const mean = Array.from({ length: segments }, (_, s) =>
      Math.tanh(beta * A.reduce((sum, a, b) => sum + a * net.semantic[0][b][s], 0)));
    return net.semantic.map((features, kind) => features.map((signs, a) => {
      const semantic = signs.reduce((sum, sign, s) => sum + sign * mean[s], 0) / segments;
      const positional = net.positional[kind][a].reduce((sum, sign, p) => sum + sign * bits[p], 0) / 2;
      return (1 - net.epsilon) * semantic + net.epsilon * positional;
    }));
  }

  // One token: the window (attention vectors, newest first) after it, the output overlaps without the position, and the
  // overlaps of all tokens, of which the next step may be given the older ones.
  function step(net, window, t, beta, older) {
    const tokens = older
      ? [overlaps(net, window[0], t, beta), ...older.slice(0, window.length - 1)]
      : window.map((A, k) => overlaps(net, A, t - k, beta));
    const logits = tokens.map((m) => net.gamma * m[3].reduce((sum, key, a) => sum + key * tokens[0][2][a], 0));
    const highest = Math.max(...logits);
    const terms = logits.map((logit) => Math.exp(logit - highest));
    const total = terms.reduce((sum, term) => sum + term, 0);
    const next = window[0].map((_, a) => tokens.reduce((sum, m, k) => sum + (terms[k] / total) * m[1][a], 0));
    const place = ((t % 4) + 4) % 4;
    const bits = [place & 2 ? 1 : -1, place & 1 ? 1 : -1];
    const output = tokens[0][0].map((m, a) =>
      m - (net.epsilon * net.positional[0][a].reduce((sum, sign, p) => sum + sign * bits[p], 0)) / 2);
    return { window: [next, ...window.slice(0, -1)], output, tokens };
  }

  function run(net, window, beta, steps, t = 0) {
    const outputs = [];
    const attention = [];
    let tokens;
    for (let n = 0; n < steps; n += 1) {
      const after = step(net, window, t + n, beta, tokens);
      ({ window, tokens } = after);
      outputs.push(after.output);
      attention.push(window[0]);
    }
    return { window, outputs, attention };
  }

  const size = (window) => Math.hypot(...window.flat());
  const mixed = (one, two, f) => one.map((A, k) => A.map((a, i) => f(a, two[k][i])));
  const minus = (one, two) => mixed(one, two, (a, b) => a - b);

  const BLOCKS = 20;

  // Growth of the distance of two copies per token, pulled back to `apart` after each; and its standard error, from the
  // scatter of the growth in blocks of tokens.
  function exponent(net, window, beta, steps, apart = 1e-7) {
    let delta = window.map((A, k) => A.map((_, a) => Math.cos(1 + 3 * k + a)));
    const growth = Array(BLOCKS).fill(0);
    let tokens;
    for (let t = -100; t < steps; t += 1) {
      const scale = apart / size(delta);
      const twin = mixed(window, delta, (a, d) => a + scale * d);
      ({ window, tokens } = step(net, window, t, beta, tokens));
      delta = minus(step(net, twin, t, beta).window, window);
      // Copies that have become one stay one.
      const grown = Math.max(size(delta), 1e-300);
      if (t >= 0) growth[Math.floor((t * BLOCKS) / steps)] += (Math.log(grown / apart) * BLOCKS) / steps;
    }
    const rate = growth.reduce((sum, g) => sum + g, 0) / BLOCKS;
    const variance = growth.reduce((sum, g) => sum + (g - rate) ** 2, 0) / (BLOCKS - 1);
    return { rate, error: Math.sqrt(variance / BLOCKS) };
  }

  const model = { overlaps, step, run, exponent };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["attention-dynamics"] = model;

  const LENGTH = 400;
  const SHOWN = 120;
  const SETTLE = 2000;
  const PLACES = [["cycle", 1.2], ["torus", 1.255], ["chaos", 1.28], ["frozen", 2.6]];
  const small = (value) => (value === 0 ? "0" : value.toExponential(0).replace("-", "−"));

  window.Live.mount("attention-dynamics-live", (live, data) => {
    const first = () => [data.beta, data.start, 1];
    let [beta, start, seed] = first();
    let now = {};
    live.name("Two copies of one attention loop: turn beta");

    // The least period of the last tokens, 0 if they do not repeat.
    function period(attention) {
      const apart = (n, m) => Math.max(...attention[n].map((a, i) => Math.abs(a - attention[m][i])));
      for (let p = 4; p <= LENGTH / 2; p += 4) {
        let same = true;
        for (let n = LENGTH - 1; same && n >= p; n -= 1) same = apart(n, n - p) < 1e-5;
        if (same) return p;
      }
      return 0;
    }

    function compute() {
      const settled = run(data, start, beta, SETTLE).window;
      const other = settled.map((A) => A.map((a) => a + 1e-6 / Math.sqrt(12)));
      const one = run(data, settled, beta, LENGTH);
      const two = run(data, other, beta, LENGTH);
      const distance = one.attention.map((A, n) => Math.hypot(...A.map((a, i) => a - two.attention[n][i])));
      now = { one, two, distance, ...exponent(data, settled, beta, 4000), period: period(one.attention) };
      const far = distance.findIndex((d) => d > 0.05);
      const kind = now.period
        ? `the tokens repeat after ${now.period}`
        : now.rate > Math.max(3 * now.error, 0.005)
          ? "chaos"
          : `no repetition within ${LENGTH / 2} tokens, and no steady growth: a torus, or a very long cycle`;
      const fate = far >= 0
        ? `The copies, one millionth apart at first, are told apart after ${far + 1} tokens.`
        : `After ${LENGTH} tokens the copies are ${small(distance[LENGTH - 1])} apart.`;
      live.says(`β = ${beta.toFixed(3)}: exponent ${window.Live.number(now.rate)} ± ${window.Live.number(now.error)} per token, ${kind}. ${fate}`);
    }

    function frame(pen, stage, colours, low, high) {
      pen.fillStyle = colours.grey;
      pen.textAlign = "left";
      pen.fillText(high, 2, 12);
      pen.fillText(low, 2, stage.height - 4);
      pen.strokeStyle = colours.faint;
      pen.lineWidth = 1;
      pen.strokeRect(0.5, 0.5, stage.width - 1, stage.height - 1);
    }

    function curve(pen, stage, colour, values, toY, length, dashes = []) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.5;
      pen.setLineDash(dashes);
      pen.beginPath();
      for (let n = 0; n < length; n += 1) {
        const x = (n / (length - 1)) * stage.width;
        (n ? pen.lineTo : pen.moveTo).call(pen, x, toY(values[n]));
      }
      pen.stroke();
      pen.setLineDash([]);
    }

    const extent = () => 1.15 * Math.max(...now.one.outputs.concat(now.two.outputs).map((m) => Math.abs(m[0])), 1e-6);

    live.stage("Two orbits", {
      shape: 0.5,
      grow: 2,
      draw: (pen, stage, colours) => {
        const reach = extent();
        const toY = (m) => stage.height * (0.5 - (0.5 * m[0]) / reach);
        frame(pen, stage, colours, `−${reach.toFixed(2)}`, `${reach.toFixed(2)}: overlap of ${SHOWN} tokens`);
        curve(pen, stage, colours.purple, now.one.outputs, toY, SHOWN);
        curve(pen, stage, colours.orange, now.two.outputs, toY, SHOWN, [5, 4]);
        stage.describe(`Two orbits of ${SHOWN} tokens at beta ${beta.toFixed(3)}, the second dashed.`);
      },
    });
    live.stage("Distance of the copies", {
      draw: (pen, stage, colours) => {
        const toY = (d) => stage.height * ((1 - Math.log10(Math.max(d, 1e-17))) / 18);
        frame(pen, stage, colours, `10⁻¹⁷, ${LENGTH} tokens`, "10: distance");
        const line = now.distance.map((_, n) => now.distance[0] * Math.exp(now.rate * n));
        const length = line.findIndex((d) => d > 2 || d < 1e-17);
        curve(pen, stage, colours.blue, now.distance, toY, LENGTH);
        pen.save();
        pen.beginPath();
        pen.rect(0, 0, length < 0 ? stage.width : (length / LENGTH) * stage.width, stage.height);
        pen.clip();
        curve(pen, stage, colours.ink, line, toY, LENGTH, [3, 3]);
        pen.restore();
        stage.describe(`Distance of the copies: ${small(now.distance[LENGTH - 1])} after ${LENGTH} tokens.`);
      },
    });
    live.stage("The plane of two overlaps", {
      draw: (pen, stage, colours) => {
        const reach = [0, 1].map((a) => 1.15 * Math.max(...now.one.outputs.map((m) => Math.abs(m[a])), 1e-6));
        frame(pen, stage, colours, `±${reach[0].toFixed(2)} →`, `±${reach[1].toFixed(2)} ↑ two overlaps`);
        pen.fillStyle = colours.purple;
        for (const m of now.one.outputs) {
          const x = stage.width * (0.5 + (0.5 * m[0]) / reach[0]);
          const y = stage.height * (0.5 - (0.5 * m[1]) / reach[1]);
          pen.fillRect(x - 1, y - 1, 2.4, 2.4);
        }
        stage.describe(`${LENGTH} tokens in the plane of two overlaps, period ${now.period || "none"}.`);
      },
    });

    const slider = live.slider("β", {
      min: 1,
      max: 3,
      value: beta,
      steps: 400,
      format: (value) => value.toFixed(3),
      changed: (value) => {
        beta = value;
        compute();
      },
    });
    for (const [name, value] of PLACES) {
      live.button(`${name}: ${value}`, () => {
        beta = value;
        slider.set(value);
        compute();
      });
    }
    live.button("Start elsewhere", () => {
      // Park and Miller's generator, so that everybody meets the same starts.
      const uniform = () => {
        seed = (16807 * seed) % 2147483647;
        return (2 * seed) / 2147483647 - 1;
      };
      start = data.start.map((A) => A.map(uniform));
      compute();
    });
    live.button("Start again", () => {
      [beta, start, seed] = first();
      slider.set(beta);
      compute();
    });
    live.help(
      "Slider: arrow keys, once it has the focus. Purple: one copy; orange: the other. Dashed in the middle: growth at the "
        + "rate of the exponent. “Start elsewhere” takes another window of four tokens; at some β it leads to another attractor.",
    );
    compute();
  });
})();
