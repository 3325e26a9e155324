import { dropReason, edgeFlows, relayReason } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { datagramWay, dropsOf, peerWay } from './path-text.ts';

const noDrops = () =>
  Object.fromEntries(dropReason.options.map((reason) => [reason, 0])) as Parameters<typeof dropsOf>[0];

it('every reason for drops and paths has a different text', () => {
  const drops = dropsOf({ ...noDrops(), ...Object.fromEntries(dropReason.options.map((reason) => [reason, 1])) });
  expect(new Set(drops.map(({ text }) => text)).size).toBe(dropReason.options.length);
  const carriers = edgeFlows.shape.reason.options.map((reason) => datagramWay({ path: 'carrier', reason }).text);
  expect(new Set(carriers).size).toBe(carriers.length);
  const relays = relayReason.options.map((reason) => peerWay({ path: 'relay', reason }).text);
  expect(new Set(relays).size).toBe(relays.length);
});

it('only drops above zero are shown, the most frequent first', () => {
  expect(dropsOf(noDrops())).toEqual([]);
  const drops = dropsOf({ ...noDrops(), rate: 3, behind: 1, away: 20 });
  expect(drops.map(({ reason, count }) => [reason, count])).toEqual([
    ['away', 20],
    ['rate', 3],
    ['behind', 1],
  ]);
});

it('a direct path has a good tone, and a fallback path a neutral one', () => {
  expect(datagramWay({ path: 'udp', reason: '' })).toMatchObject({ badge: 'udp', tone: 'good' });
  expect(datagramWay({ path: 'carrier', reason: 'udp-blocked' })).toMatchObject({ badge: 'carrier', tone: 'neutral' });
  expect(peerWay({ path: 'direct', reason: '' })).toMatchObject({ badge: 'direct', tone: 'good' });
  expect(peerWay({ path: 'relay', reason: 'random-ports' })).toMatchObject({ badge: 'relay', tone: 'neutral' });
});
