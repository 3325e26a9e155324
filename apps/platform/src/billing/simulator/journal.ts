// The stand-in's memory on disk: one line for all changes of a call, written before the call is answered. A process that is killed
// loses at most a line that nobody was told of. No fsync: it is the process that is expected to die, not the machine.
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'journal.jsonl';

export class Journal {
  readonly #path: string;
  #file: number | undefined;
  #length = 0;

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, FILE);
  }

  /** Every line that was written whole. */
  read(): unknown[] {
    const lines = readText(this.#path).split('\n');
    // What follows the last line end was cut off while it was written.
    lines.pop();
    return lines.map((line, index) => parseLine(line, `${this.#path}:${index + 1}`));
  }

  /** From here on the file holds these lines alone, and takes more. */
  begin(lines: readonly object[]): void {
    const aside = `${this.#path}.part`;
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''), 'utf8');
    const file = openSync(aside, 'w', 0o600);
    writeWhole(file, bytes);
    fsyncSync(file);
    closeSync(file);
    renameSync(aside, this.#path);
    this.close();
    this.#file = openSync(this.#path, 'a', 0o600);
    this.#length = bytes.length;
  }

  get bytes(): number {
    return this.#length;
  }

  append(line: object): void {
    if (this.#file === undefined) throw new Error('the journal of the simulator is closed');
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`, 'utf8');
    try {
      writeWhole(this.#file, bytes);
    } catch (error) {
      // Half a line would spoil the next one.
      ftruncateSync(this.#file, this.#length);
      throw error;
    }
    this.#length += bytes.length;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

const writeWhole = (file: number, bytes: Buffer): void => {
  for (let from = 0; from < bytes.length; ) from += writeSync(file, bytes, from);
};

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
};

const parseLine = (line: string, where: string): unknown => {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    throw new Error(`${where}: the journal of the simulator cannot be read`, { cause: error });
  }
};
