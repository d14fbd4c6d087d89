// Packets that others keep because they broke a parser once: those of BIND's source package in Debian, as queries and as replies.
// None may harm the program, and what it makes of them is what another parser does, but for the reasons that are listed here.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { MESSAGE_BYTES_MAX } from "../../src/base/dns/header.ts";
import { Question } from "../../src/query/wire/question.ts";
import { Records, isReadable } from "../../src/query/wire/records.ts";
import { AnswerCheck, AskedCheck, RelayCheck, ReplyCheck } from "../fuzz/check.ts";
import { debianMirror } from "../support/engine/debian-mirror.ts";
import { check, run } from "../support/program/command.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { readName } from "../unit/support/reply.ts";

const SEED = 1;
const HEADER_BYTES = 12;
const QR = 0x80;
const PACKETS_MIN = 250;
const QUERIES_MIN = 90;
const QUESTION_FIXED_BYTES = 4;
/** Types whose data we read as Docker's library does, and other parsers in another way. */
const DIFFERENT_DATA: ReadonlyMap<number, string> = new Map([
  [20, "ISDN: its second text may be left out, and the library wants it"],
  [27, "GPOS: that its texts are numbers is not looked at"],
  [256, "URI: that there is a target is not looked at"],
]);
const READER = new URL("../../../test/corpora/read_packets.py", import.meta.url).pathname;

interface Reading {
  readonly error?: string;
  readonly question?: readonly [name: string, type: number] | null;
  readonly counts?: readonly number[];
}

const folder = makeFolder("corpora");
let packets: readonly Buffer[] = [];

/** Everything is unpacked in a folder; nothing is installed. */
before(async () => {
  const suite = /^VERSION_CODENAME=(\S+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "bookworm";
  writeFileSync(join(folder, "sources.list"), `deb-src [trusted=yes] ${debianMirror()} ${suite} main\n`);
  await check(
    "sh",
    [
      "-ceu",
      `cd "$1" && mkdir lists
      set -- -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$1/lists"
      apt-get -qq "$@" update
      apt-get -qq "$@" source --download-only bind9
      tar -xf bind9_*.orig.tar.xz --wildcards --strip-components=3 '*/fuzz/dns_message_parse.in/*'
      apt-get -qq download python3-dnspython
      dpkg-deb -x python3-dnspython_*.deb python`,
      "sh",
      folder,
    ],
    { timeoutMs: 300_000 },
  );
  packets = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(?:list|deb|dsc|xz|asc)$/.test(entry.name))
    .map(({ name }) => readFileSync(join(folder, name)))
    .filter(({ length }) => length <= MESSAGE_BYTES_MAX);
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function readings(messages: readonly Buffer[]): Promise<readonly Reading[]> {
  const env = { ...process.env, PYTHONPATH: join(folder, "python/usr/lib/python3/dist-packages") };
  const input = messages.map((message) => `${message.toString("hex")}\n`).join("");
  const { stdout, stderr } = await run("/usr/bin/python3", [READER], { env, input });
  assert.equal(stderr, "");
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Reading);
}

/** Whatever it was: a query of opcode 0, or a reply to one. */
function as(packet: Buffer, isReply: boolean): Buffer {
  const message = Buffer.from(packet);
  message.fill(isReply ? QR : 0, 2, Math.min(3, message.length));
  return message;
}

test("no packet harms the program, as a query or as a reply", () => {
  assert.ok(packets.length >= PACKETS_MIN, `${packets.length} packets`);
  const answers = (["strict", "default"] as const).flatMap((mode) =>
    [false, true].map((isStream) => new AnswerCheck(mode, isStream, SEED)),
  );
  const replies = [new ReplyCheck(), new RelayCheck(), new AskedCheck()];
  for (const packet of packets) {
    for (const each of answers) each.run(each.cut(as(packet, false)));
    for (const each of replies) each.run(as(packet, true));
  }
});

test("as replies, they are read as another parser reads them", async () => {
  const messages = packets.map((packet) => as(packet, true));
  const theirs = await readings(messages);
  let read = 0;
  for (const [at, message] of messages.entries()) {
    const records = new Records();
    const isRead = isReadable(message, records, true);
    const { error, counts } = theirs[at] ?? assert.fail();
    if (isRead && counts !== undefined) {
      assert.deepEqual([...records.counts].slice(-counts.length), counts, message.toString("hex"));
      read++;
    } else if (isRead !== (error === undefined)) {
      const type = firstType(message);
      assert.ok(DIFFERENT_DATA.has(type), `${isRead ? "only we read" : "only we refuse"} ${message.toString("hex")}`);
    }
  }
  assert.ok(read >= PACKETS_MIN);
});

test("as queries, their question is what another parser reads", async () => {
  const messages = packets.map((packet) => as(packet, false));
  const theirs = await readings(messages);
  let read = 0;
  for (const [at, message] of messages.entries()) {
    const question = new Question();
    const block = Buffer.from(message);
    const verdict = question.read(block, 0, block.length);
    const { error, question: expected } = theirs[at] ?? assert.fail();
    if (verdict === "answer") {
      assert.equal(error, undefined, message.toString("hex"));
      const name = block.subarray(HEADER_BYTES, readName(block, HEADER_BYTES).end).toString("latin1").toLowerCase();
      assert.deepEqual([Buffer.from(name, "latin1").toString("hex"), question.type], expected);
      read++;
    } else if (error === undefined) {
      assert.ok(isNoQuery(message), `only we refuse ${message.toString("hex")}`);
    }
  }
  assert.ok(read >= QUERIES_MIN);
});

/** The type of the first record behind the question. */
function firstType(message: Buffer): number {
  const { end } = readName(message, HEADER_BYTES);
  return message.readUInt16BE(readName(message, end + QUESTION_FIXED_BYTES).end);
}

/** As Docker's library sees it: it has not one question, or more records than a query or a NOTIFY has. */
function isNoQuery(message: Buffer): boolean {
  const [questions = 0, answers = 0, authorities = 0, additionals = 0] = [4, 6, 8, 10].map((at) =>
    message.readUInt16BE(at),
  );
  return questions !== 1 || answers > 1 || authorities > 1 || additionals > 2;
}
