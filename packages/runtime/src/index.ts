export { type Clock, readOncePerTurn, systemClock, type Timer } from './clock.ts';
export { type RestListener, restListenerOf } from './config/clear-text.ts';
export {
  type ClientConfig,
  type ClientTunnel,
  clientFileKeys,
  loadClientConfig,
} from './config/client-config.ts';
export { readGroupKeyFile, readSecretText } from './config/entry-secret.ts';
export { readConfigText } from './config/file-layers.ts';
export { pathFrom } from './config/path-from.ts';
export { hasHttpsPort, platformHostAtEdge } from './config/platform-host.ts';
export { PolicySource, readPolicySource } from './config/policy-source.ts';
export { ConfigProblem, type ConfigProblemCode } from './config/problem.ts';
export { type PlainPassword, type PolicyPath, resolvePolicy } from './config/resolve-policy.ts';
export { findServerFile, loadServerConfig, SERVER_FILE } from './config/server-config.ts';
export type { ServerConfig } from './config/server-schema.ts';
export {
  type ConfiguredParts,
  type ConfigWarning,
  configWarnings,
  isPublic,
  likelyParts,
} from './config/server-warnings.ts';
export { isShownPolicyKey } from './config/shown-policy-keys.ts';
export { tunnelNames } from './config/tunnel-names.ts';
export { descriptorLimit } from './descriptor-limit.ts';
export { type FileLock, isProcessAlive, lockHolder, takeLock } from './file-lock.ts';
export { readFirstAccountLink, removeFirstAccountLink, writeFirstAccountLink } from './first-account-link.ts';
export {
  createGuardedFetch,
  type FetchOutcome,
  type GuardedFetch,
  trustOf,
} from './guarded-fetch/guarded-fetch.ts';
export type { NameLookup } from './guarded-fetch/name-lookup.ts';
export { reasonOf, requestOnce } from './guarded-fetch/request-once.ts';
export { addressIn, UrlGuard } from './guarded-fetch/url-guard.ts';
export { InternalErrors, wholeOrEnd } from './internal-errors.ts';
export { Lifecycle, type LifecyclePart, onSignals, type SignalSource } from './lifecycle.ts';
export { closeLocalServer, createLocalServer } from './local-server.ts';
export { type LogFile, openLogFile } from './logger/log-file.ts';
export { LogLimiter } from './logger/log-limiter.ts';
export {
  createLineRelay,
  createLogger,
  isDetailLine,
  isLogLine,
  type LineRelay,
  type Logger,
  type LoggerOptions,
  type LogLevel,
} from './logger/logger.ts';
export { maskFields, maskText } from './logger/mask.ts';
export { type Counter, createMetrics, type Gauge, type Histogram, type Metrics, type Sample } from './metrics.ts';
export { createServiceNotifier, type ServiceNotifier } from './notify.ts';
export { equalInConstantTime, randomId, randomToken, Secret, sha256Hex } from './secret.ts';
export { ensureSecretFile, readSecretFile } from './secret-file.ts';
export { releaseStartMemory } from './start-memory.ts';
export { unlessAborted } from './unless-aborted.ts';
