#!/usr/bin/env node
// One pi that stays alive: reads a JSON request a line, answers with a JSON line.
//
//   {"fn": "open", "as": "a", "args": [path]}       a SessionManager made by a static method, kept as "a"
//   {"fn": "appendMessage", "on": "a", "args": []}  a method of it
//   {"fn": "getTree", "on": "a"}                    flat: [id, ids of the children, label, its time] a node
//   {"fn": "migrateSessionEntries", "args": []}     an exported function
//
// Answers {"ok": value} or {"error": message}. Nothing is renamed or faked here: pi's own ids and clock.
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const module = pathToFileURL(path.join(process.env.PI_PACKAGE, "dist/core/session-manager.js")).href;
const pi = await import(module);
const managers = new Map();

/** Nested, a long session would be too deep for many a JSON reader. */
function flat(roots) {
	const nodes = [];
	const stack = [...roots].reverse();
	while (stack.length > 0) {
		const { entry, children, label, labelTimestamp } = stack.pop();
		for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
		nodes.push([entry.id, children.map((child) => child.entry.id), label, labelTimestamp]);
	}
	return nodes;
}

async function answer({ fn, on, as, args = [] }) {
	if (fn === "getTree") return flat(managers.get(on).getTree());
	if (on !== undefined) return managers.get(on)[fn](...args);
	const owner = typeof pi.SessionManager[fn] === "function" ? pi.SessionManager : pi;
	const value = await owner[fn](...args);
	if (as === undefined) return value;
	managers.set(as, value);
	return { file: value.getSessionFile(), id: value.getSessionId() };
}

for await (const line of createInterface({ input: process.stdin })) {
	let reply;
	try {
		reply = { ok: await answer(JSON.parse(line)) };
	} catch (error) {
		reply = { error: String(error?.message ?? error) };
	}
	process.stdout.write(`${JSON.stringify(reply)}\n`);
}
