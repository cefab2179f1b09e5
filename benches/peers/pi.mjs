// pi's part in the comparison: one request as JSON text in, one JSON object out (see stopwatch.py).
import { createHash } from "node:crypto";
import { createReadStream, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const module = pathToFileURL(path.join(process.env.PI_PACKAGE, "dist/core/session-manager.js")).href;
const request = JSON.parse(process.argv[2]);
const clock = { seconds: 0, peak: 0, before: 0 };

function memory(field) {
	try {
		const line = readFileSync("/proc/self/status", "utf8").match(new RegExp(`${field}:\\s+(\\d+)`));
		return Number(line[1]) / 1000;
	} catch {
		return process.resourceUsage().maxRSS / 1000;
	}
}

async function timed(work) {
	globalThis.gc?.();
	try {
		writeFileSync("/proc/self/clear_refs", "5");
	} catch {}
	clock.before = memory("VmRSS");
	const start = performance.now();
	const result = await work();
	clock.seconds = (performance.now() - start) / 1000;
	clock.peak = memory("VmHWM");
	return result;
}

function digest(texts) {
	const sum = createHash("sha256");
	for (const text of texts) sum.update(text).update("\n");
	return sum.digest("hex").slice(0, 16);
}

const digestOf = (values) => digest(values.map((value) => JSON.stringify(value)));

function message(number) {
	const text = `question ${number}: ${'a line of text with a "quote" and an end.\n'.repeat(2)}`;
	return { role: "user", content: [{ type: "text", text }], timestamp: 1767225600000 + number };
}

async function digestOfFile(file, roles) {
	const texts = [];
	for await (const line of createInterface({ input: createReadStream(file) })) {
		const entry = JSON.parse(line);
		if (entry.type === "message" && (!roles || roles.includes(entry.message.role)))
			texts.push(JSON.stringify(entry.message));
	}
	return { messages: texts.length, hash: digest(texts) };
}

function digestOfBody(file) {
	const sum = createHash("sha256");
	const data = readFileSync(file);
	let count = 0;
	for (let at = data.indexOf(10) + 1; at < data.length; ) {
		const end = data.indexOf(10, at) + 1;
		const line = data.subarray(at, end);
		if (!line.subarray(0, 15).equals(Buffer.from('{"type":"label"'))) {
			count++;
			sum.update(line);
		}
		at = end;
	}
	return { entries: count, hash: sum.digest("hex").slice(0, 16) };
}

const theOnlyFile = (folder) => path.join(folder, readdirSync(folder).find((name) => name.endsWith(".jsonl")));
const checked = async (look) => (request.check ? await look() : {});

if (request.do === "import") {
	await timed(() => import(module));
}
const { CURRENT_SESSION_VERSION, SessionManager } = await import(module);
const { file, folder, root, cwd, times } = request;
const middle = (session) => {
	const entries = session.getEntries();
	const start = Math.floor(entries.length / 2);
	return entries.slice(start, start + times).map((entry) => entry.id);
};
const grown = () => statSync(file).size - request.bytes;

async function list(onProgress) {
	const listed = () => {
		if (cwd) return SessionManager.list(cwd, folder, onProgress);
		return folder ? SessionManager.listAll(folder, onProgress) : SessionManager.listAll(onProgress);
	};
	const infos = await timed(listed);
	const answer = { sessions: infos.length, messages: infos.reduce((sum, info) => sum + info.messageCount, 0) };
	const rows = () =>
		infos.map((i) => [
			i.id,
			i.name ?? null,
			i.messageCount,
			i.firstMessage,
			i.modified.getTime(),
			[...i.allMessagesText].length,
		]);
	return { ...answer, ...(request.check ? { hash: digestOf(rows()) } : {}) };
}

function newSession() {
	const session = SessionManager.create("/code/app", folder);
	session.appendMessage({ role: "assistant", content: [], timestamp: 1 });
	return session;
}

async function append() {
	const session = newSession();
	const messages = Array.from({ length: times }, (_, n) => message(n));
	await timed(() => messages.forEach((one) => session.appendMessage(one)));
	return digestOfFile(session.getSessionFile(), ["user"]);
}

const works = {
	import: () => ({ version: CURRENT_SESSION_VERSION }),
	async open() {
		const session = await timed(() => SessionManager.open(file));
		return { entries: session.getEntryCount(), leaf: session.getLeafId() };
	},
	async context() {
		const { messages } = await timed(() => SessionManager.open(file).buildSessionContext());
		return { messages: messages.length, ...(await checked(() => ({ hash: digestOf(messages) }))) };
	},
	async path() {
		const session = SessionManager.open(file);
		const entries = await timed(() => session.getBranch());
		return { length: entries.length, first: entries[0].id, last: entries.at(-1).id };
	},
	async tree() {
		const session = SessionManager.open(file);
		let nodes = 0;
		await timed(() => {
			const waiting = session.getTree();
			while (waiting.length > 0) {
				nodes++;
				waiting.push(...waiting.pop().children);
			}
		});
		return { nodes };
	},
	list: () => list(undefined),
	async "list with progress"() {
		let calls = 0;
		let shown = 0;
		const answer = await list((_loaded, _total, partial) => {
			calls++;
			if (partial) shown++;
		});
		return { ...answer, calls, shown };
	},
	async first() {
		const infos = await timed(() => SessionManager.listAll());
		return { sessions: infos.length };
	},
	async find() {
		return { file: path.basename(await timed(() => SessionManager.findById(cwd, request.id, folder))) };
	},
	async recent() {
		const session = await timed(() => SessionManager.continueRecent(cwd, folder));
		return { file: path.basename(session.getSessionFile()), entries: session.getEntryCount() };
	},
	append,
	async "append to"() {
		const session = SessionManager.open(file);
		const before = session.getEntryCount();
		const messages = Array.from({ length: times }, (_, n) => message(n));
		await timed(() => messages.forEach((one) => session.appendMessage(one)));
		return { more: session.getEntryCount() - before, more_bytes: grown() };
	},
	async fork() {
		const copy = await timed(() => SessionManager.forkFrom(file, "/code/other", folder));
		return { leaf: copy.getLeafId(), ...(await checked(() => digestOfBody(theOnlyFile(folder)))) };
	},
	async branched() {
		const session = SessionManager.open(file, folder);
		const leaf = session.getLeafId();
		const made = await timed(() => session.createBranchedSession(leaf));
		return { made: made !== undefined, ...(await checked(() => digestOfBody(theOnlyFile(folder)))) };
	},
	async migrate() {
		const session = await timed(() => SessionManager.open(file));
		return { entries: session.getEntryCount(), ...(await checked(() => digestOfFile(file))) };
	},
	async children() {
		const session = SessionManager.open(file);
		const found = [];
		const targets = middle(session);
		await timed(() => targets.forEach((id) => found.push(session.getChildren(id))));
		return { digest: digestOf(found.flat()) };
	},
	async label() {
		const session = SessionManager.open(file);
		const targets = middle(session);
		await timed(() =>
			targets.forEach((id, number) => {
				session.appendLabelChange(id, `label ${number}`);
				session.getLabel(id);
			}),
		);
		return { labels: targets.map((id) => session.getLabel(id)) };
	},
	async name() {
		const session = SessionManager.open(file);
		const names = [];
		await timed(() => {
			for (let number = 0; number < times; number++) {
				session.appendSessionInfo(`name ${number}`);
				names.push(session.getSessionName());
			}
		});
		return { names };
	},
	async edit() {
		const session = SessionManager.open(file);
		const targets = middle(session);
		await timed(() => targets.forEach((id) => session.appendContextEdit(id, { content: "shorter" })));
		return { more_bytes: grown() };
	},
	async compaction() {
		const session = SessionManager.open(file);
		const kept = session.getEntries().slice(-times).map((entry) => entry.id);
		await timed(() => kept.forEach((id) => session.appendCompaction("what was done so far", id, 1000)));
		return { more_bytes: grown(), messages: session.buildSessionContext().messages.length };
	},
};

const answer = await works[request.do]();
const result = {
	seconds: clock.seconds / (times ?? 1),
	peak_mb: Math.round(clock.peak * 10) / 10,
	extra_mb: Math.round((clock.peak - clock.before) * 10) / 10,
	answer,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
