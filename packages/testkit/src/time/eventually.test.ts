import { describe, expect, it } from 'vitest';
import { eventually } from './eventually.ts';

describe('eventually', () => {
  it('returns the result of the first check that passes', async () => {
    let tries = 0;
    const check = async (): Promise<number> => {
      tries += 1;
      if (tries < 3) throw new Error('not yet');
      return tries;
    };
    expect(await eventually(check, { intervalMs: 1 })).toBe(3);
  });

  it('rethrows the last failure at its timeout', async () => {
    let tries = 0;
    const check = (): never => {
      tries += 1;
      throw new Error(`failure ${tries}`);
    };
    await expect(eventually(check, { timeoutMs: 20, intervalMs: 1 })).rejects.toThrow(/^failure \d+$/);
    expect(tries).toBeGreaterThan(1);
  });
});
