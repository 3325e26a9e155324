export { type Bridge, type BridgeOptions, bridgeStdio } from './bridge.ts';
export type { ServerCommand } from './child-process.ts';
export { serveBridge } from './node-requests.ts';
export { bearerHash, bearerProblem, makeBearer } from './request-gate.ts';
