// What a reader can set for a page: code hidden or shown, figures enlarged; and hints where something scrolls.
// Loaded before the page is drawn, so that code that is hidden never shows for a moment.
const HIDDEN_CODE = "book-hide-code";
const remembered = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const remember = (name, value) => { try { localStorage.setItem(name, value); } catch { /* for this page only */ } };
document.documentElement.classList.toggle(HIDDEN_CODE, remembered(HIDDEN_CODE) === "yes");

document.addEventListener("DOMContentLoaded", () => {
  const buttons = document.querySelector(".article-header-buttons");
  if (!buttons || !document.querySelector(".cell_input, details.above-input")) return;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-sm book-code-button" });
  const show = () => {
    const hidden = document.documentElement.classList.contains(HIDDEN_CODE);
    button.textContent = hidden ? "Show code" : "Hide code";
    button.title = hidden ? "Show the code of all cells" : "Hide the code of all cells, on every page";
  };
  button.addEventListener("click", () => {
    const hidden = document.documentElement.classList.toggle(HIDDEN_CODE);
    remember(HIDDEN_CODE, hidden ? "yes" : "no");
    show();
  });
  show();
  buttons.prepend(button);
});

// A figure opens at full size in a dialog, by mouse, touch or keyboard; Escape, a click beside it, or the button closes it.
document.addEventListener("DOMContentLoaded", () => {
  const pictures = document.querySelectorAll("figure.book-figure .book-picture");
  if (!pictures.length) return;
  const dialog = Object.assign(document.createElement("dialog"), { className: "book-enlarged" });
  dialog.setAttribute("aria-label", "Figure at full size");
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  const stage = document.createElement("div");
  stage.tabIndex = 0;
  dialog.append(close, stage);
  document.body.append(dialog);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  for (const picture of pictures) {
    const open = () => {
      const copy = picture.cloneNode(true);
      for (const image of copy.querySelectorAll("img")) image.loading = "eager";
      copy.querySelectorAll("button").forEach((part) => part.remove());
      stage.replaceChildren(copy);
      dialog.showModal();
    };
    const button = Object.assign(document.createElement("button"), { type: "button", className: "book-enlarge", textContent: "Enlarge" });
    const number = picture.closest("figure").querySelector(".caption-number")?.textContent.trim();
    button.setAttribute("aria-label", number ? `Enlarge ${number}` : "Enlarge the figure");
    button.addEventListener("click", open);
    for (const image of picture.querySelectorAll("img")) image.addEventListener("click", open);
    picture.after(button);
  }
});

// Where a table, an equation or a listing is wider than the page, its edge fades on the side on which there is more.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const parts = document.querySelectorAll("div.math mjx-container, span.math, .book-table, .pst-scrollable-table-container, .highlight pre");
  // What is drawn of a formula: its words for readers aloud lie over it, unseen, and may be wider.
  const drawn = (part) => part.querySelector(part.localName === "span" ? "mjx-container" : "mjx-math")?.getBoundingClientRect().width;
  const mark = (part) => {
    const more = (drawn(part) ?? part.scrollWidth) - part.clientWidth;
    if (part.localName === "span") part.classList.toggle("book-wide", more > 2);
    part.classList.toggle("book-more-right", more > 2 && part.scrollLeft < more - 2);
    part.classList.toggle("book-more-left", more > 2 && part.scrollLeft > 2);
  };
  for (const part of parts) part.addEventListener("scroll", () => mark(part), { passive: true });
  const all = () => parts.forEach(mark);
  all();
  window.addEventListener("resize", all);
});
