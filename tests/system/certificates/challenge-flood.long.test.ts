// Tests of certificate orders under a flood. Strangers imitate a validating authority as fast as they can: hellos for random names,
// `acme-tls/1`, and http-01 tokens.
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import type { OwnDomainView } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { hello, protocols, serverNames } from '../../../packages/http-shell/src/tls/hello.fixture.ts';
import { Computer } from '../computer.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import { DOMAIN, Outside } from './outside.fixture.ts';

const SOON = { timeoutMs: 30_000 };
const OWN = 'shop.example.com';
const STRANGERS = 60;

const word = (): string => randomBytes(8).toString('hex');

/** First messages of the flood, sent in turn. Two of five name the host on order. */
const SAYINGS: readonly ((outside: Outside) => { readonly port: number; readonly text: Uint8Array | string })[] = [
  ({ ports }) => ({ port: ports.https, text: hello(serverNames(`${word()}.example.net`)) }),
  ({ ports }) => ({ port: ports.https, text: hello(serverNames(`${word()}.${DOMAIN}`), protocols('acme-tls/1')) }),
  ({ ports }) => ({ port: ports.https, text: hello(serverNames(OWN), protocols('acme-tls/1')) }),
  ({ ports }) => ({ port: ports.http, text: tokenRequest(`${word()}.${DOMAIN}`) }),
  ({ ports }) => ({ port: ports.http, text: tokenRequest(OWN) }),
];

const tokenRequest = (host: string): string =>
  `GET /.well-known/acme-challenge/${word()} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

/** Opens a connection of the flood and sends a message. Every third connection is dropped before the response. */
const come = (outside: Outside, nth: number): Promise<void> =>
  new Promise((resolve) => {
    const { port, text } = (SAYINGS[nth % SAYINGS.length] as (typeof SAYINGS)[number])(outside);
    const localAddress = `127.0.1.${1 + (nth % 200)}`;
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () => {
      socket.write(text);
      if (nth % 3 === 0) setImmediate(() => socket.destroy());
    });
    socket.setTimeout(3000, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
  });

const tryUnderFlood = async (harness: Harness, type: string): Promise<void> => {
  const outside = await Outside.open(harness, { challenges: [type, 'dns-01'] });
  const stack = await outside.stack(harness);
  const ann = await Computer.of(harness, stack, 'ann');
  await eventually(async () => expect(await outside.serialOf(`any.${DOMAIN}`)).not.toBe(''), SOON);
  await eventually(async () => expect(await outside.serialOf(DOMAIN)).not.toBe(''), SOON);
  let isOver = false;
  let came = 0;
  const flood = Array.from({ length: STRANGERS }, async () => {
    while (!isOver) {
      came += 1;
      await come(outside, came);
    }
  });
  const added = await ann.json<OwnDomainView>(['domains', 'add', OWN]);
  outside.dns.set(OWN, 'CNAME', added.cname_target);
  try {
    await eventually(async () => expect(await outside.serialOf(OWN)).not.toBe(''), SOON);
    expect(came).toBeGreaterThan(500);
    // The flood causes no orders, and visitors of another host still get a response.
    expect(await outside.ask(`nobody.${DOMAIN}`)).toBe(404);
    const ordered = outside.authority.orders.map(({ names }) => names.join()).sort();
    expect(ordered).toEqual([`*.${DOMAIN}`, OWN, DOMAIN]);
  } finally {
    isOver = true;
    await Promise.all(flood);
  }
};

it('an order by tls-alpn-01 succeeds at the first attempt under a flood of fake challenge connections', async ({
  harness,
}) => {
  await tryUnderFlood(harness, 'tls-alpn-01');
}, 120_000);

it('an order by http-01 succeeds at the first attempt under a flood of fake challenge connections', async ({
  harness,
}) => {
  await tryUnderFlood(harness, 'http-01');
}, 120_000);
