/** Certificates of an etcd under test, as PEM files, and one that did not sign them. */
import { join } from "node:path";

import { check } from "../program/command.ts";

interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Of an authority that has signed nothing. */
  readonly other: string;
}

/** In a folder, for the members at 10.99.SUBNET. */
export async function makeCertificates(folder: string, subnet: number): Promise<Certificates> {
  const at = (name: string): string => join(folder, name);
  const own = async (name: string, ...more: string[]): Promise<void> => {
    const subject = [
      "-subj",
      `/CN=${name}`,
      "-days",
      "2",
      "-nodes",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
    ];
    await check("openssl", [
      "req",
      "-x509",
      ...subject,
      "-keyout",
      at(`${name}.key`),
      "-out",
      at(`${name}.pem`),
      ...more,
    ]);
  };
  await own("ca");
  await own("other");
  const names = `subjectAltName=${[1, 2, 3].map((member) => `IP:10.99.${subnet}.${member}`).join(",")},IP:127.0.0.1`;
  await own("server", "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-addext", names);
  return { ca: at("ca.pem"), cert: at("server.pem"), key: at("server.key"), other: at("other.pem") };
}
