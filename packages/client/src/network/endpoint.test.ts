import { fileURLToPath } from 'node:url';
import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { decideSecurity, parseServerAddress } from './endpoint.ts';

describe('parseServerAddress', () => {
  it.each([
    ['edge.example.com:4440', 'edge.example.com', 4440, 'edge.example.com:4440'],
    ['edge.example.com', 'edge.example.com', 4040, 'edge.example.com:4040'],
    [' 127.0.0.1:1 ', '127.0.0.1', 1, '127.0.0.1:1'],
    ['[::1]:4440', '::1', 4440, '[::1]:4440'],
    ['[::1]', '::1', 4040, '[::1]:4040'],
    ['2001:db8::7', '2001:db8::7', 4040, '[2001:db8::7]:4040'],
  ])('reads %s', (text, host, port, shown) => {
    expect(parseServerAddress(text)).toEqual({ host, port, text: shown });
  });

  it.each([
    '',
    ':4040',
    'host:',
    'host:0',
    'host:65536',
    'host:4o4',
    'a b:1',
    '[nonsense]:1',
    'https://edge:4040',
    'a..b',
    '-x-:1',
  ])('refuses %j and quotes it in the error', (text) => {
    expect(() => parseServerAddress(text)).toThrow(Fault);
    expect(() => parseServerAddress(text)).toThrow(`\`${text}\``);
  });
});

describe('decideSecurity', () => {
  it.each(['127.0.0.1', '127.9.9.9', '::1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1'])(
    'uses a plain connection to %s, restricted to loopback addresses',
    (host) => {
      expect(decideSecurity(host, {})).toEqual({ kind: 'plain', loopbackOnly: true });
    },
  );

  it.each(['edge.example.com', '10.0.0.1', '::2', 'localhost.example.com', '127.example.com'])(
    'uses TLS to %s unless TLS is turned off explicitly',
    (host) => {
      expect(decideSecurity(host, {})).toMatchObject({ kind: 'tls', verify: true });
      expect(decideSecurity(host, { insecure: true })).toMatchObject({ kind: 'tls', verify: false });
      expect(decideSecurity(host, { tls: false })).toEqual({ kind: 'plain', loopbackOnly: false });
    },
  );

  it('uses TLS to a loopback address when TLS is requested', () => {
    expect(decideSecurity('127.0.0.1', { tls: true })).toMatchObject({ kind: 'tls', verify: true });
  });

  it('names a CA file that cannot be read', () => {
    expect(() => decideSecurity('edge.example.com', { caFile: '/nowhere/ca.pem' })).toThrow(Fault);
    expect(() => decideSecurity('edge.example.com', { caFile: '/nowhere/ca.pem' })).toThrow(
      '/nowhere/ca.pem: no such file',
    );
  });

  it('refuses a CA file without a PEM certificate', () => {
    const caFile = fileURLToPath(import.meta.url);
    expect(() => decideSecurity('edge.example.com', { caFile })).toThrow(
      `${caFile}: the file contains no PEM certificate`,
    );
  });
});
