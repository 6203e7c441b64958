// Sorts a table by the column whose heading is clicked or activated by the keyboard.
document.querySelectorAll("article table").forEach((table) => {
  const headings = [...table.querySelectorAll("thead th")];
  const body = table.tBodies[0];
  if (!body || body.rows.length < 5) return;
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number(text.split(/\s[±[]/)[0].replace(/,/g, "")); // without the interval
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const order = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === typeof b ? (a < b ? -1 : a > b) : typeof a === "number" ? -1 : 1;
  };
  const sort = (heading, column) => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => (descending && a !== null && b !== null ? order(b, a) : order(a, b)));
    body.append(...rows.map(([, row]) => row));
    headings.forEach((each) => each.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };
  headings.forEach((heading, column) => {
    if (!heading.textContent.trim()) return;
    heading.setAttribute("aria-sort", "none");
    heading.tabIndex = 0;
    heading.addEventListener("click", () => sort(heading, column));
    heading.addEventListener("keydown", (event) => event.key === "Enter" && sort(heading, column));
  });
});
