export type { AddressObserver, AddressQuery, ObservedAddresses } from './address-observer.ts';
export { PEER_LIMITS } from './limits.ts';
export type {
  ConnectionIds,
  PeerAddress,
  PeerSocket,
  PeerSocketHandlers,
  PeerTransport,
} from './peer-transport.ts';
export type { PeerBytes, PeerNetwork, PeerPath, PeerService, PeerSettings, RelayReason } from './peer-types.ts';
export { SealedCarrier } from './sealed-carrier.ts';
export { loadUdxTransport } from './udx-transport.ts';
