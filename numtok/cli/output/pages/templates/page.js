"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = new Map();
  const rowsPart = document.getElementById("rows");
  const rows = data.rows.map((row, place) => ({ ...row, place, keys: [...row.keys, `row:${place}`] }));
  const keysOf = rows.map((row) => row.keys);
  let chosen = null;
  let shown = data.first;
  let order = null;

  // --- what is pointed at -------------------------------------------------------------------
  const tip = document.getElementById("tip");
  const say = (event, text) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const y = event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${y}px`;
    tip.style.whiteSpace = "pre-line";
  };
  const words = (item, value) => {
    const datum = item && item.datum;
    if (datum && datum.row != null && rows[datum.row]) {
      const row = rows[datum.row];
      return data.columns.map((name, k) => `${name}: ${row.cells[k]} ${row.asides[k]}`).join("\n");
    }
    if (value == null) return "";
    if (typeof value !== "object") return String(value);
    return Object.entries(value).map(([name, one]) => `${name}: ${one}`).join("\n");
  };

  // --- charts: drawn when they come into sight, until then they are still --------------------
  const draw = (place) => {
    const name = place.dataset.chart;
    if (views.has(name) || !data.charts[name]) return;
    place.replaceChildren();
    place.classList.add("live");
    views.set(name, null);
    const options = {
      mode: "vega", renderer: "svg", actions: false, hover: true, defaultStyle: false,
      tooltip: (handler, event, item, value) => say(event, words(item, value)),
    };
    vegaEmbed(place, data.charts[name], options).then(({ view }) => {
      view.addEventListener("mouseout", () => say(null, ""));
      view.addEventListener("click", (event, item) => {
        const datum = item && item.datum;
        const key = datum && (datum.pick || (datum.row != null ? `row:${datum.row}` : null));
        choose(key && key !== chosen ? key : null);
      });
      views.set(name, view);
      tell(view);
      return view.runAsync();
    }).then(() => {
      place.querySelector("svg").setAttribute("aria-hidden", "true"); // the figure says what it is
      place.dataset.drawn = "yes";
    });
  };
  const tell = (view) => {
    const signals = Object.keys(view.getState().signals);
    if (signals.includes("keysOf")) view.signal("keysOf", keysOf);
    if (signals.includes("chosen")) view.signal("chosen", chosen);
  };
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) { watcher.unobserve(one.target); draw(one.target); }
  }, { rootMargin: "300px" });
  document.querySelectorAll("[data-chart]").forEach((place) => watcher.observe(place));
  window.addEventListener("beforeprint", () => document.querySelectorAll("[data-chart]").forEach(draw));

  // --- choosing: in charts, the legend, tables and the list of rows ----------------------------
  function choose(key) {
    chosen = key;
    shown = data.first;
    for (const view of views.values()) if (view) { tell(view); view.runAsync(); }
    document.querySelectorAll(".legend button").forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.pick === chosen)));
    document.querySelectorAll("tr[data-pick]").forEach((row) =>
      row.classList.toggle("chosen", chosen !== null && row.dataset.pick === chosen));
    list();
  }
  document.querySelectorAll("[data-pick]").forEach((place) =>
    place.addEventListener("click", () => choose(place.dataset.pick === chosen ? null : place.dataset.pick)));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(null); });

  // --- rows ------------------------------------------------------------------------------------
  function list() {
    if (!rowsPart) return;
    const related = chosen && rows.some((row) => row.keys.includes(chosen));
    const whole = order ? order : rows;
    const found = related ? whole.filter((row) => row.keys.includes(chosen)) : whole;
    const body = rowsPart.querySelector("tbody");
    body.replaceChildren(...found.slice(0, shown).map((row) => {
      const line = document.createElement("tr");
      row.cells.forEach((text, k) => {
        const cell = document.createElement("td");
        cell.className = row.values[k] === null ? "name" : "number";
        cell.dataset.name = data.columns[k];
        cell.textContent = text;
        if (row.asides[k]) {
          const aside = document.createElement("span");
          aside.className = "aside";
          aside.textContent = row.asides[k];
          cell.append(" ", aside);
        }
        line.append(cell);
      });
      const text = document.createElement("td");
      text.className = "text";
      const mark = document.createElement("mark");
      mark.textContent = row.mark;
      text.append(row.before, mark, row.after);
      line.append(text);
      return line;
    }));
    const count = Math.min(shown, found.length);
    rowsPart.querySelector(".count").textContent =
      `${count.toLocaleString("en")} of ${found.length.toLocaleString("en")} rows` + (related ? " that match the selection" : "");
    rowsPart.querySelector(".clear").hidden = !related;
    rowsPart.querySelector(".more").hidden = count >= found.length;
    const select = rowsPart.querySelector("select");
    select.value = [...select.options].some((one) => one.value === chosen) ? chosen : "";
  }
  if (rowsPart) {
    rowsPart.querySelector(".filter").hidden = false;
    rowsPart.querySelector("select").addEventListener("change", (event) => choose(event.target.value || null));
    rowsPart.querySelector(".clear").addEventListener("click", () => choose(null));
    rowsPart.querySelector(".more").addEventListener("click", () => { shown += 100; list(); });
    sortable(rowsPart.querySelector("table"), (column, sign) => {
      const key = (row) => row.values[column] ?? row.cells[column] ?? row.before;
      order = [...rows].sort((a, b) => sign * compare(key(a), key(b)));
      list();
    });
    list();
  }

  // --- tables that can be sorted ---------------------------------------------------------------
  function compare(a, b) {
    const [x, y] = [a, b].map((one) => (typeof one === "number" ? one : Number.NaN));
    if (Number.isNaN(x) && Number.isNaN(y)) return String(a).localeCompare(String(b), "en", { numeric: true });
    return Number.isNaN(x) ? -1 : Number.isNaN(y) ? 1 : x - y;
  }
  function sortable(table, sort) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(column, down ? -1 : 1);
      });
    });
  }
  document.querySelectorAll("table.sortable").forEach((table) => sortable(table, (column, sign) => {
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
    };
    for (const body of table.tBodies) {
      const own = [...body.rows].filter((row) => row.className !== "heading");
      body.append(...own.sort((a, b) => sign * compare(key(a), key(b))));
    }
  }));
})();
