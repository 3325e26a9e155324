export { type Client, type ClientState, type CloseOptions, connect } from './client.ts';
export {
  DEFAULT_CONTROL_PORT,
  isLoopback,
  parseServerAddress,
  readAuthorities,
  type ServerAddress,
} from './endpoint.ts';
export type { FilesSpec } from './forward/files/served-folder.ts';
export { type ProtocolTraits, protocolTraits } from './forward/kinds.ts';
export { type LocalSpec, localLabel, localText } from './forward/local-target.ts';
export type { DropReason, TrafficCounts } from './forward/traffic.ts';
export type { Inspector } from './inspector/inspector.ts';
export type { ConnectOptions } from './options.ts';
export type {
  ConnectPeerOptions,
  ListenAddress,
  PeerConnection,
  PeerConnectionState,
  PublishedPeer,
} from './peer-types.ts';
export { checkPeerOptions } from './peers/peers.ts';
export type { RequestEvent, RequestListener } from './requests/request-record.ts';
export type { StatusEvent, StatusListener } from './status.ts';
export type { DatagramWay, Tunnel, TunnelHealth, TunnelState } from './tunnel.ts';
export { checkTunnelSpec, type HealthCheck, type TunnelSpec } from './tunnel-spec.ts';
