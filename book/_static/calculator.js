// The calculator page: a form, the memory of one card as a bar, and values that open their derivation. It computes with
// sizing.js from the tables that the page holds, asks nobody, and keeps its state in the address after the #.
(function () {
  "use strict";

  const box = document.querySelector(".lt-calculator");
  const sizing = window.lanternSizing;
  if (!box || !sizing) return;
  const tables = JSON.parse(box.querySelector(".lt-calculator__data").textContent);

  const OWN = "own";
  const START = {
    model: "Lantern 70B", config: "", card: "H100 SXM", tp: "4", weights: "file", kv: "16", engine: "vLLM 0.9", fraction: "0.9",
    context: "8192", batch: "32", price: "3", experts: "1", tokens: "", seqs: "", positions: "", unit: "GB",
  };
  const LONGEST_LINK = 8000;
  const LONGEST_ENTRY = 500_000;
  let state = { ...START };

  // ---- small helpers ---------------------------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const digits = (value, decimals = 0) =>
    value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace("-", "−");

  function bytes(value) {
    const [base, ending] = state.unit === "GiB" ? [1024, "iB"] : [1000, "B"];
    const size = Math.abs(value);
    if (size === 0) return `0 G${ending}`;
    for (const [power, letter] of [[3, "G"], [2, "M"], [1, "K"]]) {
      if (size >= (letter === "G" ? 0.1 : 1) * base ** power || letter === "K") return `${digits(value / base ** power, 2)} ${letter}${ending}`;
    }
    return "";
  }

  function seconds(value) {
    if (value >= 1) return `${digits(value, 2)} s`;
    return value >= 1e-3 || value === 0 ? `${digits(value * 1e3, value >= 0.1 ? 0 : 1)} ms` : `${digits(value * 1e6, 1)} µs`;
  }

  const dollars = (value) => `$${value >= 0.01 ? digits(value, 2) : value.toPrecision(2)}`;
  const between = (triple, show) => `${show(triple[1])} to ${show(triple[2])}`;
  const count = (number, what) => `${digits(number)} ${what}${number === 1 ? "" : "s"}`;

  // ---- names -----------------------------------------------------------------------------------------------------

  const FILES = {}; // every name that a model goes by, and the file that it has
  for (const [name, entry] of Object.entries(tables.models)) for (const each of [name, ...entry.aliases]) FILES[each] = name;

  function engineName(key) {
    const { name, version } = tables.engines[key];
    if (version === "unknown") return `${name}, any version`;
    if (version !== "0.0") return `${name} from ${version}`;
    const next = Object.values(tables.engines).filter((rule) => rule.name === name && rule.version !== "unknown")[1];
    return next ? `${name} before ${next.version}` : name;
  }

  const modelNames = Object.keys(FILES).sort((one, other) => (other === START.model) - (one === START.model) || one.localeCompare(other));
  const FIELDS = [
    ["model", "Model", [...modelNames.map((name) => [name, name]), [OWN, "A config.json of your own"]]],
    ["config", "Text of the config.json"],
    ["card", "Card", Object.keys(tables.cards).map((name) => [name, name])],
    ["tp", "GPUs that share the model", { min: 1, max: tables.limits.fields.tp_size, step: 1 }],
    ["weights", "Weights", [["file", "as in the file"], ["16", "16 bits"], ["8", "8 bits"], ["4", "4 bits, groups of 128"]]],
    ["kv", "Cache", [["16", "16 bits"], ["8", "8 bits"]]],
    ["engine", "Engine", Object.keys(tables.engines).map((key) => [key, engineName(key)])],
    ["fraction", "Its memory fraction", { min: 0.01, max: 1, step: 0.01 }],
    ["context", "Tokens of each conversation", { min: 1, max: tables.limits.fields.context_len, step: 1 }],
    ["batch", "Conversations in a step", { min: 1, max: tables.limits.fields.batch_size, step: 1 }],
    ["price", "Dollars for a GPU and hour", { min: 0, step: 0.01 }],
    ["experts", "GPUs that share the experts", { min: 1, max: tables.limits.fields.ep_size, step: 1 }],
    ["tokens", "Tokens of a step", { min: 1, max: tables.limits.fields.max_num_tokens, step: 1 }],
    ["seqs", "Sequences of a step", { min: 1, max: tables.limits.fields.max_num_seqs, step: 1 }],
    ["positions", "Longest context of the model", { min: 1, max: tables.limits.fields.max_positions, step: 1 }],
  ];
  const FURTHER = ["experts", "tokens", "seqs", "positions"]; // folded until somebody wants them
  const LIBRARY = {
    experts: "ep_size", tokens: "max_num_tokens", seqs: "max_num_seqs", positions: "max_positions",
    tp: "tp_size", weights: "weight_bits", kv: "kv_bits", context: "context_len", batch: "batch_size", price: "gpu_hour_dollars",
  };

  // ---- the question and its answer --------------------------------------------------------------------------------

  const typed = (text) => (text.trim() === "" ? NaN : Number(text.replace(/,/g, "")));
  const open = (text) => (text.trim() === "" ? null : typed(text));

  function ask() {
    if (state.model !== OWN && !Object.hasOwn(FILES, state.model)) {
      throw new sizing.SizingError(`model must be one of the list, got ${JSON.stringify(state.model.slice(0, 60))}.`);
    }
    if (state.model === OWN && state.config === "") {
      throw new sizing.SizingError("config must be the text of a config.json, got nothing. Paste the file above.");
    }
    const shape = state.model === OWN
      ? sizing.fromConfig(sizing.readConfig(state.config, tables), tables)
      : sizing.shipped(FILES[state.model], tables);
    const asked = {
      model: shape, card: state.card, tp_size: typed(state.tp), engine: state.engine, fraction: typed(state.fraction),
      weight_bits: state.weights === "file" ? null : typed(state.weights), kv_bits: typed(state.kv),
      context_len: typed(state.context), batch_size: typed(state.batch), gpu_hour_dollars: typed(state.price),
      ep_size: shape.experts ? typed(state.experts) : 1, max_num_tokens: open(state.tokens), max_num_seqs: open(state.seqs),
      max_positions: open(state.positions),
    };
    const found = sizing.answer(asked, tables);
    const model = sizing.stored(shape, asked.weight_bits, asked.kv_bits, tables);
    const called = state.model === OWN ? shape.name : state.model;
    return { ...asked, model, called, found, rule: tables.engines[asked.engine], hardware: tables.cards[asked.card] };
  }

  // ---- values: label, what is shown, and where it comes from --------------------------------------------------------

  const exactly = (value, unit) => `${value.toLocaleString("en-US", { maximumFractionDigits: 3 })} ${unit}`;
  const perGpu = "On the fullest GPU.";

  // The GPUs of a question in words: one group, or several that share the experts.
  const gpusOf = ({ card, found, tp_size: degree }) =>
    `${found.num_gpus} × ${card}${found.num_gpus > degree ? ` in ${found.num_gpus / degree} groups` : ""}`;

  function weightRows(asked) {
    const { model, found, tp_size: degree } = asked;
    const sizes = Object.entries(sizing.componentBytes(model)).filter(([, size]) => size);
    const tower = model.extra.reduce((total, [, number]) => total + number, 0) * model.weight_bytes;
    return [
      ["Formula", "matrices and tables ÷ GPUs + norms, biases and routers + projections that do not divide"],
      ...(found.num_gpus > degree ? [["Experts", `÷ ${found.num_gpus} GPUs, all else ÷ ${degree}`]] : []),
      ["The file", sizes.map(([name, size]) => `${name.replace("_", " ")} ${bytes(size)}`).join(" + ") + ` = ${bytes(found.weight_bytes)}`],
      ...(tower ? [["Beside it", `${model.extra.map(([name]) => name).join(", ")}: ${bytes(tower)}`]] : []),
      ["Parameters", `${digits(found.total_parameters)}, of which a token uses ${digits(found.active_parameters)}`],
      ["Result", `${exactly(found.weights[0], "bytes")} on one of ${count(found.num_gpus, "GPU")}; engines print ${between(found.weights, bytes)} for such files`],
    ];
  }

  function activationRows({ model, found, rule, hardware, max_num_tokens: asked, max_num_seqs: room, tp_size: degree }) {
    const block = sizing.blockNumbers(model, degree, rule.block_copies);
    const forward = found.num_tokens * 2 * (rule.stream_copies * model.hidden_size + block);
    const budget = sizing.budgets(rule, hardware, tables).tokens;
    const left = [[asked, "tokens"], [room, "sequences"]].filter(([value]) => value === null).map(([, name]) => name);
    const sampled = found.num_seqs * rule.sampler_bytes * model.vocab_size;
    return [
      ["Formula", "the larger of two moments: tokens of a step × 2 bytes × (vectors of the width + numbers of the block), and sampling"],
      ["Block", `${digits(found.num_tokens)} × 2 × (${rule.stream_copies} × ${digits(model.hidden_size)} + ${digits(block)}) = ${bytes(forward)}`],
      ...(rule.sampler_bytes
        ? [["Sampling", `${digits(found.num_seqs)} sequences × ${rule.sampler_bytes} bytes × ${digits(model.vocab_size)} = ${bytes(sampled)}`]]
        : []),
      ...(rule.logits_bytes ? [["Logits", `${digits(Math.min(found.num_tokens, budget))} × (${rule.logits_bytes} × ${digits(model.vocab_size)} + 4 × ${digits(model.hidden_size)}) bytes`]] : []),
      ["Result", `${exactly(found.activation_peak[0], "bytes")}; between ${between(found.activation_peak, bytes)}`],
      ...(left.length ? [["Note", `The ${left.join(" and ")} of a step are what ${rule.name} takes on this card if nobody sets them.`]] : []),
    ];
  }

  function poolRows({ found, rule, fraction }) {
    const [all, parts] = [bytes(found.device[0]), ["weights", "activation_peak", "runtime", "recorded_graphs"].map((name) => bytes(found[name][0]))];
    const table = found.rotary_table[0] ? [" − rotary table", ` − ${bytes(found.rotary_table[0])}`] : ["", ""];
    const ways = {
      total: [`fraction × memory − weights − activation − runtime − graphs${table[0]}`, `${fraction} × ${all} − ${parts.join(" − ")}${table[1]}`],
      free: [`fraction × (memory − weights − activation − runtime − graphs${table[0]})`, `${fraction} × (${all} − ${parts.join(" − ")}${table[1]})`],
      static: [
        `fraction × (memory − runtime) − weights${table[0]}; activation lives in the rest`,
        `${fraction} × (${all} − ${parts[2]}) − ${parts[0]}${table[1]}`,
      ],
    };
    const [formula, numbers] = ways[rule.fraction_of];
    return [
      ["Formula", formula],
      ["Numbers", `${numbers} = ${bytes(found.pool[0])}`],
      ["Interval", `${between(found.pool, bytes)}: the deviations of all parts, added as squares`],
    ];
  }

  function groups({ model, tp_size: degree }) {
    return sizing.attentionLayers(model).map((layers) => ({ ...layers, numbers: sizing.cachedNumbers(model, layers, degree) }));
  }

  function tokenRows(asked) {
    const { model, found } = asked;
    const note = model.latent
      ? "One latent vector serves all heads, so every GPU holds it whole."
      : "A key-value head is not cut: beyond as many GPUs as heads, they are copied.";
    return [
      ["Formula", "layers × numbers that a layer caches for a token on this GPU × bytes"],
      ["Numbers", groups(asked).map((each) => `${each.num_layers} × ${digits(each.numbers)} × ${model.kv_bytes}`).join(" + ") + ` = ${exactly(found.token_bytes, "bytes")}`],
      ["Note", note],
    ];
  }

  function sequenceRows(asked) {
    const { model, found, context_len: context, tp_size: degree } = asked;
    const terms = groups(asked).map((each) => {
      const length = each.window === null ? context : Math.min(context, each.window);
      return `${each.num_layers} layers × ${digits(length)} tokens${each.window === null ? "" : " (window)"} × ${digits(each.numbers)} × ${model.kv_bytes}`;
    });
    if (model.recurrent) terms.push(`${model.recurrent.num_layers} states of ${bytes(model.recurrent.state_bytes / degree)}`);
    return [
      ["Formula", "for each kind of layer: layers × tokens it keeps × numbers × bytes"],
      ["Numbers", `${terms.join(" + ")} = ${exactly(found.sequence_bytes, "bytes")}`],
    ];
  }

  function stepRows({ found, tp_size: degree, batch_size: batch }) {
    const longer = found.compute_seconds > found.memory_seconds ? "arithmetic" : "memory";
    const spread = tables.spreads[degree <= 2 ? 0 : 1];
    const { compute, bandwidth } = tables.efficiencies;
    const rows = [
      ["Formula", "the longer of arithmetic and memory, plus communication"],
      ["Numbers", `max(${seconds(found.compute_seconds)}, ${seconds(found.memory_seconds)}) + ${seconds(found.communication_seconds)} = ${seconds(found.step_seconds)}; ${longer} binds`],
      ["Assumes", `${compute} of peak arithmetic and ${bandwidth} of peak bandwidth. At both peaks it is ${seconds(found.floor_seconds)}, which nothing undercuts`],
    ];
    if (spread && batch === 1) {
      rows.push(["Measured", `${spread.num_rows} published single streams on ${degree <= 2 ? "one or two GPUs" : "more GPUs"} reached ${digits(spread.low, 2)} to ${digits(spread.high, 2)} of the peak: ${seconds(found.floor_seconds / spread.high)} to ${seconds(found.floor_seconds / spread.low)} here`]);
    }
    return rows;
  }

  function communicationRows({ model, found, hardware, tp_size: degree, batch_size: batch }) {
    const { latency_seconds: latency, bandwidth } = hardware.link;
    const [gpus, groups] = [found.num_gpus, found.num_gpus / degree];
    const vector = 2 * model.hidden_size;
    const rows = [["Formula", "2 sums a layer × (latency + 2 (g − 1) / g × message ÷ bandwidth of the link), for g GPUs; none for one"]];
    rows.push(["Numbers", degree === 1
      ? "a group of one GPU sums nothing"
      : `2 × ${model.num_layers} × (${seconds(latency)} + 2 × ${degree - 1} / ${degree} × ${bytes(Math.ceil(batch / groups) * vector)} ÷ ${bytes(bandwidth)}/s)`]);
    if (groups > 1) {
      const message = Math.ceil(batch / gpus) * model.experts.experts_per_token * vector;
      rows.push(["Exchanges", `tokens go to their experts and back: 2 × ${model.experts.num_layers} × (${seconds(latency)} + ${gpus - 1} / ${gpus} × ${bytes(message)} ÷ ${bytes(bandwidth)}/s)`]);
    }
    rows.push(["Result", seconds(found.communication_seconds)]);
    return rows;
  }

  const VALUES = [
    ["Memory of one GPU", [
      ["device", "Memory that the card shows", ({ found }) => bytes(found.device[0]), ({ card, found }) => [
        ["Source", "what drivers and engines print at their start, not the name of the product"],
        ["Result", `${card}: ${exactly(found.device[0], "bytes")}, seen between ${between(found.device, bytes)}`],
      ]],
      ["weights", "Weights", ({ found }) => bytes(found.weights[0]), weightRows],
      ["activation_peak", "Activations at their peak", ({ found }) => bytes(found.activation_peak[0]), activationRows],
      ["rotary_table", "Rotary table", ({ found }) => bytes(found.rotary_table[0]), ({ model, found, max_positions: positions }) => [
        ["Formula", "positions × numbers that are turned × 2 bytes, held once on each GPU"],
        ["Numbers", positions === null
          ? "none counted: the longest context of the model is not given"
          : `${digits(positions)} × ${model.latent ? model.latent.rope_dim : model.head_dim} × 2 = ${exactly(found.rotary_table[0], "bytes")}`],
      ]],
      ["runtime", "Runtime outside the allocator", ({ found }) => bytes(found.runtime[0]), ({ found, rule, tp_size: degree, ep_size: spread }) => [
        ["Formula", "on one GPU + doublings of GPUs × what each adds"],
        ["Numbers", `${bytes(rule.runtime[0])} + ${digits(Math.log2(Math.max(degree, spread)), 2)} × ${bytes(rule.runtime_shared[0])} = ${bytes(found.runtime[0])}`],
        ["Interval", `${between(found.runtime, bytes)}, as start-up logs print it`],
      ]],
      ["recorded_graphs", "Recorded graphs", ({ found }) => bytes(found.recorded_graphs[0]), ({ found }) => [
        ["Source", "what this version takes off before it sizes the pool"],
        ["Interval", between(found.recorded_graphs, bytes)],
      ]],
      ["pool", "Pool for the cache", ({ found }) => `${bytes(found.pool[0])} (${between(found.pool, bytes)})`, poolRows],
    ]],
    ["Conversations", [
      ["token_bytes", "One token", ({ found }) => bytes(found.token_bytes), tokenRows],
      ["sequence_bytes", "One conversation", ({ found }) => bytes(found.sequence_bytes), sequenceRows],
      ["pool_tokens", "Tokens in the pool", ({ found }) => `${digits(found.pool_tokens[0])} (${between(found.pool_tokens, digits)})`, ({ found, rule }) => [
        ["Formula", "whole blocks: ⌊pool ÷ (bytes of a token × block)⌋ × block"],
        ["Numbers", `⌊${bytes(Math.max(0, found.pool[0]))} ÷ (${digits(found.token_bytes)} bytes × ${rule.block_size})⌋ × ${rule.block_size} = ${digits(found.pool_tokens[0])}`],
        ["Note", "If every layer keeps the whole context, as engines print it."],
      ]],
      ["conversations", "Conversations that fit", ({ found }) => `${digits(found.conversations[0])} (${between(found.conversations, digits)})`, ({ found, tp_size: degree }) => [
        ["Formula", found.num_gpus > degree ? "groups × ⌊pool ÷ one conversation⌋" : "⌊pool ÷ one conversation⌋"],
        ["Numbers", `${found.num_gpus > degree ? `${found.num_gpus / degree} × ` : ""}⌊${bytes(Math.max(0, found.pool[0]))} ÷ ${bytes(found.sequence_bytes)}⌋ = ${digits(found.conversations[0])}`],
        ["Note", "Half a conversation serves nobody."],
      ]],
    ]],
    ["One decode step, all GPUs together", [
      ["streamed_bytes", "Weights that it reads", ({ found }) => bytes(found.streamed_bytes), ({ model, found, tp_size: degree, batch_size: batch }) => [
        ["Formula", model.experts
          ? "all weights but an untied input table and the experts that no token goes to"
          : "all weights but an untied input table, of which a step reads a few rows"],
        ...(model.experts ? [["Experts", `E (1 − (1 − k/E)^B) = ${digits(model.experts.num_experts * (1 - (1 - model.experts.experts_per_token / model.experts.num_experts) ** batch), 1)} of ${model.experts.num_experts} in each layer, if tokens choose evenly`]] : []),
        ...(found.num_gpus > degree ? [["Groups", `all but experts and that table is read by each group: ${bytes(sizing.readAgain(model, found.num_gpus / degree))} more`]] : []),
        ["Result", exactly(found.streamed_bytes, "bytes")],
      ]],
      ["cache_bytes", "Cache that it reads", ({ found }) => bytes(found.cache_bytes), ({ found, batch_size: batch }) => [
        ["Formula", "conversations × cache of one, over all GPUs"],
        ["Numbers", `${digits(batch)} × ${bytes(found.cache_bytes / batch)} = ${bytes(found.cache_bytes)}`],
      ]],
      ["memory_seconds", "Time of memory", ({ found }) => seconds(found.memory_seconds), ({ found, hardware }) => [
        ["Formula", "bytes ÷ (GPUs × bandwidth × efficiency)"],
        ["Numbers", `(${bytes(found.streamed_bytes)} + ${bytes(found.cache_bytes)}) ÷ (${found.num_gpus} × ${bytes(hardware.memory_bandwidth)}/s × ${tables.efficiencies.bandwidth}) = ${seconds(found.memory_seconds)}`],
      ]],
      ["compute_seconds", "Time of arithmetic", ({ found }) => seconds(found.compute_seconds), ({ found, hardware, batch_size: batch }) => [
        ["Formula", "conversations × (2 × weights of a token + attention) ÷ (GPUs × peak × efficiency)"],
        ["Numbers", `${digits(batch)} × ${digits(found.flops / batch / 1e9, 1)} GFLOPs ÷ (${found.num_gpus} × ${digits(hardware.peak_flops / 1e12, 1)} TFLOPS × ${tables.efficiencies.compute}) = ${seconds(found.compute_seconds)}`],
      ]],
      ["communication_seconds", "Time of communication", ({ found }) => seconds(found.communication_seconds), communicationRows],
      ["step_seconds", "The step", ({ found }) => seconds(found.step_seconds), stepRows],
      ["tokens_per_second", "Tokens a second", ({ found }) => digits(found.tokens_per_second), ({ found, batch_size: batch }) => [
        ["Formula", "conversations ÷ time of the step"],
        ["Numbers", `${digits(batch)} ÷ ${seconds(found.step_seconds)} = ${digits(found.tokens_per_second, 1)}`],
        ["Note", "Reading prompts takes time of the same GPUs and is not counted."],
      ]],
      ["million_dollars", "A million output tokens", ({ found }) => dollars(found.million_dollars), ({ found, gpu_hour_dollars: price }) => [
        ["Formula", "1,000,000 × price × GPUs ÷ (seconds of an hour × tokens a second)"],
        ["Numbers", `1,000,000 × ${price} × ${found.num_gpus} ÷ (${digits(tables.seconds_per_hour)} × ${digits(found.tokens_per_second, 1)}) = ${dollars(found.million_dollars)}`],
        ["Note", "For a batch that is always full, without prompts, idle hours and people."],
      ]],
    ]],
  ];

  // ---- the form ---------------------------------------------------------------------------------------------------

  const form = make("form", { class: "lt-calculator__form", "aria-label": "What to size" });
  const inner = make("div", { class: "lt-calculator__inner" });
  const further = make("details", { class: "lt-calculator__further" }, make("summary", {}, "Experts, limits of a step, longest context"), inner);
  const controls = {};
  for (const [key, label, kind] of FIELDS) {
    const id = `lt-calc-${key}`;
    let control;
    if (Array.isArray(kind)) control = make("select", { id }, ...kind.map(([value, text]) => make("option", { value }, text)));
    else if (kind) control = make("input", { id, type: "number", inputmode: "decimal", ...kind });
    else control = make("textarea", { id, rows: 6, spellcheck: "false", autocomplete: "off", placeholder: '{"model_type": "llama", …}' });
    controls[key] = control;
    const field = make("div", { class: `lt-calculator__field lt-calculator__field-${key}` }, make("label", { for: id }, label), control);
    (FURTHER.includes(key) ? inner : form).append(field);
  }
  form.append(further);
  const units = make("fieldset", { class: "lt-calculator__units" }, make("legend", {}, "Bytes in"));
  for (const unit of ["GB", "GiB"]) {
    const radio = make("input", { type: "radio", name: "lt-calc-unit", value: unit, id: `lt-calc-${unit}` });
    controls[unit] = radio;
    units.append(make("span", {}, radio, make("label", { for: `lt-calc-${unit}` }, unit)));
  }
  const copy = make("button", { type: "button", class: "lt-calculator__copy" }, "Copy the link");
  form.append(units, copy);
  form.addEventListener("submit", (event) => event.preventDefault());

  // ---- the result --------------------------------------------------------------------------------------------------

  const error = make("p", { class: "lt-calculator__error", role: "alert", id: "lt-calc-error" });
  const said = make("p", { class: "lt-calculator__said", "aria-live": "polite" });
  const bar = make("div", { class: "lt-membar", role: "img" });
  const key = make("ul", { class: "lt-membar__key" });
  const result = make("div", { class: "lt-calculator__result" }, said, bar, key);
  const shown = {};
  for (const [title, values] of VALUES) {
    const list = make("dl", { class: "lt-calculator__values" });
    for (const [name, label] of values) {
      const id = `lt-calc-${name}-derivation`;
      const button = make("button", { type: "button", class: "lt-claim", popovertarget: id });
      const rows = make("tbody");
      const derivation = make("div", { id, popover: "auto", class: "lt-popover", role: "group", "aria-label": `${label}: derivation` },
        make("p", { class: "lt-popover-title" }, label), make("table", { class: "lt-popover-table" }, rows));
      shown[name] = { button, rows };
      list.append(make("div", {}, make("dt", {}, label), make("dd", {}, button, derivation)));
    }
    result.append(make("h3", {}, title), list);
  }

  // What the bar shows, first to last, with the colour of its role.
  const PARTS = [
    ["weights", "weights", "memory"], ["rotary_table", "rotary table", "total"], ["runtime", "runtime", "muted"], ["recorded_graphs", "recorded graphs", "control"],
    ["activation_peak", "activations", "arithmetic"], ["pool", "pool for the cache", "user"], ["rest", "left to others", "rest"],
  ];

  function drawBar({ found }) {
    const size = found.device[0];
    const sizes = Object.fromEntries(PARTS.map(([name]) => [name, Math.max(0, found[name]?.[0] ?? 0)]));
    const before = sizes.weights + sizes.rotary_table + sizes.runtime + sizes.recorded_graphs;
    // SGLang lets activations live in what is left beside weights and pool.
    if (before + sizes.pool < size) sizes.activation_peak = Math.min(sizes.activation_peak, size - before - sizes.pool);
    const taken = before + sizes.activation_peak + sizes.pool;
    sizes.rest = Math.max(0, size - taken);
    const whole = Math.max(size, taken);
    const percent = (value) => `${(100 * Math.min(1, Math.max(0, value / whole))).toFixed(3)}%`;
    bar.replaceChildren();
    key.replaceChildren();
    for (const [name, label, role] of PARTS) {
      if (!sizes[name]) continue;
      const part = make("span", { class: `lt-membar__part lt-membar__${role}` });
      part.style.width = percent(sizes[name]);
      bar.append(part);
      key.append(make("li", {}, make("span", { class: `lt-membar__swatch lt-membar__${role}` }), `${label} ${bytes(sizes[name])}`));
    }
    const place = (name, from, to) => {
      const mark = make("span", { class: name });
      mark.style.left = percent(from);
      mark.style.width = percent(to - from);
      bar.append(mark);
    };
    // The pool ends where the fraction ends; how much of it the other parts leave is what is not certain.
    if (found.pool[2] > 0) place("lt-membar__range", taken - found.pool[2], taken - Math.max(0, found.pool[1]));
    if (taken > size) place("lt-membar__limit", size, size);
    const parts = PARTS.filter(([name]) => sizes[name]).map(([name, label]) => `${label} ${bytes(sizes[name])}`);
    bar.setAttribute("aria-label", `Memory of one GPU, ${bytes(size)}: ${parts.join(", ")}.`);
  }

  function sentence(asked) {
    const { called, context_len: context, batch_size: batch, found } = asked;
    const head = `${called} on ${gpusOf(asked)}: `;
    if (found.pool[0] <= 0) {
      return `${head}the model does not fit. Each GPU lacks ${bytes(-found.pool[0])}. Add GPUs, store the weights in fewer bytes, or raise the fraction.`;
    }
    const [fit, least, most] = found.conversations;
    const range = least === most ? "" : ` (${digits(least)} to ${digits(most)})`;
    const full = batch > fit ? ` So many do not fit; the time is shown all the same.` : "";
    return `${head}${count(fit, "conversation")}${range} of ${count(context, "token")} ${fit === 1 ? "fits" : "fit"}. A step of ${count(batch, "conversation")} takes ${seconds(found.step_seconds)}, and a million output tokens cost ${dollars(found.million_dollars)}.${full}`;
  }

  function show() {
    for (const [name, control] of Object.entries(controls)) {
      if (name === "GB" || name === "GiB") control.checked = state.unit === name;
      else if (control.value !== state[name]) control.value = state[name];
      control.removeAttribute("aria-invalid");
      control.removeAttribute("aria-describedby");
    }
    controls.config.parentElement.hidden = state.model !== OWN;
    if (FURTHER.some((name) => state[name] !== START[name])) further.open = true;
    let asked;
    try {
      asked = ask();
    } catch (problem) {
      if (!(problem instanceof sizing.SizingError)) throw problem;
      complain(problem.message);
      return;
    }
    error.textContent = "";
    result.hidden = false;
    hint(asked);
    said.textContent = sentence(asked);
    said.classList.toggle("lt-calculator__short", asked.found.pool[0] <= 0 || asked.batch_size > asked.found.conversations[0]);
    drawBar(asked);
    for (const [, values] of VALUES) {
      for (const [name, , text, derive] of values) {
        shown[name].button.textContent = text(asked);
        shown[name].rows.replaceChildren(
          ...derive(asked).map(([head, line]) => make("tr", {}, make("th", { scope: "row" }, head), make("td", {}, line)))
        );
      }
    }
  }

  // What holds if a field is left empty, and no question about experts to a model that has none.
  function hint({ model, rule, hardware }) {
    const { tokens, seqs } = sizing.budgets(rule, hardware, tables);
    controls.tokens.placeholder = `${digits(tokens)} by default`;
    controls.seqs.placeholder = `${digits(seqs)} by default`;
    controls.positions.placeholder = "not given";
    controls.experts.parentElement.hidden = !model.experts;
  }

  // Say what is wrong beside the field, by the name that the reader sees, and mark it.
  function complain(message) {
    const field = FIELDS.find(([name]) => message.startsWith(`${LIBRARY[name] ?? name} must`));
    const control = controls[field ? field[0] : state.model === OWN ? "config" : "model"];
    if (further.contains(control)) further.open = true;
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", error.id);
    control.parentElement.append(error);
    error.textContent = field ? message.replace(/^\w+/, `“${field[1]}”`) : message;
    result.hidden = true;
  }

  // ---- the address ---------------------------------------------------------------------------------------------------

  // A file without the fields that change nothing, so that a link stays short.
  function slim(text) {
    const plain = (value) => {
      if (value instanceof Map) return Object.fromEntries([...value].filter(([name]) => !spare.has(name)).map(([name, each]) => [name, plain(each)]));
      return Array.isArray(value) ? value.map(plain) : value instanceof sizing.Real ? value.value : value;
    };
    const spare = new Set(tables.harmless.filter((name) => !["torch_dtype", "dtype", "_name_or_path"].includes(name)));
    try {
      const config = sizing.readConfig(text, tables);
      sizing.fromConfig(config, tables);
      return JSON.stringify(plain(config));
    } catch (problem) {
      return ""; // what is no file of ours is not shared
    }
  }

  function address() {
    const { config, ...rest } = state;
    const values = new URLSearchParams(rest);
    const kept = state.model === OWN ? slim(config) : "";
    if (kept && kept.length <= LONGEST_LINK) values.set("config", kept);
    return `#${values}`;
  }

  function readAddress() {
    const values = new URLSearchParams(location.hash.slice(1));
    if (!values.has("model")) return location.hash === "" ? { ...START } : state; // a heading of the page
    return Object.fromEntries(Object.entries(START).map(([name, value]) => [name, values.get(name) ?? value]));
  }

  // The entry of the history holds a pasted file too, which may be too long for the address.
  function keep() {
    if (address() !== location.hash) history.pushState(state.config.length > LONGEST_ENTRY ? null : { calculator: state }, "", address());
  }

  function change(name, value) {
    state = { ...state, [name]: value };
    if (name === "engine" && tables.engines[value]) state.fraction = String(tables.engines[value].fraction);
    show();
  }

  let waiting;
  form.addEventListener("input", ({ target }) => {
    const name = Object.keys(controls).find((each) => controls[each] === target);
    clearTimeout(waiting);
    if (target.type === "radio") change("unit", target.value);
    else if (name === "config") waiting = setTimeout(() => { change(name, target.value); keep(); }, 250);
    else change(name, target.value);
  });
  form.addEventListener("change", ({ target }) => {
    if (target === controls.config) {
      clearTimeout(waiting);
      change("config", target.value);
    }
    keep();
  });
  window.addEventListener("popstate", (event) => { state = event.state?.calculator ?? readAddress(); show(); });
  copy.addEventListener("click", async () => {
    keep();
    try {
      if (state.model === OWN && !location.hash.includes("&config=")) copy.textContent = "No link: the file is too long";
      else {
        await navigator.clipboard.writeText(location.href);
        copy.textContent = "Copied";
      }
    } catch (problem) {
      copy.textContent = "Copy it from the address bar";
    }
    setTimeout(() => { copy.textContent = "Copy the link"; }, 2000);
  });

  box.querySelector(".lt-calculator__static").remove();
  box.append(form, error, result);
  state = readAddress();
  show();
})();
