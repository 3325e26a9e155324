export { type ApiError, apiError, apiErrorOf, REQUEST_ID_PATTERN } from './api-error.ts';
export {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  capturedRequest,
  captureList,
} from './edge-captures.ts';
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
