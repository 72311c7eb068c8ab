// Diagrams that unfold: <svg data-steps="3"> with <g data-step="1">, each shown from its step on, and an
// optional data-label on the group, which is read out. Without this script, and whenever motion is to be
// reduced, the diagram is complete from the start.
(function () {
  "use strict";

  const SECONDS_PER_STEP = 1.4;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  class Steps {
    constructor(box, diagrams) {
      this.diagrams = diagrams;
      this.last = Math.max(...diagrams.map((svg) => Number(svg.dataset.steps)));
      this.bar = document.createElement("div");
      this.bar.className = "lt-steps-bar";
      this.bar.setAttribute("role", "group");
      this.bar.setAttribute("aria-label", "Unfold the diagram");
      this.play = this.button("Play", () => (this.timer ? this.stop() : this.run()));
      this.button("Step", () => { this.stop(); this.go(this.step === this.last ? 1 : this.step + 1); });
      this.button("Reset", () => { this.stop(); this.go(this.last); });
      this.status = document.createElement("output");
      this.bar.append(this.status);
      this.play.hidden = still.matches;
      still.addEventListener("change", () => { this.stop(); this.play.hidden = still.matches; });
      box.append(this.bar);
      this.go(this.last);
      this.status.textContent = "";
    }

    button(text, action) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", action);
      this.bar.append(button);
      return button;
    }

    go(step) {
      this.step = step;
      let label = "";
      for (const svg of this.diagrams) {
        for (const group of svg.querySelectorAll("[data-step]")) {
          const at = Number(group.dataset.step);
          group.classList.toggle("lt-later", at > step);
          if (at === step) label = group.dataset.label ?? label;
        }
      }
      this.status.textContent = `${step} of ${this.last}${label && ": " + label}`;
    }

    run() {
      this.go(this.step === this.last ? 1 : this.step + 1);
      this.play.textContent = "Pause";
      this.timer = setInterval(() => {
        if (this.step === this.last) this.stop();
        else this.go(this.step + 1);
      }, SECONDS_PER_STEP * 1000);
    }

    stop() {
      clearInterval(this.timer);
      this.timer = undefined;
      this.play.textContent = "Play";
    }
  }

  const boxes = new Map();
  for (const svg of document.querySelectorAll("svg[data-steps]")) {
    const box = svg.parentElement;
    boxes.set(box, [...(boxes.get(box) ?? []), svg]);
  }
  for (const [box, diagrams] of boxes) new Steps(box, diagrams);
})();
