// The supervisor of a server part, with fake processes that exit on demand and a fake clock.
import { PassThrough } from 'node:stream';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { FromPart, PartReady, StartPart, ToPart } from './messages.ts';
import type { PartEnd, PartRun } from './part-process.ts';
import { PART_LIFE_BOUNDS, SupervisedPart, type UnexpectedEnd } from './supervised-part.ts';

const READY: PartReady = { kind: 'ready', platform: null, edge: null };
const KILLED: PartEnd = { code: null, signal: 'SIGKILL', output: '' };
const FAILURE = { kind: 'failed', error: { type: 'Error', message: 'no such thing', stack: 'at here' } } as const;

class FakeRun implements PartRun {
  readonly told: ToPart[] = [];
  readonly ended: Promise<PartEnd>;
  readonly say: (message: FromPart) => void;
  isKilled = false;
  #end: (end: PartEnd) => void = () => {};

  constructor(say: (message: FromPart) => void) {
    this.say = say;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  send(message: ToPart): void {
    this.told.push(message);
  }

  kill(): void {
    this.isKilled = true;
    this.#end(KILLED);
  }

  async end(end: PartEnd = KILLED): Promise<void> {
    this.#end(end);
    await this.ended;
    await Promise.resolve();
  }

  /** Lets the fake process report "loaded" and "ready". */
  run(): void {
    this.say({ kind: 'loaded' });
    this.say(READY);
  }
}

const supervise = () => {
  const clock = new FakeClock();
  const output = new PassThrough();
  const runs: FakeRun[] = [];
  const ends: UnexpectedEnd[] = [];
  const ready: PartReady[] = [];
  let starts = 0;
  let isRefused = false;
  const part = new SupervisedPart({
    part: 'edge',
    launch: (onMessage) => {
      if (isRefused) throw new Error('spawn ENOMEM');
      runs.push(new FakeRun(onMessage));
      return runs.at(-1)!;
    },
    startMessage: () => ({ kind: 'start', linkPort: (starts += 1) }) as unknown as StartPart,
    clock,
    logger: createLogger({ format: 'json', stream: output }),
    onReady: (message) => ready.push(message),
    onEnded: (end) => ends.push(end),
  });
  // Newer versions of Node.js return a single line per read, so the output is read in a loop.
  const said = (): string => {
    let lines = '';
    while (output.readableLength > 0) lines += String(output.read());
    return lines;
  };
  const refuseLaunch = (isNow: boolean): void => void (isRefused = isNow);
  return { part, clock, runs, ends, ready, said, refuseLaunch };
};

/** Supervises a running part. */
const superviseRunning = async () => {
  const fixture = supervise();
  fixture.part.load();
  const started = fixture.part.start();
  fixture.runs[0]!.run();
  await started;
  return fixture;
};

it('a part loads first, and gets its start message when both part and server are ready', async () => {
  const { part, runs, ready } = supervise();
  part.load();
  runs[0]!.say({ kind: 'loaded' });
  expect(runs[0]!.told).toEqual([]);
  const started = part.start();
  expect(runs[0]!.told).toMatchObject([{ kind: 'start' }]);
  expect(part.isRunning).toBe(false);
  runs[0]!.say(READY);
  await started;
  expect([part.isRunning, ready]).toEqual([true, [READY]]);
});

it('a part that is stopped during startup gets a stop message, and its late ready message is ignored', async () => {
  const { part, runs, ready } = supervise();
  part.load();
  void part.start();
  runs[0]!.say({ kind: 'loaded' });
  const stopped = part.stop({ drainMs: 10 });
  expect(runs[0]!.told.at(-1)).toEqual({ kind: 'stop', drainMs: 10 });
  runs[0]!.say(READY);
  expect([part.isRunning, ready]).toEqual([false, []]);
  await runs[0]!.end();
  await stopped;
});

it('a part that fails the first start reports the reason and is not restarted', async () => {
  const { part, clock, runs, ends } = supervise();
  part.load();
  const started = part.start();
  const values = { host: '127.0.0.1', port: 4040, key: '[server] control_port' };
  runs[0]!.say({ kind: 'loaded' });
  runs[0]!.say({ ...FAILURE, fault: { code: 'CONFIG_PORT_TAKEN', message: 'port 4040 is taken', values } });
  await expect(started).rejects.toMatchObject({ code: 'CONFIG_PORT_TAKEN', message: 'port 4040 is taken', values });
  await runs[0]!.end();
  await clock.advance(120_000);
  expect([runs.length, ends]).toEqual([1, []]);
});

it('a first start that ends without a message is reported with the last output or the signal', async () => {
  const one = supervise();
  const two = supervise();
  for (const { part } of [one, two]) part.load();
  const starts = [one.part.start(), two.part.start()];
  for (const start of starts) start.catch(() => {});
  await one.runs[0]!.end({ code: 134, signal: null, output: 'something\nFATAL ERROR: heap out of memory\n' });
  await two.runs[0]!.end();
  await expect(starts[0]).rejects.toThrow('the edge did not start: FATAL ERROR: heap out of memory');
  await expect(starts[1]).rejects.toThrow('the edge did not start: exited with SIGKILL');
  const early = supervise();
  early.part.load();
  await early.runs[0]!.end({ code: 1, signal: null, output: 'Error: no such file\n' });
  await expect(early.part.start()).rejects.toThrow('the edge did not start: Error: no such file');
});

it('a part that exits unexpectedly is reported and restarted at once with a fresh start message', async () => {
  const { part, clock, runs, ends, ready, said } = await superviseRunning();
  runs[0]!.say({ kind: 'counters', counters: { sessions: 3 } });
  runs[0]!.say({ kind: 'crashed', error: FAILURE.error });
  await clock.advance(1500);
  await runs[0]!.end({ code: 1, signal: null, output: '' });
  expect([part.isRunning, runs.length]).toEqual([false, 1]);
  expect(ends).toMatchObject([
    { part: 'edge', code: 1, livedMs: 1500, error: FAILURE.error, counters: { sessions: 3 } },
  ]);
  await clock.advance(0);
  expect(runs).toHaveLength(2);
  runs[1]!.run();
  expect(runs[1]!.told).toMatchObject([{ kind: 'start', linkPort: 2 }]);
  expect([part.isRunning, ready.length]).toEqual([true, 2]);
  expect(said()).toMatch(/"error".*exited unexpectedly[^]*running again/);
});

it('a part that keeps exiting is restarted forever with growing delays, and alerts loudly once', async () => {
  const { clock, runs, said } = await superviseRunning();
  await runs[0]!.end();
  for (const [at, delayMs] of [0, 0, 500, 1000, 2000, 2000, 2000, 2000, 2000, 5000, 5000].entries()) {
    if (delayMs > 0) await clock.advance(delayMs - 1);
    if (delayMs > 0) expect(runs).toHaveLength(at + 1);
    await clock.advance(1);
    expect(runs).toHaveLength(at + 2);
    // The restart fails, for example because a port is in use.
    runs.at(-1)!.say({ kind: 'loaded' });
    runs.at(-1)!.say({ ...FAILURE, fault: null });
    await runs.at(-1)!.end();
  }
  const lines = said();
  expect(lines.match(/DOES NOT STAY UP/g)).toHaveLength(1);
  expect(lines.match(/"reason":"no such thing".*; restarting/g)).toHaveLength(11);
});

it('a part that hangs during a restart is killed and restarted, while a first start has no time limit', async () => {
  const { clock, runs, ends, part } = await superviseRunning();
  await clock.advance(10 * PART_LIFE_BOUNDS.START_AGAIN_MS);
  expect(runs[0]!.isKilled).toBe(false);
  await runs[0]!.end();
  await clock.advance(0);
  // The first process hangs before it has loaded, the second after its start message.
  for (const [at, loads] of [false, true].entries()) {
    const run = runs[at + 1]!;
    if (loads) run.say({ kind: 'loaded' });
    await clock.advance(PART_LIFE_BOUNDS.START_AGAIN_MS - 1);
    expect(run.isKilled).toBe(false);
    await clock.advance(1);
    expect(run.isKilled).toBe(true);
    await clock.advance(0);
  }
  expect(ends.map(({ error }) => error?.message)).toEqual([
    undefined,
    'no response during startup',
    'no response during startup',
  ]);
  runs[3]!.run();
  await clock.advance(10 * PART_LIFE_BOUNDS.START_AGAIN_MS);
  expect([part.isRunning, runs[3]!.isKilled, runs.length]).toEqual([true, false, 4]);
  const slow = supervise();
  slow.part.load();
  const started = slow.part.start();
  await slow.clock.advance(10 * PART_LIFE_BOUNDS.START_AGAIN_MS);
  slow.runs[0]!.run();
  await started;
});

it('a failed launch of a part is retried with the usual delays', async () => {
  const { part, clock, runs, ends, refuseLaunch } = await superviseRunning();
  refuseLaunch(true);
  await runs[0]!.end();
  await clock.advance(0);
  await clock.advance(0);
  expect(ends.map(({ error }) => error?.message)).toEqual([undefined, 'spawn ENOMEM', 'spawn ENOMEM']);
  refuseLaunch(false);
  await clock.advance(500);
  runs[1]!.run();
  expect(part.isRunning).toBe(true);
});

it('a stopped part is not restarted, and messages to a stopped part are dropped', async () => {
  const { part, clock, runs, ends } = await superviseRunning();
  part.tell({ kind: 'restarts', restarts: { edge: 1 } });
  const stopped = part.stop({ drainMs: 3000 });
  expect(runs[0]!.told.slice(1)).toEqual([
    { kind: 'restarts', restarts: { edge: 1 } },
    { kind: 'stop', drainMs: 3000 },
  ]);
  part.tell({ kind: 'restarts', restarts: {} });
  await clock.advance(3000 + PART_LIFE_BOUNDS.STOP_GRACE_MS - 1);
  expect(runs[0]!.isKilled).toBe(false);
  await runs[0]!.end({ code: 0, signal: null, output: '' });
  await stopped;
  await clock.advance(120_000);
  expect([runs.length, ends, runs[0]!.told.length]).toEqual([1, [], 3]);
});

it('a part that takes too long to stop is killed', async () => {
  const { part, clock, runs } = await superviseRunning();
  const stopped = part.stop({ drainMs: 0 });
  await clock.advance(PART_LIFE_BOUNDS.STOP_GRACE_MS);
  await stopped;
  expect(runs[0]!.isKilled).toBe(true);
});

it('a part that is stopped while waiting for a restart stays stopped', async () => {
  const { part, clock, runs } = await superviseRunning();
  await runs[0]!.end();
  await clock.advance(0);
  await runs[1]!.end();
  await part.stop({ drainMs: 1000 });
  await clock.advance(60_000);
  expect(runs).toHaveLength(2);
});
