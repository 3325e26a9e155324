export { boundBody, readBounded } from './bounded-body.ts';
export { createErrorMapper, type ErrorAnswer, type ErrorMapper, sendError } from './error-mapper.ts';
export { HttpListener, type HttpListenerOptions, unreadableAsJson } from './http-listener.ts';
export { createUnroutedFault } from './known-methods.ts';
export { type ListenOn, listenOrFault } from './listen-or-fault.ts';
export { boundedInteger, choiceParameter, integerParameter } from './query.ts';
export { headerOf, requestIdOf, socketOf } from './request.ts';
