// Tables with the class spin-sortable: every heading becomes a button that sorts the rows. Works without a network.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.spin-sortable")) {
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
        rows.sort((first, second) => direction * compare(first.cells[column], second.cells[column]));
        table.tBodies[0].append(...rows);
      });
    });
  }
});

// Numbers by size, with empty cells last; everything else by text.
function compare(first, second) {
  const [a, b] = [first, second].map((cell) => cell.dataset.value);
  if (a === undefined || b === undefined) {
    return first.textContent.localeCompare(second.textContent, undefined, { numeric: true });
  }
  if (a === "" || b === "") return (a === "") - (b === "");
  return Number(a) - Number(b);
}

// Tables and lists with the class spin-filterable: a search field and a choice for every kind of mark (data-chapter,
// data-verdict, ...) above them hide the entries that do not match. The choices are kept in the address, so that a
// filtered view can be linked to. Without this script everything is shown.
document.addEventListener("DOMContentLoaded", () => {
  for (const whole of document.querySelectorAll(".spin-filterable")) {
    const rows = [...(whole.tBodies?.[0].rows ?? whole.children)];
    if (!rows.length) continue;
    const form = document.createElement("form");
    form.className = "spin-filter";
    form.setAttribute("role", "search");
    const text = field(form, "Search", Object.assign(document.createElement("input"), { type: "search", name: "q" }));
    const choices = Object.keys(rows[0].dataset).map((name) => {
      const select = Object.assign(document.createElement("select"), { name });
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
          || choices.some((choice) => choice.value && row.dataset[choice.name] !== choice.value);
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
    const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (wanted) wanted.hidden = false;
    (whole.closest(".spin-table") ?? whole).before(form);
  }
});

function field(form, name, control) {
  const label = document.createElement("label");
  label.append(name, " ", control);
  form.append(label);
  return control;
}

// What can be scrolled sideways, wide equations and tables, can be reached and scrolled with the keyboard.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const part of document.querySelectorAll("mjx-container[display=true], .spin-table, .pst-scrollable-table-container")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
});

// Animations with the class spin-frames: a slider and a button choose which of the frames in the page is shown. The
// arrow keys move the slider; nothing moves by itself.
document.addEventListener("DOMContentLoaded", () => {
  for (const whole of document.querySelectorAll(".spin-frames")) {
    const frames = [...whole.querySelectorAll(".spin-frame")];
    const controls = whole.querySelector(".spin-frames-controls");
    const [button, slider] = [controls.querySelector("button"), controls.querySelector("input")];
    const caption = whole.querySelector(".spin-frames-caption");
    let timer = null;
    const show = (chosen) => {
      frames.forEach((frame, k) => { frame.style.display = k === chosen ? "" : "none"; });
      slider.value = chosen;
      slider.setAttribute("aria-valuetext", frames[chosen].dataset.caption);
      caption.textContent = frames[chosen].dataset.caption;
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
      caption.setAttribute("aria-live", "polite");
    };
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      const last = frames.length - 1;
      show(Number(slider.value) === last ? 0 : Number(slider.value));
      button.textContent = "Pause";
      // A caption that changes every half second is not to be read out.
      caption.setAttribute("aria-live", "off");
      timer = setInterval(() => {
        const next = Number(slider.value) + 1;
        show(next);
        if (next === last) stop();
      }, 500);
    });
    controls.hidden = false;
    show(frames.length - 1);
  }
});
