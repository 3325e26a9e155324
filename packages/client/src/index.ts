export { type FileLogin, type FilePolicy, type FileRule } from '@tunnel/policy';
export { isLoopbackHost } from '@tunnel/rules/net';
export { type Client, type ClientState, type CloseOptions, connect, type OpenOptions } from './client.ts';
export { type DialOptions, dialSocket, dialTimeoutMs, type Endpoint } from './connection/dial-socket.ts';
export { dialThrough } from './connection/proxy/dial-through.ts';
export { type Proxy, type ProxyParseOptions, parseProxy } from './connection/proxy/proxy-address.ts';
export { type ProxyFor, proxyFor } from './connection/proxy/proxy-for.ts';
export type { SessionFacts } from './connection/session.ts';
export {
  type Check,
  type CheckId,
  type CheckStatus,
  type Diagnosis,
  type Hop,
  statusOfHop,
  titleOf,
} from './doctor/check.rules.ts';
export { type DoctorOptions, examine } from './doctor/doctor.ts';
export { type ConfigFacts, type KeyFileFacts, type PlatformFacts } from './doctor/judge-settings.rules.ts';
export type { Inspector, InspectorOptions, RequestAtEdge } from './inspector/inspector.ts';
export type { FilesSpec } from './local/files/served-folder.ts';
export { type LocalSpec, localLabel, localText } from './local/local-target.ts';
export type { OwnClients } from './local/target-guard.ts';
export type { DropReason, TrafficCounts } from './local/traffic.ts';
export {
  DEFAULT_CONTROL_PORT,
  parseServerAddress,
  readAuthorities,
  type ServerAddress,
  type TransportSecurity,
} from './network/endpoint.ts';
export type { ConnectOptions } from './options.ts';
export type { ConnectPeerOptions, ListenAddress, PeerConnection, PeerConnectionState } from './peers/peer-types.ts';
export { checkPeerOptions, peerFields } from './peers/peers.ts';
export { hashPassword } from './policy/password-hashes.ts';
export {
  type PolicyTestRequest,
  type PolicyVerdict,
  type TracedRule,
  testPolicy,
} from './policy/test-policy.ts';
export {
  type PolicyAbout,
  type PolicyInput,
  readPolicyFile,
  TunnelPolicy,
} from './policy/tunnel-policy.ts';
export { edgeAnswerText } from './requests/edge-answer-text.ts';
export type { EdgeAnswer, RequestEvent, RequestListener } from './requests/request-record.ts';
export type { StatusEvent, StatusListener } from './status.ts';
export { protocolTraits } from './tunnels/kinds/kinds.ts';
export { asciiDomain } from './tunnels/kinds/own-domain.ts';
export { type ProtocolTraits } from './tunnels/kinds/tunnel-kind.ts';
export type { PublishedPeer } from './tunnels/tunnel.ts';
export {
  type DatagramWay,
  policyToSend,
  type Tunnel,
  type TunnelGuard,
  type TunnelHealth,
  type TunnelState,
  type TunnelTarget,
} from './tunnels/tunnel.ts';
export {
  type ClientSpec,
  checkTunnelSpec,
  type HealthCheck,
  type TunnelOptions,
  tunnelFields,
} from './tunnels/tunnel-spec.ts';
