// Which way is taken on the Node in use, and the way back where a part of Node is gone.
import { afterEach, expect, it } from 'vitest';
import type { Binding } from './node-handles.ts';
import { allowStaticReads } from './node-internals.ts';
import { alpnBytes, findTlsWrap, hasTlsHandles } from './tls-handle.ts';

afterEach(() => allowStaticReads(true));

const real: Binding = (name) => (process as unknown as { binding: Binding }).binding(name);

it('is to be had on this Node', () => {
  expect(hasTlsHandles()).toBe(true);
});

it('is off together with static reads', () => {
  allowStaticReads(false);
  expect(hasTlsHandles()).toBe(false);
});

it.each(['receive', 'destroySSL', 'getpeername'])('goes without where Node has no %s', (missing) => {
  const parts = real('tls_wrap');
  const { prototype } = parts['TLSWrap'] as { prototype: object };
  const without = Object.create(prototype, { [missing]: { value: undefined } }) as object;
  expect(findTlsWrap(() => ({ ...parts, TLSWrap: { prototype: without } }))).toBeNull();
});

it('goes without where there is no such part, and where Node refuses', () => {
  expect(findTlsWrap(undefined)).toBeNull();
  expect(findTlsWrap(() => ({}))).toBeNull();
  const refuse = (): never => {
    throw new Error('access denied');
  };
  expect(findTlsWrap(refuse)).toBeNull();
});

it('writes protocols as a handshake has them', () => {
  expect(alpnBytes(['h2', 'http/1.1']).toString('latin1')).toBe('\x02h2\x08http/1.1');
});
