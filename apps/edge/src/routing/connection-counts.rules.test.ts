import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConnectionCounts } from './connection-counts.rules.ts';

it('refuses one more than the limit of a tunnel', () => {
  const counts = new ConnectionCounts({ perTunnel: 2 });
  expect([counts.opened('t'), counts.opened('t'), counts.opened('t'), counts.opened('u')]).toEqual([
    true,
    true,
    false,
    true,
  ]);
  counts.closed('t');
  expect(counts.opened('t')).toBe(true);
});

it('counts exactly what is open, whatever comes and goes', () => {
  const move = fc.tuple(fc.boolean(), fc.constantFrom('t', 'u'));
  fc.assert(
    fc.property(fc.array(move), (moves) => {
      const counts = new ConnectionCounts({ perTunnel: 3 });
      const open: string[] = [];
      for (const [opens, tunnelId] of moves) {
        if (opens && counts.opened(tunnelId)) open.push(tunnelId);
        else if (!opens && open.includes(tunnelId)) {
          open.splice(open.indexOf(tunnelId), 1);
          counts.closed(tunnelId);
        }
        expect(counts.total).toBe(open.length);
        expect(counts.ofTunnel(tunnelId)).toBe(open.filter((other) => other === tunnelId).length);
        expect(counts.ofTunnel(tunnelId)).toBeLessThanOrEqual(3);
      }
    }),
  );
});
