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

const SCROLLING = "mjx-container[display=true], span.math, .book-table, .book-formulas > div, .pst-scrollable-table-container, .highlight pre, .text_html:has(table)";

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

// A claim's line in the ledger of all chapters, which older links name, is in that of its chapter now.
document.addEventListener("DOMContentLoaded", () => {
  const ledgers = document.querySelectorAll(".book-ledgers a[href*='ledger/']");
  const chapters = [...ledgers].map((link) => [link.href, link.getAttribute("href").split("/").pop().replace(".html", "")]);
  const asked = location.hash.replace("#ledger-claim-", "");
  const [place] = chapters.filter(([, name]) => asked.startsWith(`${name}-`)).sort((a, b) => b[1].length - a[1].length);
  if (place && asked !== location.hash) location.replace(`${place[0]}${location.hash}`);
});

// What the theme says of its controls in other words than are seen, or in roles that mean something else.
document.addEventListener("DOMContentLoaded", () => {
  const each = (selector, change) => document.querySelectorAll(selector).forEach(change);
  each(".search-button-field, summary[aria-label='Toggle hidden content']", (part) => part.removeAttribute("aria-label"));
  each(".citation-list[role], .citation[role]", (part) => part.removeAttribute("role"));
  each(".theme-switch", (part) => { part.removeAttribute("title"); part.setAttribute("aria-hidden", "true"); });
  each("summary:has(> .toctree-toggle)", (part) => {
    part.setAttribute("aria-label", `Pages under: ${part.closest("li").querySelector("a").textContent.trim()}`);
  });
  each("a.navbar-brand.logo", (part) => {
    const way = Object.assign(document.createElement("nav"), { ariaLabel: "Title page" });
    part.replaceWith(way);
    way.append(part);
  });
});
