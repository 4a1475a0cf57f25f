// Finds pages that have all the words; what stands in a title or a heading comes first.
(function () {
  "use strict";
  var box = document.getElementById("search"), list = document.getElementById("found");
  var top = document.body.dataset.top;
  function weight(page, word) {
    if (page.title.toLowerCase().indexOf(word) >= 0) return 20;
    if (page.headings.toLowerCase().indexOf(word) >= 0) return 5;
    return page.words.toLowerCase().indexOf(word) >= 0 ? 1 : 0;
  }
  function around(page, word) {
    var at = page.words.toLowerCase().indexOf(word);
    return at < 0 ? "" : page.words.slice(Math.max(0, at - 50), at + 90);
  }
  box.addEventListener("input", function () {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = "";
    list.hidden = words.length === 0;
    if (!words.length) return;
    var hits = PAGES.map(function (page) {
      var each = words.map(function (word) { return weight(page, word); });
      return { page: page, weight: Math.min.apply(null, each) ? each.reduce(function (a, b) { return a + b; }) : 0 };
    }).filter(function (hit) { return hit.weight; }).sort(function (a, b) { return b.weight - a.weight; }).slice(0, 12);
    if (!hits.length) list.textContent = "No page has all these words.";
    hits.forEach(function (hit) {
      var item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("small");
      link.href = top + hit.page.path;
      link.textContent = hit.page.title;
      where.textContent = around(hit.page, words[0]);
      item.append(link, where);
      list.append(item);
    });
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { box.value = ""; list.hidden = true; }
    if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
  });
})();
