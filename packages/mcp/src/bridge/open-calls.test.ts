import { describe, expect, it } from 'vitest';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import { OpenCalls } from './open-calls.ts';
import { restartDelayMs } from './server-keeper.ts';

/** Returns a call that resolves to the given name when cancelled. */
const untilCancelled =
  (name: string) =>
  (signal: AbortSignal): Promise<string> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(name)));

describe('open calls', () => {
  it('are cancelled only by the session that began them', async () => {
    const calls = new OpenCalls();
    const ended: string[] = [];
    const begin = async (session: string | null, id: number | string, name: string): Promise<void> => {
      ended.push(await calls.run(session, id, untilCancelled(name)));
    };
    const one = begin('one', 1, 'one 1');
    void begin('one', '1', 'one "1"');
    void begin('other', 1, 'other 1');
    void begin(null, 1, 'nobody 1');
    calls.cancel('one', 2);
    calls.cancel('stranger', 1);
    calls.cancel('one', 1);
    await one;
    expect(ended).toEqual(['one 1']);
    expect(calls.size).toBe(3);
    // A finished call cannot be cancelled again.
    calls.cancel('one', 1);
    expect(calls.size).toBe(3);
  });

  it('are limited, and make room when they end', async () => {
    const calls = new OpenCalls();
    const begun = Array.from({ length: BRIDGE_LIMITS.CALLS_MAX }, (_, id) => calls.run('one', id, untilCancelled('x')));
    expect(calls.isFull).toBe(true);
    await expect(calls.run('two', 1, untilCancelled('y'))).rejects.toMatchObject({ code: -32000 });
    calls.cancel('one', 5);
    await begun[5];
    expect(calls.isFull).toBe(false);
    const failing = calls.run('two', 1, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(calls.size).toBe(BRIDGE_LIMITS.CALLS_MAX - 1);
  });

  it('are all awaited before idle() resolves', async () => {
    const calls = new OpenCalls();
    await calls.idle();
    const begun = [1, 2].map((id) => calls.run('one', id, untilCancelled('x')));
    let isIdle = false;
    const idle = calls.idle().then(() => {
      isIdle = true;
    });
    calls.cancel('one', 1);
    await begun[0];
    expect(isIdle).toBe(false);
    calls.cancel('one', 2);
    await idle;
    expect(calls.size).toBe(0);
  });
});

describe('the pause before a server restart', () => {
  it('doubles from 1 s to 30 s', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 1000].map(restartDelayMs);
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });
});
