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
