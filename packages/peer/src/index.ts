// Two clients, end to end. A client makes a PeerSubscriber or a PeerPublisher, brings it relay streams of the edge, and is told of streams,
// paths and peers; how they find a direct way is no business of its.
export type { AddressObserver, AddressQuery, ObservedAddresses } from './address-observer.ts';
export { ownAddresses } from './candidates.ts';
export { type EdgeUdp, edgeObserver } from './edge-observer.ts';
export { PEER_LIMITS } from './limits.ts';
export { type Peer, PeerPublisher, type PublisherHandlers } from './peer-publisher.ts';
export { PeerSubscriber, type SubscriberHandlers } from './peer-subscriber.ts';
export type { ConnectionIds, PeerAddress, PeerSocket, PeerSocketHandlers, PeerTransport } from './peer-transport.ts';
export type {
  DirectOutcome,
  PeerBytes,
  PeerNetwork,
  PeerPath,
  PeerService,
  PeerSettings,
  RelayReason,
} from './peer-types.ts';
export { loadUdxTransport } from './udx-transport.ts';
