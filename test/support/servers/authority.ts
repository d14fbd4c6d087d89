/** Authority: an authority that a test makes, and certificates of it, as PEM files in its folder. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { check } from "../program/command.ts";

interface Files {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  // Such as "DNS:dns.test" and "IP:127.0.0.1".
  readonly names: readonly string[];
  // Of its first and last day, in years from now.
  readonly years?: readonly [number, number];
}

const KEY = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

export class Authority {
  readonly #folder: string;
  #made = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async make(folder: string): Promise<Authority> {
    mkdirSync(folder, { recursive: true });
    const authority = new Authority(folder);
    const { key } = authority.#files("ca");
    const subject = ["-x509", "-subj", "/CN=authority of a test", "-days", "30"];
    await check("openssl", ["req", ...subject, ...KEY, "-keyout", key, "-out", authority.file]);
    return authority;
  }

  // Its own certificate.
  get file(): string {
    return this.#files("ca").cert;
  }

  async sign({ names, years = [-1, 1] }: CertificateOptions): Promise<Files> {
    const name = `server${++this.#made}`;
    const files = this.#files(name);
    const at = (what: string): string => join(this.#folder, `${name}.${what}`);
    writeFileSync(at("index"), "");
    writeFileSync(at("names"), `subjectAltName=${names.join(",")}\n`);
    writeFileSync(
      at("conf"),
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${at("index")}\nnew_certs_dir=${this.#folder}\nrand_serial=yes\n` +
        "default_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n",
    );
    const request = ["req", "-new", "-subj", `/CN=${name}`, ...KEY, "-keyout", files.key, "-out", at("csr")];
    await check("openssl", request);
    const dates = ["-startdate", dateText(years[0]), "-enddate", dateText(years[1])];
    const own = this.#files("ca");
    const by = ["-cert", own.cert, "-keyfile", own.key, "-extfile", at("names"), "-config", at("conf")];
    await check("openssl", ["ca", "-batch", "-notext", ...by, ...dates, "-in", at("csr"), "-out", files.cert]);
    return files;
  }

  #files(name: string): Files {
    return { cert: join(this.#folder, `${name}.pem`), key: join(this.#folder, `${name}.key`) };
  }
}

function dateText(years: number): string {
  const date = new Date();
  date.setUTCFullYear(date.getUTCFullYear() + years);
  return `${date.toISOString().replaceAll(/[-:T]|\..*/g, "")}Z`;
}
