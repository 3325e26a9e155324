import { describe, expect, it } from 'vitest';
import { decideRefresh, type ShownToken } from './refresh-rotation.ts';

const rules = { graceMs: 10_000, graceUses: 5 };
const fresh: ShownToken = {
  expiresAt: 1_000_000,
  rotatedAt: null,
  graceUses: 0,
  familyRevoked: false,
  userStatus: 'active',
};
const decide = (changes: Partial<ShownToken>, now: number) => decideRefresh({ ...fresh, ...changes }, now, rules);

describe('a refresh token', () => {
  it('is rotated at its first use, until it runs out', () => {
    expect(decide({}, 0)).toBe('rotate');
    expect(decide({}, 999_999)).toBe('rotate');
    expect(decide({}, 1_000_000)).toBe('invalid');
    expect(decideRefresh(null, 0, rules)).toBe('invalid');
  });

  it('gives further successors for 10 s after that', () => {
    expect(decide({ rotatedAt: 5000 }, 5000)).toBe('rotate-again');
    expect(decide({ rotatedAt: 5000 }, 15_000)).toBe('rotate-again');
    expect(decide({ rotatedAt: 5000 }, 15_001)).toBe('reuse');
  });

  it('gives five of them and no sixth', () => {
    expect(decide({ rotatedAt: 0, graceUses: 4 }, 1)).toBe('rotate-again');
    expect(decide({ rotatedAt: 0, graceUses: 5 }, 1)).toBe('reuse');
  });

  it('gives nothing once its family has ended', () => {
    expect(decide({ familyRevoked: true }, 0)).toBe('invalid');
    expect(decide({ familyRevoked: true, rotatedAt: 0 }, 1)).toBe('invalid');
  });

  it('tells the owner of a suspended account so, though its families have ended', () => {
    expect(decide({ userStatus: 'suspended', familyRevoked: true }, 0)).toBe('suspended');
    expect(decide({ userStatus: 'suspended' }, 1_000_000)).toBe('invalid');
  });
});
