import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capState, showDollars } from './spend-cap.ts';

const CENT = 100_000_000;
const stateAt = (cents: number, capCents: number | null, priceCentsPerGb = 10) =>
  capState({ bytes: cents * CENT, priceCentsPerGb, capCents });

describe('a spend cap', () => {
  it('is reached by usage that is not under it', () => {
    expect(stateAt(499, 500)).toEqual({ reached: false, notice: 80 });
    expect(stateAt(500, 500)).toEqual({ reached: true, notice: 100 });
    expect(stateAt(50_000, 500)).toEqual({ reached: true, notice: 100 });
  });

  it('is compared with whole cents of usage, and never with the minimum', () => {
    expect(capState({ bytes: 5 * CENT - 1, priceCentsPerGb: 10, capCents: 5 })).toEqual({ reached: false, notice: 80 });
    expect(stateAt(0, 100)).toEqual({ reached: false, notice: null });
  });

  it('is told of at 80 % and at 100 %', () => {
    expect(stateAt(399, 500).notice).toBeNull();
    expect(stateAt(400, 500).notice).toBe(80);
    expect(stateAt(500, 500).notice).toBe(100);
    expect(stateAt(1, 1).notice).toBe(100);
    expect(stateAt(2, 3).notice).toBeNull();
  });

  it('of 0 allows nothing, and needs no telling', () => {
    expect(stateAt(0, 0)).toEqual({ reached: true, notice: null });
    expect(stateAt(7, 0)).toEqual({ reached: true, notice: null });
  });

  it('is nothing where there is none, and on plans without a price', () => {
    expect(stateAt(99_999, null)).toEqual({ reached: false, notice: null });
    expect(stateAt(99_999, 0, 0)).toEqual({ reached: false, notice: null });
  });

  it('that is raised above the usage is not reached, and more usage never opens it', () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(100_000), fc.nat(1000), (cents, cap, more) => {
        expect(stateAt(cents, cap).reached).toBe(cents >= cap);
        expect(stateAt(cents, cents + 1 + more).reached).toBe(false);
        if (stateAt(cents, cap).reached) expect(stateAt(cents + more, cap).reached).toBe(true);
      }),
    );
  });
});

it('dollars are shown with two decimals', () => {
  expect([0, 5, 50, 500, 501, 123_456, 1_000_000_000].map(showDollars)).toEqual([
    ...['$0.00', '$0.05', '$0.50', '$5.00', '$5.01', '$1234.56', '$10000000.00'],
  ]);
});
