import { expect, it } from 'vitest';
import { mayAlertPrivate } from './may-alert-private.ts';

it.each(['127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST.'])(
  'an edge on %s is for this machine: "auto" allows private alert URLs',
  (host) => {
    expect(mayAlertPrivate('auto', host)).toBe(true);
    expect(mayAlertPrivate(false, host)).toBe(false);
  },
);

it.each([
  '0.0.0.0',
  '::',
  '',
  '10.0.0.1',
  '192.0.2.7',
  'fe80::1',
  'edge.example',
  'localhost.example',
  '127.0.0.1.example',
])('an edge on %j is for others too: "auto" refuses private alert URLs', (host) => {
  expect(mayAlertPrivate('auto', host)).toBe(false);
  expect(mayAlertPrivate(true, host)).toBe(true);
});
