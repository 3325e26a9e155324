import { expect, it } from 'vitest';
import { isLoopbackHost } from './loopback.ts';

it.each([
  ...['localhost', 'LOCALHOST', 'localhost.', '127.0.0.1', '127.255.255.254', '127.1.2.3'],
  ...['::1', '[::1]', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '[::FFFF:7f00:1]'],
])('%s is a loopback host', (host) => {
  expect(isLoopbackHost(host)).toBe(true);
});

it.each([
  ...['', 'localhost.example.com', 'my-localhost', 'shop.localhost', 'localhost..'],
  ...['127.example.com', '127.0.0.1.example.com', '127.0.0', '127.1', '127.0.0.256', '127.00.0.1', '0x7f.0.0.1'],
  ...['0.0.0.0', '10.0.0.1', '128.0.0.1', '126.255.255.255', '255.127.0.0'],
  ...['::', '::2', '1::1', '::1%lo', '::127.0.0.1', '::ffff:128.0.0.1', '::ffff:10.0.0.1', '[::1', '::1]', 'fe80::1'],
])('%s is not a loopback host', (host) => {
  expect(isLoopbackHost(host)).toBe(false);
});
