import { Fault } from '@tunnel/errors';
import type { MuxStream, OpenAnswer } from '@tunnel/mux';
import * as loaded from '@tunnel/peer';
import { CAPABILITIES, type ControlMessageInput } from '@tunnel/protocol';
import { Secret } from '@tunnel/runtime';
import { FakeClock, rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Session } from '../connection/session.ts';
import type { StatusEvent } from '../status.ts';
import { PeerLink } from './peer-connection.ts';
import type { PeerPackage } from './peer-network.ts';

let clock: FakeClock;
let sent: ControlMessageInput[];
let opened: OpenAnswer[];
let events: StatusEvent[];
let dropped: Fault[];

/** A session with only the parts used by a peer connection. */
const session = (): Session =>
  ({
    capabilities: CAPABILITIES,
    send: (message: ControlMessageInput) => sent.push(message),
    drop: (fault: Fault) => dropped.push(fault),
    openStream: (_: unknown, answer: OpenAnswer) => {
      opened.push(answer);
      return { reset: () => {} };
    },
  }) as unknown as Session;

const make = (wait = false, peerPackage: PeerPackage = loaded): PeerLink => {
  let requests = 0;
  return new PeerLink(peerPackage, {
    name: 'their-db',
    identity: { p2pName: 'office-db', service: 'tcp', direct: false },
    secret: new Secret('a secret of sixteen bytes'),
    listen: null,
    wait,
    network: { loadTransport: async () => null, observer: () => null, ownAddresses: () => [] },
    clock,
    random: () => 0.5,
    report: rethrow,
    emit: (event) => events.push(event),
    beginServing: () => () => {},
    newRequestId: () => `p${++requests}`,
    onClosed: () => {},
  });
};

const asked = (): ControlMessageInput[] => sent.filter(({ type }) => type === 'ConnectPeer');

/** Refuses the last ConnectPeer request. */
const refuse = (link: PeerLink, code: string, retryable = true): void => {
  const last = asked().at(-1);
  const request_id = last?.type === 'ConnectPeer' ? last.request_id : '';
  link.onMessage({ type: 'PeerError', request_id, code, message: `told ${code}`, retryable });
};

beforeEach(() => {
  clock = new FakeClock();
  sent = [];
  opened = [];
  events = [];
  dropped = [];
});

it('a refused start is retried for 30 s, at least every 5 s, and fails with the last error of the edge', async () => {
  const link = make();
  const current = session();
  await link.start(() => current);
  let fault: Fault | undefined;
  void link.ready.catch((error: Fault) => {
    fault = error;
  });
  for (let second = 0; second < 30; second += 1) {
    if (second === 20) expect(asked().length).toBeGreaterThanOrEqual(5);
    refuse(link, second < 20 ? 'P2P_NOT_FOUND' : 'P2P_AWAY');
    await clock.advance(1000);
  }
  await Promise.resolve();
  expect([link.state, fault?.message]).toEqual(['closed', 'told P2P_AWAY']);
  expect(events.map((event) => event.type === 'peer-error' && [event.fault.code, event.final])).toEqual([
    ['P2P_NOT_FOUND', false],
    ['P2P_AWAY', false],
    ['P2P_AWAY', true],
  ]);
});

it('with `wait` a refused start is retried forever, at most every 30 s', async () => {
  const link = make(true);
  const current = session();
  await link.start(() => current);
  for (let second = 0; second < 600; second += 1) {
    refuse(link, 'P2P_NOT_FOUND');
    await clock.advance(1000);
  }
  expect(link.state).toBe('connecting');
  expect(asked().length).toBeGreaterThan(15);
  expect(asked().length).toBeLessThan(50);
});

it('a refusal that is not retryable ends the start at once', async () => {
  const link = make(true);
  const current = session();
  await link.start(() => current);
  refuse(link, 'TUNNEL_PROTOCOL_OFF', false);
  expect(link.state).toBe('closed');
  await expect(link.ready).rejects.toMatchObject({ code: 'TUNNEL_PROTOCOL_OFF' });
});

it('an edge that does not respond loses its connection, and the next session is asked at once', async () => {
  const link = make(true);
  const current = session();
  await link.start(() => current);
  await clock.advance(15_000);
  expect(dropped).toMatchObject([{ code: 'CONTROL_DEAD' }]);
  link.sessionDown();
  await clock.advance(60_000);
  expect(asked()).toHaveLength(1);
  link.sessionUp(session());
  expect(asked()).toHaveLength(2);
});

it('the client asks again when the publisher does not take the relay stream', async () => {
  const link = make(true);
  const current = session();
  await link.start(() => current);
  link.onMessage({ type: 'PeerConnected', request_id: 'p1', peer_id: 'peer_1' });
  expect(opened).toHaveLength(1);
  opened[0]?.onRefused({ code: 'carrier-lost', text: '' });
  expect(events).toMatchObject([{ type: 'peer-error', fault: { code: 'P2P_AWAY' }, final: false }]);
  await clock.advance(1000);
  expect(asked().at(-1)).toMatchObject({ request_id: 'p2', peer_id: 'peer_1' });
});

it('a closed peer connection ignores a response that arrives late', async () => {
  const link = make(true);
  const current = session();
  await link.start(() => current);
  await link.close();
  expect(link.onMessage({ type: 'PeerConnected', request_id: 'p1', peer_id: 'peer_1' })).toBe(false);
  expect(opened).toEqual([]);
});

describe('a peer connection with a simulated peer session', () => {
  let told: loaded.SubscriberHandlers;
  let ended: string[];
  const path: loaded.PeerPath = { path: 'relay', reason: 'punching', rttMs: null };
  class ToldSubscriber {
    readonly path = path;
    readonly isConnected = true;
    constructor(_: unknown, handlers: loaded.SubscriberHandlers) {
      told = handlers;
      ended = [];
    }
    attachRelay(): void {}
    disconnect(reason: string): void {
      ended.push(reason);
    }
    close(): void {
      ended.push('closed');
    }
  }
  const stream = { reset: () => {} } as unknown as MuxStream;

  const attached = async (): Promise<PeerLink> => {
    const link = make(true, { ...loaded, PeerSubscriber: ToldSubscriber as unknown as PeerPackage['PeerSubscriber'] });
    const current = session();
    await link.start(() => current);
    link.onMessage({ type: 'PeerConnected', request_id: 'p1', peer_id: 'peer_1' });
    opened[0]?.onOpened(stream);
    return link;
  };

  it('waits 30 s after a failed secret proof, even if the session changes', async () => {
    const link = await attached();
    told.onFailed(new Fault('P2P_PROOF_FAILED'));
    await clock.advance(20_000);
    link.sessionDown();
    link.sessionUp(session());
    await clock.advance(9000);
    expect(asked()).toHaveLength(1);
    await clock.advance(60_000);
    expect(asked()).toHaveLength(2);
    expect(link.state).toBe('connecting');
  });

  it('survives a lost session or relay, and asks for a new relay under the same peer id', async () => {
    const link = await attached();
    told.onReady();
    link.sessionDown();
    link.sessionUp(session());
    expect(asked().at(-1)).toMatchObject({ peer_id: 'peer_1' });
    link.onMessage({ type: 'PeerConnected', request_id: 'p2', peer_id: 'peer_1' });
    opened[1]?.onOpened(stream);
    told.onRelayLost('the carrier is gone');
    await clock.advance(1000);
    expect(asked()).toHaveLength(3);
    expect(ended).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(['peer-ready', 'path']);
  });

  it('keeps its peer id while the publisher is briefly away, so that the edge counts one peer', async () => {
    const link = await attached();
    told.onReady();
    told.onRelayLost('the publisher is gone');
    await clock.advance(1000);
    refuse(link, 'P2P_AWAY');
    await clock.advance(1000);
    expect(asked()).toHaveLength(3);
    expect(asked().at(-1)).toMatchObject({ peer_id: 'peer_1' });
  });

  it('asks again within half a second if it held for 5 s, however often it was lost before', async () => {
    const link = await attached();
    for (let crash = 2; crash < 8; crash += 1) {
      told.onReady();
      await clock.advance(5000);
      told.onRelayLost('the publisher is gone');
      await clock.advance(500);
      expect(asked()).toHaveLength(crash);
      link.onMessage({ type: 'PeerConnected', request_id: `p${crash}`, peer_id: 'peer_1' });
      opened.at(-1)?.onOpened(stream);
    }
  });

  it('ends when the edge dismisses the peer, but not when the publisher is only away', async () => {
    const link = await attached();
    told.onReady();
    const end = (code: string) =>
      ({ type: 'PeerError', peer_id: 'peer_1', code, message: code, retryable: true }) as const;
    expect(link.onMessage({ ...end('P2P_DISMISSED'), peer_id: 'peer_2' })).toBe(false);
    link.onMessage(end('P2P_AWAY'));
    expect(ended).toEqual([]);
    await clock.advance(1000);
    link.onMessage({ type: 'PeerConnected', request_id: 'p2', peer_id: 'peer_1' });
    opened[1]?.onOpened(stream);
    link.onMessage(end('P2P_DISMISSED'));
    expect(ended).toEqual(['P2P_DISMISSED']);
    await clock.advance(2000);
    expect(asked()).toHaveLength(3);
  });

  it('retries forever after it was ready, whatever the refusal', async () => {
    const link = await attached();
    told.onReady();
    told.onRelayLost('');
    for (let second = 0; second < 300; second += 1) {
      refuse(link, 'P2P_SERVICE_MISMATCH', false);
      await clock.advance(1000);
    }
    expect(link.state).toBe('connected');
    expect(asked().length).toBeGreaterThan(8);
    await link.close();
    expect(link.state).toBe('closed');
    expect(ended).toEqual(['closed']);
  });
});
