// The file functions in a separate process that is killed with SIGKILL during a write, or that has a full disk or a read-only folder.
// Readers always find complete content.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../secret.ts';
import { recordsIn } from './line-log.ts';
import { SealedFiles } from './sealed-file.ts';

const KILLS = 8;
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

const SOURCE = `
  import { existsSync } from 'node:fs';
  import { writeAtomic, writeAtomicSync } from './atomic-file.ts';
  import { LineLog, lineOf } from './line-log.ts';
  import { SealedFiles } from './sealed-file.ts';
  import { Secret } from '../secret.ts';
  const [what, path, from] = process.argv.slice(2);
  const say = (text) => process.stdout.write(text + '\\n');
  const content = (n) => JSON.stringify({ n, text: 'x'.repeat(200_000), end: true });
  const sealed = new SealedFiles(new Secret('secret'), 'test');
  const forever = async (write) => {
    for (let n = 0; ; n += 1) {
      await write(n);
      if (n === 0) say('begun');
    }
  };
  const logOf = (facts, onFailed) => new LineLog({
    path, maxBytes: 1e9, queueChars: 1000, tailChars: 2000, onFailed,
    lines: function* () {
      yield lineOf({ file: 'facts' });
      for (const fact of facts) yield lineOf({ fact });
    },
  });
  const RUNS = {
    atomic: () => forever((n) => writeAtomic(path, content(n), { soleWriter: true })),
    'atomic-many': () => forever((n) => writeAtomic(path, content(n))),
    sync: () => forever((n) => writeAtomicSync(path, content(n), { soleWriter: true })),
    sealed: () => forever((n) => sealed.write(path, { n, text: 'x'.repeat(50_000), end: true })),
    log: () => {
      const facts = Array.from({ length: Number(from) }, (_, n) => n);
      const log = logOf(facts, say);
      return forever(async (n) => {
        facts.push(facts.length);
        log.append(lineOf({ fact: facts.length - 1 }));
        while (n === 0 && !existsSync(path)) await new Promise(setImmediate);
        if (n % 3 === 0) await new Promise(setImmediate);
      });
    },
    // For a disk that is full: what is refused is told.
    once: async () => {
      await writeAtomic(path, 'x'.repeat(Number(from)), { flush: true, soleWriter: true }).catch((error) => say(error.code));
      try { writeAtomicSync(path, 'x'.repeat(Number(from))); } catch (error) { say(error.code); }
    },
    'log-once': async () => {
      const facts = [];
      const log = logOf(facts, (reason) => say('failed ' + reason.split(':')[0]));
      for (let n = 0; n < Number(from); n += 1) {
        facts.push(n);
        log.append(lineOf({ fact: n }));
        while (n === 0 && !existsSync(path) && from > 3) await new Promise(setImmediate);
        await new Promise(setImmediate);
      }
      await log.close();
      say('closed');
    },
  };
  void RUNS[what]();
`;

let root: TemporaryDirectory;
let program: string;
let folder: string;
let path: string;
let tests = 0;

beforeAll(async () => {
  root = await temporaryDirectory();
  chmodSync(root.path, 0o755);
  program = join(root.path, 'writer.cjs');
  await build({
    stdin: { contents: SOURCE, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    conditions: ['source'],
    outfile: program,
    logLevel: 'error',
    nodePaths: [fileURLToPath(new URL('../../../../node_modules', import.meta.url))],
  });
});
afterAll(() => root.close());

beforeEach(() => {
  tests += 1;
  folder = join(root.path, String(tests));
  mkdirSync(folder);
  path = join(folder, 'state');
});

/** Starts the program, waits until the writes have begun and a few milliseconds longer, and kills the process with SIGKILL. */
const killed = async (what: string, from = 0): Promise<void> => {
  const child = spawn(process.execPath, [program, what, path, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 15));
  child.kill('SIGKILL');
  await ended;
};

/** Runs the program and returns its output lines. `bytes` limits the size of its files. */
const said = async (
  what: string,
  from: number,
  { bytes, uid }: { bytes?: number; uid?: number } = {},
): Promise<string[]> => {
  const node = [process.execPath, program, what, path, String(from)];
  // Without a handler the signal SIGXFSZ would end the process. Ignored, the write fails as on a full disk.
  const shell = `trap '' XFSZ; ulimit -f ${Math.floor((bytes ?? 0) / 1024)}; exec "$@"`;
  const [command, ...args] = bytes === undefined ? node : ['bash', '-c', shell, 'bash', ...node];
  const child = spawn(command as string, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(child, 'close');
  return text.split('\n').slice(0, -1);
};

const asides = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.new'));

describe('a process killed with SIGKILL', () => {
  it.each(['atomic', 'atomic-many', 'sync'])('leaves a complete file: %s', async (what) => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      await killed(what);
      expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ end: true });
      if (what !== 'atomic-many') expect(asides().length).toBeLessThanOrEqual(1);
    }
  });

  it('leaves a sealed file that can be opened', async () => {
    const sealed = new SealedFiles(new Secret('secret'), 'test');
    for (let kill = 0; kill < KILLS; kill += 1) {
      await killed('sealed');
      expect(sealed.read(path, 1 << 20)).toMatchObject({ end: true });
      expect(asides().length).toBeLessThanOrEqual(1);
    }
  });

  it('leaves a line log without gaps, whether it was appending or rewriting', async () => {
    let known = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      await killed('log', known);
      const text = readFileSync(path, 'utf8');
      const facts = [
        ...new Set([...recordsIn(text, ({ file }) => file === 'facts')].map(({ fact }) => fact as number)),
      ];
      expect(facts.toSorted((a, b) => a - b)).toEqual(facts.map((_, index) => index));
      expect(facts.length).toBeGreaterThanOrEqual(known);
      known = facts.length;
      expect(asides().length).toBeLessThanOrEqual(1);
    }
    expect(known).toBeGreaterThan(0);
  });
});

describe('a full disk', () => {
  it('keeps the old content and leaves no other file', async () => {
    writeFileSync(path, 'old');
    expect(await said('once', 100_000, { bytes: 10_240 })).toEqual(['EFBIG', 'EFBIG']);
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['old', ['state']]);
  });

  it('ends a line log after its last whole line, and is reported', async () => {
    const lines = await said('log-once', 2000, { bytes: 10_240 });
    // The failure is reported again whenever a complete rewrite succeeded in between.
    expect([new Set(lines), lines.at(-1)]).toEqual([new Set(['failed EFBIG', 'closed']), 'closed']);
    const text = readFileSync(path, 'utf8');
    expect([text.endsWith('\n'), statSync(path).size <= 10_240, asides()]).toEqual([true, true, []]);
    expect([...recordsIn(text, ({ file }) => file === 'facts')].length).toBeGreaterThan(0);
  });
});

describe('a read-only folder', () => {
  it.skipIf(!isRoot)('keeps its file, and the error says EACCES', async () => {
    writeFileSync(path, 'old');
    chownSync(path, NOBODY, NOBODY);
    chmodSync(folder, 0o555);
    expect(await said('once', 10, { uid: NOBODY })).toEqual(['EACCES', 'EACCES']);
    await eventually(() => expect(readFileSync(path, 'utf8')).toBe('old'));
    expect(await said('log-once', 3, { uid: NOBODY })).toEqual(['failed EACCES', 'closed']);
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['old', ['state']]);
  });
});
