// Explorable plots. The page already holds every figure as a picture; this brings one to life when it
// comes near the screen: it draws the same program with Vega, and ties the page's own controls to it.
// The conventions are those of lantern_book/vega.py.
(function () {
  "use strict";

  const here = document.currentScript.src;
  const SEPARATOR = " · ";
  let runtime;

  function loadVega() {
    runtime ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("vendor/vega/vega.min.js", here).href;
      script.onload = () => resolve(window.vega);
      script.onerror = () => reject(new Error("the plot library did not load"));
      document.head.append(script);
    });
    return runtime;
  }

  // Long tables travel as columns; Vega wants rows, and a fresh copy for every view.
  function unpack(data) {
    return data.map((entry) => {
      if (!entry.columns) return structuredClone(entry);
      const { columns, ...rest } = entry;
      const fields = Object.keys(columns);
      const values = columns[fields[0]].map((_, row) =>
        Object.fromEntries(fields.map((field) => [field, columns[field][row]])));
      return { ...rest, values };
    });
  }

  class Explorable {
    constructor(root) {
      this.root = root;
      this.inputs = [...root.querySelectorAll("[data-signal]")];
      this.output = root.querySelector(".lt-readout");
      this.plots = [...root.querySelectorAll("[data-layout]")];
      for (const input of this.inputs) {
        input.addEventListener("input", () => this.set(input));
        // While a slider has focus its own value text is spoken; the output must not say it again.
        input.addEventListener("focus", () => this.output.setAttribute("aria-live", "off"));
        input.addEventListener("blur", () => this.output.setAttribute("aria-live", "polite"));
      }
      for (const plot of this.plots) plot.addEventListener("pointerdown", letGo);
    }

    async start() {
      this.vega = await loadVega();
      this.programs = JSON.parse(this.root.querySelector(".lt-explorable__data").textContent);
      await this.show();
      new ResizeObserver(() => this.show()).observe(this.root);
    }

    // Draw the layout that the style sheet shows at this width, unless it is drawn already.
    async show() {
      const plot = this.plots.find((item) => getComputedStyle(item).display !== "none");
      if (!plot || plot === this.plot) return;
      this.plot = plot;
      const program = this.programs[plot.dataset.layout];
      const data = unpack(program.data ?? this.programs.data);
      const stage = document.createElement("div");
      const view = new this.vega.View(this.vega.parse({ ...program, data }), { renderer: "svg" });
      view.initialize(stage);
      await view.runAsync(); // a program's first run sets its own start values, so ours come after it
      for (const input of this.inputs) view.signal(input.dataset.signal, valueOf(input));
      await view.runAsync();
      if (plot !== this.plot) return view.finalize();
      this.view?.finalize();
      this.view = view;
      for (const input of this.inputs) this.follow(input);
      plot.replaceChildren(stage);
      this.root.classList.add("lt-live");
      this.root.querySelector(".lt-controls").disabled = false;
      this.report();
    }

    // A control moved: the plot follows.
    async set(input) {
      await this.view.signal(input.dataset.signal, valueOf(input)).runAsync();
      this.report();
    }

    // The ring moved: its slider follows.
    follow(input) {
      this.view.addSignalListener(input.dataset.signal, (name, value) => {
        if (input.type === "range" && value !== null) input.value = value;
        this.view.runAfter(() => this.report());
      });
    }

    report() {
      const text = readouts(this.view.scenegraph().root).join(SEPARATOR);
      if (this.output.textContent !== text) this.output.textContent = text;
      for (const input of this.inputs) {
        if (input.type !== "range") continue;
        const shown = stopName(input);
        input.nextElementSibling.textContent = shown;
        input.setAttribute("aria-valuetext", text || shown);
      }
    }
  }

  function valueOf(input) {
    return input.type === "range" ? Number(input.value) : JSON.parse(input.value);
  }

  function stopName(input) {
    const position = (Number(input.value) - Number(input.min)) / Number(input.step);
    const stops = input.dataset.stops ? JSON.parse(input.dataset.stops) : [];
    return stops[Math.round(position)] ?? Number(input.value).toLocaleString("en");
  }

  function readouts(mark) {
    if (mark.marktype === "text") {
      return mark.name?.startsWith("readout") ? mark.items.map((item) => String(item.text)) : [];
    }
    if (mark.marktype !== "group") return [];
    return mark.items.flatMap((group) => group.items.flatMap(readouts));
  }

  // A finger is captured by the cell it first touches; let it go, so that the ring passes to the next.
  function letGo(event) {
    if (event.target.hasPointerCapture?.(event.pointerId)) event.target.releasePointerCapture(event.pointerId);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      new Explorable(entry.target).start().catch((error) => console.error(error));
    }
  }, { rootMargin: "300px" });

  for (const data of document.querySelectorAll(".lt-explorable__data")) near.observe(data.parentElement);
})();
