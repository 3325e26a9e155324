import type { Tunnel } from '@tunnel/client';
import { expect, it } from 'vitest';
import { eventLine, routeText } from './words.ts';

const tunnel = {
  name: 'db',
  publicUrl: 'tcp://edge\u001b[2J:20007\nx',
  protocol: 'tcp',
  localHost: '127.0.0.1',
  localPort: 5432,
  group: null,
  warnings: [],
} as unknown as Tunnel;

it('an address moves no cursor, whatever the edge says', () => {
  expect(routeText(tunnel)).toBe('tcp://edge [2J:20007 x -> 127.0.0.1:5432');
  const moved = eventLine({ type: 'tunnel-moved', tunnel, previousUrl: 'tcp://a\rb' });
  expect(moved).toBe('db: now at tcp://edge [2J:20007 x -> 127.0.0.1:5432 (was tcp://a b)');
});
