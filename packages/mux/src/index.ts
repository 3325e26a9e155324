export { BROKEN, type ByteDuplex, type ByteReader, HEAD_ROOM_BYTES, type SocketEnd } from './bytes/byte-duplex.ts';
export { ByteQueue } from './bytes/byte-queue.ts';
export { type Running, type Splice, type SpliceHandlers, splice } from './bytes/splice.ts';
export { type Carrier, type CarrierReceiver, createCarrier } from './carrier/carrier.ts';
export type { DatagramPathSlot } from './datagram/datagram-flows.ts';
export {
  type DatagramAnswer,
  type DatagramOutcome,
  type DatagramReader,
  DatagramStream,
} from './datagram/datagram-stream.ts';
export { PacketSocket } from './datagram/packet-socket.ts';
export type { PathEvent, PathReason, PathState } from './datagram/path-machine.rules.ts';
export { isPathUsed, PATH_OFF, pathReasonOf, transitionPath, wantsUse } from './datagram/path-machine.rules.ts';
export {
  OpeningKey,
  PATH_ID_BYTES,
  PATH_KEY_BYTES,
  readKind as readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
} from './datagram/sealed-datagram.ts';
export { decodePing, decodePong, encodePing, encodePong, type Pong } from './datagram/sealed-ping.ts';
export {
  type AnswerBudget,
  DATAGRAMS_OFF,
  type DatagramWay,
  newAnswerBudget,
  type PathKeys,
  type PathRefusal,
  UdpPath,
} from './datagram/udp-path.ts';
export { askForReceiveBuffer, lookupAtOnce } from './datagram/udp-sockets.ts';
export { MUX_LIMITS } from './limits.ts';
export { type Guarded, guard, type Listener, type ReportInternalError } from './loop/guard.ts';
export type { MuxClock } from './loop/mux-clock.ts';
export { DatagramSender, receiveDatagrams } from './native/dgram-handle.ts';
export { HandleDuplex } from './native/handle-duplex.ts';
export { allowStaticReads, hasLostPeer, readThroughScratch, takenBytes, unsentBytes } from './native/node-internals.ts';
export {
  alpnBytes,
  beginTls,
  hasTlsHandles,
  isSecured,
  renewTicketKeys,
  type TlsHandshake,
} from './native/tls-handle.ts';
export {
  type MuxHandlers,
  MuxSession,
  type PendingStream,
} from './session/mux-session.ts';
export { type AcceptedSocket, acceptingServer, adoptAccepted } from './socket/accept-sockets.ts';
export { connectSocket, connectTlsSocket } from './socket/connect-socket.ts';
export { adoptSocket } from './socket/socket-duplex.ts';
export { MemoryBudget, processBudget } from './stream/flow-control.ts';
export { MuxStream, type OpenAnswer } from './stream/mux-stream.ts';
