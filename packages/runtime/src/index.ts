export { KeyedMutex } from './async/keyed-mutex.ts';
export { SerialQueue, SerialRuns } from './async/serial.ts';
export { SingleFlight } from './async/single-flight.ts';
export { addBackupSeries, type BackupFigures } from './backup-metrics.ts';
export { Cache } from './cache.ts';
export { type Clock, readOncePerTurn, systemClock, type Timer } from './clock.ts';
export { loadWithCodeCache, type Uses } from './code-cache.ts';
export {
  ASIDE,
  readBounded,
  readBoundedSync,
  syncFolder,
  syncFolderSync,
  writeAtomic,
  writeAtomicSync,
} from './files/atomic-file.ts';
export { type FileLock, isProcessAlive, lockHolder, takeLock } from './files/file-lock.ts';
export { readFirstAccountLink, removeFirstAccountLink, writeFirstAccountLink } from './files/first-account-link.ts';
export { GrowingFile, LineLog, type LineRecord, lineOf, recordsIn, wholeLines } from './files/line-log.ts';
export { SealedFiles } from './files/sealed-file.ts';
export { ensureSecretFile, readSecretFile } from './files/secret-file.ts';
export { createGuardedFetch, type GuardedFetch, lazySecureContext } from './guarded-fetch/guarded-fetch.ts';
export type { NameLookup } from './guarded-fetch/name-lookup.ts';
export { reasonOf, requestOnce } from './guarded-fetch/request-once.ts';
export { addressIn, UrlGuard } from './guarded-fetch/url-guard.ts';
export { closeLocalServer, createLocalServer } from './local-server.ts';
export { openLogFile } from './logger/log-file.ts';
export { LogLimiter } from './logger/log-limiter.ts';
export {
  createLineRelay,
  createLogger,
  isDetailLine,
  isLogLine,
  type LineRelay,
  type Logger,
  type LoggerOptions,
} from './logger/logger.ts';
export { maskFields, maskText } from './logger/mask.ts';
export { silentLogger } from './logger/silent-logger.ts';
export { type Counter, createMetrics, type Metrics, type Sample } from './metrics.ts';
export { descriptorLimit } from './process/descriptor-limit.ts';
export { crashOnThrow, InternalErrors } from './process/internal-errors.ts';
export { Lifecycle, onSignals, type SignalSource } from './process/lifecycle.ts';
export { createServiceNotifier } from './process/notify.ts';
export { releaseStartMemory } from './process/start-memory.ts';
export { equalInConstantTime, randomId, randomToken, Secret, sha256Hex } from './secret.ts';
export { parseOtlpHeaders } from './traces/otlp-headers.rules.ts';
export { createTracer, type Span, type StartedTrace, type Tracer } from './traces/tracer.ts';
export { unlessAborted } from './unless-aborted.ts';
