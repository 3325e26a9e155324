import { MemoryBudget, type MuxStream } from '@tunnel/mux';
import { PeerSubscriber } from '@tunnel/peer';
import { CAPABILITIES, type ControlMessageInput } from '@tunnel/protocol';
import { Secret } from '@tunnel/runtime';
import { FakeClock, MemoryNetwork, rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { Session } from '../connection/session.ts';
import type { TunnelEntry, TunnelPeers } from '../tunnels/tunnel.ts';
import { Peers, type PeersOptions } from './peers.ts';
import { PEER_REPORT_EVERY_MS } from './published-peers.ts';

const SECRET = 'a secret of at least sixteen bytes';

it('the publisher reports a peer to the edge only for an open tunnel, and only after a change', async () => {
  const clock = new FakeClock();
  const network = new MemoryNetwork(clock);
  network.delayMs = 10;
  const handlers = { onDatagram: () => {}, abandon: rethrow };
  const there = network.transport('there').open(handlers);
  const here = network.transport('here').open(handlers);
  const relay = here.connect({ own: 1, theirs: 1 }, { host: 'there', port: there.port });
  const reports: ControlMessageInput[] = [];
  const told: { published?: TunnelPeers } = {};
  const tunnel = {
    asked: { p2p_publish: 'office-db', p2p_secret: SECRET, p2p_direct: false },
    tunnelId: 'tun_1',
    state: 'open',
    publishes: (published: TunnelPeers) => void (told.published = published),
  };
  const peers = new Peers({ settings: { clock, report: rethrow }, emit: () => {} } as unknown as PeersOptions);
  const session = { capabilities: CAPABILITIES, send: (message: ControlMessageInput) => reports.push(message) };
  peers.sessionUp(session as unknown as Session);
  await peers.publish(tunnel as unknown as TunnelEntry);
  told.published?.accept(Object.assign(relay, { accept: () => {} }) as unknown as MuxStream, 'peer_1');
  const subscriber = new PeerSubscriber(
    {
      name: 'office-db',
      secret: new Secret(SECRET),
      service: 'tcp',
      direct: false,
      clock,
      budget: new MemoryBudget(1e9),
      report: rethrow,
      network: { loadTransport: async () => null, observer: () => null, ownAddresses: () => [] },
    },
    { onReady: () => {}, onPath: () => {}, onRelayLost: () => {}, onFailed: rethrow },
  );
  subscriber.attachRelay(there.connect({ own: 1, theirs: 1 }, { host: 'here', port: here.port }));
  await clock.advance(1000);
  expect(reports.at(-1)).toMatchObject({ type: 'PeerReport', tunnel_id: 'tun_1', peer_id: 'peer_1', path: 'relay' });
  const before = reports.length;

  tunnel.state = 'away';
  told.published?.reportAll();
  expect(reports).toHaveLength(before);
  tunnel.state = 'open';
  told.published?.reportAll();
  expect(reports).toHaveLength(before + 1);

  await clock.advance(PEER_REPORT_EVERY_MS);
  peers.tick(clock.monotonic());
  expect(reports).toHaveLength(before + 1);
  subscriber.close({ code: 'cancelled', text: '' });
});
