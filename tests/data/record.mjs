// Records what V8 makes of dates and of JSON texts, for tests/test_dates.py and tests/test_jsontext.py.
//
//     node tests/data/record.mjs
//
// writes js_dates.json ({v8, zones, rows: [value, ms or null for each zone]}) and js_json.json ({v8,
// rows: [text in base64, JSON.stringify of what JSON.parse read or null where it refused, the value
// shown with -0 and Infinity where the two differ]}). The texts are the same on every run.

import fs from "node:fs";
import path from "node:path";

const FOLDER = import.meta.dirname;
const ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe"];

/** Reproducible random integers below n (mulberry32). */
function randomness(seed) {
	let state = seed;
	return (n) => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
	};
}

const random = randomness(20260831);
const pick = (values) => values[random(values.length)];
const digits = (n) => Array.from({ length: n }, () => random(10)).join("");
const two = (n) => String(random(n)).padStart(2, "0");
const maybe = (percent, make) => (random(100) < percent ? make() : "");

// ---- dates

const DATES = [
	..."2024 2024-01 2024-01-01 2024-02-30 2024-1-1 2024/01/02 01/02/2024 2024-13-01 2024-00-10 0012-13-01 20240101".split(" "),
	..."0 1 12 13 31 32 49 50 99 100 1000 2024-001 2024-W01 12:00 -1 -2024 +2024 -000000 -000000-01-01 +000000".split(" "),
	..."2024-01-01T00:00Z 2024-01-01t00:00:00z 2024-01-01T24:00Z 2024-01-01T24:00:01Z 2024-01-01T23:59:60Z".split(" "),
	..."2024-01-01T00:00:00.1Z 2024-01-01T00:00:00.0123456789012Z 2024-01-01T00:00:00,5Z 2024-01-01T00Z".split(" "),
	..."2024-01-01T24:00:00.0001Z 2024-01-01T00:00:00+02:00 2024-01-01T00:00:00-0530 2024-01-01T00:00+24:00".split(" "),
	..."+275760-09-13T00:00:00.000Z +275760-09-13T00:00:00.001Z -271821-04-20T00:00Z -271821-04-19T23:59Z 10000-01-01".split(" "),
	..."2024-03-10T02:30:00 2024-11-03T01:30:00 1883-11-18T12:00:00 1800-06-01T00:00:00 2500-07-01T12:00 9999-12-31T23:59".split(" "),
	..."2024-04-07T01:45:00 2024-10-06T02:15:00 1899-12-31T00:00 0000-01-01T00:00 -000001-06-01T00:00".split(" "),
	"", " ", "bad", "tomorrow", " 2024-01-01 ", "2024-01-01 10:00", "2024-01-01T10:00 ", "2024-01:30", "Jan 1 2026",
	"Jan 1", "1 January", "January 2026", "Janitor 3 2026", "Mon, 01 Jan 2024 00:00:00 GMT", "Thu Jan 01 1970 00:00:00 GMT+0100 (CET)",
	"Jan 1 2024 10:00 PM EST", "Jan 1 2024 13:00 PM", "Jan 1 2024 0:00 am", "12:00 Jan 1 2024", "1.2.2024", "1.2.2024 10.30",
	"2024-01-01 10:00:00.5", "2024-01-01 10::30", "2024-01-01 10:00 +1", "2024-01-01 10:00 +130", "2024-01-01 10:00 +01:30",
	"2024-01-01 10:00 +12345", "2024-01-01 10:00 GMT-8", "2024-01-01 10:00 +1193047:00", "2024-01-01 10:00 +999999:00",
	"Jan 1 2024 (a (nested) comment) 10:00", "Jan 1 2024 (open", "Jan 1 2024)", ") Jan 1 2024", "Jan 1 2024 10:00(x)",
	"2024-01-01\0junk", "\0", "Jan\u00a01\u20032024", "\ufeff2024-01-01", "１ Jan 2024", "2024–01–01", "Jan1 2024", "x1 Jan 2024",
	null, true, false, [], {}, [2024], ["2024-01-01", null], [[["2024"]]], [2024, 1], [null], [true], [{}], [1.5e21],
	0, -0.5, 0.9, 1704067200000.9, 8.64e15, 8640000000000001, -8.64e15, 1e400, "1704067200000",
];

function isoDate() {
	const year = pick([String(1900 + random(200)), digits(4), `+${digits(6)}`, `-${digits(6)}`, digits(1 + random(7))]);
	const time = () => `${pick(["T", "T", "T", " ", "t"])}${two(26)}:${two(61)}${maybe(80, () => `:${two(61)}${maybe(60, () => `.${digits(1 + random(11))}`)}`)}`;
	const zone = () => pick(["Z", "Z", "", "z", "+02:00", "-0530", `+${two(26)}:${two(62)}`, "+5", "-12345", " GMT"]);
	return year + maybe(90, () => `-${two(14)}${maybe(85, () => `-${two(33)}`)}`) + maybe(75, () => time() + zone());
}

function writtenDate() {
	const [year, month, day] = [pick([String(1900 + random(200)), String(random(120))]), 1 + random(13), random(33)];
	const name = pick(["Jan", "February", "mar", "Apr.", "JUNE", "Septober", "Dec"]);
	const date = pick([`${month}/${day}/${year}`, `${year}/${month}/${day}`, `${name} ${day}, ${year}`, `${day} ${name} ${year}`, `${day}-${name}-${year}`, `Tue, ${day} ${name} ${year}`, `${name} ${day}`, `${year}-${month}-${day}`]);
	const clock = () => `${pick([" ", ", ", "T", " at "])}${random(26)}:${two(61)}${maybe(50, () => `:${two(61)}`)}${pick(["", "", " PM", "am", " GMT", " EST", "Z", " GMT+0200 (CEST)", ` +${digits(2)}:${digits(2)}`, ` -${digits(4)}`])}`;
	return date + maybe(70, clock);
}

const PIECES = ["Jan", "SEPT", "Tue,", "AM", "pm", "GMT", "Z", "est", "T", "(x)", "(", ")", ":", "::", ".", "-", "+", "/", ",", " ", "\t", "\u2003", "\0", "é", "_", "😀"];
const anyDate = () => Array.from({ length: 1 + random(7) }, () => pick([() => pick(PIECES), () => pick(PIECES), () => digits(1 + random(4)), () => `${two(26)}:${two(62)}`, () => pick("+-") + digits(random(5))])() + pick(["", " "])).join("");

const inZone = (zone, values) => {
	process.env.TZ = zone;
	return values.map((value) => new Date(value).getTime()).map((ms) => (Number.isNaN(ms) ? null : ms));
};

function dateRows() {
	const values = [...DATES, ...[isoDate, writtenDate, anyDate].flatMap((make) => Array.from({ length: 250 }, make))];
	const unique = [...new Map(values.map((value) => [JSON.stringify(value), value])).values()].filter((value) => Number.isFinite(value) || typeof value !== "number");
	const columns = ZONES.map((zone) => inZone(zone, unique));
	return unique.map((value, row) => [value, ...columns.map((column) => column[row])]);
}

// ---- JSON

const JSONS = [
	...'1.0 1e3 -0 -0.0 0e5 -0e-5 0.1 1e21 1e20 1e16 123456789012345680000 1e-5 1e-6 1e-7 1.5e-6 5e-324 1e400 -1e400 1e-400'.split(" "),
	..."9007199254740993 12345678901234567890 18446744073709551615 18446744073709551616 -9223372036854775809".split(" "),
	"1.7976931348623157e308", "1.7976931348623159e308", "1".repeat(400), "1".repeat(5000), "0.30000000000000004", "123456789.123456789",
	..."01 +1 .5 1. 0x10 1e 1e+ --1 - -01 00 1.e5 1_000 NaN Infinity -Infinity undefined nul TRUE nullx True".split(" "),
	..."[ ] { } [1,] [,1] [1 2] {1:2} {'a':1} {\"a\"} {\"a\":} {\"a\":1,} {,} \"\" \" 'x' \"\\x\" \"\\u12\" \"\\u12g4\" \"\\".split(" "),
	"", " ", " \t\r\n1 \n", "\v1", "\f1", "\u00a01", "\ufeff1", "1\ufeff", "\u20281", "1\0", "1 2", "// x\n1", "/**/1", "1,",
	'"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\ud83d\\u0041"', '{"\\ud83d":1}', '"\u007f\u0080\u0085\u009f\u2028\u2029\ufeff\uffff"', '"a\tb"', '"a\nb"', '"\u0000"', '"\u001f"',
	'"\\b\\f\\n\\r\\t\\"\\\\\\/\\u0000\\u001f\\u007f\\u2028"', '{"a":1,"b":2,"a":3}', '{"b":1,"10":2,"2":3,"01":4,"-1":5,"4294967295":6,"4294967294":7}', '{"__proto__":1,"constructor":2,"":3}',
	'[1.0,"1.0,",{"a":"[2.0]","b":2.0,"c":"\\"3.0,"}]', '["-0,",-0,"1e+16]",1e16]', '{"12345678901234567890":"x"}',
	`${"[".repeat(1500)}1.0${"]".repeat(1500)}`, `${'{"a":'.repeat(400)}-0${"}".repeat(400)}`, `${"[".repeat(1500)}${"]".repeat(1499)}`,
];
const BYTES = ["22ff22", "22c080 22", "22eda080 22", "22f09f98 22", "22e282 22", "22f4908080 22", "22f0808080 22", "efbbbf31", "22efbbbf22", "22c3", "31ff", "7b22ff223a312c22fe223a327d", "fffe31003200"];

const aNumber = () => pick([() => pick(["-0", "0", "1.0", "1e21", "1e-7", "9007199254740993", "1e999", "01", "1.", "-"]), () => `${random(1000)}.${digits(1 + random(20))}e${random(660) - 330}`, () => digits(1 + random(30)).replace(/^0+(?=.)/, ""), () => String(random(100000) - 50000), () => `${random(100)}.${digits(3)}`])();
const aString = () => `"${Array.from({ length: random(8) }, () => pick(["a", "b", " ", "{", "]", ",", "-0,", "1.0]", "é", "😀", "\u2028", "\\n", "\\\"", "\\\\", "\\/", "\\u0000", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\ufeff"])).join("")}${random(40) ? "" : pick(["\\x", "\n", "\0", "\\u00g0", "\\"])}"`;
const aKey = () => pick([aString, () => pick(['"a"', '"b"', '"1"', '"2"', '"10"', '"01"', '"-1"', '"__proto__"'])])();
const space = () => (random(5) ? "" : pick([" ", "\n", "\t", "\r", random(20) ? "  " : "\u00a0"]));

function aValue(depth) {
	const kind = random(depth > 5 ? 5 : 10);
	if (kind < 2) return aNumber();
	if (kind < 4) return aString();
	if (kind === 4) return pick(["true", "false", "null"]);
	const items = Array.from({ length: random(5) }, () => space() + (kind < 7 ? "" : aKey() + space() + ":" + space()) + aValue(depth + 1) + space()).join(",");
	return kind < 7 ? `[${items}]` : `{${items}}`;
}

/** The value as JSON, but -0 and infinities as String shows them; recursion is deep enough for the texts above. */
function shown(value) {
	if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
	if (Array.isArray(value)) return `[${value.map(shown).join(",")}]`;
	if (value && typeof value === "object") return `{${Object.keys(value).map((key) => `${JSON.stringify(key)}:${shown(value[key])}`).join(",")}}`;
	return JSON.stringify(value);
}

function jsonRow(bytes) {
	try {
		const value = JSON.parse(bytes.toString("utf8"));
		const [written, other] = [JSON.stringify(value), shown(value)];
		return [bytes.toString("base64"), written, ...(written === other ? [] : [other])];
	} catch {
		return [bytes.toString("base64"), null];
	}
}

function jsonRows() {
	const texts = [...JSONS, ...Array.from({ length: 300 }, () => space() + aValue(0) + space())];
	const bytes = [...texts.map((text) => Buffer.from(text)), ...BYTES.map((hex) => Buffer.from(hex.replace(/ /g, ""), "hex"))];
	for (const one of bytes.slice(-150, -BYTES.length)) {
		if (one.length > 1) bytes.push(Buffer.concat([one.subarray(0, random(one.length)), Buffer.from([random(256)]), one.subarray(random(one.length))]));
	}
	return bytes.map(jsonRow);
}

// ---- files

function save(name, facts, rows) {
	const head = JSON.stringify({ v8: process.versions.v8, ...facts }).slice(0, -1);
	fs.writeFileSync(path.join(FOLDER, name), `${head},"rows":[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]}\n`);
}

save("js_dates.json", { zones: ZONES }, dateRows());
save("js_json.json", {}, jsonRows());
