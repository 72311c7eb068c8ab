// A filter over a list of terms: <div class="lt-lookup"><dl>. Without script the whole list stands there.
(function () {
  "use strict";

  document.querySelectorAll(".lt-lookup").forEach((box) => {
    const entries = [...box.querySelectorAll("dt")].map((term) => {
      const parts = [term];
      for (let next = term.nextElementSibling; next && next.tagName === "DD"; next = next.nextElementSibling) parts.push(next);
      return { parts, text: parts.map((part) => part.textContent).join(" ").toLowerCase() };
    });

    const label = document.createElement("label");
    label.className = "lt-lookup__field";
    label.append("Show entries with ");
    const field = document.createElement("input");
    field.type = "search";
    field.autocomplete = "off";
    label.append(field);
    const count = document.createElement("output");
    label.append(count);
    box.prepend(label);

    function show() {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      entries.forEach(({ parts, text }) => {
        const hit = words.every((word) => text.includes(word));
        parts.forEach((part) => (part.hidden = !hit));
        shown += hit;
      });
      count.textContent = ` ${shown} of ${entries.length}`;
    }

    field.addEventListener("input", show);
    show();
  });
})();
