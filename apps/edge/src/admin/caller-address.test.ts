import { expect, it } from 'vitest';
import { callerAddress } from './caller-address.ts';

it('a stranger cannot choose the address it is counted against', () => {
  expect(callerAddress('203.0.113.9', '10.0.0.1', ['127.0.0.1'])).toBe('203.0.113.9');
  expect(callerAddress('::ffff:203.0.113.9', undefined, [])).toBe('203.0.113.9');
});

it('behind trusted proxies the nearest address that is not one of them counts', () => {
  const trusted = ['127.0.0.1', '10.0.0.2'];
  expect(callerAddress('127.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2', trusted)).toBe('203.0.113.9');
  expect(callerAddress('127.0.0.1', undefined, trusted)).toBe('127.0.0.1');
  expect(callerAddress('127.0.0.1', '', trusted)).toBe('127.0.0.1');
});
