import type { RequestHead } from '@tunnel/http1';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { captureStore, captureTunnel, requestHead, responseHead } from './capture.fixture.ts';
import {
  CAPTURE_BYTES_MAX,
  CAPTURE_BYTES_PER_TUNNEL,
  CAPTURE_KEPT_AFTER_END_MS,
  CAPTURE_SWEEP_MS,
  CAPTURE_TUNNELS_REMEMBERED,
  type CaptureStore,
} from './capture-store.ts';
import { CaptureRecorder } from './recorder.ts';

const web = captureTunnel('tun_web');
const GET = requestHead('GET /');
const HOUR_MS = CAPTURE_KEPT_AFTER_END_MS;

const begin = (store: CaptureStore, tunnel = web, head = GET): CaptureRecorder => {
  const recorder = store.begin(tunnel, head, 0, 'chunks');
  if (recorder === null) throw new Error('nothing is captured');
  return recorder;
};

/** Creates a request head of about the given length. */
const large = (bytes: number) => requestHead('GET /', `X-Large: ${'x'.repeat(bytes)}`);

const sizeOf = (store: CaptureStore, tunnelId: string): number => store.list(tunnelId, 1000).recorders.length;

describe('captures of a tunnel', () => {
  it('are its last 200 requests, newest first, from the moment their heads arrive', () => {
    const { store } = captureStore();
    const all = Array.from({ length: 201 }, () => begin(store));
    const { recorders, truncated } = store.list('tun_web', 1000);
    expect(recorders).toEqual(all.slice(1).reverse());
    expect(truncated).toBe(true);
    expect(store.find('tun_web', store.idOf(all[0] as CaptureRecorder))).toBeUndefined();
    expect(store.find('tun_web', store.idOf(all[200] as CaptureRecorder))).toBe(all[200]);
  });

  it('keep the order after 1000 requests, and lose the newest request if another tunnel serves it', () => {
    const { store } = captureStore();
    const all = Array.from({ length: 1000 }, () => begin(store));
    const moved = begin(store);
    moved.discard();
    expect(store.list('tun_web', 1000).recorders).toEqual(all.slice(-199).reverse());
    const last = begin(store);
    expect(store.list('tun_web', 2).recorders).toEqual([last, all.at(-1)]);
    expect(store.bytes).toBe(200 * last.keptBytes);
  });

  it('exclude a request that another tunnel serves, and free the bytes of that request', () => {
    const { store } = captureStore();
    const kept = begin(store);
    const before = store.bytes;
    const moved = begin(store);
    moved.onRequestBody(Buffer.alloc(1000), 0, 1000);
    moved.discard();
    moved.onRequestBody(Buffer.alloc(1000), 0, 1000);
    moved.discard();
    expect(store.list('tun_web', 10)).toEqual({ recorders: [kept], truncated: false, nextCursor: null });
    expect(store.bytes).toBe(before);
    kept.discard();
    expect([store.bytes, store.ownerOf('tun_web')]).toEqual([0, undefined]);
  });

  it('are not recorded while capturing is off for the edge or the tunnel', () => {
    expect(captureStore({ enabled: false }).store.begin(web, GET, 0, 'chunks')).toBeNull();
    const { store } = captureStore();
    expect(store.begin(captureTunnel('tun_shy', { capture: false }), GET, 0, 'chunks')).toBeNull();
    expect(store.ownerOf('tun_shy')).toBeUndefined();
  });

  it('in progress have at most 4 KiB that are not counted, and are counted in full at their end', () => {
    const { store } = captureStore();
    const recorder = begin(store);
    const before = store.bytes;
    for (let sent = 100; sent <= 16_000; sent += 100) {
      recorder.onRequestBody(Buffer.alloc(100), 0, 100);
      expect(store.bytes - before).toBeGreaterThanOrEqual(sent - 4096);
    }
    recorder.finish(1, 'complete');
    expect(store.bytes - before).toBe(16_000);
    recorder.onRequestBody(Buffer.alloc(100), 0, 100);
    expect([store.bytes - before, recorder.keptBytes]).toEqual([16_100, store.bytes]);
  });

  it('stay within the byte limit of the tunnel, and evicted requests keep no further data', () => {
    const { store } = captureStore();
    const first = begin(store);
    for (let n = 0; n < 150; n++) begin(store, web, large(30_000));
    expect(store.bytes).toBeLessThanOrEqual(CAPTURE_BYTES_PER_TUNNEL);
    expect(sizeOf(store, 'tun_web')).toBeGreaterThan(130);
    const before = store.bytes;
    first.onRequestBody(Buffer.alloc(1000), 0, 1000);
    first.onResponseHead(responseHead(200), 'chunks');
    first.finish(1, 'complete');
    expect([store.bytes, first.requestBody, first.responseText]).toEqual([before, null, '']);
    const newest = store.list('tun_web', 200).recorders;
    for (const recorder of newest) recorder.onRequestBody(Buffer.alloc(16_384), 0, 16_384);
    expect(store.bytes).toBeLessThanOrEqual(CAPTURE_BYTES_PER_TUNNEL);
  });
});

describe('captures of all tunnels together', () => {
  const PER_TUNNEL = 32;
  const head = large(30_000);
  const ofAccount = (accountId: string, tunnelId: string): Tunnel => ({
    ...captureTunnel(tunnelId),
    owner: { kind: 'account', accountId },
  });
  /** Fills the store with requests of the given number of tunnels, enough to come near the limit. */
  const fill = (store: CaptureStore, tunnels: number): void => {
    for (let n = 0; n < PER_TUNNEL * tunnels; n++) begin(store, captureTunnel(`tun_${n % tunnels}`), head);
  };

  it('stay within the byte limit, and every tunnel keeps at least one request', () => {
    const { store } = captureStore();
    fill(store, 100);
    expect(store.bytes).toBeLessThanOrEqual(CAPTURE_BYTES_MAX);
    expect(store.bytes).toBeGreaterThan(CAPTURE_BYTES_MAX / 2);
    const sizes = Array.from({ length: 100 }, (_, n) => sizeOf(store, `tun_${n}`));
    expect(Math.min(...sizes)).toBeGreaterThan(0);
  });

  it('evict requests of busy tunnels and none of a quiet tunnel', () => {
    const { store } = captureStore();
    begin(store, captureTunnel('tun_quiet'));
    fill(store, 60);
    for (let n = 0; n < 1000; n++) begin(store, captureTunnel('tun_0'), head);
    for (let n = 0; n < 1000; n++) begin(store, captureTunnel('tun_1'), head);
    expect(sizeOf(store, 'tun_quiet')).toBe(1);
    expect(store.bytes).toBeLessThanOrEqual(CAPTURE_BYTES_MAX);
  });

  it('an account that keeps restarting tunnels evicts only requests of the same account, oldest first', () => {
    const { store } = captureStore();
    const other = Array.from({ length: 50 }, () => begin(store, captureTunnel('tun_other'), large(20_000)));
    for (let start = 0; start < 4; start += 1) {
      const tunnels = Array.from({ length: 60 }, (_, n) => ofAccount('greedy', `tun_${start}_${n}`));
      for (let n = 0; n < PER_TUNNEL; n += 1) for (const tunnel of tunnels) begin(store, tunnel, head);
      for (const tunnel of tunnels) store.tunnelRemoved(tunnel);
    }
    expect(store.list('tun_other', 1000).recorders).toEqual([...other].reverse());
    expect(store.bytes).toBeGreaterThan(CAPTURE_BYTES_MAX * 0.99);
    // Room that the other account leaves free is used, by the newest captures of the restarting account.
    expect(sizeOf(store, 'tun_0_0')).toBe(0);
    expect(sizeOf(store, 'tun_3_59')).toBe(PER_TUNNEL);
  });

  it('the account furthest beyond its share loses its oldest requests, in whichever tunnel', () => {
    const { store } = captureStore({ accountShare: 0.1 });
    const many = Array.from({ length: 40 }, (_, n) => ofAccount('most', `tun_${n}`));
    const kept = many.flatMap((tunnel) => Array.from({ length: 50 }, () => begin(store, tunnel, head)));
    const some = Array.from({ length: 8 }, (_, n) => ofAccount('less', `tun_less_${n}`));
    for (const tunnel of some) for (let n = 0; n < 60; n += 1) begin(store, tunnel, head);
    const left = kept.filter(({ isKept }) => isKept);
    expect(left.length).toBeLessThan(kept.length);
    expect(left).toEqual(kept.slice(-left.length));
    expect(some.map(({ tunnelId }) => sizeOf(store, tunnelId))).toEqual(some.map(() => 60));
  });

  describe('eviction', () => {
    interface Move {
      readonly does: 'write' | 'discard' | 'end';
      readonly account: string;
      readonly tunnel: number;
      /** Approximate length of the written request head. */
      readonly bytes: number;
      /** Selects the kept request for a discard. */
      readonly pick: number;
    }

    interface Kept {
      readonly account: string;
      readonly tunnelId: string;
      readonly recorder: CaptureRecorder;
    }

    const bytesOf = (kept: readonly Kept[]): number => kept.reduce((sum, { recorder }) => sum + recorder.keptBytes, 0);

    /**
     * Tells whether a tunnel exceeds its own limits. The tunnel then loses its oldest request, even if the store has room or an account
     * is beyond its share.
     */
    const isBeyondItsOwnBounds = (kept: readonly Kept[], tunnelId: string): boolean => {
      const own = kept.filter((one) => one.tunnelId === tunnelId);
      return bytesOf(own) > CAPTURE_BYTES_PER_TUNNEL || own.length > EDGE_LIMITS.CAPTURES_PER_TUNNEL;
    };

    /**
     * Returns an error if evicting the request `giver` is wrong at this moment, or null if the choice is right. A single write can evict
     * several requests in sequence.
     */
    const faultOf = (kept: readonly Kept[], giver: Kept, writer: string, share: number): string | null => {
      if (giver.tunnelId === writer && isBeyondItsOwnBounds(kept, writer)) return null;
      if (bytesOf(kept) <= CAPTURE_BYTES_MAX) return `${giver.account} gave though there was room`;
      const held = (account: string): number => bytesOf(kept.filter((one) => one.account === account));
      const most = Math.max(...[...new Set(kept.map(({ account }) => account))].map(held));
      const isFair = most <= share || held(giver.account) === most;
      return isFair ? null : `${giver.account} gave though another was further beyond its share`;
    };

    afterEach(() => void vi.restoreAllMocks());

    /** Plays the moves and checks each step. Returns the accounts that lost a request, in order. */
    const play = (moves: Iterable<Move>, accountShare: number): string[] => {
      const { store } = captureStore({ accountShare });
      const letGo = vi.spyOn(CaptureRecorder.prototype, 'letGo');
      const heads = new Map<number, RequestHead>();
      const givers: string[] = [];
      let kept: Kept[] = [];
      for (const { does, account, tunnel: id, bytes, pick } of moves) {
        const tunnel = ofAccount(account, `tun_${account}_${id}`);
        const { tunnelId } = tunnel;
        if (does === 'end') store.tunnelRemoved(tunnel);
        if (does === 'discard') {
          const [discarded] = kept.splice(pick % Math.max(1, kept.length), 1);
          discarded?.recorder.discard();
        }
        if (does === 'write') {
          const sent = heads.get(bytes) ?? large(bytes);
          heads.set(bytes, sent);
          kept.push({ account, tunnelId, recorder: begin(store, tunnel, sent) });
        }
        for (const gone of letGo.mock.contexts) {
          const giver = kept.find(({ recorder }) => recorder === gone);
          if (giver === undefined) throw new Error('one went twice');
          const fault = faultOf(kept, giver, tunnelId, CAPTURE_BYTES_MAX * accountShare);
          if (fault !== null) throw new Error(fault);
          givers.push(giver.account);
          kept = kept.filter((one) => one !== giver);
        }
        letGo.mockClear();
        if (store.bytes !== bytesOf(kept)) throw new Error(`${store.bytes} bytes instead of ${bytesOf(kept)}`);
        if (store.bytes > CAPTURE_BYTES_MAX) throw new Error(`${store.bytes} bytes are too many`);
      }
      return givers;
    };

    const MB = 1_000_000;
    const write = (account: string, tunnel: number, bytes = MB): Move => {
      return { does: 'write', account, tunnel, bytes, pick: 0 };
    };
    /** Creates writes to `count` different tunnels of an account. */
    const writes = (account: string, count: number): Move[] =>
      Array.from({ length: count }, (_, n) => write(account, n));

    it('takes the oldest request of a tunnel beyond its own limit, even if another account is beyond its share', () => {
      const five = Array.from({ length: 5 }, () => write('b', 0));
      expect(play([...writes('a', 7), ...five], 0.1)).toEqual(['b']);
    });

    it('continues with the account that holds most when the excess over a share is too small for a write', () => {
      const full = [...writes('a', 33), ...writes('b', 33), write('b', 33, 0.6 * MB)];
      expect(play(full, 0.5)).toEqual([]);
      expect(play([...full, write('c', 0, 2 * MB)], 0.5)).toEqual(['b', 'a']);
    });

    it('never takes from an account within its share while another is beyond it, and counts bytes exactly', () => {
      const KIND = 300_000;
      const move = fc.record({
        does: fc.constantFrom('write', 'write', 'write', 'write', 'write', 'discard', 'end'),
        account: fc.constantFrom('a', 'a', 'a', 'b', 'b', 'c', 'd', 'e', 'f'),
        tunnel: fc.nat({ max: 60 }),
        bytes: fc.constantFrom(KIND, KIND, KIND / 2, 1000),
        pick: fc.nat(),
      });
      let taken = 0;
      const moves = fc.array(move, { maxLength: 900, minLength: 700, size: 'max' });
      const property = fc.property(moves, (steps) => void (taken += play(steps, 0.25).length));
      fc.assert(property, { numRuns: 5 });
      expect(taken).toBeGreaterThan(0);
    });
  });

  it('hold zero bytes and no timers after all tunnels have ended and their captures have expired', async () => {
    const { store, clock } = captureStore();
    fill(store, 100);
    store.start();
    for (let n = 0; n < 100; n++) store.tunnelRemoved(captureTunnel(`tun_${n}`));
    await clock.advance(HOUR_MS + CAPTURE_SWEEP_MS);
    expect(store.bytes).toBe(0);
    store.stop();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('captures of an ended tunnel', () => {
  it('stay for an hour; then the list is empty and the owner is still known', async () => {
    const { store, clock } = captureStore();
    store.start();
    store.tunnelAdded(web);
    begin(store);
    store.tunnelRemoved(web);
    await clock.advance(HOUR_MS - 1);
    expect([sizeOf(store, 'tun_web'), store.ownerOf('tun_web')]).toEqual([1, web.owner]);
    await clock.advance(CAPTURE_SWEEP_MS);
    expect([sizeOf(store, 'tun_web'), store.ownerOf('tun_web')]).toEqual([0, web.owner]);
    expect(store.list('tun_web', 10).truncated).toBe(true);
  });

  it('belong to the tunnel again if it comes back, and then stay as long as it lives', async () => {
    const { store, clock } = captureStore();
    store.start();
    begin(store);
    store.tunnelRemoved(web);
    await clock.advance(HOUR_MS / 2);
    store.tunnelAdded(web);
    await clock.advance(2 * HOUR_MS);
    expect(sizeOf(store, 'tun_web')).toBe(1);
  });

  it('are remembered as empty if there were no requests, for a limited number of tunnels', () => {
    const { store } = captureStore();
    store.tunnelRemoved(web);
    expect(store.list('tun_web', 10)).toEqual({ recorders: [], truncated: false, nextCursor: null });
    expect(store.ownerOf('tun_web')).toEqual(web.owner);
    for (let n = 0; n < CAPTURE_TUNNELS_REMEMBERED; n++) store.tunnelRemoved(captureTunnel(`tun_${n}`));
    expect([store.ownerOf('tun_web'), store.ownerOf('tun_0')]).toEqual([undefined, captureTunnel('tun_0').owner]);
  });

  it('do not exist for a TCP tunnel, and expire even for a request that arrived after the end', async () => {
    const { store, clock } = captureStore();
    store.start();
    store.tunnelRemoved({ ...web, tunnelId: 'tun_tcp', http: null });
    expect(store.ownerOf('tun_tcp')).toBeUndefined();
    store.tunnelRemoved(web);
    begin(store);
    await clock.advance(HOUR_MS + CAPTURE_SWEEP_MS);
    expect(store.bytes).toBe(0);
  });
});

describe('captures of requests that rules rejected', () => {
  const rules = {
    policy: { answered_by: { index: 2, name: 'office', action: 'deny' }, matched: [2], user: null },
    askedPath: '/admin',
    secretFields: ['x-ci-key'],
    changes: null,
  };
  const denied = { status: 403, headers: [['x-tunnel-error', 'POLICY_DENIED']], body: 'no' } as const;
  const turnAway = (store: CaptureStore, head = GET): unknown => store.answered([web], head, 0, rules, denied);

  it('are finished and show the status and text of the rejection', () => {
    const { store } = captureStore();
    turnAway(store);
    const [one] = store.list('tun_web', 10).recorders;
    expect(one).toMatchObject({ status: 403, fault: 'POLICY_DENIED', askedPath: '/admin', policy: rules.policy });
    expect(one?.durationMs).not.toBeNull();
    expect(one?.responseText).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
  });

  it('take at most 50 of 200 places and evict no served request', () => {
    const { store } = captureStore();
    const served = Array.from({ length: 150 }, () => begin(store));
    for (let n = 0; n < 1000; n += 1) turnAway(store);
    const { recorders, truncated } = store.list('tun_web', 1000);
    expect(recorders).toHaveLength(200);
    expect(recorders.filter(({ policy }) => policy !== null)).toHaveLength(50);
    expect(recorders.slice(50)).toEqual([...served].reverse());
    expect(truncated).toBe(true);
    // Served requests evict the oldest requests of any kind, and the places of rejected requests are still counted.
    for (let n = 0; n < 200; n += 1) begin(store);
    expect(sizeOf(store, 'tun_web')).toBe(200);
    for (let n = 0; n < 60; n += 1) turnAway(store);
    expect(store.list('tun_web', 1000).recorders.filter(({ policy }) => policy !== null)).toHaveLength(50);
    const bytes = store.list('tun_web', 1000).recorders.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    expect(store.bytes).toBe(bytes);
  });

  it("evict no served request, however large their heads are, and stay within the tunnel's byte limit", () => {
    const { store } = captureStore();
    const served = Array.from({ length: 140 }, () => begin(store, web, large(21_000)));
    for (let n = 0; n < 300; n += 1) turnAway(store, large(30_000));
    const kept = store.list('tun_web', 1000).recorders;
    expect(kept.filter(({ policy }) => policy === null)).toEqual([...served].reverse());
    expect(kept.length).toBeGreaterThan(140);
    expect(store.bytes).toBe(kept.reduce((sum, { keptBytes }) => sum + keptBytes, 0));
    expect(store.bytes).toBeLessThanOrEqual(CAPTURE_BYTES_PER_TUNNEL);
  });

  it('replace each other on a full edge and evict no capture of other tunnels', () => {
    const { store } = captureStore();
    const head = large(16_000);
    const neighbours = Array.from({ length: 1011 }, (_, n) => captureTunnel(`tun_${n}`));
    for (const neighbour of neighbours) for (let n = 0; n < 4; n += 1) begin(store, neighbour, head);
    const served = Array.from({ length: 3 }, () => begin(store, web, large(15_000)));
    for (let n = 0; n < 300; n += 1) turnAway(store, large(2000));
    expect(store.bytes).toBeGreaterThan(CAPTURE_BYTES_MAX * 0.99);
    const { recorders } = store.list('tun_web', 1000);
    expect(recorders.filter(({ policy }) => policy === null)).toEqual([...served].reverse());
    expect(neighbours.every(({ tunnelId }) => sizeOf(store, tunnelId) === 4)).toBe(true);
  });
});
