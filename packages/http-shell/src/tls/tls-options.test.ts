// The TLS ticket key of a day: the same on all servers with the same secret, and a different key the next day.
import { Secret } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { deriveTicketKeys, TLS_TERMS, TlsTerms } from './tls-options.ts';

const DAY_MS = 86_400_000;

it('the TLS ticket key is the same for every server with the secret, and depends on secret and day', () => {
  const key = deriveTicketKeys(new Secret('a'), 20_000);
  const same = deriveTicketKeys(new Secret('a'), 20_000);
  expect(key).toEqual(same);
  expect(key).toHaveLength(48);
  expect(deriveTicketKeys(new Secret('b'), 20_000)).not.toEqual(key);
  expect(deriveTicketKeys(new Secret('a'), 20_001)).not.toEqual(key);
});

it('the TLS ticket key changes once a day, and is in all options from then on', async () => {
  const clock = new FakeClock();
  const terms = new TlsTerms(new Secret('a'), clock);
  let days = 0;
  terms.start(60_000, () => {
    days += 1;
  });
  const first = terms.ticketKeys;
  expect(terms.optionsOf(null, 'visitors').ticketKeys).toBe(first);
  const untilMidnight = DAY_MS - (clock.now() % DAY_MS);
  await clock.advance(untilMidnight - 1);
  expect(days).toBe(0);
  await clock.advance(60_000);
  expect([days, terms.ticketKeys.equals(first)]).toEqual([1, false]);
  await clock.advance(DAY_MS / 2);
  expect(days).toBe(1);
  expect(terms.optionsOf(null, 'rest').ticketKeys).toBe(terms.ticketKeys);
  terms.stop();
});

it('a TLS session of one port cannot be resumed on another port', () => {
  const terms = new TlsTerms(new Secret('a'), new FakeClock());
  const scopes = (['visitors', 'clients', 'rest'] as const).map(
    (scope) => terms.optionsOf(null, scope).sessionIdContext,
  );
  expect(new Set(scopes).size).toBe(3);
});

it('a TLS session can be resumed for a day, as long as its ticket key is used', () => {
  expect(new TlsTerms(new Secret('a'), new FakeClock()).optionsOf(null, 'visitors').sessionTimeout).toBe(86_400);
});

it('TLS 1.2 and 1.3 are offered, only with forward-secret and authenticated ciphers', () => {
  const options = new TlsTerms(new Secret('a'), new FakeClock()).optionsOf(null, 'visitors');
  expect([options.minVersion, options.maxVersion]).toEqual(['TLSv1.2', 'TLSv1.3']);
  for (const suite of options.ciphers?.split(':') ?? []) {
    expect(suite).toMatch(
      /^(TLS_(AES_(128|256)_GCM|CHACHA20_POLY1305)_SHA\d+|ECDHE-(ECDSA|RSA)-(AES\d+-GCM-SHA\d+|CHACHA20-POLY1305))$/,
    );
  }
});

it('only X25519, P-256, P-384 and, if supported, the hybrid X25519MLKEM768 are offered', () => {
  // The hybrid group came with OpenSSL 3.5.
  const [major = 0, minor = 0] = process.versions.openssl.split('.').map(Number);
  const hybrid = major > 3 || (major === 3 && minor >= 5) ? ['X25519MLKEM768'] : [];
  expect(TLS_TERMS.ecdhCurve?.split(':')).toEqual([...hybrid, 'X25519', 'P-256', 'P-384']);
});
