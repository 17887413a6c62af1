// The composer works without this script. It adds formatting, files by drag or paste, and saves when the page is left.
(function () {
  "use strict";
  var form = document.querySelector("[data-compose]");
  if (!form) { return; }
  var list = form.querySelector("[data-media]"), drop = form.querySelector("[data-drop]"), files = form.querySelector("[data-files]");
  var dirty = false, marks = {
    Markdown: { bold: ["**", "**"], italic: ["*", "*"], strike: ["~~", "~~"], code: ["`", "`"], link: ["[", "](https://)"], quote: ["> ", ""] },
    HTML: { bold: ["<b>", "</b>"], italic: ["<i>", "</i>"], strike: ["<s>", "</s>"], code: ["<code>", "</code>"], link: ['<a href="https://">', "</a>"], quote: ["<blockquote>", "</blockquote>"] }
  };
  function changed() { form.dispatchEvent(new Event("input", { bubbles: true })); }
  function area() { return [...form.querySelectorAll(".pane textarea")].find(function (t) { return t.checkVisibility(); }); }
  function mark(name) {
    var t = area(), pair = (marks[form.elements.markup.value] || marks.Markdown)[name];
    if (!marks[form.elements.markup.value]) { form.elements.markup.value = "Markdown"; }
    var from = t.selectionStart, text = t.value.slice(from, t.selectionEnd);
    t.focus();
    document.execCommand("insertText", false, pair[0] + text + pair[1]);
    t.setSelectionRange(from + pair[0].length, from + pair[0].length + text.length);
  }
  form.querySelector("[data-tools]").hidden = false;
  form.querySelectorAll("[data-plain]").forEach(function (b) { b.hidden = true; });
  form.addEventListener("keydown", function (e) {
    if (!(e.ctrlKey || e.metaKey)) { return; }
    if (e.key === "Enter") { e.preventDefault(); e.stopPropagation(); form.requestSubmit(form.querySelector("[data-submit]")); return; }
    var name = e.shiftKey ? { KeyX: "strike", Digit9: "quote" }[e.code] : { KeyB: "bold", KeyI: "italic", KeyL: "link", KeyE: "code" }[e.code];
    if (name && e.target.tagName === "TEXTAREA") { e.preventDefault(); e.stopPropagation(); mark(name); }
  });
  form.addEventListener("click", function (e) {
    var tool = e.target.closest("[data-tool]"), gone = e.target.closest("[data-drop-medium]");
    if (tool) { mark(tool.dataset.tool); }
    if (gone) { e.preventDefault(); gone.closest("li").remove(); changed(); files.focus(); }
  });
  // A row that is filled gets an empty one behind it.
  form.addEventListener("input", function (e) {
    dirty = true;
    var row = e.target.closest && e.target.closest("[data-spare]");
    if (row && e.target.value) {
      var next = row.cloneNode(true);
      next.querySelectorAll("input, textarea").forEach(function (i) { i.value = ""; });
      row.removeAttribute("data-spare");
      row.after(next);
    }
  });
  function upload(file) {
    var row = document.createElement("li"), bar = document.createElement("progress"), name = document.createElement("span"), data = new FormData(), ask = new XMLHttpRequest();
    row.className = "med f"; name.className = "small"; bar.max = 100; bar.value = 0;
    name.textContent = list.dataset.wait + " " + file.name;
    bar.setAttribute("aria-label", name.textContent);
    row.append(name, bar);
    list.append(row);
    data.append("csrf", form.elements.csrf.value);
    data.append("files", file);
    ask.upload.onprogress = function (e) { if (e.lengthComputable) { bar.value = 100 * e.loaded / e.total; } };
    ask.onloadend = function () {
      if (ask.status === 200) { row.outerHTML = ask.responseText; changed(); return; }
      bar.remove();
      if (ask.status === 422) { row.innerHTML = ask.responseText; } else { name.textContent = list.dataset.failed + " " + file.name; }
    };
    ask.open("POST", "/compose/upload");
    ask.send(data);
  }
  function take(all, e) {
    if (!all || !all.length) { return; }
    e.preventDefault();
    [...all].forEach(upload);
  }
  files.addEventListener("change", function (e) { [...files.files].forEach(upload); files.value = ""; e.stopPropagation(); });
  form.addEventListener("paste", function (e) { take(e.clipboardData && e.clipboardData.files, e); });
  ["dragover", "dragleave", "drop"].forEach(function (type) {
    form.addEventListener(type, function (e) {
      drop.classList.toggle("over", type === "dragover");
      if (type === "dragover") { e.preventDefault(); }
      if (type === "drop") { take(e.dataTransfer.files, e); }
    });
  });
  document.addEventListener("htmx:afterRequest", function (e) { if (e.detail.successful && e.detail.pathInfo.requestPath === "/compose/save") { dirty = false; } });
  form.addEventListener("submit", function () { dirty = false; });
  addEventListener("pagehide", function () {
    if (!dirty) { return; }
    var data = new FormData(form);
    data.delete("files");
    data.append("leave", "1");
    navigator.sendBeacon("/compose/save", data);
  });
  addEventListener("pageshow", function (e) { if (e.persisted) { location.reload(); } });
})();
