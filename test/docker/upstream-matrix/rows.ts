// The rows of the matrix: a container's query, what its nameservers do (test/scenarios/matrix.scn), and the reply of
// Docker's resolver. The numbers are those of the research on Docker's resolver: B for its cases, R for its rules.

import { FLAG, TYPE, opt, option, u16 } from "../differential/octets.ts";
import { type Question, SLOW_WAIT_MS, WAIT_MS, query } from "../differential/question.ts";

export type Row = {
  readonly question: Question;
  // In the form of summaryOf.
  readonly reply: string;
  // The servers in the order in which they are queried, such as "1 udp, 2 udp".
  readonly queried: string;
  // Seconds that pass before the reply.
  readonly waitsS?: number;
  // Docker behaves like this only since version 24, which introduced the current forwarding, or later.
  readonly isRecent?: boolean;
  // The servers receive the client's message unchanged, octet by octet.
  readonly isVerbatim?: boolean;
};

type RowParts = Omit<Row, "question"> & {
  readonly name: string;
  readonly from?: string;
  readonly transport?: "udp" | "tcp";
  readonly type?: number;
  readonly flags?: number;
  readonly records?: readonly Buffer[];
};

const SERVFAIL = "SERVFAIL qr rd";
const FIRST = "NOERROR qr rd ra: 192.0.2.1";
const SECOND = "NOERROR qr rd ra: 192.0.2.2";
const THIRD = "NOERROR qr rd ra: 192.0.2.3";
// From the host's server, not from a server of the container.
const HOST = "NOERROR qr rd ra: 192.0.2.9";
const NXDOMAIN = "NXDOMAIN qr rd ra";
const NODATA = "NOERROR qr rd ra";
const SIXTY = `NOERROR qr rd ra: 60 records`;

const TCP = { transport: "tcp" } as const;
const RECENT = { isRecent: true } as const;

export const ROWS: readonly Row[] = [
  row("B22 the first server answers", { name: "x.test", reply: FIRST, queried: "1 udp" }),
  row("B22 over TCP", { name: "x.test", ...TCP, reply: FIRST, queried: "1 tcp" }),
  row("R78 replies are not cached", { name: "x.test", reply: FIRST, queried: "1 udp" }),
  row("R78 servers are not rotated", { name: "x.test", reply: FIRST, queried: "1 udp" }),
  row("B23 SERVFAIL", { name: "x.servfail-first", reply: SECOND, queried: "1 udp, 2 udp" }),
  row("B23 REFUSED", { name: "x.refused-first", reply: SECOND, queried: "1 udp, 2 udp" }),
  row("B23 SERVFAIL over TCP", { name: "x.servfail-first", ...TCP, reply: SECOND, queried: "1 tcp, 2 tcp" }),
  row("B23 the third server answers", { name: "x.third-answers", reply: THIRD, queried: "1 udp, 2 udp, 3 udp" }),
  row("B24 NXDOMAIN", { name: "x.nxdomain-first", reply: `${NXDOMAIN}; SOA`, queried: "1 udp", ...RECENT }),
  row("B24 NXDOMAIN without SOA", { name: "x.bare-nxdomain-first", reply: NXDOMAIN, queried: "1 udp", ...RECENT }),
  row("B25 NOTIMP", { name: "x.notimp-first", reply: "NOTIMP qr rd ra", queried: "1 udp", ...RECENT }),
  row("B25 FORMERR", { name: "x.formerr-first", reply: "FORMERR qr rd ra", queried: "1 udp", ...RECENT }),
  row("B26 NODATA", { name: "x.nodata-first", reply: `${NODATA}; SOA`, queried: "1 udp" }),
  row("B26 NODATA without SOA", { name: "x.bare-nodata-first", reply: NODATA, queried: "1 udp" }),
  row("B27 three fail", { name: "x.three-fail", reply: SERVFAIL, queried: "1 udp, 2 udp, 3 udp", ...RECENT }),
  row("B27 over TCP", { name: "x.three-fail", ...TCP, reply: SERVFAIL, queried: "1 tcp, 2 tcp, 3 tcp", ...RECENT }),
  row("R89 their replies are dropped", {
    name: "x.three-fail",
    records: [opt()],
    reply: SERVFAIL,
    queried: "1 udp, 2 udp, 3 udp",
    ...RECENT,
  }),
  row("B28 the first is silent", { name: "x.silent-first", reply: SECOND, queried: "1 udp, 2 udp", waitsS: 4 }),
  row("B28 over TCP", { name: "x.silent-first", ...TCP, reply: SECOND, queried: "1 tcp, 2 tcp", waitsS: 4 }),
  row("B28 the first is slow", { name: "x.slow-first", reply: FIRST, queried: "1 udp", waitsS: 1 }),
  row("R84 the first is late", { name: "x.late-first", reply: SECOND, queried: "1 udp, 2 udp", waitsS: 4 }),
  row("B29 all are silent", {
    name: "x.silent-all",
    reply: SERVFAIL,
    queried: "1 udp, 2 udp, 3 udp",
    waitsS: 12,
    ...RECENT,
  }),
  row("B30 no server listens", { name: "x.test", from: "closed", reply: SERVFAIL, queried: "", ...RECENT }),
  row("B30 over TCP", { name: "x.test", from: "closed", ...TCP, reply: SERVFAIL, queried: "", ...RECENT }),
  row("B31 truncated", { name: "x.truncated-first", reply: "NOERROR qr tc rd ra", queried: "1 udp" }),
  row("B31 retried over TCP", { name: "x.truncated-first", ...TCP, reply: FIRST, queried: "1 tcp" }),
  row("B32 oversized", { name: "x.oversized-first", reply: SIXTY, queried: "1 udp", ...RECENT }),
  row("R91 oversized for EDNS of 512", {
    name: "x.oversized-first",
    records: [opt({ size: 512 })],
    reply: `${SECOND}; OPT`,
    queried: "1 udp, 2 udp",
    ...RECENT,
  }),
  row("R91 not oversized for EDNS of 1232", {
    name: "x.oversized-first",
    records: [opt({ size: 1232 })],
    reply: `${SIXTY}; OPT`,
    queried: "1 udp",
  }),
  row("B33 wrong id", { name: "x.wrong-id-first", reply: SECOND, queried: "1 udp, 2 udp", waitsS: 4, ...RECENT }),
  row("R84 wrong source", { name: "x.wrong-source-first", reply: SECOND, queried: "1 udp, 2 udp", waitsS: 4 }),
  row("R84 wrong question", {
    name: "x.wrong-question-first",
    reply: "NOERROR qr rd ra: 198.51.100.66",
    queried: "1 udp",
  }),
  row("B34 garbage", { name: "x.garbage-first", reply: SECOND, queried: "1 udp, 2 udp" }),
  row("R87 over TCP it breaks midway", { name: "x.midway-first", ...TCP, reply: SECOND, queried: "1 tcp, 2 tcp" }),
  row("B35 an unknown type", {
    name: "x.test",
    type: TYPE.PRIVATE,
    reply: "NOERROR qr rd ra: deadbeef",
    queried: "1 udp",
  }),
  ...["udp" as const, "tcp" as const].flatMap((transport) => [
    row(`B36 flags by ${transport}`, {
      ...{ name: "MiXed.signed", transport, flags: FLAG.RD | FLAG.AD | FLAG.CD, isVerbatim: true },
      reply: "NOERROR qr rd ra cd: 192.0.2.101",
      queried: `1 ${transport}`,
    }),
    row(`B36 EDNS by ${transport}`, {
      ...{ name: "x.signed", transport, isVerbatim: true },
      records: [
        opt({ size: 1400, isDnssecOk: true, options: [option(65001, u16(7)), option(10, Buffer.alloc(8, 9))] }),
      ],
      reply: "NOERROR qr rd ra ad: 192.0.2.1 RRSIG; OPT",
      queried: `1 ${transport}`,
    }),
  ]),
  row("B37 only itself", { name: "x.test", from: "itself", reply: SERVFAIL, queried: "", ...RECENT }),
  row("B37 itself and another server", {
    name: "x.test",
    from: "itselfToo",
    reply: FIRST,
    queried: "1 udp",
    ...RECENT,
  }),
  row("B38 ndots: one label", { name: "single", from: "ndots0", reply: NODATA, queried: "" }),
  row("B38 ndots: one label, AAAA", { name: "single", type: TYPE.AAAA, from: "ndots0", reply: NODATA, queried: "" }),
  row("B38 ndots: one label, TXT", {
    name: "single",
    type: TYPE.TXT,
    from: "ndots0",
    reply: `NXDOMAIN qr rd ra; SOA`,
    queried: "9 udp",
  }),
  row("B38 ndots: two labels", { name: "x9.ok.test", from: "ndots0", reply: HOST, queried: "9 udp" }),
  row("B39 no ndots: one label", { name: "single", from: "plain", reply: `${NXDOMAIN}; SOA`, queried: "9 udp" }),
  row("B40 internal, the host's server", { name: "x9.ok.test", from: "dark", reply: SERVFAIL, queried: "", ...RECENT }),
  row("B41 internal, its own server", { name: "x.test", from: "darkGiven", reply: FIRST, queried: "1 udp" }),
  row("B43 IPv6 only", { name: "x9.ok.test", from: "sixOnly", reply: HOST, queried: "9 udp", ...RECENT }),
  row("B43 IPv6 only, its name", {
    name: "six-only",
    type: TYPE.AAAA,
    from: "sixOnly",
    reply: "NOERROR qr rd ra: fd16000000000000000000000000000a",
    queried: "",
    ...RECENT,
  }),
  row("B43 IPv6 only, no address of IPv4", {
    name: "six-only",
    from: "sixOnly",
    reply: NODATA,
    queried: "",
    ...RECENT,
  }),
];

// The replies of a container on an internal network while it is on another network, too (B42).
export const CONNECTED: Row = row("B42 internal and not", {
  name: "x9.ok.test",
  from: "dark",
  reply: HOST,
  queried: "9 udp",
});
export const DISCONNECTED: Row = row("B42 internal again", {
  name: "x9.ok.test",
  from: "dark",
  reply: SERVFAIL,
  queried: "",
  isRecent: true,
});

function row(label: string, parts: RowParts): Row {
  const { name, from = "four", transport = "udp", type = TYPE.A, flags = FLAG.RD, records = [], ...rest } = parts;
  const messages = [query({ name, type, flags, records })];
  const waitMs = rest.waitsS === undefined ? WAIT_MS : SLOW_WAIT_MS;
  return { ...rest, question: { label, from, transport, messages, waitMs } };
}
