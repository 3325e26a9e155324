export type { Client, ClientState, CloseOptions } from './client.ts';
export { connect } from './connect.ts';
export type { ConnectOptions } from './options.ts';
export { DEFAULT_CONTROL_PORT, parseServerAddress, type ServerAddress } from './server-address.ts';
export type { StatusEvent, StatusListener } from './status.ts';
export type { TrafficCounts } from './traffic.ts';
export type { Tunnel, TunnelState } from './tunnel.ts';
export type { TunnelSpec } from './tunnel-spec.ts';
