// Two clients, end to end. A client makes a PeerSubscriber or a PeerPublisher, brings it relay streams of the edge, and is told of streams,
// paths and peers; how they find a direct way is no business of its.
export { ownAddresses } from './direct/candidates.ts';
export { type EdgeUdp, edgeObserver } from './direct/edge-observer.ts';
export type { PeerNetwork } from './direct/own-endpoint.ts';
export type { PeerService } from './direct/peer-messages.ts';
export type { DirectOutcome } from './direct/relay-reason.ts';
export { type Peer, PeerPublisher } from './session/peer-publisher.ts';
export type { PeerPath } from './session/peer-session.ts';
export { PeerSubscriber, type SubscriberHandlers } from './session/peer-subscriber.ts';
export type {
  ConnectionIds,
  PeerAddress,
  PeerSocket,
  PeerSocketHandlers,
  PeerTransport,
} from './transport/peer-transport.ts';
export { loadUdxTransport } from './transport/udx-transport.ts';
