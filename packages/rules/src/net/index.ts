export { type AddressGroups, mappedV4, readV4, readV6, wordAt } from './address-groups.ts';
export { decidePrivateAlerts, problemOfAddress } from './address-guard.ts';
export {
  type CallerAddress,
  createCallerAddress,
  hostPort,
  networkOf,
  plainAddress,
  TrustedProxies,
} from './caller-address.ts';
export { controlSocketService, reachesOwnMachine } from './local-control.ts';
export { isLoopbackHost } from './loopback.ts';
export { proxyHeader, proxyLine, readHostPort, type SocketAddress } from './proxy-header.ts';
