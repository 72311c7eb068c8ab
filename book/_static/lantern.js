// A box that scrolls by itself must be reachable by keyboard, and only then be a stop for the Tab key.
(function () {
  "use strict";

  const BOXES = "article pre, .lt-scroll, .pst-scrollable-table-container, .cell_output .output, .lt-popover";
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));

  function mark(box) {
    if (!box.clientWidth) return; // folded away: measured when it is unfolded
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 1;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    if (scrolls && !box.hasAttribute("aria-label")) {
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", box.matches("pre") ? "Code" : box.querySelector("table") ? "Table" : "Wide content");
    }
  }

  const boxes = document.querySelectorAll(BOXES);
  boxes.forEach((box) => sizes.observe(box)); // also reports every box once, at the start
  // A font that arrives late widens a formula without changing the size of its box.
  document.fonts.addEventListener("loadingdone", () => boxes.forEach(mark));
})();
