// Certificates received from the platform: snapshots, changes, removals, local copies, and the load that strangers can cause.

import { spawnSync } from 'node:child_process';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { ChallengeReply, EdgeCertificate } from '@tunnel/contract';
import { createLogger, Secret } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LinkFailure } from '../platform-link.ts';
import { CERTIFICATE_COPIES_AGAIN_MS } from './certificate-copies.ts';
import { CHALLENGE_LOOKUPS_PER_SECOND, CHALLENGE_ORDER_PAUSE_MS } from './challenge-lookup.ts';
import { CERTIFICATE_FETCH_AGAIN_MS, CERTIFICATE_FETCHES_MAX, PlatformCertificates } from './platform-certificates.ts';
import { RecordingListener } from './recording-listener.fixture.ts';

const KEY = '-----BEGIN PRIVATE KEY-----\nof the test\n-----END PRIVATE KEY-----\n';

const certificate = (id: string, version = 1, more: Partial<EdgeCertificate> = {}): EdgeCertificate => ({
  id,
  names: [`${id}.example`],
  is_operators: false,
  state: 'valid',
  issuer: 'Test CA',
  not_before: 1,
  not_after: 2,
  renew_at: null,
  last_error: null,
  pair: { chain: `chain ${id} ${version}`, key: KEY },
  ...more,
});

/** The platform’s side of the link, reduced to the calls about certificates. */
class Platform {
  readonly kept = new Map<string, EdgeCertificate>();
  failure: LinkFailure | null = null;
  readonly calls: string[] = [];
  challenge: ChallengeReply['challenge'] = null;
  isCut = false;

  certificates = async (): Promise<ReadableStream<Uint8Array>> => {
    this.calls.push('all');
    if (this.failure !== null) throw this.failure;
    const lines = [{ at: 1 }, ...this.kept.values(), ...(this.isCut ? [] : [{ end: true }])];
    return new Blob(lines.map((line) => `${JSON.stringify(line)}\n`)).stream();
  };

  certificate = async (id: string): Promise<EdgeCertificate | null> => {
    this.calls.push(id);
    if (this.failure !== null) throw this.failure;
    return this.kept.get(id) ?? null;
  };

  asked: object[] = [];

  challengeOf = async (question: object): Promise<ChallengeReply> => {
    this.asked.push(question);
    return { challenge: this.challenge };
  };

  set(...certificates: EdgeCertificate[]): void {
    for (const one of certificates) this.kept.set(one.id, one);
  }
}

let folder: TemporaryDirectory;
let platform: Platform;
let clock: FakeClock;
let lines: string[];
let open: PlatformCertificates[];

beforeEach(async () => {
  folder = await temporaryDirectory();
  [platform, clock, lines, open] = [new Platform(), new FakeClock(), [], []];
});

afterEach(async () => {
  await Promise.all(open.map((one) => one.stop()));
  await folder.close();
});

const output = (): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });

const copiesFolder = (): string => join(folder.path, 'certificates');

const start = async (
  credential = 'credential',
): Promise<{ edge: PlatformCertificates; listener: RecordingListener }> => {
  const logger = createLogger({ format: 'json', stream: output() });
  const { certificates, certificate: one, challengeOf: challenge } = platform;
  const link = { certificates, certificate: one, challenge };
  const copies = { folder: copiesFolder(), credential: new Secret(credential) };
  const edge = new PlatformCertificates({ clock, logger, link, copies });
  const listener = new RecordingListener();
  edge.follow(listener);
  open.push(edge);
  await edge.start();
  return { edge, listener };
};

const change = (id: string) => ({ kind: 'certificate-changed', id: 2, certificate_id: id }) as const;

it('the snapshot of certificates is downloaded once, and again after missed changes', async () => {
  platform.set(certificate('a'), certificate('b'), certificate('c', 1, { pair: null, state: 'ordering' }));
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(listener.names).toEqual(['a.example', 'b.example']));
  await eventually(() => expect(edge.isWanted('c.example')).toBe(true));
  edge.platformHeard(false);
  expect(platform.calls).toEqual(['all']);
  platform.kept.delete('a');
  edge.platformHeard(true);
  await eventually(() => expect(listener.names).toEqual(['b.example']));
  expect([edge.isWanted('a.example'), (await edge.list()).map(({ id }) => id)]).toEqual([false, ['b', 'c']]);
});

it('a change notification updates a certificate: added, renewed or removed', async () => {
  platform.set(certificate('a'));
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(listener.names).toEqual(['a.example']));
  platform.set(certificate('a', 2), certificate('b'));
  edge.changed(change('a'));
  edge.changed(change('b'));
  await eventually(() => expect(listener.names).toEqual(['a.example', 'b.example']));
  await eventually(() => expect(listener.shown.get('a')?.cert).toBe('chain a 2'));
  platform.kept.delete('a');
  edge.changed(change('a'));
  await eventually(() => expect(listener.names).toEqual(['b.example']));
});

it('a failed download of a certificate is retried', async () => {
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(platform.calls).toEqual(['all']));
  platform.failure = new LinkFailure('away', 'no response in time');
  edge.changed(change('a'));
  await eventually(() => expect(platform.calls).toContain('a'));
  platform.failure = null;
  platform.set(certificate('a'));
  await clock.advance(CERTIFICATE_FETCH_AGAIN_MS);
  await eventually(() => expect(listener.names).toEqual(['a.example']));
});

it('too many pending changes are replaced by one snapshot', async () => {
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(platform.calls).toEqual(['all']));
  platform.failure = new LinkFailure('away', 'no response in time');
  for (let at = 0; at <= CERTIFICATE_FETCHES_MAX + 10; at += 1) edge.changed(change(`c${at}`));
  platform.failure = null;
  platform.set(certificate('c1'));
  edge.platformHeard(false);
  await eventually(() => expect(listener.names).toEqual(['c1.example']));
  expect(platform.calls.filter((call) => call !== 'all').length).toBeLessThan(50);
});

it('a certificate with the wrong private key is refused, and the previous certificate stays in use', async () => {
  platform.set(certificate('a'));
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(listener.names).toEqual(['a.example']));
  listener.refused = 'chain a 2';
  platform.set(certificate('a', 2));
  edge.changed(change('a'));
  await eventually(() => expect(lines.join()).toContain('the previous certificate stays in use'));
  expect(listener.shown.get('a')?.cert).toBe('chain a 1');
});

it('an incomplete snapshot removes no certificate', async () => {
  platform.set(certificate('a'), certificate('b'));
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(listener.names).toHaveLength(2));
  platform.isCut = true;
  platform.kept.delete('b');
  edge.platformHeard(true);
  await eventually(() => expect(lines.join()).toContain('is incomplete'));
  expect(listener.names).toHaveLength(2);
});

it('an older platform without certificates gets no further requests until the edge reconnects', async () => {
  platform.failure = new LinkFailure('refused', 'the platform responded with 404', undefined, 404);
  const { edge, listener } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(platform.calls).toEqual(['all']));
  edge.changed(change('a'));
  expect(await edge.findChallenge({ token: 't', host: 'a.example' })).toBeNull();
  expect([platform.calls, platform.asked]).toEqual([['all'], []]);
  platform.failure = null;
  platform.set(certificate('a'));
  edge.platformBack();
  await eventually(() => expect(listener.names).toEqual(['a.example']));
});

it('certificates refused over an unencrypted connection are logged once and requested again only after a reconnect', async () => {
  platform.failure = new LinkFailure('refused', 'the platform responded with 403', undefined, 403);
  const { edge } = await start();
  edge.platformHeard(false);
  await eventually(() => expect(platform.calls).toEqual(['all']));
  for (let beat = 0; beat < 5; beat += 1) edge.platformHeard(false);
  edge.changed(change('a'));
  edge.platformBack();
  await eventually(() => expect(platform.calls).toEqual(['all', 'all']));
  expect(lines.filter((line) => line.includes('over an unencrypted connection'))).toHaveLength(1);
});

describe('local copies of certificates', () => {
  const filled = async (): Promise<void> => {
    platform.set(certificate('a'), certificate('b'));
    const { edge } = await start();
    edge.platformHeard(false);
    await eventually(async () => expect(await readdir(copiesFolder())).toHaveLength(2));
    await edge.stop();
    platform.failure = new LinkFailure('away', 'no response in time');
  };

  it('serve an edge that starts while the platform is unreachable', async () => {
    await filled();
    const { edge, listener } = await start();
    expect(listener.names).toEqual(['a.example', 'b.example']);
    expect((await edge.list())[0]).toMatchObject({ state: 'valid', issuer: 'Test CA', notAfter: 2 });
  });

  it('cannot be loaded without the credential, and contain no readable name or key', async () => {
    await filled();
    const { listener } = await start('another credential');
    expect(listener.names).toEqual([]);
    expect(lines.join()).toContain('cannot decrypt local copies of certificates');
    expect(spawnSync('grep', ['-rlE', 'PRIVATE KEY|example', folder.path], { encoding: 'utf8' }).stdout).toBe('');
    const [file = ''] = await readdir(copiesFolder());
    expect((await stat(join(copiesFolder(), file))).mode & 0o777).toBe(0o600);
    expect((await stat(copiesFolder())).mode & 0o777).toBe(0o700);
  });

  it('are deleted with their certificate, even if the edge was down when the certificate was removed', async () => {
    await filled();
    platform.failure = null;
    platform.kept.delete('a');
    const { edge, listener } = await start();
    edge.platformHeard(false);
    await eventually(async () => expect(await readdir(copiesFolder())).toHaveLength(1));
    expect(listener.names).toEqual(['b.example']);
  });

  it('stay in place if renewed certificates cannot be saved, and the failure is logged once', async () => {
    await filled();
    platform.failure = null;
    const { edge, listener } = await start();
    edge.platformHeard(false);
    await eventually(() => expect(platform.calls.filter((call) => call === 'all')).toHaveLength(2));
    // Simulates a full disk: a folder blocks the path of each temporary file.
    for (const file of await readdir(copiesFolder()))
      await mkdir(join(copiesFolder(), `${file}.new`, 'taken'), { recursive: true });
    platform.set(certificate('a', 2), certificate('b', 2));
    edge.changed(change('a'));
    edge.changed(change('b'));
    await eventually(() => expect(lines.filter((line) => line.includes('cannot save copies'))).toHaveLength(1));
    await eventually(() => expect(listener.shown.get('b')?.cert).toBe('chain b 2'));
    await clock.advance(CERTIFICATE_COPIES_AGAIN_MS);
    await edge.stop();
    expect(lines.filter((line) => line.includes('cannot save copies'))).toHaveLength(1);
    platform.failure = new LinkFailure('away', 'no response in time');
    const { listener: next } = await start();
    expect(next.shown.get('a')?.cert).toBe('chain a 1');
  });
});

describe('local copies of certificates after a full disk', () => {
  it('are written once the disk has room, without another change', async () => {
    // Simulates a full disk: a file at the path of the folder prevents creating the folder.
    await writeFile(copiesFolder(), '');
    platform.set(certificate('a'), certificate('b'), certificate('c'));
    const { edge, listener } = await start();
    edge.platformHeard(false);
    await eventually(() => expect(listener.names).toHaveLength(3));
    await eventually(() => expect(lines.join()).toContain('cannot save copies'));
    await rm(copiesFolder());
    await eventually(async () => {
      await clock.advance(CERTIFICATE_COPIES_AGAIN_MS);
      expect(await readdir(copiesFolder())).toHaveLength(3);
    });
  });
});

describe('challenge lookups', () => {
  const CHALLENGE = { type: 'tls-alpn-01', name: 'a.example', token: 't', key_authorization: 't.k' } as const;

  it('ask the platform once for concurrent requests, and again after a change', async () => {
    platform.set(certificate('a'));
    platform.challenge = CHALLENGE;
    const { edge } = await start();
    edge.platformHeard(false);
    await eventually(() => expect(edge.isWanted('a.example')).toBe(true));
    const look = () => edge.findChallenge({ tlsName: 'a.example' });
    const answers = await Promise.all([look(), look(), look()]);
    await look();
    expect(answers[2]).toEqual({ type: 'tls-alpn-01', name: 'a.example', token: 't', keyAuthorization: 't.k' });
    expect(platform.asked).toEqual([{ tls_name: 'a.example' }]);
    edge.changed(change('a'));
    await clock.advance(1000);
    platform.challenge = { ...CHALLENGE, token: 'next' };
    expect((await look())?.token).toBe('next');
  });

  const opened = async (more: Partial<EdgeCertificate> = {}): Promise<PlatformCertificates> => {
    platform.set(certificate('a', 1, more));
    const { edge } = await start();
    edge.platformHeard(false);
    await eventually(() => expect(edge.isWanted('a.example')).toBe(true));
    return edge;
  };

  it('are limited to a few per second for unknown names, without limiting a name on order', async () => {
    const edge = await opened({ state: 'renewing' });
    for (let at = 0; at < 1000; at += 1) {
      await edge.findChallenge({ token: `token-${at}`, host: 'whoever.example' });
      await edge.findChallenge({ tlsName: `name-${at}.example` });
    }
    expect(platform.asked).toHaveLength(CHALLENGE_LOOKUPS_PER_SECOND);
    platform.challenge = CHALLENGE;
    expect(await edge.findChallenge({ tlsName: 'a.example' })).not.toBeNull();
    await clock.advance(1000);
    expect(await edge.findChallenge({ token: 'another', host: 'whoever.example' })).not.toBeNull();
  });

  it('for a name on order succeed during a flood of lookups of the same name', async () => {
    const edge = await opened({ state: 'ordering' });
    for (const type of ['http-01', 'tls-alpn-01'] as const) {
      platform.asked = [];
      const strangers = Array.from({ length: 500 }, (_, at) => [
        edge.findChallenge({ tlsName: 'a.example' }),
        edge.findChallenge({ token: `token-${at}`, host: 'a.example' }),
      ]).flat();
      // The platform gets the challenge after the first lookups have begun. An earlier empty result must not reach the authority, which
      // looks up later.
      platform.challenge = { ...CHALLENGE, type };
      const key = type === 'http-01' ? { token: 't', host: 'a.example' } : { tlsName: 'a.example' };
      const found = edge.findChallenge(key);
      await clock.advance(CHALLENGE_ORDER_PAUSE_MS);
      expect((await found)?.keyAuthorization).toBe('t.k');
      await Promise.all(strangers);
      expect(platform.asked.filter((question) => 'name' in question).length).toBeLessThanOrEqual(2);
      expect(platform.asked.length).toBeLessThanOrEqual(2 + CHALLENGE_LOOKUPS_PER_SECOND);
      edge.changed(change('a'));
      platform.challenge = null;
      await clock.advance(2000);
    }
  });

  it('return no challenge when the edge stops', async () => {
    const edge = await opened({ state: 'ordering' });
    const looking = Promise.all([1, 2, 3].map(() => edge.findChallenge({ tlsName: 'a.example' })));
    await eventually(() => expect(platform.asked).toHaveLength(1));
    await edge.stop();
    expect(await looking).toEqual([null, null, null]);
  });
});
