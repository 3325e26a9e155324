import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { Logger } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Revocation } from './backend.ts';
import { PLATFORM_CHANGES_SILENT_MS, PLATFORM_RETRY_MAX_MS } from './change-stream.ts';
import { KEY_COPIES_WAIT_MS } from './key-copies.ts';
import {
  askedTunnel,
  closedTunnel,
  makePlatformBackend,
  openedTunnel,
  type PlatformFixture,
} from './platform-backend.fixture.ts';
import { PLATFORM_HEARTBEAT_MS, type PlatformBackend } from './platform-backend.ts';
import { PLATFORM_CALL_TIMEOUT_MS, PLATFORM_PAUSE_MS } from './platform-link.ts';
import { ScriptedPlatform } from './scripted-platform.fixture.ts';
import { TunnelCounters } from './tunnel-counters.ts';
import { JOURNAL_DELIVER_MS, JOURNAL_WRITE_MS, PLATFORM_STOP_MS } from './usage-log.ts';

let clock: FakeClock;
let platform: ScriptedPlatform;
let fixture: PlatformFixture;
let backend: PlatformBackend;
const error = vi.fn();
const logger = { error, info: vi.fn(), warn: vi.fn(), debug: vi.fn() } as unknown as Logger;

beforeEach(async () => {
  error.mockClear();
  clock = new FakeClock();
  platform = new ScriptedPlatform();
  platform.addKey('tnl_alice', 'alice', { tunnel_limit: 2, allow_custom_subdomains: false });
  fixture = await makePlatformBackend({ clock, platform, logger });
  ({ backend } = fixture);
  await backend.start();
  await eventually(() => expect(platform.openLines).toBe(1));
});
afterEach(async () => {
  const stopped = backend.stop();
  await clock.advance(PLATFORM_STOP_MS);
  await stopped;
  await fixture.cleanUp();
});

const open = (tunnelId: string, counters = new TunnelCounters()) => {
  backend.tunnelOpened(openedTunnel(tunnelId, 'alice', { counters }));
  return counters;
};
const calls = (path: string): number => platform.calls.filter((call) => call === path).length;
const journalTexts = async (folder: string): Promise<string[]> =>
  Promise.all((await readdir(folder)).map((name) => readFile(`${folder}/${name}`, 'utf8')));
const SEALED = /"kind":"batch"[^]*"bytes":123/;
/** Waits for records at the platform. Disk writes take real time, independently of the fake clock. */
const untilStored = (count: number): Promise<void> =>
  eventually(() => expect(platform.stored.length).toBeGreaterThanOrEqual(count));

describe('heartbeats', () => {
  it('are sent at the start, every 5 s, and again once the ports are open', async () => {
    expect(platform.heartbeats).toMatchObject([{ run_id: 'run_1', open_tunnels: 0, api_secret: 'secret-of-this-run' }]);
    open('tun_1');
    await clock.advance(PLATFORM_HEARTBEAT_MS);
    await eventually(() => expect(platform.heartbeats).toHaveLength(2));
    expect(platform.heartbeats[1]).toMatchObject({ open_tunnels: 1 });
    backend.ready();
    await eventually(() => expect(platform.heartbeats).toHaveLength(3));
  });
});

describe('usage', () => {
  it('is delivered within seconds, in few batches', async () => {
    const counters = open('tun_1');
    await untilStored(1);
    for (let n = 0; n < 20; n += 1) {
      counters.addBytes(100);
      counters.addRequest();
      await clock.advance(JOURNAL_WRITE_MS);
    }
    await clock.advance(JOURNAL_DELIVER_MS);
    await untilStored(2);
    await eventually(() => expect(platform.tunnels.get('tun_1')).toMatchObject({ requests: 20, bytes: 2000 }));
    expect(platform.batches.length).toBeLessThan(5);
  });

  it('is stored once even if responses are lost after storing', async () => {
    const counters = open('tun_1');
    await untilStored(1);
    for (let n = 0; n < 4; n += 1) {
      platform.lostAnswers = 1;
      counters.addBytes(1000);
      await clock.advance(JOURNAL_DELIVER_MS);
      await eventually(() => expect(platform.lostAnswers).toBe(0));
    }
    await clock.advance(2 * JOURNAL_DELIVER_MS);
    await eventually(async () => {
      await clock.advance(JOURNAL_DELIVER_MS);
      expect(platform.tunnels.get('tun_1')?.bytes).toBe(4000);
    });
    const repeated = platform.batches.filter(({ first }, at) => platform.batches[at - 1]?.first === first);
    expect(repeated.length).toBeGreaterThan(0);
  });

  it('is delivered again to a platform that was restored to an earlier time, and counts once', async () => {
    const counters = open('tun_1');
    const counted = (bytes: number): Promise<void> =>
      eventually(async () => {
        await clock.advance(JOURNAL_DELIVER_MS);
        expect(platform.tunnels.get('tun_1')?.bytes).toBe(bytes);
      });
    counters.addBytes(100);
    await counted(100);
    const journals = [...platform.journals];
    counters.addBytes(1000);
    await counted(1100);
    platform.journals.clear();
    for (const [id, last] of journals) platform.journals.set(id, last);
    const tunnel = platform.tunnels.get('tun_1');
    if (tunnel !== undefined) tunnel.bytes = 100;
    counters.addBytes(10);
    await counted(1110);
    expect(platform.journals.size).toBe(1);
    expect(error).not.toHaveBeenCalled();
  });

  it('continues under another journal id if the platform has lost records that the edge no longer keeps', async () => {
    open('tun_1');
    await untilStored(1);
    backend.tunnelClosed(closedTunnel('tun_1', 'alice'));
    await untilStored(2);
    await eventually(() => rm(`${fixture.folder}/sent.jsonl`));
    platform.journals.clear();
    const counters = open('tun_2');
    counters.addBytes(500);
    backend.tunnelClosed(closedTunnel('tun_2', 'alice'));
    await eventually(() => expect(platform.tunnels.get('tun_2')).toMatchObject({ isOpen: false, bytes: 500 }));
    expect(platform.journals.size).toBe(1);
    expect(error).toHaveBeenCalledOnce();
  });

  it('waits through a long outage and is then delivered in few records', async () => {
    platform.goAway();
    const counters = open('tun_1');
    for (let hour = 0; hour < 3; hour += 1) {
      counters.addBytes(10 ** 9);
      await clock.advance(60_000);
    }
    expect(platform.stored).toEqual([]);
    platform.state = 'here';
    await eventually(async () => {
      await clock.advance(JOURNAL_DELIVER_MS);
      expect(platform.tunnels.get('tun_1')).toMatchObject({ bytes: 3 * 10 ** 9 });
    });
    expect(platform.stored.filter(({ kind }) => kind === 'usage').length).toBeLessThan(3);
  });

  it('survives a kill: the next run delivers it and closes the tunnel', async () => {
    let isKilled = false;
    // A separate clock for the killed run. The clock stops at the kill, so the run writes and sends nothing more.
    const itsClock = new FakeClock();
    const killed = await makePlatformBackend({
      clock: itsClock,
      platform,
      folder: fixture.folder,
      fetch: (request) => (isKilled ? Promise.reject(new Error('killed')) : platform.fetch(request)),
    });
    await backend.stop();
    await killed.backend.start();
    platform.goAway();
    const tunnel = openedTunnel('tun_1', 'alice');
    killed.backend.tunnelOpened(tunnel);
    tunnel.counters.addBytes(123);
    await itsClock.advance(JOURNAL_WRITE_MS);
    // Disk writes take real time. The run is killed once its only file contains the numbered batch and the bytes, and no write is in
    // progress.
    await eventually(async () => expect(await journalTexts(fixture.folder)).toEqual([expect.stringMatching(SEALED)]));
    isKilled = true;
    platform.state = 'here';
    const next = await makePlatformBackend({ clock, platform, folder: fixture.folder, runId: 'run_2' });
    await next.backend.start();
    await eventually(async () => {
      await clock.advance(JOURNAL_DELIVER_MS);
      expect(platform.tunnels.get('tun_1')).toMatchObject({ bytes: 123, isOpen: false });
    });
    // A killed process loses its file descriptors. In this process the test has to close them.
    for (const { backend: each, cleanUp } of [killed, next]) {
      await each.stop();
      await cleanUp();
    }
  });

  it('is kept, and the error reported once, if the platform rejects the edge’s credential', async () => {
    vi.spyOn(platform, 'fetch').mockImplementation(async () => new Response('{}', { status: 401 }));
    const refused = await makePlatformBackend({ clock, platform, logger, fetch: (request) => platform.fetch(request) });
    await refused.backend.start();
    refused.backend.tunnelOpened(openedTunnel('tun_9', 'alice'));
    const said = (): unknown[] => error.mock.calls.map(([, text]) => text as unknown);
    const once = [expect.stringContaining('check the credential'), expect.stringContaining('the records are kept')];
    await eventually(() => expect(said()).toEqual(once));
    await clock.advance(3 * JOURNAL_DELIVER_MS);
    expect(said()).toEqual(once);
    expect(await refused.backend.verifyKey('tnl_alice')).toMatchObject({ fault: { code: 'AUTH_BACKEND_AWAY' } });
    await refused.backend.stop();
    await refused.cleanUp();
  });
});

describe('an unresponsive platform', () => {
  it('delays one client by the timeout and later clients not at all', async () => {
    platform.goAway('silent');
    const slow = backend.verifyKey('tnl_alice');
    await clock.advance(PLATFORM_CALL_TIMEOUT_MS);
    expect(await slow).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
    expect(await backend.verifyKey('tnl_bob')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
    platform.state = 'here';
    await clock.advance(PLATFORM_PAUSE_MS);
    expect((await backend.verifyKey('tnl_alice')).ok).toBe(true);
  });

  it('at the start delays one client, and keys are accepted only after a heartbeat of this run', async () => {
    platform.goAway('silent');
    const late = await makePlatformBackend({ clock, platform, runId: 'run_2' });
    await late.backend.start();
    const slow = late.backend.verifyKey('tnl_alice');
    await clock.advance(PLATFORM_CALL_TIMEOUT_MS);
    expect((await slow).ok).toBe(false);
    expect((await late.backend.verifyKey('tnl_alice')).ok).toBe(false);
    platform.state = 'here';
    await clock.advance(PLATFORM_PAUSE_MS);
    expect((await late.backend.verifyKey('tnl_alice')).ok).toBe(true);
    expect(platform.heartbeats.some(({ run_id }) => run_id === 'run_2')).toBe(true);
    await late.backend.stop();
    await late.cleanUp();
  });
});

describe('a platform that is reachable again', () => {
  it('first gets the closed tunnels, so that they no longer count toward the account’s limit', async () => {
    await backend.verifyKey('tnl_alice');
    for (const id of ['tun_1', 'tun_2']) {
      expect(await backend.admitTunnel(askedTunnel(id, 'alice'))).toBeNull();
      open(id);
    }
    await untilStored(2);
    platform.goAway();
    backend.tunnelClosed(closedTunnel('tun_1', 'alice'));
    await clock.advance(JOURNAL_DELIVER_MS);
    platform.state = 'here';
    expect(await backend.admitTunnel(askedTunnel('tun_3', 'alice'))).toBeNull();
    expect(platform.tunnels.get('tun_1')?.isOpen).toBe(false);
  });
});

describe('limits while the platform is unreachable', () => {
  beforeEach(async () => {
    await backend.verifyKey('tnl_alice');
    platform.goAway();
  });

  it('are the last known limits, even for concurrent requests', async () => {
    const asked = ['tun_1', 'tun_2', 'tun_3'].map((id) => backend.admitTunnel(askedTunnel(id, 'alice')));
    const codes = (await Promise.all(asked)).map((refusal) => refusal?.code ?? null);
    expect(codes.filter((code) => code === 'TUNNEL_PLAN_LIMIT')).toHaveLength(1);
  });

  it('apply to custom subdomains', async () => {
    const chosen = askedTunnel('tun_1', 'alice', { customSubdomain: true });
    expect(await backend.admitTunnel(chosen)).toMatchObject({ code: 'TUNNEL_CUSTOM_SUBDOMAIN' });
  });

  it('are not guessed: a tunnel with an unknown key is refused for now', async () => {
    const asked = askedTunnel('tun_1', 'carol', { keyId: 'key_unknown' });
    expect(await backend.admitTunnel(asked)).toMatchObject({ code: 'AUTH_BACKEND_AWAY', retryable: true });
  });

  it('undo an admission at the platform if its response was lost', async () => {
    open('tun_1');
    open('tun_2');
    // The platform has stored the tunnel, but its response was lost.
    platform.tunnels.set('tun_3', { accountId: 'alice', label: '', isOpen: true, requests: 0, bytes: 0 });
    expect(await backend.admitTunnel(askedTunnel('tun_3', 'alice'))).toMatchObject({ code: 'TUNNEL_PLAN_LIMIT' });
    platform.state = 'here';
    await eventually(async () => {
      await clock.advance(JOURNAL_DELIVER_MS);
      expect(platform.tunnels.has('tun_3')).toBe(false);
    });
  });
});

describe('changes from the platform', () => {
  /**
   * Waits for a number of open change streams. The end of a stream is noticed in a later turn, and the pause before reconnecting starts
   * then.
   */
  const untilOpenLines = (count: number): Promise<void> =>
    eventually(async () => {
      await clock.advance(PLATFORM_RETRY_MAX_MS);
      expect(platform.openLines).toBe(count);
    });

  const listen = (): Revocation[] => {
    const heard: Revocation[] = [];
    backend.onRevoked((revocation) => heard.push(revocation));
    return heard;
  };

  it('made while the stream was down arrive after reconnecting', async () => {
    const heard = listen();
    await backend.verifyKey('tnl_alice');
    platform.goAway();
    platform.revokeKey('tnl_alice');
    platform.state = 'here';
    await eventually(async () => {
      await clock.advance(PLATFORM_RETRY_MAX_MS);
      expect(heard).toMatchObject([{ keyId: 'key_1', fault: { code: 'AUTH_TOKEN_REVOKED' } }]);
    });
    expect(await backend.verifyKey('tnl_alice')).toMatchObject({ ok: false, fault: { code: 'AUTH_TOKEN_REVOKED' } });
  });

  it('close only the named tunnels, and changes of an unknown kind are ignored', async () => {
    const heard = listen();
    await untilOpenLines(1);
    platform.announce({ kind: 'of a later version', account_id: 'bob' } as never);
    const code = 'TUNNEL_OVER_PLAN';
    const message = 'this one is over';
    platform.announce({ kind: 'tunnels-closed', account_id: 'bob', tunnel_ids: ['tun_2', 'tun_1'], code, message });
    await eventually(() => expect(heard).toMatchObject([{ tunnelIds: ['tun_2', 'tun_1'], fault: { code, message } }]));
  });

  it('arrive once, without changes made before the start of the run', async () => {
    const heard = listen();
    platform.announce({ kind: 'account-closed', account_id: 'bob', code: 'ACCOUNT_SUSPENDED', message: 'no' });
    await eventually(() => expect(heard).toHaveLength(1));
    platform.cutLines();
    await untilOpenLines(1);
    const next = await makePlatformBackend({ clock, platform });
    const later: Revocation[] = [];
    next.backend.onRevoked((revocation) => later.push(revocation));
    await next.backend.start();
    await eventually(() => expect(platform.openLines).toBe(2));
    expect([heard.length, later.length]).toEqual([1, 0]);
    await next.backend.stop();
    await next.cleanUp();
  });

  it('are requested on a new stream if the stream falls silent', async () => {
    const before = calls('/changes');
    await clock.advance(PLATFORM_CHANGES_SILENT_MS);
    await eventually(async () => {
      await clock.advance(PLATFORM_RETRY_MAX_MS);
      expect(calls('/changes')).toBeGreaterThan(before);
    });
    await untilOpenLines(1);
  });

  it('lost beyond recovery make the edge check every key again and revoke rejected keys', async () => {
    const heard = listen();
    platform.addKey('tnl_bob', 'bob');
    await backend.verifyKey('tnl_alice');
    await backend.verifyKey('tnl_bob');
    const lost = [...platform.keys.values()].find(({ accountId }) => accountId === 'bob');
    if (lost !== undefined) lost.isRevoked = true;
    platform.say({ kind: 'forget', id: 7 });
    await eventually(() => expect(heard.map(({ keyId }) => keyId)).toEqual(['key_2']));
    expect((await backend.verifyKey('tnl_alice')).ok).toBe(true);
  });
});

describe('a start without the platform', () => {
  let next: PlatformFixture | undefined;

  /** Starts a second run while the platform is unreachable, with the files on disk, as after a crash. */
  const startAgain = async (): Promise<PlatformBackend> => {
    const file = `${fixture.namesFolder}/edge-known-keys.jwe`;
    await clock.advance(KEY_COPIES_WAIT_MS);
    await eventually(async () => expect((await readFile(file, 'utf8')).split('.')).toHaveLength(5));
    platform.goAway();
    next = await makePlatformBackend({ clock, platform, logger, namesFolder: fixture.namesFolder, runId: 'run_2' });
    await next.backend.start();
    return next.backend;
  };

  afterEach(async () => {
    const stopped = next?.backend.stop();
    await clock.advance(PLATFORM_STOP_MS);
    await stopped;
    await next?.cleanUp();
    next = undefined;
  });

  it('accepts keys of the last run, within the limits of their accounts', async () => {
    await backend.verifyKey('tnl_alice');
    const again = await startAgain();
    expect(await again.verifyKey('tnl_alice')).toMatchObject({ ok: true, owner: { accountId: 'alice' } });
    expect(await again.verifyKey('tnl_other')).toMatchObject({ ok: false, fault: { code: 'AUTH_BACKEND_AWAY' } });
    const { keyId } = (await again.verifyKey('tnl_alice')) as { keyId: string };
    const asked = (id: string) => again.admitTunnel(askedTunnel(id, 'alice', { keyId }));
    expect([await asked('tun_1'), await asked('tun_2')]).toEqual([null, null]);
    expect((await asked('tun_3'))?.code).toBe('TUNNEL_PLAN_LIMIT');
  });

  it('checks the used keys once the platform is back, and reports a key revoked meanwhile', async () => {
    await backend.verifyKey('tnl_alice');
    const again = await startAgain();
    await again.verifyKey('tnl_alice');
    const revoked: Revocation[] = [];
    again.onRevoked((revocation) => revoked.push(revocation));
    platform.revokeKey('tnl_alice');
    platform.state = 'here';
    await eventually(async () => {
      await clock.advance(PLATFORM_HEARTBEAT_MS);
      expect(revoked).toMatchObject([{ fault: { code: 'AUTH_TOKEN_REVOKED' } }]);
    });
  });

  it('with an altered copy of known keys accepts no key and logs a warning', async () => {
    await backend.verifyKey('tnl_alice');
    await clock.advance(KEY_COPIES_WAIT_MS);
    const file = `${fixture.namesFolder}/edge-known-keys.jwe`;
    await eventually(async () => expect((await readFile(file, 'utf8')).split('.')).toHaveLength(5));
    const text = await readFile(file, 'utf8');
    expect(text).not.toContain('alice');
    await writeFile(file, `${text.slice(0, -2)}AA`);
    platform.goAway();
    next = await makePlatformBackend({ clock, platform, logger, namesFolder: fixture.namesFolder, runId: 'run_2' });
    await next.backend.start();
    expect((await next.backend.verifyKey('tnl_alice')).ok).toBe(false);
    expect(logger.warn).toHaveBeenCalledWith(
      expect.objectContaining({ file }),
      'cannot decrypt the copy of known API keys',
    );
  });

  it('in a stack, ignores a copy sealed by an earlier start without logging a warning', async () => {
    await writeFile(`${fixture.namesFolder}/edge-known-keys.jwe`, 'sealed by another credential');
    vi.mocked(logger.warn).mockClear();
    platform.goAway();
    const { namesFolder } = fixture;
    next = await makePlatformBackend({ clock, platform, logger, namesFolder, runId: 'run_2', isInStack: true });
    await next.backend.start();
    expect((await next.backend.verifyKey('tnl_alice')).ok).toBe(false);
    expect(logger.warn).not.toHaveBeenCalledWith(expect.anything(), 'cannot decrypt the copy of known API keys');
  });
});
