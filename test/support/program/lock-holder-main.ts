/**
 * Holds the lock of nf_tables in the namespace that it is started in, until it is killed. A rule is checked under that lock,
 * and one that matches by a pinned program looks up its path: here one below an automount that nobody answers. It prints a line
 * when it holds the lock, and ends with its input. Argument: an empty folder. Start it in a mount namespace of its own.
 */
import { spawnSync } from "node:child_process";
import { constants, mkdirSync, openSync, read } from "node:fs";
import { join } from "node:path";

import { NLM_F_CREATE, type NetlinkWriter } from "../../../src/kernel/netlink-message.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { NFPROTO_IPV4, NftSocket } from "../../../src/kernel/nfnetlink.ts";
import * as nft from "../../../src/kernel/nft-constants.ts";

/** linux/netfilter/xt_bpf.h: struct xt_bpf_info_v1. */
const INFO_BYTES = 528;
const PATH_AT = 8;
const BY_PINNED_PATH = 1;
const REVISION = 1;
const TABLE = "held";
const CHAIN = "c";

const folder = process.argv[2] ?? "";
const mountPoint = join(folder, "automount");
const requests = join(folder, "requests");

mkdirSync(mountPoint);
succeed("mkfifo", [requests]);
const fifo = openSync(requests, constants.O_RDWR);
// A session of its own: the process group that mounts it may look things up without asking.
const options = "fd=3,minproto=5,maxproto=5,indirect";
succeed("setsid", ["mount", "-t", "autofs", "-o", options, "automount", mountPoint], fifo);
// It ends with the test, however that ends.
process.stdin.on("close", () => process.kill(process.pid, "SIGKILL")).resume();
// The kernel asks for the path: the lock is held.
read(fifo, Buffer.alloc(512), () => process.stdout.write("held\n"));
const info = Buffer.alloc(INFO_BYTES);
info.writeUInt16LE(BY_PINNED_PATH, 0);
info.write(join(mountPoint, "program"), PATH_AT);
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

function writeRule(w: NetlinkWriter): void {
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

function succeed(command: string, args: readonly string[], inherited?: number): void {
  const { status, stderr } = spawnSync(command, args, {
    stdio: ["ignore", "ignore", "pipe", ...(inherited === undefined ? [] : [inherited])],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}
