import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConnectionCounts } from './connection-counts.ts';

it('refuses one more than the limit of a tunnel or of an address', () => {
  const counts = new ConnectionCounts({ perTunnel: 2, perAddress: 3 });
  expect(counts.opened('t', 'x')).toEqual({ kind: 'counted' });
  expect(counts.opened('t', 'y')).toEqual({ kind: 'counted' });
  expect(counts.opened('t', 'x')).toEqual({ kind: 'tunnel-full', limit: 2 });
  counts.opened('u', 'x');
  counts.opened('v', 'x');
  expect(counts.opened('w', 'x')).toEqual({ kind: 'address-full', limit: 3 });
  counts.closed('t', 'x');
  expect(counts.opened('t', 'z')).toEqual({ kind: 'counted' });
});

it('counts the connection of a proxy for its tunnel, and the addresses behind it by themselves', () => {
  const counts = new ConnectionCounts({ perTunnel: 2, perAddress: 1 });
  expect(counts.opened('t', null)).toEqual({ kind: 'counted' });
  expect(counts.opened('t', null)).toEqual({ kind: 'counted' });
  expect(counts.opened('t', null)).toEqual({ kind: 'tunnel-full', limit: 2 });
  expect(counts.addressOpened('x')).toEqual({ kind: 'counted' });
  expect(counts.addressOpened('x')).toEqual({ kind: 'address-full', limit: 1 });
  expect(counts.opened('u', 'x')).toEqual({ kind: 'address-full', limit: 1 });
  expect([counts.ofTunnel('u'), counts.total]).toEqual([0, 2]);
  counts.addressClosed('x');
  counts.closed('t', null);
  expect([counts.ofTunnel('t'), counts.ofAddress('x'), counts.total]).toEqual([1, 0, 1]);
});

it('counts exactly what is open, whatever comes and goes', () => {
  const move = fc.tuple(fc.boolean(), fc.constantFrom('t', 'u'), fc.constantFrom('x', 'y'));
  fc.assert(
    fc.property(fc.array(move), (moves) => {
      const counts = new ConnectionCounts({ perTunnel: 3, perAddress: 4 });
      const open: string[] = [];
      for (const [opens, tunnelId, address] of moves) {
        const key = `${tunnelId}${address}`;
        if (opens && counts.opened(tunnelId, address).kind === 'counted') open.push(key);
        else if (!opens && open.includes(key)) {
          open.splice(open.indexOf(key), 1);
          counts.closed(tunnelId, address);
        }
        expect(counts.total).toBe(open.length);
        expect(counts.ofTunnel(tunnelId)).toBe(open.filter((other) => other.startsWith(tunnelId)).length);
        expect(counts.ofAddress(address)).toBe(open.filter((other) => other.endsWith(address)).length);
        expect(counts.ofTunnel(tunnelId)).toBeLessThanOrEqual(3);
        expect(counts.ofAddress(address)).toBeLessThanOrEqual(4);
      }
    }),
  );
});
