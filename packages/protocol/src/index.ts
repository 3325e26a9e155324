export { decodeControl, encodeControl } from './control-codec.ts';
export {
  type ControlMessage,
  type ControlMessageInput,
  type ControlType,
  type DatagramDrop,
  type DirectOutcome,
  type HealthCheckSpec,
  healthCheckSpec,
  type MessageOf,
  type SealedPath,
  type TunnelProtocol,
  tunnelProtocol,
} from './control-messages.ts';
export { type FrameHandler, FrameParser } from './frame-parser.ts';
export {
  decodeCredit,
  decodeReason,
  decodeSeen,
  encodeCredit,
  encodeFin,
  encodePing,
  encodeReason,
  encodeSeen,
  FRAME,
  type FrameTable,
  type FrameType,
  frameTable,
  PING_PAYLOAD_BYTES,
  readUint32,
  type StreamCode,
  type StreamReason,
  writeCredit,
  writeFin,
  writeFrameHeader,
  writePing,
  writeUint32,
} from './frames.ts';
export {
  ALPN_NAMES,
  ALPN_TUNNEL,
  agreeOn,
  CAPABILITIES,
  CAPABILITY,
  CARRIER_PATH,
  CARRIER_PROTOCOL,
  CLOSE_CODES,
  CONTROL_PATH,
  PROTOCOL_VERSION,
  SPEED_PATH,
  SUPPORTED_VERSIONS,
} from './handshake.ts';
export { WIRE_LIMITS } from './limits.ts';
export {
  decodeCompactOpen,
  decodeOpen,
  encodeOpen,
  type OpenPayload,
  type StreamHead,
  writeCompactOpen,
} from './open.ts';
export { carrierTagOf, type RequestStream, requestIdOf } from './request-id.ts';
