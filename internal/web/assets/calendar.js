// Drag a post of the calendar to another time. The page then asks, as the link of the post does.
(function () {
  "use strict";
  var held = null;
  function cell(e) { return held && e.target.closest && e.target.closest("[data-at], [data-day]"); }
  document.addEventListener("dragstart", function (e) {
    held = e.target.closest && e.target.closest("[data-move]");
    if (held) { e.dataTransfer.setData("text/plain", held.textContent); e.dataTransfer.effectAllowed = "move"; }
  });
  ["dragover", "dragleave", "drop"].forEach(function (type) {
    document.addEventListener(type, function (e) {
      var to = cell(e);
      if (!to) { return; }
      to.classList.toggle("over", type === "dragover");
      if (type === "dragleave") { return; }
      e.preventDefault();
      if (type !== "drop") { return; }
      var clock = held.dataset.from.slice(11, 16), where = new URL(held.dataset.move, location.href);
      if (to.dataset.day) { where.searchParams.set("date", to.dataset.day); where.searchParams.set("time", clock); }
      else { where.searchParams.set("to", to.dataset.at.slice(0, 14) + clock.slice(3) + to.dataset.at.slice(16)); }
      location.assign(where);
    });
  });
})();
