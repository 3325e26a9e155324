export { AcmeServer, type AcmeServerOptions } from './acme/acme-server.ts';
export { deterministicBytes, deterministicChunks, hashOf, seededRandom } from './chance/deterministic-bytes.ts';
export { randomCases } from './chance/random-cases.ts';
export {
  acceptedPair,
  carrierPair,
  type EndKind,
  endPair,
  openStream,
  type PairKind,
  type SessionPair,
  type SessionPairOptions,
  sessionPair,
  socketPair,
} from './mux/mux-pairs.ts';
export { RecordingDatagrams, RecordingReader, rethrow } from './mux/recording-reader.ts';
export {
  type DnsFault,
  type DnsRecordType,
  type DnsRecordValue,
  type DnsServer,
  startDnsServer,
} from './network/dns-server.ts';
export { freePort } from './network/free-port.ts';
export { MemoryNetwork } from './network/memory-network.ts';
export { type ObservingPorts, startObservingPorts } from './network/observing-ports.ts';
export { claimPortBlock, type PortBlock } from './network/port-block.ts';
export {
  type ConnectProxyOptions,
  type ProxyRequest,
  type SocksProxyOptions,
  startConnectProxy,
  startSocksProxy,
  type TestProxy,
} from './network/proxies.ts';
export { type Relay, type RelayedConnection, type RelayOptions, startRelay } from './network/relay.ts';
export {
  type SinkConnection,
  type SinkServer,
  startEchoServer,
  startSinkServer,
  startSourceServer,
  startTcpServer,
  type TcpServer,
  type TcpServerOptions,
} from './network/tcp-servers.ts';
export {
  type CollectedSpan,
  type CollectorMode,
  startTraceCollector,
  type TraceCollector,
} from './network/trace-collector.ts';
export { startUdpRelay, type UdpBlock, type UdpRelay, type UdpRelayOptions } from './network/udp-relay.ts';
export { startUdpEcho, startUdpService, type UdpService, type UdpServiceOptions } from './network/udp-services.ts';
export { type NatKind, startUserSpaceNat, type UserSpaceNat } from './network/user-space-nat.ts';
export { OutputLines } from './programs/output-lines.ts';
export type { Program, ProgramExit } from './programs/program.ts';
export { type InProcessRun, type InProcessStreams, runInProcess } from './programs/run-in-process.ts';
export { type ProgramOptions, spawnProgram } from './programs/spawn-program.ts';
export { type TemporaryDirectory, temporaryDirectory } from './programs/temporary-directory.ts';
export { type EventuallyOptions, eventually, waitForPort } from './time/eventually.ts';
export { FakeClock } from './time/fake-clock.ts';
export { FastClock } from './time/fast-clock.ts';
export { FreezingClock } from './time/freezing-clock.ts';
export { monthWithRoom } from './time/month-with-room.ts';
export { companyCertificate, expiredCertificate, renewedCertificate, testCertificate } from './tls/certificates.ts';
export { answerToHello, recordHello } from './tls/recorded-hello.ts';
