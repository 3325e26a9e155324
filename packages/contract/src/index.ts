export { type ApiError, apiError, apiErrorOf, REQUEST_ID_PATTERN } from './api-error.ts';
export {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  capturedRequest,
  captureList,
} from './edge-captures.ts';
export * from './edge-link.ts';
export {
  type EdgeRegion,
  type EdgeStatus,
  type EdgeTunnel,
  edgeRegion,
  edgeRegions,
  edgeStatus,
  edgeTunnel,
  edgeTunnels,
  type ShownProtocol,
  shownProtocol,
  showProtocol,
} from './edge-rest.ts';
export {
  type GroupEvent,
  type GroupMemberSummary,
  type GroupProtocol,
  type GroupSummary,
  groupEvent,
  groupMemberSummary,
  groupProtocol,
  groupSummaries,
  groupSummary,
  type HealthEvent,
  healthEvent,
  healthEvents,
  type Lagged,
  lagged,
} from './groups.ts';
