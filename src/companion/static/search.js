// The search page: sections of the book that hold all words that were asked for, the best first. It works from the file
// system too, because the sections come in a script (search-index.js).
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("search-results");
  if (!place || !window.BOOK_SECTIONS) return;
  const SHOWN = 50;
  const AROUND = 110;
  const WEIGHTS = [["notebooks/audits/", 1], ["notebooks/", 2], ["reference/", 0.6], ["book/claims", 0.5], ["book/corrections", 0.5]];
  const sections = window.BOOK_SECTIONS.flatMap(([file, page, parts]) =>
    parts.map(([title, anchor, text]) => ({ file, page, title, anchor, text })));
  sections.forEach((section, id) => { section.id = id; });
  const index = new MiniSearch({
    fields: ["title", "text", "page"],
    searchOptions: {
      boost: { title: 4, page: 2 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 ? 0.15 : false),
      combineWith: "AND",
      // What explains comes before what records.
      boostDocument: (id) => WEIGHTS.find(([start]) => sections[id].file.startsWith(start))?.[1] ?? 1,
    },
  });
  index.addAll(sections);
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  const list = document.createElement("ol");
  list.className = "book-found";
  place.replaceChildren(said, list);

  // The words of a text around the first that was found, with all of them marked.
  function excerpt(text, words) {
    const found = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
    const first = Math.max(text.search(found), 0);
    let start = Math.max(first - AROUND, 0);
    if (start) start = text.indexOf(" ", start) + 1;
    let end = Math.min(first + AROUND, text.length);
    if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), first + 1);
    const shown = document.createElement("p");
    if (start) shown.append("… ");
    text.slice(start, end).split(found).forEach((part, number) => {
      shown.append(number % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part);
    });
    if (end < text.length) shown.append(" …");
    return shown;
  }

  function show(query) {
    const asked = query.trim();
    list.replaceChildren();
    if (!asked) { said.textContent = "Type one or more words: sections that hold all of them are listed."; return; }
    let hits = index.search(asked);
    const all = hits.length > 0;
    if (!all) hits = index.search(asked, { combineWith: "OR" });
    said.textContent = !hits.length ? `Nothing was found for “${asked}”.`
      : `${hits.length} ${hits.length === 1 ? "section holds" : "sections hold"} ${all ? "all words" : "some of the words"} of “${asked}”`
        + (hits.length > SHOWN ? `; the first ${SHOWN} are listed.` : ".");
    for (const hit of hits.slice(0, SHOWN)) {
      const section = sections[hit.id];
      const item = document.createElement("li");
      const link = document.createElement("a");
      const words = [...new Set(hit.terms)];
      link.href = `${section.file}?highlight=${encodeURIComponent(words.join(" "))}${section.anchor ? `#${section.anchor}` : ""}`;
      link.textContent = section.title;
      const where = Object.assign(document.createElement("span"), { className: "book-found-page", textContent: section.page });
      item.append(link, section.page === section.title ? "" : where, excerpt(section.text, words));
      list.append(item);
    }
  }

  const asked = new URLSearchParams(location.search).get("q") ?? "";
  for (const input of document.querySelectorAll("form.bd-search input[type=search]")) {
    input.value = asked;
    input.addEventListener("input", () => show(input.value));
  }
  show(asked);
});
