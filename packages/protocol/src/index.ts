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
  type TunnelProtocol,
  tunnelProtocol,
} from './control-messages.ts';
export {
  FRAME,
  type FrameTable,
  type FrameType,
  frameTable,
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
export {
  ALPN_NAMES,
  agreeOn,
  CAPABILITIES,
  CARRIER_PATH,
  CARRIER_PROTOCOL,
  CLOSE_CODES,
  CONTROL_PATH,
  PROTOCOL_VERSION,
  SUPPORTED_VERSIONS,
} from './handshake.ts';
export { WIRE_LIMITS } from './limits.ts';
export { decodeText, encodeText } from './text-codec.ts';
