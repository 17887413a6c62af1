// Keys: an element with data-key="g o" or "n" is clicked by these keys, typed outside fields. j and k move between
// the rows of a list, and x marks the one in focus. Ctrl-K opens the search.
(function () {
  "use strict";
  var doc = document, before = "", timer = 0, off = doc.body.hasAttribute("data-no-keys");
  var palette = doc.getElementById("palette"), field = doc.getElementById("find");

  function inField(e) { return e.target.closest("input, select, textarea, [contenteditable]"); }
  function step(by) {
    var all = [].slice.call(doc.querySelectorAll("#main a.lead")), at = all.indexOf(doc.activeElement);
    var next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) { next.focus(); }
  }
  function mark() {
    var row = doc.activeElement.closest("tr, li"), box = row && row.querySelector("input[type=checkbox]");
    if (box) { box.click(); }
    return !!box;
  }
  function press(keys) {
    var e = [].slice.call(doc.querySelectorAll('[data-key="' + CSS.escape(keys).replace(/\\ /g, " ") + '"]')).filter(function (x) { return x.checkVisibility() && !x.disabled; })[0];
    if (!e) { return false; }
    if (e.matches("input, select, textarea")) { e.focus(); } else { e.click(); }
    return true;
  }
  function search() {
    if (!palette || !palette.showPopover) { return false; }
    palette.showPopover();
    field.focus();
    field.select();
    return true;
  }
  doc.addEventListener("keydown", function (e) {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { if (search()) { e.preventDefault(); } return; }
    if ((e.ctrlKey || e.metaKey) && e.key === "Enter" && e.target.form) { e.target.form.requestSubmit(); return; }
    if (off || e.ctrlKey || e.metaKey || e.altKey || inField(e) || doc.querySelector("dialog[open]")) { return; }
    var keys = before ? before + " " + e.key : e.key;
    clearTimeout(timer);
    before = "";
    if (e.key === "g") { before = "g"; timer = setTimeout(function () { before = ""; }, 1500); return; }
    if (e.key === "j" || e.key === "k") { if (!press(e.key)) { step(e.key === "j" ? 1 : -1); } } else if (e.key === "/") { if (!search()) { return; } } else if (e.key === "?") {
      doc.getElementById("keys").togglePopover();
    } else if (!press(keys) && !(keys === "x" && mark())) { return; }
    e.preventDefault();
  });
  doc.addEventListener("click", function (e) {
    var to = e.target.closest("[data-palette]");
    if (to && !e.ctrlKey && !e.metaKey && search()) { e.preventDefault(); }
    if (e.target.closest("[data-more]")) { location.reload(); }
  });
  if (!palette) { return; }
  // Enter that opened the search goes on to the field: it is not a question.
  var own = false;
  field.addEventListener("keypress", function (e) { if (e.key === "Enter" && !own) { e.preventDefault(); } own = false; });
  // The arrows choose a result, Enter opens it.
  field.addEventListener("keydown", function (e) {
    own = e.key === "Enter";
    var all = [].slice.call(palette.querySelectorAll("[role=option]")), at = all.findIndex(function (x) { return x.getAttribute("aria-selected") === "true"; });
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      at = (at + (e.key === "ArrowDown" ? 1 : all.length - 1)) % Math.max(1, all.length);
      all.forEach(function (x, i) { x.setAttribute("aria-selected", i === at); });
      if (all[at]) { field.setAttribute("aria-activedescendant", all[at].id); all[at].scrollIntoView({ block: "nearest" }); }
      e.preventDefault();
    } else if (e.key === "Enter" && all.length) {
      all[Math.max(0, at)].click();
      e.preventDefault();
    }
  });
})();
