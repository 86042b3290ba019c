// The live model of the title page: arrows in a field that the reader drags, which also listen to each other by
// attention. The arithmetic stands first and is exported for tests.
(() => {
  "use strict";

  const DIM = 3; // the arrows lie in a plane of a space of three dimensions
  const SQUARED_RADIUS = DIM / 2 - 1;
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];

  // The field at every place: its own, and one towards the hand that dies away within `width`.
  function fields(data, hand) {
    return data.places.map((place, i) => {
      const way = [hand[0] - place[0], hand[1] - place[1]];
      const near = (data.strength / data.width) * Math.exp(-dot(way, way) / (2 * data.width ** 2));
      return [data.own[i][0] + near * way[0], data.own[i][1] + near * way[1]];
    });
  }

  // Rows of coupling softmax(sharpness x . x).
  function couplings(x, sharpness, coupling) {
    return x.map((query) => {
      const logits = x.map((key) => sharpness * dot(query, key));
      const highest = Math.max(...logits);
      const terms = logits.map((logit) => Math.exp(logit - highest));
      const total = terms.reduce((sum, term) => sum + term, 0);
      return terms.map((term) => (coupling * term) / total);
    });
  }

  // The mean of an arrow in the field h, to leading order for many dimensions.
  function response(h, beta) {
    const gain = beta / (1 + Math.sqrt(1 + (beta * beta * dot(h, h)) / SQUARED_RADIUS));
    return [gain * h[0], gain * h[1]];
  }

  // m = response(x + J m), by updates from the answer to the fields alone until nothing moves.
  function settle(J, x, beta, most = 500) {
    let m = x.map((field) => response(field, beta));
    for (let step = 0; step < most; step += 1) {
      let moved = 0;
      const next = J.map((row, i) => {
        let [a, b] = x[i];
        for (let j = 0; j < row.length; j += 1) {
          a += row[j] * m[j][0];
          b += row[j] * m[j][1];
        }
        const mean = response([a, b], beta);
        moved = Math.max(moved, Math.abs(mean[0] - m[i][0]), Math.abs(mean[1] - m[i][1]));
        return mean;
      });
      m = next;
      if (moved < 1e-16) break;
    }
    return m;
  }

  // How far, in degrees, b points away from a.
  function turned(a, b) {
    return (Math.abs(Math.atan2(a[0] * b[1] - a[1] * b[0], dot(a, b))) * 180) / Math.PI;
  }

  const model = { fields, couplings, response, settle, turned };
  if (typeof window === "undefined") {
    module.exports = model;
    return;
  }
  window.Live.models["title-page"] = model;

  window.Live.mount("title-page-live", (live, data) => {
    const [wide, high] = data.reach;
    let hand = [...data.hand];
    let coupling = data.coupling;
    let now = {};
    live.name("Arrows that answer a field and each other: drag the field");

    function compute() {
      const x = fields(data, hand);
      const J = couplings(x, data.sharpness, coupling);
      const alone = x.map((field) => response(field, data.beta));
      const together = settle(J, x, data.beta);
      const apart = data.places.map((place) => Math.hypot(place[0] - hand[0], place[1] - hand[1]));
      const nearest = apart.indexOf(Math.min(...apart));
      const swayed = together.map((mean, i) => turned(alone[i], mean) > data.swayed);
      now = { alone, together, swayed, nearest, shares: J[nearest] };
      const count = swayed.filter(Boolean).length;
      live.says(
        coupling < 0.005
          ? `Nobody listens to anybody: all ${data.places.length} arrows follow the field where they stand.`
          : `${count} of ${data.places.length} arrows (orange) point more than ${data.swayed}° away from where their own field `
            + "alone would turn them: they attend to others.",
      );
    }

    function arrow(pen, from, way, length, colour, width) {
      const [x, y] = from;
      const [dx, dy] = [way[0] * length, -way[1] * length];
      const long = Math.hypot(dx, dy);
      if (long < 0.5) return;
      const head = Math.min(0.45 * long, 3.2 * width + 2);
      const [ux, uy] = [dx / long, dy / long];
      const [tx, ty] = [x + dx / 2, y + dy / 2];
      pen.strokeStyle = colour;
      pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(x - dx / 2, y - dy / 2);
      pen.lineTo(tx - 0.7 * head * ux, ty - 0.7 * head * uy);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(tx, ty);
      pen.lineTo(tx - head * ux + 0.5 * head * uy, ty - head * uy - 0.5 * head * ux);
      pen.lineTo(tx - head * ux - 0.5 * head * uy, ty - head * uy + 0.5 * head * ux);
      pen.fill();
    }

    const stage = live.stage("", {
      x: [-wide, wide],
      y: [-high, high],
      shape: high / wide,
      draw: (pen, here, colours) => {
        const spots = data.places.map((place) => [here.toX(place[0]), here.toY(place[1])]);
        const unit = here.width / (2 * wide);
        const width = Math.max(1.2, unit / 28);
        const most = Math.max(...now.shares);
        pen.strokeStyle = colours.green;
        now.shares.forEach((share, j) => {
          if (j === now.nearest || share < 0.15 * most || share < 1e-3) return;
          pen.globalAlpha = (0.75 * share) / most;
          pen.lineWidth = 2.4 * width * (share / most);
          pen.beginPath();
          pen.moveTo(...spots[now.nearest]);
          pen.lineTo(...spots[j]);
          pen.stroke();
        });
        pen.globalAlpha = 1;
        spots.forEach((spot, i) => {
          const length = data.length * unit;
          arrow(pen, spot, now.alone[i], length, colours.faint, width);
          arrow(pen, spot, now.together[i], length, now.swayed[i] ? colours.orange : colours.blue, 1.5 * width);
        });
        const [x, y] = [here.toX(hand[0]), here.toY(hand[1])];
        pen.beginPath();
        pen.arc(x, y, Math.max(7, unit / 5), 0, 2 * Math.PI);
        pen.fillStyle = colours.paper;
        pen.fill();
        pen.lineWidth = 3;
        pen.strokeStyle = colours.ink;
        pen.stroke();
        here.describe(`${spots.length} arrows in a field around ${window.Live.number(hand[0])}, ${window.Live.number(hand[1])}.`);
      },
    });
    live.point(stage, "Field", {
      at: () => hand,
      step: 0.1,
      moved: (place) => {
        hand = place;
        compute();
      },
    });
    const slider = live.slider("attention", {
      min: 0,
      max: data.most,
      value: coupling,
      steps: 100,
      changed: (value) => {
        coupling = value;
        compute();
      },
    });
    live.button("Start again", () => {
      hand = [...data.hand];
      coupling = data.coupling;
      slider.set(coupling);
      compute();
    });
    live.help(
      "Drag the ring, or tab to it and use the arrow keys. Green lines: whom the arrow next to the ring attends to. Grey: "
        + "what an arrow would do alone.",
    );
    compute();
  });
})();
