// ---- gate: admission of accepted connections ----
export { AcceptedConnection, ConnectionGate, RETRY_AFTER_SECS } from './gate/connection-gate.ts';
export { type ListenOn, listenOrFault } from './gate/listen-or-fault.ts';
export { createProcessGate, createStackGate, type ProcessGate } from './gate/process-gate.ts';
// ---- http: servers for APIs, pages and metrics ----
export { createErrorMapper, createUnroutedFault, type ErrorMapper, sendError } from './http/error-mapper.ts';
export { HttpListener, type HttpListenerOptions, type ListenerDoor, refusedAsJson } from './http/http-listener.ts';
export { boundedInteger, choiceParameter, cursorParameter, integerParameter, operationIdOf } from './http/query.ts';
export {
  boundBody,
  callerGone,
  emptyBodyIsNone,
  headerOf,
  readBounded,
  requestIdOf,
  socketOf,
} from './http/request.ts';
export { unreadableFault } from './http/unreadable.ts';
// ---- tls: versions and tickets, certificate files, parsing of a ClientHello ----
export { CertificateFiles, loadTlsFiles, type TlsFiles } from './tls/certificate-files.ts';
export { type ClientHello, foldHost } from './tls/client-hello.ts';
export { HelloBytes } from './tls/hello-bytes.ts';
export { ALPN_CHALLENGE } from './tls/hello-door.ts';
export { type CertificatePair, secureOptionsOf, type TicketScope, TlsTerms } from './tls/tls-options.ts';
