/**
 * Tar: an archive of small text files in the ustar format (POSIX.1-1988), which every tar reads.
 */
export interface ArchivedFile {
  /** ASCII, at most 100 characters. */
  readonly path: string;
  readonly text: string;
}

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const MODE = "0000600";
/** Field offsets of the header. */
const AT = {
  name: 0,
  mode: 100,
  uid: 108,
  gid: 116,
  size: 124,
  mtime: 136,
  sum: 148,
  type: 156,
  magic: 257,
  version: 263,
} as const;
const SUM_BYTES = 8;

export function tarOf(files: readonly ArchivedFile[], date: Date): Buffer {
  const blocks = files.flatMap(({ path, text }) => {
    const content = Buffer.from(text, "utf8");
    return [header(path, content.length, date), content, Buffer.alloc(-content.length & (BLOCK_BYTES - 1))];
  });
  // Two empty blocks end an archive.
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header(path: string, bytes: number, date: Date): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(path.slice(0, NAME_BYTES), AT.name, "latin1");
  block.write(MODE, AT.mode, "latin1");
  block.write(octal(0, 7), AT.uid, "latin1");
  block.write(octal(0, 7), AT.gid, "latin1");
  block.write(octal(bytes, 11), AT.size, "latin1");
  block.write(octal(Math.floor(date.getTime() / 1_000), 11), AT.mtime, "latin1");
  block.write("0", AT.type, "latin1");
  block.write("ustar", AT.magic, "latin1");
  block.write("00", AT.version, "latin1");
  // The sum is computed with blanks in its own place.
  block.fill(" ", AT.sum, AT.sum + SUM_BYTES);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, AT.sum, "latin1");
  return block;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
