import { describe, expect, it } from 'vitest';
import { newKey } from './platform-keys.ts';

const accepts = (label: unknown): boolean => newKey.safeParse({ label }).success;

describe('the label of an API key', () => {
  it('has 1 to 100 characters after trimming, counted by code points', () => {
    expect(newKey.parse({ label: '  laptop\n', scope: 'admin' })).toEqual({ label: 'laptop' });
    expect([accepts('a'), accepts('a'.repeat(100)), accepts('😀'.repeat(100))]).toEqual([true, true, true]);
    expect([accepts(''), accepts(' \t'), accepts('a'.repeat(101))]).toEqual([false, false, false]);
    expect([accepts(undefined), accepts(null), accepts(7), accepts(['a'])]).toEqual([false, false, false, false]);
  });
});
