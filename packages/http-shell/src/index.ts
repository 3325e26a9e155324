export { createErrorMapper, createUnroutedFault, type ErrorMapper, sendError } from './error-mapper.ts';
export { HttpListener, type HttpListenerOptions, unreadableAsJson } from './http-listener.ts';
export { type ListenOn, listenOrFault } from './listen-or-fault.ts';
export { boundedInteger, choiceParameter, integerParameter } from './query.ts';
export { boundBody, callerGone, headerOf, readBounded, requestIdOf, socketOf } from './request.ts';
