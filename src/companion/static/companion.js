// Tables with the class book-sortable: every heading becomes a button that sorts the rows. Works without a network.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.book-sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        headings.forEach((other) => other.setAttribute("aria-sort", "none"));
        heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((first, second) => compare(first.cells[column], second.cells[column], direction));
        table.tBodies[0].append(...rows);
      });
    });
  }
});

// Numbers by size, with empty cells last in both directions; everything else by text.
function compare(first, second, direction) {
  const [a, b] = [first, second].map((cell) => cell.dataset.value);
  if (a === undefined || b === undefined) {
    return direction * first.textContent.localeCompare(second.textContent, undefined, { numeric: true });
  }
  if (a === "" || b === "") return (a === "") - (b === "");
  return direction * (Number(a) - Number(b));
}

// Tables and lists with the class book-filterable: a search field and a choice for every kind of mark (data-chapter,
// data-verdict, ...) above them hide the entries that do not match. The choices are kept in the address, so that a
// filtered view can be linked to. Without this script everything is shown.
document.addEventListener("DOMContentLoaded", () => {
  for (const whole of document.querySelectorAll(".book-filterable")) {
    const rows = [...(whole.tBodies?.[0].rows ?? whole.children)];
    if (!rows.length) continue;
    const form = document.createElement("form");
    form.className = "book-filter";
    form.setAttribute("role", "search");
    // Two tables of one page tell their choices apart by what stands before the names.
    const prefix = whole.dataset.prefix ?? "";
    const text = field(form, "Search", Object.assign(document.createElement("input"), { type: "search", name: `${prefix}q` }));
    const choices = Object.keys(rows[0].dataset).map((name) => {
      const select = Object.assign(document.createElement("select"), { name: `${prefix}${name}` });
      const values = [...new Set(rows.map((row) => row.dataset[name]))];
      select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
      return field(form, name[0].toUpperCase() + name.slice(1), select);
    });
    const count = document.createElement("output");
    form.append(count);
    const controls = [text, ...choices];
    const given = new URLSearchParams(location.search);
    controls.forEach((control) => { control.value = given.get(control.name) ?? ""; });
    const apply = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const content = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => content.includes(word))
          || choices.some((choice) => choice.value && row.dataset[choice.name.slice(prefix.length)] !== choice.value);
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
    };
    form.addEventListener("input", () => {
      apply();
      const set = new URLSearchParams(controls.filter((control) => control.value).map(({ name, value }) => [name, value]));
      const address = `${location.pathname}${set.size ? `?${set}` : ""}`;
      // Some browsers forbid it for pages opened from the file system.
      try { history.replaceState(null, "", address); } catch { /* the table is filtered all the same */ }
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
    // A row that the address points to is never hidden.
    const reveal = () => {
      const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (wanted) wanted.hidden = false;
    };
    reveal();
    window.addEventListener("hashchange", reveal);
    (whole.closest(".book-table") ?? whole).before(form);
  }
});

function field(form, name, control) {
  const label = document.createElement("label");
  label.append(name, " ", control);
  form.append(label);
  return control;
}

// The map of equations, drawn: where a search leaves few rows, these equations, their functions, and the claims, as three
// columns with lines between them. It says nothing that the lists do not say; every name is the link of the list.
const MOST_DRAWN = 12;
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("table.book-equations");
  if (!table) return;
  const figure = Object.assign(document.createElement("figure"), { className: "book-graph" });
  (table.closest(".book-table") ?? table).before(figure);
  const draw = () => {
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const caption = Object.assign(document.createElement("figcaption"), {
      textContent: rows.length && rows.length <= MOST_DRAWN
        ? "Equations, the functions that compute them, and the claims about either."
        : `A search that leaves at most ${MOST_DRAWN} equations draws them with their functions and claims.`,
    });
    figure.replaceChildren(...(rows.length && rows.length <= MOST_DRAWN ? [graph(rows)] : []), caption);
  };
  draw();
  document.addEventListener("input", draw);
});

function graph(rows) {
  const columns = [new Map(), new Map(), new Map()];
  const lines = new Set();
  const add = (column, link, name) => {
    const key = link.getAttribute("href");
    if (!columns[column].has(key)) columns[column].set(key, { name: name ?? link.textContent, place: columns[column].size });
    return key;
  };
  for (const row of rows) {
    const title = row.cells[0].firstChild.textContent;
    const own = add(0, Object.assign(document.createElement("a"), { href: `#${row.id}` }), title);
    const functions = [...row.cells[1].querySelectorAll("a")].map((link) => add(1, link));
    for (const name of functions) {
      lines.add(JSON.stringify([0, own, name]));
      for (const link of document.getElementById(name.slice(1)).cells[2].querySelectorAll("a")) {
        lines.add(JSON.stringify([1, name, add(2, link)]));
      }
    }
    for (const link of row.cells[3].querySelectorAll("a")) {
      const claim = add(2, link);
      if (!functions.some((name) => lines.has(JSON.stringify([1, name, claim])))) lines.add(JSON.stringify([0, own, claim, 2]));
    }
  }
  const [step, wide, margin] = [22, 330, 14];
  const height = step * Math.max(...columns.map((column) => column.size)) + margin;
  const make = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const at = (column, key) => margin + (columns[column].get(key).place + 0.5) * (height - margin) / columns[column].size;
  const drawn = make("svg", { viewBox: `0 0 ${3 * wide} ${height}`, role: "group", "aria-label": "Equations, functions and claims" });
  for (const line of lines) {
    const [column, from, to, last = column + 1] = JSON.parse(line);
    const [x, end] = [(column + 1) * wide - 40, last * wide - 4];
    drawn.append(make("path", { d: `M${x} ${at(column, from) - 4} C${x + 20} ${at(column, from) - 4} ${end - 20} ${at(last, to) - 4} ${end} ${at(last, to) - 4}` }));
  }
  columns.forEach((column, index) => column.forEach(({ name }, key) => {
    const short = name.length > 44 ? `${name.slice(0, 43)}…` : name;
    const link = make("a", { href: key }, make("title", {}, name), make("text", { x: index * wide, y: at(index, key) }, short));
    drawn.append(link);
  }));
  return drawn;
}

const SCROLLING = "mjx-container[display=true], span.math.book-wide, .book-table, .book-formulas > div, .pst-scrollable-table-container, .highlight pre";

// Formulas that stand one above the other are set as large as they can be and still be whole, down to three quarters.
function fit() {
  for (const formula of document.querySelectorAll(".book-formulas mjx-container")) {
    const box = formula.closest(".book-formulas > div");
    formula.style.fontSize = "";
    const share = box.clientWidth / box.scrollWidth;
    if (share < 1) formula.style.fontSize = `${Math.max(75, Math.floor(100 * share))}%`;
  }
}

// What can be scrolled, wide equations, tables and code, can be reached and scrolled with the keyboard.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const reach = () => {
    fit();
    for (const part of document.querySelectorAll(SCROLLING)) {
      if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
      // A formula that goes on sideways says so: by a shadow at the edge, and in words.
      if (part.matches(".book-formulas > div")) {
        part.classList.toggle("book-scrolls", part.scrollWidth > part.clientWidth + 1);
      }
    }
  };
  reach();
  window.addEventListener("resize", reach);
});

// Links to equations, figures and terms show them while the mouse or the keyboard is on them. What lies on another page
// was copied into a <template> of this one when the site was made, so that it works from the file system too.
document.addEventListener("DOMContentLoaded", () => {
  const shown = Object.assign(document.createElement("div"), { id: "book-preview", hidden: true });
  shown.setAttribute("role", "tooltip");
  document.body.append(shown);
  let link = null;
  let timer = 0;

  const content = (anchor) => {
    const [path, id] = anchor.getAttribute("href").split("#");
    if (!id) return null;
    if (path) {
      const template = document.querySelector(`template[data-preview="${CSS.escape(anchor.getAttribute("href"))}"]`);
      return template && template.content.cloneNode(true);
    }
    const target = document.getElementById(decodeURIComponent(id));
    if (!target?.matches("figure, div.math, dt")) return null;
    const copy = target.cloneNode(true);
    for (const part of [copy, ...copy.querySelectorAll("[id]")]) part.removeAttribute("id");
    for (const part of copy.querySelectorAll("details, .legend, .only-dark, .headerlink")) part.remove();
    if (!target.matches("dt")) return copy;
    const list = document.createElement("dl");
    list.append(copy, target.nextElementSibling?.cloneNode(true) ?? "");
    return list;
  };

  const hide = () => {
    clearTimeout(timer);
    link?.removeAttribute("aria-describedby");
    link = null;
    shown.hidden = true;
  };

  const show = async (anchor) => {
    const copy = content(anchor);
    if (!copy) return;
    hide();
    link = anchor;
    shown.replaceChildren(copy);
    for (const image of shown.querySelectorAll("img")) image.loading = "eager";
    shown.hidden = false;
    link.setAttribute("aria-describedby", "book-preview");
    if (!shown.querySelector("mjx-container")) await window.MathJax?.typesetPromise?.([shown]);
    if (link !== anchor) return;
    const place = anchor.getBoundingClientRect();
    const below = place.bottom + 8 + shown.offsetHeight < innerHeight || place.top < shown.offsetHeight + 8;
    shown.style.top = `${scrollY + (below ? place.bottom + 8 : place.top - shown.offsetHeight - 8)}px`;
    shown.style.left = `${Math.max(8, Math.min(scrollX + place.left, document.documentElement.clientWidth - shown.offsetWidth - 8))}px`;
  };

  for (const anchor of document.querySelectorAll("a.reference.internal[href*='#']")) {
    if (!anchor.closest("main, article")) continue;
    anchor.addEventListener("mouseenter", () => { clearTimeout(timer); timer = setTimeout(show, 150, anchor); });
    anchor.addEventListener("mouseleave", hide);
    anchor.addEventListener("focus", () => show(anchor));
    anchor.addEventListener("blur", hide);
    // A title would be drawn over the preview.
    if (content(anchor)) anchor.removeAttribute("title");
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
});

// Animations (book-frames): one picture holds all frames from top to bottom. A slider chooses one, with the arrow keys
// too, and a button plays them; nothing moves by itself. Each frame's words stand below it and are its name for readers
// who do not see it. Without this script the figure above says the same in one still picture.
document.addEventListener("DOMContentLoaded", () => {
  for (const player of document.querySelectorAll(".book-frames")) {
    const labels = JSON.parse(player.dataset.labels);
    const stage = player.querySelector(".book-frames-window");
    const controls = document.createElement("div");
    controls.className = "book-frames-controls";
    const play = Object.assign(document.createElement("button"), { type: "button", textContent: "Play" });
    controls.append(play);
    const slider = field(controls, "Frame", Object.assign(document.createElement("input"), {
      type: "range", min: 0, max: labels.length - 1, step: 1, value: 0,
    }));
    const words = document.createElement("output");
    controls.append(words);
    let timer = null;
    const show = () => {
      const frame = Number(slider.value);
      for (const image of stage.querySelectorAll("img")) {
        image.style.transform = `translateY(${(-100 * frame) / labels.length}%)`;
      }
      stage.setAttribute("aria-label", labels[frame]);
      slider.setAttribute("aria-valuetext", labels[frame]);
      words.textContent = labels[frame];
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (Number(slider.value) === labels.length - 1) slider.value = 0;
      play.textContent = "Pause";
      // While it plays, every frame would be read out.
      words.setAttribute("aria-live", "off");
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) === labels.length - 1) stop();
      }, 400);
    });
    slider.addEventListener("input", () => { stop(); words.setAttribute("aria-live", "polite"); show(); });
    player.append(controls);
    player.hidden = false;
    show();
  }
});
