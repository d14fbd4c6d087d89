/**
 * Holds the lock of nf_tables in the namespace that it is started in, until it is killed. A rule is checked under that lock,
 * and one that matches by a pinned program looks up its path: here one on a file system that is this process, and does not answer. It
 * prints a line when the lock is held, and ends with its input. Argument: an empty folder. Start it in a mount namespace of its own.
 *
 * The lookup is made by a second process, started with one more argument: whoever waits for an answer is killed only when the one that
 * could give it is gone.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, openSync, read, writeSync } from "node:fs";
import { join } from "node:path";

import { codeOf } from "../../../src/base/lib/fault.ts";
import { NLM_F_CREATE, type NetlinkWriter } from "../../../src/kernel/netlink-message.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { NFPROTO_IPV4, NftSocket } from "../../../src/kernel/nfnetlink.ts";
import * as nft from "../../../src/kernel/nft-constants.ts";

/** linux/fuse.h. */
const FUSE = { lookup: 1, init: 26, major: 7, minor: 31, headerBytes: 16, initBytes: 64, requestBytesMax: 16_384 };
const MODE_OF_FOLDER = "40000";
/** The file system is gone. */
const ABORTED = "ECONNABORTED";
/** linux/netfilter/xt_bpf.h: struct xt_bpf_info_v1. */
const INFO_BYTES = 528;
const PATH_AT = 8;
const BY_PINNED_PATH = 1;
const REVISION = 1;
const TABLE = "held";
const CHAIN = "c";

const [, program = "", folder = "", isLookup] = process.argv;
const mountPoint = join(folder, "mounted");

if (isLookup === undefined) {
  // It ends with the test, however that ends.
  process.stdin.on("close", () => process.kill(process.pid, "SIGKILL")).resume();
  mkdirSync(mountPoint);
  const device = openSync("/dev/fuse", "r+");
  const options = `fd=3,rootmode=${MODE_OF_FOLDER},user_id=0,group_id=0`;
  succeed("mount", ["--internal-only", "-t", "fuse", "-o", options, "none", mountPoint], device);
  serve(device);
  const looksUp = spawn(process.execPath, [program, folder, "lookup"], { stdio: ["ignore", "ignore", "inherit"] });
  looksUp.once("exit", (status) => {
    console.error(`the lock is not held: its process ended with ${status}`);
    process.exit(1);
  });
} else {
  await addRule().catch((error: unknown) => {
    if (codeOf(error) !== ABORTED) throw error;
  });
}

/** Answers nothing but that the file system is there. */
function serve(device: number): void {
  read(device, Buffer.alloc(FUSE.requestBytesMax), (error, _, request) => {
    if (error !== null) throw error;
    const operation = request.readUInt32LE(4);
    if (operation === FUSE.lookup) process.stdout.write("held\n");
    if (operation === FUSE.init) {
      const reply = Buffer.alloc(FUSE.headerBytes + FUSE.initBytes);
      reply.writeUInt32LE(reply.length, 0);
      request.copy(reply, 8, 8, 16);
      reply.writeUInt32LE(FUSE.major, FUSE.headerBytes);
      reply.writeUInt32LE(FUSE.minor, FUSE.headerBytes + 4);
      writeSync(device, reply);
    }
    serve(device);
  });
}

async function addRule(): Promise<void> {
  const base = { family: NFPROTO_IPV4, flags: NLM_F_CREATE, about: "" };
  await new NftSocket(new NetlinkMemory()).transact([
    { ...base, command: nft.NFT_MSG_NEWTABLE, write: (w) => w.text(nft.NFTA_TABLE_NAME, TABLE) },
    {
      ...base,
      command: nft.NFT_MSG_NEWCHAIN,
      write: (w) => {
        w.text(nft.NFTA_CHAIN_TABLE, TABLE);
        w.text(nft.NFTA_CHAIN_NAME, CHAIN);
      },
    },
    { ...base, command: nft.NFT_MSG_NEWRULE, write: writeRule },
  ]);
}

function writeRule(w: NetlinkWriter): void {
  const info = Buffer.alloc(INFO_BYTES);
  info.writeUInt16LE(BY_PINNED_PATH, 0);
  info.write(join(mountPoint, "program"), PATH_AT);
  w.text(nft.NFTA_RULE_TABLE, TABLE);
  w.text(nft.NFTA_RULE_CHAIN, CHAIN);
  w.nested(nft.NFTA_RULE_EXPRESSIONS, () =>
    w.nested(nft.NFTA_LIST_ELEM, () => {
      w.text(nft.NFTA_EXPR_NAME, "match");
      w.nested(nft.NFTA_EXPR_DATA, () => {
        w.text(nft.NFTA_MATCH_NAME, "bpf");
        w.u32(nft.NFTA_MATCH_REV, REVISION);
        w.attribute(nft.NFTA_MATCH_INFO, info);
      });
    }),
  );
}

function succeed(command: string, args: readonly string[], inherited: number): void {
  const { status, stderr } = spawnSync(command, args, {
    stdio: ["ignore", "ignore", "pipe", inherited],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}
