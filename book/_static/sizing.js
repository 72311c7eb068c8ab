// Sizes a model on cards: functions of lantern_lib once more, for the calculator page, which has no kernel. All tables
// and constants come from lantern_lib.calculator.tables(). tests/test_calculator.py holds the answers, and the sentences
// about bad input, equal to Python's. In node: require("./sizing.js"). A parsed object is a Map, a number with a point or
// an exponent a Real, a whole number beyond 2^53 a BigInt, so that what Python tells apart is told apart here.
(function (root) {
  "use strict";

  class SizingError extends Error {}
  const fail = (message) => { throw new SizingError(message); };
  const ceilDiv = (a, b) => Math.ceil(a / b);
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  const comma = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

  // Python's // on floats above zero: the remainder is exact, a rounded quotient is not.
  function floorDiv(a, b) {
    if (a < 0) return -1; // a pool below zero holds nothing, however far below it is
    const quotient = (a - (a % b)) / b;
    const whole = Math.floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
  }

  // ---- values as Python shows them -------------------------------------------------------------------------------

  class Real { constructor(value) { this.value = value; } }
  const isMap = (value) => value instanceof Map;
  const isInt = (value) => typeof value === "number" || typeof value === "bigint";
  const given = (value) => value !== undefined && value !== null;

  function truthy(value) {
    if (value instanceof Real) return value.value !== 0;
    if (Array.isArray(value)) return value.length > 0;
    return isMap(value) ? value.size > 0 : Boolean(value);
  }

  function reprReal(x) {
    if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
    if (x === 0) return Object.is(x, -0) ? "-0.0" : "0.0";
    const [digits, exponent] = x.toExponential().split("e");
    if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${exponent.slice(1).padStart(2, "0")}`;
    return String(x).includes(".") ? String(x) : `${x}.0`;
  }

  function reprText(text) {
    const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
    const short = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", [quote]: `\\${quote}` };
    let shown = "";
    for (const letter of text) {
      const code = letter.codePointAt(0);
      if (short[letter]) shown += short[letter];
      else if (letter === " " || !/[\p{C}\p{Z}]/u.test(letter)) shown += letter;
      else if (code < 256) shown += `\\x${code.toString(16).padStart(2, "0")}`;
      else shown += code < 65536 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
    }
    return quote + shown + quote;
  }

  function repr(value) {
    if (!given(value)) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (value instanceof Real) return reprReal(value.value);
    if (typeof value === "string") return reprText(value);
    if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
    if (isMap(value)) return `{${[...value].map(([key, each]) => `${reprText(key)}: ${repr(each)}`).join(", ")}}`;
    return String(value);
  }

  function cut(text, most, marks = "") {
    if (text.length <= most) return text;
    const letters = [...text.slice(0, 2 * most + 2)];
    return letters.length <= most ? text : letters.slice(0, most - marks.length).join("") + marks;
  }
  const short = (value) => cut(repr(value), 80, "...");

  function typeName(value) {
    if (!given(value)) return "NoneType";
    if (typeof value === "boolean") return "bool";
    if (typeof value === "string") return "str";
    if (value instanceof Real) return "float";
    return isInt(value) ? "int" : Array.isArray(value) ? "list" : "dict";
  }

  // ---- JSON as Python reads it, with a limit on depth ---------------------------------------------------------------

  const DEEPEST = 900;
  const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y;
  const PLAIN = /[^"\\\u0000-\u001f]+/y;
  const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

  class Parser {
    constructor(text) { this.text = text; this.at = 0; }

    stop(why, at = this.at) {
      const before = this.text.slice(0, at);
      const line = before.split("\n").length;
      const column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
      fail(`text must be JSON, got none at line ${line}, column ${column}: ${why}.`);
    }

    space() { while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at += 1; }

    whole() {
      this.space();
      const value = this.value(0);
      this.space();
      if (this.at < this.text.length) this.stop("Extra data");
      return value;
    }

    value(depth) {
      if (depth > DEEPEST) fail("text must be a flat object, got one nested too deeply. Is it a config.json?");
      const letter = this.text[this.at];
      if (letter === '"') return this.string();
      if (letter === "{") return this.object(depth);
      if (letter === "[") return this.list(depth);
      for (const [word, value] of [["null", null], ["true", true], ["false", false]]) {
        if (this.text.startsWith(word, this.at)) { this.at += word.length; return value; }
      }
      for (const word of ["NaN", "Infinity", "-Infinity"]) {
        if (this.text.startsWith(word, this.at)) fail(`text must hold finite numbers, got ${word}.`);
      }
      return this.number();
    }

    number() {
      NUMBER.lastIndex = this.at;
      const found = NUMBER.exec(this.text);
      if (!found) this.stop("Expecting value");
      this.at = NUMBER.lastIndex;
      if (found[1] || found[2]) return new Real(Number(found[0]));
      if (found[0].replace("-", "").length > 4300) fail("text must hold numbers of a few digits, got one of thousands.");
      const number = Number(found[0]);
      return Number.isSafeInteger(number) ? number + 0 : BigInt(found[0]);
    }

    string() {
      const start = this.at;
      let made = "";
      for (this.at += 1; ;) {
        PLAIN.lastIndex = this.at;
        const plain = PLAIN.exec(this.text);
        if (plain) { made += plain[0]; this.at = PLAIN.lastIndex; }
        const letter = this.text[this.at];
        if (letter === '"') { this.at += 1; return made; }
        if (letter === undefined) this.stop("Unterminated string starting at", start);
        if (letter !== "\\") this.stop("Invalid control character at");
        made += this.escape(start);
      }
    }

    escape(start) {
      const letter = this.text[this.at + 1];
      if (letter === undefined) this.stop("Unterminated string starting at", start);
      if (letter === "u") {
        const code = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(code)) this.stop("Invalid \\uXXXX escape", this.at + 1);
        this.at += 6;
        return String.fromCharCode(parseInt(code, 16));
      }
      if (!(letter in ESCAPES)) this.stop("Invalid \\escape");
      this.at += 2;
      return ESCAPES[letter];
    }

    list(depth) {
      const made = [];
      this.at += 1;
      this.space();
      if (this.text[this.at] === "]") { this.at += 1; return made; }
      for (;;) {
        made.push(this.value(depth + 1));
        this.space();
        if (this.text[this.at] === "]") { this.at += 1; return made; }
        if (this.text[this.at] !== ",") this.stop("Expecting ',' delimiter");
        this.at += 1;
        this.space();
      }
    }

    object(depth) {
      const made = new Map();
      this.at += 1;
      this.space();
      if (this.text[this.at] === "}") { this.at += 1; return made; }
      for (;;) {
        if (this.text[this.at] !== '"') this.stop("Expecting property name enclosed in double quotes");
        const key = this.string();
        this.space();
        if (this.text[this.at] !== ":") this.stop("Expecting ':' delimiter");
        this.at += 1;
        this.space();
        made.set(key, this.value(depth + 1));
        this.space();
        if (this.text[this.at] === "}") { this.at += 1; return made; }
        if (this.text[this.at] !== ",") this.stop("Expecting ',' delimiter");
        this.at += 1;
        this.space();
      }
    }
  }

  function readConfig(text, tables) {
    const most = tables.limits.characters;
    const length = text.length > most ? [...text].length : text.length;
    if (length > most) fail(`text must have at most ${comma(most)} characters, got ${comma(length)}. Is it a config.json?`);
    if (text.startsWith("\ufeff")) fail("text must be JSON, got none at line 1, column 1: Unexpected UTF-8 BOM (decode using utf-8-sig).");
    const config = new Parser(text).whole();
    if (!isMap(config)) fail(`text must be a JSON object, got ${typeName(config)}. A config.json begins with a brace.`);
    return config;
  }

  // ---- config.json to a shape (hf_config, hf_layers, hf_quantization, vision_tower) ----------------------------------

  function requireInt(name, value, minimum = 1, hint = "") {
    if (!isInt(value) || value < minimum) {
      fail(`${name} must be a whole number of ${minimum} or more, got ${repr(value)}.${hint && ` ${hint}`}`);
    }
    return Number(value);
  }

  // Reads one file by the rules of its family.
  class File {
    constructor(config, family, tables) {
      this.config = config;
      this.family = family;
      this.tables = tables;
    }

    get(field, otherwise = null) { return this.config.has(field) ? this.config.get(field) : otherwise; }
    owns(field) { return this.family.own_fields.includes(field); }

    number(field, value) {
      const number = requireInt(field, value);
      const most = this.tables.limits.side;
      if (number > most) fail(`${field} must be at most ${comma(most)}, got a number of ${Math.min(4000, String(value).length)} digits.`);
      return number;
    }

    required(field) {
      if (!given(this.get(field))) fail(`${field} must be in the config, got nothing. The shape is incomplete without it.`);
      return this.number(field, this.get(field));
    }

    optional(field, otherwise) { return given(this.get(field)) ? this.number(field, this.get(field)) : otherwise; }

    headDim(width, heads) {
      if (given(this.get("head_dim"))) return this.number("head_dim", this.get("head_dim"));
      if (width % heads) fail(`head_dim must be declared, got nothing: hidden_size ${width} is no multiple of num_attention_heads ${heads}.`);
      return width / heads;
    }

    attention(width, heads) {
      const shape = this.family.shape ?? {};
      if (this.family.latent) {
        const latent = {
          kv_rank: this.required("kv_lora_rank"),
          rope_dim: this.required("qk_rope_head_dim"),
          nope_dim: this.required("qk_nope_head_dim"),
          value_dim: this.required("v_head_dim"),
          query_rank: given(this.get("q_lora_rank")) ? this.required("q_lora_rank") : null,
        };
        return { latent, num_kv_heads: 1, head_dim: latent.kv_rank + latent.rope_dim };
      }
      if (this.owns("new_decoder_architecture")) return this.falcon(width, heads);
      const kvHeads = this.optional("num_key_value_heads", heads);
      const found = { num_kv_heads: kvHeads, head_dim: this.headDim(width, heads) };
      if (this.owns("use_qk_norm") && "qk_norm" in shape) found.qk_norm = truthy(this.get("use_qk_norm", false));
      if (this.owns("attention_k_eq_v")) {
        const shared = truthy(this.get("attention_k_eq_v", false));
        const fullHeads = shared ? this.optional("num_global_key_value_heads", kvHeads) : kvHeads;
        const size = this.optional("global_head_dim", found.head_dim);
        found.full_attention = { num_kv_heads: fullHeads, head_dim: size, keys_are_values: shared };
      }
      if (this.get("use_qk_norm", true) === false && shape.qk_norm_full) found.qk_norm_full = false;
      if (this.family.hybrid && this.get("attn_output_gate") === false) found.output_gate = false;
      return found;
    }

    falcon(width, heads) {
      let kvHeads, norms;
      if (truthy(this.get("new_decoder_architecture", false))) {
        kvHeads = this.optional("num_kv_heads", heads);
        norms = this.optional("num_ln_in_parallel_attn", 2);
      } else {
        kvHeads = truthy(this.get("multi_query", true)) ? 1 : heads;
        norms = truthy(this.get("parallel_attn", true)) ? 1 : 2;
      }
      const bias = truthy(this.get("bias", false));
      return {
        num_kv_heads: kvHeads,
        head_dim: this.headDim(width, heads),
        norms_per_layer: norms,
        qkv_bias: bias,
        output_bias: bias,
        mlp_bias: bias,
        intermediate_size: this.optional("ffn_hidden_size", 4 * width),
      };
    }

    layers(numLayers) {
      const kinds = this.layerTypes(numLayers);
      const found = {};
      if (this.family.hybrid) {
        const interval = this.optional("full_attention_interval", 4);
        const linear = kinds.length
          ? kinds.filter((kind) => kind === "linear_attention").length
          : numLayers - Math.floor(numLayers / interval);
        found.recurrent = linear ? this.gatedDelta(linear) : null;
      }
      const [window, sliding] = this.windows(numLayers, kinds);
      return window === null ? found : { ...found, sliding_window: window, num_sliding_layers: sliding };
    }

    layerTypes(numLayers) {
      const kinds = this.get("layer_types");
      if (!given(kinds)) return [];
      const allowed = ["full_attention", "sliding_attention", "chunked_attention"].concat(this.family.hybrid ? ["linear_attention"] : []);
      const known = Array.isArray(kinds) && kinds.every((kind) => typeof kind === "string");
      const unknown = known ? [...new Set(kinds)].filter((kind) => !allowed.includes(kind)).sort() : ["no list of names"];
      if (unknown.length || kinds.length !== numLayers) {
        const names = this.family.hybrid ? "linear_attention or full_attention" : "sliding_attention or full_attention";
        const tail = unknown.length ? ` with ${cut(unknown.join(", "), 80)}` : "";
        fail(`layer_types must name ${names} for each of ${numLayers} layers, got ${known ? kinds.length : typeName(kinds)} entries${tail}.`);
      }
      return kinds;
    }

    gatedDelta(numLayers) {
      const width = this.required("hidden_size");
      const [keyHeads, valueHeads] = [this.required("linear_num_key_heads"), this.required("linear_num_value_heads")];
      const [keyDim, valueDim] = [this.required("linear_key_head_dim"), this.required("linear_value_head_dim")];
      const kernel = this.optional("linear_conv_kernel_dim", 4);
      const [keys, values] = [keyHeads * keyDim, valueHeads * valueDim];
      const mixed = 2 * keys + values;
      const stateNumber = this.get("mamba_ssm_dtype") === "float32" ? 4 : 2;
      const state = 2 * (kernel - 1) * mixed + stateNumber * valueHeads * keyDim * valueDim;
      return {
        num_layers: numLayers,
        matrices: [[width, mixed + values], [width, 2 * valueHeads], [values, width]],
        vector_parameters: mixed * kernel + 2 * valueHeads + valueDim,
        state_bytes: state,
        draft_state_bytes: 2 * mixed,
      };
    }

    windows(numLayers, kinds) {
      const rule = this.family.window;
      let window = this.get(rule === "chunks" ? "attention_chunk_size" : "sliding_window");
      if (rule === "none" && given(window)) fail(`sliding_window must be absent for this model_type, got ${repr(window)}.`);
      if (rule === "from_layer" && !truthy(this.get("use_sliding_window", false))) window = null;
      if (!given(window)) return [null, 0];
      window = this.number(rule === "chunks" ? "attention_chunk_size" : "sliding_window", window);
      if (kinds.length) return [window, kinds.filter((kind) => kind === "sliding_attention" || kind === "chunked_attention").length];
      if (rule === "all") return [window, numLayers];
      if (rule === "from_layer") return [window, Math.max(0, numLayers - this.required("max_window_layers"))];
      const listed = [this.get("sliding_window_pattern"), this.get("_sliding_window_pattern")].find(truthy);
      return [window, numLayers - Math.floor(numLayers / requireInt("sliding_window_pattern", listed ?? this.family.pattern ?? 0))];
    }

    feedForward(numLayers) {
      const names = this.family.experts;
      if (!names) return this.owns("new_decoder_architecture") ? {} : { intermediate_size: this.required("intermediate_size") };
      const size = this.required(names.size);
      let shared = 0;
      if (names.shared_count) {
        const count = this.get(names.shared_count);
        shared = size * requireInt(names.shared_count, truthy(count) ? count : 0, 0);
      } else if (names.shared_size) shared = this.required(names.shared_size);
      if (truthy(this.get("shared_intermediate_size"))) {
        fail(`shared_intermediate_size must be 0, got ${repr(this.get("shared_intermediate_size"))}.`);
      }
      const expertLayers = this.expertLayers(numLayers);
      let vectors = names.router_vectors;
      if (this.get("use_routing_bias") === false || this.get("topk_method", "noaux_tc") !== "noaux_tc") vectors = 0;
      const unused = !given(this.get(names.dense_size)) && expertLayers === numLayers;
      const found = { intermediate_size: unused ? size : this.required(names.dense_size) };
      if (expertLayers) {
        found.experts = checkExperts({
          num_experts: this.required(names.count),
          experts_per_token: this.required(names.chosen),
          expert_size: size,
          num_layers: expertLayers,
          shared_size: shared,
          shared_gate: names.shared_gate,
          router_vectors: vectors,
          expert_bias: names.expert_bias,
        });
      }
      return found;
    }

    expertLayers(numLayers) {
      const value = this.get("first_k_dense_replace");
      const first = requireInt("first_k_dense_replace", truthy(value) ? value : 0, 0);
      if (first > numLayers) fail(`first_k_dense_replace must be at most ${numLayers}, got ${repr(value)}.`);
      const inner = this.optional("interleave_moe_layer_step", 1);
      const step = this.optional("decoder_sparse_step", inner);
      if (this.optional("moe_layer_freq", 1) !== 1) {
        fail(`moe_layer_freq must be 1, got ${repr(this.get("moe_layer_freq"))}. Other steps are not represented.`);
      }
      const listed = this.get("mlp_only_layers");
      const dense = truthy(listed) ? listed : [];
      // Python counts true as 1.
      const layer = (each) => (typeof each === "boolean" ? Number(each) : each);
      if (!Array.isArray(dense) || dense.some((each) => !isInt(layer(each)) || layer(each) < 0 || layer(each) >= numLayers)) {
        fail(`mlp_only_layers must list layers from 0 to ${numLayers - 1}, got ${cut(typeof dense === "string" ? dense : repr(dense), 80)}.`);
      }
      const skipped = [...new Set(dense.map(layer))].filter((each) => each >= first && (each + 1) % step === 0).length;
      return Math.floor(numLayers / step) - Math.floor(first / step) - skipped;
    }

    weightBytes() {
      const sizes = { bfloat16: 2, float16: 2, float32: 4 };
      const listed = this.get("torch_dtype", this.get("dtype"));
      const kind = truthy(listed) ? listed : "bfloat16";
      if (typeof kind !== "string" || !Object.hasOwn(sizes, kind)) fail(`torch_dtype must be one of bfloat16, float16, float32, got ${short(kind)}.`);
      return sizes[kind];
    }
  }

  function checkExperts(experts) {
    for (const field of ["num_experts", "experts_per_token", "expert_size", "num_layers"]) requireInt(field, experts[field]);
    if (experts.experts_per_token > experts.num_experts) {
      fail(`experts_per_token must be at most num_experts (${experts.num_experts}), got ${experts.experts_per_token}. A token can't use an expert twice.`);
    }
    return experts;
  }

  const ALL = ["attention", "feed_forward", "experts", "shared_experts", "recurrent"];
  const NAMES = {
    attention: /attn|attention/i,
    shared_experts: /shared_?expert/i,
    experts: /(?<!shared_)experts(?!_gate)/i,
    recurrent: /linear_attn|mamba|\.conv/i,
    feed_forward: /mlp[^\p{L}\p{N}_]*\(?(gate\||up|down|gate_up|gate_proj)|feed_forward|mlp(\.\*|\$|$)/iu,
  };

  function refuse(value, why) {
    fail(`quantization_config must be of a known method, got ${cut(repr(value), 120, "...")}: ${why}. Translate the 16-bit checkpoint and set weight_bytes or storage.`);
  }

  function leftAlone(quantization, numLayers) {
    const kept = new Set();
    const found = {};
    for (const key of ["ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"]) {
      const listed = quantization.get(key);
      for (const name of Array.isArray(listed) ? listed : []) {
        if (typeof name !== "string" || [...name].length >= 300) continue;
        for (const [component, pattern] of Object.entries(NAMES)) {
          if (!pattern.test(name) || (component === "attention" && NAMES.recurrent.test(name))) continue;
          const layer = /layers\.(\d+)\./.exec(name);
          if (!layer) kept.add(component);
          else (found[component] ??= new Set()).add(layer[1].replace(/^0+(?=\d)/, ""));
        }
      }
    }
    for (const [component, layers] of Object.entries(found)) if (2 * layers.size >= numLayers) kept.add(component);
    return kept;
  }

  function blockOf(strategy, weights) {
    if (strategy === "group" || strategy === "tensor_group") {
      return [1, requireInt("quantization_config.group_size", weights.get("group_size"))];
    }
    if (strategy === "block") {
      const structure = weights.get("block_structure");
      if (!Array.isArray(structure) || structure.length !== 2) refuse(structure, "block_structure must be two numbers");
      return structure.map((each) => requireInt("quantization_config.block_structure", each));
    }
    if (strategy === "channel") return [1, 0];
    if (strategy === "tensor") return [0, 0];
    return refuse(strategy, "strategy must be group, tensor_group, block, channel or tensor");
  }

  function fromGroups(quantization) {
    const groups = quantization.get("config_groups");
    const weights = (isMap(groups) ? [...groups.values()] : []).filter(isMap).map((group) => group.get("weights")).filter(isMap);
    if (!weights.length) refuse(quantization, "config_groups has no weights");
    const kinds = weights.map((each) => ["num_bits", "strategy", "group_size"].map((key) => repr(each.get(key))).join());
    if (new Set(kinds).size > 1) refuse(quantization, "its groups differ, which one format can't represent");
    const one = weights[0];
    const bits = requireInt("quantization_config.num_bits", one.get("num_bits"));
    const block = blockOf(one.get("strategy"), one);
    const scale = bits === 4 && one.get("type") === "float" ? 1 : 2;
    const symmetric = !one.has("symmetric") || truthy(one.get("symmetric"));
    return [bits / 8, block, scale + (symmetric ? 0 : bits / 8)];
  }

  function grouped(quantization, zeroPoint) {
    const first = (one, other) => (quantization.has(one) ? quantization.get(one) : quantization.get(other));
    const bits = requireInt("quantization_config.bits", first("bits", "w_bit"));
    const group = first("group_size", "q_group_size");
    const size = group === -1 ? 0 : requireInt("quantization_config.group_size", group);
    return [bits / 8, [1, size], 2 + (zeroPoint ? bits / 8 : 0)];
  }

  function fp8(quantization) {
    const block = quantization.get("weight_block_size");
    if (!given(block)) return [1, [0, 0], 4];
    if (!Array.isArray(block) || block.length !== 2) refuse(block, "weight_block_size must be two numbers");
    return [1, block.map((each) => requireInt("quantization_config.weight_block_size", each)), 4];
  }

  function modelopt(quantization) {
    const inner = quantization.get("quantization");
    const listed = [quantization.get("quant_algo"), isMap(inner) ? inner.get("quant_algo") : ""].find(truthy);
    const last = isMap(inner) ? inner.get("quant_algo") : "";
    const value = listed ?? last;
    const algorithm = typeof value === "string" ? value : repr(value);
    const upper = algorithm.toUpperCase();
    if (upper.startsWith("NVFP4") || ["modelopt_fp4", "nvfp4"].includes(quantization.get("quant_method"))) return [0.5, [1, 16], 1];
    if (upper.startsWith("FP8")) return [1, [0, 0], 4];
    if (truthy(quantization.get("config_groups"))) return fromGroups(quantization);
    return refuse(quantization, `quant_algo ${reprText(algorithm)} is unknown`);
  }

  function storedFormat(quantization, numLayers) {
    if (!isMap(quantization)) refuse(quantization, "it is no mapping");
    const method = quantization.get("quant_method");
    let quantized = ALL;
    let made;
    if (method === "mxfp4") {
      made = [0.5, [1, 32], 1];
      quantized = ["experts"];
    } else if (method === "fp8" || method === "fbgemm_fp8") {
      made = fp8(quantization);
      if (method === "fbgemm_fp8") made[1] = [1, 0];
    } else if (method === "compressed-tensors") made = fromGroups(quantization);
    else if (["gptq", "awq", "auto-round"].includes(method)) {
      made = grouped(quantization, !quantization.has("zero_point") || truthy(quantization.get("zero_point")));
    } else if (["modelopt", "modelopt_fp4", "nvfp4"].includes(method)) made = modelopt(quantization);
    else if (method === "bitsandbytes" && truthy(quantization.get("load_in_4bit"))) {
      made = [0.5, [1, 64], truthy(quantization.get("bnb_4bit_use_double_quant")) ? 1 : 4];
    } else if (method === "bitsandbytes") made = [1, [1, 0], 4];
    else refuse(quantization, `quant_method ${reprText(cut(typeof method === "string" ? method : repr(method), 40))} is unknown`);
    const left = leftAlone(quantization, numLayers);
    const [size, block, scale] = made;
    return { name: method, quantized_bytes: size, block, scale_bytes: scale, quantized: quantized.filter((name) => !left.has(name)) };
  }

  function visionParameters(config, textSize) {
    const vision = config.get("vision_config");
    const kind = config.get("model_type");
    if (!isMap(vision)) fail(`vision_config must be a mapping, got ${typeName(vision)}.`);
    const read = (field) => {
      if (!given(vision.get(field))) fail(`vision_config.${field} must be in the config, got nothing. The tower is incomplete without it.`);
      return requireInt(`vision_config.${field}`, vision.get(field));
    };
    if (kind === "gemma3") {
      const [width, inner, layers, patch, side] = ["hidden_size", "intermediate_size", "num_hidden_layers", "patch_size", "image_size"].map(read);
      const embedded = 3 * patch ** 2 * width + width + Math.floor(side / patch) ** 2 * width;
      const layer = 4 * (width ** 2 + width) + 2 * width * inner + inner + width + 4 * width;
      return embedded + layers * layer + 2 * width + width * textSize + width;
    }
    if (kind === "mistral3") {
      const asked = config.has("spatial_merge_size") ? config.get("spatial_merge_size") : 2;
      const [width, inner, layers, patch] = ["hidden_size", "intermediate_size", "num_hidden_layers", "patch_size"].map(read);
      const merge = requireInt("merge", asked);
      const layer = 4 * width ** 2 + 3 * width * inner + 2 * width;
      return 3 * patch ** 2 * width + width + layers * layer + merge ** 2 * width * width + width + width * textSize + textSize ** 2;
    }
    if (kind === "qwen3_5" || kind === "qwen3_5_moe") {
      const [width, inner, out, channels, patch, frames] =
        ["hidden_size", "intermediate_size", "out_hidden_size", "in_channels", "patch_size", "temporal_patch_size"].map(read);
      const embedded = channels * frames * patch ** 2 * width + width + read("num_position_embeddings") * width;
      const layer = 4 * (width ** 2 + width) + 2 * width * inner + inner + width + 4 * width;
      const merged = width * read("spatial_merge_size") ** 2;
      return embedded + read("depth") * layer + 2 * width + merged ** 2 + merged + merged * out + out;
    }
    return fail(
      `vision_config must be that of gemma3, mistral3 or qwen3_5, got model_type ${repr(kind)}. Pass its text_config, or` +
      " ignore=('vision_config',) to leave the tower out."
    );
  }

  function requireKnown(config, fields, tables) {
    for (const [field, value] of config) {
      const off = tables.must_be_off.includes(field) && !truthy(value);
      if (!fields.has(field) && !tables.harmless.includes(field) && !off) {
        fail(`${short(field).slice(1, -1)} is not a field this translator knows, got ${short(value)}. If it changes neither parameters nor cache, pass ignore=(...).`);
      }
    }
  }

  function familyOf(config, tables) {
    const kind = config.get("model_type");
    if (typeof kind !== "string" || !Object.hasOwn(tables.families, kind)) {
      const known = [...Object.keys(tables.families), ...Object.keys(tables.wrapped)].join(", ");
      fail(`model_type must be one of ${known}, got ${short(kind)}.${config.has("text_config") ? " Pass its text_config." : ""}`);
    }
    return tables.families[kind];
  }

  const DEFAULTS = {
    gated: true, tied_embeddings: false, qkv_bias: false, output_bias: false, mlp_bias: false, qk_norm: false,
    norms_per_layer: 2, sliding_window: null, num_sliding_layers: 0, weight_bytes: 2, kv_bytes: 2, experts: null, latent: null,
    recurrent: null, full_attention: null, norm_bias: false, attention_sinks: false, output_gate: false, qk_norm_full: false,
    mtp_layers: 0, mtp_tables: 0, extra: [], storage: null,
  };

  function fromConfig(config, tables, name = "") {
    const kind = config.get("model_type");
    if (given(config.get("text_config")) && typeof kind === "string" && Object.hasOwn(tables.wrapped, kind)) return wrapped(config, tables, name);
    const family = familyOf(config, tables);
    requireKnown(config, new Set([...tables.read, ...family.own_fields]), tables);
    const merged = new Map(Object.entries(family.defaults ?? {}));
    for (const [field, value] of config) if (given(value)) merged.set(field, value);
    const file = new File(merged, family, tables);
    const [numLayers, heads] = [file.required("num_hidden_layers"), file.required("num_attention_heads")];
    const width = file.required("hidden_size");
    const vocab = file.required("vocab_size");
    const bias = truthy(file.get("attention_bias", false));
    const model = {
      ...DEFAULTS, qkv_bias: bias, output_bias: bias, mlp_bias: truthy(file.get("mlp_bias", false)), ...(family.shape ?? {}),
      ...file.attention(width, heads), ...file.layers(numLayers), ...file.feedForward(numLayers),
    };
    if (family.mtp_field && truthy(file.get(family.mtp_field))) {
      model.mtp_layers = requireInt(family.mtp_field, file.get(family.mtp_field), 0);
      model.mtp_tables = model.mtp_layers * (family.mtp_tables ?? 0);
    }
    if (given(file.get("quantization_config"))) model.storage = storedFormat(file.get("quantization_config"), numLayers);
    const path = file.get("_name_or_path");
    const called = truthy(path) ? path : merged.get("model_type");
    Object.assign(model, {
      name: name || (typeof called === "string" ? called : repr(called)),
      num_layers: numLayers,
      hidden_size: width,
      num_heads: heads,
      vocab_size: vocab,
      tied_embeddings: truthy(file.get("tie_word_embeddings", Boolean(family.tied))),
      weight_bytes: file.weightBytes(),
    });
    return checkModel(model);
  }

  function wrapped(config, tables, name) {
    const text = config.get("text_config");
    if (!isMap(text)) fail(`text_config must be a mapping of field names, got ${typeName(text)}.`);
    const shared = ["quantization_config", "torch_dtype", "dtype", "tie_word_embeddings"];
    const inner = new Map(shared.filter((key) => given(config.get(key))).map((key) => [key, config.get(key)]));
    for (const [key, value] of text) inner.set(key, value);
    const kind = inner.get("model_type");
    if (typeof kind !== "string" || !Object.hasOwn(tables.families, kind)) inner.set("model_type", tables.wrapped[config.get("model_type")]);
    const model = fromConfig(inner, tables, name);
    const outside = new Map([...config].filter(([key]) => !shared.includes(key) && key !== "text_config"));
    requireKnown(outside, new Set(tables.wrapper), tables);
    if (given(config.get("vision_config"))) model.extra = [...model.extra, ["vision tower", visionParameters(config, model.hidden_size)]];
    return model;
  }

  function checkModel(model) {
    if (model.num_heads % model.num_kv_heads) {
      fail(`num_kv_heads must divide num_heads (${model.num_heads}), got ${model.num_kv_heads}. Each key-value head serves the same number of query heads.`);
    }
    const attending = model.num_layers - (model.recurrent?.num_layers ?? 0);
    if (model.num_sliding_layers > attending) {
      const name = model.recurrent ? "the attention layers" : "num_layers";
      fail(`num_sliding_layers must be at most ${name} (${attending}), got ${model.num_sliding_layers}.`);
    }
    if (model.full_attention && model.num_heads % model.full_attention.num_kv_heads) {
      fail(`full_attention.num_kv_heads must divide num_heads (${model.num_heads}), got ${model.full_attention.num_kv_heads}.`);
    }
    return model;
  }

  // A shipped model: the numbers of its file, and what no field tells.
  function shipped(name, tables) {
    const entry = tables.models[name];
    const model = fromConfig(toMap(entry.config), tables, name);
    model.extra = [...model.extra, ...entry.extra];
    if (entry.mtp) [model.mtp_layers, model.mtp_tables] = entry.mtp;
    return model;
  }

  // Plain JSON of our own tables as the parser would give it; none of them holds a fraction.
  function toMap(value) {
    if (Array.isArray(value)) return value.map(toMap);
    if (value && typeof value === "object") return new Map(Object.entries(value).map(([key, each]) => [key, toMap(each)]));
    return value;
  }

  // ---- parameters and bytes (matrices, transformer, shards, kv_cache) --------------------------------------------

  function attentionLayers(model) {
    const full = model.num_layers - (model.recurrent?.num_layers ?? 0) - model.num_sliding_layers;
    const groups = [];
    if (full) {
      const { num_kv_heads, head_dim } = model.full_attention ?? model;
      groups.push({ num_layers: full, num_kv_heads, head_dim, window: null, keys_are_values: Boolean(model.full_attention?.keys_are_values) });
    }
    if (model.num_sliding_layers) {
      const { num_kv_heads, head_dim, sliding_window } = model;
      groups.push({ num_layers: model.num_sliding_layers, num_kv_heads, head_dim, window: sliding_window, keys_are_values: false });
    }
    return groups;
  }

  function projections(model, layers) {
    const width = model.hidden_size;
    if (model.latent) {
      const part = model.latent;
      const size = model.num_heads * (part.nope_dim + part.rope_dim);
      const queries = part.query_rank === null ? [[width, size]] : [[width, part.query_rank], [part.query_rank, size]];
      return [
        ...queries, [width, part.kv_rank + part.rope_dim],
        [part.kv_rank, model.num_heads * (part.nope_dim + part.value_dim)], [model.num_heads * part.value_dim, width],
      ];
    }
    const [querySize, kvSize] = [model.num_heads * layers.head_dim, layers.num_kv_heads * layers.head_dim];
    const keys = Array(layers.keys_are_values ? 1 : 2).fill([width, kvSize]);
    return [[width, querySize * (model.output_gate ? 2 : 1)], ...keys, [querySize, width]];
  }

  function block(model, size) {
    return [...Array(model.gated ? 2 : 1).fill([model.hidden_size, size]), [size, model.hidden_size]];
  }

  function matrices(model) {
    const made = [];
    const add = (component, sides, copies, active = copies) => {
      for (const [inputs, outputs] of sides) {
        if (copies) made.push({ component, inputs, outputs, copies, parameters: inputs * outputs * copies, active: inputs * outputs * active });
      }
    };
    const experts = model.experts;
    add("embedding", [[model.vocab_size, model.hidden_size]], 1);
    for (const layers of attentionLayers(model)) add("attention", projections(model, layers), layers.num_layers);
    if (model.recurrent) add("recurrent", model.recurrent.matrices, model.recurrent.num_layers);
    add("feed_forward", block(model, model.intermediate_size), model.num_layers - (experts?.num_layers ?? 0));
    if (experts) {
      const layers = experts.num_layers;
      add("experts", block(model, experts.expert_size), layers * experts.num_experts, layers * experts.experts_per_token);
      if (experts.shared_size) add("shared_experts", block(model, experts.shared_size), layers);
      add("router", [[model.hidden_size, experts.num_experts]], layers);
    }
    if (!model.tied_embeddings) add("head", [[model.hidden_size, model.vocab_size]], 1);
    return made;
  }

  function normParameters(model) {
    const one = model.hidden_size * (model.norm_bias ? 2 : 1);
    const each = (layers) => {
      if (model.latent) return model.latent.kv_rank + (model.latent.query_rank ?? 0);
      if (model.qk_norm_full) return (model.num_heads + layers.num_kv_heads) * layers.head_dim;
      return model.qk_norm ? 2 * layers.head_dim : 0;
    };
    const inLayers = attentionLayers(model).map((layers) => layers.num_layers * (model.norms_per_layer * one + each(layers)));
    return sum(inLayers) + (model.recurrent?.num_layers ?? 0) * model.norms_per_layer * one + one;
  }

  function biasParameters(model) {
    const width = model.hidden_size;
    const inner = model.gated ? 2 : 1;
    const experts = model.experts;
    let total = 0;
    for (const layers of attentionLayers(model)) {
      let each = model.qkv_bias ? (model.num_heads + 2 * layers.num_kv_heads) * layers.head_dim : 0;
      each += (model.output_bias ? width : 0) + (model.attention_sinks ? model.num_heads : 0);
      total += layers.num_layers * each;
    }
    if (model.mlp_bias) total += (model.num_layers - (experts?.num_layers ?? 0)) * (inner * model.intermediate_size + width);
    if (experts) {
      let each = experts.router_vectors * experts.num_experts + (experts.shared_gate ? width : 0);
      if (experts.expert_bias) each += experts.num_experts * (inner * experts.expert_size + width);
      total += experts.num_layers * each;
    }
    return total;
  }

  function idleBiases(model) {
    const experts = model.experts;
    if (!experts?.expert_bias) return 0;
    const each = (model.gated ? 2 : 1) * experts.expert_size + model.hidden_size;
    return experts.num_layers * (experts.num_experts - experts.experts_per_token) * each;
  }

  function scalesOf(storage, inputs, outputs) {
    if (!storage.block) return 0;
    const [rows, columns] = storage.block;
    return ceilDiv(outputs, rows || outputs) * ceilDiv(inputs, columns || inputs);
  }

  const COMPONENTS = ["embedding", "attention", "feed_forward", "experts", "shared_experts", "router", "recurrent", "head"];

  const counted = new WeakMap(); // a shape is asked for its parameters several times, and never changed

  function parameters(model) {
    if (!counted.has(model)) counted.set(model, countParameters(model));
    return counted.get(model);
  }

  function countParameters(model) {
    const count = Object.fromEntries(COMPONENTS.map((name) => [name, 0]));
    let activeExperts = 0;
    let scales = 0;
    for (const each of matrices(model)) {
      count[each.component] += each.parameters;
      if (each.component === "experts") activeExperts += each.active;
      if (model.storage?.quantized.includes(each.component)) scales += each.copies * scalesOf(model.storage, each.inputs, each.outputs);
    }
    if (model.recurrent) count.recurrent += model.recurrent.num_layers * model.recurrent.vector_parameters;
    count.norms = normParameters(model);
    count.biases = biasParameters(model);
    const total = sum(Object.values(count));
    const mtp = mtpParameters(model);
    const extra = sum(model.extra.map(([, number]) => number));
    const table = model.tied_embeddings ? count.embedding : count.head;
    return Object.assign(count, {
      total, scales: scales + mtp.scales, mtpScales: mtp.scales, extra,
      stored: total + mtp.parameters + extra + scales + mtp.scales,
      active: total - count.experts + activeExperts - idleBiases(model),
      multiplied: count.attention + count.feed_forward + table + activeExperts + count.shared_experts + count.router + count.recurrent,
      streamed: total - (model.tied_embeddings ? 0 : count.embedding),
    });
  }

  function mtpParameters(model) {
    const tables = model.mtp_tables * model.vocab_size * model.hidden_size;
    if (!model.mtp_layers) return { parameters: tables, scales: 0 };
    const { num_kv_heads, head_dim } = model;
    const one = parameters({
      ...model, num_layers: 1, experts: model.experts && { ...model.experts, num_layers: 1 }, recurrent: null, num_sliding_layers: 0,
      full_attention: model.full_attention ?? (model.latent ? null : { num_kv_heads, head_dim, keys_are_values: false }),
      tied_embeddings: true, mtp_layers: 0, extra: [],
    });
    const inner = one.total - one.embedding + 2 * model.hidden_size + 2 * model.hidden_size ** 2;
    return { parameters: model.mtp_layers * inner + tables, scales: model.storage ? model.mtp_layers * one.scales : 0 };
  }

  function componentBytes(model) {
    const { storage } = model;
    const count = parameters(model);
    const sizes = {};
    for (const name of [...COMPONENTS, "norms", "biases"]) {
      sizes[name] = count[name] * (storage?.quantized.includes(name) ? storage.quantized_bytes : model.weight_bytes);
    }
    sizes.scales = storage ? (count.scales - count.mtpScales) * storage.scale_bytes : 0;
    return sizes;
  }

  function weightBytes(model) {
    return model.storage ? sum(Object.values(componentBytes(model))) : parameters(model).total * model.weight_bytes;
  }

  function streamedBytes(model, batch) {
    if (!model.experts && !model.storage) return parameters(model).streamed * model.weight_bytes;
    const sizes = componentBytes(model);
    let share = 1;
    if (model.experts) {
      const { num_experts: all, experts_per_token: chosen } = model.experts;
      share = (all * (1 - (1 - chosen / all) ** batch)) / all;
    }
    return sum(Object.values(sizes)) - (model.tied_embeddings ? 0 : sizes.embedding) - (1 - share) * sizes.experts;
  }

  function weightBytesPerGpu(model, degree, spread = 1) {
    const sizes = componentBytes(model);
    const copied = ["router", "norms", "biases"];
    const wide = Math.max(degree, spread);
    const parts = { experts: wide, scales: model.experts ? wide : degree };
    const total = sum(Object.entries(sizes).map(([name, size]) => size / (copied.includes(name) ? 1 : parts[name] ?? degree)));
    const extra = (sum(model.extra.map(([, number]) => number)) * model.weight_bytes) / degree;
    return Math.min(total + copiedAttention(model, degree), sum(Object.values(sizes))) + extra;
  }

  function copiedAttention(model, degree) {
    const each = model.storage?.quantized.includes("attention") ? model.storage.quantized_bytes : model.weight_bytes;
    let added = 0;
    if (model.latent) {
      const ranks = [model.latent.query_rank, model.latent.kv_rank + model.latent.rope_dim];
      for (const matrix of matrices(model)) {
        if (matrix.component === "attention" && matrix.inputs === model.hidden_size && ranks.includes(matrix.outputs)) {
          added += matrix.parameters * (1 - 1 / degree);
        }
      }
      return added * each;
    }
    for (const layers of attentionLayers(model)) {
      const spare = ceilDiv(layers.num_kv_heads, degree) / layers.num_kv_heads - 1 / degree;
      added += layers.num_layers * 2 * model.hidden_size * layers.num_kv_heads * layers.head_dim * Math.max(0, spare);
    }
    return added * each;
  }

  function cachedNumbers(model, layers, degree) {
    if (model.latent) return model.latent.kv_rank + model.latent.rope_dim;
    const whole = 2 * layers.num_kv_heads * layers.head_dim;
    return (whole * ceilDiv(layers.num_kv_heads, degree)) / layers.num_kv_heads;
  }

  function tokenBytes(model, degree) {
    return sum(attentionLayers(model).map((layers) => layers.num_layers * cachedNumbers(model, layers, degree))) * model.kv_bytes;
  }

  function sequenceBytes(model, context, degree) {
    let cached = 0;
    for (const layers of attentionLayers(model)) {
      const length = layers.window === null ? context : Math.min(context, layers.window);
      cached += layers.num_layers * length * (cachedNumbers(model, layers, degree) * model.kv_bytes);
    }
    const state = model.recurrent ? model.recurrent.num_layers * model.recurrent.state_bytes : 0;
    return cached + state / degree;
  }

  // ---- the memory of one card (memory_plan) -------------------------------------------------------------------------

  function plannedWeights(model, degree, spread) {
    const size = weightBytesPerGpu(model, degree, spread);
    const { storage, experts } = model;
    if (!storage) return [size, 0.995 * size, 1.01 * size];
    if (storage.name === "mxfp4" && experts) {
      const count = parameters(model);
      const inExperts = count.experts * storage.quantized_bytes + count.scales * storage.scale_bytes;
      const share = inExperts / (inExperts + (count.total - count.experts) * model.weight_bytes);
      const side = ceilDiv(model.hidden_size, 256) * 256;
      const padded = size * (1 + (side / model.hidden_size - 1) * share);
      return [padded, size, 1.03 * padded];
    }
    return [size, 0.98 * size, 1.03 * size];
  }

  function blockNumbers(model, degree, copies) {
    const { experts } = model;
    const dense = model.num_layers - (experts?.num_layers ?? 0) ? (copies * model.intermediate_size) / degree : 0;
    if (!experts) return dense;
    const inside = (copies * (experts.experts_per_token * experts.expert_size + experts.shared_size)) / degree;
    return Math.max(dense, inside + experts.experts_per_token * model.hidden_size);
  }

  function activation(model, rule, budget, tokens, seqs, degree) {
    const forward = tokens * 2 * (rule.stream_copies * model.hidden_size + blockNumbers(model, degree, rule.block_copies));
    const sampled = seqs * rule.sampler_bytes * model.vocab_size;
    const logits = Math.min(tokens, budget) * (rule.logits_bytes * model.vocab_size + 4 * model.hidden_size);
    const last = Math.max(sampled, rule.logits_bytes ? logits : 0);
    const peak = Math.max(forward, last);
    return [peak, Math.min(forward, peak), forward + last];
  }

  function poolOf(rule, fraction, size, taken) {
    const all = sum(Object.values(taken));
    if (rule.fraction_of === "total") return fraction * size - all;
    if (rule.fraction_of === "free") return size - all > 0 ? fraction * (size - all) : size - all;
    return fraction * (size - taken.runtime) - taken.weights - taken.rotary_table;
  }

  // What an engine takes of tokens and sequences in a step on a card if nobody sets them.
  function budgets(rule, card, tables) {
    const large = card.large || (rule.large_a100 && card.size[0] >= tables.large_bytes);
    return large ? { large, tokens: rule.large_num_tokens, seqs: rule.large_num_seqs } : { large, tokens: rule.max_num_tokens, seqs: rule.max_num_seqs };
  }

  function planMemory(model, card, rule, asked, tables) {
    const { tp_size: degree, ep_size: spread, fraction } = asked;
    const usually = budgets(rule, card, tables);
    const tokens = asked.max_num_tokens ?? usually.tokens;
    const seqs = asked.max_num_seqs ?? usually.seqs;
    const table = (asked.max_positions ?? 0) * 2 * (model.latent ? model.latent.rope_dim : model.head_dim);
    let active = activation(model, rule, usually.tokens, tokens, seqs, degree);
    if (model.extra.some(([name]) => name.includes("vision"))) {
      active = [active[0], active[1], Math.max(active[2], tables.vision_share * fraction * card.size[0])];
    }
    if (!given(asked.max_num_seqs) && rule.sampler_bytes && usually.large) {
      const few = activation(model, rule, usually.tokens, tokens, rule.max_num_seqs, degree);
      active = [active[0], Math.min(active[1], few[0]), active[2]];
    }
    const doublings = Math.log2(Math.max(degree, spread));
    const parts = {
      weights: plannedWeights(model, degree, spread),
      rotary_table: [table, table, table],
      activation_peak: active,
      runtime: rule.runtime.map((one, at) => one + doublings * rule.runtime_shared[at]),
      recorded_graphs: rule.graphs,
    };
    const usual = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part[0]]));
    const [size, least, most] = card.size;
    const value = poolOf(rule, fraction, size, usual);
    const down = [];
    const up = [];
    for (const [name, part] of Object.entries(parts)) {
      down.push(value - poolOf(rule, fraction, size, { ...usual, [name]: part[2] }));
      up.push(poolOf(rule, fraction, size, { ...usual, [name]: part[1] }) - value);
    }
    down.push(value - poolOf(rule, fraction, least, usual));
    up.push(poolOf(rule, fraction, most, usual) - value);
    const pool = [value, value - Math.hypot(...down), value + Math.hypot(...up)];
    return { parts, pool, tokens, seqs };
  }

  // ---- one step, and the answer (step, calculator) ---------------------------------------------------------------------

  // What groups beyond the first read in a step: all weights but experts, their scales, and an input table.
  function readAgain(model, groups) {
    const unread = ["experts", "scales", ...(model.tied_embeddings ? [] : ["embedding"])];
    return (groups - 1) * sum(Object.entries(componentBytes(model)).map(([name, size]) => (unread.includes(name) ? 0 : size)));
  }

  // Groups that hold the matrices once each; experts are spread over all of them.
  const groupsOf = ({ tp_size: degree, ep_size: spread }) => Math.max(1, Math.floor(spread / degree));

  function decodeStep(model, card, asked, compute, bandwidth) {
    const { tp_size: degree, batch_size: batch, context_len: context } = asked;
    const groups = groupsOf(asked);
    const gpus = degree * groups;
    const flopsOfPair = (layers) => {
      if (!model.latent) return 4 * model.num_heads * layers.head_dim;
      return 2 * model.num_heads * (model.latent.nope_dim + model.latent.rope_dim + model.latent.value_dim);
    };
    const attended = attentionLayers(model).map(
      (layers) => layers.num_layers * flopsOfPair(layers) * (layers.window === null ? context : Math.min(context, layers.window))
    );
    const flops = batch * (2 * parameters(model).multiplied + sum(attended));
    const streamed = streamedBytes(model, batch) + readAgain(model, groups);
    const cache = batch * sequenceBytes(model, context, 1);
    const vector = model.hidden_size * 2;
    const { latency_seconds: latency, bandwidth: link } = card.link;
    const one = degree === 1 ? 0 : latency + (((2 * (degree - 1)) / degree) * ceilDiv(batch, groups) * vector) / link;
    let communication = 2 * model.num_layers * one;
    if (groups > 1) {
      const message = ceilDiv(batch, gpus) * model.experts.experts_per_token * vector;
      communication += 2 * model.experts.num_layers * (latency + (((gpus - 1) / gpus) * message) / link);
    }
    const arithmetic = flops / (gpus * card.peak_flops * compute);
    const memory = (streamed + cache) / (gpus * card.memory_bandwidth * bandwidth);
    return { flops, streamed, cache, arithmetic, memory, communication, total: Math.max(arithmetic, memory) + communication };
  }

  function stored(model, bits, kvBits, tables) {
    const changed = { ...model, kv_bytes: tables.kv_bytes[kvBits] };
    if (bits === null) return changed;
    const kind = tables.stored[bits];
    return { ...changed, weight_bytes: 2, storage: kind ? storedFormat(toMap(kind), model.num_layers) : null };
  }

  function checkQuestion(asked, tables) {
    for (const field of ["card", "engine"]) {
      const known = tables[`${field}s`];
      if (!Object.hasOwn(known, asked[field])) {
        fail(`${field} must be one of ${Object.keys(known).join(", ")}, got ${cut(repr(asked[field]), 60)}.`);
      }
    }
    if (![null, 16, 8, 4].includes(asked.weight_bits)) fail(`weight_bits must be 16, 8, 4 or as the file stores them, got ${repr(asked.weight_bits)}.`);
    if (![16, 8].includes(asked.kv_bits)) fail(`kv_bits must be 16 or 8, got ${repr(asked.kv_bits)}.`);
    for (const field of Object.keys(tables.limits.fields)) {
      if (!given(asked[field]) && tables.limits.open.includes(field)) continue;
      const value = Number.isInteger(asked[field]) ? asked[field] : new Real(asked[field]);
      if (requireInt(field, value) > tables.limits.fields[field]) fail(`${field} must be at most ${comma(tables.limits.fields[field])}, got ${comma(value)}.`);
    }
    const price = asked.gpu_hour_dollars;
    const shown = (number) => (Number.isInteger(number) ? String(number) : Number.isNaN(number) ? "nan" : reprReal(number));
    if (!(price > 0 && price < Infinity)) fail(`gpu_hour_dollars must be a finite number above 0, got ${shown(price)}.`);
    if (!(parameters(asked.model).stored <= tables.limits.parameters)) {
      fail(`model must have at most ${comma(tables.limits.parameters)} parameters, got more. Is it a real config?`);
    }
    if (!attentionLayers(asked.model).length) fail("model must have a layer with attention, got only layers with a state. Nothing of it would grow.");
    checkGroups(asked);
    if (given(asked.max_positions) && asked.context_len > asked.max_positions) {
      fail(`context_len must be at most max_positions (${comma(asked.max_positions)}), got ${comma(asked.context_len)}. The model has not learnt what comes later.`);
    }
    if (!(asked.fraction > 0 && asked.fraction <= 1)) {
      fail(`fraction must be a fraction in (0, 1], got ${shown(asked.fraction)}. 0.9 lets an engine use nine tenths.`);
    }
  }

  // Experts that no engine could lay out so are refused.
  function checkGroups({ model, tp_size: degree, ep_size: spread }) {
    const most = model.experts ? model.experts.num_experts : 1;
    if (spread > most) fail(`ep_size must be at most the experts of a layer (${comma(most)}), got ${comma(spread)}.`);
    if (spread > degree && spread % degree) {
      fail(`ep_size must be a multiple of tp_size (${comma(degree)}), got ${comma(spread)}. Whole groups share the experts.`);
    }
  }

  function answer(question, tables) {
    const asked = { ep_size: 1, max_num_tokens: null, max_num_seqs: null, max_positions: null, ...question };
    checkQuestion(asked, tables);
    const model = stored(asked.model, asked.weight_bits, asked.kv_bits, tables);
    const { tp_size: degree, context_len: context, batch_size: batch } = asked;
    const groups = groupsOf(asked);
    const card = tables.cards[asked.card];
    const rule = tables.engines[asked.engine];
    const plan = planMemory(model, card, rule, asked, tables);
    const { compute, bandwidth } = tables.efficiencies;
    const step = decodeStep(model, card, asked, compute, bandwidth);
    const count = parameters(model);
    const perToken = tokenBytes(model, degree);
    const sequence = sequenceBytes(model, context, degree);
    const tokensIn = (pool) => Math.max(0, floorDiv(pool, perToken * rule.block_size)) * rule.block_size;
    const rate = batch / step.total;
    return {
      ...plan.parts,
      pool: plan.pool,
      device: card.size,
      num_gpus: degree * groups,
      num_tokens: plan.tokens,
      num_seqs: plan.seqs,
      total_parameters: count.total,
      stored_parameters: count.stored,
      active_parameters: count.active,
      weight_bytes: weightBytes(model),
      token_bytes: perToken,
      sequence_bytes: sequence,
      pool_tokens: plan.pool.map(tokensIn),
      conversations: plan.pool.map((pool) => groups * Math.max(0, floorDiv(pool, sequence))),
      streamed_bytes: step.streamed,
      cache_bytes: step.cache,
      flops: step.flops,
      compute_seconds: step.arithmetic,
      memory_seconds: step.memory,
      communication_seconds: step.communication,
      step_seconds: step.total,
      floor_seconds: decodeStep(model, card, asked, 1, 1).total,
      tokens_per_second: rate,
      million_dollars: (1e6 * asked.gpu_hour_dollars * degree * groups) / (tables.seconds_per_hour * rate),
    };
  }

  const api = {
    SizingError, answer, attentionLayers, blockNumbers, budgets, cachedNumbers, componentBytes, fromConfig, groupsOf, parameters, readAgain, readConfig, shipped,
    stored, weightBytesPerGpu, Real,
  };
  if (typeof module === "object" && module.exports) module.exports = api;
  else root.lanternSizing = api;
})(typeof globalThis === "object" ? globalThis : this);
