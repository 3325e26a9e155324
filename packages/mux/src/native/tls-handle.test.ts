// The choice of TLS handles on the installed Node.js version, and the fallback for missing internals.
import { afterEach, expect, it } from 'vitest';
import type { Binding } from './node-handles.ts';
import { allowStaticReads } from './node-internals.ts';
import { alpnBytes, findTlsWrap, hasTlsHandles } from './tls-handle.ts';

afterEach(() => allowStaticReads(true));

const real: Binding = (name) => (process as unknown as { binding: Binding }).binding(name);

it('TLS handles are available on this Node.js version', () => {
  expect(hasTlsHandles()).toBe(true);
});

it('TLS handles are off when static reads are off', () => {
  allowStaticReads(false);
  expect(hasTlsHandles()).toBe(false);
});

it.each(['receive', 'destroySSL', 'getpeername'])('TLS handles are not used when Node.js has no %s', (missing) => {
  const parts = real('tls_wrap');
  const { prototype } = parts['TLSWrap'] as { prototype: object };
  const without = Object.create(prototype, { [missing]: { value: undefined } }) as object;
  expect(findTlsWrap(() => ({ ...parts, TLSWrap: { prototype: without } }))).toBeNull();
});

it('TLS handles are not used when the binding is missing or access to it is denied', () => {
  expect(findTlsWrap(undefined)).toBeNull();
  expect(findTlsWrap(() => ({}))).toBeNull();
  const refuse = (): never => {
    throw new Error('access denied');
  };
  expect(findTlsWrap(refuse)).toBeNull();
});

it('alpnBytes encodes protocols as a TLS handshake does', () => {
  expect(alpnBytes(['h2', 'http/1.1']).toString('latin1')).toBe('\x02h2\x08http/1.1');
});
