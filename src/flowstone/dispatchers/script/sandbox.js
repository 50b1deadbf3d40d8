// Around each script: gives it `input`, evaluates it, and spells its value as JSON text.
// The value of this file is [evaluate, finish]; both return JSON, whose texts are safe to hand over.
(() => {
  "use strict";
  for (const name of ["performance", "queueMicrotask", "navigator", "gc"]) delete globalThis[name];
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { keys } = Object;
  const global = globalThis;
  const indirect = eval;
  const text = String;
  const DEPTH = 64;
  const VALUES = 1e6;
  let settled = false, failed = false, count = 0, value;

  class Unstorable extends Error {}

  // The request names integers that a number cannot hold by their path; they become BigInts.
  function evaluate(request) {
    const { source, input, integers } = parse(request);
    const holder = { input };
    for (const [path, digits] of integers) {
      let place = holder;
      for (const key of path.slice(0, -1)) place = place[key];
      place[path[path.length - 1]] = BigInt(digits);
    }
    global.input = holder.input;
    try {
      value = indirect(source);
    } catch (error) {
      return problem(error);
    }
    if (value instanceof Promise) {
      Promise.prototype.then.call(
        value,
        (result) => { settled = true; value = result; },
        (error) => { settled = failed = true; value = error; },
      );
    } else {
      settled = true;
    }
    return "{}";
  }

  function finish() {
    if (!settled) return stringify({ error: "the promise that the script returned is never settled" });
    if (failed) return problem(value);
    try {
      return `{"value":${spell(value, "value", 0)}}`;
    } catch (error) {
      return error instanceof Unstorable ? stringify({ error: error.message }) : problem(error);
    }
  }

  function spell(one, path, depth) {
    if (++count > VALUES) refuse("value", `a value of more than ${VALUES} parts`);
    switch (typeof one) {
      case "undefined": return "null";
      case "boolean": return one ? "true" : "false";
      case "bigint": return text(one);
      case "string": return stringify(one);
      case "number":
        if (one !== one || one - one !== 0) refuse(path, text(one));
        return stringify(one);
      case "object": return one === null ? "null" : spellObject(one, path, depth);
      default: return refuse(path, `a ${typeof one}`);
    }
  }

  function spellObject(one, path, depth) {
    if (depth >= DEPTH) refuse("value", `a value that holds itself or is more than ${DEPTH} levels deep`);
    if (one instanceof Date) return stringify(moment(one, path));
    if (one instanceof Number || one instanceof String || one instanceof Boolean || one instanceof BigInt)
      return spell(one.valueOf(), path, depth);
    if (one instanceof ArrayBuffer || ArrayBuffer.isView(one)) refuse(path, "bytes");
    for (const kind of [Promise, RegExp, Error, WeakMap, WeakSet, WeakRef])
      if (one instanceof kind) refuse(path, `a ${kind.name}`);
    if (typeof one.toJSON === "function") return spell(one.toJSON(), path, depth + 1);
    if (isArray(one) || one instanceof Set) {
      const parts = [];
      let index = 0;
      for (const item of isArray(one) ? Array.from(one) : one) parts.push(spell(item, `${path}[${index++}]`, depth + 1));
      return `[${parts.join(",")}]`;
    }
    const fields = one instanceof Map ? one : keys(one).map((key) => [key, one[key]]);
    const parts = [];
    for (const [key, item] of fields) {
      if (typeof key !== "string") refuse(path, `a Map with a key of type ${typeof key}`);
      parts.push(`${stringify(key)}:${spell(item, `${path}.${key}`, depth + 1)}`);
    }
    return `{${parts.join(",")}}`;
  }

  // RFC 3339 without a fraction that says nothing.
  function moment(date, path) {
    if (date.getTime() !== date.getTime()) refuse(path, "an invalid Date");
    const spelt = date.toISOString();
    if (spelt.length !== 24) refuse(path, "a Date outside the years 0 to 9999");
    return spelt.replace(/\.?0*Z$/, "Z");
  }

  function refuse(path, what) {
    throw new Unstorable(`${path}: ${what} cannot be stored as JSON`);
  }

  // What was thrown, as text, with the line of the script.
  function problem(error) {
    let said = "an error that has no text", stack = "";
    try { said = typeof error === "symbol" ? "a symbol" : text(error); } catch {}
    try { if (typeof error.stack === "string") stack = error.stack.slice(0, 4000); } catch {}
    const line = /:(\d+):\d+\)?(?:\n|$)/.exec(stack);
    return stringify({ error: said.slice(0, 2000), line: line === null ? 0 : +line[1] });
  }

  return [evaluate, finish];
})()
