// Answers questions for tests/test_calculator.py: tables in a file, one question a line on stdin, one answer a line.
"use strict";
const fs = require("fs");
const path = require("path");
const sizing = require(path.join(__dirname, "../../book/_static/sizing.js"));

const tables = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const lines = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);
const answers = lines.map((line) => {
  const { text, shipped, ...asked } = JSON.parse(line);
  try {
    const model = shipped ? sizing.shipped(shipped, tables) : sizing.fromConfig(sizing.readConfig(text, tables), tables);
    if (!asked.card) return { model, groups: sizing.attentionLayers(model), count: sizing.parameters(model) };
    return sizing.answer({ ...asked, model }, tables);
  } catch (error) {
    if (error instanceof sizing.SizingError) return { error: error.message };
    return { crash: String(error.stack) };
  }
});
process.stdout.write(answers.map((each) => JSON.stringify(each)).join("\n") + "\n");
