import type { Tunnel } from '@tunnel/client';
import { expect, it } from 'vitest';
import { oneLine } from '../problem-report.ts';
import { eventLine, routeText } from './words.ts';

const HOSTILE = 'http://a\u001b]0;owned\u0007\u009b2J\r\nb.example';

const tunnel = {
  name: 'web',
  protocol: 'http',
  publicUrl: HOSTILE,
  localHost: '127.0.0.1',
  localPort: 3000,
  group: null,
  warnings: [],
} as unknown as Tunnel;

it('an address that the edge made up moves no cursor and begins no line', () => {
  expect(routeText(tunnel)).toBe('http://a ]0;owned 2J b.example -> 127.0.0.1:3000');
  const moved = eventLine({ type: 'tunnel-moved', tunnel, previousUrl: HOSTILE });
  expect(moved).toMatch(/\(was http:\/\/a \]0;owned 2J b\.example\)$/);
  expect(moved).not.toMatch(/\p{Cc}/u);
});

it('signs that turn the direction of a line, or end it, are as good as a space; letters of any script stay', () => {
  expect(oneLine('a\u202eb\u2066c\u200fd\u061ce\u2028f\u2029g')).toBe('a b c d e f g');
  expect(oneLine('żółw 日本 👩\u200d💻')).toBe('żółw 日本 👩\u200d💻');
});
