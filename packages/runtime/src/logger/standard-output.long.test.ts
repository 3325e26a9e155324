// Logging to real pipes, as in production: a server with a closed or blocked standard output keeps running.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';

let directory: TemporaryDirectory;
let program: string;

// Logs far more than a pipe holds, reports on stderr meanwhile as a server would on its sockets, and then exits normally.
const PROGRAM = `
import { createLogger } from './logger.ts';
const logger = createLogger({ format: 'json' });
const tell = (what) => process.stderr.write(JSON.stringify({ what, dropped: logger.droppedLines, rssMb: process.memoryUsage.rss() / 1e6 }) + '\\n');
process.stdin.once('data', async () => {
  let turns = 0;
  const work = setInterval(async () => {
    for (let i = 0; i < 500; i += 1) logger.info({ n: turns * 500 + i }, 'x'.repeat(500));
    turns += 1;
    if (turns < 100) return;
    clearInterval(work);
    tell('flooded');
    await logger.flush();
    tell('flushed');
    process.stdin.once('data', async () => {
      logger.info({}, 'last words');
      await logger.flush();
      tell('ended');
      process.exit(0);
    });
  }, 1);
});
tell('ready');
`;

interface Report {
  readonly what: string;
  readonly dropped: number;
  readonly rssMb: number;
}

const run = (stdout: 'pipe' | number) => {
  const child: ChildProcess = spawn(process.execPath, [program], { stdio: ['pipe', stdout, 'pipe'] });
  const reports = createInterface({ input: child.stderr ?? process.stdin })[Symbol.asyncIterator]();
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const report = async (what: string): Promise<Report> => {
    const next = (await reports.next()) as IteratorResult<string, undefined>;
    if (next.value === undefined) throw new Error(`it ended before ${what}`);
    const found = JSON.parse(next.value) as Report;
    expect(found.what).toBe(what);
    return found;
  };
  return { child, exited, report, go: () => child.stdin?.write('go\n') };
};

beforeAll(async () => {
  directory = await temporaryDirectory();
  program = join(directory.path, 'program.cjs');
  await build({
    stdin: { contents: PROGRAM, resolveDir: import.meta.dirname },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    outfile: program,
    logLevel: 'error',
  });
});

afterAll(() => directory.close());

test('logging to an unread pipe neither blocks the process nor fills its memory, and dropped lines are reported', async () => {
  const { child, exited, report, go } = run('pipe');
  child.stdout?.pause();
  const before = await report('ready');
  go();
  const flooded = await report('flooded');
  expect(flooded.dropped).toBeGreaterThan(40_000);
  // The 50,000 lines have 28 MB; the queue holds 1 MB.
  expect(flooded.rssMb - before.rssMb).toBeLessThan(80);
  await report('flushed');

  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => (text += String(chunk)));
  child.stdout?.resume();
  go();
  await report('ended');
  expect(await exited).toBe(0);
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { n?: number; dropped_lines?: number; msg: string });
  const told = lines.reduce((sum, line) => sum + (line.dropped_lines ?? 0), 0);
  expect(told).toBe(flooded.dropped);
  expect(lines.filter((line) => line.n !== undefined).length + told).toBe(50_000);
  expect(lines.some((line) => line.msg === 'last words')).toBe(true);
});

test('logging to an unread shell pipe does not block the process', async () => {
  // Node.js gives its child processes socket pairs as pipes; a FIFO behaves like the pipe of a shell's `|`.
  const path = join(directory.path, 'fifo');
  execFileSync('mkfifo', [path]);
  const pipe = openSync(path, 'r+');
  const { exited, report, go } = run(pipe);
  await report('ready');
  go();
  expect((await report('flooded')).dropped).toBeGreaterThan(40_000);
  await report('flushed');
  go();
  await report('ended');
  expect(await exited).toBe(0);
  closeSync(pipe);
});

test('logging to a closed pipe loses lines, but does not end the process', async () => {
  const { child, exited, report, go } = run('pipe');
  await report('ready');
  child.stdout?.destroy();
  go();
  const flooded = await report('flooded');
  expect(flooded.dropped).toBeGreaterThan(45_000);
  await report('flushed');
  go();
  expect((await report('ended')).dropped).toBeGreaterThanOrEqual(50_000);
  expect(await exited).toBe(0);
});

test('logging to a full disk loses lines, but does not end the process', async () => {
  const full = openSync('/dev/full', 'w');
  const { exited, report, go } = run(full);
  closeSync(full);
  await report('ready');
  go();
  await report('flooded');
  await report('flushed');
  go();
  expect((await report('ended')).dropped).toBe(50_001);
  expect(await exited).toBe(0);
});

test('logging to a file keeps every line in order', async () => {
  const path = join(directory.path, 'out.log');
  const file = openSync(path, 'w');
  const { exited, report, go } = run(file);
  closeSync(file);
  await report('ready');
  go();
  expect((await report('flooded')).dropped).toBe(0);
  await report('flushed');
  go();
  await report('ended');
  expect(await exited).toBe(0);
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  expect(lines).toHaveLength(50_001);
  expect(lines.slice(0, -1).every((line, index) => (JSON.parse(line) as { n: number }).n === index)).toBe(true);
});
