export { FailureWindow } from './failure-window.ts';
export { FairTurns, type Standing, type Turn } from './fair-turns.ts';
export { AccountBuckets, FramePace, type FramePaceRules, type FrameVerdict } from './frame-pace.ts';
export {
  afterConnect,
  afterFailure,
  type BackoffRules,
  type BackoffState,
  CALM,
  decideMailRetry,
  judgeLiveness,
} from './retry.ts';
export { refusalToKeep, Shares } from './shares.ts';
