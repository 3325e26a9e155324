export { FairShare, refusalToKeep } from './fair-share.ts';
export { FairTurns, InFlight, type Standing, type Turn } from './in-flight.ts';
export {
  afterConnect,
  afterFailure,
  type BackoffRules,
  type BackoffState,
  CALM,
  decideMailRetry,
  judgeLiveness,
} from './retry.ts';
export { SlidingWindow, SlidingWindows } from './sliding-window.ts';
export { TokenBucket, TokenBuckets, type TokenRate, untilToken } from './token-buckets.ts';
