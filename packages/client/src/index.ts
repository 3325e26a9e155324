export {
  ALLOWED_BY_DEFAULT,
  type AllowedTarget,
  type Check,
  type CheckId,
  type CheckStatus,
  type ConfigFacts,
  type Diagnosis,
  type EntryFields,
  type FileLogin,
  type FilePolicy,
  type FileRule,
  type Hop,
  isTargetAllowed,
  type KeyFileFacts,
  outcomeOf,
  type PlatformFacts,
  parseAllowedTarget,
  plainHost,
  planReload,
  type Readiness,
  type ReadinessFacts,
  type ReloadOutcome,
  type RunningEntry,
  readiness,
  restartRequired,
  statusOfHop,
  type TunnelSource,
  titleOf,
  type WantedEntry,
} from '@tunnel/core';
export { type Client, type ClientState, type CloseOptions, connect, type OpenOptions } from './client.ts';
export { type DialOptions, dialSocket, dialTimeoutMs, type Endpoint } from './dial-socket.ts';
export { type DoctorOptions, examine } from './doctor/doctor.ts';
export {
  DEFAULT_CONTROL_PORT,
  isLoopback,
  parseServerAddress,
  readAuthorities,
  type ServerAddress,
  type TransportSecurity,
} from './endpoint.ts';
export { peerFields, tunnelFields } from './entry-fields.ts';
export type { FilesSpec } from './forward/files/served-folder.ts';
export { type ProtocolTraits, protocolTraits } from './forward/kinds.ts';
export { type LocalSpec, localLabel, localText } from './forward/local-target.ts';
export { asciiDomain } from './forward/own-domain.ts';
export type { OwnClients } from './forward/target-guard.ts';
export type { DropReason, TrafficCounts } from './forward/traffic.ts';
export type { Inspector, InspectorOptions, RequestAtEdge } from './inspector/inspector.ts';
export type { ConnectOptions } from './options.ts';
export type {
  ConnectPeerOptions,
  ListenAddress,
  PeerConnection,
  PeerConnectionState,
  PublishedPeer,
} from './peer-types.ts';
export { checkPeerOptions } from './peers/peers.ts';
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
export { dialThrough } from './proxy/dial-through.ts';
export { type Proxy, type ProxyParseOptions, parseProxy } from './proxy/proxy-address.ts';
export { type ProxyFor, proxyFor } from './proxy/proxy-for.ts';
export { edgeAnswerText } from './requests/edge-answer-text.ts';
export type { EdgeAnswer, RequestEvent, RequestListener } from './requests/request-record.ts';
export type { SessionFacts } from './session.ts';
export type { StatusEvent, StatusListener } from './status.ts';
export {
  type DatagramWay,
  policyToSend,
  type Tunnel,
  type TunnelGuard,
  type TunnelHealth,
  type TunnelState,
  type TunnelTarget,
} from './tunnel.ts';
export { checkTunnelSpec, type HealthCheck, type TunnelSpec } from './tunnel-spec.ts';
