export { deterministicBytes, deterministicChunks, hashOf } from './deterministic-bytes.ts';
export { type DuplexPair, type DuplexPairOptions, duplexPair } from './duplex-pair.ts';
export { startEchoServer } from './echo-server.ts';
export { type EventuallyOptions, eventually } from './eventually.ts';
export { FakeClock } from './fake-clock.ts';
export { monthWithRoom } from './month-with-room.ts';
export {
  carrierPair,
  type EndKind,
  endPair,
  openStream,
  type PairKind,
  renewedCertificate,
  type SessionPair,
  type SessionPairOptions,
  sessionPair,
  socketPair,
  testCertificate,
} from './mux-pairs.ts';
export { RecordingReader } from './recording-reader.ts';
export { type Relay, type RelayedConnection, type RelayOptions, startRelay } from './relay.ts';
export { seededRandom } from './seeded-random.ts';
export { type SinkConnection, type SinkServer, startSinkServer } from './sink-server.ts';
export { startSourceServer } from './source-server.ts';
export { type Program, type ProgramExit, type ProgramOptions, spawnProgram } from './spawn-program.ts';
export { startTcpServer, type TcpServer, type TcpServerOptions } from './tcp-server.ts';
export { type TemporaryDirectory, temporaryDirectory } from './temporary-directory.ts';
export { waitForPort } from './wait-for-port.ts';
