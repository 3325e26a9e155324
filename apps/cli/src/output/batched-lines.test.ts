import type { Tunnel } from '@tunnel/client';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { BatchedLines, STDOUT_EVERY_MS, STDOUT_LAG_MAX_BYTES } from './batched-lines.ts';
import { jsonOutput } from './json.ts';
import type { FinishedRequest } from './lines.ts';
import type { Output } from './output.ts';
import { runLines } from './run-lines.ts';

/** Creates an Io that records writes to stdout and stderr in order. While `stuck` is true, the reader of stdout reads nothing. */
const start = () => {
  const clock = new FakeClock();
  const writes: string[] = [];
  const said = { stuck: false, held: 0, crash: (): void => {} };
  const stdout = {
    write: (text: string) => {
      writes.push(text);
      if (said.stuck) said.held += text.length;
    },
    get writableLength() {
      return said.held;
    },
  };
  const io = {
    stdout,
    stderr: { write: (text: string) => void writes.push(text) },
    clock,
    beforeCrash: (last: () => void) => {
      said.crash = last;
    },
  };
  return { io, clock, writes, said, text: () => writes.join('') };
};

const batch = () => {
  const started = start();
  return {
    ...started,
    lines: new BatchedLines(started.io, { droppedText: (count) => `dropped ${count}\n` }),
  };
};

const numbered = (count: number, from = 0): string[] => Array.from({ length: count }, (_, at) => `line ${from + at}\n`);

describe('lines written in batches', () => {
  it('are written in order: the first at once, the following ones together', async () => {
    const { lines, clock, writes } = batch();
    for (const line of numbered(1000)) lines.add(line);
    expect(writes).toEqual(['line 0\n']);
    await clock.advance(STDOUT_EVERY_MS);
    expect(writes).toEqual(['line 0\n', numbered(999, 1).join('')]);
  });

  it('cause at most 21 writes per second at any rate', async () => {
    const { lines, clock, writes, text } = batch();
    for (let ms = 0; ms < 1000; ms += 1) {
      for (const line of numbered(25, ms * 25)) lines.add(line);
      await clock.advance(1);
    }
    expect(writes.length).toBeLessThanOrEqual(21);
    lines.close();
    expect(text()).toBe(numbered(25_000).join(''));
  });

  it('are written at once at a low rate, and no timer remains', async () => {
    const { lines, clock, writes } = batch();
    for (const line of numbered(3)) {
      lines.add(line);
      expect(writes.at(-1)).toBe(line);
      await clock.advance(2 * STDOUT_EVERY_MS);
    }
    expect(clock.pendingTimers).toBe(0);
  });

  it.each(['stdout', 'stderr'] as const)('appear before later output to %s', (channel) => {
    const { lines, text } = batch();
    for (const line of numbered(3)) lines.add(line);
    lines[channel].write('words\n');
    lines.add('line 3\n');
    lines.close();
    expect(text()).toBe(`${numbered(3).join('')}words\nline 3\n`);
  });

  it('are all written before a crash is reported', () => {
    const { lines, said, text } = batch();
    for (const line of numbered(3)) lines.add(line);
    said.crash();
    expect(text()).toBe(numbered(3).join(''));
  });

  it('are all written on close, and later lines are written at once', () => {
    const { lines, clock, text } = batch();
    for (const line of numbered(3)) lines.add(line);
    lines.close();
    lines.add('late\n');
    expect(text()).toBe(`${numbered(3).join('')}late\n`);
    expect(clock.pendingTimers).toBe(0);
  });

  it('are dropped and counted while the reader is stalled, and resume after the count', async () => {
    const { lines, clock, said, writes, text } = batch();
    const line = `${'x'.repeat(1023)}\n`;
    said.stuck = true;
    for (let round = 0; round < 100; round += 1) {
      for (let at = 0; at < 100; at += 1) lines.add(line);
      await clock.advance(STDOUT_EVERY_MS);
    }
    expect(said.held).toBeLessThanOrEqual(STDOUT_LAG_MAX_BYTES);
    const kept = said.held / line.length;
    expect(kept).toBeGreaterThan(1000);
    Object.assign(said, { stuck: false, held: 0 });
    await clock.advance(STDOUT_EVERY_MS);
    expect(writes.at(-1)).toBe(`dropped ${10_000 - kept}\n`);
    lines.add('after\n');
    lines.close();
    expect(text().endsWith(`dropped ${10_000 - kept}\nafter\n`)).toBe(true);
  });

  it('are counted on close if they were dropped, even while the reader is still stalled', async () => {
    const { lines, clock, said, writes } = batch();
    said.stuck = true;
    said.held = STDOUT_LAG_MAX_BYTES;
    for (const line of numbered(5)) lines.add(line);
    await clock.advance(STDOUT_EVERY_MS);
    lines.close();
    expect(writes).toEqual(['line 0\n', 'dropped 4\n']);
  });
});

const finished = (path: string): FinishedRequest => ({
  type: 'request-finished',
  id: 'req_1',
  tunnel: { name: 'web' } as Tunnel,
  method: 'GET',
  path,
  at: 0,
  replayOf: null,
  status: 200,
  durationMs: 3,
  requestBytes: 0,
  responseBytes: 2,
  aborted: false,
});

const pathsOf = (text: string): string[] => text.match(/\/\d+\b/g) ?? [];

describe.each<[string, (io: ReturnType<typeof start>['io']) => Output]>([
  ['plain lines', runLines],
  ['--json', jsonOutput],
])('the output of requests as %s', (name, make) => {
  it('contains every request in order, and the end of the run last', () => {
    const { io, text } = start();
    const output = make(io);
    const paths = Array.from({ length: 500 }, (_, at) => `/${at}`);
    for (const path of paths) output.onRequest(finished(path));
    output.onEnd(0, []);
    expect(pathsOf(text())).toEqual(paths);
    if (name === '--json') expect(text().trimEnd().split('\n').at(-1)).toContain('"event":"closed"');
  });

  it('tells a slow reader how many lines were dropped', () => {
    const { io, said, text } = start();
    const output = make(io);
    Object.assign(said, { stuck: true, held: STDOUT_LAG_MAX_BYTES });
    for (let at = 0; at < 10; at += 1) output.onRequest(finished('/x'));
    output.onEnd(0, []);
    expect(text()).toContain(name === '--json' ? '"event":"log_dropped"' : '… and 9 more requests\n');
    if (name === '--json') expect(text()).toContain('"lines":9');
  });
});
