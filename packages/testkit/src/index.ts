export { AcmeServer, type AcmeServerOptions } from './acme/acme-server.ts';
export { deterministicBytes, deterministicChunks, hashOf, seededRandom } from './deterministic-bytes.ts';
export {
  type DnsFault,
  type DnsRecordType,
  type DnsRecordValue,
  type DnsServer,
  startDnsServer,
} from './dns-server.ts';
export { type EventuallyOptions, eventually, waitForPort } from './eventually.ts';
export { FakeClock } from './fake-clock.ts';
export { FastClock } from './fast-clock.ts';
export { freePort } from './free-port.ts';
export { FreezingClock } from './freezing-clock.ts';
export { MemoryNetwork } from './memory-network.ts';
export { monthWithRoom } from './month-with-room.ts';
export {
  acceptedPair,
  carrierPair,
  companyCertificate,
  type EndKind,
  endPair,
  expiredCertificate,
  openStream,
  type PairKind,
  renewedCertificate,
  type SessionPair,
  type SessionPairOptions,
  sessionPair,
  socketPair,
  testCertificate,
} from './mux-pairs.ts';
export { type ObservingPorts, startObservingPorts } from './observing-ports.ts';
export { OutputLines } from './output-lines.ts';
export { claimPortBlock, type PortBlock } from './port-block.ts';
export type { Program, ProgramExit } from './program.ts';
export {
  type ConnectProxyOptions,
  type ProxyRequest,
  type SocksProxyOptions,
  startConnectProxy,
  startSocksProxy,
  type TestProxy,
} from './proxies.ts';
export { randomCases } from './random-cases.ts';
export { answerToHello, recordHello } from './recorded-hello.ts';
export { RecordingDatagrams, RecordingReader, rethrow } from './recording-reader.ts';
export { type Relay, type RelayedConnection, type RelayOptions, startRelay } from './relay.ts';
export { type InProcessRun, type InProcessStreams, runInProcess } from './run-in-process.ts';
export { type ProgramOptions, spawnProgram } from './spawn-program.ts';
export {
  type SinkConnection,
  type SinkServer,
  startEchoServer,
  startSinkServer,
  startSourceServer,
  startTcpServer,
  type TcpServer,
  type TcpServerOptions,
} from './tcp-servers.ts';
export { type TemporaryDirectory, temporaryDirectory } from './temporary-directory.ts';
export { startUdpRelay, type UdpBlock, type UdpRelay, type UdpRelayOptions } from './udp-relay.ts';
export { startUdpEcho, startUdpService, type UdpService, type UdpServiceOptions } from './udp-services.ts';
export { type NatKind, startUserSpaceNat, type UserSpaceNat } from './user-space-nat.ts';
