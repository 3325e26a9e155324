export { type Decoded, decodeControl, encodeControl } from './control-codec.ts';
export {
  CONTROL_TYPES,
  type ControlMessage,
  type ControlMessageInput,
  type ControlType,
  controlMessage,
  type HealthCheckSpec,
  healthCheckSpec,
  type MessageOf,
  PROTOCOL_VERSION,
  SUPPORTED_VERSIONS,
  type TunnelProtocol,
  tunnelProtocol,
} from './control-messages.ts';
export {
  FRAME,
  type FrameType,
  isFrameType,
  maxPayloadOf,
  minPayloadOf,
  PING_PAYLOAD_BYTES,
  readUint32,
  writeFrameHeader,
  writeUint32,
} from './frame-header.ts';
export { type FrameHandler, FrameParser, type ParserState } from './frame-parser.ts';
export {
  decodeCredit,
  decodeOpen,
  decodeReason,
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeReason,
  type OpenPayload,
  STREAM_CODES,
  type StreamCode,
  type StreamHead,
  type StreamReason,
} from './frame-payloads.ts';
export { ALPN_NAMES, CARRIER_PATH, CARRIER_PROTOCOL, CLOSE_CODES, CONTROL_PATH } from './handshake.ts';
export { WIRE_LIMITS } from './limits.ts';
export { decodeText, encodeText } from './text-codec.ts';
