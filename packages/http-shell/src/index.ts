export { AcceptedConnection, ConnectionGate, RETRY_AFTER_SECS } from './connection-gate.ts';
export { createErrorMapper, createUnroutedFault, type ErrorMapper, sendError } from './error-mapper.ts';
export { HttpListener, type HttpListenerOptions, refusedAsJson } from './http-listener.ts';
export { type ListenOn, listenOrFault } from './listen-or-fault.ts';
export { createProcessGate, createStackGate, type ProcessGate } from './process-gate.ts';
export { boundedInteger, choiceParameter, integerParameter } from './query.ts';
export { boundBody, callerGone, emptyBodyIsNone, headerOf, readBounded, requestIdOf, socketOf } from './request.ts';
export { type CertificatePair, secureOptionsOf, type TicketScope, TlsTerms, ticketKeysOf } from './tls-options.ts';
