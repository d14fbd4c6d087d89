// One well-formed record of every type: a resolver must also forward types that it does not know. Names in the data are
// compressed with pointers to the question wherever a server might do that.

import { type RecordParts, TYPE, hex, strings, u16, u32, wireName } from "./octets.ts";

const QNAME = hex("c00c");
const soaNumbers = Buffer.concat([u32(2026112101), u32(7200), u32(3600), u32(1209600), u32(300)]);
const signature = Buffer.alloc(64, 0xab);
const rrsigFixed = hex("0001 0d 02 0000003c 6a000000 69000000 4f66");
const BINARY = '\0\x07 "quoted" \\back ; é\xff';

export const RECORDS: Readonly<Record<string, RecordParts>> = {
  a: { type: TYPE.A, data: hex("c0000207") },
  aaaa: { type: TYPE.AAAA, data: hex("20010db8 00000000 00000000 00000007") },
  mapped: { type: TYPE.AAAA, data: hex("00000000 00000000 0000ffff c0000207") },
  ns: { type: TYPE.NS, data: Buffer.concat([hex("03 4e5331"), QNAME]) },
  cname: { type: TYPE.CNAME, data: QNAME },
  ptr: { type: TYPE.PTR, data: wireName("Host.Example.Test") },
  oddptr: { type: TYPE.PTR, data: wireName("a\\.b.sp\\032ace.\\000\\255.it's.\\\\\\\"\\@") },
  dname: { type: TYPE.DNAME, data: wireName("target.test") },
  soa: { type: TYPE.SOA, data: Buffer.concat([wireName("ns.test"), wireName("admin.test"), soaNumbers]) },
  soacompressed: { type: TYPE.SOA, data: Buffer.concat([hex("02 6e73 c00c 05 61646d696e c00c"), soaNumbers]) },
  mx: { type: TYPE.MX, data: Buffer.concat([u16(10), hex("04 6d61696c c00c")]) },
  nullmx: { type: TYPE.MX, data: Buffer.concat([u16(0), wireName(".")]) },
  txt: { type: TYPE.TXT, data: strings("one", "", "two words", BINARY, "x".repeat(255)) },
  spf: { type: 99, data: strings("v=spf1 -all") },
  hinfo: { type: TYPE.HINFO, data: strings("RFC8482", "") },
  rp: { type: TYPE.RP, data: Buffer.concat([wireName("admin.test"), wireName("text.test")]) },
  afsdb: { type: 18, data: Buffer.concat([u16(1), wireName("afs.test")]) },
  srv: { type: TYPE.SRV, data: Buffer.concat([u16(1, 2, 443), wireName("Web.Example.Test")]) },
  naptr: {
    type: TYPE.NAPTR,
    data: Buffer.concat([u16(100, 50), strings("s", "SIP+D2U", "!^.*$!sip:a@b!"), wireName("_sip._udp.test")]),
  },
  loc: { type: TYPE.LOC, data: hex("00 12 16 13 89 17 2d d0 70 be 15 f0 00 98 8d 20") },
  cert: { type: TYPE.CERT, data: Buffer.concat([u16(1, 12345), hex("05"), signature]) },
  ds: { type: TYPE.DS, data: Buffer.concat([u16(20326), hex("08 02"), Buffer.alloc(32, 0xcd)]) },
  dnskey: { type: TYPE.DNSKEY, data: Buffer.concat([u16(257), hex("03 0d"), signature]) },
  cds: { type: 59, data: Buffer.concat([u16(20326), hex("08 02"), Buffer.alloc(32, 0xcd)]) },
  cdnskey: { type: 60, data: Buffer.concat([u16(257), hex("03 0d"), signature]) },
  sshfp: { type: TYPE.SSHFP, data: Buffer.concat([hex("04 02"), Buffer.alloc(32, 0xef)]) },
  rrsig: { type: TYPE.RRSIG, data: Buffer.concat([rrsigFixed, wireName("Example.Test"), signature]) },
  sig: { type: TYPE.SIG, data: Buffer.concat([rrsigFixed, wireName("example.test"), signature]) },
  nsec: { type: TYPE.NSEC, data: Buffer.concat([wireName("\\000.Next.Test"), hex("0006 40000080 0003 01 01 40")]) },
  nsec3: { type: TYPE.NSEC3, data: hex("01 00 0001 04 aabbccdd 04 01020304 0006 400000000002") },
  nsec3param: { type: TYPE.NSEC3PARAM, data: hex("01 00 0000 00") },
  tlsa: { type: TYPE.TLSA, data: Buffer.concat([hex("03 01 01"), Buffer.alloc(32, 0x11)]) },
  smimea: { type: 53, data: Buffer.concat([hex("03 01 01"), Buffer.alloc(32, 0x11)]) },
  csync: { type: TYPE.CSYNC, data: Buffer.concat([u32(66), u16(3), hex("0004 60000008")]) },
  zonemd: { type: TYPE.ZONEMD, data: Buffer.concat([u32(2018031900), hex("01 01"), Buffer.alloc(48, 0x22)]) },
  svcb: { type: TYPE.SVCB, data: Buffer.concat([u16(0), wireName("Alias.Test")]) },
  https: {
    type: TYPE.HTTPS,
    data: hex(
      "0001 00 0001 0006 02 6832 02 6833 0003 0002 01bb 0004 0004 c0000201 0006 0010 20010db8 00000000 00000000 00000001",
    ),
  },
  httpsmandatory: {
    type: TYPE.HTTPS,
    data: hex("0010 00 0000 0004 0001 0003 0001 0003 02 6832 0003 0002 01bb fde8 0003 616263"),
  },
  eui48: { type: TYPE.EUI48, data: hex("00005e0053 2a") },
  eui64: { type: 109, data: hex("00005eef1000002a") },
  uri: { type: TYPE.URI, data: Buffer.concat([u16(10, 1), Buffer.from('https://example.test/?a="b"')]) },
  caa: { type: TYPE.CAA, data: Buffer.concat([hex("80 05"), Buffer.from("issueletsencrypt.org; a=b")]) },
  openpgpkey: { type: 61, data: signature },
  dhcid: { type: 49, data: signature },
  kx: { type: 36, data: Buffer.concat([u16(10), wireName("kx.test")]) },
  apl: { type: TYPE.APL, data: hex("0001 18 03 c00002 0002 80 81 ff") },
  null: { type: TYPE.NULL, data: hex("00 01 02 ff") },
  any: { type: TYPE.ANY, data: hex("") },
  unknown: { type: TYPE.PRIVATE, data: hex("deadbeef c00c") },
  emptyunknown: { type: TYPE.PRIVATE + 1, data: hex("") },
};
